#include "reader.h"

#include "csv_reader.h"
#include "demo.h"
#include "file.h"
#include "godot.h"
#include "h5_reader.h"
#include "npz.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------- sinks */

mimus_status mimus__sink_begin(mimus__sink *sink, const mimus_schema *schema) {
    return sink->begin(sink, schema);
}

mimus_status mimus__sink_begin_inferred(mimus__sink *sink, const mimus_schema *schema,
                                        bool inferred) {
    mimus_status status = mimus__sink_begin(sink, schema);
    if (status == MIMUS_ERR_SCHEMA && inferred)
        mimus__fail(status,
                    "%s (this file's head sizes come from its data; the option heads states them)",
                    mimus_last_error());
    return status;
}

mimus_status mimus__sink_append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                                const uint8_t *legal, float weight) {
    return sink->append(sink, senses, actions, legal, weight);
}

mimus_status mimus__sink_end_episode(mimus__sink *sink) {
    return sink->end_episode(sink);
}

/* --------------------------------------------------------------- the table */

/* In the order of probing: what is recognised by its first bytes stands before what is guessed. */
static const mimus__reader *const readers[] = {
    &mimus__npz_reader,   &mimus__demo_reader, &mimus__h5_reader,
    &mimus__godot_reader, &mimus__csv_reader,
};

const mimus__reader *mimus__reader_at(size_t index) {
    return index < sizeof readers / sizeof *readers ? readers[index] : NULL;
}

/* "rec, npz, csv": the names a user may give, in a buffer of `bytes`. */
static const char *reader_names(char *text, size_t bytes) {
    int length = snprintf(text, bytes, "rec"); /* recording.c reads those itself */
    for (size_t i = 0; mimus__reader_at(i) != NULL; i++) {
        if ((size_t)length < bytes)
            length +=
                snprintf(text + length, bytes - (size_t)length, ", %s", mimus__reader_at(i)->name);
    }
    return text;
}

/* ----------------------------------------------------------------- options */

static size_t key_length(const char *option) {
    const char *equals = strchr(option, '=');
    return equals != NULL ? (size_t)(equals - option) : 0;
}

static bool key_is(const char *option, const char *key) {
    size_t length = key_length(option);
    return length > 0 && strlen(key) == length && memcmp(option, key, length) == 0;
}

const char *mimus__reader_option_value(const char *const *options, const char *key) {
    for (; options != NULL && *options != NULL; options++) {
        if (key_is(*options, key))
            return *options + strlen(key) + 1;
    }
    return NULL;
}

static mimus_status unknown_option(const mimus__reader *reader, const char *option) {
    char keys[512];
    int length = 0;
    keys[0] = '\0';
    for (const mimus__reader_option *known = reader->options; known->key != NULL; known++) {
        if ((size_t)length < sizeof keys)
            length += snprintf(keys + length, sizeof keys - (size_t)length, "%s%s",
                               length > 0 ? ", " : "", known->key);
    }
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s files have no option \"%.*s\"; there are: %s",
                       reader->name, (int)key_length(option), option,
                       length > 0 ? keys : "none at all");
}

mimus_status mimus__reader_check(const mimus__reader *reader, const char *const *options) {
    for (const char *const *option = options; option != NULL && *option != NULL; option++) {
        if (key_length(*option) == 0)
            return mimus__fail(MIMUS_ERR_ARGUMENT, "a reader option is key=value, not \"%s\"",
                               *option);
        const mimus__reader_option *known = reader->options;
        while (known->key != NULL && !key_is(*option, known->key))
            known++;
        if (known->key == NULL)
            return unknown_option(reader, *option);
        for (const char *const *before = options; before != option; before++) {
            if (key_is(*before, known->key))
                return mimus__fail(MIMUS_ERR_ARGUMENT, "the reader option \"%s\" is given twice",
                                   known->key);
        }
    }
    return MIMUS_OK;
}

/* ----------------------------------------------------------------- finding */

mimus_status mimus__reader_file(char **out, const char *path) {
    mimus_status status = MIMUS_OK;
    *out = NULL;
    for (size_t i = 0; mimus__reader_at(i) != NULL && mimus__file_is_folder(path); i++) {
        const char *const *inside = mimus__reader_at(i)->inside;
        for (; inside != NULL && *inside != NULL; inside++) {
            free(*out);
            MIMUS_TRY(mimus__text_format(out, "%s/%s", path, *inside));
            if (mimus__file_exists(*out))
                return MIMUS_OK;
        }
    }
    free(*out);
    MIMUS_TRY(mimus__text_copy(out, path));
out:
    return status;
}

enum { HEAD_BYTES = 4096 };

static mimus_status read_head(const char *path, uint8_t head[HEAD_BYTES], size_t *bytes) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    MIMUS_TRY(mimus__file_open(&descriptor, path));
    ssize_t got = pread(descriptor, head, HEAD_BYTES, 0);
    if (got < 0)
        status = mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
    else
        *bytes = (size_t)got;
    close(descriptor);
out:
    return status;
}

typedef struct signature {
    const char *bytes;
    size_t count;
    const char *meaning;
} signature;

/* What people hand over that is not (or not by itself) a recording. */
static const signature signatures[] = {
    {"PK\3\4", 4, "a zip archive"},
    {"PK\5\6", 4, "an empty zip archive"},
    {"\x93NUMPY", 6, "one NumPy array (a recording needs senses and actions: save both as .npz)"},
    {"\x1f\x8b", 2, "a gzip file"},
    {"\x28\xb5\x2f\xfd", 4, "a Zstandard file"},
    {"\x80\x02", 2, "a Python pickle"},
    {"\x80\x03", 2, "a Python pickle"},
    {"\x80\x04", 2, "a Python pickle"},
    {"\x80\x05", 2, "a Python pickle"},
    {"PAR1", 4, "a Parquet file"},
    {"ARROW1", 6, "an Arrow file"},
    {"SQLite format 3", 15, "an SQLite database"},
    {"\x89PNG", 4, "a PNG image"},
    {"{", 1, "JSON text"},
    {"[", 1, "JSON text"},
};

static bool is_text(const uint8_t *head, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if ((head[i] < 0x20 && strchr("\t\n\r\f", head[i]) == NULL) || head[i] == 0)
            return false;
    }
    return true;
}

static const char *looks_like(const uint8_t *head, size_t bytes) {
    if (bytes == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        if (bytes >= signatures[i].count &&
            memcmp(head, signatures[i].bytes, signatures[i].count) == 0)
            return signatures[i].meaning;
    }
    return is_text(head, bytes) ? "text" : "an unknown binary file";
}

mimus_status mimus__reader_find(const mimus__reader **out, const char *name, const char *path) {
    mimus_status status = MIMUS_OK;
    uint8_t head[HEAD_BYTES];
    size_t bytes = 0;
    char names[512];
    *out = NULL;
    if (name != NULL) {
        for (size_t i = 0; mimus__reader_at(i) != NULL; i++) {
            if (strcmp(mimus__reader_at(i)->name, name) == 0) {
                *out = mimus__reader_at(i);
                goto out;
            }
        }
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "no format \"%s\"; there are: %s", name,
                             reader_names(names, sizeof names));
        goto out;
    }
    MIMUS_TRY(read_head(path, head, &bytes));
    for (size_t i = 0; mimus__reader_at(i) != NULL && *out == NULL; i++) {
        if (mimus__reader_at(i)->probe(path, head, bytes))
            *out = mimus__reader_at(i);
    }
    if (*out == NULL)
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: looks like %s; the formats are: %s", path,
                             looks_like(head, bytes), reader_names(names, sizeof names));
out:
    return status;
}
