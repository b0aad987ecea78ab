/* Runs as a user makes them: folders, settings, resuming, stopping, and what is refused. */
#include "compare.h"
#include "sample.h"
#include "support.h"

#include "file.h"
#include "json.h"
#include "model.h"

#include <dirent.h>
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
static char run_a[512], run_b[512];
static const char *paths[1];
static mimus_source source;
static mimus_config *config;

static void setup(void) {
    sample_new(&s, &recipe, "sample.rec");
    snprintf(run_a, sizeof run_a, "%s", test_folder_path("a"));
    snprintf(run_b, sizeof run_b, "%s", test_folder_path("b"));
    paths[0] = s.path;
    source = (mimus_source){.paths = paths, .count = 1};
    test_ok(mimus_config_new(&config));
    const char *const settings[][2] = {
        {"hidden", "16,16"}, {"batch", "128"}, {"epochs", "5"}, {"lr", "5e-3"}, {"gemm", "tile"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        test_ok(mimus_config_set(config, settings[i][0], settings[i][1]));
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

static json_int_t number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is not an integer", key);
    return json_integer_value(value);
}

static void check_same_file(const char *folder, const char *other, const char *name) {
    char path[600];
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
    char path[600];
    char *text;
    size_t bytes, rows = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    test_ok(mimus__file_read(path, SIZE_MAX, &text, &bytes));
    for (size_t i = 0; i < bytes; i++)
        rows += text[i] == '\n';
    free(text);
    return rows;
}

/* ------------------------------------------------------------------------- runs */

START_TEST(a_run_holds_what_it_promises) {
    char *summary;
    test_ok(mimus_train(&source, config, run_a, NULL, &summary));
    json_t *about = parse(summary);
    ck_assert_int_eq(number(about, "epochs"), 5);
    ck_assert_int_eq(number(about, "epochs_run"), 5);
    ck_assert_int_eq(number(about, "reads"), 5);
    ck_assert_int_eq(number(about, "training_samples") + number(about, "held_out_samples"), 2000);
    ck_assert_str_eq(json_string_value(json_object_get(about, "ended")), "finished");
    json_decref(about);
    const char *const names[] = {"config.json",      "run.json",         "metrics.jsonl",
                                 "last.safetensors", "best.safetensors", "summary.json",
                                 "evaluation.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", run_a, names[i]);
        ck_assert_msg(mimus__file_exists(path), "%s is missing", path);
    }
    ck_assert_uint_eq(count_rows(run_a), 5);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_files) {
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_ok(mimus_train(&source, config, run_b, NULL, NULL));
    check_same_file(run_a, run_b, "last.safetensors");
    check_same_file(run_a, run_b, "best.safetensors");
}
END_TEST

/* A watch that stops after so many epochs. */
static void count_epoch(void *user, const char *json) {
    int *left = user;
    (void)json;
    --*left;
}

static bool stop_after(void *user) {
    const int *left = user;
    return *left <= 0;
}

START_TEST(a_stopped_run_resumes_as_if_it_had_not_stopped) {
    int left = 2;
    mimus_watch watch = {.user = &left, .on_epoch = count_epoch, .should_stop = stop_after};
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_fails(mimus_train(&source, config, run_b, &watch, NULL), MIMUS_ERR_STOPPED,
               "mimus train --resume");
    ck_assert_uint_eq(count_rows(run_b), 2);
    char *summary;
    test_ok(mimus_resume(run_b, NULL, NULL, NULL, &summary));
    json_t *about = parse(summary);
    ck_assert_int_eq(number(about, "epochs"), 5);
    ck_assert_int_eq(number(about, "reads"), number(about, "epochs_run"));
    json_decref(about);
    check_same_file(run_a, run_b, "last.safetensors");
    check_same_file(run_a, run_b, "best.safetensors");
    ck_assert_uint_eq(count_rows(run_b), 5);
    /* a finished run has nothing left to do, and more epochs when asked */
    test_ok(mimus_resume(run_b, NULL, NULL, NULL, NULL));
    check_same_file(run_a, run_b, "last.safetensors");
    test_ok(mimus_config_set(config, "epochs", "6"));
    test_ok(mimus_resume(run_b, &source, config, NULL, NULL));
    ck_assert_uint_eq(count_rows(run_b), 6);
}
END_TEST

/* Train or resume run_b in a process of its own, killed after `delay` microseconds; true: the kill
 * hit it. */
static bool killed_after(unsigned delay) {
    char path[600];
    int outcome;
    snprintf(path, sizeof path, "%s/run.json", run_b);
    bool started = mimus__file_exists(path);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        mimus_status status = started ? mimus_resume(run_b, NULL, NULL, NULL, NULL)
                                      : mimus_train(&source, config, run_b, NULL, NULL);
        if (status != MIMUS_OK)
            _exit(status == MIMUS_OK ? 0 : 1);
    }
    usleep(delay);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &outcome, 0), child);
    ck_assert_msg(WIFSIGNALED(outcome) || WEXITSTATUS(outcome) == 0, "the run did not go on");
    return WIFSIGNALED(outcome);
}

/* How often the file holds the tag. */
static size_t count_tag(const char *path, const char *tag) {
    char *content;
    size_t bytes, count = 0, length = strlen(tag);
    test_ok(mimus__file_read(path, SIZE_MAX, &content, &bytes));
    for (size_t i = 0; i + length <= bytes; i++)
        count += memcmp(content + i, tag, length) == 0;
    free(content);
    return count;
}

