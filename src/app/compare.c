/* mimus_compare: which settings of runs differ, and whether their results do. */
#include "compare.h"

#include "alloc.h"
#include "difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How two runs can be held against one another. */
typedef enum pairing { NOT_AT_ALL, UNPAIRED, PAIRED } pairing;

/* -------------------------------------------------------------- what was judged */

/* by_episode of a run; the sums of a head (H: all at once). */
static const json_t *groups_of(const mimus__view *view, size_t place) {
    const json_t *groups = json_object_get(view->evaluation, "by_episode");
    const json_t *heads = json_object_get(groups, "heads");
    return place < json_array_size(heads) ? json_array_get(heads, place)
                                          : json_object_get(groups, "joint");
}

static const char *head_name(const mimus__view *view, size_t place) {
    const json_t *head = json_array_get(json_object_get(view->evaluation, "heads"), place);
    return json_string_value(json_object_get(head, "name"));
}

static size_t head_count(const mimus__view *view) {
    return json_array_size(json_object_get(view->evaluation, "heads"));
}

/* Heads of the same names in the same order. */
static bool same_heads(const mimus__view *a, const mimus__view *b) {
    bool same = head_count(a) == head_count(b);
    for (size_t h = 0; same && h < head_count(a); h++) {
        const char *of_a = head_name(a, h), *of_b = head_name(b, h);
        same = of_a != NULL && of_b != NULL && strcmp(of_a, of_b) == 0;
    }
    return same;
}

/* The same episodes held out, with the same samples that count. */
static bool same_groups(const mimus__view *a, const mimus__view *b) {
    const json_t *of_a = json_object_get(a->evaluation, "by_episode");
    const json_t *of_b = json_object_get(b->evaluation, "by_episode");
    bool same = json_equal(json_object_get(of_a, "episodes"), json_object_get(of_b, "episodes"));
    for (size_t place = 0; same && place <= head_count(a); place++)
        same = json_equal(json_object_get(groups_of(a, place), "samples"),
                          json_object_get(groups_of(b, place), "samples"));
    return same;
}

/* `*why` where the test is not paired, or there is none. */
static pairing pair(const mimus__view *a, const mimus__view *b, const char **why) {
    *why = NULL;
    if (a->evaluation == NULL || b->evaluation == NULL)
        *why = "not judged: mimus train --resume RUN does it";
    else if (!same_heads(a, b))
        *why = "other heads";
    else if (!mimus__views_share_recording(a, b))
        *why = "another recording: results on it cannot be compared";
    if (*why != NULL)
        return NOT_AT_ALL;
    if (same_groups(a, b))
        return PAIRED;
    *why = "other episodes are held out: seed or held_out differ";
    return UNPAIRED;
}

/* --------------------------------------------------------------------- columns */

static mimus_status column(double **out, size_t *count, const json_t *array) {
    mimus_status status = MIMUS_OK;
    *count = json_array_size(array);
    MIMUS_TRY(mimus__alloc(out, *count, sizeof **out));
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = json_number_value(json_array_get(array, i));
out:
    return status;
}

static void ratio_clear(mimus__ratio *ratio) {
    free((void *)ratio->sum);
    free((void *)ratio->count);
    *ratio = (mimus__ratio){0};
}

/* `key` ("hits", "nll") over the samples of a head. */
static mimus_status ratio_of(mimus__ratio *out, const mimus__view *view, size_t place,
                             const char *key) {
    mimus_status status = MIMUS_OK;
    const json_t *groups = groups_of(view, place);
    double *sum = NULL, *count = NULL;
    size_t sums = 0, counts = 0;
    *out = (mimus__ratio){0};
    MIMUS_TRY(column(&sum, &sums, json_object_get(groups, key)));
    MIMUS_TRY(column(&count, &counts, json_object_get(groups, "samples")));
    if (sums != counts) {
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s/evaluation.json: by_episode has %zu \"%s\" for %zu \"samples\"",
                             view->folder, sums, key, counts);
        goto out;
    }
    *out = (mimus__ratio){.groups = sums, .sum = sum, .count = count};
    sum = count = NULL;
