#include "gemm.h"

#include "alloc.h"
#include "gemm_backend.h"
#include "gemm_tuning.h"

#include <stdlib.h>
#include <string.h>

struct mimus__gemm {
    mimus__gemm_backend *backend;
    json_t *report;
    mimus__gemm_layer *layers; /* (count) padded */
    uint32_t count;
    uint32_t rows;
};

mimus__gemm_layer mimus__gemm_padded(const mimus__gemm_backend *backend, mimus__gemm_layer layer) {
    layer.in = mimus__round_up(layer.in, backend->width_pad);
    layer.out = mimus__round_up(layer.out, backend->width_pad);
    return layer;
}

/* ------------------------------------------------------------------------- life */

mimus_status mimus__gemm_new_from(mimus__gemm **out, mimus__device *device, mimus__gemm_kind kind,
                                  const mimus__gemm_problem *problem,
                                  const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    const mimus__gemm_type *wanted[MIMUS__GEMM_MAX_TYPES];
    uint32_t wanted_count = 0;
    mimus__gemm *gemm = NULL;
    *out = NULL;
    for (uint32_t i = 0; i < type_count && wanted_count < MIMUS__GEMM_MAX_TYPES; i++) {
        if (kind == MIMUS__GEMM_AUTO || types[i]->kind == kind)
            wanted[wanted_count++] = types[i];
    }
    MIMUS_TRY(mimus__alloc(&gemm, 1, sizeof *gemm));
    MIMUS_TRY(
        mimus__gemm_tune(&gemm->backend, &gemm->report, device, problem, wanted, wanted_count));
    MIMUS_TRY(mimus__alloc(&gemm->layers, problem->count, sizeof *gemm->layers));
    for (uint32_t i = 0; i < problem->count; i++)
        gemm->layers[i] = mimus__gemm_padded(gemm->backend, problem->layers[i]);
    gemm->count = problem->count;
    gemm->rows = mimus__round_up(problem->rows, gemm->backend->row_pad);
    *out = gemm;
    gemm = NULL;
out:
    mimus__gemm_free(gemm);
    return status;
}

mimus_status mimus__gemm_new(mimus__gemm **out, mimus__device *device, mimus__gemm_kind kind,
                             const mimus__gemm_layer *layers, uint32_t count, uint32_t rows) {
    static const mimus__gemm_type *const types[] = {&mimus__gemm_tile, &mimus__gemm_clblast};
    const mimus__gemm_problem problem = {layers, count, rows};
    return mimus__gemm_new_from(out, device, kind, &problem, types, 2);
}

void mimus__gemm_free(mimus__gemm *gemm) {
    if (gemm == NULL)
        return;
    if (gemm->backend != NULL)
        gemm->backend->type->close(gemm->backend);
    json_decref(gemm->report);
    free(gemm->layers);
    free(gemm);
}

/* ------------------------------------------------------------------------ facts */

mimus__gemm_kind mimus__gemm_chosen(const mimus__gemm *gemm) {
    return gemm->backend->type->kind;
}

json_t *mimus__gemm_report(const mimus__gemm *gemm) {
    return json_incref(gemm->report);
}

uint32_t mimus__gemm_width_pad(const mimus__gemm *gemm) {
    return gemm->backend->width_pad;
}

uint32_t mimus__gemm_row_pad(const mimus__gemm *gemm) {
    return gemm->backend->row_pad;
}

uint32_t mimus__gemm_splits(const mimus__gemm *gemm) {
    return gemm->backend->splits;
}

bool mimus__gemm_batches(const mimus__gemm *gemm) {
    return gemm->backend->batches;
}

bool mimus__gemm_packs(const mimus__gemm *gemm) {
    return gemm->backend->packs;
}

/* ------------------------------------------------------------------------ checks */

static mimus_status check_layer(const mimus__gemm *gemm, const mimus__gemm_layer *layer,
                                uint32_t rows) {
    if (rows == 0 || rows > gemm->rows || rows % gemm->backend->row_pad != 0)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "a product of %u rows: expected a multiple of %u, "
                           "at most %u",
                           (unsigned)rows, (unsigned)gemm->backend->row_pad, (unsigned)gemm->rows);
    for (uint32_t i = 0; i < gemm->count; i++) {
        const mimus__gemm_layer *known = &gemm->layers[i];
        if (layer->in == known->in && layer->out == known->out && layer->runs >= 1 &&
            layer->runs <= known->runs)
            return MIMUS_OK;
    }
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%u runs of a layer of %u x %u: prepared for no such",
                       (unsigned)layer->runs, (unsigned)layer->in, (unsigned)layer->out);
}

