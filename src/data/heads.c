#include "heads.h"

#include "alloc.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mimus_status mimus__heads_name_actions(mimus_head *head, const char *const *names, uint32_t count) {
    mimus_status status = MIMUS_OK;
    const char **copies = NULL;
    MIMUS_TRY(mimus__alloc(&copies, (size_t)count + 1, sizeof *copies)); /* a NULL ends it */
    head->action_names = copies; /* freed with the head, also after a failure */
    head->actions = count;
    for (uint32_t a = 0; a < count; a++)
        MIMUS_TRY(mimus__text_copy((char **)&copies[a], names[a]));
out:
    return status;
}

/* "hold|fire", which is overwritten. */
static mimus_status parse_names(mimus_head *out, char *text) {
    mimus_status status = MIMUS_OK;
    const char **names = NULL;
    size_t capacity = 0, count = 0;
    while (text != NULL) {
        char *bar = strchr(text, '|');
        if (bar != NULL)
            *bar++ = '\0';
        if (*text == '\0' || count == MIMUS__MAX_ACTIONS)
            MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT,
                                  "heads: action %zu has an empty name, or is one too many",
                                  count));
        MIMUS_TRY(mimus__grow(&names, &capacity, count + 1, sizeof *names));
        names[count++] = text;
        text = bar;
    }
    MIMUS_TRY(mimus__heads_name_actions(out, names, (uint32_t)count));
out:
    free(names);
    return status;
}

static mimus_status parse_actions(mimus_head *out, char *text, const char *part) {
    uint64_t actions = 0;
    if (strchr(text, '|') != NULL)
        return parse_names(out, text);
    if (!mimus__text_to_u64(text, &actions))
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "heads: \"%s\" should be name:actions, or a number of actions", part);
    if (actions < 2 || actions > MIMUS__MAX_ACTIONS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "heads: \"%s\": a head has 2 to %d actions", part,
                           MIMUS__MAX_ACTIONS);
    out->actions = (uint32_t)actions;
    return MIMUS_OK;
}

/* One part of the text, "name:actions" or "actions", which is overwritten. */
static mimus_status parse_head(mimus_head *out, char *part) {
    mimus_status status = MIMUS_OK;
    char *colon = strrchr(part, ':');
    if (colon == part)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "heads: \"%s\" should be name:actions, or a number of actions", part);
    MIMUS_TRY(parse_actions(out, colon != NULL ? colon + 1 : part, part));
    if (colon != NULL) {
        *colon = '\0';
        MIMUS_TRY(mimus__text_copy((char **)&out->name, part));
    }
out:
    return status;
}

mimus_status mimus__heads_parse(mimus_head **out, uint32_t *count, const char *text) {
    mimus_status status = MIMUS_OK;
    char *parts = NULL;
    uint32_t heads = 0, wanted = 1;
    *out = NULL;
    MIMUS_TRY(mimus__text_copy(&parts, text));
    for (const char *c = text; *c != '\0'; c++)
        wanted += *c == ',';
    if (wanted > MIMUS__MAX_HEADS)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT, "heads: %u heads; at most %d are possible",
                              wanted, MIMUS__MAX_HEADS));
    MIMUS_TRY(mimus__alloc(out, wanted, sizeof **out));
    for (char *part = parts; part != NULL; heads++) {
        char *comma = strchr(part, ',');
        if (comma != NULL)
            *comma++ = '\0';
        MIMUS_TRY(parse_head(&(*out)[heads], part));
        part = comma;
    }
    *count = heads;
out:
    free(parts);
    if (status != MIMUS_OK) {
        mimus__heads_free(*out, wanted);
        *out = NULL;
    }
    return status;
}

/* "3,3,2" or the start of it. */
static const char *sizes_text(const mimus_head *heads, uint32_t count, char *text, size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t h = 0; h < count && length < bytes; h++) {
        if (h == 16) {
            snprintf(text + length, bytes - length, ",...");
            break;
        }
        length +=
            (size_t)snprintf(text + length, bytes - length, h > 0 ? ",%u" : "%u", heads[h].actions);
    }
    return text;
}

static uint64_t total_actions(const mimus_head *heads, uint32_t count) {
    uint64_t total = 0;
    for (uint32_t h = 0; h < count; h++)
        total += heads[h].actions;
    return total;
}

