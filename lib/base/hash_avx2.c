/* hash_avx2.c - slu_hash_widen of ids of two bytes, 16 at a time. */
#include "lib/base/hash_private.h"

#include <immintrin.h>

#include "lib/base/le.h"

void slu_hash_widen_avx2(uint8_t *dst, const uint16_t *t, size_t n)
{
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        const __m128i a = _mm_loadu_si128((const void *)(t + i)),
                      b = _mm_loadu_si128((const void *)(t + i + 8));
        _mm256_storeu_si256((void *)(dst + 4 * i), _mm256_cvtepu16_epi32(a));
        _mm256_storeu_si256((void *)(dst + 4 * i + 32), _mm256_cvtepu16_epi32(b));
    }
    for (; i < n; i++)
        slu_put_le32(dst + 4 * i, t[i]);
}
