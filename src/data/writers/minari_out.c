/* Every dataset has the length of its episode from the start, and is filled a bounded piece at a
 * time.
 *
 * Minari has one observation more than actions. A recording does not know what was seen after the
 * last action: the last observation stands there once more, and its mask. */
#include "minari_out.h"

#include "alloc.h"
#include "apart.h"
#include "file.h"
#include "h5_file.h"
#include "text.h"
#include "walk.h"
#include "watch.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 256 << 10 }; /* of rows that are written at once */

typedef enum set_id { OBS, ACTIONS, MASKS, WEIGHTS, SETS } set_id;

static const char *const set_names[SETS] = {"observations", "actions", "infos/action_masks",
                                            "infos/weights"};

/* A dataset of the present episode, with the rows that are not written yet. */
typedef struct set {
    hid_t id;      /* 0: not open */
    hid_t type;    /* of its elements; 0: the recording has no such data */
    hsize_t width; /* 0: (T,) */
    size_t row_bytes;
    uint8_t *rows; /* (band, row_bytes) */
    size_t band, held;
    hsize_t written;
} set;

typedef struct output {
    const char *path;
    const mimus_schema *schema;
    mimus__h5_quiet quiet;
    mimus__file_writer file;
    hid_t id;
    hid_t links;   /* makes the groups on the way */
    hid_t boolean; /* as h5py has it: an enumeration over int8 */
    set set[SETS];
    mimus__walk walk;
    mimus__phase phase;
    uint64_t episodes; /* written so far */
} output;

/* libhdf5's word on a failed write hides the system's. */
static mimus_status failed(const output *out) {
    int error = errno;
    if (error == ENOSPC || error == EFBIG || error == EDQUOT || error == EIO)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", out->path, strerror(error));
    mimus__h5_fail("%s: cannot write", out->path);
    return mimus__fail(MIMUS_ERR_IO, "%s", mimus_last_error());
}

/* -------------------------------------------------------------------- sets */

static mimus_status set_create(output *out, set *s, const char *path, hsize_t rows,
                               hid_t creation) {
    const hsize_t shape[2] = {rows, s->width};
    hid_t space = H5Screate_simple(s->width > 0 ? 2 : 1, shape, NULL);
    s->id = H5Dcreate2(out->id, path, s->type, space, out->links, creation, H5P_DEFAULT);
    s->written = 0;
    mimus_status status = s->id > 0 ? MIMUS_OK : failed(out); /* before the reason is forgotten */
    s->id = s->id > 0 ? s->id : 0;
    H5Sclose(space);
    return status;
}

static mimus_status set_flush(output *out, set *s) {
    mimus_status status = MIMUS_OK;
    const int dimensions = s->width > 0 ? 2 : 1;
    const hsize_t start[2] = {s->written, 0}, count[2] = {s->held, s->width};
    if (s->held == 0)
        return MIMUS_OK;
    hid_t space = H5Dget_space(s->id), memory = H5Screate_simple(dimensions, count, NULL);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dwrite(s->id, s->type, memory, space, H5P_DEFAULT, s->rows) < 0)
        status = failed(out);
    H5Sclose(space);
    H5Sclose(memory);
    s->written += s->held;
    s->held = 0;
    return status;
}

/* Where the next row goes. */
static mimus_status set_row(output *out, set *s, uint8_t **row) {
    mimus_status status = MIMUS_OK;
    if (s->held == s->band)
        MIMUS_TRY(set_flush(out, s));
    *row = s->rows + s->held++ * s->row_bytes;
out:
    return status;
}

static mimus_status set_close(output *out, set *s) {
    mimus_status status = MIMUS_OK;
    if (s->id == 0)
        return MIMUS_OK;
    MIMUS_TRY(set_flush(out, s));
    hid_t id = s->id;
    s->id = 0;
    if (H5Dclose(id) < 0)
        status = failed(out);
out:
    return status;
}

static mimus_status set_init(set *s, hid_t type, hsize_t width) {
    mimus_status status = MIMUS_OK;
    s->type = type;
    s->width = width;
    s->row_bytes = H5Tget_size(type) * (size_t)(width > 0 ? width : 1);
    s->band = BUFFER_BYTES / s->row_bytes > 0 ? BUFFER_BYTES / s->row_bytes : 1;
    MIMUS_TRY(mimus__alloc(&s->rows, s->band, s->row_bytes));
out:
    return status;
}

