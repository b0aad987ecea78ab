/* Reading .npz files: layouts, types, options, and what is refused; the table of readers. */
#include "capture.h"
#include "npz_file.h"
#include "support.h"

#include "file.h"
#include "heads.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const *options_of(const char *const *options) {
    return options;
}
#define OPTIONS(...) options_of((const char *const[]){__VA_ARGS__, NULL})

static mimus_status read_with(test_capture *capture, const char *path, const char *const *options,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus__reader *reader = NULL;
    MIMUS_TRY(mimus__reader_find(&reader, NULL, path));
    MIMUS_TRY(mimus__reader_check(reader, options));
    MIMUS_TRY(reader->read(path, options, &capture->sink, watch));
out:
    return status;
}

/* Read into a new capture, which the caller frees. */
static test_capture must_read(const char *path, const char *const *options) {
    test_capture capture = test_capture_new();
    test_ok(read_with(&capture, path, options, NULL));
    return capture;
}

/* Assert that reading fails so, in a message that names the file. */
static void must_fail(const char *path, const char *const *options, mimus_status expected,
                      const char *part) {
    test_capture capture = test_capture_new();
    test_fails(read_with(&capture, path, options, NULL), expected, part);
    test_capture_free(&capture);
}

/* Six samples of two senses (row, -row) and labels 0 1 2 0 1 2, and what else the test adds. */
enum { ROWS = 6 };
static const int64_t LABELS[ROWS] = {0, 1, 2, 0, 1, 2};

static test_npz *create_plain(const char *path, bool deflate, const char *senses,
                              const char *actions) {
    float obs[ROWS][2];
    for (int i = 0; i < ROWS; i++) {
        obs[i][0] = (float)i;
        obs[i][1] = (float)-i;
    }
    test_npz *npz = test_npz_create(path, deflate);
    test_npz_add(npz, senses, "<f4", "(6, 2)", obs, sizeof obs);
    test_npz_add(npz, actions, "<i8", "(6,)", LABELS, sizeof LABELS);
    return npz;
}

static void check_plain(const test_capture *c) {
    ck_assert_uint_eq(c->samples, ROWS);
    ck_assert_uint_eq(c->schema->senses, 2);
    ck_assert_uint_eq(c->schema->heads, 1);
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert_float_eq(c->senses[i * 2], (float)i);
        ck_assert_float_eq(c->senses[i * 2 + 1], -(float)i);
        ck_assert_int_eq(c->actions[i], LABELS[i]);
        ck_assert_float_eq(c->weights[i], 1);
    }
}

static void check_ends(const test_capture *c, const char *ends) {
    ck_assert_uint_eq(c->samples, strlen(ends));
    for (size_t i = 0; i < c->samples; i++)
        ck_assert_msg(c->ends[i] == (ends[i] == '|'), "row %zu of %s", i, ends);
}

START_TEST(plain_arrays_are_one_episode) {
    const char *path = test_folder_path("plain.npz");
    for (int deflate = 0; deflate < 2; deflate++) {
        test_npz_close(create_plain(path, deflate != 0, "observations", "acts"));
        test_capture c = must_read(path, NULL);
        check_plain(&c);
        check_ends(&c, ".....|");
        ck_assert_uint_eq(c.schema->head[0].actions, 3);
        ck_assert(!c.schema->masks && !c.schema->weights);
        test_capture_free(&c);
    }
}
END_TEST

