/* minhash_avx2.c - the minima by AVX2: registers hold the minima of up to eight vectors
 * of eight functions for a whole block of hashes; the functions' constants are read
 * from memory.
 */
#include <immintrin.h>

#include "lib/dedup/near/minhash_level.h"

/* n_vec is a constant in every call. */
static inline __attribute__((always_inline)) void
minima(const uint32_t *flip, const uint32_t *factor, const uint64_t *hash, size_t n,
       uint32_t *min, const unsigned n_vec)
{
    /* Because the hashes are little-endian. */
    const uint32_t *upper = (const uint32_t *)hash + 1;
    __m256i least[8];

    for (unsigned v = 0; v < n_vec; v++)
        least[v] = _mm256_load_si256((const __m256i *)(min + 8 * v));
    for (size_t i = 0; i < n; i++) {
        const __m256i h = _mm256_set1_epi32((int)upper[2 * i]);
        for (unsigned v = 0; v < n_vec; v++) {
            const __m256i x = _mm256_load_si256((const __m256i *)(flip + 8 * v));
            const __m256i m = _mm256_load_si256((const __m256i *)(factor + 8 * v));
            least[v] = _mm256_min_epu32(least[v],
                                        _mm256_mullo_epi32(_mm256_xor_si256(h, x), m));
        }
    }
    for (unsigned v = 0; v < n_vec; v++)
        _mm256_store_si256((__m256i *)(min + 8 * v), least[v]);
}

void slu_minhash_avx2(const uint32_t *flip, const uint32_t *factor, size_t n_fn,
                      const uint64_t *hash, size_t n, uint32_t *min)
{
    for (size_t k = 0; k < n_fn;) {
        const uint32_t *x = flip + k, *m = factor + k;
        size_t n_vec = (n_fn - k) / 8;
        if (n_vec >= 8) {
            n_vec = 8;
            minima(x, m, hash, n, min + k, 8);
        } else if (n_vec == 6) {
            minima(x, m, hash, n, min + k, 6);
        } else if (n_vec == 4) {
            minima(x, m, hash, n, min + k, 4);
        } else {
            n_vec = 2;
            minima(x, m, hash, n, min + k, 2);
        }
        k += 8 * n_vec;
    }
}
