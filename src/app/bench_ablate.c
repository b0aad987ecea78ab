#include "bench_ablate.h"

#include "bench_slow.h"
#include "estimate.h"
#include "watch.h"

#include <math.h>

enum { UPLOADED, RESIDENT, ONE_LOSS, ONE_READ, CHOSEN_PLAN, LARGE_BATCH };

/* What the stages share. */
typedef struct ablater {
    const mimus__dataset *dataset;
    const mimus_schema *schema;
    const mimus__model *model;
    const mimus_watch *watch;
    mimus__device *device;
    mimus__store store;
} ablater;

static mimus_status run_slow(ablater *a, mimus__bench_stage *stage, const mimus_config *config,
                             mimus__bench_way way) {
    mimus_status status = MIMUS_OK;
    mimus__bench_slow *slow = NULL;
    (void)mimus__phase_begin(a->watch, "prepare", 0);
    MIMUS_TRY(mimus__bench_slow_new(&slow, a->device, &a->store, a->schema, config, a->model, way));
    MIMUS_TRY(mimus__bench_epochs_run(&stage->epochs, a->device, config->epochs, a->schema->heads,
                                      mimus__bench_slow_epoch, slow, a->watch));
    stage->uploaded = (double)mimus__bench_slow_uploaded(slow) / config->epochs;
out:
    mimus__bench_slow_free(slow);
    return status;
}

static mimus_status run_trainer(ablater *a, mimus__bench_stage *stage, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    mimus__trainer *trainer = NULL;
    (void)mimus__phase_begin(a->watch, "prepare", 0);
    const mimus__trainee run = {
        .config = config, .model = a->model, .statistics = &a->dataset->statistics};
    MIMUS_TRY(mimus__trainer_new(&trainer, a->device, &a->store, a->schema, &run, 1));
    MIMUS_TRY(mimus__bench_epochs_run(&stage->epochs, a->device, config->epochs, a->schema->heads,
                                      mimus__bench_trainer_epoch, trainer, a->watch));
out:
    mimus__trainer_free(trainer);
    return status;
}

static mimus_status run_stage(ablater *a, mimus__bench_stage *stage, uint32_t number,
                              const mimus_config *config) {
    static const char *const names[MIMUS__ABLATE_STAGES] = {
        [UPLOADED] = "uploaded", [RESIDENT] = "resident",       [ONE_LOSS] = "one loss",
        [ONE_READ] = "one read", [CHOSEN_PLAN] = "chosen plan", [LARGE_BATCH] = "large batch"};
    const mimus__bench_way way = {.uploads = number < RESIDENT, .head_losses = number < ONE_LOSS};
    uint32_t training = a->store.training;
    *stage = (mimus__bench_stage){.name = names[number],
                                  .batch = config->batch < training ? config->batch : training,
                                  .lr = config->lr,
                                  .read_every_step = number < ONE_READ,
                                  .losses = way.head_losses ? a->schema->heads : 1};
    return number < ONE_READ ? run_slow(a, stage, config, way) : run_trainer(a, stage, config);
}

mimus_status mimus__bench_ablate(mimus__bench_ablation *out, const char *selector,
                                 const mimus__dataset *dataset, const mimus_config *config,
                                 const mimus_config *large, const mimus__model *model,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    ablater a = {.dataset = dataset,
                 .schema = mimus__recording_schema(dataset->recording),
                 .model = model,
                 .watch = watch};
    mimus_config *phased = NULL;
    const mimus__store_recipe recipe = {
        .form = MIMUS__STORE_F32, .stack = 1, .mean_weight = dataset->statistics.weight};
    *out = (mimus__bench_ablation){0};
    MIMUS_TRY(mimus__config_copy(&phased, config));
    phased->plan = MIMUS__PLAN_PHASED;
    MIMUS_TRY(mimus__device_open(&a.device, selector, config->memory));
    mimus__device_set_watch(a.device, watch);
    MIMUS_TRY(mimus__estimate_check(
        a.device, model->schema, dataset->split.training.samples + dataset->split.heldout.samples,
        1, config, &model->shape));
    out->device = *mimus__device_get_info(a.device);
    MIMUS_TRY(mimus__store_new(&a.store, a.device, dataset->recording, &dataset->audit,
                               &dataset->split, &recipe, watch));
    for (uint32_t i = 0; i < MIMUS__ABLATE_STAGES; i++)
        MIMUS_TRY(run_stage(&a, &out->stage[i], i,
                            i <= ONE_READ      ? phased
                            : i == LARGE_BATCH ? large
                                               : config));
out:
    mimus__store_free(&a.store);
    mimus__device_close(a.device);
    mimus_config_free(phased);
    return status;
}

void mimus__bench_ablation_clear(mimus__bench_ablation *ablation) {
    for (uint32_t i = 0; i < MIMUS__ABLATE_STAGES; i++)
        mimus__bench_epochs_clear(&ablation->stage[i].epochs);
    *ablation = (mimus__bench_ablation){0};
}

double mimus__bench_ablation_difference(const mimus__bench_ablation *ablation, uint32_t stage) {
    return ablation->stage[stage].epochs.heldout_agreement -
           ablation->stage[UPLOADED].epochs.heldout_agreement;
}

double mimus__bench_ablation_largest(const mimus__bench_ablation *ablation) {
    double largest = 0;
    for (uint32_t i = RESIDENT; i <= CHOSEN_PLAN; i++) {
        double difference = fabs(mimus__bench_ablation_difference(ablation, i));
        if (isnan(difference))
            return NAN;
        largest = fmax(largest, difference);
    }
    return largest;
}
