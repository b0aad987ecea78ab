#include "pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* From LEAST_HUGE on, memory comes in whole huge pages: what a step works on is a few buffers of
 * some hundred KiB, more small pages together than a core's first translation buffer holds. */
enum { HUGE_PAGE = 2 << 20, LEAST_HUGE = 64 << 10 };

mimus_status mimus__pages_new(mimus__pages *out, size_t bytes, const char *what) {
    *out = (mimus__pages){0};
    bool huge = bytes >= LEAST_HUGE;
    size_t slack = huge ? HUGE_PAGE : 0; /* is never touched */
    if (bytes > SIZE_MAX - 2 * (size_t)HUGE_PAGE)
        return mimus__fail(MIMUS_ERR_MEMORY, "%s: %zu bytes are more than memory can hold", what,
                           bytes);
    if (huge)
        bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *base =
        mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return mimus__fail(MIMUS_ERR_MEMORY, "%s: cannot map %zu bytes: %s", what, bytes,
                           strerror(errno));
    size_t past = slack > 0 ? (uintptr_t)base % slack : 0;
    *out = (mimus__pages){base, bytes + slack, (char *)base + (past > 0 ? slack - past : 0)};
#ifdef MADV_HUGEPAGE
    if (huge)
        madvise(out->start, bytes, MADV_HUGEPAGE); /* a wish: fine without */
#endif
    return MIMUS_OK;
}

void mimus__pages_free(mimus__pages *pages) {
    if (pages->base != NULL)
        munmap(pages->base, pages->mapped);
    *pages = (mimus__pages){0};
}
