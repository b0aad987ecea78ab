/* scan - find the records of a .rec file and say how sound it is; reads headers, not payloads,
 * except at the end of a file that was not closed. */
#ifndef MIMUS_DATA_SCAN_H
#define MIMUS_DATA_SCAN_H

#include "chunk.h"

typedef struct mimus__scan_chunk {
    uint64_t offset; /* of the record in the file */
    mimus__record record;
} mimus__scan_chunk;

typedef struct mimus__scan {
    mimus_schema *schema;
    mimus__scan_chunk *chunk; /* (chunks) */
    size_t chunks;
    size_t capacity;
    uint64_t samples;
    uint64_t episodes;
    uint64_t end;     /* behind the last whole chunk (or the file header) */
    json_t *metadata; /* of the closing record; NULL when the file was not closed */
    uint64_t lost;    /* bytes behind `end` of a file that was not closed */
} mimus__scan;

/* Look through the `size` bytes of the file `path`. A file that ends in the middle of a record, or
 * whose last chunks are damaged, was being recorded when the power or the process went: that is a
 * loss, not an error. Damage with whole records behind it is MIMUS_ERR_FORMAT; a version or flag
 * of the future is MIMUS_ERR_UNSUPPORTED. Clear `*out` either way. */
mimus_status mimus__scan_run(mimus__scan *out, const uint8_t *bytes, size_t size, const char *path);
void mimus__scan_clear(mimus__scan *scan);

/* Judge the payload of a chunk, `record` being its header: checksum, episode starts. `index` and
 * `offset` are for the message. */
mimus_status mimus__scan_verify(const mimus_schema *schema, const mimus__record *record,
                                const uint8_t *payload, const char *path, size_t index,
                                uint64_t offset);

#endif