/* `floats` a run, `extra` floats from the first to the last split of the rows. */
static mimus_status check_matrix(const char *what, const mimus__gemm_layer *layer,
                                 const mimus__matrix *matrix, size_t floats, size_t extra) {
    if (matrix->offset % MIMUS__MATRIX_ALIGN != 0 || matrix->stride < floats)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s at offset %zu, stride %zu: expected a multiple of %d, and %zu or "
                           "more",
                           what, matrix->offset, matrix->stride, MIMUS__MATRIX_ALIGN, floats);
    size_t end = matrix->offset + (layer->runs - 1) * matrix->stride + floats + extra;
    size_t room = matrix->buffer != NULL ? matrix->buffer->bytes / sizeof(float) : 0;
    if (end > room)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%s ends at float %zu of a buffer of %zu", what, end,
                           room);
    return MIMUS_OK;
}

/* X may be one for all runs. */
static mimus_status check_input(const mimus__gemm_layer *layer, const mimus__matrix *x,
                                size_t floats) {
    mimus__gemm_layer one = *layer;
    mimus__matrix unshared = *x;
    if (x->stride == 0) {
        one.runs = 1;
        unshared.stride = floats;
    }
    return check_matrix("X", &one, &unshared, floats, 0);
}

/* ---------------------------------------------------------------------- products */

mimus_status mimus__gemm_forward(mimus__gemm *gemm, const mimus__gemm_layer *layer, uint32_t rows,
                                 mimus__matrix x, mimus__matrix weight, mimus__matrix bias,
                                 mimus__activation activation, mimus__matrix y,
                                 const mimus__matrix *pre) {
    mimus_status status = MIMUS_OK;
    size_t in = layer->in, width = layer->out;
    mimus__gemm_forward_call call = {*layer, rows, x, weight, bias, activation, y, pre};
    MIMUS_TRY(check_layer(gemm, layer, rows));
    MIMUS_TRY(check_input(layer, &x, rows * in));
    MIMUS_TRY(check_matrix("W", layer, &weight, in * width, 0));
    MIMUS_TRY(check_matrix("b", layer, &bias, width, 0));
    MIMUS_TRY(check_matrix("Y", layer, &y, rows * width, 0));
    if (pre != NULL)
        MIMUS_TRY(check_matrix("X W + b", layer, pre, rows * width, 0));
    MIMUS_TRY(gemm->backend->type->forward(gemm->backend, &call));
out:
    return status;
}

mimus_status mimus__gemm_input_gradient(mimus__gemm *gemm, const mimus__gemm_layer *layer,
                                        uint32_t rows, mimus__matrix g, mimus__matrix weight,
                                        mimus__activation activation, mimus__matrix saved,
                                        bool saved_is_pre, mimus__matrix d) {
    mimus_status status = MIMUS_OK;
    size_t in = layer->in, width = layer->out;
    mimus__gemm_input_call call = {*layer, rows, g, weight, activation, saved, saved_is_pre, d};
    MIMUS_TRY(check_layer(gemm, layer, rows));
    MIMUS_TRY(check_matrix("G", layer, &g, rows * width, 0));
    MIMUS_TRY(check_matrix("W", layer, &weight, in * width, 0));
    MIMUS_TRY(check_matrix("D", layer, &d, rows * in, 0));
    if (activation != MIMUS__IDENTITY)
        MIMUS_TRY(check_matrix("the saved activations", layer, &saved, rows * in, 0));
    if (activation == MIMUS__GELU && !saved_is_pre) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "gelu's derivative needs X W + b, not its output");
        goto out;
    }
    MIMUS_TRY(gemm->backend->type->input_gradient(gemm->backend, &call));
out:
    return status;
}

mimus_status mimus__gemm_weight_gradient(mimus__gemm *gemm, const mimus__gemm_layer *layer,
                                         uint32_t rows, mimus__matrix x, mimus__matrix g,
                                         mimus__matrix weight, mimus__matrix bias,
                                         size_t split_stride) {
    mimus_status status = MIMUS_OK;
    size_t in = layer->in, width = layer->out;
    size_t extra = (gemm->backend->splits - 1) * split_stride;
    mimus__gemm_weight_call call = {*layer, rows, x, g, weight, bias, split_stride};
    MIMUS_TRY(check_layer(gemm, layer, rows));
    MIMUS_TRY(check_input(layer, &x, rows * in));
    MIMUS_TRY(check_matrix("G", layer, &g, rows * width, 0));
    MIMUS_TRY(check_matrix("V", layer, &weight, in * width, extra));
    MIMUS_TRY(check_matrix("c", layer, &bias, width, extra));
    MIMUS_TRY(gemm->backend->type->weight_gradient(gemm->backend, &call));
out:
    return status;
}
