/* loss - the masked log-softmax of all heads: loss, gradient and metrics of a batch in one launch
 * (cl/masked_log_softmax.cl). */
#ifndef MIMUS_HOST_LOSS_H
#define MIMUS_HOST_LOSS_H

#include "gather.h"

typedef struct mimus__loss mimus__loss;

/* For logits of padded width `width`, up to `capacity` rows. Head and action weights are 1 until
 * set. `hyper` (runs of mimus__hyper: label smoothing) is borrowed. */
mimus_status mimus__loss_new(mimus__loss **out, mimus__device *device, const mimus_schema *schema,
                             const mimus__row_layout *layout, const mimus__buffer *hyper,
                             uint32_t runs, uint32_t capacity, uint32_t width);
void mimus__loss_free(mimus__loss *loss);

/* head_weights (H), action_weights (A) of one run, float32. Blocks. */
mimus_status mimus__loss_weigh(mimus__loss *loss, uint32_t run, const float *head_weights,
                               const float *action_weights);

/* Columns of a metrics row: [0] the loss, then per head its summed negative log-likelihood, hits
 * and labels: 1 + 3H. */
uint32_t mimus__loss_columns(const mimus__loss *loss);

/* Enqueue: the loss of `rows` rows, of which `counted` make the mean (rows past them are empty).
 * Replaces `logits` by their gradient. */
mimus_status mimus__loss_run(mimus__loss *loss, uint32_t rows, uint32_t counted,
                             mimus__matrix logits, const mimus__buffer *labels);

/* Where the latest run left its partial sums, (runs, groups, columns), and the groups of a run on
 * `rows` rows. */
const mimus__buffer *mimus__loss_partial(const mimus__loss *loss);
uint32_t mimus__loss_groups(const mimus__loss *loss, uint32_t rows);

#endif
