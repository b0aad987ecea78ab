#include "member.h"

#include "evaluate.h"
#include "pass.h"

#include "alloc.h"
#include "file.h"
#include "jsonl.h"
#include "tensorboard.h"
#include "text.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mimus__member_clear(mimus__member *m) {
    mimus__model_free(m->model);
    mimus__share_clear(&m->share);
    mimus_config_free(m->config);
    mimus__run_close(&m->run);
    free(m->trouble);
    free(m->events);
    json_decref(m->best);
    json_decref(m->summary);
    *m = (mimus__member){.run = {.lock = -1}};
}

mimus_status mimus__member_save(const mimus__member *m, const char *name) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, name));
    MIMUS_TRY(mimus__model_save(m->model, path));
out:
    free(path);
    return status;
}

mimus_status mimus__member_begin(mimus__member *m, const mimus_source *source) {
    mimus_status status = MIMUS_OK;
    const mimus__dataset *dataset = &m->pass->dataset;
    MIMUS_TRY(mimus__dataset_share(&m->share, dataset, m->config));
    MIMUS_TRY(mimus__dataset_model(&m->model, dataset, m->share.statistics, m->config));
    MIMUS_TRY(
        mimus__member_save(m, "last.safetensors")); /* a kill in the first epoch can be resumed */
    MIMUS_TRY(mimus__run_begin(&m->run, m->config, source, dataset));
out:
    return status;
}

/* Samples of an epoch. */
static uint64_t training_samples(const mimus__member *m) {
    return m->share.rows != NULL ? m->share.rows->training : m->share.split->training.samples;
}

mimus__trainee mimus__member_trainee(const mimus__member *m) {
    return (mimus__trainee){.config = m->config,
                            .model = m->model,
                            .statistics = m->share.statistics,
                            .rows = m->share.rows};
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
static mimus_status row_json(json_t **out, const mimus__member *m, uint64_t epoch,
                             const mimus__epoch_result *result, double seconds) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object(), *heads = NULL, *losses = NULL;
    const mimus_schema *schema = mimus__recording_schema(m->pass->dataset.recording);
    double samples = (double)training_samples(m) + (double)m->share.split->heldout.samples;
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
static mimus_status keep_facts(mimus__member *m, const json_t *row) {
    mimus_status status = MIMUS_OK;
    const char *const keys[] = {"epoch", "loss", "held_out_loss", "heads"};
    json_object_clear(m->model->facts);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(m->model->facts, keys[i],
                                  json_deep_copy(json_object_get(row, keys[i]))));
    MIMUS_TRY(
        mimus__json_set(m->model->facts, "recording",
                        json_string(mimus__recording_fingerprint(m->pass->dataset.recording))));
out:
    return status;
}

/* The last part of its folder's path. */
static const char *name_of(const mimus__member *m) {
    const char *slash = strrchr(m->run.folder, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : m->run.folder;
}

/* One line, which says whose it is where there are several. */
static void tell(const mimus__member *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(const mimus__member *m, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (m->pass->members > 1)
        mimus__watch_message(m->pass->watch, "%s: %s", name_of(m), text);
    else
        mimus__watch_message(m->pass->watch, "%s", text);
}

static void warn_of_skips(const mimus__member *m, uint64_t epoch,
                          const mimus__epoch_result *result) {
    if (result->skipped > 0 && result->skipped < result->steps)
        tell(m,
             "epoch %llu: skipped %u of %u steps (the first is step %u), whose "
             "loss or gradient was not finite",
             (unsigned long long)epoch, result->skipped, result->steps, result->first_skipped);
}

/* ------------------------------------------------------------------ divergence */

/* The most that choosing at random can lose: log(actions) a head. */
static double chance_loss(const mimus__member *m) {
    const mimus_schema *schema = m->model->schema;
    double sum = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        double weight = m->config->head_weights != NULL ? m->config->head_weights[h] : 1;
        sum += weight * log((double)schema->head[h].actions);
    }
    return sum;
}

/* Whether the latest epoch, of these losses, is one to end on: a training loss that is not finite
 * is that of an epoch without a step; twice what chance loses is no policy. */
static mimus_status judge(mimus__member *m, double loss, double heldout_loss) {
    mimus_status status = MIMUS_OK;
    const unsigned long long epoch = m->model->state->epoch;
    const bool heldout = m->share.split->heldout.samples > 0;
    const double chance = chance_loss(m);
    free(m->trouble);
    m->trouble = NULL;
    if (!isfinite(loss))
        MIMUS_TRY(mimus__text_format(&m->trouble,
                                     "every step of epoch %llu was skipped, because loss or "
                                     "gradient was not finite",
                                     epoch));
    else if (heldout && !isfinite(heldout_loss))
        MIMUS_TRY(mimus__text_format(&m->trouble, "the held-out loss of epoch %llu is not finite",
                                     epoch));
    else if (loss > 2 * chance && (!heldout || heldout_loss > 2 * chance))
        MIMUS_TRY(mimus__text_format(&m->trouble,
                                     "the loss of epoch %llu is %.3g, and choosing at random "
                                     "loses at most %.3g",
                                     epoch, loss, chance));
out:
    return status;
}

static mimus_status diverged(const mimus__member *m) {
    return mimus__fail(MIMUS_ERR_DIVERGED,
                       "%s: training diverged: %s; start again with a smaller --lr than %g%s, and "
                       "look for senses far out of bounds by `mimus info`",
                       m->run.folder, m->trouble, m->config->lr,
                       m->config->clip > 0 ? "" : " or with --clip 1");
}

/* ---------------------------------------------------------------------- epochs */

/* Judge the epoch: is it the best so far? Without a held-out part, the training loss decides. */
static bool note_best(mimus__member *m, const mimus__epoch_result *result) {
    mimus__training_state *state = m->model->state;
    double loss =
        m->share.split->heldout.samples > 0 ? result->heldout.loss : result->training.loss;
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
static mimus_status keep_model(mimus__member *m, uint32_t seat, bool best) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__trainer_save(m->pass->trainer, seat, m->model));
    if (best)
        MIMUS_TRY(mimus__member_save(m, "best.safetensors"));
    MIMUS_TRY(mimus__member_save(m, "last.safetensors"));
    if (best) {
        json_decref(m->best);
        m->best = json_deep_copy(m->model->facts);
        if (m->best == NULL)
            status = mimus__fail(MIMUS_ERR_MEMORY, "cannot copy a JSON object");
    }
out:
    if (status == MIMUS_ERR_DATA) {
        m->stuck = true;
        free(m->trouble);
        status = mimus__text_copy(&m->trouble, mimus_last_error());
    }
    return status;
}

