/* gather - a batch of rows out of the store, in the epoch's random order or in the store's.
 *
 * The order is the sampler's (cl/sampler.clh): a bijection of (seed, epoch), computed where it is
 * needed. */
#ifndef MIMUS_HOST_GATHER_H
#define MIMUS_HOST_GATHER_H

#include "gemm.h"
#include "geometry.h"
#include "parts.h"
#include "store.h"

typedef struct mimus__gather mimus__gather;

/* Where batches go: the network's input and the rows' label words. */
typedef struct mimus__batch {
    mimus__buffer labels; /* (runs, capacity, label_words) uint32 */
    mimus__buffer shares; /* (runs) with parts: 1 / rows of each run's latest batch */
    mimus__matrix x;      /* (runs, capacity, width) float32, borrowed from the network */
    uint32_t runs;        /* 1 where all runs share it */
    uint32_t capacity;    /* rows */
    uint32_t width;       /* of x, padded; columns past S * stack stay zero */
} mimus__batch;

/* How senses are normalised, x = (sense - mean) * scale, of every run. */
typedef struct mimus__normalisation {
    uint32_t senses;     /* S */
    mimus__buffer mean;  /* (runs, S) */
    mimus__buffer scale; /* (runs, S) */
} mimus__normalisation;

/* 0 and 1. Blocks. */
mimus_status mimus__normalisation_new(mimus__normalisation *out, mimus__device *device,
                                      uint32_t runs, uint32_t senses);
void mimus__normalisation_free(mimus__normalisation *normalisation);
/* One run's; both (S). Blocks. */
mimus_status mimus__normalisation_set(mimus__normalisation *normalisation, uint32_t run,
                                      const float *mean, const float *scale);

/* b of cl/sampler.clh for n rows. */
uint32_t mimus__sampler_half_bits(uint32_t n);

/* `store`, `hyper` (runs of mimus__hyper) and `parts` (NULL: the store's) are borrowed and must
 * outlive the gather. Normalisation is 0 and 1 until set. */
mimus_status mimus__gather_new(mimus__gather **out, mimus__device *device,
                               const mimus__store *store, const mimus__parts *parts,
                               const mimus__buffer *hyper, uint32_t stack, mimus__matrix x,
                               uint32_t runs, uint32_t capacity, uint32_t width);
void mimus__gather_free(mimus__gather *gather);

/* The batch that the following calls fill; borrowed. */
const mimus__batch *mimus__gather_batch(const mimus__gather *gather);

/* From now on only the first `live` runs. */
void mimus__gather_set_live(mimus__gather *gather, uint32_t live);

/* x = (sense - mean) * scale of one run; both (S). Blocks. */
mimus_status mimus__gather_normalise(mimus__gather *gather, uint32_t run, const float *mean,
                                     const float *scale);

/* Enqueue: positions first .. first+rows-1 of the epoch's order over the training rows. Rows up to
 * `padded` become empty (zero senses, no label). */
mimus_status mimus__gather_shuffled(mimus__gather *gather, uint32_t epoch, uint32_t first,
                                    uint32_t rows, uint32_t padded);

/* Enqueue: rows base+first .. of the store as they lie. */
mimus_status mimus__gather_in_order(mimus__gather *gather, uint32_t base, uint32_t first,
                                    uint32_t rows, uint32_t padded);

#endif
