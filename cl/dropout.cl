/* dropout - over a layer's outputs or their gradients; an item takes 4 columns of a row.
 *
 *   y  (R, stride_rows, width)  width a multiple of 4 */
#include "dropout.clh"
#include "hyper.clh"

__kernel void mimus_dropout(uint layer, uint step, uint width, uint stride_rows,
                            __global const mimus__hyper *restrict hyper,
                            __global float *restrict y) {
    uint block = get_global_id(0), row = get_global_id(1), run = get_global_id(2);
    uint2 key = philox_key(hyper[run].seed_low, hyper[run].seed_high, PURPOSE_DROPOUT);
    drop(y + ((size_t)run * stride_rows + row) * width + 4 * block, key, block, row, step, layer,
         hyper[run].dropout);
}
