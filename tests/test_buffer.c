/* Device memory: what goes in comes out, and nothing beside it changes. */
#include "child.h"
#include "shim.h"
#include "support.h"

#include "buffer.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------- in a child process */

static mimus__device *device;

/* Everything once; any driver call of it may be made to fail. */
static mimus_status use(mimus__buffer *whole, mimus__buffer *part) {
    mimus_status status = MIMUS_OK;
    uint32_t words[64] = {1, 2, 3};
    MIMUS_TRY(mimus__buffer_new(whole, device, 4096, "weights"));
    MIMUS_TRY(mimus__buffer_part(part, whole, 1024, 1024));
    MIMUS_TRY(mimus__buffer_write(whole, 0, words, sizeof words));
    MIMUS_TRY(mimus__buffer_copy(whole, 0, part, 0, sizeof words));
    MIMUS_TRY(mimus__buffer_fill(part, 4, 7, 4));
    MIMUS_TRY(mimus__buffer_read(part, 0, words, sizeof words));
    if (words[0] != 1 || words[1] != 7 || words[2] != 3)
        status =
            mimus__fail(MIMUS_ERR_DATA, "read %u %u %u, not 1 7 3", words[0], words[1], words[2]);
out:
    return status;
}

static mimus_status use_and_free(void) {
    mimus__buffer whole = {0}, part = {0};
    mimus_status status = mimus__device_open(&device, NULL, 0);
    if (status == MIMUS_OK)
        status = use(&whole, &part);
    mimus__buffer_free(&part);
    mimus__buffer_free(&whole);
    if (device != NULL && mimus__device_bytes(device) != 0)
        status = mimus__fail(MIMUS_ERR_DATA, "%llu bytes are left",
                             (unsigned long long)mimus__device_bytes(device));
    mimus__device_close(device);
    unsigned long long made = shim_calls("clCreateBuffer") + shim_calls("clCreateSubBuffer");
    if (shim_calls("clReleaseMemObject") != made)
        status = mimus__fail(MIMUS_ERR_DATA, "%llu of %llu buffers are released",
                             shim_calls("clReleaseMemObject"), made);
    return status;
}

static const child_action actions[] = {
    {"use-and-free", use_and_free},
    {NULL, NULL},
};

/* ------------------------------------------------------------------- content */

static void setup(void) {
    test_ok(mimus__device_open(&device, NULL, (uint64_t)96 << 20));
}

static void teardown(void) {
    ck_assert_uint_eq(mimus__device_bytes(device), 0);
    mimus__device_close(device);
}

static const size_t sizes[] = {1, 3, 4, 63, 64, 65, 1000};
enum { SIZES = sizeof sizes / sizeof *sizes, MAX_BYTES = 4096, GUARD = 64 };

static unsigned char pattern(size_t index, unsigned seed) {
    return (unsigned char)(index * 37 + seed * 101 + 11);
}

static void make_pattern(unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = pattern(i, seed);
}

static void expect_pattern(const unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(bytes[i] == pattern(i, seed), "byte %zu of %zu: %u, not %u", i, count,
                      bytes[i], pattern(i, seed));
}

static void expect_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(bytes[i] == 0, "byte %zu of %zu: %u, not 0", i, count, bytes[i]);
}

START_TEST(a_new_buffer_is_zero) {
    unsigned char bytes[MAX_BYTES];
    for (int round = 0; round < 3; round++) { /* memory that was used before must be zeroed, too */
        for (size_t s = 0; s < SIZES; s++) {
            mimus__buffer buffer;
            test_ok(mimus__buffer_new(&buffer, device, sizes[s], "buffer"));
            ck_assert_uint_eq(buffer.bytes, sizes[s]);
            memset(bytes, 0xAA, sizeof bytes);
            test_ok(mimus__buffer_read(&buffer, 0, bytes, sizes[s]));
            expect_zero(bytes, sizes[s]);
            make_pattern(bytes, sizes[s], 1);
            test_ok(mimus__buffer_write(&buffer, 0, bytes, sizes[s]));
            mimus__buffer_free(&buffer);
            mimus__buffer_free(&buffer);
        }
    }
    mimus__buffer empty;
    test_ok(mimus__buffer_new(&empty, device, 0, "empty"));
    ck_assert_uint_eq(empty.bytes, 4);
    mimus__buffer_free(&empty);
    mimus__buffer_free(NULL);
}
END_TEST

