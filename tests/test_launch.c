/* Kernels and their launches. */
#include "support.h"

#include "launch.h"

#include <string.h>

static mimus__device *device;
static mimus__program program;

static const char source[] =
    "kernel void test_scale(global const float *x, global float *y,\n"
    "                       uint count, float factor, ulong shift) {\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        y[i] = x[i] * factor + (float)shift;\n"
    "}\n"
    "kernel void test_where(global uint *out) {\n"
    "    size_t width = get_global_size(0), height = get_global_size(1);\n"
    "    size_t i = (get_global_id(2) * height + get_global_id(1)) * width\n"
    "               + get_global_id(0);\n"
    "    out[i] = get_group_id(0) + 10 * get_group_id(1) + 100 * get_group_id(2);\n"
    "}\n";

static void setup(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
    test_ok(mimus__program_build_text(&program, device, "test.cl", source, NULL));
}

static void teardown(void) {
    mimus__program_free(&program);
    mimus__device_close(device);
}

START_TEST(arguments_arrive) {
    static const size_t sizes[] = {1, 63, 64, 65, 1000};
    enum { GUARD = 64 };
    mimus__kernel kernel;
    test_ok(mimus__kernel_new(&kernel, &program, "test_scale"));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t count = sizes[s];
        float x[1000], y[1000 + GUARD];
        mimus__buffer in, out;
        for (size_t i = 0; i < count; i++)
            x[i] = (float)i - 3.5f;
        test_ok(mimus__buffer_new(&in, device, count * sizeof *x, "x"));
        test_ok(mimus__buffer_new(&out, device, (count + GUARD) * sizeof *y, "y"));
        test_ok(mimus__buffer_write(&in, 0, x, count * sizeof *x));
        mimus__grid grid = {.global = {(count + 63) / 64 * 64}, .local = {64}};
        uint64_t launches = mimus__device_launches(device);
        test_ok(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&in), MIMUS_ARG_BUFFER(&out),
                              MIMUS_ARG_U32((cl_uint)count), MIMUS_ARG_F32(2.0f),
                              MIMUS_ARG_U64((cl_ulong)1 << 20)));
        ck_assert_uint_eq(mimus__device_launches(device), launches + 1);
        test_ok(mimus__buffer_read(&out, 0, y, out.bytes));
        for (size_t i = 0; i < count; i++)
            ck_assert_float_eq(y[i], x[i] * 2 + (float)(1 << 20));
        for (size_t i = count; i < count + GUARD; i++)
            ck_assert_float_eq(y[i], 0);
        mimus__buffer_free(&in);
        mimus__buffer_free(&out);
    }
    mimus__kernel_free(&kernel);
}
END_TEST

START_TEST(three_dimensions_are_as_given) {
    uint32_t got[3 * 4 * 8];
    mimus__kernel kernel;
    mimus__buffer out;
    test_ok(mimus__kernel_new(&kernel, &program, "test_where"));
    test_ok(mimus__buffer_new(&out, device, sizeof got, "out"));
    mimus__grid grid = {.global = {8, 4, 3}, .local = {2, 4, 1}};
    test_ok(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)));
    test_ok(mimus__buffer_read(&out, 0, got, sizeof got));
    for (uint32_t z = 0; z < 3; z++)
        for (uint32_t y = 0; y < 4; y++)
            for (uint32_t x = 0; x < 8; x++)
                ck_assert_uint_eq(got[(z * 4 + y) * 8 + x], x / 2 + 100 * z);
    mimus__buffer_free(&out);
    mimus__kernel_free(&kernel);
}
END_TEST

START_TEST(a_wrong_launch_names_the_kernel) {
    mimus__kernel kernel, none;
    mimus__buffer out;
    test_fails(mimus__kernel_new(&none, &program, "test_missing"), MIMUS_ERR_DEVICE,
               "kernel test_missing: clCreateKernel: CL_INVALID_KERNEL_NAME (-46) on ");
    mimus__kernel_free(&none);
    test_ok(mimus__kernel_new(&kernel, &program, "test_where"));
    test_ok(mimus__buffer_new(&out, device, 4096, "out"));
    mimus__grid grid = {.global = {64}, .local = {64}};
    uint64_t launches = mimus__device_launches(device);
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out), MIMUS_ARG_U32(1)),
               MIMUS_ERR_DEVICE, "kernel test_where takes 1 arguments, not 2");
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_U32(1)), MIMUS_ERR_DEVICE,
               "kernel test_where, argument 0 of 4 bytes: clSetKernelArg: ");
    grid.global[0] = 65;
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)), MIMUS_ERR_DEVICE,
               "kernel test_where: 65 x 1 x 1 work-items are not whole groups of 64 x 1 x 1");
    grid.global[0] = 0;
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)), MIMUS_ERR_DEVICE, ": 0 x 1");
    grid = (mimus__grid){.global = {64}};
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)), MIMUS_ERR_DEVICE,
               "whole groups of 0 x 1 x 1");
    grid = (mimus__grid){.global = {1u << 20}, .local = {1u << 20}};
    test_fails(mimus__launch(&kernel, grid, MIMUS_ARG_BUFFER(&out)), MIMUS_ERR_DEVICE,
               "kernel test_where: groups of 1048576, at most ");
    ck_assert_uint_eq(mimus__device_launches(device), launches);
    mimus__buffer_free(&out);
    mimus__kernel_free(&kernel);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("launch");
    TCase *all = tcase_create("launch");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, arguments_arrive);
    tcase_add_test(all, three_dimensions_are_as_given);
    tcase_add_test(all, a_wrong_launch_names_the_kernel);
    suite_add_tcase(suite, all);
    return test_run(suite);
}
