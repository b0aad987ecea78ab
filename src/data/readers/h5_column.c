#include "h5_column.h"

#include "alloc.h"
#include "text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 256 << 10, /* of rows read at once, */
    BAND_BYTES = 4 << 20,     /* or of whole chunks, where these are larger */
    CACHE_BYTES = 1 << 20,    /* the library's own, which is enough for chunks of that size */
    MOST_PACKED = 1100,       /* deflate makes data at most 1032 times smaller */
    IMAGE_SIDE = 32,          /* Minari: anything smaller is a grid, not an image */
    CONTENTS_DEPTH = 6,       /* of groups that are looked into for a message, */
    CONTENTS_NAMES = 256,     /* and names in all of them */
};

/* ------------------------------------------------------------------- types */

/* Fill in kind, size and byte order where NumPy has such a number; else it stays OTHER. */
static void describe_integer(hid_t type, mimus__npy *npy) {
    size_t size = H5Tget_size(type);
    bool whole = H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0;
    if (!whole || (size != 1 && size != 2 && size != 4 && size != 8))
        return;
    npy->kind = H5Tget_sign(type) == H5T_SGN_2 ? MIMUS__NPY_SIGNED : MIMUS__NPY_UNSIGNED;
    npy->size = (uint32_t)size;
}

static void describe_float(hid_t type, mimus__npy *npy) {
    static const struct {
        size_t size, sign, exponent, exponent_bits, fraction_bits, bias;
    } known[] = {{2, 15, 10, 5, 10, 15}, {4, 31, 23, 8, 23, 127}, {8, 63, 52, 11, 52, 1023}};
    size_t sign, exponent, exponent_bits, fraction, fraction_bits, size = H5Tget_size(type);
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) < 0)
        return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (size == known[i].size && sign == known[i].sign && exponent == known[i].exponent &&
            exponent_bits == known[i].exponent_bits && fraction == 0 &&
            fraction_bits == known[i].fraction_bits && H5Tget_ebias(type) == known[i].bias &&
            H5Tget_norm(type) == H5T_NORM_IMPLIED) {
            npy->kind = MIMUS__NPY_FLOAT;
            npy->size = (uint32_t)size;
        }
    }
}

static void describe_number(hid_t type, H5T_class_t class, mimus__npy *npy) {
    if (class == H5T_FLOAT)
        describe_float(type, npy);
    else
        describe_integer(type, npy);
    H5T_order_t order = H5Tget_order(type);
    npy->swapped = order == H5T_ORDER_BE; /* this house is little-endian */
    if (npy->size > 1 && order != H5T_ORDER_BE && order != H5T_ORDER_LE)
        npy->kind = MIMUS__NPY_OTHER;
}

/* The elements as NumPy would describe them; a boolean of h5py is an enumeration over int8. */
static void describe_type(hid_t type, mimus__npy *npy) {
    H5T_class_t class = H5Tget_class(type);
    npy->kind = MIMUS__NPY_OTHER;
    if (class == H5T_ENUM) {
        hid_t base = H5Tget_super(type);
        if (base >= 0) {
            describe_number(base, H5T_INTEGER, npy);
            H5Tclose(base);
        }
    } else if (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_BITFIELD) {
        describe_number(type, class, npy);
    }
}

static const char *type_text(hid_t type, const mimus__npy *npy) {
    if (npy->kind != MIMUS__NPY_OTHER)
        return mimus__npy_type_text(npy);
    switch (H5Tget_class(type)) {
    case H5T_STRING:
        return "text";
    case H5T_COMPOUND:
        return "structures (a compound type)";
    case H5T_VLEN:
        return "rows of varying length";
    case H5T_ARRAY:
        return "arrays as elements";
    case H5T_REFERENCE:
        return "references";
    case H5T_OPAQUE:
        return "raw bytes";
    case H5T_TIME:
        return "times";
    case H5T_FLOAT:
        return "floats of an unusual layout";
    default:
        return "integers of an unusual layout";
    }
}

/* The shape, of at most as many dimensions as HDF5 has, which is as many as NumPy has. */
static bool describe_shape(hid_t space, mimus__npy *npy) {
    hsize_t extent[H5S_MAX_RANK];
    int dimensions = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) == H5S_NULL || dimensions < 0 ||
        dimensions > MIMUS__NPY_DIMENSIONS ||
        H5Sget_simple_extent_dims(space, extent, NULL) != dimensions)
        return false;
    npy->dimensions = (uint32_t)dimensions;
    for (int d = 0; d < dimensions; d++)
        npy->shape[d] = extent[d];
    return true;
}

