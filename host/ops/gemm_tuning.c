#include "gemm_tuning.h"

#include "gemm_trial.h"
#include "text.h"
#include "tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A back end's variant; type NULL: none. */
typedef struct choice {
    const mimus__gemm_type *type;
    uint32_t variant;
    double seconds;
} choice;

/* -------------------------------------------------------------------------- trials */

static mimus_status open_variant(mimus__gemm_backend **out, const mimus__gemm_type *type,
                                 mimus__device *device, const mimus__gemm_problem *problem,
                                 uint32_t variant) {
    if (type == NULL)
        return mimus__fail(MIMUS_ERR_DEVICE, "no back end of the matrix products was right");
    mimus_status status = type->open(out, device, problem, variant);
    if (status == MIMUS_OK)
        (*out)->type = type;
    return status;
}

/* {"seconds", "parameters", "variant"} of its fastest right variant; {"error"} when it has none,
 * its latest failure then being the thread's too. */
static mimus_status try_type(json_t *report, choice *best, mimus__device *device,
                             const mimus__gemm_problem *problem, const mimus__gemm_type *type) {
    mimus_status status = MIMUS_OK, failure = MIMUS_OK;
    mimus__gemm_backend *backend = NULL;
    choice own = {.seconds = INFINITY};
    json_t *entry = json_object();
    uint32_t variants = type->variants(device, problem);
    for (uint32_t variant = 0; variant < variants; variant++) {
        double seconds = INFINITY;
        mimus_status tried = open_variant(&backend, type, device, problem, variant);
        if (tried == MIMUS_OK)
            tried = mimus__gemm_try(backend, problem, &seconds);
        if (tried == MIMUS_ERR_STOPPED) {
            status = tried;
            goto out;
        }
        if (tried != MIMUS_OK) {
            failure = tried;
            MIMUS_TRY(mimus__json_set(entry, "error", json_string(mimus_last_error())));
        } else if (seconds < own.seconds) {
            own = (choice){type, variant, seconds};
            MIMUS_TRY(mimus__json_set(entry, "seconds", mimus__json_number(seconds)));
            MIMUS_TRY(mimus__json_set(entry, "parameters", json_string(backend->parameters)));
            MIMUS_TRY(mimus__json_set(entry, "variant", json_integer(variant)));
        }
        type->close(backend);
        backend = NULL;
    }
    MIMUS_TRY(mimus__json_set(report, type->name, json_incref(entry)));
    if (own.seconds < best->seconds)
        *best = own;
    status = own.type != NULL ? MIMUS_OK : failure;
out:
    type->close(backend);
    json_decref(entry);
    return status;
}

/* Split `types` into those worth trying here and {name: {"skipped": why}}; one alone was asked for
 * by name. */
static mimus_status select_types(const mimus__gemm_type **tried, uint32_t *tried_count,
                                 json_t *skipped, const mimus__device *device,
                                 const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    *tried_count = 0;
    for (uint32_t i = 0; i < type_count; i++) {
        const char *unsuited = type_count > 1 ? types[i]->unsuited(device) : NULL;
        if (unsuited == NULL)
            tried[(*tried_count)++] = types[i];
        else
            MIMUS_TRY(
                mimus__json_set(skipped, types[i]->name, json_pack("{ss}", "skipped", unsuited)));
    }
out:
    return status;
}

/* All failed: what is wrong with each. */
static mimus_status none_is_right(const json_t *report, const mimus__device *device,
                                  const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    char *list = NULL;
    for (uint32_t i = 0; i < type_count; i++) {
        const char *error =
            json_string_value(json_object_get(json_object_get(report, types[i]->name), "error"));
        char *longer = NULL;
        MIMUS_TRY(mimus__text_format(&longer, "%s; %s: %s", list != NULL ? list : "",
                                     types[i]->name, error != NULL ? error : "not tried"));
        free(list);
        list = longer;
    }
    status = mimus__fail(MIMUS_ERR_DEVICE, "no GEMM back end is right on %s%s",
                         mimus__device_get_info(device)->name, list);
out:
    free(list);
    return status;
}

static mimus_status try_all(json_t *report, choice *best, mimus__device *device,
                            const mimus__gemm_problem *problem,
                            const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    *best = (choice){.seconds = INFINITY};
    for (uint32_t i = 0; i < type_count; i++) {
        status = try_type(report, best, device, problem, types[i]);
        if (status == MIMUS_ERR_MEMORY || status == MIMUS_ERR_STOPPED)
            return status;
    }
    if (best->type == NULL)
        return type_count == 1 ? status : none_is_right(report, device, types, type_count);
    return mimus__json_set(report, "chosen", json_string(best->type->name));
}

/* --------------------------------------------------------------------------- cache */

