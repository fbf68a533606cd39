/* substring_scan_avx2.c - the scan by AVX2. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t begins(const uint32_t *v, size_t n, uint32_t *begin)
{
    size_t n_begin = 1, i = 1;

    begin[0] = 0;
    for (; i + 32 <= n; i += 32) {
        uint32_t same = 0;
        for (unsigned j = 0; j < 4; j++) {
            __m256i a = _mm256_loadu_si256((const __m256i *)(v + i + 8 * j));
            __m256i b = _mm256_loadu_si256((const __m256i *)(v + i + 8 * j - 1));
            same |= (uint32_t)_mm256_movemask_ps(
                        _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)))
                    << 8 * j;
        }
        for (uint32_t m = ~same; m; m &= m - 1)
            begin[n_begin++] = (uint32_t)(i + (unsigned)__builtin_ctz(m));
    }
    for (; i < n; i++) {
        begin[n_begin] = (uint32_t)i;
        n_begin += v[i] != v[i - 1];
    }
    return n_begin;
}

#include "lib/dedup/substring/substring_scan_body.h"

size_t slu_scan_avx2(const struct slu_scan *s, const void *tok, unsigned tok_bytes,
                     size_t n_start, uint32_t *hash, uint32_t *begin)
{
    return scan(s, tok, tok_bytes, n_start, hash, begin);
}
