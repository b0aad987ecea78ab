#include "npz_writer.h"

#include "alloc.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* numpy/lib/format.py: the magic, version 1.0, the length of the rest; all of it a multiple of 64
 * bytes. */
static const char magic[] = "\x93NUMPY\x01";
enum { MAGIC_BYTES = 8, LENGTH_BYTES = 2, ALIGNMENT = 64 };

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
    char *dictionary = NULL, *member = NULL, *whole = NULL;
    MIMUS_TRY(mimus__text_format(
        &dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape));
    size_t used = MAGIC_BYTES + LENGTH_BYTES + strlen(dictionary) + 1;
    size_t header = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t length = header - MAGIC_BYTES - LENGTH_BYTES;
    MIMUS_TRY(mimus__alloc(&whole, header + bytes + 1, 1));
    memset(whole, ' ', header);
    memcpy(whole, magic, MAGIC_BYTES);
    whole[MAGIC_BYTES] = (char)(length & 255);
    whole[MAGIC_BYTES + 1] = (char)(length >> 8);
    memcpy(whole + MAGIC_BYTES + LENGTH_BYTES, dictionary, strlen(dictionary));
    whole[header - 1] = '\n';
    memcpy(whole + header, content, bytes);
    MIMUS_TRY(mimus__text_format(&member, "%s.npy", name));
    zip_source_t *source = zip_source_buffer(writer->zip, whole, header + bytes, 1);
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
    free(dictionary);
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
