/* bench_ablate - the change that mimus rests on, repeated step by step on one device and recording:
 *
 *   uploaded     the host builds and uploads each batch, a loss a head, read every step
 *   resident     the recording stays on the device, which gathers
 *   one loss     one launch for all heads
 *   one read     the loss is read once an epoch, by the trainer's phased plan
 *   chosen plan  training as `mimus train` has it: on CPUs a step is one launch and the optimizer
 *   large batch  the same, with the batch and learning rate of the workload reference-32k
 *
 * Each begins with the same parameters and gives the same numbers; bench_slow.h says what the first
 * three do, and do not, to be slow. All but the last train on the same batches: they must reach the
 * same held-out agreement. The large batch takes another way, of fewer steps; how far it gets is
 * told, and judges nothing. */
#ifndef MIMUS_APP_BENCH_ABLATE_H
#define MIMUS_APP_BENCH_ABLATE_H

#include "bench_epochs.h"

enum { MIMUS__ABLATE_STAGES = 6 };

/* By how much held-out agreement may differ, as a share of 1. */
#define MIMUS__ABLATE_TOLERANCE 0.005

typedef struct mimus__bench_stage {
    const char *name; /* as above; static */
    uint32_t batch;
    double lr;
    bool read_every_step;
    uint32_t losses; /* launches of it a step */
    double uploaded; /* bytes of batches an epoch */
    mimus__bench_epochs epochs;
} mimus__bench_stage;

typedef struct mimus__bench_ablation {
    mimus__device_info device;
    mimus__bench_stage stage[MIMUS__ABLATE_STAGES];
} mimus__bench_ablation;

/* Train all stages one after another, on the device that `selector` chooses. `model` is where they
 * begin, `large` the last one's settings. Blocks. Clear it whatever the outcome. */
mimus_status mimus__bench_ablate(mimus__bench_ablation *out, const char *selector,
                                 const mimus__dataset *dataset, const mimus_config *config,
                                 const mimus_config *large, const mimus__model *model,
                                 const mimus_watch *watch);
void mimus__bench_ablation_clear(mimus__bench_ablation *ablation);

/* Held-out agreement of a stage less that of the first. */
double mimus__bench_ablation_difference(const mimus__bench_ablation *ablation, uint32_t stage);
/* The largest such difference, without sign, of the stages that train on the same batches; NaN when
 * one is. */
double mimus__bench_ablation_largest(const mimus__bench_ablation *ablation);

#endif
