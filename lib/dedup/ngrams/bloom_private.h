/* bloom_private.h - the position of a hash in a blocked Bloom filter; one kernel for
 * each SIMD level. */
#ifndef SLU_DEDUP_BLOOM_PRIVATE_H
#define SLU_DEDUP_BLOOM_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

enum {
    BLOOM_WORDS = 8, /* words of a block, and bits of a key */
    BLOOM_SHIFT = 6, /* bits of the hash that choose a bit of a word */
    /* Keys whose block is prefetched: 24 lines in flight hide a cache miss behind
     * probes of 4 ns. */
    BLOOM_AHEAD = 24,
};

struct bloom_kernel {
    const char *level;
    uint64_t (*test)(const uint64_t *block, uint64_t n_block, const uint64_t *hash,
                     size_t n, size_t n_ahead, uint8_t *hit);
    void (*add)(uint64_t *block, uint64_t n_block, const uint64_t *hash, size_t n);
};
extern const struct bloom_kernel bloom_portable, bloom_avx2, bloom_avx512;

/* The block from the hash's high bits … */
static inline uint64_t bloom_block(uint64_t hash, uint64_t n_block)
{
    return (uint64_t)(((unsigned __int128)hash * n_block) >> 64);
}

/* … and 48 bits for the words, mixed from the whole hash (the finalizer of
 * MurmurHash3): in filters of more than 2^16 blocks, plain low bits would depend on the
 * high bits. */
static inline uint64_t bloom_bits(uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

static inline const uint64_t *bloom_at(const uint64_t *block, uint64_t n_block,
                                       uint64_t hash)
{
    return block + BLOOM_WORDS * bloom_block(hash, n_block);
}

#endif
