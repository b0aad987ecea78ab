#include "csv_file.h"

#include "alloc.h"
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

/* ------------------------------------------------------------------- bytes */

static mimus_status read_error(const mimus__csv *csv) {
    int code = Z_OK;
    const char *text = gzerror(csv->file, &code);
    if (code == Z_ERRNO)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", csv->path, strerror(errno));
    if (code == Z_BUF_ERROR)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: line %llu: the gzip data ends early: the file was cut", csv->path,
                           (unsigned long long)csv->at);
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: line %llu: damaged gzip data (%s)", csv->path,
                       (unsigned long long)csv->at, text);
}

static mimus_status refill(mimus__csv *csv) {
    int got = gzread(csv->file, csv->buffer, BUFFER_BYTES);
    int code = Z_OK;
    csv->used = csv->held = 0;
    if (got < 0)
        return read_error(csv);
    csv->held = (size_t)got;
    if (csv->held < BUFFER_BYTES) { /* the end, or what looks like it */
        gzerror(csv->file, &code);
        if (code != Z_OK && code != Z_STREAM_END)
            return read_error(csv);
        csv->drained = true;
    }
    return MIMUS_OK;
}

/* Pass a byte order mark by, and refuse what is no text of single bytes. */
static mimus_status look_at_start(mimus__csv *csv) {
    const unsigned char *start = (const unsigned char *)csv->buffer;
    if (csv->held == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: is empty", csv->path);
    if (csv->held >= 2 &&
        ((start[0] == 0xFF && start[1] == 0xFE) || (start[0] == 0xFE && start[1] == 0xFF)))
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: is text in UTF-16; save it as UTF-8",
                           csv->path);
    if (memchr(start, '\0', csv->held) != NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: holds NUL bytes: expected text in rows",
                           csv->path);
    if (csv->held >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0)
        csv->used = 3;
    return MIMUS_OK;
}

static char find_separator(const char *text, size_t bytes) {
    static const char candidates[] = {',', ';', '\t', '|'};
    size_t count[sizeof candidates] = {0}, best = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes && (quoted || (text[i] != '\n' && text[i] != '\r')); i++) {
        quoted ^= text[i] == '"';
        for (size_t c = 0; c < sizeof candidates && !quoted; c++)
            count[c] += text[i] == candidates[c];
    }
    for (size_t c = 1; c < sizeof candidates; c++)
        best = count[c] > count[best] ? c : best;
    return candidates[best];
}

/* -------------------------------------------------------------------- rows */

static mimus_status too_long(const mimus__csv *csv, const char *what) {
    return mimus__fail(MIMUS_ERR_FORMAT,
                       "%s: line %llu: %s: expected rows of fields with separators between them",
                       csv->path, (unsigned long long)csv->line, what);
}

static mimus_status add_field(mimus__csv *csv, const char *field, size_t bytes) {
    mimus_status status = MIMUS_OK;
    for (; bytes > 0 && (field[bytes - 1] == ' ' || field[bytes - 1] == '\t'); bytes--) {
    }
    for (; bytes > 0 && (*field == ' ' || *field == '\t'); bytes--)
        field++;
    if (csv->fields >= MIMUS__CSV_FIELDS || csv->bytes + bytes >= MIMUS__CSV_ROW_BYTES)
        return too_long(csv, "a row of more than 2 million fields or 64 MiB");
    if (bytes > 0 && memchr(field, '\0', bytes) != NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: line %llu, field %zu holds a NUL byte", csv->path,
                           (unsigned long long)csv->at, csv->fields);
    MIMUS_TRY(mimus__grow(&csv->offset, &csv->offsets, csv->fields + 1, sizeof *csv->offset));
    MIMUS_TRY(mimus__grow(&csv->text, &csv->capacity, csv->bytes + bytes + 1, 1));
    csv->offset[csv->fields++] = csv->bytes;
    if (bytes > 0)
        memcpy(csv->text + csv->bytes, field, bytes);
    csv->text[csv->bytes + bytes] = '\0';
    csv->bytes += bytes + 1;
out:
    return status;
}

/* What the parser calls: a field is whole, a row is. */
static void on_field(void *field, size_t bytes, void *user) {
    mimus__csv *csv = user;
    csv->in_row = true;
    if (csv->fault == MIMUS_OK)
        csv->fault = add_field(csv, field, bytes);
}

static void on_row(int ender, void *user) {
    mimus__csv *csv = user;
    csv->has_row = true;
    csv->ended = ender >= 0;
}

