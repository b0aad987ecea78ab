/* npz_writer - a NumPy archive put together in memory: stored, not deflated, members in the order
 * in which they are added. */
#ifndef MIMUS_DATA_NPZ_WRITER_H
#define MIMUS_DATA_NPZ_WRITER_H

#include "status.h"

#include <stdio.h>
#include <zip.h>

typedef struct mimus__npz_writer {
    zip_source_t *source; /* the archive's bytes */
    zip_t *zip;
} mimus__npz_writer;

/* Clear it whatever the outcome of all else. */
mimus_status mimus__npz_writer_init(mimus__npz_writer *out);
void mimus__npz_writer_clear(mimus__npz_writer *writer);

/* Add the array `name`: floats (rows, columns) or, where columns is 0, (rows); or a text, which
 * NumPy reads as bytes of no dimension: bytes(archive["name"]). What is given is copied. */
mimus_status mimus__npz_writer_floats(mimus__npz_writer *writer, const char *name,
                                      const float *values, size_t rows, size_t columns);
mimus_status mimus__npz_writer_text(mimus__npz_writer *writer, const char *name, const char *text);

/* Write the archive; nothing can be added any more. The stream's error flag tells of a failed
 * write. */
mimus_status mimus__npz_writer_finish(mimus__npz_writer *writer, FILE *stream);

#endif
