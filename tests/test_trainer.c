/* Whole epochs: learning, repeatability, resuming, shards, skipped steps, and the one read. */
#include "compare.h"
#include "sample.h"
#include "support.h"

#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mimus__device *device;

static void open_device(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
}

static void close_device(void) {
    mimus__device_close(device);
    test_folder_remove();
}

static const sample_recipe recipe = {.senses = 12,
                                     .heads = 3,
                                     .actions = {4, 5, 33},
                                     .masks = true,
                                     .weights = true,
                                     .samples = 3001,
                                     .episode = 60,
                                     .seed = 3,
                                     .learnable = true};

/* A trainer with all it needs. */
typedef struct workshop {
    sample s;
    mimus__dataset dataset;
    mimus_config *config;
    mimus__store store;
    uint32_t runs;
    mimus_config *configs[3];
    mimus__model *models[3];
    mimus__trainer *trainer;
} workshop;

/* Every test is run on both plans. */
static const mimus__plan plans[] = {MIMUS__PLAN_PHASED, MIMUS__PLAN_BLOCK};
enum { PLANS = sizeof plans / sizeof *plans };
static mimus__plan plan;

/* Some in all forms of the senses too. */
static const mimus__store_form forms[] = {MIMUS__STORE_F32, MIMUS__STORE_F16, MIMUS__STORE_BF16};
enum { FORMS = sizeof forms / sizeof *forms };
static mimus__store_form form = MIMUS__STORE_F32;

/* The block plan as CPUs run it, on whatever device. */
static void choose_plan(int loop) {
    plan = plans[loop];
    if (plan == MIMUS__PLAN_BLOCK)
        setenv("MIMUS_GEOMETRY", "cpu", 1);
}

static void choose_plan_and_form(int loop) {
    choose_plan(loop % PLANS);
    form = forms[loop / PLANS];
}

static mimus_config *new_config(void) {
    mimus_config *config;
    test_ok(mimus_config_new(&config));
    config->hidden_layers = 2;
    config->hidden[0] = 32;
    config->hidden[1] = 24;
    config->batch = 100;
    config->epochs = 6;
    config->lr = 5e-3;
    config->schedule = MIMUS__COSINE;
    config->warmup = 0.5;
    config->dropout = 0.1;
    config->stack = 2;
    config->clip = 1.0;
    config->heldout = 0.2;
    config->split_seed = 0; /* one split for all runs */
    config->plan = plan;
    config->gemm = MIMUS__GEMM_TILE;
    return config;
}

static mimus_status make_trainer(workshop *w) {
    mimus__trainee trainees[3];
    for (uint32_t r = 0; r < w->runs; r++)
        trainees[r] = (mimus__trainee){
            .config = w->configs[r], .model = w->models[r], .statistics = &w->dataset.statistics};
    return mimus__trainer_new(&w->trainer, device, &w->store,
                              mimus__recording_schema(w->dataset.recording), trainees, w->runs);
}

/* Configurations differ by run in seed, learning rate and label smoothing. */
static void open_workshop(workshop *w, uint32_t runs, uint64_t shard_bytes) {
    *w = (workshop){.runs = runs};
    sample_new(&w->s, &recipe, "sample.rec");
    sample_open(&w->s, 0.2, &w->dataset);
    for (uint32_t r = 0; r < runs; r++) {
        mimus__shape shape;
        w->configs[r] = new_config();
        w->configs[r]->seed = r;
        w->configs[r]->lr *= 1 + r;
        w->configs[r]->label_smoothing = 0.05 * r;
        test_ok(mimus__config_shape(&shape, w->configs[r], &w->s.schema));
        test_ok(mimus__model_new(&w->models[r], &w->s.schema, &shape, true));
        mimus__model_initialise(&shape, w->models[r]->parameters, r, 0);
        for (uint32_t i = 0; i < recipe.senses; i++) {
            w->models[r]->mean[i] = (float)w->dataset.statistics.mean[i];
            w->models[r]->scale[i] = (float)(1 / w->dataset.statistics.std[i]);
        }
    }
    const mimus__store_recipe packing = {.form = form,
                                         .stack = 2,
                                         .mean_weight = w->dataset.statistics.weight,
                                         .shard_bytes = shard_bytes,
                                         .mean = w->models[0]->mean,
                                         .scale = w->models[0]->scale};
    test_ok(mimus__store_new(&w->store, device, w->dataset.recording, &w->dataset.audit,
                             &w->dataset.split, &packing, NULL));
    ck_assert(w->store.normalised == (form != MIMUS__STORE_F32));
    test_ok(make_trainer(w));
}

