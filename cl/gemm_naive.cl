/* gemm_naive - the products of gemm_tile.cl by their definitions, to check the fast ones against:
 *
 *     naive_forward          Y = relu(X W + b)
 *     naive_input_gradient   D = saved > 0 ? G W^T : 0
 *     naive_weight_gradient  V = X^T G, c = sum G
 *
 * Dense matrices, run behind run. Vectors of 16 because every width is a multiple of 16, and because
 * a start-up check should not take seconds. */

/* Grid: 16 columns, row, run. */
__kernel void naive_forward(uint in, uint out, __global const float *x,
                            __global const float *weight, __global const float *bias,
                            __global float *y) {
    size_t column = get_global_id(0) * 16, row = get_global_id(1), run = get_global_id(2);
    size_t rows = get_global_size(1);
    float16 sum = vload16(0, bias + run * out + column);
    x += (run * rows + row) * in;
    weight += run * in * out + column;
    for (uint k = 0; k < in; k++)
        sum += x[k] * vload16(0, weight + (size_t)k * out);
    vstore16(fmax(sum, (float16)(0.0f)), 0, y + (run * rows + row) * out + column);
}

static float sum_of(float16 v) {
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    return b.x + b.y + b.z + b.w;
}

/* Grid: column, row, run. */
__kernel void naive_input_gradient(uint in, uint out, __global const float *g,
                                   __global const float *weight, __global const float *saved,
                                   __global float *d) {
    size_t column = get_global_id(0), row = get_global_id(1), run = get_global_id(2);
    size_t rows = get_global_size(1), at = (run * rows + row) * in + column;
    float16 sum = (float16)(0.0f);
    g += (run * rows + row) * out;
    weight += (run * in + column) * out;
    if (saved[at] > 0.0f) { /* no ?: behind the sum: PoCL 6.0's compiler gives up (docs/opencl.md) */
        for (uint n = 0; n < out; n += 16)
            sum += vload16(0, g + n) * vload16(0, weight + n);
    }
    d[at] = sum_of(sum);
}

/* Grid: 16 columns, row of V, run. */
__kernel void naive_weight_gradient(uint rows, uint out, __global const float *x,
                                    __global const float *g, __global float *weight,
                                    __global float *bias) {
    size_t column = get_global_id(0) * 16, k = get_global_id(1), run = get_global_id(2);
    size_t in = get_global_size(1);
    float16 product = (float16)(0.0f), sum = (float16)(0.0f);
    x += run * rows * in + k;
    g += run * rows * out + column;
    for (uint m = 0; m < rows; m++) {
        float16 value = vload16(0, g + (size_t)m * out);
        product += x[m * in] * value;
        sum += value;
    }
    vstore16(product, 0, weight + (run * in + k) * out + column);
    if (k == 0)
        vstore16(sum, 0, bias + run * out + column);
}
