#include "pass.h"

#include "estimate.h"

#include "alloc.h"
#include "clock.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

mimus_status mimus__pass_new(mimus__pass *out, size_t members, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__pass){.watch = &out->stopwatch.watch};
    mimus__stopwatch_begin(&out->stopwatch, watch);
    MIMUS_TRY(mimus__alloc(&out->member, members, sizeof *out->member));
    MIMUS_TRY(mimus__alloc(&out->seated, members, sizeof *out->seated));
    MIMUS_TRY(mimus__alloc(&out->results, members, sizeof *out->results));
    for (; out->members < members; out->members++)
        out->member[out->members] = (mimus__member){.pass = out, .run = {.lock = -1}};
out:
    return status;
}

void mimus__pass_clear(mimus__pass *pass) {
    mimus__trainer_free(pass->trainer);
    for (size_t i = 0; i < pass->members; i++)
        mimus__member_clear(&pass->member[i]);
    if (!pass->borrows) {
        mimus__store_free(&pass->store);
        mimus__device_close(pass->device);
        mimus__dataset_clear(&pass->dataset);
    }
    free(pass->member);
    free(pass->seated);
    free(pass->results);
}

void mimus__pass_borrow(mimus__pass *pass, const mimus__pass *owner) {
    pass->borrows = true;
    pass->dataset = owner->dataset;
    pass->device = owner->device;
    pass->store = owner->store;
}

/* ----------------------------------------------------------------------- opening */

static uint64_t samples_of(const mimus__pass *pass) {
    const mimus__split *split = &pass->dataset.split;
    return split->training.samples + split->heldout.samples;
}

/* Whether training would find room with senses in this form. */
static bool fits(const mimus__pass *pass, const mimus__shape *shape, mimus__store_form form) {
    const mimus_schema *schema = mimus__recording_schema(pass->dataset.recording);
    const mimus_config *config = pass->member[0].config;
    mimus__row_layout layout = mimus__row_layout_of(schema, config->stack, form);
    mimus__estimate estimate = {.schema = schema,
                                .samples = samples_of(pass),
                                .runs = (uint32_t)pass->members,
                                .blocks = mimus__trainer_takes_blocks(config, pass->device),
                                .compute_units =
                                    mimus__device_get_info(pass->device)->compute_units};
    return mimus__store_fits(pass->device, &layout, estimate.samples, config->shard,
                             mimus__estimate_step(&estimate, config, shape));
}

/* Make of "auto" what it means here: the settings that the runs keep say it, because it changes
 * what is learned. */
static void choose_store(mimus__pass *pass, const mimus__shape *shape) {
    const mimus_config *config = pass->member[0].config;
    mimus__store_form form = MIMUS__STORE_F32;
    if (config->store != MIMUS__STORE_AUTO)
        return;
    if (config->folds == 0 && !fits(pass, shape, MIMUS__STORE_F32) &&
        fits(pass, shape, MIMUS__STORE_F16)) {
        form = MIMUS__STORE_F16;
        mimus__watch_message(pass->watch,
                             "the recording does not fit on the device with senses in 32 bits: "
                             "they are kept in 16 (--store f16)");
    }
    for (size_t i = 0; i < pass->members; i++)
        pass->member[i].config->store = form;
}

mimus_status mimus__pass_open(mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    const mimus_config *config = pass->member[0].config;
    const mimus_schema *schema = mimus__recording_schema(pass->dataset.recording);
    mimus__shape shape;
    if (pass->device == NULL)
        MIMUS_TRY(mimus__device_open(&pass->device, config->device, config->memory));
    MIMUS_TRY(mimus__dataset_split(&pass->dataset, config));
    MIMUS_TRY(mimus__config_shape(&shape, config, schema));
    choose_store(pass, &shape);
    /* before the networks are made: they may be larger than the host's memory */
    MIMUS_TRY(mimus__estimate_check(pass->device, schema, samples_of(pass), (uint32_t)pass->members,
                                    config, &shape));
out:
    return status;
}

