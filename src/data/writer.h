/* writer - records onto the end of a .rec file, through a descriptor that stays the caller's.
 *
 * A record is one write where the system allows it. After a failure the file is cut back to its
 * last whole record, as far as the system allows that. */
#ifndef MIMUS_DATA_WRITER_H
#define MIMUS_DATA_WRITER_H

#include "chunk.h"

typedef struct mimus__writer {
    int descriptor;
    const char *path;  /* for messages; borrowed */
    uint64_t end;      /* of the last whole record */
    uint64_t samples;  /* in the chunks before it */
    uint64_t episodes; /* that begin in them */
    bool tail;         /* bytes behind `end` are to be cut off before the next write */
} mimus__writer;

/* The file header, at the very beginning; what the file holds so far is cut off. */
mimus_status mimus__writer_begin(mimus__writer *writer, int descriptor, const char *path,
                                 const mimus_schema *schema);

/* Seal and write a chunk, then start it over. After MIMUS_ERR_IO the chunk holds what it held and
 * may be put again. */
mimus_status mimus__writer_put(mimus__writer *writer, mimus__chunk *chunk);

/* The closing record; `metadata` is an object, or NULL: empty. */
mimus_status mimus__writer_finish(mimus__writer *writer, const json_t *metadata);

/* Everything written so far is on the disk. */
mimus_status mimus__writer_sync(const mimus__writer *writer);

#endif
