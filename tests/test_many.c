/* Folders of many runs, as a user makes them: each run as if it were alone, tables, folds, kept
 * runs, stops, kills and resumes. */
#include "compare.h"
#include "sample.h"
#include "support.h"

#include "config.h"
#include "file.h"
#include "json.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const sample_recipe recipe = {.senses = 6,
                                     .heads = 2,
                                     .actions = {3, 5},
                                     .masks = true,
                                     .samples = 2000,
                                     .episode = 50,
                                     .seed = 8,
                                     .learnable = true};

static sample s;
static char many[512], solo[512];
static const char *paths[1];
static mimus_source source;
static mimus_config *config;

static void set(const char *name, const char *value) {
    test_ok(mimus_config_set(config, name, value));
}

static void setup(void) {
    sample_new(&s, &recipe, "sample.rec");
    snprintf(many, sizeof many, "%s", test_folder_path("many"));
    snprintf(solo, sizeof solo, "%s", test_folder_path("solo"));
    paths[0] = s.path;
    source = (mimus_source){.paths = paths, .count = 1};
    test_ok(mimus_config_new(&config));
    const char *const settings[][2] = {
        {"hidden", "16,16"}, {"batch", "128"}, {"epochs", "4"}, {"lr", "5e-3"}, {"gemm", "tile"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        set(settings[i][0], settings[i][1]);
}

static void teardown(void) {
    mimus_config_free(config);
    sample_clear(&s);
    test_folder_remove();
}

static json_t *parse(char *text) {
    json_t *value;
    test_ok(mimus__json_parse(&value, text, strlen(text), "the answer"));
    free(text);
    return value;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "%s is not a number", key);
    return json_number_value(value);
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "%s is not a text", key);
    return text;
}

static bool exists(const char *folder, const char *name) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return mimus__file_exists(path);
}

static void check_same_file(const char *folder, const char *other, const char *name) {
    char path[700];
    char *a, *b;
    size_t a_bytes, b_bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_ok(mimus__file_read(path, SIZE_MAX, &a, &a_bytes));
    snprintf(path, sizeof path, "%s/%s", other, name);
    test_ok(mimus__file_read(path, SIZE_MAX, &b, &b_bytes));
    ck_assert_uint_eq(a_bytes, b_bytes);
    compare_check_bytes(name, a, b, a_bytes);
    free(a);
    free(b);
}

static size_t count_rows(const char *folder) {
    char path[700];
    char *text;
    size_t bytes, rows = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    test_ok(mimus__file_read(path, SIZE_MAX, &text, &bytes));
    for (size_t i = 0; i < bytes; i++)
        rows += text[i] == '\n';
    free(text);
    return rows;
}

static char *run_folder(uint32_t run) {
    static char path[2][600];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/run-%02u", many, run);
    return path[turn];
}

/* Train the run's own config.json alone, and compare what comes of it. */
static void check_alone(uint32_t run) {
    char path[700], folder[600];
    mimus_config *own;
    snprintf(path, sizeof path, "%s/config.json", run_folder(run));
    snprintf(folder, sizeof folder, "%s-%u", solo, run);
    test_ok(mimus_config_new(&own));
    test_ok(mimus_config_load(own, path));
    mimus_status status = mimus_train(&source, own, folder, NULL, NULL);
    ck_assert(status == MIMUS_OK || status == MIMUS_ERR_DIVERGED);
    check_same_file(folder, run_folder(run), "last.safetensors");
    check_same_file(folder, run_folder(run), "config.json");
    if (exists(folder, "best.safetensors"))
        check_same_file(folder, run_folder(run), "best.safetensors");
    ck_assert_uint_eq(count_rows(folder), count_rows(run_folder(run)));
    mimus_config_free(own);
}

/* ------------------------------------------------------------------------ training */

/* Different learning rates, one of which leads nowhere, one run that stops early. */
START_TEST(each_run_is_what_it_is_alone) {
    set("runs", "6");
    set("optimizer", "sgd");
    set("lr", "1e-2,2e-2,1e6,3e-2,1e-6,5e-2"); /* 1e6: nothing finite after an epoch */
    set("epochs", "6");
    set("patience", "2");
    char *summary;
    test_ok(mimus_train(&source, config, many, NULL, &summary));
    json_t *about = parse(summary);
    const json_t *runs = json_object_get(about, "runs");
    ck_assert_uint_eq(json_array_size(runs), 6);
    ck_assert_str_eq(text_of(json_array_get(runs, 2), "ended"), "diverged");
    ck_assert(number(json_array_get(runs, 2), "epochs") < 6);
    ck_assert_str_eq(text_of(json_array_get(runs, 0), "ended"), "finished");
    ck_assert(number(about, "reads") == 6 && number(about, "epochs_run") == 6);
    ck_assert(json_is_false(json_object_get(about, "shared_batches")));
    json_decref(about);
    for (uint32_t r = 0; r < 6; r++)
        check_alone(r);
}
END_TEST