static mimus_status parser_error(const mimus__csv *csv) {
    int code = csv_error((struct csv_parser *)&csv->parser);
    if (code == CSV_EPARSE)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: line %llu: a quote that is opened in this row is never closed",
                           csv->path, (unsigned long long)csv->line);
    return mimus__fail(code == CSV_ENOMEM ? MIMUS_ERR_MEMORY : MIMUS_ERR_FORMAT,
                       "%s: line %llu: %s", csv->path, (unsigned long long)csv->line,
                       csv_strerror(code));
}

/* Give the parser no more than to the next line end, so that it finds one row at most. */
static mimus_status feed(mimus__csv *csv) {
    const char *from = csv->buffer + csv->used;
    size_t bytes = 0, left = csv->held - csv->used;
    if (csv->after_return && *from != '\n')
        csv->at++;
    csv->after_return = false;
    while (bytes < left && from[bytes] != '\n' && from[bytes] != '\r')
        bytes++;
    char ender = bytes < left ? from[bytes++] : '\0';
    if (!csv->in_row && csv->parser.entry_pos == 0)
        csv->line = csv->at;
    if (csv_parse(&csv->parser, from, bytes, on_field, on_row, csv) != bytes)
        return csv->fault != MIMUS_OK ? csv->fault : parser_error(csv);
    csv->used += bytes;
    csv->at += ender == '\n';
    csv->after_return = ender == '\r';
    if (csv->fault == MIMUS_OK &&
        csv_get_buffer_size(&csv->parser) > (size_t)4 * MIMUS__CSV_FIELD_BYTES)
        csv->fault = too_long(csv, "a field of more than 64 KiB");
    return csv->fault;
}

static mimus_status finish(mimus__csv *csv) {
    bool parsing = csv->parsing;
    csv->parsing = false;
    if (parsing) /* what libcsv lets pass within a row it need not let pass at the end */
        csv_set_opts(&csv->parser, CSV_STRICT | CSV_STRICT_FINI);
    if (parsing && csv_fini(&csv->parser, on_field, on_row, csv) != 0)
        return csv->fault != MIMUS_OK ? csv->fault : parser_error(csv);
    return csv->fault;
}

mimus_status mimus__csv_next(mimus__csv *csv, bool *more) {
    mimus_status status = MIMUS_OK;
    csv->has_row = csv->in_row = false;
    csv->fields = csv->bytes = 0;
    while (!csv->has_row && csv->parsing) {
        if (csv->used == csv->held && !csv->drained)
            MIMUS_TRY(refill(csv));
        MIMUS_TRY(csv->used < csv->held ? feed(csv) : finish(csv));
    }
    *more = csv->has_row;
out:
    return status;
}

const char *mimus__csv_field(const mimus__csv *csv, size_t index) {
    assert(index < csv->fields);
    return csv->text + csv->offset[index];
}

uint64_t mimus__csv_position(const mimus__csv *csv) {
    z_off_t offset = gzoffset(csv->file);
    return offset > 0 ? (uint64_t)offset : 0;
}

/* ------------------------------------------------------------------- whole */

static mimus_status open_file(mimus__csv *csv) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    MIMUS_TRY(mimus__file_open(&descriptor, csv->path));
    csv->file = gzdopen(descriptor, "rb"); /* reads what is not compressed as it is */
    if (csv->file == NULL) {
        close(descriptor);
        status = mimus__fail(MIMUS_ERR_MEMORY, "%s: zlib has no memory", csv->path);
    }
out:
    return status;
}

mimus_status mimus__csv_open(mimus__csv *out, const char *path, char separator) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__csv){.path = path, .at = 1};
    MIMUS_TRY(open_file(out));
    MIMUS_TRY(mimus__alloc(&out->buffer, BUFFER_BYTES, 1));
    MIMUS_TRY(refill(out));
    MIMUS_TRY(look_at_start(out));
    out->separator =
        separator != 0 ? separator : find_separator(out->buffer + out->used, out->held - out->used);
    if (csv_init(&out->parser, 0) != 0)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_MEMORY, "%s: libcsv has no memory", path));
    out->parsing = true;
    csv_set_delim(&out->parser, (unsigned char)out->separator);
out:
    return status;
}

void mimus__csv_close(mimus__csv *csv) {
    if (csv->parser.entry_buf != NULL)
        csv_free(&csv->parser);
    if (csv->file != NULL)
        gzclose(csv->file);
    free(csv->buffer);
    free(csv->offset);
    free(csv->text);
    *csv = (mimus__csv){0};
}
