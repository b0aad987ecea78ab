#include "many.h"

#include "alloc.h"
#include "file.h"
#include "jsonl.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mimus_status path_in(char **out, const char *folder, const char *name) {
    return mimus__text_format(out, "%s/%s", folder, name);
}

bool mimus__many_is(const char *folder) {
    char *path = NULL;
    bool is = path_in(&path, folder, "runs.json") == MIMUS_OK && mimus__file_exists(path);
    free(path);
    return is;
}

/* -------------------------------------------------------------------- runs.json */

/* "run-03"; names sort as the runs do. */
static mimus_status name_of(char **out, size_t run, size_t runs) {
    return mimus__text_format(out, "run-%0*zu", runs > 100 ? 3 : 2, run);
}

static mimus_status names_json(json_t **out, size_t runs) {
    mimus_status status = MIMUS_OK;
    json_t *names = json_array();
    char *name = NULL;
    for (size_t r = 0; r < runs; r++) {
        free(name);
        name = NULL;
        MIMUS_TRY(name_of(&name, r, runs));
        MIMUS_TRY(mimus__json_append(names, json_string(name)));
    }
    *out = json_incref(names);
out:
    free(name);
    json_decref(names);
    return status;
}

/* A name is one of a folder here, and leads nowhere else. */
static bool is_name(const json_t *value) {
    const char *text = json_string_value(value);
    return text != NULL && strncmp(text, "run-", 4) == 0 && strchr(text, '/') == NULL;
}

mimus_status mimus__many_names(json_t **out, const char *folder, bool kept_only) {
    mimus_status status = MIMUS_OK;
    json_t *about = NULL;
    char *path = NULL;
    size_t i;
    const json_t *value;
    MIMUS_TRY(path_in(&path, folder, "runs.json"));
    MIMUS_TRY(mimus__json_read(&about, path));
    json_t *kept = kept_only ? json_object_get(about, "kept") : NULL;
    json_t *names = kept != NULL ? kept : json_object_get(about, "runs");
    bool good = json_array_size(names) > 0 && json_array_size(names) <= MIMUS__MAX_RUNS;
    json_array_foreach(names, i, value) good = good && is_name(value);
    if (!good) {
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s: \"%s\" should be an array of 1 to %d names \"run-...\"", path,
                             kept != NULL ? "kept" : "runs", MIMUS__MAX_RUNS);
        goto out;
    }
    *out = json_incref(names);
out:
    free(path);
    json_decref(about);
    return status;
}

static mimus_status write_about(const char *folder, const json_t *names, const json_t *kept) {
    mimus_status status = MIMUS_OK;
    json_t *about = json_object();
    char *path = NULL;
    MIMUS_TRY(mimus__json_set(about, "mimus", json_string(MIMUS_VERSION)));
    MIMUS_TRY(mimus__json_set(about, "runs", json_deep_copy(names)));
    if (kept != NULL)
        MIMUS_TRY(mimus__json_set(about, "kept", json_deep_copy(kept)));
    MIMUS_TRY(path_in(&path, folder, "runs.json"));
    MIMUS_TRY(mimus__json_write(path, about));
out:
    free(path);
    json_decref(about);
    return status;
}

/* -------------------------------------------------------------------- beginning */

static mimus_status open_member(mimus__member *member, const char *folder, const char *name,
                                mimus_status (*open)(mimus__run *out, const char *folder)) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(path_in(&path, folder, name));
    MIMUS_TRY(open(&member->run, path));
out:
    free(path);
    return status;
}

mimus_status mimus__many_create(mimus__run *out, mimus__pass *pass, const char *folder) {
    mimus_status status = MIMUS_OK;
    char *name = NULL;
    MIMUS_TRY(mimus__run_create_many(out, folder));
    for (size_t r = 0; r < pass->members; r++) {
        free(name);
        name = NULL;
        MIMUS_TRY(name_of(&name, r, pass->members));
        MIMUS_TRY(open_member(&pass->member[r], folder, name, mimus__run_create));
    }
out:
    free(name);
    return status;
}