static void close_workshop(workshop *w) {
    mimus__trainer_free(w->trainer);
    mimus__store_free(&w->store);
    for (uint32_t r = 0; r < w->runs; r++) {
        mimus__model_free(w->models[r]);
        mimus_config_free(w->configs[r]);
    }
    mimus__dataset_clear(&w->dataset);
    sample_clear(&w->s);
}

/* Train epochs first .. last-1 and keep the outcome in the models. */
static void train(workshop *w, uint32_t first, uint32_t last, mimus__epoch_result *results) {
    for (uint32_t epoch = first; epoch < last; epoch++)
        test_ok(mimus__trainer_epoch(w->trainer, epoch, results, NULL));
    for (uint32_t r = 0; r < w->runs; r++)
        test_ok(mimus__trainer_save(w->trainer, r, w->models[r]));
}

static void check_same(const mimus__model *a, const mimus__model *b) {
    size_t bytes = mimus__shape_parameters(&a->shape) * sizeof(float);
    compare_check_bytes("parameters", a->parameters, b->parameters, bytes);
    compare_check_bytes("first moments", a->state->moment1, b->state->moment1, bytes);
    compare_check_bytes("second moments", a->state->moment2, b->state->moment2, bytes);
    ck_assert(a->state->correction1 == b->state->correction1);
    ck_assert(a->state->correction2 == b->state->correction2);
}

START_TEST(learns_with_one_read_an_epoch) {
    choose_plan_and_form(_i);
    workshop w;
    mimus__epoch_result result;
    open_workshop(&w, 1, 0);
    uint64_t reads = mimus__device_reads(device);
    train(&w, 0, 1, &result);
    double first = result.heldout.loss;
    ck_assert_uint_eq(result.skipped, 0);
    train(&w, 1, 6, &result);
    ck_assert_uint_eq(mimus__device_reads(device) - reads, 6);
    ck_assert_msg(result.heldout.loss < 0.8 * first, "held-out loss went from %g to %g", first,
                  result.heldout.loss);
    ck_assert_msg(result.heldout.heads[0].agreement > 0.6, "agreement %g",
                  result.heldout.heads[0].agreement);
    /* every sample is counted once: labels of the two parts are the recording's */
    for (uint32_t h = 0; h < 3; h++) {
        uint64_t labels = 0;
        for (uint64_t i = 0; i < recipe.samples; i++)
            labels += w.s.actions[i * 3 + h] != MIMUS_NO_LABEL;
        ck_assert(result.training.heads[h].labels + result.heldout.heads[h].labels ==
                  (double)labels);
    }
    ck_assert(result.lr < 5e-5); /* the cosine's end */
    close_workshop(&w);
}
END_TEST

START_TEST(repeats_bit_for_bit) {
    choose_plan(_i);
    workshop a, b;
    mimus__epoch_result result;
    open_workshop(&a, 1, 0);
    train(&a, 0, 3, &result);
    open_workshop(&b, 1, 0);
    train(&b, 0, 3, &result);
    check_same(a.models[0], b.models[0]);
    close_workshop(&a);
    close_workshop(&b);
}
END_TEST

START_TEST(three_shards_equal_one) {
    choose_plan_and_form(_i);
    workshop a, b;
    mimus__epoch_result result;
    open_workshop(&a, 1, 0);
    ck_assert_uint_eq(a.store.shards, 1);
    train(&a, 0, 3, &result);
    /* 3001 rows in shards of 1024 */
    open_workshop(&b, 1, 1024ull * a.store.layout.words * 4);
    ck_assert_uint_eq(b.store.shards, 3);
    train(&b, 0, 3, &result);
    check_same(a.models[0], b.models[0]);
    close_workshop(&a);
    close_workshop(&b);
}
END_TEST

