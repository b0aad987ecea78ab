/* optimizer - parameters from partial gradients, in two launches whatever the number of layers and
 * runs (cl/optimizer.cl). A run whose loss or gradient is not finite is skipped: nothing of it
 * changes but a flag in the step's row of the table. */
#ifndef MIMUS_HOST_OPTIMIZER_H
#define MIMUS_HOST_OPTIMIZER_H

#include "loss.h"
#include "network.h"
#include "panels.h"

/* Columns behind the metrics' in a row of the table. */
typedef enum mimus__table_column {
    MIMUS__COLUMN_NORM,        /* global norm of the gradient, before clipping */
    MIMUS__COLUMN_SKIPPED,     /* 1: the update was skipped */
    MIMUS__COLUMN_CORRECTION1, /* 1 - beta1^k after k applied updates */
    MIMUS__COLUMN_CORRECTION2,
    MIMUS__TABLE_EXTRA
} mimus__table_column;

typedef struct mimus__optimizer {
    mimus__geometry geometry;
    mimus__network *network;     /* borrowed */
    const mimus__panels *panels; /* borrowed; NULL: none are kept */
    mimus__optimizer_kind kind;
    float beta1, beta2, epsilon;
    const mimus__buffer *hyper; /* borrowed */
    uint32_t metric_columns;
    uint32_t table_rows; /* steps + 1 */
    uint32_t chunk_count;
    mimus__buffer chunks;  /* (chunks) mimus__chunk */
    mimus__buffer squares; /* (R, chunks) */
    mimus__buffer moment1; /* as the parameters */
    mimus__buffer moment2; /* as the parameters; none for sgd */
    mimus__buffer rates;   /* (R, steps) factors of the learning rate; 0: no such step */
    mimus__buffer table;   /* (R, steps + 1, metric_columns + MIMUS__TABLE_EXTRA); row 0 carries the
                              corrections into the epoch, row t + 1 is step t's */
    mimus__program program;
    mimus__kernel sum, update, metrics, carry, write_panels;
} mimus__optimizer;

/* Moments, table and corrections start at zero, rates at 1. With `panels` every update writes them
 * too. */
mimus_status mimus__optimizer_new(mimus__optimizer **out, mimus__network *network,
                                  const mimus__panels *panels, const mimus_config *config,
                                  const mimus__buffer *hyper, uint32_t metric_columns,
                                  uint32_t steps);
void mimus__optimizer_free(mimus__optimizer *optimizer);

uint32_t mimus__optimizer_columns(const mimus__optimizer *optimizer);

/* Enqueue: write the panels from the parameters, after these were set. Without panels, nothing. */
mimus_status mimus__optimizer_write_panels(mimus__optimizer *optimizer);

/* The factors of an epoch's learning rates, (runs, steps) of the first `runs` runs; 0 where a run
 * has no such step: it then changes nothing. Blocks. */
mimus_status mimus__optimizer_set_rates(mimus__optimizer *optimizer, const float *rates,
                                        uint32_t runs);

/* Enqueue: step `step` of the epoch with lr * rate, from the network's partial gradients and the
 * batch's sums. */
mimus_status mimus__optimizer_step(mimus__optimizer *optimizer, mimus__sums sums, uint32_t step);

/* Enqueue: the metrics alone, into row `row` of a table (R, table_rows, metric_columns). */
mimus_status mimus__optimizer_metrics(mimus__optimizer *optimizer, mimus__sums sums,
                                      const mimus__buffer *table, uint32_t table_rows,
                                      uint32_t row);

/* Enqueue: carry the corrections of the last row into row 0, for the next epoch. */
mimus_status mimus__optimizer_carry(mimus__optimizer *optimizer);

/* Upload one run's corrections into row 0; a resumed run's. Blocks. */
mimus_status mimus__optimizer_set_corrections(mimus__optimizer *optimizer, uint32_t run,
                                              float correction1, float correction2);

#endif
