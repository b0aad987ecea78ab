/* loss - the masked log-softmax of all heads: loss, gradient and metrics of a batch in one launch
 * (cl/masked_log_softmax.cl). */
#ifndef MIMUS_HOST_LOSS_H
#define MIMUS_HOST_LOSS_H

#include "gather.h"

typedef struct mimus__loss mimus__loss;

/* The heads' and actions' weights of every run. */
typedef struct mimus__loss_weights {
    uint32_t head_count, action_count;
    mimus__buffer heads;   /* (runs, H) */
    mimus__buffer actions; /* (runs, A) */
} mimus__loss_weights;

/* All 1. Blocks. */
mimus_status mimus__loss_weights_new(mimus__loss_weights *out, mimus__device *device, uint32_t runs,
                                     const mimus_schema *schema);
void mimus__loss_weights_free(mimus__loss_weights *weights);
/* One run's: heads (H), actions (A). Blocks. */
mimus_status mimus__loss_weights_set(mimus__loss_weights *weights, uint32_t run, const float *heads,
                                     const float *actions);

/* The settings of cl/masked_log_softmax.clh. `offsets` gets the text of HEAD_OFFSETS, which must
 * outlive the defines; free it with free(). */
mimus_status mimus__loss_define(mimus__defines *defines, char **offsets, const mimus_schema *schema,
                                const mimus__row_layout *layout, mimus__geometry geometry);

/* Columns of a metrics row: [0] the loss, then per head its summed negative log-likelihood, hits
 * and labels: 1 + 3H. */
uint32_t mimus__metric_columns(uint32_t heads);

/* For logits of padded width `width`, up to `capacity` rows. Head and action weights are 1 until
 * set. `hyper` (runs of mimus__hyper: label smoothing) is borrowed, and so is `batch`, where the
 * labels come from one that all runs share, or that has rows of their own number (`parts`); NULL:
 * neither. */
mimus_status mimus__loss_new(mimus__loss **out, mimus__device *device, const mimus_schema *schema,
                             const mimus__row_layout *layout, const mimus__buffer *hyper,
                             const mimus__batch *batch, bool parts, uint32_t runs,
                             uint32_t capacity, uint32_t width);
void mimus__loss_free(mimus__loss *loss);

/* From now on only the first `live` runs. */
void mimus__loss_set_live(mimus__loss *loss, uint32_t live);

/* head_weights (H), action_weights (A) of one run, float32. Blocks. */
mimus_status mimus__loss_weigh(mimus__loss *loss, uint32_t run, const float *head_weights,
                               const float *action_weights);

/* mimus__metric_columns of its heads. */
uint32_t mimus__loss_columns(const mimus__loss *loss);

/* Enqueue: the loss of `rows` rows, of which `counted` make the mean (rows past them are empty).
 * Replaces `logits` by their gradient. */
mimus_status mimus__loss_run(mimus__loss *loss, uint32_t rows, uint32_t counted,
                             mimus__matrix logits, const mimus__buffer *labels);

/* Sums that a batch left for the optimizer to add: partial (R, groups, metric columns). */
typedef struct mimus__sums {
    const mimus__buffer *partial;
    uint32_t groups;
} mimus__sums;

/* What the latest run, on `rows` rows, left. */
mimus__sums mimus__loss_sums(const mimus__loss *loss, uint32_t rows);

/* Where the latest run left its partial sums, (runs, groups, columns), and the groups of a run on
 * `rows` rows. */
const mimus__buffer *mimus__loss_partial(const mimus__loss *loss);
uint32_t mimus__loss_groups(const mimus__loss *loss, uint32_t rows);

#endif