START_TEST(starts_dones_and_indices_split_episodes) {
    const char *path = test_folder_path("episodes.npz");
    const bool starts[ROWS] = {true, false, true, false, false, true};
    const float dones[ROWS] = {0, 1, 0, 0, 0, 0};
    const uint8_t timeouts[ROWS] = {0, 0, 0, 0, 1, 0};
    const int32_t indices[2] = {1, 4};
    test_npz *npz = create_plain(path, false, "obs", "actions");
    test_npz_add(npz, "episode_starts", "|b1", "(6,)", starts, sizeof starts);
    test_npz_add(npz, "dones", "<f4", "(6, 1)", dones, sizeof dones);
    test_npz_add(npz, "timeouts", "|u1", "(6,)", timeouts, sizeof timeouts);
    test_npz_add(npz, "indices", "<i4", "(2,)", indices, sizeof indices);
    test_npz_close(npz);
    static const struct {
        const char *options[4];
        const char *ends;
    } cases[] = {
        {{NULL}, ".|..||"},
        {{"starts=episode_starts", NULL}, ".|..||"},
        {{"starts=", NULL}, "|..|.|"},
        {{"indices=indices", NULL}, "|..|.|"},
        {{"starts=", "indices=", NULL}, ".|..||"},
        {{"dones=timeouts", NULL}, "....||"},
        {{"dones=dones,timeouts", NULL}, ".|..||"},
        {{"starts=", "indices=", "dones=", NULL}, ".....|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_capture c = must_read(path, cases[i].options);
        check_plain(&c);
        check_ends(&c, cases[i].ends);
        test_capture_free(&c);
    }
    must_fail(path, OPTIONS("starts=episode_starts", "dones=dones"), MIMUS_ERR_ARGUMENT,
              "give one");
    must_fail(path, OPTIONS("dones=dones,over"), MIMUS_ERR_ARGUMENT,
              "option dones: no array \"over\"");
    must_fail(path, OPTIONS("dones=dones,dones,dones,dones,dones,dones"), MIMUS_ERR_ARGUMENT,
              "more than 5 arrays");
    must_fail(path, OPTIONS("indices=actions"), MIMUS_ERR_DATA, "an episode begins at 0");
}
END_TEST

START_TEST(imitation_has_one_observation_more) {
    const char *path = MIMUS_TEST_DATA "/npz/imitation.npz";
    static const float first[] = {0, 1, 3, 5, 6, 7, 8}; /* 2, 4 and 9 follow last actions */
    test_capture c = must_read(path, NULL);
    check_ends(&c, ".||...|");
    for (size_t i = 0; i < c.samples; i++) {
        ck_assert_float_eq(c.senses[i * 2], first[i]);
        ck_assert_float_eq(c.senses[i * 2 + 1], first[i] * 100);
        ck_assert_uint_eq(c.actions[i], i % 3);
    }
    test_capture_free(&c);
    c = must_read(MIMUS_TEST_DATA "/npz/imitation_one.npz", NULL);
    check_ends(&c, "..|");
    ck_assert_float_eq(c.senses[2], 2);
    test_capture_free(&c);
}
END_TEST

START_TEST(masks_weights_and_many_heads) {
    const char *path = test_folder_path("heads.npz");
    const int8_t actions[4][2] = {{0, 1}, {2, -1}, {1, 0}, {-7, 1}};
    const uint8_t masks[4][5] = {
        {1, 0, 1, 1, 1}, {0, 0, 9, 1, 0}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}};
    const double weights[4] = {0.5, 0, 2, 1};
    const float senses[4][2][3] = {{{1}}};
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "states", "<f4", "(4, 2, 3)", senses, sizeof senses);
    test_npz_add(npz, "actions", "|i1", "(4, 2)", actions, sizeof actions);
    test_npz_add(npz, "action_masks", "|u1", "(4, 5)", masks, sizeof masks);
    test_npz_add(npz, "weights", "<f8", "(4,)", weights, sizeof weights);
    test_npz_close(npz);

    test_capture c = must_read(path, NULL);
    ck_assert_uint_eq(c.schema->senses, 6);
    ck_assert(c.schema->masks && c.schema->weights);
    ck_assert_uint_eq(c.schema->head[0].actions, 3); /* 2 + 1 and 1 + 1 make the masks' 5 */
    ck_assert_uint_eq(c.schema->head[1].actions, 2);
    ck_assert_uint_eq(c.actions[3], MIMUS_NO_LABEL);
    ck_assert_uint_eq(c.actions[6], MIMUS__MAX_ACTIONS); /* -7: out of range, whatever the head */
    for (size_t i = 0; i < 20; i++)
        ck_assert_uint_eq(c.legal[i], masks[i / 5][i % 5] != 0);
    for (size_t i = 0; i < 4; i++)
        ck_assert_float_eq(c.weights[i], (float)weights[i]);
    test_capture_free(&c);

    c = must_read(path, OPTIONS("heads=move:3,shoot:2", "masks=", "weights="));
    ck_assert_str_eq(c.schema->head[1].name, "shoot");
    ck_assert(!c.schema->masks && !c.schema->weights);
    test_capture_free(&c);

    must_fail(path, OPTIONS("heads=4,2"), MIMUS_ERR_ARGUMENT, "makes 6 actions in all");
    must_fail(path, OPTIONS("heads=5"), MIMUS_ERR_ARGUMENT, "names 1 heads");
    must_fail(path, OPTIONS("heads=x"), MIMUS_ERR_ARGUMENT, "\"x\" should be name:actions");
    must_fail(path, OPTIONS("masks=weights"), MIMUS_ERR_ARGUMENT, "the masks are 1 wide");
    must_fail(path, OPTIONS("weights=actions"), MIMUS_ERR_DATA, "rows of 2 elements; 1 to 1 fit");
}
END_TEST

