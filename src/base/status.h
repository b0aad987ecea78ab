/* status - how a failure travels: a code upwards, a message beside it. */
#ifndef MIMUS_BASE_STATUS_H
#define MIMUS_BASE_STATUS_H

#include "mimus.h"

/* The only producer of a status other than MIMUS_OK. Returns `code` and keeps the formatted line
 * for mimus_last_error. A message says what was expected and what was found, and names the file,
 * member, row or device. */
mimus_status mimus__fail(mimus_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put `format` and ": " before the present message, as a failure travels up. Returns `code`. */
mimus_status mimus__fail_prefix(mimus_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The one control-flow macro: needs `mimus_status status` and a label `out`. */
#define MIMUS_TRY(call)                                                                            \
    do {                                                                                           \
        if ((status = (call)) != MIMUS_OK)                                                         \
            goto out;                                                                              \
    } while (0)

#endif
