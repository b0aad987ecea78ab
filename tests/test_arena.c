/* The arena: the game plays the same everywhere, its players see and choose what they are said to,
 * and the program records and plays. */
#include "support.h"

#include "expert.h"
#include "file.h"
#include "model.h"
#include "play.h"
#include "tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* One tick as a seat had it. */
typedef struct seat_turn {
    float senses[SENSES_COUNT];
    uint8_t legal[GAME_ACTIONS];
    uint32_t weights[GAME_ACTIONS];
    uint16_t actions[GAME_HEADS];
} seat_turn;

/* ck_assert tells its parent about every assertion, which is too slow for millions of them. */
#define holds(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static bool in(int32_t value, int32_t low, int32_t high) {
    return value >= low && value <= high;
}

typedef enum seat_kind { EXPERT, BEST, CHANCE } seat_kind;

static void perceive(const game_state *game, int seat, seat_turn *turn) {
    senses_read(game, seat, turn->senses);
    game_legal(game, seat, turn->legal);
    expert_weigh(turn->senses, turn->legal, turn->weights);
}

static void choose(seat_kind kind, seat_turn *turn, fixed_random *random) {
    uint32_t equal[GAME_ACTIONS];
    for (int a = 0; a < GAME_ACTIONS; a++)
        equal[a] = turn->legal[a];
    if (kind == BEST)
        expert_best(turn->weights, turn->actions);
    else
        expert_draw(kind == EXPERT ? turn->weights : equal, random, turn->actions);
}

/* Play a duel; `visit` sees every turn before the step. */
static game_state play(uint64_t seed, seat_kind kind0, seat_kind kind1,
                       void (*visit)(const game_state *, int seat, const seat_turn *, void *user),
                       void *user) {
    game_state game;
    fixed_random random[2] = {fixed_random_start(seed, 1), fixed_random_start(seed, 2)};
    game_start(&game, seed);
    while (!game_over(&game)) {
        seat_turn turns[2];
        for (int seat = 0; seat < 2; seat++) {
            perceive(&game, seat, &turns[seat]);
            choose(seat == 0 ? kind0 : kind1, &turns[seat], &random[seat]);
            holds(game_allows(&game, seat, turns[seat].actions), "seat %d, tick %d", seat,
                  game.tick);
            if (visit != NULL)
                visit(&game, seat, &turns[seat], user);
        }
        game_step(&game, turns[0].actions, turns[1].actions);
    }
    return game;
}

static const char *head_name(int head) {
    return senses_schema()->head[head].name;
}

/* -------------------------------------------------------------- arithmetic */

START_TEST(sines_and_angles_are_close) {
    for (int32_t angle = -2 * FIXED_TURN; angle <= 2 * FIXED_TURN; angle++) {
        double radians = angle * 2 * acos(-1) / FIXED_TURN;
        double off_sine = fixed_sin(angle) - FIXED_ONE * sin(radians);
        double off_cosine = fixed_cos(angle) - FIXED_ONE * cos(radians);
        int64_t x = llround(1e6 * cos(radians)), y = llround(1e6 * sin(radians));
        int32_t off = fixed_wrap_signed(fixed_angle(x, y) - angle);
        holds(fabs(off_sine) < 3 && fabs(off_cosine) < 3,
              "at %d the sine is off by %g, the cosine by %g", angle, off_sine, off_cosine);
        holds(abs(off) <= 2, "at %d the angle is off by %d", angle, off);
        holds(fixed_wrap(angle) == (angle + 2 * FIXED_TURN) % FIXED_TURN, "wrap of %d", angle);
    }
    ck_assert_int_eq(fixed_angle(0, 0), 0);
}
END_TEST

START_TEST(roots_are_rounded_down) {
    const int64_t values[] = {-5, 0, 1, 2, 3, 4, 99, 100, 101, 65536LL * 65536, INT64_C(1) << 60};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (int64_t value = values[i] - 1; value <= values[i] + 1; value++) {
            int64_t root = fixed_sqrt(value);
            if (value <= 0)
                ck_assert_int_eq(root, 0);
            else
                ck_assert(root * root <= value && (root + 1) * (root + 1) > value);
        }
}
END_TEST

