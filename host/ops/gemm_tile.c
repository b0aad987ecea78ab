#include "gemm_backend.h"

#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in cl/dense_tile.clh and cl/gemm_tile.cl. */
enum { OUTER_BLOCK = 32, GROUP_SIDE = 16, GROUP_TILE = 64, GROUP_DEPTH = 16 };

/* Widths are multiples of this whatever the tile, for vectors of 16. */
enum { WIDTH_PAD = 16 };

typedef struct tile_backend {
    mimus__gemm_backend base;
    mimus__gemm_tile_shape shape;
    uint32_t compute_units;
    mimus__program program;
    mimus__kernel pack, forward, input_gradient, weight_gradient;
    mimus__buffer panels; /* the packed weights of the launch that follows */
} tile_backend;

static bool is_group(mimus__gemm_tile_shape shape) {
    return shape.width == 0;
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : value;
}

/* --------------------------------------------------------------- the choice of tiles */

static const mimus__gemm_tile_shape group_shape = {0, 0, 0};

/* Accumulators must fit beside the loads: 16 registers with 4 floats (SSE) and 8 (AVX2), 32 with
 * 4 (NEON) and 16 (AVX-512). docs/opencl.md 22, 36. All have at most WIDTH_PAD columns, so that the
 * choice, which is timing's, changes no width and with it no order of sums: every shape gives the
 * same bits. */
static const mimus__gemm_tile_shape register_shapes[] = {
    {6, 2, 8}, {4, 2, 8}, {16, 1, 16}, {12, 1, 16}, {6, 2, 4}, {12, 2, 4},
};

static uint32_t list_shapes(const mimus__device *device, uint32_t wanted,
                            mimus__gemm_tile_shape *found) {
    uint32_t native = mimus__device_get_info(device)->vector_width;
    uint32_t width = native >= 16 ? 16 : native >= 8 ? 8 : 4;
    uint32_t count = 0;
    *found = group_shape;
    if (!mimus__geometry_has_registers(device))
        return 1;
    for (size_t i = 0; i < sizeof register_shapes / sizeof *register_shapes; i++) {
        if (register_shapes[i].width != width)
            continue;
        if (count++ == wanted)
            *found = register_shapes[i];
    }
    return count;
}

static const char *tile_unsuited(const mimus__device *device) {
    (void)device;
    return NULL;
}

static uint32_t tile_variants(const mimus__device *device, const mimus__gemm_problem *problem) {
    mimus__gemm_tile_shape ignored;
    (void)problem;
    return list_shapes(device, 0, &ignored);
}

/* ------------------------------------------------------------------------- opening */

/* Enough slices of the rows to fill the device with the largest layer's weight gradient of one run,
 * and no more: the optimizer reads every one. More runs change nothing, so that a run of many sums
 * as it does alone. */
static uint32_t choose_splits(const tile_backend *tile, const mimus__gemm_problem *problem) {
    uint32_t rows = clamp(problem->rows / GROUP_TILE, 1, 32), tiles = 1;
    for (uint32_t i = 0; i < problem->count; i++) {
        const mimus__gemm_layer *layer = &problem->layers[i];
        uint32_t here =
            mimus__divide_up(layer->in, GROUP_TILE) * mimus__divide_up(layer->out, GROUP_TILE);
        tiles = here > tiles ? here : tiles;
    }
    if (is_group(tile->shape))
        return clamp(mimus__divide_up(4 * tile->compute_units, tiles), 1, rows);
    return clamp(2 * tile->compute_units, 1, rows < 8 ? rows : 8);
}

static mimus_status build_program(tile_backend *tile) {
    mimus_status status = MIMUS_OK;
    mimus__defines defines = {0};
    mimus__define_number(&defines, "GROUP_TILE", is_group(tile->shape));
    if (!is_group(tile->shape)) {
        mimus__define_number(&defines, "TILE_ROWS", tile->shape.rows);
        mimus__define_number(&defines, "TILE_VECTORS", tile->shape.vectors);
        mimus__define_number(&defines, "TILE_WIDTH", tile->shape.width);
        mimus__define_number(&defines, "OUTER_BLOCK", OUTER_BLOCK);
    }
    MIMUS_TRY(mimus__program_build(&tile->program, tile->base.device, "gemm_tile.cl", &defines));
    if (!is_group(tile->shape))
        MIMUS_TRY(mimus__kernel_new(&tile->pack, &tile->program, "gemm_pack"));
    MIMUS_TRY(mimus__kernel_new(&tile->forward, &tile->program, "gemm_forward"));
    MIMUS_TRY(mimus__kernel_new(&tile->input_gradient, &tile->program, "gemm_input_gradient"));
    MIMUS_TRY(mimus__kernel_new(&tile->weight_gradient, &tile->program, "gemm_weight_gradient"));
out:
    return status;
}