/* ----------------------------------------------------------------- judging */

static mimus_status check_type(const mimus__h5_column *column) {
    if (column->npy.kind != MIMUS__NPY_OTHER)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: holds %s; integers, floats or booleans can be read", column->where,
                       type_text(column->type, &column->npy));
}

/* `*bytes` = all of the elements; the width is at most `limit`. */
static mimus_status check_shape(mimus__h5_column *column, uint64_t limit, uint64_t *bytes) {
    char shape[96];
    mimus__npy *npy = &column->npy;
    mimus__npy_shape_text(npy, shape, sizeof shape);
    if (npy->dimensions == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: is a single number, not one row a sample",
                           column->where);
    uint64_t width = 1;
    bool fits = true;
    for (uint32_t d = 1; d < npy->dimensions; d++)
        fits = fits && !__builtin_mul_overflow(width, npy->shape[d], &width);
    if (!fits || width == 0 || width > limit)
        return mimus__fail(MIMUS_ERR_DATA, "%s: shape %s makes rows of %s elements; 1 to %llu fit",
                           column->where, shape, width == 0 ? "no" : "too many",
                           (unsigned long long)limit);
    column->rows = npy->shape[0];
    column->width = (size_t)width;
    if (__builtin_mul_overflow(column->rows, width * npy->size, bytes) || *bytes > INT64_MAX)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: shape %s is larger than memory addresses",
                           column->where, shape);
    return MIMUS_OK;
}

/* Everything must be in this file, and no more than fits into it. */
static mimus_status check_storage(const mimus__h5_column *column, const mimus__h5_file *file,
                                  H5D_layout_t layout, uint64_t bytes) {
    uint64_t stored = H5Dget_storage_size(column->set);
    uint64_t unpacked = layout == H5D_CHUNKED ? bytes / MOST_PACKED : bytes;
    if (bytes == 0)
        return MIMUS_OK;
    if (stored == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: %llu rows are declared, and none was ever written",
                           column->where, (unsigned long long)column->rows);
    if (unpacked > file->bytes || (layout != H5D_CHUNKED && stored < bytes))
        return mimus__fail(
            MIMUS_ERR_FORMAT, "%s: declares %llu bytes, which a file of %llu bytes cannot hold",
            column->where, (unsigned long long)bytes, (unsigned long long)file->bytes);
    return MIMUS_OK;
}

/* ----------------------------------------------------------------- opening */

void mimus__h5_column_close(mimus__h5_column *column) {
    mimus__h5_chunks_clear(&column->chunks);
    if (column->space > 0)
        H5Sclose(column->space);
    if (column->type > 0)
        H5Tclose(column->type);
    if (column->set > 0)
        H5Dclose(column->set);
    free(column->where);
    free(column->raw);
    free(column->values);
    memset(column, 0, sizeof *column);
}

/* Open the dataset with a chunk cache of that many bytes (0: the library's own). */
static mimus_status open_set(mimus__h5_column *column, const mimus__h5_file *file, const char *path,
                             uint64_t cache) {
    mimus_status status = MIMUS_OK;
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (column->set > 0)
        H5Dclose(column->set);
    column->set = 0;
    if (access < 0 ||
        (cache > 0 && H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, (size_t)cache,
                                         H5D_CHUNK_CACHE_W0_DEFAULT) < 0))
        MIMUS_TRY(mimus__h5_fail("%s", column->where));
    column->set = H5Dopen2(file->id, path, access);
    if (column->set < 0) {
        column->set = 0;
        status = mimus__h5_fail("%s: cannot be opened", column->where);
    }
out:
    if (access >= 0)
        H5Pclose(access);
    return status;
}

/* What would have the library open other files must be known before it is asked for more. */
static mimus_status check_layout(const mimus__h5_column *column, hid_t creation,
                                 H5D_layout_t *layout) {
    *layout = H5Pget_layout(creation);
    if (*layout == H5D_VIRTUAL || H5Pget_external_count(creation) != 0)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: its data lies in other files, and such are not opened; h5repack "
                           "makes one file of them",
                           column->where);
    if (*layout != H5D_COMPACT && *layout != H5D_CONTIGUOUS && *layout != H5D_CHUNKED)
        return mimus__h5_fail("%s: its layout is unknown", column->where);
    return MIMUS_OK;
}

