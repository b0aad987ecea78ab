/* The file: one byte of length and the metadata, padded to 33 bytes; then the brain and the
 * records, each behind its length as a varint; then, in what a recorder closed, the metadata once
 * more, bare. The metadata count the records, but only once the file is closed. */
#include "demo_stream.h"

#include "alloc.h"
#include "file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LARGEST_MESSAGE = 64 << 20, /* bytes: 16 times what the most senses take */
    OBJECTS_PER_BYTE = 32,      /* of budget: a small message has more structure than content */
    LEAST_BUDGET = 64 << 10,
    LARGEST_BUDGET = 256 << 20,
    VARINT_BYTES = 10,
    NEWEST_VERSION = 1,
};

/* ------------------------------------------------------------------ reading */

/* Fail with the file and a place in it before the message. */
static mimus_status fail_at(const mimus__demo_stream *s, const char *what, uint64_t at,
                            const char *reason) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: %s at byte %" PRIu64 ": %s", s->path, what, at,
                       reason);
}

static mimus_status cannot_read(const mimus__demo_stream *s) {
    if (ferror(s->file))
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", s->path, strerror(errno));
    return mimus__fail(MIMUS_ERR_IO, "%s: was cut at byte %" PRIu64 " while it was being read",
                       s->path, s->offset);
}

/* `count` bytes, which the file has by its size. */
static mimus_status read_bytes(mimus__demo_stream *s, void *out, size_t count) {
    if (fread(out, 1, count, s->file) != count)
        return cannot_read(s);
    s->offset += count;
    return MIMUS_OK;
}

static mimus_status seek(mimus__demo_stream *s, uint64_t offset) {
    if (fseeko(s->file, (off_t)offset, SEEK_SET) != 0)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", s->path, strerror(errno));
    s->offset = offset;
    return MIMUS_OK;
}

static uint64_t left(const mimus__demo_stream *s) {
    return s->size > s->offset ? s->size - s->offset : 0;
}

/* A length; `*whole` is false where the file ends before it does. */
static mimus_status read_length(mimus__demo_stream *s, const char *what, uint64_t *out,
                                bool *whole) {
    const uint64_t at = s->offset;
    *out = 0;
    for (unsigned i = 0; i < VARINT_BYTES; i++) {
        *whole = left(s) > 0;
        if (!*whole)
            return MIMUS_OK;
        int byte = getc(s->file);
        if (byte == EOF)
            return cannot_read(s);
        s->offset++;
        *out |= (uint64_t)(byte & 0x7F) << 7 * i;
        if (byte < 0x80)
            return MIMUS_OK;
    }
    return fail_at(s, what, at, "its length is no varint: it takes more than 10 bytes");
}

/* Read the message at hand: its length and, where the file holds all of it, its bytes. `*whole` is
 * false where the file ends before it does; `*length` is 0 when it ends inside of that. */
static mimus_status read_message(mimus__demo_stream *s, const char *what, uint64_t *length,
                                 bool *whole) {
    mimus_status status = MIMUS_OK;
    const uint64_t at = s->offset;
    char reason[128];
    MIMUS_TRY(read_length(s, what, length, whole));
    if (!*whole)
        *length = 0;
    *whole = *whole && *length <= left(s);
    if (!*whole)
        goto out;
    if (*length > LARGEST_MESSAGE) {
        snprintf(reason, sizeof reason, "%" PRIu64 " bytes; at most %d are read", *length,
                 LARGEST_MESSAGE);
        status = fail_at(s, what, at, reason);
        goto out;
    }
    MIMUS_TRY(mimus__grow(&s->bytes, &s->capacity, (size_t)*length, 1));
    MIMUS_TRY(read_bytes(s, s->bytes, (size_t)*length));
out:
    return status;
}

/* For a message at `at` that read_message did not find whole. */
static mimus_status ends_inside(const mimus__demo_stream *s, const char *what, uint64_t at,
                                uint64_t length) {
    char reason[128] = "the file ends inside of its length";
    if (length > 0)
        snprintf(reason, sizeof reason, "has %" PRIu64 " bytes, and the file ends after %" PRIu64,
                 length, left(s));
    return fail_at(s, what, at, reason);
}

/* ----------------------------------------------------------------- decoding */

