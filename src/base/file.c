/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): O_TMPFILE needs it */
#define _GNU_SOURCE
#include "file.h"

#include "alloc.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
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

/* The folder that `path` is in; free with free(). */
static mimus_status folder_of(char **out, const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return mimus__text_copy(out, ".");
    return mimus__text_format(out, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* A new name is on the disk only once its folder is synced. */
static mimus_status sync_folder_of(const char *path) {
    mimus_status status = MIMUS_OK;
    char *folder = NULL;
    MIMUS_TRY(folder_of(&folder, path));
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) { /* some file systems refuse to sync a folder: the name still holds */
        (void)fsync(descriptor);
        close(descriptor);
    }
out:
    free(folder);
    return status;
}

/* `*out` = where the content of `path` really lies, so that a rename does not replace a link;
 * set also after a failure, and to be freed. */
static mimus_status find_target(char **out, const char *path) {
    mimus_status status = MIMUS_OK;
    struct stat info;
    MIMUS_TRY(mimus__text_copy(out, path));
    if (path[0] == '\0')
        return mimus__fail(MIMUS_ERR_IO, "the name of the file to write is empty");
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(EISDIR));
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: not a regular file", path);
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        char *target = realpath(path, NULL);
        if (target == NULL)
            return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: the link leads nowhere", path);
        free(*out);
        *out = target;
    }
out:
    return status;
}

static mimus_status cannot_write(const char *path, int error) {
    return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(error));
}

static const char temporary_mark[] = ".mimus-";

bool mimus__file_is_temporary(const char *name, const char *of) {
    static const char digits[] = "0123456789abcdef";
    const size_t length = strlen(of), mark = strlen(temporary_mark);
    if (strncmp(name, of, length) != 0 || strncmp(name + length, temporary_mark, mark) != 0)
        return false;
    const char *process = name + length + mark, *time = process + strspn(process, digits);
    return time > process && *time == '-' && time[1] != '\0' &&
           time[1 + strspn(time + 1, digits)] == '\0';
}

/* Where a descriptor's file can be reached though it has no name. */
typedef struct unnamed_path {
    char text[40];
} unnamed_path;

static unnamed_path path_of(int descriptor) {
    unnamed_path path;
    snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", descriptor);
    return path;
}

/* A file without a name in the folder of `path`, locked: whatever ends the process, the system
 * takes it away. `*out` = -1 where the file system has none, or no /proc is there to name it by. */
static mimus_status open_unnamed(int *out, const char *path) {
    mimus_status status = MIMUS_OK;
    char *folder = NULL;
    *out = -1;
    MIMUS_TRY(folder_of(&folder, path));
#ifdef O_TMPFILE
    *out = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (*out >= 0 && access(path_of(*out).text, F_OK) != 0) {
        close(*out);
        *out = -1;
    }
    if (*out >= 0)
        (void)flock(*out, LOCK_EX | LOCK_NB); /* nobody else knows it */
#endif
out:
    free(folder);
    return status;
}

/* Take a temporary name beside the writer's path that nothing has yet, of its own for every
 * writer: for the file without a name behind `descriptor`, or when that is -1 for a new one.
 * Gives the descriptor. */
