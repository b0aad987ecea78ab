/* Recordings of unusual shapes and names, through everything that reads and writes them. */
#include "play.h"
#include "support.h"

#include "file.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 3 };

static const char *path_of(const char *name) {
    static char paths[8][512];
    static unsigned used;
    ck_assert_uint_lt(used, 8);
    char *path = paths[used++];
    snprintf(path, sizeof paths[0], "%s", test_folder_path(name));
    return path;
}

/* (count) names "PREFIX 0", "PREFIX 1", ...; one block, to be freed. */
static const char **numbered(const char *prefix, size_t count) {
    const size_t room = strlen(prefix) + 12;
    char **names = malloc(count * (sizeof *names + room));
    char *letters = (char *)(names + count);
    for (size_t i = 0; i < count; i++, letters += room) {
        snprintf(letters, room, "%s %zu", prefix, i);
        names[i] = letters;
    }
    return (const char **)names;
}

static json_t *info_of(const char *path) {
    const mimus_source source = {.paths = &path, .count = 1};
    char *text = NULL;
    json_t *json = NULL;
    test_ok(mimus_info(&source, NULL, &text));
    test_ok(mimus__json_parse(&json, text, strlen(text), "info"));
    mimus_free(text);
    return json;
}

static void check_content(const char *path, const test_play *play) {
    mimus__recording *recording = NULL;
    test_ok(test_recording_open(&recording, path));
    ck_assert_uint_eq(mimus__recording_samples(recording), SAMPLES);
    test_ok(mimus__schema_match(mimus__recording_schema(recording), "file", play->schema, "play",
                                true));
    test_play_check(recording, 0, play, SAMPLES);
    mimus__recording_free(recording);
}

/* Recorded, described and imported, it is what it was. Gives the description. */
static json_t *check_shape(const mimus_schema *schema) {
    const test_play play = {.schema = schema, .seed = 3};
    const char *path = path_of("shape.rec"), *again = path_of("again.rec");
    const mimus_source source = {.paths = &path, .count = 1};
    test_play_record(path, &play, SAMPLES);
    check_content(path, &play);
    test_ok(mimus_import(&source, again, NULL, NULL));
    check_content(again, &play);
    json_t *json = info_of(again);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "heads")), schema->heads);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "senses")), schema->senses);
    return json;
}

START_TEST(a_hundred_thousand_senses) {
    enum { SENSES = 100000 };
    static const mimus_head head = {.actions = 2};
    const char **names = numbered("sense", SENSES);
    const mimus_schema schema = {
        .senses = SENSES, .sense_names = names, .heads = 1, .head = &head, .masks = true};
    json_t *json = check_shape(&schema);
    const json_t *last = json_array_get(json_object_get(json, "senses"), SENSES - 1);
    ck_assert_str_eq(json_string_value(json_object_get(last, "name")), "sense 99999");
    json_decref(json);
    free(names);
}
END_TEST

START_TEST(a_thousand_heads) {
    enum { HEADS = 1000 };
    mimus_head *heads = calloc(HEADS, sizeof *heads);
    const char **names = numbered("head", HEADS);
    for (uint32_t h = 0; h < HEADS; h++)
        heads[h] = (mimus_head){.name = names[h], .actions = 2 + h % 5};
    const mimus_schema schema = {
        .senses = 1, .heads = HEADS, .head = heads, .masks = true, .weights = true};
    json_t *json = check_shape(&schema);
    const json_t *last = json_array_get(json_object_get(json, "heads"), HEADS - 1);
    ck_assert_str_eq(json_string_value(json_object_get(last, "name")), "head 999");
    json_decref(json);
    free(names);
    free(heads);
}
END_TEST

