#include "bench_slow.h"

#include "alloc.h"
#include "hyper.clh"
#include "reference.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the host builds batches from, with `uploads`. */
typedef struct host_rows {
    uint32_t *words;  /* (training + heldout, layout.words) as in the store, senses normalised */
    uint32_t *order;  /* (epochs, training) rows as the sampler draws them */
    float *senses;    /* (capacity, padded width) the batch, */
    uint32_t *labels; /* (capacity, label_words) in the making */
    uint64_t uploaded;
} host_rows;

struct mimus__bench_slow {
    mimus__device *device;
    const mimus__store *store;
    const mimus_config *config;
    mimus__bench_way way;
    uint32_t heads, batch, steps, heldout_steps;
    mimus__buffer hyper;
    mimus__network *network;
    mimus__loss_weights ones; /* for the loss of a head */
    mimus__buffer turned;     /* likewise: its scratch */
    mimus__gather *gather;    /* its batch is where the host's go, too */
    mimus__loss *loss;
    mimus__optimizer *optimizer;
    mimus__program program;
    mimus__kernel head_loss;
    mimus__geometry geometry;
    mimus__buffer heldout_row; /* (metric columns) of a batch */
    host_rows host;
    float *row; /* what a step's read brings */
    float *step_loss;
    mimus__head_result *head_results; /* (H) held out */
};

/* ------------------------------------------------------------------- construction */

static mimus_status make_hyper(mimus__bench_slow *slow) {
    mimus_status status = MIMUS_OK;
    const mimus_config *config = slow->config;
    const mimus__hyper hyper = {.order_low = (uint32_t)config->seed,
                                .order_high = (uint32_t)(config->seed >> 32),
                                .lr = (float)config->lr};
    MIMUS_TRY(mimus__buffer_new(&slow->hyper, slow->device, sizeof hyper, "the settings"));
    MIMUS_TRY(mimus__buffer_write(&slow->hyper, 0, &hyper, sizeof hyper));
out:
    return status;
}

/* Rows of a group of the fused loss, which the kernel of a head must share: both leave their sums
 * in the same places. */
static uint32_t rows_a_group(const mimus__loss *loss) {
    uint32_t rows = 1;
    while (mimus__loss_groups(loss, rows + 1) == 1)
        rows++;
    return rows;
}

