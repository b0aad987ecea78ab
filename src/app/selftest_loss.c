/* Self-test: the masked log-softmax on made-up logits. */
#include "selftest.h"

#include "alloc.h"
#include "hyper.clh"
#include "loss.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 2, ROWS = 65, CAPACITY = 70, MOST_COLUMNS = 16 };

static const float smoothing[RUNS] = {0.0f, 0.1f};

typedef struct bench {
    mimus_schema schema; /* the sample's, perhaps without masks and weights */
    mimus__row_layout layout;
    uint32_t actions, width; /* A, and A padded */
    mimus__selftest_batch batch;
    float *logits;                        /* (RUNS, CAPACITY, width) */
    uint32_t *labels;                     /* (RUNS, CAPACITY, label words) */
    float *head_weights, *action_weights; /* (H), (A): of both runs */
    double *want_head_weights, *want_action_weights;
    mimus__buffer hyper, device_logits, device_labels;
    mimus__loss *loss;
    mimus__reference_network reference;
    double *want_logits, *want_gradient; /* (ROWS, A) */
    double *want;                        /* (ROWS, width) */
    float *partial;
} bench;

/* ------------------------------------------------------------------- set-up */

/* Now and then far apart, so that exponentials vanish. */
static void invent_logits(bench *b) {
    mimus__rng rng = {.seed = 3};
    for (size_t at = 0; at < (size_t)RUNS * CAPACITY; at++)
        for (uint32_t a = 0; a < b->actions; a++)
            b->logits[at * b->width + a] =
                mimus__selftest_random(&rng) * (mimus__rng_below(&rng, 8) == 0 ? 150.0f : 3.0f);
}

static void invent_weights(bench *b) {
    mimus__rng rng = {.seed = 4};
    for (uint32_t h = 0; h < b->schema.heads; h++) {
        b->head_weights[h] = 1.0f + 0.5f * mimus__selftest_random(&rng);
        b->want_head_weights[h] = (double)b->head_weights[h];
    }
    for (uint32_t a = 0; a < b->actions; a++) {
        b->action_weights[a] = 1.0f + 0.5f * mimus__selftest_random(&rng);
        b->want_action_weights[a] = (double)b->action_weights[a];
    }
}

static mimus_status make_case(bench *b, const mimus__selftest_sample *sample) {
    mimus_status status = MIMUS_OK;
    size_t all = (size_t)RUNS * CAPACITY;
    MIMUS_TRY(mimus__selftest_batch_init(&b->batch, sample, 1, ROWS));
    b->batch.reference.rows = ROWS;
    if (!b->schema.masks)
        b->batch.reference.masks = NULL;
    if (!b->schema.weights)
        b->batch.reference.weights = NULL;
    MIMUS_TRY(mimus__alloc(&b->logits, all * b->width, sizeof *b->logits));
    MIMUS_TRY(mimus__alloc(&b->labels, all * b->layout.label_words, sizeof *b->labels));
    MIMUS_TRY(mimus__alloc(&b->head_weights, b->schema.heads, sizeof *b->head_weights));
    MIMUS_TRY(mimus__alloc(&b->action_weights, b->actions, sizeof *b->action_weights));
    MIMUS_TRY(mimus__alloc(&b->want_head_weights, b->schema.heads, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&b->want_action_weights, b->actions, sizeof(double)));
    invent_logits(b);
    invent_weights(b);
    for (uint32_t i = 0; i < ROWS; i++) {
        mimus__selftest_batch_set(&b->batch, i, i);
        for (uint32_t r = 0; r < RUNS; r++)
            mimus__selftest_label_words(&b->batch, i, &b->layout,
                                        b->labels +
                                            ((size_t)r * CAPACITY + i) * b->layout.label_words);
    }
out:
    return status;
}

static mimus_status make_reference(bench *b) {
    mimus_status status = MIMUS_OK;
    uint32_t actions[MIMUS__REFERENCE_MAX_HEADS];
    for (uint32_t h = 0; h < b->schema.heads; h++)
        actions[h] = b->schema.head[h].actions;
    mimus__shape shape =
        mimus__reference_shape(1, 1, 0, NULL, MIMUS__RELU, b->schema.heads, actions);
    MIMUS_TRY(mimus__reference_init(&b->reference, &shape, b->schema.heads, actions, ROWS));
    b->reference.rules.head_weights = b->want_head_weights;
    b->reference.rules.class_weights = b->want_action_weights;
    MIMUS_TRY(mimus__alloc(&b->want_logits, (size_t)ROWS * b->actions, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&b->want_gradient, (size_t)ROWS * b->actions, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&b->want, (size_t)ROWS * b->width, sizeof(double)));
out:
    return status;
}

