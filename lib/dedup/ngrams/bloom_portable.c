/* bloom_portable.c - the oracle of the SIMD levels. */
#include "bloom_private.h"

static uint64_t test(const uint64_t *block, uint64_t n_block, const uint64_t *hash,
                     size_t n, size_t n_ahead, uint8_t *hit)
{
    uint64_t n_hit = 0;

    for (size_t i = 0; i < n; i++) {
        const uint64_t *w = bloom_at(block, n_block, hash[i]);
        uint64_t g = bloom_bits(hash[i]), all = 1;
        if (i + BLOOM_AHEAD < n_ahead)
            __builtin_prefetch(bloom_at(block, n_block, hash[i + BLOOM_AHEAD]));
        for (unsigned k = 0; k < BLOOM_WORDS; k++)
            all &= w[k] >> (g >> BLOOM_SHIFT * k & 63);
        hit[i] = (uint8_t)all;
        n_hit += all;
    }
    return n_hit;
}

static void add(uint64_t *block, uint64_t n_block, const uint64_t *hash, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t *w = block + BLOOM_WORDS * bloom_block(hash[i], n_block);
        uint64_t g = bloom_bits(hash[i]);
        for (unsigned k = 0; k < BLOOM_WORDS; k++)
            w[k] |= UINT64_C(1) << (g >> BLOOM_SHIFT * k & 63);
    }
}

const struct bloom_kernel bloom_portable = {"portable", test, add};
