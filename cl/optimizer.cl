/* optimizer - from partial gradients to new parameters, in two launches for all layers of all runs.
 *
 *   mimus_gradient_sum   adds the Z partial gradients in order, squares them for the norm, and adds
 * the step's metrics mimus_update         clips, and applies Adam, AdamW or SGD; or skips the run
 * when anything is not finite mimus_metrics_sum    the metrics alone, for held-out batches
 *
 * Parameters lie layer by layer, the R runs of a layer behind one another (host/net/layout.h). A
 * chunk is a piece of one layer: run r's begins at word chunk.x + r * chunk.y and is chunk.z long,
 * a multiple of VW; chunk.w is 1 + the layer whose weights it is cut from, or 0 for biases.
 * With PANELS, weights are kept in panels too (cl/panels.clh), for the block plan.
 *
 * The step's row of the table (per run: steps + 1 rows of TABLE_COLUMNS; row t + 1 is step t's)
 * holds METRIC_COLUMNS metrics, then the gradient's norm, 1 when the update was skipped, and the
 * bias corrections 1 - beta^k after k applied updates, which row 0 carries over from the epoch
 * before. `rates` (R, steps) has the schedule's factors; 0 where a run's epoch has no such step. */
#include "common.clh"
#include "group_sum.clh"
#include "hyper.clh"
#include "metrics_sum.clh"
#include "panels.clh"
#include "vector.clh"

