#include "npz_writer.h"

#include "alloc.h"
#include "npy.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static mimus_status failed(zip_error_t *error) {
    return mimus__fail(MIMUS_ERR_IO, "cannot put the archive together: %s",
                       zip_error_strerror(error));
}

mimus_status mimus__npz_writer_init(mimus__npz_writer *out) {
    mimus_status status = MIMUS_OK;
    zip_error_t error;
    *out = (mimus__npz_writer){0};
    zip_error_init(&error);
    out->source = zip_source_buffer_create(NULL, 0, 0, &error);
    if (out->source != NULL)
        out->zip = zip_open_from_source(out->source, ZIP_TRUNCATE, &error);
    if (out->zip == NULL)
        status = failed(&error);
    else
        zip_source_keep(out->source); /* the archive has it, and so have we */
    zip_error_fini(&error);
    return status;
}

void mimus__npz_writer_clear(mimus__npz_writer *writer) {
    if (writer->zip != NULL)
        zip_discard(writer->zip);
    zip_source_free(writer->source);
    *writer = (mimus__npz_writer){0};
}

/* The header, and behind it the content. */
static mimus_status add(mimus__npz_writer *writer, const char *name, const char *type,
                        const char *shape, const void *content, size_t bytes) {
    mimus_status status = MIMUS_OK;
    enum { HEADER = MIMUS__NPY_WRITTEN };
    char *member = NULL;
    uint8_t *whole = NULL;
    MIMUS_TRY(mimus__alloc(&whole, HEADER + bytes + 1, 1));
    mimus__npy_write_header(whole, type, shape);
    memcpy(whole + HEADER, content, bytes);
    MIMUS_TRY(mimus__text_format(&member, "%s.npy", name));
    zip_source_t *source = zip_source_buffer(writer->zip, whole, HEADER + bytes, 1);
    if (source == NULL) {
        status = failed(zip_get_error(writer->zip));
        goto out;
    }
    whole = NULL;
    zip_int64_t index = zip_file_add(writer->zip, member, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        status = failed(zip_get_error(writer->zip));
        goto out;
    }
    if (zip_set_file_compression(writer->zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0)
        status = failed(zip_get_error(writer->zip));
out:
    free(whole);
    free(member);
    return status;
}

mimus_status mimus__npz_writer_floats(mimus__npz_writer *writer, const char *name,
                                      const float *values, size_t rows, size_t columns) {
    char shape[64];
    if (columns > 0)
        snprintf(shape, sizeof shape, "(%zu, %zu)", rows, columns);
    else
        snprintf(shape, sizeof shape, "(%zu,)", rows);
    return add(writer, name, "<f4", shape, values,
               rows * (columns > 0 ? columns : 1) * sizeof *values);
}

mimus_status mimus__npz_writer_text(mimus__npz_writer *writer, const char *name, const char *text) {
    char type[32];
    snprintf(type, sizeof type, "|S%zu", strlen(text));
    return add(writer, name, type, "()", text, strlen(text));
}

/* Copy the finished archive out. */
static mimus_status copy_out(mimus__npz_writer *writer, FILE *stream) {
    mimus_status status = MIMUS_OK;
    char buffer[65536];
    zip_int64_t got;
    if (zip_source_open(writer->source) != 0)
        return failed(zip_source_error(writer->source));
    while ((got = zip_source_read(writer->source, buffer, sizeof buffer)) > 0)
        fwrite(buffer, 1, (size_t)got, stream);
    if (got < 0)
        status = failed(zip_source_error(writer->source));
    zip_source_close(writer->source);
    return status;
}

mimus_status mimus__npz_writer_finish(mimus__npz_writer *writer, FILE *stream) {
    if (zip_close(writer->zip) != 0)
        return failed(zip_get_error(writer->zip));
    writer->zip = NULL;
    return copy_out(writer, stream);
}
