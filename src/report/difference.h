/* difference - whether two policies' results differ by more than chance.
 *
 * A result is a ratio of sums over groups of samples that are alike, as episodes are: hits per
 * sample, or nll per sample. Its standard error is that of a ratio of m groups' sums x and counts
 * n, p = sum x / sum n:
 *
 *     se^2 = m / (m - 1)  sum (x - p n)^2 / (sum n)^2
 *
 * (Cochran, Sampling Techniques, 3rd ed. 1977, section 3.12). */
#ifndef MIMUS_REPORT_DIFFERENCE_H
#define MIMUS_REPORT_DIFFERENCE_H

#include "status.h"

/* Sums over m groups. */
typedef struct mimus__ratio {
    size_t groups;       /* m */
    const double *sum;   /* (m) */
    const double *count; /* (m) 0 or more */
} mimus__ratio;

typedef struct mimus__estimated {
    double value, se; /* NaN where it cannot be said */
} mimus__estimated;

typedef struct mimus__difference {
    double value, se; /* b - a */
    double p;         /* how often chance alone makes a difference as large; NaN: cannot be said */
} mimus__difference;

mimus__estimated mimus__ratio_estimate(const mimus__ratio *ratio);

/* Of two policies judged on the same groups, with the same counts. If they were alike, either sign
 * of a group's difference were as likely: p is the part of all ways to choose the signs whose sum
 * is as far from 0 (Fisher, The Design of Experiments, 1935, section 21). Up to 16 groups that
 * differ they are all tried, so that p is exact; of more, 9,999 are drawn, always the same ones. */
mimus_status mimus__difference_paired(mimus__difference *out, const mimus__ratio *a,
                                      const mimus__ratio *b);

/* Of two that were judged on different groups: p by the normal distribution, from 20 groups on. */
mimus__difference mimus__difference_unpaired(const mimus__ratio *a, const mimus__ratio *b);

/* Holm's correction (1979) in place: when `count` questions are asked at once, what is below 0.05
 * afterwards is so by chance in 1 of 20 cases for all of them together. NaNs are no questions. */
mimus_status mimus__difference_correct(double *p, size_t count);

#endif
