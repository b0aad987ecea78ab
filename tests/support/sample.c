#include "sample.h"

#include "support.h"

#include "rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t pick_label(mimus__rng *rng, const sample_recipe *recipe, const float *senses,
                           uint32_t head) {
    uint32_t actions = recipe->actions[head];
    if (!recipe->learnable || mimus__rng_below(rng, 20) == 0)
        return (uint32_t)mimus__rng_below(rng, actions);
    float value = senses[head % recipe->senses] + 1.5f; /* senses lie in -1.5 .. 1.5 */
    uint32_t label = (uint32_t)(value / 3.0f * (float)actions);
    return label < actions ? label : actions - 1;
}

static void make_row(sample *s, mimus__rng *rng, uint64_t i) {
    const sample_recipe *recipe = &s->recipe;
    float *senses = s->senses + i * recipe->senses;
    uint32_t total = mimus__schema_actions(&s->schema), first = 0;
    for (uint32_t k = 0; k < recipe->senses; k++)
        senses[k] = 3.0f * (float)mimus__rng_uniform(rng) - 1.5f;
    for (uint32_t h = 0; h < recipe->heads; first += recipe->actions[h], h++) {
        uint32_t label = pick_label(rng, recipe, senses, h);
        for (uint32_t a = 0; recipe->masks && a < recipe->actions[h]; a++) {
            bool legal = a == label || mimus__rng_below(rng, 3) > 0;
            s->legal[i * total + first + a] = legal;
            if (legal)
                s->masks[i * mimus__schema_mask_words(&s->schema) + (first + a) / 32] |=
                    1u << (first + a) % 32;
        }
        s->actions[i * recipe->heads + h] =
            mimus__rng_below(rng, 15) == 0 ? (uint16_t)MIMUS_NO_LABEL : (uint16_t)label;
    }
    s->weights[i] = recipe->weights ? 0.5f + (float)mimus__rng_uniform(rng) : 1.0f;
}

void sample_new(sample *out, const sample_recipe *recipe, const char *name) {
    *out = (sample){.recipe = *recipe};
    for (uint32_t h = 0; h < recipe->heads; h++)
        out->head[h] = (mimus_head){.actions = recipe->actions[h]};
    out->schema = (mimus_schema){.senses = recipe->senses,
                                 .heads = recipe->heads,
                                 .head = out->head,
                                 .masks = recipe->masks,
                                 .weights = recipe->weights};
    uint64_t n = recipe->samples;
    uint32_t total = mimus__schema_actions(&out->schema);
    out->senses = calloc(n * recipe->senses, sizeof *out->senses);
    out->actions = calloc(n * recipe->heads, sizeof *out->actions);
    out->weights = calloc(n, sizeof *out->weights);
    out->first = calloc(n, sizeof *out->first);
    if (recipe->masks) {
        out->legal = calloc(n * total, sizeof *out->legal);
        out->masks = calloc(n * mimus__schema_mask_words(&out->schema), sizeof *out->masks);
    }
    snprintf(out->path, sizeof out->path, "%s", test_folder_path(name));
    mimus_recorder *recorder;
    remove(out->path);
    test_ok(mimus_recorder_open(&recorder, out->path, &out->schema, MIMUS_RECORDER_CREATE));
    mimus__rng rng = {.seed = recipe->seed, .stream = 77};
    uint64_t first = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (recipe->episode > 0 && i > first && mimus__rng_below(&rng, recipe->episode) == 0) {
            first = i;
            test_ok(mimus_recorder_end_episode(recorder));
        }
        out->first[i] = first;
        make_row(out, &rng, i);
        test_ok(mimus_recorder_append(
            recorder, out->senses + i * recipe->senses, out->actions + i * recipe->heads,
            recipe->masks ? out->legal + i * total : NULL, out->weights[i]));
    }
    test_ok(mimus_recorder_close(recorder));
}

void sample_clear(sample *s) {
    free(s->senses);
    free(s->actions);
    free(s->legal);
    free(s->masks);
    free(s->weights);
    free(s->first);
}

/* A single episode is split in blocks, across which nothing is stacked. */
static void note_stretches(sample *s, const mimus__rows *rows) {
    uint64_t first = 0;
    for (size_t i = 0; i < rows->spans; i++) {
        const mimus__span *span = &rows->span[i];
        first = span->start ? span->first : first;
        for (uint64_t row = span->first; row < span->first + span->count; row++)
            s->first[row] = first;
    }
}

void sample_open(sample *s, double heldout, mimus__dataset *out) {
    const char *paths[] = {s->path};
    mimus_source source = {.paths = paths, .count = 1};
    mimus_config *config;
    test_ok(mimus__dataset_open(out, &source, NULL, NULL));
    test_ok(mimus_config_new(&config));
    config->heldout = heldout;
    test_ok(mimus__dataset_split(out, config));
    note_stretches(s, &out->split.training);
    note_stretches(s, &out->split.heldout);
    mimus_config_free(config);
}
