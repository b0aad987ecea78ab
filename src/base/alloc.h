/* alloc - memory that is asked for with its count, checked for overflow, and reported by size. */
#ifndef MIMUS_BASE_ALLOC_H
#define MIMUS_BASE_ALLOC_H

#include "status.h"

/* Zeroed memory for `count` elements of `size` bytes into `*out` (a pointer to any object
 * pointer); free with free(). A count of 0 gives a unique pointer. */
#define mimus__alloc(out, count, size) mimus__alloc_bytes((void **)(out), (count), (size))
mimus_status mimus__alloc_bytes(void **out, size_t count, size_t size);

/* Grow `*array`, of `*capacity` elements of `size` bytes, to at least `needed`; doubles. What is
 * new is zeroed. On failure the array stays as it is. */
#define mimus__grow(array, capacity, needed, size)                                                 \
    mimus__grow_bytes((void **)(array), (capacity), (needed), (size))
mimus_status mimus__grow_bytes(void **array, size_t *capacity, size_t needed, size_t size);

#endif
