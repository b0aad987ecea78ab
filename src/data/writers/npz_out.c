/* A member is written from a walk through the whole recording, a row at a time, when libzip asks
 * for its bytes: that is as many walks as there are arrays, and no more memory than a row. */
#include "npz_out.h"

#include "alloc.h"
#include "file.h"
#include "npy.h"
#include "text.h"
#include "walk.h"
#include "watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* ------------------------------------------------------------------- rows */

typedef enum array_id { OBS, ACTIONS, MASKS, STARTS, WEIGHTS, ARRAYS } array_id;

static const struct {
    const char *name, *descr;
} arrays[ARRAYS] = {
    [OBS] = {"obs.npy", "<f4"},
    [ACTIONS] = {"actions.npy", "<i8"},
    [MASKS] = {"action_masks.npy", "|b1"},
    [STARTS] = {"episode_starts.npy", "|b1"},
    [WEIGHTS] = {"weights.npy", "<f4"},
};

typedef struct archive archive;

/* An array that is being written. */
typedef struct member {
    archive *of;
    array_id id;
    mimus__walk walk;
    size_t row_bytes;
    uint8_t *bytes; /* the header, then row after row */
    size_t used, held;
    uint64_t size; /* of all of it */
} member;

struct archive {
    const mimus__recording *recording;
    const mimus__rows *rows;
    mimus_status status; /* the first failure of ours, whatever libzip says later */
    mimus__phase phase;
    uint64_t walked; /* samples of the arrays that are done */
    mimus__file_writer file;
    zip_error_t error; /* of the file */
    member member[ARRAYS];
};

static size_t width_of(array_id id, const mimus_schema *schema) {
    switch (id) {
    case OBS:
        return schema->senses;
    case ACTIONS:
        return schema->heads;
    case MASKS:
        return schema->masks ? mimus__schema_actions(schema) : 0;
    case WEIGHTS:
        return schema->weights;
    default:
        return 1;
    }
}

static void encode(const member *m) {
    switch (m->id) {
    case OBS: /* this house is little-endian */
        memcpy(m->bytes, mimus__walk_senses(&m->walk), m->row_bytes);
        break;
    case ACTIONS:
        mimus__walk_labels(&m->walk, (int64_t *)(void *)m->bytes);
        break;
    case MASKS:
        mimus__walk_legal(&m->walk, m->bytes);
        break;
    case STARTS:
        m->bytes[0] = m->walk.starts;
        break;
    default: {
        float weight = mimus__walk_weight(&m->walk);
        memcpy(m->bytes, &weight, sizeof weight);
    }
    }
}

static void put_header(uint8_t *out, array_id id, uint64_t rows, size_t width) {
    char shape[64];
    if (id == STARTS || id == WEIGHTS)
        snprintf(shape, sizeof shape, "(%llu,)", (unsigned long long)rows);
    else
        snprintf(shape, sizeof shape, "(%llu, %zu)", (unsigned long long)rows, width);
    mimus__npy_write_header(out, arrays[id].descr, shape);
}

static mimus_status member_open(member *m, archive *of, array_id id, size_t width) {
    mimus_status status = MIMUS_OK;
    static const size_t sizes[ARRAYS] = {[OBS] = sizeof(float),
                                         [ACTIONS] = sizeof(int64_t),
                                         [MASKS] = 1,
                                         [STARTS] = 1,
                                         [WEIGHTS] = sizeof(float)};
    *m = (member){.of = of, .id = id, .row_bytes = width * sizes[id]};
    m->size = MIMUS__NPY_WRITTEN + of->rows->samples * m->row_bytes;
    MIMUS_TRY(mimus__alloc(
        &m->bytes, m->row_bytes > MIMUS__NPY_WRITTEN ? m->row_bytes : MIMUS__NPY_WRITTEN, 1));
out:
    return status;
}

static void member_begin(member *m) {
    const archive *of = m->of;
    mimus__walk_begin(&m->walk, of->recording, of->rows);
    put_header(m->bytes, m->id, of->rows->samples,
               m->row_bytes > 0 ? width_of(m->id, m->walk.schema) : 0);
    m->used = 0;
    m->held = MIMUS__NPY_WRITTEN;
}

static mimus_status member_refill(member *m) {
    enum { STEP = 4096 }; /* samples between two looks at the clock */
    mimus_status status = MIMUS_OK;
    archive *of = m->of;
    MIMUS_TRY(mimus__walk_next(&m->walk));
    encode(m);
    m->used = 0;
    m->held = m->row_bytes;
    if (m->walk.done % STEP == 0 || m->walk.done == of->rows->samples)
        MIMUS_TRY(mimus__phase_step(&of->phase, of->walked + m->walk.done));
    if (m->walk.done == of->rows->samples)
        of->walked += m->walk.done;
out:
    return status;
}

static zip_int64_t member_read(member *m, uint8_t *out, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        if (m->used == m->held) {
            if (m->walk.done == m->of->rows->samples)
                break;
            m->of->status = member_refill(m);
            if (m->of->status != MIMUS_OK)
                return -1;
        }
        size_t part = m->held - m->used < bytes - done ? m->held - m->used : bytes - done;
        memcpy(out + done, m->bytes + m->used, part);
        m->used += part;
        done += part;
    }
    return (zip_int64_t)done;
}

