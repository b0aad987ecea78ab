/* mimus_import: files of any format become one .rec. What a reader finds gathers in a chunk, the
 * chunk is audited, and what may stay goes on into the file: memory does not grow with the files.
 */
#include "alloc.h"
#include "audit.h"
#include "file.h"
#include "filter.h"
#include "sink.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

typedef struct importer {
    mimus__chunk_sink base; /* what readers fill; at the front, for put_chunk to find us */
    mimus__file_sink file;  /* what is left of it */
    mimus__filter *filter;  /* NULL: everything is taken */
    mimus_illegal illegal;
    mimus__auditor *auditor; /* NULL before the first samples */
    uint32_t *drop;          /* of one block */
    size_t drop_capacity;
    uint16_t *labels; /* (H) */
    uint64_t rows;    /* judged so far */
    json_t *sources;  /* becomes metadata */
    json_t *losses;
} importer;

/* ----------------------------------------------------------------- samples */

/* The auditor and the file begin with the first samples: the schema is known by then. */
static mimus_status begin_output(importer *imp) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = imp->base.schema;
    if (imp->auditor != NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&imp->labels, schema->heads, sizeof *imp->labels));
    MIMUS_TRY(mimus__sink_begin(&imp->file.base.sink, schema));
    MIMUS_TRY(mimus__auditor_new(&imp->auditor, schema, imp->illegal));
out:
    return status;
}

static bool bit(const uint32_t *words, uint32_t i) {
    return (words[i / 32] >> (i % 32) & 1) != 0;
}

/* A dropped sample that began an episode leaves that to the next one. */
static mimus_status write_sample(importer *imp, const mimus__block *block, uint32_t i) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = imp->base.schema;
    const uint32_t *mask = block->masks;
    if (bit(block->starts, i))
        MIMUS_TRY(mimus__sink_end_episode(&imp->file.base.sink));
    if (bit(imp->drop, i))
        goto out;
    if (mask != NULL)
        mask += (size_t)i * block->mask_words;
    for (uint32_t h = 0, first = 0; h < schema->heads; h++) {
        imp->labels[h] = mimus__audit_label(block, schema, i, h, first);
        first += schema->head[h].actions;
    }
    MIMUS_TRY(mimus__chunk_sink_append_packed(
        &imp->file.base, block->senses + (size_t)i * schema->senses, imp->labels, mask,
        block->weights != NULL ? block->weights[i] : 1.0F));
out:
    return status;
}

static mimus_status take_block(importer *imp, const mimus__block *block) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(begin_output(imp));
    MIMUS_TRY(
        mimus__grow(&imp->drop, &imp->drop_capacity, block->samples / 32 + 1, sizeof *imp->drop));
    mimus__auditor_add(imp->auditor, block, imp->drop);
    imp->rows += block->samples;
    /* once the import is lost, the rest is read for the message alone */
    if (imp->illegal == MIMUS_ILLEGAL_ERROR && mimus__auditor_result(imp->auditor)->faulty > 0)
        goto out;
    for (uint32_t i = 0; i < block->samples; i++)
        MIMUS_TRY(write_sample(imp, block, i));
out:
    return status;
}

static mimus_status put_chunk(mimus__chunk_sink *base) {
    mimus_status status = MIMUS_OK;
    importer *imp = (importer *)base;
    mimus__block block;
    mimus__chunk_seal(&base->chunk, imp->rows);
    mimus__chunk_block(&block, base->schema, base->chunk.bytes + sizeof(mimus__record),
                       base->chunk.samples, imp->rows);
    MIMUS_TRY(take_block(imp, &block));
    mimus__chunk_reset(&base->chunk);
out:
    return status;
}

/* ------------------------------------------------------------------- files */

static mimus_status note_source(importer *imp, const char *path, const json_t *metadata) {
    mimus_status status = MIMUS_OK;
    json_t *source = json_object();
    MIMUS_TRY(mimus__json_set(source, "file", mimus__json_lossy_string(path)));
    if (json_object_size(metadata) > 0)
        MIMUS_TRY(mimus__json_set(source, "metadata", json_deep_copy(metadata)));
    MIMUS_TRY(mimus__json_append(imp->sources, json_incref(source)));
out:
    json_decref(source);
    return status;
}

