/* mimus_eval: a model judged on a recording, its logits computed on the device, the judgement in
 * double precision on the host. */
#include "dataset.h"
#include "gather.h"
#include "metrics.h"
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
    char *file; /* the model's */
    mimus__model *model;
    mimus__dataset dataset;
    const mimus__rows *rows; /* the part that is judged */
    mimus__device *device;
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

static mimus_status open_model(evaluation *e, const char *path) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__model_find(&e->file, path, "best"));
    MIMUS_TRY(mimus__model_load(&e->model, e->file));
out:
    return status;
}

/* Whether this is the recording that the model was trained on. */
static bool is_trained_on(const evaluation *e) {
    const char *trained_on = json_string_value(json_object_get(e->model->facts, "recording"));
    return trained_on != NULL &&
           strcmp(trained_on, mimus__recording_fingerprint(e->dataset.recording)) == 0;
}

/* Find the rows of the part; the run's own settings say how they were split. */
static mimus_status choose_part(evaluation *e, mimus_part part) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    mimus__split *split = &e->dataset.split;
    if (part == MIMUS_PART_ALL) {
        MIMUS_TRY(mimus__rows_all(&split->heldout, e->dataset.recording, &e->dataset.audit));
        e->rows = &split->heldout;
        goto out;
    }
    const char *trained_on = json_string_value(json_object_get(e->model->facts, "recording"));
    if (!is_trained_on(e)) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "the model was trained on recording %s, and this is recording %s: "
                             "only the recording of the training has a held-out and a training "
                             "part; judge it whole (--part all)",
                             trained_on != NULL ? trained_on : "(not known)",
                             mimus__recording_fingerprint(e->dataset.recording));
        goto out;
    }
    MIMUS_TRY(mimus_config_new(&config));
    MIMUS_TRY(mimus__config_from_json(config, e->model->config, "the model's settings"));
    MIMUS_TRY(mimus__split_new(split, e->dataset.recording, &e->dataset.audit, config->heldout,
                               config->seed));
    /* the store takes both parts and reads the second: make the wanted one the second */
    if (part == MIMUS_PART_TRAINING) {
        mimus__rows training = split->training;
        split->training = split->heldout;
        split->heldout = training;
    }
    mimus__rows_clear(&split->training);
    e->rows = &split->heldout;
out:
    mimus_config_free(config);
    return status;
}

static uint32_t batch_rows(const mimus__shape *shape, uint32_t rows) {
    uint32_t widest = 1;
    for (uint32_t l = 0; l <= shape->layers; l++)
        widest = shape->width[l] > widest ? shape->width[l] : widest;
    uint32_t most = widest < MOST_NUMBERS ? MOST_NUMBERS / widest : 1;
    most = most < MOST_ROWS ? most : MOST_ROWS;
    return rows < most ? rows : most;
}

static mimus_status prepare_device(evaluation *e, const char *selector, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &e->model->shape;
    const mimus__store_recipe recipe = {.form = MIMUS__STORE_F32, .stack = shape->stack};
    MIMUS_TRY(mimus__device_open(&e->device, selector, 0));
    mimus__device_set_watch(e->device, watch);
    MIMUS_TRY(mimus__store_new(&e->store, e->device, e->dataset.recording, &e->dataset.audit,
                               &e->dataset.split, &recipe, watch));
    MIMUS_TRY(mimus__buffer_new(&e->hyper, e->device, sizeof(mimus__hyper), "the settings"));
    e->batch = batch_rows(shape, e->store.heldout);
    MIMUS_TRY(mimus__network_new(&e->network, e->device, shape, 1, e->batch, MIMUS__GEMM_TILE,
                                 false, NULL));
    MIMUS_TRY(mimus__network_set_parameters(e->network, e->model->parameters));
    MIMUS_TRY(mimus__gather_new(&e->gather, e->device, &e->store, &e->hyper, shape->stack,
                                mimus__network_matrix(e->network, 0), 1, e->network->capacity,
                                e->network->layout.padded[0]));
    MIMUS_TRY(mimus__gather_normalise(e->gather, 0, e->model->mean, e->model->scale));
    MIMUS_TRY(mimus__alloc(&e->logits, (size_t)e->batch * e->network->layout.padded[shape->layers],
                           sizeof *e->logits));
    MIMUS_TRY(
        mimus__alloc(&e->labels, (size_t)e->batch * e->model->schema->heads, sizeof *e->labels));
out:
    return status;
}

/* The block that holds recording row `row`; rows only go up. */
static mimus_status block_of(evaluation *e, uint64_t row, mimus__block *block) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__recording_block(e->dataset.recording, e->block, block));
    while (row >= block->first + block->samples) {
        mimus__recording_leave(e->dataset.recording, e->block);
        MIMUS_TRY(mimus__recording_block(e->dataset.recording, ++e->block, block));
    }
