/* recording - samples as blocks of columns, whether mapped from .rec files or built in memory.
 *
 * A recording is immutable once opened. Blocks keep the files' order; row numbers run through all
 * of them; the first row of a file begins an episode. The first touch of a mapped block verifies
 * its checksum. Any number of threads may read a recording.
 *
 * A mapped file must not be cut short while it is open: touching what is gone is a SIGBUS, as with
 * every mapping. Recorders never do that to chunks that were finished. */
#ifndef MIMUS_DATA_RECORDING_H
#define MIMUS_DATA_RECORDING_H

#include "schema.h"

typedef struct mimus__recording mimus__recording;
struct mimus__memory_sink;

/* A run of samples; every pointer is borrowed from the recording. */
typedef struct mimus__block {
    uint64_t first;          /* row of the first sample */
    uint32_t samples;        /* n */
    const float *senses;     /* (n, S) */
    const uint16_t *actions; /* (n, H) */
    const uint32_t *masks;   /* (n, W), or NULL */
    uint32_t mask_words;     /* W = mimus__schema_mask_words */
    const float *weights;    /* (n), or NULL */
    const uint32_t *starts;  /* (ceil(n/32)) bit i%32 of word i/32: sample i begins an episode */
} mimus__block;

/* Open files as one recording: .rec is mapped, other formats are read into memory by their reader
 * (reader.h). Several files must agree in their schema. Does not judge the samples: see audit.h.
 * Each loss (below) is also a message of the watch. */
mimus_status mimus__recording_open(mimus__recording **out, const mimus_source *source,
                                   const mimus_watch *watch);
/* The same for a policy that has `like` (may be NULL) for its schema: continuous actions of files
 * that are no .rec fall into its bins. Whether the schemas agree is for the caller to see. */
mimus_status mimus__recording_open_like(mimus__recording **out, const mimus_source *source,
                                        const mimus_schema *like, const mimus_watch *watch);
/* Samples that were put into memory (sink.h), their chunks taken over; `name` stands for a file.
 * MIMUS_ERR_DATA when there is no sample. */
mimus_status mimus__recording_from_memory(mimus__recording **out, struct mimus__memory_sink *sink,
                                          const char *name);
void mimus__recording_free(mimus__recording *recording);

/* Whether a file is a .rec: because `format` says so or, when it is NULL, the file's first bytes
 * do. false for what cannot be opened. */
bool mimus__recording_is_rec(const char *path, const char *format);

const mimus_schema *mimus__recording_schema(const mimus__recording *recording);
uint64_t mimus__recording_samples(const mimus__recording *recording);
uint64_t mimus__recording_episodes(const mimus__recording *recording);
size_t mimus__recording_blocks(const mimus__recording *recording);
/* MIMUS_ERR_FORMAT naming file, chunk and place when the block is damaged. */
mimus_status mimus__recording_block(const mimus__recording *recording, size_t index,
                                    mimus__block *out);

/* For who goes through a recording and is done with a block for now: its pages of a mapped file no
 * longer count as this process's memory. Whoever touches them again gets them back from the disk
 * cache, so that pointers stay good. */
void mimus__recording_leave(const mimus__recording *recording, size_t index);

/* Metadata of the closing records (a JSON object per file, in an array; borrowed; empty objects for
 * files without), and what was lost: an array of {"file", "bytes", "reason"}, empty when every file
 * was closed properly. */
const json_t *mimus__recording_metadata(const mimus__recording *recording);
const json_t *mimus__recording_losses(const mimus__recording *recording);

/* A short text that changes when the content does (schema, sample count and the chunks'
 * checksums), for a run to know its recording again. 16 hex digits. */
const char *mimus__recording_fingerprint(const mimus__recording *recording);

#endif