/* The folder's entries but for the event files; how many epochs these hold. */
static size_t entries_of(const char *folder, size_t *epochs) {
    size_t count = 0;
    DIR *stream = opendir(folder);
    ck_assert_ptr_nonnull(stream);
    *epochs = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        char path[900];
        bool events = strncmp(entry->d_name, "events.out.tfevents.", 20) == 0;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        *epochs += events ? count_tag(path, "loss/train") : 0;
        count += !events;
    }
    closedir(stream);
    return count - 2;
}

static void check_outcome(void) {
    size_t epochs;
    ck_assert_uint_eq(entries_of(run_b, &epochs), 8); /* docs/run.md's, no temporary names */
    ck_assert_uint_eq(epochs, 60);                    /* none twice, for all the kills */
    check_same_file(run_a, run_b, "last.safetensors");
    check_same_file(run_a, run_b, "best.safetensors");
    ck_assert_uint_eq(count_rows(run_b), 60);
}

START_TEST(event_files_can_be_left_out) {
    size_t epochs;
    test_ok(mimus_config_set(config, "tensorboard", "off"));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    ck_assert_uint_eq(entries_of(run_a, &epochs), 8);
    ck_assert_uint_eq(epochs, 0);
    test_ok(mimus_config_set(config, "tensorboard", "on")); /* from here on */
    test_ok(mimus_config_set(config, "epochs", "7"));
    test_ok(mimus_resume(run_a, NULL, config, NULL, NULL));
    ck_assert_uint_eq(entries_of(run_a, &epochs), 8);
    ck_assert_uint_eq(epochs, 2);
}
END_TEST

/* 50 kills at random moments, the run going on after each: it ends as if nothing had happened. A
 * run that ends before is checked, and another takes its place. */
START_TEST(a_killed_run_resumes) {
    enum { KILLS = 50 };
    test_ok(mimus_config_set(config, "epochs", "60"));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    unsigned seed = 12345, turn = 0;
    for (int kills = 0; kills < KILLS;) {
        seed = seed * 1103515245u + 12345u;
        if (killed_after(20000 + seed / 65536u % 256u * 1500u)) {
            kills++;
            continue;
        }
        check_outcome();
        snprintf(run_b, sizeof run_b, "%s/b%u", test_folder(), turn++);
    }
    char path[600];
    snprintf(path, sizeof path, "%s/run.json", run_b);
    if (mimus__file_exists(path))
        test_ok(mimus_resume(run_b, NULL, NULL, NULL, NULL));
    else
        test_ok(mimus_train(&source, config, run_b, NULL, NULL));
    check_outcome();
}
END_TEST

/* ------------------------------------------------------------------- divergence */

static void set(const char *name, const char *value) {
    test_ok(mimus_config_set(config, name, value));
}

static void check_ended(char *summary, const char *how) {
    ck_assert_ptr_nonnull(summary);
    json_t *about = parse(summary);
    ck_assert_str_eq(json_string_value(json_object_get(about, "ended")), how);
    json_decref(about);
}

static bool exists(const char *folder, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return mimus__file_exists(path);
}

/* The losses of the first epoch that adam takes are huge, but finite. */
START_TEST(worse_than_chance_is_not_finished) {
    char *summary;
    set("lr", "1e6");
    test_fails(mimus_train(&source, config, run_a, NULL, &summary), MIMUS_ERR_DIVERGED,
               "choosing at random loses at most 2.71; start again with a smaller --lr than 1e+06 "
               "or with --clip 1");
    check_ended(summary, "diverged");
    ck_assert(exists(run_a, "summary.json") && exists(run_a, "last.safetensors"));
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, &summary), MIMUS_ERR_DIVERGED,
               "all its epochs are done");
    check_ended(summary, "diverged");
}
END_TEST

START_TEST(an_epoch_without_a_step_ends_the_run) {
    char *summary;
    set("lr", "1e6");
    set("optimizer", "sgd");
    set("epochs", "9");
    test_fails(mimus_train(&source, config, run_a, NULL, &summary), MIMUS_ERR_DIVERGED,
               "every step of epoch 2 was skipped");
    check_ended(summary, "diverged");
    ck_assert_uint_eq(count_rows(run_a), 2);
    ck_assert(!exists(run_a, "best.safetensors")); /* no epoch had a finite held-out loss */
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_DIVERGED, "epoch 3");
    char *text;
    test_fails(mimus_eval(run_a, &source, MIMUS_PART_ALL, NULL, false, NULL, &text), MIMUS_ERR_DATA,
               "/a/last.safetensors: the network overflows");
}
END_TEST

/* Decay of a million times a million a step: what is applied is not finite after four, before the
 * loss. */
START_TEST(parameters_that_are_not_finite_are_not_kept) {
    char *summary;
    set("hidden", "none");
    set("lr", "1e6");
    set("optimizer", "adamw");
    set("weight_decay", "1e6");
    test_fails(mimus_train(&source, config, run_a, NULL, &summary), MIMUS_ERR_DIVERGED,
               "last.safetensors: tensor \"layers.0.weight\" holds a number that is not finite");
    check_ended(summary, "diverged");
    mimus__model *kept;
    char path[600];
    snprintf(path, sizeof path, "%s/last.safetensors", run_a);
    test_ok(mimus__model_load(&kept, path));
    ck_assert_uint_eq(kept->state->epoch, 0);
    mimus__model_free(kept);
}
END_TEST

/* One held-out loss that is not finite must not stay the best of all. */
START_TEST(a_run_that_recovers_has_its_best_epoch) {
    char *summary;
    set("head_weights", "1,0.5");
    test_ok(mimus_train(&source, config, run_a, NULL, &summary));
    json_t *about = parse(summary);
    double best = json_number_value(json_object_get(about, "best_loss"));
    const json_t *epoch = json_object_get(about, "best");
    ck_assert(best == json_number_value(json_object_get(epoch, "held_out_loss")));
    ck_assert_int_eq(number(epoch, "epoch"), number(about, "best_epoch"));
    json_decref(about);
}
END_TEST

