#include "evaluate.h"

#include "gather.h"
#include "network.h"

#include "alloc.h"
#include "hyper.clh"
#include "watch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a batch, and the numbers of its widest layer: many actions make it shorter. */
enum { MOST_ROWS = 4096, MOST_NUMBERS = 1 << 24 };

/* What a member's exponentials are divided by: head by head, of the present row. */
typedef struct divisor {
    float most; /* the greatest logit */
    double all, legal;
} divisor;

typedef struct evaluation {
    const mimus__evaluation *what;
    mimus__store store;
    mimus__buffer hyper; /* one zeroed mimus__hyper: nothing is random here */
    mimus__network *network;
    mimus__gather *gather;
    mimus__metrics *metrics;
    mimus__metrics **each; /* (members), or NULL */
    uint32_t members;
    uint32_t batch;    /* rows */
    float *logits;     /* (members, capacity, padded width) */
    divisor *divisors; /* (members) */
    float *joined;     /* (batch, padded width) of several: the logarithms of their means */
    uint16_t *labels;  /* (batch, H) */
    /* where in the part the next row is */
    size_t span, block;
    uint64_t in_span;
} evaluation;

static const mimus_schema *schema_of(const evaluation *e) {
    return mimus__recording_schema(e->what->dataset->recording);
}

static const mimus__model *member_of(const evaluation *e, uint32_t member) {
    return e->what->members != NULL ? e->what->members[member] : e->what->model;
}

static uint32_t batch_rows(const mimus__shape *shape, uint32_t members, uint32_t rows) {
    uint64_t widest = 1;
    for (uint32_t l = 0; l <= shape->layers; l++)
        widest = shape->width[l] > widest ? shape->width[l] : widest;
    widest *= members;
    uint32_t most = widest < MOST_NUMBERS ? (uint32_t)(MOST_NUMBERS / widest) : 1;
    most = most < MOST_ROWS ? most : MOST_ROWS;
    return rows < most ? rows : most;
}

static mimus_status upload_members(evaluation *e) {
    mimus_status status = MIMUS_OK;
    size_t count = mimus__shape_parameters(&e->what->model->shape);
    float *parameters = NULL;
    MIMUS_TRY(mimus__alloc(&parameters, e->members * count, sizeof *parameters));
    for (uint32_t m = 0; m < e->members; m++) {
        const mimus__model *model = member_of(e, m);
        memcpy(parameters + m * count, model->parameters, count * sizeof *parameters);
        MIMUS_TRY(mimus__gather_normalise(e->gather, m, model->mean, model->scale));
    }
    MIMUS_TRY(mimus__network_set_parameters(e->network, parameters));
out:
    free(parameters);
    return status;
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
    MIMUS_TRY(
        mimus__buffer_new(&e->hyper, device, e->members * sizeof(mimus__hyper), "the settings"));
    e->batch = batch_rows(shape, e->members, e->store.heldout);
    MIMUS_TRY(mimus__network_new(&e->network, device, shape, e->members, e->batch, MIMUS__GEMM_TILE,
                                 false, false, NULL));
    MIMUS_TRY(mimus__gather_new(&e->gather, device, &e->store, NULL, &e->hyper, shape->stack,
                                mimus__network_matrix(e->network, 0), e->members,
                                e->network->capacity, e->network->layout.padded[0]));
    MIMUS_TRY(upload_members(e));
    size_t width = e->network->layout.padded[shape->layers];
    MIMUS_TRY(mimus__alloc(&e->logits, (size_t)e->members * e->network->capacity * width,
                           sizeof *e->logits));
    MIMUS_TRY(mimus__alloc(&e->divisors, e->members, sizeof *e->divisors));
    if (e->members > 1)
        MIMUS_TRY(mimus__alloc(&e->joined, e->batch * width, sizeof *e->joined));
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

static bool is_legal(const uint32_t *mask, uint32_t action) {
    return mask == NULL || (mask[action / 32] >> (action % 32) & 1) != 0;
}

static divisor divisor_of(const float *z, uint32_t actions, const uint32_t *mask, uint32_t first) {
    divisor d = {.most = z[0]};
    for (uint32_t a = 1; a < actions; a++)
        d.most = z[a] > d.most ? z[a] : d.most;
    for (uint32_t a = 0; a < actions; a++) {
        double power = exp((double)(z[a] - d.most));
        d.all += power;
        d.legal += is_legal(mask, first + a) ? power : 0;
    }
    return d;
}

/* The members' probabilities of an action, summed: over the legal actions, or over all. */
static double sum_of(const evaluation *e, const float *z, size_t stride, bool legal) {
    double sum = 0;
    for (uint32_t m = 0; m < e->members; m++) {
        const divisor *d = &e->divisors[m];
        double power = exp((double)(z[m * stride] - d->most)), by = legal ? d->legal : d->all;
        sum += by > 0 ? power / by : 0;
    }
    return sum;
}

/* A head's numbers that give, as logits, the mean of the members' probabilities: of legal actions
 * log sum p, p being over the legal ones. How a forbidden one compares with the best legal one is
 * told by the mean over all actions, so those get their distance in that. */
static void join_head(const evaluation *e, uint32_t row, uint32_t first, uint32_t actions,
                      const uint32_t *mask, float *out) {
    const size_t width = e->network->layout.padded[e->what->model->shape.layers];
    const size_t stride = e->network->capacity * width;
    const float *z = e->logits + row * width + first;
    double legal_best = 0, all_best = 0;
    for (uint32_t m = 0; m < e->members; m++)
        e->divisors[m] = divisor_of(z + m * stride, actions, mask, first);
    for (uint32_t a = 0; a < actions; a++) {
        bool legal = is_legal(mask, first + a);
        double sum = sum_of(e, z + a, stride, legal);
        out[first + a] = (float)log(fmax(sum, DBL_MIN));
        if (legal && sum > legal_best) {
            legal_best = sum;
            all_best = sum_of(e, z + a, stride, false);
        }
    }
    for (uint32_t a = 0; a < actions; a++) {
        if (!is_legal(mask, first + a) && all_best > 0)
            out[first + a] += (float)(log(legal_best) - log(all_best));
    }
}

/* A member's logits that are not finite are the metrics' to refuse. */
static void join(const evaluation *e, uint32_t row, uint32_t count, const uint32_t *masks) {
    const mimus_schema *schema = schema_of(e);
    const size_t width = e->network->layout.padded[e->what->model->shape.layers];
    const uint32_t words = mimus__schema_mask_words(schema);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = 0;
        for (uint32_t h = 0; h < schema->heads; first += schema->head[h++].actions)
            join_head(e, row + i, first, schema->head[h].actions,
                      masks != NULL ? masks + (size_t)i * words : NULL,
                      e->joined + (size_t)(row + i) * width);
    }
}

