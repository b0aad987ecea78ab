/* mimus_eval: a model, or the members of many, and a recording from their files, judged. */
#include "evaluate.h"
#include "many.h"

#include "alloc.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static const char *const part_names[] = {"all", "held-out", "training"};

typedef struct request {
    char *file;            /* the model's */
    json_t *names;         /* of the members, or NULL: a model alone */
    mimus__model **member; /* (count) */
    uint32_t count;
    mimus__metrics **each; /* (count) of many, or NULL */
    mimus__dataset dataset;
    mimus__device *device;
    mimus__evaluation evaluation;
} request;

/* ------------------------------------------------------------------------- models */

static bool same_shape(const mimus__shape *a, const mimus__shape *b) {
    bool same = a->stack == b->stack && a->layers == b->layers && a->activation == b->activation;
    for (uint32_t l = 0; same && l <= a->layers; l++)
        same = a->width[l] == b->width[l];
    return same;
}

static mimus_status load_member(request *r, const char *folder, const char *name) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    mimus__model *model = NULL;
    MIMUS_TRY(mimus__text_format(&path, "%s/%s", folder, name));
    free(r->file);
    r->file = NULL;
    MIMUS_TRY(mimus__model_find(&r->file, path, "best"));
    MIMUS_TRY(mimus__model_load(&model, r->file));
    if (r->count > 0 && !same_shape(&r->member[0]->shape, &model->shape)) {
        status =
            mimus__fail(MIMUS_ERR_FORMAT, "%s: holds another network than the other runs", r->file);
        goto out;
    }
    r->member[r->count++] = model;
    model = NULL;
out:
    free(path);
    mimus__model_free(model);
    return status;
}

static mimus_status load_many(request *r, const char *folder) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__many_names(&r->names, folder, true));
    const size_t count = json_array_size(r->names);
    MIMUS_TRY(mimus__alloc(&r->member, count, sizeof *r->member));
    MIMUS_TRY(mimus__alloc(&r->each, count, sizeof *r->each));
    for (size_t i = 0; i < count; i++)
        MIMUS_TRY(load_member(r, folder, json_string_value(json_array_get(r->names, i))));
    free(r->file);
    r->file = NULL;
    MIMUS_TRY(mimus__text_copy(&r->file, folder));
out:
    return status;
}

static mimus_status load(request *r, const char *path) {
    mimus_status status = MIMUS_OK;
    if (mimus__many_is(path))
        return load_many(r, path);
    MIMUS_TRY(mimus__alloc(&r->member, 1, sizeof *r->member));
    MIMUS_TRY(mimus__model_find(&r->file, path, "best"));
    MIMUS_TRY(mimus__model_load(&r->member[0], r->file));
    r->count = 1;
out:
    return status;
}

/* -------------------------------------------------------------------------- parts */

static mimus_status settings_of(mimus_config **out, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    MIMUS_TRY(mimus_config_new(&config));
    MIMUS_TRY(mimus__config_from_json(config, model->config, "the model's settings"));
    *out = config;
    config = NULL;
out:
    mimus_config_free(config);
    return status;
}

/* Members that held out different folds have no part in common that none has seen. */
static mimus_status check_folds(const request *r, const mimus_config *first) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    for (uint32_t m = 1; m < r->count; m++) {
        mimus_config_free(config);
        config = NULL;
        MIMUS_TRY(settings_of(&config, r->member[m]));
        if (config->fold != first->fold) {
            status = mimus__fail(MIMUS_ERR_ARGUMENT,
                                 "%s: its runs held out different folds: judge each on its own "
                                 "(%s/%s), or all on another recording (--part all)",
                                 r->file, r->file, json_string_value(json_array_get(r->names, m)));
            goto out;
        }
    }
out:
    mimus_config_free(config);
    return status;
}

