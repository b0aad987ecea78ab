/* compare - arrays held against what they should be, and guards behind buffers. */
#ifndef MIMUS_TEST_COMPARE_H
#define MIMUS_TEST_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two numbers agree when |got - want| <= absolute + relative * |want|, when they are the same
 * infinity, or both NaN. */
typedef struct compare_tolerance {
    double relative, absolute;
} compare_tolerance;

typedef struct compare_difference {
    size_t index;
    double got, want;
} compare_difference;

typedef struct compare_report {
    size_t count;             /* how many of the numbers differ */
    compare_difference first; /* when count > 0 */
    compare_difference worst; /* the largest |got - want|; one that is not finite outdoes all */
} compare_report;

/* The differences of `n` numbers. */
compare_report compare_doubles(const double *got, const double *want, size_t n,
                               compare_tolerance tolerance);
compare_report compare_floats(const float *got, const double *want, size_t n,
                              compare_tolerance tolerance);

/* The same for a (rows, columns) array, failing the running test when there is a difference: the
 * message names `what`, how many differ, and the first and the worst with row and column. */
void compare_check_doubles(const char *what, const double *got, const double *want, size_t rows,
                           size_t columns, compare_tolerance tolerance);
void compare_check_floats(const char *what, const float *got, const double *want, size_t rows,
                          size_t columns, compare_tolerance tolerance);

/* Equal in every byte, else the running test fails with the first and the last that differ. */
void compare_check_bytes(const char *what, const void *got, const void *want, size_t bytes);

/* A canary is what stands in a buffer's bytes from `used` to `total`: whoever writes there is found
 * by canary_check, whoever reads floats there computes NaN. */
void canary_fill(void *buffer, size_t used, size_t total);
/* The offset of the first byte that is no longer as filled; `total` when all are. */
size_t canary_find(const void *buffer, size_t used, size_t total);
/* Fails the running test when one is not. */
void canary_check(const char *what, const void *buffer, size_t used, size_t total);

#endif
