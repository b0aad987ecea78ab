/* record - how a game records play: open a recorder, append a sample for each decision, end each
 * episode, close. Everything else here is the arena's own business. */
#include "arguments.h"
#include "commands.h"
#include "player.h"
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct record_session {
    const char *path;
    uint64_t seed, wanted;
    uint64_t samples, episodes; /* recorded so far */
    tally_sums tally;
    mimus_recorder *recorder;
    player_turn turns[GAME_TICKS][2]; /* of the duel that is being played */
} record_session;

/* ------------------------------------------------------- what mimus is for */

/* The arena has two players, and so two streams of samples at once; a recording is one stream of
 * whole episodes. So a duel is kept until it is over, then each seat's view becomes an episode. */
static mimus_status append_episode(record_session *session, int seat, int32_t ticks) {
    mimus_status status = MIMUS_OK;
    for (int32_t tick = 0; tick < ticks && session->samples < session->wanted; tick++) {
        const player_turn *turn = &session->turns[tick][seat];
        status =
            mimus_recorder_append(session->recorder, turn->senses, turn->actions, turn->legal, 1);
        if (status != MIMUS_OK)
            return status;
        tally_add(&session->tally, turn->weights, turn->actions);
        session->samples++;
    }
    session->episodes++;
    return mimus_recorder_end_episode(session->recorder);
}

static mimus_status record_duel(record_session *session, uint64_t seed) {
    game_state game;
    player_state experts[2] = {{.kind = PLAYER_EXPERT}, {.kind = PLAYER_EXPERT}};
    mimus_status status = MIMUS_OK;
    player_start(&game, experts, seed);
    while (!game_over(&game) && status == MIMUS_OK)
        status = player_tick(&game, experts, session->turns[game.tick]);
    for (int seat = 0; seat < 2 && session->samples < session->wanted; seat++)
        if (status == MIMUS_OK)
            status = append_episode(session, seat, game.tick);
    return status;
}

/* -------------------------------------------------------------- metadata */

static void write_heads(FILE *stream, const char *key, const tally_sums *tally,
                        double (*figure)(const tally_sums *, game_head)) {
    fprintf(stream, ", \"%s\": {", key);
    for (int head = 0; head < GAME_HEADS; head++)
        fprintf(stream, "%s\"%s\": %.6f", head > 0 ? ", " : "", senses_schema()->head[head].name,
                figure(tally, (game_head)head));
    fputs("}", stream);
}

/* What is known of the expert, for whoever judges a policy by the recording; free with free(). */
static char *metadata(const record_session *session) {
    char *json = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&json, &bytes);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "{\"game\": \"mimus-arena\", \"seed\": %" PRIu64, session->seed);
    write_heads(stream, "ceiling", &session->tally, tally_ceiling);
    write_heads(stream, "nll_floor", &session->tally, tally_floor);
    write_heads(stream, "majority", &session->tally, tally_majority);
    fputs(
        ", \"ceiling_heldout_note\": \"ceiling and nll_floor are means over all samples: of the "
        "probability of the expert's likeliest action, the best agreement that a policy can "
        "expect, and of its entropy in nats. Over the held-out episodes they differ by chance.\"}",
        stream);
    if (fclose(stream) == 0)
        return json;
    free(json);
    return NULL;
}

/* ------------------------------------------------------------- the command */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void show_progress(const record_session *session) {
    fprintf(stderr, "\rrecording %3.0f%%  %" PRIu64 " of %" PRIu64 " samples ",
            100.0 * (double)session->samples / (double)session->wanted, session->samples,
            session->wanted);
}

static mimus_status record_all(record_session *session) {
    bool shows = isatty(STDERR_FILENO);
    mimus_status status = MIMUS_OK;
    double shown = 0;
    for (uint64_t duel = 0; session->samples < session->wanted && status == MIMUS_OK; duel++) {
        status = record_duel(session, fixed_random_start(session->seed, duel).state);
        if (shows && seconds() - shown > 0.1) {
            show_progress(session);
            shown = seconds();
        }
    }
    if (shows)
        fputs("\r\033[K", stderr);
    return status;
}

static void show_summary(const record_session *session, double took) {
    printf("%s: %" PRIu64 " samples in %" PRIu64 " episodes, %.1f s\n\n", session->path,
           session->samples, session->episodes, took);
    puts("head     actions  ceiling  NLL floor  majority");
    for (int head = 0; head < GAME_HEADS; head++)
        printf("%-8s %7d %8.1f%% %10.3f %8.1f%%\n", senses_schema()->head[head].name,
               game_actions((game_head)head), 100 * tally_ceiling(&session->tally, (game_head)head),
               tally_floor(&session->tally, (game_head)head),
               100 * tally_majority(&session->tally, (game_head)head));
}

static bool record(record_session *session) {
    mimus_status status = record_all(session);
    if (status == MIMUS_OK) {
        char *json = metadata(session);
        if (json == NULL) {
            complain("record", "out of memory");
            return false;
        }
        status = mimus_recorder_set_metadata(session->recorder, json);
        free(json);
    }
    if (status != MIMUS_OK)
        complain_mimus("record");
    return status == MIMUS_OK;
}

static int run(record_session *session) {
    double began = seconds();
    if (mimus_recorder_open(&session->recorder, session->path, senses_schema(),
                            MIMUS_RECORDER_CREATE) != MIMUS_OK)
        return complain_mimus("record");
    bool done = record(session);
    /* close in any case: it keeps what was recorded, and frees the recorder; a disk that was full
     * before is no news */
    if (mimus_recorder_close(session->recorder) != MIMUS_OK && done)
        return complain_mimus("record");
    if (!done)
        return EXIT_FAILED;
    show_summary(session, seconds() - began);
    return finish("record", EXIT_DONE);
}

int command_record(int argc, char **argv) {
    uint64_t samples = 200000, seed = 1;
    const char *path = NULL;
    const argument options[] = {
        {.name = "output",
         .letter = 'o',
         .value = "FILE",
         .help = "the recording, a new .rec file",
         .text = &path},
        {.name = "samples",
         .value = "N",
         .help = "how many decisions to record (200000)",
         .number = &samples},
        {.name = "seed", .value = "N", .help = "what decides all chance (1)", .number = &seed},
    };
    const argument_page page = {
        .verb = "record",
        .about =
            "Let two scripted experts duel, and record what both see and do. The same seed gives\n"
            "the same bytes on every machine. Told in the end, and kept as the metadata, is how\n"
            "well any policy can do: ceiling, the best agreement that can be expected; NLL floor,\n"
            "the best negative log-likelihood; majority, what always taking the most frequent\n"
            "action reaches.\n",
        .option = options,
        .options = sizeof options / sizeof *options,
    };
    int code;
    if (!arguments_parse(&page, argc, argv, &code))
        return code;
    if (path == NULL)
        return complain_usage("record", "say where to: -o FILE");
    if (samples == 0)
        return complain_usage("record", "--samples takes at least 1");
    record_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        complain("record", "out of memory");
        return EXIT_FAILED;
    }
    session->path = path;
    session->seed = seed;
    session->wanted = samples;
    code = run(session);
    free(session);
    return code;
}