START_TEST(one_head_is_as_wide_as_its_masks) {
    const char *path = test_folder_path("wide.npz");
    uint8_t masks[ROWS][70];
    memset(masks, 1, sizeof masks);
    test_npz *npz = create_plain(path, true, "obs", "actions");
    test_npz_add(npz, "action_masks", "|b1", "(6, 70)", masks, sizeof masks);
    test_npz_close(npz);
    test_capture c = must_read(path, NULL);
    ck_assert_uint_eq(c.schema->head[0].actions, 70);
    test_capture_free(&c);
}
END_TEST

/* tests/data/npz/types.npz holds row * 10 + column in every type that can be read. */
START_TEST(every_type_reads_in_both_orders) {
    const char *path = MIMUS_TEST_DATA "/npz/types.npz";
    static const char *const types[] = {"le_f2", "be_f2", "le_f4", "be_f4", "le_f8", "be_f8", "i1",
                                        "le_i2", "be_i2", "le_i4", "be_i4", "le_i8", "be_i8", "u1",
                                        "le_u2", "be_u2", "le_u4", "be_u4", "le_u8", "be_u8", "b1"};
    static const uint16_t actions[5] = {0, 2, 1, 0, 2};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char senses[32], labels[32];
        snprintf(senses, sizeof senses, "senses=x_%s", types[t]);
        snprintf(labels, sizeof labels, "actions=a_%s", types[t]);
        bool flag = strcmp(types[t], "b1") == 0;
        test_capture c = must_read(path, OPTIONS(senses, labels));
        ck_assert_uint_eq(c.samples, 5);
        ck_assert_uint_eq(c.schema->head[0].actions, flag ? 2 : 3);
        for (size_t i = 0; i < 15; i++) {
            float value = (float)(i / 3 * 10 + i % 3);
            ck_assert_msg(c.senses[i] == (flag ? (float)(value != 0) : value), "%s", types[t]);
        }
        for (size_t i = 0; i < 5; i++)
            ck_assert_msg(c.actions[i] == (flag ? actions[i] != 0 : actions[i]), "%s", types[t]);
        test_capture_free(&c);
    }
    test_capture c = must_read(path, OPTIONS("senses=half", "actions=a_u1"));
    ck_assert(c.senses[3] == -2.5F && c.senses[4] == 65504 && c.senses[5] == 0x1p-24F);
    ck_assert(isinf(c.senses[8]) && isinf(c.senses[9]) && isnan(c.senses[10]));
    test_capture_free(&c);
}
END_TEST

START_TEST(every_header_version_reads) {
    static const char *const paths[] = {MIMUS_TEST_DATA "/npz/version1.npz",
                                        MIMUS_TEST_DATA "/npz/version2.npz",
                                        MIMUS_TEST_DATA "/npz/version3.npz"};
    for (size_t i = 0; i < 3; i++) {
        test_capture c = must_read(paths[i], NULL);
        ck_assert_uint_eq(c.samples, 5);
        ck_assert_float_eq(c.senses[14], 42);
        test_capture_free(&c);
    }
}
END_TEST

