#include "jsonl.h"

#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

mimus_status mimus__jsonl_append(const char *path, const json_t *row) {
    mimus_status status = MIMUS_OK;
    char *text = NULL, *line = NULL;
    int descriptor = -1;
    MIMUS_TRY(mimus__json_text(&text, row, JSON_COMPACT));
    MIMUS_TRY(mimus__text_format(&line, "%s\n", text));
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    size_t bytes = strlen(line), done = 0;
    while (descriptor >= 0 && done < bytes) {
        ssize_t wrote = write(descriptor, line + done, bytes - done);
        if (wrote < 0 && errno != EINTR)
            break;
        if (wrote > 0)
            done += (size_t)wrote;
    }
    if (done < bytes)
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
out:
    if (descriptor >= 0)
        close(descriptor);
    free(line);
    free(text);
    return status;
}

/* Whether the line is an object whose `key` is at most `limit`. */
static bool line_counts(const char *line, size_t bytes, const char *key, uint64_t limit) {
    json_t *row = json_loadb(line, bytes, 0, NULL);
    const json_t *value = json_object_get(row, key);
    bool counts = json_is_integer(value) && json_integer_value(value) >= 0 &&
                  (uint64_t)json_integer_value(value) <= limit;
    json_decref(row);
    return counts;
}

mimus_status mimus__jsonl_trim(const char *path, const char *key, uint64_t limit) {
    mimus_status status = MIMUS_OK;
    char *content = NULL;
    size_t bytes = 0, kept = 0;
    if (!mimus__file_exists(path))
        return MIMUS_OK;
    MIMUS_TRY(mimus__file_read(path, SIZE_MAX, &content, &bytes));
    while (kept < bytes) {
        const char *end = memchr(content + kept, '\n', bytes - kept);
        if (end == NULL || !line_counts(content + kept, (size_t)(end - content) - kept, key, limit))
            break;
        kept = (size_t)(end - content) + 1;
    }
    if (kept < bytes)
        MIMUS_TRY(mimus__file_replace(path, content, kept));
out:
    free(content);
    return status;
}
