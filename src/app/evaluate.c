#include "evaluate.h"

#include "gather.h"
#include "network.h"

#include "alloc.h"
#include "hyper.clh"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a batch, and the numbers of its widest layer: many actions make it shorter. */
enum { MOST_ROWS = 4096, MOST_NUMBERS = 1 << 24 };

typedef struct evaluation {
    const mimus__evaluation *what;
    mimus__store store;
    mimus__buffer hyper; /* one zeroed mimus__hyper: nothing is random here */
    mimus__network *network;
    mimus__gather *gather;
    mimus__metrics *metrics;
    uint32_t batch;   /* rows */
    float *logits;    /* (batch, padded width) */
    uint16_t *labels; /* (batch, H) */
    /* where in the part the next row is */
    size_t span, block;
    uint64_t in_span;
} evaluation;

static const mimus_schema *schema_of(const evaluation *e) {
    return mimus__recording_schema(e->what->dataset->recording);
}

static uint32_t batch_rows(const mimus__shape *shape, uint32_t rows) {
    uint32_t widest = 1;
    for (uint32_t l = 0; l <= shape->layers; l++)
        widest = shape->width[l] > widest ? shape->width[l] : widest;
    uint32_t most = widest < MOST_NUMBERS ? MOST_NUMBERS / widest : 1;
    most = most < MOST_ROWS ? most : MOST_ROWS;
    return rows < most ? rows : most;
}

static mimus_status prepare(evaluation *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus__model *model = e->what->model;
    const mimus__shape *shape = &model->shape;
    mimus__device *device = e->what->device;
    const mimus__split split = {.heldout = *e->what->rows}; /* borrowed */
    const mimus__store_recipe recipe = {.form = MIMUS__STORE_F32, .stack = shape->stack};
    MIMUS_TRY(mimus__store_new(&e->store, device, e->what->dataset->recording,
                               &e->what->dataset->audit, &split, &recipe, watch));
    MIMUS_TRY(mimus__buffer_new(&e->hyper, device, sizeof(mimus__hyper), "the settings"));
    e->batch = batch_rows(shape, e->store.heldout);
    MIMUS_TRY(
        mimus__network_new(&e->network, device, shape, 1, e->batch, MIMUS__GEMM_TILE, false, NULL));
    MIMUS_TRY(mimus__network_set_parameters(e->network, model->parameters));
    MIMUS_TRY(mimus__gather_new(&e->gather, device, &e->store, &e->hyper, shape->stack,
                                mimus__network_matrix(e->network, 0), 1, e->network->capacity,
                                e->network->layout.padded[0]));
    MIMUS_TRY(mimus__gather_normalise(e->gather, 0, model->mean, model->scale));
    MIMUS_TRY(mimus__alloc(&e->logits, (size_t)e->batch * e->network->layout.padded[shape->layers],
                           sizeof *e->logits));
    MIMUS_TRY(mimus__alloc(&e->labels, (size_t)e->batch * model->schema->heads, sizeof *e->labels));
out:
    return status;
}

/* The block that holds recording row `row`; rows only go up. */
static mimus_status block_of(evaluation *e, uint64_t row, mimus__block *block) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__recording_block(e->what->dataset->recording, e->block, block));
    while (row >= block->first + block->samples) {
        mimus__recording_leave(e->what->dataset->recording, e->block);
        MIMUS_TRY(mimus__recording_block(e->what->dataset->recording, ++e->block, block));
    }
out:
    return status;
}

/* Labels as training takes them. */
static void judge_labels(const evaluation *e, const mimus__block *block, uint32_t first,
                         uint32_t count) {
    const mimus_schema *schema = schema_of(e);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t action = 0;
        for (uint32_t h = 0; h < schema->heads; h++) {
            e->labels[(size_t)i * schema->heads + h] =
                mimus__audit_label(block, schema, first + i, h, action);
            action += schema->head[h].actions;
        }
    }
}

static float farthest(const float *values, size_t count) {
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return most;
}

/* A finite network whose output is not: its numbers are too large, or the senses are. */
static mimus_status overflowed(const evaluation *e) {
    const mimus__shape *shape = &e->what->model->shape;
    uint32_t worst = 0;
    float most = -1;
    for (uint32_t l = 0; l < shape->layers; l++) {
        size_t first = mimus__shape_weight_offset(shape, l);
        size_t end = mimus__shape_bias_offset(shape, l) + shape->width[l + 1];
        float largest = farthest(e->what->model->parameters + first, end - first);
        if (largest > most) {
            most = largest;
            worst = l;
        }
    }
    return mimus__fail_prefix(
        MIMUS_ERR_DATA,
        "%s: the network overflows: its training diverged (the largest "
        "number, %.3g, is in the tensors layers.%u), or the senses are far from those "
        "that it learned from",
        e->what->file, (double)most, worst);
}