/* A block of a .rec file as it lies there, or in parts. */
static mimus_status pass_block(importer *imp, mimus__block *block) {
    if (imp->filter != NULL)
        return mimus__filter_block(imp->filter, block);
    block->first = imp->rows;
    return take_block(imp, block);
}

/* What gathered in the chunk goes its way: what follows may not come by this one. */
static mimus_status flush(importer *imp) {
    return imp->base.schema != NULL && imp->base.chunk.samples > 0 ? put_chunk(&imp->base)
                                                                   : MIMUS_OK;
}

static mimus_status read_rec(importer *imp, const mimus_source *one, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__recording *recording = NULL;
    MIMUS_TRY(mimus__recording_open(&recording, one, watch));
    status = mimus__sink_begin(mimus__filter_sink(imp->filter, &imp->base),
                               mimus__recording_schema(recording));
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", one->paths[0]);
        goto out;
    }
    mimus__phase phase = mimus__phase_begin(watch, "import", mimus__recording_samples(recording));
    const size_t blocks = mimus__recording_blocks(recording);
    for (size_t b = 0; b < blocks && !mimus__filter_is_full(imp->filter); b++) {
        mimus__block block;
        MIMUS_TRY(mimus__recording_block(recording, b, &block));
        uint64_t done = block.first + block.samples;
        MIMUS_TRY(pass_block(imp, &block));
        mimus__recording_leave(recording, b);
        MIMUS_TRY(mimus__phase_step(&phase, done));
    }
    MIMUS_TRY(flush(imp));
    MIMUS_TRY(
        note_source(imp, one->paths[0], json_array_get(mimus__recording_metadata(recording), 0)));
    if (json_array_extend(imp->losses, (json_t *)mimus__recording_losses(recording)) != 0)
        status = mimus__fail(MIMUS_ERR_MEMORY, "cannot append to a JSON array");
out:
    mimus__recording_free(recording);
    return status;
}

static mimus_status read_foreign(importer *imp, const mimus_source *one, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__filter_settle(
        imp->filter,
        mimus__sink_read(mimus__filter_sink(imp->filter, &imp->base), one->paths[0], one, watch)));
    MIMUS_TRY(flush(imp));
    MIMUS_TRY(note_source(imp, one->paths[0], NULL));
out:
    return status;
}

static mimus_status read_file(importer *imp, const mimus_source *source, size_t index,
                              const mimus_watch *watch) {
    const mimus_source one = {.paths = &source->paths[index],
                              .count = 1,
                              .format = source->format,
                              .options = source->options};
    if (mimus__filter_is_full(imp->filter))
        return MIMUS_OK;
    return mimus__recording_is_rec(one.paths[0], one.format) ? read_rec(imp, &one, watch)
                                                             : read_foreign(imp, &one, watch);
}

/* ---------------------------------------------------------------- progress */

/* Readers report that they load; here they import. The user is the caller's watch. */
static void report_import(void *user, const mimus_progress *progress) {
    const mimus_watch *watch = user;
    mimus_progress renamed = *progress;
    if (strcmp(renamed.phase, "load") == 0)
        renamed.phase = "import";
    watch->on_progress(watch->user, &renamed);
}

static void pass_message(void *user, const char *text) {
    const mimus_watch *watch = user;
    watch->on_message(watch->user, text);
}

static bool ask_to_stop(void *user) {
    const mimus_watch *watch = user;
    return watch->should_stop(watch->user);
}

static mimus_watch rename_phases(const mimus_watch *watch) {
    mimus_watch renamed = {.user = (void *)watch};
    if (watch == NULL)
        return renamed;
    renamed.on_progress = watch->on_progress != NULL ? report_import : NULL;
    renamed.on_message = watch->on_message != NULL ? pass_message : NULL;
    renamed.should_stop = watch->should_stop != NULL ? ask_to_stop : NULL;
    return renamed;
}

/* ------------------------------------------------------------------- whole */