static mimus_status decode(const mimus__demo_stream *s, void *out,
                           const ProtobufCMessageDescriptor *type, mimus__demo_arena *arena,
                           const uint8_t *bytes, size_t count, const char *what, uint64_t at) {
    size_t budget = LEAST_BUDGET + count * OBJECTS_PER_BYTE;
    mimus__demo_arena_reset(arena, budget < LARGEST_BUDGET ? budget : LARGEST_BUDGET);
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &arena->allocator, count, bytes);
    if (message == NULL && arena->spent)
        return fail_at(s, what, at, "has far more parts than a recorder writes");
    if (message == NULL)
        return fail_at(s, what, at, "not the message that a recorder writes there");
    *(ProtobufCMessage **)out = message;
    return MIMUS_OK;
}

/* ------------------------------------------------------------------- header */

static mimus_status check_meta(const mimus__demo_stream *s) {
    const Mimus__Demo__Meta *meta = s->meta;
    if (meta->api_version < 0 || meta->api_version > NEWEST_VERSION)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: metadata at byte 0: version %" PRId32
                           " of the format; 0 and 1 are read",
                           s->path, meta->api_version);
    if (meta->steps < 0)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: metadata at byte 0: %" PRId32 " records", s->path,
                           meta->steps);
    return MIMUS_OK;
}

static mimus_status read_meta(mimus__demo_stream *s) {
    mimus_status status = MIMUS_OK;
    uint8_t head[MIMUS__DEMO_BRAIN_AT];
    char reason[128];
    if (s->size <= MIMUS__DEMO_BRAIN_AT) {
        snprintf(reason, sizeof reason,
                 "the file ends before the actions are described: %" PRIu64
                 " bytes, not %d or more",
                 s->size, MIMUS__DEMO_BRAIN_AT + 1);
        return fail_at(s, "metadata", 0, reason);
    }
    MIMUS_TRY(read_bytes(s, head, sizeof head));
    if (head[0] == 0 || head[0] > MIMUS__DEMO_META_BYTES) {
        snprintf(reason, sizeof reason, "%d bytes of them; a .demo file has 1 to %d", head[0],
                 MIMUS__DEMO_META_BYTES);
        status = fail_at(s, "metadata", 0, reason);
        goto out;
    }
    s->meta_count = head[0];
    memcpy(s->meta_bytes, head + 1, s->meta_count);
    MIMUS_TRY(decode(s, &s->meta, &mimus__demo__meta__descriptor, &s->head[0], s->meta_bytes,
                     s->meta_count, "metadata", 0));
    MIMUS_TRY(check_meta(s));
out:
    return status;
}

static mimus_status read_brain(mimus__demo_stream *s) {
    mimus_status status = MIMUS_OK;
    static const char what[] = "description of the actions";
    uint64_t length = 0;
    bool whole = false;
    MIMUS_TRY(read_message(s, what, &length, &whole));
    if (!whole) {
        status = ends_inside(s, what, MIMUS__DEMO_BRAIN_AT, length);
        goto out;
    }
    MIMUS_TRY(decode(s, &s->brain, &mimus__demo__brain__descriptor, &s->head[1], s->bytes,
                     (size_t)length, what, MIMUS__DEMO_BRAIN_AT));
    s->first = s->offset;
out:
    return status;
}

bool mimus__demo_stream_probe(const uint8_t *head, size_t bytes) {
    if (bytes <= MIMUS__DEMO_BRAIN_AT || head[0] == 0 || head[0] > MIMUS__DEMO_META_BYTES)
        return false;
    for (size_t i = 1 + (size_t)head[0]; i < MIMUS__DEMO_BRAIN_AT; i++) {
        if (head[i] != 0)
            return false;
    }
    Mimus__Demo__Meta *meta = mimus__demo__meta__unpack(NULL, head[0], head + 1);
    bool good = meta != NULL && meta->base.n_unknown_fields <= 1 && /* the mean reward */
                meta->api_version >= 0 && meta->api_version <= NEWEST_VERSION;
    mimus__demo__meta__free_unpacked(meta, NULL);
    return good;
}

