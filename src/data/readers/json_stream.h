/* json_stream - a JSON file in pieces: jansson parses a value at a time, and what stands between
 * values is read here, so that no more than one value is held. */
#ifndef MIMUS_DATA_JSON_STREAM_H
#define MIMUS_DATA_JSON_STREAM_H

#include "json.h"

enum { MIMUS__JSON_STREAM_LIMIT = 64 << 20 }; /* bytes of one value */

typedef struct mimus__json_stream {
    const char *path; /* borrowed */
    int descriptor;
    char *buffer;
    size_t used, held;
    uint64_t offset; /* in the file, of the next byte */
    uint64_t budget; /* bytes that the value may still have */
    mimus_status fault;
} mimus__json_stream;

/* Close it whatever the outcome. */
mimus_status mimus__json_stream_open(mimus__json_stream *out, const char *path);
void mimus__json_stream_close(mimus__json_stream *stream);

/* `*next` = the next character that is no white space, which stays; 0 at the end of the file. */
mimus_status mimus__json_stream_peek(mimus__json_stream *stream, char *next);

/* Take that character when it is `wanted`: `*taken`. */
mimus_status mimus__json_stream_take(mimus__json_stream *stream, char wanted, bool *taken);
/* It must be `wanted`: MIMUS_ERR_FORMAT says at which byte what was found. */
mimus_status mimus__json_stream_expect(mimus__json_stream *stream, char wanted);

/* Parse the next value, an array, object or string (of at most MIMUS__JSON_STREAM_LIMIT bytes). */
mimus_status mimus__json_stream_value(mimus__json_stream *stream, json_t **out);
/* Pass the next value by, whatever it is. */
mimus_status mimus__json_stream_skip(mimus__json_stream *stream);

#endif