/* `high` in every 10th or every other episode. */
static void write_senses(const char *path, float low, float high, int every) {
    const mimus_head head = {.actions = 2};
    const char *const names[] = {"health", "distance"};
    const mimus_schema schema = {.senses = 2, .sense_names = names, .heads = 1, .head = &head};
    mimus_recorder *recorder;
    unlink(path);
    test_ok(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE));
    for (int i = 0; i < 400; i++) {
        const float senses[] = {(float)(i % 7), i % every == 0 ? high : low};
        const uint16_t label = i % 7 > 3;
        test_ok(mimus_recorder_append(recorder, senses, &label, NULL, 1));
        if (i % 10 == 9)
            test_ok(mimus_recorder_end_episode(recorder));
    }
    test_ok(mimus_recorder_close(recorder));
}

/* A float's largest as "nothing in sight" trains; what cannot be normalised is named. */
START_TEST(senses_at_the_end_of_floats_train_or_are_refused) {
    char path[512];
    const char *const files[] = {path};
    const mimus_source far = {.paths = files, .count = 1};
    snprintf(path, sizeof path, "%s", test_folder_path("far.rec"));
    write_senses(path, 1.0f, 3.4e38f, 40);
    test_ok(mimus_train(&far, config, run_a, NULL, NULL));
    write_senses(path, 1.0f, 3.4e38f, 2);
    test_fails(mimus_train(&far, config, run_b, NULL, NULL), MIMUS_ERR_DATA,
               "sense 1 (distance) reaches from 1 to 3.4e+38 in the training samples");
    write_senses(path, 3.4e38f, -3.4e38f, 40);
    test_fails(mimus_train(&far, config, run_b, NULL, NULL), MIMUS_ERR_DATA,
               "sense 1 (distance) reaches from -3.4e+38 to 3.4e+38");
    ck_assert(!mimus__file_exists(run_b));
}
END_TEST

START_TEST(early_stopping_stops) {
    char *summary;
    test_ok(mimus_config_set(config, "epochs", "200"));
    test_ok(mimus_config_set(config, "patience", "2"));
    test_ok(mimus_config_set(config, "lr", "0.05"));
    test_ok(mimus_train(&source, config, run_a, NULL, &summary));
    json_t *about = parse(summary);
    ck_assert_str_eq(json_string_value(json_object_get(about, "ended")), "stopped early");
    ck_assert_int_eq(number(about, "epochs"), number(about, "best_epoch") + 2);
    json_decref(about);
}
END_TEST

/* ---------------------------------------------------------------------- refusals */

START_TEST(a_folder_with_something_in_it_is_refused) {
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_fails(mimus_train(&source, config, run_a, NULL, NULL), MIMUS_ERR_IO, "--resume");
    test_fails(mimus_train(&source, config, s.path, NULL, NULL), MIMUS_ERR_IO, "not a folder");
    test_fails(mimus_resume(run_b, NULL, NULL, NULL, NULL), MIMUS_ERR_IO, "not a run");
}
END_TEST

START_TEST(a_failed_start_leaves_nothing_behind) {
    const char *nowhere[] = {"/nonexistent.rec"};
    mimus_source missing = {.paths = nowhere, .count = 1};
    test_fails(mimus_train(&missing, config, run_a, NULL, NULL), MIMUS_ERR_IO, "nonexistent");
    ck_assert(!mimus__file_exists(run_a));
    test_ok(mimus_config_set(config, "head_weights", "1,2,3"));
    test_fails(mimus_train(&source, config, run_a, NULL, NULL), MIMUS_ERR_ARGUMENT, "2 heads");
    ck_assert(!mimus__file_exists(run_a));
    test_ok(mimus_config_set(config, "head_weights", "1,2"));
    test_ok(mimus_config_set(config, "memory", "10000"));
    test_fails(mimus_train(&source, config, run_a, NULL, NULL), MIMUS_ERR_MEMORY,
               "allow more by memory");
    ck_assert(!mimus__file_exists(run_a));
}
END_TEST

static void write_labels(const char *path, uint16_t training, uint16_t last, float weight) {
    const mimus_head head = {.actions = 3};
    const mimus_schema schema = {.senses = 1, .heads = 1, .head = &head, .weights = true};
    mimus_recorder *recorder;
    unlink(path);
    test_ok(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE));
    for (int i = 0; i < 40; i++) {
        const float sense = (float)i;
        const uint16_t label = i == 39 ? last : training;
        test_ok(mimus_recorder_append(recorder, &sense, &label, NULL, weight));
        test_ok(mimus_recorder_end_episode(recorder));
    }
    test_ok(mimus_recorder_close(recorder));
}

/* Such a run would "finish" with a loss of 0. */
START_TEST(a_recording_that_says_nothing_is_refused) {
    char path[512];
    const char *const files[] = {path};
    const mimus_source mute = {.paths = files, .count = 1};
    snprintf(path, sizeof path, "%s", test_folder_path("mute.rec"));
    write_labels(path, MIMUS_NO_LABEL, MIMUS_NO_LABEL, 1);
    test_fails(mimus_train(&mute, config, run_a, NULL, NULL), MIMUS_ERR_DATA,
               "none of the 36 training samples has a label");
    write_labels(path, MIMUS_NO_LABEL, 1, 1); /* one label: in one part or in the other */
    test_fails(mimus_train(&mute, config, run_a, NULL, NULL), MIMUS_ERR_DATA, "has a label");
    write_labels(path, 1, 1, 0);
    test_fails(mimus_train(&mute, config, run_a, NULL, NULL), MIMUS_ERR_DATA, "the weight 0");
    test_ok(mimus_config_set(config, "head_weights", "0"));
    write_labels(path, 1, 1, 1);
    test_fails(mimus_train(&mute, config, run_a, NULL, NULL), MIMUS_ERR_DATA,
               "a head with a weight");
    ck_assert(!mimus__file_exists(run_a));
}
END_TEST