static mimus_status make_loss(bench *b, mimus__device *device) {
    mimus_status status = MIMUS_OK;
    size_t all = (size_t)RUNS * CAPACITY;
    mimus__hyper hyper[RUNS] = {{.label_smoothing = smoothing[0]},
                                {.label_smoothing = smoothing[1]}};
    MIMUS_TRY(mimus__selftest_upload(&b->hyper, device, hyper, sizeof hyper));
    MIMUS_TRY(mimus__selftest_upload(&b->device_logits, device, b->logits,
                                     all * b->width * sizeof *b->logits));
    MIMUS_TRY(mimus__selftest_upload(&b->device_labels, device, b->labels,
                                     all * b->layout.label_words * sizeof *b->labels));
    MIMUS_TRY(mimus__loss_new(&b->loss, device, &b->schema, &b->layout, &b->hyper, NULL, false,
                              RUNS, CAPACITY, b->width));
    for (uint32_t r = 0; r < RUNS; r++)
        MIMUS_TRY(mimus__loss_weigh(b->loss, r, b->head_weights, b->action_weights));
    MIMUS_TRY(mimus__alloc(&b->partial,
                           (size_t)RUNS * mimus__loss_groups(b->loss, ROWS) *
                               mimus__loss_columns(b->loss),
                           sizeof *b->partial));
out:
    return status;
}

static void clear(bench *b) {
    mimus__loss_free(b->loss);
    mimus__buffer_free(&b->hyper);
    mimus__buffer_free(&b->device_logits);
    mimus__buffer_free(&b->device_labels);
    mimus__reference_clear(&b->reference);
    mimus__selftest_batch_clear(&b->batch);
    free(b->logits);
    free(b->labels);
    free(b->head_weights);
    free(b->action_weights);
    free(b->want_head_weights);
    free(b->want_action_weights);
    free(b->want_logits);
    free(b->want_gradient);
    free(b->want);
    free(b->partial);
}

/* --------------------------------------------------------------- comparison */

/* What the reference makes of a run's logits; the gradient's padding columns are zero. */
static void expect(bench *b, uint32_t run, mimus__reference_result *result) {
    const float *logits = b->logits + (size_t)run * CAPACITY * b->width;
    for (size_t i = 0; i < (size_t)ROWS * b->actions; i++)
        b->want_logits[i] = (double)logits[i / b->actions * b->width + i % b->actions];
    b->reference.rules.label_smoothing = (double)smoothing[run];
    mimus__reference_loss(&b->reference, &b->batch.reference, b->want_logits, result,
                          b->want_gradient);
    for (size_t i = 0; i < (size_t)ROWS * b->actions; i++)
        b->want[i / b->actions * b->width + i % b->actions] = b->want_gradient[i];
}

static void compare_metrics(const bench *b, uint32_t run, const mimus__reference_result *result,
                            mimus__verdict *verdict) {
    uint32_t groups = mimus__loss_groups(b->loss, ROWS), columns = mimus__loss_columns(b->loss);
    const float *partial = b->partial + (size_t)run * groups * columns;
    double sum[MOST_COLUMNS] = {0};
    for (uint32_t i = 0; i < groups * columns; i++)
        sum[i % columns] += (double)partial[i];
    mimus__verdict_number(verdict, "loss", sum[0], result->loss);
    for (uint32_t h = 0; h < b->schema.heads; h++) {
        mimus__verdict_number(verdict, "log-likelihood", sum[1 + 3 * h], result->nll[h]);
        mimus__verdict_number(verdict, "hits", sum[2 + 3 * h], result->hits[h]);
        mimus__verdict_number(verdict, "labels", sum[3 + 3 * h], result->labelled[h]);
    }
}

/* The gradient comes over the logits, which are looked at first. */
static mimus_status compare(bench *b, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    mimus__reference_result result;
    size_t run_floats = (size_t)CAPACITY * b->width;
    size_t partial_bytes = (size_t)RUNS * mimus__loss_groups(b->loss, ROWS) *
                           mimus__loss_columns(b->loss) * sizeof *b->partial;
    MIMUS_TRY(mimus__buffer_read(mimus__loss_partial(b->loss), 0, b->partial, partial_bytes));
    for (uint32_t r = 0; r < RUNS; r++) {
        float *logits = b->logits + r * run_floats;
        expect(b, r, &result);
        MIMUS_TRY(mimus__buffer_read(&b->device_logits, r * run_floats * sizeof(float), logits,
                                     run_floats * sizeof(float)));
        mimus__verdict_array(verdict, "gradient", logits, b->want, (size_t)ROWS * b->width);
        compare_metrics(b, r, &result, verdict);
    }
out:
    return status;
}

mimus_status mimus__selftest_loss(mimus__device *device, const mimus__selftest_sample *sample,
                                  int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    bench b = {.schema = *sample->schema};
    b.schema.masks = b.schema.weights = variant == 1;
    b.layout = mimus__row_layout_of(&b.schema, 1, MIMUS__STORE_F32);
    b.actions = mimus__schema_actions(&b.schema);
    b.width = mimus__round_up(b.actions, 16);
    MIMUS_TRY(make_case(&b, sample));
    MIMUS_TRY(make_reference(&b));
    MIMUS_TRY(make_loss(&b, device));
    mimus__matrix logits = {.buffer = &b.device_logits, .stride = (size_t)CAPACITY * b.width};
    MIMUS_TRY(mimus__loss_run(b.loss, ROWS, ROWS, logits, &b.device_labels));
    MIMUS_TRY(compare(&b, verdict));
out:
    clear(&b);
    return status;
}
