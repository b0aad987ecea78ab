/* mimus_train and mimus_resume: a recording becomes a run folder. */
#include "estimate.h"
#include "evaluate.h"
#include "run.h"
#include "stopwatch.h"
#include "trainer.h"

#include "alloc.h"
#include "clock.h"
#include "file.h"
#include "jsonl.h"
#include "tensorboard.h"
#include "text.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One process's part of a run. */
typedef struct session {
    mimus__run run;
    mimus_config *config;
    mimus__dataset dataset;
    mimus__device *device;
    mimus__store store;
    mimus__model *model; /* parameters, moments, progress */
    mimus__trainer *trainer;
    mimus__stopwatch stopwatch;
    const mimus_watch *watch; /* the stopwatch's */
    uint64_t epochs_run;      /* by this process */
    uint64_t reads_before,
        launches_before; /* of the device, when training began: tuning reads too */
    double seconds;
    const char *ended; /* "finished", "stopped early", "stopped on request", "diverged" */
    char *trouble;     /* why the latest epoch is none to end on, or NULL */
    bool stuck;        /* no further epoch can mend it */
    json_t *best;      /* what the best checkpoint knows of its epoch, or NULL */
    char *events;      /* this process's event file, from its first epoch on, or NULL */
} session;

static mimus_status save_model(session *s, const char *name) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, name));
    MIMUS_TRY(mimus__model_save(s->model, path));
out:
    free(path);
    return status;
}

/* -------------------------------------------------------------------- metrics */

static mimus_status heads_json(json_t **out, const mimus_schema *schema,
                               const mimus__epoch_result *result) {
    mimus_status status = MIMUS_OK;
    json_t *heads = json_array();
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus__head_result *training = &result->training.heads[h];
        const mimus__head_result *heldout = &result->heldout.heads[h];
        json_t *head = json_object();
        MIMUS_TRY(mimus__json_append(heads, head));
        MIMUS_TRY(mimus__json_set(head, "name", json_string(schema->head[h].name)));
        MIMUS_TRY(mimus__json_set(head, "agreement", mimus__json_number(training->agreement)));
        MIMUS_TRY(mimus__json_set(head, "nll", mimus__json_number(training->nll)));
        MIMUS_TRY(
            mimus__json_set(head, "held_out_agreement", mimus__json_number(heldout->agreement)));
        MIMUS_TRY(mimus__json_set(head, "held_out_nll", mimus__json_number(heldout->nll)));
    }
    *out = json_incref(heads);
out:
    json_decref(heads);
    return status;
}

static mimus_status step_losses_json(json_t **out, const mimus__epoch_result *result) {
    mimus_status status = MIMUS_OK;
    json_t *losses = json_array();
    for (uint32_t t = 0; t < result->steps; t++)
        MIMUS_TRY(mimus__json_append(losses, mimus__json_number((double)result->step_loss[t])));
    *out = json_incref(losses);
out:
    json_decref(losses);
    return status;
}

/* The epoch's row of metrics.jsonl. */
static mimus_status row_json(json_t **out, const session *s, uint64_t epoch,
                             const mimus__epoch_result *result, double seconds) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object(), *heads = NULL, *losses = NULL;
    const mimus_schema *schema = mimus__recording_schema(s->dataset.recording);
    double samples = (double)s->store.training + (double)s->store.heldout;
    MIMUS_TRY(mimus__json_set(row, "epoch", json_integer((json_int_t)epoch)));
    MIMUS_TRY(mimus__json_set(row, "loss", mimus__json_number(result->training.loss)));
    MIMUS_TRY(mimus__json_set(row, "held_out_loss", mimus__json_number(result->heldout.loss)));
    MIMUS_TRY(heads_json(&heads, schema, result));
    MIMUS_TRY(mimus__json_set(row, "heads", json_incref(heads)));
    MIMUS_TRY(mimus__json_set(row, "lr", mimus__json_number(result->lr)));
    MIMUS_TRY(mimus__json_set(row, "norm", mimus__json_number(result->norm)));
    MIMUS_TRY(mimus__json_set(row, "steps", json_integer(result->steps)));
    MIMUS_TRY(mimus__json_set(row, "skipped", json_integer(result->skipped)));
    MIMUS_TRY(mimus__json_set(row, "samples_per_second", mimus__json_number(samples / seconds)));
    MIMUS_TRY(mimus__json_set(row, "seconds", mimus__json_number(seconds)));
    MIMUS_TRY(step_losses_json(&losses, result));
    MIMUS_TRY(mimus__json_set(row, "step_loss", json_incref(losses)));
    mimus__json_round(row);
    *out = json_incref(row);