START_TEST(a_resume_keeps_settings_and_recording) {
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_ok(mimus_config_set(config, "lr", "0.1"));
    test_fails(mimus_resume(run_a, NULL, config, NULL, NULL), MIMUS_ERR_ARGUMENT, "\"lr\"");
    test_ok(mimus_config_set(config, "lr", "5e-3"));
    test_ok(mimus_config_set(config, "epochs", "6"));
    sample other;
    sample_recipe changed = recipe;
    changed.seed = 9;
    sample_new(&other, &changed, "other.rec");
    const char *others[] = {other.path};
    mimus_source wrong = {.paths = others, .count = 1};
    test_fails(mimus_resume(run_a, &wrong, config, NULL, NULL), MIMUS_ERR_DATA, "recording");
    sample_clear(&other);
}
END_TEST

/* What config.json says of the store. */
static void check_store(const char *folder, const char *want) {
    char path[600];
    json_t *settings;
    snprintf(path, sizeof path, "%s/config.json", folder);
    test_ok(mimus__json_read(&settings, path));
    ck_assert_str_eq(json_string_value(json_object_get(settings, "store")), want);
    json_decref(settings);
}

START_TEST(a_store_in_16_bits_resumes_to_the_same_bits) {
    const char *const forms[] = {"f16", "bf16"};
    int left = 2;
    mimus_watch watch = {.user = &left, .on_epoch = count_epoch, .should_stop = stop_after};
    test_ok(mimus_config_set(config, "store", forms[_i]));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    check_store(run_a, forms[_i]);
    test_fails(mimus_train(&source, config, run_b, &watch, NULL), MIMUS_ERR_STOPPED, "--resume");
    test_ok(mimus_config_set(config, "store", "f32"));
    test_fails(mimus_resume(run_b, NULL, config, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "\"store\" was \"");
    test_ok(mimus_config_set(config, "store", "auto")); /* as it began */
    test_ok(mimus_resume(run_b, NULL, config, NULL, NULL));
    check_same_file(run_a, run_b, "last.safetensors");
}
END_TEST

static void keep_message(void *user, const char *text) {
    snprintf(user, 512, "%s", text);
}

START_TEST(the_store_is_f16_where_only_that_fits) {
    /* 408 bytes a sample in f32, 208 in f16: 8 MB and 4 MB */
    const sample_recipe large = {
        .senses = 100, .heads = 2, .actions = {3, 5}, .masks = true, .samples = 20000};
    char said[512] = "";
    mimus_watch watch = {.user = said, .on_message = keep_message};
    sample other;
    sample_new(&other, &large, "large.rec");
    const char *others[] = {other.path};
    mimus_source narrow = {.paths = others, .count = 1};
    test_ok(mimus_config_set(config, "epochs", "1"));
    test_ok(mimus_train(&narrow, config, run_a, NULL, NULL));
    check_store(run_a, "f32");
    test_ok(mimus_config_set(config, "memory", "7M"));
    test_ok(mimus_train(&narrow, config, run_b, &watch, NULL));
    check_store(run_b, "f16");
    ck_assert_msg(strstr(said, "--store f16") != NULL, "said: %s", said);
    test_ok(mimus_config_set(config, "memory", "3M"));
    test_fails(mimus_train(&narrow, config, test_folder_path("c"), NULL, NULL), MIMUS_ERR_MEMORY,
               "the recording");
    sample_clear(&other);
}
END_TEST

/* Bytes that a run's blocks of rows are smaller than the largest that could have been chosen, 192
 * rows of the widths 144, 128, 128 and 48 with gaps and 3 label words. */
static json_int_t smaller_blocks(const json_t *about) {
    const json_t *block = json_object_get(json_object_get(about, "step"), "block");
    if (block == NULL)
        return 0;
    return number(block, "slices") * (192 - number(block, "block_rows")) *
           (144 + 128 + 128 + 48 + 4 * 16 + 3) * 4;
}

/* What `info` says that training takes, by the settings that it goes by. */
START_TEST(info_foretells_the_device_memory) {
    const sample_recipe wide = {
        .senses = 143, .heads = 2, .actions = {9, 38}, .masks = true, .samples = 40000};
    const char *const plans[] = {"phased", "block"};
    char *text, folder[64];
    sample other;
    sample_new(&other, &wide, "wide.rec");
    const char *others[] = {other.path};
    mimus_source from = {.paths = others, .count = 1};
    setenv("MIMUS_GEOMETRY", "cpu", 1); /* the block plan is for CPU devices */
    test_ok(mimus_info(&from, NULL, &text));
    json_t *told = parse(text);
    const json_t *bytes = json_object_get(told, "bytes"),
                 *needs = json_object_get(bytes, "training");
    ck_assert_uint_eq(json_array_size(needs), 3);
    for (size_t i = 0; i < 6; i++) {
        const json_t *need = json_array_get(needs, i / 2);
        const char *form = json_string_value(json_object_get(need, "store"));
        const char *plan = plans[i % 2];
        mimus_config *settings;
        test_ok(mimus_config_new(&settings));
        test_ok(mimus_config_set(settings, "epochs", "1"));
        test_ok(mimus_config_set(settings, "store", form));
        test_ok(mimus_config_set(settings, "plan", plan));
        snprintf(folder, sizeof folder, "%s-%s", form, plan);
        test_ok(mimus_train(&from, settings, test_folder_path(folder), NULL, &text));
        json_t *about = parse(text);
        json_int_t took =
            number(json_object_get(about, "device"), "peak_bytes") + smaller_blocks(about);
        double ratio = (double)took / (double)number(need, plan);
        ck_assert_int_eq(number(need, "recording"), number(need, "sample") * 40000);
        ck_assert_msg(ratio > 0.95 && ratio < 1.05, "%s: took %lld bytes, %.3f of what info says",
                      folder, (long long)took, ratio);
        json_decref(about);
        mimus_config_free(settings);
    }
    json_decref(told);
    sample_clear(&other);
}
END_TEST

START_TEST(two_processes_do_not_train_into_one_run) {
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    test_ok(mimus_config_set(config, "epochs", "100000"));
    pid_t child = fork();
    if (child == 0) {
        mimus_train(&source, config, run_a, NULL, NULL);
        _exit(0);
    }
    char path[600];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run_a);
    for (int i = 0; i < 600 && !mimus__file_exists(path); i++)
        usleep(100000);
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_BUSY, "another process");
    test_fails(mimus_train(&source, config, run_a, NULL, NULL), MIMUS_ERR_BUSY, "another process");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert(mimus__file_exists(path));
}
END_TEST

