/* Self-test: dropout, the optimizers, and whole steps of two runs. */
#include "selftest.h"

#include "alloc.h"
#include "block_plan.h"
#include "hyper.clh"
#include "optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Batches of 130 rows make the weight gradient come in slices; the last of an epoch is short. */
enum {
    RUNS = 2,
    STACK = 3,
    BATCH = 130,
    MOST_STEPS = 10,
    MOST_SENSES = 16,
    MOST_COLUMNS = 16,
    MOST_ACTIONS = 64
};

/* Where the optimizer's gradient is not a number: the run's step is skipped. */
enum { BAD_RUN = 1, BAD_STEP = 1, BAD_PARAMETER = 7 };

/* Metrics and MIMUS__TABLE_EXTRA columns of each step. */
typedef double table[MOST_STEPS][MOST_COLUMNS];

/* A trainer's parts by hand, and the reference's runs beside them. */
typedef struct bench {
    mimus__device *device;
    const mimus__selftest_sample *sample;
    mimus_config *config;
    uint32_t steps;
    bool invents; /* gradients that no network made */
    bool blocks;  /* by the block plan */
    mimus__shape shape;
    mimus__hyper hyper[RUNS];
    float *parameters; /* (RUNS, P) to start with */
    mimus__store store;
    mimus__buffer device_hyper, heldout; /* heldout (RUNS, 1, columns) */
    mimus__network *network;
    mimus__block_plan *block; /* the block plan; then no gather and no loss */
    mimus__gather *gather;
    mimus__loss *loss;
    mimus__optimizer *optimizer;
    double head_weights[MOST_COLUMNS], action_weights[MOST_ACTIONS];
    mimus__reference_network reference[RUNS];
    mimus__selftest_batch batch;
    float *image;     /* (splits, total): the gradients' */
    float *numbers;   /* (P), or a layer's outputs */
    double *gradient; /* (P) */
    double *logits;   /* (BATCH, A) */
    table *want;      /* (RUNS) */
    double want_heldout[RUNS][MOST_COLUMNS];
} bench;

/* ------------------------------------------------------------------- set-up */

static mimus_status configure(bench *b) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = b->config;
    config->hidden_layers = 2;
    config->hidden[0] = 24;
    config->hidden[1] = 17;
    config->stack = STACK;
    config->gemm = MIMUS__GEMM_TILE;
    MIMUS_TRY(mimus__config_shape(&b->shape, config, b->sample->schema));
    for (uint32_t r = 0; r < RUNS; r++)
        b->hyper[r] = (mimus__hyper){.seed_low = 11 + r,
                                     .seed_high = r,
                                     .order_low = 11 + r,
                                     .order_high = r,
                                     .lr = (float)config->lr * (float)(1 + r),
                                     .weight_decay = (float)config->weight_decay,
                                     .clip = (float)config->clip,
                                     .label_smoothing = 0.1f * (float)r,
                                     .dropout = (float)config->dropout};
out:
    return status;
}

static mimus_status make_phases(bench *b) {
    mimus_status status = MIMUS_OK;
    const mimus__selftest_sample *sample = b->sample;
    MIMUS_TRY(mimus__network_new(&b->network, b->device, &b->shape, RUNS, BATCH, b->config->gemm,
                                 true, false, b->config->dropout > 0 ? &b->device_hyper : NULL));
    const mimus__layout *layout = &b->network->layout;
    MIMUS_TRY(mimus__gather_new(&b->gather, b->device, &b->store, NULL, &b->device_hyper, STACK,
                                mimus__network_matrix(b->network, 0), RUNS, b->network->capacity,
                                layout->padded[0]));
    MIMUS_TRY(mimus__loss_new(&b->loss, b->device, sample->schema, &b->store.layout,
                              &b->device_hyper, NULL, false, RUNS, b->network->capacity,
                              layout->padded[b->shape.layers]));
out:
    return status;
}

