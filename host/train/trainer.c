#include "trainer.h"

#include "alloc.h"
#include "clock.h"
#include "hyper.clh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the parts of the epoch's one read lie in it, in floats. */
typedef struct report_layout {
    size_t table, heldout, parameters, moment1, moment2, total;
} report_layout;

struct mimus__trainer {
    mimus__device *device;
    const mimus__store *store;
    mimus_config *config; /* of run 0: what all runs share */
    uint32_t runs, heads;
    uint32_t batch, steps, heldout_steps;
    mimus__buffer hyper; /* (R) mimus__hyper */
    mimus__network *network;
    mimus__block_plan *block; /* the block plan; then no gather and no loss */
    mimus__gather *gather;    /* the phased one's */
    mimus__loss *loss;
    mimus__optimizer *optimizer;
    mimus__buffer heldout_table; /* (R, heldout_steps, metric columns) */
    report_layout layout;
    mimus__buffer report;
    float *report_image;              /* the epoch's read */
    double *lr;                       /* (R) */
    float *step_loss;                 /* (R, steps) */
    mimus__head_result *head_results; /* (R, 2, H) */
    double began, reported;
    double latest_loss; /* of run 0's latest epoch; NaN before */
};

/* ------------------------------------------------------------- construction */

static mimus_status make_hyper(mimus__trainer *trainer, const mimus_config *const *configs) {
    mimus_status status = MIMUS_OK;
    mimus__hyper *hyper = NULL;
    MIMUS_TRY(mimus__alloc(&hyper, trainer->runs, sizeof *hyper));
    MIMUS_TRY(mimus__alloc(&trainer->lr, trainer->runs, sizeof *trainer->lr));
    for (uint32_t r = 0; r < trainer->runs; r++) {
        const mimus_config *config = configs[r];
        hyper[r] = (mimus__hyper){.seed_low = (uint32_t)config->seed,
                                  .seed_high = (uint32_t)(config->seed >> 32),
                                  .lr = (float)config->lr,
                                  .weight_decay = (float)config->weight_decay,
                                  .clip = (float)config->clip,
                                  .label_smoothing = (float)config->label_smoothing,
                                  .dropout = (float)config->dropout};
        trainer->lr[r] = config->lr;
    }
    size_t bytes = trainer->runs * sizeof *hyper;
    MIMUS_TRY(mimus__buffer_new(&trainer->hyper, trainer->device, bytes, "the settings"));
    MIMUS_TRY(mimus__buffer_write(&trainer->hyper, 0, hyper, bytes));
out:
    free(hyper);
    return status;
}

static bool any_dropout(const mimus_config *const *configs, uint32_t runs) {
    for (uint32_t r = 0; r < runs; r++) {
        if (configs[r]->dropout > 0)
            return true;
    }
    return false;
}

/* Upload a run's weights of heads and actions. */
static mimus_status weigh(mimus__trainer *trainer, uint32_t run, const mimus_config *config,
                          const mimus_schema *schema, const mimus__statistics *statistics) {
    mimus_status status = MIMUS_OK;
    float *heads = NULL, *actions = NULL;
    uint32_t total = mimus__schema_actions(schema);
    MIMUS_TRY(mimus__alloc(&heads, schema->heads, sizeof *heads));
    MIMUS_TRY(mimus__alloc(&actions, total, sizeof *actions));
    if (config->head_weights != NULL && config->head_weight_count != schema->heads) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "head_weights has %u weights for %u heads",
                             config->head_weight_count, schema->heads);
        goto out;
    }
    uint32_t action = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        heads[h] = config->head_weights != NULL ? (float)config->head_weights[h] : 1.0f;
        for (uint32_t a = 0; a < schema->head[h].actions; a++, action++) {
            /* an action that was never seen is never a label: its weight is not used */
            bool balanced =
                config->class_weights == MIMUS__CLASS_BALANCED && statistics->counts[action] > 0;
            actions[action] =
                balanced
                    ? (float)((double)statistics->labels[h] / ((double)schema->head[h].actions *
                                                               (double)statistics->counts[action]))
                    : 1.0f;
        }
    }
    MIMUS_TRY(trainer->block != NULL ? mimus__block_plan_weigh(trainer->block, run, heads, actions)
                                     : mimus__loss_weigh(trainer->loss, run, heads, actions));
