/* staging - two pinned pieces of host memory that uploads to a GPU go through.
 *
 * A copy from pinned memory is about twice as fast as one from pageable memory and does not hold
 * up the host, which fills one half while the device takes the other (opencl.md 10). Kernels never
 * compute from these: AMD leaves them on the host's side. */
#ifndef MIMUS_HOST_STAGING_H
#define MIMUS_HOST_STAGING_H

#include "device.h"

mimus_status mimus__staging_new(mimus__staging **out, mimus__device *device);
/* The queue must be idle. */
void mimus__staging_free(mimus__staging *staging);

/* Enqueue an upload; `source` is free for reuse on return. Waits for the device only when both
 * halves are full. */
mimus_status mimus__staging_write(mimus__staging *staging, cl_mem target, size_t offset,
                                  const void *source, size_t bytes);

#endif
