/* gemm_tile - the three products of a dense layer for R runs at once, everything of it in one launch.
 *
 *     gemm_forward          Y = f(X W + b)            X (R, rows, in)   W (R, in, out)   b (R, out)
 *     gemm_input_gradient   D = (G W^T) o f'(saved)   G (R, rows, out)  D, saved (R, rows, in)
 *     gemm_weight_gradient  V[z] = X^T G, c[z] = sum G over the z-th of Z slices of the rows
 *
 * A matrix comes as its buffer and `at`: floats to run 0's first element, floats from run to run.
 * Widths are multiples of 16 and of the tile's; rows may be any number.
 *
 * GROUP_TILE 0: a register tile a work-item, group size 1, W packed into panels by gemm_pack (CPUs).
 * GROUP_TILE 1: a 64 x 64 tile a group of 16 x 16 work-items, through 9 KiB of local memory, W as it
 * is (GPUs). */
#include "activation.clh"
#include "dense_tile.clh"

#ifndef GROUP_TILE
#define GROUP_TILE 0
#endif

#if GROUP_TILE == 0

#define SINGLE __attribute__((reqd_work_group_size(1, 1, 1)))

DEFINE_ACTIVATION(tile_vector, tile_activate, tile_slope)

/* Panels of W's columns, [out / TILE_COLUMNS][in][TILE_COLUMNS], or when `transposed` of its rows,
 * [in / TILE_COLUMNS][out][TILE_COLUMNS]; a run's panels take in * out floats. Grid: panel, run. */
SINGLE __kernel void gemm_pack(uint in, uint out, uint transposed,
                               __global const float *restrict weight, ulong2 weight_at,
                               __global float *restrict panels) {
    size_t panel = get_global_id(0), run = get_global_id(1);
    __global const float *w = weight + weight_at.x + run * weight_at.y;
    __global float *p = panels + run * in * out;
    if (transposed) {
        w += panel * TILE_COLUMNS * out;
        p += panel * TILE_COLUMNS * out;
        for (uint n = 0; n < out; n++)
            TILE_EACH(j, TILE_COLUMNS) p[n * TILE_COLUMNS + j] = w[(size_t)j * out + n];
    } else {
        w += panel * TILE_COLUMNS;
        p += panel * TILE_COLUMNS * in;
        for (uint k = 0; k < in; k++) {
            TILE_EACH(j, TILE_VECTORS)
            TILE_STORE(TILE_LOAD(j, w + (size_t)k * out), j, p + k * TILE_COLUMNS);
        }
    }
}

/* Grid: panel, tile of rows, run: neighbours share rows of x. */
SINGLE __kernel void gemm_forward(uint rows, uint in, uint out, __global const float *restrict x,
                                  ulong2 x_at, __global const float *restrict weight,
                                  ulong2 weight_at, __global const float *restrict bias,
                                  ulong2 bias_at, uint activation, __global float *restrict y,
                                  ulong2 y_at, uint keep_pre, __global float *restrict pre,
                                  ulong2 pre_at) {
    size_t panel = get_global_id(0), column = panel * TILE_COLUMNS, run = get_global_id(2);
    uint row = (uint)get_global_id(1) * TILE_ROWS, valid = min((uint)TILE_ROWS, rows - row);
    size_t at = (size_t)row * out + column;
    tile_vector c[TILE_ROWS][TILE_VECTORS];
    tile_start(c, bias + bias_at.x + run * bias_at.y + column);
    tile_multiply(c, in, x + x_at.x + run * x_at.y + (size_t)row * in, in, valid,
                  weight + weight_at.x + run * weight_at.y + column * in);
    if (keep_pre)
        tile_store(c, pre + pre_at.x + run * pre_at.y + at, out, valid);
    if (activation == ACTIVATION_RELU)
        tile_relu(c);
    y += y_at.x + run * y_at.y + at;
    tile_store(c, y, out, valid);
    if (activation == ACTIVATION_IDENTITY || activation == ACTIVATION_RELU)
        return;
    /* not on the accumulators: tanh and erf, unrolled over a tile, are a lot of code */
    for (uint i = 0; i < valid; i++, y += out) {
        TILE_EACH(j, TILE_VECTORS)
        TILE_STORE(tile_activate(activation, TILE_LOAD(j, y)), j, y);
    }
}

