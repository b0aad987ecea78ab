/* play - how a game runs a policy: load it once, make an agent for each player, and ask it for
 * actions at each decision (player.c). Here it plays many duels, and is judged. */
#include "arguments.h"
#include "commands.h"
#include "player.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct play_score {
    uint64_t wins, losses, draws, ticks;
} play_score;

typedef struct play_judgement {
    uint64_t episodes, seed;
    play_score score[PLAYER_RANDOM + 1]; /* [the opponent's kind] */
    uint64_t agreed[GAME_HEADS];         /* with the expert's likeliest action */
    uint64_t decisions;
} play_judgement;

static const char *const opponents[] = {[PLAYER_EXPERT] = "expert", [PLAYER_RANDOM] = "random"};

/* ----------------------------------------------------------------- playing */

static void note_agreement(play_judgement *judgement, const player_turn *turn) {
    uint16_t best[GAME_HEADS];
    expert_best(turn->weights, best);
    for (int head = 0; head < GAME_HEADS; head++)
        judgement->agreed[head] += turn->actions[head] == best[head];
    judgement->decisions++;
}

/* Two duels in a row have the same arena, the seats exchanged. The high bit keeps them apart from
 * the duels that `record` plays with the same seed. */
static mimus_status play_duel(play_judgement *judgement, const player_state *policy,
                              player_kind opponent, uint64_t episode) {
    int seat = (int)(episode % 2);
    player_state players[2];
    players[seat] = *policy;
    players[!seat] = (player_state){.kind = opponent};
    game_state game;
    uint64_t arena = UINT64_C(1) << 63 | episode / 2;
    player_start(&game, players, fixed_random_start(judgement->seed, arena).state);
    while (!game_over(&game)) {
        player_turn turns[2];
        mimus_status status = player_tick(&game, players, turns);
        if (status != MIMUS_OK)
            return status;
        note_agreement(judgement, &turns[seat]);
    }
    play_score *score = &judgement->score[opponent];
    int winner = game_winner(&game);
    *(winner == seat ? &score->wins : winner < 0 ? &score->draws : &score->losses) += 1;
    score->ticks += (uint64_t)game.tick;
    return MIMUS_OK;
}

static mimus_status play_all(play_judgement *judgement, const player_state *policy) {
    bool shows = isatty(STDERR_FILENO);
    mimus_status status = MIMUS_OK;
    for (player_kind kind = PLAYER_EXPERT; kind <= PLAYER_RANDOM; kind++)
        for (uint64_t i = 0; i < judgement->episodes && status == MIMUS_OK; i++) {
            if (shows)
                fprintf(stderr, "\rplaying against %s: %" PRIu64 " of %" PRIu64 " ",
                        opponents[kind], i, judgement->episodes);
            status = play_duel(judgement, policy, kind, i);
        }
    if (shows)
        fputs("\r\033[K", stderr);
    return status;
}

/* --------------------------------------------------------------- reporting */

typedef struct play_interval {
    double low, high;
} play_interval;

/* Of a share, 95%: Wilson, "Probable inference, the law of succession, and statistical inference",
 * JASA 22, 1927. */
static play_interval wilson(uint64_t wins, uint64_t of) {
    double n = (double)of, share = (double)wins / n, z = 1.959964, z2 = z * z;
    double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
    double reach = z * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
    return (play_interval){fmax(middle - reach, 0), fmin(middle + reach, 1)};
}

static double agreement(const play_judgement *judgement, int head) {
    return (double)judgement->agreed[head] / (double)judgement->decisions;
}

