/* npz_file - writes .npz files, sound and unsound, for the tests of whoever reads them. */
#ifndef MIMUS_TEST_NPZ_FILE_H
#define MIMUS_TEST_NPZ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A .npz that is being written; aborts the test when it cannot be. */
typedef struct test_npz test_npz;

test_npz *test_npz_create(const char *path, bool deflate);
/* Add the array `name`: `descr` as "<f4", `shape` as "(3, 4)", and its `bytes` of elements, which
 * are copied. */
void test_npz_add(test_npz *npz, const char *name, const char *descr, const char *shape,
                  const void *elements, size_t bytes);
/* Add a member of any name and content. */
void test_npz_add_raw(test_npz *npz, const char *member, const void *content, size_t bytes);
void test_npz_close(test_npz *npz);

/* A version 1.0 header with this literal into `out`; returns its length, a multiple of 64. */
size_t test_npy_header(uint8_t *out, size_t capacity, const char *literal);

#endif
