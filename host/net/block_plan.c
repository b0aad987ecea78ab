#include "block_plan.h"

#include "alloc.h"
#include "clock.h"
#include "hyper.clh"
#include "tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in cl/block.cl. */
enum { BLOCK_GAP = 16 };

/* A slice smaller than this is not worth a partial gradient. */
enum { LEAST_SLICE = 32 };

/* What is chosen by timing. The bits do not depend on it: every sum is taken in the order of the
 * slice's rows. */
typedef struct tiling {
    mimus__gemm_tile_shape tile;
    uint32_t block_rows; /* a multiple of the tile's rows and of the lanes */
} tiling;

/* For registers of 16 (AVX-512), 8 (AVX2) and 4 floats; docs/opencl.md 22, 36, 37. Two of each:
 * every one more costs a first start seconds of compiling. */
static const tiling tilings[] = {
    {{12, 2, 16}, 96}, {{8, 2, 16}, 96}, {{6, 2, 8}, 96},
    {{4, 3, 8}, 96},   {{6, 2, 4}, 96},  {{8, 3, 4}, 96},
};

struct mimus__block_plan {
    mimus__network *network;
    mimus__block_source source;
    const mimus_schema *schema;
    mimus__geometry geometry;
    bool dropout;
    uint32_t rows, slices, half_bits;
    mimus__normalisation normalisation;
    mimus__loss_weights weights;
    mimus__panels panels;
    uint32_t block_rows;
    size_t scratch_floats; /* of one work-item */
    mimus__buffer scratch; /* (runs, slices, scratch floats) */
    mimus__buffer partial; /* (runs, slices, metric columns) */
    mimus__program program;
    mimus__kernel kernel;
    double seconds; /* of a batch, when it was chosen */
    bool cached;    /* chosen at an earlier start */
};

bool mimus__block_plan_suits(const mimus__device *device) {
    return mimus__geometry_has_registers(device);
}

static bool suits(const mimus__device *device, const tiling *v) {
    mimus__geometry geometry = mimus__geometry_of(device);
    return geometry.local == 1 && v->tile.width == geometry.width &&
           !mimus__geometry_vectorises_items(device);
}

uint32_t mimus__block_plan_variants(const mimus__device *device) {
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++)
        count += suits(device, &tilings[i]);
    return count;
}

/* Two a core, so that one which is held up does not hold up the other. */
uint32_t mimus__block_plan_slices(const mimus__device *device, uint32_t rows) {
    uint32_t wanted = 2 * mimus__device_get_info(device)->compute_units;
    uint32_t most = rows / LEAST_SLICE > 0 ? rows / LEAST_SLICE : 1;
    return wanted < most ? wanted : most;
}

uint32_t mimus__block_plan_input_width(uint32_t padded) {
    return padded + BLOCK_GAP;
}

/* ------------------------------------------------------------------------ building */

static size_t count_scratch(const mimus__block_plan *block, uint32_t block_rows) {
    const mimus__layout *layout = &block->network->layout;
    uint32_t layers = layout->shape.layers;
    size_t floats = 0;
    for (uint32_t l = 0; l <= layers; l++) {
        size_t matrix = (size_t)block_rows * (layout->padded[l] + BLOCK_GAP);
        floats += block->network->keeps_pre && l > 0 && l < layers ? 2 * matrix : matrix;
    }
    floats += (size_t)block->weights.action_count * mimus__geometry_lanes(block->geometry);
    floats += (size_t)block_rows * block->source.store->layout.label_words;
    return (floats + 15) / 16 * 16 + BLOCK_GAP; /* slots share no cache line */
}

/* Compilers that take clang's builtin to the end. Mesa's and Oclgrind's do not. */
static bool prefetches(const mimus__device *device) {
    const char *platform = mimus__device_get_info(device)->platform_name;
    return strstr(platform, "Portable Computing Language") != NULL ||
           strstr(platform, "Intel") != NULL;
}

