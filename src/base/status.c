#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };
static _Thread_local char message[MESSAGE_BYTES];

/* One line, whatever a file's bytes or a driver's build log put into it. */
static void flatten(char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
    }
}

mimus_status mimus__fail(mimus_status code, const char *format, ...) {
    char line[MESSAGE_BYTES]; /* an argument may be the present message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    flatten(line);
    memcpy(message, line, sizeof message);
    return code;
}

mimus_status mimus__fail_prefix(mimus_status code, const char *format, ...) {
    char prefix[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    return mimus__fail(code, "%s: %s", prefix, message);
}

const char *mimus_status_text(mimus_status status) {
    switch (status) {
#define MIMUS_STATUS_CASE(name, text)                                                              \
    case MIMUS_##name:                                                                             \
        return text;
        MIMUS_STATUS_MAP(MIMUS_STATUS_CASE)
#undef MIMUS_STATUS_CASE
    }
    return "unknown status";
}

const char *mimus_last_error(void) {
    return message;
}

void mimus_free(void *pointer) {
    free(pointer);
}
