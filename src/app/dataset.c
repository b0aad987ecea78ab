#include "dataset.h"

#include "text.h"
#include "watch.h"

#include <float.h>
#include <math.h>

static void tell_audit(const mimus__audit *audit, const mimus_watch *watch) {
    if (audit->dropped > 0)
        mimus__watch_message(watch, "left out %llu sample%s that cannot be trained on",
                             (unsigned long long)audit->dropped,
                             mimus__text_plural(audit->dropped));
    if (audit->constant_senses > 0)
        mimus__watch_message(watch, "%u sense%s never change%s: the policy will ignore %s",
                             audit->constant_senses, mimus__text_plural(audit->constant_senses),
                             audit->constant_senses == 1 ? "s" : "",
                             audit->constant_senses == 1 ? "it" : "them");
}

mimus_status mimus__dataset_open(mimus__dataset *out, const mimus_source *source,
                                 const mimus_schema *like, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__dataset){0};
    MIMUS_TRY(mimus__recording_open_like(&out->recording, source, like, watch));
    MIMUS_TRY(mimus__audit_run(&out->audit, out->recording, source->illegal, watch));
    tell_audit(&out->audit, watch);
out:
    return status;
}

/* A part that says nothing has a loss of 0, which no other epoch would ever better. */
static mimus_status check_part(const mimus__statistics *statistics, const mimus__rows *rows,
                               const mimus_schema *schema, const mimus_config *config,
                               const char *part, const char *advice) {
    uint64_t labels = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (h >= config->head_weight_count || config->head_weights[h] > 0)
            labels += statistics->labels[h];
    }
    if (labels == 0)
        return mimus__fail(MIMUS_ERR_DATA, "none of the %llu %s samples has a label%s%s",
                           (unsigned long long)rows->samples, part,
                           config->head_weight_count > 0 ? " of a head with a weight" : "", advice);
    if (!(statistics->weight > 0))
        return mimus__fail(MIMUS_ERR_DATA, "all of the %llu %s samples have the weight 0%s",
                           (unsigned long long)rows->samples, part, advice);
    return MIMUS_OK;
}

/* 1 / std; 0 for a sense that says nothing, whose rounding noise would shout. */
static float scale_of(const mimus__statistics *statistics, uint32_t sense) {
    double std = statistics->std[sense];
    bool constant = statistics->minimum[sense] == statistics->maximum[sense];
    return constant || !(std > 0) || !isfinite((float)(1.0 / std)) ? 0.0f : (float)(1.0 / std);
}

/* Every sample of the part, whose extremes `of` has, must be normalised without an overflow, nor by
 * a factor that some devices take for 0 and others do not. */
static mimus_status check_reach(const mimus__dataset *dataset, const mimus__statistics *of,
                                const char *part) {
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    for (uint32_t i = 0; i < schema->senses; i++) {
        float mean = (float)dataset->statistics.mean[i], scale = scale_of(&dataset->statistics, i);
        float low = (of->minimum[i] - mean) * scale, high = (of->maximum[i] - mean) * scale;
        if (!isfinite(low) || !isfinite(high) || (scale > 0 && scale < FLT_MIN))
            return mimus__fail(MIMUS_ERR_DATA,
                               "sense %u (%s) reaches from %g to %g in the %s samples: too far to "
                               "be normalised in single precision; record it in smaller numbers, "
                               "or clip it",
                               i, schema->sense_names != NULL ? schema->sense_names[i] : "unnamed",
                               (double)of->minimum[i], (double)of->maximum[i], part);
    }
    return MIMUS_OK;
}

static mimus_status check_heldout(const mimus__dataset *dataset, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    mimus__statistics statistics = {0};
    const mimus__rows *rows = &dataset->split.heldout;
    if (rows->samples == 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__statistics_new(&statistics, dataset->recording, rows));
    MIMUS_TRY(check_part(&statistics, rows, mimus__recording_schema(dataset->recording), config,
                         "held-out", "; hold out more or nothing, or split by another seed"));
    MIMUS_TRY(check_reach(dataset, &statistics, "held-out"));
out:
    mimus__statistics_clear(&statistics);
    return status;
}

mimus_status mimus__dataset_split(mimus__dataset *dataset, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__split_new(&dataset->split, dataset->recording, &dataset->audit,
                               config->heldout, config->seed));
    MIMUS_TRY(
        mimus__statistics_new(&dataset->statistics, dataset->recording, &dataset->split.training));
    MIMUS_TRY(check_part(&dataset->statistics, &dataset->split.training,
                         mimus__recording_schema(dataset->recording), config, "training", ""));
    MIMUS_TRY(check_reach(dataset, &dataset->statistics, "training"));
    MIMUS_TRY(check_heldout(dataset, config));
out:
    return status;
}

static void normalise(mimus__model *model, const mimus__statistics *statistics) {
    for (uint32_t i = 0; i < model->schema->senses; i++) {
        model->mean[i] = (float)statistics->mean[i];
        model->scale[i] = scale_of(statistics, i);
    }
}

mimus_status mimus__dataset_model(mimus__model **out, const mimus__dataset *dataset,
                                  const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    mimus__model *model = NULL;
    mimus__shape shape;
    MIMUS_TRY(mimus__config_shape(&shape, config, schema));
    MIMUS_TRY(mimus__model_new(&model, schema, &shape, true));
    mimus__model_initialise(&shape, model->parameters, config->seed, 0);
    normalise(model, &dataset->statistics);
    json_decref(model->config);
    model->config = NULL;
    MIMUS_TRY(mimus__config_to_json(&model->config, config));
    *out = model;
    model = NULL;
out:
    mimus__model_free(model);
    return status;
}

void mimus__dataset_clear(mimus__dataset *dataset) {
    mimus__statistics_clear(&dataset->statistics);
    mimus__split_clear(&dataset->split);
    mimus__audit_clear(&dataset->audit);
    mimus__recording_free(dataset->recording);
    *dataset = (mimus__dataset){0};
}
