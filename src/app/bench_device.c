#include "bench_device.h"

#include "alloc.h"
#include "clock.h"
#include "geometry.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const mimus__bench_effort mimus__bench_full_effort = {
    .seconds = 0.05, .repeats = 4, .stream_bytes = (uint64_t)256 << 20};

/* ------------------------------------------------------------------------- timing */

static mimus_status time_calls(double *seconds, mimus__device *device, mimus__bench_call enqueue,
                               void *user, uint32_t calls) {
    mimus_status status = MIMUS_OK;
    double began = mimus__clock_seconds();
    for (uint32_t i = 0; i < calls; i++) {
        MIMUS_TRY(enqueue(user, i));
        MIMUS_TRY(mimus__device_pace(device));
    }
    MIMUS_TRY(mimus__device_finish(device));
    *seconds = mimus__clock_seconds() - began;
out:
    return status;
}

mimus_status mimus__bench_time(double *seconds, mimus__device *device,
                               const mimus__bench_effort *effort, mimus__bench_call enqueue,
                               void *user) {
    enum { MOST_CALLS = 1 << 20 };
    mimus_status status = MIMUS_OK;
    double spent;
    uint32_t calls = 1;
    MIMUS_TRY(time_calls(&spent, device, enqueue, user, 1)); /* compiles, touches the memory */
    MIMUS_TRY(time_calls(&spent, device, enqueue, user, calls));
    while (spent < effort->seconds && calls < MOST_CALLS) {
        calls *= 2;
        MIMUS_TRY(time_calls(&spent, device, enqueue, user, calls));
    }
    *seconds = spent / calls;
    for (uint32_t repeat = 1; repeat < effort->repeats; repeat++) {
        MIMUS_TRY(time_calls(&spent, device, enqueue, user, calls));
        *seconds = spent / calls < *seconds ? spent / calls : *seconds;
    }
out:
    return status;
}

/* ------------------------------------------------------------------- multiply-adds */

/* As in cl/bench.cl. */
enum { CHAINS = 12, UNROLL = 16 };

typedef struct mad_probe {
    mimus__device *device;
    uint32_t width, local, groups;
    uint32_t repeats;
    mimus__program program;
    mimus__kernel kernel;
    mimus__buffer out;
} mad_probe;

