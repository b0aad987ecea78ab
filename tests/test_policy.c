/* Policies: logits against the double-precision reference, what agents stack, choose and draw. */
#include "support.h"

#include "alloc.h"
#include "compare.h"
#include "file.h"
#include "policy.h"
#include "reference.h"
#include "rng.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 3, ACTIONS = 2 + 5 + 63 };
static const uint32_t actions_of[HEADS] = {2, 5, 63};
static const mimus_head heads[HEADS] = {{.actions = 2}, {.actions = 5}, {.actions = 63}};

static float noise(mimus__rng *rng, float size) {
    return size * (float)(2 * mimus__rng_uniform(rng) - 1);
}

/* A random network and the same one in the reference. */
typedef struct pair {
    mimus__model *model;
    mimus_policy *policy;
    mimus__reference_network reference;
} pair;

static pair new_pair(uint32_t senses, uint32_t stack, uint32_t layers, const uint32_t *hidden,
                     mimus__activation activation) {
    pair p = {0};
    const mimus_schema schema = {.senses = senses, .heads = HEADS, .head = heads};
    mimus__shape shape =
        mimus__reference_shape(senses, stack, layers, hidden, activation, HEADS, actions_of);
    mimus__rng rng = {.seed = 11, .stream = senses};
    test_ok(mimus__model_new(&p.model, &schema, &shape, false));
    for (uint32_t s = 0; s < senses; s++) {
        p.model->mean[s] = noise(&rng, 3);
        p.model->scale[s] = s % 5 == 4 ? 0 : 1 + noise(&rng, 0.5f);
    }
    mimus__model_initialise(&shape, p.model->parameters, 5, 0);
    for (uint32_t l = 0; l < shape.layers; l++) {
        float *bias = p.model->parameters + mimus__shape_bias_offset(&shape, l);
        for (uint32_t o = 0; o < shape.width[l + 1]; o++)
            bias[o] = noise(&rng, 1);
    }
    test_ok(mimus__policy_new(&p.policy, p.model));
    test_ok(mimus__reference_init(&p.reference, &shape, HEADS, actions_of, 1000));
    mimus__reference_set_normalisation(&p.reference, p.model->mean, p.model->scale);
    mimus__reference_set_parameters(&p.reference, p.model->parameters);
    return p;
}

static void drop(pair *p) {
    mimus_policy_free(p->policy);
    mimus__model_free(p->model);
    mimus__reference_clear(&p->reference);
}

static float *random_senses(size_t count, uint64_t seed) {
    float *senses;
    mimus__rng rng = {.seed = seed};
    test_ok(mimus__alloc(&senses, count, sizeof *senses));
    for (size_t i = 0; i < count; i++)
        senses[i] = noise(&rng, 4);
    return senses;
}

/* -------------------------------------------------------------------- logits */

static void check_logits(uint32_t senses, uint32_t stack, uint32_t layers, const uint32_t *hidden,
                         mimus__activation activation, uint32_t rows) {
    pair p = new_pair(senses, stack, layers, hidden, activation);
    size_t inputs = (size_t)senses * stack;
    float *x = random_senses(rows * inputs, 3), *logits;
    double *wanted;
    char what[96];
    const size_t used = (size_t)rows * ACTIONS * sizeof(float), total = used + 64;
    test_ok(mimus__alloc(&logits, total, 1));
    test_ok(mimus__alloc(&wanted, (size_t)rows * ACTIONS, sizeof *wanted));
    canary_fill(logits, used, total);
    test_ok(mimus__policy_logits(p.policy, rows, x, logits));
    mimus__reference_forward(&p.reference, &(mimus__reference_batch){.rows = rows, .senses = x},
                             false, wanted);
    snprintf(what, sizeof what, "%u senses, stack %u, %u hidden layers, %s", senses, stack, layers,
             mimus__activation_name(activation));
    compare_check_floats(what, logits, wanted, rows, ACTIONS, (compare_tolerance){2e-6, 2e-6});
    canary_check(what, logits, used, total);
    for (uint32_t i = 0; i < rows; i++) { /* a row does not depend on its company */
        float alone[ACTIONS];
        test_ok(mimus__policy_logits(p.policy, 1, x + i * inputs, alone));
        compare_check_bytes(what, alone, logits + (size_t)i * ACTIONS, sizeof alone);
    }
    free(wanted);
    free(logits);
    free(x);
    drop(&p);
}