static mimus_status commit(importer *imp) {
    mimus_status status = MIMUS_OK;
    json_t *metadata = json_object();
    const mimus__audit *audit = NULL;
    if (imp->auditor == NULL) {
        status = mimus__fail(MIMUS_ERR_DATA, "nothing to import: the files hold no samples");
        goto out;
    }
    audit = mimus__auditor_result(imp->auditor);
    if (imp->illegal == MIMUS_ILLEGAL_ERROR)
        MIMUS_TRY(mimus__audit_refuse(audit, imp->base.schema));
    if (audit->dropped == audit->samples) {
        status = mimus__fail(MIMUS_ERR_DATA, "nothing to import: all %llu samples would be dropped",
                             (unsigned long long)audit->samples);
        goto out;
    }
    MIMUS_TRY(mimus__json_set(metadata, "sources", json_incref(imp->sources)));
    MIMUS_TRY(mimus__file_sink_commit(&imp->file, metadata));
out:
    json_decref(metadata);
    return status;
}

static mimus_status make_report(char **report, importer *imp) {
    mimus_status status = MIMUS_OK;
    const mimus__audit *audit = mimus__auditor_result(imp->auditor);
    const mimus__writer *writer = &imp->file.writer;
    json_t *json = json_object(), *schema = NULL, *faults = NULL;
    MIMUS_TRY(mimus__schema_to_json(&schema, imp->base.schema));
    MIMUS_TRY(mimus__audit_to_json(&faults, audit, imp->base.schema));
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)writer->samples)));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_integer((json_int_t)writer->episodes)));
    MIMUS_TRY(mimus__json_set(json, "dropped", json_integer((json_int_t)audit->dropped)));
    MIMUS_TRY(mimus__json_set(json, "schema", json_incref(schema)));
    MIMUS_TRY(mimus__json_set(json, "faults", json_incref(faults)));
    MIMUS_TRY(mimus__json_set(json, "losses", json_incref(imp->losses)));
    MIMUS_TRY(mimus__json_text(report, json, JSON_INDENT(2)));
out:
    json_decref(schema);
    json_decref(faults);
    json_decref(json);
    return status;
}

static void clear(importer *imp) {
    mimus__filter_free(imp->filter);
    mimus__chunk_sink_clear(&imp->base);
    mimus__file_sink_clear(&imp->file);
    mimus__auditor_free(imp->auditor);
    free(imp->drop);
    free(imp->labels);
    json_decref(imp->sources);
    json_decref(imp->losses);
}

/* It would be gone, with all that the import leaves out. */
static mimus_status keep_sources(const mimus_source *source, const char *out_path) {
    for (size_t i = 0; i < source->count; i++) {
        if (mimus__file_is_same(source->paths[i], out_path))
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "%s: is read by this import, which would replace it; give the "
                               "output another name",
                               out_path);
    }
    return MIMUS_OK;
}

mimus_status mimus_import(const mimus_source *source, const char *out_path,
                          const mimus_watch *watch, char **report) {
    mimus_status status = MIMUS_OK;
    importer imp = {.illegal = source->illegal, .sources = json_array(), .losses = json_array()};
    const mimus_watch renamed = rename_phases(watch);
    if (report != NULL)
        *report = NULL;
    mimus__chunk_sink_init(&imp.base, put_chunk);
    if (source->count == 0)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT, "no file to import is named"));
    MIMUS_TRY(keep_sources(source, out_path));
    MIMUS_TRY(mimus__file_sink_open(&imp.file, out_path));
    MIMUS_TRY(mimus__chunk_sink_prepare(&imp.base, source, NULL, &renamed));
    MIMUS_TRY(mimus__filter_new(&imp.filter, source, &imp.base));
    for (size_t i = 0; i < source->count; i++)
        MIMUS_TRY(read_file(&imp, source, i, &renamed));
    MIMUS_TRY(mimus__filter_finish(imp.filter, watch));
    MIMUS_TRY(commit(&imp));
    if (report != NULL)
        MIMUS_TRY(make_report(report, &imp));
out:
    clear(&imp);
    return status;
}