out:
    json_decref(heads);
    json_decref(losses);
    json_decref(row);
    return status;
}

/* What the checkpoint keeps of the epoch: nothing that differs from machine load to machine load,
 * so that equal training gives equal files. */
static mimus_status keep_facts(session *s, const json_t *row) {
    mimus_status status = MIMUS_OK;
    const char *const keys[] = {"epoch", "loss", "held_out_loss", "heads"};
    json_object_clear(s->model->facts);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(s->model->facts, keys[i],
                                  json_deep_copy(json_object_get(row, keys[i]))));
    MIMUS_TRY(mimus__json_set(s->model->facts, "recording",
                              json_string(mimus__recording_fingerprint(s->dataset.recording))));
out:
    return status;
}

static void warn_of_skips(const session *s, uint64_t epoch, const mimus__epoch_result *result) {
    if (result->skipped > 0 && result->skipped < result->steps)
        mimus__watch_message(s->watch,
                             "epoch %llu: skipped %u of %u steps (the first is step %u), whose "
                             "loss or gradient was not finite",
                             (unsigned long long)epoch, result->skipped, result->steps,
                             result->first_skipped);
}

/* ------------------------------------------------------------------ divergence */

/* The most that choosing at random can lose: log(actions) a head. */
static double chance_loss(const session *s) {
    const mimus_schema *schema = s->model->schema;
    double sum = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        double weight = s->config->head_weights != NULL ? s->config->head_weights[h] : 1;
        sum += weight * log((double)schema->head[h].actions);
    }
    return sum;
}

/* Whether the latest epoch, of these losses, is one to end on: a training loss that is not finite
 * is that of an epoch without a step; twice what chance loses is no policy. */
static mimus_status judge(session *s, double loss, double heldout_loss) {
    mimus_status status = MIMUS_OK;
    const unsigned long long epoch = s->model->state->epoch;
    const bool heldout = s->store.heldout > 0;
    const double chance = chance_loss(s);
    free(s->trouble);
    s->trouble = NULL;
    if (!isfinite(loss))
        MIMUS_TRY(mimus__text_format(&s->trouble,
                                     "every step of epoch %llu was skipped, because loss or "
                                     "gradient was not finite",
                                     epoch));
    else if (heldout && !isfinite(heldout_loss))
        MIMUS_TRY(mimus__text_format(&s->trouble, "the held-out loss of epoch %llu is not finite",
                                     epoch));
    else if (loss > 2 * chance && (!heldout || heldout_loss > 2 * chance))
        MIMUS_TRY(mimus__text_format(&s->trouble,
                                     "the loss of epoch %llu is %.3g, and choosing at random "
                                     "loses at most %.3g",
                                     epoch, loss, chance));
out:
    return status;
}

static mimus_status diverged(const session *s) {
    return mimus__fail(MIMUS_ERR_DIVERGED,
                       "%s: training diverged: %s; start again with a smaller --lr than %g%s, and "
                       "look for senses far out of bounds by `mimus info`",
                       s->run.folder, s->trouble, s->config->lr,
                       s->config->clip > 0 ? "" : " or with --clip 1");
}

/* ---------------------------------------------------------------------- epochs */

/* Judge the epoch: is it the best so far? Without a held-out part, the training loss decides. */
static bool note_best(session *s, const mimus__epoch_result *result) {
    mimus__training_state *state = s->model->state;
    double loss = s->store.heldout > 0 ? result->heldout.loss : result->training.loss;
    if (isfinite(loss) && (loss < state->best || state->best_epoch == 0)) {
        state->best = loss;
        state->best_epoch = state->epoch;
        state->stale = 0;
        return true;
    }
    state->stale++;
    return false;
}

/* Save what the epoch made of the network. One that is not finite any more is not kept: the
 * checkpoints stay those of the epochs before. */
static mimus_status keep_model(session *s, bool best) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__trainer_save(s->trainer, 0, s->model));
    if (best)
        MIMUS_TRY(save_model(s, "best.safetensors"));
    MIMUS_TRY(save_model(s, "last.safetensors"));
    if (best) {
        json_decref(s->best);
        s->best = json_deep_copy(s->model->facts);
        if (s->best == NULL)
            status = mimus__fail(MIMUS_ERR_MEMORY, "cannot copy a JSON object");
    }
