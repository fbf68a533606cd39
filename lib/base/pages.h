/* pages.h - large zeroed memory straight from the kernel: given back at once when it is
 * freed, and resident only where it was touched. For what counts its bytes against -M.
 *
 * Safe from any thread.
 */
#ifndef SLU_PAGES_H
#define SLU_PAGES_H

#include <stddef.h>

#define SLU_HUGE_PAGE ((size_t)2 << 20)

enum slu_pages {
    SLU_PAGES_SMALL, /* what is touched is resident, by 4 KiB */
    SLU_PAGES_HUGE, /* advises huge pages: a tenth of the faults' time, fewer TLB misses */
    SLU_PAGES_ALIGNED, /* the same, from the begin of one on: all of it can be huge */
};

/* n_byte zeroed bytes, or NULL with errno where there are none. Caller frees with
 * slu_pages_free and the same n_byte. */
void *slu_pages_new(size_t n_byte, enum slu_pages kind);
/* NULL is fine. */
void slu_pages_free(void *p, size_t n_byte);

#endif
