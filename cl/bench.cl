/* bench - what a device does at its best: multiply-adds from registers, and memory streamed.
 *
 *   bench_mad     CHAINS independent chains of x = x * a + b on vectors of WIDTH floats an item:
 *                 2 * CHAINS * UNROLL * WIDTH operations a repeat
 *   bench_copy    a = b           2 floats moved an element
 *   bench_triad   a = b + s * c   3 floats moved an element (McCalpin's STREAM, 1995)
 *
 * A group streams SPAN vectors of VW floats, LOCAL of them at a time. */
#include "vector.clh"

#ifndef WIDTH /* of bench_mad's vectors: 1, 4, 8 or 16 */
#define WIDTH 4
#endif
#ifndef CHAINS /* enough to cover a multiply-add's latency, few enough for 16 registers */
#define CHAINS 12
#endif
#ifndef UNROLL
#define UNROLL 16
#endif
#ifndef LOCAL
#define LOCAL 1
#endif
#ifndef SPAN
#define SPAN 1024
#endif

#if WIDTH == 1
#define floatw float
#else
#define floatw VECTOR_CAT(float, WIDTH)
#endif

/* The sum goes to `out` (a vector an item), so that no lane and no chain can be left out. */
__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
bench_mad(uint repeats, float a, float b, __global floatw *restrict out) {
    floatw x[CHAINS];
    uint item = get_global_id(0);
#pragma unroll
    for (uint c = 0; c < CHAINS; c++)
        x[c] = (floatw)((float)(item + c));
    for (uint r = 0; r < repeats; r++) {
#pragma unroll
        for (uint u = 0; u < UNROLL; u++) {
#pragma unroll
            for (uint c = 0; c < CHAINS; c++)
                x[c] = x[c] * a + b;
        }
    }
    floatw sum = x[0];
#pragma unroll
    for (uint c = 1; c < CHAINS; c++)
        sum += x[c];
    out[item] = sum;
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
bench_copy(__global float *restrict a, __global const float *restrict b) {
    size_t begin = get_group_id(0) * (size_t)SPAN;
    for (uint i = get_local_id(0); i < SPAN; i += LOCAL)
        storev(loadv(begin + i, b), begin + i, a);
}

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) __kernel void
bench_triad(float s, __global float *restrict a, __global const float *restrict b,
            __global const float *restrict c) {
    size_t begin = get_group_id(0) * (size_t)SPAN;
    for (uint i = get_local_id(0); i < SPAN; i += LOCAL)
        storev(loadv(begin + i, c) * s + loadv(begin + i, b), begin + i, a);
}
