/* Many runs in one pass, each held against the same run alone, bit for bit: settings of all kinds,
 * a run without a finite number, one that stops early, batches that are shared, folds, bootstrap.
 */
#include "compare.h"
#include "sample.h"
#include "support.h"

#include "dataset.h"
#include "estimate.h"
#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 16, SOME = 6, EPOCHS = 3 };

static mimus__device *device;
static sample s;
static mimus__dataset dataset;
static mimus__store store;
static mimus_config *configs[RUNS];
static mimus__share shares[RUNS];
static mimus__plan plan;

static const sample_recipe recipe = {.senses = 12,
                                     .heads = 3,
                                     .actions = {4, 5, 33},
                                     .masks = true,
                                     .weights = true,
                                     .samples = 1501,
                                     .episode = 60,
                                     .seed = 3,
                                     .learnable = true};

static void set(uint32_t run, const char *name, const char *value) {
    test_ok(mimus_config_set(configs[run], name, value));
}

static void setup(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
    sample_new(&s, &recipe, "sample.rec");
    static const char *const common[][2] = {
        {"hidden", "32,24"}, {"batch", "100"},    {"epochs", "4"},     {"lr", "5e-3"},
        {"stack", "2"},      {"held_out", "0.2"}, {"split_seed", "9"}, {"store", "f32"},
    };
    for (uint32_t r = 0; r < RUNS; r++) {
        test_ok(mimus_config_new(&configs[r]));
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
            set(r, common[i][0], common[i][1]);
        configs[r]->seed = r;
    }
}

static void teardown(void) {
    mimus__store_free(&store);
    for (uint32_t r = 0; r < RUNS; r++) {
        mimus__share_clear(&shares[r]);
        mimus_config_free(configs[r]);
    }
    mimus__dataset_clear(&dataset);
    mimus__device_close(device);
    sample_clear(&s);
    test_folder_remove();
}

/* The phased plan as CPUs and as GPUs run it, and the block plan. */
static void choose_plan(int loop) {
    plan = loop < 2 ? MIMUS__PLAN_PHASED : MIMUS__PLAN_BLOCK;
    setenv("MIMUS_GEOMETRY", loop == 1 ? "gpu" : "cpu", 1);
    for (uint32_t r = 0; r < RUNS; r++) {
        configs[r]->plan = plan;
        configs[r]->gemm = plan == MIMUS__PLAN_PHASED ? MIMUS__GEMM_TILE : MIMUS__GEMM_AUTO;
    }
}

/* Once the settings are what they are to be. */
static void open_dataset(uint32_t runs) {
    const char *paths[] = {s.path};
    const mimus_source source = {.paths = paths, .count = 1, .illegal = MIMUS_ILLEGAL_IGNORE};
    test_ok(mimus__dataset_open(&dataset, &source, NULL, NULL));
    test_ok(mimus__dataset_split(&dataset, configs[0]));
    const mimus__store_recipe packing = {
        .form = MIMUS__STORE_F32, .stack = 2, .mean_weight = dataset.statistics.weight};
    test_ok(mimus__store_new(&store, device, dataset.recording, &dataset.audit, &dataset.split,
                             &packing, NULL));
    for (uint32_t r = 0; r < runs; r++)
        test_ok(mimus__dataset_share(&shares[r], &dataset, configs[r]));
}

static mimus__model *new_model(uint32_t run) {
    mimus__model *model;
    test_ok(mimus__dataset_model(&model, &dataset, shares[run].statistics, configs[run]));
    return model;
}

static mimus__trainee trainee_of(uint32_t run, const mimus__model *model) {
    return (mimus__trainee){.config = configs[run],
                            .model = model,
                            .statistics = shares[run].statistics,
                            .rows = shares[run].rows};
}

static mimus__trainer *new_trainer(const mimus__trainee *trainees, uint32_t count) {
    mimus__trainer *trainer;
    test_ok(mimus__trainer_new(&trainer, device, &store, mimus__recording_schema(dataset.recording),
                               trainees, count));
    return trainer;
}

/* What a run has come to. */
typedef struct outcome {
    mimus__model *model;
    double loss, heldout_loss, agreement;
    uint32_t steps, skipped;
} outcome;

