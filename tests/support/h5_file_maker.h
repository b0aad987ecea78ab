/* h5_file_maker - writes HDF5 files, sound and unsound, for the tests of whoever reads them. What
 * cannot be written aborts the test. */
#ifndef MIMUS_TEST_H5_FILE_MAKER_H
#define MIMUS_TEST_H5_FILE_MAKER_H

#include <hdf5.h>

hid_t test_h5_create(const char *path);
void test_h5_close(hid_t file);

/* Add a dataset of that type, with the groups above it: (rows) where `width` is 0, else (rows,
 * width); `values` are its elements. */
void test_h5_add(hid_t file, const char *path, hid_t type, hsize_t rows, hsize_t width,
                 const double *values);
/* The same in chunks of that shape, deflated. */
void test_h5_add_chunked(hid_t file, const char *path, hid_t type, hsize_t rows, hsize_t width,
                         const hsize_t *chunk, const double *values);
/* Any dataset, left as it is created; `creation` may be H5P_DEFAULT. */
void test_h5_declare(hid_t file, const char *path, hid_t type, int dimensions, const hsize_t *shape,
                     hid_t creation);
void test_h5_group(hid_t file, const char *path);
/* A text of varying length, as h5py writes strings. */
void test_h5_attribute(hid_t file, const char *object, const char *name, const char *text);

#endif