START_TEST(a_head_of_65534_actions) {
    enum { ACTIONS = 65534 };
    const char **names = numbered("action", ACTIONS);
    const mimus_head heads[] = {{.actions = 2}, {.actions = ACTIONS, .action_names = names}};
    const mimus_schema schema = {.senses = 1, .heads = 2, .head = heads, .masks = true};
    json_t *json = check_shape(&schema);
    const json_t *head = json_array_get(json_object_get(json, "heads"), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(head, "counts")), ACTIONS);
    json_decref(json);

    /* the last action, which is the label nearest to "no label" */
    const char *path = path_of("last.rec");
    const float sense = 0;
    const uint16_t actions[] = {1, ACTIONS - 1};
    mimus_recorder *recorder = NULL;
    test_ok(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE));
    test_ok(mimus_recorder_append(recorder, &sense, actions, NULL, 1));
    test_fails(mimus_recorder_append(recorder, &sense, (uint16_t[]){1, ACTIONS}, NULL, 1),
               MIMUS_ERR_DATA, "65534");
    test_ok(mimus_recorder_close(recorder));
    json = info_of(path);
    head = json_array_get(json_object_get(json, "heads"), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(head, "majority")), ACTIONS - 1);
    json_decref(json);
    free(names);
}
END_TEST

/* A schema's text is bounded (docs/recording.md), and a recorder that cannot write it says so. */
START_TEST(names_beyond_the_schemas_room_are_refused) {
    enum { SENSES = 1000, LETTERS = 17000 };
    static const mimus_head head = {.actions = 2};
    const char *path = path_of("names.rec"), *names[SENSES];
    char *name = calloc(LETTERS + 1, 1);
    memset(name, 'x', LETTERS);
    for (size_t i = 0; i < SENSES; i++)
        names[i] = name;
    const mimus_schema schema = {.senses = SENSES, .sense_names = names, .heads = 1, .head = &head};
    mimus_recorder *recorder = NULL;
    test_fails(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE),
               MIMUS_ERR_ARGUMENT, "at most 16777215 bytes");
    ck_assert_ptr_null(recorder);
    ck_assert(!mimus__file_exists(path));
    free(name);
}
END_TEST

START_TEST(names_of_any_characters_are_kept) {
    static const char *const senses[] = {"a\nb", "\x1b[1m\x7f\t\x01", "H\u00f6he \u9ad8 \U0001f3ae",
                                         "\"quoted\\\"", " "};
    static const char *const actions[] = {"yes\r", "\u202eno"};
    static const mimus_head head = {.name = "\v", .actions = 2, .action_names = actions};
    const mimus_schema schema = {.senses = 5, .sense_names = senses, .heads = 1, .head = &head};
    json_t *json = check_shape(&schema);
    for (size_t s = 0; s < 5; s++) {
        const json_t *sense = json_array_get(json_object_get(json, "senses"), s);
        ck_assert_str_eq(json_string_value(json_object_get(sense, "name")), senses[s]);
    }
    json_decref(json);
}
END_TEST

/* Who replaces a recording by a rename, as all of mimus does, takes nothing from those who read. */
START_TEST(a_replaced_recording_is_read_to_its_end) {
    static const mimus_head head = {.actions = 2};
    const mimus_schema schema = {.senses = 1000, .heads = 1, .head = &head};
    const test_play play = {.schema = &schema, .seed = 4};
    const char *path = path_of("read.rec");
    mimus__recording *recording = NULL;
    test_play_record(path, &play, 2000);
    test_ok(test_recording_open(&recording, path));
    test_ok(mimus__file_replace(path, "short", 5));
    test_play_check(recording, 0, &play, 2000);
    mimus__recording_free(recording);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("extremes");
    TCase *tests = tcase_create("extremes");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, a_hundred_thousand_senses);
    tcase_add_test(tests, a_thousand_heads);
    tcase_add_test(tests, a_head_of_65534_actions);
    tcase_add_test(tests, names_beyond_the_schemas_room_are_refused);
    tcase_add_test(tests, names_of_any_characters_are_kept);
    tcase_add_test(tests, a_replaced_recording_is_read_to_its_end);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
