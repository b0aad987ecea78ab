/* Kernel sources: settings, includes, builds and their errors. */
#include "child.h"
#include "shim.h"
#include "support.h"

#include "kernels.h"
#include "launch.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mimus__device *device;

static void setup(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
}

static void teardown(void) {
    mimus__device_close(device);
}

/* What kernel test_main of a source writes into `got` (4 words). */
static mimus_status run_source(const char *source, const mimus__defines *defines, int32_t *got) {
    mimus_status status = MIMUS_OK;
    mimus__program program = {0};
    mimus__kernel kernel = {0};
    mimus__buffer out = {0};
    mimus__grid grid = {.global = {1}, .local = {1}};
    MIMUS_TRY(mimus__program_build_text(&program, device, "test.cl", source, defines));
    MIMUS_TRY(mimus__kernel_new(&kernel, &program, "test_main"));
    MIMUS_TRY(mimus__buffer_new(&out, device, 4 * sizeof *got, "out"));
    MIMUS_TRY(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)));
    MIMUS_TRY(mimus__buffer_read(&out, 0, got, 4 * sizeof *got));
out:
    mimus__buffer_free(&out);
    mimus__kernel_free(&kernel);
    mimus__program_free(&program);
    return status;
}

/* ------------------------------------------------------- in a child process */

static mimus_status build_and_free(void) {
    int32_t got[4];
    mimus_status status = mimus__device_open(&device, NULL, 0);
    if (status == MIMUS_OK)
        status = run_source("kernel void test_main(global int *out) { out[0] = 1; }", NULL, got);
    mimus__device_close(device);
    if (shim_calls("clReleaseProgram") != shim_calls("clCreateProgramWithSource") ||
        shim_calls("clReleaseKernel") != shim_calls("clCreateKernel"))
        status = mimus__fail(MIMUS_ERR_DATA, "programs or kernels are left");
    return status;
}

static const char recorded_source[] = "kernel void test_main(global int *out) { out[0] = LAST; }\n";

static mimus_status launch_once(void) {
    int32_t got[4];
    mimus__defines defines = {0};
    mimus_status status = mimus__device_open(&device, NULL, 0);
    mimus__define_number(&defines, "LAST", 7);
    if (status == MIMUS_OK)
        status = run_source(recorded_source, &defines, got);
    mimus__device_close(device);
    return status;
}

static const child_action actions[] = {
    {"build-and-free", build_and_free},
    {"launch-once", launch_once},
    {NULL, NULL},
};

/* --------------------------------------------------------------------- tests */

START_TEST(settings_come_first) {
    static const char source[] = "#ifndef WIDTH\n#define WIDTH 5\n#endif\n"
                                 "#ifndef OFFSETS\n#define OFFSETS 1, 2, 3\n#endif\n"
                                 "constant int offsets[] = {OFFSETS};\n"
                                 "kernel void test_main(global int *out) {\n"
                                 "    out[0] = WIDTH;\n"
                                 "    out[1] = offsets[1];\n"
                                 "    out[2] = sizeof offsets / sizeof *offsets;\n"
                                 "}\n";
    int32_t got[4];
    test_ok(run_source(source, NULL, got));
    ck_assert_int_eq(got[0], 5);
    ck_assert_int_eq(got[1], 2);
    ck_assert_int_eq(got[2], 3);
    mimus__defines defines = {0};
    mimus__define_number(&defines, "WIDTH", 2147483647);
    mimus__define_text(&defines, "OFFSETS", "7, 8");
    test_ok(run_source(source, &defines, got));
    ck_assert_int_eq(got[0], 2147483647);
    ck_assert_int_eq(got[1], 8);
    ck_assert_int_eq(got[2], 2);
}
END_TEST