mimus_status mimus__heads_infer(mimus_head **out, const int64_t *largest, uint32_t count,
                                uint64_t mask_width) {
    mimus_status status = MIMUS_OK;
    char sizes[160];
    mimus_head *heads = NULL;
    MIMUS_TRY(mimus__alloc(&heads, count, sizeof *heads));
    for (uint32_t h = 0; h < count; h++) {
        if (largest[h] >= MIMUS__MAX_ACTIONS) {
            status = mimus__fail(MIMUS_ERR_DATA, "head %u has a label of %lld; labels go up to %d",
                                 h, (long long)largest[h], MIMUS__MAX_ACTIONS - 1);
            goto out;
        }
        heads[h].actions = largest[h] < 2 ? 2 : (uint32_t)largest[h] + 1;
    }
    if (count == 1 && mask_width >= 2 && mask_width <= MIMUS__MAX_ACTIONS)
        heads[0].actions = (uint32_t)mask_width;
    if (mask_width > 0 && total_actions(heads, count) != mask_width) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "the masks are %llu wide, while the largest labels of the %u heads "
                             "make %llu actions (%s); the option heads states them",
                             (unsigned long long)mask_width, count,
                             (unsigned long long)total_actions(heads, count),
                             sizes_text(heads, count, sizes, sizeof sizes));
        goto out;
    }
    *out = heads;
    heads = NULL;
out:
    mimus__heads_free(heads, count);
    return status;
}

static mimus_status copy_head(mimus_head *out, const mimus_head *from) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__text_copy((char **)&out->name, from->name));
    out->actions = from->actions;
    if (from->action_names != NULL)
        MIMUS_TRY(mimus__heads_name_actions(out, from->action_names, from->actions));
out:
    return status;
}

mimus_status mimus__heads_like(mimus_head **out, const mimus_schema *like, uint32_t count) {
    mimus_status status = MIMUS_OK;
    mimus_head *heads = NULL;
    *out = NULL;
    if (like == NULL || like->heads != count)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&heads, count, sizeof *heads));
    for (uint32_t h = 0; h < count; h++)
        MIMUS_TRY(copy_head(&heads[h], &like->head[h]));
    *out = heads;
    heads = NULL;
out:
    mimus__heads_free(heads, count);
    return status;
}

mimus_status mimus__heads_fit(const mimus_head *heads, uint32_t count, uint64_t columns,
                              uint64_t mask_width) {
    uint64_t total = total_actions(heads, count);
    for (uint32_t h = 0; h < count; h++) {
        if (heads[h].bin_edges != NULL && heads[h].action_names != NULL)
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "the option heads has names for the actions of head %u, and the "
                               "option bin makes bins of it",
                               h);
    }
    if (count != columns)
        return mimus__fail(
            MIMUS_ERR_ARGUMENT,
            "the option heads names %u heads, and the samples have %llu actions each", count,
            (unsigned long long)columns);
    if (mask_width > 0 && total != mask_width)
        return mimus__fail(
            MIMUS_ERR_ARGUMENT,
            "the option heads makes %llu actions in all, and the masks are %llu wide",
            (unsigned long long)total, (unsigned long long)mask_width);
    return MIMUS_OK;
}

void mimus__heads_tell(const mimus_head *heads, uint32_t count, const char *path,
                       const mimus_watch *watch) {
    char sizes[256];
    size_t length = 0;
    for (uint32_t h = 0; h < count && length < sizeof sizes; h++)
        length += (size_t)snprintf(sizes + length, sizeof sizes - length, h > 0 ? ",%u" : "%u",
                                   heads[h].actions);
    mimus__watch_message(
        watch, "%s: actions of each head, by the largest labels: %s; the option heads states them",
        path, sizes);
}

void mimus__heads_free(mimus_head *heads, uint32_t count) {
    for (uint32_t h = 0; heads != NULL && h < count; h++) {
        free((char *)heads[h].name);
        for (size_t a = 0; heads[h].action_names != NULL && heads[h].action_names[a] != NULL; a++)
            free((char *)heads[h].action_names[a]);
        free((void *)heads[h].action_names);
    }
    free(heads);
}

uint16_t mimus__heads_label(int64_t stored) {
    if (stored == -1)
        return MIMUS_NO_LABEL;
    return stored >= 0 && stored < MIMUS__MAX_ACTIONS ? (uint16_t)stored : MIMUS__MAX_ACTIONS;
}