/* The epoch's row, and the steps that it took, for TensorBoard. */
static mimus_status keep_events(mimus__member *m, const json_t *row, uint32_t steps) {
    mimus_status status = MIMUS_OK;
    const uint64_t step = m->model->state->step;
    if (!m->config->tensorboard)
        return MIMUS_OK;
    if (m->events == NULL)
        MIMUS_TRY(
            mimus__tensorboard_begin(&m->events, m->run.folder, step - steps, m->model->config));
    MIMUS_TRY(mimus__tensorboard_append(m->events, step, row));
out:
    return status;
}

/* The row is written first and the last checkpoint at the end: a resume drops rows that the
 * checkpoint does not know. */
mimus_status mimus__member_epoch(mimus__member *m, uint32_t seat, const mimus__epoch_result *result,
                                 double seconds, json_t **out) {
    mimus_status status = MIMUS_OK;
    mimus__training_state *state = m->model->state;
    char *path = NULL;
    json_t *row = NULL;
    m->seconds += seconds;
    m->epochs_run++;
    state->epoch++;
    state->step += result->steps;
    warn_of_skips(m, state->epoch, result);
    bool best = note_best(m, result), troubled = m->trouble != NULL;
    MIMUS_TRY(judge(m, result->training.loss, result->heldout.loss));
    m->stuck = result->skipped == result->steps; /* the next epoch would begin where this one did */
    MIMUS_TRY(row_json(&row, m, state->epoch, result, seconds));
    MIMUS_TRY(mimus__run_path(&path, &m->run, "metrics.jsonl"));
    MIMUS_TRY(mimus__jsonl_append(path, row));
    MIMUS_TRY(keep_events(m, row, result->steps));
    MIMUS_TRY(keep_facts(m, row));
    MIMUS_TRY(keep_model(m, seat, best));
    if (m->trouble != NULL && !troubled && !m->stuck)
        tell(m, "%s: a smaller --lr may be needed", m->trouble);
    *out = json_incref(row);
out:
    free(path);
    json_decref(row);
    return status;
}

bool mimus__member_is_done(const mimus__member *m) {
    const mimus__training_state *state = m->model->state;
    return m->stuck || m->dropped || state->epoch >= m->config->epochs ||
           (m->config->patience > 0 && state->stale >= m->config->patience);
}

/* Whether the epoch that a resumed run stands on was one to end on. */
mimus_status mimus__member_judge_again(mimus__member *m) {
    const json_t *loss = json_object_get(m->model->facts, "loss");
    const json_t *heldout = json_object_get(m->model->facts, "held_out_loss");
    if (m->model->state->epoch == 0)
        return MIMUS_OK;
    return judge(m, json_is_number(loss) ? json_number_value(loss) : NAN,
                 json_is_number(heldout) ? json_number_value(heldout) : NAN);
}

/* What an earlier part came to is nothing of a run that goes on. */
mimus_status mimus__member_drop_outcome(const mimus__member *m) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__run_remove(&m->run, "summary.json"));
    MIMUS_TRY(mimus__run_remove(&m->run, "evaluation.json"));
out:
    return status;
}

