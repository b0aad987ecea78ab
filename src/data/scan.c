#include "scan.h"

#include "alloc.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* What is being scanned. */
typedef struct file {
    const uint8_t *bytes;
    uint64_t size;
    const char *path;
} file;

enum { HEADER = sizeof(mimus__record) };

/* Bytes behind the record header at `offset`. */
static uint64_t room(const file *f, uint64_t offset) {
    return f->size - offset - HEADER;
}

static mimus_status bad_chunk(const char *path, size_t index, uint64_t offset, const char *what) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: chunk %zu at byte %llu: %s", path, index,
                       (unsigned long long)offset, what);
}

static mimus_status check_flags(const file *f, const mimus__record *record, uint64_t offset) {
    if (record->flags == 0)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: the record at byte %llu has flags 0x%x, which this version of mimus "
                       "does not know",
                       f->path, (unsigned long long)offset, record->flags);
}

/* ------------------------------------------------------------- file header */

static mimus_status check_file_record(const file *f, const mimus__record *record,
                                      mimus__record_kind kind) {
    if (kind != MIMUS__RECORD_FILE)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: the file header is damaged", f->path);
    if (record->count != MIMUS__REC_VERSION)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: version %u of the format, expected %d",
                           f->path, record->count, MIMUS__REC_VERSION);
    if (record->bytes % MIMUS__REC_ALIGN != 0 || record->bytes > MIMUS__REC_JSON_LIMIT)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: a schema of %llu bytes", f->path,
                           (unsigned long long)record->bytes);
    if (record->bytes > room(f, 0))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: ends inside its schema: %llu bytes, not %llu",
                           f->path, (unsigned long long)room(f, 0),
                           (unsigned long long)record->bytes);
    if (!mimus__record_payload_good(record, f->bytes + HEADER))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: the schema is damaged", f->path);
    return check_flags(f, record, 0);
}

static mimus_status read_file_record(mimus__scan *scan, const file *f) {
    mimus_status status = MIMUS_OK;
    mimus__record record;
    json_t *json = NULL;
    char *where = NULL;
    if (!mimus__record_is_file(f->bytes, f->size < HEADER ? (size_t)f->size : HEADER))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: not a .rec file", f->path);
    if (f->size < HEADER)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: ends inside its header: %llu bytes, not %d",
                           f->path, (unsigned long long)f->size, HEADER);
    mimus__record_kind kind = mimus__record_read(&record, f->bytes);
    MIMUS_TRY(check_file_record(f, &record, kind));
    MIMUS_TRY(mimus__text_format(&where, "%s: schema", f->path));
    MIMUS_TRY(mimus__json_parse(&json, (const char *)f->bytes + HEADER, record.bytes, where));
    MIMUS_TRY(mimus__schema_from_json(&scan->schema, json, where));
    scan->end = HEADER + record.bytes;
out:
    json_decref(json);
    free(where);
    return status;
}

/* ------------------------------------------------------------------ chunks */

static mimus_status check_chunk(const mimus__scan *scan, const file *f,
                                const mimus__record *record) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(check_flags(f, record, scan->end));
    if (record->count < 1 || record->count > MIMUS__CHUNK_SAMPLES)
        return bad_chunk(f->path, scan->chunks, scan->end, "not 1 to 65536 samples");
    if (record->bytes != mimus__chunk_columns(scan->schema, record->count).bytes)
        return bad_chunk(f->path, scan->chunks, scan->end, "its size does not fit the schema");
    if (record->first != scan->samples)
        return bad_chunk(f->path, scan->chunks, scan->end, "samples are missing before it");
    if (record->episodes > record->count)
        return bad_chunk(f->path, scan->chunks, scan->end, "more episodes than samples");
out:
    return status;
}

static mimus_status keep_chunk(mimus__scan *scan, const mimus__record *record) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__grow(&scan->chunk, &scan->capacity, scan->chunks + 1, sizeof *scan->chunk));
    scan->chunk[scan->chunks++] = (mimus__scan_chunk){scan->end, *record};
    scan->samples += record->count;
    scan->episodes += record->episodes;
    scan->end += HEADER + record->bytes;
out:
    return status;
}

static void drop_chunk(mimus__scan *scan) {
    const mimus__scan_chunk *last = &scan->chunk[--scan->chunks];
    scan->samples -= last->record.count;
    scan->episodes -= last->record.episodes;
    scan->end = last->offset;
}

/* Whether a whole record header lies anywhere behind the damage at scan->end. */
static bool record_behind(const mimus__scan *scan, const file *f) {
    mimus__record record;
    for (uint64_t at = scan->end; at + HEADER <= f->size; at += MIMUS__REC_ALIGN) {
        if (mimus__record_read(&record, f->bytes + at) >= MIMUS__RECORD_CHUNK)
            return true;
    }
    return false;
}

/* ----------------------------------------------------------- closing record */

