/* Listing, choosing and opening devices; the queue's depth; the counters. */
#include "child.h"
#include "shim.h"
#include "support.h"

#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------- in a child process */

static mimus_status open_default(void) {
    mimus__device *device;
    mimus_status status = mimus__device_open(&device, NULL, 0);
    mimus__device_close(device);
    return status;
}

static mimus_status open_gpu(void) {
    mimus__device *device;
    mimus_status status = mimus__device_open(&device, "gpu", 0);
    mimus__device_close(device);
    return status;
}

static mimus_status open_by_platform_name(void) {
    json_t *list;
    mimus_status status = mimus__device_list(&list, "invented");
    if (status == MIMUS_OK && !json_is_null(json_object_get(list, "chosen")))
        status = mimus__fail(MIMUS_ERR_DATA, "chose a device of an empty platform");
    json_decref(list);
    return status;
}

/* The list as one line of text, as the message of a failure. */
static mimus_status list(void) {
    char *text;
    mimus_status status = mimus_devices(NULL, &text);
    if (status == MIMUS_OK) {
        json_t *value;
        status = mimus__json_parse(&value, text, strlen(text), "list");
        mimus_free(text);
        if (status == MIMUS_OK)
            status = mimus__json_text(&text, value, JSON_COMPACT);
        json_decref(value);
    }
    if (status != MIMUS_OK)
        return status;
    mimus__fail(MIMUS_ERR_DATA, "%s", text);
    mimus_free(text);
    return MIMUS_ERR_DATA;
}

/* Walk so many steps, each with a command, and see what was asked of OpenCL. */
static mimus_status walk(mimus__device *device, int steps) {
    mimus_status status = MIMUS_OK;
    mimus__buffer buffer = {0};
    MIMUS_TRY(mimus__buffer_new(&buffer, device, 64, "buffer"));
    for (int i = 0; i < steps; i++) {
        MIMUS_TRY(mimus__buffer_fill(&buffer, 0, (uint32_t)i, 64));
        MIMUS_TRY(mimus__device_pace(device));
    }
out:
    mimus__buffer_free(&buffer);
    return status;
}

