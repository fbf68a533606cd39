#include <immintrin.h>

#include "bloom_private.h"

/* The bits of a key, four words at a time. */
static inline __m256i bits(uint64_t g, __m256i shift)
{
    __m256i at =
        _mm256_and_si256(_mm256_srlv_epi64(_mm256_set1_epi64x((long long)g), shift),
                         _mm256_set1_epi64x(63));

    return _mm256_sllv_epi64(_mm256_set1_epi64x(1), at);
}

static uint64_t test(const uint64_t *block, uint64_t n_block, const uint64_t *hash,
                     size_t n, size_t n_ahead, uint8_t *hit)
{
    const __m256i low = _mm256_setr_epi64x(0, 6, 12, 18);
    const __m256i high = _mm256_setr_epi64x(24, 30, 36, 42);
    uint64_t n_hit = 0;

    for (size_t i = 0; i < n; i++) {
        const __m256i *w = (const void *)bloom_at(block, n_block, hash[i]);
        uint64_t g = bloom_bits(hash[i]);
        if (i + BLOOM_AHEAD < n_ahead)
            __builtin_prefetch(bloom_at(block, n_block, hash[i + BLOOM_AHEAD]));
        int all = _mm256_testc_si256(_mm256_load_si256(w), bits(g, low)) &
                  _mm256_testc_si256(_mm256_load_si256(w + 1), bits(g, high));
        hit[i] = (uint8_t)all;
        n_hit += (unsigned)all;
    }
    return n_hit;
}

static void add(uint64_t *block, uint64_t n_block, const uint64_t *hash, size_t n)
{
    const __m256i low = _mm256_setr_epi64x(0, 6, 12, 18);
    const __m256i high = _mm256_setr_epi64x(24, 30, 36, 42);

    for (size_t i = 0; i < n; i++) {
        __m256i *w = (void *)(block + BLOOM_WORDS * bloom_block(hash[i], n_block));
        uint64_t g = bloom_bits(hash[i]);
        _mm256_store_si256(w, _mm256_or_si256(_mm256_load_si256(w), bits(g, low)));
        _mm256_store_si256(w + 1,
                           _mm256_or_si256(_mm256_load_si256(w + 1), bits(g, high)));
    }
}

const struct bloom_kernel bloom_avx2 = {"avx2", test, add};
