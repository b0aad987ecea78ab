#include "json.h"

#include "file.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

mimus_status mimus__json_parse(json_t **out, const char *text, size_t bytes, const char *where) {
    json_error_t error;
    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: not valid JSON: line %d, column %d: %s", where,
                           error.line, error.column, error.text);
    return MIMUS_OK;
}

mimus_status mimus__json_read(json_t **out, const char *path) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    size_t bytes = 0;
    *out = NULL;
    MIMUS_TRY(mimus__file_read(path, (size_t)64 << 20, &text, &bytes));
    MIMUS_TRY(mimus__json_parse(out, text, bytes, path));
out:
    free(text);
    return status;
}

/* 15 digits give short texts, 17 give every double back. */
enum { FEWEST_DIGITS = 15, MOST_DIGITS = 17 };

static int digits_of_number(double number, int digits) {
    for (; digits < MOST_DIGITS; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return digits;
}

/* The digits, `digits` at least, with which every number in the value comes back as it is. */
static int digits_of(const json_t *value, int digits) {
    if (json_is_real(value))
        return digits_of_number(json_real_value(value), digits);
    for (size_t i = 0; i < json_array_size(value) && digits < MOST_DIGITS; i++)
        digits = digits_of(json_array_get(value, i), digits);
    json_t *object = (json_t *)value; /* iterators of what is not changed lack a const */
    for (void *at = json_object_iter(object); at != NULL && digits < MOST_DIGITS;
         at = json_object_iter_next(object, at))
        digits = digits_of(json_object_iter_value(at), digits);
    return digits;
}

mimus_status mimus__json_text(char **out, const json_t *value, size_t flags) {
    size_t precision = JSON_REAL_PRECISION((size_t)digits_of(value, FEWEST_DIGITS));
    *out = value != NULL ? json_dumps(value, flags | precision | JSON_ENCODE_ANY) : NULL;
    return *out != NULL ? MIMUS_OK : mimus__fail(MIMUS_ERR_MEMORY, "cannot serialise a JSON value");
}

mimus_status mimus__json_write(const char *path, const json_t *value) {
    mimus_status status = MIMUS_OK;
    mimus__file_writer writer = {0};
    char *text = NULL;
    MIMUS_TRY(mimus__json_text(&text, value, JSON_INDENT(2)));
    MIMUS_TRY(mimus__file_writer_open(&writer, path));
    fprintf(writer.stream, "%s\n", text);
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    free(text);
    return status;
}

json_t *mimus__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void mimus__json_round(json_t *value) {
    const char *key;
    json_t *member;
    size_t i;
    char digits[32];
    if (json_is_real(value)) {
        snprintf(digits, sizeof digits, "%.9g", json_real_value(value));
        json_real_set(value, strtod(digits, NULL));
    }
    json_object_foreach(value, key, member) mimus__json_round(member);
    json_array_foreach(value, i, member) mimus__json_round(member);
}

json_t *mimus__json_lossy_string(const char *text) {
    char *copy = NULL;
    if (mimus__text_is_utf8(text))
        return json_string(text);
    if (mimus__text_copy(&copy, text) != MIMUS_OK)
        return NULL;
    for (char *c = copy; *c != '\0'; c++) {
        if ((unsigned char)*c > 0x7F)
            *c = '?';
    }
    json_t *string = json_string(copy);
    free(copy);
    return string;
}

mimus_status mimus__json_set(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot add \"%s\" to a JSON object", key);
    return MIMUS_OK;
}

mimus_status mimus__json_append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot append to a JSON array");
    return MIMUS_OK;
}

static const char *type_name(const json_t *value) {
    if (value == NULL)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "something unknown";
}

static mimus_status wrong_type(const json_t *value, const char *key, const char *where,
                               const char *wanted) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be %s and is %s", where, key, wanted,
                       type_name(value));
}

mimus_status mimus__json_get_string(const json_t *object, const char *key, const char *where,
                                    const char **out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return wrong_type(value, key, where, "a string");
    *out = json_string_value(value);
    return MIMUS_OK;
}

mimus_status mimus__json_get_u64(const json_t *object, const char *key, const char *where,
                                 uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong_type(value, key, where, "an integer of 0 or more");
    *out = (uint64_t)json_integer_value(value);
    return MIMUS_OK;
}

mimus_status mimus__json_get_double(const json_t *object, const char *key, const char *where,
                                    double *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return wrong_type(value, key, where, "a number");
    *out = json_number_value(value);
    return MIMUS_OK;
}

mimus_status mimus__json_get_bool(const json_t *object, const char *key, const char *where,
                                  bool *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return wrong_type(value, key, where, "true or false");
    *out = json_is_true(value);
    return MIMUS_OK;
}