/* --------------------------------------------------------------------- summary */

static mimus_status summary_json(json_t **out, const mimus__member *m) {
    mimus_status status = MIMUS_OK;
    const mimus__training_state *state = m->model->state;
    json_t *object = json_object(), *device = NULL;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"epochs", state->epoch},
        {"best_epoch", state->best_epoch},
        {"training_samples", training_samples(m)},
        {"held_out_samples", m->share.split->heldout.samples},
        {"training_episodes", m->share.split->training.episodes},
        {"held_out_episodes", m->share.split->heldout.episodes},
        {"parameters", mimus__shape_parameters(&m->model->shape)},
        {"steps", state->step},
        /* this process's share, and the blocking reads it took: one an epoch */
        {"epochs_run", m->epochs_run},
        {"reads", mimus__device_reads(m->pass->device) - m->pass->reads_before},
        {"launches", mimus__device_launches(m->pass->device) - m->pass->launches_before},
    };
    MIMUS_TRY(mimus__json_set(object, "run", mimus__json_lossy_string(m->run.folder)));
    MIMUS_TRY(mimus__json_set(object, "ended", json_string(m->ended)));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        MIMUS_TRY(
            mimus__json_set(object, numbers[i].key, json_integer((json_int_t)numbers[i].value)));
    MIMUS_TRY(mimus__json_set(object, "best_loss", mimus__json_number(state->best)));
    MIMUS_TRY(mimus__json_set(object, "seconds", mimus__json_number(m->seconds)));
    MIMUS_TRY(mimus__pass_device_json(&device, m->pass->device));
    MIMUS_TRY(mimus__json_set(object, "device", json_incref(device)));
    MIMUS_TRY(mimus__json_set(object, "step", mimus__trainer_report(m->pass->trainer)));
    MIMUS_TRY(mimus__json_set(object, "last", json_deep_copy(m->model->facts)));
    MIMUS_TRY(
        mimus__json_set(object, "best", m->best != NULL ? json_deep_copy(m->best) : json_null()));
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
static mimus_status evaluation_json(json_t **out, mimus__member *m, const char *file) {
    mimus_status status = MIMUS_OK;
    mimus__model *model = NULL;
    mimus__metrics *metrics = NULL;
    json_t *json = NULL, *episodes = NULL;
    mimus_watch watch = m->pass->stopwatch.watch;
    watch.should_stop = NULL;
    MIMUS_TRY(mimus__model_load(&model, file));
    const mimus__evaluation what = {.model = model,
                                    .file = file,
                                    .dataset = &m->pass->dataset,
                                    .rows = &m->share.split->heldout,
                                    .device = m->pass->device,
                                    .confusion = CONFUSION_ACTIONS,
                                    .episodes = EPISODE_GROUPS};
    MIMUS_TRY(mimus__evaluate(&metrics, &what, &watch));
    MIMUS_TRY(mimus__evaluation_json(&json, &what, metrics, m->run.folder, "held-out"));
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
static mimus_status keep_evaluation(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *path = NULL, *file = NULL, *text = NULL;
    if (m->share.split->heldout.samples == 0 || m->best == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "evaluation.json"));
    MIMUS_TRY(mimus__run_path(&file, &m->run, "best.safetensors"));
    status = evaluation_json(&json, m, file);
    if (status != MIMUS_OK && status != MIMUS_ERR_MEMORY) {
        tell(m, "the held-out part could not be judged: %s", mimus_last_error());
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

mimus_status mimus__member_end(mimus__member *m, bool stopped) {
    if (stopped && !mimus__member_is_done(m))
        m->ended = "stopped on request";
    else if (m->trouble != NULL)
        m->ended = "diverged";
    else
        m->ended = m->model->state->epoch < m->config->epochs ? "stopped early" : "finished";
    return summary_json(&m->summary, m);
}

mimus_status mimus__member_conclude(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    json_t *phases = NULL;
    char *path = NULL;
    MIMUS_TRY(keep_evaluation(m));
    MIMUS_TRY(mimus__stopwatch_json(&phases, &m->pass->stopwatch));
    mimus__json_round(phases);
    MIMUS_TRY(mimus__json_set(m->summary, "phases", json_incref(phases)));
    MIMUS_TRY(mimus__run_path(&path, &m->run, "summary.json"));
    MIMUS_TRY(mimus__json_write(path, m->summary));
out:
    free(path);
    json_decref(phases);
    return status;
}

mimus_status mimus__member_outcome(const mimus__member *m) {
    if (strcmp(m->ended, "diverged") == 0)
        return diverged(m);
    if (strcmp(m->ended, "stopped on request") == 0)
        return mimus__fail(MIMUS_ERR_STOPPED,
                           "stopped after epoch %llu of %u; go on with `mimus train --resume %s`",
                           (unsigned long long)m->model->state->epoch, m->config->epochs,
                           m->run.folder);
    return MIMUS_OK;
}