/* One head is Minari's Discrete, whose actions are (T,); more are its MultiDiscrete, (T, H). */
static mimus_status init_sets(output *out) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = out->schema;
    MIMUS_TRY(set_init(&out->set[OBS], H5T_IEEE_F32LE, schema->senses));
    MIMUS_TRY(set_init(&out->set[ACTIONS], H5T_STD_I64LE, schema->heads > 1 ? schema->heads : 0));
    if (schema->masks)
        MIMUS_TRY(set_init(&out->set[MASKS], out->boolean, mimus__schema_actions(schema)));
    if (schema->weights)
        MIMUS_TRY(set_init(&out->set[WEIGHTS], H5T_IEEE_F32LE, 0));
out:
    return status;
}

/* ---------------------------------------------------------------- episodes */

static mimus_status put_number(output *out, const char *object, const char *name, uint64_t value) {
    const int64_t number = (int64_t)value;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate_by_name(out->id, object, name, H5T_STD_I64LE, space, H5P_DEFAULT,
                                        H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &number) >= 0;
    mimus_status status = good ? MIMUS_OK : failed(out);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return status;
}

/* A dataset of zeros; its last element is 1 where `last` says so. */
static mimus_status put_zeros(output *out, const char *group, const char *name, hid_t type,
                              hsize_t rows, bool last) {
    mimus_status status = MIMUS_OK;
    char path[96];
    uint8_t one = 1;
    set zeros = {.type = type, .row_bytes = 1, .rows = &one, .band = 1};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    snprintf(path, sizeof path, "%s/%s", group, name);
    if (H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) < 0)
        MIMUS_TRY(failed(out));
    MIMUS_TRY(set_create(out, &zeros, path, rows, creation));
    zeros.written = rows - 1;
    zeros.held = last;
    MIMUS_TRY(set_close(out, &zeros));
out:
    H5Pclose(creation);
    return status;
}

static mimus_status begin_episode(output *out, const char *group, hsize_t steps) {
    mimus_status status = MIMUS_OK;
    char path[96];
    for (int id = OBS; id < SETS; id++) {
        snprintf(path, sizeof path, "%s/%s", group, set_names[id]);
        if (out->set[id].type > 0)
            MIMUS_TRY(set_create(out, &out->set[id], path, steps + (id != ACTIONS), H5P_DEFAULT));
    }
    MIMUS_TRY(put_zeros(out, group, "rewards", H5T_IEEE_F64LE, steps, false));
    MIMUS_TRY(put_zeros(out, group, "terminations", out->boolean, steps, false));
    MIMUS_TRY(put_zeros(out, group, "truncations", out->boolean, steps, true));
    MIMUS_TRY(put_number(out, group, "id", out->episodes));
    MIMUS_TRY(put_number(out, group, "total_steps", steps));
out:
    return status;
}

static mimus_status put_sample(output *out, bool acted) {
    mimus_status status = MIMUS_OK;
    const mimus__walk *walk = &out->walk;
    uint8_t *row = NULL;
    MIMUS_TRY(set_row(out, &out->set[OBS], &row));
    memcpy(row, mimus__walk_senses(walk), out->set[OBS].row_bytes);
    if (out->set[MASKS].type > 0) {
        MIMUS_TRY(set_row(out, &out->set[MASKS], &row));
        mimus__walk_legal(walk, row);
    }
    if (out->set[WEIGHTS].type > 0) {
        const float weight = mimus__walk_weight(walk);
        MIMUS_TRY(set_row(out, &out->set[WEIGHTS], &row));
        memcpy(row, &weight, sizeof weight);
    }
    if (acted) {
        MIMUS_TRY(set_row(out, &out->set[ACTIONS], &row));
        mimus__walk_labels(walk, (int64_t *)(void *)row);
    }
out:
    return status;
}

static mimus_status put_episode(output *out, uint64_t steps) {
    enum { STEP = 1024 }; /* samples between two looks at the clock */
    mimus_status status = MIMUS_OK;
    char group[48];
    snprintf(group, sizeof group, "/episode_%llu", (unsigned long long)out->episodes);
    MIMUS_TRY(begin_episode(out, group, steps));
    for (uint64_t t = 0; t < steps; t++) {
        MIMUS_TRY(mimus__walk_next(&out->walk));
        MIMUS_TRY(put_sample(out, true));
        if (out->walk.done % STEP == 0)
            MIMUS_TRY(mimus__phase_step(&out->phase, out->walk.done));
    }
    MIMUS_TRY(put_sample(out, false)); /* what was seen last, once more */
    for (int id = OBS; id < SETS; id++)
        MIMUS_TRY(set_close(out, &out->set[id]));
    out->episodes++;
    MIMUS_TRY(mimus__phase_step(&out->phase, out->walk.done));
out:
    return status;
}

