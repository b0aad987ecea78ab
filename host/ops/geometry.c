#include "geometry.h"

#include <stdlib.h>
#include <string.h>

mimus__geometry mimus__geometry_of(const mimus__device *device) {
    const mimus__device_info *info = mimus__device_get_info(device);
    const char *forced = getenv("MIMUS_GEOMETRY");
    /* mimus__device_open has refused other words */
    bool cpu = forced != NULL && forced[0] != '\0' ? strcmp(forced, "gpu") != 0 : info->cpu;
    if (!cpu)
        return (mimus__geometry){.local = 64, .width = 4};
    uint32_t native = info->vector_width;
    return (mimus__geometry){.local = 1, .width = native >= 16 ? 16 : native >= 8 ? 8 : 4};
}

bool mimus__geometry_has_registers(const mimus__device *device) {
    const mimus__device_info *info = mimus__device_get_info(device);
    return mimus__geometry_of(device).local == 1 && info->vector_width >= 4 &&
           !mimus__geometry_vectorises_items(device);
}

bool mimus__geometry_vectorises_items(const mimus__device *device) {
    return strstr(mimus__device_get_info(device)->platform_name, "rusticl") != NULL;
}

void mimus__geometry_define(mimus__geometry geometry, mimus__defines *defines) {
    mimus__define_number(defines, "LOCAL", geometry.local);
    mimus__define_number(defines, "VW", geometry.width);
}

mimus__grid mimus__geometry_grid(mimus__geometry geometry, size_t groups, size_t runs) {
    return (mimus__grid){.global = {groups * geometry.local, runs, 1},
                         .local = {geometry.local, 1, 1}};
}
