/* policy - a trained network on the CPU; mimus.h holds the public half.
 *
 * Dense float32 layers. A sum begins with the bias and runs over the inputs in their order
 * (dense.h): a row's logits have the same bits in a batch and by itself, and on every machine as
 * far as its tanhf and erff agree. */
#ifndef MIMUS_MODEL_POLICY_H
#define MIMUS_MODEL_POLICY_H

#include "model.h"

/* A policy that computes what `model` does; copies what it needs. */
mimus_status mimus__policy_new(mimus_policy **out, const mimus__model *model);

/* The logits of `n` samples.
 *
 *   x       (n, S * K)  float32  raw senses, finite, the newest of the stacked samples last
 *   logits  (n, A)      float32  written; not finite where float32 overflows
 *
 * Allocates its scratch; any number of threads may share the policy. */
mimus_status mimus__policy_logits(const mimus_policy *policy, size_t n, const float *x,
                                  float *logits);

#endif