START_TEST(patience_stops_each_run_by_itself) {
    set("lr", "5e-3,0.5,1e-3");
    set("seed", "1,2,3");
    set("epochs", "8");
    set("patience", "1");
    set("share_batches", "on");
    char *summary;
    test_ok(mimus_train(&source, config, many, NULL, &summary));
    json_t *about = parse(summary);
    const json_t *runs = json_object_get(about, "runs");
    ck_assert(json_is_true(json_object_get(about, "shared_batches")));
    ck_assert_str_eq(text_of(json_array_get(runs, 1), "ended"), "stopped early");
    ck_assert(number(json_array_get(runs, 1), "epochs") <
              number(json_array_get(runs, 0), "epochs"));
    json_decref(about);
    for (uint32_t r = 0; r < 3; r++)
        check_alone(r);
}
END_TEST

START_TEST(folds_are_what_they_are_alone) {
    set("folds", "4");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    for (uint32_t r = 0; r < 4; r++)
        check_alone(r);
    /* a run is judged on the part that it held out */
    char *text;
    test_ok(mimus_eval(run_folder(2), &source, MIMUS_PART_HELDOUT, NULL, false, NULL, &text));
    json_t *judged = parse(text);
    double held_out = number(judged, "samples");
    json_decref(judged);
    test_ok(mimus_eval(run_folder(2), &source, MIMUS_PART_TRAINING, NULL, false, NULL, &text));
    judged = parse(text);
    ck_assert(held_out >= 250 && held_out <= 750); /* but for an episode, a fourth */
    ck_assert(held_out + number(judged, "samples") == 2000);
    json_decref(judged);
}
END_TEST

START_TEST(a_bootstrap_is_what_it_is_alone) {
    set("bootstrap", "on");
    set("runs", "3");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    for (uint32_t r = 0; r < 3; r++)
        check_alone(r);
}
END_TEST

START_TEST(arrays_of_settings_are_runs) {
    mimus_config *other;
    test_ok(mimus__config_copy(&other, config));
    test_ok(mimus_config_set(other, "seed", "4"));
    test_ok(mimus_config_set(other, "dropout", "0.2"));
    const mimus_config *both[] = {config, other};
    test_ok(mimus_train_runs(&source, both, 2, many, NULL, NULL));
    check_alone(0);
    check_alone(1);
    test_ok(mimus_config_set(other, "hidden", "16"));
    test_fails(mimus_train_runs(&source, both, 2, solo, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "hidden: is [16,16] in run 0 and [16] in run 1");
    ck_assert(!mimus__file_exists(solo));
    test_fails(mimus_train_runs(&source, both, 0, solo, NULL, NULL), MIMUS_ERR_ARGUMENT, "0 runs");
    mimus_config_free(other);
}
END_TEST

/* The summary's figures are those of the runs' own. */
START_TEST(the_summary_has_mean_error_and_best) {
    set("runs", "4");
    char *summary;
    test_ok(mimus_train(&source, config, many, NULL, &summary));
    json_t *about = parse(summary);
    double sum = 0, squares = 0, least = INFINITY;
    uint32_t best = 0;
    for (uint32_t r = 0; r < 4; r++) {
        char path[700];
        json_t *own;
        snprintf(path, sizeof path, "%s/summary.json", run_folder(r));
        test_ok(mimus__json_read(&own, path));
        double loss = number(own, "best_loss");
        sum += loss;
        squares += loss * loss;
        best = loss < least ? r : best;
        least = loss < least ? loss : least;
        json_decref(own);
    }
    double variance = (squares - sum * sum / 4) / 3;
    const json_t *mean = json_object_get(about, "mean");
    ck_assert_double_eq_tol(number(mean, "best_loss"), sum / 4, 1e-7);
    ck_assert_double_eq_tol(number(json_object_get(about, "standard_error"), "best_loss"),
                            sqrt(variance / 4), 1e-6);
    ck_assert_int_eq(atoi(text_of(about, "best") + 4), (int)best);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(about, "differ"), 0)),
                     "seed");
    ck_assert_uint_eq(count_rows(many), 4);
    json_decref(about);
}
END_TEST

