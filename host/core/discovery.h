/* discovery - every platform and device that the loader knows, and the choice of one. */
#ifndef MIMUS_HOST_DISCOVERY_H
#define MIMUS_HOST_DISCOVERY_H

#include "device.h"

typedef struct mimus__found_platform {
    cl_platform_id id;
    char name[256];
    char vendor[256];
    char version[256];
    size_t devices;
    char error[256]; /* why its devices, or one of them, cannot be listed; else "" */
} mimus__found_platform;

typedef struct mimus__found_device {
    cl_platform_id platform;
    cl_device_id id;
    mimus__device_info info;
} mimus__found_device;

typedef struct mimus__discovery {
    mimus__found_platform *platforms;
    size_t platform_count;
    mimus__found_device *devices;
    size_t device_count, device_capacity;
} mimus__discovery;

/* Look around. A platform without devices is kept and empty; one that fails keeps its error.
 * MIMUS_ERR_NO_DEVICE without a loader or a platform. Clear also after a failure. */
mimus_status mimus__discovery_run(mimus__discovery *out);
void mimus__discovery_clear(mimus__discovery *found);

/* The device that `selector` names, as mimus__device_open describes it. A name is looked for in
 * the devices' names first, then in their platforms'; the first match is taken.
 * MIMUS_ERR_NO_DEVICE lists what there is. */
mimus_status mimus__discovery_choose(const mimus__discovery *found, const char *selector,
                                     size_t *chosen);

#endif