mimus_status mimus__many_config(json_t **out, const mimus__pass *pass, uint32_t keep) {
    mimus_status status = MIMUS_OK;
    json_t *whole = NULL, *differ = NULL, **each = NULL;
    const mimus_config **configs = NULL;
    char text[24];
    const size_t runs = pass->members;
    MIMUS_TRY(mimus__alloc(&configs, runs, sizeof(mimus_config *)));
    MIMUS_TRY(mimus__alloc(&each, runs, sizeof(json_t *)));
    for (size_t r = 0; r < runs; r++) {
        configs[r] = pass->member[r].config;
        MIMUS_TRY(mimus__config_to_json(&each[r], configs[r]));
    }
    MIMUS_TRY(mimus__config_runs_differences(&differ, configs, runs));
    MIMUS_TRY(mimus__config_to_json(&whole, configs[0]));
    for (size_t i = 0; i < json_array_size(differ); i++) {
        const char *key = json_string_value(json_array_get(differ, i));
        json_t *list = json_array();
        MIMUS_TRY(mimus__json_set(whole, key, list));
        for (size_t r = 0; r < runs; r++)
            MIMUS_TRY(mimus__json_append(list, json_deep_copy(json_object_get(each[r], key))));
    }
    snprintf(text, sizeof text, "best:%u", (unsigned)keep);
    if (keep > 0)
        MIMUS_TRY(mimus__json_set(whole, "keep", json_string(text)));
    *out = json_incref(whole);
out:
    for (size_t r = 0; each != NULL && r < runs; r++)
        json_decref(each[r]);
    free(each);
    free(configs);
    json_decref(whole);
    json_decref(differ);
    return status;
}

mimus_status mimus__many_begin(const mimus__run *run, const mimus__pass *pass, uint32_t keep) {
    mimus_status status = MIMUS_OK;
    json_t *whole = NULL, *names = NULL;
    char *path = NULL;
    MIMUS_TRY(mimus__many_config(&whole, pass, keep));
    MIMUS_TRY(mimus__run_path(&path, run, "config.json"));
    MIMUS_TRY(mimus__json_write(path, whole));
    MIMUS_TRY(names_json(&names, pass->members));
    MIMUS_TRY(write_about(run->folder, names, NULL));
out:
    free(path);
    json_decref(whole);
    json_decref(names);
    return status;
}

static size_t place_of(const json_t *names, const json_t *name) {
    size_t i = 0;
    while (i < json_array_size(names) && !json_equal(json_array_get(names, i), name))
        i++;
    return i;
}

mimus_status mimus__many_open(mimus__run *out, mimus__pass *pass, const mimus_watch *watch,
                              size_t **places, const char *folder) {
    mimus_status status = MIMUS_OK;
    json_t *names = NULL, *kept = NULL;
    MIMUS_TRY(mimus__run_open_by(out, folder, "runs.json"));
    MIMUS_TRY(mimus__many_names(&names, folder, false));
    MIMUS_TRY(mimus__many_names(&kept, folder, true));
    const size_t count = json_array_size(kept);
    MIMUS_TRY(mimus__pass_new(pass, count, watch));
    MIMUS_TRY(mimus__alloc(places, count, sizeof **places));
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(kept, i);
        (*places)[i] = place_of(names, name);
        MIMUS_TRY(open_member(&pass->member[i], folder, json_string_value(name), mimus__run_open));
    }
out:
    json_decref(names);
    json_decref(kept);
    return status;
}

/* The epoch at which the hindmost stands. */
static uint64_t least_epoch(const mimus__pass *pass) {
    uint64_t least = UINT64_MAX;
    for (size_t r = 0; r < pass->members; r++) {
        uint64_t epoch = pass->member[r].model->state->epoch;
        least = epoch < least ? epoch : least;
    }
    return least;
}

mimus_status mimus__many_resume(const mimus__run *run, const mimus__pass *pass, uint32_t keep) {
    mimus_status status = MIMUS_OK;
    json_t *whole = NULL, *names = NULL;
    char *path = NULL, *metrics = NULL;
    MIMUS_TRY(mimus__many_names(&names, run->folder, false));
    MIMUS_TRY(mimus__run_path(&path, run, "config.json"));
    MIMUS_TRY(mimus__run_path(&metrics, run, "metrics.jsonl"));
    if (pass->members == json_array_size(names)) { /* else it speaks of runs that are not here */
        MIMUS_TRY(mimus__many_config(&whole, pass, keep));
        MIMUS_TRY(mimus__json_write(path, whole));
    }
    MIMUS_TRY(mimus__jsonl_trim(metrics, "epoch", least_epoch(pass)));
    MIMUS_TRY(mimus__run_remove(run, "summary.json"));
out:
    free(path);
    free(metrics);
    json_decref(whole);
    json_decref(names);
    return status;
}

/* ------------------------------------------------------------------------ epochs */