START_TEST(logits_are_the_references) {
    const uint32_t sizes[] = {1, 63, 64, 65};
    for (int a = MIMUS__RELU; a <= MIMUS__GELU; a++) {
        for (int i = 0; i < 4; i++) {
            const uint32_t hidden[] = {sizes[i], sizes[3 - i], sizes[(i + 2) % 4]};
            for (uint32_t layers = 0; layers <= 3; layers++) {
                check_logits(sizes[(i + 1) % 4], 1, layers, hidden, (mimus__activation)a, 3);
                check_logits(sizes[(i + 1) % 4], 3, layers, hidden, (mimus__activation)a, 2);
            }
        }
        check_logits(143, 1, 2, (const uint32_t[]){128, 128}, (mimus__activation)a, 65);
    }
    check_logits(7, 1, 1, (const uint32_t[]){8}, MIMUS__RELU, 0);
}
END_TEST

/* -------------------------------------------------------------------- agents */

/* The masked softmax of each head, as mimus.h says. */
static void wanted_probabilities(const double *logits, const uint8_t *legal, double *out) {
    for (size_t h = 0, first = 0; h < HEADS; first += actions_of[h++]) {
        long double sum = 0;
        for (size_t a = first; a < first + actions_of[h]; a++)
            sum += legal == NULL || legal[a] ? expl(logits[a]) : 0;
        for (size_t a = first; a < first + actions_of[h]; a++)
            out[a] = legal == NULL || legal[a] ? (double)(expl(logits[a]) / sum) : 0;
    }
}

static void random_mask(mimus__rng *rng, uint8_t *legal) {
    for (size_t a = 0; a < ACTIONS; a++)
        legal[a] = mimus__rng_below(rng, 3) == 0 ? 0 : (uint8_t)(1 + a);
    legal[1] = legal[2] = legal[ACTIONS - 1] = 1;
}

/* Two episodes: what the agent saw must be what mimus__reference_stack makes of the recording. */
static void check_episodes(uint32_t senses, uint32_t stack) {
    enum { ROWS = 12, SECOND = 5 };
    pair p = new_pair(senses, stack, 1, (const uint32_t[]){65}, MIMUS__TANH);
    mimus_agent *agent, *actor;
    mimus__rng rng = {.seed = 2};
    float *recording = random_senses((size_t)ROWS * senses, 4), *stacked;
    test_ok(mimus__alloc(&stacked, (size_t)stack * senses, sizeof *stacked));
    test_ok(mimus_agent_new(&agent, p.policy, 0));
    test_ok(mimus_agent_new(&actor, p.policy, 0));
    for (uint32_t row = 0; row < ROWS; row++) {
        double logits[ACTIONS], wanted[ACTIONS];
        float got[ACTIONS];
        uint8_t mask[ACTIONS], *legal = row % 3 == 0 ? NULL : mask;
        uint16_t chosen[HEADS];
        random_mask(&rng, mask);
        if (row == SECOND) {
            mimus_agent_reset(agent);
            mimus_agent_reset(actor);
        }
        mimus__reference_stack(stacked, recording, senses, stack, row < SECOND ? 0 : SECOND, row);
        mimus__reference_forward(
            &p.reference, &(mimus__reference_batch){.rows = 1, .senses = stacked}, false, logits);
        wanted_probabilities(logits, legal, wanted);
        test_ok(mimus_agent_probabilities(agent, recording + row * senses, legal, got));
        compare_check_floats("probabilities", got, wanted, 1, ACTIONS,
                             (compare_tolerance){1e-4, 1e-7});
        test_ok(mimus_agent_act(actor, recording + row * senses, legal, chosen));
        for (size_t h = 0, first = 0; h < HEADS; first += actions_of[h++]) {
            for (size_t a = 0; a < actions_of[h]; a++)
                ck_assert(got[first + a] <= got[first + chosen[h]]);
        }
    }
    mimus_agent_free(actor);
    mimus_agent_free(agent);
    free(stacked);
    free(recording);
    drop(&p);
}