/* Below this many steps an epoch, a smaller batch learns more in the same time. */
enum { FEW_STEPS = 40 };

static void advise(const mimus__pass *pass) {
    const mimus__member *first = &pass->member[0];
    uint32_t steps = mimus__trainer_steps(pass->trainer), batch = first->config->batch;
    if (first->model->state->epoch > 0) /* a run that goes on keeps its batch */
        return;
    while (batch > 64 && first->share.split->training.samples / batch < FEW_STEPS)
        batch /= 2;
    if (batch < first->config->batch && steps < FEW_STEPS)
        mimus__watch_message(pass->watch,
                             "an epoch is only %u step%s of %u samples; a recording this small is "
                             "better learned in smaller batches, such as --batch %u",
                             steps, mimus__text_plural(steps), first->config->batch, batch);
}

static mimus_status make_store(mimus__pass *pass) {
    const mimus__member *first = &pass->member[0];
    const mimus__store_recipe recipe = {.form = first->config->store,
                                        .stack = first->config->stack,
                                        .mean_weight = pass->dataset.statistics.weight,
                                        .shard_bytes = first->config->shard,
                                        .mean = first->model->mean,
                                        .scale = first->model->scale};
    return mimus__store_new(&pass->store, pass->device, pass->dataset.recording,
                            &pass->dataset.audit, &pass->dataset.split, &recipe, pass->watch);
}

/* The members that stand at `epoch` and are not done, or with UINT64_MAX wherever they stand, into
 * `members`; returns how many. */
static uint32_t list_members(const mimus__pass *pass, uint64_t epoch, uint32_t *members) {
    uint32_t count = 0;
    for (size_t i = 0; i < pass->members; i++) {
        const mimus__member *member = &pass->member[i];
        if (!mimus__member_is_done(member) &&
            (epoch == UINT64_MAX || member->model->state->epoch == epoch))
            members[count++] = (uint32_t)i;
    }
    return count;
}

static mimus_status list_trainees(mimus__trainee **out, const mimus__pass *pass,
                                  const uint32_t *members, uint32_t count) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, count, sizeof **out));
    for (uint32_t i = 0; i < count; i++)
        (*out)[i] = mimus__member_trainee(&pass->member[members[i]]);
out:
    return status;
}

mimus_status mimus__pass_prepare(mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    mimus__trainee *trainees = NULL;
    mimus__device_set_watch(pass->device, pass->watch);
    if (!pass->borrows)
        MIMUS_TRY(make_store(pass));
    (void)mimus__phase_begin(pass->watch, "prepare", 0); /* kernels are built and products timed */
    pass->seats = list_members(pass, UINT64_MAX, pass->seated);
    if (pass->seats == 0) /* only to be judged */
        pass->seated[pass->seats++] = 0;
    MIMUS_TRY(list_trainees(&trainees, pass, pass->seated, pass->seats));
    MIMUS_TRY(mimus__trainer_new(&pass->trainer, pass->device, &pass->store,
                                 mimus__recording_schema(pass->dataset.recording), trainees,
                                 pass->seats));
    pass->shared = mimus__trainer_shares(pass->trainer);
    advise(pass);
    for (size_t i = 0; i < pass->members; i++) {
        pass->member[i].run.fresh = false; /* from here on there is something to keep */
        MIMUS_TRY(mimus__member_drop_outcome(&pass->member[i]));
        MIMUS_TRY(mimus__member_judge_again(&pass->member[i]));
    }
    pass->reads_before = mimus__device_reads(pass->device);
    pass->launches_before = mimus__device_launches(pass->device);
out:
    free(trainees);
    return status;
}

/* ------------------------------------------------------------------------- a row */

/* A mean over members as it gathers. */
typedef struct mean {
    double sum;
    uint32_t count;
} mean;

static void add(mean *m, double value) {
    if (isfinite(value)) {
        m->sum += value;
        m->count++;
    }
}

static json_t *mean_json(const mean *m) {
    return mimus__json_number(m->count > 0 ? m->sum / m->count : NAN);
}

