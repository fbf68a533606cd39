/* scan_avx2.c - positions of an id, 64 ids at a time. */
#include <immintrin.h>

#include "scan_private.h"

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* One bit for each id from two vectors of 16-bit results. packs leaves the quarters as
 * 0 2 1 3. */
static inline uint64_t bits(__m256i a, __m256i b)
{
    __m256i x = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
    return (uint32_t)_mm256_movemask_epi8(x);
}

static inline uint64_t mask_16(const uint16_t *t, __m256i v)
{
    return bits(_mm256_cmpeq_epi16(load(t), v), _mm256_cmpeq_epi16(load(t + 16), v));
}

static inline uint64_t mask_32(const uint32_t *t, __m256i v)
{
    __m256i a = _mm256_cmpeq_epi32(load(t), v), b = _mm256_cmpeq_epi32(load(t + 8), v);
    __m256i c = _mm256_cmpeq_epi32(load(t + 16), v),
            d = _mm256_cmpeq_epi32(load(t + 24), v);

    /* Two packs scatter the pairs of ids; one permutation of 32-bit lanes restores
     * their order. */
    __m256i x = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    x = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return (uint32_t)_mm256_movemask_epi8(x);
}

static size_t find_16(const uint16_t *t, size_t n, uint16_t v, uint16_t *at)
{
    const __m256i all = _mm256_set1_epi16((short)v);
    size_t n_at = 0, i = 0;

    for (; i + 64 <= n; i += 64) {
        EOS_AHEAD(t + i);
        EOS_AHEAD(t + i + 32);
        n_at =
            eos_put(mask_16(t + i, all) | mask_16(t + i + 32, all) << 32, i, at, n_at);
    }
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

static size_t find_32(const uint32_t *t, size_t n, uint32_t v, uint16_t *at)
{
    const __m256i all = _mm256_set1_epi32((int)v);
    size_t n_at = 0, i = 0;

    for (; i + 64 <= n; i += 64) {
        for (size_t j = 0; j < 64; j += 16)
            EOS_AHEAD(t + i + j);
        n_at =
            eos_put(mask_32(t + i, all) | mask_32(t + i + 32, all) << 32, i, at, n_at);
    }
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

const struct slu_eos_kernel eos_avx2 = {"avx2", find_16, find_32};
