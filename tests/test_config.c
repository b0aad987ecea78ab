/* Settings: the table, texts, JSON, messages, the learning rate's schedule, a network's shape. */
#include "support.h"

#include "config.h"
#include "file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mimus_config *new_config(void) {
    mimus_config *config;
    test_ok(mimus_config_new(&config));
    return config;
}

START_TEST(the_defaults_are_the_documented_ones) {
    mimus_config *config = new_config();
    ck_assert_uint_eq(config->hidden_layers, 2);
    ck_assert_uint_eq(config->hidden[0], 128);
    ck_assert_uint_eq(config->hidden[1], 128);
    ck_assert_int_eq(config->activation, MIMUS__RELU);
    ck_assert_uint_eq(config->stack, 1);
    ck_assert_uint_eq(config->epochs, 12);
    ck_assert_uint_eq(config->batch, 4096);
    ck_assert(config->lr == 1e-3);
    ck_assert_int_eq(config->optimizer, MIMUS__ADAM);
    ck_assert(config->beta1 == 0.9 && config->beta2 == 0.999 && config->epsilon == 1e-8);
    ck_assert(config->weight_decay == 0 && config->clip == 0 && config->warmup == 0);
    ck_assert(config->label_smoothing == 0 && config->dropout == 0);
    ck_assert_int_eq(config->schedule, MIMUS__CONSTANT);
    ck_assert_int_eq(config->class_weights, MIMUS__CLASS_NONE);
    ck_assert_ptr_null(config->head_weights);
    ck_assert_uint_eq(config->head_weight_count, 0);
    ck_assert(config->heldout == 0.1);
    ck_assert(config->seed == 0 && config->patience == 0);
    ck_assert_str_eq(config->device, "");
    ck_assert_int_eq(config->gemm, MIMUS__GEMM_AUTO);
    ck_assert_int_eq(config->store, MIMUS__STORE_AUTO);
    ck_assert(config->memory == 0 && config->shard == 0);
    mimus_config_free(config);
    mimus_config_free(NULL);
}
END_TEST

