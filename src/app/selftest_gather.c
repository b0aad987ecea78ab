/* Self-test: batches out of the resident recording. */
#include "selftest.h"

#include "alloc.h"
#include "gather.h"
#include "hyper.clh"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 2, STACK = 3, ROWS = 65, PADDED = 70, FIRST = 3, EPOCH = 4, SHARD_ROWS = 128 };

static const uint64_t seeds[RUNS] = {0x123456789Au, 7};

/* A gather on a store of its own, and what its batch is held against. */
typedef struct bench {
    const mimus__selftest_sample *sample;
    bool shuffled;
    mimus__store_form form;
    uint32_t width;      /* of x, padded */
    float *mean, *scale; /* (RUNS, S) */
    mimus__store store;
    mimus__buffer hyper, x;
    mimus__gather *gather;
    mimus__selftest_batch batch;
    float *got_x;                       /* (RUNS, PADDED, width) */
    double *want_x;                     /* the same */
    uint32_t *got_labels, *want_labels; /* (RUNS, PADDED, label words) */
} bench;

static mimus_status make_arrays(bench *b) {
    mimus_status status = MIMUS_OK;
    size_t senses = b->sample->schema->senses;
    size_t x = (size_t)RUNS * PADDED * b->width;
    size_t labels = (size_t)RUNS * PADDED * b->store.layout.label_words;
    mimus__rng rng = {.seed = 2};
    MIMUS_TRY(mimus__alloc(&b->mean, RUNS * senses, sizeof *b->mean));
    MIMUS_TRY(mimus__alloc(&b->scale, RUNS * senses, sizeof *b->scale));
    MIMUS_TRY(mimus__alloc(&b->got_x, x, sizeof *b->got_x));
    MIMUS_TRY(mimus__alloc(&b->want_x, x, sizeof *b->want_x));
    MIMUS_TRY(mimus__alloc(&b->got_labels, labels, sizeof *b->got_labels));
    MIMUS_TRY(mimus__alloc(&b->want_labels, labels, sizeof *b->want_labels));
    MIMUS_TRY(mimus__selftest_batch_init(&b->batch, b->sample, STACK, ROWS));
    for (uint32_t i = 0; i < RUNS * senses; i++) {
        b->mean[i] = mimus__selftest_random(&rng);
        b->scale[i] = 1.5f + mimus__selftest_random(&rng);
    }
out:
    return status;
}

static mimus_status make_gather(bench *b, mimus__device *device, uint64_t shard_bytes) {
    mimus_status status = MIMUS_OK;
    const mimus__selftest_sample *sample = b->sample;
    mimus__hyper hyper[RUNS];
    for (uint32_t r = 0; r < RUNS; r++)
        hyper[r] = (mimus__hyper){.order_low = (uint32_t)seeds[r],
                                  .order_high = (uint32_t)(seeds[r] >> 32)};
    const mimus__store_recipe recipe = {
        .form = b->form, .stack = STACK, .shard_bytes = shard_bytes};
    MIMUS_TRY(mimus__store_new(&b->store, device, sample->recording, &sample->audit, &sample->split,
                               &recipe, NULL));
    MIMUS_TRY(make_arrays(b));
    MIMUS_TRY(mimus__selftest_upload(&b->hyper, device, hyper, sizeof hyper));
    MIMUS_TRY(mimus__buffer_new(&b->x, device, (size_t)RUNS * PADDED * b->width * sizeof(float),
                                "the self-test"));
    mimus__matrix x = {.buffer = &b->x, .stride = (size_t)PADDED * b->width};
    MIMUS_TRY(mimus__gather_new(&b->gather, device, &b->store, NULL, &b->hyper, STACK, x, RUNS,
                                PADDED, b->width));
    for (uint32_t r = 0; r < RUNS; r++)
        MIMUS_TRY(mimus__gather_normalise(b->gather, r,
                                          b->mean + (size_t)r * sample->schema->senses,
                                          b->scale + (size_t)r * sample->schema->senses));
out:
    return status;
}

