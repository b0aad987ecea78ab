/* page - HTML pages of one file, which load nothing from elsewhere and say so to the browser. */
#ifndef MIMUS_REPORT_PAGE_H
#define MIMUS_REPORT_PAGE_H

#include "json.h"

#include <stdio.h>

/* Text in a page: what HTML takes for its own is escaped, control characters become blanks. */
void mimus__page_text(FILE *out, const char *text);

/* The page up to where <main> begins, in the common style. What follows is the caller's, up to
 * mimus__page_end. */
void mimus__page_begin(FILE *out, const char *title);
void mimus__page_end(FILE *out);

/* A whole page that the script of this name (web/NAME) makes, by Chart.js, of the document.
 * MIMUS_ERR_MEMORY when it cannot be serialised. */
mimus_status mimus__page_write(FILE *out, const char *title, const char *script,
                               const json_t *document);

#endif
