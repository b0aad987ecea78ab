/* gemm_trial - is a back end right on the real shapes, and how long does it take? */
#ifndef MIMUS_HOST_GEMM_TRIAL_H
#define MIMUS_HOST_GEMM_TRIAL_H

#include "gemm_backend.h"

/* Run every product of every layer and compare with cl/gemm_naive.cl, number for number: the inputs
 * are small integers, so that sums are exact in any order and a difference is an error. Then time
 * the step. MIMUS_ERR_DEVICE names product, layer and element when one is wrong.
 *
 * At most 3 runs and as many rows as keep it within a few seconds on a CPU take part. Blocks. */
mimus_status mimus__gemm_try(mimus__gemm_backend *backend, const mimus__gemm_problem *problem,
                             double *seconds);

#endif
