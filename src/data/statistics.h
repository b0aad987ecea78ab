/* statistics - what the training part looks like: normalisation and label counts. */
#ifndef MIMUS_DATA_STATISTICS_H
#define MIMUS_DATA_STATISTICS_H

#include "split.h"

typedef struct mimus__statistics {
    double *mean;     /* (S) */
    double *std;      /* (S) population standard deviation */
    float *minimum;   /* (S) */
    float *maximum;   /* (S) */
    uint64_t *counts; /* (A) labels seen, heads in order */
    uint64_t *labels; /* (H) labelled samples of each head */
    double *legal;    /* (H) mean number of legal actions a sample */
    double weight;    /* mean sample weight */
} mimus__statistics;

/* One pass in double precision. Sums are shifted by a sample near by and joined every few thousand
 * samples (Chan, Golub, LeVeque 1983), so that neither a large offset nor an outlier costs digits.
 * Labels are those of mimus__audit_label. Without rows, means and extremes are NaN. Clear `*out`
 * either way. */
mimus_status mimus__statistics_new(mimus__statistics *out, const mimus__recording *recording,
                                   const mimus__rows *rows);
void mimus__statistics_clear(mimus__statistics *statistics);

#endif
