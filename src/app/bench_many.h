/* bench_many - runs that train at once, on the clock: what a pass of 1, 4, 16, ... runs takes, each
 * with batches of its own and with one for all, beside as many runs alone. */
#ifndef MIMUS_APP_BENCH_MANY_H
#define MIMUS_APP_BENCH_MANY_H

#include "bench_epochs.h"
#include "bench_step.h"

enum { MIMUS__BENCH_PASSES = 32 };

/* One pass: all runs of a number. Times are seconds. */
typedef struct mimus__bench_pass {
    uint32_t runs;
    bool shared;                /* one gather for all */
    double prepare;             /* building kernels, timing products */
    uint64_t bytes;             /* of device memory, the recording included */
    mimus__bench_epochs epochs; /* of all runs; losses and agreement are the first one's */
    mimus__bench_step cost;     /* of a step of all runs, on paper */
    uint64_t launches;          /* of a step, counted */
} mimus__bench_pass;

typedef struct mimus__bench_passes {
    mimus__device_info device;
    uint64_t recording; /* bytes of it on the device */
    mimus__bench_pass pass[MIMUS__BENCH_PASSES];
    uint32_t passes;
} mimus__bench_passes;

/* "1,4,16": ascending numbers of runs into `runs`; MIMUS_ERR_ARGUMENT says what is wrong. */
mimus_status mimus__bench_many_parse(uint32_t runs[MIMUS__BENCH_PASSES / 2], uint32_t *count,
                                     const char *text);

/* Train the runs of each number, with seeds of their own; twice where they are several. One alone
 * is measured first, whether it is asked for or not. Blocks. Clear it whatever the outcome. */
mimus_status mimus__bench_many(mimus__bench_passes *out, const char *selector,
                               const mimus__dataset *dataset, const mimus_config *config,
                               const uint32_t *runs, uint32_t count, const mimus_watch *watch);
void mimus__bench_many_clear(mimus__bench_passes *passes);

/* Seconds that an epoch takes of each run, over those of a run alone. */
double mimus__bench_pass_beside_solo(const mimus__bench_passes *passes, uint32_t pass);

#endif