static mimus_status build(mimus__block_plan *block, const tiling *v) {
    mimus_status status = MIMUS_OK;
    mimus__network *network = block->network;
    mimus__defines defines = {0};
    mimus__layout_tables tables;
    char *offsets = NULL;
    block->panels.tile = v->tile;
    block->block_rows = v->block_rows;
    block->scratch_floats = count_scratch(block, v->block_rows);
    mimus__geometry_define(block->geometry, &defines);
    mimus__store_define(block->source.store, network->layout.shape.stack, &defines);
    mimus__parts_define(block->source.parts, &defines);
    mimus__define_number(&defines, "SHARED", block->source.shared != NULL);
    mimus__layout_define(&network->layout, &tables, &defines);
    mimus__panels_define(&block->panels, &defines);
    MIMUS_TRY(mimus__loss_define(&defines, &offsets, block->schema, &block->source.store->layout,
                                 block->geometry));
    mimus__define_number(&defines, "OUTER_ROWS", v->tile.width >= 16 ? 8 : 4);
    mimus__define_number(&defines, "BLOCK_ROWS", v->block_rows);
    mimus__define_number(&defines, "ACTIVATION", network->layout.shape.activation);
    mimus__define_number(&defines, "KEEPS_PRE", network->keeps_pre);
    mimus__define_number(&defines, "DROPOUT", block->dropout);
    mimus__define_number(&defines, "TOTAL", network->layout.total);
    mimus__define_number(&defines, "SCRATCH_FLOATS", block->scratch_floats);
    if (prefetches(network->device) && block->source.shared == NULL) /* it lies in a row */
        mimus__define_number(&defines, "LOOKAHEAD", 1);
    MIMUS_TRY(mimus__program_build(&block->program, network->device, "block.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&block->kernel, &block->program, "mimus_block"));
    MIMUS_TRY(mimus__buffer_new(&block->scratch, network->device,
                                (size_t)network->layout.runs * block->slices *
                                    block->scratch_floats * sizeof(float),
                                "the blocks of rows"));
out:
    free(offsets);
    return status;
}

static void unbuild(mimus__block_plan *block) {
    mimus__kernel_free(&block->kernel);
    mimus__program_free(&block->program);
    mimus__buffer_free(&block->scratch);
}

/* ------------------------------------------------------------------------ launching */

typedef struct batch {
    bool shuffled, trains;
    uint32_t epoch, base, first, rows, step;
} batch;

static mimus_status launch(mimus__block_plan *block, const batch *b) {
    mimus__arg arguments[MIMUS__MAX_SHARDS + 28];
    const mimus__block_source *source = &block->source;
    size_t count = mimus__store_arguments(source->store, arguments);
    const mimus__network *network = block->network;
    const mimus__arg rest[] = {
        MIMUS_ARG_U32(b->shuffled),
        MIMUS_ARG_U32(b->epoch),
        MIMUS_ARG_U32(source->store->training),
        MIMUS_ARG_U32(block->half_bits),
        MIMUS_ARG_U32(b->base),
        MIMUS_ARG_U32(b->first),
        MIMUS_ARG_U32(b->rows),
        MIMUS_ARG_U32(mimus__divide_up(b->rows, block->slices)),
        MIMUS_ARG_F32(1.0f / (float)b->rows),
        MIMUS_ARG_U32(b->trains),
        MIMUS_ARG_U32(b->step),
        MIMUS_ARG_BUFFER(source->hyper),
        MIMUS_ARG_BUFFER(&block->normalisation.mean),
        MIMUS_ARG_BUFFER(&block->normalisation.scale),
        MIMUS_ARG_BUFFER(&block->weights.heads),
        MIMUS_ARG_BUFFER(&block->weights.actions),
        MIMUS_ARG_BUFFER(&network->parameters),
        MIMUS_ARG_BUFFER(&block->panels.plain),
        MIMUS_ARG_BUFFER(&block->panels.turned),
        MIMUS_ARG_BUFFER(&network->gradient),
        MIMUS_ARG_BUFFER(&block->scratch),
        MIMUS_ARG_BUFFER(&block->partial),
        MIMUS_ARG_BUFFER(source->shared != NULL ? source->shared->x.buffer : &block->partial),
        MIMUS_ARG_BUFFER(source->shared != NULL ? &source->shared->labels : &block->partial),
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        arguments[count++] = rest[i];
    count += mimus__parts_arguments(source->parts, arguments + count);
    mimus__grid grid = {{block->slices, network->live, 1}, {1, 1, 1}};
    return mimus__launch_list(&block->kernel, grid, arguments, count);
}

/* ------------------------------------------------------------------------ the choice */

/* Seconds of a batch, the least of a few. */
static mimus_status time_batch(mimus__block_plan *block, double *seconds) {
    enum { REPEATS = 6 };
    mimus_status status = MIMUS_OK;
    batch b = {.shuffled = true, .trains = true, .rows = block->rows};
    *seconds = INFINITY;
    for (int repeat = 0; repeat <= REPEATS; repeat++) { /* the first one compiles */
        MIMUS_TRY(mimus__device_check_stop(block->network->device));
        double began = mimus__clock_seconds();
        MIMUS_TRY(launch(block, &b));
        MIMUS_TRY(mimus__device_finish(block->network->device));
        double spent = mimus__clock_seconds() - began;
        if (repeat > 0 && spent < *seconds)
            *seconds = spent;
    }
out:
    return status;
}

/* By name, which what is remembered holds too. */
static void name_of(char name[MIMUS__GEMM_PARAMETER_BYTES], const tiling *v) {
    snprintf(name, MIMUS__GEMM_PARAMETER_BYTES, "%u x %u float%u, blocks of %u",
             (unsigned)v->tile.rows, (unsigned)v->tile.vectors, (unsigned)v->tile.width,
             (unsigned)v->block_rows);
}

static mimus_status no_tile(const mimus__block_plan *block) {
    const mimus__device *device = block->network->device;
    const mimus__device_info *info = mimus__device_get_info(device);
    const char *why = mimus__geometry_vectorises_items(device) ? "vectorises over work-items"
                      : info->cpu                              ? "is used as a GPU (MIMUS_GEOMETRY)"
                                                               : "is none";
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "the block plan is for CPU devices, and %s %s; use --plan phased",
                       info->name, why);
}

static mimus_status find_best(mimus__block_plan *block, const tiling **best) {
    mimus_status status = MIMUS_OK;
    double seconds;
    *best = NULL;
    for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
        if (!suits(block->network->device, &tilings[i]))
            continue;
        MIMUS_TRY(build(block, &tilings[i]));
        MIMUS_TRY(time_batch(block, &seconds));
        unbuild(block);
        if (*best == NULL || seconds < block->seconds) {
            *best = &tilings[i];
            block->seconds = seconds;
        }
    }
    if (*best == NULL)
        status = no_tile(block);
out:
    return status;
}

/* The choice of an earlier start, or NULL. */
static const tiling *recall(mimus__block_plan *block, const json_t *key) {
    char name[MIMUS__GEMM_PARAMETER_BYTES];
    const tiling *found = NULL;
    json_t *report = mimus__tuning_recall("block", key);
    const char *kept = json_string_value(json_object_get(report, "chosen"));
    for (size_t i = 0; kept != NULL && i < sizeof tilings / sizeof *tilings; i++) {
        name_of(name, &tilings[i]);
        if (suits(block->network->device, &tilings[i]) && strcmp(name, kept) == 0)
            found = &tilings[i];
    }
    block->seconds = json_number_value(json_object_get(report, "seconds"));
    json_decref(report);
    return found;
}

/* What the choice depends on besides the device. */
static mimus_status make_key(json_t **out, const mimus__block_plan *block) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &block->network->layout;
    json_t *key = NULL, *widths = json_array();
    for (uint32_t l = 0; l <= layout->shape.layers; l++)
        MIMUS_TRY(mimus__json_append(widths, json_integer(layout->padded[l])));
    MIMUS_TRY(mimus__tuning_key(&key, block->network->device));
    MIMUS_TRY(mimus__json_set(key, "rows", json_integer(block->rows)));
    MIMUS_TRY(mimus__json_set(key, "runs", json_integer(layout->runs)));
    MIMUS_TRY(mimus__json_set(key, "shared", json_boolean(block->source.shared != NULL)));
    MIMUS_TRY(mimus__json_set(key, "widths", json_incref(widths)));
    MIMUS_TRY(mimus__json_set(key, "activation", json_integer(layout->shape.activation)));
    *out = json_incref(key);
out:
    json_decref(key);
    json_decref(widths);
    return status;
}

