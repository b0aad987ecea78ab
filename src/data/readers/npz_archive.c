#include "npz_archive.h"

#include "alloc.h"
#include "text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- archive */

mimus_status mimus__archive_open(mimus__archive *out, const char *path) {
    int code = 0;
    *out = (mimus__archive){.path = path, .zip = zip_open(path, ZIP_RDONLY, &code)};
    if (out->zip != NULL)
        return MIMUS_OK;
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    mimus_status status =
        mimus__fail(code == ZIP_ER_NOENT || code == ZIP_ER_OPEN ? MIMUS_ERR_IO : MIMUS_ERR_FORMAT,
                    "%s: cannot be opened as a zip archive: %s", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return status;
}

void mimus__archive_close(mimus__archive *archive) {
    if (archive->zip != NULL)
        zip_discard(archive->zip);
}

/* The array "obs" is the member "obs.npy"; negative when there is none. */
static zip_int64_t find_member(const mimus__archive *archive, const char *array) {
    char member[512];
    int length = snprintf(member, sizeof member, "%s.npy", array);
    if (length < 0 || (size_t)length >= sizeof member)
        return -1;
    return zip_name_locate(archive->zip, member, 0);
}

bool mimus__archive_has(const mimus__archive *archive, const char *array) {
    return find_member(archive, array) >= 0;
}

static mimus_status member_failure(zip_file_t *file, const char *where) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: cannot be read: %s", where,
                       zip_error_strerror(zip_file_get_error(file)));
}

/* Read `bytes` bytes, or fewer at the member's end. */
static mimus_status member_read(zip_file_t *file, const char *where, void *out, size_t bytes,
                                size_t *got) {
    uint8_t *to = out;
    for (*got = 0; *got < bytes;) {
        zip_int64_t n = zip_fread(file, to + *got, bytes - *got);
        if (n < 0)
            return member_failure(file, where);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return MIMUS_OK;
}

mimus_status mimus__archive_text(const mimus__archive *archive, const char *member, size_t limit,
                                 char **out) {
    mimus_status status = MIMUS_OK;
    zip_stat_t info;
    size_t got = 0;
    char *where = NULL;
    zip_int64_t index = zip_name_locate(archive->zip, member, 0);
    zip_file_t *file = index >= 0 ? zip_fopen_index(archive->zip, (zip_uint64_t)index, 0) : NULL;
    *out = NULL;
    if (index < 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__text_format(&where, "%s: %s", archive->path, member));
    if (file == NULL || zip_stat_index(archive->zip, (zip_uint64_t)index, 0, &info) != 0 ||
        (info.valid & ZIP_STAT_SIZE) == 0) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: cannot be opened: %s", where,
                             zip_strerror(archive->zip));
        goto out;
    }
    if (info.size > limit)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_FORMAT, "%s: more than %zu bytes", where, limit));
    MIMUS_TRY(mimus__alloc(out, (size_t)info.size + 1, 1));
    MIMUS_TRY(member_read(file, where, *out, (size_t)info.size, &got));
out:
    if (file != NULL)
        zip_fclose(file);
    free(where);
    if (status != MIMUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

static mimus_status member_read_header(zip_file_t *file, const char *where, mimus__npy *out) {
    mimus_status status = MIMUS_OK;
    uint8_t header[MIMUS__NPY_HEADER];
    size_t got = 0, more = 0, bytes = MIMUS__NPY_PREFIX;
    MIMUS_TRY(member_read(file, where, header, bytes, &got));
    if (got == bytes) {
        MIMUS_TRY(mimus__npy_header_bytes(&bytes, header, where));
        if (bytes > got)
            MIMUS_TRY(member_read(file, where, header + got, bytes - got, &more));
    }
    MIMUS_TRY(mimus__npy_parse(out, header, got + more, where));
out:
    return status;
}

const char *mimus__archive_contents(const mimus__archive *archive, char *text, size_t bytes) {
    zip_int64_t members = zip_get_num_entries(archive->zip, 0);
    size_t length = 0;
    snprintf(text, bytes, "nothing");
    for (zip_int64_t i = 0; i < members && length < bytes; i++) {
        const char *name = zip_get_name(archive->zip, (zip_uint64_t)i, 0);
        zip_file_t *file = zip_fopen_index(archive->zip, (zip_uint64_t)i, 0);
        mimus__npy npy;
        char shape[64];
        size_t stem = name != NULL ? strlen(name) : 0;
        bool array = stem > 4 && strcmp(name + stem - 4, ".npy") == 0;
        length += (size_t)snprintf(text + length, bytes - length, "%s%.*s", i > 0 ? ", " : "",
                                   (int)(array ? stem - 4 : stem), name != NULL ? name : "?");
        if (array && file != NULL && length < bytes &&
            member_read_header(file, name, &npy) == MIMUS_OK)
            length += (size_t)snprintf(text + length, bytes - length, " %s %s", npy.descr,
                                       mimus__npy_shape_text(&npy, shape, sizeof shape));
        if (file != NULL)
            zip_fclose(file);
    }
    return text;
}

/* ------------------------------------------------------------------ column */

enum { BUFFER_BYTES = 256 << 10 };

void mimus__column_close(mimus__column *column) {
    if (column->file != NULL)
        zip_fclose(column->file);
    free(column->array);
    free(column->where);
    free(column->raw);
    free(column->values);
    memset(column, 0, sizeof *column);
}

bool mimus__column_is_open(const mimus__column *column) {
    return column->file != NULL;
}

static mimus_status check_array(const mimus__column *column, uint64_t limit,
                                uint64_t member_bytes) {
    const mimus__npy *npy = &column->npy;
    char shape[64];
    mimus__npy_shape_text(npy, shape, sizeof shape);
    if (npy->kind == MIMUS__NPY_OTHER)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: holds %s (\"%s\"); integers, floats or booleans can be read",
                           column->where, mimus__npy_type_text(npy), npy->descr);
    if (npy->dimensions == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: is a single number, not one row a sample",
                           column->where);
    if (!mimus__npy_by_rows(npy))
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: shape %s is stored in Fortran order; save it as "
                           "numpy.ascontiguousarray(array)",
                           column->where, shape);
    uint64_t width = mimus__npy_width(npy);
    if (width == 0 || width > limit)
        return mimus__fail(MIMUS_ERR_DATA,
                           "%s: shape %s makes rows of %llu elements; 1 to %llu fit", column->where,
                           shape, (unsigned long long)width, (unsigned long long)limit);
    uint64_t bytes = npy->header + mimus__npy_rows(npy) * width * npy->size;
    if (bytes != member_bytes)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: shape %s of %s needs %llu bytes with its header, the archive holds "
                           "%llu",
                           column->where, shape, mimus__npy_type_text(npy),
                           (unsigned long long)bytes, (unsigned long long)member_bytes);
    return MIMUS_OK;
}

