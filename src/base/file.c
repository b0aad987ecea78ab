#include "file.h"

#include "alloc.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mimus_status mimus__file_read(const char *path, size_t limit, char **out, size_t *bytes) {
    mimus_status status = MIMUS_OK;
    FILE *stream = fopen(path, "rb");
    char *content = NULL;
    size_t capacity = 0, length = 0;
    if (stream == NULL)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
    for (;;) {
        /* the length is not asked for: pipes have none, and files may grow */
        MIMUS_TRY(mimus__grow(&content, &capacity, length + 65536, 1));
        size_t got = fread(content + length, 1, capacity - length - 1, stream);
        if (got == 0)
            break;
        length += got;
        if (length > limit) {
            status = mimus__fail(MIMUS_ERR_FORMAT, "%s: more than %zu bytes", path, limit);
            goto out;
        }
    }
    if (ferror(stream)) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
        goto out;
    }
    content[length] = '\0';
    *out = content;
    *bytes = length;
    content = NULL;
out:
    free(content);
    fclose(stream);
    return status;
}

mimus_status mimus__file_open(int *descriptor, const char *path) {
    struct stat info;
    *descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not block it */
    if (*descriptor < 0)
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(*descriptor, &info) == 0 && S_ISREG(info.st_mode))
        return MIMUS_OK;
    close(*descriptor);
    *descriptor = -1;
    if (S_ISDIR(info.st_mode))
        return mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(EISDIR));
    return mimus__fail(MIMUS_ERR_IO, "%s: not a regular file; save what it gives to one", path);
}

/* A rename is on the disk only once its folder is synced. */
static mimus_status sync_folder_of(const char *path) {
    mimus_status status = MIMUS_OK;
    char *folder = NULL;
    MIMUS_TRY(mimus__text_copy(&folder, path));
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash++;
    if (slash != NULL)
        *slash = '\0';
    int descriptor = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) { /* some file systems refuse to sync a folder: the rename still holds */
        (void)fsync(descriptor);
        close(descriptor);
    }
out:
    free(folder);
    return status;
}

/* `*out` = where the content of `path` really lies, so that a rename does not replace a link. */
static mimus_status find_target(char **out, const char *path) {
    struct stat info;
    if (path[0] == '\0')
        return mimus__fail(MIMUS_ERR_IO, "the name of the file to write is empty");
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(EISDIR));
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: not a regular file", path);
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        *out = realpath(path, NULL);
        if (*out != NULL)
            return MIMUS_OK;
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: the link leads nowhere", path);
    }
    return mimus__text_copy(out, path);
}

mimus_status mimus__file_writer_open(mimus__file_writer *writer, const char *path) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    *writer = (mimus__file_writer){0};
    MIMUS_TRY(find_target(&writer->path, path));
    /* a name of its own: two processes that write one path must not share a temporary */
    MIMUS_TRY(mimus__text_format(&writer->temporary, "%s.XXXXXX", writer->path));
    descriptor = mkstemp(writer->temporary);
    if (descriptor < 0) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        free(writer->temporary);
        writer->temporary = NULL;
        goto out;
    }
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(descriptor, 0666 & ~mask); /* mkstemp made it private */
    writer->stream = fdopen(descriptor, "wb");
    if (writer->stream == NULL) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        close(descriptor);
    }
out:
    if (status != MIMUS_OK)
        mimus__file_writer_abort(writer);
    return status;
}

mimus_status mimus__file_writer_commit(mimus__file_writer *writer) {
    mimus_status status = MIMUS_OK;
    bool good = !ferror(writer->stream) && fflush(writer->stream) == 0 &&
                fsync(fileno(writer->stream)) == 0;
    int error = errno;
    if (fclose(writer->stream) != 0 && good) {
        good = false;
        error = errno;
    }
    writer->stream = NULL;
    if (good && rename(writer->temporary, writer->path) != 0) {
        good = false;
        error = errno;
    }
    if (!good) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", writer->path, strerror(error));
        goto out;
    }
    free(writer->temporary);
    writer->temporary = NULL;
    status = sync_folder_of(writer->path);
out:
    mimus__file_writer_abort(writer);
    return status;
}

void mimus__file_writer_abort(mimus__file_writer *writer) {
    if (writer->stream != NULL)
        fclose(writer->stream);
    if (writer->temporary != NULL)
        unlink(writer->temporary);
    free(writer->temporary);
    free(writer->path);
    *writer = (mimus__file_writer){0};
}

mimus_status mimus__file_replace(const char *path, const void *bytes, size_t count) {
    mimus_status status = MIMUS_OK;
    mimus__file_writer writer;
    MIMUS_TRY(mimus__file_writer_open(&writer, path));
    fwrite(bytes, 1, count, writer.stream); /* commit sees the stream's error flag */
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    return status;
}

bool mimus__file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

bool mimus__file_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

mimus_status mimus__file_make_folder(const char *path) {
    mimus_status status = MIMUS_OK;
    char *partial = NULL;
    if (path[0] == '\0') /* what is put "into" it would land in the root */
        return mimus__fail(MIMUS_ERR_IO, "the name of the folder is empty");
    MIMUS_TRY(mimus__text_copy(&partial, path));
    for (char *c = partial + 1;; c++) {
        if (*c != '/' && *c != '\0')
            continue;
        bool last = *c == '\0';
        *c = '\0';
        if (mkdir(partial, 0777) != 0 && !mimus__file_is_folder(partial)) {
            status = mimus__fail(MIMUS_ERR_IO, "%s: cannot make the folder: %s", partial,
                                 strerror(errno));
            goto out;
        }
        if (last)
            break;
        *c = '/';
    }
out:
    free(partial);
    return status;
}

mimus_status mimus__file_cache_folder(char **out) {
    mimus_status status = MIMUS_OK;
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    *out = NULL;
    if (cache != NULL && cache[0] == '/') /* the XDG specification ignores relative paths */
        MIMUS_TRY(mimus__text_format(out, "%s/mimus", cache));
    else if (home != NULL && home[0] != '\0')
        MIMUS_TRY(mimus__text_format(out, "%s/.cache/mimus", home));
    else
        return mimus__fail(MIMUS_ERR_IO, "no cache folder: neither XDG_CACHE_HOME nor HOME is set");
    MIMUS_TRY(mimus__file_make_folder(*out));
out:
    if (status != MIMUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