static void note(outcome *out, const mimus__epoch_result *result) {
    out->loss = result->training.loss;
    out->heldout_loss = result->heldout.loss;
    out->agreement = result->heldout.heads[1].agreement;
    out->steps = result->steps;
    out->skipped = result->skipped;
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void check_same(const outcome *a, const outcome *b) {
    size_t bytes = mimus__shape_parameters(&a->model->shape) * sizeof(float);
    compare_check_bytes("parameters", a->model->parameters, b->model->parameters, bytes);
    compare_check_bytes("first moments", a->model->state->moment1, b->model->state->moment1, bytes);
    compare_check_bytes("second moments", a->model->state->moment2, b->model->state->moment2,
                        bytes);
    ck_assert(a->model->state->correction1 == b->model->state->correction1);
    ck_assert(a->model->state->correction2 == b->model->state->correction2);
    ck_assert(same(a->loss, b->loss) && same(a->heldout_loss, b->heldout_loss));
    ck_assert(same(a->agreement, b->agreement));
    ck_assert(a->steps == b->steps && a->skipped == b->skipped);
}

/* Run `bad`, and where it is none no run, begins with parameters that are not finite. */
#define NONE UINT32_MAX
static void spoil(mimus__model *model) {
    for (size_t i = 0; i < 10; i++)
        model->parameters[i] = INFINITY;
}

static void train_alone(outcome *out, uint32_t run, bool bad, uint32_t epochs) {
    out->model = new_model(run);
    if (bad)
        spoil(out->model);
    const mimus__trainee trainee = trainee_of(run, out->model);
    mimus__trainer *trainer = new_trainer(&trainee, 1);
    mimus__epoch_result result;
    for (uint32_t epoch = 0; epoch < epochs; epoch++)
        test_ok(mimus__trainer_epoch(trainer, epoch, &result, NULL));
    note(out, &result);
    test_ok(mimus__trainer_save(trainer, 0, out->model));
    mimus__trainer_free(trainer);
}

/* All of them at once; run `early` (or NONE) only for one epoch. */
static void train_together(outcome *out, uint32_t runs, uint32_t bad, uint32_t early, bool shared) {
    mimus__trainee trainees[RUNS];
    mimus__epoch_result results[RUNS];
    uint32_t seated[RUNS], seats = 0;
    for (uint32_t r = 0; r < runs; r++) {
        out[r].model = new_model(r);
        if (r == bad)
            spoil(out[r].model);
        trainees[r] = trainee_of(r, out[r].model);
    }
    mimus__trainer *trainer = new_trainer(trainees, runs);
    ck_assert(mimus__trainer_shares(trainer) == shared);
    for (uint32_t r = 0; r < runs; r++)
        seated[seats++] = r;
    uint64_t reads = mimus__device_reads(device);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        test_ok(mimus__trainer_epoch(trainer, epoch, results, NULL));
        for (uint32_t i = 0; i < seats; i++) {
            note(&out[seated[i]], &results[i]);
            test_ok(mimus__trainer_save(trainer, i, out[seated[i]].model));
        }
        if (epoch > 0 || early == NONE)
            continue;
        seats = 0;
        for (uint32_t r = 0; r < runs; r++) {
            if (r == early)
                continue;
            seated[seats] = r;
            trainees[seats++] = trainee_of(r, out[r].model);
        }
        test_ok(mimus__trainer_seat(trainer, trainees, seats));
        ck_assert_uint_eq(mimus__trainer_network(trainer)->live, runs - 1); /* in every launch */
    }
    ck_assert_uint_eq(mimus__device_reads(device) - reads, EPOCHS);
    mimus__trainer_free(trainer);
}

static void check_runs(uint32_t runs, uint32_t bad, uint32_t early, bool shared) {
    outcome together[RUNS] = {{0}}, alone;
    train_together(together, runs, bad, early, shared);
    for (uint32_t r = 0; r < runs; r++) {
        train_alone(&alone, r, r == bad, r == early ? 1 : EPOCHS);
        check_same(&alone, &together[r]);
        ck_assert_uint_eq(together[r].skipped, r == bad ? together[r].steps : 0);
        mimus__model_free(alone.model);
        mimus__model_free(together[r].model);
    }
}

/* Everything in which runs may differ. */
static void vary(void) {
    set(1, "lr", "1e-2");
    set(2, "lr", "1e-3");
    set(3, "schedule", "cosine");
    set(4, "schedule", "linear");
    set(4, "warmup", "0.7");
    set(5, "weight_decay", "0.1");
    set(6, "clip", "0.05");
    set(7, "label_smoothing", "0.1");
    set(8, "dropout", "0.3");
    set(9, "dropout", "0.1");
    set(10, "head_weights", "1,0.5,2");
    set(11, "class_weights", "balanced");
    set(12, "order_seed", "3");
    set(13, "lr", "3e-2");
}

START_TEST(sixteen_runs_equal_solo_runs) {
    choose_plan(_i);
    vary();
    open_dataset(RUNS);
    check_runs(RUNS, 14, 15, false);
}
END_TEST

START_TEST(shared_batches_change_nothing) {
    choose_plan(_i);
    vary();
    for (uint32_t r = 0; r < SOME; r++)
        configs[r]->order_seed = 5;
    set(5, "dropout", "0.2");
    open_dataset(SOME);
    check_runs(SOME, 3, 0, true);
}
END_TEST

