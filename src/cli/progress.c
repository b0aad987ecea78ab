#include "progress.h"

#include "cli.h"
#include "epochs.h"
#include "human.h"
#include "terminal.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_MOST = 30, BAR_LEAST = 8, LINE_BYTES = 1024 };
#define ERASE "\r\033[K"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

struct cli_progress {
    const char *verb;
    mimus_watch watch;
    char notice[256]; /* what the first signal is answered with */
    sigset_t awaited, before;
    void (*pipe)(int); /* what SIGPIPE did before */
    pthread_t listener;
    bool listens;
    bool terminal;                /* a bar and a table, else plain lines */
    bool deaf;                    /* nobody reads what is shown */
    char bar[LINE_BYTES];         /* what stands on the terminal's last line */
    double drawn;                 /* when, in seconds of the monotonic clock */
    size_t table_columns;         /* the width that the table was made for; 0: not begun */
    char phase[32];               /* the present one; "" before the first */
    double began;                 /* when it did, in the same seconds */
    mimus_progress first, latest; /* reports of it; the phases' names are not kept */
};

/* ----------------------------------------------------------------- signals */

static atomic_int stop_signal;

static void end_by(int number) {
    sigset_t one;
    signal(number, SIG_DFL); /* in place of what a driver may have left there */
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

/* The first one asks to stop, the second one ends the process. */
static void *take_signals(void *argument) {
    const cli_progress *progress = argument;
    for (;;) {
        int number;
        if (sigwait(&progress->awaited, &number) != 0)
            continue;
        if (atomic_exchange(&stop_signal, number) != 0)
            end_by(number);
        (void)terminal_write(progress->notice, strlen(progress->notice));
    }
    return NULL;
}

/* Signals go to a thread of their own, and handlers to none: an OpenCL driver may be a compiler
 * with handlers of its own (LLVM's, in PoCL), which take the files that it writes away under it.
 * Threads that drivers make block what their maker blocks. A signal that is ignored (nohup, a
 * shell's background job) stays ignored. */
static void catch_signals(cli_progress *progress) {
    struct sigaction present;
    sigemptyset(&progress->awaited);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN)
            sigaddset(&progress->awaited, signals[i]);
    }
    progress->pipe = signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &progress->awaited, &progress->before);
    progress->listens = pthread_create(&progress->listener, NULL, take_signals, progress) == 0;
    if (!progress->listens) /* then a signal ends the process, as ever */
        pthread_sigmask(SIG_SETMASK, &progress->before, NULL);
}

static void release_signals(const cli_progress *progress) {
    if (progress->listens) {
        pthread_cancel(progress->listener);
        pthread_join(progress->listener, NULL);
        pthread_sigmask(SIG_SETMASK, &progress->before, NULL);
    }
    signal(SIGPIPE, progress->pipe);
}

int progress_signal(void) {
    return atomic_load(&stop_signal);
}

/* ------------------------------------------------------------------ output */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void put(cli_progress *progress, const char *text) {
    if (!progress->deaf && !terminal_write(text, strlen(text)))
        progress->deaf = true;
}

/* Finished lines go above the bar; one write, so that nothing flickers. */
static void put_lines(cli_progress *progress, const char *lines) {
    if (progress->bar[0] == '\0') {
        put(progress, lines);
        return;
    }
    char *text = cli_format(ERASE "%s%s", lines, progress->bar);
    put(progress, text);
    free(text);
}

/* --------------------------------------------------------------------- bar */

/* What stands in the bar's line, in this order; what matters least goes first where the terminal
 * is narrow. */
enum { PIECE_EPOCH, PIECE_LOSS, PIECE_RATE, PIECE_LEFT, PIECES };
static const int dispensable[PIECES] = {PIECE_RATE, PIECE_LOSS, PIECE_EPOCH, PIECE_LEFT};

/* Samples a second since the phase began, without those that were there before it (a resumed run
 * begins in the middle). */
static double rate_of(const cli_progress *progress) {
    double seconds = progress->latest.seconds - progress->first.seconds;
    uint64_t done = progress->latest.done - progress->first.done;
    return seconds > 0 && done > 0 ? (double)done / seconds : NAN;
}

static void make_pieces(const cli_progress *progress, char pieces[PIECES][48]) {
    const mimus_progress *latest = &progress->latest;
    double rate = rate_of(progress);
    double left = (double)(latest->total - latest->done) / rate;
    memset(pieces, 0, PIECES * sizeof *pieces);
    if (latest->epochs > 0)
        snprintf(pieces[PIECE_EPOCH], 48, "  epoch %u/%u", (unsigned)latest->epoch,
                 (unsigned)latest->epochs);
    if (isfinite(latest->loss))
        snprintf(pieces[PIECE_LOSS], 48, "  loss %s", human_real(latest->loss).text);
    if (isfinite(rate))
        snprintf(pieces[PIECE_RATE], 48, "  %s samples/s", human_short(rate).text);
    if (latest->total > 0 && isfinite(left))
        snprintf(pieces[PIECE_LEFT], 48, "  ETA %s", human_seconds(left).text);
}

static size_t pieces_width(char pieces[PIECES][48]) {
    size_t width = 0;
    for (int i = 0; i < PIECES; i++)
        width += strlen(pieces[i]);
    return width;
}

