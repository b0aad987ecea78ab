/* Recordings written for other programs: what is read back is what was recorded, bit for bit. What
 * NumPy, h5py and Minari make of the files is for tests/oracles. */
#include "play.h"
#include "rows.h"
#include "support.h"

#include "file.h"
#include "json.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path in the test's folder that stays for the whole test. */
static const char *path_of(const char *name) {
    static char paths[64][512];
    static unsigned used;
    ck_assert_uint_lt(used, 64);
    char *path = paths[used++];
    snprintf(path, sizeof paths[0], "%s", test_folder_path(name));
    return path;
}

static mimus_status convert(const char *from, const char *to, const mimus_watch *watch) {
    const mimus_source source = {.paths = &from, .count = 1};
    return mimus_convert(&source, to, watch, NULL);
}

static void import(const char *from, const char *to) {
    const mimus_source source = {.paths = &from, .count = 1};
    test_ok(mimus_import(&source, to, NULL, NULL));
}

static mimus__recording *open_recording(const char *path) {
    const mimus_source source = {.paths = &path, .count = 1};
    mimus__recording *recording = NULL;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    return recording;
}

/* The fingerprint is over the schema, with its names, and the checksum of every chunk. */
static void check_same(const char *one, const char *other) {
    mimus__recording *a = open_recording(one), *b = open_recording(other);
    ck_assert_uint_eq(mimus__recording_samples(a), mimus__recording_samples(b));
    ck_assert_uint_eq(mimus__recording_episodes(a), mimus__recording_episodes(b));
    ck_assert_str_eq(mimus__recording_fingerprint(a), mimus__recording_fingerprint(b));
    mimus__recording_free(a);
    mimus__recording_free(b);
}

static const char *const formats[] = {"play.npz", "play.h5", "play.hdf5"};

/* The file, converted and imported again, by way of each format; and the converted file itself. */
static void check_round_trips(const char *recording) {
    for (size_t f = 0; f < 3; f++) {
        const char *converted = path_of(formats[f]), *again = path_of("again.rec");
        test_ok(convert(recording, converted, NULL));
        import(converted, again);
        check_same(recording, again);
        check_same(recording, converted);
    }
}

static const char *const sense_names[] = {"x", "y \"quoted\"", "Höhe", "speed[0]"};
static const char *const move_names[] = {"left", "right", "stay"};
static const mimus_head named_heads[] = {{.name = "move", .actions = 3, .action_names = move_names},
                                         {.name = "fire", .actions = 70}};

START_TEST(every_kind_of_recording_comes_back) {
    static const mimus_head plain[] = {{.actions = 5}};
    static const mimus_schema schemas[] = {
        {.senses = 4,
         .sense_names = sense_names,
         .heads = 2,
         .head = named_heads,
         .masks = true,
         .weights = true},
        {.senses = 4, .heads = 2, .head = named_heads, .masks = true},
        {.senses = 1, .heads = 1, .head = plain},
        {.senses = 300, .heads = 1, .head = plain, .masks = true, .weights = true},
    };
    for (size_t s = 0; s < sizeof schemas / sizeof *schemas; s++) {
        const test_play play = {&schemas[s], (uint32_t)s, s % 2 == 0 ? 17 : 0};
        const char *path = path_of(s == 0   ? "a.rec"
                                   : s == 1 ? "b.rec"
                                   : s == 2 ? "c.rec"
                                            : "d.rec");
        test_play_record(path, &play, s == 3 ? 3000 : 400); /* several chunks */
        check_round_trips(path);
    }
}
END_TEST

START_TEST(bins_come_back_as_bins) {
    static const float edges[] = {-0.3F, 0.1F}, values[] = {-1, 0, 0.7F};
    static const mimus_head head[] = {
        {.name = "steer", .actions = 3, .bin_edges = edges, .bin_values = values}};
    static const mimus_schema schema = {.senses = 2, .heads = 1, .head = head};
    const test_play play = {&schema, 3, 20};
    const char *path = path_of("bins.rec");
    test_play_record(path, &play, 200);
    check_round_trips(path);
}
END_TEST