mimus_status mimus__many_epoch(void *user, mimus__pass *pass, const json_t *row) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    (void)pass;
    MIMUS_TRY(mimus__run_path(&path, user, "metrics.jsonl"));
    MIMUS_TRY(mimus__jsonl_append(path, row));
out:
    free(path);
    return status;
}

/* ----------------------------------------------------------------------- summary */

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Of the best epoch: the mean over the heads that have labels, on what judged it. */
static double agreement_of(const mimus__member *member) {
    const json_t *heads = json_object_get(member->best, "heads"), *head;
    const char *key = member->share.split->heldout.samples > 0 ? "held_out_agreement" : "agreement";
    double sum = 0, count = 0;
    size_t i;
    json_array_foreach(heads, i, head) {
        double value = number_of(head, key);
        sum += isfinite(value) ? value : 0;
        count += isfinite(value);
    }
    return count > 0 ? sum / count : NAN;
}

static double loss_of(const mimus__member *member) {
    return member->best != NULL ? member->model->state->best : NAN;
}

static const char *file_name(const mimus__member *member) {
    return strrchr(member->run.folder, '/') + 1;
}

static mimus_status member_json(json_t **out, const mimus__member *member, const json_t *differ) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object(), *settings = json_object();
    const mimus__training_state *state = member->model->state;
    MIMUS_TRY(mimus__json_set(row, "name", json_string(file_name(member))));
    MIMUS_TRY(mimus__json_set(row, "settings", json_incref(settings)));
    for (size_t i = 0; i < json_array_size(differ); i++) {
        const char *key = json_string_value(json_array_get(differ, i));
        MIMUS_TRY(mimus__json_set(settings, key,
                                  json_deep_copy(json_object_get(member->model->config, key))));
    }
    MIMUS_TRY(mimus__json_set(row, "ended", json_string(member->ended)));
    MIMUS_TRY(mimus__json_set(row, "epochs", json_integer((json_int_t)state->epoch)));
    MIMUS_TRY(mimus__json_set(row, "best_epoch", json_integer((json_int_t)state->best_epoch)));
    MIMUS_TRY(mimus__json_set(row, "best_loss", mimus__json_number(loss_of(member))));
    MIMUS_TRY(mimus__json_set(row, "agreement", mimus__json_number(agreement_of(member))));
    *out = json_incref(row);
out:
    json_decref(row);
    json_decref(settings);
    return status;
}

/* Mean and standard error of what the runs have of it, under `key` of both objects. */
static mimus_status describe(json_t *means, json_t *errors, const char *key, const json_t *rows) {
    mimus_status status = MIMUS_OK;
    double sum = 0, squares = 0, count = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        double value = number_of(row, key);
        sum += isfinite(value) ? value : 0;
        count += isfinite(value);
    }
    const double mean = sum / count;
    json_array_foreach(rows, i, row) {
        double value = number_of(row, key);
        squares += isfinite(value) ? (value - mean) * (value - mean) : 0;
    }
    MIMUS_TRY(mimus__json_set(means, key, mimus__json_number(mean)));
    MIMUS_TRY(mimus__json_set(
        errors, key, mimus__json_number(count > 1 ? sqrt(squares / (count - 1) / count) : NAN)));
out:
    return status;
}

/* The runs from the best to the worst, those without a loss last; free with free(). */
typedef struct ranked {
    double loss;
    size_t run;
} ranked;

static int by_loss(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (isnan(x->loss) || isnan(y->loss))
        return isnan(x->loss) - isnan(y->loss);
    return (x->loss > y->loss) - (x->loss < y->loss);
}

static mimus_status rank(ranked **out, const mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, pass->members, sizeof **out));
    for (size_t r = 0; r < pass->members; r++)
        (*out)[r] = (ranked){.loss = loss_of(&pass->member[r]), .run = r};
    qsort(*out, pass->members, sizeof **out, by_loss);
out:
    return status;
}

static mimus_status rows_json(json_t **out, json_t **differ, const mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    json_t *rows = json_array(), *row = NULL;
    const mimus_config **configs = NULL;
    MIMUS_TRY(mimus__alloc(&configs, pass->members, sizeof(mimus_config *)));
    for (size_t r = 0; r < pass->members; r++)
        configs[r] = pass->member[r].config;
    MIMUS_TRY(mimus__config_runs_differences(differ, configs, pass->members));
    for (size_t r = 0; r < pass->members; r++) {
        MIMUS_TRY(member_json(&row, &pass->member[r], *differ));
        MIMUS_TRY(mimus__json_append(rows, row));
    }
    *out = json_incref(rows);
out:
    free(configs);
    json_decref(rows);
    return status;
}