/* How many rows are read at once. Whole chunks, so that each is unpacked once; where these are
 * large, the library keeps them between two reads. */
static mimus_status choose_band(mimus__h5_column *column, const mimus__h5_file *file,
                                const char *path, hid_t creation, H5D_layout_t layout) {
    mimus_status status = MIMUS_OK;
    uint64_t row = column->width * (column->npy.size > 8 ? column->npy.size : 8);
    uint64_t rows = BUFFER_BYTES / row > 0 ? BUFFER_BYTES / row : 1;
    if (layout == H5D_CHUNKED && column->rows > 0) {
        mimus__h5_chunks *chunks = &column->chunks;
        MIMUS_TRY(mimus__h5_chunks_open(chunks, column->set, column->space, creation, &column->npy,
                                        MIMUS__H5_KEPT, column->where));
        uint64_t chunk_rows = chunks->chunk[0];
        if (chunk_rows <= rows)
            rows -= rows % chunk_rows;
        else if (chunk_rows <= BAND_BYTES / row)
            rows = chunk_rows;
        else if (chunks->band > CACHE_BYTES)
            MIMUS_TRY(open_set(column, file, path, column->kept = chunks->band));
        chunks->set = column->set;
    }
    column->band = (size_t)(rows < column->rows || column->rows == 0 ? rows : column->rows);
out:
    return status;
}

mimus_status mimus__h5_column_open(mimus__h5_column *out, const mimus__h5_file *file,
                                   const char *path, mimus__npy_form form, uint64_t limit) {
    mimus_status status = MIMUS_OK;
    H5D_layout_t layout = H5D_LAYOUT_ERROR;
    uint64_t bytes = 0;
    hid_t creation = H5I_INVALID_HID;
    *out = (mimus__h5_column){.form = form};
    MIMUS_TRY(mimus__text_format(&out->where, "%s: %s", file->path, path));
    MIMUS_TRY(open_set(out, file, path, 0));
    creation = H5Dget_create_plist(out->set);
    if (creation < 0)
        MIMUS_TRY(mimus__h5_fail("%s: cannot be opened", out->where));
    MIMUS_TRY(check_layout(out, creation, &layout));
    out->type = H5Dget_type(out->set);
    out->space = H5Dget_space(out->set);
    if (out->type < 0 || out->space < 0 || !describe_shape(out->space, &out->npy))
        MIMUS_TRY(mimus__h5_fail("%s: has no type or shape", out->where));
    describe_type(out->type, &out->npy);
    MIMUS_TRY(check_type(out));
    MIMUS_TRY(check_shape(out, limit, &bytes));
    MIMUS_TRY(check_storage(out, file, layout, bytes));
    MIMUS_TRY(choose_band(out, file, path, creation, layout));
    MIMUS_TRY(mimus__alloc(&out->raw, out->band, out->width * out->npy.size));
    MIMUS_TRY(mimus__alloc(&out->values, out->band, out->width * mimus__npy_value_bytes(form)));
out:
    if (creation >= 0)
        H5Pclose(creation);
    if (status != MIMUS_OK)
        mimus__h5_column_close(out);
    return status;
}

/* ----------------------------------------------------------------- reading */

