/* buffer - device memory. Sizes are bytes; every operation goes through the device's in-order
 * queue. Reaching past a buffer's end is MIMUS_ERR_ARGUMENT, 0 bytes are nothing to do. */
#ifndef MIMUS_HOST_BUFFER_H
#define MIMUS_HOST_BUFFER_H

#include "device.h"
#include "pages.h"

typedef struct mimus__buffer {
    mimus__device *device; /* NULL: no buffer */
    cl_mem memory;
    size_t bytes;
    bool is_part;
    mimus__pages pages; /* what the memory lives in on a CPU device */
} mimus__buffer;

/* A zeroed buffer; does not block. `what` names it ("weights") when it does not fit the budget, the
 * device's largest buffer or what is left of its memory (MIMUS_ERR_MEMORY). 0 bytes become 4. */
mimus_status mimus__buffer_new(mimus__buffer *out, mimus__device *device, size_t bytes,
                               const char *what);
/* A window into `whole`, origin a multiple of the device's base_align. Free before `whole`. */
mimus_status mimus__buffer_part(mimus__buffer *out, const mimus__buffer *whole, size_t origin,
                                size_t bytes);
/* Waits for the queue, which may still use the memory; whoever frees does so between steps. */
void mimus__buffer_free(mimus__buffer *buffer);

/* Upload; returns when `source` may be reused. On GPUs through pinned staging memory, so that the
 * copy to the device goes on while the caller prepares the next piece (staging.h). */
mimus_status mimus__buffer_write(const mimus__buffer *buffer, size_t offset, const void *source,
                                 size_t bytes);
/* The only blocking read of the project; counted by the device. On GPUs it waits as
 * mimus__device_wait does until the queue is empty, and reads then. */
mimus_status mimus__buffer_read(const mimus__buffer *buffer, size_t offset, void *target,
                                size_t bytes);
/* Enqueue. */
mimus_status mimus__buffer_copy(const mimus__buffer *source, size_t source_offset,
                                const mimus__buffer *target, size_t target_offset, size_t bytes);
/* Enqueue: set 4-byte words; `offset` and `bytes` are multiples of 4. */
mimus_status mimus__buffer_fill(const mimus__buffer *buffer, size_t offset, uint32_t word,
                                size_t bytes);

#endif
