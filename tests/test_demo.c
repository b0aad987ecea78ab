/* Reading Unity's .demo files: where actions belong, episodes, masks, names, bins, and what is
 * refused. The files in tests/data/demo were written by tests/data/make_demo.py, which knows
 * nothing of our demo.proto. */
#include "capture.h"
#include "demo_file.h"
#include "support.h"

#include "file.h"
#include "recording.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DATA(name) MIMUS_TEST_DATA "/demo/" name
static const uint16_t NONE = MIMUS_NO_LABEL;

static const char *const *options_of(const char *const *options) {
    return options;
}
#define OPTIONS(...) options_of((const char *const[]){__VA_ARGS__, NULL})

static char messages[4096]; /* of the latest reading, one a line */

static void keep_message(void *user, const char *text) {
    size_t length = strlen(messages);
    (void)user;
    snprintf(messages + length, sizeof messages - length, "%s\n", text);
}

static const mimus_watch watch = {.on_message = keep_message};

static mimus_status read_with(test_capture *capture, const char *path, const char *const *options) {
    const mimus_source source = {.options = options};
    messages[0] = '\0';
    return mimus__sink_read(&capture->sink, path, &source, &watch);
}

static test_capture must_read(const char *path, const char *const *options) {
    test_capture capture = test_capture_new();
    test_ok(read_with(&capture, path, options));
    return capture;
}

/* Assert that reading fails so, in one line that begins with the file's name. */
static void must_fail(const char *path, const char *const *options, mimus_status expected,
                      const char *part) {
    test_capture capture = test_capture_new();
    test_fails(read_with(&capture, path, options), expected, part);
    ck_assert_msg(strncmp(mimus_last_error(), path, strlen(path)) == 0, "%s", mimus_last_error());
    ck_assert_ptr_null(strchr(mimus_last_error(), '\n'));
    test_capture_free(&capture);
}

static void check_message(const char *part) {
    ck_assert_msg(strstr(messages, part) != NULL, "\"%s\" is not in \"%s\"", part, messages);
}

static void check_ends(const test_capture *c, const char *ends) {
    ck_assert_uint_eq(c->samples, strlen(ends));
    for (size_t i = 0; i < c->samples; i++)
        ck_assert_msg(c->ends[i] == (ends[i] == '|'), "row %zu of %s", i, ends);
}

/* Assert the labels of one head; '-' stands for none. */
static void check_labels(const test_capture *c, uint32_t head, const char *labels) {
    ck_assert_uint_eq(c->samples, strlen(labels));
    for (size_t i = 0; i < c->samples; i++) {
        uint16_t expected = labels[i] == '-' ? NONE : (uint16_t)(labels[i] - '0');
        ck_assert_msg(c->actions[i * c->schema->heads + head] == expected, "row %zu of %s: %u", i,
                      labels, c->actions[i * c->schema->heads + head]);
    }
}

/* ------------------------------------------------------ files of make_demo.py */

START_TEST(a_recorded_file) {
    test_capture c = must_read(DATA("recorded.demo"), NULL);
    ck_assert_uint_eq(c.schema->senses, 3);
    ck_assert_str_eq(c.schema->sense_names[0], "Rays[0]");
    ck_assert_str_eq(c.schema->sense_names[1], "Rays[1]");
    ck_assert_str_eq(c.schema->sense_names[2], "Speed");
    ck_assert_uint_eq(c.schema->heads, 2);
    ck_assert_str_eq(c.schema->head[0].name, "move");
    ck_assert_uint_eq(c.schema->head[0].actions, 3);
    ck_assert_str_eq(c.schema->head[1].name, "jump");
    ck_assert_uint_eq(c.schema->head[1].actions, 2);
    ck_assert(c.schema->masks && !c.schema->weights);
    check_ends(&c, "...|..||");
    check_labels(&c, 0, "012-12--"); /* what the record behind holds: its number - 1, modulo 3 */
    check_labels(&c, 1, "101-10--");
    for (size_t t = 0; t < 8; t++) {
        static const uint8_t legal[8][5] = {[1] = {1, 1, 0, 1, 1}, [4] = {0, 1, 1, 1, 1}};
        ck_assert_float_eq(c.senses[t * 3], (float)t);
        ck_assert_float_eq(c.senses[t * 3 + 1], (float)t + 0.5F);
        ck_assert_float_eq(c.senses[t * 3 + 2], -(float)t);
        for (size_t a = 0; a < 5; a++)
            ck_assert_uint_eq(c.legal[t * 5 + a], t == 1 || t == 4 ? legal[t][a] : 1);
    }
    check_message("recorded.demo: 8 records; align=next");
    check_message("ends in a copy of its metadata");
    test_capture_free(&c);
}
END_TEST