static mimus_status make_key(json_t **out, const mimus__device *device,
                             const mimus__gemm_problem *problem,
                             const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    json_t *key = NULL, *layers = json_array(), *names = json_array();
    for (uint32_t i = 0; i < problem->count; i++) {
        const mimus__gemm_layer *layer = &problem->layers[i];
        MIMUS_TRY(mimus__json_append(
            layers, json_pack("[iii]", (int)layer->runs, (int)layer->in, (int)layer->out)));
    }
    for (uint32_t i = 0; i < type_count; i++)
        MIMUS_TRY(mimus__json_append(names, json_string(types[i]->name)));
    MIMUS_TRY(mimus__tuning_key(&key, device));
    MIMUS_TRY(mimus__json_set(key, "rows", json_integer(problem->rows)));
    MIMUS_TRY(mimus__json_set(key, "layers", json_incref(layers)));
    MIMUS_TRY(mimus__json_set(key, "backends", json_incref(names)));
    *out = json_incref(key);
out:
    json_decref(key);
    json_decref(layers);
    json_decref(names);
    return status;
}

/* The report of an earlier start and its choice; false: there is none that can be used. */
static bool recall(json_t **report, choice *found, const json_t *key, const mimus__device *device,
                   const mimus__gemm_problem *problem, const mimus__gemm_type *const *types,
                   uint32_t type_count) {
    json_t *kept = mimus__tuning_recall("gemm", key);
    bool usable = false;
    const char *chosen = json_string_value(json_object_get(kept, "chosen"));
    for (uint32_t i = 0; i < type_count && chosen != NULL; i++) {
        if (strcmp(types[i]->name, chosen) != 0)
            continue;
        const json_t *variant = json_object_get(json_object_get(kept, chosen), "variant");
        usable = json_is_integer(variant) && json_integer_value(variant) >= 0 &&
                 json_integer_value(variant) < types[i]->variants(device, problem);
        *found = (choice){.type = types[i], .variant = (uint32_t)json_integer_value(variant)};
    }
    if (usable)
        *report = json_incref(kept);
    json_decref(kept);
    return usable;
}

/* ---------------------------------------------------------------------------- front */

static mimus_status open_recalled(mimus__gemm_backend **out, const choice *found,
                                  const json_t *report, mimus__device *device,
                                  const mimus__gemm_problem *problem) {
    mimus_status status = open_variant(out, found->type, device, problem, found->variant);
    if (status != MIMUS_OK)
        return status;
    const char *parameters = json_string_value(
        json_object_get(json_object_get(report, found->type->name), "parameters"));
    if (parameters == NULL || strcmp(parameters, (*out)->parameters) != 0) {
        found->type->close(*out);
        *out = NULL;
        return mimus__fail(MIMUS_ERR_FORMAT, "the cached choice is of another variant");
    }
    return MIMUS_OK;
}

/* Try them, open the best anew, so that nothing of the trials stays behind, and remember it. */
static mimus_status find(mimus__gemm_backend **out, json_t *report, json_t *key,
                         mimus__device *device, const mimus__gemm_problem *problem,
                         const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    choice found = {0};
    MIMUS_TRY(try_all(report, &found, device, problem, types, type_count));
    MIMUS_TRY(open_variant(out, found.type, device, problem, found.variant));
    mimus__tuning_remember("gemm", key, report);
out:
    return status;
}

mimus_status mimus__gemm_tune(mimus__gemm_backend **out, json_t **report, mimus__device *device,
                              const mimus__gemm_problem *problem,
                              const mimus__gemm_type *const *types, uint32_t type_count) {
    mimus_status status = MIMUS_OK;
    const mimus__gemm_type *tried[MIMUS__GEMM_MAX_TYPES];
    uint32_t tried_count;
    json_t *key = NULL, *recalled = NULL, *fresh = json_object();
    choice found = {0};
    *out = NULL;
    *report = NULL;
    MIMUS_TRY(select_types(tried, &tried_count, fresh, device, types, type_count));
    MIMUS_TRY(make_key(&key, device, problem, tried, tried_count));
    bool cached = recall(&recalled, &found, key, device, problem, tried, tried_count) &&
                  open_recalled(out, &found, recalled, device, problem) == MIMUS_OK;
    if (!cached)
        MIMUS_TRY(find(out, fresh, key, device, problem, tried, tried_count));
    *report = json_incref(cached ? recalled : fresh);
    MIMUS_TRY(mimus__json_set(*report, "cached", json_boolean(cached)));
out:
    if (status != MIMUS_OK && *out != NULL) {
        (*out)->type->close(*out);
        *out = NULL;
    }
    json_decref(key);
    json_decref(recalled);
    json_decref(fresh);
    return status;
}
