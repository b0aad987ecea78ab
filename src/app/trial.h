/* trial - whether a file that was exported computes what the policy does. */
#ifndef MIMUS_APP_TRIAL_H
#define MIMUS_APP_TRIAL_H

#include "onnx.h"
#include "policy.h"
#include "samples.h"
#include "watch.h"

typedef struct mimus__trial {
    const char *where; /* the file's name in messages */
    const mimus__model *model;
    const mimus_policy *policy;
    const mimus__samples *samples;
    mimus__phase *phase;
    double difference; /* the largest between two logits */
    uint64_t ties;     /* choices that differ where rounding decides */
} mimus__trial;

/* Logits may differ by this much, times the logit where it is above 1. */
#define MIMUS__TRIAL_TOLERANCE 1e-5

/* Run an ONNX file (onnx_run.h) on all samples: logits within the tolerance, the same action chosen
 * wherever two logits are not closer to each other than that, nothing drawn that is not legal, and
 * what else the target's outputs say. MIMUS_ERR_DATA names the first sample and action that is not
 * so. */
mimus_status mimus__trial_onnx(mimus__trial *trial, const char *bytes, size_t size,
                               mimus__onnx_target target, const mimus__onnx_inputs *inputs);

/* The same policy out of numbers that were read back: its logits must be the same to the bit. */
mimus_status mimus__trial_policy(mimus__trial *trial, const mimus_policy *other);

#endif
