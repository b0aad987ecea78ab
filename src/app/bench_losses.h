/* bench_losses - the losses of a run's first steps in double precision (reference.h), for devices
 * to be held against. */
#ifndef MIMUS_APP_BENCH_LOSSES_H
#define MIMUS_APP_BENCH_LOSSES_H

#include "dataset.h"

enum { MIMUS__BENCH_LOSSES = 10 };

typedef struct mimus__bench_losses {
    uint32_t steps; /* that an epoch has, at most MIMUS__BENCH_LOSSES */
    double loss[MIMUS__BENCH_LOSSES];
} mimus__bench_losses;

/* Train the first steps from `model`, on the batches that the device would take. `config` has no
 * dropout, one sample seen at once, a constant learning rate and no weights of heads or classes.
 * Blocks, for seconds a step of the large workloads. */
mimus_status mimus__bench_losses_of(mimus__bench_losses *out, const mimus__dataset *dataset,
                                    const mimus_config *config, const mimus__model *model,
                                    const mimus_watch *watch);

/* The largest difference of the first steps, NaN where one is; `step_loss` has `steps` numbers. */
double mimus__bench_losses_compare(const mimus__bench_losses *losses, const float *step_loss,
                                   uint32_t steps);

#endif