START_TEST(a_resumed_run_equals_an_uninterrupted_one) {
    choose_plan(_i);
    workshop a, b;
    mimus__epoch_result result;
    open_workshop(&a, 1, 0);
    train(&a, 0, 5, &result);
    open_workshop(&b, 1, 0);
    train(&b, 0, 2, &result);
    mimus__trainer_free(b.trainer);
    test_ok(make_trainer(&b)); /* from the saved model */
    train(&b, 2, 5, &result);
    check_same(a.models[0], b.models[0]);
    close_workshop(&a);
    close_workshop(&b);
}
END_TEST

/* Runs that share a pass end where they end alone. */
START_TEST(runs_of_one_pass_equal_solo_runs) {
    choose_plan(_i);
    workshop together;
    mimus__epoch_result results[3], alone;
    open_workshop(&together, 3, 0);
    train(&together, 0, 3, results);
    for (uint32_t r = 0; r < 3; r++) {
        workshop solo;
        open_workshop(&solo, 3, 0);
        mimus__trainer_free(solo.trainer);
        solo.runs = 1;
        mimus_config *config = solo.configs[0];
        mimus__model *model = solo.models[0];
        solo.configs[0] = solo.configs[r];
        solo.models[0] = solo.models[r];
        test_ok(make_trainer(&solo));
        train(&solo, 0, 3, &alone);
        check_same(solo.models[0], together.models[r]);
        ck_assert(alone.heldout.loss == results[r].heldout.loss);
        if (r > 0) {
            solo.configs[r] = config;
            solo.models[r] = model;
        }
        for (uint32_t i = 1; i < 3; i++) {
            mimus__model_free(solo.models[i]);
            mimus_config_free(solo.configs[i]);
        }
        close_workshop(&solo);
    }
    close_workshop(&together);
}
END_TEST

/* A sense that turns into NaN on the device: its step is skipped in every epoch, the others learn.
 */
START_TEST(a_nan_skips_its_step) {
    choose_plan_and_form(_i);
    workshop w;
    mimus__epoch_result result;
    const float nan = NAN;
    const uint16_t nan16 = form == MIMUS__STORE_F16 ? 0x7E00 : 0x7FC0;
    open_workshop(&w, 1, 0);
    size_t row = 123 * (size_t)w.store.layout.words * 4;
    test_ok(form == MIMUS__STORE_F32
                ? mimus__buffer_write(&w.store.shard[0], row + 3 * 4, &nan, 4)
                : mimus__buffer_write(&w.store.shard[0], row + 3 * 2, &nan16, 2));
    train(&w, 0, 1, &result);
    double first = result.heldout.loss;
    ck_assert(result.skipped >= 1 && result.skipped <= 2); /* stacked: its successor sees it too */
    ck_assert(isfinite(result.training.loss) && isfinite(first));
    train(&w, 1, 6, &result);
    ck_assert_msg(result.heldout.loss < 0.8 * first, "held-out loss went from %g to %g", first,
                  result.heldout.loss);
    size_t count = mimus__shape_parameters(&w.models[0]->shape);
    for (size_t i = 0; i < count; i++)
        ck_assert(isfinite(w.models[0]->parameters[i]));
    close_workshop(&w);
}
END_TEST

/* A bad run never harms its neighbours. */
START_TEST(a_run_that_diverges_leaves_the_others_alone) {
    choose_plan(_i);
    workshop good, bad;
    mimus__epoch_result results[3];
    open_workshop(&good, 3, 0);
    train(&good, 0, 2, results);
    open_workshop(&bad, 3, 0);
    mimus__trainer_free(bad.trainer);
    for (size_t i = 0; i < 10; i++)
        bad.models[1]->parameters[i] = INFINITY;
    test_ok(make_trainer(&bad));
    train(&bad, 0, 2, results);
    ck_assert_uint_eq(results[1].skipped, results[1].steps);
    ck_assert_uint_eq(results[0].skipped, 0);
    check_same(good.models[0], bad.models[0]);
    check_same(good.models[2], bad.models[2]);
    close_workshop(&good);
    close_workshop(&bad);
}
END_TEST

