#include "buffer.h"

#include "staging.h"

#include <string.h>

/* Fills work in words, so memory comes in words. */
static size_t whole_words(size_t bytes) {
    return (bytes + 3) / 4 * 4;
}

/* Lazy drivers find out that there is no room at the first command on the buffer. */
static mimus_status no_room(const mimus__device *device, cl_int code, const char *call,
                            size_t bytes, const char *what) {
    mimus_status status = mimus__device_check(device, code, call);
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
        code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE)
        status = mimus__fail_prefix(MIMUS_ERR_MEMORY, "%s: no room for %zu bytes", what, bytes);
    return status;
}

static cl_int fill(const mimus__buffer *buffer, size_t offset, uint32_t word, size_t bytes) {
    return mimus__cl.clEnqueueFillBuffer(mimus__device_queue(buffer->device), buffer->memory, &word,
                                         sizeof word, offset, bytes, 0, NULL, NULL);
}

/* A CPU device is handed fresh pages, which are zero; others get a fill. */
static mimus_status create(mimus__buffer *buffer, const char *what) {
    mimus_status status = MIMUS_OK;
    size_t bytes = whole_words(buffer->bytes);
    bool in_place = mimus__device_get_info(buffer->device)->cpu;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (in_place ? CL_MEM_USE_HOST_PTR : 0);
    cl_int code;
    if (in_place)
        MIMUS_TRY(mimus__pages_new(&buffer->pages, bytes, what));
    buffer->memory = mimus__cl.clCreateBuffer(mimus__device_context(buffer->device), flags, bytes,
                                              buffer->pages.start, &code);
    if (buffer->memory == NULL)
        status = no_room(buffer->device, code, "clCreateBuffer", bytes, what);
    else if (!in_place)
        status =
            no_room(buffer->device, fill(buffer, 0, 0, bytes), "clEnqueueFillBuffer", bytes, what);
out:
    return status;
}

mimus_status mimus__buffer_new(mimus__buffer *out, mimus__device *device, size_t bytes,
                               const char *what) {
    mimus_status status = MIMUS_OK;
    const mimus__device_info *info = mimus__device_get_info(device);
    mimus__buffer buffer = {.bytes = bytes > 0 ? bytes : 4};
    *out = (mimus__buffer){0};
    if (bytes > info->largest)
        return mimus__fail(MIMUS_ERR_MEMORY,
                           "%s: %zu bytes in one buffer, but %s takes at most %llu", what, bytes,
                           info->name, (unsigned long long)info->largest);
    MIMUS_TRY(mimus__device_reserve(device, whole_words(buffer.bytes), what));
    buffer.device = device;
    MIMUS_TRY(create(&buffer, what));
    *out = buffer;
    buffer.device = NULL;
out:
    mimus__buffer_free(&buffer);
    return status;
}

mimus_status mimus__buffer_part(mimus__buffer *out, const mimus__buffer *whole, size_t origin,
                                size_t bytes) {
    *out = (mimus__buffer){0};
    if (bytes == 0 || origin > whole->bytes || bytes > whole->bytes - origin)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "no part of %zu bytes at %zu in a buffer of %zu",
                           bytes, origin, whole->bytes);
    cl_buffer_region region = {origin, bytes};
    cl_int code;
    cl_mem memory = mimus__cl.clCreateSubBuffer(whole->memory, CL_MEM_READ_WRITE,
                                                CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (memory == NULL)
        return mimus__device_check(whole->device, code, "clCreateSubBuffer");
    *out =
        (mimus__buffer){.device = whole->device, .memory = memory, .bytes = bytes, .is_part = true};
    return MIMUS_OK;
}

void mimus__buffer_free(mimus__buffer *buffer) {
    if (buffer == NULL || buffer->device == NULL)
        return;
    if (buffer->memory != NULL) {
        mimus__cl.clFinish(mimus__device_queue(buffer->device));
        mimus__cl.clReleaseMemObject(buffer->memory);
    }
    if (!buffer->is_part)
        mimus__device_release(buffer->device, whole_words(buffer->bytes));
    mimus__pages_free(&buffer->pages);
    *buffer = (mimus__buffer){0};
}

static mimus_status in_range(const mimus__buffer *buffer, size_t offset, size_t bytes,
                             const char *verb) {
    if (offset > buffer->bytes || bytes > buffer->bytes - offset)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "cannot %s %zu bytes at %zu of a buffer of %zu",
                           verb, bytes, offset, buffer->bytes);
    return MIMUS_OK;
}

static mimus_status write_staged(const mimus__buffer *buffer, size_t offset, const void *source,
                                 size_t bytes) {
    mimus__staging *staging;
    mimus_status status = mimus__device_staging(buffer->device, &staging);
    if (status == MIMUS_OK)
        status = mimus__staging_write(staging, buffer->memory, offset, source, bytes);
    return status;
}

mimus_status mimus__buffer_write(const mimus__buffer *buffer, size_t offset, const void *source,
                                 size_t bytes) {
    mimus_status status = in_range(buffer, offset, bytes, "write");
    if (status != MIMUS_OK || bytes == 0)
        return status;
    if (mimus__device_get_info(buffer->device)->gpu)
        return write_staged(buffer, offset, source, bytes);
    cl_int code =
        mimus__cl.clEnqueueWriteBuffer(mimus__device_queue(buffer->device), buffer->memory, CL_TRUE,
                                       offset, bytes, source, 0, NULL, NULL);
    return mimus__device_check(buffer->device, code, "clEnqueueWriteBuffer");
}

mimus_status mimus__buffer_read(const mimus__buffer *buffer, size_t offset, void *target,
                                size_t bytes) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(in_range(buffer, offset, bytes, "read"));
    if (bytes == 0)
        goto out;
    mimus__device_count_read(buffer->device);
    if (mimus__device_get_info(buffer->device)->gpu)
        MIMUS_TRY(mimus__device_finish(buffer->device));
    cl_int code = mimus__cl.clEnqueueReadBuffer(mimus__device_queue(buffer->device), buffer->memory,
                                                CL_TRUE, offset, bytes, target, 0, NULL, NULL);
    MIMUS_TRY(mimus__device_check(buffer->device, code, "clEnqueueReadBuffer"));
out:
    return status;
}

mimus_status mimus__buffer_copy(const mimus__buffer *source, size_t source_offset,
                                const mimus__buffer *target, size_t target_offset, size_t bytes) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(in_range(source, source_offset, bytes, "copy"));
    MIMUS_TRY(in_range(target, target_offset, bytes, "copy to"));
    if (bytes == 0)
        goto out;
    cl_int code = mimus__cl.clEnqueueCopyBuffer(mimus__device_queue(source->device), source->memory,
                                                target->memory, source_offset, target_offset, bytes,
                                                0, NULL, NULL);
    MIMUS_TRY(mimus__device_check(source->device, code, "clEnqueueCopyBuffer"));
out:
    return status;
}

mimus_status mimus__buffer_fill(const mimus__buffer *buffer, size_t offset, uint32_t word,
                                size_t bytes) {
    mimus_status status = in_range(buffer, offset, bytes, "fill");
    if (status != MIMUS_OK || bytes == 0)
        return status;
    if (offset % sizeof word != 0 || bytes % sizeof word != 0)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "cannot fill %zu bytes at %zu: not whole words",
                           bytes, offset);
    return mimus__device_check(buffer->device, fill(buffer, offset, word, bytes),
                               "clEnqueueFillBuffer");
}