out:
    free(sum);
    free(count);
    return status;
}

/* --------------------------------------------------------------------- metrics */

static const struct {
    const char *name, *key;
    bool more_is_better;
} kinds[] = {{"agreement", "hits", true}, {"nll", "nll", false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The rows of the document's table: both kinds of every head, and of all at once where there are
 * several. */
static size_t row_count(const mimus__view *view) {
    size_t heads = head_count(view);
    return heads == 0 ? 0 : KINDS * (heads + (heads > 1));
}

static mimus_status differ(mimus__difference *out, pairing how, const mimus__view *a,
                           const mimus__view *b, size_t row) {
    mimus_status status = MIMUS_OK;
    mimus__ratio of_a = {0}, of_b = {0};
    MIMUS_TRY(ratio_of(&of_a, a, row / KINDS, kinds[row % KINDS].key));
    MIMUS_TRY(ratio_of(&of_b, b, row / KINDS, kinds[row % KINDS].key));
    if (how == PAIRED)
        MIMUS_TRY(mimus__difference_paired(out, &of_a, &of_b));
    else
        *out = mimus__difference_unpaired(&of_a, &of_b);
out:
    ratio_clear(&of_a);
    ratio_clear(&of_b);
    return status;
}

static const char *verdict(const mimus__difference *difference, double p, size_t row) {
    if (isnan(p))
        return NULL;
    if (!(p < 0.05))
        return "within noise";
    return (difference->value > 0) == kinds[row % KINDS].more_is_better ? "better" : "worse";
}

static mimus_status difference_json(json_t **out, const mimus__difference *difference, double p,
                                    size_t row) {
    mimus_status status = MIMUS_OK;
    const char *what = verdict(difference, p, row);
    json_t *json = json_object();
    MIMUS_TRY(mimus__json_set(json, "difference", mimus__json_number(difference->value)));
    MIMUS_TRY(mimus__json_set(json, "se", mimus__json_number(difference->se)));
    MIMUS_TRY(mimus__json_set(json, "p", mimus__json_number(difference->p)));
    MIMUS_TRY(mimus__json_set(json, "p_corrected", mimus__json_number(p)));
    MIMUS_TRY(mimus__json_set(json, "verdict", what != NULL ? json_string(what) : json_null()));
    *out = json_incref(json);
out:
    json_decref(json);
    return status;
}

/* One run's column: differences from the first run, row by row; an array of nulls where they
 * cannot be told. */
static mimus_status against_json(json_t **out, const mimus__view *first, const mimus__view *view,
                                 pairing how) {
    mimus_status status = MIMUS_OK;
    json_t *list = json_array(), *each = NULL;
    size_t rows = row_count(first);
    mimus__difference *differences = NULL;
    double *p = NULL;
    MIMUS_TRY(mimus__alloc(&differences, rows, sizeof *differences));
    MIMUS_TRY(mimus__alloc(&p, rows, sizeof *p));
    for (size_t r = 0; how != NOT_AT_ALL && r < rows; r++) {
        MIMUS_TRY(differ(&differences[r], how, first, view, r));
        p[r] = differences[r].p;
    }
    MIMUS_TRY(mimus__difference_correct(p, how != NOT_AT_ALL ? rows : 0));
    for (size_t r = 0; r < rows; r++) {
        if (how != NOT_AT_ALL)
            MIMUS_TRY(difference_json(&each, &differences[r], p[r], r));
        MIMUS_TRY(mimus__json_append(list, how != NOT_AT_ALL ? each : json_null()));
    }
    *out = json_incref(list);
out:
    json_decref(list);
    free(differences);
    free(p);
    return status;
}

static mimus_status value_json(json_t **out, const mimus__view *view, size_t row) {
    mimus_status status = MIMUS_OK;
    mimus__ratio ratio = {0};
    json_t *json = json_object();
    MIMUS_TRY(ratio_of(&ratio, view, row / KINDS, kinds[row % KINDS].key));
    mimus__estimated estimated = mimus__ratio_estimate(&ratio);
    MIMUS_TRY(mimus__json_set(json, "value", mimus__json_number(estimated.value)));
    MIMUS_TRY(mimus__json_set(json, "se", mimus__json_number(estimated.se)));
    *out = json_incref(json);
out:
    ratio_clear(&ratio);
    json_decref(json);
    return status;
}

/* `columns`: of every run but the first, the array of against_json. */
static mimus_status metric_json(json_t **out, const mimus__view *views, size_t count,
                                const json_t *columns, size_t row) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *values = json_array(), *against = json_array(), *each = NULL;
    const char *head = head_name(views, row / KINDS);
    MIMUS_TRY(mimus__json_set(json, "head", head != NULL ? json_string(head) : json_null()));
    MIMUS_TRY(mimus__json_set(json, "metric", json_string(kinds[row % KINDS].name)));
    for (size_t i = 0; i < count; i++) {
        bool has = views[i].evaluation != NULL && same_heads(views, &views[i]);
        if (has)
            MIMUS_TRY(value_json(&each, &views[i], row));
        MIMUS_TRY(mimus__json_append(values, has ? each : json_null()));
        if (i > 0)
            MIMUS_TRY(mimus__json_append(
                against, json_incref(json_array_get(json_array_get(columns, i - 1), row))));
    }
    MIMUS_TRY(mimus__json_set(json, "values", json_incref(values)));
    MIMUS_TRY(mimus__json_set(json, "against_first", json_incref(against)));
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(values);
    json_decref(against);
    return status;
}

static mimus_status metrics_json(json_t **out, const mimus__view *views, size_t count,
                                 const pairing *how) {
    mimus_status status = MIMUS_OK;
    json_t *metrics = json_array(), *columns = json_array(), *each = NULL;
    for (size_t i = 1; i < count; i++) {
        MIMUS_TRY(against_json(&each, views, &views[i], how[i]));
        MIMUS_TRY(mimus__json_append(columns, each));
    }
    for (size_t row = 0; row < row_count(views); row++) {
        MIMUS_TRY(metric_json(&each, views, count, columns, row));
        MIMUS_TRY(mimus__json_append(metrics, each));
    }
    *out = json_incref(metrics);
out:
    json_decref(metrics);
    json_decref(columns);
    return status;
}

/* -------------------------------------------------------------------- settings */

/* The values of one setting, where not all of them are the same. */
static mimus_status setting_json(json_t *settings, const mimus__view *views, size_t count,
                                 const char *name) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *values = json_array();
    bool differs = false;
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(views[i].config, name);
        differs = differs || !json_equal(value, json_object_get(views->config, name));
        MIMUS_TRY(mimus__json_append(values, value != NULL ? json_incref(value) : json_null()));
    }
    if (!differs)
        goto out;
    MIMUS_TRY(mimus__json_set(json, "name", json_string(name)));
    MIMUS_TRY(mimus__json_set(json, "values", json_incref(values)));
    MIMUS_TRY(mimus__json_append(settings, json_incref(json)));
