/* rig - the parts of a training step put together by hand, so that a test can stop between any two.
 */
#ifndef MIMUS_TEST_RIG_H
#define MIMUS_TEST_RIG_H

#include "block_plan.h"
#include "dataset.h"
#include "hyper.clh"
#include "optimizer.h"

typedef struct rig {
    mimus__device *device;
    mimus__dataset *dataset; /* borrowed */
    mimus__shape shape;
    uint32_t runs, rows;
    mimus__store store;
    mimus__buffer hyper;
    mimus__network *network;
    mimus__block_plan *block; /* with config->plan BLOCK; then no gather and no loss */
    mimus__gather *gather;    /* else */
    mimus__loss *loss;
    mimus__optimizer *optimizer;
} rig;

/* The store has the form of config->store, AUTO being f32, and senses that are not normalised. For
 * batches of `rows` rows and `steps` steps; `hyper` (runs) is copied. Sample weights are taken as
 * they are. `tile` is the block plan's variant. */
void rig_new(rig *out, mimus__device *device, mimus__dataset *dataset, const mimus_config *config,
             const mimus__hyper *hyper, uint32_t runs, uint32_t rows, uint32_t steps, int tile);
void rig_clear(rig *r);

/* Parameters (R, P), and what depends on them; a run's normalisation and weights. */
void rig_set_parameters(rig *r, const float *parameters);
void rig_normalise(rig *r, uint32_t run, const float *mean, const float *scale);
void rig_weigh(rig *r, uint32_t run, const float *head_weights, const float *action_weights);
/* The sums that rig_gradient left. */
mimus__sums rig_sums(const rig *r, uint32_t rows);

/* Up to the gradient's partial sums: gather rows first .. of the training part in order, forward,
 * loss, backward. */
void rig_gradient(rig *r, uint32_t first, uint32_t rows, uint32_t step);

/* A run's gradient (P), its partial sums added. */
void rig_read_gradient(rig *r, uint32_t run, float *gradient);
/* A run's parameters (P). */
void rig_read_parameters(rig *r, uint32_t run, float *parameters);
/* Row `step` of a run's table: metrics, then MIMUS__TABLE_EXTRA columns. */
void rig_read_table(rig *r, uint32_t run, uint32_t step, float *row);

#endif