out:
    if (status == MIMUS_ERR_DATA) {
        s->stuck = true;
        free(s->trouble);
        status = mimus__text_copy(&s->trouble, mimus_last_error());
    }
    return status;
}

/* The epoch's row, and the steps that it took, for TensorBoard. */
static mimus_status keep_events(session *s, const json_t *row, uint32_t steps) {
    mimus_status status = MIMUS_OK;
    const uint64_t step = s->model->state->step;
    if (!s->config->tensorboard)
        return MIMUS_OK;
    if (s->events == NULL)
        MIMUS_TRY(
            mimus__tensorboard_begin(&s->events, s->run.folder, step - steps, s->model->config));
    MIMUS_TRY(mimus__tensorboard_append(s->events, step, row));
out:
    return status;
}

/* Run one epoch and leave everything about it in the folder. The row is written first and the last
 * checkpoint at the end: a resume drops rows that the checkpoint does not know. */
static mimus_status run_epoch(session *s) {
    mimus_status status = MIMUS_OK;
    mimus__training_state *state = s->model->state;
    mimus__epoch_result result;
    char *path = NULL, *text = NULL;
    json_t *row = NULL;
    double began = mimus__clock_seconds();
    MIMUS_TRY(mimus__trainer_epoch(s->trainer, (uint32_t)state->epoch, &result, s->watch));
    double seconds = mimus__clock_seconds() - began;
    s->seconds += seconds;
    s->epochs_run++;
    state->epoch++;
    state->step += result.steps;
    warn_of_skips(s, state->epoch, &result);
    bool best = note_best(s, &result), troubled = s->trouble != NULL;
    MIMUS_TRY(judge(s, result.training.loss, result.heldout.loss));
    s->stuck = result.skipped == result.steps; /* the next epoch would begin where this one did */
    MIMUS_TRY(row_json(&row, s, state->epoch, &result, seconds));
    MIMUS_TRY(mimus__run_path(&path, &s->run, "metrics.jsonl"));
    MIMUS_TRY(mimus__jsonl_append(path, row));
    MIMUS_TRY(keep_events(s, row, result.steps));
    MIMUS_TRY(keep_facts(s, row));
    MIMUS_TRY(keep_model(s, best));
    if (s->watch != NULL && s->watch->on_epoch != NULL) {
        MIMUS_TRY(mimus__json_text(&text, row, JSON_COMPACT));
        s->watch->on_epoch(s->watch->user, text);
    }
    if (s->trouble != NULL && !troubled && !s->stuck)
        mimus__watch_message(s->watch, "%s: a smaller --lr may be needed", s->trouble);
out:
    free(path);
    free(text);
    json_decref(row);
    return status;
}

static bool asked_to_stop(const session *s) {
    return s->watch != NULL && s->watch->should_stop != NULL &&
           s->watch->should_stop(s->watch->user);
}

/* Nothing is left to do: all epochs are done, or those that patience waits for. */
static bool is_done(const session *s) {
    const mimus__training_state *state = s->model->state;
    return state->epoch >= s->config->epochs ||
           (s->config->patience > 0 && state->stale >= s->config->patience);
}

static mimus_status run_epochs(session *s) {
    mimus_status status = MIMUS_OK;
    const mimus__training_state *state = s->model->state;
    bool stopped = false;
    while (!s->stuck && !is_done(s) && !(stopped = asked_to_stop(s)))
        MIMUS_TRY(run_epoch(s));
    if (stopped)
        s->ended = "stopped on request";
    else if (s->trouble != NULL)
        s->ended = "diverged";
    else
        s->ended = state->epoch < s->config->epochs ? "stopped early" : "finished";
out:
    return status;
}

/* --------------------------------------------------------------------- summary */

