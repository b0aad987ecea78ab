/* Parts of recordings: by condition, by episode, by number; of .rec files and of others, of several
 * at once, in every call that reads any. */
#include "support.h"

#include "json.h"
#include "recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const senses[] = {"x", "half life", "lost"};
static const char *const moves[] = {"stay", "left", "right"};
static const float edges[] = {-0.5F, 0.5F}, values[] = {-1, 0, 1};
static const mimus_head heads[] = {
    {.name = "move", .actions = 3, .action_names = moves},
    {.name = "steer", .actions = 3, .bin_edges = edges, .bin_values = values}};
static const mimus_schema schema = {
    .senses = 3, .sense_names = senses, .heads = 2, .head = heads, .masks = true, .weights = true};

enum { ROWS = 12, EPISODE = 4 };

/* Row i: x is i, half life i / 10, lost 1 or (every third) NaN; move i % 3, none in row 5; steer
 * cycles; three episodes of four. */
static void record(const char *path) {
    mimus_recorder *recorder;
    test_ok(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE));
    for (int i = 0; i < ROWS; i++) {
        const float sensed[] = {(float)i, (float)i / 10, 1};
        const uint16_t actions[] = {(uint16_t)(i == 5 ? MIMUS_NO_LABEL : (unsigned)i % 3),
                                    (uint16_t)((i + 1) % 3)};
        const uint8_t legal[] = {1, 1, 1, 1, 1, 1};
        test_ok(mimus_recorder_append(recorder, sensed, actions, legal, 1 + (float)i));
        if (i % EPISODE == EPISODE - 1)
            test_ok(mimus_recorder_end_episode(recorder));
    }
    test_ok(mimus_recorder_close(recorder));
}

/* The same as a table, but for bins, masks and weights. */
static void tabulate(const char *path) {
    char text[2048];
    size_t length = (size_t)snprintf(text, sizeof text, "x,half life,lost,episode,move\n");
    for (int i = 0; i < ROWS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,%g,%s,%d,%s\n", i,
                                   (double)i / 10, i % 3 == 2 ? "" : "1", i / EPISODE,
                                   i == 5 ? "" : moves[i % 3]);
    test_file_write(path, text, length);
}

/* The x of what a source is: "0 1 | 4": '|' before what begins an episode. */
static const char *shown(const mimus__recording *recording) {
    static char text[512];
    size_t length = 0;
    text[0] = '\0';
    const uint32_t width = mimus__recording_schema(recording)->senses;
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        for (uint32_t i = 0; i < block.samples; i++) {
            bool starts = (block.starts[i / 32] >> (i % 32) & 1) != 0;
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%g",
                                       length == 0 ? ""
                                       : starts    ? " | "
                                                   : " ",
                                       (double)block.senses[i * width]);
            ck_assert(length > 0 && (starts || length > 1));
        }
    }
    return text;
}

typedef struct files {
    const char *rec, *csv;
} files;

static files make(void) {
    static char rec[512], csv[512];
    snprintf(rec, sizeof rec, "%s", test_folder_path("play.rec"));
    snprintf(csv, sizeof csv, "%s", test_folder_path("play.csv"));
    record(rec);
    tabulate(csv);
    return (files){rec, csv};
}

static const char *const state_heads[] = {"heads=move:stay|left|right", NULL};

static void check_one(const char *path, mimus_source source, const char *expected) {
    mimus__recording *recording = NULL;
    const char *paths[] = {path};
    source.paths = paths;
    source.count = 1;
    if (strstr(path, ".csv") != NULL)
        source.options = state_heads;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    ck_assert_str_eq(shown(recording), expected);
    mimus__recording_free(recording);
}

static void check(const files *of, mimus_source source, const char *expected) {
    check_one(of->rec, source, expected);
    check_one(of->csv, source, expected);
}

static void must_fail(const files *of, mimus_source source, mimus_status expected,
                      const char *part) {
    mimus__recording *recording = NULL;
    source.paths = &of->rec;
    source.count = 1;
    test_fails(mimus__recording_open(&recording, &source, NULL), expected, part);
    ck_assert_ptr_null(recording);
}