/* What cannot be read stands next to what can in tests/data/npz/odd.npz. */
START_TEST(unreadable_arrays_are_refused_by_name) {
    const char *path = MIMUS_TEST_DATA "/npz/odd.npz";
    test_capture c = must_read(path, NULL);
    ck_assert_uint_eq(c.samples, 5);
    test_capture_free(&c);
    c = must_read(path, OPTIONS("actions=column"));
    ck_assert_uint_eq(c.actions[1], 2);
    test_capture_free(&c);
    must_fail(path, OPTIONS("senses=fortran"), MIMUS_ERR_UNSUPPORTED,
              "odd.npz: fortran: shape (5, 3) is stored in Fortran order");
    must_fail(path, OPTIONS("senses=record"), MIMUS_ERR_UNSUPPORTED, "record: holds a structure");
    must_fail(path, OPTIONS("senses=object"), MIMUS_ERR_UNSUPPORTED, "objects (pickled)");
    must_fail(path, OPTIONS("actions=text"), MIMUS_ERR_UNSUPPORTED, "text: holds text (\"<U1\")");
    must_fail(path, OPTIONS("weights=complex"), MIMUS_ERR_UNSUPPORTED, "complex numbers");
    must_fail(path, OPTIONS("weights=date"), MIMUS_ERR_UNSUPPORTED, "dates or times");
    must_fail(path, OPTIONS("weights=number"), MIMUS_ERR_DATA, "is a single number");
    must_fail(path, OPTIONS("senses=empty"), MIMUS_ERR_DATA, "shape (5, 0) makes rows of 0");
    must_fail(
        path, OPTIONS("senses=nothing"), MIMUS_ERR_ARGUMENT,
        "option senses: no array \"nothing\"; there is obs <f4 (5, 3), actions <i8 (5,), fortran");
    must_fail(path, OPTIONS("senses="), MIMUS_ERR_DATA, "which array holds the senses");
}
END_TEST

START_TEST(missing_arrays_are_asked_for) {
    const char *path = test_folder_path("named.npz");
    test_npz_close(create_plain(path, true, "pixels", "what"));
    must_fail(path, NULL, MIMUS_ERR_DATA,
              "named.npz: which array holds the senses? The option senses names it; expected obs, "
              "observations, senses, states, found pixels <f4 (6, 2), what <i8 (6,)");
    must_fail(path, OPTIONS("senses=pixels"), MIMUS_ERR_DATA, "The option actions names it");
    test_capture c = must_read(path, OPTIONS("senses=pixels", "actions=what"));
    check_plain(&c);
    test_capture_free(&c);
    must_fail(path, OPTIONS("sense=pixels"), MIMUS_ERR_ARGUMENT,
              "npz files have no option \"sense\"; there are: senses, actions, heads, masks");
    must_fail(path, OPTIONS("senses"), MIMUS_ERR_ARGUMENT, "key=value, not \"senses\"");
    must_fail(path, OPTIONS("senses=pixels", "senses=what"), MIMUS_ERR_ARGUMENT, "given twice");
}
END_TEST

/* A file of obs (6, 1) and the given actions; fails so. */
static void actions_fail(const char *descr, const char *shape, const void *actions, size_t bytes,
                         mimus_status expected, const char *part) {
    const char *path = test_folder_path("actions.npz");
    const float senses[ROWS] = {0};
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "obs", "<f4", "(6, 1)", senses, sizeof senses);
    test_npz_add(npz, "actions", descr, shape, actions, bytes);
    test_npz_close(npz);
    must_fail(path, NULL, expected, part);
}

