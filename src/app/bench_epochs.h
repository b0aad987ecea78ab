/* bench_epochs - training on the clock: what epochs take, and what the last one reached. */
#ifndef MIMUS_APP_BENCH_EPOCHS_H
#define MIMUS_APP_BENCH_EPOCHS_H

#include "bench_losses.h"
#include "trainer.h"

/* Times are seconds; an epoch has its held-out pass in it. */
typedef struct mimus__bench_epochs {
    uint32_t epochs, steps;                 /* steps of one */
    double first;                           /* drivers compile then */
    double *settled;                        /* (epochs - 1) the others, ascending */
    uint64_t launches, reads;               /* of the last one */
    double heldout_loss, heldout_agreement; /* after the last one; agreement: mean of the heads */
    uint32_t skipped;                       /* steps of all epochs */
    float first_losses[MIMUS__BENCH_LOSSES];
} mimus__bench_epochs;

/* Run epoch `epoch` (from 0) and block until `result` is there. Of its training part only
 * `step_loss` is looked at. */
typedef mimus_status (*mimus__bench_epoch)(void *user, uint32_t epoch, mimus__epoch_result *result,
                                           const mimus_watch *watch);

/* Run `epochs` (2 or more) of them on a network of `heads` heads. MIMUS_ERR_STOPPED between two
 * when the watch asks for it. Clear it whatever the outcome. */
mimus_status mimus__bench_epochs_run(mimus__bench_epochs *out, const mimus__device *device,
                                     uint32_t epochs, uint32_t heads, mimus__bench_epoch run,
                                     void *user, const mimus_watch *watch);
void mimus__bench_epochs_clear(mimus__bench_epochs *epochs);

/* Of the settled ones: the middle one, or the mean of the two; and the mean. */
double mimus__bench_epochs_median(const mimus__bench_epochs *epochs);
double mimus__bench_epochs_mean(const mimus__bench_epochs *epochs);

/* mimus__trainer_epoch on a trainer of one run, to be run as above. */
mimus_status mimus__bench_trainer_epoch(void *trainer, uint32_t epoch, mimus__epoch_result *result,
                                        const mimus_watch *watch);

#endif
