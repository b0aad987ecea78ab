#include "alloc.h"
#include "scan.h"
#include "text.h"
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mimus_recorder {
    int descriptor; /* locked as long as it is open */
    char *path;
    mimus_schema *schema;
    mimus__chunk chunk;
    mimus__writer writer;
    json_t *metadata; /* NULL: none */
    bool closed;      /* the file ends in a closing record that still holds */
};

/* ----------------------------------------------------------------- opening */

static mimus_status open_file(mimus_recorder *recorder, mimus_recorder_mode mode) {
    const int exclusive = mode == MIMUS_RECORDER_CREATE ? O_EXCL : 0;
    recorder->descriptor = open(recorder->path, O_RDWR | O_CREAT | O_CLOEXEC | exclusive, 0666);
    if (recorder->descriptor < 0 && errno == EEXIST)
        return mimus__fail(MIMUS_ERR_IO,
                           "%s: cannot record: there is such a file already; add to it with "
                           "MIMUS_RECORDER_APPEND, or choose another name",
                           recorder->path);
    if (recorder->descriptor < 0)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot record: %s", recorder->path, strerror(errno));
    if (flock(recorder->descriptor, LOCK_EX | LOCK_NB) == 0)
        return MIMUS_OK;
    if (errno == EWOULDBLOCK)
        return mimus__fail(MIMUS_ERR_BUSY, "%s: another recorder is writing to it", recorder->path);
    return mimus__fail(MIMUS_ERR_IO, "%s: cannot lock: %s", recorder->path, strerror(errno));
}

/* Whether the file holds a part of the header that it would get, and no more: its recorder was
 * killed at the very beginning. */
static mimus_status is_unborn(bool *out, const mimus_schema *schema, const uint8_t *bytes,
                              size_t size) {
    mimus_status status = MIMUS_OK;
    uint8_t *header = NULL;
    size_t count = 0;
    MIMUS_TRY(mimus__record_file_header(&header, &count, schema));
    *out = size < count && memcmp(bytes, header, size) == 0;
out:
    free(header);
    return status;
}

/* Stand behind the last whole chunk of a file that holds something. */
static mimus_status continue_file(mimus_recorder *recorder, const uint8_t *bytes, size_t size) {
    mimus_status status = MIMUS_OK;
    mimus__scan scan = {0};
    bool unborn = false;
    MIMUS_TRY(is_unborn(&unborn, recorder->schema, bytes, size));
    if (unborn) {
        status = mimus__writer_begin(&recorder->writer, recorder->descriptor, recorder->path,
                                     recorder->schema);
        goto out;
    }
    MIMUS_TRY(mimus__scan_run(&scan, bytes, size, recorder->path));
    MIMUS_TRY(mimus__schema_match(scan.schema, recorder->path, recorder->schema,
                                  "the recorder's schema", true));
    recorder->writer = (mimus__writer){
        .descriptor = recorder->descriptor,
        .path = recorder->path,
        .end = scan.end,
        .samples = scan.samples,
        .episodes = scan.episodes,
        .tail = size > scan.end,
    };
    recorder->closed = scan.metadata != NULL;
    recorder->metadata = json_incref(scan.metadata);
out:
    mimus__scan_clear(&scan);
    return status;
}

static mimus_status begin_or_continue(mimus_recorder *recorder) {
    mimus_status status = MIMUS_OK;
    struct stat info;
    if (fstat(recorder->descriptor, &info) != 0 || !S_ISREG(info.st_mode))
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot record: not a regular file", recorder->path);
    if (info.st_size == 0)
        return mimus__writer_begin(&recorder->writer, recorder->descriptor, recorder->path,
                                   recorder->schema);
    if ((uintmax_t)info.st_size > SIZE_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: larger than memory addresses",
                           recorder->path);
    const size_t size = (size_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, recorder->descriptor, 0);
    if (bytes == MAP_FAILED)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot map: %s", recorder->path, strerror(errno));
    status = continue_file(recorder, bytes, size);
    munmap(bytes, size);
    return status;
}