/* The bar's line in fewer than `columns` cells: a full line would wrap. */
static void make_bar(const cli_progress *progress, char line[LINE_BYTES], size_t columns) {
    const mimus_progress *latest = &progress->latest;
    char pieces[PIECES][48], lead[96], bar[4 * BAR_MOST + 8] = "";
    double share = latest->total > 0 ? (double)latest->done / (double)latest->total : 0;
    size_t room = columns > 1 ? columns - 1 : 1, bar_cells = 0;
    make_pieces(progress, pieces);
    if (latest->total > 0)
        snprintf(lead, sizeof lead, "%s %3.0f%%", progress->phase, 100 * share);
    else if (latest->done > 0)
        snprintf(lead, sizeof lead, "%s %s", progress->phase,
                 human_things((double)latest->done, "sample").text);
    else if (strcmp(progress->phase, "prepare") == 0) /* the one that may take long unseen */
        snprintf(lead, sizeof lead, "prepare: building kernels, longest the first time");
    else
        snprintf(lead, sizeof lead, "%s", progress->phase);
    for (int i = 0; i < PIECES && strlen(lead) + pieces_width(pieces) > room; i++)
        pieces[dispensable[i]][0] = '\0';
    size_t used = strlen(lead) + pieces_width(pieces);
    if (latest->total > 0 && used + BAR_LEAST + 4 <= room)
        bar_cells = room - used - 4 < BAR_MOST ? room - used - 4 : BAR_MOST;
    int at = snprintf(line, LINE_BYTES, "%.*s", (int)room, lead);
    if (bar_cells > 0) {
        human_bar(bar, sizeof bar, share, bar_cells);
        at += snprintf(line + at, LINE_BYTES - (size_t)at, "  [%s%*s]", bar,
                       (int)(bar_cells - human_width(bar)), "");
    }
    for (int i = 0; i < PIECES; i++)
        at += snprintf(line + at, LINE_BYTES - (size_t)at, "%s", pieces[i]);
}

static void draw(cli_progress *progress) {
    char line[LINE_BYTES], text[LINE_BYTES + 16];
    make_bar(progress, line, terminal_columns(STDERR_FILENO));
    progress->drawn = now();
    if (strcmp(line, progress->bar) == 0)
        return;
    memcpy(progress->bar, line, sizeof line);
    /* Over the old line, and only then erase what is left of it. */
    snprintf(text, sizeof text, "\r%s\033[K", line);
    put(progress, text);
}

static void erase(cli_progress *progress) {
    if (progress->bar[0] != '\0')
        put(progress, ERASE);
    progress->bar[0] = '\0';
}

/* ------------------------------------------------------------------- phases */

/* A plain line for a phase that is over; training has its epochs instead. */
static void end_phase(cli_progress *progress) {
    const mimus_progress *latest = &progress->latest;
    char *line;
    if (progress->terminal || progress->phase[0] == '\0' || latest->epochs > 0)
        return;
    if (latest->done == 0)
        line = cli_format("%s: %s\n", progress->phase, human_seconds(now() - progress->began).text);
    else if (latest->done < latest->total)
        line = cli_format("%s: %s of %s in %s\n", progress->phase,
                          human_count((double)latest->done).text,
                          human_things((double)latest->total, "sample").text,
                          human_seconds(latest->seconds).text);
    else
        line = cli_format("%s: %s in %s\n", progress->phase,
                          human_things((double)latest->done, "sample").text,
                          human_seconds(latest->seconds).text);
    put(progress, line);
    free(line);
}

static void on_progress(void *user, const mimus_progress *report) {
    cli_progress *progress = user;
    bool begins =
        strcmp(progress->phase, report->phase) != 0 || report->seconds < progress->latest.seconds;
    if (begins) {
        end_phase(progress);
        snprintf(progress->phase, sizeof progress->phase, "%s", report->phase);
        progress->first = *report;
        progress->began = now();
    }
    progress->latest = *report;
    if (progress->terminal && (begins || now() - progress->drawn >= 0.1))
        draw(progress);
}

static void on_epoch(void *user, const char *text) {
    cli_progress *progress = user;
    json_t *row = json_loads(text, 0, NULL);
    if (row == NULL)
        return; /* the run keeps it all the same */
    char *heading = NULL, *line;
    if (progress->terminal) {
        if (progress->table_columns == 0) {
            progress->table_columns = terminal_columns(STDERR_FILENO);
            heading = epochs_heading(row, progress->table_columns);
        }
        line = epochs_row(row, progress->table_columns);
    } else {
        line = epochs_line(row, progress->latest.epochs);
    }
    char *lines = cli_format("%s%s", heading != NULL ? heading : "", line);
    put_lines(progress, lines);
    free(heading);
    free(line);
    free(lines);
    json_decref(row);
}

static void on_message(void *user, const char *text) {
    cli_progress *progress = user;
    char *shown = human_text(text, SIZE_MAX);
    char *line = cli_format("mimus %s: %s\n", progress->verb, shown);
    put_lines(progress, line);
    free(line);
    free(shown);
}

static bool should_stop(void *user) {
    (void)user;
    return atomic_load(&stop_signal) != 0;
}

/* ----------------------------------------------------------------- together */

cli_progress *progress_begin(const char *verb, const char *stopping, bool quiet) {
    cli_progress *made = cli_allocate(1, sizeof *made);
    made->verb = verb;
    made->terminal = !quiet && terminal_can_erase(STDERR_FILENO);
    made->watch = (mimus_watch){.user = made,
                                .on_progress = quiet ? NULL : on_progress,
                                .on_epoch = quiet ? NULL : on_epoch,
                                .on_message = on_message,
                                .should_stop = should_stop};
    snprintf(made->notice, sizeof made->notice,
             "%smimus %s: stopping%s%s (again to quit at once)\n", made->terminal ? ERASE : "",
             verb, *stopping != '\0' ? " " : "", stopping);
    catch_signals(made);
    return made;
}

const mimus_watch *progress_watch(cli_progress *progress) {
    return &progress->watch;
}

void progress_end(cli_progress *progress) {
    end_phase(progress);
    erase(progress);
    release_signals(progress);
    free(progress);
}