/* The wanted one of the tiles that suit. */
static mimus_status take(mimus__block_plan *block, uint32_t wanted) {
    for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
        if (suits(block->network->device, &tilings[i]) && wanted-- == 0)
            return build(block, &tilings[i]);
    }
    return no_tile(block);
}

static mimus_status choose(mimus__block_plan *block) {
    mimus_status status = MIMUS_OK;
    char name[MIMUS__GEMM_PARAMETER_BYTES];
    json_t *key = NULL, *report = NULL;
    MIMUS_TRY(make_key(&key, block));
    const tiling *best = recall(block, key);
    block->cached = best != NULL;
    if (!block->cached) {
        MIMUS_TRY(find_best(block, &best));
        name_of(name, best);
        report = json_pack("{sssf}", "chosen", name, "seconds", block->seconds);
        mimus__tuning_remember("block", key, report);
    }
    MIMUS_TRY(build(block, best));
out:
    json_decref(key);
    json_decref(report);
    return status;
}

/* ------------------------------------------------------------------------------ life */

mimus_status mimus__block_plan_new(mimus__block_plan **out, mimus__network *network,
                                   const mimus__block_source *source, const mimus_schema *schema,
                                   bool dropout, uint32_t rows, int variant) {
    mimus_status status = MIMUS_OK;
    mimus__block_plan *block = NULL;
    mimus__device *device = network->device;
    uint32_t runs = network->layout.runs;
    MIMUS_TRY(mimus__alloc(&block, 1, sizeof *block));
    block->network = network;
    block->source = *source;
    block->schema = schema;
    block->geometry = mimus__geometry_of(device);
    block->dropout = dropout;
    block->rows = rows;
    block->slices = mimus__block_plan_slices(device, rows);
    block->half_bits = mimus__sampler_half_bits(source->store->training);
    MIMUS_TRY(mimus__normalisation_new(&block->normalisation, device, runs,
                                       source->store->layout.senses));
    MIMUS_TRY(mimus__loss_weights_new(&block->weights, device, runs, schema));
    MIMUS_TRY(mimus__panels_new(&block->panels, device, &network->layout));
    MIMUS_TRY(mimus__buffer_new(&block->partial, device,
                                (size_t)runs * block->slices *
                                    mimus__metric_columns(schema->heads) * sizeof(float),
                                "the loss's partial sums"));
    MIMUS_TRY(variant == MIMUS__BLOCK_PLAN_FASTEST ? choose(block)
                                                   : take(block, (uint32_t)variant));
    block->schema = NULL; /* not needed any more, and the caller's */
    *out = block;
    block = NULL;
out:
    mimus__block_plan_free(block);
    return status;
}

