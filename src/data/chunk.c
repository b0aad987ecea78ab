#include "chunk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* 0x89 and the line ends catch transfers that treat the file as text, as in PNG. */
static const uint8_t magics[][8] = {
    [MIMUS__RECORD_FILE] = {0x89, 'M', 'R', 'E', 'C', '\r', '\n', 0x1A},
    [MIMUS__RECORD_CHUNK] = {'M', 'R', 'E', 'C', 'C', 'H', 'N', 'K'},
    [MIMUS__RECORD_CLOSING] = {'M', 'R', 'E', 'C', 'D', 'O', 'N', 'E'},
};

bool mimus__record_is_file(const uint8_t *bytes, size_t count) {
    return count >= sizeof magics[0] && memcmp(bytes, magics[MIMUS__RECORD_FILE], 8) == 0;
}

static uint64_t header_checksum(const mimus__record *record) {
    return XXH3_64bits(record, offsetof(mimus__record, header_checksum));
}

void mimus__record_seal(mimus__record *record, mimus__record_kind kind, const void *payload) {
    memcpy(record->magic, magics[kind], sizeof record->magic);
    record->checksum = XXH3_64bits(payload, record->bytes);
    record->header_checksum = header_checksum(record);
}

mimus__record_kind mimus__record_read(mimus__record *out, const uint8_t *bytes) {
    memcpy(out, bytes, sizeof *out);
    for (mimus__record_kind kind = MIMUS__RECORD_FILE; kind <= MIMUS__RECORD_CLOSING; kind++) {
        if (memcmp(out->magic, magics[kind], sizeof out->magic) == 0)
            return out->header_checksum == header_checksum(out) ? kind : MIMUS__RECORD_NONE;
    }
    return MIMUS__RECORD_NONE;
}

bool mimus__record_payload_good(const mimus__record *record, const void *payload) {
    return XXH3_64bits(payload, record->bytes) == record->checksum;
}

static uint64_t aligned(uint64_t bytes) {
    return (bytes + MIMUS__REC_ALIGN - 1) / MIMUS__REC_ALIGN * MIMUS__REC_ALIGN;
}

/* Aligned memory for a record, or NULL with the message of a MIMUS_ERR_MEMORY. */
static uint8_t *allocate(uint64_t bytes) {
    uint8_t *record = bytes < SIZE_MAX ? aligned_alloc(MIMUS__REC_ALIGN, (size_t)bytes) : NULL;
    if (record == NULL)
        mimus__fail(MIMUS_ERR_MEMORY, "cannot allocate a record of %llu bytes",
                    (unsigned long long)bytes);
    return record;
}

mimus_status mimus__record_json(uint8_t **out, size_t *bytes, mimus__record_kind kind,
                                mimus__record record, const json_t *json) {
    const size_t length = json_dumpb(json, NULL, 0, 0);
    *out = NULL;
    if (length == 0)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot serialise a JSON value");
    record.bytes = aligned(length + 1);
    if (record.bytes > MIMUS__REC_JSON_LIMIT)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "at most %d bytes of JSON, not %zu",
                           MIMUS__REC_JSON_LIMIT - 1, length);
    *bytes = sizeof record + (size_t)record.bytes;
    *out = allocate(*bytes);
    if (*out == NULL)
        return MIMUS_ERR_MEMORY;
    char *payload = (char *)*out + sizeof record;
    memset(payload, ' ', record.bytes);
    payload[record.bytes - 1] = '\n';
    json_dumpb(json, payload, length, 0);
    mimus__record_seal(&record, kind, payload);
    memcpy(*out, &record, sizeof record);
    return MIMUS_OK;
}

mimus_status mimus__record_file_header(uint8_t **out, size_t *bytes, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    const mimus__record record = {.count = MIMUS__REC_VERSION};
    json_t *json = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__schema_to_json(&json, schema));
    status = mimus__record_json(out, bytes, MIMUS__RECORD_FILE, record, json);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "the schema");
