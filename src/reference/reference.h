/* reference - everything the device computes in training, once more in double precision, written
 * for plainness: one loop a formula, no blocking, no fusing. The device is held against it.
 *
 * A run is one mimus__reference_network; R runs are R of them that differ in `run` and `rules`.
 * Arrays are C-contiguous; B rows of a batch, S senses, K samples stacked, H heads, A actions of
 * all heads, W = ceil(A/32) mask words, P parameters in the order of model.h. A broken precondition
 * is an assert. */
#ifndef MIMUS_REFERENCE_REFERENCE_H
#define MIMUS_REFERENCE_REFERENCE_H

#include "config.h"

/* ------------------------------------------------------------------- inputs */

/* Rows as the data layer has them, their samples already stacked: all arrays are borrowed. */
typedef struct mimus__reference_batch {
    uint32_t rows;           /* B */
    const float *senses;     /* (B, K * S) as recorded, the oldest sample first */
    const uint16_t *actions; /* (B, H) MIMUS_NO_LABEL trains nothing */
    const uint32_t *masks;   /* (B, W) bit a % 32 of word a / 32, 1 = legal; NULL: all is legal */
    const float *weights;    /* (B), or NULL: all 1 */
} mimus__reference_batch;

/* The K samples that end with `row`, oldest first, into `out` (K * S): what lies before `first`,
 * the first row of the row's episode, repeats it. `senses` is (N, S). */
void mimus__reference_stack(float *out, const float *senses, uint32_t sense_count, uint32_t stack,
                            uint64_t first, uint64_t row);

/* The shape of a network with these hidden widths and heads. */
mimus__shape mimus__reference_shape(uint32_t senses, uint32_t stack, uint32_t hidden_layers,
                                    const uint32_t *hidden, mimus__activation activation,
                                    uint32_t heads, const uint32_t *actions);

/* ------------------------------------------------------------------ network */

/* How a run learns. The learning rate is the step's: a schedule is the caller's. */
typedef struct mimus__reference_rules {
    mimus__optimizer_kind optimizer;
    double lr;
    double beta1, beta2, epsilon;
    double weight_decay;
    double clip;                 /* global norm; 0 = off */
    double label_smoothing;      /* spread over the legal actions */
    double dropout;              /* after every hidden activation */
    const double *head_weights;  /* (H) borrowed, or NULL: all 1 */
    const double *class_weights; /* (A) borrowed, or NULL: all 1 */
} mimus__reference_rules;

/* What a pass through the network leaves behind for the way back. */
typedef struct mimus__reference_pass {
    double *input[MIMUS__MAX_LAYERS + 1]; /* [l] (B, width[l]) of layer l; [L] the logits */
    double *sum[MIMUS__MAX_LAYERS];       /* [l] (B, width[l + 1]) x W + b */
    double *factor[MIMUS__MAX_LAYERS];    /* [l] the same: dropout, 0 or 1 / (1 - p) */
    double *slope[MIMUS__MAX_LAYERS + 1]; /* [l] (B, width[l]) the loss's slope by the sums */
} mimus__reference_pass;

typedef struct mimus__reference_network {
    mimus__shape shape;
    uint32_t heads;
    uint32_t *actions; /* (H) */
    double *mean;      /* (S) 0 from init */
    double *scale;     /* (S) 1 from init */
    size_t parameters; /* P */
    double *parameter; /* (P) 0 from init */
    double *moment1;   /* (P) sgd's velocity too */
    double *moment2;   /* (P) */
    uint64_t updates;  /* t: steps that were applied */
    uint32_t step;     /* steps taken, skipped ones included: counts dropout's random numbers */
    uint32_t run;      /* names this run's random numbers, with seed */
    uint64_t seed;
    uint32_t rows;                /* of a batch, at most */
    double *gradient;             /* (P) of mimus__reference_step */
    mimus__reference_pass pass;   /* of the latest batch */
    mimus__reference_rules rules; /* Adam with lr 1e-3, nothing else, from init */
} mimus__reference_network;