static mimus_status put_episodes(output *out) {
    mimus_status status = MIMUS_OK;
    const mimus__rows *rows = out->walk.rows;
    for (size_t i = 0; i < rows->spans;) {
        const uint64_t episode = rows->span[i].episode;
        uint64_t steps = 0;
        for (; i < rows->spans && rows->span[i].episode == episode; i++)
            steps += rows->span[i].count;
        MIMUS_TRY(put_episode(out, steps));
    }
out:
    return status;
}

/* ---------------------------------------------------------------- metadata */

static mimus_status put_text(output *out, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = H5I_INVALID_HID;
    bool good = H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good)
        attribute = H5Acreate2(out->id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    good = attribute >= 0 && H5Awrite(attribute, type, (const void *)&text) >= 0;
    mimus_status status = good ? MIMUS_OK : failed(out);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return status;
}

static mimus_status put_schema(output *out) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *text = NULL;
    MIMUS_TRY(mimus__schema_to_json(&json, out->schema));
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT));
    MIMUS_TRY(put_text(out, "mimus_schema", text));
out:
    free(text);
    json_decref(json);
    return status;
}

/* An array of `count` times the same number. */
static mimus_status repeated(json_t **out, double number, uint32_t count) {
    mimus_status status = MIMUS_OK;
    *out = json_array();
    for (uint32_t i = 0; i < count; i++)
        MIMUS_TRY(mimus__json_append(*out, json_real(number)));
out:
    return status;
}

/* The text of a space as Minari has it, as a member of the metadata. JSON knows no infinity. */
static mimus_status set_observation_space(json_t *metadata, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    json_t *space = NULL, *low = NULL, *high = NULL;
    char *text = NULL;
    MIMUS_TRY(repeated(&low, -(double)FLT_MAX, schema->senses));
    MIMUS_TRY(repeated(&high, (double)FLT_MAX, schema->senses));
    space = json_pack("{s:s, s:s, s:[I], s:O, s:O}", "type", "Box", "dtype", "float32", "shape",
                      (json_int_t)schema->senses, "low", low, "high", high);
    MIMUS_TRY(mimus__json_text(&text, space, JSON_COMPACT));
    MIMUS_TRY(mimus__json_set(metadata, "observation_space", json_string(text)));
out:
    free(text);
    json_decref(low);
    json_decref(high);
    json_decref(space);
    return status;
}

static mimus_status set_action_space(json_t *metadata, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    json_t *space = NULL, *sizes = json_array(), *starts = json_array();
    char *text = NULL;
    for (uint32_t h = 0; h < schema->heads; h++) {
        MIMUS_TRY(mimus__json_append(sizes, json_integer(schema->head[h].actions)));
        MIMUS_TRY(mimus__json_append(starts, json_integer(0)));
    }
    space = schema->heads > 1
                ? json_pack("{s:s, s:s, s:O, s:O}", "type", "MultiDiscrete", "dtype", "int64",
                            "nvec", sizes, "start", starts)
                : json_pack("{s:s, s:s, s:i, s:I}", "type", "Discrete", "dtype", "int64", "start",
                            0, "n", (json_int_t)schema->head[0].actions);
    MIMUS_TRY(mimus__json_text(&text, space, JSON_COMPACT));
    MIMUS_TRY(mimus__json_set(metadata, "action_space", json_string(text)));
out:
    free(text);
    json_decref(sizes);
    json_decref(starts);
    json_decref(space);
    return status;
}

/* Minari's identifiers are words and a version: the folder's name, made one where it is none. */
static void name_dataset(char *out, size_t bytes, const char *path) {
    char folder[200];
    size_t length = 0;
    snprintf(folder, sizeof folder, "%s", path);
    for (int up = 0; up < 2; up++) { /* NAME/data/main_data.hdf5 */
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            folder[0] = '\0';
        else
            *slash = '\0';
    }
    const char *slash = strrchr(folder, '/'), *name = slash != NULL ? slash + 1 : folder;
    for (; *name != '\0' && length + 8 < bytes; name++)
        out[length++] = (char)(isalnum((unsigned char)*name) || *name == '-' ? *name : '_');
    out[length] = '\0';
    const char *version = strrchr(out, '-');
    bool versioned = version != NULL && version > out && version[1] == 'v' && version[2] != '\0' &&
                     version[2 + strspn(version + 2, "0123456789")] == '\0';
    if (!versioned)
        snprintf(out + length, bytes - length, "%s-v0", length > 0 ? "" : "recording");
}

/* Letters of the path before Minari's own name for the file; SIZE_MAX when it is called otherwise.
 */
static size_t before_name(const char *path) {
    static const char name[] = "main_data.hdf5";
    const size_t length = strlen(path), end = sizeof name - 1;
    bool is = length >= end && strcmp(path + length - end, name) == 0 &&
              (length == end || path[length - end - 1] == '/');
    return is ? length - end : SIZE_MAX;
}

