#include "apart.h"

#include "alloc.h"
#include "text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both processes are one program: what they send each other is in the machine's own form. */
typedef enum message_kind {
    BEGIN = 1, /* the schema's JSON; answered */
    APPEND,    /* senses, actions, whether a mask follows, the mask, weight */
    END_EPISODE,
    COLUMNS, /* of numbers: count, whether each is continuous, names; answered */
    NUMBERS, /* (columns) */
    PROGRESS,
    NOTE, /* a message of the watch */
    DONE, /* status, the message of a failure */
} message_kind;

enum {
    BUFFER_BYTES = 256 << 10,
    TEXT_LIMIT = 32 << 20, /* letters of any text */
};

/* One end of the socket. */
typedef struct line {
    FILE *in, *out;
    bool broken; /* the other end is gone, or talks nonsense */
} line;

static void put(line *l, const void *bytes, size_t count) {
    if (fwrite(bytes, 1, count, l->out) != count)
        l->broken = true;
}

static void put_u32(line *l, uint32_t value) {
    put(l, &value, sizeof value);
}

static void put_text(line *l, const char *text) {
    const uint32_t length = text != NULL ? (uint32_t)strlen(text) : 0;
    put_u32(l, length);
    put(l, text != NULL ? text : "", length);
}

static void get(line *l, void *bytes, size_t count) {
    if (l->broken || fread(bytes, 1, count, l->in) != count) {
        l->broken = true;
        memset(bytes, 0, count);
    }
}

static uint32_t get_u32(line *l) {
    uint32_t value;
    get(l, &value, sizeof value);
    return value;
}

/* A text, "" at worst; free with free(). */
static mimus_status get_text(line *l, char **out) {
    mimus_status status = MIMUS_OK;
    uint32_t length = get_u32(l);
    if (length > TEXT_LIMIT) {
        l->broken = true;
        length = 0;
    }
    MIMUS_TRY(mimus__alloc(out, (size_t)length + 1, 1));
    get(l, *out, length);
out:
    return status;
}

static bool line_open(line *l, int descriptor) {
    int second = dup(descriptor);
    *l = (line){.in = fdopen(descriptor, "rb"), .out = second >= 0 ? fdopen(second, "wb") : NULL};
    if (l->in == NULL || l->out == NULL)
        return false;
    setvbuf(l->in, NULL, _IOFBF, BUFFER_BYTES);
    setvbuf(l->out, NULL, _IOFBF, BUFFER_BYTES);
    return true;
}

static void line_close(line *l) {
    if (l->in != NULL)
        fclose(l->in);
    if (l->out != NULL)
        fclose(l->out);
}

/* ------------------------------------------------------- the process apart */

unsigned mimus__apart_patience = 60;

/* A library that a damaged file leads in circles says nothing any more: then the timer kills. */
static void be_patient(void) {
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)mimus__apart_patience}};
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

/* Sink, numbers and watch of the reader; at the front of each is what it knows. */
typedef struct apart_sink {
    mimus__sink sink;
    line *l;
    mimus_schema *schema;
} apart_sink;

typedef struct apart_numbers {
    mimus__apart_numbers numbers;
    line *l;
    uint32_t count;
} apart_numbers;

/* The other end is gone, and nobody will hear why. */
static mimus_status gone(const line *l) {
    return l->broken ? mimus__fail(MIMUS_ERR_IO, "nobody listens") : MIMUS_OK;
}

/* What the other process says to what it was asked. */
static mimus_status answer(line *l) {
    mimus_status status = MIMUS_OK;
    char *message = NULL;
    fflush(l->out);
    const mimus_status said = (mimus_status)get_u32(l);
    MIMUS_TRY(get_text(l, &message));
    MIMUS_TRY(gone(l));
    if (said != MIMUS_OK)
        status = mimus__fail(said, "%s", message);
out:
    free(message);
    return status;
}

static mimus_status send_begin(mimus__sink *sink, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    apart_sink *s = (apart_sink *)sink;
    json_t *json = NULL;
    char *text = NULL;
    mimus__schema_free(s->schema);
    s->schema = NULL;
    MIMUS_TRY(
        mimus__schema_copy(&s->schema, schema)); /* as whoever is told of it would refuse it */
    MIMUS_TRY(mimus__schema_to_json(&json, s->schema));
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT));
    be_patient();
    put_u32(s->l, BEGIN);
    put_text(s->l, text);
    MIMUS_TRY(answer(s->l));
out:
    free(text);
    json_decref(json);
    return status;
}