START_TEST(what_is_written_is_read_and_no_more) {
    unsigned char source[MAX_BYTES], got[MAX_BYTES];
    for (size_t s = 0; s < SIZES; s++) {
        size_t bytes = sizes[s];
        mimus__buffer buffer;
        test_ok(mimus__buffer_new(&buffer, device, bytes + 2 * GUARD, "buffer"));
        make_pattern(source, bytes, 2);
        test_ok(mimus__buffer_write(&buffer, GUARD, source, bytes));
        memset(source, 0, sizeof source); /* the source is free again */
        test_ok(mimus__buffer_read(&buffer, 0, got, bytes + 2 * GUARD));
        expect_zero(got, GUARD);
        expect_pattern(got + GUARD, bytes, 2);
        expect_zero(got + GUARD + bytes, GUARD);
        memset(got, 0xAA, sizeof got);
        test_ok(mimus__buffer_read(&buffer, GUARD, got, bytes));
        expect_pattern(got, bytes, 2);
        for (size_t i = bytes; i < bytes + GUARD; i++)
            ck_assert_uint_eq(got[i], 0xAA);
        mimus__buffer_free(&buffer);
    }
}
END_TEST

START_TEST(copies_and_fills_stay_in_their_place) {
    unsigned char source[MAX_BYTES], got[MAX_BYTES];
    for (size_t s = 0; s < SIZES; s++) {
        size_t bytes = sizes[s], words = bytes / 4 * 4;
        mimus__buffer from, to;
        test_ok(mimus__buffer_new(&from, device, bytes + 4, "from"));
        test_ok(mimus__buffer_new(&to, device, bytes + 2 * GUARD, "to"));
        make_pattern(source, bytes, 3);
        test_ok(mimus__buffer_write(&from, 4, source, bytes));
        test_ok(mimus__buffer_copy(&from, 4, &to, GUARD, bytes));
        test_ok(mimus__buffer_read(&to, 0, got, to.bytes));
        expect_zero(got, GUARD);
        expect_pattern(got + GUARD, bytes, 3);
        expect_zero(got + GUARD + bytes, GUARD);
        test_ok(mimus__buffer_fill(&to, GUARD, 0x04030201, words));
        test_ok(mimus__buffer_read(&to, 0, got, to.bytes));
        expect_zero(got, GUARD);
        for (size_t i = 0; i < words; i++)
            ck_assert_uint_eq(got[GUARD + i], i % 4 + 1);
        for (size_t i = words; i < bytes; i++)
            ck_assert_uint_eq(got[GUARD + i], pattern(i, 3));
        expect_zero(got + GUARD + bytes, GUARD);
        mimus__buffer_free(&from);
        mimus__buffer_free(&to);
    }
}
END_TEST

START_TEST(a_part_is_a_window) {
    unsigned char source[MAX_BYTES], got[MAX_BYTES];
    size_t align = mimus__device_get_info(device)->base_align;
    size_t origin = align > GUARD ? align : GUARD;
    for (size_t s = 0; s < SIZES; s++) {
        size_t bytes = sizes[s];
        mimus__buffer whole, part, none;
        test_ok(mimus__buffer_new(&whole, device, origin + bytes + GUARD, "whole"));
        uint64_t before = mimus__device_bytes(device);
        test_ok(mimus__buffer_part(&part, &whole, origin, bytes));
        ck_assert_uint_eq(mimus__device_bytes(device), before);
        make_pattern(source, bytes, 4);
        test_ok(mimus__buffer_write(&part, 0, source, bytes));
        test_ok(mimus__buffer_read(&whole, 0, got, whole.bytes));
        expect_zero(got, origin);
        expect_pattern(got + origin, bytes, 4);
        expect_zero(got + origin + bytes, GUARD);
        test_fails(mimus__buffer_write(&part, 1, source, bytes), MIMUS_ERR_ARGUMENT,
                   "cannot write");
        test_fails(mimus__buffer_part(&none, &whole, origin, bytes + GUARD + 1), MIMUS_ERR_ARGUMENT,
                   "no part of ");
        test_fails(mimus__buffer_part(&none, &whole, 0, 0), MIMUS_ERR_ARGUMENT, "no part of 0");
        mimus__buffer_free(&none);
        mimus__buffer_free(&part);
        mimus__buffer_free(&whole);
    }
}
END_TEST

