#include "bench_work.h"

#include "alloc.h"
#include "rng.h"
#include "sink.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- the workloads */

/* All of the reference workload's samples: docs/performance.md. */
typedef struct named_workload {
    mimus_workload about;
    const char *hidden, *batch, *lr;
} named_workload;

static const named_workload workloads[] = {
    {{"reference", "143 senses, 7 heads; hidden 128,128, batch 4,096, lr 1e-3"},
     "128,128",
     "4096",
     "1e-3"},
    {{"reference-32k", "143 senses, 7 heads; hidden 128,128, batch 32,768, lr 1e-2"},
     "128,128",
     "32768",
     "1e-2"},
    {{"wide", "143 senses, 7 heads; hidden 512,512, batch 4,096, lr 1e-3"},
     "512,512",
     "4096",
     "1e-3"},
    {{"small", "143 senses, 7 heads; hidden 64,64, batch 4,096, lr 1e-3"}, "64,64", "4096", "1e-3"},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

bool mimus_bench_describe(size_t index, mimus_workload *out) {
    if (index >= WORKLOADS)
        return false;
    *out = workloads[index].about;
    return true;
}

static mimus_status find(const named_workload **out, const char *name) {
    char names[256] = "";
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (name == NULL || strcmp(workloads[i].about.name, name) == 0) {
            *out = &workloads[i];
            return MIMUS_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                 workloads[i].about.name);
    }
    return mimus__fail(MIMUS_ERR_ARGUMENT, "no workload \"%.80s\"; there are: %s", name, names);
}

/* `value` NULL: stays as it is. */
static mimus_status set(mimus_config *config, const char *name, const char *value) {
    return value != NULL ? mimus_config_set(config, name, value) : MIMUS_OK;
}

static mimus_status make_config(mimus__bench_work *work, const named_workload *workload,
                                const mimus_bench_options *options) {
    mimus_status status = MIMUS_OK;
    char batch[16], epochs[16];
    snprintf(batch, sizeof batch, "%u", options->batch);
    snprintf(epochs, sizeof epochs, "%u",
             options->epochs > 0 ? options->epochs : (uint32_t)MIMUS__BENCH_EPOCHS);
    if (options->epochs == 1)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "epochs: expected 2 or more, as the first one is "
                                               "not settled, found 1");
    MIMUS_TRY(mimus_config_new(&work->config));
    MIMUS_TRY(set(work->config, "hidden", workload->hidden));
    MIMUS_TRY(set(work->config, "batch", workload->batch));
    MIMUS_TRY(set(work->config, "lr", workload->lr));
    MIMUS_TRY(set(work->config, "hidden", options->hidden));
    MIMUS_TRY(set(work->config, "batch", options->batch > 0 ? batch : NULL));
    MIMUS_TRY(set(work->config, "plan", options->plan));
    MIMUS_TRY(set(work->config, "gemm", options->gemm));
    MIMUS_TRY(set(work->config, "store", options->store != NULL ? options->store : "f32"));
    MIMUS_TRY(set(work->config, "epochs", epochs));
    MIMUS_TRY(mimus__config_check(work->config));
    if (work->config->store == MIMUS__STORE_AUTO)
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "store: expected f32, f16 or bf16, as what is "
                                                 "measured has to be known, found \"auto\"");
    if (options->ablate && work->config->store != MIMUS__STORE_F32)
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "ablate: its slow stages build batches of senses "
                                                 "in 32 bits; leave out store");
out:
    return status;
}

mimus_status mimus__bench_work_large(mimus_config **out, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    const named_workload *workload = NULL;
    mimus_config *copy = NULL;
    MIMUS_TRY(find(&workload, "reference-32k"));
    MIMUS_TRY(mimus__config_copy(&copy, config));
    MIMUS_TRY(set(copy, "batch", workload->batch));
    MIMUS_TRY(set(copy, "lr", workload->lr));
    *out = copy;
    copy = NULL;
out:
    mimus_config_free(copy);
    return status;
}

/* ------------------------------------------------------------- made-up recordings */

/* Senses are noise. An action's score is the sum of TERMS senses, each with a sign, that are drawn
 * for the action once; the label is the legal action with the best score, or in one sample of
 * NOISE any legal action. So there is something to learn, and a ceiling below all. */
enum { SENSES = 143, HEADS = 7, ACTIONS = 47, TERMS = 8, NOISE = 10, EPISODE = 600, SEED = 143 };

static const uint32_t head_actions[HEADS] = {9, 10, 3, 5, 10, 3, 7};

typedef struct rule {
    uint16_t sense[ACTIONS][TERMS];
    float sign[ACTIONS][TERMS];
} rule;

static void draw_teacher(rule *teacher) {
    mimus__rng rng = {.seed = SEED, .stream = UINT64_MAX};
    for (uint32_t a = 0; a < ACTIONS; a++) {
        for (uint32_t t = 0; t < TERMS; t++) {
            teacher->sense[a][t] = (uint16_t)mimus__rng_below(&rng, SENSES);
            teacher->sign[a][t] = mimus__rng_below(&rng, 2) > 0 ? 1.0f : -1.0f;
        }
    }
}

