/* pages - zeroed host memory behind the buffers of CPU devices.
 *
 * A CPU device computes in place on memory that it is handed (CL_MEM_USE_HOST_PTR). Fresh pages
 * come zeroed by the system, in huge pages where it has them: zeroing and first writing 512 MiB
 * took PoCL 2.6 s in memory of its own and 0.12 s in these, and rows that are gathered at random
 * come a third faster. (On a virtual machine whose host takes free memory back, first writes wait
 * for the host to return it: seconds a GiB, either way.) */
#ifndef MIMUS_HOST_PAGES_H
#define MIMUS_HOST_PAGES_H

#include "status.h"

typedef struct mimus__pages {
    void *base; /* of the mapping; NULL: none */
    size_t mapped;
    void *start; /* aligned to a page, of large ones to a huge page */
} mimus__pages;

/* `what` names them when the system has no room. */
mimus_status mimus__pages_new(mimus__pages *out, size_t bytes, const char *what);
void mimus__pages_free(mimus__pages *pages);

#endif