/* `weight` holds panels of W's rows. Grid: panel, tile of rows, run. */
SINGLE __kernel void gemm_input_gradient(uint rows, uint in, uint out,
                                         __global const float *restrict g, ulong2 g_at,
                                         __global const float *restrict weight, ulong2 weight_at,
                                         uint activation, uint saved_is_pre,
                                         __global const float *saved, ulong2 saved_at,
                                         __global float *d, ulong2 d_at) {
    size_t panel = get_global_id(0), column = panel * TILE_COLUMNS, run = get_global_id(2);
    uint row = (uint)get_global_id(1) * TILE_ROWS, valid = min((uint)TILE_ROWS, rows - row);
    size_t at = (size_t)row * in + column;
    tile_vector c[TILE_ROWS][TILE_VECTORS];
    tile_clear(c);
    tile_multiply(c, out, g + g_at.x + run * g_at.y + (size_t)row * out, out, valid,
                  weight + weight_at.x + run * weight_at.y + column * out);
    d += d_at.x + run * d_at.y + at;
    saved += saved_at.x + run * saved_at.y + at;
    if (activation == ACTIVATION_RELU)
        tile_relu_slope(c, saved, in, valid);
    tile_store(c, d, in, valid);
    if (activation == ACTIVATION_IDENTITY || activation == ACTIVATION_RELU)
        return;
    for (uint i = 0; i < valid; i++, d += in, saved += in) {
        TILE_EACH(j, TILE_VECTORS) {
            tile_vector slope = tile_slope(activation, TILE_LOAD(j, saved), saved_is_pre);
            TILE_STORE(TILE_LOAD(j, d) * slope, j, d);
        }
    }
}

/* Grid: panel, piece of the weight's rows, run * splits + split. */
SINGLE __kernel void gemm_weight_gradient(uint rows, uint in, uint out, uint splits,
                                          uint split_rows, __global const float *restrict x,
                                          ulong2 x_at, __global const float *restrict g,
                                          ulong2 g_at, __global float *restrict weight,
                                          ulong2 weight_at, __global float *restrict bias,
                                          ulong2 bias_at, ulong split_stride) {
    size_t column = get_global_id(0) * TILE_COLUMNS;
    size_t run = get_global_id(2) / splits, split = get_global_id(2) % splits;
    uint pieces = (uint)get_global_size(1);
    uint piece = (in / OUTER_ROWS + pieces - 1) / pieces * OUTER_ROWS;
    uint begin = min((uint)get_global_id(1) * piece, in), end = min(begin + piece, in);
    uint row = min((uint)split * split_rows, rows), stop = min(row + split_rows, rows);
    tile_vector sum[TILE_VECTORS];
    int first = 1;
    TILE_EACH(j, TILE_VECTORS) sum[j] = (tile_vector)(0.0f);
    x += x_at.x + run * x_at.y;
    g += g_at.x + run * g_at.y + column;
    weight += weight_at.x + split * split_stride + run * weight_at.y + column;
    do { /* once even without rows: a split is always written */
        uint block = min((uint)OUTER_BLOCK, stop - row);
        tile_outer_packed(block, in, out, x + (size_t)row * in, g + (size_t)row * out, weight,
                          begin, end, first, sum);
        first = 0;
        row += block;
    } while (row < stop);
    bias += bias_at.x + split * split_stride + run * bias_at.y + column;
    if (begin == 0)
        TILE_EACH(j, TILE_VECTORS) TILE_STORE(sum[j], j, bias);
}

#else /* GROUP_TILE */

