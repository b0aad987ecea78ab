/* Importing files into one .rec, and describing recordings. */
#include "npz_file.h"
#include "play.h"
#include "rows.h"
#include "support.h"

#include "file.h"
#include "json.h"
#include "rng.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ten samples in two episodes: senses (row, 7), labels row % 3, and what the test makes of them. */
enum { ROWS = 10 };

typedef struct arrays {
    float senses[ROWS][2];
    int64_t actions[ROWS];
    uint8_t masks[ROWS][3];
    double weights[ROWS];
    bool starts[ROWS];
} arrays;

static arrays sound(void) {
    arrays a;
    for (int i = 0; i < ROWS; i++) {
        a.senses[i][0] = (float)i;
        a.senses[i][1] = 7;
        a.actions[i] = i % 3;
        memset(a.masks[i], 1, sizeof a.masks[i]);
        a.weights[i] = 0.5 * i;
        a.starts[i] = i == 0 || i == 4;
    }
    return a;
}

/* A path in the test's folder that stays for the whole test. */
static const char *path_of(const char *name) {
    static char paths[16][512];
    static unsigned used;
    ck_assert_uint_lt(used, 16);
    char *path = paths[used++];
    snprintf(path, sizeof paths[0], "%s", test_folder_path(name));
    return path;
}

static const char *write_arrays(const char *name, const arrays *a) {
    const char *path = path_of(name);
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "obs", "<f4", "(10, 2)", a->senses, sizeof a->senses);
    test_npz_add(npz, "actions", "<i8", "(10,)", a->actions, sizeof a->actions);
    test_npz_add(npz, "action_masks", "|u1", "(10, 3)", a->masks, sizeof a->masks);
    test_npz_add(npz, "weights", "<f8", "(10,)", a->weights, sizeof a->weights);
    test_npz_add(npz, "episode_starts", "|b1", "(10,)", a->starts, sizeof a->starts);
    test_npz_close(npz);
    return path;
}

static mimus_status import(const char *const *paths, size_t count, mimus_illegal illegal,
                           const char *out, char **report) {
    const mimus_source source = {.paths = paths, .count = count, .illegal = illegal};
    return mimus_import(&source, out, NULL, report);
}

static json_t *parse(char *text) {
    json_t *json = NULL;
    test_ok(mimus__json_parse(&json, text, strlen(text), "result"));
    mimus_free(text);
    return json;
}

/* A member by its path: "faults.sense.samples", "heads.0.counts.2". */
static const json_t *at(const json_t *json, const char *path) {
    char step[64];
    while (*path != '\0') {
        size_t length = strcspn(path, ".");
        snprintf(step, sizeof step, "%.*s", (int)length, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(step, NULL, 10))
                                   : json_object_get(json, step);
        ck_assert_msg(json != NULL, "no \"%s\"", step);
        path += length + (path[length] == '.');
    }
    return json;
}

static double number(const json_t *json, const char *path) {
    ck_assert_msg(json_is_number(at(json, path)), "%s is no number", path);
    return json_number_value(at(json, path));
}

/* Row `row` of the file holds what row `of` of the arrays does, but for the label. */
static void check_row(const mimus__block *block, uint32_t row, const arrays *a, int of,
                      uint16_t label) {
    ck_assert_float_eq(block->senses[row * 2], a->senses[of][0]);
    ck_assert_float_eq(block->senses[row * 2 + 1], a->senses[of][1]);
    ck_assert_uint_eq(block->actions[row], label);
    ck_assert_float_eq(block->weights[row], (float)a->weights[of]);
    for (int m = 0; m < 3; m++)
        ck_assert_uint_eq(block->masks[row] >> m & 1, a->masks[of][m]);
}

static bool begins(const mimus__block *block, uint32_t row) {
    return (block->starts[row / 32] >> row % 32 & 1) != 0;
}

static size_t entries_of(const char *folder) {
    size_t count = 0;
    DIR *stream = opendir(folder);
    ck_assert_ptr_nonnull(stream);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count - 2;
}

