#include "bench_losses.h"

#include "alloc.h"
#include "reference.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The training part row by row, in any order. */
typedef struct fetcher {
    const mimus__dataset *dataset;
    const mimus_schema *schema;
    uint32_t mask_words;
    uint64_t *span_first; /* (spans) rows of the part before each */
    float *senses;        /* (B, S) and so on, as in mimus__reference_batch */
    uint16_t *actions;
    uint32_t *masks;
    float *weights;
} fetcher;

static mimus_status open_fetcher(fetcher *f, const mimus__dataset *dataset, uint32_t batch) {
    mimus_status status = MIMUS_OK;
    const mimus__rows *rows = &dataset->split.training;
    uint64_t before = 0;
    f->dataset = dataset;
    f->schema = mimus__recording_schema(dataset->recording);
    f->mask_words = mimus__schema_mask_words(f->schema);
    MIMUS_TRY(mimus__alloc(&f->span_first, rows->spans, sizeof *f->span_first));
    for (size_t i = 0; i < rows->spans; i++) {
        f->span_first[i] = before;
        before += rows->span[i].count;
    }
    MIMUS_TRY(mimus__alloc(&f->senses, (size_t)batch * f->schema->senses, sizeof *f->senses));
    MIMUS_TRY(mimus__alloc(&f->actions, (size_t)batch * f->schema->heads, sizeof *f->actions));
    MIMUS_TRY(mimus__alloc(&f->masks, (size_t)batch * f->mask_words, sizeof *f->masks));
    MIMUS_TRY(mimus__alloc(&f->weights, batch, sizeof *f->weights));
out:
    return status;
}

static void close_fetcher(fetcher *f) {
    free(f->span_first);
    free(f->senses);
    free(f->actions);
    free(f->masks);
    free(f->weights);
}

/* The recording's row that is row `row` of the training part. */
static uint64_t recording_row(const fetcher *f, uint64_t row) {
    size_t low = 0, high = f->dataset->split.training.spans;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (f->span_first[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return f->dataset->split.training.span[low].first + (row - f->span_first[low]);
}

static mimus_status find_block(const fetcher *f, uint64_t row, mimus__block *block) {
    mimus_status status = MIMUS_OK;
    size_t low = 0, high = mimus__recording_blocks(f->dataset->recording);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        MIMUS_TRY(mimus__recording_block(f->dataset->recording, middle, block));
        if (block->first <= row)
            low = middle;
        else
            high = middle;
    }
    MIMUS_TRY(mimus__recording_block(f->dataset->recording, low, block));
out:
    return status;
}

/* Put row `row` of the training part in place `at` of the batch. */
static mimus_status fetch(const fetcher *f, uint64_t row, uint32_t at) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = f->schema;
    mimus__block block;
    row = recording_row(f, row);
    MIMUS_TRY(find_block(f, row, &block));
    uint32_t i = (uint32_t)(row - block.first), action = 0;
    memcpy(f->senses + (size_t)at * schema->senses, block.senses + (size_t)i * schema->senses,
           schema->senses * sizeof(float));
    for (uint32_t h = 0; h < schema->heads; action += schema->head[h++].actions)
        f->actions[(size_t)at * schema->heads + h] =
            mimus__audit_label(&block, schema, i, h, action);
    if (block.masks != NULL)
        memcpy(f->masks + (size_t)at * f->mask_words, block.masks + (size_t)i * f->mask_words,
               f->mask_words * sizeof(uint32_t));
    /* weights have a mean of 1, as on the device */
    f->weights[at] =
        block.weights != NULL ? (float)(block.weights[i] / f->dataset->statistics.weight) : 1.0f;
out:
    return status;
}

static mimus_status open_reference(mimus__reference_network *network, const mimus_schema *schema,
                                   const mimus_config *config, const mimus__model *model,
                                   uint32_t batch) {
    mimus_status status = MIMUS_OK;
    uint32_t *actions = NULL;
    if (schema->heads > MIMUS__REFERENCE_MAX_HEADS)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%u heads: the double-precision reference takes at most %d",
                           schema->heads, MIMUS__REFERENCE_MAX_HEADS);
    MIMUS_TRY(mimus__alloc(&actions, schema->heads, sizeof *actions));
    for (uint32_t h = 0; h < schema->heads; h++)
        actions[h] = schema->head[h].actions;
    MIMUS_TRY(mimus__reference_init(network, &model->shape, schema->heads, actions, batch));
    network->seed = config->seed;
    network->rules.optimizer = config->optimizer;
    network->rules.lr = config->lr;
    network->rules.beta1 = config->beta1;
    network->rules.beta2 = config->beta2;
    network->rules.epsilon = config->epsilon;
    mimus__reference_set_normalisation(network, model->mean, model->scale);
    mimus__reference_set_parameters(network, model->parameters);
out:
    free(actions);
    return status;
}

mimus_status mimus__bench_losses_of(mimus__bench_losses *out, const mimus__dataset *dataset,
                                    const mimus_config *config, const mimus__model *model,
                                    const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    fetcher f = {.dataset = NULL};
    mimus__reference_network network = {.rows = 0};
    mimus__reference_result result;
    uint64_t training = dataset->split.training.samples;
    uint32_t batch = config->batch < training ? config->batch : (uint32_t)training;
    mimus__phase phase = mimus__phase_begin(watch, "reference", 0);
    *out = (mimus__bench_losses){0};
    MIMUS_TRY(open_fetcher(&f, dataset, batch));
    MIMUS_TRY(open_reference(&network, f.schema, config, model, batch));
    for (uint64_t first = 0; first < training && out->steps < MIMUS__BENCH_LOSSES;
         first += batch, out->steps++) {
        uint32_t rows = training - first < batch ? (uint32_t)(training - first) : batch;
        for (uint32_t i = 0; i < rows; i++)
            MIMUS_TRY(fetch(
                &f, mimus__reference_sampler_row(config->seed, 0, 0, training, first + i), i));
        const mimus__reference_batch rows_of_step = {.rows = rows,
                                                     .senses = f.senses,
                                                     .actions = f.actions,
                                                     .masks = f.mask_words > 0 ? f.masks : NULL,
                                                     .weights = f.weights};
        mimus__reference_step(&network, &rows_of_step, &result);
        out->loss[out->steps] = result.loss;
        MIMUS_TRY(mimus__phase_step(&phase, 0));
    }
out:
    mimus__reference_clear(&network);
    close_fetcher(&f);
    return status;
}

double mimus__bench_losses_compare(const mimus__bench_losses *losses, const float *step_loss,
                                   uint32_t steps) {
    double largest = 0;
    for (uint32_t t = 0; t < losses->steps && t < steps; t++) {
        double difference = fabs((double)step_loss[t] - losses->loss[t]);
        if (isnan(difference))
            return NAN;
        largest = fmax(largest, difference);
    }
    return largest;
}
