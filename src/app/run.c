#include "run.h"

#include "alloc.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *const illegal_names[] = {[MIMUS_ILLEGAL_ERROR] = "error",
                                            [MIMUS_ILLEGAL_DROP] = "drop",
                                            [MIMUS_ILLEGAL_IGNORE] = "ignore"};

mimus_status mimus__run_path(char **out, const mimus__run *run, const char *name) {
    return mimus__text_format(out, "%s/%s", run->folder, name);
}

mimus_status mimus__run_remove(const mimus__run *run, const char *name) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, run, name));
    if (unlink(path) != 0 && errno != ENOENT)
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot remove: %s", path, strerror(errno));
out:
    free(path);
    return status;
}

static mimus_status lock(mimus__run *run) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__run_path(&path, run, "lock"));
    run->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (run->lock < 0) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        goto out;
    }
    if (flock(run->lock, LOCK_EX | LOCK_NB) != 0)
        status = mimus__fail(MIMUS_ERR_BUSY, "%s: another process is training into this run",
                             run->folder);
out:
    free(path);
    return status;
}

/* A temporary name of mimus__file_writer, left by a killed process. */
static bool is_temporary(const char *name) {
    static const char *const names[] = {"config.json",    "run.json",         "summary.json",
                                        "metrics.jsonl",  "last.safetensors", "best.safetensors",
                                        "evaluation.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (mimus__file_is_temporary(name, names[i]))
            return true;
    }
    return false;
}

/* What create and begin put into a folder before run.json makes it a run; temporary names too. */
static bool is_leftover(const char *name) {
    return strcmp(name, "lock") == 0 || strcmp(name, "config.json") == 0 ||
           strcmp(name, "last.safetensors") == 0 || is_temporary(name);
}

/* The same, run.json included: all that a run which never trained consists of. */
static bool is_untrained(const char *name) {
    return is_leftover(name) || strcmp(name, "run.json") == 0 || strcmp(name, "runs.json") == 0;
}

/* Whether every entry of the folder satisfies `holds`. */
static bool all_entries(const char *path, bool (*holds)(const char *name)) {
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    bool all = true;
    for (struct dirent *entry = readdir(folder); entry != NULL && all; entry = readdir(folder))
        all = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
              holds(entry->d_name);
    closedir(folder);
    return all;
}

/* Remove every entry of the folder that satisfies `condemned`. */
static void remove_entries(const char *path, bool (*condemned)(const char *name)) {
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (condemned(entry->d_name))
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
}

/* Remove what is left of runs in the folder that a killed process made and never trained. */
static void remove_untrained_runs(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char *inner = NULL;
        if (strncmp(entry->d_name, "run-", 4) == 0 &&
            mimus__text_format(&inner, "%s/%s", path, entry->d_name) == MIMUS_OK &&
            all_entries(inner, is_untrained)) {
            remove_entries(inner, is_untrained);
            rmdir(inner);
        }
        free(inner);
    }
    closedir(folder);
}

static mimus_status create(mimus__run *out, const char *folder, bool many) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__run){.lock = -1};
    MIMUS_TRY(mimus__text_copy(&out->folder, folder));
    if (mimus__file_exists(folder) && !mimus__file_is_folder(folder)) {
        status = mimus__fail(MIMUS_ERR_IO, "%s: exists and is not a folder", folder);
        goto out;
    }
    bool existed = mimus__file_is_folder(folder);
    MIMUS_TRY(mimus__file_make_folder(folder));
    out->fresh = !existed;
    MIMUS_TRY(lock(out));
    if (existed && many)
        remove_untrained_runs(folder);
    if (existed &&
        !all_entries(folder, is_leftover)) { /* looked at under the lock: two may start at once */
        status = mimus__fail(MIMUS_ERR_IO,
                             "%s: there is something in this folder already; choose another, or go "
                             "on with a stopped run by `mimus train --resume %s`",
                             folder, folder);
        goto out;
    }
out:
    if (status != MIMUS_OK) {
        if (status == MIMUS_ERR_BUSY)
            out->fresh = false;
        mimus__run_close(out);
    }
    return status;
}

mimus_status mimus__run_create(mimus__run *out, const char *folder) {
    return create(out, folder, false);
}

mimus_status mimus__run_create_many(mimus__run *out, const char *folder) {
    return create(out, folder, true);
}

