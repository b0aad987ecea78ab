/* masked_log_softmax - loss, gradient and per-head metrics of a batch in one launch.
 *
 *   logits   (R, stride_rows, LOGIT_WIDTH)  in: logits; out: gradient of the batch's mean loss
 *   labels   (R, label_rows, LABEL_WORDS)   as gather wrote them; label_rows 0: of all runs
 *   turned   (R, groups, A, LANES)          scratch; not used when LANES is 1
 *   partial  (R, groups, METRIC_COLUMNS)    sums over each group's rows, overwritten
 *
 * LOCAL = 1 (CPUs): an item takes ROWS rows, LANES at a time. LOCAL > 1 (GPUs): an item a row, and
 * the group adds its columns in a fixed tree. mimus_metrics_sum adds the groups in order, so
 * results repeat bit for bit. */
#include "group_sum.clh"
#include "hyper.clh"
#include "masked_log_softmax.clh"

#ifndef PARTS /* 1: runs have rows of their own number; one over it is in `shares` (R, or 1 of all) */
#define PARTS 0
#endif
#ifndef LOGIT_WIDTH
#define LOGIT_WIDTH 16
#endif
#ifndef ROWS /* rows a group; LOCAL when LOCAL > 1, a multiple of LANES */
#define ROWS 32
#endif

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_masked_log_softmax(uint rows, uint stride_rows, uint label_rows, float scale,
                         __global const float *restrict shares,
                         __global const mimus__hyper *restrict hyper,
                         __global const float *restrict head_weights,   /* (R, HEADS) */
                         __global const float *restrict action_weights, /* (R, A) */
                         __global float *restrict logits, __global const uint *restrict labels,
                         __global float *restrict turned, __global float *restrict partial) {
    uint run = get_global_id(1), group = get_group_id(0), lane = get_local_id(0);
    size_t slot = (size_t)run * get_num_groups(0) + group;
    __global const float *actions = action_weights + run * head_offset[HEADS];
    __global float *out = partial + slot * METRIC_COLUMNS;
    float smoothing = hyper[run].label_smoothing;
    uint begin = group * ROWS, end = min(begin + ROWS, rows);
    head_weights += run * HEADS;
    labels += (size_t)run * label_rows * LABEL_WORDS;
#if PARTS
    scale = shares[label_rows > 0u ? run : 0u];
#else
    (void)shares;
#endif
#if LOCAL > 1
    /* Head by head: the columns of all of them would take a GPU's registers. */
    __local float values[LOCAL];
    size_t at = (size_t)run * stride_rows + begin + lane;
    int inside = begin + lane < end;
    __global const uint *label = labels + (size_t)(begin + lane) * LABEL_WORDS;
    float share = inside ? sample_share(label, 1, scale) : 0.0f, loss = 0.0f;
#pragma unroll 1
    for (uint h = 0; h < HEADS; h++) {
        float columns[3] = {0.0f, 0.0f, 0.0f};
        if (inside)
            masked_log_softmax_head(h, 1, label, head_weights[h], actions, smoothing, share,
                                    logits + at * LOGIT_WIDTH, &loss, columns);
#pragma unroll
        for (uint c = 0; c < 3; c++) {
            float sum = group_sum(columns[c], values, lane);
            if (lane == 0)
                out[1 + 3 * h + c] = sum;
        }
    }
    loss = group_sum(loss, values, lane);
    if (lane == 0)
        out[0] = loss;
    (void)turned;
#else
    floatl columns[METRIC_COLUMNS];
    for (uint c = 0; c < METRIC_COLUMNS; c++)
        columns[c] = (floatl)(0.0f);
    for (uint i = begin; i < end; i += LANES) {
        size_t at = (size_t)run * stride_rows + i;
        masked_log_softmax_rows(logits + at * LOGIT_WIDTH, LOGIT_WIDTH, min(end - i, (uint)LANES),
                                labels + (size_t)i * LABEL_WORDS, head_weights, actions, smoothing,
                                scale, turned + slot * head_offset[HEADS] * LANES, columns);
    }
    for (uint c = 0; c < METRIC_COLUMNS; c++)
        out[c] = lanes_sum(columns[c]);
    (void)lane;
#endif
}
