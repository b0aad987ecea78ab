/* resident - how much of a mapped file counts as this process's memory. */
#ifndef MIMUS_TEST_RESIDENT_H
#define MIMUS_TEST_RESIDENT_H

#include <stddef.h>

/* Bytes, by /proc/self/smaps; `*mapped` is the size of the file's mappings, 0 when there is none.
 */
size_t resident_bytes(const char *path, size_t *mapped);

#endif
