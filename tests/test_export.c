/* Exports through the public interface: which model leaves, under which name, and what is refused.
 */
#include "support.h"

#include "file.h"
#include "json.h"
#include "made_model.h"
#include "policy.h"

#include <stdlib.h>
#include <string.h>

static const test_network network = {5, 2, MIMUS__RELU, {16}, 3, test_heads, true};

static void clean(void) {
    test_folder_remove();
}

/* A checkpoint that training left, after `epoch` epochs. */
static void save_run(const char *path, uint64_t epoch) {
    mimus__model *plain = test_model(&network, 3), *model;
    test_ok(mimus__model_new(&model, plain->schema, &plain->shape, true));
    memcpy(model->parameters, plain->parameters,
           mimus__shape_parameters(&plain->shape) * sizeof(float));
    memcpy(model->scale, plain->scale, plain->shape.senses * sizeof(float));
    model->state->epoch = epoch;
    test_ok(mimus__json_set(model->facts, "epoch", json_integer((json_int_t)epoch)));
    test_ok(mimus__model_save(model, path));
    mimus__model_free(model);
    mimus__model_free(plain);
}

static const char *const out_names[] = {"onnxruntime", "unity", "godot", "c", "safetensors", "npz"};

START_TEST(targets_are_described) {
    mimus_target target;
    for (size_t i = 0; i < 6; i++) {
        ck_assert(mimus_export_describe(i, &target));
        ck_assert_str_eq(target.name, out_names[i]);
        ck_assert(target.help[0] != '\0' && target.file[0] != '\0');
    }
    ck_assert(!mimus_export_describe(6, &target));
}
END_TEST

START_TEST(every_target_writes_its_file) {
    const char *model = test_folder_path("model.safetensors");
    mimus_target target;
    char *report;
    json_t *json;
    save_run(model, 4);
    ck_assert(mimus_export_describe((size_t)_i, &target));
    const char *out = test_folder_path(target.file);
    const mimus_export_options options = {.target = target.name};
    test_ok(mimus_export(model, out, &options, NULL, &report));
    ck_assert(mimus__file_exists(out));
    test_ok(mimus__json_parse(&json, report, strlen(report), "report"));
    ck_assert_str_eq(json_string_value(json_object_get(json, "target")), target.name);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "epoch")), 4);
    const bool runs = strcmp(target.name, "c") != 0 && strcmp(target.name, "npz") != 0;
    const json_t *check = json_object_get(json, "check");
    ck_assert_int_eq(json_integer_value(json_object_get(check, "samples")), runs ? 10000 : 0);
    ck_assert_str_eq(json_string_value(json_object_get(check, "which")),
                     runs ? "made up" : "numbers");
    test_fails(mimus_export(model, out, &options, NULL, NULL), MIMUS_ERR_IO, "is there already");
    json_decref(json);
    mimus_free(report);
}
END_TEST

START_TEST(what_never_trained_does_not_leave) {
    const char *out = test_folder_path("policy.onnx");
    const mimus_export_options options = {.target = "unity"};
    save_run(test_folder_path("last.safetensors"), 0);
    test_fails(mimus_export(test_folder(), out, &options, NULL, NULL), MIMUS_ERR_DATA,
               "its training has not finished an epoch");
    test_fails(mimus_export("/none", out, &options, NULL, NULL), MIMUS_ERR_IO, "/none");
    test_fails(
        mimus_export(test_folder(), out, &(mimus_export_options){.target = "tea"}, NULL, NULL),
        MIMUS_ERR_ARGUMENT,
        "no target \"tea\"; there are onnxruntime, unity, godot, c, safetensors, npz");
    test_fails(mimus_export(test_folder(), out, &(mimus_export_options){0}, NULL, NULL),
               MIMUS_ERR_ARGUMENT, "no target is named");
    ck_assert(!mimus__file_exists(out));
}
END_TEST

static bool always(void *user) {
    (void)user;
    return true;
}

START_TEST(a_wish_to_stop_leaves_nothing) {
    const char *model = test_folder_path("model.safetensors");
    const char *out = test_folder_path("policy.c"), *header = test_folder_path("policy.h");
    const mimus_watch watch = {.should_stop = always};
    save_run(model, 4);
    for (size_t i = 0; i < 6; i++) {
        test_fails(
            mimus_export(model, out, &(mimus_export_options){.target = out_names[i]}, &watch, NULL),
            MIMUS_ERR_STOPPED, "stopped on request");
        ck_assert(!mimus__file_exists(out) && !mimus__file_exists(header));
    }
}
END_TEST

/* A recording of other senses is no recording to try the file on. */
START_TEST(the_recording_has_to_fit) {
    const char *model = test_folder_path("model.safetensors");
    const char *rec = test_folder_path("other.rec");
    const mimus_schema schema = {.senses = 4, .heads = 3, .head = test_heads};
    mimus_recorder *recorder;
    save_run(model, 4);
    test_ok(mimus_recorder_open(&recorder, rec, &schema, MIMUS_RECORDER_CREATE));
    test_ok(mimus_recorder_append(recorder, (const float[]){1, 2, 3, 4},
                                  (const uint16_t[]){0, 0, 0}, NULL, 1));
    test_ok(mimus_recorder_close(recorder));
    const mimus_source source = {.paths = &rec, .count = 1};
    test_fails(mimus_export(model, test_folder_path("policy.onnx"),
                            &(mimus_export_options){.target = "unity", .check = &source}, NULL,
                            NULL),
               MIMUS_ERR_SCHEMA, "other.rec");
    test_fails(mimus_export(model, test_folder_path("policy.c"),
                            &(mimus_export_options){.target = "c", .check = &source}, NULL, NULL),
               MIMUS_ERR_ARGUMENT, "c is not tried on samples");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("export");
    TCase *all = tcase_create("export");
    tcase_add_checked_fixture(all, NULL, clean);
    tcase_add_test(all, targets_are_described);
    tcase_add_loop_test(all, every_target_writes_its_file, 0, 6);
    tcase_add_test(all, what_never_trained_does_not_leave);
    tcase_add_test(all, a_wish_to_stop_leaves_nothing);
    tcase_add_test(all, the_recording_has_to_fit);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
