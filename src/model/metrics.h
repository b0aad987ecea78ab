/* metrics - what a policy's logits are worth against a recording, in double precision. */
#ifndef MIMUS_MODEL_METRICS_H
#define MIMUS_MODEL_METRICS_H

#include "schema.h"

typedef struct mimus__metrics mimus__metrics;

/* `confusion` keeps a matrix (true, chosen) per head. */
mimus_status mimus__metrics_new(mimus__metrics **out, const mimus_schema *schema, bool confusion);
void mimus__metrics_free(mimus__metrics *metrics);

/* Count `n` samples of one episode.
 *
 *   logits   (n, ld)  float32, the first A of each row
 *   actions  (n, H)   uint16, MIMUS_NO_LABEL counts for nothing
 *   masks    (n, W)   packed bits, or NULL */
mimus_status mimus__metrics_add(mimus__metrics *metrics, uint64_t episode, uint32_t n,
                                const float *logits, size_t ld, const uint16_t *actions,
                                const uint32_t *masks);

/* Per head: samples, agreement, its standard error (over episodes when there are 20 or more, else
 * over samples: the result says which), nll, entropy, p_true, illegal (arg-max without the mask
 * forbidden by it), and the baselines majority (most frequent action of these samples, under the
 * mask's veto counted as a miss) and uniform_legal; joint: agreement of all heads at once, its
 * standard error. */
mimus_status mimus__metrics_json(json_t **out, const mimus__metrics *metrics);

#endif