START_TEST(chance_is_even) {
    enum { BOUND = 7, DRAWS = 70000 };
    fixed_random random = fixed_random_start(3, 4), other = fixed_random_start(3, 5);
    int counts[BOUND] = {0}, same = 0;
    for (int i = 0; i < DRAWS; i++) {
        counts[fixed_random_below(&random, BOUND)]++;
        int32_t between = fixed_random_between(&other, -2, 2);
        holds(in(between, -2, 2), "%d is not in [-2, 2]", between);
        same += fixed_random_next(&random) == fixed_random_next(&other);
    }
    ck_assert_int_eq(same, 0);
    double chi2 = 0, expected = (double)DRAWS / BOUND;
    for (int i = 0; i < BOUND; i++)
        chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    ck_assert_double_lt(chi2, 22.5); /* 6 degrees of freedom, p = 0.001 */
}
END_TEST

/* -------------------------------------------------------------------- game */

/* FNV-1a, over numbers and not their bytes: the same on machines of either byte order. */
static uint64_t mix(uint64_t hash, int64_t value) {
    return (hash ^ (uint64_t)value) * UINT64_C(0x100000001B3);
}

typedef struct duel_history {
    uint64_t hash;
    int steps;
} duel_history;

static void remember(const game_state *game, int seat, const seat_turn *turn, void *user) {
    duel_history *history = user;
    if (history->steps >= 1000)
        return;
    uint64_t hash = history->hash;
    for (int i = 0; i < SENSES_COUNT; i++)
        hash = mix(hash, (int64_t)(turn->senses[i] * SENSE_ONE));
    for (int a = 0; a < GAME_ACTIONS; a++)
        hash = mix(mix(hash, turn->legal[a]), turn->weights[a]);
    for (int head = 0; head < GAME_HEADS; head++)
        hash = mix(hash, turn->actions[head]);
    history->hash = mix(mix(hash, game->tank[seat].x), game->tank[seat].y);
    history->steps += seat == 1;
}

static duel_history remember_games(uint64_t seed) {
    duel_history history = {.hash = UINT64_C(0xCBF29CE484222325)};
    while (history.steps < 1000)
        play(seed++, EXPERT, EXPERT, remember, &history);
    return history;
}

/* Whoever changes the rules, the senses or the expert changes what every seed records: then this
 * number changes too, and docs/arena.md's figures are measured again. */
START_TEST(a_thousand_steps_are_the_same_everywhere) {
    ck_assert_msg(remember_games(1).hash == UINT64_C(0x72C40943CA223D75), "the hash is 0x%016llX",
                  (unsigned long long)remember_games(1).hash);
    ck_assert(remember_games(1).hash != remember_games(2).hash);
}
END_TEST

static void check_state(const game_state *game, int seat, const seat_turn *turn, void *user) {
    (void)turn;
    (void)user;
    const game_tank *tank = &game->tank[seat];
    holds(in(tank->x, TANK_RADIUS, GAME_SIDE - TANK_RADIUS), "x is %d", tank->x);
    holds(in(tank->y, TANK_RADIUS, GAME_SIDE - TANK_RADIUS), "y is %d", tank->y);
    holds(in(tank->heading, 0, FIXED_TURN - 1), "heading is %d", tank->heading);
    holds(in(tank->turret, 0, FIXED_TURN - 1), "turret is %d", tank->turret);
    holds(in(tank->speed, -TANK_SPEED, TANK_SPEED), "speed is %d", tank->speed);
    holds(in(tank->health, 1, GAME_FULL), "health is %d", tank->health);
    holds(in(tank->energy, 0, GAME_FULL), "energy is %d", tank->energy);
    holds(in(tank->heat, 0, GAME_FULL), "heat is %d", tank->heat);
    holds(in(tank->ammo, 0, AMMO), "ammo is %d", tank->ammo);
    holds(in(tank->mines, 0, MINES) && in(tank->smokes, 0, SMOKES), "mines or smokes");
    holds(in(game->tick, 0, GAME_TICKS - 1), "tick is %d", game->tick);
}

START_TEST(states_stay_sound) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        play(seed, CHANCE, CHANCE, check_state, NULL);
        play(seed, EXPERT, BEST, check_state, NULL);
    }
}
END_TEST

/* A player that does the same as the other, mirrored in the centre, sees the same. Nothing is
 * fired, since shells have their own chance. */