/* Parts of 301, 300, ... samples in whole episodes: epochs of different lengths. */
START_TEST(folds_equal_solo_runs) {
    choose_plan(_i);
    for (uint32_t r = 0; r < 5; r++) {
        configs[r]->folds = 5;
        configs[r]->fold = r + 1;
    }
    set(2, "class_weights", "balanced");
    set(3, "dropout", "0.2");
    set(4, "schedule", "cosine");
    open_dataset(5);
    check_runs(5, NONE, 1, false);
}
END_TEST

START_TEST(a_fold_with_several_seeds_shares_its_batches) {
    choose_plan(_i);
    for (uint32_t r = 0; r < 3; r++) {
        configs[r]->folds = 4;
        configs[r]->fold = 2;
        configs[r]->order_seed = 1;
    }
    open_dataset(3);
    check_runs(3, 1, NONE, true);
}
END_TEST

START_TEST(bootstrapped_runs_equal_solo_runs) {
    choose_plan(_i);
    for (uint32_t r = 0; r < 4; r++)
        configs[r]->bootstrap = 1;
    open_dataset(4);
    ck_assert_uint_ne(shares[0].rows->training, shares[1].rows->training);
    check_runs(4, NONE, 2, false);
}
END_TEST

/* Every sample is held out by one run and trained on by the others; whole episodes are. */
START_TEST(folds_cover_the_recording) {
    enum { FOLDS = 5 };
    uint8_t held[1501] = {0};
    for (uint32_t r = 0; r < FOLDS; r++) {
        configs[r]->folds = FOLDS;
        configs[r]->fold = r + 1;
    }
    open_dataset(FOLDS);
    for (uint32_t r = 0; r < FOLDS; r++) {
        const mimus__run_rows *rows = shares[r].rows;
        mimus__split parts;
        ck_assert_uint_eq(rows->training + rows->heldout, recipe.samples);
        ck_assert_uint_ge(rows->heldout, recipe.samples / FOLDS / 2);
        test_ok(mimus__dataset_parts(&parts, &dataset, configs[r]));
        ck_assert_uint_eq(parts.heldout.samples, rows->heldout);
        ck_assert_uint_eq(parts.training.samples, rows->training);
        for (size_t i = 0; i < parts.heldout.spans; i++) {
            const mimus__span *span = &parts.heldout.span[i];
            ck_assert(span->start && s.first[span->first] == span->first);
            for (uint64_t k = 0; k < span->count; k++)
                ck_assert_uint_eq(held[span->first + k]++, 0);
        }
        mimus__split_clear(&parts);
    }
    for (size_t i = 0; i < sizeof held; i++)
        ck_assert_uint_eq(held[i], 1);
}
END_TEST

/* Whether `count` rows of the store from `row` on are a whole episode of the training part. */
static bool is_training_episode(uint32_t row, uint32_t count) {
    uint64_t at = 0;
    for (size_t i = 0; i < dataset.split.training.spans; i++) {
        const mimus__span *span = &dataset.split.training.span[i];
        if (at == row)
            return span->count == count;
        at += span->count;
    }
    return false;
}

/* A bootstrap has as many episodes as the training part, only of it, some of them more than once.
 */
START_TEST(a_bootstrap_draws_training_episodes) {
    configs[0]->bootstrap = 1;
    open_dataset(1);
    const mimus__run_rows *rows = shares[0].rows;
    uint32_t again = 0;
    ck_assert_uint_eq(rows->pieces, dataset.split.training.episodes);
    ck_assert_uint_eq(rows->base, store.training);
    ck_assert_uint_eq(rows->heldout, store.heldout);
    for (uint32_t p = 0; p < rows->pieces; p++) {
        uint32_t end = p + 1 < rows->pieces ? rows->piece[p + 1].position : rows->training;
        ck_assert(is_training_episode(rows->piece[p].row, end - rows->piece[p].position));
        again += p > 0 && rows->piece[p].row == rows->piece[p - 1].row;
    }
    ck_assert_uint_gt(again, 2); /* 20 draws of 20: about a third */
}
END_TEST