START_TEST(unusable_actions_are_refused) {
    const double continuous[ROWS][2] = {{0, 1}, {1, 1}, {0, 0.25}, {0.5, 0}};
    actions_fail("<f8", "(6, 2)", continuous, sizeof continuous, MIMUS_ERR_UNSUPPORTED,
                 "actions: float64 0.25 in row 2, column 1 is not an integer; the option bin "
                 "cuts continuous actions into bins: --bin all:uniform:11");
    const uint16_t large[ROWS] = {0, 65534};
    actions_fail("<u2", "(6,)", large, sizeof large, MIMUS_ERR_DATA,
                 "head 0 has a label of 65534; labels go up to 65533");
    const int64_t four[4] = {0};
    actions_fail("<i8", "(4,)", four, sizeof four, MIMUS_ERR_DATA, "obs: 6 rows for 4 actions");
    actions_fail("<i8", "(0,)", four, 0, MIMUS_ERR_DATA, "actions: no rows");
    actions_fail("<i8", "(6,)", four, sizeof four, MIMUS_ERR_FORMAT,
                 "needs 176 bytes with its header, the archive holds 160");
    actions_fail("<i8", "(1, 5000)", four, sizeof four, MIMUS_ERR_DATA, "1 to 4096 fit");
}
END_TEST

START_TEST(stated_heads_leave_large_labels_to_the_audit) {
    const char *path = test_folder_path("large.npz");
    const float senses[3] = {0};
    const int64_t actions[3] = {1, 70000, INT64_MAX};
    test_npz *npz = test_npz_create(path, false);
    test_npz_add(npz, "obs", "<f4", "(3,)", senses, sizeof senses);
    test_npz_add(npz, "actions", "<i8", "(3, 1)", actions, sizeof actions);
    test_npz_close(npz);
    test_capture c = must_read(path, OPTIONS("heads=65534"));
    ck_assert_uint_eq(c.schema->senses, 1);
    ck_assert(c.actions[0] == 1 && c.actions[1] == 65534 && c.actions[2] == 65534);
    test_capture_free(&c);
}
END_TEST

/* Without the syncs of mimus__file_replace. */
static void write_file(const char *path, const char *bytes, size_t count) {
    FILE *stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, count, stream), count);
    ck_assert_int_eq(fclose(stream), 0);
}

START_TEST(broken_archives_end_in_one_line) {
    const char *path = test_folder_path("broken.npz");
    char *bytes = NULL;
    size_t count = 0;
    test_npz_close(create_plain(path, false, "obs", "actions"));
    test_ok(mimus__file_read(path, 1 << 20, &bytes, &count));

    test_ok(mimus__file_replace(path, bytes, count / 2));
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "broken.npz: cannot be opened as a zip archive");

    bytes[200] ^= 1; /* inside the stored observations: the checksum tells */
    write_file(path, bytes, count);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "obs: cannot be read: CRC error");
    bytes[200] ^= 1;

    for (size_t i = 0; i < count; i++) { /* whatever byte is wrong, something or nothing is said */
        test_capture capture = test_capture_new();
        bytes[i] = (char)~bytes[i];
        write_file(path, bytes, count);
        if (read_with(&capture, path, NULL, NULL) != MIMUS_OK)
            ck_assert_ptr_nonnull(strstr(mimus_last_error(), "broken.npz"));
        bytes[i] = (char)~bytes[i];
        test_capture_free(&capture);
    }
    free(bytes);
    must_fail(test_folder_path("none.npz"), NULL, MIMUS_ERR_IO, "none.npz: No such file");
    must_fail(test_folder(), NULL, MIMUS_ERR_IO, "Is a directory");

    test_npz *npz = test_npz_create(path, true);
    test_npz_add_raw(npz, "obs.npy", "\x93NUMPY\1", 7);
    test_npz_add_raw(npz, "actions.npy", "text", 4);
    test_npz_close(npz);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "obs: a NumPy header of 7 bytes only");
}
END_TEST

START_TEST(declared_sizes_are_not_allocated) {
    const char *path = test_folder_path("huge.npz");
    const int64_t label = 0;
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "obs", "<f4", "(2500000000, 1000)", &label, sizeof label);
    test_npz_add(npz, "actions", "<i8", "(2500000000,)", &label, sizeof label);
    test_npz_close(npz);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "needs 10000000000128 bytes with its header");
}
END_TEST