static mimus_status device_json(json_t **out, const mimus__device *device) {
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

static mimus_status summary_json(json_t **out, const session *s) {
    mimus_status status = MIMUS_OK;
    const mimus__training_state *state = s->model->state;
    json_t *object = json_object(), *device = NULL;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"epochs", state->epoch},
        {"best_epoch", state->best_epoch},
        {"training_samples", s->store.training},
        {"held_out_samples", s->store.heldout},
        {"training_episodes", s->dataset.split.training.episodes},
        {"held_out_episodes", s->dataset.split.heldout.episodes},
        {"parameters", mimus__shape_parameters(&s->model->shape)},
        {"steps", state->step},
        /* this process's share, and the blocking reads it took: one an epoch */
        {"epochs_run", s->epochs_run},
        {"reads", mimus__device_reads(s->device) - s->reads_before},
        {"launches", mimus__device_launches(s->device) - s->launches_before},
    };
    MIMUS_TRY(mimus__json_set(object, "run", mimus__json_lossy_string(s->run.folder)));
    MIMUS_TRY(mimus__json_set(object, "ended", json_string(s->ended)));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        MIMUS_TRY(
            mimus__json_set(object, numbers[i].key, json_integer((json_int_t)numbers[i].value)));
    MIMUS_TRY(mimus__json_set(object, "best_loss", mimus__json_number(state->best)));
    MIMUS_TRY(mimus__json_set(object, "seconds", mimus__json_number(s->seconds)));
    MIMUS_TRY(device_json(&device, s->device));
    MIMUS_TRY(mimus__json_set(object, "device", json_incref(device)));
    MIMUS_TRY(mimus__json_set(object, "step", mimus__trainer_report(s->trainer)));
    MIMUS_TRY(mimus__json_set(object, "last", json_deep_copy(s->model->facts)));
    MIMUS_TRY(
        mimus__json_set(object, "best", s->best != NULL ? json_deep_copy(s->best) : json_null()));
    mimus__json_round(object);
    *out = json_incref(object);
out:
    json_decref(device);
    json_decref(object);
    return status;
}

/* Heads of more actions have no confusion matrix in evaluation.json, and neighbouring episodes are
 * put together beyond so many. */
enum { CONFUSION_ACTIONS = 128, EPISODE_GROUPS = 4096 };

/* Judge the best epoch's network. Nothing is left to stop: a wish to is not looked at. */
static mimus_status evaluation_json(json_t **out, session *s, const char *file) {
    mimus_status status = MIMUS_OK;
    mimus__model *model = NULL;
    mimus__metrics *metrics = NULL;
    json_t *json = NULL, *episodes = NULL;
    mimus_watch watch = s->stopwatch.watch;
    watch.should_stop = NULL;
    MIMUS_TRY(mimus__model_load(&model, file));
    const mimus__evaluation what = {.model = model,
                                    .file = file,
                                    .dataset = &s->dataset,
                                    .rows = &s->dataset.split.heldout,
                                    .device = s->device,
                                    .confusion = CONFUSION_ACTIONS,
                                    .episodes = EPISODE_GROUPS};
    MIMUS_TRY(mimus__evaluate(&metrics, &what, &watch));
    MIMUS_TRY(mimus__evaluation_json(&json, &what, metrics, s->run.folder, "held-out"));
    MIMUS_TRY(mimus__metrics_episodes_json(&episodes, metrics));
    MIMUS_TRY(mimus__json_set(json, "by_episode", json_incref(episodes)));
    mimus__json_round(json);
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(episodes);
    mimus__metrics_free(metrics);
    mimus__model_free(model);
    return status;
}

/* What the run's policy is worth, for mimus report and mimus compare, which then need neither
 * recording nor device. The training is done without it: where it fails, that is only told. */
static mimus_status keep_evaluation(session *s) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *path = NULL, *file = NULL, *text = NULL;
    if (s->dataset.split.heldout.samples == 0 || s->best == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "evaluation.json"));
    MIMUS_TRY(mimus__run_path(&file, &s->run, "best.safetensors"));
    status = evaluation_json(&json, s, file);
    if (status != MIMUS_OK && status != MIMUS_ERR_MEMORY) {
        mimus__watch_message(s->watch, "the held-out part could not be judged: %s",
                             mimus_last_error());
        status = MIMUS_OK;
        goto out;
    }
    MIMUS_TRY(status);
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT)); /* long arrays of numbers */
    MIMUS_TRY(mimus__file_replace(path, text, strlen(text)));
out:
    free(path);
    free(file);
    free(text);
    json_decref(json);
    return status;
}

/* The summary counts what training took; judging it follows, with the trainer out of the way. */
static mimus_status conclude(session *s, char **text) {
    mimus_status status = MIMUS_OK;
    json_t *summary = NULL, *phases = NULL;
    char *path = NULL;
    MIMUS_TRY(summary_json(&summary, s));
    mimus__trainer_free(s->trainer);
    s->trainer = NULL;
    mimus__store_free(&s->store);
    MIMUS_TRY(keep_evaluation(s));
    MIMUS_TRY(mimus__stopwatch_json(&phases, &s->stopwatch));
    mimus__json_round(phases);
    MIMUS_TRY(mimus__json_set(summary, "phases", json_incref(phases)));
    MIMUS_TRY(mimus__run_path(&path, &s->run, "summary.json"));
    MIMUS_TRY(mimus__json_write(path, summary));
    if (text != NULL)
        MIMUS_TRY(mimus__json_text(text, summary, JSON_INDENT(2)));
out:
    free(path);
    json_decref(summary);
    json_decref(phases);
    return status;
}