void mimus__block_plan_free(mimus__block_plan *block) {
    if (block == NULL)
        return;
    unbuild(block);
    mimus__buffer_free(&block->partial);
    mimus__panels_free(&block->panels);
    mimus__loss_weights_free(&block->weights);
    mimus__normalisation_free(&block->normalisation);
    free(block);
}

mimus_status mimus__block_plan_normalise(mimus__block_plan *block, uint32_t run, const float *mean,
                                         const float *scale) {
    return mimus__normalisation_set(&block->normalisation, run, mean, scale);
}

mimus_status mimus__block_plan_weigh(mimus__block_plan *block, uint32_t run,
                                     const float *head_weights, const float *action_weights) {
    return mimus__loss_weights_set(&block->weights, run, head_weights, action_weights);
}

const mimus__panels *mimus__block_plan_panels(const mimus__block_plan *block) {
    return &block->panels;
}

mimus_status mimus__block_plan_train(mimus__block_plan *block, uint32_t epoch, uint32_t first,
                                     uint32_t rows, uint32_t step) {
    const batch b = {.shuffled = true,
                     .trains = true,
                     .epoch = epoch,
                     .first = first,
                     .rows = rows,
                     .step = step};
    return launch(block, &b);
}

mimus_status mimus__block_plan_in_order(mimus__block_plan *block, uint32_t base, uint32_t first,
                                        uint32_t rows, bool trains, uint32_t step) {
    const batch b = {.trains = trains, .base = base, .first = first, .rows = rows, .step = step};
    return launch(block, &b);
}

mimus__sums mimus__block_plan_sums(const mimus__block_plan *block) {
    return (mimus__sums){&block->partial, block->slices};
}

json_t *mimus__block_plan_report(const mimus__block_plan *block) {
    char tile[64];
    mimus__gemm_tile_shape shape = block->panels.tile;
    snprintf(tile, sizeof tile, "%u x %u float%u", (unsigned)shape.rows, (unsigned)shape.vectors,
             (unsigned)shape.width);
    return json_pack("{sssisisfsb}", "tile", tile, "block_rows", (int)block->block_rows, "slices",
                     (int)block->slices, "seconds", block->seconds, "cached", block->cached);
}