START_TEST(plans_agree) {
    workshop w[PLANS];
    mimus__epoch_result results[PLANS][3];
    for (int p = 0; p < PLANS; p++) {
        choose_plan(p);
        open_workshop(&w[p], 3, 0);
        ck_assert(mimus__trainer_has(w[p].trainer, MIMUS__STEP_BLOCK) == (p == 1));
        train(&w[p], 0, 2, results[p]);
    }
    for (uint32_t r = 0; r < 3; r++) {
        size_t count = mimus__shape_parameters(&w[0].models[r]->shape);
        for (uint32_t t = 0; t < results[0][r].steps; t++)
            ck_assert_float_eq_tol(results[0][r].step_loss[t], results[1][r].step_loss[t], 1e-4f);
        ck_assert_double_eq_tol(results[0][r].heldout.loss, results[1][r].heldout.loss, 1e-4);
        for (size_t i = 0; i < count; i++)
            ck_assert_float_eq_tol(w[0].models[r]->parameters[i], w[1].models[r]->parameters[i],
                                   5e-3f);
    }
    close_workshop(&w[0]);
    close_workshop(&w[1]);
}
END_TEST

/* What rounding of the senses changes is less than what a step does. */
START_TEST(forms_agree) {
    choose_plan(_i);
    workshop w[FORMS];
    mimus__epoch_result results[FORMS];
    for (int f = 0; f < FORMS; f++) {
        form = forms[f];
        open_workshop(&w[f], 1, 0);
        train(&w[f], 0, 2, &results[f]);
        float tolerance = form == MIMUS__STORE_F16 ? 2e-3f : 2e-2f;
        for (uint32_t t = 0; t < results[0].steps; t++)
            ck_assert_float_eq_tol(results[f].step_loss[t], results[0].step_loss[t], tolerance);
    }
    /* and it does round: nothing is left of f32 */
    ck_assert(results[1].step_loss[0] != results[0].step_loss[0]);
    ck_assert(results[2].step_loss[0] != results[1].step_loss[0]);
    for (int f = 0; f < FORMS; f++)
        close_workshop(&w[f]);
}
END_TEST

static bool stop_at_last(void *user) {
    int *questions = user;
    return (*questions)-- <= 0;
}

/* At whatever kernel; and nothing of it stays behind. */
START_TEST(a_stop_is_heeded_while_kernels_are_built) {
    choose_plan(_i);
    workshop w;
    open_workshop(&w, 1, 0);
    for (int built = 0; built < 2; built++) {
        int questions = built;
        const mimus_watch watch = {.user = &questions, .should_stop = stop_at_last};
        mimus__trainer_free(w.trainer);
        w.trainer = NULL;
        mimus__device_set_watch(device, &watch);
        test_fails(make_trainer(&w), MIMUS_ERR_STOPPED,
                   "stopped on request while kernels were built");
        mimus__device_set_watch(device, NULL);
        test_ok(make_trainer(&w));
    }
    close_workshop(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("trainer");
    TCase *all = tcase_create("trainer");
    tcase_add_checked_fixture(all, open_device, close_device);
    tcase_add_loop_test(all, learns_with_one_read_an_epoch, 0, PLANS * FORMS);
    tcase_add_loop_test(all, repeats_bit_for_bit, 0, PLANS);
    tcase_add_loop_test(all, three_shards_equal_one, 0, PLANS * FORMS);
    tcase_add_loop_test(all, a_resumed_run_equals_an_uninterrupted_one, 0, PLANS);
    tcase_add_loop_test(all, runs_of_one_pass_equal_solo_runs, 0, PLANS);
    tcase_add_loop_test(all, a_nan_skips_its_step, 0, PLANS * FORMS);
    tcase_add_loop_test(all, forms_agree, 0, PLANS);
    tcase_add_loop_test(all, a_run_that_diverges_leaves_the_others_alone, 0, PLANS);
    tcase_add_loop_test(all, a_stop_is_heeded_while_kernels_are_built, 0, PLANS);
    tcase_add_test(all, plans_agree);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
