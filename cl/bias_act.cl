/* bias_act - what a dense layer does around a plain matrix product, for back ends whose product cannot
 * do it itself (CLBlast).
 *
 *     bias_act_forward    Y = f(Y + b), and Y + b into `pre`
 *     bias_act_backward   D = D o f'(saved)
 *     bias_act_sum        partial[p] = sum of the p-th of P slices of G's rows
 *     bias_act_finish     c = partial[0] + partial[1] + ... : a fixed order, so that bits repeat
 *
 * Matrices are (R, rows, width), width a multiple of 64, rows of 4; `at` as in gemm_tile.cl. */
#include "activation.clh"

#define GROUP __attribute__((reqd_work_group_size(16, 4, 1)))

DEFINE_ACTIVATION(float4, activate, slope)

/* Grid: width / 4, rows, run. */
GROUP __kernel void bias_act_forward(uint width, __global const float *restrict bias,
                                     ulong2 bias_at, uint activation, __global float *restrict y,
                                     ulong2 y_at, uint keep_pre, __global float *restrict pre,
                                     ulong2 pre_at) {
    size_t column = get_global_id(0) * 4, run = get_global_id(2);
    size_t at = get_global_id(1) * width + column;
    y += y_at.x + run * y_at.y + at;
    float4 value = vload4(0, y) + vload4(0, bias + bias_at.x + run * bias_at.y + column);
    if (keep_pre)
        vstore4(value, 0, pre + pre_at.x + run * pre_at.y + at);
    vstore4(activate(activation, value), 0, y);
}

/* Grid: width / 4, rows, run. */
GROUP __kernel void bias_act_backward(uint width, uint activation, uint saved_is_pre,
                                      __global const float *restrict saved, ulong2 saved_at,
                                      __global float *restrict d, ulong2 d_at) {
    size_t run = get_global_id(2), at = get_global_id(1) * width + get_global_id(0) * 4;
    d += d_at.x + run * d_at.y + at;
    saved += saved_at.x + run * saved_at.y + at;
    vstore4(vload4(0, d) * slope(activation, vload4(0, saved), saved_is_pre), 0, d);
}

/* Grid: width / 4, P, run. */
GROUP __kernel void bias_act_sum(uint rows, uint width, __global const float *restrict g,
                                 ulong2 g_at, __global float *restrict partial) {
    size_t column = get_global_id(0) * 4, part = get_global_id(1), run = get_global_id(2);
    uint parts = (uint)get_global_size(1), each = (rows + parts - 1) / parts;
    uint begin = min((uint)part * each, rows), end = min(begin + each, rows);
    float4 sum = (float4)(0.0f);
    g += g_at.x + run * g_at.y + column;
    for (uint m = begin; m < end; m++)
        sum += vload4(0, g + (size_t)m * width);
    vstore4(sum, 0, partial + (run * parts + part) * width + column);
}

/* Grid: width, run. */
__kernel void bias_act_finish(uint width, uint parts, __global const float *restrict partial,
                              __global float *restrict bias, ulong2 bias_at) {
    size_t column = get_global_id(0), run = get_global_id(1);
    float sum = 0.0f;
    partial += run * parts * width + column;
    for (uint part = 0; part < parts; part++)
        sum += partial[(size_t)part * width];
    bias[bias_at.x + run * bias_at.y + column] = sum;
}