/* Count the batch's rows, piece by piece of one span and block. */
static mimus_status count_batch(evaluation *e, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    size_t width = e->network->layout.padded[e->what->model->shape.layers];
    uint32_t mask_words = mimus__schema_mask_words(schema_of(e));
    for (uint32_t done = 0; done < rows;) {
        const mimus__span *span = &e->what->rows->span[e->span];
        uint64_t row = span->first + e->in_span;
        mimus__block block;
        MIMUS_TRY(block_of(e, row, &block));
        uint32_t first = (uint32_t)(row - block.first);
        uint64_t count = rows - done;
        if (count > span->count - e->in_span)
            count = span->count - e->in_span;
        if (count > block.samples - first)
            count = block.samples - first;
        judge_labels(e, &block, first, (uint32_t)count);
        status = mimus__metrics_add(
            e->metrics, span->episode, (uint32_t)count, e->logits + done * width, width, e->labels,
            block.masks != NULL ? block.masks + (size_t)first * mask_words : NULL);
        if (status == MIMUS_ERR_DATA)
            status = overflowed(e);
        if (status != MIMUS_OK)
            goto out;
        done += (uint32_t)count;
        e->in_span += count;
        if (e->in_span == span->count) {
            e->span++;
            e->in_span = 0;
        }
    }
out:
    return status;
}

static mimus_status run_batches(evaluation *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    uint32_t layers = e->what->model->shape.layers;
    size_t row_bytes = e->network->layout.padded[layers] * sizeof(float);
    mimus__phase phase = mimus__phase_begin(watch, "eval", e->what->rows->samples);
    for (uint32_t first = 0; first < e->store.heldout; first += e->batch) {
        uint32_t rows = e->store.heldout - first < e->batch ? e->store.heldout - first : e->batch;
        MIMUS_TRY(mimus__gather_in_order(e->gather, 0, first, rows,
                                         mimus__network_padded_rows(e->network, rows)));
        MIMUS_TRY(mimus__network_forward(e->network, rows, false, 0));
        MIMUS_TRY(
            mimus__buffer_read(&e->network->activation[layers], 0, e->logits, rows * row_bytes));
        MIMUS_TRY(count_batch(e, rows));
        MIMUS_TRY(mimus__phase_step(&phase, (uint64_t)first + rows));
    }
out:
    return status;
}

static void evaluation_clear(evaluation *e) {
    (void)mimus__device_finish(e->what->device);
    mimus__device_set_watch(e->what->device, NULL);
    mimus__metrics_free(e->metrics);
    mimus__gather_free(e->gather);
    mimus__network_free(e->network);
    mimus__buffer_free(&e->hyper);
    mimus__store_free(&e->store);
    free(e->logits);
    free(e->labels);
}

mimus_status mimus__evaluate(mimus__metrics **out, const mimus__evaluation *what,
                             const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    evaluation e = {.what = what};
    *out = NULL;
    mimus__device_set_watch(what->device, watch);
    MIMUS_TRY(prepare(&e, watch));
    MIMUS_TRY(mimus__metrics_new(&e.metrics, schema_of(&e), what->confusion));
    if (what->episodes > 0)
        MIMUS_TRY(mimus__metrics_keep_episodes(e.metrics, what->episodes));
    MIMUS_TRY(run_batches(&e, watch));
    *out = e.metrics;
    e.metrics = NULL;
out:
    evaluation_clear(&e);
    return status;
}

bool mimus__evaluation_trained_on(const mimus__evaluation *what) {
    const char *trained_on = json_string_value(json_object_get(what->model->facts, "recording"));
    return trained_on != NULL &&
           strcmp(trained_on, mimus__recording_fingerprint(what->dataset->recording)) == 0;
}

mimus_status mimus__evaluation_json(json_t **out, const mimus__evaluation *what,
                                    const mimus__metrics *metrics, const char *model,
                                    const char *part) {
    mimus_status status = MIMUS_OK;
    json_t *object = json_object(), *judged = NULL;
    const json_t *epoch = json_object_get(what->model->facts, "epoch"); /* others may not keep it */
    MIMUS_TRY(mimus__json_set(object, "model", mimus__json_lossy_string(model)));
    MIMUS_TRY(
        mimus__json_set(object, "epoch", epoch != NULL ? json_deep_copy(epoch) : json_null()));
    MIMUS_TRY(mimus__json_set(object, "part", json_string(part)));
    MIMUS_TRY(
        mimus__json_set(object, "trained_on", json_boolean(mimus__evaluation_trained_on(what))));
    MIMUS_TRY(mimus__json_set(object, "samples", json_integer((json_int_t)what->rows->samples)));
    MIMUS_TRY(mimus__json_set(object, "episodes", json_integer((json_int_t)what->rows->episodes)));
    MIMUS_TRY(
        mimus__json_set(object, "device", json_string(mimus__device_get_info(what->device)->name)));
    MIMUS_TRY(mimus__metrics_json(&judged, metrics));
    if (json_object_update_missing(object, judged) != 0) {
        status = mimus__fail(MIMUS_ERR_MEMORY, "cannot add to a JSON object");
        goto out;
    }
    *out = json_incref(object);
out:
    json_decref(judged);
    json_decref(object);
    return status;
}
