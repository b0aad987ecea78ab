/* Finding, choosing and opening a device; the queue's depth; the counters. */
#include "device.h"

#include "alloc.h"
#include "clock.h"
#include "discovery.h"
#include "environment.h"
#include "staging.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FLUSH_STEPS = 32,  /* only a flush promises submission */
    MARKER_STEPS = 64, /* MARKERS of them bound the steps in flight */
    MARKERS = 4,
};

struct mimus__device {
    mimus__device_info info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    mimus__staging *staging; /* made by the first upload that wants it */
    bool poll;               /* sleep between looks at the queue instead of a driver's wait */
    uint64_t steps;
    cl_event markers[MARKERS]; /* the oldest at steps / MARKER_STEPS % MARKERS; NULL: none */
    uint64_t budget, bytes, peak_bytes;
    uint64_t reads, launches;
    const mimus_watch *watch; /* borrowed, or NULL */
};

/* A CPU device's buffers live in the machine's memory, of which drivers report what they like:
 * PoCL 3.1 a sixth of it (opencl.md 2). */
static uint64_t default_budget(const mimus__device_info *info) {
    uint64_t memory = info->memory;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (info->cpu && pages > 0 && page > 0)
        memory = (uint64_t)pages * (uint64_t)page;
    return memory / 5 * 4;
}

/* Every use of a device begins here, so this is where wrong words are refused; MIMUS_GEOMETRY is
 * for geometry.c, which has nobody to tell. */
static mimus_status read_environment(bool *spin) {
    mimus_status status = MIMUS_OK;
    const char *word;
    MIMUS_TRY(
        mimus__environment_word(&word, "MIMUS_GEOMETRY", (const char *[]){"cpu", "gpu", NULL}));
    MIMUS_TRY(mimus__environment_word(&word, "MIMUS_SPIN", (const char *[]){"0", "1", NULL}));
    *spin = word != NULL && strcmp(word, "1") == 0;
out:
    return status;
}

static mimus_status open_found(mimus__device *device, const mimus__found_device *found,
                               uint64_t budget, bool spin) {
    device->info = found->info;
    device->id = found->id;
    device->budget = budget != 0 ? budget : default_budget(&found->info);
    device->poll = found->info.gpu && !spin;
    if (found->info.unusable != NULL)
        return mimus__fail(MIMUS_ERR_NO_DEVICE, "%s %s", found->info.name, found->info.unusable);
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, 0, 0};
    memcpy(&properties[1], &found->platform, sizeof found->platform);
    cl_int code;
    device->context = mimus__cl.clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
    if (device->context == NULL)
        return mimus__device_check(device, code, "clCreateContext");
    device->queue = mimus__cl.clCreateCommandQueue(device->context, device->id, 0, &code);
    if (device->queue == NULL)
        return mimus__device_check(device, code, "clCreateCommandQueue");
    return MIMUS_OK;
}

mimus_status mimus__device_open(mimus__device **out, const char *selector, uint64_t budget) {
    mimus_status status = MIMUS_OK;
    mimus__discovery found = {0};
    mimus__device *device = NULL;
    size_t chosen;
    bool spin;
    *out = NULL;
    MIMUS_TRY(read_environment(&spin));
    MIMUS_TRY(mimus__discovery_run(&found));
    MIMUS_TRY(mimus__discovery_choose(&found, selector, &chosen));
    MIMUS_TRY(mimus__alloc(&device, 1, sizeof *device));
    MIMUS_TRY(open_found(device, &found.devices[chosen], budget, spin));
    *out = device;
    device = NULL;
out:
    mimus__device_close(device);
    mimus__discovery_clear(&found);
    return status;
}

void mimus__device_close(mimus__device *device) {
    if (device == NULL)
        return;
    if (device->queue != NULL)
        mimus__cl.clFinish(device->queue);
    for (size_t i = 0; i < MARKERS; i++) {
        if (device->markers[i] != NULL)
            mimus__cl.clReleaseEvent(device->markers[i]);
    }
    mimus__staging_free(device->staging);
    if (device->queue != NULL)
        mimus__cl.clReleaseCommandQueue(device->queue);
    if (device->context != NULL)
        mimus__cl.clReleaseContext(device->context);
    free(device);
}

const mimus__device_info *mimus__device_get_info(const mimus__device *device) {
    return &device->info;
}

cl_context mimus__device_context(const mimus__device *device) {
    return device->context;
}

cl_command_queue mimus__device_queue(const mimus__device *device) {
    return device->queue;
}

cl_device_id mimus__device_id(const mimus__device *device) {
    return device->id;
}

void mimus__device_set_watch(mimus__device *device, const mimus_watch *watch) {
    device->watch = watch;
}

mimus_status mimus__device_check_stop(const mimus__device *device) {
    return mimus__watch_check(device->watch, "while kernels were built and timed");
}

