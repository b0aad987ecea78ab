/* mimus_export: a policy leaves in a form that others run. What is written has no name until it was
 * read back and computes what the policy does. */
#include "alloc.h"
#include "config.h"
#include "csource.h"
#include "file.h"
#include "npz_weights.h"
#include "run.h"
#include "text.h"
#include "trial.h"

#include <stdlib.h>
#include <string.h>

typedef struct exporter {
    const char *model_path; /* as it was named */
    char *file;             /* the checkpoint */
    mimus__model *model;
    mimus_policy *policy;
    const mimus_export_options *options;
    mimus__onnx_inputs inputs;
    uint32_t *sensors;          /* what `inputs` are, where the senses' names say it */
    mimus__csource_names names; /* for C */
    mimus__samples samples;
    mimus__phase phase;
    mimus__trial trial;
    json_t *files; /* what was written */
    size_t bytes;
} exporter;

/* How a target is written, and how what was written (`size` bytes) is tried. */
typedef struct target {
    mimus_target about;
    mimus_status (*write)(const exporter *e, FILE *stream);
    mimus_status (*check)(exporter *e, const char *bytes, size_t size);
    bool runs; /* check runs it on samples; else it compares the numbers */
} target;

/* ----------------------------------------------------------------- targets */

static mimus_status write_runtime(const exporter *e, FILE *stream) {
    return mimus__onnx_write(stream, e->model, MIMUS__ONNX_ONNXRUNTIME, &e->inputs);
}

static mimus_status check_runtime(exporter *e, const char *bytes, size_t size) {
    return mimus__trial_onnx(&e->trial, bytes, size, MIMUS__ONNX_ONNXRUNTIME, &e->inputs);
}

static mimus_status write_unity(const exporter *e, FILE *stream) {
    return mimus__onnx_write(stream, e->model, MIMUS__ONNX_UNITY, &e->inputs);
}

static mimus_status check_unity(exporter *e, const char *bytes, size_t size) {
    return mimus__trial_onnx(&e->trial, bytes, size, MIMUS__ONNX_UNITY, &e->inputs);
}

static mimus_status write_godot(const exporter *e, FILE *stream) {
    return mimus__onnx_write(stream, e->model, MIMUS__ONNX_GODOT, &e->inputs);
}

static mimus_status check_godot(exporter *e, const char *bytes, size_t size) {
    return mimus__trial_onnx(&e->trial, bytes, size, MIMUS__ONNX_GODOT, &e->inputs);
}

/* A checkpoint for use only. */
static mimus_status write_safetensors(const exporter *e, FILE *stream) {
    mimus__model plain = *e->model;
    plain.state = NULL;
    return mimus__model_write(stream, &plain);
}

static mimus_status check_safetensors(exporter *e, const char *bytes, size_t size) {
    mimus_status status = MIMUS_OK;
    mimus__model *model = NULL;
    mimus_policy *policy = NULL;
    MIMUS_TRY(mimus__model_decode(&model, bytes, size, e->trial.where));
    MIMUS_TRY(mimus__policy_new(&policy, model));
    MIMUS_TRY(mimus__trial_policy(&e->trial, policy));
out:
    mimus_policy_free(policy);
    mimus__model_free(model);
    return status;
}

static mimus_status write_c(const exporter *e, FILE *stream) {
    return mimus__csource_write(stream, e->model, &e->names);
}

/* That its code computes them as the policy does is what the tests are for. */
static mimus_status check_c(exporter *e, const char *bytes, size_t size) {
    (void)size; /* a text */
    return mimus__csource_check(bytes, e->model, e->trial.where);
}

static mimus_status write_header(const exporter *e, FILE *stream) {
    return mimus__csource_write_header(stream, e->model, &e->names);
}

static mimus_status check_header(exporter *e, const char *bytes, size_t size) {
    if (size > 0 && strstr(bytes, "#endif") != NULL)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA, "%s: cannot be read back whole", e->trial.where);
}

static mimus_status write_npz(const exporter *e, FILE *stream) {
    return mimus__npz_weights_write(stream, e->model);
}