static mimus_status make_block(bench *b) {
    mimus_status status = MIMUS_OK;
    bool dropout = b->config->dropout > 0;
    MIMUS_TRY(mimus__network_new_numbers(&b->network, b->device, &b->shape, RUNS, dropout,
                                         mimus__block_plan_slices(b->device, BATCH)));
    const mimus__block_source source = {.store = &b->store, .hyper = &b->device_hyper};
    MIMUS_TRY(mimus__block_plan_new(&b->block, b->network, &source, b->sample->schema, dropout,
                                    BATCH, 0));
out:
    return status;
}

static mimus_status make_parts(bench *b) {
    mimus_status status = MIMUS_OK;
    const mimus__selftest_sample *sample = b->sample;
    const mimus__store_recipe recipe = {.form = MIMUS__STORE_F32, .stack = STACK};
    MIMUS_TRY(mimus__store_new(&b->store, b->device, sample->recording, &sample->audit,
                               &sample->split, &recipe, NULL));
    MIMUS_TRY(mimus__selftest_upload(&b->device_hyper, b->device, b->hyper, sizeof b->hyper));
    MIMUS_TRY(b->blocks ? make_block(b) : make_phases(b));
    size_t columns = mimus__metric_columns(sample->schema->heads);
    MIMUS_TRY(mimus__optimizer_new(&b->optimizer, b->network,
                                   b->block != NULL ? mimus__block_plan_panels(b->block) : NULL,
                                   b->config, &b->device_hyper, (uint32_t)columns, b->steps));
    MIMUS_TRY(
        mimus__buffer_new(&b->heldout, b->device, RUNS * columns * sizeof(float), "the self-test"));
out:
    return status;
}

static mimus_status weigh(bench *b) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.seed = 6};
    float heads[MOST_COLUMNS], actions[MOST_ACTIONS];
    for (uint32_t h = 0; h < b->sample->schema->heads; h++)
        b->head_weights[h] = (double)(heads[h] = 1.0f + 0.5f * mimus__selftest_random(&rng));
    for (uint32_t a = 0; a < b->shape.width[b->shape.layers]; a++)
        b->action_weights[a] = (double)(actions[a] = 1.0f + 0.5f * mimus__selftest_random(&rng));
    for (uint32_t r = 0; r < RUNS; r++)
        MIMUS_TRY(b->block != NULL ? mimus__block_plan_weigh(b->block, r, heads, actions)
                                   : mimus__loss_weigh(b->loss, r, heads, actions));
out:
    return status;
}

static mimus_status normalise(bench *b) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.seed = 8};
    float mean[MOST_SENSES], scale[MOST_SENSES];
    for (uint32_t r = 0; r < RUNS; r++) {
        for (uint32_t s = 0; s < b->shape.senses; s++) {
            mean[s] = mimus__selftest_random(&rng);
            scale[s] = 1.5f + mimus__selftest_random(&rng);
        }
        MIMUS_TRY(b->block != NULL ? mimus__block_plan_normalise(b->block, r, mean, scale)
                                   : mimus__gather_normalise(b->gather, r, mean, scale));
        mimus__reference_set_normalisation(&b->reference[r], mean, scale);
    }
out:
    return status;
}

static mimus_status make_reference(bench *b, uint32_t run) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = b->sample->schema;
    const mimus__hyper *hyper = &b->hyper[run];
    mimus__reference_network *reference = &b->reference[run];
    uint32_t actions[MIMUS__REFERENCE_MAX_HEADS];
    for (uint32_t h = 0; h < schema->heads; h++)
        actions[h] = schema->head[h].actions;
    MIMUS_TRY(mimus__reference_init(reference, &b->shape, schema->heads, actions, BATCH));
    mimus__reference_set_parameters(reference, b->parameters + run * reference->parameters);
    reference->seed = (uint64_t)hyper->seed_high << 32 | hyper->seed_low;
    reference->rules = (mimus__reference_rules){.optimizer = b->config->optimizer,
                                                .lr = (double)hyper->lr,
                                                .beta1 = (double)(float)b->config->beta1,
                                                .beta2 = (double)(float)b->config->beta2,
                                                .epsilon = (double)(float)b->config->epsilon,
                                                .weight_decay = (double)hyper->weight_decay,
                                                .clip = (double)hyper->clip,
                                                .label_smoothing = (double)hyper->label_smoothing,
                                                .dropout = (double)hyper->dropout,
                                                .head_weights = b->head_weights,
                                                .class_weights = b->action_weights};
