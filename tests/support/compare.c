/* Differences of arrays, and guards behind buffers. */
#include "compare.h"

#include "support.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ numbers */

static bool agree(double got, double want, compare_tolerance tolerance) {
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want))
        return got == want;
    return fabs(got - want) <= tolerance.absolute + tolerance.relative * fabs(want);
}

static double distance(compare_difference difference) {
    double size = fabs(difference.got - difference.want);
    return isnan(size) ? INFINITY : size;
}

static void report_add(compare_report *report, size_t index, double got, double want,
                       compare_tolerance tolerance) {
    if (agree(got, want, tolerance))
        return;
    compare_difference difference = {index, got, want};
    if (report->count++ == 0)
        report->first = report->worst = difference;
    else if (distance(difference) > distance(report->worst))
        report->worst = difference;
}

compare_report compare_doubles(const double *got, const double *want, size_t n,
                               compare_tolerance tolerance) {
    compare_report report = {0};
    for (size_t i = 0; i < n; i++)
        report_add(&report, i, got[i], want[i], tolerance);
    return report;
}

compare_report compare_floats(const float *got, const double *want, size_t n,
                              compare_tolerance tolerance) {
    compare_report report = {0};
    for (size_t i = 0; i < n; i++)
        report_add(&report, i, (double)got[i], want[i], tolerance);
    return report;
}

static void difference_text(char *text, size_t size, compare_difference difference,
                            size_t columns) {
    snprintf(text, size, "[%zu, %zu] %.12g instead of %.12g (off by %.3g)",
             difference.index / columns, difference.index % columns, difference.got,
             difference.want, distance(difference));
}

static void report_check(const char *what, compare_report report, size_t rows, size_t columns,
                         compare_tolerance tolerance) {
    if (report.count == 0)
        return;
    char first[128], worst[128];
    difference_text(first, sizeof first, report.first, columns);
    difference_text(worst, sizeof worst, report.worst, columns);
    ck_abort_msg("%s: %zu of %zu x %zu differ by more than %.3g + %.3g |want|; first %s; worst %s",
                 what, report.count, rows, columns, tolerance.absolute, tolerance.relative, first,
                 worst);
}

void compare_check_doubles(const char *what, const double *got, const double *want, size_t rows,
                           size_t columns, compare_tolerance tolerance) {
    report_check(what, compare_doubles(got, want, rows * columns, tolerance), rows, columns,
                 tolerance);
}

void compare_check_floats(const char *what, const float *got, const double *want, size_t rows,
                          size_t columns, compare_tolerance tolerance) {
    report_check(what, compare_floats(got, want, rows * columns, tolerance), rows, columns,
                 tolerance);
}

/* -------------------------------------------------------------------- bytes */

void compare_check_bytes(const char *what, const void *got, const void *want, size_t bytes) {
    const unsigned char *a = got, *b = want;
    size_t first = 0, last = bytes;
    while (first < bytes && a[first] == b[first])
        first++;
    if (first == bytes)
        return;
    while (a[last - 1] == b[last - 1])
        last--;
    ck_abort_msg("%s: bytes differ from offset %zu (0x%02x instead of 0x%02x) to %zu of %zu", what,
                 first, a[first], b[first], last - 1, bytes);
}

/* A quiet NaN, little-endian, with a face that is seen in a dump: 0x7fc0dead. */
static const unsigned char canary[4] = {0xad, 0xde, 0xc0, 0x7f};

void canary_fill(void *buffer, size_t used, size_t total) {
    unsigned char *bytes = buffer;
    for (size_t i = used; i < total; i++)
        bytes[i] = canary[i % sizeof canary];
}

size_t canary_find(const void *buffer, size_t used, size_t total) {
    const unsigned char *bytes = buffer;
    size_t i = used;
    while (i < total && bytes[i] == canary[i % sizeof canary])
        i++;
    return i;
}

void canary_check(const char *what, const void *buffer, size_t used, size_t total) {
    size_t at = canary_find(buffer, used, total);
    ck_assert_msg(at == total, "%s: written past its %zu bytes, at offset %zu", what, used, at);
}