START_TEST(a_converted_file) {
    test_capture c = must_read(DATA("converted.demo"), NULL);
    ck_assert_ptr_null(c.schema->sense_names);
    ck_assert_uint_eq(c.schema->heads, 1);
    ck_assert_str_eq(c.schema->head[0].name, "head0");
    ck_assert_uint_eq(c.schema->head[0].actions, 4);
    ck_assert(!c.schema->masks);
    check_ends(&c, ".|.|..|"); /* a done record shows the next episode's first moment */
    check_labels(&c, 0, "012301-");
    for (size_t t = 0; t < 7; t++)
        ck_assert(c.senses[t * 2] == (float)t && c.senses[t * 2 + 1] == 10 * (float)t);
    check_message("converted.demo: 7 records; align=same");
    check_message("does not end in a copy of its metadata");
    test_capture_free(&c);
}
END_TEST

START_TEST(the_alignment_can_be_stated) {
    test_capture c = must_read(DATA("recorded.demo"), OPTIONS("align=same"));
    check_labels(&c, 0, "20120120"); /* -1 of the first record: C's remainder is Python's 2 */
    check_ends(&c, "...|..||");
    check_message("by align=same the masks forbid 1 of the actions taken, by align=next none");
    test_capture_free(&c);
    c = must_read(DATA("converted.demo"), OPTIONS("align=next"));
    check_labels(&c, 0, "1-3-1--");
    ck_assert_str_eq(messages, "");
    test_capture_free(&c);
    c = must_read(DATA("converted.demo"), OPTIONS("align=auto"));
    check_labels(&c, 0, "012301-");
    test_capture_free(&c);
    must_fail(DATA("recorded.demo"), OPTIONS("align=yes"), MIMUS_ERR_ARGUMENT,
              "option align: one of same, next, auto, not \"yes\"");
}
END_TEST

START_TEST(masks_can_be_wished_for_and_left_out) {
    test_capture c = must_read(DATA("recorded.demo"), OPTIONS("masks=never"));
    ck_assert(!c.schema->masks);
    for (size_t i = 0; i < 8 * 5; i++)
        ck_assert_uint_eq(c.legal[i], 1);
    test_capture_free(&c);
    c = must_read(DATA("converted.demo"), OPTIONS("masks=always"));
    ck_assert(c.schema->masks);
    test_capture_free(&c);
    c = must_read(DATA("recorded.demo"), OPTIONS("masks=auto"));
    ck_assert(c.schema->masks);
    test_capture_free(&c);
    must_fail(DATA("recorded.demo"), OPTIONS("masks=legal"), MIMUS_ERR_ARGUMENT,
              "option masks: one of auto, always, never, not \"legal\"");
}
END_TEST

START_TEST(no_senses_at_all) {
    test_capture c = must_read(DATA("unseen.demo"), NULL);
    ck_assert_uint_eq(c.schema->senses, 0);
    check_labels(&c, 0, "2413");
    static const uint8_t legal[2][5] = {{1, 0, 1, 1, 0}, {1, 1, 1, 0, 1}};
    ck_assert_mem_eq(c.legal, legal[0], 5);
    ck_assert_mem_eq(c.legal + 10, legal[1], 5);
    ck_assert_ptr_null(strstr(messages, "forbid"));
    test_capture_free(&c);
    c = must_read(DATA("unseen.demo"), OPTIONS("align=next"));
    check_message("by align=next the masks forbid 2 of the actions taken, by align=same none");
    test_capture_free(&c);
}
END_TEST

START_TEST(a_file_that_was_not_closed) {
    test_capture c = must_read(DATA("killed.demo"), NULL);
    check_labels(&c, 0, "012-12-");
    check_ends(&c, "...|..|");
    check_message("its recorder did not close it: 67 bytes are lost, 7 records are there");
    check_message("align=next");
    test_capture_free(&c);
    must_fail(DATA("nothing.demo"), NULL, MIMUS_ERR_DATA, "holds no records");
}
END_TEST