/* More than both halves of the staging memory hold, at an odd place. */
START_TEST(a_large_upload_arrives_whole) {
    enum { OFFSET = 5, TAIL = 7 };
    size_t bytes = ((size_t)40 << 20) + 3;
    mimus__buffer buffer;
    unsigned char *source = malloc(bytes), *got = malloc(OFFSET + bytes + TAIL);
    ck_assert(source != NULL && got != NULL);
    test_ok(mimus__buffer_new(&buffer, device, OFFSET + bytes + TAIL, "recording"));
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < bytes; i++)
            source[i] = (unsigned char)((i * 2654435761u + round) >> 13);
        test_ok(mimus__buffer_write(&buffer, OFFSET, source, bytes));
        memset(source, 0, bytes);
        test_ok(mimus__buffer_read(&buffer, 0, got, buffer.bytes));
        expect_zero(got, OFFSET);
        for (size_t i = 0; i < bytes; i++) {
            if (got[OFFSET + i] != (unsigned char)((i * 2654435761u + round) >> 13))
                ck_abort_msg("round %u: byte %zu is wrong", round, i);
        }
        expect_zero(got + OFFSET + bytes, TAIL);
    }
    mimus__buffer_free(&buffer);
    free(source);
    free(got);
}
END_TEST

/* Each write is followed by a command that uses it, so that a write that overtakes shows. */
START_TEST(many_small_uploads_keep_their_order) {
    enum { WRITES = 2000 };
    static uint32_t got[WRITES];
    mimus__buffer slot, log;
    test_ok(mimus__buffer_new(&slot, device, 4, "slot"));
    test_ok(mimus__buffer_new(&log, device, sizeof got, "log"));
    uint64_t reads = mimus__device_reads(device);
    for (uint32_t i = 0; i < WRITES; i++) {
        test_ok(mimus__buffer_write(&slot, 0, &i, sizeof i));
        test_ok(mimus__buffer_copy(&slot, 0, &log, i * sizeof i, sizeof i));
        test_ok(mimus__device_pace(device));
    }
    ck_assert_uint_eq(mimus__device_reads(device), reads);
    test_ok(mimus__buffer_read(&log, 0, got, sizeof got));
    ck_assert_uint_eq(mimus__device_reads(device), reads + 1);
    for (uint32_t i = 0; i < WRITES; i++)
        ck_assert_uint_eq(got[i], i);
    mimus__buffer_free(&slot);
    mimus__buffer_free(&log);
}
END_TEST

/* -------------------------------------------------------------------- limits */

START_TEST(the_edges_are_watched) {
    mimus__buffer buffer, other;
    unsigned char bytes[128] = {0};
    test_ok(mimus__buffer_new(&buffer, device, 64, "buffer"));
    test_ok(mimus__buffer_new(&other, device, 32, "other"));
    uint64_t reads = mimus__device_reads(device);
    test_fails(mimus__buffer_write(&buffer, 1, bytes, 64), MIMUS_ERR_ARGUMENT,
               "cannot write 64 bytes at 1 of a buffer of 64");
    test_fails(mimus__buffer_read(&buffer, 65, bytes, 0), MIMUS_ERR_ARGUMENT, "cannot read 0");
    test_fails(mimus__buffer_read(&buffer, SIZE_MAX, bytes, 2), MIMUS_ERR_ARGUMENT, "cannot read");
    test_fails(mimus__buffer_fill(&buffer, 4, 0, 64), MIMUS_ERR_ARGUMENT, "cannot fill 64");
    test_fails(mimus__buffer_fill(&buffer, 2, 0, 4), MIMUS_ERR_ARGUMENT, "not whole words");
    test_fails(mimus__buffer_fill(&buffer, 0, 0, 3), MIMUS_ERR_ARGUMENT, "not whole words");
    test_fails(mimus__buffer_copy(&buffer, 0, &other, 0, 33), MIMUS_ERR_ARGUMENT, "cannot copy to");
    test_fails(mimus__buffer_copy(&other, 1, &buffer, 0, 32), MIMUS_ERR_ARGUMENT, "cannot copy 32");
    test_ok(mimus__buffer_write(&buffer, 64, bytes, 0));
    test_ok(mimus__buffer_read(&buffer, 64, bytes, 0));
    test_ok(mimus__buffer_fill(&buffer, 64, 1, 0));
    test_ok(mimus__buffer_copy(&buffer, 0, &other, 32, 0));
    ck_assert_uint_eq(mimus__device_reads(device), reads);
    mimus__buffer_free(&buffer);
    mimus__buffer_free(&other);
}
END_TEST