mimus_status mimus__run_open(mimus__run *out, const char *folder) {
    return mimus__run_open_by(out, folder, "run.json");
}

mimus_status mimus__run_open_by(mimus__run *out, const char *folder, const char *mark) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    *out = (mimus__run){.lock = -1};
    if (folder[0] == '\0')
        return mimus__fail(MIMUS_ERR_IO, "the name of the run's folder is empty");
    MIMUS_TRY(mimus__text_copy(&out->folder, folder));
    MIMUS_TRY(mimus__run_path(&path, out, mark));
    if (!mimus__file_exists(path)) {
        status = mimus__fail(MIMUS_ERR_IO,
                             "%s: not a run that can go on (it has no %s); start it by "
                             "`mimus train RECORDING -o %s`",
                             folder, mark, folder);
        goto out;
    }
    MIMUS_TRY(lock(out));
    remove_entries(folder, is_temporary);
out:
    free(path);
    if (status != MIMUS_OK)
        mimus__run_close(out);
    return status;
}

void mimus__run_close(mimus__run *run) {
    if (run->fresh) {
        remove_entries(run->folder, is_untrained);
        rmdir(run->folder); /* stays when somebody put something there */
    }
    if (run->lock >= 0)
        close(run->lock);
    free(run->folder);
    *run = (mimus__run){.lock = -1};
}

static mimus_status source_json(json_t **out, const mimus_source *source,
                                const mimus__dataset *dataset) {
    mimus_status status = MIMUS_OK;
    json_t *object = json_object(), *paths = json_array(), *options = json_array();
    for (size_t i = 0; i < source->count; i++) {
        char *absolute = realpath(source->paths[i], NULL); /* a resume may start elsewhere */
        const char *path = absolute != NULL ? absolute : source->paths[i];
        status =
            mimus__text_is_utf8(path)
                ? mimus__json_append(paths, json_string(path))
                : mimus__fail(MIMUS_ERR_UNSUPPORTED,
                              "%s: the path is not UTF-8, and run.json could not keep it for a "
                              "resume; rename it",
                              path);
        free(absolute);
        if (status != MIMUS_OK)
            goto out;
    }
    for (const char *const *option = source->options; option != NULL && *option != NULL; option++)
        MIMUS_TRY(mimus__json_append(options, json_string(*option)));
    MIMUS_TRY(mimus__json_set(object, "files", json_incref(paths)));
    if (source->format != NULL)
        MIMUS_TRY(mimus__json_set(object, "format", json_string(source->format)));
    MIMUS_TRY(mimus__json_set(object, "options", json_incref(options)));
    MIMUS_TRY(mimus__json_set(object, "illegal", json_string(illegal_names[source->illegal])));
    if (source->where != NULL)
        MIMUS_TRY(mimus__json_set(object, "where", json_string(source->where)));
    if (source->episodes != NULL)
        MIMUS_TRY(mimus__json_set(object, "episodes", json_string(source->episodes)));
    if (source->limit > 0)
        MIMUS_TRY(mimus__json_set(object, "limit", json_integer((json_int_t)source->limit)));
    MIMUS_TRY(mimus__json_set(object, "fingerprint",
                              json_string(mimus__recording_fingerprint(dataset->recording))));
    MIMUS_TRY(mimus__json_set(
        object, "samples", json_integer((json_int_t)mimus__recording_samples(dataset->recording))));
    *out = json_incref(object);
out:
    json_decref(paths);
    json_decref(options);
    json_decref(object);
    return status;
}

mimus_status mimus__run_begin(mimus__run *run, const mimus_config *config,
                              const mimus_source *source, const mimus__dataset *dataset) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    json_t *settings = NULL, *about = json_object(), *recording = NULL;
    MIMUS_TRY(mimus__config_to_json(&settings, config));
    MIMUS_TRY(mimus__run_path(&path, run, "config.json"));
    MIMUS_TRY(mimus__json_write(path, settings));
    free(path);
    path = NULL;
    MIMUS_TRY(source_json(&recording, source, dataset));
    MIMUS_TRY(mimus__json_set(about, "mimus", json_string(MIMUS_VERSION)));
    MIMUS_TRY(mimus__json_set(about, "recording", json_incref(recording)));
    MIMUS_TRY(mimus__run_path(&path, run, "run.json"));
    MIMUS_TRY(mimus__json_write(path, about));