out:
    return status;
}

static size_t largest_layer(const mimus__network *network) {
    size_t largest = 0;
    for (uint32_t l = 0; l <= network->layout.shape.layers; l++) {
        size_t floats = (size_t)network->capacity * network->layout.padded[l];
        largest = largest > floats ? largest : floats;
    }
    return largest;
}

static mimus_status make_arrays(bench *b) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &b->network->layout;
    size_t count = mimus__shape_parameters(&b->shape), layer = largest_layer(b->network);
    MIMUS_TRY(mimus__alloc(&b->image, layout->total * b->network->splits, sizeof *b->image));
    MIMUS_TRY(mimus__alloc(&b->numbers, layer > count ? layer : count, sizeof *b->numbers));
    MIMUS_TRY(mimus__alloc(&b->gradient, count, sizeof *b->gradient));
    MIMUS_TRY(mimus__alloc(&b->logits, (size_t)BATCH * b->shape.width[b->shape.layers],
                           sizeof *b->logits));
    MIMUS_TRY(mimus__alloc(&b->want, RUNS, sizeof *b->want));
    MIMUS_TRY(mimus__selftest_batch_init(&b->batch, b->sample, STACK, BATCH));
out:
    return status;
}

/* `b` comes with device, sample, config, steps and invents. */
static mimus_status open_bench(bench *b) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(configure(b));
    size_t count = mimus__shape_parameters(&b->shape);
    MIMUS_TRY(mimus__alloc(&b->parameters, RUNS * count, sizeof *b->parameters));
    for (uint32_t r = 0; r < RUNS; r++)
        mimus__model_initialise(&b->shape, b->parameters + r * count, r, 0);
    MIMUS_TRY(make_parts(b));
    MIMUS_TRY(make_arrays(b));
    MIMUS_TRY(mimus__network_set_parameters(b->network, b->parameters));
    MIMUS_TRY(mimus__optimizer_write_panels(b->optimizer));
    MIMUS_TRY(weigh(b));
    for (uint32_t r = 0; r < RUNS; r++)
        MIMUS_TRY(make_reference(b, r));
    MIMUS_TRY(normalise(b));
out:
    return status;
}

static void close_bench(bench *b) {
    (void)mimus__device_finish(b->device); /* buffers may still be in use */
    mimus__optimizer_free(b->optimizer);
    mimus__block_plan_free(b->block);
    mimus__loss_free(b->loss);
    mimus__gather_free(b->gather);
    mimus__network_free(b->network);
    mimus__buffer_free(&b->heldout);
    mimus__buffer_free(&b->device_hyper);
    mimus__store_free(&b->store);
    for (uint32_t r = 0; r < RUNS; r++)
        mimus__reference_clear(&b->reference[r]);
    mimus__selftest_batch_clear(&b->batch);
    mimus_config_free(b->config);
    free(b->parameters);
    free(b->image);
    free(b->numbers);
    free(b->gradient);
    free(b->logits);
    free(b->want);
}

/* -------------------------------------------------------------------- a step */

/* Which rows a step takes: epoch after epoch through the training part. */
typedef struct place {
    uint32_t epoch, first, rows, padded;
} place;

static place place_of(const bench *b, uint32_t step) {
    uint32_t training = b->store.training, batches = mimus__divide_up(training, BATCH);
    place at = {.epoch = step / batches, .first = step % batches * BATCH};
    at.rows = training - at.first < BATCH ? training - at.first : BATCH;
    at.padded = b->blocks ? at.rows : mimus__network_padded_rows(b->network, at.rows);
    return at;
}

