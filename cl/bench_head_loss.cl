/* bench_head_loss - the masked log-softmax of one head in a launch of its own, as a program has it that
 * calls a loss for every head. For `mimus bench --ablate`; formula and arithmetic are those of
 * masked_log_softmax.clh without label smoothing and class weights, which the bench does not use.
 *
 *   logits   (stride_rows, LOGIT_WIDTH)   in: logits; out, of this head alone: the gradient
 *   labels   (rows, LABEL_WORDS)          as gather wrote them
 *   partial  (groups, METRIC_COLUMNS)     sums over each group's rows: [0] is set by head 0 and added to
 *                                         by the others, which come behind it; the head's own are set
 *
 * LOCAL = 1 (CPUs): an item takes ROWS rows; LOCAL > 1 (GPUs): the group shares them, and adds in a tree. */
#include "masked_log_softmax.clh"

#ifndef LABEL_WORDS
#define LABEL_WORDS 1
#endif
#ifndef LOCAL
#define LOCAL 1
#endif
#ifndef ROWS /* rows a group */
#define ROWS 32
#endif

/* z = e^z, VW at a time; what is left over goes through a vector filled up with MASKED. */
static inline void exponentiate(__global float *z, uint count) {
    uint j = 0;
    for (; j + VW <= count; j += VW)
        vstore(exp_nonpositive(vload(0, z + j)), 0, z + j);
    if (j < count) {
        float rest[VW];
        for (uint i = 0; i < VW; i++)
            rest[i] = j + i < count ? z[j + i] : MASKED;
        vstore(exp_nonpositive(vload(0, rest)), 0, rest);
        for (uint i = 0; j + i < count; i++)
            z[j + i] = rest[i];
    }
}

/* One head of a row: z is the row's logits. Adds to columns: loss, nll, hits, labels. */
static inline void head_row(__global float *z, __global const uint *labels, uint head, float scale,
                            float *columns) {
    uint begin = head_offset[head], end = head_offset[head + 1];
    uint label = begin + (labels[head / 2u] >> (head % 2u * 16u) & 0xFFFFu);
    uint chosen = end;
    float greatest = MASKED;
    for (uint j = begin; j < end; j++) {
        if (is_legal(labels, j) && (chosen == end || z[j] > greatest)) {
            chosen = j;
            greatest = z[j];
        }
    }
    if (label >= end || chosen == end) {
        for (uint j = begin; j < end; j++)
            z[j] = 0.0f;
        return;
    }
    float at_label = z[label] - greatest, sum = 0.0f;
    for (uint j = begin; j < end; j++)
        z[j] = is_legal(labels, j) ? z[j] - greatest : MASKED;
    exponentiate(z + begin, end - begin);
    for (uint j = begin; j < end; j++)
        sum += z[j];
    float nll = log(sum) - at_label;
    columns[0] += scale * nll;
    columns[1] += nll;
    columns[2] += chosen == label ? 1.0f : 0.0f;
    columns[3] += 1.0f;
    for (uint j = begin; j < end; j++)
        z[j] *= scale / sum;
    z[label] -= scale;
}

static inline void write_columns(__global float *out, uint head, const float *columns) {
    out[0] = head == 0 ? columns[0] : out[0] + columns[0];
    for (uint c = 1; c < 4; c++)
        out[3 * head + c] = columns[c];
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
bench_head_loss(uint head, uint rows, float scale, __global float *restrict logits,
                __global const uint *restrict labels, __global float *restrict partial) {
    uint group = get_group_id(0), lane = get_local_id(0);
    float columns[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint begin = group * ROWS;
    for (uint i = begin + lane; i < min(begin + ROWS, rows); i += LOCAL) {
        __global const uint *words = labels + (size_t)i * LABEL_WORDS;
        float share = scale;
#if WEIGHT_WORD
        share *= as_float(words[WEIGHT_WORD]);
#endif
        head_row(logits + (size_t)i * LOGIT_WIDTH, words, head, share, columns);
    }
    __global float *out = partial + (size_t)group * METRIC_COLUMNS;
#if LOCAL > 1
    __local float values[LOCAL];
    for (uint c = 0; c < 4; c++) {
        values[lane] = columns[c];
        for (uint half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < half_size)
                values[lane] += values[lane + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        columns[c] = values[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        write_columns(out, head, columns);
#else
    write_columns(out, head, columns);
#endif
}