START_TEST(a_file_becomes_a_recording) {
    const arrays a = sound();
    const char *paths[] = {write_arrays("play.npz", &a)};
    const char *out = path_of("play.rec");
    char *report = NULL;
    mimus__recording *recording = NULL;
    mimus__block block;
    test_ok(import(paths, 1, MIMUS_ILLEGAL_ERROR, out, &report));
    json_t *json = parse(report);
    ck_assert_double_eq(number(json, "samples"), 10);
    ck_assert_double_eq(number(json, "episodes"), 2);
    ck_assert_double_eq(number(json, "dropped"), 0);
    ck_assert_double_eq(number(json, "schema.senses"), 2);
    ck_assert_double_eq(number(json, "schema.heads.0.actions"), 3);
    ck_assert_double_eq(number(json, "faults.samples"), 0);
    ck_assert_uint_eq(json_object_size(at(json, "faults")), 2);
    ck_assert_uint_eq(json_array_size(at(json, "losses")), 0);
    json_decref(json);

    test_ok(test_recording_open(&recording, out));
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_uint_eq(block.samples, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        check_row(&block, i, &a, (int)i, (uint16_t)a.actions[i]);
        ck_assert(begins(&block, i) == a.starts[i]);
    }
    const json_t *metadata = json_array_get(mimus__recording_metadata(recording), 0);
    ck_assert_str_eq(json_string_value(at(metadata, "sources.0.file")), paths[0]);
    mimus__recording_free(recording);
    ck_assert_uint_eq(entries_of(test_folder()), 2);
    test_ok(import(paths, 1, MIMUS_ILLEGAL_ERROR, out, NULL)); /* replaces it */
}
END_TEST

/* Row 1 has a NaN, 4 (which begins an episode) a label out of range, 6 a forbidden one, 9 a weight
 * below 0. */
static arrays faulty(void) {
    arrays a = sound();
    a.senses[1][1] = NAN;
    a.actions[4] = 9;
    a.masks[6][0] = 0;
    a.weights[9] = -1;
    return a;
}

START_TEST(faults_refuse_drop_or_lose_labels) {
    const arrays a = faulty();
    const char *paths[] = {write_arrays("faulty.npz", &a)};
    const char *out = path_of("faulty.rec");
    char *report = NULL;
    json_t *json = NULL;
    mimus__recording *recording = NULL;
    mimus__block block;
    test_ok(mimus__file_replace(out, "old", 3));
    test_fails(import(paths, 1, MIMUS_ILLEGAL_ERROR, out, &report), MIMUS_ERR_DATA,
               "4 of 10 samples cannot be trained on: 1 with a sense that is not finite (first: "
               "row 1, sense 1)");
    ck_assert_ptr_null(report);
    char *old = NULL;
    size_t bytes = 0;
    test_ok(mimus__file_read(out, 100, &old, &bytes));
    ck_assert_str_eq(old, "old");
    free(old);
    ck_assert_uint_eq(entries_of(test_folder()), 2); /* nor is anything else left */

    test_ok(import(paths, 1, MIMUS_ILLEGAL_DROP, out, &report));
    json = parse(report);
    ck_assert_double_eq(number(json, "samples"), 6);
    ck_assert_double_eq(number(json, "episodes"), 2);
    ck_assert_double_eq(number(json, "dropped"), 4);
    ck_assert_double_eq(number(json, "faults.samples"), 4);
    ck_assert_double_eq(number(json, "faults.range.first_row"), 4);
    ck_assert_str_eq(json_string_value(at(json, "faults.forbidden.head")), "head0");
    json_decref(json);
    test_ok(test_recording_open(&recording, out));
    test_ok(mimus__recording_block(recording, 0, &block));
    static const int kept[6] = {0, 2, 3, 5, 7, 8};
    for (uint32_t i = 0; i < 6; i++) {
        check_row(&block, i, &a, kept[i], (uint16_t)a.actions[kept[i]]);
        ck_assert(begins(&block, i) == (i == 0 || i == 3)); /* row 5 takes over from row 4 */
    }
    mimus__recording_free(recording);

    test_ok(import(paths, 1, MIMUS_ILLEGAL_IGNORE, out, &report));
    json = parse(report);
    ck_assert_double_eq(number(json, "samples"), 8);
    ck_assert_double_eq(number(json, "dropped"), 2);
    json_decref(json);
    test_ok(test_recording_open(&recording, out));
    test_ok(mimus__recording_block(recording, 0, &block));
    for (uint32_t i = 0; i < 8; i++) {
        int of = i == 0 ? 0 : (int)i + 1;
        bool offends = of == 4 || of == 6;
        check_row(&block, i, &a, of, offends ? MIMUS_NO_LABEL : (uint16_t)a.actions[of]);
        ck_assert(begins(&block, i) == a.starts[of]);
    }
    mimus__recording_free(recording);
}
END_TEST