static mimus_status run_loss(bench *b, const place *at) {
    return mimus__loss_run(b->loss, at->padded, at->rows,
                           mimus__network_matrix(b->network, b->shape.layers),
                           &mimus__gather_batch(b->gather)->labels);
}

/* Random partial sums in place of the gradient. Padding stays zero. */
static mimus_status invent_gradient(bench *b, uint32_t step) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &b->network->layout;
    uint32_t splits = b->network->splits;
    size_t count = mimus__shape_parameters(&b->shape);
    memset(b->image, 0, layout->total * splits * sizeof *b->image);
    for (uint32_t r = 0; r < RUNS; r++) {
        mimus__rng rng = {.seed = 7, .stream = (uint64_t)step * RUNS + r};
        double *sum = b->reference[r].gradient;
        memset(sum, 0, count * sizeof *sum);
        for (uint32_t z = 0; z < splits; z++) {
            for (size_t i = 0; i < count; i++)
                b->numbers[i] = 0.1f * mimus__selftest_random(&rng);
            if (r == BAD_RUN && step == BAD_STEP)
                b->numbers[BAD_PARAMETER] = NAN;
            for (size_t i = 0; i < count; i++)
                sum[i] += (double)b->numbers[i];
            mimus__layout_pack(layout, r, b->numbers, b->image + z * layout->total);
        }
    }
    MIMUS_TRY(mimus__buffer_write(&b->network->gradient, 0, b->image,
                                  layout->total * splits * sizeof *b->image));
out:
    return status;
}

static mimus_status run_phases(bench *b, const place *at, uint32_t step) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__gather_shuffled(b->gather, at->epoch, at->first, at->rows, at->padded));
    MIMUS_TRY(mimus__network_forward(b->network, at->padded, true, step));
    MIMUS_TRY(run_loss(b, at));
    if (!b->invents)
        MIMUS_TRY(mimus__network_backward(b->network, at->padded, step));
out:
    return status;
}

static mimus__sums sums_of(const bench *b, uint32_t rows) {
    return b->block != NULL
               ? mimus__block_plan_sums(b->block)
               : mimus__loss_sums(b->loss, mimus__network_padded_rows(b->network, rows));
}

static mimus_status run_step(bench *b, uint32_t step) {
    mimus_status status = MIMUS_OK;
    place at = place_of(b, step);
    MIMUS_TRY(b->block != NULL
                  ? mimus__block_plan_train(b->block, at.epoch, at.first, at.rows, step)
                  : run_phases(b, &at, step));
    if (b->invents)
        MIMUS_TRY(invent_gradient(b, step));
    MIMUS_TRY(mimus__optimizer_step(b->optimizer, sums_of(b, at.rows), step));
out:
    return status;
}

/* ------------------------------------------------------------ the reference's */

static void fill_batch(bench *b, uint32_t run, const place *at) {
    b->batch.reference.rows = at->rows;
    for (uint32_t i = 0; i < at->rows; i++)
        mimus__selftest_batch_set(&b->batch, i,
                                  mimus__reference_sampler_row(b->reference[run].seed, 0, at->epoch,
                                                               b->store.training, at->first + i));
}

static void expect_metrics(const bench *b, const mimus__reference_result *result, double *row) {
    row[0] = result->loss;
    for (uint32_t h = 0; h < b->sample->schema->heads; h++) {
        row[1 + 3 * h] = result->nll[h];
        row[2 + 3 * h] = result->hits[h];
        row[3 + 3 * h] = result->labelled[h];
    }
}

