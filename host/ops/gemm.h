/* gemm - the three products of a dense layer, for R runs at once, behind one header.
 *
 *     forward          Y = f(X W + b)
 *     input gradient   D = (G W^T) o f'(.)
 *     weight gradient  V = X^T G, c = sum_B G
 *
 *     X, D (R, B, in)    W, V (R, in, out)    b, c (R, out)    Y, G (R, B, out)
 *
 * All row-major. `in` and `out` are padded widths (multiples of mimus__gemm_width_pad) and double
 * as leading dimensions; padded weights and biases are zero and get zero gradients, so they stay
 * zero. Rows are padded by the caller to mimus__gemm_row_pad, and G is zero in the padding, so that
 * it adds nothing.
 *
 * Back ends: our register tile (gemm_tile.c, cl/gemm_tile.cl), which does bias, activation and
 * bias gradient in the same launch, and CLBlast (gemm_clblast.c), which launches those kernels
 * behind its product; it is opened at run time (libclblast.so.1, or what MIMUS_CLBLAST names).
 * Products only enqueue. The object keeps windows into their buffers: free it before them. */
#ifndef MIMUS_HOST_GEMM_H
#define MIMUS_HOST_GEMM_H

#include "buffer.h"
#include "config.h"

typedef struct mimus__gemm mimus__gemm;

enum { MIMUS__MATRIX_ALIGN = 1024 }; /* floats */

/* A matrix of every run inside a buffer, in floats. Run r begins at offset + r * stride; a stride
 * of 0 is one matrix that all runs share (X only). Otherwise it is rows * width or more: a short
 * batch leaves the stride of a full one. */
typedef struct mimus__matrix {
    const mimus__buffer *buffer;
    size_t offset; /* a multiple of MIMUS__MATRIX_ALIGN */
    size_t stride;
} mimus__matrix;

typedef struct mimus__gemm_layer {
    uint32_t runs; /* R */
    uint32_t in;   /* padded */
    uint32_t out;  /* padded */
} mimus__gemm_layer;

/* Prepare for the given layers, of unpadded widths, at up to `rows` rows; products may then have
 * fewer runs and rows. Blocks.
 *
 * AUTO verifies our tile, and on GPUs CLBlast, against a naive kernel on these shapes, times them,
 * and remembers the choice in the cache folder by device, driver, shapes and version; a back end
 * that is wrong or missing is never chosen. A forced one is verified too: MIMUS_ERR_DEVICE when it
 * is wrong, MIMUS_ERR_UNSUPPORTED when it is missing. */
mimus_status mimus__gemm_new(mimus__gemm **out, mimus__device *device, mimus__gemm_kind kind,
                             const mimus__gemm_layer *layers, uint32_t count, uint32_t rows);
void mimus__gemm_free(mimus__gemm *gemm);

mimus__gemm_kind mimus__gemm_chosen(const mimus__gemm *gemm); /* never AUTO */
/* How it was chosen, for the run's summary: {"chosen", "tile": {"seconds", "parameters",
 * "variant"}, "clblast": {"skipped"} or {"error"}, "cached"}, seconds being those of a step's
 * products; a new reference. */
json_t *mimus__gemm_report(const mimus__gemm *gemm);

uint32_t mimus__gemm_width_pad(const mimus__gemm *gemm);
uint32_t mimus__gemm_row_pad(const mimus__gemm *gemm);
/* Z: a weight gradient comes as Z partial sums that the optimizer adds in order. */
uint32_t mimus__gemm_splits(const mimus__gemm *gemm);
/* Whether forward and input gradient first copy the weights into another order, in a launch of
 * their own. */
bool mimus__gemm_packs(const mimus__gemm *gemm);
/* Whether a product of several runs, each on a full batch of its own, is one launch; else it is one
 * a run. */
bool mimus__gemm_batches(const mimus__gemm *gemm);

/* `pre` NULL, or where to keep X W + b for the derivative of an activation that needs it. */
mimus_status mimus__gemm_forward(mimus__gemm *gemm, const mimus__gemm_layer *layer, uint32_t rows,
                                 mimus__matrix x, mimus__matrix weight, mimus__matrix bias,
                                 mimus__activation activation, mimus__matrix y,
                                 const mimus__matrix *pre);

/* `activation` is that of the layer below, whose output's gradient D is: f' comes from `saved`, its
 * output (relu, tanh), or its X W + b when `saved_is_pre` (gelu, tanh). */
mimus_status mimus__gemm_input_gradient(mimus__gemm *gemm, const mimus__gemm_layer *layer,
                                        uint32_t rows, mimus__matrix g, mimus__matrix weight,
                                        mimus__activation activation, mimus__matrix saved,
                                        bool saved_is_pre, mimus__matrix d);

/* Partial sum z (0 .. splits-1) of run r goes to weight.offset + z * split_stride + r * stride,
 * the biases' alike. Every split is written, with zeros where it has no rows. */
mimus_status mimus__gemm_weight_gradient(mimus__gemm *gemm, const mimus__gemm_layer *layer,
                                         uint32_t rows, mimus__matrix x, mimus__matrix g,
                                         mimus__matrix weight, mimus__matrix bias,
                                         size_t split_stride);

#endif