START_TEST(conditions_choose_samples) {
    const files of = make();
    static const struct {
        const char *where, *expected;
    } cases[] = {
        {"x>8", "9 10 11"},
        {"x>=8", "8 9 10 11"},
        {"x<2", "0 1"},
        {"x <= 2", "0 1 2"},
        {"x=3", "3"},
        {"x==3", "3"},
        {" x > 2  and x < 6 ", "3 | 4 5"},
        {"x>2 AND x<6 and x!=4", "3 | 5"},
        {"'half life'=0.3", "3"}, /* 0.3F is not 0.3, and is what stands there */
        {"\"half life\" >= '1.0'", "10 11"},
        {"half life>1", "11"},
        {"move=left", "1 | 4 7 | 10"},
        {"move='left'", "1 | 4 7 | 10"},
        {"move=1", "1 | 4 7 | 10"},
        {"move>=1 and x<8", "1 2 | 4 7"}, /* no label is no action */
        {"move!=left and x<8", "0 2 3 | 5 6"},
        {"head0=right", "2 | 8 11"}, /* row 5 has no label */
        {"sense0=7", "7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&of, (mimus_source){.where = cases[i].where}, cases[i].expected);
    check_one(of.csv, (mimus_source){.where = "lost=1 and x<6"}, "0 1 3 | 4");
    check_one(of.csv, (mimus_source){.where = "lost!=1 and x<6"}, "2 | 5");
    check_one(of.csv, (mimus_source){.where = "lost<=1 and x<3"}, "0 1");
    check_one(of.rec, (mimus_source){.where = "steer=-1"}, "2 | 5 | 8 11"); /* a bin's value */
    check_one(of.rec, (mimus_source){.where = "steer>0"}, "1 | 4 7 | 10");
}
END_TEST

START_TEST(episodes_are_chosen_by_number) {
    const files of = make();
    static const struct {
        const char *episodes, *expected;
    } cases[] = {
        {"0", "0 1 2 3"},
        {"1:", "4 5 6 7 | 8 9 10 11"},
        {":1", "0 1 2 3"},
        {"1:2", "4 5 6 7"},
        {"2,0", "0 1 2 3 | 8 9 10 11"},
        {"0:100", "0 1 2 3 | 4 5 6 7 | 8 9 10 11"},
        {"1,1:3", "4 5 6 7 | 8 9 10 11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&of, (mimus_source){.episodes = cases[i].episodes}, cases[i].expected);
}
END_TEST

START_TEST(limits_count_what_is_left) {
    const files of = make();
    check(&of, (mimus_source){.limit = 1}, "0");
    check(&of, (mimus_source){.limit = 5}, "0 1 2 3 | 4");
    check(&of, (mimus_source){.limit = 100}, "0 1 2 3 | 4 5 6 7 | 8 9 10 11");
    check(&of, (mimus_source){.limit = 3, .episodes = "1:", .where = "move!=stay"}, "4 5 7");
}
END_TEST

/* Episodes are counted, and samples limited, through all files; what is enough stops the reading.
 */
START_TEST(several_files_are_one) {
    const files of = make();
    const char *paths[] = {of.csv, of.csv, of.csv};
    mimus_source source = {.paths = paths, .count = 3, .options = state_heads, .episodes = "2:4"};
    mimus__recording *recording = NULL;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    ck_assert_str_eq(shown(recording), "8 9 10 11 | 0 1 2 3");
    ck_assert_uint_eq(json_array_size(mimus__recording_metadata(recording)), 3);
    mimus__recording_free(recording);
    source.episodes = NULL;
    source.where = "x>9";
    source.limit = 5;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    ck_assert_str_eq(shown(recording), "10 11 | 10 11 | 10");
    mimus__recording_free(recording);
    paths[1] = test_folder_path("rotten.csv"); /* is not looked at any more */
    test_file_write(paths[1], "x\n", 2);
    source.limit = 2;
    test_ok(mimus__recording_open(&recording, &source, NULL));
    ck_assert_str_eq(shown(recording), "10 11");
    mimus__recording_free(recording);
    const char *recs[] = {of.rec, of.rec};
    source = (mimus_source){.paths = recs, .count = 2, .episodes = "2,3"};
    test_ok(mimus__recording_open(&recording, &source, NULL));
    ck_assert_str_eq(shown(recording), "8 9 10 11 | 0 1 2 3");
    mimus__recording_free(recording);
}
END_TEST

/* Masks and weights come along, bit by bit. */
START_TEST(parts_are_as_they_were) {
    const files of = make();
    mimus__recording *whole = NULL, *part = NULL;
    mimus_source source = {.paths = &of.rec, .count = 1};
    mimus__block a, b;
    test_ok(mimus__recording_open(&whole, &source, NULL));
    source.where = "x>5";
    test_ok(mimus__recording_open(&part, &source, NULL));
    test_ok(mimus__schema_match(mimus__recording_schema(whole), "whole",
                                mimus__recording_schema(part), "part", true));
    test_ok(mimus__recording_block(whole, 0, &a));
    test_ok(mimus__recording_block(part, 0, &b));
    ck_assert_uint_eq(b.samples, 6);
    ck_assert_mem_eq(b.senses, a.senses + 18, 18 * sizeof *a.senses);
    ck_assert_mem_eq(b.actions, a.actions + 12, 12 * sizeof *a.actions);
    ck_assert_mem_eq(b.masks, a.masks + 6, 6 * sizeof *a.masks);
    ck_assert_mem_eq(b.weights, a.weights + 6, 6 * sizeof *a.weights);
    mimus__recording_free(part);
    mimus__recording_free(whole);
}
END_TEST

START_TEST(import_and_info_take_parts) {
    const files of = make();
    const char *rec = of.rec;
    char out[512], *text = NULL;
    json_t *json = NULL;
    mimus_source source = {.paths = &rec, .count = 1, .where = "x>2", .limit = 4};
    snprintf(out, sizeof out, "%s", test_folder_path("part.rec"));
    test_ok(mimus_import(&source, out, NULL, &text));
    test_ok(mimus__json_parse(&json, text, strlen(text), "report"));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "episodes")), 2);
    json_decref(json);
    free(text);
    check_one(out, (mimus_source){.count = 0}, "3 | 4 5 6");
    test_ok(mimus_info(&source, NULL, &text));
    test_ok(mimus__json_parse(&json, text, strlen(text), "info"));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), 4);
    json_decref(json);
    free(text);
    /* a table goes the same way */
    source = (mimus_source){
        .paths = &of.csv, .count = 1, .options = state_heads, .where = "lost=1", .episodes = "1"};
    snprintf(out, sizeof out, "%s", test_folder_path("table.rec"));
    test_ok(mimus_import(&source, out, NULL, NULL));
    check_one(out, (mimus_source){.count = 0}, "4 6 7");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused) {
    const files of = make();
    static const struct {
        mimus_source source;
        const char *part;
    } cases[] = {
        {{.where = ""}, "where: \"\" should be as health>0.5 or move=left"},
        {{.where = "x"}, "where: \"x\" should be"},
        {{.where = "x>"}, "where: \"x>\" should be"},
        {{.where = ">3"}, "where: \">3\" should be"},
        {{.where = "x>3 and "}, "should be"},
        {{.where = "x>3 and y"}, "where: \"y\" should be"},
        {{.where = "health>3"},
         "no sense or head is called \"health\"; there are sense0 to sense2"},
        {{.where = "sense3>3"}, "no sense or head is called \"sense3\""},
        {{.where = "x>left"}, "where: \"left\" is no number"},
        {{.where = "move=jump"}, "\"jump\" is no number, and no action of the head"},
        {{.where = "move>left"}, "\"left\" is an action of move: it is compared with = or !="},
        {{.episodes = ""}, "episodes: \"\" should be a number from 0, or a range"},
        {{.episodes = "a"}, "episodes: \"a\" should be"},
        {{.episodes = "-1"}, "episodes: \"-1\" should be"},
        {{.episodes = "3:3"}, "episodes: \"3:3\" should be"},
        {{.episodes = "1,,2"}, "episodes: \"\" should be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_fail(&of, cases[i].source, MIMUS_ERR_ARGUMENT, cases[i].part);
    must_fail(&of, (mimus_source){.where = "x>100"}, MIMUS_ERR_DATA,
              "none of 12 samples in 3 episodes is among what where, episodes and limit take");
    must_fail(&of, (mimus_source){.episodes = "7:"}, MIMUS_ERR_DATA, "none of 12 samples");
}
END_TEST

static void clean(void) {
    test_folder_remove();
}

int main(void) {
    Suite *suite = suite_create("filter");
    TCase *tests = tcase_create("filter");
    tcase_add_checked_fixture(tests, NULL, clean);
    tcase_add_test(tests, conditions_choose_samples);
    tcase_add_test(tests, episodes_are_chosen_by_number);
    tcase_add_test(tests, limits_count_what_is_left);
    tcase_add_test(tests, several_files_are_one);
    tcase_add_test(tests, parts_are_as_they_were);
    tcase_add_test(tests, import_and_info_take_parts);
    tcase_add_test(tests, what_makes_no_sense_is_refused);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