static mimus_status open_mad(mad_probe *probe) {
    mimus_status status = MIMUS_OK;
    mimus__defines defines = {0};
    mimus__define_number(&defines, "WIDTH", probe->width);
    mimus__define_number(&defines, "LOCAL", probe->local);
    mimus__define_number(&defines, "CHAINS", CHAINS);
    mimus__define_number(&defines, "UNROLL", UNROLL);
    MIMUS_TRY(mimus__program_build(&probe->program, probe->device, "bench.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&probe->kernel, &probe->program, "bench_mad"));
    MIMUS_TRY(mimus__buffer_new(&probe->out, probe->device,
                                (size_t)probe->groups * probe->local * probe->width * sizeof(float),
                                "the bench"));
out:
    return status;
}

static void close_mad(mad_probe *probe) {
    mimus__buffer_free(&probe->out);
    mimus__kernel_free(&probe->kernel);
    mimus__program_free(&probe->program);
}

static mimus_status run_mad(void *user, uint32_t index) {
    mad_probe *probe = user;
    mimus__grid grid = {{(size_t)probe->groups * probe->local, 1, 1}, {probe->local, 1, 1}};
    (void)index;
    return mimus__launch(&probe->kernel, grid, MIMUS_ARG_U32(probe->repeats), MIMUS_ARG_F32(0.999f),
                         MIMUS_ARG_F32(0.001f), MIMUS_ARG_BUFFER(&probe->out));
}

/* Operations a second of vectors of that width in groups of that size. The launch is made long
 * enough that starting it is nothing. */
static mimus_status measure_mad(double *flops, mimus__device *device, uint32_t width,
                                uint32_t local, const mimus__bench_effort *effort) {
    enum { MOST_REPEATS = 1 << 24 };
    mimus_status status = MIMUS_OK;
    uint32_t units = mimus__device_get_info(device)->compute_units;
    mad_probe probe = {.device = device,
                       .width = width,
                       .local = local,
                       .groups = units * (local > 1 ? 32 : 4),
                       .repeats = 8};
    double seconds = 0, spent;
    MIMUS_TRY(open_mad(&probe));
    MIMUS_TRY(time_calls(&seconds, device, run_mad, &probe, 1)); /* compiles */
    MIMUS_TRY(time_calls(&seconds, device, run_mad, &probe, 1));
    while (seconds < effort->seconds && probe.repeats < MOST_REPEATS) {
        probe.repeats *= 2;
        MIMUS_TRY(time_calls(&seconds, device, run_mad, &probe, 1));
    }
    for (uint32_t repeat = 1; repeat < effort->repeats; repeat++) {
        MIMUS_TRY(time_calls(&spent, device, run_mad, &probe, 1));
        seconds = spent < seconds ? spent : seconds;
    }
    *flops = 2.0 * CHAINS * UNROLL * width * probe.repeats * probe.groups * local / seconds;
out:
    close_mad(&probe);
    return status;
}

/* Look at every candidate for a moment, and at the best one for long. */
static mimus_status find_flops(mimus__bench_limits *limits, mimus__device *device,
                               const mimus__bench_effort *effort, mimus__phase *phase) {
    static const struct {
        uint32_t width, local;
    } candidates[] = {{1, 64}, {4, 64}, {4, 1}, {8, 1}, {16, 1}};
    mimus_status status = MIMUS_OK;
    const mimus__bench_effort moment = {.seconds = effort->seconds / 5, .repeats = 2};
    double flops, best = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        MIMUS_TRY(measure_mad(&flops, device, candidates[i].width, candidates[i].local, &moment));
        MIMUS_TRY(mimus__phase_step(phase, 0));
        if (flops > best) {
            best = flops;
            limits->width = candidates[i].width;
            limits->local = candidates[i].local;
        }
    }
    MIMUS_TRY(measure_mad(&flops, device, limits->width, limits->local, effort));
    limits->flops = fmax(best, flops);
out:
    return status;
}

/* ---------------------------------------------------------------------- streaming */

typedef struct stream_probe {
    mimus__geometry geometry;
    size_t groups;
    mimus__program program;
    mimus__kernel copy, triad;
    mimus__buffer a, b, c;
    void *source; /* of uploads */
    size_t upload;
} stream_probe;

/* `span` vectors a group. */
static mimus_status build_streams(stream_probe *probe, mimus__device *device, uint32_t span) {
    mimus_status status = MIMUS_OK;
    mimus__defines defines = {0};
    mimus__geometry_define(probe->geometry, &defines);
    mimus__define_number(&defines, "SPAN", span);
    MIMUS_TRY(mimus__program_build(&probe->program, device, "bench.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&probe->copy, &probe->program, "bench_copy"));
    MIMUS_TRY(mimus__kernel_new(&probe->triad, &probe->program, "bench_triad"));
out:
    return status;
}

static mimus_status open_streams(stream_probe *probe, mimus__device *device, uint64_t bytes) {
    enum { UPLOAD_BYTES = 32 << 20 };
    mimus_status status = MIMUS_OK;
    const mimus__device_info *info = mimus__device_get_info(device);
    bytes = bytes < info->memory / 8 ? bytes : info->memory / 8;
    bytes = bytes < info->largest ? bytes : info->largest;
    probe->geometry = mimus__geometry_of(device);
    /* a CPU's item streams 64 KiB, a GPU's group 16 vectors an item */
    uint32_t span = probe->geometry.local > 1 ? 16 * probe->geometry.local
                                              : (64 << 10) / 4 / probe->geometry.width;
    size_t group_bytes = (size_t)span * probe->geometry.width * sizeof(float);
    probe->groups = (size_t)bytes / group_bytes;
    bytes = probe->groups * group_bytes;
    probe->upload = bytes < UPLOAD_BYTES ? (size_t)bytes : UPLOAD_BYTES;
    MIMUS_TRY(build_streams(probe, device, span));
    MIMUS_TRY(mimus__buffer_new(&probe->a, device, (size_t)bytes, "the bench"));
    MIMUS_TRY(mimus__buffer_new(&probe->b, device, (size_t)bytes, "the bench"));
    MIMUS_TRY(mimus__buffer_new(&probe->c, device, (size_t)bytes, "the bench"));
    MIMUS_TRY(mimus__alloc(&probe->source, probe->upload, 1));
    memset(probe->source, 1, probe->upload); /* pages that are only reserved would read fast */
out:
    return status;
}

static void close_streams(stream_probe *probe) {
    mimus__buffer_free(&probe->a);
    mimus__buffer_free(&probe->b);
    mimus__buffer_free(&probe->c);
    mimus__kernel_free(&probe->copy);
    mimus__kernel_free(&probe->triad);
    mimus__program_free(&probe->program);
    free(probe->source);
}

static mimus_status run_copy(void *user, uint32_t index) {
    const stream_probe *probe = user;
    (void)index;
    return mimus__launch(&probe->copy, mimus__geometry_grid(probe->geometry, probe->groups, 1),
                         MIMUS_ARG_BUFFER(&probe->a), MIMUS_ARG_BUFFER(&probe->b));
}

static mimus_status run_triad(void *user, uint32_t index) {
    const stream_probe *probe = user;
    (void)index;
    return mimus__launch(&probe->triad, mimus__geometry_grid(probe->geometry, probe->groups, 1),
                         MIMUS_ARG_F32(3.0f), MIMUS_ARG_BUFFER(&probe->a),
                         MIMUS_ARG_BUFFER(&probe->b), MIMUS_ARG_BUFFER(&probe->c));
}

static mimus_status run_upload(void *user, uint32_t index) {
    const stream_probe *probe = user;
    (void)index;
    return mimus__buffer_write(&probe->a, 0, probe->source, probe->upload);
}

static mimus_status find_bandwidth(mimus__bench_limits *limits, mimus__device *device,
                                   const mimus__bench_effort *effort, mimus__phase *phase) {
    mimus_status status = MIMUS_OK;
    stream_probe probe = {.groups = 0};
    double seconds;
    MIMUS_TRY(open_streams(&probe, device, effort->stream_bytes));
    limits->stream = probe.a.bytes;
    const struct {
        mimus__bench_call call;
        double bytes;
        double *rate;
    } streams[] = {{run_copy, 2.0 * (double)probe.a.bytes, &limits->copy},
                   {run_triad, 3.0 * (double)probe.a.bytes, &limits->triad},
                   {run_upload, (double)probe.upload, &limits->upload}};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        MIMUS_TRY(mimus__bench_time(&seconds, device, effort, streams[i].call, &probe));
        *streams[i].rate = streams[i].bytes / seconds;
        MIMUS_TRY(mimus__phase_step(phase, 0));
    }
out:
    close_streams(&probe);
    return status;
}

/* -------------------------------------------------------------------------- whole */

double mimus__bench_bandwidth(const mimus__bench_limits *limits) {
    return fmax(limits->copy, limits->triad);
}

mimus_status mimus__bench_device(mimus__bench_limits *out, mimus__device *device,
                                 const mimus__bench_effort *effort, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__phase phase = mimus__phase_begin(watch, "measure", 0);
    *out = (mimus__bench_limits){0};
    MIMUS_TRY(find_flops(out, device, effort, &phase));
    MIMUS_TRY(find_bandwidth(out, device, effort, &phase));
out:
    return status;
}
