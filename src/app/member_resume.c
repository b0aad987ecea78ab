/* How a member goes on from what its folder holds. */
#include "member.h"
#include "pass.h"

#include "file.h"
#include "jsonl.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static mimus_status check_settings(const mimus__member *m, const json_t *settings,
                                   const json_t *own) {
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
                             m->run.folder, key, was, is);
        goto out;
    }
out:
    free(is);
    free(was);
    return status;
}

/* How the run goes on: config.json says it, and where it is gone the checkpoint. */
static mimus_status read_settings(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "config.json"));
    if (!mimus__file_exists(path))
        goto out;
    status = mimus_config_load(m->config, path);
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
static mimus_status resumed_config(mimus__member *m, const mimus_config *wanted) {
    mimus_status status = MIMUS_OK;
    json_t *own = NULL, *settings = NULL;
    MIMUS_TRY(mimus_config_new(&m->config));
    MIMUS_TRY(mimus__config_from_json(m->config, m->model->config, m->run.folder));
    if (m->config->store == MIMUS__STORE_AUTO)
        m->config->store = MIMUS__STORE_F32; /* begun before there was the setting */
    const mimus__store_form form = m->config->store;
    MIMUS_TRY(mimus__config_to_json(&own, m->config)); /* defaults included */
    if (wanted == NULL) {
        MIMUS_TRY(read_settings(m));
    } else {
        mimus_config_free(m->config);
        MIMUS_TRY(mimus__config_copy(&m->config, wanted));
    }
    if (m->config->store == MIMUS__STORE_AUTO)
        m->config->store = form; /* it was chosen when the run began */
    MIMUS_TRY(mimus__config_check(m->config));
    MIMUS_TRY(mimus__config_to_json(&settings, m->config));
    MIMUS_TRY(check_settings(m, settings, own));
    json_decref(m->model->config);
    m->model->config = json_incref(settings);
out:
    json_decref(own);
    json_decref(settings);
    return status;
}

/* A last.safetensors of another run must not meet this one's recording and settings. */
static mimus_status check_network(const mimus__member *m) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(m->pass->dataset.recording);
    const mimus__shape *own = &m->model->shape;
    mimus__shape shape;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "last.safetensors"));
    MIMUS_TRY(mimus__schema_match(m->model->schema, path, schema, "the recording", false));
    MIMUS_TRY(mimus__config_shape(&shape, m->config, schema));
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

/* The recording is the one that the run was trained on. */
static mimus_status check_recording(const mimus__member *m, const mimus__run_source *own) {
    const char *found = mimus__recording_fingerprint(m->pass->dataset.recording);
    if (strcmp(found, own->fingerprint) != 0)
        return mimus__fail(MIMUS_ERR_DATA,
                           "%s: was trained on recording %s, and this is recording %s: the files "
                           "have changed or are others",
                           m->run.folder, own->fingerprint, found);
    return check_network(m);
}

mimus_status mimus__member_resume_recording(mimus__member *m, const mimus_source *wanted) {
    mimus_status status = MIMUS_OK;
    mimus__run_source own = {0};
    mimus__dataset *dataset = &m->pass->dataset;
    MIMUS_TRY(mimus__run_read_source(&own, &m->run));
    if (dataset->recording == NULL)
        MIMUS_TRY(mimus__dataset_open(dataset, wanted != NULL ? wanted : &own.source, NULL,
                                      m->pass->watch));
    MIMUS_TRY(check_recording(m, &own));
out:
    mimus__run_source_clear(&own);
    return status;
}

mimus_status mimus__member_resume_share(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__dataset_share(&m->share, &m->pass->dataset, m->config));
    MIMUS_TRY(mimus__member_keep_config(m));
out:
    return status;
}

/* config.json says how the run goes on from here. */
mimus_status mimus__member_keep_config(const mimus__member *m) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "config.json"));
    MIMUS_TRY(mimus__json_write(path, m->model->config));
out:
    free(path);
    return status;
}

static mimus_status resumed_model(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    char *path = NULL, *metrics = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "last.safetensors"));
    MIMUS_TRY(mimus__run_path(&metrics, &m->run, "metrics.jsonl"));
    MIMUS_TRY(mimus__model_load(&m->model, path));
    if (m->model->state == NULL) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: holds no training state to go on from", path);
        goto out;
    }
    MIMUS_TRY(mimus__jsonl_trim(metrics, "epoch", m->model->state->epoch));
out:
    free(path);
    free(metrics);
    return status;
}

/* The best checkpoint is only ever replaced: one that is gone or damaged is no reason to stop, the
 * next epoch takes its place. */
mimus_status mimus__member_resume_best(mimus__member *m) {
    mimus_status status = MIMUS_OK;
    mimus__training_state *state = m->model->state;
    mimus__model *best = NULL;
    char *path = NULL;
    if (state->best_epoch == 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "best.safetensors"));
    status = mimus__model_load(&best, path);
    if (status == MIMUS_OK) {
        m->best = json_incref(best->facts);
    } else if (status != MIMUS_ERR_MEMORY) {
        mimus__watch_message(m->pass->watch, "%s; the best epoch from here on takes its place",
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
mimus_status mimus__member_finished(json_t **out, const mimus__member *m) {
    mimus_status status = MIMUS_OK;
    const char *const keys[] = {"epochs_run", "reads", "launches", "seconds"};
    json_t *summary = NULL;
    char *path = NULL, *evaluation = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__run_path(&path, &m->run, "summary.json"));
    if (mimus__json_read(&summary, path) != MIMUS_OK ||
        !json_is_string(json_object_get(summary, "ended")) ||
        json_integer_value(json_object_get(summary, "epochs")) !=
            (json_int_t)m->model->state->epoch)
        goto out;
    MIMUS_TRY(mimus__run_path(&evaluation, &m->run, "evaluation.json"));
    if (json_is_object(json_object_get(summary, "best")) &&
        json_integer_value(json_object_get(summary, "held_out_samples")) > 0 &&
        !mimus__file_exists(evaluation))
        goto out;
    MIMUS_TRY(mimus__json_set(summary, "run",
                              mimus__json_lossy_string(m->run.folder))); /* it may have moved */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(summary, keys[i], json_integer(0)));
    *out = json_incref(summary);
out:
    json_decref(summary);
    free(path);
    free(evaluation);
    return status;
}

mimus_status mimus__member_resume(mimus__member *m, const mimus_config *wanted) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(resumed_model(m));
    MIMUS_TRY(resumed_config(m, wanted));
out:
    return status;
}