out:
    json_decref(json);
    return status;
}

mimus__columns mimus__chunk_columns(const mimus_schema *schema, uint32_t samples) {
    const uint64_t n = samples;
    mimus__columns c = {0};
    c.actions = c.senses + aligned(n * schema->senses * sizeof(float));
    c.masks = c.actions + aligned(n * schema->heads * sizeof(uint16_t));
    c.weights = c.masks + aligned(n * mimus__schema_mask_words(schema) * sizeof(uint32_t));
    c.starts = c.weights + (schema->weights ? aligned(n * sizeof(float)) : 0);
    c.bytes = c.starts + aligned((n + 31) / 32 * sizeof(uint32_t));
    return c;
}

uint32_t mimus__chunk_capacity(const mimus_schema *schema) {
    uint32_t low = 1, high = MIMUS__CHUNK_SAMPLES;
    while (low < high) { /* the most samples that fit */
        uint32_t middle = (low + high + 1) / 2;
        if (mimus__chunk_columns(schema, middle).bytes <= MIMUS__CHUNK_BYTES)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void mimus__chunk_block(mimus__block *out, const mimus_schema *schema, const uint8_t *payload,
                        uint32_t samples, uint64_t first) {
    const mimus__columns c = mimus__chunk_columns(schema, samples);
    *out = (mimus__block){
        .first = first,
        .samples = samples,
        .senses = (const float *)(const void *)(payload + c.senses),
        .actions = (const uint16_t *)(const void *)(payload + c.actions),
        .masks = schema->masks ? (const uint32_t *)(const void *)(payload + c.masks) : NULL,
        .mask_words = mimus__schema_mask_words(schema),
        .weights = schema->weights ? (const float *)(const void *)(payload + c.weights) : NULL,
        .starts = (const uint32_t *)(const void *)(payload + c.starts),
    };
}

void mimus__chunk_init(mimus__chunk *chunk, const mimus_schema *schema) {
    const uint32_t capacity = mimus__chunk_capacity(schema);
    *chunk = (mimus__chunk){
        .schema = schema,
        .columns = mimus__chunk_columns(schema, capacity),
        .capacity = capacity,
        .mask_words = mimus__schema_mask_words(schema),
        .actions = mimus__schema_actions(schema),
        .begins = true,
    };
}

void mimus__chunk_clear(mimus__chunk *chunk) {
    free(chunk->bytes);
    *chunk = (mimus__chunk){0};
}

mimus_status mimus__chunk_ready(mimus__chunk *chunk) {
    if (chunk->bytes == NULL)
        chunk->bytes = allocate(sizeof(mimus__record) + chunk->columns.bytes);
    return chunk->bytes != NULL ? MIMUS_OK : MIMUS_ERR_MEMORY;
}

bool mimus__chunk_done(const mimus__chunk *chunk) {
    return chunk->sealed || chunk->samples == chunk->capacity;
}

static uint8_t *payload_of(const mimus__chunk *chunk) {
    return chunk->bytes + sizeof(mimus__record);
}

/* All columns but the mask, whose place is returned. */
static uint32_t *add(mimus__chunk *chunk, const float *senses, const uint16_t *actions,
                     float weight) {
    assert(chunk->bytes != NULL && !mimus__chunk_done(chunk));
    uint8_t *payload = payload_of(chunk);
    const size_t i = chunk->samples++;
    const size_t sense_bytes = chunk->schema->senses * sizeof *senses;
    const size_t action_bytes = chunk->schema->heads * sizeof *actions;
    if (sense_bytes > 0) /* else there may be no pointer either */
        memcpy(payload + chunk->columns.senses + i * sense_bytes, senses, sense_bytes);
    memcpy(payload + chunk->columns.actions + i * action_bytes, actions, action_bytes);
    if (chunk->schema->weights)
        memcpy(payload + chunk->columns.weights + i * sizeof weight, &weight, sizeof weight);

    uint32_t *starts = (uint32_t *)(void *)(payload + chunk->columns.starts);
    if (i % 32 == 0)
        starts[i / 32] = 0;
    starts[i / 32] |= (uint32_t)chunk->begins << i % 32;
    chunk->episodes += chunk->begins;
    chunk->begins = false;
    return (uint32_t *)(void *)(payload + chunk->columns.masks) + i * chunk->mask_words;
}

static void pack_mask(uint32_t *words, const uint8_t *legal, uint32_t actions) {
    for (uint32_t a = 0; a < actions; a += 32) {
        const uint32_t bits = actions - a < 32 ? actions - a : 32;
        uint32_t word = legal == NULL ? UINT32_MAX >> (32 - bits) : 0;
        for (uint32_t b = 0; legal != NULL && b < bits; b++)
            word |= (uint32_t)(legal[a + b] != 0) << b;
        words[a / 32] = word;
    }
}

void mimus__chunk_add(mimus__chunk *chunk, const float *senses, const uint16_t *actions,
                      const uint8_t *legal, float weight) {
    uint32_t *mask = add(chunk, senses, actions, weight);
    if (chunk->mask_words > 0)
        pack_mask(mask, legal, chunk->actions);
}

void mimus__chunk_add_packed(mimus__chunk *chunk, const float *senses, const uint16_t *actions,
                             const uint32_t *mask, float weight) {
    uint32_t *place = add(chunk, senses, actions, weight);
    if (chunk->mask_words == 0)
        return;
    if (mask != NULL)
        memcpy(place, mask, chunk->mask_words * sizeof *mask);
    else
        pack_mask(place, NULL, chunk->actions);
}

/* Move a column of `bytes` down to where it ends up, and zero what is between it and `next`. */
static void close_up(uint8_t *payload, uint64_t from, uint64_t to, uint64_t bytes, uint64_t next) {
    memmove(payload + to, payload + from, (size_t)bytes);
    memset(payload + to + bytes, 0, (size_t)(next - to - bytes));
}

void mimus__chunk_seal(mimus__chunk *chunk, uint64_t first) {
    assert(chunk->samples > 0);
    if (chunk->sealed)
        return;
    const mimus_schema *schema = chunk->schema;
    const uint64_t n = chunk->samples;
    const mimus__columns from = chunk->columns, to = mimus__chunk_columns(schema, chunk->samples);
    uint8_t *payload = payload_of(chunk);
    close_up(payload, from.senses, to.senses, n * schema->senses * sizeof(float), to.actions);
    close_up(payload, from.actions, to.actions, n * schema->heads * sizeof(uint16_t), to.masks);
    close_up(payload, from.masks, to.masks, n * chunk->mask_words * sizeof(uint32_t), to.weights);
    close_up(payload, from.weights, to.weights, schema->weights ? n * sizeof(float) : 0, to.starts);
    close_up(payload, from.starts, to.starts, (n + 31) / 32 * sizeof(uint32_t), to.bytes);

    mimus__record record = {
        .count = chunk->samples, .bytes = to.bytes, .first = first, .episodes = chunk->episodes};
    mimus__record_seal(&record, MIMUS__RECORD_CHUNK, payload);
    memcpy(chunk->bytes, &record, sizeof record);
    chunk->sealed = true;
}

size_t mimus__chunk_record_bytes(const mimus__chunk *chunk) {
    return sizeof(mimus__record) +
           (size_t)mimus__chunk_columns(chunk->schema, chunk->samples).bytes;
}

void mimus__chunk_reset(mimus__chunk *chunk) {
    chunk->samples = 0;
    chunk->episodes = 0;
    chunk->sealed = false;
}

uint8_t *mimus__chunk_take(mimus__chunk *chunk) {
    uint8_t *bytes = chunk->bytes;
    chunk->bytes = NULL;
    mimus__chunk_reset(chunk);
    return bytes;
}
