/* minhash.h - MinHash signatures and their bands.
 *
 * Broder 1997: two sets of hashes have equal minima under a random function with
 * probability J, their Jaccard similarity. A signature has K = bands * rows such
 * minima; two sets share at least one band of `rows` equal minima with probability 1 -
 * (1 - J^rows)^bands (Indyk and Motwani 1998; Leskovec, Rajaraman and Ullman, "Mining
 * of Massive Datasets", 3.4).
 *
 * Function k of a hash h is ((h >> 32) ^ x_k) * m_k mod 2^32, m_k odd; x_k and m_k are
 * drawn from (seed, k). For each k this is a bijection of the upper half of h, which
 * must be uniform, as in the hashes of shingle.h. tests/bench/NOTES-dedup.md has the
 * evidence that signatures follow the formula, and other functions that were tried.
 *
 * Each SIMD level has a version (minhash_*.c); all versions give the same bits.
 *
 * Thread safety: a slu_minhash is read-only, except in slu_minhash_use.
 */
#ifndef SLU_DEDUP_MINHASH_H
#define SLU_DEDUP_MINHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define SLU_MINHASH_MAX_K 16384 /* bands * rows */

struct slu_minhash;

/* SLU_E_USAGE if n_band or n_row is 0, or if their product exceeds
 * SLU_MINHASH_MAX_K. */
SLU_MUST_USE int slu_minhash_new(struct slu_minhash **m, unsigned n_band,
                                 unsigned n_row, uint64_t seed, struct slu_err *err);
/* NULL is legal. */
void slu_minhash_free(struct slu_minhash *m);

/* Chooses the level that signs from now on: "portable", "avx2", "avx512" or "neon";
 * NULL: the best, which is also the default. Returns false, without a change, if the
 * level does not exist or the processor lacks it. No other thread may sign
 * meanwhile. */
bool slu_minhash_use(struct slu_minhash *m, const char *level);
const char *slu_minhash_level(const struct slu_minhash *m);

/* sig[0 … bands * rows) becomes the signature of hash[0 … n), in any order; repetitions
 * have no effect. All ones for n = 0: an empty set must not be compared. */
void slu_minhash_sign(const struct slu_minhash *m, const uint64_t *hash, size_t n,
                      uint32_t *sig);

/* key[0 … bands) becomes the bands' keys: XXH3-64 of the band's rows and number, u32
 * little-endian. Equal bands have equal keys; keys that differ belong to different
 * bands. */
void slu_minhash_band_keys(const struct slu_minhash *m, const uint32_t *sig,
                           uint64_t *key);

#endif