START_TEST(agents_stack_from_the_episodes_start) {
    const uint32_t sizes[] = {1, 63, 64, 65};
    for (int i = 0; i < 4; i++) {
        check_episodes(sizes[i], 1);
        check_episodes(sizes[i], 3);
        check_episodes(sizes[i], 8);
    }
}
END_TEST

/* A policy with one sense whose logits are what the test says: weights 0, biases the logits. */
static mimus_policy *constant_policy(const float *logits) {
    const mimus_schema schema = {.senses = 1, .heads = HEADS, .head = heads};
    mimus__shape shape = mimus__reference_shape(1, 1, 0, NULL, MIMUS__RELU, HEADS, actions_of);
    mimus__model *model;
    mimus_policy *policy;
    test_ok(mimus__model_new(&model, &schema, &shape, false));
    memcpy(model->parameters + ACTIONS, logits, ACTIONS * sizeof *logits);
    test_ok(mimus__policy_new(&policy, model));
    mimus__model_free(model);
    return policy;
}

START_TEST(masks_and_ties_are_kept) {
    float logits[ACTIONS] = {3, 3, /**/ 0, 7, 7, 7, 1, /**/ -1e30f};
    uint8_t legal[ACTIONS];
    uint16_t chosen[HEADS];
    float probabilities[ACTIONS];
    mimus_policy *policy = constant_policy(logits);
    mimus_agent *agent;
    test_ok(mimus_agent_new(&agent, policy, 1));
    test_ok(mimus_agent_act(agent, &(float){0}, NULL, chosen));
    ck_assert(chosen[0] == 0 && chosen[1] == 1 && chosen[2] == 1);
    memset(legal, 255, sizeof legal);
    legal[0] = legal[2 + 1] = legal[2 + 2] = 0;
    test_ok(mimus_agent_act(agent, &(float){0}, legal, chosen));
    ck_assert(chosen[0] == 1 && chosen[1] == 3 && chosen[2] == 1);
    memset(legal + 7, 0, 63); /* the last head may do one thing, however improbable */
    legal[7] = 1;
    test_ok(mimus_agent_act(agent, &(float){0}, legal, chosen));
    ck_assert(chosen[2] == 0);
    test_ok(mimus_agent_sample(agent, &(float){0}, legal, chosen));
    ck_assert(chosen[2] == 0);
    test_ok(mimus_agent_probabilities(agent, &(float){0}, legal, probabilities));
    ck_assert(probabilities[7] == 1 && probabilities[8] == 0 && probabilities[0] == 0);
    legal[7] = 0;
    memset(legal, 0, 2);
    test_ok(mimus_agent_act(agent, &(float){0}, legal, chosen));
    ck_assert(chosen[0] == MIMUS_NO_LABEL && chosen[1] == 3 && chosen[2] == MIMUS_NO_LABEL);
    test_ok(mimus_agent_sample(agent, &(float){0}, legal, chosen));
    ck_assert(chosen[0] == MIMUS_NO_LABEL && chosen[2] == MIMUS_NO_LABEL);
    test_ok(mimus_agent_probabilities(agent, &(float){0}, legal, probabilities));
    for (size_t a = 0; a < ACTIONS; a++)
        ck_assert(a >= 2 && a < 7 ? isfinite(probabilities[a]) : probabilities[a] == 0);
    mimus_agent_free(agent);
    mimus_policy_free(policy);
}
END_TEST

/* The 1 - 1e-6 quantile of chi-squared: Wilson and Hilferty 1931. */
static double chi_bound(double freedom) {
    double c = 2 / (9 * freedom);
    return freedom * pow(1 - c + 4.7534 * sqrt(c), 3);
}

