#include "text.h"

#include "alloc.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mimus_status mimus__text_format(char **out, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    *out = NULL;
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, (size_t)length + 1, 1));
    vsnprintf(*out, (size_t)length + 1, format, again);
out:
    va_end(again);
    return status;
}

mimus_status mimus__text_copy(char **out, const char *text) {
    *out = NULL;
    return text == NULL ? MIMUS_OK : mimus__text_format(out, "%s", text);
}

/* Bytes that follow `lead`, or -1; `low` and `high` bound the first of them (Unicode 15, table
 * 3-7). */
static int utf8_tail(unsigned lead, unsigned *low, unsigned *high) {
    *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0x80)
        return 0;
    if (lead < 0xC2 || lead > 0xF4)
        return -1;
    return lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
}

const char *mimus__text_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

bool mimus__text_is_utf8(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        unsigned low, high;
        int tail = utf8_tail(*c++, &low, &high);
        for (int i = 0; i < tail; i++, c++, low = 0x80, high = 0xBF) {
            if (*c < low || *c > high) /* the final NUL is below too */
                return false;
        }
        if (tail < 0)
            return false;
    }
    return true;
}

bool mimus__text_to_u64(const char *text, uint64_t *out) {
    if (*text < '0' || *text > '9') /* strtoull would take a sign and white space */
        return false;
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* strtod with the decimal point, whatever locale the program that links us has chosen. */
static double c_strtod(const char *text, char **end) {
    if (strcmp(nl_langinfo(RADIXCHAR), ".") == 0)
        return strtod(text, end);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = uselocale(c);
    double value = strtod(text, end);
    uselocale(old);
    freelocale(c);
    return value;
}

bool mimus__text_to_double(const char *text, double *out) {
    if (strchr("+-.0123456789", *text) == NULL || *text == '\0')
        return false;
    char *end;
    errno = 0;
    *out = c_strtod(text, &end);
    return (errno == 0 || (errno == ERANGE && *out > -1 && *out < 1)) && *end == '\0' &&
           *out - *out == 0;
}