START_TEST(images_are_refused_or_skipped) {
    must_fail(DATA("camera.demo"), NULL, MIMUS_ERR_UNSUPPORTED,
              "record 0 at byte 58: observation 0 \"Eye\" is visual (84x84x3");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "visual=skip"));
    test_capture c = must_read(DATA("camera.demo"), OPTIONS("visual=skip"));
    ck_assert_uint_eq(c.schema->senses, 1);
    ck_assert_str_eq(c.schema->sense_names[0], "Ear");
    ck_assert_float_eq(c.senses[3], 3);
    test_capture_free(&c);
    must_fail(DATA("camera.demo"), OPTIONS("visual=maybe"), MIMUS_ERR_ARGUMENT,
              "one of refuse, skip");
}
END_TEST

/* All labels of a file with bins, through whoever makes the bins. */
static mimus__recording *must_open(const char *path, const char *bin) {
    const char *const options[] = {bin, NULL};
    const mimus_source source = {.paths = &path, .count = 1, .options = options};
    mimus__recording *recording = NULL;
    messages[0] = '\0';
    test_ok(mimus__recording_open(&recording, &source, &watch));
    return recording;
}

START_TEST(continuous_actions_become_bins) {
    must_fail(DATA("continuous.demo"), NULL, MIMUS_ERR_UNSUPPORTED, "--bin all:uniform:11");
    must_fail(DATA("hybrid.demo"), NULL, MIMUS_ERR_UNSUPPORTED, "column 1 (continuous0)");

    mimus__recording *recording =
        must_open(DATA("continuous.demo"), "bin=0:uniform:3,1:quantile:3");
    const mimus_schema *schema = mimus__recording_schema(recording);
    mimus__block block;
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_uint_eq(block.samples, 7);
    ck_assert_str_eq(schema->head[1].name, "continuous1");
    /* of the record behind: 1 2 3 4 5 6 in bins of (6 - 1) / 3; 1 2 0 1 2 0 */
    static const uint16_t labels[7][2] = {{0, 1}, {0, 2}, {1, 0},      {1, 1},
                                          {2, 2}, {2, 0}, {NONE, NONE}};
    ck_assert_mem_eq(block.actions, labels, sizeof labels);
    ck_assert_float_eq_tol(schema->head[0].bin_values[0], 1 + 5.0F / 6, 1e-6F);
    mimus__recording_free(recording);

    recording = must_open(DATA("hybrid.demo"), "bin=all:quantile:2");
    schema = mimus__recording_schema(recording);
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_uint_eq(schema->heads, 3);
    ck_assert_ptr_null(schema->head[0].bin_edges);
    ck_assert_str_eq(schema->head[2].name, "continuous1");
    /* of records 1 to 5: 1 0 1 0 1; 0.1 to 0.5; -1 to -5 */
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(block.actions[i * 3], (i + 1) % 2);
    ck_assert_uint_eq(block.actions[1], 0);
    ck_assert_uint_eq(block.actions[4 * 3 + 1], 1);
    ck_assert_uint_eq(block.actions[2], 1);
    ck_assert_uint_eq(block.actions[4 * 3 + 2], 0);
    ck_assert_uint_eq(block.actions[5 * 3], NONE);
    ck_assert(schema->masks);
    ck_assert_uint_eq(block.masks[0], 0x3F); /* what is binned is always legal */
    mimus__recording_free(recording);
}
END_TEST

START_TEST(labels_out_of_range_are_left_to_the_audit) {
    test_capture c = must_read(DATA("stray.demo"), NULL);
    static const uint16_t labels[] = {3, MIMUS__MAX_ACTIONS, 2, MIMUS__MAX_ACTIONS, MIMUS_NO_LABEL};
    ck_assert_mem_eq(c.actions, labels, sizeof labels);
    test_capture_free(&c);
}
END_TEST

/* ----------------------------------------------------------- files made here */

static int32_t three[] = {3};

/* Records of one sense and one action of three each; the caller closes it. */
static test_demo plain(size_t records) {
    test_demo demo = test_demo_new(three, 1);
    for (size_t t = 0; t < records; t++) {
        float sense = (float)t;
        int32_t action = (int32_t)(t % 3);
        test_demo_add(
            &demo, &(test_demo_record){
                       .senses = &sense, .sense_count = 1, .actions = &action, .action_count = 1});
    }
    return demo;
}

