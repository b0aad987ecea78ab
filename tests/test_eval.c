/* Judging and playing with models from outside: extremes of size, and files that lie. */
#include "support.h"

#include "file.h"
#include "json.h"
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char recording[512], run[512], checkpoint[600];
static const char *paths[] = {recording};
static const mimus_source source = {.paths = paths, .count = 1};

static void setup(void) {
    snprintf(recording, sizeof recording, "%s", test_folder_path("play.rec"));
    snprintf(run, sizeof run, "%s", test_folder_path("run"));
    snprintf(checkpoint, sizeof checkpoint, "%s", test_folder_path("model.safetensors"));
}

static void teardown(void) {
    test_folder_remove();
}

/* Eight episodes of two samples; the label of every head follows the first sense. */
static void record(const mimus_schema *schema) {
    mimus_recorder *recorder;
    float *senses = calloc(schema->senses, sizeof *senses);
    uint16_t *actions = calloc(schema->heads, sizeof *actions);
    ck_assert(senses != NULL && actions != NULL);
    test_ok(mimus_recorder_open(&recorder, recording, schema, MIMUS_RECORDER_CREATE));
    for (uint32_t i = 0; i < 16; i++) {
        senses[0] = (float)(i % 2);
        senses[schema->senses - 1] += 0.5f;
        for (uint32_t h = 0; h < schema->heads; h++)
            actions[h] = (uint16_t)(i % 2 == 0 ? 0 : schema->head[h].actions - 1);
        test_ok(mimus_recorder_append(recorder, senses, actions, NULL, 1));
        if (i % 2 == 1)
            test_ok(mimus_recorder_end_episode(recorder));
    }
    test_ok(mimus_recorder_close(recorder));
    free(senses);
    free(actions);
}

static json_t *judge(const char *model) {
    char *text;
    json_t *result;
    test_ok(mimus_eval(model, &source, MIMUS_PART_ALL, NULL, false, NULL, &text));
    test_ok(mimus__json_parse(&result, text, strlen(text), "the answer"));
    mimus_free(text);
    return result;
}

/* Let the run's policy act once, on senses of 0. */
static void play(const mimus_schema *schema) {
    mimus_policy *policy;
    mimus_agent *agent;
    float *senses = calloc(schema->senses, sizeof *senses);
    uint16_t *actions = calloc(schema->heads, sizeof *actions);
    test_ok(mimus_policy_load(&policy, run));
    test_ok(mimus_agent_new(&agent, policy, 1));
    test_ok(mimus_agent_act(agent, senses, NULL, actions));
    for (uint32_t h = 0; h < schema->heads; h++)
        ck_assert_uint_lt(actions[h], schema->head[h].actions);
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    free(senses);
    free(actions);
}

static void train(const char *epochs, const mimus_schema *schema) {
    mimus_config *config;
    const char *const settings[][2] = {{"hidden", "none"},
                                       {"batch", "8"},
                                       {"epochs", epochs},
                                       {"held_out", "0"},
                                       {"gemm", "tile"}};
    test_ok(mimus_config_new(&config));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        test_ok(mimus_config_set(config, settings[i][0], settings[i][1]));
    test_ok(schema != NULL ? mimus_train(&source, config, run, NULL, NULL)
                           : mimus_resume(run, NULL, config, NULL, NULL));
    mimus_config_free(config);
}

/* ------------------------------------------------------------------------- sizes */

/* Train, go on, judge and play: as large as it may be, every number has its place. */
static void check_size(const mimus_schema *schema) {
    record(schema);
    train("1", schema);
    train("2", NULL);
    json_t *result = judge(run);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "samples")), 16);
    const json_t *heads = json_object_get(result, "heads");
    ck_assert_uint_eq(json_array_size(heads), schema->heads);
    for (size_t h = 0; h < json_array_size(heads); h++) {
        const json_t *nll = json_object_get(json_array_get(heads, h), "nll");
        ck_assert_msg(json_is_number(nll), "head %zu has no nll", h);
    }
    json_decref(result);
    play(schema);
}

START_TEST(the_most_actions_of_a_head) {
    const mimus_head head = {.actions = 65534};
    check_size(&(mimus_schema){.senses = 1, .heads = 1, .head = &head});
}
END_TEST

START_TEST(a_thousand_heads) {
    mimus_head heads[1000];
    for (size_t h = 0; h < 1000; h++)
        heads[h] = (mimus_head){.actions = 2 + (uint32_t)h % 3};
    check_size(&(mimus_schema){.senses = 3, .heads = 1000, .head = heads});
}
END_TEST

START_TEST(a_hundred_thousand_senses) {
    const mimus_head head = {.actions = 3};
    check_size(&(mimus_schema){.senses = 100000, .heads = 1, .head = &head});
}
END_TEST

/* ----------------------------------------------------------------------- numbers */

static const mimus_head two_heads[] = {{.name = "move", .actions = 3},
                                       {.name = "aim", .actions = 2}};
static const mimus_schema small = {.senses = 4, .heads = 2, .head = two_heads};

/* A checkpoint whose first weight of layer 1 is `value`. */
static void write_model(float value) {
    const mimus__shape shape = {
        .senses = 4, .stack = 1, .layers = 2, .width = {4, 8, 5}, .activation = MIMUS__IDENTITY};
    mimus__model *model;
    test_ok(mimus__model_new(&model, &small, &shape, true));
    mimus__model_initialise(&shape, model->parameters, 1, 0);
    for (uint32_t i = 0; i < 4; i++)
        model->scale[i] = 1;
    model->parameters[mimus__shape_bias_offset(&shape, 0)] = 1000; /* reaches the weight */
    model->parameters[mimus__shape_weight_offset(&shape, 1)] = value;
    test_ok(mimus__model_save(model, checkpoint));
    mimus__model_free(model);
}

