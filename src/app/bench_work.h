/* bench_work - what a bench trains: a named workload, changed as the caller asks, and a recording
 * of its shape. */
#ifndef MIMUS_APP_BENCH_WORK_H
#define MIMUS_APP_BENCH_WORK_H

#include "dataset.h"

enum { MIMUS__BENCH_SAMPLES = 262144, MIMUS__BENCH_EPOCHS = 3 };

typedef struct mimus__bench_work {
    const char *name;
    mimus_config *config;
    mimus__dataset dataset;
} mimus__bench_work;

/* Make up or open the recording, audit and split it; blocks for as long as that takes. Bad options
 * are MIMUS_ERR_ARGUMENT. Clear it whatever the outcome. */
mimus_status mimus__bench_work_new(mimus__bench_work *out, const mimus_bench_options *options,
                                   const mimus_watch *watch);
void mimus__bench_work_clear(mimus__bench_work *work);

/* A copy of `config` with batch and learning rate of reference-32k; free with mimus_config_free. */
mimus_status mimus__bench_work_large(mimus_config **out, const mimus_config *config);

#endif
