/* scan_private.h - what the SIMD levels of scan.h bring. Private to kernels/scan_*.c.
 */
#ifndef SLU_KERNELS_SCAN_PRIVATE_H
#define SLU_KERNELS_SCAN_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "scan.h"

/* Ids that are looked at before their documents are counted: places are u16, and what
 * was found is still near. */
#define EOS_CHUNK 32768
/* Levels may write so many places past the last one. */
#define EOS_SLACK 64

/* Asks for what lies 4 KiB behind p, once every 64 bytes: a tenth faster from memory,
 * where one core's own prefetching does not keep enough reads under way. */
#define EOS_AHEAD(p) __builtin_prefetch((const char *)(p) + 4096, 0, 2)

/* Places of v in t, ascending; n <= EOS_CHUNK, room for n + EOS_SLACK. Returns how
 * many.
 */
struct slu_eos_kernel {
    const char *name;
    size_t (*find_16)(const uint16_t *t, size_t n, uint16_t v, uint16_t *at);
    size_t (*find_32)(const uint32_t *t, size_t n, uint32_t v, uint16_t *at);
};

extern const struct slu_eos_kernel eos_portable, eos_avx2, eos_avx512, eos_neon;

/* The set bits of m as places from `base` on, behind n others. */
static inline size_t eos_put(uint64_t m, size_t base, uint16_t *at, size_t n)
{
    for (; m; m &= m - 1)
        at[n++] = (uint16_t)(base + (size_t)__builtin_ctzll(m));
    return n;
}

#endif