static mimus_status make_panels(tile_backend *tile, const mimus__gemm_problem *problem) {
    size_t largest = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        mimus__gemm_layer layer = mimus__gemm_padded(&tile->base, problem->layers[i]);
        size_t floats = (size_t)layer.runs * layer.in * layer.out;
        largest = floats > largest ? floats : largest;
    }
    return mimus__buffer_new(&tile->panels, tile->base.device, largest * sizeof(float),
                             "packed weights");
}

static void tile_close(mimus__gemm_backend *backend) {
    tile_backend *tile = (tile_backend *)backend;
    if (tile == NULL)
        return;
    mimus__buffer_free(&tile->panels);
    mimus__kernel_free(&tile->pack);
    mimus__kernel_free(&tile->forward);
    mimus__kernel_free(&tile->input_gradient);
    mimus__kernel_free(&tile->weight_gradient);
    mimus__program_free(&tile->program);
    free(tile);
}

mimus_status mimus__gemm_tile_open(mimus__gemm_backend **out, mimus__device *device,
                                   const mimus__gemm_problem *problem,
                                   mimus__gemm_tile_shape shape) {
    mimus_status status = MIMUS_OK;
    tile_backend *tile = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&tile, 1, sizeof *tile));
    tile->shape = shape;
    tile->compute_units = mimus__device_get_info(device)->compute_units;
    tile->base = (mimus__gemm_backend){.device = device,
                                       .width_pad = WIDTH_PAD,
                                       .row_pad = 1,
                                       .splits = choose_splits(tile, problem),
                                       .packs = !is_group(shape),
                                       .batches = true};
    if (is_group(shape)) {
        snprintf(tile->base.parameters, sizeof tile->base.parameters, "group of 64 x 64");
    } else {
        snprintf(tile->base.parameters, sizeof tile->base.parameters, "%u x %u float%u",
                 (unsigned)shape.rows, (unsigned)shape.vectors, (unsigned)shape.width);
        tile->base.width_pad = mimus__round_up(WIDTH_PAD, shape.vectors * shape.width);
    }
    MIMUS_TRY(build_program(tile));
    if (!is_group(shape))
        MIMUS_TRY(make_panels(tile, problem));
    *out = &tile->base;
    tile = NULL;
out:
    if (tile != NULL)
        tile_close(&tile->base);
    return status;
}

static mimus_status tile_open(mimus__gemm_backend **out, mimus__device *device,
                              const mimus__gemm_problem *problem, uint32_t variant) {
    mimus__gemm_tile_shape shape;
    list_shapes(device, variant, &shape);
    return mimus__gemm_tile_open(out, device, problem, shape);
}

/* ------------------------------------------------------------------------ launches */

/* One tile a work-item or group over (columns, rows), `depth` in the third dimension. */
static mimus__grid tile_grid(const tile_backend *tile, uint32_t columns, uint32_t rows,
                             uint32_t depth) {
    if (is_group(tile->shape))
        return (mimus__grid){{(size_t)mimus__divide_up(columns, GROUP_TILE) * GROUP_SIDE,
                              (size_t)mimus__divide_up(rows, GROUP_TILE) * GROUP_SIDE, depth},
                             {GROUP_SIDE, GROUP_SIDE, 1}};
    return (mimus__grid){{columns / (tile->shape.vectors * tile->shape.width),
                          mimus__divide_up(rows, tile->shape.rows), depth},
                         {1, 1, 1}};
}

/* What the kernels read as weights: `weight` itself, or its panels. Packing at every product costs
 * a hundredth of it and leaves the layout of weights to nobody else. */
static mimus_status prepare_weight(tile_backend *tile, const mimus__gemm_layer *layer,
                                   const mimus__matrix *weight, bool transposed,
                                   mimus__matrix *out) {
    *out = *weight;
    if (is_group(tile->shape))
        return MIMUS_OK;
    uint32_t columns = tile->shape.vectors * tile->shape.width;
    mimus__grid grid = {{(transposed ? layer->in : layer->out) / columns, layer->runs, 1},
                        {1, 1, 1}};
    *out = (mimus__matrix){&tile->panels, 0, (size_t)layer->in * layer->out};
    return mimus__launch(&tile->pack, grid, MIMUS_ARG_U32(layer->in), MIMUS_ARG_U32(layer->out),
                         MIMUS_ARG_U32(transposed), MIMUS_ARGS_MATRIX(weight),
                         MIMUS_ARG_BUFFER(&tile->panels));
}

