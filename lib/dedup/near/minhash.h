/* minhash.h - MinHash signatures and their bands.
 *
 * Broder 1997: two sets of hashes have equal minima under a random function with
 * probability J, their Jaccard similarity. A signature has K = bands * rows such
 * minima; two sets share a band of `rows` equal minima, at least one, with probability
 * 1 - (1 - J^rows)^bands (Indyk and Motwani 1998; Leskovec, Rajaraman and Ullman,
 * "Mining of Massive Datasets", 3.4).
 *
 * Function k of a hash h is ((h >> 32) ^ x_k) * m_k mod 2^32, m_k odd; x_k and m_k are
 * drawn from (seed, k). For each k it is a bijection of h's upper half. Hashes must be
 * uniform there, as those of shingle.h are. tests/bench/NOTES.md has the evidence
 * that signatures keep the formula, and what was tried beside.
 *
 * There is a version for each SIMD level (minhash_*.c); all give the same bits.
 *
 * Thread safety: a slu_minhash is read-only but for slu_minhash_use.
 */
#ifndef SLU_DEDUP_MINHASH_H
#define SLU_DEDUP_MINHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define SLU_MINHASH_MAX_K 16384 /* bands * rows */

struct slu_minhash;

/* SLU_E_USAGE where n_band or n_row is 0 or their product more than SLU_MINHASH_MAX_K.
 */
SLU_MUST_USE int slu_minhash_new(struct slu_minhash **m, unsigned n_band,
                                 unsigned n_row, uint64_t seed, struct slu_err *err);
/* NULL is legal. */
void slu_minhash_free(struct slu_minhash *m);

/* The level that signs from now on: "portable", "avx2", "avx512" or "neon"; NULL is the
 * best, as at first. False, and nothing changes, where there is no such level or the
 * processor cannot. Not while another thread signs. */
bool slu_minhash_use(struct slu_minhash *m, const char *level);
const char *slu_minhash_level(const struct slu_minhash *m);

/* sig[0 … bands * rows) becomes the signature of hash[0 … n), in any order, repetitions
 * without effect. All ones for n = 0: an empty set is not to be compared. */
void slu_minhash_sign(const struct slu_minhash *m, const uint64_t *hash, size_t n,
                      uint32_t *sig);

/* key[0 … bands) becomes the bands' keys: XXH3-64 of the band's rows and number, u32
 * little-endian. Equal bands have equal keys; keys of different ones are taken for
 * different. */
void slu_minhash_band_keys(const struct slu_minhash *m, const uint32_t *sig,
                           uint64_t *key);

#endif