/* -------------------------------------------------------------------- sessions */

static void session_clear(session *s) {
    mimus__trainer_free(s->trainer);
    mimus__store_free(&s->store);
    mimus__device_close(s->device);
    mimus__model_free(s->model);
    mimus__dataset_clear(&s->dataset);
    mimus_config_free(s->config);
    mimus__run_close(&s->run);
    free(s->trouble);
    free(s->events);
    json_decref(s->best);
}

/* Below this many steps an epoch, a smaller batch learns more in the same time. */
enum { FEW_STEPS = 40 };

static void advise(const session *s) {
    uint32_t steps = mimus__trainer_steps(s->trainer), batch = s->config->batch;
    if (s->model->state->epoch > 0) /* a run that goes on keeps its batch */
        return;
    while (batch > 64 && s->dataset.split.training.samples / batch < FEW_STEPS)
        batch /= 2;
    if (batch < s->config->batch && steps < FEW_STEPS)
        mimus__watch_message(s->watch,
                             "an epoch is only %u step%s of %u samples; a recording this small is "
                             "better learned in smaller batches, such as --batch %u",
                             steps, mimus__text_plural(steps), s->config->batch, batch);
}

/* What an earlier part came to is nothing of a run that goes on. */
static mimus_status drop_outcome(const session *s) {
    const char *const names[] = {"summary.json", "evaluation.json"};
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        free(path);
        MIMUS_TRY(mimus__run_path(&path, &s->run, names[i]));
        if (unlink(path) != 0 && errno != ENOENT) {
            status = mimus__fail(MIMUS_ERR_IO, "%s: cannot remove: %s", path, strerror(errno));
            goto out;
        }
    }
out:
    free(path);
    return status;
}

/* Whether the epoch that a resumed run stands on was one to end on. */
static mimus_status judge_again(session *s) {
    const json_t *loss = json_object_get(s->model->facts, "loss");
    const json_t *heldout = json_object_get(s->model->facts, "held_out_loss");
    if (s->model->state->epoch == 0)
        return MIMUS_OK;
    return judge(s, json_is_number(loss) ? json_number_value(loss) : NAN,
                 json_is_number(heldout) ? json_number_value(heldout) : NAN);
}

/* Whether training would find room with senses in this form. */
static bool fits(const session *s, const mimus__shape *shape, mimus__store_form form) {
    const mimus_schema *schema = mimus__recording_schema(s->dataset.recording);
    const mimus_config *config = s->config;
    mimus__row_layout layout = mimus__row_layout_of(schema, config->stack, form);
    mimus__estimate estimate = {.schema = schema,
                                .samples = s->dataset.split.training.samples +
                                           s->dataset.split.heldout.samples,
                                .blocks = mimus__trainer_takes_blocks(config, s->device),
                                .compute_units = mimus__device_get_info(s->device)->compute_units};
    return mimus__store_fits(s->device, &layout, estimate.samples, config->shard,
                             mimus__estimate_step(&estimate, config, shape));
}

/* Make of "auto" what it means here: the settings that the run keeps say it, because it changes
 * what is learned. */
static mimus_status choose_store(session *s) {
    mimus_status status = MIMUS_OK;
    mimus__shape shape;
    if (s->config->store != MIMUS__STORE_AUTO)
        return MIMUS_OK;
    MIMUS_TRY(
        mimus__config_shape(&shape, s->config, mimus__recording_schema(s->dataset.recording)));
    s->config->store = MIMUS__STORE_F32;
    if (!fits(s, &shape, MIMUS__STORE_F32) && fits(s, &shape, MIMUS__STORE_F16)) {
        s->config->store = MIMUS__STORE_F16;
        mimus__watch_message(s->watch,
                             "the recording does not fit on the device with senses in 32 bits: "
                             "they are kept in 16 (--store f16)");
    }
out:
    return status;
}