#define TILE 64
#define DEPTH 16
#define STAGE_LD (TILE + 4) /* keeps float4 aligned and spreads a column over the banks */
#define GROUP __attribute__((reqd_work_group_size(16, 16, 1)))

DEFINE_ACTIVATION(float4, tile_activate, tile_slope)

/* Operands are staged as [depth][TILE]; these two fill a stage from a matrix whose rows lie along
 * the tile (wide) or along the depth. What lies outside is 0. Widths are multiples of 4. */
static inline void stage_wide_rows(__local float *stage, __global const float *source, uint ld,
                                   uint wide, uint wide_end, uint depth) {
    uint item = (uint)(get_local_id(1) * 16 + get_local_id(0));
    uint w = item / 4, k = item % 4 * 4;
    float4 value = (float4)(0.0f);
    if (wide + w < wide_end)
        value = vload4(0, source + (size_t)(wide + w) * ld + depth + k);
    stage[(k + 0) * STAGE_LD + w] = value.x;
    stage[(k + 1) * STAGE_LD + w] = value.y;
    stage[(k + 2) * STAGE_LD + w] = value.z;
    stage[(k + 3) * STAGE_LD + w] = value.w;
}

static inline void stage_depth_rows(__local float *stage, __global const float *source, uint ld,
                                    uint wide, uint wide_end, uint depth, uint depth_end) {
    uint w = (uint)get_local_id(0) * 4, k = (uint)get_local_id(1);
    float4 value = (float4)(0.0f);
    if (wide + w < wide_end && depth + k < depth_end)
        value = vload4(0, source + (size_t)(depth + k) * ld + wide + w);
    vstore4(value, 0, stage + k * STAGE_LD + w);
}

/* This work-item's 4 x 4 of c += a^T b over one stage. */
static inline void stage_multiply(float4 c[4], __local const float *a, __local const float *b) {
    a += get_local_id(1) * 4;
    b += get_local_id(0) * 4;
    for (int k = 0; k < DEPTH; k++) {
        float4 u = vload4(0, a + k * STAGE_LD), v = vload4(0, b + k * STAGE_LD);
        c[0] = u.x * v + c[0];
        c[1] = u.y * v + c[1];
        c[2] = u.z * v + c[2];
        c[3] = u.w * v + c[3];
    }
}

