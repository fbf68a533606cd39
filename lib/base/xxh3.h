/* xxh3.h - XXH3 (xxHash specification 0.2.0) by libxxhash and the best instructions
 * that the processor has: SSE2, AVX2, AVX-512 or NEON, with equal values. All calls of
 * libxxhash go through here; most of sluice uses hash.h.
 *
 * libxxhash's functions for inputs over 240 bytes return without vzeroupper (seen in
 * 0.8.1), and the next SSE instructions then wait for the upper halves of the
 * registers: 130 to 200 ns per call, five times the hash of a short sequence. So the
 * halves are cleared here.
 */
#ifndef SLU_XXH3_H
#define SLU_XXH3_H

#include <stddef.h>
#include <stdint.h>
#define XXH_STATIC_LINKING_ONLY /* the state struct, for the stack */
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h> /* Debian's libxxhash chooses at run time */
#endif

#include "lib/base/hash.h"

/* The results a and b pass through general registers, so that no SSE instruction
 * touches them before. Code compiled for AVX has no such instructions, and may use the
 * upper halves. */
static inline void slu_clear_upper(uint64_t *a, uint64_t *b)
{
#if defined(__x86_64__) && !defined(__AVX__)
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper"
                         : "+r"(*a), "+r"(*b)
                         :
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                           "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                           "xmm14", "xmm15");
#else
    (void)a, (void)b;
#endif
}

static inline uint64_t slu_xxh3_clean_64(XXH64_hash_t h)
{
    uint64_t a = h, none = 0;
    slu_clear_upper(&a, &none);
    return a;
}

static inline struct slu_u128 slu_xxh3_clean_128(XXH128_hash_t h)
{
    struct slu_u128 v = {h.low64, h.high64};
    slu_clear_upper(&v.lo, &v.hi);
    return v;
}

static inline uint64_t slu_xxh3_64(const void *p, size_t n_byte)
{
    return slu_xxh3_clean_64(XXH3_64bits(p, n_byte));
}

static inline struct slu_u128 slu_xxh3_128(const void *p, size_t n_byte)
{
    return slu_xxh3_clean_128(XXH3_128bits(p, n_byte));
}

static inline void slu_xxh3_64_update(XXH3_state_t *st, const void *p, size_t n_byte)
{
    (void)slu_xxh3_clean_64(XXH3_64bits_update(st, p, n_byte));
}

static inline void slu_xxh3_128_update(XXH3_state_t *st, const void *p, size_t n_byte)
{
    (void)slu_xxh3_clean_64(XXH3_128bits_update(st, p, n_byte));
}

static inline uint64_t slu_xxh3_64_digest(const XXH3_state_t *st)
{
    return slu_xxh3_clean_64(XXH3_64bits_digest(st));
}

static inline struct slu_u128 slu_xxh3_128_digest(const XXH3_state_t *st)
{
    return slu_xxh3_clean_128(XXH3_128bits_digest(st));
}

#endif