/* Find the rows of the part; the run's own settings say how they were split. */
static mimus_status choose_part(request *r, mimus_part part) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    mimus__split *split = &r->dataset.split;
    r->evaluation.rows = part == MIMUS_PART_TRAINING ? &split->training : &split->heldout;
    if (part == MIMUS_PART_ALL) {
        MIMUS_TRY(mimus__rows_all(&split->heldout, r->dataset.recording, &r->dataset.audit));
        goto out;
    }
    const char *trained_on = json_string_value(json_object_get(r->member[0]->facts, "recording"));
    if (!mimus__evaluation_trained_on(&r->evaluation)) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "the model was trained on recording %s, and this is recording %s: "
                             "only the recording of the training has a held-out and a training "
                             "part; judge it whole (--part all)",
                             trained_on != NULL ? trained_on : "(not known)",
                             mimus__recording_fingerprint(r->dataset.recording));
        goto out;
    }
    MIMUS_TRY(settings_of(&config, r->member[0]));
    MIMUS_TRY(check_folds(r, config));
    MIMUS_TRY(mimus__dataset_parts(split, &r->dataset, config));
out:
    mimus_config_free(config);
    return status;
}

/* ------------------------------------------------------------------------ together */

/* Each member by itself, under "members". */
static mimus_status add_members(json_t *result, const request *r) {
    mimus_status status = MIMUS_OK;
    json_t *rows = json_array(), *judged = NULL;
    for (uint32_t m = 0; m < r->count; m++) {
        json_decref(judged);
        judged = NULL;
        MIMUS_TRY(mimus__metrics_json(&judged, r->each[m]));
        MIMUS_TRY(mimus__json_set(judged, "name", json_incref(json_array_get(r->names, m))));
        MIMUS_TRY(mimus__json_append(rows, json_incref(judged)));
    }
    MIMUS_TRY(mimus__json_set(result, "epoch", json_null())); /* each has its own */
    MIMUS_TRY(mimus__json_set(result, "members", json_incref(rows)));
out:
    json_decref(rows);
    json_decref(judged);
    return status;
}

static void clear(request *r) {
    for (uint32_t m = 0; m < r->count; m++) {
        mimus__model_free(r->member[m]);
        if (r->each != NULL)
            mimus__metrics_free(r->each[m]);
    }
    free(r->member);
    free(r->each);
    json_decref(r->names);
    mimus__device_close(r->device);
    mimus__dataset_clear(&r->dataset);
    free(r->file);
}

mimus_status mimus_eval(const char *model, const mimus_source *source, mimus_part part,
                        const char *device, bool confusion, const mimus_watch *watch, char **json) {
    mimus_status status = MIMUS_OK;
    request r = {.file = NULL};
    mimus__metrics *metrics = NULL;
    json_t *result = NULL;
    MIMUS_TRY(load(&r, model));
    const mimus_schema *schema = r.member[0]->schema;
    MIMUS_TRY(mimus__dataset_open(&r.dataset, source, schema, watch));
    MIMUS_TRY(mimus__schema_match(schema, model, mimus__recording_schema(r.dataset.recording),
                                  source->paths[0], false));
    r.evaluation = (mimus__evaluation){.model = r.member[0],
                                       .file = r.file,
                                       .members = (const mimus__model *const *)r.member,
                                       .count = r.count,
                                       .dataset = &r.dataset,
                                       .confusion = confusion ? UINT32_MAX : 0};
    MIMUS_TRY(choose_part(&r, part));
    if (r.evaluation.rows->samples == 0) {
        status = mimus__fail(MIMUS_ERR_DATA, "%s: nothing to judge: the part has no samples",
                             source->paths[0]);
        goto out;
    }
    MIMUS_TRY(mimus__device_open(&r.device, device, 0));
    r.evaluation.device = r.device;
    MIMUS_TRY(mimus__evaluate_members(&metrics, r.each, &r.evaluation, watch));
    MIMUS_TRY(mimus__evaluation_json(&result, &r.evaluation, metrics, model, part_names[part]));
    if (r.names != NULL)
        MIMUS_TRY(add_members(result, &r));
    MIMUS_TRY(mimus__json_text(json, result, JSON_INDENT(2)));
out:
    json_decref(result);
    mimus__metrics_free(metrics);
    clear(&r);
    return status;
}
