/* Recording: what is refused, going on with a file, full disks, and being killed. */
#include "play.h"
#include "support.h"

#include "chunk.h"
#include "file.h"
#include "rng.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const sense_names[] = {"x", "y", "speed"};
static const mimus_head heads[] = {{.name = "move", .actions = 3}, {.name = "fire", .actions = 2}};
static const mimus_schema small = {3, sense_names, 2, heads, true, true};
static const mimus_schema plain = {3, NULL, 2, heads, false, false};
static const test_play small_play = {&small, 1, 10};

static mimus_recorder *open_new(const char *path, const mimus_schema *schema) {
    mimus_recorder *recorder = NULL;
    test_ok(mimus_recorder_open(&recorder, path, schema, MIMUS_RECORDER_CREATE));
    return recorder;
}

static mimus_recorder *open_again(const char *path, const mimus_schema *schema) {
    mimus_recorder *recorder = NULL;
    test_ok(mimus_recorder_open(&recorder, path, schema, MIMUS_RECORDER_APPEND));
    return recorder;
}

static mimus__recording *read_back(const char *path) {
    mimus__recording *recording = NULL;
    test_ok(test_recording_open(&recording, path));
    return recording;
}

static size_t losses(const mimus__recording *recording) {
    return json_array_size(mimus__recording_losses(recording));
}

/* Whether a file holds `count` samples of the play and was closed. */
static void holds(const char *path, const test_play *play, uint64_t count) {
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_samples(recording), count);
    ck_assert_uint_eq(losses(recording), 0);
    test_play_check(recording, 0, play, count);
    mimus__recording_free(recording);
}

static uint64_t file_bytes(const char *path) {
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* ----------------------------------------------------------------- opening */

START_TEST(opening_refuses_what_it_must) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *recorder = NULL;
    mimus_schema bad = plain;
    bad.senses = (1 << 20) + 1;
    test_fails(mimus_recorder_open(&recorder, NULL, &plain, MIMUS_RECORDER_CREATE),
               MIMUS_ERR_ARGUMENT, "needs a path");
    test_fails(mimus_recorder_open(&recorder, path, NULL, MIMUS_RECORDER_CREATE),
               MIMUS_ERR_ARGUMENT, "needs a path and a schema");
    test_fails(mimus_recorder_open(&recorder, path, &bad, MIMUS_RECORDER_CREATE), MIMUS_ERR_SCHEMA,
               "senses, not 1048577");
    test_fails(
        mimus_recorder_open(&recorder, test_folder_path("no/a.rec"), &plain, MIMUS_RECORDER_CREATE),
        MIMUS_ERR_IO, "no/a.rec: cannot record: No such file");
    test_fails(mimus_recorder_open(&recorder, test_folder(), &plain, MIMUS_RECORDER_APPEND),
               MIMUS_ERR_IO, "cannot record: Is a directory");
    test_fails(mimus_recorder_open(&recorder, "/dev/null", &plain, MIMUS_RECORDER_APPEND),
               MIMUS_ERR_IO, "not a regular file");
    ck_assert(!mimus__file_exists(path));
    ck_assert_ptr_null(recorder);

    test_play_record(path, &small_play, 5);
    test_fails(mimus_recorder_open(&recorder, path, &small, MIMUS_RECORDER_CREATE), MIMUS_ERR_IO,
               "a.rec: cannot record: there is such a file already; add to it with "
               "MIMUS_RECORDER_APPEND");
    holds(path, &small_play, 5);
    test_ok(mimus_recorder_close(NULL));
}
END_TEST

START_TEST(two_recorders_do_not_share_a_file) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *first = open_new(path, &small), *second = NULL;
    test_fails(mimus_recorder_open(&second, path, &small, MIMUS_RECORDER_APPEND), MIMUS_ERR_BUSY,
               "a.rec: another recorder");
    pid_t child = fork();
    if (child == 0)
        _exit((int)mimus_recorder_open(&second, path, &small, MIMUS_RECORDER_APPEND));
    int result = 0;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result) && WEXITSTATUS(result) == MIMUS_ERR_BUSY);
    test_ok(test_play_append(first, &small_play, 0, 3));
    test_ok(mimus_recorder_close(first));
    second = open_again(path, &small);
    test_ok(mimus_recorder_close(second));
    holds(path, &small_play, 3);
}
END_TEST