static void free_recorder(mimus_recorder *recorder) {
    if (recorder->descriptor >= 0)
        close(recorder->descriptor);
    json_decref(recorder->metadata);
    mimus__chunk_clear(&recorder->chunk);
    mimus__schema_free(recorder->schema);
    free(recorder->path);
    free(recorder);
}

mimus_status mimus_recorder_open(mimus_recorder **out, const char *path, const mimus_schema *schema,
                                 mimus_recorder_mode mode) {
    mimus_status status = MIMUS_OK;
    mimus_recorder *recorder = NULL;
    *out = NULL;
    if (path == NULL || schema == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "a recorder needs a path and a schema");
    MIMUS_TRY(mimus__alloc(&recorder, 1, sizeof *recorder));
    recorder->descriptor = -1;
    MIMUS_TRY(mimus__text_copy(&recorder->path, path));
    MIMUS_TRY(mimus__schema_copy(&recorder->schema, schema));
    mimus__chunk_init(&recorder->chunk, recorder->schema);
    MIMUS_TRY(mimus__chunk_ready(&recorder->chunk));
    MIMUS_TRY(open_file(recorder, mode));
    status = begin_or_continue(recorder);
    if (status != MIMUS_OK && mode == MIMUS_RECORDER_CREATE)
        unlink(path); /* it is ours, and a second try would find it in the way */
    if (status == MIMUS_OK) {
        *out = recorder;
        recorder = NULL;
    }
out:
    if (recorder != NULL)
        free_recorder(recorder);
    return status;
}

/* ---------------------------------------------------------------- checking */

/* NaN and infinity are the numbers whose exponent bits are all set: adding one to the exponent
 * then carries into the sign. No branch, so that compilers make vectors of it. */
static bool all_finite(const float *values, size_t count) {
    uint32_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        carry |= (bits & 0x7F800000u) + 0x00800000u;
    }
    return carry >> 31 == 0;
}

static unsigned long long next_sample(const mimus_recorder *recorder) {
    return recorder->writer.samples + recorder->chunk.samples;
}

static mimus_status bad_sense(const mimus_recorder *recorder, const float *senses) {
    const mimus_schema *schema = recorder->schema;
    uint32_t s = 0;
    while (isfinite(senses[s]))
        s++;
    return mimus__fail(MIMUS_ERR_DATA, "sample %llu: sense %u%s%s%s is %g: it must be finite",
                       next_sample(recorder), s, schema->sense_names != NULL ? " (" : "",
                       schema->sense_names != NULL ? schema->sense_names[s] : "",
                       schema->sense_names != NULL ? ")" : "", (double)senses[s]);
}

static mimus_status check_actions(const mimus_recorder *recorder, const uint16_t *actions,
                                  const uint8_t *legal) {
    const mimus_schema *schema = recorder->schema;
    size_t first = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus_head *head = &schema->head[h];
        if (actions[h] != MIMUS_NO_LABEL) {
            if (actions[h] >= head->actions)
                return mimus__fail(MIMUS_ERR_DATA,
                                   "sample %llu: head %u (%s): action %u, and it has %u",
                                   next_sample(recorder), h, head->name, actions[h], head->actions);
            if (legal != NULL && legal[first + actions[h]] == 0)
                return mimus__fail(MIMUS_ERR_DATA,
                                   "sample %llu: head %u (%s): action %u is not legal",
                                   next_sample(recorder), h, head->name, actions[h]);
        }
        first += head->actions;
    }
    return MIMUS_OK;
}