/* Count rows of one span and block, of every member first: where one overflows, so do all. */
static mimus_status count_rows(evaluation *e, uint64_t episode, uint32_t row, uint32_t count,
                               const uint32_t *masks) {
    mimus_status status = MIMUS_OK;
    const size_t width = e->network->layout.padded[e->what->model->shape.layers];
    const size_t stride = e->network->capacity * width;
    for (uint32_t m = 0; e->each != NULL && m < e->members; m++)
        MIMUS_TRY(mimus__metrics_add(e->each[m], episode, count,
                                     e->logits + m * stride + row * width, width, e->labels,
                                     masks));
    if (e->members > 1)
        join(e, row, count, masks);
    MIMUS_TRY(mimus__metrics_add(e->metrics, episode, count,
                                 (e->members > 1 ? e->joined : e->logits) + row * width, width,
                                 e->labels, masks));
out:
    return status;
}

/* Count the batch's rows, piece by piece of one span and block. */
static mimus_status count_batch(evaluation *e, uint32_t rows) {
    mimus_status status = MIMUS_OK;
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
        status = count_rows(e, span->episode, done, (uint32_t)count,
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
    size_t member_bytes = e->network->capacity * row_bytes;
    mimus__phase phase = mimus__phase_begin(watch, "eval", e->what->rows->samples);
    for (uint32_t first = 0; first < e->store.heldout; first += e->batch) {
        uint32_t rows = e->store.heldout - first < e->batch ? e->store.heldout - first : e->batch;
        MIMUS_TRY(mimus__gather_in_order(e->gather, 0, first, rows,
                                         mimus__network_padded_rows(e->network, rows)));
        MIMUS_TRY(mimus__network_forward(e->network, rows, false, 0));
        MIMUS_TRY(mimus__buffer_read(&e->network->activation[layers], 0, e->logits,
                                     (e->members - 1) * member_bytes + rows * row_bytes));
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
    free(e->joined);
    free(e->divisors);
    free(e->labels);
}

mimus_status mimus__evaluate(mimus__metrics **out, const mimus__evaluation *what,
                             const mimus_watch *watch) {
    return mimus__evaluate_members(out, NULL, what, watch);
}

mimus_status mimus__evaluate_members(mimus__metrics **out, mimus__metrics **each,
                                     const mimus__evaluation *what, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    evaluation e = {.what = what, .each = each, .members = what->members != NULL ? what->count : 1};
    *out = NULL;
    mimus__device_set_watch(what->device, watch);
    MIMUS_TRY(prepare(&e, watch));
    MIMUS_TRY(mimus__metrics_new(&e.metrics, schema_of(&e), what->confusion));
    if (what->episodes > 0)
        MIMUS_TRY(mimus__metrics_keep_episodes(e.metrics, what->episodes));
    for (uint32_t m = 0; each != NULL && m < e.members; m++)
        MIMUS_TRY(mimus__metrics_new(&each[m], schema_of(&e), 0));
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
