/* Reading what Godot RL Agents records: both forms, head sizes, continuous actions, and what is
 * refused. */
#include "capture.h"
#include "support.h"

#include "file.h"
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char messages[2048];

static void keep_message(void *user, const char *text) {
    (void)user;
    size_t length = strlen(messages);
    snprintf(messages + length, sizeof messages - length, "%s\n", text);
}

static const mimus_watch watch = {.on_message = keep_message};

static void begin(void) {
    messages[0] = '\0';
}

static void clean(void) {
    test_folder_remove();
}

static mimus_status read_path(test_capture *capture, const char *path, const char *option) {
    mimus_status status = MIMUS_OK;
    const char *const options[] = {option, NULL};
    const mimus__reader *reader = NULL;
    MIMUS_TRY(mimus__reader_find(&reader, NULL, path));
    MIMUS_TRY(mimus__reader_check(reader, options));
    MIMUS_TRY(reader->read(path, options, &capture->sink, &watch));
out:
    return status;
}

/* Write the text, with ' for ", and read it. */
static mimus_status read_text(test_capture *capture, const char *text, const char *option) {
    const char *path = test_folder_path("demo.json");
    char *quoted = strdup(text);
    for (char *c = quoted; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    test_file_write(path, quoted, strlen(quoted));
    free(quoted);
    return read_path(capture, path, option);
}

static void must_fail(const char *text, const char *option, mimus_status expected,
                      const char *part) {
    test_capture capture = test_capture_new();
    test_fails(read_text(&capture, text, option), expected, part);
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "demo.json: "));
    ck_assert_ptr_null(strchr(mimus_last_error(), '\n'));
    test_capture_free(&capture);
}

/* Two trajectories of two senses and two heads, three actions and one. */
#define TRAJECTORIES                                                                               \
    "[[[[0, 1], [2, 3], [4, 5.5], [6, 7]], [[1.0, 0.0], [0, 1], [4.0, 1]]], [[[8, 9], [-1e1, "     \
    "0]], "                                                                                        \
    "[[2, 0]]]]"

static void check_samples(const test_capture *c) {
    static const float senses[] = {0, 1, 2, 3, 4, 5.5F, 8, 9};
    static const uint16_t actions[] = {1, 0, 0, 1, 4, 1, 2, 0};
    static const bool ends[] = {false, false, true, true};
    ck_assert_uint_eq(c->samples, 4);
    ck_assert_uint_eq(c->schema->senses, 2);
    ck_assert_uint_eq(c->schema->heads, 2);
    ck_assert_mem_eq(c->senses, senses, sizeof senses);
    ck_assert_mem_eq(c->actions, actions, sizeof actions);
    ck_assert_mem_eq(c->ends, ends, sizeof ends);
}

START_TEST(a_bare_array_is_read) {
    test_capture c = test_capture_new();
    test_ok(read_text(&c, TRAJECTORIES, NULL));
    check_samples(&c);
    ck_assert_uint_eq(c.schema->head[0].actions, 5);
    ck_assert_uint_eq(c.schema->head[1].actions, 2);
    ck_assert_str_eq(c.schema->head[0].name, "head0");
    ck_assert_ptr_nonnull(strstr(messages, "by the largest labels: 5,2"));
    test_capture_free(&c);
    c = test_capture_new();
    messages[0] = '\0';
    test_ok(read_text(&c, " \n" TRAJECTORIES "\r\n\t", "heads=move:5,shoot:hold|fire"));
    check_samples(&c);
    ck_assert_str_eq(c.schema->head[1].action_names[1], "fire");
    ck_assert_str_eq(messages, "");
    test_capture_free(&c);
    must_fail(TRAJECTORIES, "heads=5", MIMUS_ERR_ARGUMENT, "names 1 heads");
    must_fail(TRAJECTORIES, "heads=x", MIMUS_ERR_ARGUMENT, "should be name:actions");
}
END_TEST

