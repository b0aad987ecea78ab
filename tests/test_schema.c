/* Schemas: deep copies, limits, the JSON form, and differences told apart. */
#include "support.h"

#include "schema.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const senses[] = {"x", "y", "h\xC3\xB6he"};
static const char *const gun[] = {"hold", "fire"};
static const mimus_head heads[] = {{.name = "gun", .actions = 2, .action_names = gun},
                                   {.actions = 3}};
static const mimus_schema named = {3, senses, 2, heads, true, false};

static void same(const mimus_schema *a, const mimus_schema *b) {
    test_ok(mimus__schema_match(a, "a", b, "b", true));
    ck_assert((a->sense_names == NULL) == (b->sense_names == NULL));
    for (uint32_t h = 0; h < a->heads; h++)
        ck_assert((a->head[h].action_names == NULL) == (b->head[h].action_names == NULL));
}

START_TEST(a_copy_owns_all_it_names) {
    char name[] = "gun", sense[] = "speed", action[] = "hold";
    const char *sense_names[] = {sense};
    const char *action_names[] = {action, "fire"};
    mimus_head head = {.name = name, .actions = 2, .action_names = action_names};
    mimus_schema schema = {1, sense_names, 1, &head, false, true};
    mimus_schema *copy = NULL;
    test_ok(mimus__schema_copy(&copy, &schema));
    memset(name, '#', 3);
    memset(sense, '#', 5);
    memset(action, '#', 4);
    memset(&head, 0xA5, sizeof head);
    memset(&schema, 0xA5, sizeof schema);
    ck_assert_str_eq(copy->sense_names[0], "speed");
    ck_assert_str_eq(copy->head[0].name, "gun");
    ck_assert_str_eq(copy->head[0].action_names[0], "hold");
    ck_assert_str_eq(copy->head[0].action_names[1], "fire");
    ck_assert(copy->weights && !copy->masks);
    mimus__schema_free(copy);
    mimus__schema_free(NULL);
}
END_TEST

START_TEST(heads_without_a_name_are_numbered) {
    mimus_schema *copy = NULL;
    mimus_head *many = calloc(MIMUS__MAX_HEADS, sizeof *many);
    for (uint32_t h = 0; h < MIMUS__MAX_HEADS; h++)
        many[h].actions = 2;
    mimus_schema schema = {1, NULL, MIMUS__MAX_HEADS, many, true, true};
    test_ok(mimus__schema_copy(&copy, &schema));
    ck_assert_str_eq(copy->head[0].name, "head0");
    ck_assert_str_eq(copy->head[4095].name, "head4095");
    ck_assert_uint_eq(mimus__schema_actions(copy), 8192);
    mimus__schema_free(copy);
    free(many);
}
END_TEST

static void refused(mimus_schema schema, const char *part) {
    mimus_schema *copy = NULL;
    test_fails(mimus__schema_copy(&copy, &schema), MIMUS_ERR_SCHEMA, part);
    ck_assert_ptr_null(copy);
}

START_TEST(limits_are_named) {
    static const char *const hole[] = {"x", NULL};
    static const char *const latin[] = {"h\xF6he"};
    static const mimus_head two = {.name = "a", .actions = 2};
    static const mimus_head one = {.name = "a", .actions = 1},
                            many = {.name = "a", .actions = 65535};
    static const mimus_head bad_name = {.name = "\xFF", .actions = 2},
                            bad_action = {.name = "a", .actions = 2, .action_names = hole};
    mimus_head huge[17];
    refused((mimus_schema){(1 << 20) + 1, NULL, 1, &two, false, false},
            "at most 1048576 senses, not 1048577");
    refused((mimus_schema){1, NULL, 0, &two, false, false}, "1 to 4096 heads, not 0");
    refused((mimus_schema){1, NULL, 1, NULL, false, false}, "1 to 4096 heads, not 0");
    refused((mimus_schema){1, NULL, 4097, &two, false, false}, "heads, not 4097");
    refused((mimus_schema){2, hole, 1, &two, false, false}, "sense 1 has no name");
    refused((mimus_schema){1, latin, 1, &two, false, false}, "sense 0 is not UTF-8");
    refused((mimus_schema){1, NULL, 1, &one, false, false}, "head 0: 2 to 65534 actions, not 1");
    refused((mimus_schema){1, NULL, 1, &many, false, false}, "actions, not 65535");
    refused((mimus_schema){1, NULL, 1, &bad_name, false, false}, "head 0 is not UTF-8");
    refused((mimus_schema){1, NULL, 1, &bad_action, false, false}, "head 0: action 1 has no name");
    for (int h = 0; h < 17; h++)
        huge[h] = (mimus_head){.actions = 65534};
    refused((mimus_schema){1, NULL, 17, huge, false, false}, "in all heads, not 1114078");
    mimus_schema *copy = NULL;
    test_ok(mimus__schema_copy(&copy, &(mimus_schema){1 << 20, NULL, 16, huge, true, false}));
    ck_assert_uint_eq(mimus__schema_mask_words(copy), (16 * 65534 + 31) / 32);
    mimus__schema_free(copy);
}
END_TEST

