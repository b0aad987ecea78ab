/* The self-test's recording: made up, in memory. */
#include "selftest.h"

#include "alloc.h"
#include "sink.h"

#include <stdlib.h>
#include <string.h>

enum { SENSES = 7, HEADS = 3, MASK_WORDS = 2, SAMPLES = 380, EPISODE = 20 };

static const mimus_head heads[HEADS] = {{.actions = 2}, {.actions = 33}, {.actions = 5}};

float mimus__selftest_random(mimus__rng *rng) {
    return (float)(2 * mimus__rng_uniform(rng) - 1);
}

mimus_status mimus__selftest_upload(mimus__buffer *out, mimus__device *device, const void *content,
                                    size_t bytes) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__buffer_new(out, device, bytes, "the self-test"));
    MIMUS_TRY(mimus__buffer_write(out, 0, content, bytes));
out:
    return status;
}

/* ---------------------------------------------------------------- recording */

static mimus_status add_row(mimus__memory_sink *sink, mimus__rng *rng) {
    float senses[SENSES];
    uint16_t actions[HEADS];
    uint32_t mask[MASK_WORDS] = {0};
    uint32_t first = 0;
    for (uint32_t s = 0; s < SENSES; s++)
        senses[s] = mimus__selftest_random(rng);
    for (uint32_t h = 0; h < HEADS; first += heads[h].actions, h++) {
        uint32_t label = (uint32_t)mimus__rng_below(rng, heads[h].actions);
        bool absent = mimus__rng_below(rng, 10) == 0;
        bool nothing_legal = absent && mimus__rng_below(rng, 2) == 0;
        for (uint32_t a = 0; a < heads[h].actions; a++) {
            bool legal = a == label || mimus__rng_below(rng, 3) > 0;
            if (legal && !nothing_legal)
                mask[(first + a) / 32] |= 1u << (first + a) % 32;
        }
        actions[h] = absent ? MIMUS_NO_LABEL : (uint16_t)label;
    }
    float weight = 1.0f + 0.5f * mimus__selftest_random(rng);
    return mimus__chunk_sink_append_packed(&sink->base, senses, actions, mask, weight);
}

static mimus_status record(mimus__recording **out) {
    const mimus_schema schema = {
        .senses = SENSES, .heads = HEADS, .head = heads, .masks = true, .weights = true};
    mimus_status status = MIMUS_OK;
    mimus__memory_sink sink;
    mimus__rng rng = {.seed = 1};
    mimus__memory_sink_init(&sink);
    MIMUS_TRY(mimus__sink_begin(&sink.base.sink, &schema));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        if (mimus__rng_below(&rng, EPISODE) == 0)
            MIMUS_TRY(mimus__sink_end_episode(&sink.base.sink));
        MIMUS_TRY(add_row(&sink, &rng));
    }
    MIMUS_TRY(mimus__memory_sink_recording(out, &sink));
out:
    mimus__memory_sink_clear(&sink);
    return status;
}

/* Where the rows of the store come from: the training part, then the held-out part. */
static void note_rows(mimus__selftest_sample *sample) {
    const mimus__rows *parts[] = {&sample->split.training, &sample->split.heldout};
    uint64_t at = 0, first = 0;
    for (int p = 0; p < 2; p++) {
        for (size_t i = 0; i < parts[p]->spans; i++) {
            const mimus__span *span = &parts[p]->span[i];
            first = span->start ? span->first : first;
            for (uint64_t k = 0; k < span->count; k++, at++) {
                sample->row[at] = span->first + k;
                sample->first[at] = first;
            }
        }
    }
}