static void expect_step(bench *b, uint32_t run, uint32_t step) {
    mimus__reference_network *reference = &b->reference[run];
    mimus__reference_result result;
    place at = place_of(b, step);
    double *row = b->want[run][step],
           *extra = row + mimus__metric_columns(b->sample->schema->heads);
    fill_batch(b, run, &at);
    reference->step = step;
    bool applied;
    if (b->invents) { /* reference->gradient is invented already */
        mimus__reference_gradient(reference, &b->batch.reference, &result, b->gradient);
        applied = mimus__reference_update(reference, result.loss, reference->gradient);
    } else {
        applied = mimus__reference_step(reference, &b->batch.reference, &result);
    }
    expect_metrics(b, &result, row);
    double updates = (double)reference->updates;
    extra[MIMUS__COLUMN_NORM] = mimus__reference_norm(reference, reference->gradient);
    extra[MIMUS__COLUMN_SKIPPED] = applied ? 0 : 1;
    extra[MIMUS__COLUMN_CORRECTION1] = 1 - pow(reference->rules.beta1, updates);
    extra[MIMUS__COLUMN_CORRECTION2] = 1 - pow(reference->rules.beta2, updates);
}

/* ----------------------------------------------------------------- held-out */

static mimus_status judge_by_phases(bench *b, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    place at = {.rows = rows, .padded = mimus__network_padded_rows(b->network, rows)};
    MIMUS_TRY(mimus__gather_in_order(b->gather, b->store.training, 0, rows, at.padded));
    MIMUS_TRY(mimus__network_forward(b->network, at.padded, false, 0));
    MIMUS_TRY(run_loss(b, &at));
out:
    return status;
}

static mimus_status run_heldout(bench *b) {
    mimus_status status = MIMUS_OK;
    uint32_t rows = b->store.heldout < BATCH ? b->store.heldout : BATCH;
    MIMUS_TRY(b->block != NULL
                  ? mimus__block_plan_in_order(b->block, b->store.training, 0, rows, false, 0)
                  : judge_by_phases(b, rows));
    MIMUS_TRY(mimus__optimizer_metrics(b->optimizer, sums_of(b, rows), &b->heldout, 1, 0));
    b->batch.reference.rows = rows;
    for (uint32_t i = 0; i < rows; i++)
        mimus__selftest_batch_set(&b->batch, i, b->store.training + i);
    for (uint32_t r = 0; r < RUNS; r++) {
        mimus__reference_result result;
        mimus__reference_forward(&b->reference[r], &b->batch.reference, false, b->logits);
        mimus__reference_loss(&b->reference[r], &b->batch.reference, b->logits, &result, NULL);
        expect_metrics(b, &result, b->want_heldout[r]);
    }
out:
    return status;
}

/* --------------------------------------------------------------- comparison */

static mimus_status compare_image(bench *b, const char *what, const mimus__buffer *buffer,
                                  uint32_t run, const double *want, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &b->network->layout;
    MIMUS_TRY(mimus__buffer_read(buffer, 0, b->image, layout->total * sizeof *b->image));
    mimus__layout_unpack(layout, run, b->image, b->numbers);
    mimus__verdict_array(verdict, what, b->numbers, want, b->reference[run].parameters);
out:
    return status;
}

/* A row of a table, each number by itself. */
static mimus_status compare_row(const mimus__buffer *buffer, size_t row, uint32_t columns,
                                const char *what, const double *want, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    float got[MOST_COLUMNS];
    size_t bytes = columns * sizeof *got;
    MIMUS_TRY(mimus__buffer_read(buffer, row * bytes, got, bytes));
    for (uint32_t c = 0; c < columns; c++)
        mimus__verdict_number(verdict, what, (double)got[c], want[c]);
out:
    return status;
}

static mimus_status compare_run(bench *b, uint32_t run, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    const mimus__optimizer *optimizer = b->optimizer;
    const mimus__reference_network *reference = &b->reference[run];
    for (uint32_t step = 0; step < b->steps; step++)
        MIMUS_TRY(compare_row(&optimizer->table, run * optimizer->table_rows + step + 1,
                              mimus__optimizer_columns(optimizer), "a step's metrics",
                              b->want[run][step], verdict));
    MIMUS_TRY(compare_row(&b->heldout, run, optimizer->metric_columns, "the held-out metrics",
                          b->want_heldout[run], verdict));
    MIMUS_TRY(compare_image(b, "parameters", &b->network->parameters, run, reference->parameter,
                            verdict));
    MIMUS_TRY(
        compare_image(b, "first moments", &optimizer->moment1, run, reference->moment1, verdict));
    if (optimizer->kind != MIMUS__SGD)
        MIMUS_TRY(compare_image(b, "second moments", &optimizer->moment2, run, reference->moment2,
                                verdict));
out:
    return status;
}

