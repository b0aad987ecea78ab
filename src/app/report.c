/* mimus_report: runs as a page. */
#include "compare.h"
#include "config.h"
#include "page.h"
#include "view.h"

#include "alloc.h"
#include "file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a chart can show of a run's steps, and a page of runs. */
enum { STEP_POINTS = 1200, MOST_RUNS = 24 };

/* ----------------------------------------------------------------------- steps */

/* A stretch of steps, as one point: what was finite of it. */
typedef struct stretch {
    uint64_t first, steps, finite;
    double sum, low, high;
} stretch;

typedef struct points {
    json_t *step, *loss, *low, *high;
} points;

static mimus_status put_point(const points *to, const stretch *of) {
    mimus_status status = MIMUS_OK;
    bool any = of->finite > 0;
    double middle = (double)of->first + ((double)of->steps - 1) / 2;
    MIMUS_TRY(mimus__json_append(to->step, mimus__json_number(middle)));
    MIMUS_TRY(mimus__json_append(to->loss, mimus__json_number(of->sum / (double)of->finite)));
    MIMUS_TRY(mimus__json_append(to->low, mimus__json_number(any ? of->low : NAN)));
    MIMUS_TRY(mimus__json_append(to->high, mimus__json_number(any ? of->high : NAN)));
out:
    return status;
}

static void add_step(stretch *to, const json_t *loss) {
    to->steps++;
    if (!json_is_number(loss))
        return;
    double value = json_number_value(loss);
    to->low = to->finite == 0 ? value : fmin(to->low, value);
    to->high = to->finite == 0 ? value : fmax(to->high, value);
    to->sum += value;
    to->finite++;
}

static uint64_t count_steps(const json_t *epochs) {
    uint64_t steps = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(epochs, i, row) steps += json_array_size(json_object_get(row, "step_loss"));
    return steps;
}

/* {"step": [...], "loss": [...], "low": [...], "high": [...]}: means, least and greatest of at most
 * STEP_POINTS stretches of equal length. */
static mimus_status steps_json(json_t **out, const json_t *epochs) {
    mimus_status status = MIMUS_OK;
    points to = {json_array(), json_array(), json_array(), json_array()};
    json_t *json = json_object();
    uint64_t length = count_steps(epochs) / STEP_POINTS + 1;
    stretch now = {.first = 1};
    size_t i, t;
    const json_t *row, *loss;
    json_array_foreach(epochs, i, row) {
        json_array_foreach(json_object_get(row, "step_loss"), t, loss) {
            add_step(&now, loss);
            if (now.steps < length)
                continue;
            MIMUS_TRY(put_point(&to, &now));
            now = (stretch){.first = now.first + length};
        }
    }
    if (now.steps > 0)
        MIMUS_TRY(put_point(&to, &now));
    MIMUS_TRY(mimus__json_set(json, "together", json_integer((json_int_t)length)));
    MIMUS_TRY(mimus__json_set(json, "step", json_incref(to.step)));
    MIMUS_TRY(mimus__json_set(json, "loss", json_incref(to.loss)));
    MIMUS_TRY(mimus__json_set(json, "low", json_incref(to.low)));
    MIMUS_TRY(mimus__json_set(json, "high", json_incref(to.high)));
    mimus__json_round(json);
    *out = json_incref(json);
out:
    json_decref(to.step);
    json_decref(to.loss);
    json_decref(to.low);
    json_decref(to.high);
    json_decref(json);
    return status;
}

/* ------------------------------------------------------------------------ runs */

/* A copy of the object without one of its members. */
static mimus_status copy_without(json_t **out, const json_t *object, const char *key) {
    json_t *copy = json_copy((json_t *)object); /* not changed: jansson asks for it all the same */
    if (copy == NULL)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot copy a JSON object");
    (void)json_object_del(copy, key);
    *out = copy;
    return MIMUS_OK;
}

static mimus_status epochs_json(json_t **out, const json_t *epochs) {
    mimus_status status = MIMUS_OK;
    json_t *list = json_array(), *copy = NULL;
    size_t i;
    const json_t *row;
    json_array_foreach(epochs, i, row) {
        MIMUS_TRY(copy_without(&copy, row, "step_loss"));
        MIMUS_TRY(mimus__json_append(list, copy));
    }
    *out = json_incref(list);
out:
    json_decref(list);
    return status;
}

/* The recording's files by their names alone: a page may be handed on, and where they lay is
 * nobody's business. */