START_TEST(an_object_says_what_its_actions_are) {
    static const char *const texts[] = {
        "{'format_version': 'gnrl_v1', 'action_space': {'move': {'size': 6, 'action_type': "
        "'discrete'}, 'shoot': {'size': 3, 'action_type': 'discrete'}}, "
        "'demo_trajectories': " TRAJECTORIES "}",
        /* in another order, and with more in it */
        "{'seed': -1.5e3, 'note': null, 'nested': {'a': [1, {}]}, "
        "'demo_trajectories': " TRAJECTORIES
        ", 'text': '}', 'action_space': {'move': {'size': 6, 'action_type': 'discrete'}, 'shoot': "
        "{'size': 3, 'action_type': 'discrete'}}, 'format_version': 'gnrl_v1'}"};
    for (size_t i = 0; i < 2; i++) {
        test_capture c = test_capture_new();
        test_ok(read_text(&c, texts[i], NULL));
        check_samples(&c);
        ck_assert_str_eq(c.schema->head[0].name, "move");
        ck_assert_uint_eq(c.schema->head[0].actions, 6);
        ck_assert_str_eq(c.schema->head[1].name, "shoot");
        ck_assert_uint_eq(c.schema->head[1].actions, 3);
        ck_assert_str_eq(messages, "");
        test_capture_free(&c);
    }
    must_fail("{'action_space': {'move': {'size': 5, 'action_type': 'discrete'}}, "
              "'demo_trajectories': " TRAJECTORIES "}",
              NULL, MIMUS_ERR_DATA,
              "action_space says 1 numbers an action, and the actions have 2");
    must_fail("{'action_space': {'move': {'size': 1, 'action_type': 'discrete'}}, "
              "'demo_trajectories': " TRAJECTORIES "}",
              NULL, MIMUS_ERR_UNSUPPORTED, "action_space: move: size 1; a head has 2 to 65534");
    must_fail("{'action_space': {'move': {'size': 5, 'action_type': 'odd'}}}", NULL,
              MIMUS_ERR_UNSUPPORTED, "\"odd\": expected discrete or continuous");
    must_fail("{'action_space': {'move': 5}}", NULL, MIMUS_ERR_FORMAT, "action_space: move: ");
    must_fail("{'action_space': []}", NULL, MIMUS_ERR_FORMAT,
              "\"action_space\" should be an object");
    must_fail("{'action_space': {'a': {'size': 99999999999, 'action_type': 'continuous'}}}", NULL,
              MIMUS_ERR_UNSUPPORTED, "more than 4096 numbers an action");
    must_fail("{'format_version': 'gnrl_v2'}", NULL, MIMUS_ERR_UNSUPPORTED,
              "\"format_version\" is \"gnrl_v2\"; \"gnrl_v1\" can be read");
    must_fail("{'seed': 1}", NULL, MIMUS_ERR_FORMAT, "without \"demo_trajectories\"");
    must_fail("{}", NULL, MIMUS_ERR_FORMAT, "without \"demo_trajectories\"");
}
END_TEST

START_TEST(continuous_actions_become_bins) {
    const char *path = test_folder_path("drive.json");
    const char *options[] = {"bin=steer_1:uniform:2,steer_0:quantile:3", NULL};
    const mimus_source source = {.paths = &path, .count = 1, .options = options};
    static const uint16_t actions[] = {0, 0, 3, 1, 1, 2, 2, 1, 0};
    const char *text =
        "{\"action_space\": {\"steer\": {\"size\": 2, \"action_type\": \"continuous\"}, "
        "\"gear\": {\"size\": 4, \"action_type\": \"discrete\"}}, "
        "\"demo_trajectories\": [[[[1], [2], [3], [4]], "
        "[[-1.5, 0, 3], [0.25, 1, 2], [0.5, 1.5, 0]]]]}";
    mimus__recording *recording = NULL;
    mimus__block block;
    test_file_write(path, text, strlen(text));
    test_ok(mimus__recording_open(&recording, &source, NULL));
    const mimus_schema *schema = mimus__recording_schema(recording);
    ck_assert_uint_eq(schema->heads, 3);
    ck_assert_str_eq(schema->head[0].name, "steer_0");
    ck_assert_float_eq(schema->head[0].bin_values[2], 0.5F); /* few kinds: a bin each */
    ck_assert_float_eq(schema->head[1].bin_values[1], 1.125F);
    ck_assert_uint_eq(schema->head[2].actions, 4);
    test_ok(mimus__recording_block(recording, 0, &block));
    ck_assert_mem_eq(block.actions, actions, sizeof actions);
    mimus__recording_free(recording);
    options[0] = "bin=gear:uniform:2";
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_ARGUMENT,
               "column \"gear\" holds labels already");
    options[0] = NULL;
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_UNSUPPORTED,
               "drive.json: action \"steer_0\" is continuous; the option bin");
    must_fail("[[[[1], [2], [3]], [[0], [0.5]]]]", NULL, MIMUS_ERR_UNSUPPORTED,
              "trajectory 0: action 0 is 0.5, no integer; the option bin");
}
END_TEST

