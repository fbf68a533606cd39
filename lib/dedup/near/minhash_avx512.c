/* minhash_avx512.c - the minima by AVX-512: registers hold up to eight vectors of
 * sixteen functions for a whole block of hashes. */
#include <immintrin.h>

#include "lib/dedup/near/minhash_level.h"

/* n_vec is a constant in every call. */
static inline __attribute__((always_inline)) void
minima(const uint32_t *flip, const uint32_t *factor, const uint64_t *hash, size_t n,
       uint32_t *min, const unsigned n_vec)
{
    /* Because the hashes are little-endian. */
    const uint32_t *upper = (const uint32_t *)hash + 1;
    __m512i x[8], m[8], least[8];

    for (unsigned v = 0; v < n_vec; v++) {
        x[v] = _mm512_load_si512(flip + 16 * v);
        m[v] = _mm512_load_si512(factor + 16 * v);
        least[v] = _mm512_load_si512(min + 16 * v);
    }
    for (size_t i = 0; i < n; i++) {
        const __m512i h = _mm512_set1_epi32((int)upper[2 * i]);
        for (unsigned v = 0; v < n_vec; v++)
            least[v] = _mm512_min_epu32(
                least[v], _mm512_mullo_epi32(_mm512_xor_si512(h, x[v]), m[v]));
    }
    for (unsigned v = 0; v < n_vec; v++)
        _mm512_store_si512(min + 16 * v, least[v]);
}

void slu_minhash_avx512(const uint32_t *flip, const uint32_t *factor, size_t n_fn,
                        const uint64_t *hash, size_t n, uint32_t *min)
{
    for (size_t k = 0; k < n_fn;) {
        const uint32_t *x = flip + k, *m = factor + k;
        size_t n_vec = (n_fn - k) / 16;
        if (n_vec >= 8 || n_vec == 7) {
            n_vec = n_vec >= 8 ? 8 : 7;
            if (n_vec == 8)
                minima(x, m, hash, n, min + k, 8);
            else
                minima(x, m, hash, n, min + k, 7);
        } else if (n_vec >= 4) {
            n_vec = 4;
            minima(x, m, hash, n, min + k, 4);
        } else {
            n_vec = 1;
            minima(x, m, hash, n, min + k, 1);
        }
        k += 16 * n_vec;
    }
}
