#include "bench_run.h"

#include "clock.h"
#include "estimate.h"
#include "watch.h"

#include <math.h>

/* What a measurement holds while it goes on. */
typedef struct session {
    mimus__bench_run *run;
    const mimus__dataset *dataset;
    const mimus_config *config;
    const mimus__bench_effort *effort;
    const mimus_watch *watch;
    mimus__device *device;
    mimus__store store;
    mimus__trainer *trainer;
} session;

/* ------------------------------------------------------------------------ set up */

static mimus_status set_up(session *s, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    mimus__bench_run *run = s->run;
    const mimus__dataset *dataset = s->dataset;
    const mimus__store_recipe recipe = {.form = s->config->store,
                                        .stack = s->config->stack,
                                        .mean_weight = dataset->statistics.weight,
                                        .mean = model->mean,
                                        .scale = model->scale};
    double began = mimus__clock_seconds();
    MIMUS_TRY(mimus__store_new(&s->store, s->device, dataset->recording, &dataset->audit,
                               &dataset->split, &recipe, s->watch));
    MIMUS_TRY(mimus__device_finish(s->device));
    run->upload = mimus__clock_seconds() - began;
    run->training = s->store.training;
    run->heldout = s->store.heldout;
    run->upload_bytes = 4ull * s->store.layout.words * ((uint64_t)run->training + run->heldout);
    began = mimus__clock_seconds();
    (void)mimus__phase_begin(s->watch, "prepare", 0);
    const mimus__trainee trainee = {
        .config = s->config, .model = model, .statistics = &dataset->statistics};
    MIMUS_TRY(mimus__trainer_new(&s->trainer, s->device, &s->store,
                                 mimus__recording_schema(dataset->recording), &trainee, 1));
    MIMUS_TRY(mimus__device_finish(s->device));
    run->prepare = mimus__clock_seconds() - began;
    run->plan = mimus__trainer_report(s->trainer);
    run->rows = s->config->batch < run->training ? s->config->batch : run->training;
out:
    return status;
}

/* On paper. */
static void count(session *s) {
    mimus__bench_run *run = s->run;
    const mimus__shape *shape = &mimus__trainer_network(s->trainer)->layout.shape;
    mimus__bench_facts facts = mimus__bench_facts_of(s->trainer, &s->store, s->config, run->rows);
    double samples = (double)run->training + run->heldout;
    run->cost = mimus__bench_step_of(&facts);
    run->operations = run->training * mimus__bench_operations(shape, true) +
                      run->heldout * mimus__bench_operations(shape, false);
    run->gather_bytes = samples * mimus__bench_gather_bytes(shape, &s->store.layout);
}

/* ------------------------------------------------------------------------- epochs */

static mimus_status run_epochs(session *s) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__bench_epochs_run(&s->run->epochs, s->device, s->config->epochs,
                                      mimus__recording_schema(s->dataset->recording)->heads,
                                      mimus__bench_trainer_epoch, s->trainer, s->watch));
    s->run->bytes = mimus__device_bytes(s->device);
out:
    return status;
}

/* ----------------------------------------------------------------- a step's phases */

/* Which call is timed. */
typedef struct timed {
    session *session;
    mimus__step_phase phase;
} timed;

/* Steps of full batches, one after the other, so that the gather finds new rows. */
static uint32_t full_step(const session *s, uint32_t index) {
    uint32_t full = s->run->training / s->run->rows;
    return index % full;
}

static mimus_status run_phase(void *user, uint32_t index) {
    const timed *t = user;
    return mimus__trainer_phase(t->session->trainer, t->phase, 0, full_step(t->session, index));
}

static mimus_status run_step(void *user, uint32_t index) {
    mimus_status status = MIMUS_OK;
    const timed *t = user;
    for (mimus__step_phase phase = 0; phase < MIMUS__STEP_PHASES; phase++) {
        if (mimus__trainer_has(t->session->trainer, phase))
            MIMUS_TRY(
                mimus__trainer_phase(t->session->trainer, phase, 0, full_step(t->session, index)));
    }
out:
    return status;
}

