#include "sink.h"

#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>

/* The sinks of this file put the common part, and in it the reader's, at their front. */
static mimus__chunk_sink *chunks_of(mimus__sink *sink) {
    return (mimus__chunk_sink *)sink;
}

static mimus_status end_episode(mimus__sink *sink) {
    chunks_of(sink)->chunk.begins = true;
    return MIMUS_OK;
}

static mimus_status begin(mimus__sink *sink, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    mimus__chunk_sink *chunks = chunks_of(sink);
    if (chunks->schema != NULL) {
        MIMUS_TRY(
            mimus__schema_match(chunks->schema, "the files before", schema, "this file", true));
        return end_episode(sink);
    }
    MIMUS_TRY(mimus__schema_copy(&chunks->schema, schema));
    mimus__chunk_init(&chunks->chunk, chunks->schema);
out:
    return status;
}

static mimus_status make_room(mimus__chunk_sink *sink) {
    mimus_status status = MIMUS_OK;
    if (mimus__chunk_done(&sink->chunk))
        MIMUS_TRY(sink->put(sink));
    MIMUS_TRY(mimus__chunk_ready(&sink->chunk));
out:
    return status;
}

static mimus_status append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                           const uint8_t *legal, float weight) {
    mimus_status status = MIMUS_OK;
    mimus__chunk_sink *chunks = chunks_of(sink);
    MIMUS_TRY(make_room(chunks));
    mimus__chunk_add(&chunks->chunk, senses, actions, legal, weight);
out:
    return status;
}

mimus_status mimus__chunk_sink_append_packed(mimus__chunk_sink *sink, const float *senses,
                                             const uint16_t *actions, const uint32_t *mask,
                                             float weight) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(make_room(sink));
    mimus__chunk_add_packed(&sink->chunk, senses, actions, mask, weight);
out:
    return status;
}

void mimus__chunk_sink_init(mimus__chunk_sink *sink, mimus_status (*put)(mimus__chunk_sink *sink)) {
    *sink = (mimus__chunk_sink){
        .sink = {.begin = begin, .append = append, .end_episode = end_episode},
        .put = put,
    };
}

void mimus__chunk_sink_clear(mimus__chunk_sink *sink) {
    mimus__bins_free(sink->sink.bins);
    sink->sink.bins = NULL;
    mimus__chunk_clear(&sink->chunk);
    mimus__schema_free(sink->schema);
    sink->schema = NULL;
}

/* ------------------------------------------------------------------ memory */

static mimus_status put_in_memory(mimus__chunk_sink *base) {
    mimus_status status = MIMUS_OK;
    mimus__memory_sink *sink = (mimus__memory_sink *)base;
    MIMUS_TRY(mimus__grow(&sink->chunk, &sink->capacity, sink->chunks + 1, sizeof *sink->chunk));
    mimus__chunk_seal(&base->chunk, sink->samples);
    sink->samples += base->chunk.samples;
    sink->chunk[sink->chunks++] = mimus__chunk_take(&base->chunk);
out:
    return status;
}

void mimus__memory_sink_init(mimus__memory_sink *sink) {
    *sink = (mimus__memory_sink){0};
    mimus__chunk_sink_init(&sink->base, put_in_memory);
}

mimus_status mimus__memory_sink_finish(mimus__memory_sink *sink) {
    return sink->base.chunk.samples > 0 ? put_in_memory(&sink->base) : MIMUS_OK;
}

void mimus__memory_sink_clear(mimus__memory_sink *sink) {
    for (size_t i = 0; sink->chunk != NULL && i < sink->chunks; i++)
        free(sink->chunk[i]);
    free(sink->chunk);
    mimus__chunk_sink_clear(&sink->base);
    *sink = (mimus__memory_sink){0};
}

/* -------------------------------------------------------------------- file */

static mimus_status put_in_file(mimus__chunk_sink *base) {
    mimus_status status = MIMUS_OK;
    mimus__file_sink *sink = (mimus__file_sink *)base;
    if (sink->writer.end == 0) /* the file begins with the schema, known since begin */
        MIMUS_TRY(mimus__writer_begin(&sink->writer, fileno(sink->file.stream), sink->file.path,
                                      base->schema));
    if (base->chunk.samples > 0)
        MIMUS_TRY(mimus__writer_put(&sink->writer, &base->chunk));
out:
    return status;
}

mimus_status mimus__file_sink_open(mimus__file_sink *sink, const char *path) {
    *sink = (mimus__file_sink){0};
    mimus__chunk_sink_init(&sink->base, put_in_file);
    return mimus__file_writer_open(&sink->file, path);
}

mimus_status mimus__file_sink_commit(mimus__file_sink *sink, const json_t *metadata) {
    mimus_status status = MIMUS_OK;
    if (sink->base.schema == NULL)
        return mimus__fail(MIMUS_ERR_DATA, "%s: nothing to write: not even a schema",
                           sink->file.path);
    MIMUS_TRY(put_in_file(&sink->base));
    MIMUS_TRY(mimus__writer_finish(&sink->writer, metadata));
    MIMUS_TRY(mimus__file_writer_commit(&sink->file)); /* syncs */
out:
    return status;
}

void mimus__file_sink_clear(mimus__file_sink *sink) {
    mimus__file_writer_abort(&sink->file);
    mimus__chunk_sink_clear(&sink->base);
    *sink = (mimus__file_sink){0};
}

/* ----------------------------------------------------------------- reading */

static bool has_bins(const mimus_schema *schema) {
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (schema->head[h].bin_edges != NULL)
            return true;
    }
    return false;
}

static mimus_status observe(mimus__bins *bins, const char *path, const mimus_source *source,
                            const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus__reader *reader = NULL;
    char *file = NULL;
    if (mimus__recording_is_rec(path, source->format))
        return MIMUS_OK; /* refuses every option when it is opened */
    MIMUS_TRY(mimus__reader_file(&file, path));
    MIMUS_TRY(mimus__reader_find(&reader, source->format, file));
    MIMUS_TRY(mimus__reader_check(reader, source->options)); /* or it would not know bin */
    if (reader->observe == NULL) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT, "%s: %s files have no continuous actions to bin",
                             path, reader->name);
        goto out;
    }
    MIMUS_TRY(reader->observe(file, source->options, bins, watch));
out:
    free(file);
    return status;
}

mimus_status mimus__chunk_sink_prepare(mimus__chunk_sink *sink, const mimus_source *source,
                                       const mimus_schema *like, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const char *wanted = mimus__reader_option_value(source->options, "bin");
    mimus__bins **bins = &sink->sink.bins;
    sink->sink.like = like;
    if (like != NULL && has_bins(like))
        return mimus__bins_from_schema(bins, like);
    if (wanted == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__bins_new(bins, wanted));
    for (size_t i = 0; i < source->count; i++)
        MIMUS_TRY(observe(*bins, source->paths[i], source, watch));
    MIMUS_TRY(mimus__bins_fit(*bins, watch));
out:
    return status;
}

mimus_status mimus__sink_read(mimus__sink *sink, const char *path, const mimus_source *source,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus__reader *reader = NULL;
    char *file = NULL;
    MIMUS_TRY(mimus__reader_file(&file, path));
    MIMUS_TRY(mimus__reader_find(&reader, source->format, file));
    MIMUS_TRY(mimus__reader_check(reader, source->options));
    status = reader->read(file, source->options, sink, watch);
    if (status == MIMUS_ERR_SCHEMA) /* the sink's word, which does not know the file */
        mimus__fail_prefix(status, "%s", file);
out:
    free(file);
    return status;
}