static mimus_status read_rows(mimus__h5_column *column, uint64_t first, size_t rows) {
    mimus_status status = MIMUS_OK;
    hsize_t start[H5S_MAX_RANK] = {first}, count[H5S_MAX_RANK];
    const int dimensions = (int)column->npy.dimensions;
    hid_t memory = H5I_INVALID_HID;
    if (column->chunks.set > 0)
        MIMUS_TRY(mimus__h5_chunks_check(&column->chunks, first + rows));
    for (int d = 0; d < dimensions; d++)
        count[d] = d == 0 ? rows : column->npy.shape[d];
    memory = H5Screate_simple(dimensions, count, NULL);
    if (memory < 0 ||
        H5Sselect_hyperslab(column->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(column->set, column->type, memory, column->space, H5P_DEFAULT, column->raw) < 0)
        status = mimus__h5_fail("%s: rows %llu to %llu cannot be read", column->where,
                                (unsigned long long)first, (unsigned long long)(first + rows - 1));
out:
    if (memory >= 0)
        H5Sclose(memory);
    return status;
}

static mimus_status refill(mimus__h5_column *column) {
    mimus_status status = MIMUS_OK;
    uint64_t left = column->rows - column->read;
    size_t rows = left < column->band ? (size_t)left : column->band;
    MIMUS_TRY(read_rows(column, column->read, rows));
    MIMUS_TRY(mimus__npy_values(&column->npy, column->form, column->raw, rows, column->width,
                                column->values, column->where, column->read));
    column->read += rows;
    column->used = 0;
    column->held = rows;
out:
    return status;
}

mimus_status mimus__h5_column_next(mimus__h5_column *column, const void **row) {
    mimus_status status = MIMUS_OK;
    assert(column->used < column->held || column->read < column->rows);
    if (column->used == column->held)
        MIMUS_TRY(refill(column));
    *row = (uint8_t *)column->values +
           column->used * column->width * mimus__npy_value_bytes(column->form);
    column->used++;
out:
    return status;
}

mimus_status mimus__h5_column_is_image(mimus__h5_column *column, bool *out) {
    mimus_status status = MIMUS_OK;
    const mimus__npy *npy = &column->npy;
    *out = false;
    if (npy->kind != MIMUS__NPY_UNSIGNED || npy->size != 1)
        return MIMUS_OK;
    *out = npy->dimensions >= 3 && npy->shape[1] >= IMAGE_SIDE && npy->shape[2] >= IMAGE_SIDE;
    if (npy->dimensions >= 4) /* the channels first */
        *out = *out || (npy->shape[2] >= IMAGE_SIDE && npy->shape[3] >= IMAGE_SIDE);
    if (*out || npy->dimensions != 2 || column->width < 4 || column->rows == 0)
        return MIMUS_OK;
    MIMUS_TRY(read_rows(column, 0, 1));
    *out = memcmp(column->raw, "\xff\xd8\xff", 3) == 0;
out:
    return status;
}

/* ---------------------------------------------------------------- contents */

typedef struct contents {
    const mimus__h5_file *file;
    size_t from; /* where names begin in a path, behind that of the group */
    size_t left; /* names that may still be looked at */
    char *text;
    size_t bytes, length;
} contents;

static void add_dataset(contents *c, const char *path) {
    mimus__npy npy = {.kind = MIMUS__NPY_OTHER};
    char shape[96] = "";
    hid_t set = H5Dopen2(c->file->id, path, H5P_DEFAULT);
    hid_t creation = set >= 0 ? H5Dget_create_plist(set) : H5I_INVALID_HID;
    bool here = creation >= 0 && H5Pget_layout(creation) != H5D_VIRTUAL;
    hid_t type = here ? H5Dget_type(set) : H5I_INVALID_HID;
    hid_t space = here ? H5Dget_space(set) : H5I_INVALID_HID;
    if (type >= 0)
        describe_type(type, &npy);
    if (space >= 0 && describe_shape(space, &npy))
        mimus__npy_shape_text(&npy, shape, sizeof shape);
    int wrote =
        snprintf(c->text + c->length, c->bytes - c->length, "%s%s %s %s", c->length > 0 ? ", " : "",
                 path + c->from, type >= 0 ? type_text(type, &npy) : "data of other files", shape);
    c->length += wrote > 0 ? (size_t)wrote : 0;
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (creation >= 0)
        H5Pclose(creation);
    if (set >= 0)
        H5Dclose(set);
}

static void add_group(contents *c, const char *group, int depth) {
    mimus__h5_names names;
    if (depth == CONTENTS_DEPTH || mimus__h5_list(c->file, group, &names) != MIMUS_OK)
        return;
    for (size_t i = 0; i < names.count && c->left > 0 && c->length < c->bytes; i++, c->left--) {
        mimus__h5_kind kind = MIMUS__H5_NOTHING;
        char *path = NULL;
        if (mimus__text_format(&path, "%s/%s", group, names.name[i]) == MIMUS_OK &&
            mimus__h5_look(c->file, path, &kind) == MIMUS_OK) {
            if (kind == MIMUS__H5_DATASET)
                add_dataset(c, path);
            else if (kind == MIMUS__H5_GROUP)
                add_group(c, path, depth + 1);
        }
        free(path);
    }
    mimus__h5_names_free(&names);
}

const char *mimus__h5_contents(const mimus__h5_file *file, const char *group, char *text,
                               size_t bytes) {
    contents c = {.file = file,
                  .from = strlen(group) + 1,
                  .left = CONTENTS_NAMES,
                  .text = text,
                  .bytes = bytes};
    snprintf(text, bytes, "no dataset");
    add_group(&c, group, 0);
    return text;
}
