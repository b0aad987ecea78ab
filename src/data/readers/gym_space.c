#include "gym_space.h"

#include "schema.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- parsing */

/* Put null, or 0 where that has no room, in the place of what Python writes for numbers that are
 * not finite. */
static void replace_numbers(char *text) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (char *c = text; *c != '\0'; c++) {
        if (quoted && *c == '\\' && c[1] != '\0')
            c++;
        else if (*c == '"')
            quoted = !quoted;
        for (size_t w = 0; !quoted && w < sizeof words / sizeof *words; w++) {
            size_t length = strlen(words[w]);
            if (strncmp(c, words[w], length) == 0) {
                memset(c, ' ', length);
                memcpy(c, length > 3 ? "null" : " 0 ", length > 3 ? 4 : 3);
            }
        }
    }
}

mimus_status mimus__gym_parse(json_t **out, const char *text, const char *where) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__text_copy(&copy, text));
    replace_numbers(copy);
    MIMUS_TRY(mimus__json_parse(out, copy, strlen(copy), where));
out:
    free(copy);
    return status;
}

/* ----------------------------------------------------------------- finding */

static const char *type_of(const json_t *space) {
    const char *type = json_string_value(json_object_get(space, "type"));
    return type != NULL ? type : "";
}

static bool is(const json_t *space, const char *type) {
    return strcmp(type_of(space), type) == 0;
}

const json_t *mimus__gym_find(const json_t *space, const char *path) {
    while (space != NULL && *path == '/') {
        const char *name = ++path;
        size_t length = strcspn(name, "/");
        path = name + length;
        const json_t *members = json_object_get(space, "subspaces");
        char key[256];
        uint64_t index = 0;
        if (length >= sizeof key)
            return NULL;
        snprintf(key, sizeof key, "%.*s", (int)length, name);
        if (is(space, "Dict"))
            space = json_object_get(members, key);
        else if (is(space, "Tuple") && strncmp(key, "_index_", 7) == 0 &&
                 mimus__text_to_u64(key + 7, &index))
            space = json_array_get(members, (size_t)index);
        else
            space = NULL;
    }
    return space;
}

/* ------------------------------------------------------------------ values */

/* The number at a place of nested arrays laid flat; `*skip` numbers come before it. */
static const json_t *flat_number(const json_t *array, size_t *skip) {
    size_t i;
    const json_t *member;
    if (!json_is_array(array)) {
        if (*skip == 0)
            return array;
        (*skip)--;
        return NULL;
    }
    json_array_foreach(array, i, member) {
        const json_t *found = flat_number(member, skip);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static bool integer_at(const json_t *space, const char *key, size_t index, int64_t *out) {
    const json_t *number = flat_number(json_object_get(space, key), &index);
    if (!json_is_integer(number))
        return false;
    *out = json_integer_value(number);
    return true;
}

bool mimus__gym_choice(const json_t *space, size_t index, uint32_t *actions, int64_t *start) {
    int64_t count = 2;
    *start = 0;
    if (is(space, "Discrete") || is(space, "MultiDiscrete")) {
        if (!integer_at(space, is(space, "Discrete") ? "n" : "nvec", index, &count))
            return false;
        if (!integer_at(space, "start", index, start))
            *start = 0; /* older spaces had none */
    } else if (!is(space, "MultiBinary")) {
        return false;
    }
    if (count < 1 || count > MIMUS__MAX_ACTIONS || *start < -INT32_MAX || *start > INT32_MAX)
        return false;
    *actions = count < 2 ? 2 : (uint32_t)count; /* no head has fewer */
    return true;
}

bool mimus__gym_is_image(const json_t *space) {
    enum { SIDE = 32 };
    const char *type = json_string_value(json_object_get(space, "dtype"));
    const json_t *shape = json_object_get(space, "shape");
    return is(space, "Box") && type != NULL && strcmp(type, "uint8") == 0 &&
           (json_array_size(shape) == 2 || json_array_size(shape) == 3) &&
           json_integer_value(json_array_get(shape, 0)) >= SIDE &&
           json_integer_value(json_array_get(shape, 1)) >= SIDE;
}