/* ------------------------------------------------------------- damaged run folders */

/* What a watch was told. */
static char told[4096];

static void on_message(void *user, const char *text) {
    (void)user;
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%s\n", text);
}

static void write_text(const char *folder, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_file_write(path, text, strlen(text));
}

static void remove_file(const char *folder, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(unlink(path), 0);
}

static bool stop_at_once(void *user) {
    int *left = user; /* the upload asks first */
    return (*left)-- <= 0;
}

START_TEST(a_stopped_resume_keeps_its_new_settings) {
    int left = 1;
    const mimus_watch stop = {.user = &left, .should_stop = stop_at_once};
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    set("epochs", "7");
    test_fails(mimus_resume(run_a, NULL, config, &stop, NULL), MIMUS_ERR_STOPPED, "");
    ck_assert_uint_eq(count_rows(run_a), 5);
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL));
    ck_assert_uint_eq(count_rows(run_a), 7);
}
END_TEST

/* The text of a run's file with one part exchanged, in the file. */
static void edit(const char *folder, const char *name, const char *part, const char *other) {
    char path[600], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_ok(mimus__file_read(path, SIZE_MAX, &text, &bytes));
    char *found = strstr(text, part);
    ck_assert_msg(found != NULL, "%s has no %s", path, part);
    FILE *file = fopen(path, "w");
    fprintf(file, "%.*s%s%s", (int)(found - text), text, other, found + strlen(part));
    ck_assert_int_eq(fclose(file), 0);
    free(text);
}

START_TEST(settings_are_those_of_config_json) {
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    edit(run_a, "config.json", "\"epochs\": 5", "\"epochs\": 6");
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL));
    ck_assert_uint_eq(count_rows(run_a), 6);
    edit(run_a, "config.json", "0.005", "0.5");
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "\"lr\" was 0.005 when the run began, and cannot change to 0.5");
    edit(run_a, "config.json", "0.5", "\"much\"");
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_ARGUMENT,
               "/a/config.json: lr: expected");
    write_text(run_a, "config.json", "{\"epochs\": 7,");
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_FORMAT,
               "/a/config.json: not valid JSON");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "remove it to go on with the settings"));
    remove_file(run_a, "config.json");
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL));
    ck_assert(exists(run_a, "config.json"));
    ck_assert_uint_eq(count_rows(run_a), 6);
}
END_TEST

/* on_epoch: is there a summary while training goes on? */
static void look_for_summary(void *user, const char *row) {
    (void)row;
    *(bool *)user = exists(run_a, "summary.json");
}

START_TEST(a_run_that_goes_on_has_no_summary_yet) {
    bool there = true;
    const mimus_watch watch = {.user = &there, .on_epoch = look_for_summary};
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    ck_assert(exists(run_a, "summary.json"));
    set("epochs", "6");
    test_ok(mimus_resume(run_a, NULL, config, &watch, NULL));
    ck_assert(!there);
    ck_assert(exists(run_a, "summary.json"));
}
END_TEST

START_TEST(a_damaged_best_checkpoint_is_replaced) {
    const mimus_watch watch = {.on_message = on_message};
    const char *const damages[] = {"", "{}", NULL}; /* NULL: it is gone */
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        char epochs[8], path[600], *summary;
        mimus__model *best;
        if (damages[i] != NULL)
            write_text(run_a, "best.safetensors", damages[i]);
        else
            remove_file(run_a, "best.safetensors");
        snprintf(epochs, sizeof epochs, "%zu", 6 + i);
        set("epochs", epochs);
        told[0] = '\0';
        test_ok(mimus_resume(run_a, NULL, config, &watch, &summary));
        ck_assert_ptr_nonnull(strstr(told, "/a/best.safetensors: "));
        ck_assert_ptr_nonnull(strstr(told, "takes its place"));
        json_t *about = parse(summary);
        ck_assert_int_eq(number(about, "best_epoch"), (json_int_t)(6 + i));
        json_decref(about);
        snprintf(path, sizeof path, "%s/best.safetensors", run_a);
        test_ok(mimus__model_load(&best, path));
        ck_assert_int_eq(number(best->facts, "epoch"), (json_int_t)(6 + i));
        mimus__model_free(best);
    }
}
END_TEST