START_TEST(odd_labels_are_for_the_audit) {
    test_capture c = test_capture_new();
    test_ok(read_text(&c, "[[[[1], [2], [3], [4], [5]], [[-1], [-3], [1e300], [1]]]]", "heads=2"));
    ck_assert_uint_eq(c.actions[0], MIMUS_NO_LABEL);
    ck_assert_uint_eq(c.actions[1], MIMUS__MAX_ACTIONS);
    ck_assert_uint_eq(c.actions[2], MIMUS__MAX_ACTIONS);
    ck_assert_uint_eq(c.actions[3], 1);
    test_capture_free(&c);
    c = test_capture_new(); /* as many observations as actions; a trajectory without any */
    test_ok(read_text(&c, "[[[[1]], []], [[], []], [[[1e39], [2]], [[0], [1]]]]", NULL));
    ck_assert_uint_eq(c.samples, 2);
    ck_assert(isinf(c.senses[0]));
    test_capture_free(&c);
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_place) {
    must_fail("[]", NULL, MIMUS_ERR_DATA, "0 trajectories without an action");
    must_fail("[[[[1]], []]]", NULL, MIMUS_ERR_DATA, "1 trajectories without an action");
    must_fail("[1]", NULL, MIMUS_ERR_FORMAT, "byte 1: expected an array, an object or a string");
    must_fail("[[1, 2]]", NULL, MIMUS_ERR_FORMAT,
              "trajectory 0: should be [observations, actions]");
    must_fail("[[[], [], []]]", NULL, MIMUS_ERR_FORMAT, "trajectory 0: should be");
    must_fail("[[[[1]], [[0]]], [[[1], [2], [3]], [[0]]]]", NULL, MIMUS_ERR_FORMAT,
              "trajectory 1: 3 observations and 1 actions");
    must_fail("[[[[1], [2, 3]], [[0]]]]", NULL, MIMUS_ERR_DATA,
              "trajectory 0: observation 1 has 2 numbers; expected 1");
    must_fail("[[[[1], [2]], [[0, 1]]], [[[1], [2]], [[0]]]]", NULL, MIMUS_ERR_DATA,
              "trajectory 1: action 0 has 1 numbers; expected 2");
    must_fail("[[[[1], [2]], [['a']]]]", NULL, MIMUS_ERR_FORMAT,
              "trajectory 0: element 0 of action 0 is no number");
    must_fail("[[[[1], 5], [[0]]]]", NULL, MIMUS_ERR_FORMAT,
              "trajectory 0: observation 1 should be an array");
    must_fail("[[[[], []], [[0]]]]", NULL, MIMUS_ERR_FORMAT, "observation 0 should be an array");
    must_fail("[[[[1], [2]], [5]]]", NULL, MIMUS_ERR_FORMAT, "action 0 should be an array");
    must_fail("[[[[1], [2]], [[0]]", NULL, MIMUS_ERR_FORMAT, "demo.json: byte 19: ");
    must_fail("[[[[1], [2]], [[0]]]", NULL, MIMUS_ERR_FORMAT, "ends at byte 20: expected ']'");
    must_fail("[[[[1], [2]], [[0]]] [", NULL, MIMUS_ERR_FORMAT, "byte 21: expected ']', found '['");
    must_fail("[[[[1], [2]], [[nan]]]]", NULL, MIMUS_ERR_FORMAT, "invalid token near 'nan'");
    must_fail("[[[[1], [2]], [[1]]]] x", NULL, MIMUS_ERR_FORMAT, "byte 22: goes on behind its end");
    must_fail("{'a' 1}", NULL, MIMUS_ERR_FORMAT, "byte 5: expected ':', found '1'");
    must_fail("{'a': , ", NULL, MIMUS_ERR_FORMAT, "byte 6: expected a value, found ','");
    must_fail("{", NULL, MIMUS_ERR_FORMAT, "ends at byte 1");
    must_fail("[[[[70000], [2]], [[70000]]]]", NULL, MIMUS_ERR_DATA, "a label of 70000");
}
END_TEST