START_TEST(odd_numbers_come_back) {
    static const mimus_schema schema = {
        .senses = 4, .sense_names = sense_names, .heads = 2, .head = named_heads, .weights = true};
    const float odd[] = {-0.0F, FLT_MAX, -FLT_MIN, FLT_TRUE_MIN};
    const float common[] = {0.1F, 16777217.0F, -1e-30F, 3};
    const uint16_t labels[][2] = {{0, 69}, {MIMUS_NO_LABEL, MIMUS_NO_LABEL}, {2, 0}};
    const test_row rows[] = {{odd, labels[0], NULL, 0, true},
                             {common, labels[1], NULL, FLT_TRUE_MIN, false},
                             {odd, labels[2], NULL, 1e30F, true}};
    const char *path = path_of("odd.rec");
    test_rows_write(path, &schema, rows, 3);
    check_round_trips(path);
}
END_TEST

/* Rows that are left out take nothing with them: neither the start of their episode nor the next.
 */
START_TEST(what_cannot_be_learned_from_stays_behind) {
    static const mimus_schema schema = {.senses = 1, .heads = 1, .head = &named_heads[0]};
    const float good[] = {1, 2, 3, 4, 5}, bad = NAN;
    const uint16_t label = 1, wrong = 9;
    const test_row rows[] = {{&bad, &label, NULL, 1, false},     {&good[0], &label, NULL, 1, false},
                             {&good[1], &wrong, NULL, 1, true},  {&good[2], &label, NULL, 1, false},
                             {&bad, &label, NULL, 1, true},      {&bad, &label, NULL, 1, true},
                             {&good[3], &label, NULL, 1, false}, {&good[4], &label, NULL, 1, true}};
    static const struct {
        mimus_illegal illegal;
        uint64_t samples;
        float senses[5];
        uint16_t second;
    } cases[] = {{MIMUS_ILLEGAL_DROP, 4, {1, 3, 4, 5}, 1},
                 {MIMUS_ILLEGAL_IGNORE, 5, {1, 2, 3, 4, 5}, MIMUS_NO_LABEL}};
    const char *path = path_of("faulty.rec");
    test_rows_write(path, &schema, rows, 8);
    test_fails(convert(path, path_of("refused.npz"), NULL), MIMUS_ERR_DATA, "illegal drop");
    ck_assert(!mimus__file_exists(test_folder_path("refused.npz")));
    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < 2; i++) {
            const char *out = path_of(f == 0 ? "left.npz" : "left.h5");
            const mimus_source source = {.paths = &path, .count = 1, .illegal = cases[i].illegal};
            mimus__block block;
            test_ok(mimus_convert(&source, out, NULL, NULL));
            mimus__recording *recording = open_recording(out);
            ck_assert_uint_eq(mimus__recording_samples(recording), cases[i].samples);
            ck_assert_uint_eq(mimus__recording_episodes(recording), 3);
            test_ok(mimus__recording_block(recording, 0, &block));
            for (size_t k = 0; k < cases[i].samples; k++)
                ck_assert_float_eq(block.senses[k], cases[i].senses[k]);
            ck_assert_uint_eq(block.actions[1], cases[i].second);
            mimus__recording_free(recording);
        }
    }
}
END_TEST

START_TEST(minari_gets_a_folder_with_metadata) {
    static const mimus_schema schema = {
        .senses = 4, .sense_names = sense_names, .heads = 2, .head = named_heads};
    const test_play play = {&schema, 5, 10};
    const char *path = path_of("play.rec"), *folder = path_of("my set-v3");
    char out[600], beside[600];
    json_t *metadata = NULL, *space = NULL;
    snprintf(out, sizeof out, "%s/data/main_data.hdf5", folder);
    snprintf(beside, sizeof beside, "%s/data/metadata.json", folder);
    test_play_record(path, &play, 95);
    test_ok(convert(path, out, NULL));
    check_same(path, folder);
    test_ok(mimus__json_read(&metadata, beside));
    ck_assert_str_eq(json_string_value(json_object_get(metadata, "dataset_id")), "my_set-v3");
    ck_assert_int_eq(json_integer_value(json_object_get(metadata, "total_episodes")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(metadata, "total_steps")), 95);
    const char *text = json_string_value(json_object_get(metadata, "action_space"));
    test_ok(mimus__json_parse(&space, text, strlen(text), "action_space"));
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(space, "nvec"), 1)), 70);
    json_decref(space);
    json_decref(metadata);
}
END_TEST

