/* metrics - what a policy's logits are worth against a recording, in double precision.
 *
 * A head's probabilities are the softmax over its legal actions. A (sample, head) pair counts when
 * it has a label that its mask allows; labels that are out of range or forbidden count for nothing,
 * as training has it (audit.h). */
#ifndef MIMUS_MODEL_METRICS_H
#define MIMUS_MODEL_METRICS_H

#include "schema.h"

typedef struct mimus__metrics mimus__metrics;

/* A matrix (true, chosen) is kept for every head of at most `confusion` actions;
 * MIMUS_ERR_UNSUPPORTED when those would have more than 2^24 entries together. */
mimus_status mimus__metrics_new(mimus__metrics **out, const mimus_schema *schema,
                                uint32_t confusion);
void mimus__metrics_free(mimus__metrics *metrics);

/* Sum up episode by episode too, before anything is counted. Of long recordings, neighbours are
 * put together: 1, 2, 4, ... episodes are a group, such that there are at most `most` (even)
 * groups. */
mimus_status mimus__metrics_keep_episodes(mimus__metrics *metrics, size_t most);

/* Count `n` samples of one episode; the calls of an episode follow one another.
 *
 *   logits   (n, ld)  float32, the first A of each row
 *   actions  (n, H)   uint16, MIMUS_NO_LABEL counts for nothing
 *   masks    (n, W)   packed bits, or NULL: everything is legal
 *
 * MIMUS_ERR_DATA when a logit is not finite; nothing is counted then. */
mimus_status mimus__metrics_add(mimus__metrics *metrics, uint64_t episode, uint32_t n,
                                const float *logits, size_t ld, const uint16_t *actions,
                                const uint32_t *masks);

/* {"samples", "episodes", "heads": [...], "joint": {...}}; what cannot be said is null. A head has
 *
 *   name, samples    the pairs that count; everything below is a mean over them
 *   agreement        the most probable legal action is the label; ties go to the lowest action
 *   agreement_se     its standard error, over se_over: "episodes" when 20 or more have a pair that
 *                    counts, else "samples"
 *   nll, entropy     of the legal actions' probabilities, nats
 *   p_true           probability of the label
 *   illegal          the most probable action of all is forbidden
 *   majority         agreement of always choosing these samples' most frequent label (its veto by
 *                    a mask is a miss: the label is another one then)
 *   uniform_legal    agreement of choosing among the legal actions by lot
 *   reliability      by the probability of the most probable legal action, in ten equal parts of
 *                    0 to 1: samples, their mean probability ("confidence"), their agreement
 *   calibration_error  mean of |agreement - confidence| over those parts, weighted by samples
 *                    (Naeini, Cooper, Hauskrecht 2015: expected calibration error)
 *   confusion        (true, chosen) counts, when asked for
 *   actions          then, where the schema has them, the names of its rows and columns
 *
 * and joint, over the samples with at least one such pair: samples, agreement (of all of them at
 * once), agreement_se, se_over, nll (summed over the heads).
 *
 * Standard errors. Samples of one episode are alike, so episodes are drawn, not samples: agreement
 * p = sum h / sum n is a ratio of the m episodes' hits h and pairs n, and
 *
 *     se^2 = m / (m - 1)  sum (h - p n)^2 / (sum n)^2
 *
 * Cochran, Sampling Techniques, 3rd ed. 1977, section 3.12, for an unlimited population. Over
 * samples it becomes p (1 - p) / (n - 1). */
mimus_status mimus__metrics_json(json_t **out, const mimus__metrics *metrics);

/* What keep_episodes kept: {"episodes": [...], "together": 1, "heads": [...], "joint": {...}}:
 * numbers of the groups' first episodes, how many episodes a group is, and of every head and of
 * all at once an object of arrays over the groups: samples (pairs that count), hits, and nll
 * (summed). */
mimus_status mimus__metrics_episodes_json(json_t **out, const mimus__metrics *metrics);

#endif
