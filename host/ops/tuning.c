#include "tuning.h"

#include "file.h"
#include "geometry.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

mimus_status mimus__tuning_key(json_t **out, const mimus__device *device) {
    mimus_status status = MIMUS_OK;
    const mimus__device_info *info = mimus__device_get_info(device);
    json_t *key = json_object();
    MIMUS_TRY(mimus__json_set(key, "mimus", json_string(MIMUS_VERSION)));
    MIMUS_TRY(mimus__json_set(key, "platform", json_string(info->platform_name)));
    MIMUS_TRY(mimus__json_set(key, "device", json_string(info->name)));
    MIMUS_TRY(mimus__json_set(key, "version", json_string(info->version)));
    MIMUS_TRY(mimus__json_set(key, "driver", json_string(info->driver)));
    MIMUS_TRY(mimus__json_set(key, "units", json_integer(info->compute_units)));
    MIMUS_TRY(mimus__json_set(key, "group", json_integer(mimus__geometry_of(device).local)));
    *out = json_incref(key);
out:
    json_decref(key);
    return status;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static mimus_status cache_path(char **out, const char *kind, const json_t *key) {
    mimus_status status = MIMUS_OK;
    char *folder = NULL, *text = NULL;
    MIMUS_TRY(mimus__file_cache_folder(&folder));
    MIMUS_TRY(mimus__json_text(&text, key, JSON_COMPACT));
    MIMUS_TRY(mimus__text_format(out, "%s/%s-%016" PRIx64 ".json", folder, kind, hash_text(text)));
out:
    free(folder);
    free(text);
    return status;
}

/* A pipe in its place would never be read to its end. */
static mimus_status read_file(json_t **content, const char *path) {
    int descriptor;
    mimus_status status = mimus__file_open(&descriptor, path);
    if (status != MIMUS_OK)
        return status;
    close(descriptor);
    return mimus__json_read(content, path);
}

json_t *mimus__tuning_recall(const char *kind, const json_t *key) {
    json_t *content = NULL, *report = NULL;
    char *path = NULL;
    if (cache_path(&path, kind, key) == MIMUS_OK && read_file(&content, path) == MIMUS_OK &&
        json_equal(json_object_get(content, "key"), key))
        report = json_incref(json_object_get(content, "report"));
    json_decref(content);
    free(path);
    return report;
}

void mimus__tuning_remember(const char *kind, json_t *key, json_t *report) {
    json_t *content = json_object();
    char *path = NULL;
    if (cache_path(&path, kind, key) == MIMUS_OK &&
        mimus__json_set(content, "key", json_incref(key)) == MIMUS_OK &&
        mimus__json_set(content, "report", json_incref(report)) == MIMUS_OK)
        (void)mimus__json_write(path, content);
    json_decref(content);
    free(path);
}