START_TEST(too_many_settings_are_refused) {
    mimus__defines defines = {0};
    int32_t got[4];
    const char *source = "kernel void test_main(global int *out) { out[0] = LAST; }";
    for (int i = 0; i < MIMUS__MAX_DEFINES - 1; i++)
        mimus__define_number(&defines, "SAME", 18446744073709551615u);
    mimus__define_number(&defines, "LAST", 9);
    test_ok(run_source(source, &defines, got));
    ck_assert_int_eq(got[0], 9);
    mimus__define_number(&defines, "MORE", 1);
    mimus__define_text(&defines, "MORE", "2");
    test_fails(run_source(source, &defines, got), MIMUS_ERR_ARGUMENT,
               "test.cl: 34 settings, at most 32");
}
END_TEST

START_TEST(includes_come_once_and_keep_the_lines) {
    static const char source[] = "#define BEFORE __LINE__\n"
                                 "constant int before = BEFORE;\n"
                                 "  #  include \"common.clh\"\n"
                                 "constant int between = __LINE__;\n"
                                 "#include \"common.clh\"\n"
                                 "constant int after = __LINE__;\n"
                                 "kernel void test_main(global int *out) {\n"
                                 "    out[0] = before;\n"
                                 "    out[1] = between;\n"
                                 "    out[2] = after;\n"
                                 "    out[3] = MASKED < 0 && is_finite_bits(1.0f);\n"
                                 "}"; /* without a line end */
    int32_t got[4];
    mimus__defines defines = {0};
    mimus__define_number(&defines, "SHIFTS", 1);
    test_ok(run_source(source, &defines, got));
    ck_assert_int_eq(got[0], 2);
    ck_assert_int_eq(got[1], 4);
    ck_assert_int_eq(got[2], 6);
    ck_assert_int_eq(got[3], 1);
}
END_TEST

START_TEST(a_missing_file_is_named) {
    mimus__program program;
    int32_t got[4];
    test_fails(mimus__program_build(&program, device, "nothing.cl", NULL), MIMUS_ERR_ARGUMENT,
               "there is no kernel file \"nothing.cl\"");
    mimus__program_free(&program);
    test_fails(run_source("\n#include \"nothing.clh\"\n", NULL, got), MIMUS_ERR_DEVICE,
               "test.cl:2: there is no kernel file \"nothing.clh\" to include");
    ck_assert_ptr_null(mimus__program_source("nothing.cl"));
    ck_assert_ptr_nonnull(strstr(mimus__program_source("common.clh"), "MASKED"));
}
END_TEST

START_TEST(a_broken_source_gives_its_first_error) {
    int32_t got[4];
    test_fails(run_source("#warning a warning comes first\n"
                          "#include \"common.clh\"\n"
                          "kernel void test_main(global int *out) { out[0] = unheard_of; }\n",
                          NULL, got),
               MIMUS_ERR_DEVICE, "cannot build test.cl on ");
    const char *line = mimus_last_error();
    ck_assert_msg(strstr(line, mimus__device_get_info(device)->name) != NULL, "%s", line);
    ck_assert_msg(strstr(line, "unheard_of") != NULL, "%s", line);
    ck_assert_msg(strstr(line, "CL_BUILD_PROGRAM_FAILURE (-11)") != NULL, "%s", line);
    ck_assert_msg(strstr(line, "a warning") == NULL, "%s", line);
}
END_TEST

/* Options that let a NaN through must stay out: the flags of the optimizer depend on it. */
START_TEST(non_finite_numbers_stay_themselves) {
    static const char source[] = "#include \"common.clh\"\n"
                                 "kernel void test_main(global int *out) {\n"
                                 "    float zero = as_float(out[3]);\n"
                                 "    out[0] = is_finite_bits(zero / zero);\n"
                                 "    out[1] = is_finite_bits(1.0f / zero);\n"
                                 "    float nan = zero / zero;\n"
                                 "    out[2] = nan != nan;\n"
                                 "}\n";
    int32_t got[4];
    test_ok(run_source(source, NULL, got));
    ck_assert_int_eq(got[0], 0);
    ck_assert_int_eq(got[1], 0);
    ck_assert_int_eq(got[2], 1);
}
END_TEST

