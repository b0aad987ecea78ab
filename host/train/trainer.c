#include "trainer.h"

#include "alloc.h"
#include "clock.h"
#include "config_runs.h"
#include "hyper.clh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the parts of the epoch's one read lie in it, in floats. */
typedef struct report_layout {
    size_t table, heldout, parameters, moment1, moment2, total;
} report_layout;

/* What is known of a run that is seated. */
typedef struct seat {
    mimus_config *config;
    uint32_t training, heldout; /* rows */
} seat;

/* Rows behind a shared batch, which a tile of the block plan may compute on. */
enum { SPARE_ROWS = 128 };

struct mimus__trainer {
    mimus__device *device;
    const mimus__store *store;
    const mimus_schema *schema;
    mimus_config *config; /* of the first run: what all share */
    uint32_t runs;        /* that there is room for */
    uint32_t live;        /* that are seated */
    seat *seats;          /* (runs) */
    uint32_t heads;
    uint32_t batch, steps, heldout_steps; /* of the longest run */
    uint32_t stride; /* between the numbers of an epoch's first step and the next epoch's */
    bool shared;     /* one batch for all runs */
    bool has_parts, drops;
    mimus__parts parts;
    mimus__buffer hyper; /* (R) mimus__hyper */
    mimus__network *network;
    mimus__block_plan *block; /* the block plan; then no loss */
    mimus__buffer shared_x;   /* its input, where batches are shared */
    mimus__gather *gather;    /* the phased one's, or of shared batches */
    mimus__loss *loss;
    mimus__optimizer *optimizer;
    mimus__buffer heldout_table; /* (R, heldout_steps, metric columns) */
    report_layout layout;
    mimus__buffer report;
    float *report_image;              /* the epoch's read */
    float *rates;                     /* (R, steps) of the epoch */
    float *step_loss;                 /* (R, steps) */
    mimus__head_result *head_results; /* (R, 2, H) */
    double began, reported;
    double latest_loss; /* the mean of the latest epoch's; NaN before */
};

/* ----------------------------------------------------------------------- seating */

static uint32_t training_of(const mimus__trainer *trainer, const mimus__trainee *run) {
    return run->rows != NULL ? run->rows->training : trainer->store->training;
}

static uint32_t heldout_of(const mimus__trainer *trainer, const mimus__trainee *run) {
    return run->rows != NULL ? run->rows->heldout : trainer->store->heldout;
}

static bool same_rows(const mimus__run_rows *a, const mimus__run_rows *b) {
    if (a == NULL || b == NULL)
        return a == b;
    return a->training == b->training && a->heldout == b->heldout && a->base == b->base &&
           a->pieces == b->pieces && memcmp(a->piece, b->piece, a->pieces * sizeof *a->piece) == 0;
}

/* Whether a batch of one run is that of the other, bit for bit. */
static bool same_batches(const mimus__trainer *trainer, const mimus__trainee *a,
                         const mimus__trainee *b) {
    size_t bytes = a->model->schema->senses * sizeof(float);
    bool normalised_alike =
        trainer->store->normalised || (memcmp(a->model->mean, b->model->mean, bytes) == 0 &&
                                       memcmp(a->model->scale, b->model->scale, bytes) == 0);
    return normalised_alike && same_rows(a->rows, b->rows) &&
           mimus__config_order_seed(a->config) == mimus__config_order_seed(b->config);
}

static bool all_share(const mimus__trainer *trainer, const mimus__trainee *runs, uint32_t count) {
    for (uint32_t r = 1; r < count; r++) {
        if (!same_batches(trainer, &runs[0], &runs[r]))
            return false;
    }
    return true;
}

static mimus_status check_agreement(const mimus__trainee *runs, uint32_t count) {
    mimus_status status = MIMUS_OK;
    const mimus_config **configs = NULL;
    MIMUS_TRY(mimus__alloc(&configs, count, sizeof(mimus_config *)));
    for (uint32_t r = 0; r < count; r++) {
        configs[r] = runs[r].config;
        if ((runs[r].rows == NULL) != (runs[0].rows == NULL)) {
            status =
                mimus__fail(MIMUS_ERR_ARGUMENT, "run %u has rows of its own, others have not", r);
            goto out;
        }
    }
    MIMUS_TRY(mimus__config_runs_agree(configs, count));
out:
    free(configs);
    return status;
}

