/* bench_run - training a workload on one device, measured. */
#ifndef MIMUS_APP_BENCH_RUN_H
#define MIMUS_APP_BENCH_RUN_H

#include "bench_device.h"
#include "bench_epochs.h"
#include "bench_step.h"

/* Times are seconds. */
typedef struct mimus__bench_run {
    mimus__device_info device;
    mimus__bench_limits limits;
    json_t *plan;               /* mimus__trainer_report */
    uint64_t bytes;             /* of device memory, while training */
    uint32_t training, heldout; /* samples */

    /* before the first epoch */
    double upload; /* packing and uploading the recording */
    uint64_t upload_bytes;
    double prepare; /* building kernels, timing products */

    mimus__bench_epochs epochs;

    /* a step of a full batch */
    uint32_t rows;
    mimus__bench_step cost;
    double phase[MIMUS__STEP_PHASES];      /* each alone, many times behind one another */
    uint64_t launches[MIMUS__STEP_PHASES]; /* counted; phases that the plan has not are 0 */
    uint64_t reads;                        /* counted, of a whole step */
    double step;                           /* whole steps behind one another */
    double enqueue;                        /* the host's part of it */

    /* an epoch on paper */
    double operations;   /* of the products, held-out pass included */
    double gather_bytes; /* likewise */
} mimus__bench_run;

/* Open the device and measure everything; `model` is where training starts. Blocks. Clear it
 * whatever the outcome. */
mimus_status mimus__bench_run_new(mimus__bench_run *out, const char *selector,
                                  const mimus__dataset *dataset, const mimus_config *config,
                                  const mimus__model *model, const mimus__bench_effort *effort,
                                  const mimus_watch *watch);
void mimus__bench_run_clear(mimus__bench_run *run);

#endif
