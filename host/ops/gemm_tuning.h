/* gemm_tuning - which back end, in which variant: tried at the first start, remembered after.
 *
 * The choice lies in the cache folder (mimus__file_cache_folder) in one JSON file for each device,
 * driver, set of shapes, set of back ends and version of mimus. A file that is damaged, or of
 * another key, is as good as none. Without a cache folder every start is a first one. */
#ifndef MIMUS_HOST_GEMM_TUNING_H
#define MIMUS_HOST_GEMM_TUNING_H

#include "gemm_backend.h"

/* Open the fastest right one of `types` into `*out`; `*report` is mimus__gemm_report's object, a
 * new reference. MIMUS_ERR_DEVICE when none is right, saying what is wrong with each; of a single
 * type its own failure. */
mimus_status mimus__gemm_tune(mimus__gemm_backend **out, json_t **report, mimus__device *device,
                              const mimus__gemm_problem *problem,
                              const mimus__gemm_type *const *types, uint32_t type_count);

#endif
