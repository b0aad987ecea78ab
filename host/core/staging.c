#include "staging.h"

#include "alloc.h"

#include <stdlib.h>
#include <string.h>

enum { HALF_BYTES = 16 << 20, PIECE_ALIGN = 64 };

typedef struct staging_half {
    cl_mem memory;
    char *mapped;
    size_t used;
    cl_event last; /* of the uploads from it; NULL: none in flight */
} staging_half;

struct mimus__staging {
    mimus__device *device;
    staging_half halves[2];
    size_t turn;
};

static mimus_status half_open(staging_half *out, mimus__device *device) {
    cl_int code;
    out->memory = mimus__cl.clCreateBuffer(mimus__device_context(device), CL_MEM_ALLOC_HOST_PTR,
                                           HALF_BYTES, NULL, &code);
    if (out->memory == NULL)
        return mimus__device_check(device, code, "staging buffer");
    out->mapped = mimus__cl.clEnqueueMapBuffer(mimus__device_queue(device), out->memory, CL_TRUE,
                                               CL_MAP_WRITE, 0, HALF_BYTES, 0, NULL, NULL, &code);
    return mimus__device_check(device, code, "map of the staging buffer");
}

static void half_close(staging_half *half, mimus__device *device) {
    if (half->last != NULL)
        mimus__cl.clReleaseEvent(half->last);
    if (half->mapped != NULL) {
        mimus__cl.clEnqueueUnmapMemObject(mimus__device_queue(device), half->memory, half->mapped,
                                          0, NULL, NULL);
        mimus__cl.clFinish(mimus__device_queue(device));
    }
    if (half->memory != NULL)
        mimus__cl.clReleaseMemObject(half->memory);
}

mimus_status mimus__staging_new(mimus__staging **out, mimus__device *device) {
    mimus_status status = MIMUS_OK;
    mimus__staging *staging = NULL;
    MIMUS_TRY(mimus__alloc(&staging, 1, sizeof *staging));
    staging->device = device;
    MIMUS_TRY(half_open(&staging->halves[0], device));
    MIMUS_TRY(half_open(&staging->halves[1], device));
    *out = staging;
    staging = NULL;
out:
    mimus__staging_free(staging);
    return status;
}

void mimus__staging_free(mimus__staging *staging) {
    if (staging == NULL)
        return;
    half_close(&staging->halves[0], staging->device);
    half_close(&staging->halves[1], staging->device);
    free(staging);
}

static mimus_status half_reuse(staging_half *half, const mimus__device *device) {
    mimus_status status = MIMUS_OK;
    if (half->last != NULL) {
        status = mimus__device_wait(device, half->last);
        mimus__cl.clReleaseEvent(half->last);
        half->last = NULL;
    }
    half->used = 0;
    return status;
}

static mimus_status half_upload(staging_half *half, const mimus__device *device, cl_mem target,
                                size_t offset, const void *source, size_t bytes) {
    cl_event event = NULL;
    memcpy(half->mapped + half->used, source, bytes);
    cl_int code =
        mimus__cl.clEnqueueWriteBuffer(mimus__device_queue(device), target, CL_FALSE, offset, bytes,
                                       half->mapped + half->used, 0, NULL, &event);
    if (code == CL_SUCCESS) {
        if (half->last != NULL)
            mimus__cl.clReleaseEvent(half->last);
        half->last = event;
        half->used += (bytes + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
        code =
            mimus__cl.clFlush(mimus__device_queue(device)); /* or it may wait for the next call */
    }
    return mimus__device_check(device, code, "clEnqueueWriteBuffer");
}

mimus_status mimus__staging_write(mimus__staging *staging, cl_mem target, size_t offset,
                                  const void *source, size_t bytes) {
    mimus_status status = MIMUS_OK;
    const char *from = source;
    while (bytes > 0) {
        staging_half *half = &staging->halves[staging->turn];
        if (half->used == HALF_BYTES) {
            staging->turn ^= 1;
            half = &staging->halves[staging->turn];
            MIMUS_TRY(half_reuse(half, staging->device));
        }
        size_t room = HALF_BYTES - half->used;
        size_t piece = bytes < room ? bytes : room;
        MIMUS_TRY(half_upload(half, staging->device, target, offset, from, piece));
        from += piece;
        offset += piece;
        bytes -= piece;
    }
out:
    return status;
}
