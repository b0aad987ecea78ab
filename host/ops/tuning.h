/* tuning - what timing found at an earlier start, kept in the cache folder
 * (mimus__file_cache_folder) by what it depends on. A cache that cannot be read or written is no
 * failure: it is found again. */
#ifndef MIMUS_HOST_TUNING_H
#define MIMUS_HOST_TUNING_H

#include "device.h"

/* What every choice depends on: mimus' version, device, driver, geometry. Add the problem. A new
 * reference. */
mimus_status mimus__tuning_key(json_t **out, const mimus__device *device);

/* The report that was remembered for `key` under `kind` ("gemm"), a new reference; NULL: none. */
json_t *mimus__tuning_recall(const char *kind, const json_t *key);

void mimus__tuning_remember(const char *kind, json_t *key, json_t *report);

#endif
