/* h5_file - an HDF5 file, opened so that it can do no harm: read only, without the library's own
 * messages, and without ever following a link out of the file. What the library says went wrong
 * becomes the end of our one line. */
#ifndef MIMUS_DATA_H5_FILE_H
#define MIMUS_DATA_H5_FILE_H

#include "json.h"

#include <hdf5.h>

enum {
    MIMUS__H5_NAMES = 1 << 22,      /* links of one group, at most */
    MIMUS__H5_TEXT_LIMIT = 16 << 20 /* bytes of an attribute's text */
};

/* While it lasts, libhdf5 prints nothing: what the program had it report to is put back. */
typedef struct mimus__h5_quiet {
    bool on;
    H5E_auto2_t reporter;
    void *data;
} mimus__h5_quiet;

/* Starts libhdf5, too. */
mimus_status mimus__h5_quiet_begin(mimus__h5_quiet *out);
void mimus__h5_quiet_end(mimus__h5_quiet *quiet);

typedef struct mimus__h5_file {
    const char *path; /* borrowed */
    uint64_t bytes;   /* the file's size */
    hid_t id;
    hid_t access; /* link access: refuses to leave the file */
    mimus__h5_quiet quiet;
} mimus__h5_file;

/* MIMUS_ERR_IO or MIMUS_ERR_FORMAT. Close also what failed to open, as long as it was zeroed. */
mimus_status mimus__h5_open(mimus__h5_file *out, const char *path);
void mimus__h5_close(mimus__h5_file *file);

/* MIMUS_ERR_FORMAT with the text and, behind it, why the library failed last. */
mimus_status mimus__h5_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef enum mimus__h5_kind {
    MIMUS__H5_NOTHING, /* no such object, or a link that leads nowhere */
    MIMUS__H5_GROUP,
    MIMUS__H5_DATASET,
    MIMUS__H5_OTHER, /* a named type */
} mimus__h5_kind;

/* What lies under a path from the root ("/data/demo_0/obs"; "" is the root). MIMUS_ERR_UNSUPPORTED
 * when it, or a group above it, is a link to another file. */
mimus_status mimus__h5_look(const mimus__h5_file *file, const char *path, mimus__h5_kind *out);

/* The names in a group, sorted byte by byte, as Gymnasium flattens Dict spaces; or by the numbers
 * that they end in, so that demo_10 follows demo_2. Free with mimus__h5_names_free. */
typedef struct mimus__h5_names {
    char **name;
    size_t count;
    size_t capacity;
} mimus__h5_names;

mimus_status mimus__h5_list(const mimus__h5_file *file, const char *group, mimus__h5_names *out);
void mimus__h5_names_by_number(mimus__h5_names *names);
void mimus__h5_names_free(mimus__h5_names *names);

/* The text that the attribute of an object holds; NULL when there is no such attribute, or it holds
 * something else. Free with free(). */
mimus_status mimus__h5_attribute(const mimus__h5_file *file, const char *path, const char *name,
                                 char **out);

#endif