#ifndef OPTIMIZER /* 0 adam, 1 adamw, 2 sgd */
#define OPTIMIZER 0
#endif
#ifndef PANELS
#define PANELS 0
#endif
#define COLUMN_NORM METRIC_COLUMNS
#define COLUMN_SKIPPED (METRIC_COLUMNS + 1)
#define COLUMN_CORRECTION1 (METRIC_COLUMNS + 2)
#define COLUMN_CORRECTION2 (METRIC_COLUMNS + 3)
#define TABLE_COLUMNS (METRIC_COLUMNS + 4)

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_gradient_sum(uint splits, ulong split_stride, __global const uint4 *restrict chunks,
                   __global float *restrict gradient,
                   __global float *restrict squares /* (R, chunks) */,
                   __global const float *restrict partial, uint groups,
                   __global float *restrict table, uint table_rows, uint step) {
    __local float values[LOCAL];
    uint run = get_global_id(1), index = get_group_id(0), lane = get_local_id(0);
    uint4 chunk = chunks[index];
    __global float *g = gradient + chunk.x + (size_t)run * chunk.y;
    floatv squared = (floatv)(0.0f);
    for (uint i = lane * VW; i < chunk.z; i += LOCAL * VW) {
        floatv sum = loadv(0, g + i);
        for (uint z = 1; z < splits; z++)
            sum += loadv(0, g + z * split_stride + i);
        storev(sum, 0, g + i);
        squared = sum * sum + squared;
    }
    float total = group_sum(sumv(squared), values, lane);
    if (lane == 0)
        squares[run * get_num_groups(0) + index] = total;
    if (index == 0)
        metrics_sum(partial + (size_t)run * groups * METRIC_COLUMNS, groups,
                    table + ((size_t)run * table_rows + step + 1) * TABLE_COLUMNS, lane, LOCAL);
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_metrics_sum(__global const float *restrict partial, uint groups,
                  __global float *restrict table, uint table_rows, uint row) {
    uint run = get_global_id(1);
    metrics_sum(partial + (size_t)run * groups * METRIC_COLUMNS, groups,
                table + ((size_t)run * table_rows + row) * METRIC_COLUMNS, get_local_id(0), LOCAL);
}

/* Adam: Kingma and Ba 2015, algorithm 1. AdamW: Loshchilov and Hutter 2019, algorithm 2. SGD with
 * heavy-ball momentum, as PyTorch writes it: m = beta1 m + g; p -= lr m. */
static inline floatv updated(floatv p, floatv g, __global float *moment1, __global float *moment2,
                             float lr, float decay, float beta1, float beta2, float epsilon,
                             float correction1, float correction2) {
    floatv m = loadv(0, moment1);
#if OPTIMIZER == 1
    p -= lr * decay * p;
#else
    g = decay * p + g;
#endif
#if OPTIMIZER == 2
    m = beta1 * m + g;
    storev(m, 0, moment1);
    (void)moment2, (void)beta2, (void)epsilon, (void)correction1, (void)correction2;
    return p - lr * m;
#else
    floatv v = loadv(0, moment2);
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * g * g;
    storev(m, 0, moment1);
    storev(v, 0, moment2);
    return p - lr / correction1 * m / (sqrt(v / correction2) + epsilon);
#endif
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_update(__global const float *restrict rates, float beta1, float beta2, float epsilon,
             __global const mimus__hyper *restrict hyper, __global const uint4 *restrict chunks,
             __global const float *restrict gradient, __global const float *restrict squares,
             __global float *restrict parameters, __global float *restrict moment1,
             __global float *restrict moment2, /* sgd: moment1 again, unused */
             __global float *restrict panels, __global float *restrict turned, /* or unused */
             __global float *restrict table, uint table_rows, uint step) {
    __local float values[LOCAL];
    uint run = get_global_id(1), index = get_group_id(0), lane = get_local_id(0);
    __global const float *before = table + ((size_t)run * table_rows + step) * TABLE_COLUMNS;
    __global float *row = table + ((size_t)run * table_rows + step + 1) * TABLE_COLUMNS;

    /* every group adds the same numbers in the same order */
    float squared = 0.0f;
    for (uint c = lane; c < get_num_groups(0); c += LOCAL)
        squared += squares[run * get_num_groups(0) + c];
    float norm = sqrt(group_sum(squared, values, lane));
    float rate = rates[(size_t)run * (table_rows - 1) + step];
    int there = rate > 0.0f, good = there && is_finite_bits(norm) && is_finite_bits(row[0]);
    float correction1 = before[COLUMN_CORRECTION1], correction2 = before[COLUMN_CORRECTION2];
    if (good) { /* 1 - b^(k+1) = b (1 - b^k) + (1 - b): no power, no cancellation */
        correction1 = beta1 * correction1 + (1.0f - beta1);
        correction2 = beta2 * correction2 + (1.0f - beta2);
    }
    if (index == 0 && lane == 0) {
        row[COLUMN_NORM] = norm;
        row[COLUMN_SKIPPED] = good || !there ? 0.0f : 1.0f;
        row[COLUMN_CORRECTION1] = correction1;
        row[COLUMN_CORRECTION2] = correction2;
    }
    if (!good)
        return;

    mimus__hyper h = hyper[run];
    float shrink = h.clip > 0.0f ? fmin(1.0f, h.clip / (norm + 1e-6f)) : 1.0f;
    float lr = h.lr * rate;
    uint4 chunk = chunks[index];
    size_t at = chunk.x + (size_t)run * chunk.y;
    for (uint i = lane * VW; i < chunk.z; i += LOCAL * VW) {
        floatv p = loadv(0, parameters + at + i);
        floatv g = loadv(0, gradient + at + i) * shrink;
        p = updated(p, g, moment1 + at + i, moment2 + at + i, lr, h.weight_decay, beta1, beta2,
                    epsilon, correction1, correction2);
        storev(p, 0, parameters + at + i);
        if (PANELS && chunk.w > 0)
            panels_write(panels, turned, chunk.w - 1, run,
                         chunk.x - weights_at[chunk.w - 1] + i, p);
    }
}

/* The corrections of the last row into row 0, for the next epoch. An item a run. */
__kernel void mimus_carry(__global float *table, uint table_rows) {
    __global float *rows = table + (size_t)get_global_id(0) * table_rows * TABLE_COLUMNS;
    __global const float *last = rows + (size_t)(table_rows - 1) * TABLE_COLUMNS;
    rows[COLUMN_CORRECTION1] = last[COLUMN_CORRECTION1];
    rows[COLUMN_CORRECTION2] = last[COLUMN_CORRECTION2];
}

/* The panels of the parameters as they are. */
__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_panels(__global const uint4 *restrict chunks, __global const float *restrict parameters,
             __global float *restrict panels, __global float *restrict turned) {
    uint run = get_global_id(1);
    uint4 chunk = chunks[get_group_id(0)];
    __global const float *p = parameters + chunk.x + (size_t)run * chunk.y;
    if (chunk.w == 0)
        return;
    for (uint i = get_local_id(0) * VW; i < chunk.z; i += LOCAL * VW)
        panels_write(panels, turned, chunk.w - 1, run, chunk.x - weights_at[chunk.w - 1] + i,
                     loadv(0, p + i));
}
