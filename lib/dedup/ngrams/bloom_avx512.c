#include <immintrin.h>

#include "bloom_private.h"

static inline __m512i bits(uint64_t g)
{
    const __m512i shift = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);
    __m512i at =
        _mm512_and_si512(_mm512_srlv_epi64(_mm512_set1_epi64((long long)g), shift),
                         _mm512_set1_epi64(63));

    return _mm512_sllv_epi64(_mm512_set1_epi64(1), at);
}

static uint64_t test(const uint64_t *block, uint64_t n_block, const uint64_t *hash,
                     size_t n, size_t n_ahead, uint8_t *hit)
{
    uint64_t n_hit = 0;

    for (size_t i = 0; i < n; i++) {
        __m512i w = _mm512_load_si512((const void *)bloom_at(block, n_block, hash[i]));
        if (i + BLOOM_AHEAD < n_ahead)
            __builtin_prefetch(bloom_at(block, n_block, hash[i + BLOOM_AHEAD]));
        hit[i] = _mm512_testn_epi64_mask(w, bits(bloom_bits(hash[i]))) == 0;
        n_hit += hit[i];
    }
    return n_hit;
}

static void add(uint64_t *block, uint64_t n_block, const uint64_t *hash, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t *w = block + BLOOM_WORDS * bloom_block(hash[i], n_block);
        _mm512_store_si512(
            w, _mm512_or_si512(_mm512_load_si512(w), bits(bloom_bits(hash[i]))));
    }
}

const struct bloom_kernel bloom_avx512 = {"avx512", test, add};