/* ----------------------------------------------------------------- samples */

START_TEST(bad_samples_are_named_and_not_added) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = open_new(path, &small);
    test_ok(test_play_append(r, &small_play, 0, 4));
    const float good[] = {1, 2, 3};
    const uint16_t actions[] = {2, 1}, out_of_range[] = {3, 1}, unlabelled[] = {2, MIMUS_NO_LABEL};
    const uint8_t legal[] = {0, 0, 1, 1, 0};
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t b = 0; b < 4; b++) {
        for (size_t s = 0; s < 3; s++) {
            float senses[] = {1, 2, 3};
            char part[64];
            senses[s] = bad[b];
            snprintf(part, sizeof part, "sample 4: sense %zu (%s) is ", s, sense_names[s]);
            test_fails(mimus_recorder_append(r, senses, actions, NULL, 1), MIMUS_ERR_DATA, part);
        }
        test_fails(mimus_recorder_append(r, good, actions, NULL, bad[b]), MIMUS_ERR_DATA,
                   "sample 4: its weight is");
    }
    test_fails(mimus_recorder_append(r, good, actions, NULL, -0.5f), MIMUS_ERR_DATA,
               "its weight is -0.5: it must be 0 or more");
    test_fails(mimus_recorder_append(r, good, out_of_range, NULL, 1), MIMUS_ERR_DATA,
               "sample 4: head 0 (move): action 3, and it has 3");
    test_fails(mimus_recorder_append(r, good, actions, legal, 1), MIMUS_ERR_DATA,
               "sample 4: head 1 (fire): action 1 is not legal");
    test_fails(mimus_recorder_append(r, NULL, actions, NULL, 1), MIMUS_ERR_ARGUMENT, "senses");
    test_fails(mimus_recorder_append(r, good, NULL, NULL, 1), MIMUS_ERR_ARGUMENT, "actions");
    test_ok(test_play_append(r, &small_play, 4, 20));
    test_ok(mimus_recorder_append(r, good, unlabelled, legal, 0));
    test_ok(mimus_recorder_close(r));
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_samples(recording), 25);
    test_play_check(recording, 0, &small_play, 24);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(what_the_schema_lacks_is_refused) {
    mimus_recorder *r = open_new(test_folder_path("a.rec"), &plain);
    const float senses[] = {1, NAN, 3}, good[] = {-3.4e38f, 1e-45f, -0.0f};
    const uint16_t actions[] = {2, 1};
    const uint8_t legal[] = {1, 1, 1, 1, 1};
    test_fails(mimus_recorder_append(r, good, actions, legal, 1), MIMUS_ERR_ARGUMENT,
               "the schema has no masks");
    test_fails(mimus_recorder_append(r, good, actions, NULL, 2), MIMUS_ERR_DATA,
               "it must be 1, as the schema has no weights");
    test_fails(mimus_recorder_append(r, senses, actions, NULL, 1), MIMUS_ERR_DATA,
               "sample 0: sense 1 is nan: it must be finite");
    test_ok(mimus_recorder_append(r, good, actions, NULL, 1));
    test_ok(mimus_recorder_close(r));
}
END_TEST

/* A player who sees nothing but what is legal: there is no pointer to senses either. */
START_TEST(there_may_be_no_senses) {
    const char *path = test_folder_path("blind.rec");
    const mimus_schema schema = {.heads = 2, .head = heads, .masks = true};
    static const uint16_t actions[] = {2, 0};
    static const uint8_t legal[] = {0, 0, 1, 1, 0};
    mimus__block block;
    mimus_recorder *recorder = open_new(path, &schema);
    for (int i = 0; i < 3; i++)
        test_ok(mimus_recorder_append(recorder, NULL, actions, legal, 1));
    test_ok(mimus_recorder_close(recorder));
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_schema(recording)->senses, 0);
    ck_assert_uint_eq(mimus__recording_samples(recording), 3);
    test_ok(mimus__recording_block(recording, 0, &block));
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_mem_eq(block.actions + i * 2, actions, sizeof actions);
        ck_assert_uint_eq(block.masks[i], 0xC);
    }
    mimus__recording_free(recording);
}
END_TEST