out:
    free(heads);
    free(actions);
    return status;
}

/* Upload one of the models' arrays (parameters or a moment) of all runs. */
typedef const float *(*model_array)(const mimus__model *model);

static const float *parameters_of(const mimus__model *model) {
    return model->parameters;
}

static const float *moment1_of(const mimus__model *model) {
    return model->state != NULL ? model->state->moment1 : NULL;
}

static const float *moment2_of(const mimus__model *model) {
    return model->state != NULL ? model->state->moment2 : NULL;
}

static mimus_status upload(mimus__trainer *trainer, const mimus__model *const *models,
                           model_array array, const mimus__buffer *buffer) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &trainer->network->layout;
    float *image = NULL;
    if (buffer->device == NULL)
        return MIMUS_OK; /* an optimizer without this moment */
    MIMUS_TRY(mimus__alloc(&image, layout->total, sizeof *image));
    for (uint32_t r = 0; r < trainer->runs; r++) {
        if (array(models[r]) != NULL)
            mimus__layout_pack(layout, r, array(models[r]), image);
    }
    MIMUS_TRY(mimus__buffer_write(buffer, 0, image, layout->total * sizeof *image));
out:
    free(image);
    return status;
}

static mimus_status load_models(mimus__trainer *trainer, const mimus__model *const *models) {
    mimus_status status = MIMUS_OK;
    mimus__optimizer *optimizer = trainer->optimizer;
    MIMUS_TRY(upload(trainer, models, parameters_of, &trainer->network->parameters));
    MIMUS_TRY(mimus__optimizer_write_panels(optimizer));
    MIMUS_TRY(upload(trainer, models, moment1_of, &optimizer->moment1));
    MIMUS_TRY(upload(trainer, models, moment2_of, &optimizer->moment2));
    for (uint32_t r = 0; r < trainer->runs; r++) {
        const mimus__model *model = models[r];
        if (!trainer->store->normalised)
            MIMUS_TRY(
                trainer->block != NULL
                    ? mimus__block_plan_normalise(trainer->block, r, model->mean, model->scale)
                    : mimus__gather_normalise(trainer->gather, r, model->mean, model->scale));
        if (model->state != NULL)
            MIMUS_TRY(mimus__optimizer_set_corrections(optimizer, r, model->state->correction1,
                                                       model->state->correction2));
    }
out:
    return status;
}

/* The device buffer and the host image of the epoch's read. */
static mimus_status make_report(mimus__trainer *trainer) {
    mimus_status status = MIMUS_OK;
    const mimus__optimizer *optimizer = trainer->optimizer;
    size_t columns = mimus__metric_columns(trainer->heads);
    size_t image = trainer->network->layout.total;
    report_layout *layout = &trainer->layout;
    layout->heldout = optimizer->table.bytes / sizeof(float);
    layout->parameters = layout->heldout + (size_t)trainer->runs * trainer->heldout_steps * columns;
    layout->moment1 = layout->parameters + image;
    layout->moment2 = layout->moment1 + image;
    layout->total = layout->moment2 + (optimizer->moment2.device != NULL ? image : 0);
    MIMUS_TRY(
        mimus__buffer_new(&trainer->heldout_table, trainer->device,
                          (size_t)trainer->runs * trainer->heldout_steps * columns * sizeof(float),
                          "the held-out table"));
    MIMUS_TRY(mimus__buffer_new(&trainer->report, trainer->device, layout->total * sizeof(float),
                                "the epoch's report"));
    MIMUS_TRY(mimus__alloc(&trainer->report_image, layout->total, sizeof(float)));
    MIMUS_TRY(
        mimus__alloc(&trainer->step_loss, (size_t)trainer->runs * trainer->steps, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&trainer->head_results, (size_t)trainer->runs * 2 * trainer->heads,
                           sizeof(mimus__head_result)));
out:
    return status;
}

/* The plan that was asked for; without a word, blocks on CPU devices. */
bool mimus__trainer_takes_blocks(const mimus_config *config, const mimus__device *device) {
    if (config->plan != MIMUS__PLAN_AUTO)
        return config->plan == MIMUS__PLAN_BLOCK;
    return config->gemm == MIMUS__GEMM_AUTO && mimus__block_plan_suits(device);
}