static mimus_status send_append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                                const uint8_t *legal, float weight) {
    const apart_sink *s = (apart_sink *)sink;
    put_u32(s->l, APPEND);
    put(s->l, senses, s->schema->senses * sizeof *senses);
    put(s->l, actions, s->schema->heads * sizeof *actions);
    put_u32(s->l, legal != NULL);
    if (legal != NULL)
        put(s->l, legal, mimus__schema_actions(s->schema));
    put(s->l, &weight, sizeof weight);
    return gone(s->l);
}

static mimus_status send_end_episode(mimus__sink *sink) {
    const apart_sink *s = (apart_sink *)sink;
    put_u32(s->l, END_EPISODE);
    return gone(s->l);
}

static mimus_status send_columns(mimus__apart_numbers *to, const mimus__action_columns *columns) {
    apart_numbers *n = (apart_numbers *)to;
    n->count = columns->count;
    put_u32(n->l, COLUMNS);
    put_text(n->l, columns->where);
    put_u32(n->l, columns->count);
    for (uint32_t c = 0; c < columns->count; c++) {
        put_u32(n->l, columns->continuous == NULL || columns->continuous[c]);
        put_u32(n->l, columns->names != NULL && columns->names[c] != NULL);
        put_text(n->l, columns->names != NULL ? columns->names[c] : NULL);
    }
    return answer(n->l);
}

static mimus_status send_numbers(mimus__apart_numbers *to, const float *numbers) {
    const apart_numbers *n = (apart_numbers *)to;
    put_u32(n->l, NUMBERS);
    put(n->l, numbers, n->count * sizeof *numbers);
    return gone(n->l);
}

static void send_progress(void *user, const mimus_progress *progress) {
    line *l = user;
    be_patient();
    put_u32(l, PROGRESS);
    put_text(l, progress->phase);
    put(l, progress, sizeof *progress);
    fflush(l->out);
}

static void send_note(void *user, const char *text) {
    line *l = user;
    put_u32(l, NOTE);
    put_text(l, text);
}

/* What is to be done apart: one of the three. */
typedef struct work {
    mimus__apart_task task;
    void *user;
    mimus__apart_reader read;
    mimus__apart_observer observe;
    const char *library;
    const char *path;
    const char *const *options;
} work;

/* `to` is who waits for what a reader finds, whose bins and schema are known here, too. */
static mimus_status do_work(const work *w, line *l, const mimus__sink *to) {
    const mimus_watch watch = {.user = l, .on_progress = send_progress, .on_message = send_note};
    apart_sink sink = {.sink = {.begin = send_begin,
                                .append = send_append,
                                .end_episode = send_end_episode,
                                .bins = to != NULL ? to->bins : NULL,
                                .like = to != NULL ? to->like : NULL},
                       .l = l};
    apart_numbers numbers = {.numbers = {.open = send_columns, .observe = send_numbers}, .l = l};
    if (w->task != NULL)
        return w->task(w->user, &watch);
    if (w->observe != NULL)
        return w->observe(w->path, w->options, &numbers.numbers, &watch);
    if (w->read != NULL)
        return w->read(w->path, w->options, &sink.sink, &watch);
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: there is nothing to do", w->path);
}

/* Who asks the program to stop asks the other process, which ends this one; a crash leaves no core.
 */
static void be_apart(const work *w, int descriptor, const mimus__sink *to) {
    const struct rlimit no_core = {0, 0};
    line l;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* the program's own handlers of crashes would speak of a crash of the program */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    signal(SIGVTALRM, SIG_DFL);
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGVTALRM);
    sigprocmask(SIG_UNBLOCK, &timer, NULL);
    be_patient();
    if (!line_open(&l, descriptor))
        _exit(EXIT_FAILURE);
    mimus_status status = do_work(w, &l, to);
    put_u32(&l, DONE);
    put_u32(&l, status);
    put_text(&l, status != MIMUS_OK ? mimus_last_error() : "");
    fflush(l.out);
    _exit(EXIT_SUCCESS); /* and nothing of what the program does at its end */
}

/* ------------------------------------------------------------ this process */

typedef struct listener {
    line l;
    mimus__sink *sink; /* one of the two */
    mimus__bins *bins;
    const mimus_watch *watch;
    const mimus_schema *schema; /* of what comes */
    mimus_schema *owned;
    uint32_t columns;
    float *senses; /* room for one sample, or for one row of numbers */
    uint16_t *actions;
    uint8_t *legal;
    bool done;
} listener;