START_TEST(a_damaged_last_checkpoint_is_named) {
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    write_text(run_a, "last.safetensors", "");
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_FORMAT,
               "/a/last.safetensors: 0 bytes are too few");
    remove_file(run_a, "last.safetensors");
    test_fails(mimus_resume(run_a, NULL, NULL, NULL, NULL), MIMUS_ERR_IO,
               "/a/last.safetensors: No such file");
}
END_TEST

START_TEST(what_a_run_says_of_its_recording_is_checked) {
    const struct {
        const char *part, *other, *message;
    } cases[] = {
        {"\"error\"", "\"eror\"", "/a/run.json: \"illegal\" is \"eror\", expected error, drop"},
        {"\"samples\": ", "\"samples\": -", "/a/run.json: \"samples\" should be an integer of 0"},
        {"\"files\"", "\"flies\"", "/a/run.json: \"files\" should be an array of strings"},
        {"\"options\": []", "\"options\": [5]", "/a/run.json: \"options\" should be an array"},
        {"\"illegal\"", "\"format\": 7, \"illegal\"", "/a/run.json: \"format\" should be"},
        {"\"recording\"", "\"record\"", "/a/run.json: \"recording\" should be an object"},
    };
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    set("epochs", "6");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        edit(run_a, "run.json", cases[i].part, cases[i].other);
        test_fails(mimus_resume(run_a, NULL, config, NULL, NULL), MIMUS_ERR_FORMAT,
                   cases[i].message);
        edit(run_a, "run.json", cases[i].other, cases[i].part);
    }
    test_ok(mimus_resume(run_a, NULL, config, NULL, NULL));
}
END_TEST

/* Neither the recording nor the device has to be there. */
START_TEST(a_finished_run_says_so_at_once) {
    char *summary;
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    ck_assert_int_eq(unlink(s.path), 0);
    set("device", "no-such-device");
    test_ok(mimus_resume(run_a, NULL, config, NULL, &summary));
    json_t *about = parse(summary);
    ck_assert_int_eq(number(about, "epochs"), 5);
    ck_assert_int_eq(number(about, "epochs_run"), 0);
    ck_assert_int_eq(number(about, "reads"), 0);
    json_decref(about);
    /* wherever it lies by now */
    ck_assert_int_eq(rename(run_a, run_b), 0);
    test_ok(mimus_resume(run_b, NULL, NULL, NULL, &summary));
    about = parse(summary);
    ck_assert_str_eq(json_string_value(json_object_get(about, "run")), run_b);
    json_decref(about);
    /* without a summary that can be used, as after a kill, it has to be made */
    write_text(run_b, "summary.json", "{\"run\": 1}");
    test_fails(mimus_resume(run_b, NULL, NULL, NULL, NULL), MIMUS_ERR_IO, "sample.rec");
    set("epochs", "6");
    test_fails(mimus_resume(run_b, NULL, config, NULL, NULL), MIMUS_ERR_IO, "sample.rec");
}
END_TEST

START_TEST(a_checkpoint_of_another_run_is_refused) {
    char from[600], to[600], *bytes;
    size_t size;
    sample other;
    sample_recipe changed = recipe;
    changed.senses = 7;
    sample_new(&other, &changed, "other.rec");
    const char *others[] = {other.path};
    const mimus_source wrong = {.paths = others, .count = 1};
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_ok(mimus_train(&wrong, config, run_b, NULL, NULL));
    snprintf(from, sizeof from, "%s/last.safetensors", run_b);
    snprintf(to, sizeof to, "%s/last.safetensors", run_a);
    test_ok(mimus__file_read(from, SIZE_MAX, &bytes, &size));
    test_file_write(to, bytes, size);
    set("epochs", "6");
    test_fails(mimus_resume(run_a, NULL, config, NULL, NULL), MIMUS_ERR_SCHEMA,
               "/a/last.safetensors");
    free(bytes);
    sample_clear(&other);
}
END_TEST

/* ------------------------------------------------------- what changes under its feet */

static void remove_run(void *user, const char *row) {
    const char *const names[] = {"config.json",      "run.json",         "metrics.jsonl", "lock",
                                 "last.safetensors", "best.safetensors", "summary.json"};
    char path[600];
    (void)user, (void)row;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", run_a, names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(run_a), 0);
}

START_TEST(a_run_folder_that_goes_away_is_named) {
    const mimus_watch watch = {.on_epoch = remove_run};
    set("tensorboard", "off"); /* its file's name is not known here */
    test_fails(mimus_train(&source, config, run_a, &watch, NULL), MIMUS_ERR_IO,
               "/a/metrics.jsonl: cannot write: No such file or directory");
}
END_TEST

/* When to cut the recording: a phase's begin, or its end. */
typedef struct cut {
    const char *phase;
    bool end, done;
} cut;

static void cut_recording(void *user, const mimus_progress *progress) {
    cut *at = user;
    if (at->done || strcmp(progress->phase, at->phase) != 0 ||
        (at->end && progress->done < progress->total))
        return;
    at->done = true;
    ck_assert_int_eq(truncate(s.path, 300), 0);
}

START_TEST(a_recording_that_is_cut_is_named) {
    cut cuts[] = {{.phase = "audit"}, {.phase = "audit", .end = true}, {.phase = "upload"}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const mimus_watch watch = {.user = &cuts[i], .on_progress = cut_recording};
        test_fails(mimus_train(&source, config, run_a, &watch, NULL), MIMUS_ERR_IO,
                   "sample.rec: was cut from ");
        ck_assert(!mimus__file_exists(run_a));
        sample_clear(&s);
        sample_new(&s, &recipe, "sample.rec");
    }
    /* once it is on the device, nobody needs the file; nor its name before that */
    cut late = {.phase = "prepare"};
    const mimus_watch watch = {.user = &late, .on_progress = cut_recording};
    test_ok(mimus_train(&source, config, run_a, &watch, NULL));
    ck_assert(late.done);
}
END_TEST

