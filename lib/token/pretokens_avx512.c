/* pretokens_avx512.c - blocks by AVX-512 (BW, VBMI2). */
#include <immintrin.h>

#include <stdint.h>

struct block {
    __m512i v;
};

static inline struct block load(const uint8_t *p, unsigned n)
{
    struct block x = {n == 64 ? _mm512_loadu_si512(p)
                              : _mm512_maskz_loadu_epi8((UINT64_C(1) << n) - 1, p)};
    return x;
}

static inline uint64_t between(struct block x, uint8_t from, uint8_t to)
{
    if (from == to)
        return _mm512_cmpeq_epi8_mask(x.v, _mm512_set1_epi8((char)from));
    if (from == 0x80 && to == 0xFF)
        return _mm512_movepi8_mask(x.v);
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(x.v, _mm512_set1_epi8((char)from)),
                                  _mm512_set1_epi8((char)(to - from)));
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    static const uint8_t place[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
        48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i at = _mm512_set1_epi32((int)base);
    unsigned n = (unsigned)__builtin_popcountll(starts);
    __m512i x = _mm512_maskz_compress_epi8(starts, _mm512_load_si512(place));

    _mm512_storeu_si512(
        end, _mm512_add_epi32(at, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(x))));
    if (n > 16)
        _mm512_storeu_si512(
            end + 16, _mm512_add_epi32(
                          at, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 1))));
    if (n > 32) {
        _mm512_storeu_si512(
            end + 32, _mm512_add_epi32(
                          at, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 2))));
        _mm512_storeu_si512(
            end + 48, _mm512_add_epi32(
                          at, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x, 3))));
    }
}

#include "lib/token/pretokens_find.h"

PRETOKENS_TABLE(avx512);
