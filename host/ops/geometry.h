/* geometry - how kernels are cut for a kind of device.
 *
 * CPUs run a work-item per core and vectorise inside it, and barriers are slow there (opencl.md
 * 21): groups of one item that loops. GPUs want many items side by side: groups of 64.
 * MIMUS_GEOMETRY=cpu or gpu in the environment overrides the device's kind, so that both are tested
 * on any device; mimus__device_open refuses other words. */
#ifndef MIMUS_HOST_GEOMETRY_H
#define MIMUS_HOST_GEOMETRY_H

#include "launch.h"

typedef struct mimus__geometry {
    uint32_t local; /* work-items a group */
    uint32_t width; /* floats a vector: 4, 8 or 16 */
} mimus__geometry;

mimus__geometry mimus__geometry_of(const mimus__device *device);

/* Whether a work-item has a core's vector registers to itself, so that it may hold a tile in them.
 * Not on GPUs, and not on llvmpipe, a CPU device that vectorises over work-items as a GPU does. */
bool mimus__geometry_has_registers(const mimus__device *device);

/* Whether it is such a device as llvmpipe. Kernels made for a work-item a core are slow there, and
 * the longest comes out wrong. */
bool mimus__geometry_vectorises_items(const mimus__device *device);

/* Rows that a work-item takes at once where rows are independent (cl/lanes.clh). */
static inline uint32_t mimus__geometry_lanes(mimus__geometry geometry) {
    return geometry.local == 1 ? geometry.width : 1;
}

/* Define LOCAL and VW. */
void mimus__geometry_define(mimus__geometry geometry, mimus__defines *defines);

/* `groups` x `runs` groups of geometry.local items. */
mimus__grid mimus__geometry_grid(mimus__geometry geometry, size_t groups, size_t runs);

static inline uint32_t mimus__divide_up(uint32_t value, uint32_t by) {
    return (uint32_t)(((uint64_t)value + by - 1) / by);
}

static inline uint32_t mimus__round_up(uint32_t value, uint32_t to) {
    return mimus__divide_up(value, to) * to;
}

#endif