START_TEST(only_the_best_are_kept) {
    set("runs", "5");
    set("keep", "best:2");
    char *summary;
    test_ok(mimus_train(&source, config, many, NULL, &summary));
    json_t *about = parse(summary);
    double worst_kept = -INFINITY, best_gone = INFINITY;
    int kept = 0;
    for (uint32_t r = 0; r < 5; r++) {
        double loss = number(json_array_get(json_object_get(about, "runs"), r), "best_loss");
        bool is = exists(run_folder(r), "last.safetensors");
        ck_assert(is == exists(run_folder(r), "best.safetensors"));
        ck_assert(exists(run_folder(r), "metrics.jsonl"));
        kept += is;
        if (is)
            worst_kept = fmax(worst_kept, loss);
        else
            best_gone = fmin(best_gone, loss);
    }
    json_decref(about);
    ck_assert_int_eq(kept, 2);
    ck_assert(worst_kept <= best_gone);
    /* and those go on */
    set("epochs", "6");
    test_ok(mimus_resume(many, NULL, config, NULL, &summary));
    about = parse(summary);
    ck_assert_uint_eq(json_array_size(json_object_get(about, "runs")), 2);
    json_decref(about);
}
END_TEST

/* The ensemble's numbers, from the members' probabilities as the game's policy gives them. */
START_TEST(all_runs_are_judged_as_one) {
    enum { RUNS = 3, ACTIONS = 8 };
    set("runs", "3");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    char *text;
    test_ok(mimus_eval(many, &source, MIMUS_PART_ALL, NULL, true, NULL, &text));
    json_t *judged = parse(text);
    mimus_agent *agent[RUNS];
    mimus_policy *policy[RUNS];
    for (uint32_t r = 0; r < RUNS; r++) {
        test_ok(mimus_policy_load(&policy[r], run_folder(r)));
        test_ok(mimus_agent_new(&agent[r], policy[r], 0));
    }
    double hits[2] = {0}, nll[2] = {0}, labels[2] = {0};
    for (uint64_t i = 0; i < recipe.samples; i++) {
        double mean[ACTIONS] = {0};
        float p[ACTIONS];
        for (uint32_t r = 0; r < RUNS; r++) {
            test_ok(mimus_agent_probabilities(agent[r], s.senses + i * recipe.senses,
                                              s.legal + i * ACTIONS, p));
            for (int a = 0; a < ACTIONS; a++)
                mean[a] += (double)p[a] / RUNS;
        }
        for (int h = 0; h < 2; h++) {
            int first = h == 0 ? 0 : 3, end = h == 0 ? 3 : 8, best = first;
            uint16_t label = s.actions[i * 2 + (uint64_t)h];
            if (label == MIMUS_NO_LABEL)
                continue;
            for (int a = first; a < end; a++)
                best = mean[a] > mean[best] ? a : best;
            labels[h]++;
            hits[h] += best == first + label;
            nll[h] -= log(mean[first + label]);
        }
    }
    for (size_t h = 0; h < 2; h++) {
        const json_t *head = json_array_get(json_object_get(judged, "heads"), h);
        ck_assert(number(head, "samples") == labels[h]);
        ck_assert_double_eq_tol(number(head, "agreement"), hits[h] / labels[h], 1e-3);
        ck_assert_double_eq_tol(number(head, "nll"), nll[h] / labels[h], 1e-4);
    }
    /* each member is what eval says of it alone */
    for (uint32_t r = 0; r < RUNS; r++) {
        const json_t *own = json_array_get(json_object_get(judged, "members"), r);
        test_ok(mimus_eval(run_folder(r), &source, MIMUS_PART_ALL, NULL, false, NULL, &text));
        json_t *alone = parse(text);
        ck_assert(json_equal(json_object_get(own, "heads"), json_object_get(alone, "heads")));
        json_decref(alone);
        mimus_agent_free(agent[r]);
        mimus_policy_free(policy[r]);
    }
    json_decref(judged);
}
END_TEST

START_TEST(folds_have_no_common_part) {
    set("folds", "2");
    set("epochs", "1");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    char *text;
    test_fails(mimus_eval(many, &source, MIMUS_PART_HELDOUT, NULL, false, NULL, &text),
               MIMUS_ERR_ARGUMENT, "held out different folds");
    test_ok(mimus_eval(many, &source, MIMUS_PART_ALL, NULL, false, NULL, &text));
    mimus_free(text);
}
END_TEST

/* ------------------------------------------------------------------------- resuming */

/* A watch that stops after some epochs. */
static bool stop_after(void *user) {
    int *left = user;
    return (*left)-- <= 0;
}

