#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>

static const size_t PAGE = 4096;

void *slu_pages_new(size_t n_byte, enum slu_pages kind)
{
    size_t more = kind == SLU_PAGES_ALIGNED ? SLU_HUGE_PAGE : 0;
    size_t all = (n_byte + PAGE - 1) & ~(PAGE - 1);
    uint8_t *p = mmap(NULL, all + more, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (more) {
        size_t before = -(uintptr_t)p & (SLU_HUGE_PAGE - 1);
        if (before)
            (void)munmap(p, before);
        if (more > before)
            (void)munmap(p + before + all, more - before);
        p += before;
    }
    if (kind != SLU_PAGES_SMALL)
        (void)madvise(p, n_byte, MADV_HUGEPAGE); /* advice alone: may fail */
    return p;
}

void slu_pages_huge(void *p, size_t n_byte)
{
    const size_t small = 1 << 20;

    if (n_byte > 2 * small)
        (void)madvise((uint8_t *)p + small, n_byte - 2 * small, MADV_HUGEPAGE);
}

void slu_pages_free(void *p, size_t n_byte)
{
    if (p)
        (void)munmap(p, n_byte);
}
