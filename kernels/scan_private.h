/* scan_private.h - the functions of each SIMD level of scan.h. Private to
 * kernels/scan_*.c.
 */
#ifndef SLU_KERNELS_SCAN_PRIVATE_H
#define SLU_KERNELS_SCAN_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "scan.h"

/* Ids that are searched before their documents are counted: positions are u16, and
 * those found are still in the cache. */
#define EOS_CHUNK 32768
/* Levels may write this many positions past the last one. */
#define EOS_SLACK 64

/* Prefetches the data 4 KiB after p, once for every 64 bytes. A tenth faster from
 * memory, where the prefetching of one core has too few reads in flight. */
#define EOS_AHEAD(p) __builtin_prefetch((const char *)(p) + 4096, 0, 2)

/* Finds the positions of v in t, ascending; n <= EOS_CHUNK, room for n + EOS_SLACK.
 * Returns their number. */
struct slu_eos_kernel {
    const char *name;
    size_t (*find_16)(const uint16_t *t, size_t n, uint16_t v, uint16_t *at);
    size_t (*find_32)(const uint32_t *t, size_t n, uint32_t v, uint16_t *at);
};

extern const struct slu_eos_kernel eos_portable, eos_avx2, eos_avx512, eos_neon;

/* Appends the set bits of m to n others, as positions from `base` on. */
static inline size_t eos_put(uint64_t m, size_t base, uint16_t *at, size_t n)
{
    for (; m; m &= m - 1)
        at[n++] = (uint16_t)(base + (size_t)__builtin_ctzll(m));
    return n;
}

#endif