/* What was built for the first ones must do for these. */
static mimus_status check_room(const mimus__trainer *trainer, const mimus__trainee *runs,
                               uint32_t count) {
    if (count == 0 || count > trainer->runs)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%u runs, and there is room for 1 to %u", count,
                           trainer->runs);
    if (trainer->shared && !all_share(trainer, runs, count))
        return mimus__fail(MIMUS_ERR_ARGUMENT, "these runs cannot share their batches");
    for (uint32_t r = 0; r < count; r++) {
        if (mimus__divide_up(training_of(trainer, &runs[r]), trainer->batch) > trainer->steps ||
            mimus__divide_up(heldout_of(trainer, &runs[r]), trainer->batch) >
                trainer->heldout_steps ||
            (runs[r].rows != NULL) != trainer->has_parts)
            return mimus__fail(MIMUS_ERR_ARGUMENT, "run %u has more rows than there is room for",
                               r);
        if (runs[r].config->dropout > 0 && !trainer->drops)
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "dropout: no run had it when the kernels were built");
    }
    return MIMUS_OK;
}

static mimus_status upload_hyper(mimus__trainer *trainer) {
    mimus_status status = MIMUS_OK;
    mimus__hyper *hyper = NULL;
    MIMUS_TRY(mimus__alloc(&hyper, trainer->live, sizeof *hyper));
    for (uint32_t r = 0; r < trainer->live; r++) {
        const mimus_config *config = trainer->seats[r].config;
        uint64_t order = mimus__config_order_seed(config);
        hyper[r] = (mimus__hyper){.seed_low = (uint32_t)config->seed,
                                  .seed_high = (uint32_t)(config->seed >> 32),
                                  .order_low = (uint32_t)order,
                                  .order_high = (uint32_t)(order >> 32),
                                  .lr = (float)config->lr,
                                  .weight_decay = (float)config->weight_decay,
                                  .clip = (float)config->clip,
                                  .label_smoothing = (float)config->label_smoothing,
                                  .dropout = (float)config->dropout};
    }
    MIMUS_TRY(mimus__buffer_write(&trainer->hyper, 0, hyper, trainer->live * sizeof *hyper));
out:
    free(hyper);
    return status;
}

/* A run's rows are 0 steps past its own epoch. */
static uint32_t steps_of(const mimus__trainer *trainer, uint32_t run) {
    return mimus__divide_up(trainer->seats[run].training, trainer->batch);
}

/* The learning rates' factors of an epoch. */
static mimus_status set_rates(mimus__trainer *trainer, uint32_t epoch) {
    for (uint32_t r = 0; r < trainer->live; r++) {
        const mimus_config *config = trainer->seats[r].config;
        uint64_t steps = steps_of(trainer, r), all = config->epochs * steps;
        for (uint32_t t = 0; t < trainer->steps; t++)
            trainer->rates[(size_t)r * trainer->steps + t] =
                t < steps ? (float)mimus__config_rate(config, epoch * steps + t, all, steps) : 0;
    }
    return mimus__optimizer_set_rates(trainer->optimizer, trainer->rates, trainer->live);
}

/* Upload a run's weights of heads and actions. */
static mimus_status weigh(mimus__trainer *trainer, uint32_t run,
                          const mimus__statistics *statistics) {
    mimus_status status = MIMUS_OK;
    const mimus_config *config = trainer->seats[run].config;
    const mimus_schema *schema = trainer->schema;
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

static mimus_status upload(mimus__trainer *trainer, const mimus__trainee *runs, model_array array,
                           const mimus__buffer *buffer) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &trainer->network->layout;
    float *image = NULL;
    if (buffer->device == NULL)
        return MIMUS_OK; /* an optimizer without this moment */
    MIMUS_TRY(mimus__alloc(&image, layout->total, sizeof *image));
    for (uint32_t r = 0; r < trainer->live; r++) {
        if (array(runs[r].model) != NULL)
            mimus__layout_pack(layout, r, array(runs[r].model), image);
    }
    MIMUS_TRY(mimus__buffer_write(buffer, 0, image, layout->total * sizeof *image));
out:
    free(image);
    return status;
}