static mimus_status make_block(mimus__trainer *trainer, const mimus_schema *schema,
                               const mimus__shape *shape, bool dropout) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__network_new_numbers(
        &trainer->network, trainer->device, shape, trainer->runs, dropout,
        mimus__block_plan_slices(trainer->device, trainer->batch)));
    MIMUS_TRY(mimus__block_plan_new(&trainer->block, trainer->network, trainer->store, schema,
                                    &trainer->hyper, dropout, trainer->batch,
                                    MIMUS__BLOCK_PLAN_FASTEST));
out:
    return status;
}

static mimus_status make_phases(mimus__trainer *trainer, const mimus_schema *schema,
                                const mimus__shape *shape, bool dropout) {
    mimus_status status = MIMUS_OK;
    mimus__device *device = trainer->device;
    const mimus__buffer *hyper = &trainer->hyper;
    MIMUS_TRY(mimus__network_new(&trainer->network, device, shape, trainer->runs, trainer->batch,
                                 trainer->config->gemm, true, dropout ? hyper : NULL));
    const mimus__network *network = trainer->network;
    MIMUS_TRY(mimus__gather_new(&trainer->gather, device, trainer->store, hyper, shape->stack,
                                mimus__network_matrix(network, 0), trainer->runs, network->capacity,
                                network->layout.padded[0]));
    MIMUS_TRY(mimus__loss_new(&trainer->loss, device, schema, &trainer->store->layout, hyper,
                              trainer->runs, network->capacity,
                              network->layout.padded[shape->layers]));
out:
    return status;
}

static mimus_status make_parts(mimus__trainer *trainer, const mimus_schema *schema,
                               const mimus_config *const *configs, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    bool dropout = any_dropout(configs, trainer->runs);
    MIMUS_TRY(make_hyper(trainer, configs));
    MIMUS_TRY(mimus__trainer_takes_blocks(trainer->config, trainer->device)
                  ? make_block(trainer, schema, shape, dropout)
                  : make_phases(trainer, schema, shape, dropout));
    MIMUS_TRY(mimus__optimizer_new(
        &trainer->optimizer, trainer->network,
        trainer->block != NULL ? mimus__block_plan_panels(trainer->block) : NULL, trainer->config,
        &trainer->hyper, mimus__metric_columns(trainer->heads), trainer->steps));
    MIMUS_TRY(make_report(trainer));
out:
    return status;
}

mimus_status mimus__trainer_new(mimus__trainer **out, mimus__device *device,
                                const mimus__store *store, const mimus_schema *schema,
                                const mimus_config *const *configs,
                                const mimus__model *const *models,
                                const mimus__statistics *statistics, uint32_t runs) {
    mimus_status status = MIMUS_OK;
    mimus__trainer *trainer = NULL;
    MIMUS_TRY(mimus__alloc(&trainer, 1, sizeof *trainer));
    trainer->device = device;
    trainer->store = store;
    trainer->runs = runs;
    trainer->heads = schema->heads;
    trainer->latest_loss = NAN;
    MIMUS_TRY(mimus__config_copy(&trainer->config, configs[0]));
    trainer->batch = configs[0]->batch < store->training ? configs[0]->batch : store->training;
    trainer->steps = mimus__divide_up(store->training, trainer->batch);
    trainer->heldout_steps = mimus__divide_up(store->heldout, trainer->batch);
    MIMUS_TRY(make_parts(trainer, schema, configs, &models[0]->shape));
    for (uint32_t r = 0; r < runs; r++)
        MIMUS_TRY(weigh(trainer, r, configs[r], schema, statistics));
    MIMUS_TRY(load_models(trainer, models));
    *out = trainer;
    trainer = NULL;
out:
    mimus__trainer_free(trainer);
    return status;
}

void mimus__trainer_free(mimus__trainer *trainer) {
    if (trainer == NULL)
        return;
    (void)mimus__device_finish(trainer->device); /* buffers may still be in use */
    mimus__optimizer_free(trainer->optimizer);
    mimus__loss_free(trainer->loss);
    mimus__block_plan_free(trainer->block);
    mimus__gather_free(trainer->gather);
    mimus__network_free(trainer->network);
    mimus__buffer_free(&trainer->hyper);
    mimus__buffer_free(&trainer->heldout_table);
    mimus__buffer_free(&trainer->report);
    mimus_config_free(trainer->config);
    free(trainer->report_image);
    free(trainer->lr);
    free(trainer->step_loss);
    free(trainer->head_results);
    free(trainer);
}