/* Pearson's chi-squared against the probabilities; the seed is fixed. */
START_TEST(draws_have_the_policys_probabilities) {
    enum { DRAWS = 40000 };
    float logits[ACTIONS], probabilities[ACTIONS];
    uint8_t legal[ACTIONS];
    unsigned seen[ACTIONS] = {0};
    uint16_t chosen[HEADS];
    mimus__rng rng = {.seed = 8};
    for (size_t a = 0; a < ACTIONS; a++)
        logits[a] = 800 + noise(&rng, 2); /* large: the softmax must not overflow */
    random_mask(&rng, legal);
    mimus_policy *policy = constant_policy(logits);
    mimus_agent *agent;
    test_ok(mimus_agent_new(&agent, policy, 42));
    test_ok(mimus_agent_probabilities(agent, &(float){0}, legal, probabilities));
    for (int i = 0; i < DRAWS; i++) {
        test_ok(mimus_agent_sample(agent, &(float){0}, legal, chosen));
        for (size_t h = 0, first = 0; h < HEADS; first += actions_of[h++])
            seen[first + chosen[h]]++;
    }
    for (size_t h = 0, first = 0; h < HEADS; first += actions_of[h++]) {
        double chi = 0, sum = 0, freedom = -1;
        for (size_t a = first; a < first + actions_of[h]; a++) {
            double expected = (double)DRAWS * (double)probabilities[a];
            sum += (double)probabilities[a];
            if (!legal[a]) {
                ck_assert(seen[a] == 0 && probabilities[a] == 0);
                continue;
            }
            chi += (seen[a] - expected) * (seen[a] - expected) / expected;
            freedom++;
        }
        ck_assert_msg(freedom == 0 || chi < chi_bound(freedom), "head %zu: chi squared %g", h, chi);
        ck_assert(fabs(sum - 1) < 1e-6);
    }
    mimus_agent_free(agent);
    mimus_policy_free(policy);
}
END_TEST

START_TEST(a_seed_repeats_its_draws) {
    float logits[ACTIONS] = {0};
    uint16_t first[100][HEADS], second[100][HEADS], other[100][HEADS];
    mimus_policy *policy = constant_policy(logits);
    uint16_t(*runs[])[HEADS] = {first, second, other};
    for (int r = 0; r < 3; r++) {
        mimus_agent *agent;
        test_ok(mimus_agent_new(&agent, policy, r == 2 ? 8 : UINT64_MAX));
        for (int i = 0; i < 100; i++)
            test_ok(mimus_agent_sample(agent, &(float){0}, NULL, runs[r][i]));
        mimus_agent_free(agent);
    }
    ck_assert_mem_eq(first, second, sizeof first);
    ck_assert_mem_ne(first, other, sizeof first);
    mimus_policy_free(policy);
}
END_TEST

START_TEST(bad_senses_are_refused_and_not_stacked) {
    pair p = new_pair(63, 3, 1, (const uint32_t[]){64}, MIMUS__RELU);
    mimus_agent *agent, *fresh;
    float *senses = random_senses(4 * 63, 1), got[ACTIONS], wanted[ACTIONS];
    uint16_t chosen[HEADS];
    const float bad[] = {NAN, INFINITY, -INFINITY};
    test_ok(mimus_agent_new(&agent, p.policy, 0));
    test_ok(mimus_agent_new(&fresh, p.policy, 0));
    for (int i = 0; i < 3; i++) {
        float *row = senses + (size_t)i * 63, kept = row[62];
        row[62] = bad[i];
        test_fails(mimus_agent_act(agent, row, NULL, chosen), MIMUS_ERR_DATA,
                   "sense 62 (unnamed) is");
        test_fails(mimus_agent_sample(agent, row, NULL, chosen), MIMUS_ERR_DATA, "sense 62");
        test_fails(mimus_agent_probabilities(agent, row, NULL, got), MIMUS_ERR_DATA, "sense 62");
        row[62] = kept;
        test_ok(mimus_agent_probabilities(agent, row, NULL, got));
        test_ok(mimus_agent_probabilities(fresh, row, NULL, wanted));
        ck_assert_mem_eq(got, wanted, sizeof got);
    }
    for (int i = 0; i < 63; i++)
        senses[i] = i % 2 == 0 ? 3e38f : -3e38f;
    test_fails(mimus_agent_act(agent, senses, NULL, chosen), MIMUS_ERR_DATA, "the logit of action");
    mimus_agent_free(fresh);
    mimus_agent_free(agent);
    mimus_agent_free(NULL);
    free(senses);
    drop(&p);
}
END_TEST

