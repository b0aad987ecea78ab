#include "alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

mimus_status mimus__alloc_bytes(void **out, size_t count, size_t size) {
    *out = calloc(count > 0 ? count : 1, size);
    if (*out == NULL)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot allocate %zu elements of %zu bytes", count,
                           size);
    return MIMUS_OK;
}

mimus_status mimus__grow_bytes(void **array, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity)
        return MIMUS_OK;
    size_t wanted = *capacity < SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
    if (wanted < needed)
        wanted = needed;
    if (wanted < 16)
        wanted = 16;
    if (wanted > SIZE_MAX / size)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot allocate %zu elements of %zu bytes", wanted,
                           size);
    void *bigger = realloc(*array, wanted * size);
    if (bigger == NULL)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot allocate %zu elements of %zu bytes", wanted,
                           size);
    memset((char *)bigger + *capacity * size, 0, (wanted - *capacity) * size);
    *array = bigger;
    *capacity = wanted;
    return MIMUS_OK;
}