mimus_status mimus__column_open(mimus__column *out, const mimus__archive *archive,
                                const char *array, mimus__npy_form kind, uint64_t limit) {
    mimus_status status = MIMUS_OK;
    zip_stat_t info;
    zip_int64_t index = find_member(archive, array);
    *out = (mimus__column){.kind = kind};
    MIMUS_TRY(mimus__text_copy(&out->array, array));
    MIMUS_TRY(mimus__text_format(&out->where, "%s: %s", archive->path, array));
    out->file = index >= 0 ? zip_fopen_index(archive->zip, (zip_uint64_t)index, 0) : NULL;
    if (out->file == NULL || zip_stat_index(archive->zip, (zip_uint64_t)index, 0, &info) != 0 ||
        (info.valid & ZIP_STAT_SIZE) == 0) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: cannot be opened: %s", out->where,
                             zip_strerror(archive->zip));
        goto out;
    }
    MIMUS_TRY(member_read_header(out->file, out->where, &out->npy));
    MIMUS_TRY(check_array(out, limit, info.size));
    out->rows = mimus__npy_rows(&out->npy);
    out->width = (size_t)mimus__npy_width(&out->npy);
    out->capacity = BUFFER_BYTES / (out->width * sizeof(int64_t));
    if (out->capacity == 0)
        out->capacity = 1;
    MIMUS_TRY(mimus__alloc(&out->raw, out->capacity, out->width * out->npy.size));
    MIMUS_TRY(mimus__alloc(&out->values, out->capacity, out->width * mimus__npy_value_bytes(kind)));
out:
    if (status != MIMUS_OK)
        mimus__column_close(out);
    return status;
}

static mimus_status column_refill(mimus__column *column) {
    mimus_status status = MIMUS_OK;
    size_t row_bytes = column->width * column->npy.size;
    uint64_t left = column->rows - column->read;
    size_t rows = left < column->capacity ? (size_t)left : column->capacity;
    size_t got = 0;
    MIMUS_TRY(member_read(column->file, column->where, column->raw, rows * row_bytes, &got));
    if (got < rows * row_bytes) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: ends in row %llu of %llu", column->where,
                             (unsigned long long)(column->read + got / row_bytes),
                             (unsigned long long)column->rows);
        goto out;
    }
    MIMUS_TRY(mimus__npy_values(&column->npy, column->kind, column->raw, rows, column->width,
                                column->values, column->where, column->read));
    column->read += rows;
    column->used = 0;
    column->held = rows;
out:
    return status;
}

bool mimus__column_has_next(const mimus__column *column) {
    return column->used < column->held || column->read < column->rows;
}

mimus_status mimus__column_next(mimus__column *column, const void **row) {
    mimus_status status = MIMUS_OK;
    assert(mimus__column_has_next(column));
    if (column->used == column->held)
        MIMUS_TRY(column_refill(column));
    *row = (uint8_t *)column->values +
           column->used * column->width * mimus__npy_value_bytes(column->kind);
    column->used++;
out:
    return status;
}

mimus_status mimus__column_finish(mimus__column *column) {
    mimus_status status = MIMUS_OK;
    uint8_t more;
    size_t got = 0;
    /* libzip compares the checksum when it meets the end */
    MIMUS_TRY(member_read(column->file, column->where, &more, 1, &got));
    if (got > 0)
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: goes on behind its last row", column->where);
out:
    return status;
}
