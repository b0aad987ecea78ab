/* bench_page - what the bench measured as an HTML page: bar charts, and the numbers as tables. One
 * file that loads nothing, in light and dark, on a screen of any width. */
#ifndef MIMUS_APP_BENCH_PAGE_H
#define MIMUS_APP_BENCH_PAGE_H

#include "json.h"

#include <stdio.h>

/* Write the page of a document of mimus_bench, or of several in {"workloads": [...]}; texts are
 * escaped, numbers that are not there shown as "-". A failed write is left in the stream's error
 * indicator. */
void mimus__bench_page(FILE *out, const json_t *document);

#endif