START_TEST(ends_of_episodes_do_not_add_up) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = open_new(path, &small);
    test_ok(mimus_recorder_end_episode(r));
    test_ok(mimus_recorder_end_episode(r));
    test_ok(test_play_append(r, &small_play, 0, 20)); /* two episodes */
    test_ok(mimus_recorder_end_episode(r));
    test_ok(mimus_recorder_flush(r));
    test_ok(mimus_recorder_end_episode(r));
    test_ok(test_play_append(r, &small_play, 20, 1));
    test_ok(mimus_recorder_end_episode(r));
    test_ok(mimus_recorder_close(r));
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_episodes(recording), 3);
    ck_assert_uint_eq(mimus__recording_blocks(recording), 2);
    test_play_check(recording, 0, &small_play, 21);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(a_flush_is_there_for_others) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = open_new(path, &small);
    test_ok(mimus_recorder_flush(r)); /* nothing: no chunk */
    uint64_t empty = file_bytes(path);
    test_ok(test_play_append(r, &small_play, 0, 33));
    ck_assert_uint_eq(file_bytes(path), empty);
    test_ok(mimus_recorder_flush(r));
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_samples(recording), 33);
    ck_assert_uint_eq(losses(recording), 1); /* it is not closed yet */
    test_play_check(recording, 0, &small_play, 33);
    mimus__recording_free(recording);
    test_ok(test_play_append(r, &small_play, 33, 1));
    test_ok(mimus_recorder_close(r));
    holds(path, &small_play, 34);
}
END_TEST

/* ---------------------------------------------------------------- metadata */

static const json_t *metadata_of(const mimus__recording *recording) {
    ck_assert_uint_eq(json_array_size(mimus__recording_metadata(recording)), 1);
    return json_array_get(mimus__recording_metadata(recording), 0);
}

static void metadata_is(const char *path, const char *want) {
    mimus__recording *recording = read_back(path);
    char *text = NULL;
    test_ok(mimus__json_text(&text, metadata_of(recording), JSON_COMPACT));
    ck_assert_str_eq(text, want);
    free(text);
    mimus__recording_free(recording);
}

START_TEST(metadata_is_kept_unless_replaced) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = open_new(path, &small);
    test_ok(mimus_recorder_close(r));
    metadata_is(path, "{}");
    r = open_again(path, &small);
    test_ok(mimus_recorder_set_metadata(r, "{\"map\": 1}"));
    test_ok(mimus_recorder_set_metadata(r, "{\"map\": [\"caf\xC3\xA9\", 1.5]}"));
    test_ok(mimus_recorder_close(r));
    r = open_again(path, &small);
    test_ok(test_play_append(r, &small_play, 0, 7));
    test_ok(mimus_recorder_close(r));
    metadata_is(path, "{\"map\":[\"caf\xC3\xA9\",1.5]}");
    r = open_again(path, &small);
    test_ok(mimus_recorder_set_metadata(r, "{}"));
    test_ok(mimus_recorder_close(r));
    metadata_is(path, "{}");
    holds(path, &small_play, 7);
}
END_TEST

START_TEST(bad_metadata_is_refused) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = open_new(path, &small);
    test_ok(mimus_recorder_set_metadata(r, "{\"kept\":true}"));
    test_fails(mimus_recorder_set_metadata(r, NULL), MIMUS_ERR_ARGUMENT, "object");
    test_fails(mimus_recorder_set_metadata(r, "[1]"), MIMUS_ERR_FORMAT, "object is needed");
    test_fails(mimus_recorder_set_metadata(r, "{\"a\""), MIMUS_ERR_FORMAT, "not valid JSON");
    const size_t length = MIMUS__REC_JSON_LIMIT;
    char *large = malloc(length + 1);
    memset(large, 'a', length);
    memcpy(large, "{\"a\":\"", 6);
    memcpy(large + length - 2, "\"}", 3);
    test_fails(mimus_recorder_set_metadata(r, large), MIMUS_ERR_ARGUMENT, "at most 16776960");
    free(large);
    test_ok(mimus_recorder_close(r));
    metadata_is(path, "{\"kept\":true}");
}
END_TEST

/* --------------------------------------------------------------- appending */

