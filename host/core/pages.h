/* pages - zeroed host memory behind the buffers of CPU devices.
 *
 * A CPU device computes in place on memory that it is handed (CL_MEM_USE_HOST_PTR). Fresh pages
 * come zeroed by the system, in huge pages where it has them: no fill is needed, and rows that are
 * gathered at random come a third faster. The system pays at the first write, whoever does it: 1
 * GiB took one core of a virtual machine 0.2 to 0.4 s in huge pages and 0.9 to 1.0 s in small ones
 * (the second write 0.1 to 0.2 s), but 3 to 6 s in huge pages that the machine's host had taken
 * back and had to find again. So the first upload after a pause says little of the next. */
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