#define EXPECT_CALLS(condition)                                                                    \
    do {                                                                                           \
        if (status == MIMUS_OK && !(condition))                                                    \
            status = mimus__fail(MIMUS_ERR_DATA, "not so: %s", #condition);                        \
    } while (0)

static mimus_status pace(void) {
    mimus__device *device;
    mimus_status status = mimus__device_open(&device, NULL, 0);
    if (status == MIMUS_OK)
        status = walk(device, 31);
    EXPECT_CALLS(shim_calls("clFlush") == 0);
    if (status == MIMUS_OK)
        status = walk(device, 1);
    EXPECT_CALLS(shim_calls("clFlush") == 1);
    if (status == MIMUS_OK)
        status = walk(device, 256 - 32); /* three more flushes, four markers with theirs */
    EXPECT_CALLS(shim_calls("clFlush") == 8);
    EXPECT_CALLS(shim_calls("clEnqueueMarkerWithWaitList") == 4);
    EXPECT_CALLS(shim_calls("clWaitForEvents") == 0);
    if (status == MIMUS_OK)
        status = walk(device, 64);
    EXPECT_CALLS(shim_calls("clReleaseEvent") == 1);
    if (status == MIMUS_OK)
        status = walk(device, 1000 - 320);
    EXPECT_CALLS(shim_calls("clEnqueueMarkerWithWaitList") == 1000 / 64);
    EXPECT_CALLS(shim_calls("clReleaseEvent") == 1000 / 64 - 4);
    EXPECT_CALLS(shim_calls("clWaitForEvents") == 0 ||
                 shim_calls("clWaitForEvents") == shim_calls("clReleaseEvent"));
    EXPECT_CALLS(mimus__device_reads(device) == 0);
    mimus__device_close(device);
    EXPECT_CALLS(shim_calls("clReleaseEvent") == 1000 / 64);
    EXPECT_CALLS(shim_calls("clReleaseMemObject") == shim_calls("clCreateBuffer"));
    EXPECT_CALLS(shim_calls("clReleaseCommandQueue") == 1);
    EXPECT_CALLS(shim_calls("clReleaseContext") == 1);
    return status;
}

/* A driver's own wait is used on CPUs and when MIMUS_SPIN says so. */
static mimus_status pace_with_driver_waits(void) {
    mimus_status status = pace();
    EXPECT_CALLS(shim_calls("clWaitForEvents") == 1000 / 64 - 4);
    return status;
}

static mimus_status pace_with_polling(void) {
    mimus_status status = pace();
    EXPECT_CALLS(shim_calls("clWaitForEvents") == 0);
    return status;
}

static mimus_status finish(void) {
    mimus__device *device;
    mimus_status status = mimus__device_open(&device, NULL, 0);
    if (status == MIMUS_OK)
        status = walk(device, 5);
    if (status == MIMUS_OK)
        status = mimus__device_finish(device);
    mimus__device_close(device);
    EXPECT_CALLS(shim_calls("clReleaseEvent") == shim_calls("clEnqueueMarkerWithWaitList"));
    return status;
}

static const child_action actions[] = {
    {"open-default", open_default},
    {"open-gpu", open_gpu},
    {"open-by-platform-name", open_by_platform_name},
    {"list", list},
    {"pace", pace},
    {"pace-with-driver-waits", pace_with_driver_waits},
    {"pace-with-polling", pace_with_polling},
    {"finish", finish},
    {NULL, NULL},
};

/* ----------------------------------------------------------- the list, the choice */

START_TEST(the_list_describes_the_chosen_device) {
    json_t *list;
    mimus__device *device;
    test_ok(mimus__device_list(&list, NULL));
    test_ok(mimus__device_open(&device, NULL, 0));
    const mimus__device_info *info = mimus__device_get_info(device);
    const json_t *devices = json_object_get(list, "devices");
    json_int_t chosen = json_integer_value(json_object_get(list, "chosen"));
    const json_t *row = json_array_get(devices, (size_t)chosen);
    const char *text;
    uint64_t number;
    char id[32];
    test_ok(mimus__json_get_string(row, "id", "row", &text));
    snprintf(id, sizeof id, "%u:%u", info->platform, info->index);
    ck_assert_str_eq(text, id);
    test_ok(mimus__json_get_string(row, "name", "row", &text));
    ck_assert_str_eq(text, info->name);
    test_ok(mimus__json_get_string(row, "type", "row", &text));
    ck_assert_str_eq(text, info->gpu ? "gpu" : info->cpu ? "cpu" : "accelerator");
    test_ok(mimus__json_get_u64(row, "memory", "row", &number));
    ck_assert_uint_eq(number, info->memory);
    test_ok(mimus__json_get_u64(row, "largest_buffer", "row", &number));
    ck_assert_uint_eq(number, info->largest);
    ck_assert_uint_le(info->largest, info->memory);
    ck_assert_uint_ge(info->largest, 1 << 20);
    ck_assert_uint_ge(info->compute_units, 1);
    ck_assert_uint_ge(info->vector_width, 1);
    ck_assert_uint_ge(info->max_group, 1);
    ck_assert_uint_ge(info->base_align, 1);
    ck_assert_uint_ge(info->local_memory, 1024);
    size_t marked = 0;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        bool flag;
        test_ok(mimus__json_get_bool(json_array_get(devices, i), "chosen", "row", &flag));
        marked += flag;
        ck_assert(flag == (i == (size_t)chosen));
    }
    ck_assert_uint_eq(marked, 1);
    ck_assert_uint_gt(json_array_size(json_object_get(list, "platforms")), info->platform);
    mimus__device_close(device);
    json_decref(list);
}
END_TEST

static void expect_choice(const char *selector, const mimus__device_info *wanted) {
    mimus__device *device;
    test_ok(mimus__device_open(&device, selector, 0));
    ck_assert_str_eq(mimus__device_get_info(device)->name, wanted->name);
    mimus__device_close(device);
}