/* Close, write and free it; its path. */
static const char *save(test_demo *demo, int32_t steps, bool copy) {
    const char *path = test_folder_path("made.demo");
    test_demo_close(demo, steps, copy);
    test_demo_write(demo, path);
    test_demo_free(demo);
    return path;
}

START_TEST(an_id_that_changes_begins_an_episode) {
    test_demo demo = test_demo_new(three, 1);
    static const int32_t ids[] = {5, 5, -1, -1, 5};
    for (size_t t = 0; t < 5; t++) {
        float sense = 0;
        int32_t action = 1;
        test_demo_add(&demo, &(test_demo_record){.senses = &sense,
                                                 .sense_count = 1,
                                                 .actions = &action,
                                                 .action_count = 1,
                                                 .id = ids[t]});
    }
    test_capture c = must_read(save(&demo, 5, true), NULL);
    check_ends(&c, ".|.||");
    check_labels(&c, 0, "1-1--");
    test_capture_free(&c);
}
END_TEST

/* A file that was not closed tells its alignment by its masks, where these forbid one of the two.
 */
START_TEST(masks_decide_where_nothing_else_does) {
    for (int same = 0; same < 2; same++) {
        test_demo demo = test_demo_new(three, 1);
        for (int32_t t = 0; t < 4; t++) {
            float sense = 0;
            int32_t action = t % 2;
            protobuf_c_boolean mask[3] = {0};
            mask[same ? 1 - action : action] = 1; /* forbids the other one's action */
            test_demo_add(&demo, &(test_demo_record){.senses = &sense,
                                                     .sense_count = 1,
                                                     .actions = &action,
                                                     .action_count = 1,
                                                     .mask = mask,
                                                     .mask_count = 3});
        }
        test_capture c = must_read(save(&demo, 0, false), NULL);
        check_labels(&c, 0, same ? "0101" : "101-");
        check_message("did not close it: 0 bytes are lost, 4 records");
        check_message(same ? "its masks forbid the other" : "for it was recorded");
        test_capture_free(&c);
    }
}
END_TEST

START_TEST(what_follows_the_records_is_looked_at) {
    static const uint8_t other[] = {1, 2, 3, 4, 5};
    test_demo demo = plain(3);
    test_demo_add_bytes(&demo, other, sizeof other);
    test_capture c = must_read(save(&demo, 3, false), NULL);
    check_message("5 bytes at byte");
    check_message("behind the 3 records, are not read");
    check_labels(&c, 0, "012");
    test_capture_free(&c);

    demo = plain(3);
    test_demo_close(&demo, 3, true);
    for (size_t cut = 1; cut < 8; cut++) { /* of the copy: it is one all the same */
        demo.count--;
        test_demo_write(&demo, test_folder_path("cut.demo"));
        c = must_read(test_folder_path("cut.demo"), NULL);
        check_labels(&c, 0, "12-");
        test_capture_free(&c);
    }
    test_demo_free(&demo);
    demo = plain(3); /* fewer are promised than there are */
    c = must_read(save(&demo, 2, false), NULL);
    ck_assert_uint_eq(c.samples, 2);
    test_capture_free(&c);
}
END_TEST

START_TEST(observations_must_stay_as_they_are) {
    float senses[3] = {NAN, INFINITY, -1};
    test_demo demo = plain(2);
    test_demo_add(&demo, &(test_demo_record){.senses = senses, .sense_count = 3});
    must_fail(save(&demo, 3, true), NULL, MIMUS_ERR_FORMAT,
              "record 2 at byte 81: observation 0 has 3 numbers; in the first record it has 1");
    demo = test_demo_new(three, 1);
    test_demo_add(&demo, &(test_demo_record){.senses = senses, .sense_count = 3});
    test_capture c = must_read(save(&demo, 1, true), NULL); /* the audit will say */
    ck_assert(isnan(c.senses[0]) && isinf(c.senses[1]));
    test_capture_free(&c);
}
END_TEST