START_TEST(memory_has_its_bounds) {
    const mimus__device_info *info = mimus__device_get_info(device);
    mimus__buffer first, second;
    test_ok(mimus__buffer_new(&first, device, 60 << 20, "first"));
    test_fails(mimus__buffer_new(&second, device, 60 << 20, "second"), MIMUS_ERR_MEMORY,
               "second: 60.0 MiB do not fit on ");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "36.0 of its budget of 96.0 are left"));
    ck_assert_ptr_null(second.device);
    ck_assert_uint_eq(mimus__device_bytes(device), 60 << 20);
    mimus__buffer_free(&first);
    test_ok(mimus__buffer_new(&second, device, 60 << 20, "second"));
    mimus__buffer_free(&second);
    ck_assert_uint_eq(mimus__device_peak_bytes(device), 60 << 20);
    test_ok(mimus__buffer_new(&first, device, 96 << 20, "everything"));
    test_fails(mimus__buffer_new(&second, device, 1536, "second"), MIMUS_ERR_MEMORY,
               "second: 1.5 KiB do not fit on "); /* not 0.0 MiB */
    mimus__buffer_free(&first);
    test_fails(mimus__buffer_new(&first, device, info->largest + 1, "all of it"), MIMUS_ERR_MEMORY,
               "all of it: ");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "in one buffer"));
    test_fails(mimus__buffer_new(&first, device, SIZE_MAX, "all"), MIMUS_ERR_MEMORY, "all: ");
}
END_TEST

START_TEST(a_driver_that_fails_is_named) {
    child_expect("use-and-free", MIMUS_OK, "", SHIM(""));
    child_expect("use-and-free", MIMUS_OK, "", SHIM("gpu lazy"));
    child_expect("use-and-free", MIMUS_ERR_MEMORY,
                 "weights: no room for 4096 bytes: clCreateBuffer: "
                 "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4) on ",
                 SHIM("clCreateBuffer=-4"));
    child_expect("use-and-free", MIMUS_ERR_MEMORY,
                 "weights: no room for 4096 bytes: clEnqueueFillBuffer: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("gpu clEnqueueFillBuffer=-5"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clCreateBuffer: CL_INVALID_CONTEXT (-34)",
                 SHIM("clCreateBuffer=-34"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clCreateSubBuffer: CL_INVALID_VALUE (-30)",
                 SHIM("clCreateSubBuffer=-30"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clEnqueueWriteBuffer: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("clEnqueueWriteBuffer=-5"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clEnqueueWriteBuffer: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("gpu clEnqueueWriteBuffer=-5"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE,
                 "map of the staging buffer: CL_MAP_FAILURE (-12)",
                 SHIM("gpu clEnqueueMapBuffer=-12"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clEnqueueCopyBuffer: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("clEnqueueCopyBuffer=-5"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "clEnqueueReadBuffer: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("clEnqueueReadBuffer=-5"));
    child_expect("use-and-free", MIMUS_ERR_DEVICE, "a command failed: CL_OUT_OF_RESOURCES (-5)",
                 SHIM("gpu lost=-5"), "MIMUS_SPIN");
}
END_TEST

static TCase *content_tests(void) {
    TCase *tests = tcase_create("content");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_new_buffer_is_zero);
    tcase_add_test(tests, what_is_written_is_read_and_no_more);
    tcase_add_test(tests, copies_and_fills_stay_in_their_place);
    tcase_add_test(tests, a_part_is_a_window);
    tcase_add_test(tests, a_large_upload_arrives_whole);
    tcase_add_test(tests, many_small_uploads_keep_their_order);
    tcase_add_test(tests, the_edges_are_watched);
    tcase_add_test(tests, memory_has_its_bounds);
    return tests;
}

int main(int count, char **arguments) {
    if (count > 1)
        return child_main(actions, arguments[1]);
    Suite *suite = suite_create("buffer");
    suite_add_tcase(suite, content_tests());
    TCase *drivers = tcase_create("drivers");
    tcase_add_test(drivers, a_driver_that_fails_is_named);
    suite_add_tcase(suite, drivers);
    return test_run(suite);
}