/* For batches of up to `rows` rows; nothing else here allocates. Clear it. */
mimus_status mimus__reference_init(mimus__reference_network *network, const mimus__shape *shape,
                                   uint32_t heads, const uint32_t *actions, uint32_t rows);
void mimus__reference_clear(mimus__reference_network *network);

/* Take the device's numbers: mean and scale (S), parameters (P). */
void mimus__reference_set_normalisation(mimus__reference_network *network, const float *mean,
                                        const float *scale);
void mimus__reference_set_parameters(mimus__reference_network *network, const float *parameters);

/* Where layer l's weights (in, out) begin among the parameters; its biases follow them. */
size_t mimus__reference_weight_offset(const mimus__shape *shape, uint32_t layer);

/* ---------------------------------------------------------------- computing */

enum { MIMUS__REFERENCE_MAX_HEADS = 64 };

typedef struct mimus__reference_result {
    double loss; /* (1/B) sum_i w_i sum_h hw_h cw[h,a] ((1-e) -log p_a + e mean_legal -log p_j) */
    double nll[MIMUS__REFERENCE_MAX_HEADS]; /* sum over labelled rows of -log p_a, unweighted */
    uint32_t
        hits[MIMUS__REFERENCE_MAX_HEADS]; /* arg-max over the legal = label; ties: the lowest */
    uint32_t labelled[MIMUS__REFERENCE_MAX_HEADS]; /* rows that count for the head */
} mimus__reference_result;

/* f(z) and f'(z). */
double mimus__reference_activate(mimus__activation activation, double z);
double mimus__reference_slope(mimus__activation activation, double z);

/* Whether dropout keeps an element of hidden layer `layer` (the first is 0). */
bool mimus__reference_dropout_keeps(uint64_t seed, uint32_t run, uint32_t step, uint32_t layer,
                                    uint32_t row, uint32_t column, double rate);

/* logits (B, A). `training` applies dropout, as of network->step. */
void mimus__reference_forward(const mimus__reference_network *network,
                              const mimus__reference_batch *batch, bool training, double *logits);

/* Loss and metrics of given logits (B, A); `dlogits` (B, A) gets the loss's gradient, NULL: not
 * asked for. */
void mimus__reference_loss(const mimus__reference_network *network,
                           const mimus__reference_batch *batch, const double *logits,
                           mimus__reference_result *result, double *dlogits);

/* The gradient (P) of the training loss, by backpropagation. */
void mimus__reference_gradient(const mimus__reference_network *network,
                               const mimus__reference_batch *batch, mimus__reference_result *result,
                               double *gradient);

/* The same for the `n` parameters named in `index`, by central differences of fourth order;
 * `gradient` is (n). Moves the parameters while it works and puts them back. */
void mimus__reference_gradient_by_differences(mimus__reference_network *network,
                                              const mimus__reference_batch *batch,
                                              const size_t *index, size_t n, double *gradient);

/* The global norm of a gradient (P). */
double mimus__reference_norm(const mimus__reference_network *network, const double *gradient);

/* Clip, decay and apply one optimizer step; false, with nothing changed, when the loss or an
 * element of the gradient is not finite. Adam: Kingma and Ba 2015, algorithm 1; AdamW: Loshchilov
 * and Hutter 2019, algorithm 2; both with PyTorch's epsilon, added outside the bias correction. */
bool mimus__reference_update(mimus__reference_network *network, double loss,
                             const double *gradient);

/* Gradient, update, step + 1; what mimus__reference_update says. */
bool mimus__reference_step(mimus__reference_network *network, const mimus__reference_batch *batch,
                           mimus__reference_result *result);

/* ----------------------------------------------------------------- sampling */

/* The row at `position` of an epoch's order of n rows: six Feistel rounds on [0, 2^(2b)), walked
 * until the result is a row (Black and Rogaway 2002, "Ciphers with arbitrary finite domains",
 * section 3 and 4). */
uint64_t mimus__reference_sampler_row(uint64_t seed, uint32_t run, uint32_t epoch, uint64_t n,
                                      uint64_t position);

#endif
