#include "h5_rows.h"

#include "alloc.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

void mimus__h5_rows_close(mimus__h5_rows *rows) {
    for (size_t i = 0; i < rows->columns; i++)
        mimus__h5_column_close(&rows->column[i]);
    free(rows->column);
    free(rows->row);
    *rows = (mimus__h5_rows){0};
}

static mimus_status add(mimus__h5_rows *rows, const mimus__h5_file *file, const char *path,
                        mimus__npy_form form, uint64_t limit) {
    mimus_status status = MIMUS_OK;
    mimus__h5_column *column = &rows->column[rows->columns];
    MIMUS_TRY(mimus__h5_column_open(column, file, path, form, limit - rows->width));
    rows->columns++;
    rows->width += column->width;
    rows->kept += column->kept;
    if (rows->kept > MIMUS__H5_KEPT)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_UNSUPPORTED,
                              "%s: its chunks and those of the datasets beside it make more than "
                              "the %d MiB that are unpacked at once; h5repack -l CHUNK=... makes "
                              "smaller ones",
                              column->where, MIMUS__H5_KEPT >> 20));
    if (rows->columns == 1)
        rows->rows = column->rows;
    if (column->rows != rows->rows)
        status = mimus__fail(MIMUS_ERR_DATA, "%s: %llu rows, while %s has %llu", column->where,
                             (unsigned long long)column->rows,
                             rows->column[0].where + strlen(file->path) + 2,
                             (unsigned long long)rows->rows);
out:
    return status;
}

mimus_status mimus__h5_rows_open(mimus__h5_rows *out, const mimus__h5_file *file, const char *part,
                                 const mimus__h5_names *names, mimus__npy_form form,
                                 uint64_t limit) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    *out = (mimus__h5_rows){0};
    MIMUS_TRY(mimus__alloc(&out->column, names->count, sizeof *out->column));
    for (size_t i = 0; i < names->count; i++) {
        free(path);
        MIMUS_TRY(mimus__text_format(&path, "%s%s", part, names->name[i]));
        MIMUS_TRY(add(out, file, path, form, limit));
    }
    if (out->columns > 1)
        MIMUS_TRY(mimus__alloc(&out->row, out->width, mimus__npy_value_bytes(form)));
out:
    free(path);
    if (status != MIMUS_OK)
        mimus__h5_rows_close(out);
    return status;
}

mimus_status mimus__h5_rows_next(mimus__h5_rows *rows, const void **row) {
    mimus_status status = MIMUS_OK;
    uint8_t *to = rows->row;
    if (rows->columns == 1)
        return mimus__h5_column_next(&rows->column[0], row);
    for (size_t i = 0; i < rows->columns; i++) {
        const void *part = NULL;
        size_t bytes = rows->column[i].width * mimus__npy_value_bytes(rows->column[i].form);
        MIMUS_TRY(mimus__h5_column_next(&rows->column[i], &part));
        memcpy(to, part, bytes);
        to += bytes;
    }
    *row = rows->row;
out:
    return status;
}
