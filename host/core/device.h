/* device - one OpenCL device: context, in-order queue, and the counters behind them. */
#ifndef MIMUS_HOST_DEVICE_H
#define MIMUS_HOST_DEVICE_H

#include "json.h"
#include "opencl.h"

typedef struct mimus__device_info {
    uint32_t platform, index; /* as in "P:D" */
    char platform_name[256];
    char vendor[256];
    char name[256];
    char driver[256];
    char version[256];
    bool cpu; /* CL_DEVICE_TYPE_CPU, or a software rasteriser that calls itself a GPU */
    bool gpu;
    uint64_t memory;       /* bytes, global */
    uint64_t largest;      /* bytes of the largest buffer */
    uint64_t local_memory; /* bytes */
    uint32_t compute_units;
    uint32_t max_group;    /* work-items of the largest group */
    uint32_t vector_width; /* native float vector width, 1 where unknown */
    uint32_t base_align;   /* bytes a sub-buffer's origin must be a multiple of */
    bool fp16, fp64;
    const char *unusable; /* why mimus cannot use it ("has no compiler"), static; NULL: it can */
} mimus__device_info;

typedef struct mimus__device mimus__device;
typedef struct mimus__staging mimus__staging;

/* Choose by `selector` and open:
 *
 *   "gpu", "cpu"     the first of its type
 *   "P:D"            a platform's number and a device's in it, as the list gives them
 *   other text       the first whose name, else whose platform's name has it, whatever the case
 *   NULL or ""       what the MIMUS_DEVICE variable selects, else the first GPU, CPU or other
 *
 * MIMUS_ERR_NO_DEVICE says which of loader, platform and device is missing and the package to
 * install, or lists what there is. `budget` bytes bound all buffers together; 0: 80% of the
 * device's memory, which on a CPU device is the machine's. MIMUS_ERR_ARGUMENT where MIMUS_GEOMETRY
 * or MIMUS_SPIN hold a word that they do not take. One thread at a time may use a device
 * and what belongs to it. */
mimus_status mimus__device_open(mimus__device **out, const char *selector, uint64_t budget);
/* Waits for the queue. Free buffers, programs and kernels before. */
void mimus__device_close(mimus__device *device);

/* "gpu", "cpu" or "accelerator". */
const char *mimus__device_type_text(const mimus__device_info *info);

const mimus__device_info *mimus__device_get_info(const mimus__device *device);
cl_context mimus__device_context(const mimus__device *device);
cl_command_queue mimus__device_queue(const mimus__device *device);
cl_device_id mimus__device_id(const mimus__device *device);

/* A device as docs/json.md describes it, without "chosen"; a new reference. */
mimus_status mimus__device_describe(json_t **out, const mimus__device_info *info);

/* What there is, as docs/json.md describes it; a new reference. A selector that matches nothing
 * chooses nothing, a platform that fails says so in its row: neither is a failure. Without a
 * loader or a platform MIMUS_ERR_NO_DEVICE. */
mimus_status mimus__device_list(json_t **out, const char *selector);

/* From here to the next call, whoever builds or times kernels on the device gives up, with
 * MIMUS_ERR_STOPPED, when `watch` wants to stop: on CPUs that takes many seconds. NULL ends it. */
void mimus__device_set_watch(mimus__device *device, const mimus_watch *watch);
/* Whether it does, between two of them. */
mimus_status mimus__device_check_stop(const mimus__device *device);

/* MIMUS_ERR_DEVICE from an OpenCL code: "what: CL_NAME (-5) on NAME". CL_SUCCESS gives OK. */
mimus_status mimus__device_check(const mimus__device *device, cl_int code, const char *what);

/* Call after enqueuing each step: flushes every 32 steps and bounds the queue to 256 to 320 steps
 * in flight by waiting for an old marker (opencl.md 6-8: only a flush promises submission; drivers
 * stall or bloat when the host runs far ahead). Waits, never reads. */
mimus_status mimus__device_pace(mimus__device *device);
/* Wait for everything enqueued. Not a read. */
mimus_status mimus__device_finish(mimus__device *device);
/* Wait for a flushed command. On GPUs this and all other waits look at the queue and sleep in
 * turns, for drivers whose waits spin a core (opencl.md 7); MIMUS_SPIN=1 leaves it to the driver.
 */
mimus_status mimus__device_wait(const mimus__device *device, cl_event event);

/* Blocking reads (mimus__buffer_read) and launches so far; bytes in buffers now and at most. */
uint64_t mimus__device_reads(const mimus__device *device);
uint64_t mimus__device_launches(const mimus__device *device);
uint64_t mimus__device_bytes(const mimus__device *device);
uint64_t mimus__device_peak_bytes(const mimus__device *device);
/* Bytes that new buffers may still take: what is left of the budget, and on GPUs of the memory. */
uint64_t mimus__device_room(const mimus__device *device);

/* For buffer.c and launch.c: account for memory (MIMUS_ERR_MEMORY past the budget, naming both),
 * reads and launches. */
mimus_status mimus__device_reserve(mimus__device *device, uint64_t bytes, const char *what);
void mimus__device_release(mimus__device *device, uint64_t bytes);
void mimus__device_count_read(mimus__device *device);
void mimus__device_count_launch(mimus__device *device);
/* The device's staging memory (staging.h), made when first asked for; the device's own. */
mimus_status mimus__device_staging(mimus__device *device, mimus__staging **out);

#endif