START_TEST(neither_seat_is_better) {
    const int directions[] = {SENSE_x, SENSE_y, SENSE_heading_x, SENSE_heading_y};
    for (uint64_t seed = 0; seed < 20; seed++) {
        game_state game;
        fixed_random random = fixed_random_start(seed, 9);
        game_start(&game, seed);
        while (!game_over(&game)) {
            seat_turn turns[2];
            perceive(&game, 0, &turns[0]);
            perceive(&game, 1, &turns[1]);
            for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
                turns[1].senses[directions[i]] *= -1;
            for (int i = 0; i < SENSES_COUNT; i++)
                holds(turns[0].senses[i] == turns[1].senses[i], "seed %d, tick %d: %s is %g and %g",
                      (int)seed, game.tick, senses_schema()->sense_names[i], turns[0].senses[i],
                      turns[1].senses[i]);
            ck_assert_mem_eq(turns[0].legal, turns[1].legal, sizeof turns[0].legal);
            choose(CHANCE, &turns[0], &random);
            turns[0].actions[HEAD_GUN] = GUN_HOLD;
            game_step(&game, turns[0].actions, turns[0].actions);
        }
        ck_assert_int_eq(game_winner(&game), -1);
    }
}
END_TEST

START_TEST(the_healthier_wins_then_the_later_hit) {
    game_state game;
    game_start(&game, 1);
    ck_assert(!game_over(&game));
    ck_assert_int_eq(game_winner(&game), -1);
    game.first_hit[0] = 20;
    ck_assert_int_eq(game_winner(&game), 1);
    game.first_hit[1] = 10;
    ck_assert_int_eq(game_winner(&game), 0);
    game.tank[0].health = 999;
    ck_assert_int_eq(game_winner(&game), 1);
    game.tank[1].health = 0;
    ck_assert(game_over(&game));
    ck_assert_int_eq(game_winner(&game), 0);
}
END_TEST

/* A gun straight at a tank that stands still. */
static game_state range(int32_t distance) {
    game_state game;
    game_start(&game, 1);
    memset(game.rock, 0, sizeof game.rock);
    for (int seat = 0; seat < 2; seat++) {
        game_tank *tank = &game.tank[seat];
        tank->x = GAME_SIDE / 2 + (seat == 0 ? 0 : distance);
        tank->y = GAME_SIDE / 2;
        tank->heading = tank->turret = seat == 0 ? 0 : FIXED_TURN / 2;
    }
    return game;
}

static const uint16_t idle[GAME_HEADS] = {
    [HEAD_DRIVE] = 4, [HEAD_TURRET] = TURRETS / 2, [HEAD_GEAR] = GEAR_MID, [HEAD_GUARD] = 2};

static int32_t harm_of(game_state game, const uint16_t *shooter, const uint16_t *target) {
    uint16_t held[GAME_HEADS];
    memcpy(held, shooter, sizeof held);
    for (int tick = 0; tick < 10; tick++) {
        game_step(&game, held, target);
        held[HEAD_GUN] = GUN_HOLD;
    }
    return GAME_FULL - game.tank[1].health;
}

START_TEST(guards_and_shields_save) {
    uint16_t shell[GAME_HEADS], burst[GAME_HEADS], guarded[GAME_HEADS], shielded[GAME_HEADS];
    memcpy(shell, idle, sizeof shell);
    memcpy(burst, idle, sizeof burst);
    memcpy(guarded, idle, sizeof guarded);
    memcpy(shielded, idle, sizeof shielded);
    shell[HEAD_GUN] = GUN_SHELL;
    burst[HEAD_GUN] = GUN_BURST;
    guarded[HEAD_GUARD] = 0;
    shielded[HEAD_SHIELD] = SHIELD_HALF;
    ck_assert_int_eq(harm_of(range(8000), shell, idle), 240);
    ck_assert_int_eq(harm_of(range(8000), shell, guarded), 120);
    ck_assert_int_eq(harm_of(range(8000), shell, shielded), 120);
    ck_assert_int_eq(harm_of(range(8000), burst, idle), 45);
    ck_assert_int_eq(harm_of(range(BURST_RANGE + 1), burst, idle), 0);
    game_state blocked = range(8000);
    blocked.rock[0] = (game_rock){GAME_SIDE / 2 + 4000, GAME_SIDE / 2, 1000};
    ck_assert_int_eq(harm_of(blocked, shell, idle), 0);
    ck_assert_int_eq(harm_of(blocked, burst, idle), 0);
    game_state aside = range(8000);
    aside.tank[0].turret = FIXED_TURN / 8;
    ck_assert_int_eq(harm_of(aside, shell, idle), 0);
}
END_TEST