out:
    json_decref(json);
    json_decref(values);
    return status;
}

/* The names of all runs' settings, each once: another version may have more. */
static mimus_status settings_json(json_t **out, const mimus__view *views, size_t count) {
    mimus_status status = MIMUS_OK;
    json_t *settings = json_array(), *seen = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(views[i].config, name, value) {
            if (json_object_get(seen, name) != NULL)
                continue;
            MIMUS_TRY(mimus__json_set(seen, name, json_true()));
            MIMUS_TRY(setting_json(settings, views, count, name));
        }
    }
    *out = json_incref(settings);
out:
    json_decref(settings);
    json_decref(seen);
    return status;
}

/* -------------------------------------------------------------------- document */

static json_t *copy_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return value != NULL ? json_deep_copy(value) : json_null();
}

static mimus_status run_json(json_t **out, const mimus__view *first, const mimus__view *view,
                             pairing *how) {
    static const char *const tests[] = {
        [NOT_AT_ALL] = NULL, [UNPAIRED] = "unpaired", [PAIRED] = "paired"};
    static const char *const summaries[] = {"ended",   "epochs",           "best_epoch",
                                            "seconds", "training_samples", "parameters"};
    mimus_status status = MIMUS_OK;
    const json_t *groups = json_object_get(view->evaluation, "by_episode");
    const char *why = NULL;
    json_t *json = json_object();
    *how = pair(first, view, &why);
    MIMUS_TRY(mimus__json_set(json, "run", mimus__json_lossy_string(view->folder)));
    MIMUS_TRY(mimus__json_set(json, "name", mimus__json_lossy_string(view->name)));
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++)
        MIMUS_TRY(mimus__json_set(json, summaries[i], copy_of(view->summary, summaries[i])));
    MIMUS_TRY(mimus__json_set(json, "held_out_samples", copy_of(view->evaluation, "samples")));
    MIMUS_TRY(mimus__json_set(json, "held_out_episodes", copy_of(view->evaluation, "episodes")));
    MIMUS_TRY(mimus__json_set(
        json, "groups",
        json_integer((json_int_t)json_array_size(json_object_get(groups, "episodes")))));
    if (view != first) {
        MIMUS_TRY(mimus__json_set(json, "test",
                                  tests[*how] != NULL ? json_string(tests[*how]) : json_null()));
        MIMUS_TRY(mimus__json_set(json, "why", why != NULL ? json_string(why) : json_null()));
    }
    *out = json_incref(json);