/* Before the network is made: it may be larger than the host's memory. */
static mimus_status check_room(const session *s) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(s->dataset.recording);
    const mimus__split *split = &s->dataset.split;
    mimus__shape shape;
    MIMUS_TRY(mimus__config_shape(&shape, s->config, schema));
    MIMUS_TRY(mimus__estimate_check(
        s->device, schema, split->training.samples + split->heldout.samples, s->config, &shape));
out:
    return status;
}

/* From an opened recording and a model to the end of training. */
static mimus_status train(session *s, char **summary) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(s->dataset.recording);
    const mimus_config *config = s->config;
    const mimus__model *model = s->model;
    const mimus__store_recipe recipe = {.form = config->store,
                                        .stack = config->stack,
                                        .mean_weight = s->dataset.statistics.weight,
                                        .shard_bytes = config->shard,
                                        .mean = model->mean,
                                        .scale = model->scale};
    mimus__device_set_watch(s->device, s->watch);
    MIMUS_TRY(mimus__store_new(&s->store, s->device, s->dataset.recording, &s->dataset.audit,
                               &s->dataset.split, &recipe, s->watch));
    (void)mimus__phase_begin(s->watch, "prepare", 0); /* kernels are built and products timed */
    MIMUS_TRY(mimus__trainer_new(&s->trainer, s->device, &s->store, schema, &config, &model,
                                 &s->dataset.statistics, 1));
    advise(s);
    s->run.fresh = false; /* from here on there is something to keep */
    s->reads_before = mimus__device_reads(s->device);
    s->launches_before = mimus__device_launches(s->device);
    MIMUS_TRY(drop_outcome(s));
    MIMUS_TRY(judge_again(s));
    mimus__stopwatch_enter(&s->stopwatch, "train");
    MIMUS_TRY(run_epochs(s));
    MIMUS_TRY(conclude(s, summary));
    if (strcmp(s->ended, "diverged") == 0)
        status = diverged(s);
    if (strcmp(s->ended, "stopped on request") == 0)
        status =
            mimus__fail(MIMUS_ERR_STOPPED,
                        "stopped after epoch %llu of %u; go on with `mimus train --resume %s`",
                        (unsigned long long)model->state->epoch, config->epochs, s->run.folder);
out:
    return status;
}

mimus_status mimus_train(const mimus_source *source, const mimus_config *config, const char *run,
                         const mimus_watch *watch, char **summary) {
    mimus_status status = MIMUS_OK;
    session s = {.run = {.lock = -1}, .watch = &s.stopwatch.watch};
    mimus__stopwatch_begin(&s.stopwatch, watch);
    MIMUS_TRY(mimus__config_copy(&s.config, config));
    MIMUS_TRY(mimus__config_check(config));
    MIMUS_TRY(mimus__run_create(&s.run, run));
    MIMUS_TRY(mimus__device_open(&s.device, config->device, config->memory));
    MIMUS_TRY(mimus__dataset_open(&s.dataset, source, NULL, s.watch));
    MIMUS_TRY(mimus__dataset_split(&s.dataset, s.config));
    MIMUS_TRY(choose_store(&s));
    MIMUS_TRY(check_room(&s));
    MIMUS_TRY(mimus__dataset_model(&s.model, &s.dataset, s.config));
    MIMUS_TRY(save_model(&s, "last.safetensors")); /* a kill in the first epoch can be resumed */
    MIMUS_TRY(mimus__run_begin(&s.run, s.config, source, &s.dataset));
    MIMUS_TRY(train(&s, summary));
out:
    session_clear(&s);
    return status;
}

/* The settings that a resume may change without changing what is learned. */
static bool may_change(const char *key) {
    const char *const free_keys[] = {"epochs", "device", "memory",   "shard",
                                     "plan",   "gemm",   "patience", "tensorboard"};
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++) {
        if (strcmp(key, free_keys[i]) == 0)
            return true;
    }
    return false;
}

/* Both belong to the same run: `settings`, and those of the checkpoint. */
static mimus_status check_settings(const session *s, const json_t *settings, const json_t *own) {
    mimus_status status = MIMUS_OK;
    char *is = NULL, *was = NULL;
    const char *key;
    json_t *value, *object = (json_t *)settings; /* jansson iterates over what it could change */
    json_object_foreach(object, key, value) {
        if (json_equal(json_object_get(own, key), value) || may_change(key))
            continue;
        MIMUS_TRY(mimus__json_text(&is, value, JSON_COMPACT));
        MIMUS_TRY(mimus__json_text(&was, json_object_get(own, key), JSON_COMPACT));
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "%s: \"%s\" was %s when the run began, and cannot change to %s in a "
                             "resumed run; leave it out (config.json too has to keep it), or "
                             "start a new run",
                             s->run.folder, key, was, is);
        goto out;
    }
