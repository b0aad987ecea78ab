/* h5_column - datasets read row by row, a bounded piece at a time.
 *
 * A dataset is judged before a byte of it is read: its elements must be numbers that are stored as
 * such, all of it must be in this file, and what it says it holds must be possible for a file of
 * this size. */
#ifndef MIMUS_DATA_H5_COLUMN_H
#define MIMUS_DATA_H5_COLUMN_H

#include "h5_chunks.h"

enum { MIMUS__H5_KEPT = 256 << 20 }; /* bytes of chunks that are held in memory, at most */

typedef struct mimus__h5_column {
    mimus__npy_form form;
    char *where; /* "play.hdf5: /episode_3/actions" */
    hid_t set, type, space;
    mimus__npy npy; /* the elements as NumPy would describe them, and the shape */
    uint64_t rows;
    size_t width; /* elements of a row, 1 or more */
    size_t band;  /* rows that are read at once: whole chunks, where they are not too large */
    mimus__h5_chunks chunks; /* where it has such */
    uint64_t kept;           /* bytes that the library keeps between two reads */
    uint8_t *raw;
    void *values;      /* (band, width) */
    uint64_t read;     /* rows read from the file */
    size_t used, held; /* rows of the buffer handed out, and in it */
} mimus__h5_column;

/* Open a dataset whose rows have at most `limit` elements. A zeroed column is a closed one. */
mimus_status mimus__h5_column_open(mimus__h5_column *out, const mimus__h5_file *file,
                                   const char *path, mimus__npy_form form, uint64_t limit);
void mimus__h5_column_close(mimus__h5_column *column);

/* `*row` = the next row's values (width), valid until the next call; there must be one. */
mimus_status mimus__h5_column_next(mimus__h5_column *column, const void **row);

/* Whether it holds images: rows of bytes in two dimensions of 32 or more, as Minari sees them, or
 * JPEGs, which it writes of them. */
mimus_status mimus__h5_column_is_image(mimus__h5_column *column, bool *out);

/* "observations float32 (100, 3), actions int64 (100,)": the datasets below a group, cut to fit.
 * Returns `text`. */
const char *mimus__h5_contents(const mimus__h5_file *file, const char *group, char *text,
                               size_t bytes);

#endif