START_TEST(a_sense_is_named) {
    const char *const names[] = {"health", "ammo"};
    const mimus_schema schema = {.senses = 2, .sense_names = names, .heads = HEADS, .head = heads};
    mimus__shape shape = mimus__reference_shape(2, 1, 0, NULL, MIMUS__RELU, HEADS, actions_of);
    mimus__model *model;
    mimus_policy *policy;
    mimus_agent *agent;
    uint16_t chosen[HEADS];
    test_ok(mimus__model_new(&model, &schema, &shape, false));
    test_ok(mimus__policy_new(&policy, model));
    test_ok(mimus_agent_new(&agent, policy, 0));
    test_fails(mimus_agent_act(agent, (const float[]){0, NAN}, NULL, chosen), MIMUS_ERR_DATA,
               "sense 1 (ammo) is");
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    mimus__model_free(model);
}
END_TEST

/* --------------------------------------------------------------- several at once */

/* Agents that are asked together, in groups that fill no block of rows evenly, do what each would
 * by itself; so does a batch of what they have stacked. */
START_TEST(together_is_as_alone) {
    enum { SENSES = 33, STACK = 3, COUNT = 7, TICKS = 20 };
    pair p = new_pair(SENSES, STACK, 2, (const uint32_t[]){64, 17}, MIMUS__GELU);
    mimus_agent *alone[COUNT], *together[COUNT];
    mimus_batch *batch;
    float *recording = random_senses((size_t)TICKS * COUNT * SENSES, 12);
    float stacked[COUNT][STACK * SENSES];
    mimus__rng rng = {.seed = 4};
    test_ok(mimus_batch_new(&batch, p.policy, 1));
    ck_assert_uint_eq(mimus_policy_stack(p.policy), STACK);
    for (size_t i = 0; i < COUNT; i++) {
        test_ok(mimus_agent_new(&alone[i], p.policy, i));
        test_ok(mimus_agent_new(&together[i], p.policy, i));
    }
    for (size_t tick = 0; tick < TICKS; tick++) {
        const float *senses = recording + tick * COUNT * SENSES;
        const size_t count = 1 + tick % COUNT;
        const bool best = tick % 2 == 0;
        uint8_t legal[COUNT][ACTIONS];
        uint16_t wanted[COUNT][HEADS], got[COUNT][HEADS];
        float wanted_p[COUNT][ACTIONS], got_p[COUNT][ACTIONS];
        for (size_t i = 0; i < COUNT; i++)
            random_mask(&rng, legal[i]);
        const uint8_t *masks = tick % 4 == 0 ? NULL : legal[0];
        for (size_t i = 0; i < count; i++) {
            const uint8_t *own = masks != NULL ? legal[i] : NULL;
            test_ok(best ? mimus_agent_act(alone[i], senses + i * SENSES, own, wanted[i])
                         : mimus_agent_sample(alone[i], senses + i * SENSES, own, wanted[i]));
            bool begins = tick == i; /* agent i is first asked in tick i */
            for (size_t k = 0; k < STACK; k++) {
                if (k + 1 < STACK && !begins)
                    memmove(stacked[i] + k * SENSES, stacked[i] + (k + 1) * SENSES,
                            SENSES * sizeof(float));
                else
                    memcpy(stacked[i] + k * SENSES, senses + i * SENSES, SENSES * sizeof(float));
            }
        }
        test_ok(best ? mimus_agents_act(together, count, senses, masks, got[0])
                     : mimus_agents_sample(together, count, senses, masks, got[0]));
        ck_assert_mem_eq(got, wanted, count * sizeof *got);
        test_ok(mimus_batch_probabilities(batch, count, stacked[0], masks, got_p[0]));
        for (size_t i = 0; i < count; i++) {
            mimus_batch *one;
            test_ok(mimus_batch_new(&one, p.policy, 1));
            test_ok(mimus_batch_probabilities(one, 1, stacked[i], masks != NULL ? legal[i] : NULL,
                                              wanted_p[i]));
            mimus_batch_free(one);
        }
        ck_assert_mem_eq(got_p, wanted_p, count * sizeof *got_p);
        if (best) {
            test_ok(mimus_batch_act(batch, count, stacked[0], masks, got[0]));
            ck_assert_mem_eq(got, wanted, count * sizeof *got);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        mimus_agent_free(alone[i]);
        mimus_agent_free(together[i]);
    }
    mimus_batch_free(batch);
    mimus_batch_free(NULL);
    free(recording);
    drop(&p);
}
END_TEST

START_TEST(one_of_several_is_named) {
    enum { SENSES = 5, COUNT = 6 };
    pair p = new_pair(SENSES, 2, 1, (const uint32_t[]){64}, MIMUS__RELU);
    pair other = new_pair(SENSES, 2, 1, (const uint32_t[]){64}, MIMUS__RELU);
    mimus_agent *agents[COUNT], *foreign;
    mimus_batch *batch;
    float *senses = random_senses(2 * COUNT * SENSES, 1);
    uint16_t got[COUNT][HEADS], wanted[COUNT][HEADS];
    for (size_t i = 0; i < COUNT; i++)
        test_ok(mimus_agent_new(&agents[i], p.policy, 0));
    test_ok(mimus_agent_new(&foreign, other.policy, 0));
    test_ok(mimus_batch_new(&batch, p.policy, 0));
    test_ok(mimus_agents_act(agents, COUNT, senses, NULL, wanted[0]));
    for (size_t i = 0; i < COUNT; i++)
        mimus_agent_reset(agents[i]);
    float kept = senses[4 * SENSES + 2];
    senses[4 * SENSES + 2] = NAN;
    test_fails(mimus_agents_act(agents, COUNT, senses, NULL, got[0]), MIMUS_ERR_DATA,
               "agent 4: sense 2 (unnamed) is nan");
    test_fails(mimus_batch_act(batch, COUNT / 2, senses, NULL, got[0]), MIMUS_ERR_DATA,
               "row 2: sense 2 (unnamed) is nan");
    senses[4 * SENSES + 2] = kept; /* and nobody has stacked anything */
    test_ok(mimus_agents_act(agents, COUNT, senses, NULL, got[0]));
    ck_assert_mem_eq(got, wanted, sizeof got);
    for (int s = 0; s < SENSES; s++) /* an overflow: the others go on */
        senses[1 * SENSES + s] = s % 2 == 0 ? 3e38f : -3e38f;
    test_fails(mimus_agents_act(agents, COUNT, senses, NULL, got[0]), MIMUS_ERR_DATA,
               "agent 1: the logit of action");
    for (int h = 0; h < HEADS; h++)
        ck_assert_uint_eq(got[1][h], MIMUS_NO_LABEL);
    ck_assert_mem_eq(got[2], wanted[2], (COUNT - 2) * sizeof *got);
    mimus_agent *mixed[] = {agents[0], foreign}, *missing[] = {agents[0], NULL};
    test_fails(mimus_agents_act(mixed, 2, senses, NULL, got[0]), MIMUS_ERR_ARGUMENT,
               "agent 1 has another policy");
    test_fails(mimus_agents_sample(missing, 2, senses, NULL, got[0]), MIMUS_ERR_ARGUMENT,
               "agent 1: no agent");
    test_ok(mimus_agents_act(agents, 0, senses, NULL, got[0]));
    test_fails(mimus_batch_act(NULL, 1, senses, NULL, got[0]), MIMUS_ERR_ARGUMENT, "no batch");
    mimus_agent_free(foreign);
    for (size_t i = 0; i < COUNT; i++)
        mimus_agent_free(agents[i]);
    mimus_batch_free(batch);
    free(senses);
    drop(&other);
    drop(&p);
}
END_TEST

/* -------------------------------------------------------------------- memory */

/* The linker sends every request of this program here (tests/CMakeLists.txt). */
static _Atomic unsigned long requests; /* threads allocate too */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes) {
    requests++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    requests++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes) {
    requests++;
    return __real_realloc(memory, bytes);
}

