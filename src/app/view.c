#include "view.h"

#include "alloc.h"
#include "file.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_METRICS = 1 << 30 }; /* bytes of metrics.jsonl */

/* A JSON object of the folder; `*out` = NULL where it has no such file, unless `needed`. */
static mimus_status read_object(json_t **out, const char *folder, const char *name, bool needed) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    MIMUS_TRY(mimus__text_format(&path, "%s/%s", folder, name));
    if (!needed && !mimus__file_exists(path))
        goto out;
    if (!mimus__file_exists(path)) {
        status =
            mimus__fail(MIMUS_ERR_IO, "%s: not the folder of a run: it has no %s", folder, name);
        goto out;
    }
    MIMUS_TRY(mimus__json_read(out, path));
    if (!json_is_object(*out))
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: expected a JSON object", path);
out:
    free(path);
    return status;
}

/* The rows that are whole: a run may be training, and its last row half written. */
static mimus_status read_epochs(json_t **out, const char *folder) {
    mimus_status status = MIMUS_OK;
    json_t *rows = json_array();
    char *path = NULL, *content = NULL;
    size_t bytes = 0;
    MIMUS_TRY(mimus__text_format(&path, "%s/metrics.jsonl", folder));
    if (mimus__file_exists(path))
        MIMUS_TRY(mimus__file_read(path, MOST_METRICS, &content, &bytes));
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(content + at, '\n', bytes - at);
        if (end == NULL)
            break;
        size_t length = (size_t)(end - content) - at;
        json_t *row = json_loadb(content + at, length, 0, NULL);
        if (!json_is_object(row)) {
            json_decref(row);
            status = mimus__fail(MIMUS_ERR_FORMAT, "%s: line %zu is not a JSON object", path,
                                 json_array_size(rows) + 1);
            goto out;
        }
        MIMUS_TRY(mimus__json_append(rows, row));
        at += length + 1;
    }
    *out = json_incref(rows);
out:
    json_decref(rows);
    free(content);
    free(path);
    return status;
}

/* -------------------------------------------------------------------- names */

/* The last part of a path, or the whole of it where that says nothing. */
static const char *last_part(const char *path, size_t *length) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    bool says = end > begin && path[begin] != '.';
    *length = says ? end - begin : strlen(path);
    return says ? path + begin : path;
}

static bool same_part(const char *a, const char *b) {
    size_t a_length, b_length;
    const char *of_a = last_part(a, &a_length), *of_b = last_part(b, &b_length);
    return a_length == b_length && memcmp(of_a, of_b, a_length) == 0;
}

/* Where last parts are the same, the whole path. */
static mimus_status name_view(mimus__view *views, size_t count, size_t which) {
    mimus_status status = MIMUS_OK;
    const char *folder = views[which].folder;
    size_t length;
    const char *part = last_part(folder, &length);
    bool alone = true;
    for (size_t i = 0; i < count; i++)
        alone = alone && (i == which || !same_part(folder, views[i].folder));
    if (!alone)
        MIMUS_TRY(mimus__text_copy(&views[which].name, folder));
    else
        MIMUS_TRY(mimus__text_format(&views[which].name, "%.*s", (int)length, part));
out:
    return status;
}

/* --------------------------------------------------------------------- views */

mimus_status mimus__views_open(mimus__view **out, const char *const *folders, size_t count) {
    mimus_status status = MIMUS_OK;
    mimus__view *views = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&views, count, sizeof *views));
    for (size_t i = 0; i < count; i++)
        views[i].folder = folders[i];
    for (size_t i = 0; i < count; i++) {
        mimus__view *view = &views[i];
        if (!mimus__file_is_folder(view->folder)) {
            status =
                mimus__fail(MIMUS_ERR_IO, "%s: no such folder; runs belong here", view->folder);
            goto out;
        }
        MIMUS_TRY(name_view(views, count, i));
        MIMUS_TRY(read_object(&view->about, view->folder, "run.json", true));
        MIMUS_TRY(read_object(&view->config, view->folder, "config.json", true));
        MIMUS_TRY(read_object(&view->summary, view->folder, "summary.json", false));
        MIMUS_TRY(read_object(&view->evaluation, view->folder, "evaluation.json", false));
        MIMUS_TRY(read_epochs(&view->epochs, view->folder));
    }
    *out = views;
    views = NULL;
out:
    mimus__views_free(views, count);
    return status;
}

void mimus__views_free(mimus__view *views, size_t count) {
    if (views == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        free(views[i].name);
        json_decref(views[i].config);
        json_decref(views[i].about);
        json_decref(views[i].summary);
        json_decref(views[i].evaluation);
        json_decref(views[i].epochs);
    }
    free(views);
}

static const char *fingerprint(const mimus__view *view) {
    return json_string_value(
        json_object_get(json_object_get(view->about, "recording"), "fingerprint"));
}

bool mimus__views_share_recording(const mimus__view *a, const mimus__view *b) {
    const char *of_a = fingerprint(a), *of_b = fingerprint(b);
    return of_a != NULL && of_b != NULL && strcmp(of_a, of_b) == 0;
}
