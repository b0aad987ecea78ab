/* json - jansson with this house's errors. */
#ifndef MIMUS_BASE_JSON_H
#define MIMUS_BASE_JSON_H

#include "status.h"

#include <jansson.h>

/* Parse text of `bytes` bytes; `where` names it in the message. Duplicate keys are refused. */
mimus_status mimus__json_parse(json_t **out, const char *text, size_t bytes, const char *where);

/* Read and parse a file of at most 64 MiB. */
mimus_status mimus__json_read(json_t **out, const char *path);

/* Serialise (keys in insertion order); `flags` as for json_dumps, without a precision: numbers get
 * the fewest digits, the same for all of them, that give every one back exactly. Free with
 * free(). */
mimus_status mimus__json_text(char **out, const json_t *value, size_t flags);

/* Write pretty-printed, with a final newline, replacing the file whole. */
mimus_status mimus__json_write(const char *path, const json_t *value);

/* json_real refuses NaN and infinities: they become null. */
json_t *mimus__json_number(double value);

/* Round every real number in `value` to the nine digits that tell single-precision numbers apart:
 * 0.3 for people, not 0.30000000000000004. */
void mimus__json_round(json_t *value);

/* A string of text from outside, such as a path: bytes above 0x7F become "?" when the text is not
 * UTF-8. */
json_t *mimus__json_lossy_string(const char *text);

/* jansson reports a failed set or append by its return value only, which is easy to lose: these
 * take the reference and fail with MIMUS_ERR_MEMORY. A NULL `value` fails too. */
mimus_status mimus__json_set(json_t *object, const char *key, json_t *value);
mimus_status mimus__json_append(json_t *array, json_t *value);

/* Typed members of an object; `where` begins the message when one is missing or of another
 * type. Strings are borrowed. */
mimus_status mimus__json_get_string(const json_t *object, const char *key, const char *where,
                                    const char **out);
mimus_status mimus__json_get_u64(const json_t *object, const char *key, const char *where,
                                 uint64_t *out);
mimus_status mimus__json_get_double(const json_t *object, const char *key, const char *where,
                                    double *out);
mimus_status mimus__json_get_bool(const json_t *object, const char *key, const char *where,
                                  bool *out);

#endif