static mimus_status check_npz(exporter *e, const char *bytes, size_t size) {
    return mimus__npz_weights_check(bytes, size, e->model, e->trial.where);
}

static const target targets[] = {
    {{"onnxruntime", "policy.onnx", "ONNX for onnxruntime and other general engines"},
     write_runtime,
     check_runtime,
     true},
    {{"unity", "policy.onnx", "ONNX for Unity ML-Agents, as its own trainer exports it"},
     write_unity,
     check_unity,
     true},
    {{"godot", "policy.onnx", "ONNX for the Godot RL Agents add-on"},
     write_godot,
     check_godot,
     true},
    {{"c", "policy.c", "a .c and a .h that need nothing but C99"}, write_c, check_c, false},
    {{"safetensors", "policy.safetensors", "weights and normalisation for Python; a checkpoint"},
     write_safetensors,
     check_safetensors,
     true},
    {{"npz", "policy.npz", "weights and normalisation, for NumPy"}, write_npz, check_npz, false},
};
static const target c_header = {{"c", "policy.h", ""}, write_header, check_header, false};
enum { TARGETS = sizeof targets / sizeof *targets };

bool mimus_export_describe(size_t index, mimus_target *out) {
    if (index >= TARGETS)
        return false;
    *out = targets[index].about;
    return true;
}

static mimus_status find_target(const target **out, const char *name) {
    char known[128] = "";
    for (size_t i = 0; i < TARGETS; i++) {
        if (name != NULL && strcmp(targets[i].about.name, name) == 0) {
            *out = &targets[i];
            return MIMUS_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 targets[i].about.name);
    }
    if (name == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "no target is named; there are %s", known);
    return mimus__fail(MIMUS_ERR_ARGUMENT, "there is no target \"%s\"; there are %s", name, known);
}

/* ------------------------------------------------------------------- model */

/* A run that is still going on, or came to a bad end, is worth a word. */
static mimus_status tell_how_it_ended(const exporter *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    json_t *summary = NULL;
    const char *ended = "not ended yet";
    if (!mimus__file_is_folder(e->model_path))
        return MIMUS_OK;
    MIMUS_TRY(mimus__text_format(&path, "%s/summary.json", e->model_path));
    if (mimus__file_exists(path)) {
        MIMUS_TRY(mimus__json_read(&summary, path));
        ended = json_string_value(json_object_get(summary, "ended"));
    }
    if (ended == NULL || (strcmp(ended, "finished") != 0 && strcmp(ended, "stopped early") != 0))
        mimus__watch_message(
            watch,
            "%s: its training has %s: this is the best policy so far, of epoch "
            "%lld",
            e->model_path, ended != NULL ? ended : "ended nobody knows how",
            (long long)json_integer_value(json_object_get(e->model->facts, "epoch")));
out:
    json_decref(summary);
    free(path);
    return status;
}

/* What ML-Agents 2 runs models with has no Erf. */
static void tell_about_gelu(const exporter *e, const mimus_watch *watch) {
    if (e->model->shape.activation == MIMUS__GELU && e->model->shape.layers > 1)
        mimus__watch_message(watch, "gelu needs ML-Agents 3 or later: Barracuda, which ML-Agents 2 "
                                    "runs models with, has no Erf; train with relu or tanh for it");
}

/* Unity wants an input a sensor; recordings of its own name senses by them. */
static mimus_status find_sensors(exporter *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    uint32_t count;
    if (e->inputs.count > 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__onnx_sensors(&e->sensors, &count, e->model->schema));
    if (count > 1)
        mimus__watch_message(watch,
                             "%u observations, as the senses are named (\"%s\" is the first's); "
                             "--observations says another division",
                             count, e->model->schema->sense_names[0]);
    e->inputs = (mimus__onnx_inputs){e->sensors, count};
out:
    return status;
}

