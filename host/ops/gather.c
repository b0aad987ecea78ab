#include "gather.h"

#include "alloc.h"

#include <stdlib.h>

/* Rows that one CPU work-item gathers; a group of lanes shares each row on a GPU. */
enum { ROWS_CPU = 16, ROWS_GPU = 1 };

struct mimus__gather {
    mimus__geometry geometry;
    const mimus__store *store;
    const mimus__parts *parts;
    const mimus__buffer *hyper;
    mimus__batch batch;
    uint32_t live;
    uint32_t rows_a_group;
    uint32_t half_bits; /* of the sampler's Feistel network */
    mimus__normalisation normalisation;
    mimus__program program;
    mimus__kernel kernel;
};

uint32_t mimus__sampler_half_bits(uint32_t n) {
    uint32_t bits = 1;
    while (bits < 16 && 1ull << (2 * bits) < n)
        bits++;
    return bits;
}

mimus_status mimus__normalisation_new(mimus__normalisation *out, mimus__device *device,
                                      uint32_t runs, uint32_t senses) {
    mimus_status status = MIMUS_OK;
    float *ones = NULL;
    size_t floats = (size_t)runs * senses;
    *out = (mimus__normalisation){.senses = senses};
    MIMUS_TRY(mimus__buffer_new(&out->mean, device, floats * 4, "the senses' means"));
    MIMUS_TRY(mimus__buffer_new(&out->scale, device, floats * 4, "the senses' scales"));
    MIMUS_TRY(mimus__alloc(&ones, floats, sizeof *ones));
    for (size_t s = 0; s < floats; s++)
        ones[s] = 1.0f;
    MIMUS_TRY(mimus__buffer_write(&out->scale, 0, ones, floats * 4));
out:
    free(ones);
    return status;
}

void mimus__normalisation_free(mimus__normalisation *normalisation) {
    mimus__buffer_free(&normalisation->mean);
    mimus__buffer_free(&normalisation->scale);
}

mimus_status mimus__normalisation_set(mimus__normalisation *normalisation, uint32_t run,
                                      const float *mean, const float *scale) {
    mimus_status status = MIMUS_OK;
    size_t bytes = (size_t)normalisation->senses * sizeof(float);
    MIMUS_TRY(mimus__buffer_write(&normalisation->mean, run * bytes, mean, bytes));
    MIMUS_TRY(mimus__buffer_write(&normalisation->scale, run * bytes, scale, bytes));
out:
    return status;
}

static mimus_status build(mimus__gather *gather, mimus__device *device, uint32_t stack) {
    mimus_status status = MIMUS_OK;
    const mimus__store *store = gather->store;
    mimus__defines defines = {0};
    mimus__geometry_define(gather->geometry, &defines);
    mimus__store_define(store, stack, &defines);
    mimus__parts_define(gather->parts, &defines);
    mimus__define_number(&defines, "ACTION_WORDS", store->layout.action_words);
    mimus__define_number(&defines, "X_WIDTH", gather->batch.width);
    mimus__define_number(&defines, "ROWS", gather->rows_a_group);
    MIMUS_TRY(mimus__program_build(&gather->program, device, "gather.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&gather->kernel, &gather->program, "mimus_gather"));
out:
    return status;
}

mimus_status mimus__gather_new(mimus__gather **out, mimus__device *device,
                               const mimus__store *store, const mimus__parts *parts,
                               const mimus__buffer *hyper, uint32_t stack, mimus__matrix x,
                               uint32_t runs, uint32_t capacity, uint32_t width) {
    mimus_status status = MIMUS_OK;
    mimus__gather *gather = NULL;
    MIMUS_TRY(mimus__alloc(&gather, 1, sizeof *gather));
    gather->geometry = mimus__geometry_of(device);
    gather->store = store;
    gather->parts = parts;
    gather->hyper = hyper;
    gather->live = runs;
    gather->rows_a_group = gather->geometry.local == 1 ? ROWS_CPU : ROWS_GPU;
    gather->half_bits = mimus__sampler_half_bits(store->training);
    gather->batch = (mimus__batch){.x = x, .runs = runs, .capacity = capacity, .width = width};
    MIMUS_TRY(mimus__buffer_new(&gather->batch.labels, device,
                                (size_t)runs * capacity * store->layout.label_words * 4,
                                "the batch's labels"));
    MIMUS_TRY(mimus__buffer_new(&gather->batch.shares, device, runs * sizeof(float),
                                "the batch's sizes"));
    MIMUS_TRY(mimus__normalisation_new(&gather->normalisation, device, runs, store->layout.senses));
    MIMUS_TRY(build(gather, device, stack));
    *out = gather;
    gather = NULL;
out:
    mimus__gather_free(gather);
    return status;
}

void mimus__gather_free(mimus__gather *gather) {
    if (gather == NULL)
        return;
    mimus__kernel_free(&gather->kernel);
    mimus__program_free(&gather->program);
    mimus__buffer_free(&gather->batch.labels);
    mimus__buffer_free(&gather->batch.shares);
    mimus__normalisation_free(&gather->normalisation);
    free(gather);
}

const mimus__batch *mimus__gather_batch(const mimus__gather *gather) {
    return &gather->batch;
}

void mimus__gather_set_live(mimus__gather *gather, uint32_t live) {
    gather->live = live < gather->batch.runs ? live : gather->batch.runs;
}

mimus_status mimus__gather_normalise(mimus__gather *gather, uint32_t run, const float *mean,
                                     const float *scale) {
    return mimus__normalisation_set(&gather->normalisation, run, mean, scale);
}

static mimus_status launch(mimus__gather *gather, bool shuffled, uint32_t epoch, uint32_t base,
                           uint32_t first, uint32_t rows, uint32_t padded) {
    mimus__arg arguments[MIMUS__MAX_SHARDS + 20];
    size_t count = mimus__store_arguments(gather->store, arguments);
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
        MIMUS_ARG_BUFFER(&gather->normalisation.mean),
        MIMUS_ARG_BUFFER(&gather->normalisation.scale),
        MIMUS_ARG_BUFFER(gather->batch.x.buffer),
        MIMUS_ARG_BUFFER(&gather->batch.labels),
        MIMUS_ARG_BUFFER(&gather->batch.shares),
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        arguments[count++] = rest[i];
    count += mimus__parts_arguments(gather->parts, arguments + count);
    uint32_t groups = mimus__divide_up(padded, gather->rows_a_group);
    return mimus__launch_list(&gather->kernel,
                              mimus__geometry_grid(gather->geometry, groups, gather->live),
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
