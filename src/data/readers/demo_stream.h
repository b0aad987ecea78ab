/* demo_stream - a Unity ML-Agents recording (.demo) as a stream of records, one of them in memory
 * at a time. Knows where they begin and end; what they mean is for demo_layout.h and demo.c. */
#ifndef MIMUS_DATA_DEMO_STREAM_H
#define MIMUS_DATA_DEMO_STREAM_H

#include "demo.pb-c.h"
#include "demo_arena.h"
#include "status.h"

#include <stdio.h>

enum {
    MIMUS__DEMO_META_BYTES = 32, /* that the metadata may have; its length is one byte before it */
    MIMUS__DEMO_BRAIN_AT = MIMUS__DEMO_META_BYTES + 1,
};

/* How the last record is followed. */
typedef enum mimus__demo_ending {
    MIMUS__DEMO_COPY,       /* by a copy of the metadata, as recorders close a file */
    MIMUS__DEMO_PLAIN,      /* by nothing: a file that a tool of 2019 converted */
    MIMUS__DEMO_NOT_CLOSED, /* by the file's end, and the metadata count no record */
} mimus__demo_ending;

typedef struct mimus__demo_stream {
    const char *path; /* borrowed */
    FILE *file;
    uint64_t size;
    Mimus__Demo__Meta *meta;
    Mimus__Demo__Brain *brain;
    uint64_t first;  /* byte of the first record */
    uint64_t at;     /* byte of the present record */
    uint64_t record; /* its number, from 0; behind the last: how many there were */
    /* known behind the last record: */
    mimus__demo_ending ending;
    uint64_t lost; /* bytes behind it that are neither record nor metadata */
    /* inside: */
    uint64_t offset; /* of the next byte to be read */
    uint64_t begun;  /* records of which the length was read */
    uint8_t meta_bytes[MIMUS__DEMO_META_BYTES];
    uint8_t meta_count;
    uint8_t *bytes; /* of one message */
    size_t capacity;
    mimus__demo_arena head[2]; /* of meta and brain */
    mimus__demo_arena body;    /* of the present record */
} mimus__demo_stream;

/* Open a file and read what stands before its records. `path` must outlive the stream; close it
 * also after a failure. Every failure names the file, the place and the reason. */
mimus_status mimus__demo_stream_open(mimus__demo_stream *out, const char *path);
void mimus__demo_stream_close(mimus__demo_stream *stream);

/* The next record, good until the next call; NULL behind the last one. */
mimus_status mimus__demo_stream_next(mimus__demo_stream *stream, const Mimus__Demo__Pair **out);
/* Back to before the first record. */
mimus_status mimus__demo_stream_rewind(mimus__demo_stream *stream);

/* Fail with "FILE: record N at byte M: " before the message. */
mimus_status mimus__demo_stream_fail(const mimus__demo_stream *stream, mimus_status code,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether the first bytes of a file are the metadata of a .demo. */
bool mimus__demo_stream_probe(const uint8_t *head, size_t bytes);

#endif
