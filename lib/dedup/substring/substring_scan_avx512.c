/* substring_scan_avx512.c - the scan by AVX-512. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t begins(const uint32_t *v, size_t n, uint32_t *begin)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    size_t n_begin = 1, i = 1;

    begin[0] = 0;
    /* begin has room for n words, and n_begin <= i, so a whole vector always fits. */
    for (; i + 16 <= n; i += 16) {
        __m512i a = _mm512_loadu_si512(v + i), b = _mm512_loadu_si512(v + i - 1);
        __mmask16 m = _mm512_cmpneq_epi32_mask(a, b);
        __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32((int)i));
        _mm512_storeu_si512(begin + n_begin, _mm512_maskz_compress_epi32(m, at));
        n_begin += (unsigned)__builtin_popcount(m);
    }
    for (; i < n; i++) {
        begin[n_begin] = (uint32_t)i;
        n_begin += v[i] != v[i - 1];
    }
    return n_begin;
}

#include "lib/dedup/substring/substring_scan_body.h"

size_t slu_scan_avx512(const struct slu_scan *s, const void *tok, unsigned tok_bytes,
                       size_t n_start, uint32_t *hash, uint32_t *begin)
{
    return scan(s, tok, tok_bytes, n_start, hash, begin);
}
