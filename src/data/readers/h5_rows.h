/* h5_rows - several datasets side by side, as one row a sample. */
#ifndef MIMUS_DATA_H5_ROWS_H
#define MIMUS_DATA_H5_ROWS_H

#include "h5_column.h"

typedef struct mimus__h5_rows {
    mimus__h5_column *column; /* (columns), in the order of their names */
    size_t columns;
    size_t width; /* of all of them together */
    uint64_t rows;
    uint64_t kept; /* bytes that the library keeps for them */
    void *row;     /* (width) where there is more than one column */
} mimus__h5_rows;

/* Open the datasets `part` + each of `names`, which must have the same number of rows, and not more
 * than `limit` elements in all of a row. Zeroed rows are closed ones, of no column. */
mimus_status mimus__h5_rows_open(mimus__h5_rows *out, const mimus__h5_file *file, const char *part,
                                 const mimus__h5_names *names, mimus__npy_form form,
                                 uint64_t limit);
void mimus__h5_rows_close(mimus__h5_rows *rows);

/* As mimus__h5_column_next, with all columns' values behind one another. */
mimus_status mimus__h5_rows_next(mimus__h5_rows *rows, const void **row);

#endif