START_TEST(appending_goes_on) {
    const char *path = test_folder_path("a.rec");
    uint64_t count = 0;
    for (uint32_t session = 1; session <= 5; session++) { /* the first one makes the file */
        mimus_recorder *r = open_again(path, &small);
        test_ok(test_play_append(r, &small_play, count, 10 * session));
        test_ok(mimus_recorder_close(r));
        count += 10 * session;
        holds(path, &small_play, count);
    }
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_episodes(recording), 15);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(each_session_begins_an_episode) {
    const char *path = test_folder_path("a.rec");
    const test_play one = {&small, 2, 0};
    test_play_record(path, &one, 5);
    mimus_recorder *r = open_again(path, &small);
    test_ok(test_play_append(r, &one, 1, 5)); /* none of these begins one by itself */
    test_ok(mimus_recorder_close(r));
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_episodes(recording), 2);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(appending_nothing_changes_nothing) {
    const char *path = test_folder_path("a.rec");
    char *before = NULL, *after = NULL;
    size_t bytes = 0, bytes_after = 0;
    test_play_record(path, &small_play, 12);
    test_ok(mimus__file_read(path, 1 << 20, &before, &bytes));
    mimus_recorder *r = open_again(path, &small);
    test_ok(mimus_recorder_end_episode(r));
    test_ok(mimus_recorder_flush(r));
    test_ok(mimus_recorder_close(r));
    test_ok(mimus__file_read(path, 1 << 20, &after, &bytes_after));
    ck_assert_uint_eq(bytes, bytes_after);
    ck_assert_mem_eq(before, after, bytes);
    free(before);
    free(after);
}
END_TEST

START_TEST(another_schema_does_not_append) {
    const char *path = test_folder_path("a.rec");
    mimus_recorder *r = NULL;
    mimus_schema other = small;
    test_play_record(path, &small_play, 3);
    other.senses = 2;
    test_fails(mimus_recorder_open(&r, path, &other, MIMUS_RECORDER_APPEND), MIMUS_ERR_SCHEMA,
               "senses: 3 in ");
    other = small;
    other.weights = false;
    test_fails(mimus_recorder_open(&r, path, &other, MIMUS_RECORDER_APPEND), MIMUS_ERR_SCHEMA,
               "a.rec has weights and the recorder's schema has none");
    ck_assert_ptr_null(r);
    holds(path, &small_play, 3);
}
END_TEST

START_TEST(other_files_are_left_alone) {
    const char *path = test_folder_path("a.txt");
    mimus_recorder *r = NULL;
    char *text = NULL;
    size_t bytes = 0;
    test_file_write(path, "a letter to my aunt", 19);
    test_fails(mimus_recorder_open(&r, path, &small, MIMUS_RECORDER_APPEND), MIMUS_ERR_FORMAT,
               "a.txt: not a .rec file");
    test_ok(mimus__file_read(path, 100, &text, &bytes));
    ck_assert_str_eq(text, "a letter to my aunt");
    free(text);
}
END_TEST

/* Three chunks of 30, 30 and 5 samples, closed; where they end. */
typedef struct layout {
    uint64_t end[4]; /* of the header and the chunks */
    uint64_t bytes;
} layout;

static layout record_three(const char *path) {
    layout l;
    const uint64_t samples[] = {0, 30, 60, 65};
    mimus_recorder *r = open_new(path, &small);
    l.end[0] = file_bytes(path);
    for (int i = 1; i < 4; i++) {
        test_ok(test_play_append(r, &small_play, samples[i - 1], samples[i] - samples[i - 1]));
        test_ok(mimus_recorder_flush(r));
        l.end[i] = file_bytes(path);
    }
    test_ok(mimus_recorder_close(r));
    l.bytes = file_bytes(path);
    return l;
}

START_TEST(appending_mends_a_cut_file) {
    const char *whole = test_folder_path("whole.rec"), *path = test_folder_path("cut.rec");
    char *bytes = NULL;
    size_t count = 0;
    const layout l = record_three(whole);
    test_ok(mimus__file_read(whole, 1 << 20, &bytes, &count));
    ck_assert_uint_eq(count, l.bytes);
    for (size_t cut = 0; cut <= count; cut += cut < 80 || cut + 80 > count ? 1 : 61) {
        const uint64_t kept = cut < l.end[1] ? 0 : cut < l.end[2] ? 30 : cut < l.end[3] ? 60 : 65;
        test_file_write(path, bytes, cut);
        mimus_recorder *r = open_again(path, &small);
        test_ok(test_play_append(r, &small_play, kept, 70 - kept));
        test_ok(mimus_recorder_close(r));
        mimus__recording *recording = read_back(path);
        ck_assert_uint_eq(mimus__recording_samples(recording), 70);
        ck_assert_uint_eq(losses(recording), 0);
        mimus__recording_free(recording);
    }
    free(bytes);
}
END_TEST

