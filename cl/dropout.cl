/* dropout - zero a share of hidden outputs, in place, and scale the rest: Srivastava et al. 2014,
 * section 10 (the inverted form). The same numbers come again for the backward pass, so no mask is
 * kept.
 *
 * Element (row, column) of layer l stays when u >= rate, u from Philox word column % 4 of counter
 * (column / 4, row, step, l). An item takes 4 columns of a row.
 *
 *   y  (R, stride_rows, width)  width a multiple of 4 */
#include "hyper.clh"
#include "philox.clh"

__kernel void mimus_dropout(uint layer, uint step, uint width, uint stride_rows,
                            __global const mimus__hyper *restrict hyper,
                            __global float *restrict y) {
    uint block = get_global_id(0), row = get_global_id(1), run = get_global_id(2);
    float rate = hyper[run].dropout;
    uint2 key = philox_key(hyper[run].seed_low, hyper[run].seed_high, PURPOSE_DROPOUT);
    uint4 word = philox4x32((uint4)(block, row, step, layer), key);
    float4 u = convert_float4(word >> 8) * 0x1p-24f;
    __global float *at = y + ((size_t)run * stride_rows + row) * width + 4 * block;
    float4 kept = vload4(0, at) / (1.0f - rate);
    vstore4(select(kept, (float4)(0.0f), u < rate), 0, at);
}