/* However deep brackets go, and however long a value is, there is an end to it. */
START_TEST(depth_and_length_have_limits) {
    enum { DEEP = 100000, LONG = 70 << 20 };
    char *text = malloc(LONG + 1);
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    must_fail(text, NULL, MIMUS_ERR_FORMAT, "maximum parsing depth reached");
    memset(text, ' ', LONG);
    memcpy(text, "[[", 2);
    text[LONG] = '\0';
    must_fail(text, NULL, MIMUS_ERR_UNSUPPORTED, "a trajectory of more than 64 MiB");
    free(text);
}
END_TEST

START_TEST(files_are_known_by_their_beginning) {
    static const struct {
        const char *name, *text;
        bool godot;
    } cases[] = {{"a.bin", "[ [\n[[1], [2]], [[0]]]]", true},
                 {"a.bin", "{\"format_version\": \"gnrl_v1\"", true},
                 {"a.bin", "{\"demo_trajectories\":", true},
                 {"a.json", "{", true},
                 {"a.json", "7", false},
                 {"a.bin", "{\"a\": 1}", false},
                 {"a.bin", "[1]", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = test_folder_path(cases[i].name);
        const mimus__reader *reader = NULL;
        test_file_write(path, cases[i].text, strlen(cases[i].text));
        mimus_status status = mimus__reader_find(&reader, NULL, path);
        ck_assert_msg((status == MIMUS_OK) == cases[i].godot, "%s", cases[i].text);
        if (cases[i].godot)
            ck_assert_str_eq(reader->name, "godot");
    }
}
END_TEST

/* A file that is to be judged need not have every label that the policy knows. */
START_TEST(who_judges_knows_the_heads) {
    const char *path = test_folder_path("judged.json");
    static const mimus_head heads[] = {{.name = "move", .actions = 9},
                                       {.name = "fire", .actions = 3}};
    const mimus_schema like = {.senses = 2, .heads = 2, .head = heads};
    mimus__recording *recording = NULL;
    test_file_write(path, TRAJECTORIES, strlen(TRAJECTORIES));
    test_ok(mimus__recording_open_like(&recording, &(mimus_source){.paths = &path, .count = 1},
                                       &like, NULL));
    test_ok(mimus__schema_match(&like, "policy", mimus__recording_schema(recording), "file", true));
    ck_assert_str_eq(mimus__recording_schema(recording)->head[1].name, "fire");
    mimus__recording_free(recording);
}
END_TEST

/* The counts are those of another program (Python's json). */
START_TEST(chase_imports) {
    const char *path = MIMUS_SHARED_DATA "/godot/chase_expert_demos.json";
    static const size_t lengths[] = {90, 30, 30, 30, 30, 30, 30, 30};
    if (!mimus__file_exists(path)) {
        printf("%s is not here: not tested\n", path);
        return;
    }
    test_capture c = test_capture_new();
    size_t counts[5] = {0}, row = 0;
    test_ok(read_path(&c, path, NULL));
    ck_assert_uint_eq(c.samples, 300);
    ck_assert_uint_eq(c.schema->senses, 5);
    ck_assert_uint_eq(c.schema->heads, 1);
    ck_assert_uint_eq(c.schema->head[0].actions, 5);
    ck_assert_str_eq(c.schema->head[0].name, "move");
    ck_assert_uint_eq(test_capture_episodes(&c), 8);
    for (size_t e = 0; e < 8; e++) {
        row += lengths[e];
        ck_assert(c.ends[row - 1]);
    }
    for (size_t i = 0; i < 300; i++)
        counts[c.actions[i]]++;
    ck_assert(counts[1] == 124 && counts[3] == 37 && counts[4] == 139);
    ck_assert_float_eq(c.senses[1], 0.980062866210937F);
    test_capture_free(&c);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("godot");
    TCase *tests = tcase_create("godot");
    tcase_add_checked_fixture(tests, begin, clean);
    tcase_add_test(tests, a_bare_array_is_read);
    tcase_add_test(tests, an_object_says_what_its_actions_are);
    tcase_add_test(tests, continuous_actions_become_bins);
    tcase_add_test(tests, odd_labels_are_for_the_audit);
    tcase_add_test(tests, what_is_wrong_is_named_with_its_place);
    tcase_add_test(tests, depth_and_length_have_limits);
    tcase_add_test(tests, files_are_known_by_their_beginning);
    tcase_add_test(tests, who_judges_knows_the_heads);
    tcase_add_test(tests, chase_imports);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