START_TEST(json_holds_all_of_it) {
    const char *want = "{\"senses\": [\"x\", \"y\", \"h\xC3\xB6he\"], \"heads\": [{\"name\": "
                       "\"gun\", \"actions\": [\"hold\", \"fire\"]}, {\"name\": \"head1\", "
                       "\"actions\": 3}], \"masks\": true, \"weights\": false}";
    json_t *json = NULL;
    char *text = NULL;
    mimus_schema *back = NULL;
    test_ok(mimus__schema_to_json(&json, &named));
    test_ok(mimus__json_text(&text, json, 0));
    ck_assert_str_eq(text, want);
    test_ok(mimus__schema_from_json(&back, json, "here"));
    same(&named, back);
    ck_assert_str_eq(back->head[1].name, "head1");
    json_decref(json);
    free(text);

    test_ok(mimus__schema_to_json(&json, &(mimus_schema){143, NULL, 1, heads, false, true}));
    test_ok(mimus__json_text(&text, json, 0));
    ck_assert_ptr_nonnull(strstr(text, "{\"senses\": 143, "));
    mimus__schema_free(back);
    test_ok(mimus__schema_from_json(&back, json, "here"));
    ck_assert_uint_eq(back->senses, 143);
    ck_assert(back->weights && !back->masks);
    mimus__schema_free(back);
    json_decref(json);
    free(text);
}
END_TEST