static size_t entries_of(const char *folder) {
    size_t count = 0;
    DIR *stream = opendir(folder);
    ck_assert_ptr_nonnull(stream);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count;
}

static bool stop(void *user) {
    return ++*(int *)user > 2;
}

START_TEST(what_fails_leaves_the_old_file) {
    static const mimus_schema schema = {.senses = 40, .heads = 1, .head = named_heads};
    const test_play play = {&schema, 1, 0};
    const char *path = path_of("play.rec");
    test_play_record(path, &play, 20000);
    for (size_t f = 0; f < 2; f++) {
        const char *out = path_of(formats[f]);
        int looks = 0;
        const mimus_watch watch = {.user = &looks, .should_stop = stop};
        test_file_write(out, "old", 3);
        size_t entries = entries_of(test_folder()), size = 0;
        char *bytes = NULL;
        test_fails(convert(path, out, &watch), MIMUS_ERR_STOPPED, "stopped on request after");
        test_ok(mimus__file_read(out, 1 << 20, &bytes, &size));
        ck_assert_uint_eq(size, 3);
        free(bytes);
        ck_assert_uint_eq(entries_of(test_folder()), entries);
        test_ok(convert(path, out, NULL)); /* and takes its place when all is well */
        check_same(path, out);
    }
}
END_TEST

START_TEST(what_makes_no_sense_is_refused) {
    static const mimus_schema schema = {.senses = 1, .heads = 1, .head = named_heads};
    const test_play play = {&schema, 1, 0};
    const char *path = path_of("play.rec"), *npz = path_of("play.npz");
    test_play_record(path, &play, 10);
    test_fails(convert(path, path_of("play.csv"), NULL), MIMUS_ERR_ARGUMENT,
               "should end in .npz, .h5 or .hdf5; import writes a .rec");
    test_fails(convert(path, ".npz", NULL), MIMUS_ERR_ARGUMENT, "should end in");
    test_fails(convert(path, path_of("none/such/play.h5"), NULL), MIMUS_ERR_IO, "cannot write");
    test_fails(convert(path, path_of("none/such/play.npz"), NULL), MIMUS_ERR_IO, "cannot write");
    test_fails(mimus_convert(NULL, npz, NULL, NULL), MIMUS_ERR_ARGUMENT, "needed");
    test_ok(convert(path, npz, NULL));
    test_fails(convert(npz, npz, NULL), MIMUS_ERR_ARGUMENT, "is read here");
    test_play_record(path_of("empty.rec"), &play, 0);
    test_fails(convert(test_folder_path("empty.rec"), path_of("empty.npz"), NULL), MIMUS_ERR_DATA,
               "there is no sample to write");
}
END_TEST

static void clean(void) {
    test_folder_remove();
}

int main(void) {
    Suite *suite = suite_create("convert");
    TCase *all = tcase_create("convert");
    tcase_add_checked_fixture(all, NULL, clean);
    tcase_add_test(all, every_kind_of_recording_comes_back);
    tcase_add_test(all, bins_come_back_as_bins);
    tcase_add_test(all, odd_numbers_come_back);
    tcase_add_test(all, what_cannot_be_learned_from_stays_behind);
    tcase_add_test(all, minari_gets_a_folder_with_metadata);
    tcase_add_test(all, what_fails_leaves_the_old_file);
    tcase_add_test(all, what_makes_no_sense_is_refused);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