uint32_t mimus__trainer_steps(const mimus__trainer *trainer) {
    return trainer->steps;
}

json_t *mimus__trainer_report(const mimus__trainer *trainer) {
    if (trainer->block != NULL)
        return json_pack("{ssso}", "plan", "block", "block",
                         mimus__block_plan_report(trainer->block));
    return json_pack("{ssso}", "plan", "phased", "gemm",
                     mimus__gemm_report(trainer->network->gemm));
}

const mimus__network *mimus__trainer_network(const mimus__trainer *trainer) {
    return trainer->network;
}

/* ------------------------------------------------------------------ enqueuing */

/* Rows of batch `step` of `total`: the last is short, not dropped. */
static uint32_t rows_of(const mimus__trainer *trainer, uint32_t step, uint32_t total) {
    uint32_t first = step * trainer->batch;
    return total - first < trainer->batch ? total - first : trainer->batch;
}

/* The learning rate's factor. */
static float rate_of(const mimus__trainer *trainer, uint64_t global_step) {
    uint64_t all_steps = (uint64_t)trainer->config->epochs * trainer->steps;
    return (float)mimus__config_rate(trainer->config, global_step, all_steps, trainer->steps);
}

bool mimus__trainer_has(const mimus__trainer *trainer, mimus__step_phase phase) {
    if (phase == MIMUS__STEP_OPTIMIZER)
        return true;
    return (phase == MIMUS__STEP_BLOCK) == (trainer->block != NULL);
}

/* What the latest batch of `rows` rows left. */
static mimus__sums sums_of(const mimus__trainer *trainer, uint32_t rows) {
    if (trainer->block != NULL)
        return mimus__block_plan_sums(trainer->block);
    return mimus__loss_sums(trainer->loss, mimus__network_padded_rows(trainer->network, rows));
}

mimus_status mimus__trainer_phase(mimus__trainer *trainer, mimus__step_phase phase, uint32_t epoch,
                                  uint32_t step) {
    mimus__network *network = trainer->network;
    uint32_t first = step * trainer->batch, rows = rows_of(trainer, step, trainer->store->training);
    uint64_t global_step = (uint64_t)epoch * trainer->steps + step;
    uint32_t padded = trainer->block != NULL ? rows : mimus__network_padded_rows(network, rows);
    switch (phase) {
    case MIMUS__STEP_GATHER:
        return mimus__gather_shuffled(trainer->gather, epoch, first, rows, padded);
    case MIMUS__STEP_FORWARD:
        return mimus__network_forward(network, padded, true, (uint32_t)global_step);
    case MIMUS__STEP_LOSS:
        return mimus__loss_run(trainer->loss, padded, rows,
                               mimus__network_matrix(network, network->layout.shape.layers),
                               &mimus__gather_batch(trainer->gather)->labels);
    case MIMUS__STEP_BACKWARD:
        return mimus__network_backward(network, padded, (uint32_t)global_step);
    case MIMUS__STEP_BLOCK:
        return mimus__block_plan_train(trainer->block, epoch, first, rows, (uint32_t)global_step);
    default:
        return mimus__optimizer_step(trainer->optimizer, sums_of(trainer, rows), step,
                                     rate_of(trainer, global_step));
    }
}

static mimus_status training_step(mimus__trainer *trainer, uint32_t epoch, uint32_t step) {
    mimus_status status = MIMUS_OK;
    for (mimus__step_phase phase = 0; phase < MIMUS__STEP_PHASES; phase++) {
        if (mimus__trainer_has(trainer, phase))
            MIMUS_TRY(mimus__trainer_phase(trainer, phase, epoch, step));
    }
    MIMUS_TRY(mimus__device_pace(trainer->device));
out:
    return status;
}