START_TEST(schemas_have_limits) {
    enum { WIDE = 17 };
    const char *path = test_folder_path("limits.npz");
    const float sense = 0;
    uint16_t actions[WIDE];
    for (int h = 0; h < WIDE; h++)
        actions[h] = 65533;
    test_npz *npz = test_npz_create(path, true);
    test_npz_add(npz, "obs", "<f4", "(1, 1)", &sense, sizeof sense);
    test_npz_add(npz, "actions", "<u2", "(1, 17)", actions, sizeof actions);
    test_npz_close(npz);
    mimus__memory_sink sink;
    mimus__memory_sink_init(&sink);
    const mimus_source source = {.paths = NULL};
    test_fails(mimus__sink_read(&sink.base.sink, path, &source, NULL), MIMUS_ERR_SCHEMA,
               "limits.npz: ");
    mimus__memory_sink_clear(&sink);
}
END_TEST

START_TEST(the_sizes_found_are_told_and_blamed) {
    const char *path = test_folder_path("first.npz");
    const char *other = test_folder_path("other.npz");
    const int64_t labels[ROWS] = {0, 1};
    const float senses[ROWS][2] = {{0}};
    test_npz_close(create_plain(path, true, "obs", "actions"));
    test_npz *npz = test_npz_create(other, true);
    test_npz_add(npz, "obs", "<f4", "(6, 2)", senses, sizeof senses);
    test_npz_add(npz, "actions", "<i8", "(6,)", labels, sizeof labels);
    test_npz_close(npz);
    test_capture c = must_read(path, NULL);
    test_fails(read_with(&c, other, NULL, NULL), MIMUS_ERR_SCHEMA, "the option heads states them");
    test_ok(read_with(&c, other, OPTIONS("heads=3"), NULL));
    test_capture_free(&c);
}
END_TEST

typedef struct watched {
    unsigned reports;
    uint64_t done, total;
    char messages[512];
    bool stop;
} watched;

static void on_progress(void *user, const mimus_progress *progress) {
    watched *w = user;
    ck_assert_str_eq(progress->phase, "load");
    ck_assert(isnan(progress->loss));
    w->reports++;
    w->done = progress->done;
    w->total = progress->total;
}

static void on_message(void *user, const char *text) {
    watched *w = user;
    size_t length = strlen(w->messages);
    snprintf(w->messages + length, sizeof w->messages - length, "%s\n", text);
}

static bool should_stop(void *user) {
    return ((watched *)user)->stop;
}

START_TEST(reading_is_watched) {
    const char *path = test_folder_path("watched.npz");
    watched w = {0};
    const mimus_watch watch = {&w, on_progress, NULL, on_message, should_stop};
    test_npz_close(create_plain(path, true, "obs", "actions"));
    test_capture c = test_capture_new();
    test_ok(read_with(&c, path, NULL, &watch));
    ck_assert(w.reports >= 2 && w.done == ROWS && w.total == ROWS);
    ck_assert_ptr_nonnull(strstr(w.messages, "by the largest labels: 3;"));
    ck_assert_ptr_nonnull(strstr(w.messages, "all samples are one\n"));
    w.stop = true;
    test_fails(read_with(&c, path, NULL, &watch), MIMUS_ERR_STOPPED, "stopped on request");
    test_capture_free(&c);
}
END_TEST

START_TEST(readers_are_found) {
    const mimus__reader *reader = NULL;
    test_ok(mimus__reader_find(&reader, "npz", "anything"));
    ck_assert_str_eq(reader->name, "npz");
    test_fails(mimus__reader_find(&reader, "xyz", "anything"), MIMUS_ERR_ARGUMENT,
               "no format \"xyz\"; there are: rec, npz");
    static const struct {
        const char *bytes;
        size_t count;
        const char *looks;
    } cases[] = {
        {"", 0, "looks like an empty file"},
        {"\x93NUMPY\1\0", 8, "looks like one NumPy array"},
        {"PK\3\4..............................", 34, "looks like a zip archive"},
        {"\1\2\3", 3, "looks like an unknown binary file"},
    };
    const char *path = test_folder_path("thing");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_ok(mimus__file_replace(path, cases[i].bytes, cases[i].count));
        test_fails(mimus__reader_find(&reader, NULL, path), MIMUS_ERR_FORMAT, cases[i].looks);
    }
    const char *renamed = test_folder_path("recording.zip");
    test_npz_close(create_plain(renamed, false, "obs", "actions"));
    test_ok(mimus__reader_find(&reader, NULL, renamed)); /* by its first member */
    ck_assert_str_eq(reader->name, "npz");
}
END_TEST