/* Where batches are shared, the first run's is that of all. */
static mimus_status normalise(mimus__trainer *trainer, uint32_t run, const mimus__model *model) {
    if (trainer->store->normalised || (trainer->shared && run > 0))
        return MIMUS_OK;
    return trainer->gather != NULL
               ? mimus__gather_normalise(trainer->gather, run, model->mean, model->scale)
               : mimus__block_plan_normalise(trainer->block, run, model->mean, model->scale);
}

static mimus_status load_models(mimus__trainer *trainer, const mimus__trainee *runs) {
    mimus_status status = MIMUS_OK;
    mimus__optimizer *optimizer = trainer->optimizer;
    MIMUS_TRY(upload(trainer, runs, parameters_of, &trainer->network->parameters));
    MIMUS_TRY(mimus__optimizer_write_panels(optimizer));
    MIMUS_TRY(upload(trainer, runs, moment1_of, &optimizer->moment1));
    MIMUS_TRY(upload(trainer, runs, moment2_of, &optimizer->moment2));
    for (uint32_t r = 0; r < trainer->live; r++) {
        const mimus__training_state *state = runs[r].model->state;
        MIMUS_TRY(normalise(trainer, r, runs[r].model));
        MIMUS_TRY(mimus__optimizer_set_corrections(optimizer, r,
                                                   state != NULL ? state->correction1 : 0,
                                                   state != NULL ? state->correction2 : 0));
    }
out:
    return status;
}

static mimus_status take_seats(mimus__trainer *trainer, const mimus__trainee *runs,
                               uint32_t count) {
    mimus_status status = MIMUS_OK;
    trainer->live = count;
    for (uint32_t r = 0; r < count; r++) {
        seat *own = &trainer->seats[r];
        mimus_config_free(own->config);
        own->config = NULL;
        MIMUS_TRY(mimus__config_copy(&own->config, runs[r].config));
        own->training = training_of(trainer, &runs[r]);
        own->heldout = heldout_of(trainer, &runs[r]);
    }
out:
    return status;
}

static mimus_status set_parts(mimus__trainer *trainer, const mimus__trainee *runs, uint32_t count) {
    mimus_status status = MIMUS_OK;
    const mimus__run_rows **rows = NULL;
    MIMUS_TRY(mimus__alloc(&rows, count, sizeof(mimus__run_rows *)));
    for (uint32_t r = 0; r < count; r++)
        rows[r] = runs[r].rows;
    MIMUS_TRY(trainer->parts.runs > 0
                  ? mimus__parts_set(&trainer->parts, rows, count)
                  : mimus__parts_new(&trainer->parts, trainer->device, rows, count));
out:
    free(rows);
    return status;
}

mimus_status mimus__trainer_seat(mimus__trainer *trainer, const mimus__trainee *runs,
                                 uint32_t count) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(check_agreement(runs, count));
    MIMUS_TRY(check_room(trainer, runs, count));
    MIMUS_TRY(take_seats(trainer, runs, count));
    trainer->network->live = count;
    if (trainer->gather != NULL)
        mimus__gather_set_live(trainer->gather, count);
    if (trainer->loss != NULL)
        mimus__loss_set_live(trainer->loss, count);
    MIMUS_TRY(upload_hyper(trainer));
    if (trainer->has_parts)
        MIMUS_TRY(set_parts(trainer, runs, count));
    for (uint32_t r = 0; r < count; r++)
        MIMUS_TRY(weigh(trainer, r, runs[r].statistics));
    MIMUS_TRY(load_models(trainer, runs));
    MIMUS_TRY(set_rates(trainer, 0)); /* for whoever measures phases */
out:
    return status;
}

