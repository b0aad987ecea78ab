/* assets - what pages are made of, embedded at build (cmake/Web.cmake): the files of web/, and
 * Chart.js as "chart.js". */
#ifndef MIMUS_REPORT_ASSETS_H
#define MIMUS_REPORT_ASSETS_H

#include <stddef.h>

typedef struct mimus__asset {
    const char *name;           /* "page.css" */
    const unsigned char *bytes; /* ends in NUL */
} mimus__asset;

/* Ends in a NULL name. */
extern const mimus__asset mimus__assets[];

#endif