static void show_json(const play_judgement *judgement, bool sample) {
    printf("{\"episodes\": %" PRIu64 ", \"seed\": %" PRIu64 ", \"sample\": %s, \"against\": {",
           judgement->episodes, judgement->seed, sample ? "true" : "false");
    for (int kind = 0; kind <= PLAYER_RANDOM; kind++) {
        const play_score *score = &judgement->score[kind];
        play_interval range = wilson(score->wins, judgement->episodes);
        printf("%s\"%s\": {\"wins\": %" PRIu64 ", \"losses\": %" PRIu64 ", \"draws\": %" PRIu64
               ", \"win_rate\": %.6f, \"low\": %.6f, \"high\": %.6f, \"ticks\": %.3f}",
               kind > 0 ? ", " : "", opponents[kind], score->wins, score->losses, score->draws,
               (double)score->wins / (double)judgement->episodes, range.low, range.high,
               (double)score->ticks / (double)judgement->episodes);
    }
    fputs("}, \"agreement\": {", stdout);
    for (int head = 0; head < GAME_HEADS; head++)
        printf("%s\"%s\": %.6f", head > 0 ? ", " : "", senses_schema()->head[head].name,
               agreement(judgement, head));
    puts("}}");
}

static void show_text(const play_judgement *judgement) {
    puts("against    wins  losses  draws  win rate   95% interval  ticks");
    for (int kind = 0; kind <= PLAYER_RANDOM; kind++) {
        const play_score *score = &judgement->score[kind];
        play_interval range = wilson(score->wins, judgement->episodes);
        printf("%-8s %6" PRIu64 " %7" PRIu64 " %6" PRIu64 " %8.1f%% %6.1f to %5.1f%% %6.0f\n",
               opponents[kind], score->wins, score->losses, score->draws,
               100 * (double)score->wins / (double)judgement->episodes, 100 * range.low,
               100 * range.high, (double)score->ticks / (double)judgement->episodes);
    }
    puts("\nAgreement with the expert's likeliest choice");
    for (int head = 0; head < GAME_HEADS; head++)
        printf("%s%s %.1f%%", head > 0 ? ", " : "", senses_schema()->head[head].name,
               100 * agreement(judgement, head));
    puts("");
}

/* ------------------------------------------------------------- the command */

static int run(play_judgement *judgement, const char *path, bool sample, bool json) {
    mimus_policy *policy = NULL;
    mimus_agent *agent = NULL;
    int code = EXIT_FAILED;
    if (!player_load(&policy, path, "play"))
        goto out;
    if (mimus_agent_new(&agent, policy, judgement->seed) != MIMUS_OK) {
        complain_mimus("play");
        goto out;
    }
    player_state player = {.kind = PLAYER_POLICY, .agent = agent, .sample = sample};
    if (play_all(judgement, &player) != MIMUS_OK) {
        complain_mimus("play");
        goto out;
    }
    if (json)
        show_json(judgement, sample);
    else
        show_text(judgement);
    code = finish("play", EXIT_DONE);
out:
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    return code;
}

int command_play(int argc, char **argv) {
    play_judgement judgement = {.episodes = 100, .seed = 1};
    const char *policy = NULL;
    bool sample = false, json = false;
    const argument options[] = {
        {.name = "policy",
         .letter = 'p',
         .value = "RUN",
         .help = "a run folder or a checkpoint",
         .text = &policy},
        {.name = "episodes",
         .value = "N",
         .help = "duels with each opponent (100)",
         .number = &judgement.episodes},
        {.name = "seed",
         .value = "N",
         .help = "what decides all chance (1)",
         .number = &judgement.seed},
        {.name = "sample", .help = "draw actions from the policy's probabilities", .flag = &sample},
        {.name = "json", .help = "print a JSON object", .flag = &json},
    };
    const argument_page page = {
        .verb = "play",
        .about =
            "Let a policy duel with the expert it learned from, and with a player that chooses by\n"
            "chance. Each arena is played twice, with the seats exchanged. A policy takes its\n"
            "most probable actions unless told to draw them.\n",
        .option = options,
        .options = sizeof options / sizeof *options,
    };
    int code;
    if (!arguments_parse(&page, argc, argv, &code))
        return code;
    if (policy == NULL)
        return complain_usage("play", "say which policy: --policy RUN");
    if (judgement.episodes == 0)
        return complain_usage("play", "--episodes takes at least 1");
    return run(&judgement, policy, sample, json);
}