/* ------------------------------------------------------- senses and masks */

typedef struct duel_survey {
    uint64_t turns;
    float least[SENSES_COUNT], most[SENSES_COUNT];
    uint64_t illegal[GAME_ACTIONS], forced[GAME_HEADS];
    tally_sums tally;
    uint64_t hits[GAME_HEADS];   /* of the likeliest action */
    double variance[GAME_HEADS]; /* of the hits */
    double surprise[GAME_HEADS]; /* -log p of the chosen action, summed */
    double surprise2[GAME_HEADS];
} duel_survey;

static void check_senses(const seat_turn *turn) {
    for (int i = 0; i < SENSES_COUNT; i++) {
        const char *name = senses_schema()->sense_names[i];
        float sense = turn->senses[i], whole = sense * SENSE_ONE;
        holds(isfinite(sense) && fabsf(sense) <= 1, "%s is %g", name, sense);
        holds(whole == rintf(whole), "%s is %g, no whole number", name, sense);
    }
}

static void check_head(const seat_turn *turn, int head) {
    int first = game_first((game_head)head), actions = game_actions((game_head)head), some = 0;
    double sum = 0;
    for (int a = first; a < first + actions; a++) {
        some += turn->legal[a] != 0;
        holds((turn->weights[a] > 0) == (turn->legal[a] != 0), "%s, action %d", head_name(head),
              a - first);
        holds(turn->weights[a] <= EXPERT_WEIGHT, "%s, action %d weighs too much", head_name(head),
              a - first);
        sum += turn->weights[a];
    }
    holds(some > 0, "%s has no legal action", head_name(head));
    holds(sum == (double)expert_total(turn->weights, (game_head)head), "%s: not the sum",
          head_name(head));
}

static void survey_head(duel_survey *survey, const seat_turn *turn, int head,
                        const uint16_t *best) {
    int first = game_first((game_head)head), actions = game_actions((game_head)head), some = 0;
    double total = (double)expert_total(turn->weights, (game_head)head);
    for (int a = first; a < first + actions; a++) {
        survey->illegal[a] += turn->legal[a] == 0;
        some += turn->legal[a] != 0;
    }
    survey->forced[head] += some == 1;
    double likeliest = turn->weights[first + best[head]] / total;
    double surprise = -log(turn->weights[first + turn->actions[head]] / total);
    survey->hits[head] += turn->actions[head] == best[head];
    survey->variance[head] += likeliest * (1 - likeliest);
    survey->surprise[head] += surprise;
    survey->surprise2[head] += surprise * surprise;
}

static void survey_turn(const game_state *game, int seat, const seat_turn *turn, void *user) {
    (void)game;
    (void)seat;
    duel_survey *survey = user;
    uint16_t best[GAME_HEADS];
    check_senses(turn);
    expert_best(turn->weights, best);
    for (int i = 0; i < SENSES_COUNT; i++) {
        survey->least[i] = fminf(survey->least[i], turn->senses[i]);
        survey->most[i] = fmaxf(survey->most[i], turn->senses[i]);
    }
    for (int head = 0; head < GAME_HEADS; head++) {
        check_head(turn, head);
        survey_head(survey, turn, head, best);
    }
    tally_add(&survey->tally, turn->weights, turn->actions);
    survey->turns++;
}

static duel_survey survey_games(int games, seat_kind kind0, seat_kind kind1) {
    duel_survey survey = {0};
    for (int i = 0; i < SENSES_COUNT; i++) {
        survey.least[i] = 1;
        survey.most[i] = -1;
    }
    for (int seed = 0; seed < games; seed++)
        play((uint64_t)seed + 100, kind0, kind1, survey_turn, &survey);
    return survey;
}

START_TEST(senses_and_masks_are_sound_whoever_plays) {
    survey_games(40, CHANCE, EXPERT);
    survey_games(40, BEST, CHANCE);
}
END_TEST

