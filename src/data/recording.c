#include "recording.h"

#include "alloc.h"
#include "file.h"
#include "filter.h"
#include "scan.h"
#include "sink.h"
#include "text.h"
#include "watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* A file of the recording; one that was read by a reader has no bytes of its own. */
typedef struct file {
    char *path;
    const uint8_t *bytes; /* mapped, or NULL */
    size_t size;
    dev_t device; /* with the inode: what was mapped, whatever the path names by now */
    ino_t inode;
} file;

/* A chunk, wherever it lies. The header is a copy: a mapped file may change under our feet. */
typedef struct entry {
    mimus__record record;
    const uint8_t *payload;
    uint64_t first; /* row in the recording */
    const file *file;
    size_t index; /* in its file */
    atomic_bool verified;
} entry;

struct mimus__recording {
    mimus_schema *schema;
    char *schema_name; /* the file that it is of */
    file *file;        /* (files) */
    size_t files;
    entry *entry; /* (entries) */
    size_t entries;
    size_t entry_capacity;
    uint8_t **memory; /* (memories) chunks that were built in memory */
    size_t memories;
    size_t memory_capacity;
    uint64_t samples;
    uint64_t episodes;
    json_t *metadata;
    json_t *losses;
    char fingerprint[17];
};

/* ------------------------------------------------------------------ common */

/* The first file's schema is the recording's; the others must have the same. */
static mimus_status agree(mimus__recording *recording, const mimus_schema *schema,
                          const char *path) {
    mimus_status status = MIMUS_OK;
    if (recording->schema != NULL)
        return mimus__schema_match(recording->schema, recording->schema_name, schema, path, true);
    MIMUS_TRY(mimus__text_copy(&recording->schema_name, path));
    MIMUS_TRY(mimus__schema_copy(&recording->schema, schema));
out:
    return status;
}

static mimus_status add_entry(mimus__recording *recording, const mimus__record *record,
                              const uint8_t *payload, const file *from, size_t index) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__grow(&recording->entry, &recording->entry_capacity, recording->entries + 1,
                          sizeof *recording->entry));
    entry *added = &recording->entry[recording->entries++];
    added->record = *record;
    added->payload = payload;
    added->first = recording->samples;
    added->file = from;
    added->index = index;
    atomic_init(&added->verified, from == NULL); /* what we built ourselves is right */
    recording->samples += record->count;
    recording->episodes += record->episodes;
out:
    return status;
}

/* ----------------------------------------------------------------- mapping */

static mimus_status report_loss(mimus__recording *recording, const mimus__scan *scan,
                                const char *path, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const char *reason =
        scan->lost > 0 ? "not closed, and its last record is not whole" : "not closed";
    json_t *loss = json_object();
    MIMUS_TRY(mimus__json_set(loss, "file", mimus__json_lossy_string(path)));
    MIMUS_TRY(mimus__json_set(loss, "bytes", json_integer((json_int_t)scan->lost)));
    MIMUS_TRY(mimus__json_set(loss, "reason", json_string(reason)));
    MIMUS_TRY(mimus__json_append(recording->losses, json_incref(loss)));
    mimus__watch_message(watch, "%s: %s: %llu byte%s lost, %llu sample%s there", path, reason,
                         (unsigned long long)scan->lost, scan->lost == 1 ? " is" : "s are",
                         (unsigned long long)scan->samples, scan->samples == 1 ? " is" : "s are");
out:
    json_decref(loss);
    return status;
}

static mimus_status adopt_scan(mimus__recording *recording, const mimus__scan *scan,
                               const file *mapped, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(agree(recording, scan->schema, mapped->path));
    for (size_t i = 0; i < scan->chunks; i++) {
        const mimus__scan_chunk *chunk = &scan->chunk[i];
        MIMUS_TRY(add_entry(recording, &chunk->record,
                            mapped->bytes + chunk->offset + sizeof chunk->record, mapped, i));
    }
    if (scan->metadata == NULL)
        MIMUS_TRY(report_loss(recording, scan, mapped->path, watch));
    MIMUS_TRY(mimus__json_append(
        recording->metadata, scan->metadata != NULL ? json_incref(scan->metadata) : json_object()));
out:
    return status;
}

