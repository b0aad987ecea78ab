/* Any tree of groups, links, datasets and attributes as an HDF5 file: reading, auditing and
 * converting it must end well or fail clearly. The bytes are a recipe for libhdf5, which builds the
 * file; bytes that are the file itself would find the known crashes of libhdf5 and little of ours
 * (docs/formats.md).
 *
 *   1 byte   which options are given to the reader
 *   then, again and again: 1 byte what (its low 3 bits) and where (which name), 3 bytes how, and
 * the elements or letters that it needs */
#include "support.h"

#include "audit.h"
#include "h5_reader.h"
#include "sink.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What libhdf5 keeps for every thread is no leak of ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

/* ------------------------------------------------------------------ recipe */

typedef struct recipe {
    const uint8_t *at;
    size_t left;
} recipe;

static uint8_t take(recipe *r) {
    if (r->left == 0)
        return 0;
    r->left--;
    return *r->at++;
}

static const char *const names[] = {
    "/observations",
    "/actions",
    "/action_masks",
    "/terminals",
    "/timeouts",
    "/episode_starts",
    "/weights",
    "/number",
    "/episode_0/observations",
    "/episode_0/actions",
    "/episode_1/observations",
    "/episode_1/actions",
    "/episode_0/observations/a",
    "/episode_0/observations/_index_1",
    "/episode_1/observations/a",
    "/episode_0/infos/action_mask",
    "/episode_1/infos/action_mask",
    "/episode_0/actions/move",
    "/episode_1/actions/move",
    "/data/demo_2/obs/x",
    "/data/demo_2/obs/y",
    "/data/demo_2/actions",
    "/data/demo_10/obs/x",
    "/data/demo_10/obs/y",
    "/data/demo_10/actions",
    "/mask/train",
    "/episode_0",
    "/episode_1",
    "/data",
    "/observations/a",
    "/observations/action_mask",
    "/x",
};
enum { NAMES = sizeof names / sizeof *names };

/* An element type; `made` says whether it is to be closed. */
static hid_t type_of(uint8_t which, bool *made) {
    hid_t type;
    *made = false;
    switch (which % 20) {
    case 0:
        return H5T_IEEE_F32LE;
    case 1:
        return H5T_STD_I64LE;
    case 2:
        return H5T_STD_U8LE;
    case 3:
        return H5T_IEEE_F64BE;
    case 4:
        return H5T_STD_I8BE;
    case 5:
        return H5T_STD_U64LE;
    case 6:
        return H5T_STD_I16BE;
    case 7:
        return H5T_NATIVE_LDOUBLE;
    case 8:
        return H5T_STD_B8LE;
    case 9:
        return H5T_STD_REF_OBJ;
    default:
        break;
    }
    *made = true;
    switch (which % 20) {
    case 10:
        return H5Tvlen_create(H5T_STD_U8LE);
    case 11:
        return H5Tcreate(H5T_OPAQUE, 3);
    case 12:
        type = H5Tcreate(H5T_COMPOUND, 8);
        H5Tinsert(type, "a", 0, H5T_STD_I32LE);
        return type;
    case 13:
        type = H5Tcopy(H5T_STD_I32LE);
        H5Tset_precision(type, 11);
        return type;
    case 14:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, H5T_VARIABLE);
        return type;
    case 15:
        return H5Tarray_create2(H5T_IEEE_F32LE, 1, (const hsize_t[]){2});
    case 16:
        return H5Tenum_create(H5T_STD_I8LE);
    default:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, 8);
        return type;
    }
}

static hid_t creation_of(uint8_t how, int dimensions, const hsize_t *shape) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];
    for (int d = 0; d < dimensions; d++)
        chunk[d] = shape[d] / (1 + (how >> 4 & 3)) + 1;
    if ((how & 1) != 0)
        H5Pset_chunk(creation, dimensions, chunk);
    if ((how & 3) == 3)
        H5Pset_deflate(creation, 1);
    if ((how & 5) == 5)
        H5Pset_shuffle(creation);
    if ((how & 9) == 9)
        H5Pset_fletcher32(creation);
    if ((how & 0x83) == 0x82)
        H5Pset_layout(creation, H5D_COMPACT);
    return creation;
}

/* `dimensions` of up to 15 elements each, or of hardly believable many, and then nothing written.
 */