START_TEST(malformed_json_is_refused) {
    static const struct {
        const char *json;
        mimus_status status;
        const char *part;
    } cases[] = {
        {"[]", MIMUS_ERR_FORMAT, "\"masks\" should be true or false"},
        {"{'masks':true,'weights':1}", MIMUS_ERR_FORMAT, "\"weights\" should be true or false"},
        {"{'masks':true,'weights':true}", MIMUS_ERR_FORMAT, "\"senses\" should be a number"},
        {"{'masks':true,'weights':true,'senses':-1}", MIMUS_ERR_SCHEMA, "not -1"},
        {"{'masks':true,'weights':true,'senses':4294967297}", MIMUS_ERR_SCHEMA, "not 4294967297"},
        {"{'masks':true,'weights':true,'senses':['a',1]}", MIMUS_ERR_FORMAT, "name 1 of"},
        {"{'masks':true,'weights':true,'senses':1}", MIMUS_ERR_FORMAT, "\"heads\" should be"},
        {"{'masks':true,'weights':true,'senses':1,'heads':{}}", MIMUS_ERR_FORMAT, "\"heads\""},
        {"{'masks':true,'weights':true,'senses':1,'heads':[]}", MIMUS_ERR_SCHEMA, "here: 1 to"},
        {"{'masks':true,'weights':true,'senses':1048577,'heads':[{'name':'a','actions':2}]}",
         MIMUS_ERR_SCHEMA, "here: at most 1048576 senses, not 1048577"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[7]}", MIMUS_ERR_FORMAT, "here: head 0"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':2},{'name':'b'}]}",
         MIMUS_ERR_FORMAT, "here: head 1: \"actions\" should be a number"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':65535}]}",
         MIMUS_ERR_SCHEMA, "here: head 0: at most 65534 actions, not 65535"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':['x',2]}]}",
         MIMUS_ERR_FORMAT, "here: head 0: name 1 of"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':['x']}]}",
         MIMUS_ERR_SCHEMA, "here: head 0: 2 to 65534 actions, not 1"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':3,'edges':[1]}]}",
         MIMUS_ERR_FORMAT, "here: head 0: \"edges\" should be an array of 2 numbers"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':2,'edges':['x'],"
         "'values':[1,2]}]}",
         MIMUS_ERR_FORMAT, "here: head 0: element 0 of \"edges\" is not a number"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':2,'edges':[1]}]}",
         MIMUS_ERR_SCHEMA, "here: head 0: bins have edges and values"},
        {"{'masks':true,'weights':true,'senses':1,'heads':[{'name':'a','actions':2,'edges':[1e99],"
         "'values':[1,2]}]}",
         MIMUS_ERR_SCHEMA, "here: head 0: an edge or value of its bins is not finite"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", cases[i].json);
        for (char *c = text; *c != '\0'; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *json = NULL;
        mimus_schema *schema = NULL;
        test_ok(mimus__json_parse(&json, text, strlen(text), "text"));
        test_fails(mimus__schema_from_json(&schema, json, "here"), cases[i].status, cases[i].part);
        ck_assert_ptr_null(schema);
        json_decref(json);
    }
}
END_TEST

static void differs(const mimus_schema *other, const char *part) {
    test_fails(mimus__schema_match(&named, "a.rec", other, "b.rec", true), MIMUS_ERR_SCHEMA, part);
}

START_TEST(the_first_difference_is_named_with_both_sides) {
    static const char *const other_senses[] = {"x", "z", "h\xC3\xB6he"};
    static const char *const other_gun[] = {"hold", "throw"};
    const mimus_head other_name[] = {{.name = "bow", .actions = 2, .action_names = gun},
                                     {.actions = 3}};
    const mimus_head other_actions[] = {{.name = "gun", .actions = 2, .action_names = other_gun},
                                        {.actions = 3}};
    const mimus_head other_count[] = {{.name = "gun", .actions = 2, .action_names = gun},
                                      {.actions = 4}};
    mimus_schema other = named;
    other.senses = 2;
    differs(&other, "senses: 3 in a.rec, 2 in b.rec");
    other = named;
    other.heads = 1;
    differs(&other, "heads: 2 in a.rec, 1 in b.rec");
    other = named;
    other.sense_names = other_senses;
    differs(&other, "sense 1: \"y\" in a.rec, \"z\" in b.rec");
    other.sense_names = NULL; /* one side without names is no difference */
    test_ok(mimus__schema_match(&named, "a.rec", &other, "b.rec", true));
    other.head = other_name;
    differs(&other, "head 0: \"gun\" in a.rec, \"bow\" in b.rec");
    other.head = other_actions;
    differs(&other, "head 0, action 1: \"fire\" in a.rec, \"throw\" in b.rec");
    other.head = other_count;
    differs(&other, "actions of head 1: 3 in a.rec, 4 in b.rec");
    other = named;
    other.masks = false;
    differs(&other, "a.rec has masks and b.rec has none");
    other = named;
    other.weights = true;
    differs(&other, "b.rec has weights and a.rec has none");
    test_ok(mimus__schema_match(&named, "a.rec", &other, "b.rec", false));
}
END_TEST

static const float edges[] = {-0.1F, 0.3F}, values[] = {-0.55F, 0.1F, 1.0F / 3};
static const mimus_head binned[] = {{.name = "gun", .actions = 2, .action_names = gun},
                                    {.actions = 3, .bin_edges = edges, .bin_values = values}};
static const mimus_schema with_bins = {3, senses, 2, binned, true, false};

START_TEST(bins_are_kept_bit_by_bit) {
    json_t *json = NULL;
    char *text = NULL;
    mimus_schema *copy = NULL, *back = NULL;
    test_ok(mimus__schema_copy(&copy, &with_bins));
    ck_assert_ptr_null(copy->head[0].bin_edges);
    ck_assert_ptr_ne(copy->head[1].bin_edges, edges);
    test_ok(mimus__schema_to_json(&json, copy));
    test_ok(mimus__json_text(&text, json, 0));
    ck_assert_ptr_nonnull(strstr(text, "\"actions\": 3, \"edges\": [-0.1"));
    json_decref(json);
    test_ok(mimus__json_parse(&json, text, strlen(text), "text"));
    test_ok(mimus__schema_from_json(&back, json, "here"));
    ck_assert_mem_eq(back->head[1].bin_edges, edges, sizeof edges);
    ck_assert_mem_eq(back->head[1].bin_values, values, sizeof values);
    test_ok(mimus__schema_match(&with_bins, "a", back, "b", true));
    json_decref(json);
    free(text);
    mimus__schema_free(copy);
    mimus__schema_free(back);
}
END_TEST

START_TEST(bins_that_differ_are_named) {
    static const float other_edges[] = {-0.1F, 0.5F}, other_values[] = {-0.5F, 0.1F, 1.0F / 3};
    mimus_head heads_of_other[2] = {binned[0], binned[1]};
    mimus_schema other = with_bins;
    other.head = heads_of_other;
    heads_of_other[1].bin_edges = other_edges;
    test_fails(mimus__schema_match(&with_bins, "a.rec", &other, "b.rec", false), MIMUS_ERR_SCHEMA,
               "head 1, edge 1 of its bins: 0.300000012 in a.rec, 0.5 in b.rec");
    heads_of_other[1].bin_edges = edges;
    heads_of_other[1].bin_values = other_values;
    test_fails(mimus__schema_match(&with_bins, "a.rec", &other, "b.rec", false), MIMUS_ERR_SCHEMA,
               "head 1, value 0 of its bins: -0.550000012 in a.rec, -0.5 in b.rec");
    test_ok(mimus__schema_match(&with_bins, "a.rec", &named, "b.rec", false));
    test_fails(mimus__schema_match(&with_bins, "a.rec", &named, "b.rec", true), MIMUS_ERR_SCHEMA,
               "a.rec has bins for head 1 and b.rec has none");
}
END_TEST

START_TEST(unsound_bins_are_refused) {
    static const float equal[] = {0.5F, 0.5F}, endless[] = {0, INFINITY}, nan[] = {0, NAN, 1};
    refused(
        (mimus_schema){1, NULL, 1, &(mimus_head){.actions = 3, .bin_edges = edges}, false, false},
        "head 0: bins have edges and values");
    mimus_head head = {.actions = 3, .bin_edges = equal, .bin_values = values};
    refused((mimus_schema){1, NULL, 1, &head, false, false},
            "head 0: edge 1 of its bins is 0.5, after 0.5");
    head.bin_edges = endless;
    refused((mimus_schema){1, NULL, 1, &head, false, false}, "is not finite");
    head.bin_edges = edges;
    head.bin_values = nan;
    refused((mimus_schema){1, NULL, 1, &head, false, false}, "is not finite");
}
END_TEST

START_TEST(values_and_actions_are_each_others_inverse) {
    static const mimus_head plain = {.actions = 3};
    static const struct {
        float number;
        uint16_t bin, label;
    } cases[] = {{-INFINITY, MIMUS_NO_LABEL, MIMUS_NO_LABEL},
                 {NAN, MIMUS_NO_LABEL, MIMUS_NO_LABEL},
                 {-1e30F, 0, MIMUS_NO_LABEL},
                 {-0.1F, 1, MIMUS_NO_LABEL}, /* an edge belongs to the bin above it */
                 {0, 1, 0},
                 {0.299F, 1, MIMUS_NO_LABEL},
                 {1, 2, 1},
                 {2, 2, 2},
                 {3, 2, MIMUS_NO_LABEL},
                 {1e30F, 2, MIMUS_NO_LABEL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(mimus_head_action(&binned[1], cases[i].number), cases[i].bin);
        ck_assert_uint_eq(mimus_head_action(&plain, cases[i].number), cases[i].label);
    }
    for (uint16_t a = 0; a < 3; a++) {
        ck_assert_float_eq(mimus_head_value(&binned[1], a), values[a]);
        ck_assert_uint_eq(mimus_head_action(&binned[1], values[a]), a);
        ck_assert_float_eq(mimus_head_value(&plain, a), (float)a);
    }
    ck_assert(isnan(mimus_head_value(&binned[1], 3)));
    ck_assert(isnan(mimus_head_value(&plain, MIMUS_NO_LABEL)));
    ck_assert(isnan(mimus_head_value(NULL, 0)));
    ck_assert_uint_eq(mimus_head_action(NULL, 0), MIMUS_NO_LABEL);
}
END_TEST

START_TEST(mask_words_cover_all_actions) {
    static const struct {
        uint32_t actions, words;
    } cases[] = {{2, 1}, {31, 1}, {32, 1}, {33, 2}, {63, 2}, {64, 2}, {65, 3}, {1000, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mimus_head head = {.actions = cases[i].actions};
        mimus_schema schema = {1, NULL, 1, &head, true, false};
        ck_assert_uint_eq(mimus__schema_mask_words(&schema), cases[i].words);
        schema.masks = false;
        ck_assert_uint_eq(mimus__schema_mask_words(&schema), 0);
        ck_assert_uint_eq(mimus__schema_actions(&schema), cases[i].actions);
    }
}
END_TEST

/* Judged by the JSON library, which has its own decoder. */
START_TEST(utf8_is_what_json_takes) {
    for (unsigned a = 1; a < 256; a++) {
        for (unsigned b = 0; b < 256; b += 3) {
            for (unsigned c = 0x7F; c < 0xC1; c += 0x41 / 4) {
                const char text[] = {(char)a, (char)b, (char)c, (char)0x80, 0};
                json_t *json = json_string(text);
                ck_assert_msg(mimus__text_is_utf8(text) == (json != NULL), "%02x %02x %02x", a, b,
                              c);
                json_decref(json);
            }
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("schema");
    TCase *tests = tcase_create("schema");
    tcase_add_test(tests, a_copy_owns_all_it_names);
    tcase_add_test(tests, heads_without_a_name_are_numbered);
    tcase_add_test(tests, limits_are_named);
    tcase_add_test(tests, json_holds_all_of_it);
    tcase_add_test(tests, malformed_json_is_refused);
    tcase_add_test(tests, the_first_difference_is_named_with_both_sides);
    tcase_add_test(tests, bins_are_kept_bit_by_bit);
    tcase_add_test(tests, bins_that_differ_are_named);
    tcase_add_test(tests, unsound_bins_are_refused);
    tcase_add_test(tests, values_and_actions_are_each_others_inverse);
    tcase_add_test(tests, mask_words_cover_all_actions);
    tcase_add_test(tests, utf8_is_what_json_takes);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
