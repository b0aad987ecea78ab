/* selftest - what the self-test's checks share: the verdict that they pass their numbers to, and a
 * made-up recording.
 *
 * A check runs the kernels of one step of training on a small awkward case, with the geometry that
 * training would give them on this device, and holds what they leave against src/reference. */
#ifndef MIMUS_APP_SELFTEST_H
#define MIMUS_APP_SELFTEST_H

#include "buffer.h"
#include "reference.h"
#include "rng.h"
#include "store.h"

/* ------------------------------------------------------------------ verdict */

/* How far off a check's numbers are. A number that is NaN or infinite where it should not be is
 * infinitely far off. */
typedef struct mimus__verdict {
    double tolerance;
    double worst;   /* largest difference so far, relative as the functions below say */
    char text[192]; /* which number that is; "" while all are within the tolerance */
} mimus__verdict;

/* `n` numbers, their differences relative to the largest |want|. */
void mimus__verdict_array(mimus__verdict *verdict, const char *what, const float *got,
                          const double *want, size_t n);
/* One number, relative to itself, or to 1 when it should be 0. NaN agrees with NaN. */
void mimus__verdict_number(mimus__verdict *verdict, const char *what, double got, double want);
/* `n` words that must be equal; a wrong one is as far off as 1 from 0. */
void mimus__verdict_words(mimus__verdict *verdict, const char *what, const uint32_t *got,
                          const uint32_t *want, size_t n);

/* ------------------------------------------------------------------- sample */

/* A recording in memory: three heads of 2, 33 and 5 actions, masks, weights, absent labels,
 * episodes of any length, a quarter held out. */
typedef struct mimus__selftest_sample {
    mimus__recording *recording;
    const mimus_schema *schema; /* the recording's */
    mimus__block block;         /* all of it */
    mimus__audit audit;
    mimus__split split;
    uint64_t *row;   /* (N) the recording's row that is a row of the store */
    uint64_t *first; /* (N) by the store's row: the first row that is stacked with it */
} mimus__selftest_sample;

mimus_status mimus__selftest_sample_new(mimus__selftest_sample *out);
void mimus__selftest_sample_clear(mimus__selftest_sample *sample);

/* Rows of the sample as the reference takes them. */
typedef struct mimus__selftest_batch {
    mimus__reference_batch reference; /* rows, and the arrays below */
    const mimus__selftest_sample *sample;
    uint32_t stack;
    float *senses;
    uint16_t *actions;
    uint32_t *masks;
    float *weights;
    uint32_t *ages;
} mimus__selftest_batch;

/* Room for `capacity` rows; set reference.rows and each row. Clear whatever the outcome. */
mimus_status mimus__selftest_batch_init(mimus__selftest_batch *out,
                                        const mimus__selftest_sample *sample, uint32_t stack,
                                        uint32_t capacity);
void mimus__selftest_batch_clear(mimus__selftest_batch *batch);

/* Row i of the batch is a row of the store. */
void mimus__selftest_batch_set(mimus__selftest_batch *batch, uint32_t i, uint64_t store_row);

/* Row i's label words as store.h lays them out. */
void mimus__selftest_label_words(const mimus__selftest_batch *batch, uint32_t i,
                                 const mimus__row_layout *layout, uint32_t *words);

/* Uniform in [-1, 1). */
float mimus__selftest_random(mimus__rng *rng);

/* A buffer that holds `bytes` bytes of `content`. */
mimus_status mimus__selftest_upload(mimus__buffer *out, mimus__device *device, const void *content,
                                    size_t bytes);

/* ------------------------------------------------------------------- checks */

/* `variant` is what the table in selftest.c gives it. */
typedef mimus_status mimus__selftest_check(mimus__device *device,
                                           const mimus__selftest_sample *sample, int variant,
                                           mimus__verdict *verdict);

/* 1 and 3 shards, stacked and normalised. variant: 0 in order, 1 shuffled, 2 and 3
 * shuffled out of a store in f16 and bf16. */
mimus__selftest_check mimus__selftest_gather;

/* One product of one back end, every activation, every variant of the back end. variant: product +
 * 3 * back end (tile, CLBlast). MIMUS_ERR_UNSUPPORTED when the back end cannot be had, or is none
 * that training would choose on this device. */
mimus__selftest_check mimus__selftest_product;
/* The naive products that choose between the back ends at a start. */
mimus__selftest_check mimus__selftest_naive;

/* variant: 1 with masks and sample weights, 0 without. */
mimus__selftest_check mimus__selftest_loss;

/* A layer's outputs under dropout. */
mimus__selftest_check mimus__selftest_dropout;
/* Gradient sum, metrics and update for made-up gradients, one of them not a number. variant: a
 * mimus__optimizer_kind. */
mimus__selftest_check mimus__selftest_optimizer;
/* Ten whole steps of two runs, and a held-out pass. */
mimus__selftest_check mimus__selftest_steps;

#endif
