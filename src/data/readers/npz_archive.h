/* npz_archive - the arrays of a zip of .npy members, each read row by row through a buffer of its
 * own, so that several can be read in step and memory does not grow with the file. */
#ifndef MIMUS_DATA_NPZ_ARCHIVE_H
#define MIMUS_DATA_NPZ_ARCHIVE_H

#include "npy.h"

#include <zip.h>

typedef struct mimus__archive {
    const char *path; /* borrowed */
    zip_t *zip;
} mimus__archive;

/* MIMUS_ERR_IO or MIMUS_ERR_FORMAT. Close also what failed to open. */
mimus_status mimus__archive_open(mimus__archive *out, const char *path);
void mimus__archive_close(mimus__archive *archive);

/* Whether there is an array of that name: "obs" is the member "obs.npy". */
bool mimus__archive_has(const mimus__archive *archive, const char *array);

/* The content of any member of at most `limit` bytes, with a NUL behind it; NULL when there is no
 * such member. Free with free(). */
mimus_status mimus__archive_text(const mimus__archive *archive, const char *member, size_t limit,
                                 char **out);

/* "obs <f4 (27021, 4), acts <i8 (26964,)": what is there, cut to fit. Returns `text`. */
const char *mimus__archive_contents(const mimus__archive *archive, char *text, size_t bytes);

/* An array that is being read. */
typedef struct mimus__column {
    mimus__npy_form kind;
    char *array; /* "obs" */
    char *where; /* "play.npz: obs" */
    zip_file_t *file;
    mimus__npy npy;
    uint64_t rows;
    size_t width;      /* elements of a row, 1 or more */
    size_t capacity;   /* rows that the buffers hold */
    uint8_t *raw;      /* (capacity, width) as in the file */
    void *values;      /* (capacity, width) converted */
    uint64_t read;     /* rows read from the file */
    size_t used, held; /* rows of the buffer handed out, and in it */
} mimus__column;

/* Open an array whose rows have at most `limit` elements; the archive must outlive the column. A
 * zeroed column is a closed one. */
mimus_status mimus__column_open(mimus__column *out, const mimus__archive *archive,
                                const char *array, mimus__npy_form kind, uint64_t limit);
void mimus__column_close(mimus__column *column);
bool mimus__column_is_open(const mimus__column *column);

bool mimus__column_has_next(const mimus__column *column);
/* `*row` = the next row's values (width), valid until the next call; there must be one. */
mimus_status mimus__column_next(mimus__column *column, const void **row);
/* After the last row: whether the member ends there and its checksum holds. */
mimus_status mimus__column_finish(mimus__column *column);

#endif