out:
    return status;
}

/* Labels as training takes them. */
static void judge_labels(const evaluation *e, const mimus__block *block, uint32_t first,
                         uint32_t count) {
    const mimus_schema *schema = mimus__recording_schema(e->dataset.recording);
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
    const mimus__shape *shape = &e->model->shape;
    uint32_t worst = 0;
    float most = -1;
    for (uint32_t l = 0; l < shape->layers; l++) {
        size_t first = mimus__shape_weight_offset(shape, l);
        size_t end = mimus__shape_bias_offset(shape, l) + shape->width[l + 1];
        float largest = farthest(e->model->parameters + first, end - first);
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
        e->file, (double)most, worst);
}

/* Count the batch's rows, piece by piece of one span and block. */
static mimus_status count_batch(evaluation *e, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    size_t width = e->network->layout.padded[e->model->shape.layers];
    uint32_t mask_words = mimus__schema_mask_words(mimus__recording_schema(e->dataset.recording));
    for (uint32_t done = 0; done < rows;) {
        const mimus__span *span = &e->rows->span[e->span];
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
    uint32_t layers = e->model->shape.layers;
    size_t row_bytes = e->network->layout.padded[layers] * sizeof(float);
    mimus__phase phase = mimus__phase_begin(watch, "eval", e->rows->samples);
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

static mimus_status result_json(json_t **out, const evaluation *e, const char *model,
                                mimus_part part) {
    mimus_status status = MIMUS_OK;
    static const char *const names[] = {"all", "held-out", "training"};
    json_t *object = json_object(), *metrics = NULL;
    const json_t *epoch = json_object_get(e->model->facts, "epoch"); /* others may not keep it */
    MIMUS_TRY(mimus__json_set(object, "model", mimus__json_lossy_string(model)));
    MIMUS_TRY(
        mimus__json_set(object, "epoch", epoch != NULL ? json_deep_copy(epoch) : json_null()));
    MIMUS_TRY(mimus__json_set(object, "part", json_string(names[part])));
    MIMUS_TRY(mimus__json_set(object, "trained_on", json_boolean(is_trained_on(e))));
    MIMUS_TRY(mimus__json_set(object, "samples", json_integer((json_int_t)e->rows->samples)));
    MIMUS_TRY(mimus__json_set(object, "episodes", json_integer((json_int_t)e->rows->episodes)));
    MIMUS_TRY(
        mimus__json_set(object, "device", json_string(mimus__device_get_info(e->device)->name)));
    MIMUS_TRY(mimus__metrics_json(&metrics, e->metrics));
    if (json_object_update_missing(object, metrics) != 0) {
        status = mimus__fail(MIMUS_ERR_MEMORY, "cannot add to a JSON object");
        goto out;
    }
    *out = json_incref(object);
out:
    json_decref(metrics);
    json_decref(object);
    return status;
}

static void evaluation_clear(evaluation *e) {
    if (e->device != NULL)
        (void)mimus__device_finish(e->device);
    mimus__metrics_free(e->metrics);
    mimus__gather_free(e->gather);
    mimus__network_free(e->network);
    mimus__buffer_free(&e->hyper);
    mimus__store_free(&e->store);
    mimus__device_close(e->device);
    mimus__dataset_clear(&e->dataset);
    mimus__model_free(e->model);
    free(e->file);
    free(e->logits);
    free(e->labels);
}

mimus_status mimus_eval(const char *model, const mimus_source *source, mimus_part part,
                        const char *device, bool confusion, const mimus_watch *watch, char **json) {
    mimus_status status = MIMUS_OK;
    evaluation e = {0};
    json_t *result = NULL;
    MIMUS_TRY(open_model(&e, model));
    MIMUS_TRY(mimus__dataset_open(&e.dataset, source, e.model->schema, watch));
    MIMUS_TRY(mimus__schema_match(e.model->schema, model,
                                  mimus__recording_schema(e.dataset.recording), source->paths[0],
                                  false));
    MIMUS_TRY(choose_part(&e, part));
    if (e.rows->samples == 0) {
        status = mimus__fail(MIMUS_ERR_DATA, "%s: nothing to judge: the part has no samples",
                             source->paths[0]);
        goto out;
    }
    MIMUS_TRY(prepare_device(&e, device, watch));
    MIMUS_TRY(
        mimus__metrics_new(&e.metrics, mimus__recording_schema(e.dataset.recording), confusion));
    MIMUS_TRY(run_batches(&e, watch));
    MIMUS_TRY(result_json(&result, &e, model, part));
    MIMUS_TRY(mimus__json_text(json, result, JSON_INDENT(2)));
out:
    json_decref(result);
    evaluation_clear(&e);
    return status;
}
