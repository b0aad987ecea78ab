#include "difference.h"

#include "alloc.h"
#include "rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { EXACT_GROUPS = 16, DRAWS = 9999, NORMAL_GROUPS = 20 };

static double sum_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Groups without a sample say nothing. */
static size_t groups_of(const mimus__ratio *ratio) {
    size_t groups = 0;
    for (size_t i = 0; i < ratio->groups; i++)
        groups += ratio->count[i] > 0;
    return groups;
}

mimus__estimated mimus__ratio_estimate(const mimus__ratio *ratio) {
    double n = sum_of(ratio->count, ratio->groups), spread = 0;
    double p = sum_of(ratio->sum, ratio->groups) / n, m = (double)groups_of(ratio);
    for (size_t i = 0; i < ratio->groups; i++) {
        double off = ratio->sum[i] - p * ratio->count[i];
        spread += off * off;
    }
    return (mimus__estimated){.value = p, .se = m > 1 ? sqrt(m / (m - 1) * spread) / n : NAN};
}

/* ------------------------------------------------------------------ signs */

/* Whether a sum is as far from 0 as `far`; rounding does not make it nearer. */
static bool as_far(double sum, double far) {
    return fabs(sum) >= far - 1e-9 * far;
}

static double all_signs(const double *each, size_t count, double far) {
    uint32_t ways = 1u << count, hits = 0;
    for (uint32_t way = 0; way < ways; way++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += way >> i & 1 ? -each[i] : each[i];
        hits += as_far(sum, far);
    }
    return (double)hits / ways;
}

/* The signs that were found count as one of those drawn, so that p is never 0. */
static double drawn_signs(const double *each, size_t count, double far) {
    mimus__rng rng = {.seed = 0x5169};
    uint32_t hits = 1, bits = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            bits = i % 32 == 0 ? mimus__rng_u32(&rng) : bits >> 1;
            sum += bits & 1 ? -each[i] : each[i];
        }
        hits += as_far(sum, far);
    }
    return (double)hits / (DRAWS + 1);
}

mimus_status mimus__difference_paired(mimus__difference *out, const mimus__ratio *a,
                                      const mimus__ratio *b) {
    mimus_status status = MIMUS_OK;
    double *each = NULL;
    size_t differ = 0;
    assert(a->groups == b->groups);
    MIMUS_TRY(mimus__alloc(&each, a->groups, sizeof *each));
    for (size_t i = 0; i < a->groups; i++)
        each[i] = b->sum[i] - a->sum[i];
    mimus__estimated mean = mimus__ratio_estimate(
        &(const mimus__ratio){.groups = a->groups, .sum = each, .count = a->count});
    double far = fabs(sum_of(each, a->groups));
    for (size_t i = 0; i < a->groups; i++) {
        if (each[i] != 0)
            each[differ++] = each[i];
    }
    *out = (mimus__difference){.value = mean.value, .se = mean.se, .p = NAN};
    if (groups_of(a) > 1)
        out->p =
            differ <= EXACT_GROUPS ? all_signs(each, differ, far) : drawn_signs(each, differ, far);
out:
    free(each);
    return status;
}

mimus__difference mimus__difference_unpaired(const mimus__ratio *a, const mimus__ratio *b) {
    mimus__estimated of_a = mimus__ratio_estimate(a), of_b = mimus__ratio_estimate(b);
    mimus__difference out = {
        .value = of_b.value - of_a.value, .se = hypot(of_a.se, of_b.se), .p = NAN};
    if (groups_of(a) >= NORMAL_GROUPS && groups_of(b) >= NORMAL_GROUPS)
        out.p = out.se > 0 ? erfc(fabs(out.value) / out.se / sqrt(2)) : out.value == 0;
    return out;
}

/* ---------------------------------------------------------------- correction */

typedef struct question {
    size_t index;
    double p;
} question;

static int smaller(const void *a, const void *b) {
    const question *left = a, *right = b;
    return left->p < right->p ? -1 : left->p > right->p;
}

mimus_status mimus__difference_correct(double *p, size_t count) {
    mimus_status status = MIMUS_OK;
    question *sorted = NULL;
    size_t questions = 0;
    double most = 0;
    MIMUS_TRY(mimus__alloc(&sorted, count, sizeof *sorted));
    for (size_t i = 0; i < count; i++) {
        if (!isnan(p[i]))
            sorted[questions++] = (question){i, p[i]};
    }
    qsort(sorted, questions, sizeof *sorted, smaller);
    for (size_t i = 0; i < questions; i++) {
        most = fmax(most, fmin(1, sorted[i].p * (double)(questions - i)));
        p[sorted[i].index] = most;
    }
out:
    free(sorted);
    return status;
}