START_TEST(files_of_several_formats_are_put_together) {
    const arrays a = sound(), b = faulty();
    const char *out = path_of("one.rec");
    const char *first[] = {write_arrays("a.npz", &a)};
    char *report = NULL;
    test_ok(import(first, 1, MIMUS_ILLEGAL_ERROR, out, NULL));
    const char *paths[] = {write_arrays("b.npz", &b), out, write_arrays("c.npz", &a), out};
    const char *all = path_of("all.rec");
    test_ok(import(paths, 4, MIMUS_ILLEGAL_DROP, all, &report));
    json_t *json = parse(report);
    ck_assert_double_eq(number(json, "samples"), 36);
    ck_assert_double_eq(number(json, "episodes"), 8);
    json_decref(json);
    mimus__recording *recording = NULL;
    mimus__block block;
    test_ok(test_recording_open(&recording, all));
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_uint_eq(block.samples, 36);
    for (uint32_t i = 0; i < 30; i++)
        check_row(&block, 6 + i, &a, (int)(i % 10), (uint16_t)a.actions[i % 10]);
    const json_t *sources =
        json_object_get(json_array_get(mimus__recording_metadata(recording), 0), "sources");
    ck_assert_uint_eq(json_array_size(sources), 4);
    ck_assert_str_eq(json_string_value(at(sources, "1.metadata.sources.0.file")), first[0]);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(files_must_agree) {
    arrays a = sound(), b = sound();
    for (int i = 0; i < ROWS; i++)
        b.actions[i] = i % 2;
    const char *paths[] = {write_arrays("three.npz", &a), NULL};
    const char *two = path_of("two.npz");
    test_npz *npz = test_npz_create(two, true);
    test_npz_add(npz, "obs", "<f4", "(10, 2)", b.senses, sizeof b.senses);
    test_npz_add(npz, "actions", "<i8", "(10,)", b.actions, sizeof b.actions);
    test_npz_close(npz);
    paths[1] = two;
    const char *out = path_of("both.rec");
    test_fails(import(paths, 2, MIMUS_ILLEGAL_ERROR, out, NULL), MIMUS_ERR_SCHEMA,
               "two.npz: actions of head 0: 3 in the files before, 2 in this file");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "the option heads states them"));
    ck_assert(!mimus__file_exists(out));
    ck_assert_uint_eq(entries_of(test_folder()), 2);
    static const mimus_head head = {.actions = 2};
    const mimus_schema other = {.senses = 1, .heads = 1, .head = &head};
    paths[1] = path_of("other.rec");
    test_rows_write(paths[1], &other, NULL, 0);
    test_fails(import(paths, 2, MIMUS_ILLEGAL_ERROR, out, NULL), MIMUS_ERR_SCHEMA,
               "other.rec: senses");
    paths[1] = two;
    static const char *const options[] = {"heads=3", "masks=", "weights=", NULL};
    mimus_source source = {.paths = paths, .count = 2, .options = options};
    test_ok(mimus_import(&source, out, NULL, NULL)); /* what the message proposed */
}
END_TEST