static mimus_status judge_by_phases(mimus__trainer *trainer, uint32_t first, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    mimus__network *network = trainer->network;
    uint32_t padded = mimus__network_padded_rows(network, rows);
    MIMUS_TRY(
        mimus__gather_in_order(trainer->gather, trainer->store->training, first, rows, padded));
    MIMUS_TRY(mimus__network_forward(network, padded, false, 0));
    MIMUS_TRY(mimus__loss_run(trainer->loss, padded, rows,
                              mimus__network_matrix(network, network->layout.shape.layers),
                              &mimus__gather_batch(trainer->gather)->labels));
out:
    return status;
}

static mimus_status heldout_step(mimus__trainer *trainer, uint32_t step) {
    mimus_status status = MIMUS_OK;
    uint32_t first = step * trainer->batch, rows = rows_of(trainer, step, trainer->store->heldout);
    MIMUS_TRY(trainer->block != NULL
                  ? mimus__block_plan_in_order(trainer->block, trainer->store->training, first,
                                               rows, false, 0)
                  : judge_by_phases(trainer, first, rows));
    MIMUS_TRY(mimus__optimizer_metrics(trainer->optimizer, sums_of(trainer, rows),
                                       &trainer->heldout_table, trainer->heldout_steps, step));
    MIMUS_TRY(mimus__device_pace(trainer->device));
out:
    return status;
}

/* Copy everything that the host wants into the report, on the device. */
static mimus_status assemble_report(mimus__trainer *trainer) {
    mimus_status status = MIMUS_OK;
    const mimus__optimizer *optimizer = trainer->optimizer;
    const report_layout *layout = &trainer->layout;
    const struct {
        const mimus__buffer *source;
        size_t begin, end;
    } parts[] = {
        {&optimizer->table, layout->table, layout->heldout},
        {&trainer->heldout_table, layout->heldout, layout->parameters},
        {&trainer->network->parameters, layout->parameters, layout->moment1},
        {&optimizer->moment1, layout->moment1, layout->moment2},
        {&optimizer->moment2, layout->moment2, layout->total},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t floats = parts[i].end - parts[i].begin;
        if (floats > 0)
            MIMUS_TRY(mimus__buffer_copy(parts[i].source, 0, &trainer->report,
                                         parts[i].begin * sizeof(float), floats * sizeof(float)));
    }
out:
    return status;
}

static void report_progress(mimus__trainer *trainer, uint32_t epoch, uint32_t step,
                            const mimus_watch *watch) {
    double now = mimus__clock_seconds();
    if (watch == NULL || watch->on_progress == NULL || now - trainer->reported < 0.1)
        return;
    trainer->reported = now;
    uint64_t done = (uint64_t)step * trainer->batch;
    uint64_t total = trainer->store->training;
    watch->on_progress(watch->user,
                       &(mimus_progress){.phase = "train",
                                         .done = epoch * total + (done < total ? done : total),
                                         .total = trainer->config->epochs * total,
                                         .seconds = now - trainer->began,
                                         .epoch = epoch + 1,
                                         .epochs = trainer->config->epochs,
                                         .loss = trainer->latest_loss});
}

/* -------------------------------------------------------------------- results */

/* Fold a table's rows into a part's result. Row t has `columns` floats at rows + t * columns and
 * stands for rows_of(t, total) samples; `skipped` (may be NULL) tells the rows to leave out. */
static void fold(const mimus__trainer *trainer, const float *rows, size_t columns, uint32_t count,
                 uint32_t total, size_t skipped_column, mimus__part_result *part) {
    double loss = 0, samples = 0;
    memset(part->heads, 0, trainer->heads * sizeof *part->heads);
    for (uint32_t t = 0; t < count; t++) {
        const float *row = rows + t * columns;
        if (skipped_column > 0 && row[skipped_column] != 0)
            continue;
        double weight = rows_of(trainer, t, total);
        loss += weight * (double)row[0];
        samples += weight;
        for (uint32_t h = 0; h < trainer->heads; h++) {
            part->heads[h].nll += (double)row[1 + 3 * h];
            part->heads[h].agreement += (double)row[2 + 3 * h];
            part->heads[h].labels += (double)row[3 + 3 * h];
        }
    }
    part->loss = samples > 0 ? loss / samples : NAN;
    for (uint32_t h = 0; h < trainer->heads; h++) {
        mimus__head_result *head = &part->heads[h];
        head->nll = head->labels > 0 ? head->nll / head->labels : NAN;
        head->agreement = head->labels > 0 ? head->agreement / head->labels : NAN;
    }
}

