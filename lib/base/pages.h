/* pages.h - large zeroed memory straight from the kernel: returned at once when it is
 * freed, and resident only where it was touched. For data whose bytes count against -M.
 *
 * Safe from any thread.
 */
#ifndef SLU_PAGES_H
#define SLU_PAGES_H

#include <stddef.h>

#define SLU_HUGE_PAGE ((size_t)2 << 20)

enum slu_pages {
    SLU_PAGES_SMALL,   /* pages of 4 KiB */
    SLU_PAGES_HUGE,    /* advises huge pages: a tenth of the page faults' time */
    SLU_PAGES_ALIGNED, /* as HUGE, and begins with a huge page: all of it can be huge */
};

/* Returns n_byte zeroed bytes, or NULL with errno. Caller frees with slu_pages_free and
 * the same n_byte. */
void *slu_pages_new(size_t n_byte, enum slu_pages kind);
/* Advises huge pages for [p, p + n_byte), which is filled from its ends, except for the
 * first and the last MiB: the system maps a huge page as a whole, and many runs need
 * only a few KiB. */
void slu_pages_huge(void *p, size_t n_byte);
/* NULL is legal. */
void slu_pages_free(void *p, size_t n_byte);

#endif