START_TEST(heads_are_parsed) {
    mimus_head *heads = NULL;
    uint32_t count = 0;
    test_ok(mimus__heads_parse(&heads, &count, "move:5,2,a:b:65534"));
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(heads[0].name, "move");
    ck_assert_ptr_null(heads[1].name);
    ck_assert_str_eq(heads[2].name, "a:b");
    ck_assert_uint_eq(heads[2].actions, 65534);
    mimus__heads_free(heads, count);
    static const char *const bad[] = {"",  "5,",    ":5", "move:", "move:x",
                                      "1", "65535", "-2", "a:5,b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_fails(mimus__heads_parse(&heads, &count, bad[i]), MIMUS_ERR_ARGUMENT, "heads: ");
        ck_assert_ptr_null(heads);
    }
    char many[2 * 4097];
    for (size_t i = 0; i < 4097; i++)
        memcpy(many + 2 * i, i < 4096 ? "2," : "2", 2);
    test_fails(mimus__heads_parse(&heads, &count, many), MIMUS_ERR_ARGUMENT, "4097 heads");
}
END_TEST

START_TEST(real_recordings) {
    if (!mimus__file_exists(MIMUS_SHARED_DATA "/imitation/cartpole_0-final.npz")) {
        printf("npz: no %s: real recordings are not tried\n", MIMUS_SHARED_DATA);
        return;
    }
    static const struct {
        const char *path;
        size_t samples, episodes;
        uint32_t senses, actions;
    } cases[] = {
        {MIMUS_SHARED_DATA "/imitation/cartpole_0-final.npz", 26964, 57, 4, 2},
        {MIMUS_SHARED_DATA "/stable-baselines/expert_cartpole.npz", 49527, 100, 4, 2},
        {MIMUS_SHARED_DATA "/othello/othello_1985.npz", 57062, 954, 128, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_capture c = must_read(cases[i].path, NULL);
        ck_assert_uint_eq(c.samples, cases[i].samples);
        ck_assert_uint_eq(test_capture_episodes(&c), cases[i].episodes);
        ck_assert_uint_eq(c.schema->senses, cases[i].senses);
        ck_assert_uint_eq(c.schema->heads, 1);
        ck_assert_uint_eq(c.schema->head[0].actions, cases[i].actions);
        test_capture_free(&c);
    }
    must_fail(MIMUS_SHARED_DATA "/imitation/pendulum_0-final.npz", NULL, MIMUS_ERR_UNSUPPORTED,
              "the option bin cuts continuous actions into bins");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("npz");
    TCase *tests = tcase_create("npz");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, plain_arrays_are_one_episode);
    tcase_add_test(tests, starts_dones_and_indices_split_episodes);
    tcase_add_test(tests, imitation_has_one_observation_more);
    tcase_add_test(tests, masks_weights_and_many_heads);
    tcase_add_test(tests, one_head_is_as_wide_as_its_masks);
    tcase_add_test(tests, every_type_reads_in_both_orders);
    tcase_add_test(tests, every_header_version_reads);
    tcase_add_test(tests, unreadable_arrays_are_refused_by_name);
    tcase_add_test(tests, missing_arrays_are_asked_for);
    tcase_add_test(tests, unusable_actions_are_refused);
    tcase_add_test(tests, stated_heads_leave_large_labels_to_the_audit);
    tcase_add_test(tests, broken_archives_end_in_one_line);
    tcase_add_test(tests, declared_sizes_are_not_allocated);
    tcase_add_test(tests, schemas_have_limits);
    tcase_add_test(tests, the_sizes_found_are_told_and_blamed);
    tcase_add_test(tests, reading_is_watched);
    tcase_add_test(tests, readers_are_found);
    tcase_add_test(tests, heads_are_parsed);
    tcase_add_test(tests, real_recordings);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