START_TEST(every_sense_and_mask_tells_something) {
    duel_survey survey = survey_games(150, EXPERT, EXPERT);
    for (int i = 0; i < SENSES_COUNT; i++)
        ck_assert_msg(survey.most[i] - survey.least[i] > 0.5f, "%s is always %g to %g",
                      senses_schema()->sense_names[i], survey.least[i], survey.most[i]);
    for (int head = 0; head < GAME_HEADS; head++) {
        uint64_t most = 0;
        for (int a = 0; a < game_actions((game_head)head); a++) {
            uint64_t illegal = survey.illegal[game_first((game_head)head) + a];
            most = illegal > most ? illegal : most;
            ck_assert_msg(illegal < survey.turns, "%s: action %d is never legal", head_name(head),
                          a);
            ck_assert_msg(survey.tally.chosen[game_first((game_head)head) + a] > 0,
                          "%s: action %d is never chosen", head_name(head), a);
        }
        ck_assert_msg(most > survey.turns / 20, "the mask of %s hardly forbids anything",
                      head_name(head));
        ck_assert_msg(survey.forced[head] < survey.turns / 4, "%s has often no choice",
                      head_name(head));
    }
}
END_TEST

/* ------------------------------------------------------------------ expert */

START_TEST(choices_are_as_frequent_as_their_weights_say) {
    enum { DRAWS = 20000 };
    game_state game;
    fixed_random random = fixed_random_start(5, 5);
    game_start(&game, 7);
    for (int round = 0; round < 8; round++) {
        seat_turn turns[2];
        uint64_t counts[GAME_ACTIONS] = {0};
        perceive(&game, 0, &turns[0]);
        perceive(&game, 1, &turns[1]);
        for (int i = 0; i < DRAWS; i++) {
            expert_draw(turns[0].weights, &random, turns[0].actions);
            for (int head = 0; head < GAME_HEADS; head++)
                counts[game_first((game_head)head) + turns[0].actions[head]]++;
        }
        for (int head = 0, a = 0; head < GAME_HEADS; head++) {
            double total = (double)expert_total(turns[0].weights, (game_head)head);
            for (int end = a + game_actions((game_head)head); a < end; a++) {
                double p = turns[0].weights[a] / total, expected = DRAWS * p;
                double tolerance = 4.5 * sqrt(expected * (1 - p)) + 1;
                ck_assert_msg(fabs((double)counts[a] - expected) <= tolerance,
                              "%s: action %d chosen %d times, not about %.0f", head_name(head),
                              a - game_first((game_head)head), (int)counts[a], expected);
            }
        }
        expert_draw(turns[1].weights, &random, turns[1].actions);
        for (int tick = 0; tick < 12 && !game_over(&game); tick++) {
            game_step(&game, turns[0].actions, turns[1].actions);
            for (int seat = 0; seat < 2; seat++) {
                perceive(&game, seat, &turns[seat]);
                expert_draw(turns[seat].weights, &random, turns[seat].actions);
            }
        }
    }
}
END_TEST

START_TEST(the_ceiling_is_what_the_likeliest_choice_reaches) {
    duel_survey survey = survey_games(400, EXPERT, EXPERT);
    double n = (double)survey.turns;
    ck_assert_uint_eq(survey.tally.samples, survey.turns);
    for (int head = 0; head < GAME_HEADS; head++) {
        double ceiling = tally_ceiling(&survey.tally, (game_head)head);
        double error = sqrt(survey.variance[head]) / n;
        double measured = (double)survey.hits[head] / n;
        ck_assert_msg(fabs(measured - ceiling) < 4 * error, "%s: %.4f measured, %.4f expected",
                      head_name(head), measured, ceiling);
        double nll = survey.surprise[head] / n;
        double nll_error = sqrt((survey.surprise2[head] / n - nll * nll) / n);
        double entropy = tally_floor(&survey.tally, (game_head)head);
        ck_assert_msg(fabs(nll - entropy) < 4 * nll_error, "%s: NLL %.4f measured, %.4f expected",
                      head_name(head), nll, entropy);
        double majority = tally_majority(&survey.tally, (game_head)head);
        ck_assert_msg(ceiling > 0.6 && ceiling < 0.95, "%s: the ceiling is %.3f", head_name(head),
                      ceiling);
        ck_assert_msg(majority < 0.92 * ceiling, "%s: %.3f without looking, of %.3f",
                      head_name(head), majority, ceiling);
    }
}
END_TEST