START_TEST(a_selector_is_a_type_a_place_or_a_part_of_a_name) {
    mimus__device *device;
    char place[32], part[256];
    test_ok(mimus__device_open(&device, NULL, 0));
    mimus__device_info info = *mimus__device_get_info(device);
    mimus__device_close(device);
    snprintf(place, sizeof place, "%u:%u", info.platform, info.index);
    expect_choice(place, &info);
    expect_choice("", &info);
    expect_choice(info.name, &info);
    snprintf(part, sizeof part, "%s", info.name);
    for (char *at = part; *at != '\0'; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 32 : *at);
    part[strlen(part) - 1] = '\0';
    expect_choice(part, &info);
    test_fails(mimus__device_open(&device, "no such device", 0), MIMUS_ERR_NO_DEVICE,
               "no OpenCL device matches \"no such device\"; there are: ");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), info.name));
    ck_assert_ptr_null(device);
    test_fails(mimus__device_open(&device, "99:0", 0), MIMUS_ERR_NO_DEVICE, "99:0");
    test_fails(mimus__device_open(&device, "0:", 0), MIMUS_ERR_NO_DEVICE, "\"0:\"");
}
END_TEST

START_TEST(an_unmatched_selector_still_lists) {
    char *text;
    json_t *list;
    bool flag;
    test_ok(mimus_devices("no such device", &text));
    test_ok(mimus__json_parse(&list, text, strlen(text), "list"));
    ck_assert(json_is_null(json_object_get(list, "chosen")));
    const json_t *devices = json_object_get(list, "devices");
    ck_assert_uint_ge(json_array_size(devices), 1);
    test_ok(mimus__json_get_bool(json_array_get(devices, 0), "chosen", "row", &flag));
    ck_assert(!flag);
    json_decref(list);
    mimus_free(text);
}
END_TEST

START_TEST(the_variable_chooses) {
    child_expect("open-default", MIMUS_ERR_NO_DEVICE,
                 "no OpenCL device matches \"no such device\" (MIMUS_DEVICE); there are: ",
                 "MIMUS_DEVICE=no such device");
    child_expect("open-default", MIMUS_OK, "", "MIMUS_DEVICE=");
    child_expect("open-gpu", MIMUS_OK, "", SHIM("gpu"), "MIMUS_DEVICE=no such device");
}
END_TEST

/* Silence would leave the user with the other thing. */
START_TEST(wrong_words_in_variables_are_refused) {
    child_expect("open-default", MIMUS_ERR_ARGUMENT,
                 "the variable MIMUS_GEOMETRY is \"GPU\": it must be cpu or gpu, or unset",
                 "MIMUS_GEOMETRY=GPU", "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_ARGUMENT,
                 "the variable MIMUS_SPIN is \"yes\": it must be 0 or 1, or unset",
                 "MIMUS_SPIN=yes", "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_OK, "", "MIMUS_GEOMETRY=", "MIMUS_SPIN=", "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_OK, "", "MIMUS_GEOMETRY=gpu", "MIMUS_SPIN=0",
                 "MIMUS_DEVICE");
}
END_TEST