out:
    json_decref(json);
    return status;
}

mimus_status mimus__compare_json(json_t **out, const mimus__view *views, size_t count) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *runs = json_array(), *settings = NULL, *metrics = NULL,
           *each = NULL;
    pairing *how = NULL;
    MIMUS_TRY(mimus__alloc(&how, count, sizeof *how));
    for (size_t i = 0; i < count; i++) {
        MIMUS_TRY(run_json(&each, views, &views[i], &how[i]));
        MIMUS_TRY(mimus__json_append(runs, each));
    }
    MIMUS_TRY(settings_json(&settings, views, count));
    MIMUS_TRY(metrics_json(&metrics, views, count, how));
    MIMUS_TRY(mimus__json_set(json, "runs", json_incref(runs)));
    MIMUS_TRY(mimus__json_set(json, "settings", json_incref(settings)));
    MIMUS_TRY(mimus__json_set(json, "metrics", json_incref(metrics)));
    mimus__json_round(json);
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(runs);
    json_decref(settings);
    json_decref(metrics);
    free(how);
    return status;
}

mimus_status mimus_compare(const char *const *runs, size_t count, char **json) {
    mimus_status status = MIMUS_OK;
    mimus__view *views = NULL;
    json_t *document = NULL;
    *json = NULL;
    if (count < 2)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "expected two runs or more to compare, found %zu",
                           count);
    MIMUS_TRY(mimus__views_open(&views, runs, count));
    for (size_t i = 0; i < count; i++) {
        if (views[i].evaluation == NULL) {
            status = mimus__fail(MIMUS_ERR_DATA,
                                 "%s: was not judged on a held-out part (it has no "
                                 "evaluation.json), so that there is nothing to compare; a run "
                                 "that has such a part is judged by `mimus train --resume %s`",
                                 views[i].folder, views[i].folder);
            goto out;
        }
    }
    MIMUS_TRY(mimus__compare_json(&document, views, count));
    MIMUS_TRY(mimus__json_text(json, document, JSON_INDENT(2)));
out:
    mimus__views_free(views, count);
    json_decref(document);
    return status;
}
