/* sink - where a reader's samples go (reader.h): into memory, as the chunks that a .rec file would
 * hold, or into a .rec file that appears when it is complete. Judges no sample. */
#ifndef MIMUS_DATA_SINK_H
#define MIMUS_DATA_SINK_H

#include "chunk.h"
#include "reader.h"

/* Pass `&chunks->sink` to a reader. Begin may be called again for each file of a recording: what
 * follows must have the first schema and begins an episode. */
typedef struct mimus__chunk_sink {
    mimus__sink sink;
    mimus_schema *schema; /* NULL before the first begin */
    mimus__chunk chunk;
    uint64_t samples;
    uint64_t episodes;
    struct mimus__chunk_store *store; /* where finished chunks go */
} mimus__chunk_sink;

mimus_status mimus__chunk_sink_to_memory(mimus__chunk_sink **out);
/* `path` is replaced at commit; nothing of it is seen before. */
mimus_status mimus__chunk_sink_to_file(mimus__chunk_sink **out, const char *path);
/* Discards what was not committed or taken. */
void mimus__chunk_sink_free(mimus__chunk_sink *sink);

/* As mimus__sink_append, for a sample whose mask (W) is packed already, as in mimus__block. */
mimus_status mimus__chunk_sink_append_packed(mimus__chunk_sink *sink, const float *senses,
                                             const uint16_t *actions, const uint32_t *mask,
                                             float weight);

/* To a file: write the rest and the closing record with `metadata` (an object, or NULL: empty),
 * sync, and put the file in place. */
mimus_status mimus__chunk_sink_commit(mimus__chunk_sink *sink, const json_t *metadata);

/* To memory: hand over all chunks, sealed records (chunk.h); free each and the array with free(). */
mimus_status mimus__chunk_sink_take(mimus__chunk_sink *sink, uint8_t ***chunks, size_t *count);

/* Read one file into a sink with the reader that `source` names or that the file's first bytes
 * suggest, its options checked. */
mimus_status mimus__sink_read(mimus__sink *sink, const char *path, const mimus_source *source,
                              const mimus_watch *watch);

#endif
