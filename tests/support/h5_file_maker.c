#include "h5_file_maker.h"

#include <check.h>

static hid_t with_groups(void) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    ck_assert(H5Pset_create_intermediate_group(links, 1) >= 0);
    return links;
}

hid_t test_h5_create(const char *path) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_msg(file >= 0, "%s cannot be written", path);
    return file;
}

void test_h5_close(hid_t file) {
    ck_assert(H5Fclose(file) >= 0);
}

static hid_t create(hid_t file, const char *path, hid_t type, int dimensions, const hsize_t *shape,
                    hid_t creation) {
    hid_t links = with_groups(), space = H5Screate_simple(dimensions, shape, NULL);
    hid_t set = H5Dcreate2(file, path, type, space, links, creation, H5P_DEFAULT);
    ck_assert_msg(set >= 0, "%s cannot be created", path);
    H5Sclose(space);
    H5Pclose(links);
    return set;
}

static void add(hid_t file, const char *path, hid_t type, hsize_t rows, hsize_t width,
                hid_t creation, const double *values) {
    const hsize_t shape[2] = {rows, width};
    hid_t set = create(file, path, type, width > 0 ? 2 : 1, shape, creation);
    ck_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
}

void test_h5_add(hid_t file, const char *path, hid_t type, hsize_t rows, hsize_t width,
                 const double *values) {
    add(file, path, type, rows, width, H5P_DEFAULT, values);
}

void test_h5_add_chunked(hid_t file, const char *path, hid_t type, hsize_t rows, hsize_t width,
                         const hsize_t *chunk, const double *values) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_chunk(creation, width > 0 ? 2 : 1, chunk) >= 0 &&
              H5Pset_deflate(creation, 1) >= 0);
    add(file, path, type, rows, width, creation, values);
    H5Pclose(creation);
}

void test_h5_declare(hid_t file, const char *path, hid_t type, int dimensions, const hsize_t *shape,
                     hid_t creation) {
    H5Dclose(create(file, path, type, dimensions, shape, creation));
}

void test_h5_group(hid_t file, const char *path) {
    hid_t links = with_groups();
    hid_t group = H5Gcreate2(file, path, links, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_msg(group >= 0, "%s cannot be created", path);
    H5Gclose(group);
    H5Pclose(links);
}

void test_h5_attribute(hid_t file, const char *object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attribute =
        H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(attribute >= 0 && H5Awrite(attribute, type, &text) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}
