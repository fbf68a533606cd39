/* minhash_portable.c - the minima without SIMD: the oracle of every level. */
#include "lib/dedup/near/minhash_level.h"

void slu_minhash_portable(const uint32_t *flip, const uint32_t *factor, size_t n_fn,
                          const uint64_t *hash, size_t n, uint32_t *min)
{
    for (size_t k = 0; k < n_fn; k++) {
        uint32_t least = min[k];
        for (size_t i = 0; i < n; i++) {
            uint32_t h = ((uint32_t)(hash[i] >> 32) ^ flip[k]) * factor[k];
            least = h < least ? h : least;
        }
        min[k] = least;
    }
}