static mimus_status check_sample(const mimus_recorder *recorder, const float *senses,
                                 const uint16_t *actions, const uint8_t *legal, float weight) {
    if ((senses == NULL && recorder->schema->senses > 0) || actions == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "a sample needs senses and actions");
    if (legal != NULL && !recorder->schema->masks)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "a sample with legal actions, and the schema has no masks");
    if (!all_finite(senses, recorder->schema->senses))
        return bad_sense(recorder, senses);
    if (recorder->schema->weights ? !(isfinite(weight) && weight >= 0) : weight != 1)
        return mimus__fail(MIMUS_ERR_DATA, "sample %llu: its weight is %g: it must be %s",
                           next_sample(recorder), (double)weight,
                           recorder->schema->weights ? "0 or more, and finite"
                                                     : "1, as the schema has no weights");
    return check_actions(recorder, actions, legal);
}

/* --------------------------------------------------------------- recording */

static mimus_status put_chunk(mimus_recorder *recorder) {
    if (recorder->chunk.samples == 0)
        return MIMUS_OK;
    recorder->closed = false;
    return mimus__writer_put(&recorder->writer, &recorder->chunk);
}

/* A game that goes on after a failed open must not die of it. */
static mimus_status no_recorder(void) {
    return mimus__fail(MIMUS_ERR_ARGUMENT, "no recorder: mimus_recorder_open did not give one");
}

mimus_status mimus_recorder_append(mimus_recorder *recorder, const float *senses,
                                   const uint16_t *actions, const uint8_t *legal, float weight) {
    mimus_status status = MIMUS_OK;
    if (recorder == NULL)
        return no_recorder();
    MIMUS_TRY(check_sample(recorder, senses, actions, legal, weight));
    /* The full chunk goes before the sample comes: when the disk is full nothing was added, and
     * nothing is lost either if it has room again later. */
    if (mimus__chunk_done(&recorder->chunk))
        MIMUS_TRY(put_chunk(recorder));
    mimus__chunk_add(&recorder->chunk, senses, actions, legal, weight);
out:
    return status;
}

mimus_status mimus_recorder_end_episode(mimus_recorder *recorder) {
    if (recorder == NULL)
        return no_recorder();
    recorder->chunk.begins = true;
    return MIMUS_OK;
}

/* Bytes that the closing record needs around the metadata. */
enum { METADATA_MARGIN = 256 };

mimus_status mimus_recorder_set_metadata(mimus_recorder *recorder, const char *json) {
    mimus_status status = MIMUS_OK;
    json_t *metadata = NULL;
    char *text = NULL;
    if (recorder == NULL)
        return no_recorder();
    if (json == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "metadata: a JSON object is needed");
    MIMUS_TRY(mimus__json_parse(&metadata, json, strlen(json), "metadata"));
    if (!json_is_object(metadata)) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "metadata: a JSON object is needed");
        goto out;
    }
    /* found out now rather than at close, which has the recording to finish */
    MIMUS_TRY(mimus__json_text(&text, metadata, 0));
    if (strlen(text) > MIMUS__REC_JSON_LIMIT - METADATA_MARGIN) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "metadata: at most %d bytes, not %zu",
                             MIMUS__REC_JSON_LIMIT - METADATA_MARGIN, strlen(text));
        goto out;
    }
    json_decref(recorder->metadata);
    recorder->metadata = json_incref(metadata);
    recorder->closed = false;
out:
    free(text);
    json_decref(metadata);
    return status;
}

mimus_status mimus_recorder_flush(mimus_recorder *recorder) {
    mimus_status status = MIMUS_OK;
    if (recorder == NULL)
        return no_recorder();
    MIMUS_TRY(put_chunk(recorder));
    MIMUS_TRY(mimus__writer_sync(&recorder->writer));
out:
    return status;
}

mimus_status mimus_recorder_close(mimus_recorder *recorder) {
    mimus_status status = MIMUS_OK;
    if (recorder == NULL)
        return MIMUS_OK;
    MIMUS_TRY(put_chunk(recorder));
    if (!recorder->closed)
        MIMUS_TRY(mimus__writer_finish(&recorder->writer, recorder->metadata));
    MIMUS_TRY(mimus__writer_sync(&recorder->writer));
out:
    free_recorder(recorder);
    return status;
}
