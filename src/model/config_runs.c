#include "config_runs.h"

#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- agreement */

/* Whether all have the same value of a setting; `*other` is the first that has another. */
static bool same(json_t *const *settings, size_t count, const char *name, size_t *other) {
    for (*other = 1; *other < count; ++*other) {
        if (!json_equal(json_object_get(settings[0], name),
                        json_object_get(settings[*other], name)))
            return false;
    }
    return true;
}

static mimus_status refuse(json_t *const *settings, size_t other, const char *name) {
    mimus_status status = MIMUS_OK;
    char *first = NULL, *second = NULL, varying[256] = "";
    MIMUS_TRY(mimus__json_text(&first, json_object_get(settings[0], name), JSON_COMPACT));
    MIMUS_TRY(mimus__json_text(&second, json_object_get(settings[other], name), JSON_COMPACT));
    for (size_t i = 0; mimus_config_describe(i) != NULL; i++) {
        size_t used = strlen(varying);
        if (mimus_config_varies(i))
            snprintf(varying + used, sizeof varying - used, "%s%s", used > 0 ? ", " : "",
                     mimus_config_describe(i)->name);
    }
    status = mimus__fail(MIMUS_ERR_ARGUMENT,
                         "%s: is %.40s in run 0 and %.40s in run %zu; the runs of one pass differ "
                         "at most in %s",
                         name, first, second, other, varying);
out:
    free(first);
    free(second);
    return status;
}

static void free_list(json_t **settings, size_t count) {
    for (size_t r = 0; settings != NULL && r < count; r++)
        json_decref(settings[r]);
    free(settings);
}

/* What each is, as it counts: the seed of the split resolved. */
static mimus_status list_settings(json_t ***out, const mimus_config *const *configs, size_t count) {
    mimus_status status = MIMUS_OK;
    json_t **settings = NULL;
    MIMUS_TRY(mimus__alloc(&settings, count, sizeof(json_t *)));
    for (size_t r = 0; r < count; r++) {
        MIMUS_TRY(mimus__config_to_json(&settings[r], configs[r]));
        MIMUS_TRY(mimus__json_set(settings[r], "split_seed",
                                  json_integer((json_int_t)mimus__config_split_seed(configs[r]))));
    }
    *out = settings;
    settings = NULL;
out:
    free_list(settings, count);
    return status;
}

mimus_status mimus__config_runs_agree(const mimus_config *const *configs, size_t count) {
    mimus_status status = MIMUS_OK;
    json_t **settings = NULL;
    size_t other;
    MIMUS_TRY(list_settings(&settings, configs, count));
    for (size_t i = 0; mimus_config_describe(i) != NULL; i++) {
        const char *name = mimus_config_describe(i)->name;
        if (!mimus_config_varies(i) && !same(settings, count, name, &other)) {
            status = refuse(settings, other, name);
            goto out;
        }
    }
out:
    free_list(settings, count);
    return status;
}

mimus_status mimus__config_runs_differences(json_t **out, const mimus_config *const *configs,
                                            size_t count) {
    mimus_status status = MIMUS_OK;
    json_t **settings = NULL, *names = json_array();
    size_t other;
    MIMUS_TRY(list_settings(&settings, configs, count));
    for (size_t i = 0; mimus_config_describe(i) != NULL; i++) {
        const char *name = mimus_config_describe(i)->name;
        if (!same(settings, count, name, &other))
            MIMUS_TRY(mimus__json_append(names, json_string(name)));
    }
    *out = json_incref(names);
out:
    free_list(settings, count);
    json_decref(names);
    return status;
}

/* ----------------------------------------------------------------- expansion */

/* A setting with its values. */
typedef struct list {
    const char *name;
    json_t *values;
} list;

/* The most lists: a setting of the table each. */
enum { MOST_LISTS = 64 };

typedef struct lists {
    list list[MOST_LISTS];
    size_t count;
} lists;

static void clear_lists(lists *all) {
    for (size_t i = 0; i < all->count; i++)
        json_decref(all->list[i].values);
}

/* first, first + 1, ... */
static json_t *numbers(uint64_t first, uint32_t count) {
    json_t *values = json_array();
    for (uint32_t i = 0; i < count; i++) {
        if (json_array_append_new(values, json_integer((json_int_t)(first + i))) != 0) {
            json_decref(values);
            return NULL;
        }
    }
    return values;
}

/* The values of a setting that has several, a new reference; NULL where it has one. */
static json_t *values_of(const mimus_config *config, const char *name) {
    json_t *given = json_object_get(config->lists, name);
    if (given != NULL)
        return json_incref(given);
    if (strcmp(name, "seed") == 0 && config->runs > 1)
        return numbers(config->seed, config->runs);
    if (strcmp(name, "fold") == 0 && config->folds > 1 && config->fold == 0)
        return numbers(1, config->folds);
    return NULL;
}