START_TEST(an_empty_tally_is_zero) {
    tally_sums tally = {0};
    ck_assert(tally_ceiling(&tally, HEAD_GUN) == 0);
    ck_assert(tally_floor(&tally, HEAD_GUN) == 0);
    ck_assert(tally_majority(&tally, HEAD_GUN) == 0);
}
END_TEST

static int wins_of_first(int games, seat_kind kind0, seat_kind kind1) {
    int wins = 0;
    for (int i = 0; i < games; i++) {
        game_state game = i % 2 == 0 ? play((uint64_t)i, kind0, kind1, NULL, NULL)
                                     : play((uint64_t)i, kind1, kind0, NULL, NULL);
        wins += game_winner(&game) == i % 2;
    }
    return wins;
}

START_TEST(the_expert_beats_chance_and_not_itself) {
    ck_assert_int_ge(wins_of_first(100, EXPERT, CHANCE), 98);
    ck_assert_int_ge(wins_of_first(100, BEST, CHANCE), 98);
    int itself = wins_of_first(300, EXPERT, EXPERT);
    ck_assert_msg(itself > 115 && itself < 185, "%d of 300", itself); /* 4 standard deviations */
    int best = wins_of_first(300, BEST, EXPERT);
    ck_assert_msg(best > 130, "its likeliest choices win %d of 300", best);
}
END_TEST

/* ----------------------------------------------------------------- program */

static char said[1 << 16]; /* what the latest run wrote to both outputs */

/* Run mimus-arena; its exit code. */
static int arena(const char *arguments) {
    char command[1024];
    snprintf(command, sizeof command, "2>&1 %s %s </dev/null", ARENA_PROGRAM, arguments);
    FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c): a program of this build
    ck_assert_ptr_nonnull(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    int status = pclose(pipe);
    ck_assert_msg(WIFEXITED(status), "mimus-arena %s crashed: %.500s", arguments, said);
    return WEXITSTATUS(status);
}

#define arena_ends(code, part, ...)                                                                \
    do {                                                                                           \
        char arguments_[768];                                                                      \
        snprintf(arguments_, sizeof arguments_, __VA_ARGS__);                                      \
        int code_ = arena(arguments_);                                                             \
        ck_assert_msg(code_ == (code), "mimus-arena %s: exit code %d: %.500s", arguments_, code_,  \
                      said);                                                                       \
        ck_assert_msg(strstr(said, (part)) != NULL, "mimus-arena %s: \"%.500s\" lacks \"%s\"",     \
                      arguments_, said, (part));                                                   \
    } while (0)

START_TEST(recordings_are_repeatable) {
    const char *const names[] = {"a.rec", "b.rec", "c.rec"};
    char *bytes[3];
    size_t sizes[3];
    for (int i = 0; i < 3; i++) {
        const char *path = test_folder_path(names[i]);
        arena_ends(0, "3000 samples", "record --samples 3000 --seed %d -o %s", i == 2 ? 8 : 7,
                   path);
        test_ok(mimus__file_read(path, 1 << 24, &bytes[i], &sizes[i]));
    }
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], sizes[0]);
    ck_assert(sizes[0] != sizes[2] || memcmp(bytes[0], bytes[2], sizes[0]) != 0);
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
    test_folder_remove();
}
END_TEST

/* What the metadata promises of a head, against what the recording holds. */
static void check_promises(const json_t *metadata, const mimus__recording *recording) {
    uint64_t counts[GAME_ACTIONS] = {0};
    uint64_t samples = mimus__recording_samples(recording);
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        for (size_t i = 0; i < (size_t)block.samples * GAME_HEADS; i++)
            counts[game_first((game_head)(i % GAME_HEADS)) + block.actions[i]]++;
    }
    for (int head = 0; head < GAME_HEADS; head++) {
        double most = 0, ceiling, entropy, majority;
        for (int a = 0; a < game_actions((game_head)head); a++)
            most = fmax(most, (double)counts[game_first((game_head)head) + a]);
        const char *name = head_name(head);
        test_ok(mimus__json_get_double(json_object_get(metadata, "ceiling"), name, "", &ceiling));
        test_ok(mimus__json_get_double(json_object_get(metadata, "nll_floor"), name, "", &entropy));
        test_ok(mimus__json_get_double(json_object_get(metadata, "majority"), name, "", &majority));
        ck_assert_double_eq_tol(majority, most / (double)samples, 1e-6);
        ck_assert(ceiling > 0.5 && ceiling < 1 && entropy > 0.1 && entropy < 1.5);
    }
}