static mimus_status map_file(file *mapped, int descriptor) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", mapped->path, strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size == 0)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: not a .rec file", mapped->path);
    if ((uintmax_t)info.st_size > SIZE_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: larger than memory addresses", mapped->path);
    const size_t size = (size_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot map: %s", mapped->path, strerror(errno));
    mapped->bytes = bytes;
    mapped->size = size;
    mapped->device = info.st_dev;
    mapped->inode = info.st_ino;
    return MIMUS_OK;
}

static mimus_status open_rec(mimus__recording *recording, file *mapped, int descriptor,
                             const mimus_source *source, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__scan scan = {0};
    if (source->options != NULL && source->options[0] != NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: .rec files have no options, but \"%s\" is given", mapped->path,
                           source->options[0]);
    MIMUS_TRY(map_file(mapped, descriptor));
    MIMUS_TRY(mimus__scan_run(&scan, mapped->bytes, mapped->size, mapped->path));
    MIMUS_TRY(adopt_scan(recording, &scan, mapped, watch));
out:
    mimus__scan_clear(&scan);
    return status;
}

/* ----------------------------------------------------------------- reading */

/* What the readers have put into memory so far becomes entries. */
static mimus_status adopt_memory(mimus__recording *recording, mimus__memory_sink *sink) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__memory_sink_finish(sink));
    MIMUS_TRY(mimus__grow(&recording->memory, &recording->memory_capacity,
                          recording->memories + sink->chunks, sizeof *recording->memory));
    for (size_t i = 0; i < sink->chunks; i++) {
        uint8_t *bytes = sink->chunk[i];
        mimus__record record;
        mimus__record_read(&record, bytes);
        MIMUS_TRY(add_entry(recording, &record, bytes + sizeof record, NULL, i));
        recording->memory[recording->memories++] = bytes;
        sink->chunk[i] = NULL;
    }
    sink->chunks = 0;
out:
    return status;
}

static mimus_status read_foreign(mimus__recording *recording, mimus__memory_sink *sink,
                                 mimus__filter *filter, const char *path,
                                 const mimus_source *source, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__filter_settle(
        filter, mimus__sink_read(mimus__filter_sink(filter, &sink->base), path, source, watch)));
    if (sink->base.schema == NULL) {
        status = mimus__fail(MIMUS_ERR_DATA, "%s: holds no samples", path);
        goto out;
    }
    MIMUS_TRY(agree(recording, sink->base.schema, path));
    MIMUS_TRY(mimus__json_append(recording->metadata, json_object()));
out:
    return status;
}

/* Of a .rec file in parts there is nothing to map: they are copied. */
static mimus_status read_parts(mimus__recording *recording, mimus__memory_sink *sink,
                               mimus__filter *filter, const char *path, const mimus_source *source,
                               const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus_source one = {
        .paths = &path, .count = 1, .format = source->format, .options = source->options};
    mimus__recording *whole = NULL;
    MIMUS_TRY(mimus__recording_open(&whole, &one, watch));
    MIMUS_TRY(mimus__sink_begin(mimus__filter_sink(filter, &sink->base), whole->schema));
    MIMUS_TRY(agree(recording, whole->schema, path));
    mimus__phase phase = mimus__phase_begin(watch, "load", whole->samples);
    for (size_t b = 0; b < whole->entries && !mimus__filter_is_full(filter); b++) {
        mimus__block block;
        MIMUS_TRY(mimus__recording_block(whole, b, &block));
        MIMUS_TRY(mimus__filter_block(filter, &block));
        mimus__recording_leave(whole, b);
        MIMUS_TRY(mimus__phase_step(&phase, block.first + block.samples));
    }
    MIMUS_TRY(
        mimus__json_append(recording->metadata, json_incref(json_array_get(whole->metadata, 0))));
    if (json_array_extend(recording->losses, whole->losses) != 0)
        status = mimus__fail(MIMUS_ERR_MEMORY, "cannot append to a JSON array");
out:
    mimus__recording_free(whole);
    return status;
}

/* ------------------------------------------------------------------- whole */

static bool is_rec(int descriptor, const char *format) {
    uint8_t head[sizeof(mimus__record)];
    if (format != NULL)
        return strcmp(format, "rec") == 0;
    ssize_t got = pread(descriptor, head, sizeof head, 0);
    return got > 0 && mimus__record_is_file(head, (size_t)got);
}