static void clear(bench *b) {
    mimus__gather_free(b->gather);
    mimus__buffer_free(&b->x);
    mimus__buffer_free(&b->hyper);
    mimus__store_free(&b->store);
    mimus__selftest_batch_clear(&b->batch);
    free(b->mean);
    free(b->scale);
    free(b->got_x);
    free(b->want_x);
    free(b->got_labels);
    free(b->want_labels);
}

static void expect_row(bench *b, uint32_t run, uint32_t i) {
    uint32_t senses = b->sample->schema->senses;
    const mimus__row_layout *layout = &b->store.layout;
    uint64_t row = b->shuffled ? mimus__reference_sampler_row(seeds[run], 0, EPOCH,
                                                              b->store.training, FIRST + i)
                               : b->store.training + FIRST + i;
    size_t at = (size_t)run * PADDED + i;
    mimus__selftest_batch_set(&b->batch, i, row);
    for (uint32_t s = 0; s < STACK * senses; s++) {
        uint32_t sense = run * senses + s % senses;
        double value = (double)b->batch.senses[(size_t)i * STACK * senses + s];
        b->want_x[at * b->width + s] = (value - (double)b->mean[sense]) * (double)b->scale[sense];
    }
    mimus__selftest_label_words(&b->batch, i, layout, b->want_labels + at * layout->label_words);
}

/* Rows behind the batch are zero, without a label. */
static void expect(bench *b) {
    const mimus__row_layout *layout = &b->store.layout;
    for (uint32_t r = 0; r < RUNS; r++) {
        for (uint32_t i = 0; i < ROWS; i++)
            expect_row(b, r, i);
        for (uint32_t i = ROWS; i < PADDED; i++)
            memset(b->want_labels + ((size_t)r * PADDED + i) * layout->label_words, 0xFF,
                   layout->action_words * sizeof *b->want_labels);
    }
}

static mimus_status compare(bench *b, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    const mimus__buffer *labels = &mimus__gather_batch(b->gather)->labels;
    MIMUS_TRY(mimus__buffer_read(&b->x, 0, b->got_x, b->x.bytes));
    MIMUS_TRY(mimus__buffer_read(labels, 0, b->got_labels, labels->bytes));
    mimus__verdict_array(verdict, "senses", b->got_x, b->want_x, b->x.bytes / sizeof(float));
    mimus__verdict_words(verdict, "labels", b->got_labels, b->want_labels,
                         labels->bytes / sizeof(uint32_t));
out:
    return status;
}

static mimus_status check(mimus__device *device, const mimus__selftest_sample *sample,
                          bool shuffled, mimus__store_form form, bool cut,
                          mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    mimus__row_layout layout = mimus__row_layout_of(sample->schema, STACK, form);
    uint64_t three_shards = (uint64_t)SHARD_ROWS * layout.words * sizeof(uint32_t);
    bench b = {.sample = sample,
               .shuffled = shuffled,
               .form = form,
               .width = mimus__round_up(STACK * sample->schema->senses, 16)};
    MIMUS_TRY(make_gather(&b, device, cut ? three_shards : 0));
    MIMUS_TRY(shuffled ? mimus__gather_shuffled(b.gather, EPOCH, FIRST, ROWS, PADDED)
                       : mimus__gather_in_order(b.gather, b.store.training, FIRST, ROWS, PADDED));
    expect(&b);
    MIMUS_TRY(compare(&b, verdict));
out:
    clear(&b);
    return status;
}

mimus_status mimus__selftest_gather(mimus__device *device, const mimus__selftest_sample *sample,
                                    int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    const mimus__store_form forms[] = {MIMUS__STORE_F32, MIMUS__STORE_F32, MIMUS__STORE_F16,
                                       MIMUS__STORE_BF16};
    MIMUS_TRY(check(device, sample, variant > 0, forms[variant], false, verdict));
    MIMUS_TRY(check(device, sample, variant > 0, forms[variant], true, verdict));
out:
    return status;
}