mimus_status mimus__selftest_sample_new(mimus__selftest_sample *out) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__selftest_sample){0};
    MIMUS_TRY(record(&out->recording));
    out->schema = mimus__recording_schema(out->recording);
    MIMUS_TRY(mimus__recording_block(out->recording, 0, &out->block));
    MIMUS_TRY(mimus__audit_run(&out->audit, out->recording, MIMUS_ILLEGAL_ERROR, NULL));
    MIMUS_TRY(mimus__split_new(&out->split, out->recording, &out->audit, 0.25, 1));
    MIMUS_TRY(mimus__alloc(&out->row, SAMPLES, sizeof *out->row));
    MIMUS_TRY(mimus__alloc(&out->first, SAMPLES, sizeof *out->first));
    note_rows(out);
out:
    return status;
}

void mimus__selftest_sample_clear(mimus__selftest_sample *sample) {
    mimus__split_clear(&sample->split);
    mimus__audit_clear(&sample->audit);
    mimus__recording_free(sample->recording);
    free(sample->row);
    free(sample->first);
    *sample = (mimus__selftest_sample){0};
}

/* -------------------------------------------------------------------- batch */

mimus_status mimus__selftest_batch_init(mimus__selftest_batch *out,
                                        const mimus__selftest_sample *sample, uint32_t stack,
                                        uint32_t capacity) {
    mimus_status status = MIMUS_OK;
    size_t rows = capacity;
    *out = (mimus__selftest_batch){.sample = sample, .stack = stack};
    MIMUS_TRY(mimus__alloc(&out->senses, rows * SENSES * stack, sizeof *out->senses));
    MIMUS_TRY(mimus__alloc(&out->actions, rows * HEADS, sizeof *out->actions));
    MIMUS_TRY(mimus__alloc(&out->masks, rows * MASK_WORDS, sizeof *out->masks));
    MIMUS_TRY(mimus__alloc(&out->weights, rows, sizeof *out->weights));
    MIMUS_TRY(mimus__alloc(&out->ages, rows, sizeof *out->ages));
    out->reference = (mimus__reference_batch){.senses = out->senses,
                                              .actions = out->actions,
                                              .masks = out->masks,
                                              .weights = out->weights};
out:
    return status;
}

void mimus__selftest_batch_clear(mimus__selftest_batch *batch) {
    free(batch->senses);
    free(batch->actions);
    free(batch->masks);
    free(batch->weights);
    free(batch->ages);
    *batch = (mimus__selftest_batch){0};
}

void mimus__selftest_batch_set(mimus__selftest_batch *batch, uint32_t i, uint64_t store_row) {
    const mimus__block *block = &batch->sample->block;
    uint64_t row = batch->sample->row[store_row], first = batch->sample->first[store_row];
    mimus__reference_stack(batch->senses + (size_t)i * SENSES * batch->stack, block->senses, SENSES,
                           batch->stack, first, row);
    memcpy(batch->actions + (size_t)i * HEADS, block->actions + row * HEADS,
           HEADS * sizeof *batch->actions);
    memcpy(batch->masks + (size_t)i * MASK_WORDS, block->masks + row * MASK_WORDS,
           MASK_WORDS * sizeof *batch->masks);
    batch->weights[i] = block->weights[row];
    batch->ages[i] = (uint32_t)(row - first);
}

void mimus__selftest_label_words(const mimus__selftest_batch *batch, uint32_t i,
                                 const mimus__row_layout *layout, uint32_t *words) {
    const uint16_t *actions = batch->actions + (size_t)i * HEADS;
    for (uint32_t w = 0; w < layout->action_words; w++) {
        size_t low = (size_t)2 * w;
        uint32_t high = low + 1 < HEADS ? actions[low + 1] : MIMUS_NO_LABEL;
        words[w] = actions[low] | high << 16;
    }
    for (uint32_t w = 0; w < layout->mask_words; w++)
        words[layout->action_words + w] = batch->masks[(size_t)i * MASK_WORDS + w];
    if (layout->weight_word > 0)
        memcpy(words + layout->weight_word, &batch->weights[i], sizeof *words);
    if (layout->age_word > 0)
        words[layout->age_word] = batch->ages[i];
}
