/* mimus_eval: a model and a recording from their files, judged. */
#include "evaluate.h"

#include <stdlib.h>
#include <string.h>

static const char *const part_names[] = {"all", "held-out", "training"};

typedef struct request {
    char *file; /* the model's */
    mimus__model *model;
    mimus__dataset dataset;
    mimus__device *device;
    mimus__evaluation evaluation;
} request;

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
    const char *trained_on = json_string_value(json_object_get(r->model->facts, "recording"));
    if (!mimus__evaluation_trained_on(&r->evaluation)) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "the model was trained on recording %s, and this is recording %s: "
                             "only the recording of the training has a held-out and a training "
                             "part; judge it whole (--part all)",
                             trained_on != NULL ? trained_on : "(not known)",
                             mimus__recording_fingerprint(r->dataset.recording));
        goto out;
    }
    MIMUS_TRY(mimus_config_new(&config));
    MIMUS_TRY(mimus__config_from_json(config, r->model->config, "the model's settings"));
    MIMUS_TRY(mimus__split_new(split, r->dataset.recording, &r->dataset.audit, config->heldout,
                               config->seed));
out:
    mimus_config_free(config);
    return status;
}

mimus_status mimus_eval(const char *model, const mimus_source *source, mimus_part part,
                        const char *device, bool confusion, const mimus_watch *watch, char **json) {
    mimus_status status = MIMUS_OK;
    request r = {0};
    mimus__metrics *metrics = NULL;
    json_t *result = NULL;
    MIMUS_TRY(mimus__model_find(&r.file, model, "best"));
    MIMUS_TRY(mimus__model_load(&r.model, r.file));
    MIMUS_TRY(mimus__dataset_open(&r.dataset, source, r.model->schema, watch));
    MIMUS_TRY(mimus__schema_match(r.model->schema, model,
                                  mimus__recording_schema(r.dataset.recording), source->paths[0],
                                  false));
    r.evaluation = (mimus__evaluation){.model = r.model,
                                       .file = r.file,
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
    MIMUS_TRY(mimus__evaluate(&metrics, &r.evaluation, watch));
    MIMUS_TRY(mimus__evaluation_json(&result, &r.evaluation, metrics, model, part_names[part]));
    MIMUS_TRY(mimus__json_text(json, result, JSON_INDENT(2)));
out:
    json_decref(result);
    mimus__metrics_free(metrics);
    mimus__device_close(r.device);
    mimus__dataset_clear(&r.dataset);
    mimus__model_free(r.model);
    free(r.file);
    return status;
}
