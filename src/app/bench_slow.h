/* bench_slow - training as it is done where nobody looked at its cost, for `mimus bench --ablate`.
 *
 *   - batches: built by the host, row by row out of an array in its memory, and uploaded; or
 * gathered on the device, as mimus does it
 *   - a launch for the loss of every head (cl/bench_head_loss.cl), or one for all
 *   - the loss and the heads' sums are read back after every step, the queue standing still
 * meanwhile
 *
 * It is kept fair, so that what is gained is gained over something: the host's array is packed and
 * normalised beforehand, and the order of its rows ready, so that building a batch is one copy a
 * row; a head's loss is one kernel, vectorised like mimus' own, where a framework has several;
 * there is one read a step, not one a head. All else are the pieces that the trainer is made of,
 * and the order is the sampler's: every way trains on the same batches and differs in rounding
 * alone. */
#ifndef MIMUS_APP_BENCH_SLOW_H
#define MIMUS_APP_BENCH_SLOW_H

#include "dataset.h"
#include "trainer.h"

typedef struct mimus__bench_way {
    bool uploads;     /* batches come from the host */
    bool head_losses; /* a launch a head */
} mimus__bench_way;

typedef struct mimus__bench_slow mimus__bench_slow;

/* Train `model` on the rows of `store`; borrows device, store and config. With `uploads` it first
 * reads the store back into the host's memory. `config` has the default of all but hidden, batch,
 * lr, epochs, gemm and seed. Blocks. */
mimus_status mimus__bench_slow_new(mimus__bench_slow **out, mimus__device *device,
                                   const mimus__store *store, const mimus_schema *schema,
                                   const mimus_config *config, const mimus__model *model,
                                   mimus__bench_way way);
void mimus__bench_slow_free(mimus__bench_slow *slow);

/* A mimus__bench_epoch of a mimus__bench_slow (`user`): all steps, then the held-out pass in the
 * same way. The result's arrays live until the next epoch; its training part is empty. */
mimus_status mimus__bench_slow_epoch(void *user, uint32_t epoch, mimus__epoch_result *result,
                                     const mimus_watch *watch);

/* Bytes of batches that went to the device so far. */
uint64_t mimus__bench_slow_uploaded(const mimus__bench_slow *slow);

#endif
