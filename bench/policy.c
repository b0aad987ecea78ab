/* bench-policy [SECONDS]: what a decision takes on one core, of networks of random numbers: one
 * agent by itself, and many at once. The least of 99 measurements of SECONDS (default 0.01) each,
 * which are short so that some of them have the core for themselves. Made by `ninja bench-policy`.
 */
#include "policy.h"
#include "alloc.h"
#include "clock.h"
#include "rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 99, RECORDED = 64 };

static const mimus_head reference_heads[] = {{.actions = 9}, {.actions = 10}, {.actions = 3},
                                             {.actions = 5}, {.actions = 10}, {.actions = 3},
                                             {.actions = 7}};
enum { HEADS = 7, ACTIONS = 47, SENSES = 143 };

typedef struct subject {
    const char *name;
    uint32_t hidden[2];
    mimus__activation activation;
} subject;

static const subject subjects[] = {
    {"143-128-128-47 relu", {128, 128}, MIMUS__RELU},
    {"143-128-128-47 tanh", {128, 128}, MIMUS__TANH},
    {"143-128-128-47 gelu", {128, 128}, MIMUS__GELU},
    {"143-64-64-47 relu", {64, 64}, MIMUS__RELU},
    {"143-512-512-47 relu", {512, 512}, MIMUS__RELU},
};

/* Everything that is measured, and the samples that it is asked about. */
typedef struct rig {
    mimus_policy *policy;
    mimus_agent *agents[RECORDED];
    mimus_batch *batch;
    float senses[RECORDED * SENSES];
    uint8_t legal[RECORDED * ACTIONS];
    uint16_t actions[RECORDED * HEADS];
} rig;

static mimus_status make_policy(mimus_policy **out, const subject *s) {
    mimus_status status = MIMUS_OK;
    const mimus_schema schema = {
        .senses = SENSES, .heads = HEADS, .head = reference_heads, .masks = true};
    const mimus__shape shape = {.senses = SENSES,
                                .stack = 1,
                                .layers = 3,
                                .width = {SENSES, s->hidden[0], s->hidden[1], ACTIONS},
                                .activation = s->activation};
    mimus__model *model = NULL;
    MIMUS_TRY(mimus__model_new(&model, &schema, &shape, false));
    mimus__model_initialise(&shape, model->parameters, 1, 0);
    for (uint32_t i = 0; i < SENSES; i++)
        model->scale[i] = 1;
    MIMUS_TRY(mimus__policy_new(out, model));
out:
    mimus__model_free(model);
    return status;
}

static mimus_status rig_init(rig *out, const subject *s) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.seed = 1};
    *out = (rig){0};
    MIMUS_TRY(make_policy(&out->policy, s));
    MIMUS_TRY(mimus_batch_new(&out->batch, out->policy, 0));
    for (int i = 0; i < RECORDED; i++)
        MIMUS_TRY(mimus_agent_new(&out->agents[i], out->policy, 0));
    for (int i = 0; i < RECORDED * SENSES; i++)
        out->senses[i] = (float)(2 * mimus__rng_uniform(&rng) - 1);
    for (int i = 0; i < RECORDED * ACTIONS; i++)
        out->legal[i] = mimus__rng_below(&rng, 4) > 0;
out:
    return status;
}

static void rig_clear(rig *r) {
    for (int i = 0; i < RECORDED; i++)
        mimus_agent_free(r->agents[i]);
    mimus_batch_free(r->batch);
    mimus_policy_free(r->policy);
}

/* RECORDED decisions each. */
static mimus_status act(rig *r) {
    mimus_status status = MIMUS_OK;
    for (int i = 0; i < RECORDED; i++)
        MIMUS_TRY(mimus_agent_act(r->agents[0], r->senses + i * SENSES, r->legal + i * ACTIONS,
                                  r->actions));
out:
    return status;
}

static mimus_status sample(rig *r) {
    mimus_status status = MIMUS_OK;
    for (int i = 0; i < RECORDED; i++)
        MIMUS_TRY(mimus_agent_sample(r->agents[0], r->senses + i * SENSES, r->legal + i * ACTIONS,
                                     r->actions));
out:
    return status;
}

static mimus_status act_together(rig *r) {
    return mimus_agents_act(r->agents, RECORDED, r->senses, r->legal, r->actions);
}

static mimus_status act_in_batch(rig *r) {
    return mimus_batch_act(r->batch, RECORDED, r->senses, r->legal, r->actions);
}

/* Microseconds a decision: the least of several. */
static mimus_status measure(double *out, rig *r, double seconds, mimus_status (*work)(rig *r)) {
    mimus_status status = MIMUS_OK;
    *out = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double begun = mimus__clock_seconds(), passed;
        unsigned long done = 0;
        do {
            MIMUS_TRY(work(r));
            done += RECORDED;
            passed = mimus__clock_seconds() - begun;
        } while (passed < seconds);
        *out = 1e6 * passed / (double)done < *out ? 1e6 * passed / (double)done : *out;
    }
out:
    return status;
}

static mimus_status show(const subject *s, double seconds) {
    mimus_status (*const work[])(rig * r) = {act, sample, act_together, act_in_batch};
    mimus_status status = MIMUS_OK;
    rig *r = NULL;
    MIMUS_TRY(mimus__alloc(&r, 1, sizeof *r));
    MIMUS_TRY(rig_init(r, s));
    printf("%-22s", s->name);
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
        double microseconds;
        MIMUS_TRY(measure(&microseconds, r, seconds, work[i]));
        printf(" %11.2f", microseconds);
        fflush(stdout);
    }
    putchar('\n');
out:
    if (r != NULL)
        rig_clear(r);
    free(r);
    return status;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0.01;
    printf("%-22s %11s %11s %11s %11s\n", "us a decision", "act", "sample", "64 agents",
           "batch of 64");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (show(&subjects[i], seconds) != MIMUS_OK) {
            fprintf(stderr, "bench-policy: %s\n", mimus_last_error());
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