START_TEST(what_cannot_be_imported_is_refused) {
    arrays a = sound();
    for (int i = 0; i < ROWS; i++)
        a.senses[i][0] = INFINITY;
    const char *paths[] = {write_arrays("none.npz", &a)};
    const char *out = path_of("none.rec");
    test_fails(import(paths, 1, MIMUS_ILLEGAL_IGNORE, out, NULL), MIMUS_ERR_DATA,
               "all 10 samples would be dropped");
    test_fails(import(paths, 0, MIMUS_ILLEGAL_ERROR, out, NULL), MIMUS_ERR_ARGUMENT, "no file");
    const char *missing[] = {path_of("missing.npz")};
    test_fails(import(missing, 1, MIMUS_ILLEGAL_ERROR, out, NULL), MIMUS_ERR_IO, "missing.npz");
    test_fails(import(paths, 1, MIMUS_ILLEGAL_DROP, path_of("no/where.rec"), NULL), MIMUS_ERR_IO,
               "no/where.rec: cannot write");
    static const mimus_head head = {.actions = 2};
    const mimus_schema schema = {.senses = 1, .heads = 1, .head = &head};
    const char *empty[] = {path_of("empty.rec")};
    test_rows_write(empty[0], &schema, NULL, 0);
    test_fails(import(empty, 1, MIMUS_ILLEGAL_ERROR, out, NULL), MIMUS_ERR_DATA, "no samples");
    static const char *const options[] = {"nonsense=1", NULL};
    mimus_source source = {.paths = paths, .count = 1, .options = options};
    test_fails(mimus_import(&source, out, NULL, NULL), MIMUS_ERR_ARGUMENT, "\"nonsense\"");
    source = (mimus_source){.paths = paths, .count = 1, .format = "rec"};
    test_fails(mimus_import(&source, out, NULL, NULL), MIMUS_ERR_FORMAT, "none.npz");
    ck_assert(!mimus__file_exists(out));
}
END_TEST

START_TEST(an_input_is_not_overwritten) {
    const arrays a = sound();
    const char *paths[] = {write_arrays("a.npz", &a), write_arrays("b.npz", &a)};
    const char *link = path_of("link.npz"), *hard = path_of("hard.npz");
    const char *indirect = path_of("./b.npz");
    char *before = NULL, *after = NULL;
    size_t bytes = 0, left = 0;
    ck_assert_int_eq(symlink(paths[1], link), 0);
    ck_assert_int_eq(linkat(AT_FDCWD, paths[1], AT_FDCWD, hard, 0), 0);
    test_ok(mimus__file_read(paths[1], SIZE_MAX, &before, &bytes));
    const char *const outs[] = {paths[1], link, hard, indirect};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        test_fails(import(paths, 2, MIMUS_ILLEGAL_DROP, outs[i], NULL), MIMUS_ERR_ARGUMENT,
                   "is read by this import");
    test_ok(mimus__file_read(paths[1], SIZE_MAX, &after, &left));
    ck_assert_uint_eq(left, bytes);
    ck_assert_mem_eq(after, before, bytes);
    ck_assert_uint_eq(entries_of(test_folder()), 4);
    free(before);
    free(after);
}
END_TEST

/* Root may write anywhere, so it becomes somebody else. */
START_TEST(a_folder_that_may_not_be_written_stays_as_it_is) {
    const arrays a = sound();
    const char *paths[] = {write_arrays("a.npz", &a)};
    const char *out = path_of("out.rec");
    test_file_write(out, "old", 3);
    ck_assert_int_eq(chmod(test_folder(), 0555), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    for (int there = 1; there >= 0; there--) {
        test_fails(import(paths, 1, MIMUS_ILLEGAL_ERROR, there ? out : path_of("new.rec"), NULL),
                   MIMUS_ERR_IO, "cannot write: Permission denied");
        ck_assert_uint_eq(entries_of(test_folder()), 2);
    }
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(test_folder(), 0755), 0);
    char *old = NULL;
    size_t bytes = 0;
    test_ok(mimus__file_read(out, 100, &old, &bytes));
    ck_assert_str_eq(old, "old");
    free(old);
}
END_TEST

typedef struct watched {
    unsigned reports;
    unsigned messages;
    uint64_t done;
    uint64_t stop_at; /* calls to should_stop; 0: never */
    uint64_t asked;
} watched;

static void on_progress(void *user, const mimus_progress *progress) {
    watched *w = user;
    ck_assert_str_eq(progress->phase, "import");
    w->reports++;
    w->done = progress->done;
}

static void on_message(void *user, const char *text) {
    ck_assert_ptr_nonnull(text);
    ((watched *)user)->messages++;
}

static bool should_stop(void *user) {
    watched *w = user;
    return ++w->asked == w->stop_at;
}