static void compare_folders(const char *whole, const char *other, uint32_t runs) {
    char a[600], b[600];
    for (uint32_t r = 0; r < runs; r++) {
        snprintf(a, sizeof a, "%s/run-%02u", whole, r);
        snprintf(b, sizeof b, "%s/run-%02u", other, r);
        check_same_file(a, b, "last.safetensors");
        check_same_file(a, b, "best.safetensors");
        ck_assert_uint_eq(count_rows(a), count_rows(b));
    }
    ck_assert_uint_eq(count_rows(whole), count_rows(other));
}

START_TEST(a_stop_and_a_resume_change_nothing) {
    set("runs", "3");
    set("lr", "5e-3,1e-3,1e-2");
    test_ok(mimus_train(&source, config, solo, NULL, NULL));
    for (int left = 2;; left += 3) { /* asked while it prepares too */
        int count = left;
        mimus_watch watch = {.user = &count, .should_stop = stop_after};
        mimus_status status = exists(many, "runs.json")
                                  ? mimus_resume(many, NULL, NULL, &watch, NULL)
                                  : mimus_train(&source, config, many, &watch, NULL);
        if (status == MIMUS_OK)
            break;
        ck_assert_int_eq(status, MIMUS_ERR_STOPPED);
    }
    compare_folders(solo, many, 3);
    /* nothing is left to do */
    char *summary;
    test_ok(mimus_resume(many, NULL, NULL, NULL, &summary));
    json_t *about = parse(summary);
    ck_assert(number(about, "epochs_run") == 0);
    json_decref(about);
    /* and more epochs, when asked; other settings no */
    set("epochs", "5");
    test_ok(mimus_resume(many, NULL, config, NULL, NULL));
    ck_assert_uint_eq(count_rows(run_folder(2)), 5);
    set("lr", "5e-3,1e-3,2e-2");
    test_fails(mimus_resume(many, NULL, config, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "run-02: \"lr\" was 0.01 when the run began");
    set("lr", "5e-3");
    set("runs", "2");
    test_fails(mimus_resume(many, NULL, config, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "the settings stand for 2 runs, and there are 3");
}
END_TEST

/* A run of many is a run: it goes on alone too. */
START_TEST(a_run_goes_on_alone) {
    set("runs", "2");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    mimus_config *own;
    char path[700];
    snprintf(path, sizeof path, "%s/config.json", run_folder(1));
    test_ok(mimus_config_new(&own));
    test_ok(mimus_config_load(own, path));
    test_ok(mimus_config_set(own, "epochs", "6"));
    test_ok(mimus_resume(run_folder(1), NULL, own, NULL, NULL));
    ck_assert_uint_eq(count_rows(run_folder(1)), 6);
    mimus_config_free(own);
}
END_TEST

static bool killed_after(unsigned delay) {
    int outcome;
    bool started = exists(many, "runs.json");
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        mimus_status status = started ? mimus_resume(many, NULL, NULL, NULL, NULL)
                                      : mimus_train(&source, config, many, NULL, NULL);
        if (status != MIMUS_OK)
            fprintf(stderr, "%s\n", mimus_last_error());
        _exit(status == MIMUS_OK ? 0 : 1);
    }
    usleep(delay);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &outcome, 0), child);
    ck_assert_msg(WIFSIGNALED(outcome) || WEXITSTATUS(outcome) == 0, "the runs did not go on");
    return WIFSIGNALED(outcome);
}

/* Also in the middle of an epoch's end, where some runs are saved and others not. */
START_TEST(killed_runs_resume) {
    enum { KILLS = 12 };
    set("runs", "8");
    set("epochs", "12");
    set("tensorboard", "off");
    test_ok(mimus_train(&source, config, solo, NULL, NULL));
    unsigned seed = 12345;
    for (int kills = 0; kills < KILLS; kills++) {
        seed = seed * 1103515245u + 12345u;
        if (!killed_after(50000 + seed / 65536u % 256u * 2000u))
            break;
    }
    if (exists(many, "runs.json"))
        test_ok(mimus_resume(many, NULL, NULL, NULL, NULL));
    else
        test_ok(mimus_train(&source, config, many, NULL, NULL));
    compare_folders(solo, many, 8);
}
END_TEST