/* The worst that happened, but that some diverged: the others are worth having. */
static const char *how_all_ended(const mimus__pass *pass) {
    size_t diverged = 0;
    for (size_t r = 0; r < pass->members; r++) {
        if (strcmp(pass->member[r].ended, "stopped on request") == 0)
            return "stopped on request";
        diverged += strcmp(pass->member[r].ended, "diverged") == 0;
    }
    return diverged == pass->members ? "diverged" : "finished";
}

/* What all runs have in common, from the first one's summary. */
static mimus_status copy_common(json_t *out, const mimus__pass *pass) {
    static const char *const keys[] = {"parameters", "reads", "launches",
                                       "device",     "step",  "phases"};
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(
            out, keys[i], json_deep_copy(json_object_get(pass->member[0].summary, keys[i]))));
out:
    return status;
}

mimus_status mimus__many_summary(json_t **out, const mimus__run *run, const mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    json_t *object = json_object(), *rows = NULL, *differ = NULL;
    json_t *means = json_object(), *errors = json_object();
    ranked *order = NULL;
    char *path = NULL;
    MIMUS_TRY(rank(&order, pass));
    MIMUS_TRY(rows_json(&rows, &differ, pass));
    MIMUS_TRY(describe(means, errors, "best_loss", rows));
    MIMUS_TRY(describe(means, errors, "agreement", rows));
    MIMUS_TRY(mimus__json_set(object, "run", mimus__json_lossy_string(run->folder)));
    MIMUS_TRY(mimus__json_set(object, "ended", json_string(how_all_ended(pass))));
    MIMUS_TRY(mimus__json_set(object, "differ", json_incref(differ)));
    MIMUS_TRY(mimus__json_set(object, "runs", json_incref(rows)));
    MIMUS_TRY(mimus__json_set(object, "mean", json_incref(means)));
    MIMUS_TRY(mimus__json_set(object, "standard_error", json_incref(errors)));
    MIMUS_TRY(mimus__json_set(
        object, "best",
        isnan(order[0].loss) ? json_null() : json_string(file_name(&pass->member[order[0].run]))));
    MIMUS_TRY(mimus__json_set(object, "held_out",
                              json_boolean(pass->member[0].share.split->heldout.samples > 0)));
    MIMUS_TRY(mimus__json_set(object, "shared_batches", json_boolean(pass->shared)));
    MIMUS_TRY(mimus__json_set(object, "epochs_run", json_integer((json_int_t)pass->epochs_run)));
    MIMUS_TRY(mimus__json_set(object, "seconds", mimus__json_number(pass->seconds)));
    MIMUS_TRY(copy_common(object, pass));
    mimus__json_round(object);
    MIMUS_TRY(mimus__run_path(&path, run, "summary.json"));
    MIMUS_TRY(mimus__json_write(path, object));
    *out = json_incref(object);
out:
    free(order);
    free(path);
    json_decref(object);
    json_decref(rows);
    json_decref(differ);
    json_decref(means);
    json_decref(errors);
    return status;
}

/* ------------------------------------------------------------------------- keep */

static mimus_status remove_checkpoints(const mimus__member *member) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__run_remove(&member->run, "last.safetensors"));
    MIMUS_TRY(mimus__run_remove(&member->run, "best.safetensors"));
out:
    return status;
}

/* runs.json says it first: a kill in between leaves checkpoints behind that nobody asks for. */
mimus_status mimus__many_keep(const mimus__run *run, const mimus__pass *pass, uint32_t keep) {
    mimus_status status = MIMUS_OK;
    json_t *names = NULL, *kept = json_array();
    ranked *order = NULL;
    if (keep == 0 || keep >= pass->members)
        goto out;
    MIMUS_TRY(rank(&order, pass));
    for (uint32_t i = 0; i < keep; i++)
        MIMUS_TRY(mimus__json_append(kept, json_string(file_name(&pass->member[order[i].run]))));
    MIMUS_TRY(mimus__many_names(&names, run->folder, false));
    MIMUS_TRY(write_about(run->folder, names, kept));
    for (size_t i = keep; i < pass->members; i++)
        MIMUS_TRY(remove_checkpoints(&pass->member[order[i].run]));
out:
    free(order);
    json_decref(names);
    json_decref(kept);
    return status;
}
