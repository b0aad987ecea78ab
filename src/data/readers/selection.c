#include "selection.h"

#include "alloc.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mimus__table_columns_text(const mimus__table_columns *columns, char *text,
                                      size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    if (columns->names == NULL) {
        snprintf(text, bytes, "0 to %u, without names", columns->count - 1);
        return text;
    }
    for (uint32_t c = 0; c < columns->count; c++) {
        if (length + strlen(columns->names[c]) + sizeof " and 4294967295 more" >= bytes) {
            snprintf(text + length, bytes - length, " and %u more", columns->count - c);
            break;
        }
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", c > 0 ? ", " : "",
                                   columns->names[c]);
    }
    return text;
}

void mimus__selection_clear(mimus__selection *selection) {
    free(selection->column);
    *selection = (mimus__selection){0};
}

mimus_status mimus__selection_add(mimus__selection *selection, uint32_t column) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__grow(&selection->column, &selection->capacity, (size_t)selection->count + 1,
                          sizeof *selection->column));
    selection->column[selection->count++] = column;
out:
    return status;
}

static mimus_status add_range(mimus__selection *selection, uint32_t first, uint32_t end) {
    mimus_status status = MIMUS_OK;
    for (uint32_t c = first; c < end; c++)
        MIMUS_TRY(mimus__selection_add(selection, c));
out:
    return status;
}

/* "-1" of 65 columns is 64; false for what is no position, 0 to `count`. */
static bool parse_position(const char *text, size_t bytes, uint32_t count, uint32_t *out) {
    char digits[24];
    uint64_t value = 0;
    const bool negative = bytes > 0 && *text == '-';
    if (bytes == 0 || bytes >= sizeof digits)
        return false;
    memcpy(digits, text, bytes);
    digits[bytes] = '\0';
    if (!mimus__text_to_u64(digits + negative, &value) || value > count || (negative && value == 0))
        return false;
    *out = negative ? count - (uint32_t)value : (uint32_t)value;
    return true;
}

static bool parse_range(const char *text, uint32_t count, uint32_t *first, uint32_t *end) {
    const char *colon = strchr(text, ':');
    *first = 0;
    *end = count;
    return colon != NULL &&
           (colon == text || parse_position(text, (size_t)(colon - text), count, first)) &&
           (colon[1] == '\0' || parse_position(colon + 1, strlen(colon + 1), count, end)) &&
           *first < *end;
}

/* Add what is called so, with a '*' at the end what begins so; `*found` is how many. */
static mimus_status add_named(mimus__selection *selection, const mimus__table_columns *columns,
                              const char *text, uint32_t *found) {
    mimus_status status = MIMUS_OK;
    size_t length = strlen(text);
    bool begins = length > 0 && text[length - 1] == '*';
    *found = 0;
    for (uint32_t c = 0; columns->names != NULL && c < columns->count; c++) {
        const char *name = columns->names[c];
        if (strcmp(name, text) == 0 || (begins && strncmp(name, text, length - 1) == 0)) {
            MIMUS_TRY(mimus__selection_add(selection, c));
            ++*found;
        }
    }
out:
    return status;
}

static mimus_status parse_part(mimus__selection *selection, const mimus__table_columns *columns,
                               const char *option, const char *part) {
    mimus_status status = MIMUS_OK;
    char contents[400];
    uint32_t found = 0, first = 0, end = 0;
    size_t length = strlen(part);
    MIMUS_TRY(add_named(selection, columns, part, &found));
    if (found > 1 && part[length - 1] != '*')
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: option %s: %u columns are called \"%s\"; choose by position",
                           columns->where, option, found, part);
    if (found > 0)
        goto out;
    if (parse_position(part, length, columns->count, &first) && first < columns->count)
        return mimus__selection_add(selection, first);
    if (parse_range(part, columns->count, &first, &end))
        return add_range(selection, first, end);
    status = mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option %s: no column \"%s\"; there are %s",
                         columns->where, option, part,
                         mimus__table_columns_text(columns, contents, sizeof contents));
out:
    return status;
}

mimus_status mimus__selection_parse(mimus__selection *out, const mimus__table_columns *columns,
                                    const char *option, const char *text) {
    mimus_status status = MIMUS_OK;
    char *parts = NULL;
    MIMUS_TRY(mimus__text_copy(&parts, text));
    for (char *part = parts; part != NULL;) {
        char *comma = strchr(part, ',');
        if (comma != NULL)
            *comma++ = '\0';
        MIMUS_TRY(parse_part(out, columns, option, part));
        part = comma;
    }
out:
    free(parts);
    return status;
}
