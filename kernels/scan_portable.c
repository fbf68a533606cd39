/* scan_portable.c - positions of an id by 64-bit words; the oracle of the SIMD
 * levels. */
#include <string.h>

#include "scan_private.h"

/* The highest bit of each 16-bit lane that is zero. */
static inline uint64_t zeros_16(uint64_t x)
{
    const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
    return ~(((x & low) + low) | x) & ~low;
}

static inline uint64_t zeros_32(uint64_t x)
{
    const uint64_t low = UINT64_C(0x7fffffff7fffffff);
    return ~(((x & low) + low) | x) & ~low;
}

static inline uint64_t word(const void *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static size_t find_16(const uint16_t *t, size_t n, uint16_t v, uint16_t *at)
{
    const uint64_t all = v * UINT64_C(0x0001000100010001);
    size_t n_at = 0, i = 0;

    for (; i + 16 <= n; i += 16) {
        uint64_t z[4], any = 0;
        for (unsigned j = 0; j < 4; j++) {
            z[j] = zeros_16(word(t + i + 4 * j) ^ all);
            any |= z[j];
        }
        if (!any)
            continue;
        for (size_t j = i; j < i + 16; j++) {
            at[n_at] = (uint16_t)j;
            n_at += t[j] == v;
        }
    }
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

static size_t find_32(const uint32_t *t, size_t n, uint32_t v, uint16_t *at)
{
    const uint64_t all = v * UINT64_C(0x0000000100000001);
    size_t n_at = 0, i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t any = 0;
        for (unsigned j = 0; j < 4; j++)
            any |= zeros_32(word(t + i + 2 * j) ^ all);
        if (!any)
            continue;
        for (size_t j = i; j < i + 8; j++) {
            at[n_at] = (uint16_t)j;
            n_at += t[j] == v;
        }
    }
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

const struct slu_eos_kernel eos_portable = {"portable", find_16, find_32};