/* Damage that has good chunks behind it must not be "mended" by cutting those off. */
START_TEST(appending_refuses_damage_in_the_middle) {
    const char *path = test_folder_path("a.rec");
    const layout l = record_three(path);
    mimus_recorder *r = NULL;
    ck_assert_int_eq(truncate(path, (off_t)l.end[3]), 0); /* not closed */
    int descriptor = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(descriptor, "!", 1, (off_t)l.end[0] + 9), 1);
    close(descriptor);
    test_fails(mimus_recorder_open(&r, path, &small, MIMUS_RECORDER_APPEND), MIMUS_ERR_FORMAT,
               "its header is damaged");
    ck_assert_uint_eq(file_bytes(path), l.end[3]);
}
END_TEST

/* --------------------------------------------------------------- full disk */

static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static const mimus_schema wide = {1000, NULL, 2, heads, true, true};
static const test_play wide_play = {&wide, 3, 100};

START_TEST(a_full_disk_is_told_and_costs_nothing) {
    const char *path = test_folder_path("a.rec");
    const uint32_t chunk = mimus__chunk_capacity(&wide);
    mimus_recorder *r = open_new(path, &wide);
    limit_files(2500000); /* two chunks of 1 MiB, and a part of the third */
    test_ok(test_play_append(r, &wide_play, 0, 3 * chunk));
    test_sample sample = test_play_sample(&wide_play, 3 * chunk);
    for (int i = 0; i < 3; i++) {
        test_fails(mimus_recorder_append(r, sample.senses, sample.actions, sample.legal, 1),
                   MIMUS_ERR_IO, "a.rec: cannot write: File too large");
        test_fails(mimus_recorder_flush(r), MIMUS_ERR_IO, "cannot write: File too large");
    }
    test_sample_free(&sample);
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_samples(recording), 2 * chunk);
    ck_assert_uint_eq(losses(recording), 1);
    const json_t *loss = json_array_get(mimus__recording_losses(recording), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(loss, "bytes")), 0); /* cut off again */
    test_play_check(recording, 0, &wide_play, 2 * chunk);
    mimus__recording_free(recording);
    limit_files(RLIM_INFINITY); /* somebody tidied up: nothing that was accepted is lost */
    test_ok(test_play_append(r, &wide_play, 3 * chunk, 5));
    test_ok(mimus_recorder_close(r));
    holds(path, &wide_play, 3 * chunk + 5);
}
END_TEST

START_TEST(closing_on_a_full_disk_does_not_lie) {
    const char *path = test_folder_path("a.rec");
    const uint32_t chunk = mimus__chunk_capacity(&wide);
    mimus_recorder *r = open_new(path, &wide);
    limit_files(1500000);
    test_ok(test_play_append(r, &wide_play, 0, 2 * chunk));
    test_fails(mimus_recorder_close(r), MIMUS_ERR_IO, "a.rec: cannot write: File too large");
    mimus__recording *recording = read_back(path);
    ck_assert_uint_eq(mimus__recording_samples(recording), chunk);
    ck_assert_uint_eq(losses(recording), 1);
    test_play_check(recording, 0, &wide_play, chunk);
    mimus__recording_free(recording);

    limit_files(file_bytes(path)); /* the chunks fit, the closing record does not */
    r = open_again(path, &wide);
    test_fails(mimus_recorder_close(r), MIMUS_ERR_IO, "cannot write: File too large");
    recording = read_back(path);
    ck_assert_uint_eq(losses(recording), 1);
    mimus__recording_free(recording);
}
END_TEST