START_TEST(importing_is_watched_and_stopped) {
    const arrays a = sound();
    const char *outs[] = {path_of("watched.rec"), path_of("again.rec")};
    const char *other = path_of("stopped.rec");
    const char *paths[] = {write_arrays("watched.npz", &a), NULL};
    mimus_source source = {.paths = paths, .count = 1};
    for (int rec = 0; rec < 2; rec++) {
        watched w = {0};
        const mimus_watch watch = {&w, on_progress, NULL, on_message, should_stop};
        test_ok(mimus_import(&source, outs[rec], &watch, NULL));
        ck_assert(w.reports >= 2 && w.done == ROWS && w.asked > 0);
        ck_assert_uint_eq(w.messages, rec ? 0 : 1); /* the head sizes that were found */
        w.stop_at = w.asked + 1;
        test_fails(mimus_import(&source, other, &watch, NULL), MIMUS_ERR_STOPPED, "stopped");
        ck_assert(!mimus__file_exists(other));
        paths[0] = outs[0];
    }
    ck_assert_uint_eq(entries_of(test_folder()), 3);
}
END_TEST

/* More samples than a chunk holds, so that blocks, bits and labels go through many hands. */
START_TEST(long_files_keep_their_order) {
    enum { LONG = 30000, WIDE = 40 };
    const char *path = path_of("long.npz"), *out = path_of("long.rec");
    float *senses = calloc((size_t)LONG * WIDE, sizeof *senses);
    uint8_t *actions = calloc((size_t)LONG * 2, 1), *dones = calloc(LONG, 1);
    for (size_t i = 0; i < LONG; i++) {
        senses[i * WIDE] = (float)i;
        actions[i * 2] = (uint8_t)(i % 5);
        actions[i * 2 + 1] = (uint8_t)(i % 7);
        dones[i] = i % 101 == 100;
        senses[i * WIDE + 39] = i % 13 == 5 ? NAN : 1;
    }
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "obs", "<f4", "(30000, 40)", senses, (size_t)LONG * WIDE * sizeof *senses);
    test_npz_add(npz, "actions", "|u1", "(30000, 2)", actions, (size_t)LONG * 2);
    test_npz_add(npz, "terminals", "|u1", "(30000,)", dones, LONG);
    test_npz_close(npz);
    const char *paths[] = {path};
    test_ok(import(paths, 1, MIMUS_ILLEGAL_DROP, out, NULL));
    mimus__recording *recording = NULL;
    test_ok(test_recording_open(&recording, out));
    ck_assert_uint_ge(mimus__recording_blocks(recording), 2);
    ck_assert_uint_eq(mimus__recording_episodes(recording), 298);
    size_t row = 0;
    bool good = true;
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        for (uint32_t i = 0; i < block.samples; i++, row++) {
            row += row % 13 == 5;
            good = good && block.senses[(size_t)i * WIDE] == (float)row &&
                   block.actions[i * 2] == row % 5 && block.actions[i * 2 + 1] == row % 7;
        }
    }
    ck_assert(good);
    ck_assert_uint_eq(mimus__recording_samples(recording), LONG - (LONG + 7) / 13);
    mimus__recording_free(recording);
    free(senses);
    free(actions);
    free(dones);
}
END_TEST

/* 30 kills at random moments, onto a new name and onto a file that is there: the name has the old
 * content or all of the new one, and the folder nothing else. */