mimus_status mimus__device_check(const mimus__device *device, cl_int code, const char *what) {
    if (code == CL_SUCCESS)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DEVICE, "%s: %s (%d) on %s", what, mimus__cl_error_name(code),
                       (int)code, device->info.name);
}

static void sleep_seconds(double seconds) {
    struct timespec pause = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&pause, NULL); /* cut short by a signal: a look at the queue too many */
}

/* Sleep a sixteenth of the time waited so far, 20 us to 1 ms: an answer is late by 6% of a short
 * wait and by nothing of a long one, and the core is free for both. */
static mimus_status poll_event(const mimus__device *device, cl_event event) {
    double begin = mimus__clock_seconds();
    for (;;) {
        cl_int state;
        cl_int code = mimus__cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof state, &state, NULL);
        if (code != CL_SUCCESS)
            return mimus__device_check(device, code, "clGetEventInfo");
        if (state < 0)
            return mimus__device_check(device, state, "a command failed");
        if (state == CL_COMPLETE)
            return MIMUS_OK;
        double pause = (mimus__clock_seconds() - begin) / 16;
        sleep_seconds(pause < 20e-6 ? 20e-6 : pause > 1e-3 ? 1e-3 : pause);
    }
}

mimus_status mimus__device_wait(const mimus__device *device, cl_event event) {
    if (device->poll)
        return poll_event(device, event);
    return mimus__device_check(device, mimus__cl.clWaitForEvents(1, &event), "clWaitForEvents");
}

static mimus_status mark(const mimus__device *device, cl_event *event) {
    cl_int code = mimus__cl.clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event);
    if (code == CL_SUCCESS)
        code = mimus__cl.clFlush(device->queue);
    return mimus__device_check(device, code, "clEnqueueMarkerWithWaitList");
}

mimus_status mimus__device_pace(mimus__device *device) {
    mimus_status status = MIMUS_OK;
    device->steps++;
    if (device->steps % MARKER_STEPS == 0) {
        cl_event *oldest = &device->markers[device->steps / MARKER_STEPS % MARKERS];
        if (*oldest != NULL) {
            status = mimus__device_wait(device, *oldest);
            mimus__cl.clReleaseEvent(*oldest);
            *oldest = NULL;
        }
        return status == MIMUS_OK ? mark(device, oldest) : status;
    }
    if (device->steps % FLUSH_STEPS == 0)
        status = mimus__device_check(device, mimus__cl.clFlush(device->queue), "clFlush");
    return status;
}

mimus_status mimus__device_finish(mimus__device *device) {
    mimus_status status = MIMUS_OK;
    cl_event end = NULL;
    if (device->poll) {
        MIMUS_TRY(mark(device, &end));
        MIMUS_TRY(poll_event(device, end));
    }
    MIMUS_TRY(mimus__device_check(device, mimus__cl.clFinish(device->queue), "clFinish"));
out:
    if (end != NULL)
        mimus__cl.clReleaseEvent(end);
    return status;
}

mimus_status mimus__device_staging(mimus__device *device, mimus__staging **out) {
    if (device->staging == NULL) {
        mimus_status status = mimus__staging_new(&device->staging, device);
        if (status != MIMUS_OK)
            return status;
    }
    *out = device->staging;
    return MIMUS_OK;
}

uint64_t mimus__device_reads(const mimus__device *device) {
    return device->reads;
}

uint64_t mimus__device_launches(const mimus__device *device) {
    return device->launches;
}

uint64_t mimus__device_bytes(const mimus__device *device) {
    return device->bytes;
}

uint64_t mimus__device_room(const mimus__device *device) {
    uint64_t most = device->budget; /* what CPU drivers say of their memory means little */
    if (!device->info.cpu && device->info.memory < most)
        most = device->info.memory;
    return most > device->bytes ? most - device->bytes : 0;
}

uint64_t mimus__device_peak_bytes(const mimus__device *device) {
    return device->peak_bytes;
}

mimus_status mimus__device_reserve(mimus__device *device, uint64_t bytes, const char *what) {
    uint64_t left = device->budget - device->bytes;
    const bool small = bytes < 1 << 20;
    const double unit = small ? 1 << 10 : 1 << 20;
    if (bytes > left)
        return mimus__fail(MIMUS_ERR_MEMORY,
                           "%s: %.1f %s do not fit on %s: %.1f of its budget of %.1f are left",
                           what, (double)bytes / unit, small ? "KiB" : "MiB", device->info.name,
                           (double)left / unit, (double)device->budget / unit);
    device->bytes += bytes;
    if (device->bytes > device->peak_bytes)
        device->peak_bytes = device->bytes;
    return MIMUS_OK;
}

void mimus__device_release(mimus__device *device, uint64_t bytes) {
    device->bytes -= bytes;
}

void mimus__device_count_read(mimus__device *device) {
    device->reads++;
}

void mimus__device_count_launch(mimus__device *device) {
    device->launches++;
}