/* In a process of its own: check could not write its notes under this limit either. */
START_TEST(a_file_that_could_not_begin_is_not_left) {
    const char *path = test_folder_path("a.rec");
    pid_t child = fork();
    if (child == 0) {
        mimus_recorder *r = NULL;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){50, 50});
        _exit((int)mimus_recorder_open(&r, path, &small, MIMUS_RECORDER_CREATE));
    }
    int result = 0;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result) && WEXITSTATUS(result) == MIMUS_ERR_IO);
    ck_assert(!mimus__file_exists(path));
}
END_TEST

/* ----------------------------------------------------------- documentation */

static void record_example(const char *path) {
    static const char *const senses[] = {"x", "speed"};
    static const char *const jump[] = {"no", "yes"};
    static const mimus_head example_heads[] = {
        {.name = "move", .actions = 3}, {.name = "jump", .actions = 2, .action_names = jump}};
    static const mimus_schema schema = {2, senses, 2, example_heads, true, true};
    mimus_recorder *r = open_new(path, &schema);
    test_ok(mimus_recorder_set_metadata(r, "{\"game\": \"arena\"}"));
    test_ok(mimus_recorder_append(r, (float[]){0.5f, -1}, (uint16_t[]){2, 0}, NULL, 1));
    test_ok(mimus_recorder_append(r, (float[]){1, 2}, (uint16_t[]){0, 1},
                                  (uint8_t[]){1, 0, 1, 0, 1}, 0.25f));
    test_ok(mimus_recorder_end_episode(r));
    test_ok(mimus_recorder_append(r, (float[]){0, 0}, (uint16_t[]){1, MIMUS_NO_LABEL}, NULL, 1));
    test_ok(mimus_recorder_close(r));
}

/* One line of `hexdump -C`: false when it is none. */
static bool read_dump_line(const char *line, uint64_t *offset, uint8_t row[16]) {
    char *end;
    *offset = strtoull(line, &end, 16);
    if (end != line + 8)
        return false;
    for (int i = 0; i < 16; i++) {
        const char *digits = end;
        row[i] = (uint8_t)strtoul(digits, &end, 16);
        if (end == digits)
            return false;
    }
    return true;
}

/* The bytes of the dump in docs/recording.md; their number. */
static size_t read_dump(uint8_t *bytes, size_t limit) {
    char *text = NULL;
    size_t count = 0, length = 0;
    uint8_t row[16] = {0}, last[16] = {0};
    test_ok(mimus__file_read(MIMUS_TEST_DATA "/../../docs/recording.md", 1 << 20, &text, &length));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        uint64_t offset;
        if (!read_dump_line(line, &offset, row))
            continue;
        for (; count < offset && count + 16 <= limit; count += 16) /* a star */
            memcpy(bytes + count, last, 16);
        ck_assert_uint_eq(count, offset);
        ck_assert_uint_le(count + 16, limit);
        memcpy(bytes + count, row, 16);
        memcpy(last, row, 16);
        count += 16;
    }
    free(text);
    return count;
}

START_TEST(the_documented_bytes_are_written) {
    const char *path = test_folder_path("example.rec");
    uint8_t want[1024];
    char *got = NULL;
    size_t bytes = 0;
    record_example(path);
    test_ok(mimus__file_read(path, 1 << 20, &got, &bytes));
    ck_assert_uint_eq(read_dump(want, sizeof want), bytes);
    ck_assert_mem_eq(got, want, bytes);
    free(got);
}
END_TEST

/* ---------------------------------------------------------------- kill -9 */

/* Records until killed; tells through the pipe how many samples have been appended. */
static void record_forever(const char *path, int pipe) {
    mimus_recorder *r = NULL;
    if (mimus_recorder_open(&r, path, &wide, MIMUS_RECORDER_APPEND) != MIMUS_OK)
        _exit(1);
    for (uint64_t i = 0;; i++) {
        if (test_play_append(r, &wide_play, i, 1) != MIMUS_OK ||
            (i % 97 == 96 && mimus_recorder_flush(r) != MIMUS_OK) ||
            write(pipe, &i, sizeof i) != sizeof i)
            _exit(2);
    }
}