/* ------------------------------------------------------------------- construction */

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
    MIMUS_TRY(mimus__alloc(&trainer->rates, (size_t)trainer->runs * trainer->steps, sizeof(float)));
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

static const mimus__parts *parts_of(const mimus__trainer *trainer) {
    return trainer->has_parts ? &trainer->parts : NULL;
}

/* One batch for all runs, which the block plan's items then read. */
static mimus_status share_batch(mimus__trainer *trainer, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    uint32_t width = mimus__block_plan_input_width(trainer->network->layout.padded[0]);
    uint32_t capacity = trainer->batch + SPARE_ROWS;
    mimus__matrix x = {.buffer = &trainer->shared_x};
    MIMUS_TRY(mimus__buffer_new(&trainer->shared_x, trainer->device,
                                (size_t)capacity * width * sizeof(float), "the shared batch"));
    MIMUS_TRY(mimus__gather_new(&trainer->gather, trainer->device, trainer->store,
                                parts_of(trainer), &trainer->hyper, shape->stack, x, 1, capacity,
                                width));
out:
    return status;
}

static mimus_status make_block(mimus__trainer *trainer, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__network_new_numbers(
        &trainer->network, trainer->device, shape, trainer->runs, trainer->drops,
        mimus__block_plan_slices(trainer->device, trainer->batch)));
    if (trainer->shared)
        MIMUS_TRY(share_batch(trainer, shape));
    const mimus__block_source source = {
        .store = trainer->store,
        .parts = parts_of(trainer),
        .hyper = &trainer->hyper,
        .shared = trainer->shared ? mimus__gather_batch(trainer->gather) : NULL};
    MIMUS_TRY(mimus__block_plan_new(&trainer->block, trainer->network, &source, trainer->schema,
                                    trainer->drops, trainer->batch, MIMUS__BLOCK_PLAN_FASTEST));
out:
    return status;
}

static mimus_status make_phases(mimus__trainer *trainer, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    mimus__device *device = trainer->device;
    const mimus__buffer *hyper = &trainer->hyper;
    MIMUS_TRY(mimus__network_new(&trainer->network, device, shape, trainer->runs, trainer->batch,
                                 trainer->config->gemm, true, trainer->shared,
                                 trainer->drops ? hyper : NULL));
    const mimus__network *network = trainer->network;
    MIMUS_TRY(mimus__gather_new(&trainer->gather, device, trainer->store, parts_of(trainer), hyper,
                                shape->stack, mimus__network_matrix(network, 0),
                                trainer->shared ? 1 : trainer->runs, network->capacity,
                                network->layout.padded[0]));
    MIMUS_TRY(mimus__loss_new(
        &trainer->loss, device, trainer->schema, &trainer->store->layout, hyper,
        trainer->shared || trainer->has_parts ? mimus__gather_batch(trainer->gather) : NULL,
        trainer->has_parts, trainer->runs, network->capacity,
        network->layout.padded[shape->layers]));
out:
    return status;
}

static mimus_status make_parts(mimus__trainer *trainer, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__buffer_new(&trainer->hyper, trainer->device,
                                trainer->runs * sizeof(mimus__hyper), "the settings"));
    MIMUS_TRY(mimus__trainer_takes_blocks(trainer->config, trainer->device)
                  ? make_block(trainer, shape)
                  : make_phases(trainer, shape));
    MIMUS_TRY(mimus__optimizer_new(
        &trainer->optimizer, trainer->network,
        trainer->block != NULL ? mimus__block_plan_panels(trainer->block) : NULL, trainer->config,
        &trainer->hyper, mimus__metric_columns(trainer->heads), trainer->steps));
    MIMUS_TRY(make_report(trainer));
out:
    return status;
}

/* What the runs come to. Runs with rows of their own have batches of one size all the same, that
 * does not depend on who else trains: their bits must not. */