static mimus_status mean_member(json_t *out, const char *key, json_t *const *rows, uint32_t count) {
    mean m = {.sum = 0};
    for (uint32_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(rows[i], key);
        add(&m, json_is_number(value) ? json_number_value(value) : NAN);
    }
    return mimus__json_set(out, key, mean_json(&m));
}

static mimus_status mean_heads(json_t **out, json_t *const *rows, uint32_t count) {
    static const char *const keys[] = {"agreement", "nll", "held_out_agreement", "held_out_nll"};
    mimus_status status = MIMUS_OK;
    json_t *heads = json_array(), **each = NULL;
    MIMUS_TRY(mimus__alloc(&each, count, sizeof(json_t *)));
    for (size_t h = 0; h < json_array_size(json_object_get(rows[0], "heads")); h++) {
        json_t *head = json_object();
        MIMUS_TRY(mimus__json_append(heads, head));
        for (uint32_t i = 0; i < count; i++)
            each[i] = json_array_get(json_object_get(rows[i], "heads"), h);
        MIMUS_TRY(mimus__json_set(head, "name", json_incref(json_object_get(each[0], "name"))));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            MIMUS_TRY(mean_member(head, keys[k], each, count));
    }
    *out = json_incref(heads);
out:
    free(each);
    json_decref(heads);
    return status;
}