START_TEST(a_killed_import_leaves_nothing) {
    enum { KILLS = 30, SAMPLES = 10000 };
    static const mimus_head head = {.actions = 5};
    const mimus_schema schema = {.senses = 100, .heads = 1, .head = &head};
    const test_play play = {.schema = &schema};
    const char *in = path_of("in.rec"), *out = path_of("out.rec");
    test_play_record(in, &play, SAMPLES);
    const mimus_source source = {.paths = &in, .count = 1};
    mimus__rng rng = {.seed = (uint64_t)time(NULL)};
    printf("kill test: seed %llu\n", (unsigned long long)rng.seed);
    int kills = 0;
    while (kills < KILLS) {
        int outcome;
        pid_t child = fork();
        if (child == 0)
            _exit(mimus_import(&source, out, NULL, NULL) == MIMUS_OK ? 0 : 1);
        usleep((useconds_t)mimus__rng_below(&rng, 50000));
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, &outcome, 0), child);
        ck_assert(WIFSIGNALED(outcome) || WEXITSTATUS(outcome) == 0);
        kills += WIFSIGNALED(outcome);
        if (!mimus__file_exists(out))
            continue;
        mimus__recording *recording = NULL;
        test_ok(test_recording_open(&recording, out));
        ck_assert_uint_eq(mimus__recording_samples(recording), SAMPLES);
        mimus__recording_free(recording);
        if (kills % 2 == 0)
            ck_assert_int_eq(unlink(out), 0);
    }
    test_ok(mimus_import(&source, out, NULL, NULL));
    ck_assert_uint_eq(entries_of(test_folder()), 2);
}
END_TEST

/* -------------------------------------------------------------------- info */

static json_t *info_of(const char *path, mimus_illegal illegal) {
    const mimus_source source = {.paths = &path, .count = 1, .illegal = illegal};
    char *text = NULL;
    test_ok(mimus_info(&source, NULL, &text));
    return parse(text);
}

START_TEST(a_recording_is_described) {
    const arrays a = sound();
    json_t *json = info_of(write_arrays("info.npz", &a), MIMUS_ILLEGAL_ERROR);
    ck_assert_double_eq(number(json, "samples"), 10);
    ck_assert_double_eq(number(json, "episodes.count"), 2);
    ck_assert_double_eq(number(json, "episodes.shortest"), 4);
    ck_assert_double_eq(number(json, "episodes.mean"), 5);
    ck_assert_double_eq(number(json, "episodes.longest"), 6);
    ck_assert_double_eq(number(json, "bytes.device_sample"), 8 + 4 + 4 + 4);
    ck_assert_double_eq(number(json, "bytes.device"), 200);
    ck_assert_double_eq(number(json, "bytes.files"), number(json, "files.0.bytes"));
    ck_assert_double_gt(number(json, "bytes.files"), 100);
    ck_assert_double_eq(number(json, "mean_weight"), 2.25);
    ck_assert_str_eq(json_string_value(at(json, "heads.0.name")), "head0");
    ck_assert_double_eq(number(json, "heads.0.labels"), 10);
    ck_assert_double_eq(number(json, "heads.0.absent"), 0);
    ck_assert_double_eq(number(json, "heads.0.counts.0"), 4);
    ck_assert_double_eq(number(json, "heads.0.shares.2"), 0.3);
    ck_assert_double_eq(number(json, "heads.0.majority"), 0);
    ck_assert_double_eq(number(json, "heads.0.majority_share"), 0.4);
    ck_assert_double_eq(number(json, "heads.0.mean_legal"), 3);
    ck_assert_double_eq(number(json, "senses.0.mean"), 4.5);
    ck_assert_double_eq_tol(number(json, "senses.0.std"), sqrt(8.25), 1e-12);
    ck_assert_double_eq(number(json, "senses.0.minimum"), 0);
    ck_assert_double_eq(number(json, "senses.0.maximum"), 9);
    ck_assert(json_is_false(at(json, "senses.0.constant")));
    ck_assert(json_is_true(at(json, "senses.1.constant")));
    ck_assert_double_eq(number(json, "constant_senses"), 1);
    ck_assert_uint_eq(json_string_length(at(json, "fingerprint")), 16);
    ck_assert(json_is_array(at(json, "metadata")) && json_is_array(at(json, "losses")));
    json_decref(json);
}
END_TEST

START_TEST(faults_are_described_not_refused) {
    const arrays a = faulty();
    const char *path = write_arrays("faults.npz", &a);
    json_t *json = info_of(path, MIMUS_ILLEGAL_ERROR);
    ck_assert_double_eq(number(json, "samples"), 10);
    ck_assert_double_eq(number(json, "faults.samples"), 4);
    ck_assert_double_eq(number(json, "faults.dropped"), 2);
    ck_assert_double_eq(number(json, "faults.weight.first_row"), 9);
    ck_assert_double_eq(number(json, "heads.0.labels"), 6);
    ck_assert_double_eq(number(json, "heads.0.absent"), 2);
    json_decref(json);
    json = info_of(path, MIMUS_ILLEGAL_DROP);
    ck_assert_double_eq(number(json, "faults.dropped"), 4);
    ck_assert_double_eq(number(json, "heads.0.absent"), 0);
    json_decref(json);
}
END_TEST

