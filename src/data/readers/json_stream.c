#include "json_stream.h"

#include "alloc.h"
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

mimus_status mimus__json_stream_open(mimus__json_stream *out, const char *path) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__json_stream){.path = path, .descriptor = -1};
    MIMUS_TRY(mimus__alloc(&out->buffer, BUFFER_BYTES, 1));
    MIMUS_TRY(mimus__file_open(&out->descriptor, path));
out:
    return status;
}

void mimus__json_stream_close(mimus__json_stream *stream) {
    if (stream->buffer != NULL && stream->descriptor >= 0)
        close(stream->descriptor);
    free(stream->buffer);
    *stream = (mimus__json_stream){.descriptor = -1};
}

/* The next byte, or 0 at the end of the file. */
static mimus_status look(mimus__json_stream *stream, char *next) {
    *next = '\0';
    if (stream->used == stream->held) {
        ssize_t got = read(stream->descriptor, stream->buffer, BUFFER_BYTES);
        if (got < 0)
            return mimus__fail(MIMUS_ERR_IO, "%s: %s", stream->path, strerror(errno));
        stream->used = 0;
        stream->held = (size_t)got;
    }
    if (stream->used < stream->held)
        *next = stream->buffer[stream->used];
    return MIMUS_OK;
}

static void advance(mimus__json_stream *stream) {
    stream->used++;
    stream->offset++;
}

mimus_status mimus__json_stream_peek(mimus__json_stream *stream, char *next) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(look(stream, next));
    while (*next == ' ' || *next == '\t' || *next == '\n' || *next == '\r') {
        advance(stream);
        MIMUS_TRY(look(stream, next));
    }
out:
    return status;
}

mimus_status mimus__json_stream_take(mimus__json_stream *stream, char wanted, bool *taken) {
    mimus_status status = MIMUS_OK;
    char next = '\0';
    *taken = false;
    MIMUS_TRY(mimus__json_stream_peek(stream, &next));
    *taken = next == wanted;
    if (*taken)
        advance(stream);
out:
    return status;
}

static mimus_status unexpected(const mimus__json_stream *stream, const char *wanted, char found) {
    if (found == '\0')
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: ends at byte %llu: expected %s", stream->path,
                           (unsigned long long)stream->offset, wanted);
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: byte %llu: expected %s, found '%c'", stream->path,
                       (unsigned long long)stream->offset, wanted,
                       found >= ' ' && found <= '~' ? found : '?');
}

mimus_status mimus__json_stream_expect(mimus__json_stream *stream, char wanted) {
    mimus_status status = MIMUS_OK;
    const char text[] = {'\'', wanted, '\'', '\0'};
    char next = '\0';
    bool taken = false;
    MIMUS_TRY(mimus__json_stream_take(stream, wanted, &taken));
    if (taken)
        goto out;
    MIMUS_TRY(look(stream, &next));
    status = unexpected(stream, text, next);
out:
    return status;
}

/* What jansson reads by: a byte a call, so that it takes none behind its value. */
static size_t give_byte(void *buffer, size_t bytes, void *user) {
    mimus__json_stream *stream = user;
    char next = '\0';
    if (bytes == 0 || stream->fault != MIMUS_OK)
        return (size_t)-1;
    if (stream->budget == 0)
        stream->fault = mimus__fail(MIMUS_ERR_UNSUPPORTED,
                                    "%s: byte %llu: a trajectory of more than %d MiB; cut it into "
                                    "several",
                                    stream->path, (unsigned long long)stream->offset,
                                    MIMUS__JSON_STREAM_LIMIT >> 20);
    else
        stream->fault = look(stream, &next);
    if (stream->fault != MIMUS_OK)
        return (size_t)-1;
    if (stream->used == stream->held)
        return 0;
    *(char *)buffer = next;
    advance(stream);
    stream->budget--;
    return 1;
}

mimus_status mimus__json_stream_value(mimus__json_stream *stream, json_t **out) {
    mimus_status status = MIMUS_OK;
    json_error_t error;
    char next = '\0';
    *out = NULL;
    MIMUS_TRY(mimus__json_stream_peek(stream, &next));
    if (next != '[' && next != '{' && next != '"')
        return unexpected(stream, "an array, an object or a string", next);
    stream->budget = MIMUS__JSON_STREAM_LIMIT;
    const size_t flags = JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES;
    *out = json_load_callback(give_byte, stream, flags, &error);
    if (stream->fault != MIMUS_OK)
        status = stream->fault;
    else if (*out == NULL)
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: byte %llu: %s", stream->path,
                             (unsigned long long)stream->offset, error.text);
    if (status != MIMUS_OK) {
        json_decref(*out);
        *out = NULL;
    }
out:
    return status;
}

/* Numbers, true, false and null end where something else begins. */
mimus_status mimus__json_stream_skip(mimus__json_stream *stream) {
    mimus_status status = MIMUS_OK;
    json_t *value = NULL;
    char next = '\0';
    MIMUS_TRY(mimus__json_stream_peek(stream, &next));
    if (next == '[' || next == '{' || next == '"') {
        MIMUS_TRY(mimus__json_stream_value(stream, &value));
        goto out;
    }
    if (next == '\0' || strchr("-0123456789tfn", next) == NULL)
        MIMUS_TRY(unexpected(stream, "a value", next));
    while (next != '\0' && strchr(",]} \t\r\n", next) == NULL) {
        advance(stream);
        MIMUS_TRY(look(stream, &next));
    }
out:
    json_decref(value);
    return status;
}