static void add_dataset(hid_t file, hid_t links, const char *path, recipe *r) {
    uint8_t kind = take(r), how = take(r), size = take(r);
    bool made = false, huge = kind >= 250;
    int dimensions = how >> 6;
    hsize_t shape[4] = {size & 15, 1 + (size >> 4 & 3), 1 + (size >> 6), 2};
    hsize_t most[4] = {H5S_UNLIMITED, shape[1], shape[2], shape[3]};
    if (huge)
        shape[0] <<= 30 + (size >> 4);
    hid_t type = type_of(kind, &made);
    hid_t space = dimensions > 0 ? H5Screate_simple(dimensions, shape, (how & 1) != 0 ? most : NULL)
                                 : H5Screate((how & 8) != 0 ? H5S_NULL : H5S_SCALAR);
    hid_t creation = creation_of(how, dimensions, shape);
    hid_t set = H5Dcreate2(file, path, type, space, links, creation, H5P_DEFAULT);
    size_t elements = (size_t)(shape[0] * shape[1] * shape[2]), bytes = H5Tget_size(type);
    if (set >= 0 && !huge && (kind % 20 < 9 || kind % 20 > 15)) {
        uint8_t *values = calloc(elements + 1, bytes);
        for (size_t i = 0; values != NULL && i < elements * bytes && r->left > 0; i += 1 + i % 3)
            values[i] = take(r);
        if (values != NULL && (how & 0x20) == 0)
            H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        free(values);
    }
    if (set >= 0)
        H5Dclose(set);
    H5Pclose(creation);
    H5Sclose(space);
    if (made)
        H5Tclose(type);
}

static void add_text(hid_t file, const char *name, recipe *r) {
    char text[256];
    const char *pointer = text;
    size_t length = take(r), fixed = take(r);
    take(r);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)take(r);
    text[length] = '\0';
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, fixed % 2 == 0 ? H5T_VARIABLE : length + 1);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute >= 0) {
        H5Awrite(attribute, type, fixed % 2 == 0 ? (const void *)&pointer : text);
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
}

static void add(hid_t file, hid_t links, recipe *r) {
    uint8_t what = take(r);
    const char *path = names[(what >> 3) % NAMES];
    switch (what % 8) {
    case 5: {
        const char *to = names[take(r) % NAMES];
        uint8_t kind = take(r);
        take(r);
        if (kind % 3 == 0)
            H5Lcreate_soft(to, file, path, links, H5P_DEFAULT);
        else if (kind % 3 == 1)
            H5Lcreate_hard(file, to, file, path, links, H5P_DEFAULT);
        else
            H5Lcreate_external("/dev/null", to, file, path, links, H5P_DEFAULT);
        break;
    }
    case 6:
        H5Gclose(H5Gcreate2(file, path, links, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case 7:
        add_text(file,
                 what >> 3 & 1   ? "action_space"
                 : what >> 4 & 1 ? "observation_space"
                                 : "mimus_schema",
                 r);
        break;
    default:
        add_dataset(file, links, path, r);
    }
}

/* -------------------------------------------------------------- what is done */

static char path[256];

static void remove_file(void) {
    unlink(path);
}

static void build(recipe *r) {
    enum { STEPS = 64 };
    if (path[0] == '\0') {
        const char *base = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/mimus-fuzz-%ld.h5", base != NULL ? base : "/tmp",
                 (long)getpid());
        atexit(remove_file);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    fuzz_expect(file >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0,
                "cannot write the file");
    for (int step = 0; step < STEPS && r->left > 0; step++)
        add(file, links, r);
    H5Pclose(links);
    H5Fclose(file);
}

/* A failure names the file, in one line. */
static void expect_message(void) {
    const char *message = mimus_last_error();
    fuzz_expect(strncmp(message, path, strlen(path)) == 0 && strchr(message, '\n') == NULL,
                "an unclear message");
}

static void judge(const mimus__recording *recording) {
    mimus__audit audit;
    uint64_t samples = 0;
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        fuzz_expect(mimus__recording_block(recording, b, &block) == MIMUS_OK, "a bad block");
        samples += block.samples;
    }
    fuzz_expect(samples == mimus__recording_samples(recording) && samples > 0,
                "samples are missing");
    fuzz_expect(mimus__recording_episodes(recording) <= samples, "too many episodes");
    fuzz_expect(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_IGNORE, NULL) == MIMUS_OK,
                "no audit");
    mimus__audit_clear(&audit);
}

/* In this process, where it can be seen. */
static void exercise(const char *const *options) {
    mimus__memory_sink sink;
    mimus__recording *recording = NULL;
    mimus__memory_sink_init(&sink);
    if (mimus__h5_read_here(path, options, &sink.base.sink, NULL) != MIMUS_OK) {
        expect_message();
    } else {
        fuzz_expect(mimus__memory_sink_recording(&recording, &sink) == MIMUS_OK, "no recording");
        judge(recording);
    }
    mimus__recording_free(recording);
    mimus__memory_sink_clear(&sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[][4] = {
        {NULL},
        {"senses=a", NULL},
        {"masks=", "heads=3", NULL},
        {"filter=train", NULL},
        {"senses=/x,/number", "actions=/actions", "episode=/number", NULL},
        {"senses=observations/a,x", NULL},
        {"dones=terminals", "weights=", NULL},
        {"starts=terminals", "heads=a:2,b:5", NULL},
    };
    recipe r = {data, size};
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* recipes may well ask for what cannot be */
    const uint8_t which = take(&r) % 8;
    build(&r);
    exercise(options[which]);
    return 0;
}
