/* chunk - the byte layout of .rec files (docs/recording.md), and a chunk that samples are packed
 * into. Nothing here judges a sample or touches a file. */
#ifndef MIMUS_DATA_CHUNK_H
#define MIMUS_DATA_CHUNK_H

#include "recording.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "recordings are little-endian and mapped as they are: big-endian machines need a port"
#endif

enum {
    MIMUS__REC_VERSION = 1,
    MIMUS__REC_ALIGN = 64,            /* of records, payloads and columns */
    MIMUS__REC_JSON_LIMIT = 16 << 20, /* bytes of the schema, or of the closing record's JSON */
    MIMUS__CHUNK_BYTES = 1 << 20,     /* payload of a full chunk, unless one sample is larger */
    MIMUS__CHUNK_SAMPLES = 65536,
};

/* What begins every record, as it lies in the file. */
typedef struct mimus__record {
    uint8_t magic[8];
    uint32_t count;    /* file header: the version; chunk: samples; closing record: 0 */
    uint32_t flags;    /* 0: none are defined, and a reader refuses those that it does not know */
    uint64_t bytes;    /* payload, a multiple of 64 */
    uint64_t first;    /* chunk: number of its first sample; closing record: all samples; else 0 */
    uint64_t checksum; /* XXH3-64 of the payload */
    uint32_t episodes; /* chunk: episodes that begin in it; else 0 */
    uint8_t reserved[12];
    uint64_t header_checksum; /* XXH3-64 of the bytes above */
} mimus__record;

_Static_assert(sizeof(mimus__record) == MIMUS__REC_ALIGN, "a record begins with 64 bytes");

typedef enum mimus__record_kind {
    MIMUS__RECORD_NONE, /* no record begins here, or its header is damaged */
    MIMUS__RECORD_FILE,
    MIMUS__RECORD_CHUNK,
    MIMUS__RECORD_CLOSING,
} mimus__record_kind;

/* The first bytes of every .rec file. */
bool mimus__record_is_file(const uint8_t *bytes, size_t count);

/* Fill in magic and checksums; the other members are set and `payload` holds record->bytes. */
void mimus__record_seal(mimus__record *record, mimus__record_kind kind, const void *payload);

/* Read the record header at `bytes` (64 of them). */
mimus__record_kind mimus__record_read(mimus__record *out, const uint8_t *bytes);

bool mimus__record_payload_good(const mimus__record *record, const void *payload);

/* A whole record with a JSON payload (padded with spaces, ended by a newline) in `*out`, free with
 * free(): the file header and the closing record. MIMUS_ERR_ARGUMENT above the limit. */
mimus_status mimus__record_json(uint8_t **out, size_t *bytes, mimus__record_kind kind,
                                mimus__record record, const json_t *json);

/* The record that begins a file of that schema. */
mimus_status mimus__record_file_header(uint8_t **out, size_t *bytes, const mimus_schema *schema);

/* Byte offsets of the columns in a payload of n samples; masks and weights have no bytes when the
 * schema has none. */
typedef struct mimus__columns {
    uint64_t senses, actions, masks, weights, starts;
    uint64_t bytes; /* of the payload */
} mimus__columns;

mimus__columns mimus__chunk_columns(const mimus_schema *schema, uint32_t samples);

/* Samples in a full chunk: 1 to 65,536. */
uint32_t mimus__chunk_capacity(const mimus_schema *schema);

/* The columns of a payload; `payload` is aligned to 64 bytes and stays the caller's. */
void mimus__chunk_block(mimus__block *out, const mimus_schema *schema, const uint8_t *payload,
                        uint32_t samples, uint64_t first);

/* A chunk under way. Its buffer is a whole record: once sealed it is written, or kept, as it is. */
typedef struct mimus__chunk {
    const mimus_schema *schema; /* borrowed */
    uint8_t *bytes;             /* header and payload, aligned to 64; or NULL: none yet */
    mimus__columns columns;     /* of a full chunk: samples are packed there until sealed */
    uint32_t capacity;
    uint32_t mask_words;
    uint32_t actions; /* A */
    uint32_t samples;
    uint32_t episodes;
    bool begins; /* the next sample begins an episode */
    bool sealed;
} mimus__chunk;

/* The first sample begins an episode. */
void mimus__chunk_init(mimus__chunk *chunk, const mimus_schema *schema);
void mimus__chunk_clear(mimus__chunk *chunk);

/* Make sure there is a buffer to add to. */
mimus_status mimus__chunk_ready(mimus__chunk *chunk);

/* Whether it must be taken away before another sample can be added: full, or sealed. */
bool mimus__chunk_done(const mimus__chunk *chunk);

/* Add a sample to a chunk that is ready and not done; arguments as in mimus_recorder_append, the
 * mask either as bytes (A) or, for _packed, as words (W). */
void mimus__chunk_add(mimus__chunk *chunk, const float *senses, const uint16_t *actions,
                      const uint8_t *legal, float weight);
void mimus__chunk_add_packed(mimus__chunk *chunk, const float *senses, const uint16_t *actions,
                             const uint32_t *mask, float weight);

/* Close the columns up and fill in the header; `first` is the number of the first sample. Needs at
 * least one sample; sealing again does nothing. */
void mimus__chunk_seal(mimus__chunk *chunk, uint64_t first);
/* Bytes of the sealed record. */
size_t mimus__chunk_record_bytes(const mimus__chunk *chunk);

/* Start over with the same buffer, or hand the buffer over (free with free()). */
void mimus__chunk_reset(mimus__chunk *chunk);
uint8_t *mimus__chunk_take(mimus__chunk *chunk);

#endif