/* A Latin-1 name: JSON has no such texts. */
START_TEST(names_that_are_not_utf8_work_or_are_refused) {
    char *text;
    char moved[600];
    snprintf(moved, sizeof moved, "%s", test_folder_path("l\xe9.rec"));
    const char *const files[] = {moved};
    const mimus_source renamed = {.paths = files, .count = 1};
    ck_assert_int_eq(rename(s.path, moved), 0);
    test_fails(mimus_train(&renamed, config, run_a, NULL, NULL), MIMUS_ERR_UNSUPPORTED,
               "\xe9.rec: the path is not UTF-8");
    ck_assert(!mimus__file_exists(run_a));
    ck_assert_int_eq(rename(moved, s.path), 0);
    snprintf(run_a, sizeof run_a, "%s", test_folder_path("\xe9t\xe9"));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL));
    test_ok(mimus_eval(run_a, &source, MIMUS_PART_ALL, NULL, false, NULL, &text));
    ck_assert_ptr_nonnull(strstr(text, "?t?\","));
    free(text);
}
END_TEST

START_TEST(metrics_say_the_learning_rate_that_was_set) {
    char path[600], *text;
    size_t bytes;
    set("lr", "0.001");
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    snprintf(path, sizeof path, "%s/metrics.jsonl", run_a);
    test_ok(mimus__file_read(path, SIZE_MAX, &text, &bytes));
    ck_assert_ptr_nonnull(strstr(text, "\"lr\":0.001,"));
    free(text);
}
END_TEST

/* ------------------------------------------------------------------------- eval */

START_TEST(eval_agrees_with_training) {
    char *text;
    test_ok(mimus_train(&source, config, run_a, NULL, &text));
    json_t *summary = parse(text);
    char last[600];
    snprintf(last, sizeof last, "%s/last.safetensors", run_a);
    test_ok(mimus_eval(last, &source, MIMUS_PART_HELDOUT, NULL, true, NULL, &text));
    json_t *eval = parse(text);
    ck_assert_int_eq(number(eval, "samples"), number(summary, "held_out_samples"));
    for (size_t h = 0; h < 2; h++) {
        const json_t *trained =
            json_array_get(json_object_get(json_object_get(summary, "last"), "heads"), h);
        const json_t *judged = json_array_get(json_object_get(eval, "heads"), h);
        double a = json_number_value(json_object_get(trained, "held_out_agreement"));
        double b = json_number_value(json_object_get(judged, "agreement"));
        ck_assert_msg(a - b < 1e-9 && b - a < 1e-9, "agreement %g in training, %g in eval", a, b);
        a = json_number_value(json_object_get(trained, "held_out_nll"));
        b = json_number_value(json_object_get(judged, "nll"));
        ck_assert_msg(a - b < 1e-5 && b - a < 1e-5, "nll %g in training, %g in eval", a, b);
    }
    json_decref(eval);
    test_ok(mimus_eval(run_a, &source, MIMUS_PART_ALL, NULL, false, NULL, &text));
    eval = parse(text);
    ck_assert_int_eq(number(eval, "samples"), 2000);
    json_decref(eval);
    json_decref(summary);
}
END_TEST

static json_t *read_of(const char *folder, const char *name) {
    char path[600];
    json_t *json;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_ok(mimus__json_read(&json, path));
    return json;
}

static double sum_of(const json_t *array) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        sum += json_number_value(json_array_get(array, i));
    return sum;
}

/* What the training leaves is what mimus_eval says of the best checkpoint afterwards. */
START_TEST(a_run_is_judged_at_its_end) {
    char *text;
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    test_ok(mimus_eval(run_a, &source, MIMUS_PART_HELDOUT, NULL, true, NULL, &text));
    json_t *asked = parse(text), *kept = read_of(run_a, "evaluation.json");
    json_t *summary = read_of(run_a, "summary.json");
    mimus__json_round(asked);
    json_t *episodes = json_incref(json_object_get(kept, "by_episode"));
    ck_assert_int_eq(json_object_del(kept, "by_episode"), 0);
    ck_assert_msg(json_equal(asked, kept), "evaluation.json and mimus_eval differ");
    ck_assert_int_eq(number(kept, "epoch"), number(summary, "best_epoch"));
    ck_assert_int_eq(number(episodes, "together"), 1);
    ck_assert_int_eq((json_int_t)json_array_size(json_object_get(episodes, "episodes")),
                     number(summary, "held_out_episodes"));
    for (size_t h = 0; h < 2; h++) {
        const json_t *head = json_array_get(json_object_get(kept, "heads"), h);
        const json_t *groups = json_array_get(json_object_get(episodes, "heads"), h);
        double n = (double)number(head, "samples");
        ck_assert(sum_of(json_object_get(groups, "samples")) == n);
        double agreement = sum_of(json_object_get(groups, "hits")) / n;
        ck_assert(fabs(agreement - json_number_value(json_object_get(head, "agreement"))) < 1e-8);
        double nll = sum_of(json_object_get(groups, "nll")) / n;
        ck_assert(fabs(nll - json_number_value(json_object_get(head, "nll"))) < 1e-6);
    }
    const json_t *phases = json_object_get(summary, "phases");
    const char *const names[] = {"audit", "upload", "prepare", "train", "upload", "eval"};
    ck_assert_uint_eq(json_array_size(phases), sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *phase = json_array_get(phases, i);
        ck_assert_str_eq(json_string_value(json_object_get(phase, "name")), names[i]);
        ck_assert(json_number_value(json_object_get(phase, "seconds")) > 0);
    }
    json_decref(asked);
    json_decref(kept);
    json_decref(episodes);
    json_decref(summary);
}
END_TEST