/* Grid: 16 work-items for 64 columns, 16 for 64 rows, run. */
GROUP __kernel void gemm_forward(uint rows, uint in, uint out, __global const float *restrict x,
                                 ulong2 x_at, __global const float *restrict weight,
                                 ulong2 weight_at, __global const float *restrict bias,
                                 ulong2 bias_at, uint activation, __global float *restrict y,
                                 ulong2 y_at, uint keep_pre, __global float *restrict pre,
                                 ulong2 pre_at) {
    __local float a[DEPTH * STAGE_LD], b[DEPTH * STAGE_LD];
    uint column = (uint)get_group_id(0) * TILE, row = (uint)get_group_id(1) * TILE;
    size_t run = get_global_id(2);
    float4 c[4] = {(float4)(0.0f), (float4)(0.0f), (float4)(0.0f), (float4)(0.0f)};
    x += x_at.x + run * x_at.y;
    weight += weight_at.x + run * weight_at.y;
    for (uint k = 0; k < in; k += DEPTH) {
        stage_wide_rows(a, x, in, row, rows, k);
        stage_depth_rows(b, weight, out, column, out, k, in);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_multiply(c, a, b);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    row += (uint)get_local_id(1) * 4;
    column += (uint)get_local_id(0) * 4;
    if (column >= out)
        return;
    float4 start = vload4(0, bias + bias_at.x + run * bias_at.y + column);
    for (uint i = 0; i < 4 && row + i < rows; i++) {
        size_t at = (size_t)(row + i) * out + column;
        float4 value = c[i] + start;
        if (keep_pre)
            vstore4(value, 0, pre + pre_at.x + run * pre_at.y + at);
        vstore4(tile_activate(activation, value), 0, y + y_at.x + run * y_at.y + at);
    }
}

/* Grid: 16 work-items for 64 columns of D, 16 for 64 rows, run. */
GROUP __kernel void gemm_input_gradient(uint rows, uint in, uint out,
                                        __global const float *restrict g, ulong2 g_at,
                                        __global const float *restrict weight, ulong2 weight_at,
                                        uint activation, uint saved_is_pre,
                                        __global const float *saved, ulong2 saved_at,
                                        __global float *d, ulong2 d_at) {
    __local float a[DEPTH * STAGE_LD], b[DEPTH * STAGE_LD];
    uint column = (uint)get_group_id(0) * TILE, row = (uint)get_group_id(1) * TILE;
    size_t run = get_global_id(2);
    float4 c[4] = {(float4)(0.0f), (float4)(0.0f), (float4)(0.0f), (float4)(0.0f)};
    g += g_at.x + run * g_at.y;
    weight += weight_at.x + run * weight_at.y;
    for (uint n = 0; n < out; n += DEPTH) {
        stage_wide_rows(a, g, out, row, rows, n);
        stage_wide_rows(b, weight, out, column, in, n);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_multiply(c, a, b);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    row += (uint)get_local_id(1) * 4;
    column += (uint)get_local_id(0) * 4;
    if (column >= in)
        return;
    for (uint i = 0; i < 4 && row + i < rows; i++) {
        size_t at = (size_t)(row + i) * in + column;
        float4 value = c[i];
        if (activation != ACTIVATION_IDENTITY)
            value *= tile_slope(activation, vload4(0, saved + saved_at.x + run * saved_at.y + at),
                                saved_is_pre);
        vstore4(value, 0, d + d_at.x + run * d_at.y + at);
    }
}

/* Grid: 16 work-items for 64 columns of V, 16 for 64 rows of V, run * splits + split. */
GROUP __kernel void gemm_weight_gradient(uint rows, uint in, uint out, uint splits,
                                         uint split_rows, __global const float *restrict x,
                                         ulong2 x_at, __global const float *restrict g,
                                         ulong2 g_at, __global float *restrict weight,
                                         ulong2 weight_at, __global float *restrict bias,
                                         ulong2 bias_at, ulong split_stride) {
    __local float a[DEPTH * STAGE_LD], b[DEPTH * STAGE_LD];
    uint column = (uint)get_group_id(0) * TILE, k = (uint)get_group_id(1) * TILE;
    size_t run = get_global_id(2) / splits, split = get_global_id(2) % splits;
    uint begin = min((uint)split * split_rows, rows), end = min(begin + split_rows, rows);
    float4 c[4] = {(float4)(0.0f), (float4)(0.0f), (float4)(0.0f), (float4)(0.0f)};
    float4 sum = (float4)(0.0f);
    x += x_at.x + run * x_at.y;
    g += g_at.x + run * g_at.y;
    for (uint m = begin; m < end; m += DEPTH) {
        stage_depth_rows(a, x, in, k, in, m, end);
        stage_depth_rows(b, g, out, column, out, m, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_multiply(c, a, b);
        if (k == 0 && get_local_id(1) == 0) {
            for (int i = 0; i < DEPTH; i++)
                sum += vload4(0, b + i * STAGE_LD + get_local_id(0) * 4);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    column += (uint)get_local_id(0) * 4;
    if (column >= out)
        return;
    if (k == 0 && get_local_id(1) == 0)
        vstore4(sum, 0, bias + bias_at.x + split * split_stride + run * bias_at.y + column);
    k += (uint)get_local_id(1) * 4;
    weight += weight_at.x + split * split_stride + run * weight_at.y;
    for (uint i = 0; i < 4 && k + i < in; i++)
        vstore4(c[i], 0, weight + (size_t)(k + i) * out + column);
}

#endif
