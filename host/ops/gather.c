#include "gather.h"

#include "alloc.h"

#include <stdlib.h>

/* Rows that one CPU work-item gathers; a group of lanes shares each row on a GPU. */
enum { ROWS_CPU = 16, ROWS_GPU = 1 };

struct mimus__gather {
    mimus__geometry geometry;
    const mimus__store *store;
    const mimus__buffer *hyper;
    mimus__batch batch;
    uint32_t rows_a_group;
    uint32_t half_bits;        /* of the sampler's Feistel network */
    mimus__buffer mean, scale; /* (runs, S) */
    mimus__program program;
    mimus__kernel kernel;
};

static uint32_t half_bits_of(uint32_t n) {
    uint32_t bits = 1;
    while (bits < 16 && 1ull << (2 * bits) < n)
        bits++;
    return bits;
}

static mimus_status build(mimus__gather *gather, mimus__device *device, uint32_t stack) {
    mimus_status status = MIMUS_OK;
    const mimus__store *store = gather->store;
    mimus__defines defines = {0};
    mimus__geometry_define(gather->geometry, &defines);
    mimus__define_number(&defines, "SHARDS", store->shards);
    mimus__define_number(&defines, "SHARD_SHIFT", store->shift);
    mimus__define_number(&defines, "SENSES", store->layout.senses);
    mimus__define_number(&defines, "LABEL_WORDS", store->layout.label_words);
    mimus__define_number(&defines, "ACTION_WORDS", store->layout.action_words);
    mimus__define_number(&defines, "STACK", stack);
    mimus__define_number(&defines, "AGE_WORD", store->layout.age_word);
    mimus__define_number(&defines, "X_WIDTH", gather->batch.width);
    mimus__define_number(&defines, "ROWS", gather->rows_a_group);
    MIMUS_TRY(mimus__program_build(&gather->program, device, "gather.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&gather->kernel, &gather->program, "mimus_gather"));
out:
    return status;
}

mimus_status mimus__gather_new(mimus__gather **out, mimus__device *device,
                               const mimus__store *store, const mimus__buffer *hyper,
                               uint32_t stack, mimus__matrix x, uint32_t runs, uint32_t capacity,
                               uint32_t width) {
    mimus_status status = MIMUS_OK;
    mimus__gather *gather = NULL;
    float *ones = NULL;
    MIMUS_TRY(mimus__alloc(&gather, 1, sizeof *gather));
    gather->geometry = mimus__geometry_of(device);
    gather->store = store;
    gather->hyper = hyper;
    gather->rows_a_group = gather->geometry.local == 1 ? ROWS_CPU : ROWS_GPU;
    gather->half_bits = half_bits_of(store->training);
    gather->batch = (mimus__batch){.x = x, .runs = runs, .capacity = capacity, .width = width};
    MIMUS_TRY(mimus__buffer_new(&gather->batch.labels, device,
                                (size_t)runs * capacity * store->layout.label_words * 4,
                                "the batch's labels"));
    size_t senses = (size_t)runs * store->layout.senses;
    MIMUS_TRY(mimus__buffer_new(&gather->mean, device, senses * 4, "the senses' means"));
    MIMUS_TRY(mimus__buffer_new(&gather->scale, device, senses * 4, "the senses' scales"));
    MIMUS_TRY(mimus__alloc(&ones, senses, sizeof *ones));
    for (size_t s = 0; s < senses; s++)
        ones[s] = 1.0f;
    MIMUS_TRY(mimus__buffer_write(&gather->scale, 0, ones, senses * 4));
    MIMUS_TRY(build(gather, device, stack));
    *out = gather;
    gather = NULL;
out:
    free(ones);
    mimus__gather_free(gather);
    return status;
}

void mimus__gather_free(mimus__gather *gather) {
    if (gather == NULL)
        return;
    mimus__kernel_free(&gather->kernel);
    mimus__program_free(&gather->program);
    mimus__buffer_free(&gather->batch.labels);
    mimus__buffer_free(&gather->mean);
    mimus__buffer_free(&gather->scale);
    free(gather);
}

const mimus__batch *mimus__gather_batch(const mimus__gather *gather) {
    return &gather->batch;
}

mimus_status mimus__gather_normalise(mimus__gather *gather, uint32_t run, const float *mean,
                                     const float *scale) {
    mimus_status status = MIMUS_OK;
    size_t bytes = (size_t)gather->store->layout.senses * sizeof(float);
    MIMUS_TRY(mimus__buffer_write(&gather->mean, run * bytes, mean, bytes));
    MIMUS_TRY(mimus__buffer_write(&gather->scale, run * bytes, scale, bytes));
out:
    return status;
}

static mimus_status launch(mimus__gather *gather, bool shuffled, uint32_t epoch, uint32_t base,
                           uint32_t first, uint32_t rows, uint32_t padded) {
    mimus__arg arguments[MIMUS__MAX_SHARDS + 16];
    size_t count = 0;
    /* the kernel takes 1, 2, 3, 4, 8 or 16 shards (cl/shards.clh): repeat the first in the places
     * that no row leads to */
    uint32_t shards = gather->store->shards;
    uint32_t places = shards <= 4 ? shards : shards <= 8 ? 8 : 16;
    for (uint32_t s = 0; s < places; s++)
        arguments[count++] = MIMUS_ARG_BUFFER(&gather->store->shard[s < shards ? s : 0]);
    const mimus__arg rest[] = {
        MIMUS_ARG_U32(shuffled),
        MIMUS_ARG_U32(epoch),
        MIMUS_ARG_U32(gather->store->training),
        MIMUS_ARG_U32(gather->half_bits),
        MIMUS_ARG_U32(base),
        MIMUS_ARG_U32(first),
        MIMUS_ARG_U32(rows),
        MIMUS_ARG_U32(padded),
        MIMUS_ARG_U32(gather->batch.capacity),
        MIMUS_ARG_BUFFER(gather->hyper),
        MIMUS_ARG_BUFFER(&gather->mean),
        MIMUS_ARG_BUFFER(&gather->scale),
        MIMUS_ARG_BUFFER(gather->batch.x.buffer),
        MIMUS_ARG_BUFFER(&gather->batch.labels),
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        arguments[count++] = rest[i];
    uint32_t groups = mimus__divide_up(padded, gather->rows_a_group);
    return mimus__launch_list(&gather->kernel,
                              mimus__geometry_grid(gather->geometry, groups, gather->batch.runs),
                              arguments, count);
}

mimus_status mimus__gather_shuffled(mimus__gather *gather, uint32_t epoch, uint32_t first,
                                    uint32_t rows, uint32_t padded) {
    return launch(gather, true, epoch, 0, first, rows, padded);
}

mimus_status mimus__gather_in_order(mimus__gather *gather, uint32_t base, uint32_t first,
                                    uint32_t rows, uint32_t padded) {
    return launch(gather, false, 0, base, first, rows, padded);
}