START_TEST(nothing_is_described_as_null) {
    static const mimus_head head = {.actions = 2};
    const mimus_schema schema = {.senses = 1, .heads = 1, .head = &head};
    const char *path = path_of("empty.rec");
    test_rows_write(path, &schema, NULL, 0);
    json_t *json = info_of(path, MIMUS_ILLEGAL_ERROR);
    static const char *const nulls[] = {"episodes.shortest", "episodes.mean",    "senses.0.mean",
                                        "senses.0.minimum",  "heads.0.majority", "mean_weight"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        ck_assert_msg(json_is_null(at(json, nulls[i])), "%s", nulls[i]);
    ck_assert_double_eq(number(json, "samples"), 0);
    ck_assert_double_eq(number(json, "constant_senses"), 0);
    ck_assert(json_is_false(at(json, "senses.0.constant")));
    json_decref(json);
    const char *missing = path_of("missing.rec");
    const mimus_source source = {.paths = &missing, .count = 1};
    char *text = NULL;
    test_fails(mimus_info(&source, NULL, &text), MIMUS_ERR_IO, "missing.rec");
    ck_assert_ptr_null(text);
}
END_TEST

START_TEST(real_recordings) {
    static const struct {
        const char *path;
        double samples, episodes, senses, actions, legal;
    } cases[] = {
        {MIMUS_SHARED_DATA "/imitation/cartpole_0-final.npz", 26964, 57, 4, 2, 2},
        {MIMUS_SHARED_DATA "/stable-baselines/expert_cartpole.npz", 49527, 100, 4, 2, 2},
        {MIMUS_SHARED_DATA "/othello/othello_1985.npz", 57062, 954, 128, 64, 8.1},
    };
    if (!mimus__file_exists(cases[0].path)) {
        printf("import: no %s: real recordings are not tried\n", MIMUS_SHARED_DATA);
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *out = path_of("real.rec");
        char *report = NULL;
        test_ok(import(&cases[i].path, 1, MIMUS_ILLEGAL_ERROR, out, &report));
        json_t *json = parse(report);
        ck_assert_double_eq(number(json, "samples"), cases[i].samples);
        ck_assert_double_eq(number(json, "episodes"), cases[i].episodes);
        json_decref(json);
        json = info_of(out, MIMUS_ILLEGAL_ERROR);
        ck_assert_double_eq(number(json, "samples"), cases[i].samples);
        ck_assert_double_eq(number(json, "episodes.count"), cases[i].episodes);
        ck_assert_double_eq(number(json, "schema.senses"), cases[i].senses);
        ck_assert_double_eq(number(json, "heads.0.actions"), cases[i].actions);
        ck_assert_double_eq_tol(number(json, "heads.0.mean_legal"), cases[i].legal, 0.05);
        ck_assert_double_eq(number(json, "faults.samples"), 0);
        json_decref(json);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import");
    TCase *tests = tcase_create("import");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, a_file_becomes_a_recording);
    tcase_add_test(tests, faults_refuse_drop_or_lose_labels);
    tcase_add_test(tests, files_of_several_formats_are_put_together);
    tcase_add_test(tests, files_must_agree);
    tcase_add_test(tests, what_cannot_be_imported_is_refused);
    tcase_add_test(tests, an_input_is_not_overwritten);
    tcase_add_test(tests, a_folder_that_may_not_be_written_stays_as_it_is);
    tcase_add_test(tests, a_killed_import_leaves_nothing);
    tcase_add_test(tests, importing_is_watched_and_stopped);
    tcase_add_test(tests, long_files_keep_their_order);
    tcase_add_test(tests, a_recording_is_described);
    tcase_add_test(tests, faults_are_described_not_refused);
    tcase_add_test(tests, nothing_is_described_as_null);
    tcase_add_test(tests, real_recordings);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