static void find_lists(lists *all, const mimus_config *config) {
    for (size_t i = 0; mimus_config_describe(i) != NULL && all->count < MOST_LISTS; i++) {
        const char *name = mimus_config_describe(i)->name;
        json_t *values = values_of(config, name);
        if (values != NULL)
            all->list[all->count++] = (list){name, values};
    }
}

static mimus_status count_runs(size_t *out, const lists *all, const mimus_config *config) {
    size_t count = 1;
    for (size_t i = 0; i < all->count; i++) {
        size_t values = json_array_size(all->list[i].values);
        if (config->grid > 0)
            count *= values;
        else if (i > 0 && values != count)
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "%s has %zu values and %s has %zu: give equally many, one a run, "
                               "or --grid for all combinations",
                               all->list[0].name, count, all->list[i].name, values);
        else
            count = values;
        if (count > MIMUS__MAX_RUNS)
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "the lists stand for more than the %d runs that one pass can take",
                               MIMUS__MAX_RUNS);
    }
    if (config->runs > 1 && config->grid == 0 && count != config->runs)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "runs is %u, and the lists have %zu values: leave --runs out, or give "
                           "--grid",
                           (unsigned)config->runs, count);
    *out = count;
    return MIMUS_OK;
}

/* Which value of list `number` run `run` has. */
static size_t place_of(const lists *all, const mimus_config *config, size_t number, size_t run) {
    if (config->grid == 0)
        return run;
    for (size_t i = all->count; --i > number;)
        run /= json_array_size(all->list[i].values);
    return run % json_array_size(all->list[number].values);
}

/* What says that there are many is not part of one. */
static void make_single(mimus_config *config) {
    json_object_clear(config->lists);
    config->runs = 1;
    config->grid = config->share_batches = config->keep = 0;
}

static mimus_status make_run(mimus_config **out, const mimus_config *config, const lists *all,
                             size_t run) {
    mimus_status status = MIMUS_OK;
    mimus_config *made = NULL;
    json_t *chosen = json_object();
    for (size_t i = 0; i < all->count; i++) {
        json_t *value = json_array_get(all->list[i].values, place_of(all, config, i, run));
        MIMUS_TRY(mimus__json_set(chosen, all->list[i].name, json_incref(value)));
    }
    MIMUS_TRY(mimus__config_copy(&made, config));
    MIMUS_TRY(mimus__config_from_json(made, chosen, "configuration"));
    make_single(made);
    *out = made;
    made = NULL;
out:
    mimus_config_free(made);
    json_decref(chosen);
    return status;
}

/* One split for all, and one order where it is shared. */
static mimus_status settle(mimus__config_runs *runs, bool share) {
    const uint64_t split = mimus__config_split_seed(runs->config[0]);
    const uint64_t order = mimus__config_order_seed(runs->config[0]);
    for (size_t r = 0; runs->count > 1 && r < runs->count; r++) {
        if (runs->config[r]->split_seed == MIMUS__SEED_OWN)
            runs->config[r]->split_seed = split;
        if (share)
            runs->config[r]->order_seed = order;
    }
    return mimus__config_runs_agree((const mimus_config *const *)runs->config, runs->count);
}

mimus_status mimus__config_runs_expand(mimus__config_runs *out, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    lists all = {.count = 0};
    size_t count = 0;
    *out = (mimus__config_runs){0};
    find_lists(&all, config);
    MIMUS_TRY(count_runs(&count, &all, config));
    MIMUS_TRY(mimus__alloc(&out->config, count, sizeof *out->config));
    for (; out->count < count; out->count++)
        MIMUS_TRY(make_run(&out->config[out->count], config, &all, out->count));
    MIMUS_TRY(settle(out, config->share_batches > 0));
out:
    clear_lists(&all);
    return status;
}

mimus_status mimus__config_runs_copy(mimus__config_runs *out, const mimus_config *const *configs,
                                     size_t count) {
    mimus_status status = MIMUS_OK;
    const lists none = {.count = 0};
    *out = (mimus__config_runs){0};
    if (count == 0 || count > MIMUS__MAX_RUNS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%zu runs; a pass takes 1 to %d", count,
                           MIMUS__MAX_RUNS);
    MIMUS_TRY(mimus__alloc(&out->config, count, sizeof *out->config));
    for (; out->count < count; out->count++) {
        const mimus_config *config = configs[out->count];
        if (json_object_size(config->lists) > 0 || config->runs > 1) {
            status =
                mimus__fail(MIMUS_ERR_ARGUMENT,
                            "run %zu: its settings stand for several runs themselves", out->count);
            goto out;
        }
        MIMUS_TRY(make_run(&out->config[out->count], config, &none, out->count));
    }
    MIMUS_TRY(settle(out, false));
out:
    return status;
}

void mimus__config_runs_clear(mimus__config_runs *runs) {
    for (size_t r = 0; r < runs->count; r++)
        mimus_config_free(runs->config[r]);
    free(runs->config);
    *runs = (mimus__config_runs){0};
}