out:
    free(is);
    free(was);
    return status;
}

/* How the run goes on: config.json says it, and where it is gone the checkpoint. */
static mimus_status read_settings(session *s) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "config.json"));
    if (!mimus__file_exists(path))
        goto out;
    status = mimus_config_load(s->config, path);
    if (status != MIMUS_OK)
        status = mimus__fail(status,
                             "%s; repair it, or remove it to go on with the settings that "
                             "last.safetensors keeps",
                             mimus_last_error());
out:
    free(path);
    return status;
}

/* Take the run's own settings, or `wanted` when it is not NULL. */
static mimus_status resumed_config(session *s, const mimus_config *wanted) {
    mimus_status status = MIMUS_OK;
    json_t *own = NULL, *settings = NULL;
    MIMUS_TRY(mimus_config_new(&s->config));
    MIMUS_TRY(mimus__config_from_json(s->config, s->model->config, s->run.folder));
    if (s->config->store == MIMUS__STORE_AUTO)
        s->config->store = MIMUS__STORE_F32; /* begun before there was the setting */
    const mimus__store_form form = s->config->store;
    MIMUS_TRY(mimus__config_to_json(&own, s->config)); /* defaults included */
    if (wanted == NULL) {
        MIMUS_TRY(read_settings(s));
    } else {
        mimus_config_free(s->config);
        MIMUS_TRY(mimus__config_copy(&s->config, wanted));
    }
    if (s->config->store == MIMUS__STORE_AUTO)
        s->config->store = form; /* it was chosen when the run began */
    MIMUS_TRY(mimus__config_check(s->config));
    MIMUS_TRY(mimus__config_to_json(&settings, s->config));
    MIMUS_TRY(check_settings(s, settings, own));
    json_decref(s->model->config);
    s->model->config = json_incref(settings);
out:
    json_decref(own);
    json_decref(settings);
    return status;
}

/* A last.safetensors of another run must not meet this one's recording and settings. */
static mimus_status check_network(const session *s) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(s->dataset.recording);
    const mimus__shape *own = &s->model->shape;
    mimus__shape shape;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "last.safetensors"));
    MIMUS_TRY(mimus__schema_match(s->model->schema, path, schema, "the recording", false));
    MIMUS_TRY(mimus__config_shape(&shape, s->config, schema));
    bool same = own->stack == shape.stack && own->layers == shape.layers &&
                own->activation == shape.activation;
    for (uint32_t l = 0; same && l <= shape.layers; l++)
        same = own->width[l] == shape.width[l];
    if (!same)
        status =
            mimus__fail(MIMUS_ERR_FORMAT,
                        "%s: holds another network than the one that its settings describe", path);
out:
    free(path);
    return status;
}

/* Open the recording that the run was trained on, wherever it now lies. */
static mimus_status resumed_dataset(session *s, const mimus_source *wanted) {
    mimus_status status = MIMUS_OK;
    mimus__run_source own = {0};
    MIMUS_TRY(mimus__run_read_source(&own, &s->run));
    MIMUS_TRY(
        mimus__dataset_open(&s->dataset, wanted != NULL ? wanted : &own.source, NULL, s->watch));
    const char *found = mimus__recording_fingerprint(s->dataset.recording);
    if (strcmp(found, own.fingerprint) != 0) {
        status = mimus__fail(MIMUS_ERR_DATA,
                             "%s: was trained on recording %s, and this is recording %s: the files "
                             "have changed or are others",
                             s->run.folder, own.fingerprint, found);
        goto out;
    }
    MIMUS_TRY(check_network(s));
    MIMUS_TRY(mimus__dataset_split(&s->dataset, s->config));
out:
    mimus__run_source_clear(&own);
    return status;
}

/* config.json says how the run goes on from here. */
static mimus_status keep_config(const session *s) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "config.json"));
    MIMUS_TRY(mimus__json_write(path, s->model->config));
out:
    free(path);
    return status;
}