static void read_result(mimus__trainer *trainer, uint32_t run, double rate,
                        mimus__epoch_result *result) {
    size_t metric_columns = mimus__metric_columns(trainer->heads);
    size_t columns = mimus__optimizer_columns(trainer->optimizer);
    const float *image = trainer->report_image;
    const float *table =
        image + trainer->layout.table + ((size_t)run * (trainer->steps + 1) + 1) * columns;
    const float *heldout =
        image + trainer->layout.heldout + (size_t)run * trainer->heldout_steps * metric_columns;
    float *step_loss = trainer->step_loss + (size_t)run * trainer->steps;
    mimus__head_result *heads = trainer->head_results + (size_t)run * 2 * trainer->heads;
    *result = (mimus__epoch_result){.training = {.heads = heads},
                                    .heldout = {.heads = heads + trainer->heads},
                                    .steps = trainer->steps,
                                    .step_loss = step_loss,
                                    .lr = rate * trainer->lr[run]};
    for (uint32_t t = 0; t < trainer->steps; t++) {
        const float *row = table + t * columns;
        step_loss[t] = row[0];
        if (row[metric_columns + MIMUS__COLUMN_SKIPPED] == 0)
            result->norm += (double)row[metric_columns + MIMUS__COLUMN_NORM];
        else if (result->skipped++ == 0)
            result->first_skipped = t;
    }
    result->norm /= trainer->steps - result->skipped;
    fold(trainer, table, columns, trainer->steps, trainer->store->training,
         metric_columns + MIMUS__COLUMN_SKIPPED, &result->training);
    fold(trainer, heldout, metric_columns, trainer->heldout_steps, trainer->store->heldout, 0,
         &result->heldout);
}

mimus_status mimus__trainer_epoch(mimus__trainer *trainer, uint32_t epoch,
                                  mimus__epoch_result *results, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    if (trainer->began == 0)
        trainer->began = mimus__clock_seconds();
    for (uint32_t step = 0; step < trainer->steps; step++) {
        MIMUS_TRY(training_step(trainer, epoch, step));
        report_progress(trainer, epoch, step + 1, watch);
    }
    for (uint32_t step = 0; step < trainer->heldout_steps; step++)
        MIMUS_TRY(heldout_step(trainer, step));
    MIMUS_TRY(assemble_report(trainer));
    MIMUS_TRY(mimus__optimizer_carry(trainer->optimizer)); /* for the next epoch */
    MIMUS_TRY(mimus__buffer_read(&trainer->report, 0, trainer->report_image,
                                 trainer->layout.total * sizeof(float)));
    uint64_t last_step = (uint64_t)(epoch + 1) * trainer->steps - 1;
    double rate =
        mimus__config_rate(trainer->config, last_step,
                           (uint64_t)trainer->config->epochs * trainer->steps, trainer->steps);
    for (uint32_t run = 0; run < trainer->runs; run++)
        read_result(trainer, run, rate, &results[run]);
    trainer->latest_loss = results[0].training.loss;
out:
    return status;
}

mimus_status mimus__trainer_save(const mimus__trainer *trainer, uint32_t run, mimus__model *model) {
    const mimus__layout *layout = &trainer->network->layout;
    const float *image = trainer->report_image;
    mimus__layout_unpack(layout, run, image + trainer->layout.parameters, model->parameters);
    mimus__training_state *state = model->state;
    if (state == NULL)
        return MIMUS_OK;
    if (state->moment1 != NULL)
        mimus__layout_unpack(layout, run, image + trainer->layout.moment1, state->moment1);
    if (state->moment2 != NULL && trainer->optimizer->moment2.device != NULL)
        mimus__layout_unpack(layout, run, image + trainer->layout.moment2, state->moment2);
    size_t columns = mimus__optimizer_columns(trainer->optimizer);
    const float *last = image + trainer->layout.table +
                        ((size_t)run * (trainer->steps + 1) + trainer->steps) * columns +
                        mimus__metric_columns(trainer->heads);
    state->correction1 = last[MIMUS__COLUMN_CORRECTION1];
    state->correction2 = last[MIMUS__COLUMN_CORRECTION2];
    return MIMUS_OK;
}