START_TEST(a_recording_holds_whole_episodes_and_promises) {
    mimus__recording *recording = NULL;
    const char *path = test_folder_path("play.rec");
    arena_ends(0, "20000 samples", "record --samples 20000 --seed 3 --output=%s", path);
    test_ok(test_recording_open(&recording, path));
    test_ok(mimus__schema_match(mimus__recording_schema(recording), "file", senses_schema(),
                                "arena", true));
    ck_assert_uint_eq(mimus__recording_samples(recording), 20000);
    uint64_t episodes = mimus__recording_episodes(recording);
    ck_assert(episodes > 20000 / GAME_TICKS && episodes < 20000 / 30);
    ck_assert_uint_eq(json_array_size(mimus__recording_losses(recording)), 0);
    const json_t *metadata = json_array_get(mimus__recording_metadata(recording), 0);
    ck_assert_str_eq(json_string_value(json_object_get(metadata, "game")), "mimus-arena");
    ck_assert_int_eq(json_integer_value(json_object_get(metadata, "seed")), 3);
    check_promises(metadata, recording);
    mimus__recording_free(recording);
    arena_ends(1, "already", "record -o %s", path);
    test_folder_remove();
}
END_TEST

/* A checkpoint of a network without hidden layers and without weights: every legal action is
 * equally likely. */
static void save_policy(const mimus_schema *schema, const char *path) {
    mimus__model *model = NULL;
    mimus__shape shape = {.senses = schema->senses,
                          .stack = 1,
                          .layers = 1,
                          .width = {schema->senses, mimus__schema_actions(schema)},
                          .activation = MIMUS__RELU};
    test_ok(mimus__model_new(&model, schema, &shape, false));
    test_ok(mimus__model_save(model, path));
    mimus__model_free(model);
}

START_TEST(a_policy_plays) {
    const char *path = test_folder_path("policy.safetensors");
    save_policy(senses_schema(), path);
    arena_ends(0, "{\"episodes\": 10,", "play --policy %s --episodes 10 --sample --json", path);
    json_t *json = NULL;
    double wins, losses, high, agreement;
    test_ok(mimus__json_parse(&json, said, strlen(said), "play"));
    const json_t *expert = json_object_get(json_object_get(json, "against"), "expert");
    test_ok(mimus__json_get_double(expert, "wins", "", &wins));
    test_ok(mimus__json_get_double(expert, "losses", "", &losses));
    test_ok(mimus__json_get_double(expert, "high", "", &high));
    ck_assert(wins == 0 && losses == 10);
    ck_assert_double_eq_tol(high, 0.277533, 1e-6); /* Wilson for 0 of 10: z^2 / (n + z^2) */
    test_ok(mimus__json_get_double(json_object_get(json, "agreement"), "turret", "", &agreement));
    ck_assert(agreement > 0.05 && agreement < 0.2);
    json_decref(json);
    arena_ends(0, "Agreement", "play -p %s --episodes 2 --seed 5", path);
    arena_ends(0, "policy", "watch -p %s --sample", path);
    test_folder_remove();
}
END_TEST

START_TEST(a_policy_of_another_game_is_refused_with_both_sides) {
    static const char *swapped[] = {"hold", "shell", "burst"};
    mimus_head heads[GAME_HEADS];
    const char *names[SENSES_COUNT];
    const char *path = test_folder_path("other.safetensors");
    memcpy(heads, senses_schema()->head, sizeof heads);
    memcpy(names, senses_schema()->sense_names, sizeof names);
    mimus_schema other = *senses_schema();
    other.head = heads;

    other.senses = 90;
    save_policy(&other, path);
    arena_ends(1, "90 senses, the arena has 143", "play -p %s", path);
    other.senses = SENSES_COUNT;
    other.sense_names = names;
    names[3] = "altitude";
    save_policy(&other, path);
    arena_ends(1, "\"altitude\" as sense 3, the arena has \"heading_x\"", "watch -p %s", path);
    names[3] = "heading_x";
    other.heads = 6;
    save_policy(&other, path);
    arena_ends(1, "6 heads, the arena 7", "play -p %s", path);
    other.heads = GAME_HEADS;
    heads[HEAD_GUN].action_names = swapped;
    save_policy(&other, path);
    arena_ends(1, "\"shell\" as action 1 of head \"gun\", the arena \"burst\"", "play -p %s", path);
    heads[HEAD_GUN] = (mimus_head){.name = "gun", .actions = 4};
    save_policy(&other, path);
    arena_ends(1, "\"gun\" with 4 actions, the arena \"gun\" with 3", "play -p %s", path);
    test_folder_remove();
}
END_TEST

