/* Many runs of one configuration: lists, combinations, what may differ and what not. */
#include "support.h"

#include "config_runs.h"
#include "file.h"

#include <stdlib.h>
#include <string.h>

static mimus_config *config;
static mimus__config_runs runs;

static void setup(void) {
    test_ok(mimus_config_new(&config));
}

static void teardown(void) {
    mimus__config_runs_clear(&runs);
    mimus_config_free(config);
    test_folder_remove();
}

static void set(const char *name, const char *value) {
    test_ok(mimus_config_set(config, name, value));
}

static void expand(size_t count) {
    mimus__config_runs_clear(&runs);
    test_ok(mimus__config_runs_expand(&runs, config));
    ck_assert_uint_eq(runs.count, count);
}

START_TEST(one_run_is_itself) {
    set("seed", "7");
    expand(1);
    ck_assert(runs.config[0]->seed == 7 && runs.config[0]->split_seed == MIMUS__SEED_OWN);
}
END_TEST

START_TEST(runs_count_seeds_up_and_share_the_split) {
    set("seed", "7");
    set("runs", "16");
    expand(16);
    for (uint32_t r = 0; r < 16; r++) {
        const mimus_config *run = runs.config[r];
        ck_assert_uint_eq(run->seed, 7 + r);
        ck_assert_uint_eq(mimus__config_split_seed(run), 7);
        ck_assert_uint_eq(mimus__config_order_seed(run), 7 + r);
        ck_assert(run->runs == 1 && json_object_size(run->lists) == 0);
    }
    set("share-batches", "on");
    expand(16);
    ck_assert_uint_eq(mimus__config_order_seed(runs.config[15]), 7);
}
END_TEST

START_TEST(lists_go_value_by_value) {
    set("lr", "1e-3,3e-3,5e-3");
    set("seed", "1,2,3");
    set("schedule", "constant,cosine,linear");
    set("head_weights", "1,2/none/0.5,0.25");
    expand(3);
    ck_assert(runs.config[2]->lr == 5e-3 && runs.config[2]->seed == 3);
    ck_assert_int_eq(runs.config[1]->schedule, MIMUS__COSINE);
    ck_assert_uint_eq(runs.config[1]->head_weight_count, 0);
    ck_assert(runs.config[2]->head_weights[1] == 0.25);
    ck_assert_uint_eq(runs.config[2]->split_seed, 1);
}
END_TEST

START_TEST(a_grid_takes_all_combinations) {
    set("lr", "1e-3,3e-3");
    set("seed", "1,2,3");
    set("grid", "on");
    expand(6);
    ck_assert(runs.config[2]->lr == 1e-3 && runs.config[2]->seed == 3);
    ck_assert(runs.config[3]->lr == 3e-3 && runs.config[3]->seed == 1);
    set("lr", "2e-3"); /* one value takes the list's place */
    expand(3);
    ck_assert(runs.config[2]->lr == 2e-3);
}
END_TEST

START_TEST(folds_are_runs) {
    set("folds", "5");
    expand(5);
    for (uint32_t r = 0; r < 5; r++)
        ck_assert(runs.config[r]->fold == r + 1 && runs.config[r]->seed == 0);
    set("fold", "2");
    expand(1);
    set("fold", "0");
    set("runs", "3");
    mimus__config_runs_clear(&runs);
    test_fails(mimus__config_runs_expand(&runs, config), MIMUS_ERR_ARGUMENT,
               "seed has 3 values and fold has 5: give equally many");
    mimus__config_runs_clear(&runs);
    set("grid", "on");
    expand(15);
}
END_TEST

START_TEST(json_files_take_lists) {
    const char *const text = "{\"lr\": [1e-3, \"3e-3\"], \"head_weights\": [[1, 2], []], "
                             "\"class_weights\": [\"none\", \"balanced\"], \"keep\": \"best:1\"}";
    const char *path = test_folder_path("lists.json");
    test_ok(mimus__file_replace(path, text, strlen(text)));
    test_ok(mimus_config_load(config, path));
    expand(2);
    ck_assert(runs.config[1]->lr == 3e-3 && runs.config[1]->head_weights == NULL);
    ck_assert_int_eq(runs.config[1]->class_weights, MIMUS__CLASS_BALANCED);
    ck_assert(config->keep == 1 && runs.config[0]->keep == 0);
    /* and a copy has them */
    mimus_config *copy;
    test_ok(mimus__config_copy(&copy, config));
    mimus__config_runs_clear(&runs);
    test_ok(mimus__config_runs_expand(&runs, copy));
    ck_assert(runs.count == 2 && runs.config[0]->head_weights[1] == 2);
    mimus_config_free(copy);
}
END_TEST

START_TEST(bad_lists_are_refused) {
    const char *const wrong[][3] = {
        {"lr", "1e-3,", "lr: expected a number above 0 to 1e+06, found nothing"},
        {"lr", "1e-3,0", "found 0"},
        {"batch", "64,128", "batch: expected an integer"},
        {"head_weights", "1,2/x", "head_weights: expected"},
        {"split_seed", "1,2", "split_seed: expected an integer from 0"},
        {"keep", "best:0", "keep: expected all or best:N"},
        {"keep", "worst", "keep: expected all or best:N"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        test_fails(mimus_config_set(config, wrong[i][0], wrong[i][1]), MIMUS_ERR_ARGUMENT,
                   wrong[i][2]);
    set("seed", "1,2");
    set("lr", "1e-3,2e-3,3e-3");
    test_fails(mimus__config_runs_expand(&runs, config), MIMUS_ERR_ARGUMENT,
               "lr has 3 values and seed has 2");
}
END_TEST

START_TEST(what_must_agree_is_named) {
    mimus_config *other;
    test_ok(mimus_config_new(&other));
    const mimus_config *both[] = {config, other};
    test_ok(mimus_config_set(other, "seed", "3"));
    test_ok(mimus_config_set(other, "dropout", "0.5"));
    test_ok(mimus__config_runs_copy(&runs, both, 2));
    ck_assert_uint_eq(runs.config[1]->split_seed, 0);
    json_t *names;
    test_ok(mimus__config_runs_differences(&names, (const mimus_config *const *)runs.config, 2));
    ck_assert_uint_eq(json_array_size(names), 2);
    ck_assert_str_eq(json_string_value(json_array_get(names, 0)), "dropout");
    ck_assert_str_eq(json_string_value(json_array_get(names, 1)), "seed");
    json_decref(names);
    mimus__config_runs_clear(&runs);
    test_ok(mimus_config_set(other, "batch", "512"));
    test_fails(mimus__config_runs_copy(&runs, both, 2), MIMUS_ERR_ARGUMENT,
               "batch: is 4096 in run 0 and 512 in run 1; the runs of one pass differ at most in "
               "lr, weight_decay");
    test_ok(mimus_config_set(other, "batch", "4096"));
    test_ok(mimus_config_set(other, "split_seed", "9"));
    mimus__config_runs_clear(&runs);
    test_fails(mimus__config_runs_copy(&runs, both, 2), MIMUS_ERR_ARGUMENT, "split_seed: is 0");
    mimus_config_free(other);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("config_runs");
    TCase *all = tcase_create("config_runs");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, one_run_is_itself);
    tcase_add_test(all, runs_count_seeds_up_and_share_the_split);
    tcase_add_test(all, lists_go_value_by_value);
    tcase_add_test(all, a_grid_takes_all_combinations);
    tcase_add_test(all, folds_are_runs);
    tcase_add_test(all, json_files_take_lists);
    tcase_add_test(all, bad_lists_are_refused);
    tcase_add_test(all, what_must_agree_is_named);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
