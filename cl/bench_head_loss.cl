/* bench_head_loss - the masked log-softmax of one head in a launch of its own, as a program has it that
 * calls a loss for every head. For `mimus bench --ablate`; label smoothing and class weights are not
 * used by the bench.
 *
 *   logits   (stride_rows, LOGIT_WIDTH)   in: logits; out, of this head alone: the gradient
 *   labels   (rows, LABEL_WORDS)          as gather wrote them
 *   ones     (A)                          1: the actions' weights
 *   turned   (groups, A, LANES)           scratch; not used when LANES is 1
 *   partial  (groups, METRIC_COLUMNS)     sums over each group's rows: [0] is set by head 0 and added to
 *                                         by the others, which come behind it; the head's own are set
 *
 * LOCAL = 1 (CPUs): an item takes ROWS rows; LOCAL > 1 (GPUs): the group shares them, and adds in a tree. */
#include "group_sum.clh"
#include "masked_log_softmax.clh"

#ifndef LOGIT_WIDTH
#define LOGIT_WIDTH 16
#endif
#ifndef ROWS /* rows a group */
#define ROWS 32
#endif

/* `columns` (4): the loss and the head's. */
static inline void head_rows(__global float *z, uint valid, __global const uint *labels, uint head,
                             float scale, __global const float *ones, __global float *e,
                             floatl *columns) {
    uint begin = head_offset[head], end = head_offset[head + 1];
    if (LANES == 1)
        e = z;
    else
        turn_logits(z, LOGIT_WIDTH, valid, begin, end, e);
    masked_log_softmax_head(head, valid, labels, 1.0f, ones, 0.0f,
                            sample_share(labels, valid, scale), e, columns, columns + 1);
    if (LANES > 1)
        turn_back(z, LOGIT_WIDTH, valid, begin, end, e);
}

static inline void write_columns(__global float *out, uint head, const float *columns) {
    out[0] = head == 0 ? columns[0] : out[0] + columns[0];
    for (uint c = 1; c < 4; c++)
        out[3 * head + c] = columns[c];
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
bench_head_loss(uint head, uint rows, float scale, __global float *restrict logits,
                __global const uint *restrict labels, __global const float *restrict ones,
                __global float *restrict turned, __global float *restrict partial) {
    uint group = get_group_id(0), lane = get_local_id(0);
    floatl lanes[4];
    float columns[4];
    for (uint c = 0; c < 4; c++)
        lanes[c] = (floatl)(0.0f);
    uint begin = group * ROWS, end = min(begin + ROWS, rows);
    for (uint i = begin + lane * LANES; i < end; i += LOCAL * LANES)
        head_rows(logits + (size_t)i * LOGIT_WIDTH, min(end - i, (uint)LANES),
                  labels + (size_t)i * LABEL_WORDS, head, scale, ones,
                  turned + (size_t)group * head_offset[HEADS] * LANES, lanes);
    __local float values[LOCAL];
    for (uint c = 0; c < 4; c++)
        columns[c] = group_sum(lanes_sum(lanes[c]), values, lane);
    if (lane == 0)
        write_columns(partial + (size_t)group * METRIC_COLUMNS, head, columns);
}