static mimus_status open_model(exporter *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__model_find(&e->file, e->model_path, "best"));
    MIMUS_TRY(mimus__model_load(&e->model, e->file));
    if (e->model->state != NULL && e->model->state->epoch == 0) {
        status = mimus__fail(MIMUS_ERR_DATA,
                             "%s: nothing to export: its training has not finished an epoch",
                             e->model_path);
        goto out;
    }
    MIMUS_TRY(tell_how_it_ended(e, watch));
    MIMUS_TRY(mimus__policy_new(&e->policy, e->model));
out:
    return status;
}

/* ----------------------------------------------------------------- samples */

/* The recording of a run, where it is still there and no more than mapped; else `*found` is false,
 * whatever the reason. */
static void read_own_samples(exporter *e, uint32_t count, const mimus_watch *watch, bool *found) {
    mimus__run run = {.folder = (char *)e->model_path, .lock = -1};
    mimus__run_source own = {0};
    const char *known = json_string_value(json_object_get(e->model->facts, "recording"));
    *found = mimus__file_is_folder(e->model_path) &&
             mimus__run_read_source(&own, &run) == MIMUS_OK && known != NULL &&
             strcmp(known, own.fingerprint) == 0;
    for (size_t i = 0; *found && i < own.source.count; i++)
        *found = mimus__recording_is_rec(own.paths[i], own.source.format);
    *found = *found && mimus__samples_read(&e->samples, e->model, e->model_path, &own.source, count,
                                           watch) == MIMUS_OK;
    if (!*found)
        mimus__samples_clear(&e->samples);
    mimus__run_source_clear(&own);
}

static mimus_status get_samples(exporter *e, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    uint32_t count = mimus__samples_most(&e->model->shape);
    bool found;
    if (e->options->check != NULL) {
        MIMUS_TRY(mimus__samples_read(&e->samples, e->model, e->model_path, e->options->check,
                                      count, watch));
        goto out;
    }
    const mimus_watch silent = {.user = watch != NULL ? watch->user : NULL,
                                .on_progress = watch != NULL ? watch->on_progress : NULL,
                                .should_stop = watch != NULL ? watch->should_stop : NULL};
    read_own_samples(e, count, &silent, &found);
    if (!found)
        MIMUS_TRY(mimus__samples_make_up(&e->samples, e->model, count));
out:
    return status;
}

/* ------------------------------------------------------------------ writing */

/* Nothing that is worth something may be lost. */
static mimus_status check_path(const exporter *e, const char *path) {
    if (mimus__file_is_same(path, e->file))
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: is the checkpoint that is exported; give the output another name",
                           path);
    if (mimus__file_exists(path) && !e->options->replace)
        return mimus__fail(MIMUS_ERR_IO,
                           "%s: is there already; replace it with --force, or choose another name",
                           path);
    return MIMUS_OK;
}

/* Write, read back, try; the writer is left for the commit. */
static mimus_status write_file(exporter *e, mimus__file_writer *writer, const char *path,
                               const target *to) {
    mimus_status status = MIMUS_OK;
    char *bytes = NULL;
    size_t size;
    MIMUS_TRY(mimus__file_writer_open(writer, path));
    status = to->write(e, writer->stream);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", path);
        goto out;
    }
    MIMUS_TRY(mimus__file_writer_read(writer, &bytes, &size));
    e->trial.where = path;
    MIMUS_TRY(to->check(e, bytes, size));
    MIMUS_TRY(mimus__json_append(e->files, mimus__json_lossy_string(path)));
    e->bytes += size;
out:
    free(bytes);
    return status;
}

/* C comes as a pair: neither gets its name before both are right. */
static mimus_status write_target(exporter *e, const char *path, const target *to) {
    mimus_status status = MIMUS_OK;
    mimus__file_writer writer = {0}, header = {0};
    MIMUS_TRY(write_file(e, &writer, path, to));
    if (e->names.header != NULL)
        MIMUS_TRY(write_file(e, &header, e->names.header, &c_header));
    MIMUS_TRY(mimus__phase_step(&e->phase, e->samples.count));
    if (e->names.header != NULL)
        MIMUS_TRY(mimus__file_writer_commit(&header));
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    mimus__file_writer_abort(&header);
    mimus__file_writer_abort(&writer);
    return status;
}

