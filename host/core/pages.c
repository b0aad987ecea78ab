#include "pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

mimus_status mimus__pages_new(mimus__pages *out, size_t bytes, const char *what) {
    *out = (mimus__pages){0};
    size_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0; /* is never touched */
    if (bytes > SIZE_MAX - slack)
        return mimus__fail(MIMUS_ERR_MEMORY, "%s: %zu bytes are more than memory can hold", what,
                           bytes);
    void *base =
        mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return mimus__fail(MIMUS_ERR_MEMORY, "%s: cannot map %zu bytes: %s", what, bytes,
                           strerror(errno));
    size_t past = slack > 0 ? (uintptr_t)base % slack : 0;
    *out = (mimus__pages){base, bytes + slack, (char *)base + (past > 0 ? slack - past : 0)};
#ifdef MADV_HUGEPAGE
    if (slack > 0)
        madvise(out->start, bytes, MADV_HUGEPAGE); /* a wish: fine without */
#endif
    return MIMUS_OK;
}

void mimus__pages_free(mimus__pages *pages) {
    if (pages->base != NULL)
        munmap(pages->base, pages->mapped);
    *pages = (mimus__pages){0};
}