static mimus_status write_metadata(const output *out) {
    mimus_status status = MIMUS_OK;
    const size_t before = before_name(out->path);
    const mimus__rows *rows = out->walk.rows;
    json_t *metadata = json_object();
    char *path = NULL, name[160];
    if (before == SIZE_MAX)
        goto out;
    name_dataset(name, sizeof name, out->path);
    MIMUS_TRY(
        mimus__json_set(metadata, "total_episodes", json_integer((json_int_t)rows->episodes)));
    MIMUS_TRY(mimus__json_set(metadata, "total_steps", json_integer((json_int_t)rows->samples)));
    MIMUS_TRY(mimus__json_set(metadata, "data_format", json_string("hdf5")));
    MIMUS_TRY(mimus__json_set(metadata, "jpeg_encoding", json_false()));
    MIMUS_TRY(mimus__json_set(metadata, "dataset_id", json_string(name)));
    MIMUS_TRY(mimus__json_set(metadata, "minari_version", json_string("0.5.0")));
    MIMUS_TRY(set_observation_space(metadata, out->schema));
    MIMUS_TRY(set_action_space(metadata, out->schema));
    MIMUS_TRY(mimus__text_format(&path, "%.*smetadata.json", (int)before, out->path));
    MIMUS_TRY(mimus__json_write(path, metadata));
out:
    free(path);
    json_decref(metadata);
    return status;
}

/* ------------------------------------------------------------------- whole */

static mimus_status make_boolean(output *out) {
    const int8_t no = 0, yes = 1;
    out->boolean = H5Tenum_create(H5T_STD_I8LE);
    if (out->boolean < 0 || H5Tenum_insert(out->boolean, "FALSE", &no) < 0 ||
        H5Tenum_insert(out->boolean, "TRUE", &yes) < 0)
        return failed(out);
    return MIMUS_OK;
}

static mimus_status make_folders(const char *path) {
    mimus_status status = MIMUS_OK;
    const size_t before = before_name(path);
    char *folder = NULL;
    if (before == SIZE_MAX || before < 2)
        return MIMUS_OK;
    MIMUS_TRY(mimus__text_format(&folder, "%.*s", (int)before - 1, path));
    MIMUS_TRY(mimus__file_make_folder(folder));
out:
    free(folder);
    return status;
}

/* Create the file under the name that it has until it is done. */
static mimus_status create(output *out) {
    mimus_status status = MIMUS_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    /* we hold a lock on it ourselves; compact groups, which HDF5 1.8 reads */
    if (H5Pset_file_locking(access, false, true) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST) < 0)
        MIMUS_TRY(failed(out));
    errno = 0;
    out->id = H5Fcreate(out->file.temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (out->id < 0)
        MIMUS_TRY(failed(out));
    out->links = H5Pcreate(H5P_LINK_CREATE);
    if (H5Pset_create_intermediate_group(out->links, 1) < 0)
        MIMUS_TRY(failed(out));
    MIMUS_TRY(make_boolean(out));
out:
    H5Pclose(access);
    return status;
}

/* All that libhdf5 does, in a process apart: after a failed write it crashes when it is asked to
 * close the file, and at the latest when the program ends. Nothing is closed then. */
static mimus_status write_file(void *user, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    output *out = user;
    const uint64_t steps = out->walk.rows->samples;
    MIMUS_TRY(mimus__h5_quiet_begin(&out->quiet));
    MIMUS_TRY(create(out));
    MIMUS_TRY(init_sets(out));
    out->phase = mimus__phase_begin(watch, "write", steps);
    MIMUS_TRY(put_episodes(out));
    MIMUS_TRY(put_number(out, "/", "total_episodes", out->episodes));
    MIMUS_TRY(put_number(out, "/", "total_steps", steps));
    MIMUS_TRY(put_schema(out));
    if (H5Fclose(out->id) < 0)
        status = failed(out);
out:
    return status;
}

mimus_status mimus__minari_out_write(const char *path, const mimus__recording *recording,
                                     const mimus__rows *rows, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    output out = {.path = path, .schema = mimus__recording_schema(recording)};
    mimus__walk_begin(&out.walk, recording, rows);
    MIMUS_TRY(make_folders(path));
    MIMUS_TRY(mimus__file_writer_open_named(&out.file, path));
    MIMUS_TRY(mimus__apart_do(write_file, &out, "libhdf5", path, watch));
    MIMUS_TRY(mimus__file_writer_commit(&out.file));
    MIMUS_TRY(write_metadata(&out));
out:
    mimus__file_writer_abort(&out.file);
    return status;
}
