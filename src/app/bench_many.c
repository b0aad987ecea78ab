#include "bench_many.h"

#include "config_runs.h"
#include "estimate.h"

#include "alloc.h"
#include "clock.h"
#include "text.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

mimus_status mimus__bench_many_parse(uint32_t runs[MIMUS__BENCH_PASSES / 2], uint32_t *count,
                                     const char *text) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    uint64_t number = 0, before = 0;
    *count = 0;
    MIMUS_TRY(mimus__text_copy(&copy, text));
    for (char *item = copy; item != NULL; before = number) {
        char *comma = strchr(item, ',');
        if (comma != NULL)
            *comma = '\0';
        if (!mimus__text_to_u64(item, &number) || number <= before || number > MIMUS__MAX_RUNS ||
            *count == MIMUS__BENCH_PASSES / 2 - 1) {
            status = mimus__fail(MIMUS_ERR_ARGUMENT,
                                 "runs: expected up to %d ascending numbers from 1 to %d, as "
                                 "1,4,16, found %.40s",
                                 MIMUS__BENCH_PASSES / 2 - 1, MIMUS__MAX_RUNS, text);
            goto out;
        }
        runs[(*count)++] = (uint32_t)number;
        item = comma != NULL ? comma + 1 : NULL;
    }
out:
    free(copy);
    return status;
}

/* What a pass is made of while it is measured. */
typedef struct crowd {
    mimus__trainer *trainer;
    mimus__config_runs configs;
    mimus__model **model;         /* (runs) */
    mimus__trainee *trainee;      /* (runs) */
    mimus__epoch_result *results; /* (runs) */
} crowd;

static void clear_crowd(crowd *c, uint32_t runs) {
    mimus__trainer_free(c->trainer);
    mimus__config_runs_clear(&c->configs);
    for (uint32_t r = 0; c->model != NULL && r < runs; r++)
        mimus__model_free(c->model[r]);
    free(c->model);
    free(c->trainee);
    free(c->results);
}

static mimus_status make_crowd(crowd *c, const mimus__dataset *dataset, const mimus_config *config,
                               uint32_t runs, bool shared) {
    mimus_status status = MIMUS_OK;
    mimus_config *whole = NULL;
    MIMUS_TRY(mimus__config_copy(&whole, config));
    whole->runs = runs;
    whole->share_batches = shared;
    MIMUS_TRY(mimus__config_runs_expand(&c->configs, whole));
    MIMUS_TRY(mimus__alloc(&c->model, runs, sizeof *c->model));
    MIMUS_TRY(mimus__alloc(&c->trainee, runs, sizeof *c->trainee));
    MIMUS_TRY(mimus__alloc(&c->results, runs, sizeof *c->results));
    for (uint32_t r = 0; r < runs; r++) {
        const mimus_config *own = c->configs.config[r];
        MIMUS_TRY(mimus__dataset_model(&c->model[r], dataset, &dataset->statistics, own));
        c->trainee[r] = (mimus__trainee){
            .config = own, .model = c->model[r], .statistics = &dataset->statistics};
    }
out:
    mimus_config_free(whole);
    return status;
}

static mimus_status run_epoch(void *user, uint32_t epoch, mimus__epoch_result *result,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    crowd *c = user;
    MIMUS_TRY(mimus__trainer_epoch(c->trainer, epoch, c->results, watch));
    *result = c->results[0];
out:
    return status;
}

/* Of a whole step. */
static mimus_status count_launches(uint64_t *out, mimus__trainer *trainer, mimus__device *device) {
    mimus_status status = MIMUS_OK;
    uint64_t before = mimus__device_launches(device);
    for (mimus__step_phase phase = 0; phase < MIMUS__STEP_PHASES; phase++) {
        if (mimus__trainer_has(trainer, phase))
            MIMUS_TRY(mimus__trainer_phase(trainer, phase, 0, 0));
    }
    *out = mimus__device_launches(device) - before;
out:
    return status;
}

/* What all passes are measured on. */
typedef struct session {
    mimus__device *device;
    mimus__store store;
    const mimus__dataset *dataset;
    const mimus_config *config;
    const mimus_watch *watch;
} session;

static mimus_status measure(mimus__bench_pass *pass, session *s, uint32_t runs, bool shared) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(s->dataset->recording);
    uint32_t batch = s->config->batch;
    crowd c = {.trainer = NULL};
    *pass = (mimus__bench_pass){.runs = runs, .shared = shared};
    MIMUS_TRY(make_crowd(&c, s->dataset, s->config, runs, shared));
    MIMUS_TRY(mimus__estimate_check(s->device, schema,
                                    (uint64_t)s->store.training + s->store.heldout, runs, s->config,
                                    &c.model[0]->shape));
    double began = mimus__clock_seconds();
    (void)mimus__phase_begin(s->watch, "prepare", 0);
    MIMUS_TRY(mimus__trainer_new(&c.trainer, s->device, &s->store, schema, c.trainee, runs));
    MIMUS_TRY(mimus__device_finish(s->device));
    pass->prepare = mimus__clock_seconds() - began;
    pass->bytes = mimus__device_bytes(s->device);
    MIMUS_TRY(mimus__bench_epochs_run(&pass->epochs, s->device, s->config->epochs, schema->heads,
                                      run_epoch, &c, s->watch));
    mimus__bench_facts facts = mimus__bench_facts_of(
        c.trainer, &s->store, s->config, batch < s->store.training ? batch : s->store.training);
    pass->cost = mimus__bench_step_of(&facts);
    MIMUS_TRY(count_launches(&pass->launches, c.trainer, s->device));
out:
    clear_crowd(&c, runs);
    return status;
}

mimus_status mimus__bench_many(mimus__bench_passes *out, const char *selector,
                               const mimus__dataset *dataset, const mimus_config *config,
                               const uint32_t *runs, uint32_t count, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    session s = {.dataset = dataset, .config = config, .watch = watch};
    const mimus__store_recipe recipe = {.form = MIMUS__STORE_F32,
                                        .stack = config->stack,
                                        .mean_weight = dataset->statistics.weight};
    *out = (mimus__bench_passes){.passes = 0};
    MIMUS_TRY(mimus__device_open(&s.device, selector, config->memory));
    mimus__device_set_watch(s.device, watch);
    out->device = *mimus__device_get_info(s.device);
    MIMUS_TRY(mimus__store_new(&s.store, s.device, dataset->recording, &dataset->audit,
                               &dataset->split, &recipe, watch));
    out->recording = mimus__device_bytes(s.device);
    MIMUS_TRY(measure(&out->pass[out->passes++], &s, 1, false));
    for (uint32_t i = 0; i < count; i++) {
        for (int shared = 0; runs[i] > 1 && shared < 2; shared++)
            MIMUS_TRY(measure(&out->pass[out->passes++], &s, runs[i], shared > 0));
    }
out:
    mimus__store_free(&s.store);
    mimus__device_close(s.device);
    return status;
}

void mimus__bench_many_clear(mimus__bench_passes *passes) {
    for (uint32_t i = 0; i < passes->passes; i++)
        mimus__bench_epochs_clear(&passes->pass[i].epochs);
    *passes = (mimus__bench_passes){.passes = 0};
}

double mimus__bench_pass_beside_solo(const mimus__bench_passes *passes, uint32_t pass) {
    const mimus__bench_pass *own = &passes->pass[pass];
    return mimus__bench_epochs_median(&own->epochs) / own->runs /
           mimus__bench_epochs_median(&passes->pass[0].epochs);
}