out:
    free(path);
    json_decref(settings);
    json_decref(recording);
    json_decref(about);
    return status;
}

/* The member `key`, an array of strings, as a NULL-terminated list whose texts belong to the JSON
 * value. */
static mimus_status string_list(const char ***out, size_t *count, const json_t *object,
                                const char *key, const char *where) {
    mimus_status status = MIMUS_OK;
    size_t index;
    const json_t *array = json_object_get(object, key), *value;
    if (!json_is_array(array))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be an array of strings", where,
                           key);
    *count = json_array_size(array);
    MIMUS_TRY(mimus__alloc(out, *count + 1, sizeof **out));
    json_array_foreach(array, index, value) {
        if (!json_is_string(value)) {
            status = mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be an array of strings",
                                 where, key);
            goto out;
        }
        (*out)[index] = json_string_value(value);
    }
out:
    return status;
}

static mimus_status read_illegal(mimus_illegal *out, const json_t *recording, const char *where) {
    mimus_status status = MIMUS_OK;
    const char *text;
    MIMUS_TRY(mimus__json_get_string(recording, "illegal", where, &text));
    for (size_t i = 0; i < sizeof illegal_names / sizeof *illegal_names; i++) {
        if (strcmp(text, illegal_names[i]) == 0) {
            *out = (mimus_illegal)i;
            return MIMUS_OK;
        }
    }
    status =
        mimus__fail(MIMUS_ERR_FORMAT,
                    "%s: \"illegal\" is \"%.32s\", expected error, drop or ignore", where, text);
out:
    return status;
}

/* A text that may be missing. */
static mimus_status read_text(const char **out, const json_t *object, const char *key,
                              const char *where) {
    const json_t *value = json_object_get(object, key);
    *out = json_string_value(value);
    if (value != NULL && *out == NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be a string", where, key);
    return MIMUS_OK;
}

/* Which parts of the files; members that are missing take everything. */
static mimus_status read_parts(mimus_source *out, const json_t *recording, const char *where) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(read_text(&out->where, recording, "where", where));
    MIMUS_TRY(read_text(&out->episodes, recording, "episodes", where));
    if (json_object_get(recording, "limit") != NULL)
        MIMUS_TRY(mimus__json_get_u64(recording, "limit", where, &out->limit));
out:
    return status;
}

/* What only people read has to be right too: a damaged file must not pass for a whole one. */
static mimus_status check_recording(const json_t *recording, const mimus__run_source *source,
                                    const char *where) {
    mimus_status status = MIMUS_OK;
    const json_t *format = json_object_get(recording, "format");
    uint64_t samples;
    if (source->source.count == 0)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"files\" is empty", where);
    if (format != NULL && !json_is_string(format))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"format\" should be a string", where);
    MIMUS_TRY(mimus__json_get_u64(recording, "samples", where, &samples));
out:
    return status;
}

mimus_status mimus__run_read_source(mimus__run_source *out, const mimus__run *run) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    const char *text = NULL;
    size_t options = 0;
    *out = (mimus__run_source){0};
    MIMUS_TRY(mimus__run_path(&path, run, "run.json"));
    MIMUS_TRY(mimus__json_read(&out->json, path));
    const json_t *recording = json_object_get(out->json, "recording");
    if (!json_is_object(recording)) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: \"recording\" should be an object", path);
        goto out;
    }
    MIMUS_TRY(string_list(&out->paths, &out->source.count, recording, "files", path));
    MIMUS_TRY(string_list(&out->options, &options, recording, "options", path));
    MIMUS_TRY(check_recording(recording, out, path));
    out->source.paths = out->paths;
    out->source.options = options > 0 ? out->options : NULL;
    out->source.format = json_string_value(json_object_get(recording, "format"));
    MIMUS_TRY(mimus__json_get_string(recording, "fingerprint", path, &text));
    snprintf(out->fingerprint, sizeof out->fingerprint, "%s", text);
    MIMUS_TRY(read_illegal(&out->source.illegal, recording, path));
    MIMUS_TRY(read_parts(&out->source, recording, path));
out:
    free(path);
    if (status != MIMUS_OK)
        mimus__run_source_clear(out);
    return status;
}

void mimus__run_source_clear(mimus__run_source *source) {
    free(source->paths);
    free(source->options);
    json_decref(source->json);
    *source = (mimus__run_source){0};
}
