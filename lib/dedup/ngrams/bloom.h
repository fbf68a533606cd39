/* bloom.h - a blocked Bloom filter over 64-bit hashes: one cache line a key.
 *
 * The filter is a row of blocks of 512 bits, eight words of 64. A key sets one bit in
 * each word of one block, so a probe costs one cache line whatever the rate (the
 * blocked filters of Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient
 * Bloom Filters", 2007, with the words of Apache Parquet's split blocks). The block and
 * the eight bits come from one 64-bit hash, which must be uniform.
 *
 * Blocks do not fill evenly: the number of keys in one is Poisson with mean
 * 512 / (bits a key), and a block with i keys is mistaken for holding another with
 * probability (1 - (63/64)^i)^8. The size follows from the mean of that, not from the
 * textbook's formula, which is 5 % short at a rate of 0.01 and far worse below it. Bits
 * a key: 3.3 for 0.5, 5.9 for 0.1, 10.1 for 0.01, 15.8 for 0.001, 23.7 for 0.0001, 52
 * for 0.000001. It depends on the number of keys and the rate alone; bits a key are
 * taken in sixteenths, so that the last digit of a libm does not show.
 *
 * Answers are the same at every SIMD level and on every host (but for the order of
 * bytes in memory, which is not written anywhere).
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

/* The least number of blocks with which n_key different keys give false positives at
 * fp_rate, from SLU_BLOOM_MIN_RATE to SLU_BLOOM_MAX_RATE; SLU_E_LIMIT for other rates
 * and for more than 2^56 keys. At least 1. */
SLU_MUST_USE int slu_bloom_blocks(uint64_t n_key, double fp_rate, uint64_t *n_block,
                                  struct slu_err *err);
/* The rate that n_key keys in n_block blocks are expected to give. */
double slu_bloom_expected_rate(uint64_t n_key, uint64_t n_block);

struct slu_bloom;

/* n_block >= 1. SLU_BLOOM_BLOCK_BYTE bytes each, all of it touched in time. */
SLU_MUST_USE int slu_bloom_new(struct slu_bloom **b, uint64_t n_block,
                               struct slu_err *err);
/* NULL is legal. */
void slu_bloom_free(struct slu_bloom *b);

/* hit[i] becomes 1 where hash[i] was added or collides with what was, else 0; i < n.
 * Returns how many are 1. hash[0 … n_ahead), n_ahead >= n, must be readable: what comes
 * behind n is fetched into the cache for the calls that follow. */
uint64_t slu_bloom_test(const struct slu_bloom *b, const uint64_t *hash, size_t n,
                        size_t n_ahead, uint8_t *hit);
void slu_bloom_add(struct slu_bloom *b, const uint64_t *hash, size_t n);

struct slu_bloom_fill {
    uint64_t bits, bits_set;
    /* The probability that a key that was not added is taken for one that was: the mean
     * over blocks of the product of their words' fills. Exact, not an estimate. */
    double rate;
};
/* Reads all of the filter. */
struct slu_bloom_fill slu_bloom_fill(const struct slu_bloom *b);

/* For tests: the level to use from here on ("avx512", "avx2", "portable"); false where
 * it is not there. */
bool slu_bloom_simd(struct slu_bloom *b, const char *level);

SLU_END_DECLS

#endif