/* Whoever asked may be dead by now: that must not be a signal, and shows when nothing more comes.
 */
static void reply(const listener *li, mimus_status status) {
    const char *text = status != MIMUS_OK ? mimus_last_error() : "";
    const uint32_t head[2] = {status, (uint32_t)strlen(text)};
    const int to = fileno(li->l.in);
    (void)send(to, head, sizeof head, MSG_NOSIGNAL);
    if (head[1] > 0)
        (void)send(to, text, head[1], MSG_NOSIGNAL);
}

static mimus_status take_schema(listener *li, const char *text) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    MIMUS_TRY(mimus__json_parse(&json, text, strlen(text), "schema"));
    MIMUS_TRY(mimus__schema_from_json(&li->owned, json, "schema"));
    MIMUS_TRY(mimus__alloc(&li->senses, li->owned->senses, sizeof *li->senses));
    MIMUS_TRY(mimus__alloc(&li->actions, li->owned->heads, sizeof *li->actions));
    MIMUS_TRY(mimus__alloc(&li->legal, mimus__schema_actions(li->owned), 1));
    li->schema = li->owned;
out:
    json_decref(json);
    return status;
}

/* A sink's refusal goes back to the reader, who may have something to add; it comes again with
 * DONE. */
static mimus_status hear_begin(listener *li) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(get_text(&li->l, &text));
    if (li->sink == NULL || li->schema != NULL || li->l.broken) {
        li->l.broken = true;
        goto out;
    }
    MIMUS_TRY(take_schema(li, text));
    reply(li, mimus__sink_begin(li->sink, li->schema));
out:
    free(text);
    return status;
}

static mimus_status hear_append(listener *li) {
    float weight;
    if (li->schema == NULL) {
        li->l.broken = true;
        return MIMUS_OK;
    }
    get(&li->l, li->senses, li->schema->senses * sizeof *li->senses);
    get(&li->l, li->actions, li->schema->heads * sizeof *li->actions);
    const bool masked = get_u32(&li->l) != 0;
    if (masked)
        get(&li->l, li->legal, mimus__schema_actions(li->schema));
    get(&li->l, &weight, sizeof weight);
    if (li->l.broken)
        return MIMUS_OK;
    return mimus__sink_append(li->sink, li->senses, li->actions, masked ? li->legal : NULL, weight);
}

static mimus_status hear_columns(listener *li) {
    mimus_status status = MIMUS_OK;
    char *where = NULL, **names = NULL;
    bool *continuous = NULL;
    MIMUS_TRY(get_text(&li->l, &where));
    li->columns = get_u32(&li->l);
    if (li->bins == NULL || li->senses != NULL || li->columns == 0 ||
        li->columns > MIMUS__MAX_HEADS) {
        li->l.broken = true;
        goto out;
    }
    MIMUS_TRY(mimus__alloc(&names, li->columns, sizeof *names));
    MIMUS_TRY(mimus__alloc(&continuous, li->columns, sizeof *continuous));
    MIMUS_TRY(mimus__alloc(&li->senses, li->columns, sizeof *li->senses));
    for (uint32_t c = 0; c < li->columns; c++) {
        continuous[c] = get_u32(&li->l) != 0;
        const bool named = get_u32(&li->l) != 0;
        MIMUS_TRY(get_text(&li->l, &names[c]));
        if (!named) {
            free(names[c]);
            names[c] = NULL;
        }
    }
    const mimus__action_columns columns = {.where = where,
                                           .count = li->columns,
                                           .names = (const char *const *)names,
                                           .continuous = continuous};
    if (!li->l.broken)
        reply(li, mimus__bins_open(li->bins, &columns));
out:
    for (uint32_t c = 0; names != NULL && c < li->columns; c++)
        free(names[c]);
    free(names);
    free(continuous);
    free(where);
    return status;
}

static mimus_status hear_numbers(listener *li) {
    if (li->columns == 0 || li->bins == NULL)
        li->l.broken = true;
    else
        get(&li->l, li->senses, li->columns * sizeof *li->senses);
    return li->l.broken ? MIMUS_OK : mimus__bins_observe(li->bins, li->senses);
}

static mimus_status hear_progress(listener *li) {
    mimus_status status = MIMUS_OK;
    const mimus_watch *watch = li->watch;
    mimus_progress progress;
    char *phase = NULL;
    MIMUS_TRY(get_text(&li->l, &phase));
    get(&li->l, &progress, sizeof progress);
    progress.phase = phase;
    if (watch == NULL || li->l.broken)
        goto out;
    if (watch->should_stop != NULL && watch->should_stop(watch->user))
        MIMUS_TRY(mimus__fail(MIMUS_ERR_STOPPED, "stopped on request after %llu samples of %s",
                              (unsigned long long)progress.done, phase));
    if (watch->on_progress != NULL)
        watch->on_progress(watch->user, &progress);
out:
    free(phase);
    return status;
}