static double number_of(const json_t *row, const char *key) {
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Of several runs: means over them, sums of what is counted. */
static mimus_status means_json(json_t **out, json_t *const *rows, uint32_t count, double seconds) {
    static const char *const means[] = {"loss", "held_out_loss", "lr", "norm"};
    mimus_status status = MIMUS_OK;
    json_t *row = json_object(), *heads = NULL;
    double skipped = 0, steps = 0, samples = 0;
    for (uint32_t i = 0; i < count; i++) {
        skipped += number_of(rows[i], "skipped");
        steps += number_of(rows[i], "steps");
        samples += number_of(rows[i], "samples_per_second");
    }
    MIMUS_TRY(mimus__json_set(row, "epoch", json_incref(json_object_get(rows[0], "epoch"))));
    MIMUS_TRY(mimus__json_set(row, "runs", json_integer(count)));
    for (size_t k = 0; k < sizeof means / sizeof *means; k++)
        MIMUS_TRY(mean_member(row, means[k], rows, count));
    MIMUS_TRY(mean_heads(&heads, rows, count));
    MIMUS_TRY(mimus__json_set(row, "heads", json_incref(heads)));
    MIMUS_TRY(mimus__json_set(row, "steps", json_integer((json_int_t)steps)));
    MIMUS_TRY(mimus__json_set(row, "skipped", json_integer((json_int_t)skipped)));
    MIMUS_TRY(mimus__json_set(row, "samples_per_second", mimus__json_number(samples)));
    MIMUS_TRY(mimus__json_set(row, "seconds", mimus__json_number(seconds)));
    mimus__json_round(row);
    *out = json_incref(row);
out:
    json_decref(heads);
    json_decref(row);
    return status;
}

/* ------------------------------------------------------------------------ epochs */

/* Tell whoever listens of an epoch: the row of a run alone, the means of several. */
static mimus_status report(mimus__pass *pass, json_t *const *rows, uint32_t count, double seconds) {
    mimus_status status = MIMUS_OK;
    json_t *row = NULL;
    char *text = NULL;
    if (pass->members == 1)
        row = json_incref(rows[0]);
    else
        MIMUS_TRY(means_json(&row, rows, count, seconds));
    if (pass->on_epoch != NULL)
        MIMUS_TRY(pass->on_epoch(pass->user, pass, row));
    if (pass->watch->on_epoch != NULL) {
        MIMUS_TRY(mimus__json_text(&text, row, JSON_COMPACT));
        pass->watch->on_epoch(pass->watch->user, text);
    }
out:
    json_decref(row);
    free(text);
    return status;
}

/* Seat these members, if others are seated. */
static mimus_status seat(mimus__pass *pass, const uint32_t *members, uint32_t count) {
    mimus_status status = MIMUS_OK;
    mimus__trainee *trainees = NULL;
    if (count == pass->seats && memcmp(members, pass->seated, count * sizeof *members) == 0)
        return MIMUS_OK;
    MIMUS_TRY(list_trainees(&trainees, pass, members, count));
    MIMUS_TRY(mimus__trainer_seat(pass->trainer, trainees, count));
    memcpy(pass->seated, members, count * sizeof *members);
    pass->seats = count;
out:
    free(trainees);
    return status;
}

static mimus_status run_epoch(mimus__pass *pass, uint64_t epoch) {
    mimus_status status = MIMUS_OK;
    json_t **rows = NULL;
    MIMUS_TRY(mimus__alloc(&rows, pass->seats, sizeof(json_t *)));
    double began = mimus__clock_seconds();
    MIMUS_TRY(mimus__trainer_epoch(pass->trainer, (uint32_t)epoch, pass->results, pass->watch));
    double seconds = mimus__clock_seconds() - began;
    pass->seconds += seconds;
    pass->epochs_run++;
    for (uint32_t i = 0; i < pass->seats; i++)
        MIMUS_TRY(mimus__member_epoch(&pass->member[pass->seated[i]], i, &pass->results[i], seconds,
                                      &rows[i]));
    MIMUS_TRY(report(pass, rows, pass->seats, seconds));
out:
    for (uint32_t i = 0; rows != NULL && i < pass->seats; i++)
        json_decref(rows[i]);
    free(rows);
    return status;
}

/* The epoch at which the hindmost stand that are to reach `until`; that, where none are. */
static uint64_t hindmost(const mimus__pass *pass, uint64_t until) {
    uint64_t least = until;
    for (size_t i = 0; i < pass->members; i++) {
        uint64_t epoch = pass->member[i].model->state->epoch;
        if (!mimus__member_is_done(&pass->member[i]) && epoch < least)
            least = epoch;
    }
    return least;
}

static bool asked_to_stop(const mimus__pass *pass) {
    const mimus_watch *watch = pass->watch;
    return watch->should_stop != NULL && watch->should_stop(watch->user);
}

mimus_status mimus__pass_train(mimus__pass *pass, uint64_t until) {
    mimus_status status = MIMUS_OK;
    uint32_t *members = NULL;
    MIMUS_TRY(mimus__alloc(&members, pass->members, sizeof *members));
    mimus__stopwatch_enter(&pass->stopwatch, "train");
    for (;;) {
        uint64_t epoch = hindmost(pass, until);
        if (epoch == until || (pass->stopped = asked_to_stop(pass)))
            break;
        uint32_t count = list_members(pass, epoch, members);
        MIMUS_TRY(seat(pass, members, count));
        MIMUS_TRY(run_epoch(pass, epoch));
    }
out:
    free(members);
    return status;
}

/* --------------------------------------------------------------------------- end */

mimus_status mimus__pass_device_json(json_t **out, const mimus__device *device) {
    mimus_status status = MIMUS_OK;
    const mimus__device_info *info = mimus__device_get_info(device);
    json_t *object = json_object();
    MIMUS_TRY(mimus__json_set(object, "name", json_string(info->name)));
    MIMUS_TRY(mimus__json_set(object, "vendor", json_string(info->vendor)));
    MIMUS_TRY(mimus__json_set(object, "driver", json_string(info->driver)));
    MIMUS_TRY(mimus__json_set(object, "peak_bytes",
                              json_integer((json_int_t)mimus__device_peak_bytes(device))));
    *out = json_incref(object);
out:
    json_decref(object);
    return status;
}

mimus_status mimus__pass_end(mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_end(&pass->member[i], pass->stopped));
    mimus__trainer_free(pass->trainer);
    pass->trainer = NULL;
out:
    return status;
}

/* The summaries counted what training took; judging follows, with the trainer out of the way. */
mimus_status mimus__pass_conclude(mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    if (!pass->borrows)
        mimus__store_free(&pass->store);
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_conclude(&pass->member[i]));
out:
    return status;
}
