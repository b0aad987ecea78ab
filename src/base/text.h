/* text - small strings on the heap. */
#ifndef MIMUS_BASE_TEXT_H
#define MIMUS_BASE_TEXT_H

#include "status.h"

/* printf into a new string; free with free(). */
mimus_status mimus__text_format(char **out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A copy; NULL gives NULL. */
mimus_status mimus__text_copy(char **out, const char *text);

/* Whether it is well-formed UTF-8 (no overlong forms, no surrogates), as JSON needs it. */
bool mimus__text_is_utf8(const char *text);

/* "s" where a noun behind `count` takes one. */
const char *mimus__text_plural(uint64_t count);

/* Whole-string numbers: nothing before or behind the digits, in range. false otherwise. */
bool mimus__text_to_u64(const char *text, uint64_t *out);
bool mimus__text_to_double(const char *text, double *out);

#endif
