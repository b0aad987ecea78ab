#include "npz_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

struct test_npz {
    zip_t *zip;
    bool deflate;
};

test_npz *test_npz_create(const char *path, bool deflate) {
    test_npz *npz = calloc(1, sizeof *npz);
    ck_assert_ptr_nonnull(npz);
    npz->zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    npz->deflate = deflate;
    ck_assert_msg(npz->zip != NULL, "%s cannot be written", path);
    return npz;
}

void test_npz_add_raw(test_npz *npz, const char *member, const void *content, size_t bytes) {
    void *copy = malloc(bytes > 0 ? bytes : 1); /* libzip reads it at close */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, content, bytes);
    zip_source_t *source = zip_source_buffer(npz->zip, copy, bytes, 1);
    zip_int64_t index = zip_file_add(npz->zip, member, source, 0);
    ck_assert_msg(index >= 0, "%s: %s", member, zip_strerror(npz->zip));
    zip_set_file_compression(npz->zip, (zip_uint64_t)index,
                             npz->deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
}

size_t test_npy_header(uint8_t *out, size_t capacity, const char *literal) {
    enum { PREAMBLE = 10, ALIGNMENT = 64 };
    size_t length = strlen(literal);
    size_t total = (PREAMBLE + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    ck_assert_uint_le(total, capacity);
    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)(total - PREAMBLE);
    out[9] = (uint8_t)((total - PREAMBLE) >> 8);
    memcpy(out + PREAMBLE, literal, length);
    out[total - 1] = '\n';
    return total;
}

void test_npz_add(test_npz *npz, const char *name, const char *descr, const char *shape,
                  const void *elements, size_t bytes) {
    enum { HEADER = 512 };
    char literal[HEADER - 64], member[128];
    snprintf(literal, sizeof literal, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
             descr, shape);
    snprintf(member, sizeof member, "%s.npy", name);
    uint8_t *content = malloc(HEADER + bytes);
    ck_assert_ptr_nonnull(content);
    size_t header = test_npy_header(content, HEADER, literal);
    memcpy(content + header, elements, bytes);
    test_npz_add_raw(npz, member, content, header + bytes);
    free(content);
}

void test_npz_close(test_npz *npz) {
    ck_assert_msg(zip_close(npz->zip) == 0, "%s", zip_strerror(npz->zip));
    free(npz);
}