/* One recording for all, and on paper no less than what is taken. */
START_TEST(runs_share_the_recording) {
    choose_plan(_i);
    open_dataset(RUNS);
    uint64_t recording = mimus__device_bytes(device), before = 0;
    const uint32_t counts[] = {1, RUNS};
    mimus__trainee trainees[RUNS];
    mimus__model *models[RUNS];
    for (uint32_t r = 0; r < RUNS; r++) {
        models[r] = new_model(r);
        trainees[r] = trainee_of(r, models[r]);
    }
    for (int i = 0; i < 2; i++) {
        mimus__trainer *trainer = new_trainer(trainees, counts[i]);
        const mimus__estimate estimate = {.schema = mimus__recording_schema(dataset.recording),
                                          .samples = recipe.samples,
                                          .runs = counts[i],
                                          .blocks = plan == MIMUS__PLAN_BLOCK,
                                          .compute_units =
                                              mimus__device_get_info(device)->compute_units};
        uint64_t taken = mimus__device_bytes(device) - recording;
        uint64_t paper = mimus__estimate_step(&estimate, configs[0], &models[0]->shape);
        ck_assert_msg(taken <= paper, "%u runs take %llu bytes, on paper %llu", counts[i],
                      (unsigned long long)taken, (unsigned long long)paper);
        ck_assert_uint_le(taken, counts[i] * (before > 0 ? before : taken));
        before = taken;
        mimus__trainer_free(trainer);
        ck_assert_uint_eq(mimus__device_bytes(device), recording);
    }
    for (uint32_t r = 0; r < RUNS; r++)
        mimus__model_free(models[r]);
}
END_TEST

/* The host's part of a step does not grow with the runs. */
START_TEST(launches_do_not_grow_with_the_runs) {
    choose_plan(_i);
    open_dataset(RUNS);
    uint64_t launches[3];
    const uint32_t counts[] = {1, 4, RUNS};
    mimus__trainee trainees[RUNS];
    mimus__model *models[RUNS];
    mimus__epoch_result results[RUNS];
    for (uint32_t r = 0; r < RUNS; r++) {
        models[r] = new_model(r);
        trainees[r] = trainee_of(r, models[r]);
    }
    for (int i = 0; i < 3; i++) {
        mimus__trainer *trainer = new_trainer(trainees, counts[i]);
        launches[i] = mimus__device_launches(device);
        test_ok(mimus__trainer_epoch(trainer, 0, results, NULL));
        launches[i] = mimus__device_launches(device) - launches[i];
        mimus__trainer_free(trainer);
    }
    ck_assert_uint_eq(launches[0], launches[1]);
    ck_assert_uint_eq(launches[0], launches[2]);
    for (uint32_t r = 0; r < RUNS; r++)
        mimus__model_free(models[r]);
}
END_TEST

START_TEST(what_does_not_fit_together_is_refused) {
    choose_plan(0);
    for (uint32_t r = 0; r < RUNS; r++)
        configs[r]->order_seed = 2;
    open_dataset(3);
    mimus__model *models[3];
    mimus__trainee trainees[3];
    for (uint32_t r = 0; r < 3; r++) {
        models[r] = new_model(r);
        trainees[r] = trainee_of(r, models[r]);
    }
    mimus__trainer *trainer = new_trainer(trainees, 2);
    test_fails(mimus__trainer_seat(trainer, trainees, 3), MIMUS_ERR_ARGUMENT, "room for 1 to 2");
    configs[1]->order_seed = 4;
    test_fails(mimus__trainer_seat(trainer, trainees, 2), MIMUS_ERR_ARGUMENT, "cannot share");
    configs[1]->order_seed = 2;
    set(1, "dropout", "0.5");
    test_fails(mimus__trainer_seat(trainer, trainees, 2), MIMUS_ERR_ARGUMENT, "dropout");
    set(1, "dropout", "0");
    set(1, "batch", "64");
    test_fails(mimus__trainer_seat(trainer, trainees, 2), MIMUS_ERR_ARGUMENT,
               "batch: is 100 in run 0 and 64 in run 1");
    mimus__trainer_free(trainer);
    for (uint32_t r = 0; r < 3; r++)
        mimus__model_free(models[r]);
}
END_TEST

int main(void) {
    enum { PLANS = 3 };
    Suite *suite = suite_create("runs");
    TCase *all = tcase_create("runs");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, sixteen_runs_equal_solo_runs, 0, PLANS);
    tcase_add_loop_test(all, shared_batches_change_nothing, 0, PLANS);
    tcase_add_loop_test(all, folds_equal_solo_runs, 0, PLANS);
    tcase_add_loop_test(all, a_fold_with_several_seeds_shares_its_batches, 0, PLANS);
    tcase_add_loop_test(all, bootstrapped_runs_equal_solo_runs, 0, PLANS);
    tcase_add_test(all, folds_cover_the_recording);
    tcase_add_test(all, a_bootstrap_draws_training_episodes);
    tcase_add_loop_test(all, runs_share_the_recording, 0, PLANS);
    tcase_add_loop_test(all, launches_do_not_grow_with_the_runs, 0, PLANS);
    tcase_add_test(all, what_does_not_fit_together_is_refused);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