/* --------------------------------------------------------------------- checks */

static mimus_status train(bench *b, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    for (uint32_t step = 0; step < b->steps; step++) {
        MIMUS_TRY(run_step(b, step));
        for (uint32_t r = 0; r < RUNS; r++)
            expect_step(b, r, step);
    }
    MIMUS_TRY(run_heldout(b));
    for (uint32_t r = 0; r < RUNS; r++)
        MIMUS_TRY(compare_run(b, r, verdict));
out:
    return status;
}

mimus_status mimus__selftest_optimizer(mimus__device *device, const mimus__selftest_sample *sample,
                                       int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    bench b = {.device = device, .sample = sample, .steps = 3, .invents = true};
    MIMUS_TRY(mimus_config_new(&b.config));
    b.config->activation = MIMUS__TANH;
    b.config->optimizer = (mimus__optimizer_kind)variant;
    b.config->lr = 0.01;
    b.config->weight_decay = 0.05;
    b.config->clip = 1.0;
    MIMUS_TRY(open_bench(&b));
    MIMUS_TRY(train(&b, verdict));
out:
    close_bench(&b);
    return status;
}

mimus_status mimus__selftest_steps(mimus__device *device, const mimus__selftest_sample *sample,
                                   int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    bench b = {.device = device, .sample = sample, .steps = MOST_STEPS, .blocks = variant == 1};
    MIMUS_TRY(mimus_config_new(&b.config));
    b.config->activation = MIMUS__GELU; /* no kinks: small differences stay small */
    b.config->lr = 0.01;
    b.config->epsilon = 1e-3; /* likewise where gradients are nearly zero */
    b.config->weight_decay = 0.01;
    b.config->clip = 0.5;
    b.config->dropout = 0.2;
    MIMUS_TRY(open_bench(&b));
    MIMUS_TRY(train(&b, verdict));
out:
    close_bench(&b);
    return status;
}

static mimus_status compare_outputs(bench *b, uint32_t run, uint32_t layer, uint32_t rows,
                                    mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    const mimus__network *network = b->network;
    uint32_t width = b->shape.width[layer], padded = network->layout.padded[layer];
    size_t floats = (size_t)network->capacity * padded;
    MIMUS_TRY(mimus__buffer_read(&network->activation[layer], run * floats * sizeof(float),
                                 b->numbers, floats * sizeof(float)));
    for (uint32_t i = 1; i < rows; i++) /* close up over the padding */
        memmove(b->numbers + (size_t)i * width, b->numbers + (size_t)i * padded,
                width * sizeof *b->numbers);
    mimus__verdict_array(verdict, "a layer's outputs", b->numbers,
                         b->reference[run].pass.input[layer], (size_t)rows * width);
out:
    return status;
}

mimus_status mimus__selftest_dropout(mimus__device *device, const mimus__selftest_sample *sample,
                                     int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    bench b = {.device = device, .sample = sample, .steps = 1};
    (void)variant;
    MIMUS_TRY(mimus_config_new(&b.config));
    b.config->dropout = 0.3;
    MIMUS_TRY(open_bench(&b));
    place at = place_of(&b, 0);
    MIMUS_TRY(mimus__gather_shuffled(b.gather, 0, 0, at.rows, at.padded));
    MIMUS_TRY(mimus__network_forward(b.network, at.padded, true, 9));
    for (uint32_t r = 0; r < RUNS; r++) {
        b.reference[r].step = 9;
        fill_batch(&b, r, &at);
        mimus__reference_forward(&b.reference[r], &b.batch.reference, true, b.logits);
        for (uint32_t l = 1; l < b.shape.layers; l++)
            MIMUS_TRY(compare_outputs(&b, r, l, at.rows, verdict));
    }
out:
    close_bench(&b);
    return status;
}
