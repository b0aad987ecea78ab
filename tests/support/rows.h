/* rows - recordings of any rows, sound or not, as a reader might have left them. */
#ifndef MIMUS_TEST_ROWS_H
#define MIMUS_TEST_ROWS_H

#include "recording.h"

typedef struct test_row {
    const float *senses;     /* (S) */
    const uint16_t *actions; /* (H) */
    const uint8_t *legal;    /* (A), or NULL */
    float weight;
    bool ends; /* its episode */
} test_row;

/* Write the rows to `path` unjudged. */
void test_rows_write(const char *path, const mimus_schema *schema, const test_row *rows,
                     size_t count);
/* The same in the test's folder, opened; the caller frees it. */
mimus__recording *test_rows_record(const mimus_schema *schema, const test_row *rows, size_t count);

#endif