mimus_status mimus__demo_stream_open(mimus__demo_stream *out, const char *path) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    struct stat info;
    *out = (mimus__demo_stream){.path = path};
    MIMUS_TRY(mimus__file_open(&descriptor, path));
    if (fstat(descriptor, &info) != 0 || (out->file = fdopen(descriptor, "rb")) == NULL) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
        close(descriptor);
        goto out;
    }
    out->size = (uint64_t)info.st_size;
    MIMUS_TRY(read_meta(out));
    MIMUS_TRY(read_brain(out));
out:
    return status;
}

void mimus__demo_stream_close(mimus__demo_stream *stream) {
    if (stream->file != NULL)
        fclose(stream->file);
    free(stream->bytes);
    mimus__demo_arena_clear(&stream->head[0]);
    mimus__demo_arena_clear(&stream->head[1]);
    mimus__demo_arena_clear(&stream->body);
    *stream = (mimus__demo_stream){0};
}

/* ------------------------------------------------------------------ records */

/* Whether what is left of the file is the metadata once more, or the start of that. */
static mimus_status find_copy(mimus__demo_stream *s, bool *found) {
    mimus_status status = MIMUS_OK;
    const uint64_t at = s->offset;
    const size_t count = (size_t)left(s);
    uint8_t tail[MIMUS__DEMO_META_BYTES];
    *found = false;
    if (left(s) == 0 || left(s) > s->meta_count)
        goto out;
    MIMUS_TRY(read_bytes(s, tail, count));
    *found = memcmp(tail, s->meta_bytes, count) == 0;
    MIMUS_TRY(seek(s, at));
out:
    return status;
}

static void end(mimus__demo_stream *s, mimus__demo_ending ending, uint64_t lost) {
    s->at = s->offset;
    s->record = s->begun;
    s->ending = ending;
    s->lost = lost;
}

/* Whether the last record was the last one. */
static mimus_status find_end(mimus__demo_stream *s, bool *ends) {
    mimus_status status = MIMUS_OK;
    const bool counted = s->meta->steps > 0;
    bool copy = false;
    *ends = false;
    if (counted && s->begun < (uint64_t)s->meta->steps)
        goto out;
    MIMUS_TRY(find_copy(s, &copy));
    *ends = counted || copy || left(s) == 0;
    if (*ends)
        end(s,
            copy      ? MIMUS__DEMO_COPY
            : counted ? MIMUS__DEMO_PLAIN
                      : MIMUS__DEMO_NOT_CLOSED,
            copy ? 0 : left(s));
out:
    return status;
}

static const char *present(const mimus__demo_stream *s, char *text, size_t bytes) {
    snprintf(text, bytes, "record %" PRIu64, s->record);
    return text;
}

mimus_status mimus__demo_stream_next(mimus__demo_stream *stream, const Mimus__Demo__Pair **out) {
    mimus_status status = MIMUS_OK;
    mimus__demo_stream *s = stream;
    char what[32];
    uint64_t length = 0;
    bool ends = false, whole = false;
    Mimus__Demo__Pair *pair = NULL;
    *out = NULL;
    MIMUS_TRY(find_end(s, &ends));
    if (ends)
        goto out;
    s->at = s->offset;
    s->record = s->begun;
    if (left(s) == 0) {
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s: ends at byte %" PRIu64 " behind %" PRIu64
                             " records; its metadata promise %" PRId32,
                             s->path, s->size, s->begun, s->meta->steps);
        goto out;
    }
    present(s, what, sizeof what);
    MIMUS_TRY(read_message(s, what, &length, &whole));
    if (!whole && s->meta->steps == 0 && s->begun > 0) { /* the game died while it was writing */
        end(s, MIMUS__DEMO_NOT_CLOSED, s->size - s->at);
        goto out;
    }
    if (!whole) {
        status = ends_inside(s, what, s->at, length);
        goto out;
    }
    s->begun++;
    MIMUS_TRY(decode(s, &pair, &mimus__demo__pair__descriptor, &s->body, s->bytes, (size_t)length,
                     what, s->at));
    *out = pair;
out:
    return status;
}

mimus_status mimus__demo_stream_rewind(mimus__demo_stream *stream) {
    stream->begun = 0;
    return seek(stream, stream->first);
}

mimus_status mimus__demo_stream_fail(const mimus__demo_stream *stream, mimus_status code,
                                     const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return mimus__fail(code, "%s: record %" PRIu64 " at byte %" PRIu64 ": %s", stream->path,
                       stream->record, stream->at, message);
}