bool mimus__recording_is_rec(const char *path, const char *format) {
    int descriptor;
    if (mimus__file_open(&descriptor, path) != MIMUS_OK)
        return false;
    bool rec = is_rec(descriptor, format);
    close(descriptor);
    return rec;
}

static mimus_status open_file(mimus__recording *recording, mimus__memory_sink *sink,
                              mimus__filter *filter, const char *path, const mimus_source *source,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    file *opened = &recording->file[recording->files++];
    int descriptor = -1;
    MIMUS_TRY(mimus__reader_file(&opened->path, path));
    MIMUS_TRY(mimus__file_open(&descriptor, opened->path));
    if (mimus__filter_is_full(filter)) {
        MIMUS_TRY(mimus__json_append(recording->metadata, json_object()));
    } else if (is_rec(descriptor, source->format) && filter != NULL) {
        MIMUS_TRY(read_parts(recording, sink, filter, path, source, watch));
    } else if (is_rec(descriptor, source->format)) {
        MIMUS_TRY(adopt_memory(recording, sink)); /* rows keep the order of the files */
        MIMUS_TRY(open_rec(recording, opened, descriptor, source, watch));
    } else {
        MIMUS_TRY(read_foreign(recording, sink, filter, path, source, watch));
    }
out:
    if (descriptor >= 0)
        close(descriptor); /* a mapping outlives it */
    return status;
}

/* A chain over the schema and every chunk, in their order. */
static mimus_status take_fingerprint(mimus__recording *recording) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *text = NULL;
    MIMUS_TRY(mimus__schema_to_json(&json, recording->schema));
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT));
    XXH64_hash_t hash = XXH3_64bits(text, strlen(text));
    for (size_t i = 0; i < recording->entries; i++) {
        const mimus__record *record = &recording->entry[i].record;
        const uint64_t link[2] = {record->count, record->checksum};
        hash = XXH3_64bits_withSeed(link, sizeof link, hash);
    }
    snprintf(recording->fingerprint, sizeof recording->fingerprint, "%016llx",
             (unsigned long long)hash);
out:
    free(text);
    json_decref(json);
    return status;
}

static mimus_status new_recording(mimus__recording **out, size_t files) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, 1, sizeof **out));
    MIMUS_TRY(mimus__alloc(&(*out)->file, files, sizeof *(*out)->file));
    (*out)->metadata = json_array();
    (*out)->losses = json_array();
out:
    return status;
}

mimus_status mimus__memory_sink_recording(mimus__recording **out, mimus__memory_sink *sink) {
    mimus_status status = MIMUS_OK;
    mimus__recording *recording = NULL;
    *out = NULL;
    MIMUS_TRY(new_recording(&recording, 0));
    MIMUS_TRY(agree(recording, sink->base.schema, "memory"));
    MIMUS_TRY(adopt_memory(recording, sink));
    MIMUS_TRY(take_fingerprint(recording));
    *out = recording;
    recording = NULL;
out:
    mimus__recording_free(recording);
    return status;
}

mimus_status mimus__recording_open_like(mimus__recording **out, const mimus_source *source,
                                        const mimus_schema *like, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__recording *recording = NULL;
    mimus__memory_sink sink;
    mimus__filter *filter = NULL;
    *out = NULL;
    mimus__memory_sink_init(&sink);
    if (source->count == 0)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "no recording is named");
    MIMUS_TRY(new_recording(&recording, source->count));
    MIMUS_TRY(mimus__chunk_sink_prepare(&sink.base, source, like, watch));
    MIMUS_TRY(mimus__filter_new(&filter, source, &sink.base));
    for (size_t i = 0; i < source->count; i++)
        MIMUS_TRY(open_file(recording, &sink, filter, source->paths[i], source, watch));
    MIMUS_TRY(mimus__filter_finish(filter, watch));
    MIMUS_TRY(adopt_memory(recording, &sink));
    MIMUS_TRY(take_fingerprint(recording));
    *out = recording;
    recording = NULL;
out:
    mimus__filter_free(filter);
    mimus__memory_sink_clear(&sink);
    mimus__recording_free(recording);
    return status;
}

mimus_status mimus__recording_open(mimus__recording **out, const mimus_source *source,
                                   const mimus_watch *watch) {
    return mimus__recording_open_like(out, source, NULL, watch);
}

