/* npy - one NumPy array: its header, and its elements as floats, labels or flags.
 *
 * The format is that of numpy/lib/format.py: "\x93NUMPY", a version, the length of a Python dict
 * literal, the literal, and the elements. Nothing here reads a file: bytes come from the caller. */
#ifndef MIMUS_DATA_NPY_H
#define MIMUS_DATA_NPY_H

#include "status.h"

enum {
    MIMUS__NPY_PREFIX = 12,     /* bytes that tell how long a header is, for every version */
    MIMUS__NPY_HEADER = 10012,  /* no header is longer: NumPy refuses literals above 10,000 bytes */
    MIMUS__NPY_DIMENSIONS = 32, /* as NumPy */
};

typedef enum mimus__npy_kind {
    MIMUS__NPY_BOOL,
    MIMUS__NPY_SIGNED,
    MIMUS__NPY_UNSIGNED,
    MIMUS__NPY_FLOAT,
    MIMUS__NPY_OTHER, /* a structure, objects, text, dates, complex numbers: not for us */
} mimus__npy_kind;

typedef struct mimus__npy {
    mimus__npy_kind kind;
    uint32_t size; /* bytes of an element; 0 for OTHER */
    bool swapped;  /* the file's byte order is not this machine's */
    bool fortran;  /* the first dimension is the fastest */
    uint32_t dimensions;
    uint64_t shape[MIMUS__NPY_DIMENSIONS];
    size_t header;  /* bytes before the first element */
    char descr[48]; /* the element type as the file spells it, cut to fit: "<f4" */
} mimus__npy;

/* The length of the header that begins with these MIMUS__NPY_PREFIX bytes, at most
 * MIMUS__NPY_HEADER. `where` begins every message. */
mimus_status mimus__npy_header_bytes(size_t *out, const uint8_t *prefix, const char *where);

/* Parse a header of `bytes` bytes, from the magic to the newline. The number of elements times
 * their size is sure to fit an int64_t. */
mimus_status mimus__npy_parse(mimus__npy *out, const uint8_t *header, size_t bytes,
                              const char *where);

/* Rows (the first dimension) and elements of a row (the product of the others); an array without
 * dimensions is one row of one element. */
uint64_t mimus__npy_rows(const mimus__npy *npy);
uint64_t mimus__npy_width(const mimus__npy *npy);

/* Whether the elements lie row by row: in C order, or with but one dimension above 1. */
bool mimus__npy_by_rows(const mimus__npy *npy);

/* "(27021, 4)", "(3,)", "()"; cut to fit. Returns `text`. */
const char *mimus__npy_shape_text(const mimus__npy *npy, char *text, size_t bytes);
/* What the elements are: "float32", "objects (pickled)", "a structure", .... Static. */
const char *mimus__npy_type_text(const mimus__npy *npy);

/* Convert `count` elements at `raw` (count, size), of any alignment. Not for OTHER.
 *
 *   floats: out float32; what is too large for it becomes infinite
 *   labels: out int64, saturating; returns how many come before the first element that is not an
 *           integer (float types only), else `count`
 *   flags:  out uint8, 1 where the element is not zero */
void mimus__npy_floats(const mimus__npy *npy, const void *raw, size_t count, float *out);
size_t mimus__npy_labels(const mimus__npy *npy, const void *raw, size_t count, int64_t *out);
void mimus__npy_flags(const mimus__npy *npy, const void *raw, size_t count, uint8_t *out);

/* What rows of elements are wanted as. */
typedef enum mimus__npy_form {
    MIMUS__NPY_TO_FLOATS, /* float */
    MIMUS__NPY_TO_LABELS, /* int64_t; floats that are no integers give MIMUS_ERR_UNSUPPORTED */
    MIMUS__NPY_TO_FLAGS,  /* uint8_t, 0 or 1 */
} mimus__npy_form;

size_t mimus__npy_value_bytes(mimus__npy_form form);

/* Convert `rows` rows at `raw` (rows, width) into `out`; a message says where, counting rows from
 * `first`. */
mimus_status mimus__npy_values(const mimus__npy *npy, mimus__npy_form form, const void *raw,
                               size_t rows, size_t width, void *out, const char *where,
                               uint64_t first);

/* Write the header of an array, MIMUS__NPY_WRITTEN bytes of it: `descr` as in "<f4", `shape` as in
 * "(3, 4)". */
enum { MIMUS__NPY_WRITTEN = 128 };
void mimus__npy_write_header(uint8_t *out, const char *descr, const char *shape);

#endif
