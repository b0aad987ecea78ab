/* network - R multi-layer perceptrons of one shape on the device: parameters, forward, backward.
 *
 * The input is a batch matrix that the gather fills; the output the logits. In training the loss
 * turns the logits into their gradient in place, and backward goes on from there. */
#ifndef MIMUS_HOST_NETWORK_H
#define MIMUS_HOST_NETWORK_H

#include "gemm.h"
#include "geometry.h"
#include "layout.h"

typedef struct mimus__network {
    mimus__device *device;
    mimus__gemm *gemm; /* NULL: numbers alone, for who computes on them otherwise (block_plan.h) */
    mimus__layout layout;
    uint32_t live;     /* of the layout's runs, the first ones that are computed */
    uint32_t capacity; /* rows of a batch, padded */
    uint32_t splits;   /* partial sums that a gradient comes in */
    bool trains;       /* has gradients */
    bool shares_input; /* one input for all runs */
    bool keeps_pre;    /* the derivative needs X W + b: gelu, and tanh under dropout */
    const mimus__buffer *dropout_hyper; /* borrowed; NULL: no dropout */

    mimus__buffer parameters; /* layout.total floats */
    mimus__buffer gradient;   /* splits x layout.total floats: partial sums */
    mimus__buffer
        activation[MIMUS__MAX_LAYERS + 1];  /* [0] input .. [L] logits: (R, capacity, padded width);
                                               an input that is shared: (1, ...) */
    mimus__buffer pre[MIMUS__MAX_LAYERS];   /* of hidden layer l + 1, when keeps_pre */
    mimus__buffer delta[MIMUS__MAX_LAYERS]; /* gradient of activation[l], 1 <= l < L */
    mimus__program dropout_program;
    mimus__kernel dropout;
} mimus__network;

/* Make `runs` networks for batches of up to `rows` rows; parameters are zero. With `trains`,
 * backward works; with `shares_input` there is one input for all. `dropout_hyper` (runs of
 * mimus__hyper) is borrowed; NULL turns dropout off. */
mimus_status mimus__network_new(mimus__network **out, mimus__device *device,
                                const mimus__shape *shape, uint32_t runs, uint32_t rows,
                                mimus__gemm_kind gemm, bool trains, bool shares_input,
                                const mimus__buffer *dropout_hyper);
/* Only parameters and `splits` partial gradients: forward and backward may not be called. */
mimus_status mimus__network_new_numbers(mimus__network **out, mimus__device *device,
                                        const mimus__shape *shape, uint32_t runs, bool dropout,
                                        uint32_t splits);
void mimus__network_free(mimus__network *network);

/* The input (activation 0) and logits (activation L) as matrices of every run. */
mimus__matrix mimus__network_matrix(const mimus__network *network, uint32_t layer);

/* Upload one run's P parameters; the others keep theirs only if all are set before training: the
 * image of all runs is uploaded at once. `parameters` (R, P) float32. Blocks. */
mimus_status mimus__network_set_parameters(mimus__network *network, const float *parameters);

/* Rows that a call on `rows` rows really computes: rounded up to the back end's pad. */
uint32_t mimus__network_padded_rows(const mimus__network *network, uint32_t rows);

/* Enqueue: logits of the first `rows` rows. Dropout with the numbers of `step`, or none when
 * `training` is false. */
mimus_status mimus__network_forward(mimus__network *network, uint32_t rows, bool training,
                                    uint32_t step);

/* Enqueue: partial gradients of all parameters, from activation L, which holds the gradient of the
 * logits (zero in rows past `rows`). */
mimus_status mimus__network_backward(mimus__network *network, uint32_t rows, uint32_t step);

#endif
