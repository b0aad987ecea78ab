/* sink - where a reader's samples go (reader.h): into memory, as the chunks that a .rec file would
 * hold, or into a .rec file that appears when it is complete. Judges no sample. */
#ifndef MIMUS_DATA_SINK_H
#define MIMUS_DATA_SINK_H

#include "file.h"
#include "reader.h"
#include "writer.h"

/* What both have in common: pass `&chunks->sink` to a reader. Begin may be called again for each
 * file of a recording: what follows must have the first schema and begins an episode. */
typedef struct mimus__chunk_sink {
    mimus__sink sink;
    mimus_schema *schema; /* NULL before the first begin */
    mimus__chunk chunk;
    mimus_status (*put)(struct mimus__chunk_sink *sink); /* take the chunk, which is done */
} mimus__chunk_sink;

/* What a sink of one's own begins and ends with; `put` leaves the chunk empty (mimus__chunk_reset
 * or _take). */
void mimus__chunk_sink_init(mimus__chunk_sink *sink, mimus_status (*put)(mimus__chunk_sink *sink));
void mimus__chunk_sink_clear(mimus__chunk_sink *sink);

/* As mimus__sink_append, for a sample whose mask (W) is packed already, as in mimus__block. */
mimus_status mimus__chunk_sink_append_packed(mimus__chunk_sink *sink, const float *senses,
                                             const uint16_t *actions, const uint32_t *mask,
                                             float weight);

/* Into memory: sealed chunks, each a whole record in memory of its own. */
typedef struct mimus__memory_sink {
    mimus__chunk_sink base;
    uint8_t **chunk; /* (chunks) */
    size_t chunks;
    size_t capacity;
    uint64_t samples; /* in them */
} mimus__memory_sink;

void mimus__memory_sink_init(mimus__memory_sink *sink);
void mimus__memory_sink_clear(mimus__memory_sink *sink);
/* Move the last, partial chunk to the others. Whoever takes `chunk` sets it to NULL and frees each
 * with free(). */
mimus_status mimus__memory_sink_finish(mimus__memory_sink *sink);
/* Everything the sink was given as a recording, without files, metadata or losses; begin was
 * called. The samples move: the sink is empty after, and cleared as ever. Free with
 * mimus__recording_free. */
mimus_status mimus__memory_sink_recording(mimus__recording **out, mimus__memory_sink *sink);

/* Into a file. */
typedef struct mimus__file_sink {
    mimus__chunk_sink base;
    mimus__file_writer file;
    mimus__writer writer; /* .samples and .episodes count after commit */
} mimus__file_sink;

/* `path` is replaced at commit; nothing of it is seen before. */
mimus_status mimus__file_sink_open(mimus__file_sink *sink, const char *path);
/* Write the rest and the closing record with `metadata` (an object, or NULL: empty), sync, and put
 * the file in place. MIMUS_ERR_DATA when nothing ever began. */
mimus_status mimus__file_sink_commit(mimus__file_sink *sink, const json_t *metadata);
/* Discards what was not committed; may follow a failed open. */
void mimus__file_sink_clear(mimus__file_sink *sink);

/* Before the files of a source are read: make the bins that the option bin asks for, from all files
 * together; or take those of `like` (may be NULL), a schema that the samples are to have, and which
 * stays until they were read. The sink owns the bins. */
mimus_status mimus__chunk_sink_prepare(mimus__chunk_sink *sink, const mimus_source *source,
                                       const mimus_schema *like, const mimus_watch *watch);

/* Read one file into a sink with the reader that `source` names or that the file's first bytes
 * suggest, its options checked. */
mimus_status mimus__sink_read(mimus__sink *sink, const char *path, const mimus_source *source,
                              const mimus_watch *watch);

#endif