/* The state that such a kill leaves, made by hand: one run an epoch behind. */
START_TEST(a_run_that_lags_catches_up) {
    char from[700], to[700];
    char *text;
    size_t bytes;
    set("runs", "3");
    test_ok(mimus_train(&source, config, solo, NULL, NULL));
    set("epochs", "2");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    snprintf(from, sizeof from, "%s/last.safetensors", run_folder(1));
    snprintf(to, sizeof to, "%s/behind", test_folder());
    test_ok(mimus__file_read(from, SIZE_MAX, &text, &bytes));
    test_ok(mimus__file_replace(to, text, bytes));
    free(text);
    set("epochs", "3");
    test_ok(mimus_resume(many, NULL, config, NULL, NULL));
    test_ok(mimus__file_read(to, SIZE_MAX, &text, &bytes));
    test_ok(mimus__file_replace(from, text, bytes));
    free(text);
    set("epochs", "4");
    test_ok(mimus_resume(many, NULL, config, NULL, NULL));
    compare_folders(solo, many, 3);
}
END_TEST

/* ------------------------------------------------------------------------- refusals */

START_TEST(what_is_refused_leaves_nothing) {
    set("runs", "2");
    set("seed", "1,2,3");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "runs is 2, and the lists have 3 values");
    ck_assert(!mimus__file_exists(many));
    set("seed", "1");
    set("head_weights", "1,2,3");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "3 weights for 2 heads");
    ck_assert(!mimus__file_exists(many));
    set("head_weights", "none");
    set("folds", "99");
    set("runs", "1");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_DATA,
               "99 folds need as many episodes");
    set("folds", "3");
    set("fold", "4");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_ARGUMENT, "4 of 3 folds");
    set("fold", "0");
    set("store", "f16");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "folds: each normalises");
    ck_assert(!mimus__file_exists(many));
}
END_TEST

/* What the device has no room for is said before anything is made, and it depends on the runs. */
START_TEST(too_many_runs_for_the_device_are_refused) {
    set("memory", "8M");
    set("epochs", "1");
    test_ok(mimus_train(&source, config, solo, NULL, NULL));
    set("runs", "300");
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_MEMORY, "training needs");
    ck_assert(!mimus__file_exists(many));
}
END_TEST

START_TEST(a_damaged_folder_says_so) {
    char path[700];
    set("runs", "2");
    set("epochs", "1");
    test_ok(mimus_train(&source, config, many, NULL, NULL));
    test_fails(mimus_train(&source, config, many, NULL, NULL), MIMUS_ERR_IO,
               "something in this folder already");
    snprintf(path, sizeof path, "%s/runs.json", many);
    const char *const bad[] = {"{\"runs\": []}", "{\"runs\": [\"run-00/../..\"]}",
                               "{\"runs\": [1]}", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_ok(mimus__file_replace(path, bad[i], strlen(bad[i])));
        test_fails(mimus_resume(many, NULL, NULL, NULL, NULL), MIMUS_ERR_FORMAT,
                   "runs.json: \"runs\" should be an array");
    }
    const char *gone = "{\"runs\": [\"run-00\", \"run-07\"]}";
    test_ok(mimus__file_replace(path, gone, strlen(gone)));
    test_fails(mimus_resume(many, NULL, NULL, NULL, NULL), MIMUS_ERR_IO, "run-07: not a run");
}
END_TEST

START_TEST(all_diverging_is_a_failure) {
    set("runs", "2");
    set("lr", "1e6");
    set("optimizer", "sgd");
    char *summary;
    test_fails(mimus_train(&source, config, many, NULL, &summary), MIMUS_ERR_DIVERGED,
               "all 2 runs diverged");
    json_t *about = parse(summary);
    ck_assert_str_eq(text_of(about, "ended"), "diverged");
    ck_assert(json_is_null(json_object_get(about, "best")));
    json_decref(about);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("many");
    TCase *all = tcase_create("many");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, each_run_is_what_it_is_alone);
    tcase_add_test(all, patience_stops_each_run_by_itself);
    tcase_add_test(all, folds_are_what_they_are_alone);
    tcase_add_test(all, a_bootstrap_is_what_it_is_alone);
    tcase_add_test(all, arrays_of_settings_are_runs);
    tcase_add_test(all, the_summary_has_mean_error_and_best);
    tcase_add_test(all, only_the_best_are_kept);
    tcase_add_test(all, all_runs_are_judged_as_one);
    tcase_add_test(all, folds_have_no_common_part);
    tcase_add_test(all, a_stop_and_a_resume_change_nothing);
    tcase_add_test(all, a_run_goes_on_alone);
    tcase_add_test(all, killed_runs_resume);
    tcase_add_test(all, a_run_that_lags_catches_up);
    tcase_add_test(all, what_is_refused_leaves_nothing);
    tcase_add_test(all, too_many_runs_for_the_device_are_refused);
    tcase_add_test(all, a_damaged_folder_says_so);
    tcase_add_test(all, all_diverging_is_a_failure);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
