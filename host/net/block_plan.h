/* block_plan - the block plan: a whole step in one launch, for CPU devices (cl/block.cl).
 *
 * A work-item takes a slice of the batch, block of rows by block of rows, through gather, forward,
 * loss and backward, everything in its core's cache, and leaves the slice's partial gradient in the
 * network and its metrics in sums; the optimizer adds both. The phased plan (network.h, gather.h,
 * loss.h) computes the same a launch a phase, for GPUs. */
#ifndef MIMUS_HOST_BLOCK_PLAN_H
#define MIMUS_HOST_BLOCK_PLAN_H

#include "loss.h"
#include "network.h"
#include "panels.h"

typedef struct mimus__block_plan mimus__block_plan;

/* Whether the device is one for which the block plan is made. */
bool mimus__block_plan_suits(const mimus__device *device);

/* Slices that a batch of `rows` rows is cut into: partial gradients a run. */
uint32_t mimus__block_plan_slices(const mimus__device *device, uint32_t rows);

/* How many tiles suit the device; 0: it has none, the plan is for CPU devices. */
uint32_t mimus__block_plan_variants(const mimus__device *device);

/* The fastest of them, found by timing. */
enum { MIMUS__BLOCK_PLAN_FASTEST = -1 };

/* What a plan reads beside its network; all borrowed. */
typedef struct mimus__block_source {
    const mimus__store *store;
    const mimus__parts *parts;  /* NULL: all runs have the store's rows */
    const mimus__buffer *hyper; /* runs of mimus__hyper */
    const mimus__batch *shared; /* what all runs share and mimus__gather has gathered, its rows
                                   mimus__block_plan_input_width floats apart; NULL: none */
} mimus__block_source;

/* Floats between the rows of a shared batch, for an input of `padded` floats. */
uint32_t mimus__block_plan_input_width(uint32_t padded);

/* For batches of up to `rows` rows. `network`, borrowed, has `mimus__block_plan_slices` splits.
 * `variant` is one of the tiles that suit the device, which all give the same bits;
 * MIMUS__BLOCK_PLAN_FASTEST times them, or takes what was found at an earlier start (cache folder).
 * MIMUS_ERR_UNSUPPORTED where none suits. Blocks. */
mimus_status mimus__block_plan_new(mimus__block_plan **out, mimus__network *network,
                                   const mimus__block_source *source, const mimus_schema *schema,
                                   bool dropout, uint32_t rows, int variant);
void mimus__block_plan_free(mimus__block_plan *block);

/* As mimus__gather_normalise and mimus__loss_weigh. */
mimus_status mimus__block_plan_normalise(mimus__block_plan *block, uint32_t run, const float *mean,
                                         const float *scale);
mimus_status mimus__block_plan_weigh(mimus__block_plan *block, uint32_t run,
                                     const float *head_weights, const float *action_weights);

/* What the optimizer must keep up to date for it. */
const mimus__panels *mimus__block_plan_panels(const mimus__block_plan *block);

/* Enqueue: positions first .. first+rows-1 of the epoch's order, with a shared batch the one that
 * was gathered last; dropout has the numbers of `step`. Leaves partial gradients and sums. */
mimus_status mimus__block_plan_train(mimus__block_plan *block, uint32_t epoch, uint32_t first,
                                     uint32_t rows, uint32_t step);

/* Enqueue: rows base+first .. of the store as they lie; `trains` with dropout and partial
 * gradients, else sums alone. */
mimus_status mimus__block_plan_in_order(mimus__block_plan *block, uint32_t base, uint32_t first,
                                        uint32_t rows, bool trains, uint32_t step);

/* What the latest batch left. */
mimus__sums mimus__block_plan_sums(const mimus__block_plan *block);

/* {"tile", "block_rows", "slices", "seconds", "cached"}: how it was chosen, for the run's summary,
 * seconds being those of a batch; a new reference. */
json_t *mimus__block_plan_report(const mimus__block_plan *block);

#endif
