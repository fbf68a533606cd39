/* pretokens_avx2.c - blocks by AVX2. */
#include <immintrin.h>

#include <stdint.h>
#include <string.h>

struct block {
    __m256i a, b;
};

static inline struct block load(const uint8_t *p, unsigned n)
{
    uint8_t copy[64];

    if (n < 64) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, p, n);
        p = copy;
    }
    struct block x = {_mm256_loadu_si256((const __m256i *)p),
                      _mm256_loadu_si256((const __m256i *)(p + 32))};
    return x;
}

static inline uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Compares unsigned: x - from <= to - from. */
static inline __m256i in(__m256i x, uint8_t from, uint8_t to)
{
    const __m256i d = _mm256_sub_epi8(x, _mm256_set1_epi8((char)from));
    const __m256i most = _mm256_set1_epi8((char)(to - from));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(d, most), d);
}

static inline uint64_t between(struct block x, uint8_t from, uint8_t to)
{
    const __m256i k = _mm256_set1_epi8((char)from);

    if (from == to)
        return bits(_mm256_cmpeq_epi8(x.a, k), _mm256_cmpeq_epi8(x.b, k));
    if (from == 0x80 && to == 0xFF)
        return bits(x.a, x.b);
    return bits(in(x.a, from, to), in(x.b, from, to));
}

/* Writes n starts; if there are fewer, the rest is never read. Returns the others. */
static inline uint64_t put_some(uint64_t starts, uint32_t base, uint32_t *end,
                                unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        end[i] = base + (uint32_t)_tzcnt_u64(starts);
        starts = _blsr_u64(starts);
    }
    return starts;
}

/* Writes all starts. Their number cannot be predicted, but is hardly ever above 20. */
static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    starts = put_some(starts, base, end, 20);
    for (end += 20; starts; end += 4)
        starts = put_some(starts, base, end, 4);
}

#include "lib/token/pretokens_find.h"

PRETOKENS_TABLE(avx2);