START_TEST(a_decision_allocates_nothing) {
    enum { COUNT = 9 };
    pair p = new_pair(65, 3, 2, (const uint32_t[]){64, 63}, MIMUS__GELU);
    mimus_agent *agents[COUNT];
    mimus_batch *batch;
    float *senses = random_senses(COUNT * 3 * 65, 6), probabilities[COUNT * ACTIONS];
    uint8_t legal[COUNT * ACTIONS];
    uint16_t actions[COUNT * HEADS];
    memset(legal, 1, sizeof legal);
    unsigned long before = requests;
    for (size_t i = 0; i < COUNT; i++)
        test_ok(mimus_agent_new(&agents[i], p.policy, 0));
    ck_assert_uint_ge(requests, before + COUNT); /* they are seen */
    test_ok(mimus_batch_new(&batch, p.policy, 0));
    before = requests; /* check's own assertions allocate */
    const mimus_status status[] = {
        mimus_agent_act(agents[0], senses, legal, actions),
        mimus_agent_sample(agents[0], senses, legal, actions),
        mimus_agent_probabilities(agents[0], senses, legal, probabilities),
        mimus_agents_act(agents, COUNT, senses, legal, actions),
        mimus_agents_sample(agents, COUNT, senses, legal, actions),
        mimus_batch_act(batch, COUNT, senses, legal, actions),
        mimus_batch_sample(batch, COUNT, senses, legal, actions),
        mimus_batch_probabilities(batch, COUNT, senses, legal, probabilities),
    };
    mimus_agent_reset(agents[0]);
    const unsigned long after = requests;
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        ck_assert_int_eq(status[i], MIMUS_OK);
    ck_assert_uint_eq(after, before);
    for (size_t i = 0; i < COUNT; i++)
        mimus_agent_free(agents[i]);
    mimus_batch_free(batch);
    free(senses);
    drop(&p);
}
END_TEST