START_TEST(every_kernel_file_builds_by_default) {
    for (const mimus__embedded_file *file = mimus__embedded_files; file->name != NULL; file++) {
        const char *end = strrchr(file->name, '.');
        mimus__program program;
        if (strcmp(end, ".cl") != 0)
            continue;
        test_ok(mimus__program_build(&program, device, file->name, NULL));
        mimus__program_free(&program);
    }
}
END_TEST

START_TEST(a_driver_that_fails_is_named) {
    child_expect("build-and-free", MIMUS_OK, "", SHIM(""));
    child_expect("build-and-free", MIMUS_ERR_DEVICE,
                 "clCreateProgramWithSource: CL_OUT_OF_HOST_MEMORY (-6) on ",
                 SHIM("clCreateProgramWithSource=-6"));
    child_expect("build-and-free", MIMUS_ERR_DEVICE, "CL_BUILD_PROGRAM_FAILURE (-11)",
                 SHIM("clBuildProgram=-11"));
    child_expect("build-and-free", MIMUS_ERR_DEVICE,
                 "kernel test_main: clCreateKernel: CL_OUT_OF_HOST_MEMORY (-6)",
                 SHIM("clCreateKernel=-6"));
    child_expect("build-and-free", MIMUS_ERR_DEVICE,
                 "kernel test_main: clGetKernelInfo: CL_OUT_OF_HOST_MEMORY (-6)",
                 SHIM("clGetKernelInfo=-6"));
    child_expect("build-and-free", MIMUS_ERR_DEVICE,
                 "kernel test_main, 1 x 1 x 1 work-items in groups of 1 x 1 x 1: "
                 "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("clEnqueueNDRangeKernel=-5"));
}
END_TEST

/* As it fails when a signal comes while the driver's clang works. */
START_TEST(a_build_that_fails_is_tried_again) {
    child_expect("build-and-free", MIMUS_OK, "", SHIM("clBuildProgram=-11,once"));
}
END_TEST

/* The only file of the test's folder whose name ends so: its content in a static buffer. */
static const char *recorded(const char *ending) {
    static char text[4096];
    glob_t found;
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/*%s", test_folder(), ending);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    FILE *file = fopen(found.gl_pathv[0], "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    globfree(&found);
    return text;
}

/* ci/gpu-static.sh compiles for other devices what the shim writes down. */
START_TEST(what_is_launched_can_be_compiled_again) {
    char words[512];
    snprintf(words, sizeof words, "MIMUS_SHIM=gpu record=%s", test_folder());
    child_expect("launch-once", MIMUS_OK, "", "MIMUS_OPENCL_LIBRARY=" MIMUS_SHIM_LIBRARY, words,
                 "LD_PRELOAD");
    ck_assert_str_eq(recorded(".test_main.1x1x1"),
                     "-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros -w");
    const char *source = recorded(".cl");
    ck_assert_msg(strstr(source, "#define LAST 7\n#line 1 \"test.cl\"\n") == source, "%s", source);
    ck_assert_msg(strstr(source, recorded_source) != NULL, "%s", source);
    test_folder_remove();
}
END_TEST

int main(int count, char **arguments) {
    if (count > 1)
        return child_main(actions, arguments[1]);
    Suite *suite = suite_create("program");
    TCase *sources = tcase_create("sources");
    tcase_add_checked_fixture(sources, setup, teardown);
    tcase_add_test(sources, settings_come_first);
    tcase_add_test(sources, too_many_settings_are_refused);
    tcase_add_test(sources, includes_come_once_and_keep_the_lines);
    tcase_add_test(sources, a_missing_file_is_named);
    tcase_add_test(sources, a_broken_source_gives_its_first_error);
    tcase_add_test(sources, non_finite_numbers_stay_themselves);
    tcase_add_test(sources, every_kernel_file_builds_by_default);
    suite_add_tcase(suite, sources);
    TCase *drivers = tcase_create("drivers");
    tcase_add_test(drivers, a_driver_that_fails_is_named);
    tcase_add_test(drivers, a_build_that_fails_is_tried_again);
    tcase_add_test(drivers, what_is_launched_can_be_compiled_again);
    suite_add_tcase(suite, drivers);
    return test_run(suite);
}