/* A closing record that does not hold, or that has more behind it, was written by nobody. */
static mimus_status read_closing(mimus__scan *scan, const file *f, const mimus__record *record) {
    mimus_status status = MIMUS_OK;
    const uint8_t *payload = f->bytes + scan->end + HEADER;
    json_t *json = NULL, *metadata;
    char *where = NULL;
    uint64_t samples = 0, episodes = 0;
    MIMUS_TRY(check_flags(f, record, scan->end));
    MIMUS_TRY(mimus__text_format(&where, "%s: closing record", f->path));
    if (record->bytes != room(f, scan->end)) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: %llu bytes behind it", where,
                             (unsigned long long)(room(f, scan->end) - record->bytes));
        goto out;
    }
    MIMUS_TRY(mimus__json_parse(&json, (const char *)payload, record->bytes, where));
    MIMUS_TRY(mimus__json_get_u64(json, "samples", where, &samples));
    MIMUS_TRY(mimus__json_get_u64(json, "episodes", where, &episodes));
    metadata = json_object_get(json, "metadata");
    if (samples != scan->samples || samples != record->first || episodes != scan->episodes) {
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s: %llu samples in %llu episodes, but the chunks hold %llu in %llu",
                             where, (unsigned long long)samples, (unsigned long long)episodes,
                             (unsigned long long)scan->samples, (unsigned long long)scan->episodes);
        goto out;
    }
    if (!json_is_object(metadata)) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: \"metadata\" should be an object", where);
        goto out;
    }
    scan->metadata = json_incref(metadata);
out:
    json_decref(json);
    free(where);
    return status;
}

/* Whether the closing record is all there; if not, closing was cut short. */
static bool closing_whole(const mimus__scan *scan, const file *f, const mimus__record *record) {
    return record->bytes <= MIMUS__REC_JSON_LIMIT && record->bytes <= room(f, scan->end) &&
           mimus__record_payload_good(record, f->bytes + scan->end + HEADER);
}

/* ------------------------------------------------------------------- whole */

/* The file was not closed: the last chunks may be on the disk in name only. */
static void drop_damaged_tail(mimus__scan *scan, const file *f) {
    while (scan->chunks > 0) {
        const mimus__scan_chunk *last = &scan->chunk[scan->chunks - 1];
        if (mimus__record_payload_good(&last->record, f->bytes + last->offset + HEADER))
            break;
        drop_chunk(scan);
    }
    scan->lost = f->size - scan->end;
}

mimus_status mimus__scan_run(mimus__scan *out, const uint8_t *bytes, size_t size,
                             const char *path) {
    mimus_status status = MIMUS_OK;
    const file f = {bytes, size, path};
    *out = (mimus__scan){0};
    MIMUS_TRY(read_file_record(out, &f));
    while (f.size - out->end >= HEADER) {
        mimus__record record;
        mimus__record_kind kind = mimus__record_read(&record, bytes + out->end);
        if (kind == MIMUS__RECORD_CLOSING && closing_whole(out, &f, &record)) {
            status = read_closing(out, &f, &record);
            goto out;
        }
        if (kind != MIMUS__RECORD_CHUNK) {
            if (kind == MIMUS__RECORD_NONE && record_behind(out, &f)) {
                status = bad_chunk(path, out->chunks, out->end, "its header is damaged");
                goto out;
            }
            break;
        }
        MIMUS_TRY(check_chunk(out, &f, &record));
        if (record.bytes > room(&f, out->end))
            break;
        MIMUS_TRY(keep_chunk(out, &record));
    }
    drop_damaged_tail(out, &f);
out:
    return status;
}

void mimus__scan_clear(mimus__scan *scan) {
    mimus__schema_free(scan->schema);
    free(scan->chunk);
    json_decref(scan->metadata);
    *scan = (mimus__scan){0};
}

mimus_status mimus__scan_verify(const mimus_schema *schema, const mimus__record *record,
                                const uint8_t *payload, const char *path, size_t index,
                                uint64_t offset) {
    mimus__block block;
    uint32_t episodes = 0;
    if (!mimus__record_payload_good(record, payload))
        return bad_chunk(path, index, offset, "damaged (its checksum does not agree)");
    mimus__chunk_block(&block, schema, payload, record->count, record->first);
    const uint32_t words = (record->count + 31) / 32;
    const uint32_t last_bits = record->count - (words - 1) * 32; /* 1 to 32 */
    for (uint32_t w = 0; w < words; w++)
        episodes += (uint32_t)__builtin_popcount(block.starts[w]);
    if (episodes != record->episodes)
        return bad_chunk(path, index, offset, "its episodes are miscounted");
    if (block.starts[words - 1] & ~(UINT32_MAX >> (32 - last_bits)))
        return bad_chunk(path, index, offset, "an episode begins behind its last sample");
    if (record->first == 0 && (block.starts[0] & 1) == 0)
        return bad_chunk(path, index, offset, "the first sample does not begin an episode");
    return MIMUS_OK;
}
