/* pieces_avx2.c - blocks by AVX2. */
#include <immintrin.h>

#include "lib/tok/pieces_find.h"

struct wide {
    __m256i a, b;
};

static inline uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Unsigned: x - from <= to - from. */
static inline __m256i in(__m256i x, char from, char to)
{
    const __m256i d = _mm256_sub_epi8(x, _mm256_set1_epi8(from));
    const __m256i most = _mm256_set1_epi8((char)(to - from));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(d, most), d);
}

static inline uint64_t between(struct wide x, char from, char to)
{
    return bits(in(x.a, from, to), in(x.b, from, to));
}

static inline uint64_t equal(struct wide x, char c)
{
    const __m256i k = _mm256_set1_epi8(c);
    return bits(_mm256_cmpeq_epi8(x.a, k), _mm256_cmpeq_epi8(x.b, k));
}

static inline void classify(const uint8_t *p, unsigned n, struct masks *m)
{
    uint8_t copy[64];
    struct wide x;

    if (n < 64) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, p, n);
        p = copy;
    }
    x.a = _mm256_loadu_si256((const __m256i *)p);
    x.b = _mm256_loadu_si256((const __m256i *)(p + 32));
    m->upper = between(x, 'A', 'Z');
    m->lower = between(x, 'a', 'z');
    m->number = between(x, '0', '9');
    m->space = equal(x, ' ');
    m->line = equal(x, '\n') | equal(x, '\r');
    m->blank = (between(x, '\t', '\r') & ~m->line) | m->space;
    m->quote = equal(x, '\'');
    m->high = bits(x.a, x.b);
    m->control = (between(x, 0, 31) & ~(m->blank | m->line)) | equal(x, 127);
    m->lead = m->cont = m->caseless = m->mark = m->han = 0;
    if (m->high) {
        m->lead = between(x, (char)0xC0, (char)0xFF);
        m->cont = m->high & ~m->lead;
    }
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    for (; starts; end += 4) { /* what is behind the last one is not looked at */
        for (unsigned i = 0; i < 4; i++) {
            end[i] = base + (uint32_t)_tzcnt_u64(starts);
            starts = _blsr_u64(starts);
        }
    }
}

PIECES_TABLE(avx2);