START_TEST(actions_and_masks_must_fit) {
    float sense = 0;
    int32_t actions[] = {1, 1};
    protobuf_c_boolean mask[] = {1, 0};
    test_demo_record record = {.senses = &sense, .sense_count = 1, .actions = actions};
    record.action_count = 2;
    test_demo demo = plain(1);
    test_demo_add(&demo, &record);
    must_fail(save(&demo, 2, true), NULL, MIMUS_ERR_FORMAT,
              "an action of 2 discrete and 0 continuous parts; they should be 1 and 0");
    record.action_count = 1;
    record.mask = mask;
    record.mask_count = 2;
    demo = plain(1);
    test_demo_add(&demo, &record);
    must_fail(save(&demo, 2, true), NULL, MIMUS_ERR_FORMAT,
              "a mask of 2 actions; the branches have 3");
}
END_TEST

START_TEST(brains_have_limits) {
    static const struct {
        int32_t branch;
        size_t count;
        int32_t continuous;
        const char *part;
    } cases[] = {
        {3, 0, 0, "0 discrete and 0 continuous actions; 1 to 4096"},
        {3, 4097, 0, "4097 discrete and 0 continuous"},
        {3, 4000, 97, "4000 discrete and 97 continuous"},
        {3, 1, -1, "1 discrete and -1 continuous"},
        {1, 1, 0, "branch 0 has 1 actions; 2 to 65534"},
        {-5, 1, 0, "branch 0 has -5 actions"},
        {65535, 1, 0, "branch 0 has 65535 actions"},
        {65534, 17, 0, "branch 16 has 65534 actions; 2 to 65534 are possible, 1048576 of all"},
    };
    float sense = 0;
    int32_t *branches = calloc(5000, sizeof *branches);
    ck_assert_ptr_nonnull(branches);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Mimus__Demo__ActionSpec spec = MIMUS__DEMO__ACTION_SPEC__INIT;
        Mimus__Demo__Brain brain = MIMUS__DEMO__BRAIN__INIT;
        for (size_t b = 0; b < cases[i].count; b++)
            branches[b] = cases[i].branch;
        spec.branch_sizes = branches;
        spec.n_branch_sizes = cases[i].count;
        spec.continuous = cases[i].continuous;
        brain.action_spec = &spec;
        test_demo demo = test_demo_with(&brain);
        test_demo_add(&demo, &(test_demo_record){.senses = &sense, .sense_count = 1});
        must_fail(save(&demo, 1, true), NULL, MIMUS_ERR_FORMAT, cases[i].part);
    }
    free(branches);
}
END_TEST

/* --------------------------------------------------------------------- names */

static Mimus__Demo__Observation *new_observation(const char *name, float *data, size_t count) {
    Mimus__Demo__Observation *seen = malloc(sizeof *seen);
    ck_assert_ptr_nonnull(seen);
    mimus__demo__observation__init(seen);
    seen->name = (char *)name;
    seen->float_data = malloc(sizeof *seen->float_data);
    ck_assert_ptr_nonnull(seen->float_data);
    mimus__demo__observation__float_data__init(seen->float_data);
    seen->float_data->data = data;
    seen->float_data->n_data = count;
    return seen;
}

/* One record with two observations, of two numbers and one. */
static test_capture read_named(const char *first, const char *second) {
    float senses[3] = {1, 2, 3};
    Mimus__Demo__Observation *seen[] = {new_observation(first, senses, 2),
                                        new_observation(second, senses + 2, 1)};
    Mimus__Demo__AgentInfo agent = MIMUS__DEMO__AGENT_INFO__INIT;
    Mimus__Demo__Pair pair = MIMUS__DEMO__PAIR__INIT;
    agent.observations = seen;
    agent.n_observations = 2;
    pair.agent = &agent;
    test_demo demo = test_demo_new(three, 1);
    test_demo_add_pair(&demo, &pair);
    for (size_t i = 0; i < 2; i++) {
        free(seen[i]->float_data);
        free(seen[i]);
    }
    return must_read(save(&demo, 1, true), NULL);
}

START_TEST(names_that_are_missing_or_odd) {
    char longest[200];
    test_capture c = read_named("", "size");
    ck_assert_str_eq(c.schema->sense_names[0], "observation0[0]");
    ck_assert_str_eq(c.schema->sense_names[1], "observation0[1]");
    ck_assert_str_eq(c.schema->sense_names[2], "size");
    test_capture_free(&c);
    c = read_named("\xFF\xFE", "size"); /* no UTF-8 */
    ck_assert_ptr_null(c.schema->sense_names);
    test_capture_free(&c);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    c = read_named(longest, "size");
    ck_assert_ptr_null(c.schema->sense_names);
    ck_assert_uint_eq(c.schema->senses, 3);
    test_capture_free(&c);
}
END_TEST