/* Replace the bytes of the one float `from` in the checkpoint. */
static void patch(float from, float to) {
    char *bytes;
    size_t size, found = 0;
    test_ok(mimus__file_read(checkpoint, SIZE_MAX, &bytes, &size));
    for (size_t i = 0; i + sizeof from <= size; i++) {
        if (memcmp(bytes + i, &from, sizeof from) == 0) {
            memcpy(bytes + i, &to, sizeof to);
            found++;
        }
    }
    ck_assert_uint_eq(found, 1);
    test_file_write(checkpoint, bytes, size);
    free(bytes);
}

static void check_refused(mimus_status status, const char *part) {
    mimus_policy *policy;
    char *text;
    test_fails(mimus_eval(checkpoint, &source, MIMUS_PART_ALL, NULL, false, NULL, &text), status,
               "model.safetensors: ");
    ck_assert_msg(strstr(mimus_last_error(), part) != NULL, "%s", mimus_last_error());
    test_fails(mimus_policy_load(&policy, checkpoint), status, part);
}

START_TEST(a_model_without_facts_is_judged) {
    record(&small);
    write_model(1);
    json_t *result = judge(checkpoint);
    ck_assert(json_is_null(json_object_get(result, "epoch")));
    json_decref(result);
}
END_TEST

START_TEST(numbers_that_are_not_finite_are_named) {
    const float values[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    record(&small);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        write_model(1234.5f);
        patch(1234.5f, values[i]);
        check_refused(MIMUS_ERR_FORMAT, "tensor \"layers.1.weight\": element 0 is not finite");
    }
}
END_TEST

/* Finite, and yet the logits are not: eval names the file, the agent the action. */
START_TEST(numbers_that_overflow_are_named) {
    char *text;
    mimus_policy *policy;
    mimus_agent *agent;
    const float senses[4] = {1, 1, 1, 1};
    uint16_t actions[2];
    record(&small);
    write_model(3e38f);
    test_fails(mimus_eval(checkpoint, &source, MIMUS_PART_ALL, NULL, false, NULL, &text),
               MIMUS_ERR_DATA, "model.safetensors: the network overflows");
    ck_assert_ptr_nonnull(
        strstr(mimus_last_error(), "the largest number, 3e+38, is in the tensors layers.1"));
    test_ok(mimus_policy_load(&policy, checkpoint));
    test_ok(mimus_agent_new(&agent, policy, 1));
    test_fails(mimus_agent_act(agent, senses, NULL, actions), MIMUS_ERR_DATA,
               "the logit of action 0 is inf");
    mimus_agent_free(agent);
    mimus_policy_free(policy);
}
END_TEST

/* Exchange a part of the header for one of the same length. */
static void patch_header(const char *part, const char *other) {
    char *bytes;
    size_t size, length = strlen(part), found = 0;
    ck_assert_uint_eq(strlen(other), length);
    test_ok(mimus__file_read(checkpoint, SIZE_MAX, &bytes, &size));
    for (size_t i = 0; i + length <= size && found == 0; i++) {
        if (memcmp(bytes + i, part, length) == 0) {
            memcpy(bytes + i, other, length);
            found++;
        }
    }
    ck_assert_msg(found == 1, "no %s", part);
    test_file_write(checkpoint, bytes, size);
    free(bytes);
}

START_TEST(shapes_that_do_not_fit_are_named) {
    const struct {
        const char *part, *other, *message;
        mimus_status status;
    } cases[] = {
        {"\"shape\":[8]", "\"shape\":[9]", "tensor \"layers.0.bias\"", MIMUS_ERR_FORMAT},
        {"\"shape\":[5,8]", "\"shape\":[8,5]",
         "tensor \"layers.1.weight\" has shape [8,5], expected [5,8]", MIMUS_ERR_FORMAT},
        {"\\\"width\\\":[4,8,5]", "\\\"width\\\":[4,9,5]", "has shape", MIMUS_ERR_FORMAT},
        {"\\\"width\\\":[4,8,5]", "\\\"width\\\":[4,8,6]", "6 outputs for the schema's 5 actions",
         MIMUS_ERR_FORMAT},
        {"\\\"stack\\\":1", "\\\"stack\\\":9", "stacked 9 times", MIMUS_ERR_FORMAT},
        {"\\\"senses\\\":4", "\\\"senses\\\":0", "the schema's 0 senses", MIMUS_ERR_FORMAT},
        {"\\\"actions\\\":3", "\\\"actions\\\":1", "2 to 65534 actions, not 1", MIMUS_ERR_SCHEMA},
        {"\\\"width\\\":[4,8,5]", "\\\"width\\\":[4,0,5]", "width 1 is not a width",
         MIMUS_ERR_FORMAT},
    };
    record(&small);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model(1);
        patch_header(cases[i].part, cases[i].other);
        check_refused(cases[i].status, cases[i].message);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("eval");
    TCase *all = tcase_create("eval");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, the_most_actions_of_a_head);
    tcase_add_test(all, a_thousand_heads);
    tcase_add_test(all, a_hundred_thousand_senses);
    tcase_add_test(all, a_model_without_facts_is_judged);
    tcase_add_test(all, numbers_that_are_not_finite_are_named);
    tcase_add_test(all, numbers_that_overflow_are_named);
    tcase_add_test(all, shapes_that_do_not_fit_are_named);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