static mimus_status build_head_loss(mimus__bench_slow *slow, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    const mimus__row_layout *layout = &slow->store->layout;
    const mimus__layout *network = &slow->network->layout;
    mimus__defines defines = {0};
    char *offsets = NULL;
    size_t groups = mimus__loss_groups(slow->loss, slow->network->capacity);
    uint32_t lanes = mimus__geometry_lanes(slow->geometry);
    mimus__geometry_define(slow->geometry, &defines);
    MIMUS_TRY(mimus__loss_define(&defines, &offsets, schema, layout, slow->geometry));
    mimus__define_number(&defines, "LOGIT_WIDTH", network->padded[network->shape.layers]);
    mimus__define_number(&defines, "LABEL_WORDS", layout->label_words);
    mimus__define_number(&defines, "ROWS", rows_a_group(slow->loss));
    MIMUS_TRY(mimus__program_build(&slow->program, slow->device, "bench_head_loss.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&slow->head_loss, &slow->program, "bench_head_loss"));
    MIMUS_TRY(mimus__loss_weights_new(&slow->ones, slow->device, 1, schema));
    MIMUS_TRY(mimus__buffer_new(&slow->turned, slow->device,
                                groups * slow->ones.action_count * lanes * sizeof(float),
                                "the loss's scratch"));
out:
    free(offsets);
    return status;
}

static mimus_status load_model(mimus__bench_slow *slow, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__network_set_parameters(slow->network, model->parameters));
    MIMUS_TRY(mimus__gather_normalise(slow->gather, 0, model->mean, model->scale));
out:
    return status;
}

static mimus_status make_parts(mimus__bench_slow *slow, const mimus_schema *schema,
                               const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    MIMUS_TRY(make_hyper(slow));
    MIMUS_TRY(mimus__network_new(&slow->network, slow->device, shape, 1, slow->batch,
                                 slow->config->gemm, true, false, NULL));
    const mimus__network *network = slow->network;
    MIMUS_TRY(mimus__gather_new(&slow->gather, slow->device, slow->store, NULL, &slow->hyper, 1,
                                mimus__network_matrix(network, 0), 1, network->capacity,
                                network->layout.padded[0]));
    MIMUS_TRY(mimus__loss_new(&slow->loss, slow->device, schema, &slow->store->layout, &slow->hyper,
                              NULL, false, 1, network->capacity,
                              network->layout.padded[shape->layers]));
    uint32_t columns = mimus__loss_columns(slow->loss);
    MIMUS_TRY(mimus__optimizer_new(&slow->optimizer, slow->network, NULL, slow->config,
                                   &slow->hyper, columns, slow->steps));
    MIMUS_TRY(mimus__buffer_new(&slow->heldout_row, slow->device, columns * sizeof(float),
                                "a batch's metrics"));
    MIMUS_TRY(mimus__alloc(&slow->row, mimus__optimizer_columns(slow->optimizer), sizeof(float)));
    MIMUS_TRY(mimus__alloc(&slow->step_loss, slow->steps, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&slow->head_results, schema->heads, sizeof *slow->head_results));
    MIMUS_TRY(load_model(slow, model));
    if (slow->way.head_losses)
        MIMUS_TRY(build_head_loss(slow, schema));
out:
    return status;
}

/* ------------------------------------------------------------------ the host's rows */

static mimus_status read_back(mimus__bench_slow *slow) {
    mimus_status status = MIMUS_OK;
    const mimus__store *store = slow->store;
    size_t row_bytes = store->layout.words * sizeof(uint32_t);
    size_t rows = (size_t)store->training + store->heldout, shard_rows = (size_t)1 << store->shift;
    MIMUS_TRY(mimus__alloc(&slow->host.words, rows, row_bytes));
    for (uint32_t s = 0; s < store->shards; s++) {
        size_t first = s * shard_rows;
        size_t count = rows - first < shard_rows ? rows - first : shard_rows;
        MIMUS_TRY(mimus__buffer_read(&store->shard[s], 0,
                                     slow->host.words + first * store->layout.words,
                                     count * row_bytes));
    }
out:
    return status;
}

static void normalise(mimus__bench_slow *slow, const mimus__model *model) {
    const mimus__store *store = slow->store;
    size_t rows = (size_t)store->training + store->heldout;
    for (size_t row = 0; row < rows; row++) {
        uint32_t *words = slow->host.words + row * store->layout.words;
        for (uint32_t s = 0; s < store->layout.senses; s++) {
            float sense;
            memcpy(&sense, words + s, sizeof sense);
            sense = (sense - model->mean[s]) * model->scale[s];
            memcpy(words + s, &sense, sizeof sense);
        }
    }
}

static mimus_status make_host_rows(mimus__bench_slow *slow, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    host_rows *host = &slow->host;
    const mimus__batch *batch = mimus__gather_batch(slow->gather);
    size_t training = slow->store->training;
    MIMUS_TRY(read_back(slow));
    normalise(slow, model);
    MIMUS_TRY(mimus__alloc(&host->order, slow->config->epochs * training, sizeof *host->order));
    for (uint32_t epoch = 0; epoch < slow->config->epochs; epoch++) {
        for (size_t i = 0; i < training; i++)
            host->order[epoch * training + i] =
                (uint32_t)mimus__reference_sampler_row(slow->config->seed, 0, epoch, training, i);
    }
    MIMUS_TRY(mimus__alloc(&host->senses, (size_t)batch->capacity * batch->width, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&host->labels, (size_t)batch->capacity * slow->store->layout.label_words,
                           sizeof(uint32_t)));
out:
    return status;
}

/* Rows of the store, in the order given or (NULL) from `first` on, as a batch on the device; filled
 * up to `padded` with empty ones. */
static mimus_status upload_batch(mimus__bench_slow *slow, const uint32_t *order, uint32_t first,
                                 uint32_t rows, uint32_t padded) {
    mimus_status status = MIMUS_OK;
    host_rows *host = &slow->host;
    const mimus__row_layout *layout = &slow->store->layout;
    const mimus__batch *batch = mimus__gather_batch(slow->gather);
    for (uint32_t i = 0; i < rows; i++) {
        size_t row = order != NULL ? order[i] : (size_t)first + i;
        const uint32_t *words = host->words + row * layout->words;
        memcpy(host->senses + (size_t)i * batch->width, words, layout->senses * sizeof(float));
        memcpy(host->labels + (size_t)i * layout->label_words, words + layout->senses,
               layout->label_words * sizeof(uint32_t));
    }
    for (uint32_t i = rows; i < padded; i++) {
        memset(host->senses + (size_t)i * batch->width, 0, batch->width * sizeof(float));
        memset(host->labels + (size_t)i * layout->label_words, 0xFF, /* MIMUS_NO_LABEL */
               layout->label_words * sizeof(uint32_t));
    }
    size_t senses = (size_t)padded * batch->width * sizeof(float);
    size_t labels = (size_t)padded * layout->label_words * sizeof(uint32_t);
    MIMUS_TRY(mimus__buffer_write(batch->x.buffer, batch->x.offset * sizeof(float), host->senses,
                                  senses));
    MIMUS_TRY(mimus__buffer_write(&batch->labels, 0, host->labels, labels));
    host->uploaded += senses + labels;
out:
    return status;
}

/* --------------------------------------------------------------------------- whole */

mimus_status mimus__bench_slow_new(mimus__bench_slow **out, mimus__device *device,
                                   const mimus__store *store, const mimus_schema *schema,
                                   const mimus_config *config, const mimus__model *model,
                                   mimus__bench_way way) {
    mimus_status status = MIMUS_OK;
    mimus__bench_slow *slow = NULL;
    MIMUS_TRY(mimus__alloc(&slow, 1, sizeof *slow));
    *slow = (mimus__bench_slow){.device = device,
                                .store = store,
                                .config = config,
                                .way = way,
                                .heads = schema->heads,
                                .geometry = mimus__geometry_of(device)};
    slow->batch = config->batch < store->training ? config->batch : store->training;
    slow->steps = mimus__divide_up(store->training, slow->batch);
    slow->heldout_steps = mimus__divide_up(store->heldout, slow->batch);
    MIMUS_TRY(make_parts(slow, schema, model));
    if (way.uploads)
        MIMUS_TRY(make_host_rows(slow, model));
    *out = slow;
    slow = NULL;
out:
    mimus__bench_slow_free(slow);
    return status;
}

void mimus__bench_slow_free(mimus__bench_slow *slow) {
    if (slow == NULL)
        return;
    (void)mimus__device_finish(slow->device); /* buffers may still be in use */
    mimus__kernel_free(&slow->head_loss);
    mimus__program_free(&slow->program);
    mimus__optimizer_free(slow->optimizer);
    mimus__loss_weights_free(&slow->ones);
    mimus__buffer_free(&slow->turned);
    mimus__loss_free(slow->loss);
    mimus__gather_free(slow->gather);
    mimus__network_free(slow->network);
    mimus__buffer_free(&slow->hyper);
    mimus__buffer_free(&slow->heldout_row);
    free(slow->host.words);
    free(slow->host.order);
    free(slow->host.senses);
    free(slow->host.labels);
    free(slow->row);
    free(slow->step_loss);
    free(slow->head_results);
    free(slow);
}

uint64_t mimus__bench_slow_uploaded(const mimus__bench_slow *slow) {
    return slow->host.uploaded;
}

/* ------------------------------------------------------------------------ an epoch */

static uint32_t rows_of(const mimus__bench_slow *slow, uint32_t step, uint32_t total) {
    uint32_t first = step * slow->batch;
    return total - first < slow->batch ? total - first : slow->batch;
}

static mimus_status run_loss(mimus__bench_slow *slow, uint32_t padded, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    const mimus__network *network = slow->network;
    const mimus__buffer *labels = &mimus__gather_batch(slow->gather)->labels;
    mimus__matrix logits = mimus__network_matrix(network, network->layout.shape.layers);
    if (!slow->way.head_losses)
        return mimus__loss_run(slow->loss, padded, rows, logits, labels);
    for (uint32_t h = 0; h < slow->heads; h++)
        MIMUS_TRY(mimus__launch(
            &slow->head_loss,
            mimus__geometry_grid(slow->geometry, mimus__loss_groups(slow->loss, padded), 1),
            MIMUS_ARG_U32(h), MIMUS_ARG_U32(padded), MIMUS_ARG_F32(1.0f / (float)rows),
            MIMUS_ARG_BUFFER(logits.buffer), MIMUS_ARG_BUFFER(labels),
            MIMUS_ARG_BUFFER(&slow->ones.actions), MIMUS_ARG_BUFFER(&slow->turned),
            MIMUS_ARG_BUFFER(mimus__loss_partial(slow->loss))));
out:
    return status;
}

/* A step of training, and its read. */
static mimus_status training_step(mimus__bench_slow *slow, uint32_t epoch, uint32_t step) {
    mimus_status status = MIMUS_OK;
    mimus__network *network = slow->network;
    uint32_t training = slow->store->training, first = step * slow->batch;
    uint32_t rows = rows_of(slow, step, training);
    uint32_t padded = mimus__network_padded_rows(network, rows);
    uint64_t global_step = (uint64_t)epoch * slow->steps + step;
    size_t row_bytes = mimus__optimizer_columns(slow->optimizer) * sizeof(float);
    if (slow->way.uploads)
        MIMUS_TRY(upload_batch(slow, slow->host.order + (size_t)epoch * training + first, 0, rows,
                               padded));
    else
        MIMUS_TRY(mimus__gather_shuffled(slow->gather, epoch, first, rows, padded));
    MIMUS_TRY(mimus__network_forward(network, padded, true, (uint32_t)global_step));
    MIMUS_TRY(run_loss(slow, padded, rows));
    MIMUS_TRY(mimus__network_backward(network, padded, (uint32_t)global_step));
    MIMUS_TRY(mimus__optimizer_step(slow->optimizer, mimus__loss_sums(slow->loss, padded), step));
    MIMUS_TRY(
        mimus__buffer_read(&slow->optimizer->table, (step + 1) * row_bytes, slow->row, row_bytes));
out:
    return status;
}

static mimus_status heldout_step(mimus__bench_slow *slow, uint32_t step) {
    mimus_status status = MIMUS_OK;
    uint32_t training = slow->store->training, first = step * slow->batch;
    uint32_t rows = rows_of(slow, step, slow->store->heldout);
    uint32_t padded = mimus__network_padded_rows(slow->network, rows);
    if (slow->way.uploads)
        MIMUS_TRY(upload_batch(slow, NULL, training + first, rows, padded));
    else
        MIMUS_TRY(mimus__gather_in_order(slow->gather, training, first, rows, padded));
    MIMUS_TRY(mimus__network_forward(slow->network, padded, false, 0));
    MIMUS_TRY(run_loss(slow, padded, rows));
    MIMUS_TRY(mimus__optimizer_metrics(slow->optimizer, mimus__loss_sums(slow->loss, padded),
                                       &slow->heldout_row, 1, 0));
    MIMUS_TRY(mimus__buffer_read(&slow->heldout_row, 0, slow->row, slow->heldout_row.bytes));
out:
    return status;
}

static mimus_status judge(mimus__bench_slow *slow, mimus__part_result *heldout) {
    mimus_status status = MIMUS_OK;
    double loss = 0;
    memset(slow->head_results, 0, slow->heads * sizeof *slow->head_results);
    for (uint32_t step = 0; step < slow->heldout_steps; step++) {
        MIMUS_TRY(heldout_step(slow, step));
        loss += rows_of(slow, step, slow->store->heldout) * (double)slow->row[0];
        for (uint32_t h = 0; h < slow->heads; h++) {
            slow->head_results[h].nll += (double)slow->row[1 + 3 * h];
            slow->head_results[h].agreement += (double)slow->row[2 + 3 * h];
            slow->head_results[h].labels += (double)slow->row[3 + 3 * h];
        }
    }
    for (uint32_t h = 0; h < slow->heads; h++) {
        slow->head_results[h].nll /= slow->head_results[h].labels;
        slow->head_results[h].agreement /= slow->head_results[h].labels;
    }
    *heldout =
        (mimus__part_result){.loss = loss / slow->store->heldout, .heads = slow->head_results};
out:
    return status;
}

mimus_status mimus__bench_slow_epoch(void *user, uint32_t epoch, mimus__epoch_result *result,
                                     const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__bench_slow *slow = user;
    size_t skipped = mimus__loss_columns(slow->loss) + MIMUS__COLUMN_SKIPPED;
    mimus__phase phase = mimus__phase_begin(watch, "train", slow->store->training);
    *result = (mimus__epoch_result){.steps = slow->steps, .step_loss = slow->step_loss};
    for (uint32_t step = 0; step < slow->steps; step++) {
        MIMUS_TRY(training_step(slow, epoch, step));
        slow->step_loss[step] = slow->row[0];
        result->skipped += slow->row[skipped] != 0;
        uint64_t done = (uint64_t)step * slow->batch + rows_of(slow, step, slow->store->training);
        MIMUS_TRY(mimus__phase_step(&phase, done));
    }
    MIMUS_TRY(judge(slow, &result->heldout));
    MIMUS_TRY(mimus__optimizer_carry(slow->optimizer));
out:
    return status;
}