static mimus_status take_name(mimus__file_writer *writer, int *descriptor) {
    mimus_status status = MIMUS_OK;
    char *name = NULL;
    struct timespec now;
    for (;;) {
        int made;
        clock_gettime(CLOCK_MONOTONIC, &now);
        MIMUS_TRY(mimus__text_format(&name, "%s%s%lx-%lx", writer->path, temporary_mark,
                                     (unsigned long)getpid(), (unsigned long)now.tv_nsec));
        if (*descriptor < 0)
            made = *descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        else
            made = linkat(AT_FDCWD, path_of(*descriptor).text, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        if (made >= 0)
            break;
        if (errno != EEXIST) {
            status = cannot_write(writer->path, errno);
            goto out;
        }
        free(name);
        name = NULL;
    }
    writer->temporary = name;
    name = NULL;
out:
    free(name);
    return status;
}

/* A file with a temporary name, locked. Whoever sweeps between the two takes it for abandoned. */
static mimus_status open_named(int *out, mimus__file_writer *writer) {
    mimus_status status = MIMUS_OK;
    struct stat info;
    for (;;) {
        MIMUS_TRY(take_name(writer, out));
        (void)flock(*out, LOCK_EX | LOCK_NB);
        if (fstat(*out, &info) == 0 && info.st_nlink > 0)
            return MIMUS_OK;
        close(*out);
        *out = -1;
        free(writer->temporary);
        writer->temporary = NULL;
    }
out:
    return status;
}

static void remove_if_unlocked(int folder, const char *name) {
    int left = openat(folder, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (left < 0)
        return;
    if (flock(left, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(folder, name, 0);
    close(left);
}

/* Remove what killed writers of `path` left: their temporary names, which nobody locks any more. */
static mimus_status sweep(const char *path) {
    mimus_status status = MIMUS_OK;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char *folder = NULL;
    MIMUS_TRY(folder_of(&folder, path));
    DIR *entries = opendir(folder);
    if (entries == NULL)
        goto out; /* whoever writes there will say why */
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (mimus__file_is_temporary(entry->d_name, name))
            remove_if_unlocked(dirfd(entries), entry->d_name);
    }
    closedir(entries);
out:
    free(folder);
    return status;
}

static mimus_status open_writer(mimus__file_writer *writer, const char *path, bool named) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    *writer = (mimus__file_writer){0};
    MIMUS_TRY(find_target(&writer->path, path));
    MIMUS_TRY(sweep(writer->path));
    if (!named)
        MIMUS_TRY(open_unnamed(&descriptor, writer->path));
    if (descriptor < 0)
        MIMUS_TRY(open_named(&descriptor, writer));
    writer->stream = fdopen(descriptor, "wb");
    if (writer->stream == NULL) {
        status = cannot_write(path, errno);
        close(descriptor);
    }
out:
    if (status != MIMUS_OK)
        mimus__file_writer_abort(writer);
    return status;
}

mimus_status mimus__file_writer_open(mimus__file_writer *writer, const char *path) {
    return open_writer(writer, path, false);
}

mimus_status mimus__file_writer_open_named(mimus__file_writer *writer, const char *path) {
    return open_writer(writer, path, true);
}

mimus_status mimus__file_writer_read(mimus__file_writer *writer, char **out, size_t *bytes) {
    mimus_status status = MIMUS_OK;
    struct stat info;
    char *content = NULL;
    size_t length = 0;
    *out = NULL;
    if (ferror(writer->stream) || fflush(writer->stream) != 0 ||
        fstat(fileno(writer->stream), &info) != 0)
        return cannot_write(writer->path, errno);
    MIMUS_TRY(mimus__alloc(&content, (size_t)info.st_size + 1, 1));
    while (length < (size_t)info.st_size) {
        ssize_t got = pread(fileno(writer->stream), content + length, (size_t)info.st_size - length,
                            (off_t)length);
        if (got <= 0) {
            status = mimus__fail(MIMUS_ERR_IO, "%s: cannot read back what was written: %s",
                                 writer->path, got < 0 ? strerror(errno) : "it is shorter");
            goto out;
        }
        length += (size_t)got;
    }
    *out = content;
    *bytes = length;
    content = NULL;
out:
    free(content);
    return status;
}

/* Give the finished file its name. A link cannot replace a file, a rename does so in one step:
 * where there is one already, the new one gets a temporary name and is renamed. A process killed
 * between the two leaves that name to the next sweep. */
static mimus_status publish(mimus__file_writer *writer) {
    mimus_status status = MIMUS_OK;
    int descriptor = fileno(writer->stream);
    if (writer->temporary == NULL) {
        if (linkat(AT_FDCWD, path_of(descriptor).text, AT_FDCWD, writer->path, AT_SYMLINK_FOLLOW) ==
            0)
            return MIMUS_OK;
        if (errno != EEXIST)
            return cannot_write(writer->path, errno);
        MIMUS_TRY(take_name(writer, &descriptor));
    }
    if (rename(writer->temporary, writer->path) != 0) {
        status = cannot_write(writer->path, errno);
        goto out;
    }
    free(writer->temporary);
    writer->temporary = NULL;
out:
    return status;
}

mimus_status mimus__file_writer_commit(mimus__file_writer *writer) {
    mimus_status status = MIMUS_OK;
    if (ferror(writer->stream) || fflush(writer->stream) != 0 ||
        fsync(fileno(writer->stream)) != 0) {
        status = cannot_write(writer->path, errno);
        goto out;
    }
    MIMUS_TRY(publish(writer));
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

bool mimus__file_is_same(const char *path, const char *other) {
    struct stat one, two;
    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
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
        int error = mkdir(partial, 0777) != 0 ? errno : 0; /* the look at it sets errno too */
        if (error != 0 && !mimus__file_is_folder(partial)) {
            status = mimus__fail(MIMUS_ERR_IO, "%s: cannot make the folder: %s", partial,
                                 strerror(error));
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
