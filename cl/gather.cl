/* gather - a batch out of the resident recording, normalised.
 *
 *     x[r][i][k*S + s] = (senses[row - min(K-1-k, age)][s] - mean[r][s]) * scale[r][s]
 *     labels[r][i]     = the row's label words
 *
 * row = sampler(first + i) in training, base + first + i in order. Rows rows..padded-1 are zero and
 * without a label, so that they add nothing anywhere. One group of LOCAL items a row, ROWS rows a
 * group. With PARTS (parts.clh) each run has rows, and as many, of its own; `shares` then gets one
 * over their number, which the loss needs.
 *
 *   x       (R, stride_rows, X_WIDTH)      float   columns S*K.. stay as they are (zero)
 *   labels  (R, stride_rows, LABEL_WORDS)  uint
 *   mean, scale (R, S)  */
#include "gather.clh"
#include "hyper.clh"
#include "parts.clh"
#include "sampler.clh"

#ifndef ACTION_WORDS /* label words that hold actions; the first ones */
#define ACTION_WORDS 1
#endif
#ifndef X_WIDTH
#define X_WIDTH 16
#endif
#ifndef ROWS
#define ROWS 16
#endif

static inline void gather_nothing(__global float *x, __global uint *labels, uint lane) {
    for (uint s = lane; s < SENSES * STACK; s += LOCAL)
        x[s] = 0.0f;
    for (uint w = lane; w < LABEL_WORDS; w += LOCAL)
        labels[w] = w < ACTION_WORDS ? 0xFFFFFFFFu : 0u;
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
mimus_gather(SHARD_PARAMETERS, uint shuffled, uint epoch, uint n, uint half_bits, uint base,
             uint first, uint rows, uint padded, uint stride_rows,
             __global const mimus__hyper *restrict hyper, __global const float *restrict all_mean,
             __global const float *restrict all_scale, __global float *restrict all_x,
             __global uint *restrict all_labels, __global float *restrict shares PART_PARAMETERS) {
    uint run = get_global_id(1), lane = get_local_id(0);
#if PARTS
    const mimus__part part = parts[run];
    rows = part_count(part, shuffled, first, rows);
    n = part.training;
    half_bits = part.half_bits;
    base = part.base;
    if (get_global_id(0) == 0)
        shares[run] = rows > 0 ? 1.0f / (float)rows : 0.0f;
#else
    (void)shares;
#endif
    __global const float *mean = all_mean + (size_t)run * SENSES;
    __global const float *scale = all_scale + (size_t)run * SENSES;
    const sampler_order order = sampler_start(
        philox_key(hyper[run].order_low, hyper[run].order_high, PURPOSE_SAMPLER), epoch, n, half_bits);
    uint begin = get_group_id(0) * ROWS;
    for (uint i = begin; i < min(begin + ROWS, padded); i++) {
        size_t at = (size_t)run * stride_rows + i;
        __global float *x = all_x + at * X_WIDTH;
        __global uint *labels = all_labels + at * LABEL_WORDS;
        if (i >= rows) {
            gather_nothing(x, labels, lane);
            continue;
        }
        uint row = shuffled ? sampler_row(&order, first + i) : base + first + i;
#if PARTS
        if (shuffled)
            row = part_row(pieces, part, row);
#endif
        GATHER_ROW(row, x, labels, mean, scale, lane);
    }
}