static void measure(mimus__trainer *trainer, const mimus__trainee *runs, uint32_t count) {
    const mimus__store *store = trainer->store;
    uint32_t training = 0, heldout = 0;
    uint32_t most = store->training + (trainer->has_parts ? store->heldout : 0);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t own = training_of(trainer, &runs[r]), judged = heldout_of(trainer, &runs[r]);
        training = own > training ? own : training;
        heldout = judged > heldout ? judged : heldout;
        trainer->drops = trainer->drops || runs[r].config->dropout > 0;
    }
    trainer->batch = trainer->config->batch < most ? trainer->config->batch : most;
    if (trainer->batch == 0) /* nothing to train on is refused before; never divide by it */
        trainer->batch = 1;
    trainer->steps = mimus__divide_up(training, trainer->batch);
    trainer->heldout_steps = mimus__divide_up(heldout, trainer->batch);
    trainer->stride = trainer->has_parts ? mimus__divide_up(most, trainer->batch) : trainer->steps;
    trainer->shared = count > 1 && all_share(trainer, runs, count);
}

mimus_status mimus__trainer_new(mimus__trainer **out, mimus__device *device,
                                const mimus__store *store, const mimus_schema *schema,
                                const mimus__trainee *runs, uint32_t count) {
    mimus_status status = MIMUS_OK;
    mimus__trainer *trainer = NULL;
    MIMUS_TRY(check_agreement(runs, count));
    MIMUS_TRY(mimus__alloc(&trainer, 1, sizeof *trainer));
    trainer->device = device;
    trainer->store = store;
    trainer->schema = schema;
    trainer->runs = count;
    trainer->heads = schema->heads;
    trainer->latest_loss = NAN;
    trainer->has_parts = runs[0].rows != NULL;
    MIMUS_TRY(mimus__alloc(&trainer->seats, count, sizeof *trainer->seats));
    MIMUS_TRY(mimus__config_copy(&trainer->config, runs[0].config));
    measure(trainer, runs, count);
    if (trainer->has_parts)
        MIMUS_TRY(set_parts(trainer, runs, count));
    MIMUS_TRY(make_parts(trainer, &runs[0].model->shape));
    MIMUS_TRY(mimus__trainer_seat(trainer, runs, count));
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
    mimus__parts_free(&trainer->parts);
    mimus__buffer_free(&trainer->shared_x);
    mimus__buffer_free(&trainer->hyper);
    mimus__buffer_free(&trainer->heldout_table);
    mimus__buffer_free(&trainer->report);
    mimus_config_free(trainer->config);
    free(trainer->report_image);
    for (uint32_t r = 0; trainer->seats != NULL && r < trainer->runs; r++)
        mimus_config_free(trainer->seats[r].config);
    free(trainer->seats);
    free(trainer->rates);
    free(trainer->step_loss);
    free(trainer->head_results);
    free(trainer);
}

uint32_t mimus__trainer_steps(const mimus__trainer *trainer) {
    return trainer->steps;
}

