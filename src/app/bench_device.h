/* bench_device - what a device does at its best, by kernels that do nothing else (cl/bench.cl):
 * the ceilings that a training step is held against. */
#ifndef MIMUS_APP_BENCH_DEVICE_H
#define MIMUS_APP_BENCH_DEVICE_H

#include "device.h"

/* How long to measure. */
typedef struct mimus__bench_effort {
    double seconds;        /* that calls behind one another take at least to be timed */
    uint32_t repeats;      /* of which the best counts */
    uint64_t stream_bytes; /* of each of three buffers that are streamed */
} mimus__bench_effort;

/* What mimus_bench takes: a few seconds in all, buffers larger than today's caches. */
extern const mimus__bench_effort mimus__bench_full_effort;

typedef struct mimus__bench_limits {
    double flops;       /* operations a second; a multiply-add is two */
    uint32_t width;     /* floats of the vectors that reached it, */
    uint32_t local;     /* and work-items of the groups */
    double copy, triad; /* bytes a second of device memory, read and written */
    double upload;      /* bytes a second, from ordinary host memory */
    uint64_t stream;    /* bytes of each of the buffers that were streamed */
} mimus__bench_limits;

/* The greater of copy and triad. */
double mimus__bench_bandwidth(const mimus__bench_limits *limits);

/* Measure; each figure is the best of several launches. Takes at most 3/8 of the device's memory,
 * all of it given back. Blocks. */
mimus_status mimus__bench_device(mimus__bench_limits *out, mimus__device *device,
                                 const mimus__bench_effort *effort, const mimus_watch *watch);

/* Seconds that one call of `enqueue` takes when many are enqueued behind one another. `index`
 * counts them. */
typedef mimus_status (*mimus__bench_call)(void *user, uint32_t index);
mimus_status mimus__bench_time(double *seconds, mimus__device *device,
                               const mimus__bench_effort *effort, mimus__bench_call enqueue,
                               void *user);

#endif