/* ------------------------------------------------------------------- hostile */

/* Whatever a file is cut to is refused, or it is the copy that was cut. */
START_TEST(a_cut_file_ends_in_one_line) {
    char *bytes;
    size_t count;
    const char *path = test_folder_path("cut.demo");
    test_ok(mimus__file_read(DATA("recorded.demo"), 4096, &bytes, &count));
    const size_t copy = (size_t)(uint8_t)bytes[0];
    for (size_t cut = 0; cut < count - copy; cut++) {
        test_file_write(path, bytes, cut);
        must_fail(path, NULL, MIMUS_ERR_FORMAT, cut < 34 ? "metadata at byte 0" : "byte");
    }
    free(bytes);
}
END_TEST

/* Flip every bit of a small file, one at a time: it is read or refused, never worse. */
START_TEST(no_bit_matters_too_much) {
    char *bytes;
    size_t count;
    const char *path = test_folder_path("bent.demo");
    test_ok(mimus__file_read(DATA("recorded.demo"), 4096, &bytes, &count));
    for (size_t bit = 0; bit < count * 8; bit++) {
        test_capture c = test_capture_new();
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        test_file_write(path, bytes, count);
        if (read_with(&c, path, NULL) != MIMUS_OK)
            ck_assert_msg(strncmp(mimus_last_error(), path, strlen(path)) == 0, "bit %zu: %s", bit,
                          mimus_last_error());
        test_capture_free(&c);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(bytes);
}
END_TEST

typedef struct piece {
    const char *bytes;
    size_t count;
} piece;
#define PIECE(text)                                                                                \
    { text, sizeof(text) - 1 }

START_TEST(hostile_lengths_are_refused) {
    static const struct {
        piece bytes;
        const char *part;
    } cases[] = {
        {PIECE("\x80\xC8\xAF\xA0\x25"), "record 1 at byte 60: has 10000000000 bytes, and the file "
                                        "ends after"},
        {PIECE("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), "has 18446744073709551615 bytes"},
        {PIECE("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), "takes more than 10 bytes"},
        {PIECE("\x80\x80"), "the file ends inside of its length"},
        {PIECE("\x03\x0A\x7F\x00"), "not the message that a recorder writes"}, /* agent too long */
        {PIECE("\x02\x08\x01"), "not the message"}, /* a number where the agent belongs */
        {PIECE("\x01\x0B"), "not the message"},     /* a group begins */
        {PIECE("\x01\x0C"), "not the message"},     /* a group ends */
        {PIECE("\x00"), "holds no observations of an agent"},
        {PIECE("\x02\x0A\x00"), "0 observations; the first record has 1"},
        {PIECE("\x07\x0A\x05\x6A\x03\x22\x01\xFF"), "not the message"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_demo demo = plain(1);
        test_demo_add_bytes(&demo, cases[i].bytes.bytes, cases[i].bytes.count);
        must_fail(save(&demo, 2, false), NULL, MIMUS_ERR_FORMAT, cases[i].part);
    }
}
END_TEST

START_TEST(hostile_headers_are_refused) {
    static const struct {
        piece bytes;
        mimus_status status;
        const char *part;
    } cases[] = {
        {PIECE(""), MIMUS_ERR_FORMAT, "0 bytes of them; a .demo file has 1 to 32"},
        {PIECE("\x21"), MIMUS_ERR_FORMAT, "33 bytes of them"},
        {PIECE("\x02\x08\x02"), MIMUS_ERR_UNSUPPORTED, "version 2 of the format; 0 and 1 are read"},
        {PIECE("\x0D\x08\x01\x18\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), MIMUS_ERR_FORMAT,
         "metadata at byte 0: -1 records"},
        {PIECE("\x02\x08\x80"), MIMUS_ERR_FORMAT, "not the message"},
    };
    const char *path = test_folder_path("head.demo");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_demo demo = plain(2);
        memset(demo.bytes, 0, 33);
        memcpy(demo.bytes, cases[i].bytes.bytes, cases[i].bytes.count);
        test_demo_write(&demo, path);
        must_fail(path, NULL, cases[i].status, cases[i].part);
        test_demo_free(&demo);
    }
    test_file_write(path, "", 0);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "0 bytes, not 34 or more");
}
END_TEST

/* A message of `count` empty observations: two bytes each, and a hundred in memory. */
START_TEST(many_empty_parts_run_into_a_budget) {
    enum { PARTS = 1 << 20 };
    uint8_t *message = malloc(PARTS * 2 + 8);
    ck_assert_ptr_nonnull(message);
    size_t at = 0, inner = (size_t)PARTS * 2;
    message[at++] = 0x0A;
    for (size_t left = inner; at < 5; left >>= 7, at++) /* 2 MiB: a varint of four bytes */
        message[at] = (uint8_t)((left & 0x7F) | (at < 4 ? 0x80 : 0));
    for (size_t i = 0; i < PARTS; i++, at += 2)
        memcpy(message + at, "\x6A\x00", 2);
    test_demo demo = plain(1);
    test_demo_add_message(&demo, message, at);
    must_fail(save(&demo, 2, false), NULL, MIMUS_ERR_FORMAT, "far more parts than a recorder");
    free(message);
}
END_TEST

/* Unknown fields may nest as deep as they like: they are skipped. */
START_TEST(what_is_unknown_is_skipped) {
    uint8_t nested[120];
    size_t begin = sizeof nested;
    while (begin >= 2) { /* field 15, and in it all that was there */
        size_t inside = sizeof nested - begin;
        nested[--begin] = (uint8_t)inside;
        nested[--begin] = 15 << 3 | 2;
    }
    float sense = 7;
    Mimus__Demo__AgentInfo agent = MIMUS__DEMO__AGENT_INFO__INIT;
    Mimus__Demo__Pair pair = MIMUS__DEMO__PAIR__INIT;
    ProtobufCMessageUnknownField unknown = {15, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                            sizeof nested - 1, nested + 1};
    Mimus__Demo__Observation *seen = new_observation("", &sense, 1);
    agent.observations = &seen;
    agent.n_observations = 1;
    pair.agent = &agent;
    pair.base.n_unknown_fields = 1;
    pair.base.unknown_fields = &unknown;
    test_demo demo = test_demo_new(three, 1);
    test_demo_add_pair(&demo, &pair);
    test_capture c = must_read(save(&demo, 1, true), NULL);
    ck_assert_float_eq(c.senses[0], 7);
    test_capture_free(&c);
    free(seen->float_data);
    free(seen);
}
END_TEST

/* ----------------------------------------------------------- the whole of it */

START_TEST(files_are_known_by_their_first_bytes) {
    const char *path = test_folder_path("recording.bytes");
    const mimus__reader *reader = NULL;
    char *bytes;
    size_t count;
    test_ok(mimus__file_read(DATA("converted.demo"), 4096, &bytes, &count));
    test_file_write(path, bytes, count);
    test_ok(mimus__reader_find(&reader, NULL, path));
    ck_assert_str_eq(reader->name, "demo");
    bytes[30] = 1; /* where there should be nothing */
    test_file_write(path, bytes, count);
    test_fails(mimus__reader_find(&reader, NULL, path), MIMUS_ERR_FORMAT, "an unknown binary file");
    free(bytes);
    test_file_write(path, "12,13,14,15,16,17,18,19,20,21,22,23,24\n", 39);
    test_fails(mimus__reader_find(&reader, NULL, path), MIMUS_ERR_FORMAT, "looks like text");
    path = test_folder_path("text.demo");
    test_file_write(path, "12,13,14,15,16,17,18,19,20,21,22,23,24\n", 39);
    must_fail(path, NULL, MIMUS_ERR_FORMAT, "49 bytes of them");
}
END_TEST

static uint64_t last_done, last_total;
static int stop_after;

static void note_progress(void *user, const mimus_progress *progress) {
    (void)user;
    ck_assert_str_eq(progress->phase, "load");
    ck_assert_uint_ge(progress->done, last_done);
    last_done = progress->done;
    last_total = progress->total;
}

static bool stop(void *user) {
    (void)user;
    return --stop_after < 0;
}

START_TEST(reading_is_watched) {
    const mimus_watch watched = {.on_progress = note_progress, .should_stop = stop};
    test_demo demo = plain(10000);
    const char *path = save(&demo, 10000, true);
    const mimus_source source = {0};
    for (stop_after = 0; stop_after < 40;) {
        const int after = stop_after;
        test_capture c = test_capture_new();
        last_done = 0;
        mimus_status status = mimus__sink_read(&c.sink, path, &source, &watched);
        if (status == MIMUS_OK) {
            ck_assert_uint_eq(last_done, 10000);
            ck_assert_uint_eq(last_total, 10000);
            ck_assert_uint_eq(c.samples, 10000);
            ck_assert_int_gt(after, 15); /* two passes, a look every 1024 records */
            test_capture_free(&c);
            return;
        }
        ck_assert_int_eq(status, MIMUS_ERR_STOPPED);
        test_capture_free(&c);
        stop_after = after + 1;
    }
    ck_abort_msg("never read to its end");
}
END_TEST

/* A sink that keeps nothing, so that what is held is the reader's. */
static mimus_status discard(mimus__sink *sink, const mimus_schema *schema) {
    (void)sink;
    (void)schema;
    return MIMUS_OK;
}

static mimus_status discard_sample(mimus__sink *sink, const float *senses, const uint16_t *actions,
                                   const uint8_t *legal, float weight) {
    (void)sink;
    (void)senses;
    (void)actions;
    (void)legal;
    (void)weight;
    return MIMUS_OK;
}

static mimus_status discard_end(mimus__sink *sink) {
    (void)sink;
    return MIMUS_OK;
}

START_TEST(memory_does_not_grow_with_the_file) {
    enum { SENSES = 4000, RECORDS = 4000 }; /* 64 MB */
    static float senses[SENSES];
    int32_t action = 1;
    const char *path = test_folder_path("large.demo");
    mimus__sink sink = {.begin = discard, .append = discard_sample, .end_episode = discard_end};
    const mimus_source source = {0};
    struct rusage before, after;
    test_demo one = test_demo_new(three, 1);
    const size_t head = one.count;
    test_demo_add(
        &one, &(test_demo_record){
                  .senses = senses, .sense_count = SENSES, .actions = &action, .action_count = 1});
    test_demo_close(&one, RECORDS, false);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    fwrite(one.bytes, 1, head, out);
    for (int i = 0; i < RECORDS; i++)
        fwrite(one.bytes + head, 1, one.count - head, out);
    ck_assert_int_eq(fclose(out), 0);
    test_demo_free(&one);
    getrusage(RUSAGE_SELF, &before);
    test_ok(mimus__sink_read(&sink, path, &source, NULL));
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 8192); /* KiB */
}
END_TEST

int main(void) {
    Suite *suite = suite_create("demo");
    TCase *tests = tcase_create("demo");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, a_recorded_file);
    tcase_add_test(tests, a_converted_file);
    tcase_add_test(tests, the_alignment_can_be_stated);
    tcase_add_test(tests, masks_can_be_wished_for_and_left_out);
    tcase_add_test(tests, no_senses_at_all);
    tcase_add_test(tests, a_file_that_was_not_closed);
    tcase_add_test(tests, images_are_refused_or_skipped);
    tcase_add_test(tests, continuous_actions_become_bins);
    tcase_add_test(tests, labels_out_of_range_are_left_to_the_audit);
    tcase_add_test(tests, an_id_that_changes_begins_an_episode);
    tcase_add_test(tests, masks_decide_where_nothing_else_does);
    tcase_add_test(tests, what_follows_the_records_is_looked_at);
    tcase_add_test(tests, observations_must_stay_as_they_are);
    tcase_add_test(tests, actions_and_masks_must_fit);
    tcase_add_test(tests, brains_have_limits);
    tcase_add_test(tests, names_that_are_missing_or_odd);
    tcase_add_test(tests, a_cut_file_ends_in_one_line);
    tcase_add_test(tests, no_bit_matters_too_much);
    tcase_add_test(tests, hostile_lengths_are_refused);
    tcase_add_test(tests, hostile_headers_are_refused);
    tcase_add_test(tests, many_empty_parts_run_into_a_budget);
    tcase_add_test(tests, what_is_unknown_is_skipped);
    tcase_add_test(tests, files_are_known_by_their_first_bytes);
    tcase_add_test(tests, reading_is_watched);
    tcase_add_test(tests, memory_does_not_grow_with_the_file);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