/* ------------------------------------------------------------------- whole */

static mimus_status make_report(char **report, const exporter *e, const target *to) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *check = json_object();
    const json_t *epoch = json_object_get(e->model->facts, "epoch");
    MIMUS_TRY(mimus__json_set(json, "target", json_string(to->about.name)));
    MIMUS_TRY(mimus__json_set(json, "model", mimus__json_lossy_string(e->model_path)));
    MIMUS_TRY(mimus__json_set(json, "epoch", epoch != NULL ? json_deep_copy(epoch) : json_null()));
    MIMUS_TRY(mimus__json_set(json, "files", json_incref(e->files)));
    MIMUS_TRY(mimus__json_set(json, "bytes", json_integer((json_int_t)e->bytes)));
    MIMUS_TRY(mimus__json_set(json, "senses", json_integer(e->model->shape.senses)));
    MIMUS_TRY(mimus__json_set(json, "stack", json_integer(e->model->shape.stack)));
    MIMUS_TRY(mimus__json_set(json, "heads", json_integer(e->model->schema->heads)));
    MIMUS_TRY(mimus__json_set(check, "samples", json_integer(e->samples.count)));
    MIMUS_TRY(
        mimus__json_set(check, "which", json_string(to->runs ? e->samples.which : "numbers")));
    MIMUS_TRY(mimus__json_set(check, "logit_difference", mimus__json_number(e->trial.difference)));
    MIMUS_TRY(mimus__json_set(check, "ties", json_integer((json_int_t)e->trial.ties)));
    MIMUS_TRY(mimus__json_set(json, "check", json_incref(check)));
    MIMUS_TRY(mimus__json_text(report, json, JSON_INDENT(2)));
out:
    json_decref(check);
    json_decref(json);
    return status;
}

static mimus_status prepare(exporter *e, const char *path, const target *to,
                            const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus_export_options *options = e->options;
    if (!to->runs && options->check != NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s is not tried on samples: its numbers are compared; leave the "
                           "recording out",
                           to->about.name);
    if (to->write == write_c)
        MIMUS_TRY(mimus__csource_names_init(&e->names, path));
    e->inputs = (mimus__onnx_inputs){options->observations, (uint32_t)options->observation_count};
    MIMUS_TRY(open_model(e, watch));
    MIMUS_TRY(check_path(e, path));
    if (e->names.header != NULL)
        MIMUS_TRY(check_path(e, e->names.header));
    if (to->write == write_unity) {
        tell_about_gelu(e, watch);
        MIMUS_TRY(find_sensors(e, watch));
    }
    if (to->runs)
        MIMUS_TRY(get_samples(e, watch));
    e->phase = mimus__phase_begin(watch, "check", e->samples.count);
    e->trial = (mimus__trial){
        .model = e->model, .policy = e->policy, .samples = &e->samples, .phase = &e->phase};
out:
    return status;
}

mimus_status mimus_export(const char *model, const char *path, const mimus_export_options *options,
                          const mimus_watch *watch, char **report) {
    mimus_status status = MIMUS_OK;
    exporter e = {.model_path = model, .options = options, .files = json_array()};
    const target *to = NULL;
    if (report != NULL)
        *report = NULL;
    MIMUS_TRY(find_target(&to, options->target));
    if (options->observation_count > MIMUS__MAX_SENSES) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "%zu observations; a policy has %d senses at most",
                             options->observation_count, MIMUS__MAX_SENSES);
        goto out;
    }
    MIMUS_TRY(prepare(&e, path, to, watch));
    MIMUS_TRY(write_target(&e, path, to));
    if (report != NULL)
        MIMUS_TRY(make_report(report, &e, to));
out:
    mimus__samples_clear(&e.samples);
    mimus_policy_free(e.policy);
    mimus__model_free(e.model);
    mimus__csource_names_clear(&e.names);
    json_decref(e.files);
    free(e.sensors);
    free(e.file);
    return status;
}
