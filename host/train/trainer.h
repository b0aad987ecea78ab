/* trainer - the epoch of R runs: sampler and gather, forward, loss, backward, optimizer, step after
 * step on one in-order queue; then the held-out pass; then ONE blocking read that brings the
 * metrics of every step, the parameters and the moments of all runs. Nothing else is read while it
 * trains.
 *
 * Runs that take the same rows in the same order, normalised alike, share their batches: one gather
 * for all. A run that has ended is left out by seating the others anew: it costs nothing more. A
 * run's bits depend on none of this. */
#ifndef MIMUS_HOST_TRAINER_H
#define MIMUS_HOST_TRAINER_H

#include "block_plan.h"
#include "optimizer.h"
#include "statistics.h"

typedef struct mimus__trainer mimus__trainer;

/* Whether these settings mean the block plan on the device. */
bool mimus__trainer_takes_blocks(const mimus_config *config, const mimus__device *device);

/* What a step can be made of, in its order. */
typedef enum mimus__step_phase {
    MIMUS__STEP_GATHER,
    MIMUS__STEP_FORWARD,
    MIMUS__STEP_LOSS,
    MIMUS__STEP_BACKWARD,
    MIMUS__STEP_BLOCK, /* the block plan's: all of the above in one launch */
    MIMUS__STEP_OPTIMIZER,
    MIMUS__STEP_PHASES
} mimus__step_phase;

/* One head's share of a result. */
typedef struct mimus__head_result {
    double nll;       /* mean negative log-likelihood over the labelled samples; NaN without any */
    double agreement; /* share of labelled samples whose most probable legal action is the label */
    double labels;    /* labelled samples */
} mimus__head_result;

/* Means over the samples of a part. */
typedef struct mimus__part_result {
    double loss;               /* what is minimised: weighted, smoothed; NaN for an empty part */
    mimus__head_result *heads; /* (H) */
} mimus__part_result;

/* What an epoch did to one run; arrays belong to the trainer and live until its next epoch. */
typedef struct mimus__epoch_result {
    mimus__part_result training; /* while learning, over the steps that were not skipped */
    mimus__part_result heldout;  /* after it */
    uint32_t steps;
    uint32_t skipped;       /* steps whose loss or gradient was not finite */
    uint32_t first_skipped; /* valid when skipped > 0 */
    const float *step_loss; /* (steps) */
    double lr;              /* of the last step */
    double norm;            /* mean global norm of the gradients */
} mimus__epoch_result;

/* One run. The model gives parameters, normalisation, and where it has state with moments, where to
 * go on; the statistics are its training part's, for balanced class weights. */
typedef struct mimus__trainee {
    const mimus_config *config;
    const mimus__model *model;
    const mimus__statistics *statistics;
    const mimus__run_rows *rows; /* NULL, for all or none: the store's two parts */
} mimus__trainee;

/* Train runs of one shape on the rows of `store`. They may differ in what
 * mimus__config_runs_agree allows; MIMUS_ERR_ARGUMENT names what has to agree. A store that is
 * normalised was packed with the models' normalisation. Borrows device, store and schema; copies
 * the rest. Builds and times kernels, which may take half a minute: mimus__device_set_watch can
 * stop it. */
mimus_status mimus__trainer_new(mimus__trainer **out, mimus__device *device,
                                const mimus__store *store, const mimus_schema *schema,
                                const mimus__trainee *runs, uint32_t count);
void mimus__trainer_free(mimus__trainer *trainer);

/* Train these from now on, at most as many as before: those of the former ones that go on, with
 * their models as mimus__trainer_save left them, or others. What was compiled for them all stays:
 * where batches are shared they have to be, and dropout needs a former run that had it. Blocks. */
mimus_status mimus__trainer_seat(mimus__trainer *trainer, const mimus__trainee *runs,
                                 uint32_t count);

/* Whether one gather is for all runs. */
bool mimus__trainer_shares(const mimus__trainer *trainer);

uint32_t mimus__trainer_steps(const mimus__trainer *trainer); /* of the longest run's epoch */
/* How the step is computed, for the run's summary: {"plan": "phased", "gemm": {...}} or {"plan":
 * "block", "block": {...}}; a new reference. */
json_t *mimus__trainer_report(const mimus__trainer *trainer);
const mimus__network *mimus__trainer_network(const mimus__trainer *trainer);

/* Whether the trainer's plan has such a phase. */
bool mimus__trainer_has(const mimus__trainer *trainer, mimus__step_phase phase);

/* Enqueue one phase that it has, of step `step` of epoch `epoch`, as the epoch does. For whoever
 * measures: a phase that runs out of its order computes on what the latest ones left. */
mimus_status mimus__trainer_phase(mimus__trainer *trainer, mimus__step_phase phase, uint32_t epoch,
                                  uint32_t step);

/* Run epoch `epoch` (from 0) of all runs that are seated and block until it is read; `results`
 * (runs) is filled in their order. */
mimus_status mimus__trainer_epoch(mimus__trainer *trainer, uint32_t epoch,
                                  mimus__epoch_result *results, const mimus_watch *watch);

/* Copy a run's parameters and, where `model` has state, its moments and corrections, as the latest
 * epoch left them (read already: this is a copy on the host). */
mimus_status mimus__trainer_save(const mimus__trainer *trainer, uint32_t run, mimus__model *model);

#endif