bool mimus__trainer_shares(const mimus__trainer *trainer) {
    return trainer->shared;
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

/* The same for a launch: runs with rows of their own take as many of a full batch as they have. */
static uint32_t launched_rows(const mimus__trainer *trainer, uint32_t step, uint32_t total) {
    return trainer->has_parts ? trainer->batch : rows_of(trainer, step, total);
}

static uint32_t padded_rows(const mimus__trainer *trainer, uint32_t rows) {
    return trainer->block != NULL ? rows : mimus__network_padded_rows(trainer->network, rows);
}

bool mimus__trainer_has(const mimus__trainer *trainer, mimus__step_phase phase) {
    if (phase == MIMUS__STEP_OPTIMIZER)
        return true;
    if (phase == MIMUS__STEP_GATHER)
        return trainer->gather != NULL;
    return (phase == MIMUS__STEP_BLOCK) == (trainer->block != NULL);
}

/* What the latest batch of `rows` rows left. */
static mimus__sums sums_of(const mimus__trainer *trainer, uint32_t rows) {
    if (trainer->block != NULL)
        return mimus__block_plan_sums(trainer->block);
    return mimus__loss_sums(trainer->loss, padded_rows(trainer, rows));
}

mimus_status mimus__trainer_phase(mimus__trainer *trainer, mimus__step_phase phase, uint32_t epoch,
                                  uint32_t step) {
    mimus__network *network = trainer->network;
    uint32_t first = step * trainer->batch;
    uint32_t rows = launched_rows(trainer, step, trainer->store->training);
    uint64_t global_step = (uint64_t)epoch * trainer->stride + step;
    uint32_t padded = padded_rows(trainer, rows);
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
        return mimus__optimizer_step(trainer->optimizer, sums_of(trainer, rows), step);
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
    uint32_t padded = padded_rows(trainer, rows);
    MIMUS_TRY(
        mimus__gather_in_order(trainer->gather, trainer->store->training, first, rows, padded));
    MIMUS_TRY(mimus__network_forward(network, padded, false, 0));
    MIMUS_TRY(mimus__loss_run(trainer->loss, padded, rows,
                              mimus__network_matrix(network, network->layout.shape.layers),
                              &mimus__gather_batch(trainer->gather)->labels));
out:
    return status;
}

static mimus_status judge_by_blocks(mimus__trainer *trainer, uint32_t first, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    uint32_t base = trainer->store->training;
    if (trainer->gather != NULL)
        MIMUS_TRY(mimus__gather_in_order(trainer->gather, base, first, rows, rows));
    MIMUS_TRY(mimus__block_plan_in_order(trainer->block, base, first, rows, false, 0));
out:
    return status;
}

static mimus_status heldout_step(mimus__trainer *trainer, uint32_t step) {
    mimus_status status = MIMUS_OK;
    uint32_t first = step * trainer->batch;
    uint32_t rows = launched_rows(trainer, step, trainer->store->heldout);
    MIMUS_TRY(trainer->block != NULL ? judge_by_blocks(trainer, first, rows)
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
    uint64_t total = trainer->seats[0].training;
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

/* The learning rate's factor of an epoch's last step. */
static double last_rate(const mimus_config *config, uint64_t epoch, uint64_t steps) {
    return mimus__config_rate(config, (epoch + 1) * steps - 1, config->epochs * steps, steps);
}

static void read_result(mimus__trainer *trainer, uint32_t run, uint32_t epoch,
                        mimus__epoch_result *result) {
    const seat *own = &trainer->seats[run];
    uint32_t steps = steps_of(trainer, run);
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
                                    .steps = steps,
                                    .step_loss = step_loss,
                                    .lr = own->config->lr * last_rate(own->config, epoch, steps)};
    for (uint32_t t = 0; t < steps; t++) {
        const float *row = table + t * columns;
        step_loss[t] = row[0];
        if (row[metric_columns + MIMUS__COLUMN_SKIPPED] == 0)
            result->norm += (double)row[metric_columns + MIMUS__COLUMN_NORM];
        else if (result->skipped++ == 0)
            result->first_skipped = t;
    }
    result->norm /= steps - result->skipped;
    fold(trainer, table, columns, steps, own->training, metric_columns + MIMUS__COLUMN_SKIPPED,
         &result->training);
    fold(trainer, heldout, metric_columns, mimus__divide_up(own->heldout, trainer->batch),
         own->heldout, 0, &result->heldout);
}

/* Of the runs whose loss is finite. */
static double mean_loss(const mimus__epoch_result *results, uint32_t count) {
    double sum = 0, finite = 0;
    for (uint32_t r = 0; r < count; r++) {
        if (isfinite(results[r].training.loss)) {
            sum += results[r].training.loss;
            finite++;
        }
    }
    return finite > 0 ? sum / finite : NAN;
}

mimus_status mimus__trainer_epoch(mimus__trainer *trainer, uint32_t epoch,
                                  mimus__epoch_result *results, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    if (trainer->began == 0)
        trainer->began = mimus__clock_seconds();
    MIMUS_TRY(set_rates(trainer, epoch));
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
    for (uint32_t run = 0; run < trainer->live; run++)
        read_result(trainer, run, epoch, &results[run]);
    trainer->latest_loss = mean_loss(results, trainer->live);
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