/* One of each, counted. */
static mimus_status count_launches(session *s) {
    mimus_status status = MIMUS_OK;
    uint64_t reads = mimus__device_reads(s->device);
    for (mimus__step_phase phase = 0; phase < MIMUS__STEP_PHASES; phase++) {
        if (!mimus__trainer_has(s->trainer, phase))
            continue;
        uint64_t before = mimus__device_launches(s->device);
        MIMUS_TRY(mimus__trainer_phase(s->trainer, phase, 0, 0));
        s->run->launches[phase] = mimus__device_launches(s->device) - before;
    }
    s->run->reads = mimus__device_reads(s->device) - reads;
    MIMUS_TRY(mimus__device_finish(s->device));
out:
    return status;
}

/* Seconds that the host takes to enqueue a step, when nothing makes it wait. */
static mimus_status time_enqueue(session *s, double *seconds) {
    enum { STEPS = 16, REPEATS = 5 };
    mimus_status status = MIMUS_OK;
    timed t = {.session = s};
    *seconds = INFINITY;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double began = mimus__clock_seconds();
        for (uint32_t i = 0; i < STEPS; i++)
            MIMUS_TRY(run_step(&t, i));
        double spent = (mimus__clock_seconds() - began) / STEPS;
        *seconds = spent < *seconds ? spent : *seconds;
        MIMUS_TRY(mimus__device_finish(s->device));
    }
out:
    return status;
}

/* Last of all, as phases out of their order train the network to nothing. */
static mimus_status time_step(session *s) {
    mimus_status status = MIMUS_OK;
    mimus__bench_run *run = s->run;
    timed t = {.session = s};
    mimus__phase phase = mimus__phase_begin(s->watch, "measure", 0);
    MIMUS_TRY(count_launches(s));
    MIMUS_TRY(mimus__bench_time(&run->step, s->device, s->effort, run_step, &t));
    MIMUS_TRY(mimus__phase_step(&phase, 0));
    MIMUS_TRY(time_enqueue(s, &run->enqueue));
    for (t.phase = 0; t.phase < MIMUS__STEP_PHASES; t.phase++) {
        if (!mimus__trainer_has(s->trainer, t.phase))
            continue;
        MIMUS_TRY(mimus__bench_time(&run->phase[t.phase], s->device, s->effort, run_phase, &t));
        MIMUS_TRY(mimus__phase_step(&phase, 0));
    }
out:
    return status;
}

/* -------------------------------------------------------------------------- whole */

mimus_status mimus__bench_run_new(mimus__bench_run *out, const char *selector,
                                  const mimus__dataset *dataset, const mimus_config *config,
                                  const mimus__model *model, const mimus__bench_effort *effort,
                                  const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    session s = {
        .run = out, .dataset = dataset, .config = config, .effort = effort, .watch = watch};
    *out = (mimus__bench_run){0};
    MIMUS_TRY(mimus__device_open(&s.device, selector, config->memory));
    mimus__device_set_watch(s.device, watch);
    MIMUS_TRY(mimus__estimate_check(
        s.device, model->schema, dataset->split.training.samples + dataset->split.heldout.samples,
        1, config, &model->shape));
    out->device = *mimus__device_get_info(s.device);
    MIMUS_TRY(mimus__bench_device(&out->limits, s.device, effort, watch));
    MIMUS_TRY(set_up(&s, model));
    count(&s);
    MIMUS_TRY(run_epochs(&s));
    MIMUS_TRY(time_step(&s));
out:
    mimus__trainer_free(s.trainer);
    mimus__store_free(&s.store);
    mimus__device_close(s.device);
    return status;
}

void mimus__bench_run_clear(mimus__bench_run *run) {
    json_decref(run->plan);
    mimus__bench_epochs_clear(&run->epochs);
    *run = (mimus__bench_run){0};
}