START_TEST(without_names_sizes_decide) {
    mimus_head heads[GAME_HEADS];
    const char *path = test_folder_path("unnamed.safetensors");
    memcpy(heads, senses_schema()->head, sizeof heads);
    for (int head = 0; head < GAME_HEADS; head++)
        heads[head].action_names = NULL;
    mimus_schema unnamed = {.senses = SENSES_COUNT, .heads = GAME_HEADS, .head = heads};
    save_policy(&unnamed, path);
    arena_ends(0, "random", "play -p %s --episodes 1", path);
    test_folder_remove();
}
END_TEST

START_TEST(wrong_usage_is_explained) {
    arena_ends(0, "usage: mimus-arena VERB", "--help");
    arena_ends(0, "usage: mimus-arena record", "record --help");
    arena_ends(0, "--episodes N", "play -h");
    arena_ends(0, "usage: mimus-arena watch", "watch --help");
    arena_ends(2, "unknown verb \"dance\"", "dance");
    arena_ends(2, "unknown option --colour", "watch --colour");
    arena_ends(2, "what is \"here\"?", "watch here");
    arena_ends(2, "say where to: -o FILE", "record");
    arena_ends(2, "--output needs a value, FILE", "record -o");
    arena_ends(2, "--samples takes a whole number, not \"-3\"", "record --samples -3");
    arena_ends(2, "not \"99999999999999999999\"", "record --samples 99999999999999999999");
    arena_ends(2, "not \"9x\"", "record --seed=9x");
    arena_ends(2, "--samples takes at least 1", "record -o x --samples 0");
    arena_ends(2, "say which policy", "play");
    arena_ends(2, "--json takes no value", "play --json=yes");
    arena_ends(2, "--episodes takes at least 1", "play -p x --episodes 0");
    arena_ends(1, "no-such-run", "play -p no-such-run");
    arena_ends(1, "no-such-folder", "record -o no-such-folder/x.rec");
    arena_ends(1, "cannot write to standard output", "watch >/dev/full");
}
END_TEST

START_TEST(plain_frames_hold_no_control_characters) {
    arena_ends(0, "tick 0 of 256", "watch --seed 2");
    ck_assert_ptr_null(strchr(said, '\033'));
    for (const char *c = said; *c != 0; c++)
        holds(*c == '\n' || in(*c, ' ', 126), "character %d", *c);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("arena");
    TCase *tests = tcase_create("arena");
    tcase_add_test(tests, sines_and_angles_are_close);
    tcase_add_test(tests, roots_are_rounded_down);
    tcase_add_test(tests, chance_is_even);
    tcase_add_test(tests, a_thousand_steps_are_the_same_everywhere);
    tcase_add_test(tests, states_stay_sound);
    tcase_add_test(tests, neither_seat_is_better);
    tcase_add_test(tests, the_healthier_wins_then_the_later_hit);
    tcase_add_test(tests, guards_and_shields_save);
    tcase_add_test(tests, senses_and_masks_are_sound_whoever_plays);
    tcase_add_test(tests, every_sense_and_mask_tells_something);
    tcase_add_test(tests, choices_are_as_frequent_as_their_weights_say);
    tcase_add_test(tests, the_ceiling_is_what_the_likeliest_choice_reaches);
    tcase_add_test(tests, an_empty_tally_is_zero);
    tcase_add_test(tests, the_expert_beats_chance_and_not_itself);
    tcase_add_test(tests, recordings_are_repeatable);
    tcase_add_test(tests, a_recording_holds_whole_episodes_and_promises);
    tcase_add_test(tests, a_policy_plays);
    tcase_add_test(tests, a_policy_of_another_game_is_refused_with_both_sides);
    tcase_add_test(tests, without_names_sizes_decide);
    tcase_add_test(tests, wrong_usage_is_explained);
    tcase_add_test(tests, plain_frames_hold_no_control_characters);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