static mimus_status tile_forward(mimus__gemm_backend *backend,
                                 const mimus__gemm_forward_call *call) {
    mimus_status status = MIMUS_OK;
    tile_backend *tile = (tile_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    const mimus__matrix *pre = call->pre != NULL ? call->pre : &call->y;
    mimus__grid grid = tile_grid(tile, layer->out, call->rows, layer->runs);
    mimus__matrix weight;
    MIMUS_TRY(prepare_weight(tile, layer, &call->weight, false, &weight));
    MIMUS_TRY(mimus__launch(
        &tile->forward, grid, MIMUS_ARG_U32(call->rows), MIMUS_ARG_U32(layer->in),
        MIMUS_ARG_U32(layer->out), MIMUS_ARGS_MATRIX(&call->x), MIMUS_ARGS_MATRIX(&weight),
        MIMUS_ARGS_MATRIX(&call->bias), MIMUS_ARG_U32(call->activation),
        MIMUS_ARGS_MATRIX(&call->y), MIMUS_ARG_U32(call->pre != NULL), MIMUS_ARGS_MATRIX(pre)));
out:
    return status;
}

static mimus_status tile_input_gradient(mimus__gemm_backend *backend,
                                        const mimus__gemm_input_call *call) {
    mimus_status status = MIMUS_OK;
    tile_backend *tile = (tile_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    const mimus__matrix *saved = call->activation != MIMUS__IDENTITY ? &call->saved : &call->d;
    mimus__grid grid = tile_grid(tile, layer->in, call->rows, layer->runs);
    mimus__matrix weight;
    MIMUS_TRY(prepare_weight(tile, layer, &call->weight, true, &weight));
    MIMUS_TRY(mimus__launch(&tile->input_gradient, grid, MIMUS_ARG_U32(call->rows),
                            MIMUS_ARG_U32(layer->in), MIMUS_ARG_U32(layer->out),
                            MIMUS_ARGS_MATRIX(&call->g), MIMUS_ARGS_MATRIX(&weight),
                            MIMUS_ARG_U32(call->activation), MIMUS_ARG_U32(call->saved_is_pre),
                            MIMUS_ARGS_MATRIX(saved), MIMUS_ARGS_MATRIX(&call->d)));
out:
    return status;
}

static mimus_status tile_weight_gradient(mimus__gemm_backend *backend,
                                         const mimus__gemm_weight_call *call) {
    tile_backend *tile = (tile_backend *)backend;
    const mimus__gemm_layer *layer = &call->layer;
    uint32_t splits = backend->splits;
    uint32_t split_rows = mimus__round_up(mimus__divide_up(call->rows, splits),
                                          is_group(tile->shape) ? GROUP_DEPTH : OUTER_BLOCK);
    mimus__grid grid = tile_grid(tile, layer->out, layer->in, layer->runs * splits);
    if (!is_group(tile->shape)) {
        /* a work-item packs its columns of G once for all of `in`: cut that only to fill the cores
         */
        uint32_t items = (uint32_t)grid.global[0] * layer->runs * splits;
        grid.global[1] = clamp(mimus__divide_up(2 * tile->compute_units, items), 1, layer->in / 16);
    }
    return mimus__launch(&tile->weight_gradient, grid, MIMUS_ARG_U32(call->rows),
                         MIMUS_ARG_U32(layer->in), MIMUS_ARG_U32(layer->out), MIMUS_ARG_U32(splits),
                         MIMUS_ARG_U32(split_rows), MIMUS_ARGS_MATRIX(&call->x),
                         MIMUS_ARGS_MATRIX(&call->g), MIMUS_ARGS_MATRIX(&call->weight),
                         MIMUS_ARGS_MATRIX(&call->bias), MIMUS_ARG_U64(call->split_stride));
}

const mimus__gemm_type mimus__gemm_tile = {
    .kind = MIMUS__GEMM_TILE,
    .name = "tile",
    .unsuited = tile_unsuited,
    .variants = tile_variants,
    .open = tile_open,
    .close = tile_close,
    .forward = tile_forward,
    .input_gradient = tile_input_gradient,
    .weight_gradient = tile_weight_gradient,
};