/* What libzip asks of a member. */
static zip_int64_t serve_member(void *user, void *data, zip_uint64_t bytes,
                                zip_source_cmd_t command) {
    member *m = user;
    switch (command) {
    case ZIP_SOURCE_OPEN:
        member_begin(m);
        return 0;
    case ZIP_SOURCE_READ:
        return member_read(m, data, (size_t)bytes);
    case ZIP_SOURCE_STAT: {
        zip_stat_t *info = data;
        zip_stat_init(info);
        info->size = m->size; /* so that it knows in time when zip64 is needed */
        info->valid = ZIP_STAT_SIZE;
        return sizeof *info;
    }
    case ZIP_SOURCE_ERROR: {
        static const int error[2] = {ZIP_ER_READ, EIO};
        memcpy(data, error, sizeof error);
        return sizeof error;
    }
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
    default:
        return -1;
    }
}

/* -------------------------------------------------------------------- file */

static zip_int64_t file_failed(archive *a) {
    zip_error_set(&a->error, ZIP_ER_WRITE, errno);
    return -1;
}

static zip_int64_t file_seek(archive *a, void *data, zip_uint64_t bytes) {
    FILE *stream = a->file.stream;
    off_t here = ftello(stream), end = -1;
    if (here >= 0 && fseeko(stream, 0, SEEK_END) == 0)
        end = ftello(stream);
    if (end < 0)
        return file_failed(a);
    zip_int64_t to = zip_source_seek_compute_offset((zip_uint64_t)here, (zip_uint64_t)end, data,
                                                    bytes, &a->error);
    if (to < 0)
        return -1;
    return fseeko(stream, (off_t)to, SEEK_SET) == 0 ? 0 : file_failed(a);
}

/* What libzip asks of the archive's own file, which is new, and gets its name when all is done. */
static zip_int64_t serve_file(void *user, void *data, zip_uint64_t bytes,
                              zip_source_cmd_t command) {
    archive *a = user;
    FILE *stream = a->file.stream;
    switch (command) {
    case ZIP_SOURCE_STAT: {
        zip_stat_t *info = data;
        zip_stat_init(info);
        info->size = 0;
        info->valid = ZIP_STAT_SIZE;
        return sizeof *info;
    }
    case ZIP_SOURCE_WRITE: {
        size_t wrote = fwrite(data, 1, (size_t)bytes, stream);
        return wrote == bytes ? (zip_int64_t)wrote : file_failed(a);
    }
    case ZIP_SOURCE_SEEK_WRITE:
        return file_seek(a, data, bytes);
    case ZIP_SOURCE_TELL_WRITE:
        return ftello(stream);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&a->error, data, bytes);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_READ: /* there is nothing in it yet */
    case ZIP_SOURCE_SEEK:
    case ZIP_SOURCE_TELL:
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_WRITE, ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE,
            ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    default:
        return -1;
    }
}

/* ----------------------------------------------------------------- archive */

static mimus_status zip_failed(const archive *a, const char *reason) {
    return a->status != MIMUS_OK
               ? a->status /* its message stands */
               : mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", a->file.path, reason);
}

static mimus_status add(archive *a, zip_t *zip, const char *name, zip_source_t *source) {
    zip_int64_t index = source != NULL ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(source);
        return zip_failed(a, zip_strerror(zip));
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0)
        return zip_failed(a, zip_strerror(zip));
    return MIMUS_OK;
}

static mimus_status add_schema(archive *a, zip_t *zip) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *text = NULL;
    MIMUS_TRY(mimus__schema_to_json(&json, mimus__recording_schema(a->recording)));
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT));
    zip_source_t *source = zip_source_buffer(zip, text, strlen(text), 1);
    if (source != NULL)
        text = NULL; /* libzip frees it */
    MIMUS_TRY(add(a, zip, "schema.json", source));
out:
    free(text);
    json_decref(json);
    return status;
}

static mimus_status add_arrays(archive *a, zip_t *zip) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(a->recording);
    uint64_t walks = 0;
    for (array_id id = OBS; id < ARRAYS; id++) {
        size_t width = width_of(id, schema);
        if (width == 0)
            continue;
        MIMUS_TRY(member_open(&a->member[id], a, id, width));
        MIMUS_TRY(
            add(a, zip, arrays[id].name, zip_source_function(zip, serve_member, &a->member[id])));
        walks++;
    }
    a->phase.progress.total = walks * a->rows->samples;
out:
    return status;
}

static mimus_status write_zip(archive *a) {
    mimus_status status = MIMUS_OK;
    zip_error_t error;
    zip_t *zip = NULL;
    zip_error_init(&error);
    zip_source_t *source = zip_source_function_create(serve_file, a, &error);
    if (source != NULL)
        zip = zip_open_from_source(source, ZIP_TRUNCATE, &error);
    if (zip == NULL) {
        zip_source_free(source);
        status = zip_failed(a, zip_error_strerror(&error));
        goto out;
    }
    MIMUS_TRY(add_arrays(a, zip));
    MIMUS_TRY(add_schema(a, zip));
    if (zip_close(zip) != 0) { /* everything is written here */
        status = zip_failed(a, zip_strerror(zip));
        goto out;
    }
    zip = NULL;
out:
    if (zip != NULL)
        zip_discard(zip);
    zip_error_fini(&error);
    return status;
}

mimus_status mimus__npz_out_write(const char *path, const mimus__recording *recording,
                                  const mimus__rows *rows, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    archive a = {.recording = recording, .rows = rows};
    zip_error_init(&a.error);
    MIMUS_TRY(mimus__file_writer_open(&a.file, path));
    a.phase = mimus__phase_begin(watch, "write", 0);
    MIMUS_TRY(write_zip(&a));
    MIMUS_TRY(mimus__file_writer_commit(&a.file));
out:
    for (array_id id = OBS; id < ARRAYS; id++)
        free(a.member[id].bytes);
    mimus__file_writer_abort(&a.file);
    zip_error_fini(&a.error);
    return status;
}