/* Uniform in [-1, 1), eight numbers a block of random words. */
static void draw_senses(uint64_t sample, float *senses) {
    for (uint32_t s = 0; s < SENSES; s += 8) {
        mimus__philox counter = {{s, (uint32_t)sample, (uint32_t)(sample >> 32), 1}};
        mimus__philox words = mimus__philox4x32(counter, SEED, 0);
        for (uint32_t i = 0; i < 8 && s + i < SENSES; i++) {
            uint32_t half = words.word[i / 2] >> (i % 2 * 16) & 0xFFFFu;
            senses[s + i] = (float)half / 32768.0f - 1.0f;
        }
    }
}

/* Three actions of four, and one of the head whatever happens. */
static void draw_legal(mimus__rng *rng, uint8_t *legal) {
    for (uint32_t h = 0; h < HEADS; legal += head_actions[h++]) {
        uint32_t half = mimus__rng_u32(rng), bits = half | mimus__rng_u32(rng);
        for (uint32_t a = 0; a < head_actions[h]; a++)
            legal[a] = (uint8_t)(bits >> a & 1);
        legal[(bits >> 16) % head_actions[h]] = 1;
    }
}

static uint16_t best_action(const rule *teacher, uint32_t first, uint32_t actions,
                            const float *senses, const uint8_t *legal, bool noise,
                            mimus__rng *rng) {
    float best = -1e9f;
    uint32_t chosen = 0;
    for (uint32_t a = first; a < first + actions; a++) {
        float score = 0;
        if (noise)
            score = (float)(mimus__rng_u32(rng) >> 8);
        for (uint32_t t = 0; t < TERMS && !noise; t++)
            score += teacher->sign[a][t] * senses[teacher->sense[a][t]];
        if (legal[a] != 0 && score > best) {
            best = score;
            chosen = a - first;
        }
    }
    return (uint16_t)chosen;
}

static mimus_status append_sample(mimus__sink *sink, const rule *teacher, uint64_t sample) {
    float senses[SENSES];
    uint8_t legal[ACTIONS];
    uint16_t actions[HEADS];
    mimus__rng rng = {.seed = SEED, .stream = sample};
    draw_senses(sample, senses);
    draw_legal(&rng, legal);
    for (uint32_t h = 0, first = 0; h < HEADS; first += head_actions[h++])
        actions[h] = best_action(teacher, first, head_actions[h], senses, legal,
                                 mimus__rng_below(&rng, NOISE) == 0, &rng);
    return mimus__sink_append(sink, senses, actions, legal, 1);
}

static mimus_status make_up(mimus__recording **out, uint64_t samples, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus_head heads[HEADS];
    mimus__memory_sink sink;
    rule teacher;
    mimus__memory_sink_init(&sink);
    for (uint32_t h = 0; h < HEADS; h++)
        heads[h] = (mimus_head){.actions = head_actions[h]};
    const mimus_schema schema = {.senses = SENSES, .heads = HEADS, .head = heads, .masks = true};
    mimus__phase phase = mimus__phase_begin(watch, "load", samples);
    draw_teacher(&teacher);
    MIMUS_TRY(mimus__sink_begin(&sink.base.sink, &schema));
    for (uint64_t i = 0; i < samples; i++) {
        if (i % EPISODE == 0)
            MIMUS_TRY(mimus__sink_end_episode(&sink.base.sink));
        MIMUS_TRY(append_sample(&sink.base.sink, &teacher, i));
        if (i % EPISODE == EPISODE - 1 || i + 1 == samples)
            MIMUS_TRY(mimus__phase_step(&phase, i + 1));
    }
    MIMUS_TRY(mimus__recording_from_memory(out, &sink, "the made-up recording"));
out:
    mimus__memory_sink_clear(&sink);
    return status;
}

/* -------------------------------------------------------------------------- whole */

/* Two samples can be split; more than a recording on a device can have are not worth making. */
static mimus_status check_samples(uint64_t samples) {
    if (samples >= 2 && samples <= UINT32_MAX)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_ARGUMENT, "samples: expected 2 to %u, found %llu", UINT32_MAX,
                       (unsigned long long)samples);
}

mimus_status mimus__bench_work_new(mimus__bench_work *out, const mimus_bench_options *options,
                                   const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const named_workload *workload = NULL;
    mimus__dataset *dataset = &out->dataset;
    *out = (mimus__bench_work){0};
    MIMUS_TRY(find(&workload, options->workload));
    out->name = workload->about.name;
    MIMUS_TRY(make_config(out, workload, options));
    if (options->recording != NULL) {
        if (options->samples > 0) {
            status = mimus__fail(MIMUS_ERR_ARGUMENT,
                                 "samples: a recording that is given is measured whole");
            goto out;
        }
        MIMUS_TRY(mimus__dataset_open(dataset, options->recording, NULL, watch));
    } else {
        uint64_t samples = options->samples > 0 ? options->samples : MIMUS__BENCH_SAMPLES;
        MIMUS_TRY(check_samples(samples));
        MIMUS_TRY(make_up(&dataset->recording, samples, watch));
        MIMUS_TRY(
            mimus__audit_run(&dataset->audit, dataset->recording, MIMUS_ILLEGAL_ERROR, watch));
    }
    MIMUS_TRY(mimus__dataset_split(dataset, out->config));
out:
    return status;
}

void mimus__bench_work_clear(mimus__bench_work *work) {
    mimus__dataset_clear(&work->dataset);
    mimus_config_free(work->config);
    *work = (mimus__bench_work){0};
}