static mimus_status resumed_model(session *s) {
    mimus_status status = MIMUS_OK;
    char *path = NULL, *metrics = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "last.safetensors"));
    MIMUS_TRY(mimus__run_path(&metrics, &s->run, "metrics.jsonl"));
    MIMUS_TRY(mimus__model_load(&s->model, path));
    if (s->model->state == NULL) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: holds no training state to go on from", path);
        goto out;
    }
    MIMUS_TRY(mimus__jsonl_trim(metrics, "epoch", s->model->state->epoch));
out:
    free(path);
    free(metrics);
    return status;
}

/* The best checkpoint is only ever replaced: one that is gone or damaged is no reason to stop, the
 * next epoch takes its place. */
static mimus_status resumed_best(session *s) {
    mimus_status status = MIMUS_OK;
    mimus__training_state *state = s->model->state;
    mimus__model *best = NULL;
    char *path = NULL;
    if (state->best_epoch == 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "best.safetensors"));
    status = mimus__model_load(&best, path);
    if (status == MIMUS_OK) {
        s->best = json_incref(best->facts);
    } else if (status != MIMUS_ERR_MEMORY) {
        mimus__watch_message(s->watch, "%s; the best epoch from here on takes its place",
                             mimus_last_error());
        state->best = INFINITY;
        state->best_epoch = state->stale = 0;
        status = MIMUS_OK;
    }
out:
    free(path);
    mimus__model_free(best);
    return status;
}

/* Of a run with nothing left to do: its summary, with nothing done by this process. `*out` = NULL
 * where it has none that says the same, or was not judged, because it was killed after its last
 * epoch. */
static mimus_status finished_summary(json_t **out, const session *s) {
    mimus_status status = MIMUS_OK;
    const char *const keys[] = {"epochs_run", "reads", "launches", "seconds"};
    json_t *summary = NULL;
    char *path = NULL, *evaluation = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__run_path(&path, &s->run, "summary.json"));
    if (mimus__json_read(&summary, path) != MIMUS_OK ||
        !json_is_string(json_object_get(summary, "ended")) ||
        json_integer_value(json_object_get(summary, "epochs")) !=
            (json_int_t)s->model->state->epoch)
        goto out;
    MIMUS_TRY(mimus__run_path(&evaluation, &s->run, "evaluation.json"));
    if (json_is_object(json_object_get(summary, "best")) &&
        json_integer_value(json_object_get(summary, "held_out_samples")) > 0 &&
        !mimus__file_exists(evaluation))
        goto out;
    MIMUS_TRY(mimus__json_set(summary, "run",
                              mimus__json_lossy_string(s->run.folder))); /* it may have moved */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(summary, keys[i], json_integer(0)));
    *out = json_incref(summary);
out:
    json_decref(summary);
    free(path);
    free(evaluation);
    return status;
}

static mimus_status tell_finished(const session *s, const json_t *finished, char **summary) {
    mimus_status status = MIMUS_OK;
    const char *ended = json_string_value(json_object_get(finished, "ended"));
    if (summary != NULL)
        MIMUS_TRY(mimus__json_text(summary, finished, JSON_INDENT(2)));
    if (strcmp(ended, "diverged") == 0)
        status = mimus__fail(MIMUS_ERR_DIVERGED,
                             "%s: training diverged, and all its epochs are done; start again with "
                             "a smaller --lr than %g",
                             s->run.folder, s->config->lr);
out:
    return status;
}

mimus_status mimus_resume(const char *run, const mimus_source *source, const mimus_config *config,
                          const mimus_watch *watch, char **summary) {
    mimus_status status = MIMUS_OK;
    session s = {.run = {.lock = -1}, .watch = &s.stopwatch.watch};
    json_t *finished = NULL;
    mimus__stopwatch_begin(&s.stopwatch, watch);
    MIMUS_TRY(mimus__run_open(&s.run, run));
    MIMUS_TRY(resumed_model(&s));
    MIMUS_TRY(resumed_config(&s, config));
    if (is_done(&s))
        MIMUS_TRY(finished_summary(&finished, &s));
    if (finished != NULL) {
        MIMUS_TRY(keep_config(&s));
        MIMUS_TRY(tell_finished(&s, finished, summary));
        goto out;
    }
    MIMUS_TRY(resumed_best(&s));
    MIMUS_TRY(resumed_dataset(&s, source));
    MIMUS_TRY(mimus__device_open(&s.device, s.config->device, s.config->memory));
    MIMUS_TRY(check_room(&s));
    MIMUS_TRY(keep_config(&s));
    MIMUS_TRY(train(&s, summary));
out:
    json_decref(finished);
    session_clear(&s);
    return status;
}