/* ------------------------------------------------------------------- threads */

typedef struct player {
    const mimus_policy *policy;
    const float *recording; /* (PLAYED, 65) */
    uint16_t *chosen;       /* (PLAYED, 2, H) */
    mimus_status status;
} player;
enum { PLAYED = 400, PLAYERS = 4 };

static void *play(void *argument) {
    player *self = argument;
    mimus_agent *agent = NULL;
    mimus_status status = mimus_agent_new(&agent, self->policy, 9);
    for (size_t i = 0; status == MIMUS_OK && i < PLAYED; i++) {
        const float *senses = self->recording + i * 65;
        uint16_t *chosen = self->chosen + i * 2 * HEADS;
        if (i % 50 == 0)
            mimus_agent_reset(agent);
        status = mimus_agent_act(agent, senses, NULL, chosen);
        if (status == MIMUS_OK)
            status = mimus_agent_sample(agent, senses, NULL, chosen + HEADS);
    }
    mimus_agent_free(agent);
    self->status = status;
    return NULL;
}

START_TEST(threads_share_a_policy) {
    pair p = new_pair(65, 3, 2, (const uint32_t[]){64, 63}, MIMUS__GELU);
    float *recording = random_senses((size_t)PLAYED * 65, 6);
    static uint16_t chosen[1 + PLAYERS][PLAYED * 2 * HEADS];
    player players[1 + PLAYERS];
    pthread_t threads[PLAYERS];
    for (int i = 0; i <= PLAYERS; i++)
        players[i] = (player){p.policy, recording, chosen[i], MIMUS_ERR_MEMORY};
    play(&players[PLAYERS]);
    for (int i = 0; i < PLAYERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    for (int i = 0; i < PLAYERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i <= PLAYERS; i++) {
        ck_assert_int_eq(players[i].status, MIMUS_OK);
        ck_assert_mem_eq(chosen[i], chosen[PLAYERS], sizeof chosen[0]);
    }
    free(recording);
    drop(&p);
}
END_TEST

/* --------------------------------------------------------------------- files */

START_TEST(a_policy_is_loaded_from_run_or_file) {
    pair p = new_pair(5, 2, 1, (const uint32_t[]){64}, MIMUS__RELU);
    mimus_policy *loaded;
    float *x = random_senses(10, 1), wanted[ACTIONS], got[ACTIONS];
    test_ok(mimus__policy_logits(p.policy, 1, x, wanted));
    test_ok(mimus__model_save(p.model, test_folder_path("best.safetensors")));
    memset(p.model->parameters, 0, mimus__shape_parameters(&p.model->shape) * sizeof(float));
    test_ok(mimus__model_save(p.model, test_folder_path("last.safetensors")));
    const char *places[] = {test_folder(), test_folder_path("best.safetensors")};
    for (int i = 0; i < 2; i++) {
        test_ok(mimus_policy_load(&loaded, places[i]));
        test_ok(mimus__policy_logits(loaded, 1, x, got));
        ck_assert_mem_eq(got, wanted, sizeof got);
        ck_assert_uint_eq(mimus_policy_schema(loaded)->senses, 5);
        ck_assert_str_eq(mimus_policy_schema(loaded)->head[1].name, "head1");
        mimus_policy_free(loaded);
    }
    test_ok(mimus_policy_load(&loaded, test_folder_path("last.safetensors")));
    test_ok(mimus__policy_logits(loaded, 1, x, got));
    ck_assert(got[0] == 0);
    mimus_policy_free(loaded);
    test_ok(mimus__file_replace(test_folder_path("best.safetensors"), "not one", 7));
    test_fails(mimus_policy_load(&loaded, test_folder()), MIMUS_ERR_FORMAT,
               "best.safetensors: 7 bytes are too few");
    ck_assert_ptr_null(loaded);
    test_fails(mimus_policy_load(&loaded, "/none"), MIMUS_ERR_IO, "/none: no such run folder");
    mimus_policy_free(NULL);
    free(x);
    drop(&p);
    test_folder_remove();
}
END_TEST

START_TEST(an_agent_that_is_not_there_says_so) {
    mimus_agent *agent;
    const float sense = 0;
    uint16_t action;
    float probability;
    mimus_batch *batch;
    test_fails(mimus_batch_new(&batch, NULL, 0), MIMUS_ERR_ARGUMENT, "no policy");
    ck_assert_ptr_null(batch);
    test_fails(mimus_agent_new(&agent, NULL, 0), MIMUS_ERR_ARGUMENT, "no policy");
    ck_assert_ptr_null(agent);
    test_fails(mimus_agent_act(NULL, &sense, NULL, &action), MIMUS_ERR_ARGUMENT, "no agent");
    test_fails(mimus_agent_sample(NULL, &sense, NULL, &action), MIMUS_ERR_ARGUMENT, "no agent");
    test_fails(mimus_agent_probabilities(NULL, &sense, NULL, &probability), MIMUS_ERR_ARGUMENT,
               "no agent");
    mimus_agent_reset(NULL);
    mimus_agent_free(NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("policy");
    TCase *all = tcase_create("policy");
    tcase_add_test(all, an_agent_that_is_not_there_says_so);
    tcase_add_test(all, logits_are_the_references);
    tcase_add_test(all, agents_stack_from_the_episodes_start);
    tcase_add_test(all, masks_and_ties_are_kept);
    tcase_add_test(all, draws_have_the_policys_probabilities);
    tcase_add_test(all, a_seed_repeats_its_draws);
    tcase_add_test(all, bad_senses_are_refused_and_not_stacked);
    tcase_add_test(all, a_sense_is_named);
    tcase_add_test(all, together_is_as_alone);
    tcase_add_test(all, one_of_several_is_named);
    tcase_add_test(all, a_decision_allocates_nothing);
    tcase_add_test(all, threads_share_a_policy);
    tcase_add_test(all, a_policy_is_loaded_from_run_or_file);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