/* Kill a recorder at some moment; the number of samples that it said it had appended. */
static uint64_t record_and_kill(const char *path, mimus__rng *rng) {
    int ends[2];
    uint64_t appended = 0, last;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        record_forever(path, ends[1]);
    }
    close(ends[1]);
    const struct timespec pause = {0, (long)mimus__rng_below(rng, 30000000)};
    const uint64_t wanted = mimus__rng_below(rng, 400);
    while (appended < wanted && read(ends[0], &last, sizeof last) == sizeof last)
        appended = last + 1;
    if (mimus__rng_below(rng, 2) == 0) /* the pipe fills: some die in it, some in a write */
        nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    while (read(ends[0], &last, sizeof last) == sizeof last)
        appended = last + 1;
    close(ends[0]);
    int result = 0;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    return appended;
}

START_TEST(what_was_finished_survives_a_kill) {
    const char *path = test_folder_path("a.rec");
    const uint32_t chunk = mimus__chunk_capacity(&wide);
    mimus__rng rng = {.seed = (uint64_t)time(NULL)};
    uint64_t survived = 0;
    printf("kill test: seed %llu\n", (unsigned long long)rng.seed);
    for (int round = 0; round < 50; round++) {
        uint64_t appended = record_and_kill(path, &rng);
        if (!mimus__file_exists(path) || file_bytes(path) == 0)
            continue; /* killed before it began */
        mimus__recording *recording = read_back(path);
        const uint64_t samples = mimus__recording_samples(recording);
        ck_assert_uint_eq(losses(recording), 1);
        ck_assert_uint_le(samples, appended + 1); /* one may be appended and not yet told */
        ck_assert_uint_ge(samples + 97 + 1, appended);
        ck_assert_uint_ge(samples + chunk, appended);
        test_play_check(recording, 0, &wide_play, samples);
        mimus__recording_free(recording);
        survived += samples;

        mimus_recorder *r = open_again(path, &wide); /* and it can go on */
        test_ok(test_play_append(r, &wide_play, samples, 3));
        test_ok(mimus_recorder_close(r));
        recording = read_back(path);
        ck_assert_uint_eq(mimus__recording_samples(recording), samples + 3);
        ck_assert_uint_eq(losses(recording), 0);
        mimus__recording_free(recording);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_uint_gt(survived, 0);
}
END_TEST

START_TEST(a_recorder_that_did_not_open_says_so) {
    const float sense = 0;
    const uint16_t action = 0;
    test_fails(mimus_recorder_append(NULL, &sense, &action, NULL, 1), MIMUS_ERR_ARGUMENT,
               "no recorder");
    test_fails(mimus_recorder_end_episode(NULL), MIMUS_ERR_ARGUMENT, "no recorder");
    test_fails(mimus_recorder_set_metadata(NULL, "{}"), MIMUS_ERR_ARGUMENT, "no recorder");
    test_fails(mimus_recorder_flush(NULL), MIMUS_ERR_ARGUMENT, "no recorder");
    test_ok(mimus_recorder_close(NULL));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("recorder");
    TCase *tests = tcase_create("recorder");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, a_recorder_that_did_not_open_says_so);
    tcase_add_test(tests, opening_refuses_what_it_must);
    tcase_add_test(tests, two_recorders_do_not_share_a_file);
    tcase_add_test(tests, bad_samples_are_named_and_not_added);
    tcase_add_test(tests, what_the_schema_lacks_is_refused);
    tcase_add_test(tests, there_may_be_no_senses);
    tcase_add_test(tests, ends_of_episodes_do_not_add_up);
    tcase_add_test(tests, a_flush_is_there_for_others);
    tcase_add_test(tests, metadata_is_kept_unless_replaced);
    tcase_add_test(tests, bad_metadata_is_refused);
    tcase_add_test(tests, appending_goes_on);
    tcase_add_test(tests, each_session_begins_an_episode);
    tcase_add_test(tests, appending_nothing_changes_nothing);
    tcase_add_test(tests, another_schema_does_not_append);
    tcase_add_test(tests, other_files_are_left_alone);
    tcase_add_test(tests, appending_mends_a_cut_file);
    tcase_add_test(tests, appending_refuses_damage_in_the_middle);
    tcase_add_test(tests, a_full_disk_is_told_and_costs_nothing);
    tcase_add_test(tests, closing_on_a_full_disk_does_not_lie);
    tcase_add_test(tests, a_file_that_could_not_begin_is_not_left);
    tcase_add_test(tests, the_documented_bytes_are_written);
    tcase_add_test(tests, what_was_finished_survives_a_kill);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
