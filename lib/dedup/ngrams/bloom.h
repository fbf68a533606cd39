/* bloom.h - a blocked Bloom filter over 64-bit hashes: one cache line for each key.
 *
 * The filter is an array of blocks of 512 bits, eight words of 64. A key sets one bit
 * in each word of one block, so a probe costs one cache line whatever the rate (the
 * blocked filters of Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient
 * Bloom Filters", 2007, with the words of Apache Parquet's split blocks). The block and
 * the eight bits come from one 64-bit hash, which must be uniform.
 *
 * Blocks do not fill evenly: the number of keys in a block is Poisson with mean 512 /
 * (bits of a key), and a block with i keys is mistaken for having another key with
 * probability (1 - (63/64)^i)^8. The size follows from the mean of that, not from the
 * textbook's formula, which is 5 % too small at a rate of 0.01 and far worse below.
 * Bits of a key: 3.3 for 0.5, 5.9 for 0.1, 10.1 for 0.01, 15.8 for 0.001, 23.7 for
 * 0.0001, 52 for 0.000001. The size depends only on the number of keys and the rate;
 * bits of a key are rounded to sixteenths, so that the last digit of a mathematical
 * library does not matter.
 *
 * Answers are the same at every SIMD level and on every host; only the order of bytes
 * in memory differs, and the filter is never written to a file.
 *
 * Thread safety: slu_bloom_test from any number of threads, unless one adds.
 */
#ifndef SLU_DEDUP_BLOOM_H
#define SLU_DEDUP_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

#define SLU_BLOOM_BLOCK_BYTE 64
#define SLU_BLOOM_MIN_RATE   1e-6
#define SLU_BLOOM_MAX_RATE   0.5

/* The smallest number of blocks, at least 1, with which n_key different keys give false
 * positives at fp_rate, from SLU_BLOOM_MIN_RATE to SLU_BLOOM_MAX_RATE; SLU_E_LIMIT for
 * other rates and for more than 2^56 keys. */
SLU_MUST_USE int slu_bloom_blocks(uint64_t n_key, double fp_rate, uint64_t *n_block,
                                  struct slu_err *err);
/* The expected rate for n_key keys in n_block blocks. */
double slu_bloom_expected_rate(uint64_t n_key, uint64_t n_block);

struct slu_bloom;

/* n_block >= 1. Takes SLU_BLOOM_BLOCK_BYTE bytes for each block; use touches all of
 * them. */
SLU_MUST_USE int slu_bloom_new(struct slu_bloom **b, uint64_t n_block,
                               struct slu_err *err);
/* NULL is legal. */
void slu_bloom_free(struct slu_bloom *b);

/* hit[i] becomes 1 if hash[i] was added, or collides with added hashes, else 0; i < n.
 * Returns the number of ones. hash[0 … n_ahead), n_ahead >= n, must be readable: the
 * hashes after n are prefetched for the next calls. */
uint64_t slu_bloom_test(const struct slu_bloom *b, const uint64_t *hash, size_t n,
                        size_t n_ahead, uint8_t *hit);
void slu_bloom_add(struct slu_bloom *b, const uint64_t *hash, size_t n);

struct slu_bloom_fill {
    uint64_t bits, bits_set;
    /* The probability that the filter mistakes a new key for a known one: the mean over
     * blocks of the product of their words' fills. Exact, not an estimate. */
    double rate;
};
/* Reads all of the filter. */
struct slu_bloom_fill slu_bloom_fill(const struct slu_bloom *b);

/* For tests: chooses the level ("avx512", "avx2", "portable"); false if the processor
 * lacks it. */
bool slu_bloom_simd(struct slu_bloom *b, const char *level);

SLU_END_DECLS

#endif