static mimus_status recording_json(json_t **out, const json_t *about) {
    mimus_status status = MIMUS_OK;
    const json_t *recording = json_object_get(about, "recording"), *file;
    json_t *json = json_object(), *files = json_array();
    size_t i;
    json_array_foreach(json_object_get(recording, "files"), i, file) {
        const char *path = json_string_value(file), *slash = path ? strrchr(path, '/') : NULL;
        MIMUS_TRY(mimus__json_append(files, json_string(slash != NULL  ? slash + 1
                                                        : path != NULL ? path
                                                                       : "?")));
    }
    MIMUS_TRY(mimus__json_set(json, "files", json_incref(files)));
    const json_t *fingerprint = json_object_get(recording, "fingerprint");
    const json_t *samples = json_object_get(recording, "samples");
    MIMUS_TRY(mimus__json_set(json, "fingerprint",
                              fingerprint != NULL ? json_deep_copy(fingerprint) : json_null()));
    MIMUS_TRY(
        mimus__json_set(json, "samples", samples != NULL ? json_deep_copy(samples) : json_null()));
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(files);
    return status;
}

static json_t *or_null(json_t *value) {
    return value != NULL ? json_incref(value) : json_null();
}

static mimus_status run_json(json_t **out, const mimus__view *view) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *each = NULL;
    MIMUS_TRY(mimus__json_set(json, "name", mimus__json_lossy_string(view->name)));
    MIMUS_TRY(mimus__json_set(json, "mimus", or_null(json_object_get(view->about, "mimus"))));
    MIMUS_TRY(mimus__json_set(json, "config", json_incref(view->config)));
    MIMUS_TRY(recording_json(&each, view->about));
    MIMUS_TRY(mimus__json_set(json, "recording", each));
    if (view->summary != NULL)
        MIMUS_TRY(copy_without(&each, view->summary, "run")); /* a path */
    MIMUS_TRY(mimus__json_set(json, "summary", view->summary != NULL ? each : json_null()));
    if (view->evaluation != NULL)
        MIMUS_TRY(copy_without(&each, view->evaluation, "by_episode"));
    MIMUS_TRY(mimus__json_set(json, "evaluation", view->evaluation != NULL ? each : json_null()));
    MIMUS_TRY(epochs_json(&each, view->epochs));
    MIMUS_TRY(mimus__json_set(json, "epochs", each));
    MIMUS_TRY(steps_json(&each, view->epochs));
    MIMUS_TRY(mimus__json_set(json, "steps", each));
    *out = json_incref(json);
out:
    json_decref(json);
    return status;
}

static mimus_status defaults_json(json_t **out) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    MIMUS_TRY(mimus_config_new(&config));
    MIMUS_TRY(mimus__config_to_json(out, config));
out:
    mimus_config_free(config);
    return status;
}

static mimus_status document_json(json_t **out, const mimus__view *views, size_t count) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *runs = json_array(), *each = NULL;
    for (size_t i = 0; i < count; i++) {
        MIMUS_TRY(run_json(&each, &views[i]));
        MIMUS_TRY(mimus__json_append(runs, each));
    }
    MIMUS_TRY(mimus__json_set(json, "mimus", json_string(MIMUS_VERSION)));
    MIMUS_TRY(mimus__json_set(json, "runs", json_incref(runs)));
    MIMUS_TRY(defaults_json(&each));
    MIMUS_TRY(mimus__json_set(json, "defaults", each));
    if (count > 1) {
        MIMUS_TRY(mimus__compare_json(&each, views, count));
        MIMUS_TRY(mimus__json_set(json, "comparison", each));
    }
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(runs);
    return status;
}

mimus_status mimus_report(const char *const *runs, size_t count, const char *path) {
    mimus_status status = MIMUS_OK;
    mimus__view *views = NULL;
    mimus__file_writer writer = {0};
    json_t *document = NULL;
    if (count == 0 || count > MOST_RUNS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "expected 1 to %d runs for a report, found %zu",
                           MOST_RUNS, count);
    MIMUS_TRY(mimus__views_open(&views, runs, count));
    MIMUS_TRY(document_json(&document, views, count));
    MIMUS_TRY(mimus__file_writer_open(&writer, path));
    MIMUS_TRY(mimus__page_write(writer.stream, count == 1 ? views->name : "mimus report",
                                "report.js", document));
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    mimus__file_writer_abort(&writer);
    mimus__views_free(views, count);
    json_decref(document);
    return status;
}