static mimus_status hear_note(listener *li) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(get_text(&li->l, &text));
    if (li->watch != NULL && li->watch->on_message != NULL && !li->l.broken)
        li->watch->on_message(li->watch->user, text);
out:
    free(text);
    return status;
}

static mimus_status hear_done(listener *li) {
    mimus_status status = MIMUS_OK;
    char *message = NULL;
    const mimus_status said = (mimus_status)get_u32(&li->l);
    MIMUS_TRY(get_text(&li->l, &message));
    li->done = !li->l.broken;
    if (li->done && said != MIMUS_OK)
        status = mimus__fail(said, "%s", message);
out:
    free(message);
    return status;
}

static mimus_status hear(listener *li) {
    switch ((message_kind)get_u32(&li->l)) {
    case BEGIN:
        return hear_begin(li);
    case APPEND:
        return hear_append(li);
    case END_EPISODE:
        return li->schema != NULL ? mimus__sink_end_episode(li->sink) : MIMUS_OK;
    case COLUMNS:
        return hear_columns(li);
    case NUMBERS:
        return hear_numbers(li);
    case PROGRESS:
        return hear_progress(li);
    case NOTE:
        return hear_note(li);
    case DONE:
        return hear_done(li);
    }
    li->l.broken = true;
    return MIMUS_OK;
}

/* How the process came to its end without a word. */
static mimus_status lost(const work *w, int ended) {
    if (w->task != NULL)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s crashed (%s)", w->path, w->library,
                           WIFSIGNALED(ended) ? strsignal(WTERMSIG(ended)) : "without a word");
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGVTALRM)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: %s came to no end on it: the file is damaged, or made to do harm",
                           w->path, w->library);
    if (WIFSIGNALED(ended))
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: %s crashed on it (%s): the file is damaged, or made to do harm",
                           w->path, w->library, strsignal(WTERMSIG(ended)));
    return mimus__fail(
        MIMUS_ERR_FORMAT,
        "%s: %s gave up on it (exit code %d): the file is damaged, or made to do harm", w->path,
        w->library, WEXITSTATUS(ended));
}

static mimus_status listen_to(listener *li, const work *w, pid_t process) {
    mimus_status status = MIMUS_OK;
    int ended = 0;
    while (status == MIMUS_OK && !li->done && !li->l.broken)
        status = hear(li);
    if (!li->done && status != MIMUS_OK)
        kill(process, SIGKILL); /* nobody wants to know the rest */
    line_close(&li->l);
    while (waitpid(process, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (!li->done && status == MIMUS_OK)
        status = lost(w, ended);
    mimus__schema_free(li->owned);
    free(li->senses);
    free(li->actions);
    free(li->legal);
    return status;
}

static mimus_status run(const work *w, listener *li) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot be read apart: %s", w->path, strerror(errno));
    pid_t process = fork();
    if (process == 0) {
        close(pair[0]);
        be_apart(w, pair[1], li->sink);
    }
    close(pair[1]);
    if (process < 0) {
        close(pair[0]);
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot be read apart: %s", w->path, strerror(errno));
    }
    li->l.broken = !line_open(&li->l, pair[0]);
    return listen_to(li, w, process);
}

mimus_status mimus__apart_read(mimus__apart_reader read, const char *library, const char *path,
                               const char *const *options, mimus__sink *sink,
                               const mimus_watch *watch) {
    const work w = {.read = read, .library = library, .path = path, .options = options};
    listener li = {.sink = sink, .watch = watch};
    return run(&w, &li);
}

mimus_status mimus__apart_observe(mimus__apart_observer observe, const char *library,
                                  const char *path, const char *const *options, mimus__bins *bins,
                                  const mimus_watch *watch) {
    const work w = {.observe = observe, .library = library, .path = path, .options = options};
    listener li = {.bins = bins, .watch = watch};
    return run(&w, &li);
}

mimus_status mimus__apart_do(mimus__apart_task task, void *user, const char *library,
                             const char *path, const mimus_watch *watch) {
    const work w = {.task = task, .user = user, .library = library, .path = path};
    listener li = {.watch = watch};
    return run(&w, &li);
}