START_TEST(a_broken_platform_hides_no_other) {
    child_expect(
        "list", MIMUS_ERR_DATA,
        "{\"platforms\":[{\"index\":0,\"name\":\"Invented\",\"vendor\":\"Invented\","
        "\"version\":\"Invented\",\"error\":\"clGetDeviceIDs: CL_OUT_OF_HOST_MEMORY (-6)\"},"
        "{\"index\":1,",
        SHIM("broken"), "MIMUS_DEVICE");
    child_expect("list", MIMUS_ERR_DATA, "\"chosen\":true", SHIM("broken"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_OK, "", SHIM("broken"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_OK, "", SHIM("empty"), "MIMUS_DEVICE");
    child_expect("open-by-platform-name", MIMUS_OK, "", SHIM("empty"), "MIMUS_DEVICE");
}
END_TEST

START_TEST(without_a_device_every_platform_says_why) {
    child_expect("open-default", MIMUS_ERR_NO_DEVICE,
                 "no usable OpenCL device; there are: platform 0 Invented (empty), platform 1 ",
                 SHIM("empty clGetDeviceIDs=-2"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_NO_DEVICE,
                 "(clGetDeviceIDs: CL_DEVICE_NOT_AVAILABLE (-2))", SHIM("empty clGetDeviceIDs=-2"),
                 "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_NO_DEVICE, "(clGetDeviceInfo: CL_OUT_OF_RESOURCES (-5))",
                 SHIM("clGetDeviceInfo=-5"), "MIMUS_DEVICE");
    child_expect("list", MIMUS_ERR_DATA, "\"devices\":[],\"chosen\":null}",
                 SHIM("clGetDeviceInfo=-5"), "MIMUS_DEVICE");
}
END_TEST

/* Where PoCL is the only platform: another's device would be taken. */
START_TEST(pocl_without_a_device_gets_advice) {
    json_t *found;
    test_ok(mimus__device_list(&found, NULL));
    const json_t *platforms = json_object_get(found, "platforms");
    const char *name = json_string_value(json_object_get(json_array_get(platforms, 0), "name"));
    if (json_array_size(platforms) == 1 && strcmp(name, "Portable Computing Language") == 0)
        child_expect("open-default", MIMUS_ERR_NO_DEVICE, "unset it, or set it to \"pthread\"",
                     "POCL_DEVICES=", "MIMUS_DEVICE");
    json_decref(found);
}
END_TEST

START_TEST(types_are_seen_through) {
    child_expect("list", MIMUS_ERR_DATA, "\"type\":\"gpu\"", SHIM("gpu"), "MIMUS_DEVICE");
    child_expect("list", MIMUS_ERR_DATA, "\"type\":\"cpu\"", SHIM("gpu name=llvmpipe"),
                 "MIMUS_DEVICE");
    child_expect("open-gpu", MIMUS_OK, "", SHIM("gpu"));
    child_expect("open-gpu", MIMUS_ERR_NO_DEVICE, ":0 llvmpipe (cpu)", SHIM("gpu name=llvmpipe"));
}
END_TEST

START_TEST(an_old_device_is_listed_and_left_alone) {
    child_expect("list", MIMUS_ERR_DATA, "\"unusable\":\"does not speak OpenCL 1.2\"",
                 SHIM("version=1.1"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_NO_DEVICE,
                 "no usable OpenCL device; there are: ", SHIM("version=1.1"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_NO_DEVICE, ":0 Old (gpu, does not speak OpenCL 1.2)",
                 SHIM("gpu name=Old version=1.1"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_NO_DEVICE, "Old does not speak OpenCL 1.2",
                 SHIM("name=Old version=1.1"), "MIMUS_DEVICE=old");
}
END_TEST

START_TEST(a_driver_that_fails_is_named) {
    child_expect("open-default", MIMUS_ERR_DEVICE,
                 "clCreateContext: CL_OUT_OF_RESOURCES (-5) on Shimmed",
                 SHIM("name=Shimmed clCreateContext=-5"), "MIMUS_DEVICE");
    child_expect("open-default", MIMUS_ERR_DEVICE,
                 "clCreateCommandQueue: CL_OUT_OF_HOST_MEMORY (-6) on Shimmed",
                 SHIM("name=Shimmed clCreateCommandQueue=-6"), "MIMUS_DEVICE");
}
END_TEST

/* ------------------------------------------------------------------ the queue */

START_TEST(the_queue_stays_shallow) {
    child_expect("pace-with-driver-waits", MIMUS_OK, "", SHIM("name=llvmpipe"), "MIMUS_DEVICE");
    child_expect("pace-with-driver-waits", MIMUS_OK, "", SHIM("gpu"), "MIMUS_SPIN=1",
                 "MIMUS_DEVICE");
    child_expect("pace-with-polling", MIMUS_OK, "", SHIM("gpu lazy"), "MIMUS_SPIN", "MIMUS_DEVICE");
}
END_TEST

START_TEST(a_lost_device_is_an_error_not_a_hang) {
    child_expect("finish", MIMUS_OK, "", SHIM("gpu lazy"), "MIMUS_SPIN", "MIMUS_DEVICE");
    child_expect("finish", MIMUS_ERR_DEVICE,
                 "a command failed: CL_OUT_OF_RESOURCES (-5) on Shimmed",
                 SHIM("gpu name=Shimmed lost=-5"), "MIMUS_SPIN", "MIMUS_DEVICE");
    child_expect("finish", MIMUS_ERR_DEVICE, "clGetEventInfo: CL_INVALID_EVENT (-58)",
                 SHIM("gpu clGetEventInfo=-58"), "MIMUS_SPIN", "MIMUS_DEVICE");
    child_expect("finish", MIMUS_ERR_DEVICE, "clFinish: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("clFinish=-5"), "MIMUS_DEVICE");
    child_expect("pace", MIMUS_ERR_DEVICE, "clFlush: CL_OUT_OF_RESOURCES (-5)", SHIM("clFlush=-5"),
                 "MIMUS_DEVICE");
    child_expect("pace", MIMUS_ERR_DEVICE, "a command failed: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("gpu lost=-5"), "MIMUS_SPIN", "MIMUS_DEVICE");
}
END_TEST

/* --------------------------------------------------------------- the counters */

START_TEST(memory_is_accounted_for) {
    mimus__device *device;
    test_ok(mimus__device_open(&device, NULL, 1000));
    test_ok(mimus__device_reserve(device, 600, "weights"));
    test_fails(mimus__device_reserve(device, 401, "moments"), MIMUS_ERR_MEMORY, "moments: ");
    ck_assert_uint_eq(mimus__device_bytes(device), 600);
    test_ok(mimus__device_reserve(device, 400, "moments"));
    mimus__device_release(device, 600);
    ck_assert_uint_eq(mimus__device_bytes(device), 400);
    ck_assert_uint_eq(mimus__device_peak_bytes(device), 1000);
    test_fails(mimus__device_reserve(device, UINT64_MAX, "x"), MIMUS_ERR_MEMORY, "x: ");
    mimus__device_release(device, 400);
    mimus__device_close(device);
    test_ok(mimus__device_open(&device, NULL, 0));
    test_ok(mimus__device_reserve(device, mimus__device_get_info(device)->memory / 2, "half"));
    mimus__device_close(device);
    mimus__device_close(NULL);
}
END_TEST

static TCase *choice_tests(void) {
    TCase *tests = tcase_create("choice");
    tcase_add_test(tests, the_list_describes_the_chosen_device);
    tcase_add_test(tests, a_selector_is_a_type_a_place_or_a_part_of_a_name);
    tcase_add_test(tests, an_unmatched_selector_still_lists);
    tcase_add_test(tests, the_variable_chooses);
    tcase_add_test(tests, wrong_words_in_variables_are_refused);
    tcase_add_test(tests, a_broken_platform_hides_no_other);
    tcase_add_test(tests, without_a_device_every_platform_says_why);
    tcase_add_test(tests, pocl_without_a_device_gets_advice);
    tcase_add_test(tests, types_are_seen_through);
    tcase_add_test(tests, an_old_device_is_listed_and_left_alone);
    tcase_add_test(tests, a_driver_that_fails_is_named);
    return tests;
}

static TCase *queue_tests(void) {
    TCase *tests = tcase_create("queue");
    tcase_add_test(tests, the_queue_stays_shallow);
    tcase_add_test(tests, a_lost_device_is_an_error_not_a_hang);
    tcase_add_test(tests, memory_is_accounted_for);
    return tests;
}

int main(int count, char **arguments) {
    if (count > 1)
        return child_main(actions, arguments[1]);
    Suite *suite = suite_create("device");
    suite_add_tcase(suite, choice_tests());
    suite_add_tcase(suite, queue_tests());
    return test_run(suite);
}