mimus_status mimus__recording_from_memory(mimus__recording **out, struct mimus__memory_sink *sink,
                                          const char *name) {
    mimus_status status = MIMUS_OK;
    mimus__recording *recording = NULL;
    *out = NULL;
    if (sink->base.schema == NULL || (sink->chunks == 0 && sink->base.chunk.samples == 0))
        return mimus__fail(MIMUS_ERR_DATA, "%s: holds no samples", name);
    MIMUS_TRY(mimus__alloc(&recording, 1, sizeof *recording));
    recording->metadata = json_array();
    recording->losses = json_array();
    MIMUS_TRY(agree(recording, sink->base.schema, name));
    MIMUS_TRY(mimus__json_append(recording->metadata, json_object()));
    MIMUS_TRY(adopt_memory(recording, sink));
    MIMUS_TRY(take_fingerprint(recording));
    *out = recording;
    recording = NULL;
out:
    mimus__recording_free(recording);
    return status;
}

void mimus__recording_free(mimus__recording *recording) {
    if (recording == NULL)
        return;
    for (size_t i = 0; i < recording->files; i++) {
        if (recording->file[i].bytes != NULL)
            munmap((void *)recording->file[i].bytes, recording->file[i].size);
        free(recording->file[i].path);
    }
    for (size_t i = 0; i < recording->memories; i++)
        free(recording->memory[i]);
    free(recording->file);
    free(recording->entry);
    free(recording->memory);
    json_decref(recording->metadata);
    json_decref(recording->losses);
    mimus__schema_free(recording->schema);
    free(recording->schema_name);
    free(recording);
}

const mimus_schema *mimus__recording_schema(const mimus__recording *recording) {
    return recording->schema;
}

uint64_t mimus__recording_samples(const mimus__recording *recording) {
    return recording->samples;
}

uint64_t mimus__recording_episodes(const mimus__recording *recording) {
    return recording->episodes;
}

size_t mimus__recording_blocks(const mimus__recording *recording) {
    return recording->entries;
}

/* Reading a mapped file past its end kills the process: look whether it became shorter. What takes
 * the file's place under its name, or removes the name, leaves the mapping as it is. */
static mimus_status check_length(const file *mapped) {
    struct stat info;
    if (mapped == NULL || stat(mapped->path, &info) != 0 || info.st_dev != mapped->device ||
        info.st_ino != mapped->inode || (uintmax_t)info.st_size >= mapped->size)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_IO, "%s: was cut from %zu to %llu bytes while it was being read",
                       mapped->path, mapped->size, (unsigned long long)info.st_size);
}

mimus_status mimus__recording_block(const mimus__recording *recording, size_t index,
                                    mimus__block *out) {
    mimus_status status = MIMUS_OK;
    assert(index < recording->entries);
    entry *found = &recording->entry[index];
    MIMUS_TRY(check_length(found->file));
    if (!atomic_load_explicit(&found->verified, memory_order_relaxed)) {
        const uint64_t offset =
            (uint64_t)(found->payload - found->file->bytes) - sizeof found->record;
        MIMUS_TRY(mimus__scan_verify(recording->schema, &found->record, found->payload,
                                     found->file->path, found->index, offset));
        atomic_store_explicit(&found->verified, true, memory_order_relaxed);
    }
    mimus__chunk_block(out, recording->schema, found->payload, found->record.count, found->first);
out:
    return status;
}

void mimus__recording_leave(const mimus__recording *recording, size_t index) {
    const entry *left = &recording->entry[index];
    const long page = sysconf(_SC_PAGESIZE);
    assert(index < recording->entries);
    if (left->file == NULL || page <= 0)
        return;
    /* from where its first page begins to where the last that is its own ends */
    uintptr_t begin = (uintptr_t)left->payload, end = begin + (size_t)left->record.bytes;
    begin -= begin % (uintptr_t)page;
    end -= end % (uintptr_t)page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* a wish: fine without */
}

const json_t *mimus__recording_metadata(const mimus__recording *recording) {
    return recording->metadata;
}

const json_t *mimus__recording_losses(const mimus__recording *recording) {
    return recording->losses;
}

const char *mimus__recording_fingerprint(const mimus__recording *recording) {
    return recording->fingerprint;
}
