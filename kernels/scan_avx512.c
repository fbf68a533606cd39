/* scan_avx512.c - positions of an id, 32 at a time, without a branch that depends on
 * them.
 */
#include <immintrin.h>

#include "scan_private.h"

/* The numbers 0 … 31. */
static inline __m512i lanes(void)
{
    __m512i x = _mm512_cvtepu8_epi16(
        _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                         18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
    return x;
}

/* Compresses in a register and then stores: on some processors a compressing store is
 * many times slower. */
static inline size_t put(__mmask32 m, __m512i place, uint16_t *at, size_t n_at)
{
    _mm512_storeu_si512(at + n_at, _mm512_maskz_compress_epi16(m, place));
    return n_at + (size_t)_mm_popcnt_u32(m);
}

static size_t find_16(const uint16_t *t, size_t n, uint16_t v, uint16_t *at)
{
    const __m512i all = _mm512_set1_epi16((short)v), step = _mm512_set1_epi16(32);
    __m512i place = lanes();
    size_t n_at = 0, i = 0;

    for (; i + 32 <= n; i += 32) {
        EOS_AHEAD(t + i);
        __mmask32 m = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(t + i), all);
        n_at = put(m, place, at, n_at);
        place = _mm512_add_epi16(place, step);
    }
    if (i < n) {
        __mmask32 in = (UINT32_C(1) << (n - i)) - 1;
        __m512i x = _mm512_maskz_loadu_epi16(in, t + i);
        n_at = put(_mm512_mask_cmpeq_epi16_mask(in, x, all), place, at, n_at);
    }
    return n_at;
}

static size_t find_32(const uint32_t *t, size_t n, uint32_t v, uint16_t *at)
{
    const __m512i all = _mm512_set1_epi32((int)v), step = _mm512_set1_epi16(32);
    __m512i place = lanes();
    size_t n_at = 0, i = 0;

    for (; i + 32 <= n; i += 32) {
        EOS_AHEAD(t + i);
        EOS_AHEAD(t + i + 16);
        __mmask16 a = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(t + i), all);
        __mmask16 b = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(t + i + 16), all);
        n_at = put(_mm512_kunpackw(b, a), place, at, n_at);
        place = _mm512_add_epi16(place, step);
    }
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

const struct slu_eos_kernel eos_avx512 = {"avx512", find_16, find_32};