START_TEST(texts_set_every_kind) {
    mimus_config *config = new_config();
    const char *pairs[][2] = {
        {"hidden", "1,63,64,65"},
        {"activation", "gelu"},
        {"stack", "3"},
        {"epochs", "1"},
        {"batch", "16777216"},
        {"lr", "2.5e-4"},
        {"optimizer", "sgd"},
        {"weight-decay", "0.01"},
        {"schedule", "linear"},
        {"label_smoothing", "0.1"},
        {"class-weights", "balanced"},
        {"head_weights", "1,0.5,2"},
        {"held-out", "0"},
        {"seed", "9223372036854775807"},
        {"device", "0:1"},
        {"gemm", "tile"},
        {"memory", "4G"},
        {"store", "bf16"},
        {"shard", "512k"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        test_ok(mimus_config_set(config, pairs[i][0], pairs[i][1]));
    const uint32_t hidden[] = {1, 63, 64, 65};
    ck_assert_uint_eq(config->hidden_layers, 4);
    ck_assert_mem_eq(config->hidden, hidden, sizeof hidden);
    ck_assert_int_eq(config->activation, MIMUS__GELU);
    ck_assert_uint_eq(config->stack, 3);
    ck_assert_uint_eq(config->epochs, 1);
    ck_assert_uint_eq(config->batch, 1u << 24);
    ck_assert(config->lr == 2.5e-4 && config->weight_decay == 0.01);
    ck_assert_int_eq(config->optimizer, MIMUS__SGD);
    ck_assert_int_eq(config->schedule, MIMUS__LINEAR);
    ck_assert(config->label_smoothing == 0.1 && config->heldout == 0);
    ck_assert_int_eq(config->class_weights, MIMUS__CLASS_BALANCED);
    ck_assert_uint_eq(config->head_weight_count, 3);
    ck_assert(config->head_weights[0] == 1 && config->head_weights[1] == 0.5);
    ck_assert(config->head_weights[2] == 2);
    ck_assert_uint_eq(config->seed, INT64_MAX);
    ck_assert_str_eq(config->device, "0:1");
    ck_assert_int_eq(config->gemm, MIMUS__GEMM_TILE);
    ck_assert_uint_eq(config->memory, (uint64_t)4 << 30);
    ck_assert_uint_eq(config->shard, 512 << 10);
    test_ok(mimus_config_set(config, "hidden", "none"));
    test_ok(mimus_config_set(config, "head_weights", "none"));
    ck_assert_uint_eq(config->hidden_layers, 0);
    ck_assert_ptr_null(config->head_weights);
    ck_assert_uint_eq(config->head_weight_count, 0);
    mimus_config_free(config);
}
END_TEST

START_TEST(bad_values_say_what_would_be_accepted) {
    static const char *const bad[][3] = {
        {"hidden", "128,x",
         "hidden: expected N,N,...|none: at most 15 integers from 1 to 1048576, "
         "found 128,x"},
        {"hidden", "0", "integers from 1"},
        {"hidden", "", "found nothing"},
        {"hidden", "1,", "found 1,"},
        {"hidden", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "at most 15"},
        {"activation", "Relu", "activation: expected one of relu|tanh|gelu, found \"Relu\""},
        {"activation", "", "one of relu"},
        {"activation", "relu|tanh", "one of relu"},
        {"stack", "0", "stack: expected an integer from 1 to 1024, found 0"},
        {"epochs", "1.5", "epochs: expected an integer from 1 to 1000000, found 1.5"},
        {"batch", "-1", "found -1"},
        {"batch", "16777217", "to 16777216"},
        {"lr", "0", "lr: expected a number above 0 to 1e+06, found 0"},
        {"lr", "nan", "found nan"},
        {"lr", "1e-3x", "found 1e-3x"},
        {"beta1", "1", "beta1: expected a number from 0 to below 1, found 1.0"},
        {"dropout", "-0.1", "from 0"},
        {"optimizer", "lion", "adam|adamw|sgd"},
        {"head_weights", "1,-1", "numbers from 0"},
        {"head_weights", "1,inf", "found 1,inf"},
        {"seed", "9223372036854775808", "to 9223372036854775807"},
        {"memory", "4X", "memory: expected bytes, as 4096, 512M or 4G, found 4X"},
        {"memory", "G", "found G"},
        {"memory", "9999999999T", "found 9999999999T"},
        {"memory", "99999999999999999999999999999", "bytes, as"},
        {"bacth", "1", "no setting \"bacth\"; did you mean \"batch\"?"},
        {"learning-rate", "1", "no setting \"learning-rate\""},
        {"", "1", "no setting \"\""},
        {"hidden_", "1", "did you mean \"hidden\"?"},
    };
    mimus_config *config = new_config();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        test_fails(mimus_config_set(config, bad[i][0], bad[i][1]), MIMUS_ERR_ARGUMENT, bad[i][2]);
    mimus_config *fresh = new_config();
    char *a, *b;
    test_ok(mimus_config_json(config, &a));
    test_ok(mimus_config_json(fresh, &b));
    ck_assert_str_eq(a, b); /* nothing was set */
    free(a);
    free(b);
    mimus_config_free(fresh);
    mimus_config_free(config);
}
END_TEST

START_TEST(a_very_long_name_gives_one_line) {
    mimus_config *config = new_config();
    char name[4000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    test_fails(mimus_config_set(config, name, "1"), MIMUS_ERR_ARGUMENT, "no setting \"aaa");
    test_fails(mimus_config_set(config, "batch", name), MIMUS_ERR_ARGUMENT, "batch: expected");
    mimus_config_free(config);
}
END_TEST

/* Each field's default must be accepted, and what the table says must be what JSON holds. */
START_TEST(the_table_describes_every_setting) {
    mimus_config *config = new_config();
    json_t *json;
    test_ok(mimus__config_to_json(&json, config));
    size_t count = 0;
    for (const mimus_config_field *field; (field = mimus_config_describe(count)) != NULL; count++) {
        ck_assert(*field->name != '\0' && *field->hint != '\0' && *field->help != '\0');
        ck_assert_ptr_null(strchr(field->help, '\n'));
        test_ok(mimus_config_set(config, field->name, field->value));
        ck_assert_msg(json_object_get(json, field->name) != NULL, "%s", field->name);
    }
    ck_assert_uint_eq(count, json_object_size(json));
    ck_assert_ptr_null(mimus_config_describe(SIZE_MAX));
    json_decref(json);
    mimus_config_free(config);
}
END_TEST

static mimus_status load_text(mimus_config *config, const char *text) {
    const char *path = test_folder_path("config.json");
    test_ok(mimus__file_replace(path, text, strlen(text)));
    return mimus_config_load(config, path);
}

START_TEST(json_files_take_numbers_lists_and_texts) {
    mimus_config *config = new_config();
    test_ok(load_text(config, "{\"hidden\": [64, 65], \"lr\": 1, \"beta1\": 0.5, \"epochs\": 3,"
                              "\"memory\": \"2g\", \"shard\": 1000, \"head_weights\": [1, 2.5],"
                              "\"optimizer\": \"adamw\", \"batch\": \"63\"}"));
    ck_assert_uint_eq(config->hidden_layers, 2);
    ck_assert_uint_eq(config->hidden[1], 65);
    ck_assert(config->lr == 1 && config->beta1 == 0.5);
    ck_assert_uint_eq(config->memory, (uint64_t)2 << 30);
    ck_assert_uint_eq(config->shard, 1000);
    ck_assert(config->head_weights[0] == 1 && config->head_weights[1] == 2.5);
    ck_assert_int_eq(config->optimizer, MIMUS__ADAMW);
    ck_assert_uint_eq(config->batch, 63);
    test_ok(load_text(config, "{\"hidden\": [], \"head_weights\": \"none\"}"));
    ck_assert_uint_eq(config->hidden_layers, 0);
    ck_assert_ptr_null(config->head_weights);
    static const char *const bad[][2] = {
        {"[1]", "config.json: expected an object of settings"},
        {"{\"batch\": 0}", "config.json: batch: expected an integer from 1 to 16777216, found 0"},
        {"{\"batch\": 1.0}", "found 1.0"},
        {"{\"batch\": true}", "found true"},
        {"{\"batch\": null}", "found null"},
        {"{\"hidden\": [128, 1.5]}", "found [128,1.5]"},
        {"{\"hidden\": {\"a\": 1}}", "found {\"a\":1}"},
        {"{\"hidden\": 128}", "found 128"},
        {"{\"device\": 0}", "device: expected a text, found 0"},
        {"{\"optimizer\": 1}", "one of adam"},
        {"{\"lr\": \"fast\"}", "config.json: lr: expected a number"},
        {"{\"Batch\": 1}", "config.json: no setting \"Batch\"; did you mean \"batch\"?"},
        {"{\"batch\": [1]}", "found [1]"},
        {"{\"lr\": [1, []]}", "lr: expected a number above 0 to 1e+06, found []"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        test_fails(load_text(config, bad[i][0]), MIMUS_ERR_ARGUMENT, bad[i][1]);
    test_fails(load_text(config, "{\"lr\": }"), MIMUS_ERR_FORMAT, "config.json: not valid JSON");
    test_fails(mimus_config_load(config, test_folder_path("none.json")), MIMUS_ERR_IO,
               "none.json: No such file");
    mimus_config_free(config);
    test_folder_remove();
}
END_TEST

START_TEST(json_gives_back_what_was_set) {
    mimus_config *config = new_config(), *back = new_config(), *copy;
    test_ok(mimus_config_set(config, "hidden", "1,64"));
    test_ok(mimus_config_set(config, "lr", "0.1"));
    test_ok(mimus_config_set(config, "head_weights", "0.1,3"));
    test_ok(mimus_config_set(config, "device", "A \"card\" \xc3\xa9"));
    test_ok(mimus_config_set(config, "seed", "9223372036854775807"));
    test_ok(mimus_config_set(config, "schedule", "cosine"));
    char *text, *again;
    test_ok(mimus_config_json(config, &text));
    test_ok(load_text(back, text));
    ck_assert(back->lr == 0.1 && back->head_weights[0] == 0.1);
    test_ok(mimus_config_json(back, &again));
    ck_assert_str_eq(text, again);
    free(again);
    test_ok(mimus__config_copy(&copy, config));
    mimus_config_free(config);
    test_ok(mimus_config_json(copy, &again));
    ck_assert_str_eq(text, again);
    free(again);
    free(text);
    mimus_config_free(copy);
    mimus_config_free(back);
    test_folder_remove();
}
END_TEST

static void assert_near(double got, double want) {
    ck_assert_msg(fabs(got - want) < 1e-12, "%.17g, expected %.17g", got, want);
}

START_TEST(the_learning_rate_follows_its_schedule) {
    mimus_config *config = new_config();
    for (uint64_t step = 0; step < 100; step++)
        assert_near(mimus__config_rate(config, step, 100, 10), 1);
    test_ok(mimus_config_set(config, "schedule", "linear"));
    assert_near(mimus__config_rate(config, 0, 100, 10), 1);
    assert_near(mimus__config_rate(config, 25, 100, 10), 0.75);
    assert_near(mimus__config_rate(config, 99, 100, 10), 0.01);
    test_ok(mimus_config_set(config, "schedule", "cosine"));
    assert_near(mimus__config_rate(config, 0, 100, 10), 1);
    assert_near(mimus__config_rate(config, 50, 100, 10), 0.5);
    assert_near(mimus__config_rate(config, 25, 100, 10), 0.5 + sqrt(0.125));
    ck_assert(mimus__config_rate(config, 99, 100, 10) > 0);
    test_ok(mimus_config_set(config, "warmup", "1.5")); /* 15 steps */
    for (uint64_t step = 0; step < 15; step++)
        assert_near(mimus__config_rate(config, step, 115, 10), (double)(step + 1) / 15);
    assert_near(mimus__config_rate(config, 15, 115, 10), 1);
    assert_near(mimus__config_rate(config, 65, 115, 10), 0.5);
    test_ok(mimus_config_set(config, "warmup", "0.26")); /* 2.6 steps: 3 */
    assert_near(mimus__config_rate(config, 0, 100, 10), 1.0 / 3);
    assert_near(mimus__config_rate(config, 2, 100, 10), 1);
    /* warm-up longer than the training: never more than 1, never 0 */
    test_ok(mimus_config_set(config, "warmup", "100"));
    assert_near(mimus__config_rate(config, 0, 2, 1), 0.01);
    assert_near(mimus__config_rate(config, 1, 2, 1), 0.02);
    assert_near(mimus__config_rate(config, 0, 1, 1), 0.01);
    mimus_config_free(config);
}
END_TEST

START_TEST(a_shape_follows_from_schema_and_settings) {
    mimus_config *config = new_config();
    const mimus_head heads[] = {{.actions = 3}, {.actions = 2}};
    const mimus_schema schema = {.senses = 7, .heads = 2, .head = heads};
    mimus__shape shape;
    test_ok(mimus_config_set(config, "stack", "3"));
    test_ok(mimus_config_set(config, "activation", "tanh"));
    test_ok(mimus__config_shape(&shape, config, &schema));
    const uint32_t width[] = {21, 128, 128, 5};
    ck_assert_uint_eq(shape.layers, 3);
    ck_assert_mem_eq(shape.width, width, sizeof width);
    ck_assert_uint_eq(shape.senses, 7);
    ck_assert_uint_eq(shape.stack, 3);
    ck_assert_int_eq(shape.activation, MIMUS__TANH);
    test_ok(mimus_config_set(config, "hidden", "none"));
    test_ok(mimus__config_shape(&shape, config, &schema));
    ck_assert_uint_eq(shape.layers, 1);
    ck_assert_uint_eq(mimus__shape_parameters(&shape), 22 * 5);
    test_ok(mimus_config_set(config, "head_weights", "1,2"));
    test_ok(mimus__config_shape(&shape, config, &schema));
    test_ok(mimus_config_set(config, "head_weights", "1,2,3"));
    test_fails(mimus__config_shape(&shape, config, &schema), MIMUS_ERR_ARGUMENT,
               "3 weights for 2 heads");
    test_ok(mimus_config_set(config, "head_weights", "none"));
    test_ok(mimus_config_set(config, "hidden", "1048576,1048576"));
    test_fails(mimus__config_shape(&shape, config, &schema), MIMUS_ERR_UNSUPPORTED,
               "more than 268435456 parameters");
    const mimus_schema blind = {.heads = 2, .head = heads};
    test_fails(mimus__config_shape(&shape, config, &blind), MIMUS_ERR_DATA, "has no senses");
    mimus_config_free(config);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("config");
    TCase *all = tcase_create("config");
    tcase_add_test(all, the_defaults_are_the_documented_ones);
    tcase_add_test(all, texts_set_every_kind);
    tcase_add_test(all, bad_values_say_what_would_be_accepted);
    tcase_add_test(all, a_very_long_name_gives_one_line);
    tcase_add_test(all, the_table_describes_every_setting);
    tcase_add_test(all, json_files_take_numbers_lists_and_texts);
    tcase_add_test(all, json_gives_back_what_was_set);
    tcase_add_test(all, the_learning_rate_follows_its_schedule);
    tcase_add_test(all, a_shape_follows_from_schema_and_settings);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
