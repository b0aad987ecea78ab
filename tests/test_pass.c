/* The pass as a search with rungs uses it: from epoch to epoch, members dropped at an epoch's end,
 * further members on the recording that is there already. */
#include "compare.h"
#include "sample.h"
#include "support.h"

#include "config_runs.h"
#include "pass.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS = 4, EPOCHS = 4 };

static const sample_recipe recipe = {.senses = 6,
                                     .heads = 2,
                                     .actions = {3, 5},
                                     .masks = true,
                                     .samples = 1000,
                                     .episode = 50,
                                     .seed = 8,
                                     .learnable = true};

static sample s;
static mimus_source source;
static const char *paths[1];
static mimus__config_runs runs;

static void setup(void) {
    mimus_config *config;
    sample_new(&s, &recipe, "sample.rec");
    paths[0] = s.path;
    source = (mimus_source){.paths = paths, .count = 1};
    test_ok(mimus_config_new(&config));
    const char *const settings[][2] = {{"hidden", "16"}, {"batch", "100"},  {"epochs", "4"},
                                       {"runs", "6"},    {"store", "f32"},  {"tensorboard", "off"},
                                       {"gemm", "tile"}, {"plan", "phased"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        test_ok(mimus_config_set(config, settings[i][0], settings[i][1]));
    test_ok(mimus__config_runs_expand(&runs, config));
    mimus_config_free(config);
}

static void teardown(void) {
    mimus__config_runs_clear(&runs);
    sample_clear(&s);
    test_folder_remove();
}

/* Give the members folders and the settings of runs `first`, `first` + 1, ... */
static void fill(mimus__pass *pass, size_t first) {
    for (size_t i = 0; i < pass->members; i++) {
        char name[24];
        snprintf(name, sizeof name, "run-%zu", first + i);
        test_ok(mimus__run_create(&pass->member[i].run, test_folder_path(name)));
        test_ok(mimus__config_copy(&pass->member[i].config, runs.config[first + i]));
    }
}

static void begin(mimus__pass *pass) {
    for (size_t i = 0; i < pass->members; i++)
        test_ok(mimus__member_begin(&pass->member[i], &source));
    test_ok(mimus__pass_prepare(pass));
}

static void check_alone(const mimus__member *member, size_t run) {
    char folder[512];
    mimus__model *alone;
    snprintf(folder, sizeof folder, "%s-%zu", test_folder_path("alone"), run);
    test_ok(mimus_train(&source, runs.config[run], folder, NULL, NULL));
    strcat(folder, "/last.safetensors");
    test_ok(mimus__model_load(&alone, folder));
    compare_check_bytes("parameters", alone->parameters, member->model->parameters,
                        mimus__shape_parameters(&alone->shape) * sizeof(float));
    mimus__model_free(alone);
}

/* At the second epoch's end two of four lose. */
static mimus_status drop_two(void *user, mimus__pass *pass, const json_t *row) {
    int *calls = user;
    ++*calls;
    if (json_integer_value(json_object_get(row, "epoch")) == 2)
        pass->member[1].dropped = pass->member[3].dropped = true;
    return MIMUS_OK;
}

START_TEST(members_are_dropped_at_a_rung) {
    mimus__pass pass;
    int calls = 0;
    test_ok(mimus__pass_new(&pass, MEMBERS, NULL));
    fill(&pass, 0);
    test_ok(mimus__dataset_open(&pass.dataset, &source, NULL, NULL));
    test_ok(mimus__pass_open(&pass));
    begin(&pass);
    pass.user = &calls;
    pass.on_epoch = drop_two;
    test_ok(mimus__pass_train(&pass, 2));
    ck_assert_int_eq(calls, 2);
    ck_assert_uint_eq(pass.seats, MEMBERS);
    test_ok(mimus__pass_train(&pass, UINT64_MAX));
    ck_assert_int_eq(calls, EPOCHS);
    ck_assert_uint_eq(pass.seats, 2);
    ck_assert(!pass.stopped);
    ck_assert_uint_eq(pass.member[1].model->state->epoch, 2);
    ck_assert_uint_eq(pass.member[2].model->state->epoch, EPOCHS);

    /* others take their place, on the same recording */
    mimus__pass next;
    test_ok(mimus__pass_new(&next, 2, NULL));
    mimus__pass_borrow(&next, &pass);
    fill(&next, MEMBERS);
    begin(&next);
    test_ok(mimus__pass_train(&next, UINT64_MAX));
    check_alone(&pass.member[0], 0);
    check_alone(&pass.member[2], 2);
    check_alone(&next.member[1], MEMBERS + 1);
    test_ok(mimus__pass_end(&next));
    ck_assert_str_eq(next.member[0].ended, "finished");
    mimus__pass_clear(&next);
    test_ok(mimus__pass_end(&pass));
    ck_assert_str_eq(pass.member[1].ended, "stopped early");
    mimus__pass_clear(&pass);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pass");
    TCase *all = tcase_create("pass");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, members_are_dropped_at_a_rung);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