/* Killed before it was judged: a resume does that alone. A stop does not keep it from that. */
START_TEST(what_was_not_judged_is_on_resume) {
    char path[600], *summary;
    int left = 2;
    mimus_watch watch = {.user = &left, .on_epoch = count_epoch, .should_stop = stop_after};
    test_fails(mimus_train(&source, config, run_a, &watch, NULL), MIMUS_ERR_STOPPED, "stopped");
    ck_assert(exists(run_a, "evaluation.json"));
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL));
    json_t *before = read_of(run_a, "evaluation.json");
    snprintf(path, sizeof path, "%s/evaluation.json", run_a);
    ck_assert_int_eq(unlink(path), 0);
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, &summary));
    json_t *after = read_of(run_a, "evaluation.json"), *about = parse(summary);
    ck_assert(json_equal(before, after));
    ck_assert_int_eq(number(about, "epochs_run"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(about, "ended")), "finished");
    json_decref(before);
    json_decref(after);
    json_decref(about);
}
END_TEST

START_TEST(without_a_held_out_part_nothing_is_judged) {
    test_ok(mimus_config_set(config, "held_out", "0"));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    ck_assert(!exists(run_a, "evaluation.json"));
    test_ok(mimus_resume(run_a, NULL, NULL, NULL, NULL)); /* at once */
    ck_assert(!exists(run_a, "evaluation.json"));
}
END_TEST

START_TEST(eval_refuses_what_does_not_fit) {
    char *text;
    sample other;
    sample_recipe changed = recipe;
    changed.senses = 7;
    test_ok(mimus_config_set(config, "epochs", "1"));
    test_ok(mimus_train(&source, config, run_a, NULL, NULL));
    sample_new(&other, &changed, "other.rec");
    const char *others[] = {other.path};
    mimus_source wrong = {.paths = others, .count = 1};
    test_fails(mimus_eval(run_a, &wrong, MIMUS_PART_ALL, NULL, false, NULL, &text),
               MIMUS_ERR_SCHEMA, "7");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "6"));
    sample_clear(&other);
    changed = recipe;
    changed.seed = 10;
    sample_new(&other, &changed, "another.rec");
    others[0] = other.path;
    test_fails(mimus_eval(run_a, &wrong, MIMUS_PART_HELDOUT, NULL, false, NULL, &text),
               MIMUS_ERR_ARGUMENT, "--part all");
    test_ok(mimus_eval(run_a, &wrong, MIMUS_PART_ALL, NULL, false, NULL, &text));
    free(text);
    sample_clear(&other);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("train");
    TCase *all = tcase_create("train");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, a_run_holds_what_it_promises);
    tcase_add_test(all, the_same_seed_gives_the_same_files);
    tcase_add_test(all, a_stopped_run_resumes_as_if_it_had_not_stopped);
    tcase_add_test(all, a_killed_run_resumes);
    tcase_add_test(all, event_files_can_be_left_out);
    tcase_add_test(all, worse_than_chance_is_not_finished);
    tcase_add_test(all, an_epoch_without_a_step_ends_the_run);
    tcase_add_test(all, parameters_that_are_not_finite_are_not_kept);
    tcase_add_test(all, a_run_that_recovers_has_its_best_epoch);
    tcase_add_test(all, senses_at_the_end_of_floats_train_or_are_refused);
    tcase_add_test(all, early_stopping_stops);
    tcase_add_test(all, a_folder_with_something_in_it_is_refused);
    tcase_add_test(all, a_failed_start_leaves_nothing_behind);
    tcase_add_test(all, a_recording_that_says_nothing_is_refused);
    tcase_add_test(all, a_resume_keeps_settings_and_recording);
    tcase_add_loop_test(all, a_store_in_16_bits_resumes_to_the_same_bits, 0, 2);
    tcase_add_test(all, the_store_is_f16_where_only_that_fits);
    tcase_add_test(all, info_foretells_the_device_memory);
    tcase_add_test(all, two_processes_do_not_train_into_one_run);
    tcase_add_test(all, a_stopped_resume_keeps_its_new_settings);
    tcase_add_test(all, settings_are_those_of_config_json);
    tcase_add_test(all, a_run_that_goes_on_has_no_summary_yet);
    tcase_add_test(all, a_damaged_best_checkpoint_is_replaced);
    tcase_add_test(all, a_damaged_last_checkpoint_is_named);
    tcase_add_test(all, what_a_run_says_of_its_recording_is_checked);
    tcase_add_test(all, a_finished_run_says_so_at_once);
    tcase_add_test(all, a_checkpoint_of_another_run_is_refused);
    tcase_add_test(all, a_run_folder_that_goes_away_is_named);
    tcase_add_test(all, a_recording_that_is_cut_is_named);
    tcase_add_test(all, names_that_are_not_utf8_work_or_are_refused);
    tcase_add_test(all, metrics_say_the_learning_rate_that_was_set);
    tcase_add_test(all, eval_agrees_with_training);
    tcase_add_test(all, a_run_is_judged_at_its_end);
    tcase_add_test(all, what_was_not_judged_is_on_resume);
    tcase_add_test(all, without_a_held_out_part_nothing_is_judged);
    tcase_add_test(all, eval_refuses_what_does_not_fit);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
