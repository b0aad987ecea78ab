#include "samples.h"

#include "alloc.h"
#include "config.h"
#include "dataset.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SAMPLES = 10000,
    FEWEST_SAMPLES = 64,
    MOST_NUMBERS = 1 << 25, /* senses and masks together */
};
static const uint64_t MOST_PRODUCTS = UINT64_C(1) << 31; /* of all samples */

uint32_t mimus__samples_most(const mimus__shape *shape) {
    uint64_t numbers = (uint64_t)shape->width[0] + shape->width[shape->layers];
    uint64_t most = MOST_PRODUCTS / mimus__shape_parameters(shape);
    if (most > MOST_NUMBERS / numbers)
        most = MOST_NUMBERS / numbers;
    if (most > MOST_SAMPLES)
        return MOST_SAMPLES;
    return most < FEWEST_SAMPLES ? FEWEST_SAMPLES : (uint32_t)most;
}

static mimus_status samples_new(mimus__samples *out, const mimus__shape *shape, uint32_t count,
                                const char *which) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__samples){.count = count, .which = which};
    MIMUS_TRY(mimus__alloc(&out->senses, (size_t)count * shape->width[0], sizeof *out->senses));
    MIMUS_TRY(mimus__alloc(&out->legal, (size_t)count * shape->width[shape->layers], 1));
    memset(out->legal, 1, (size_t)count * shape->width[shape->layers]);
out:
    return status;
}

void mimus__samples_clear(mimus__samples *samples) {
    free(samples->senses);
    free(samples->legal);
    *samples = (mimus__samples){0};
}

/* ----------------------------------------------------------------- made up */

static void make_up_mask(const mimus_schema *schema, mimus__rng *rng, uint8_t *legal) {
    for (uint32_t h = 0; h < schema->heads; legal += schema->head[h++].actions) {
        for (uint32_t a = 0; a < schema->head[h].actions; a++)
            legal[a] = mimus__rng_below(rng, 4) > 0;
        legal[mimus__rng_below(rng, schema->head[h].actions)] = 1;
    }
}

mimus_status mimus__samples_make_up(mimus__samples *out, const mimus__model *model,
                                    uint32_t count) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    mimus__rng rng = {.stream = 1};
    MIMUS_TRY(samples_new(out, shape, count, "made up"));
    for (size_t i = 0; i < (size_t)count * shape->width[0]; i++) {
        uint32_t sense = (uint32_t)(i % shape->senses);
        float mean = model->mean[sense], scale = model->scale[sense];
        float deviations = (float)(6 * mimus__rng_uniform(&rng) - 3);
        float value = mean + deviations / (scale != 0 ? scale : 1);
        out->senses[i] = isfinite(value) ? value : mean;
    }
    /* the first is everything legal, as where there are no masks */
    for (size_t i = 1; model->schema->masks && i < count; i++)
        make_up_mask(model->schema, &rng, out->legal + i * shape->width[shape->layers]);
out:
    return status;
}

/* ---------------------------------------------------------------- recorded */

/* Rows of a recording, taken in order. */
typedef struct walk {
    const mimus__dataset *dataset;
    const mimus__shape *shape;
    size_t block_index;
    mimus__block block;
    float *stack; /* (K, S) the newest last */
} walk;

static mimus_status move_to(walk *w, uint64_t row) {
    mimus_status status = MIMUS_OK;
    while (w->block.samples == 0 || row >= w->block.first + w->block.samples)
        MIMUS_TRY(mimus__recording_block(w->dataset->recording, w->block_index++, &w->block));
out:
    return status;
}

/* As an agent stacks: the first sample of a stretch stands in for those before it. */
static void push(walk *w, const float *senses, bool start) {
    size_t frame = w->shape->senses, last = w->shape->stack - 1;
    if (!start)
        memmove(w->stack, w->stack + frame, last * frame * sizeof(float));
    for (size_t k = start ? 0 : last; k <= last; k++)
        memcpy(w->stack + k * frame, senses, frame * sizeof(float));
}

static mimus_status take_row(walk *w, uint64_t row, bool start, float *senses, uint8_t *legal) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(move_to(w, row));
    size_t i = (size_t)(row - w->block.first);
    push(w, w->block.senses + i * w->shape->senses, start);
    memcpy(senses, w->stack, w->shape->width[0] * sizeof(float));
    for (uint32_t a = 0; w->block.masks != NULL && a < w->shape->width[w->shape->layers]; a++)
        legal[a] = w->block.masks[i * w->block.mask_words + a / 32] >> (a % 32) & 1;
out:
    return status;
}

static mimus_status take_rows(mimus__samples *out, const mimus__dataset *dataset,
                              const mimus__rows *rows, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    walk w = {.dataset = dataset, .shape = shape};
    uint32_t done = 0;
    MIMUS_TRY(mimus__alloc(&w.stack, shape->width[0], sizeof *w.stack));
    for (size_t s = 0; s < rows->spans; s++) {
        const mimus__span *span = &rows->span[s];
        for (uint64_t i = 0; i < span->count && done < out->count; i++, done++)
            MIMUS_TRY(take_row(&w, span->first + i, i == 0 && (span->start || done == 0),
                               out->senses + (size_t)done * shape->width[0],
                               out->legal + (size_t)done * shape->width[shape->layers]));
    }
out:
    free(w.stack);
    return status;
}

static bool is_trained_on(const mimus__model *model, const mimus__recording *recording) {
    const char *known = json_string_value(json_object_get(model->facts, "recording"));
    return known != NULL && strcmp(known, mimus__recording_fingerprint(recording)) == 0;
}

/* Held out as the model's own settings say, or everything. */
static mimus_status choose_rows(mimus__dataset *dataset, const mimus__model *model,
                                const char **which) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    *which = "recorded";
    if (!is_trained_on(model, dataset->recording)) {
        MIMUS_TRY(mimus__rows_all(&dataset->split.heldout, dataset->recording, &dataset->audit));
        goto out;
    }
    *which = "held out";
    MIMUS_TRY(mimus_config_new(&config));
    MIMUS_TRY(mimus__config_from_json(config, model->config, "the model's settings"));
    MIMUS_TRY(mimus__dataset_parts(&dataset->split, dataset, config));
out:
    mimus_config_free(config);
    return status;
}

mimus_status mimus__samples_read(mimus__samples *out, const mimus__model *model, const char *where,
                                 const mimus_source *source, uint32_t count,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__dataset dataset = {0};
    const char *which;
    *out = (mimus__samples){0};
    MIMUS_TRY(mimus__dataset_open(&dataset, source, model->schema, watch));
    MIMUS_TRY(mimus__schema_match(model->schema, where, mimus__recording_schema(dataset.recording),
                                  source->paths[0], false));
    MIMUS_TRY(choose_rows(&dataset, model, &which));
    const mimus__rows *rows = &dataset.split.heldout;
    if (rows->samples == 0) {
        status = mimus__samples_make_up(out, model, count);
        goto out;
    }
    MIMUS_TRY(samples_new(out, &model->shape,
                          rows->samples < count ? (uint32_t)rows->samples : count, which));
    MIMUS_TRY(take_rows(out, &dataset, rows, &model->shape));
out:
    mimus__dataset_clear(&dataset);
    return status;
}
