/* file - whole files, folders, and the one safe way to replace a file. */
#ifndef MIMUS_BASE_FILE_H
#define MIMUS_BASE_FILE_H

#include "status.h"

#include <stdio.h>

/* Read a whole file of at most `limit` bytes; `*out` ends in an extra NUL. Free with free(). */
mimus_status mimus__file_read(const char *path, size_t limit, char **out, size_t *bytes);

/* Open a file for reading whose content can be sought, or mapped: anything but a regular file (a
 * pipe would block, /dev/zero never end) is refused with MIMUS_ERR_IO. */
mimus_status mimus__file_open(int *descriptor, const char *path);

/* Replace a file: what `stream` gets appears under `path` whole at commit, or not at all. Until
 * then it is a file without a name in the same folder, synced before it gets one, so that a killed
 * process leaves nothing; where the file system has no such files (NFS, FAT) it has a temporary
 * name, "PATH.mimus-" and some digits. The next writer of the same path removes what killed ones
 * left of these. A link stays, and what it points to is replaced; a device or a pipe is refused,
 * because the rename would put a file in its place. */
typedef struct mimus__file_writer {
    FILE *stream;
    char *path;
    char *temporary; /* NULL: no name so far */
} mimus__file_writer;

mimus_status mimus__file_writer_open(mimus__file_writer *writer, const char *path);
/* What the file holds so far, read back; `*out` ends in an extra NUL, free with free(). What is
 * written later goes behind it. */
mimus_status mimus__file_writer_read(mimus__file_writer *writer, char **out, size_t *bytes);
/* The same with a temporary name from the start, which is writer->temporary: for a library that
 * opens files by their names. It holds a lock on the file. */
mimus_status mimus__file_writer_open_named(mimus__file_writer *writer, const char *path);
/* Both close and free; abort leaves the old file and may follow a commit or a failed open. */
mimus_status mimus__file_writer_commit(mimus__file_writer *writer);
void mimus__file_writer_abort(mimus__file_writer *writer);

/* The whole of the above for bytes in memory. */
mimus_status mimus__file_replace(const char *path, const void *bytes, size_t count);

/* Whether `name` is a temporary name of a writer of the file `of`. */
bool mimus__file_is_temporary(const char *name, const char *of);

bool mimus__file_exists(const char *path);
/* Whether both are there and are one file, by whatever names. */
bool mimus__file_is_same(const char *path, const char *other);
bool mimus__file_is_folder(const char *path);
/* Make a folder and the ones above it; fine when it is there. */
mimus_status mimus__file_make_folder(const char *path);
/* `*out` = $XDG_CACHE_HOME/mimus or ~/.cache/mimus, made when missing. */
mimus_status mimus__file_cache_folder(char **out);

#endif
