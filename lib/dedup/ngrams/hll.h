/* hll.h - estimates the number of different 64-bit hashes, in 64 KiB.
 *
 * HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) with 2^16 registers of 64-bit
 * hashes and the estimator of Ertl, "New cardinality estimation algorithms for
 * HyperLogLog sketches", arXiv:1702.01284, which needs no correction tables and is
 * unbiased from 0 to beyond 10^18. The relative standard error is at most 1.04 / 2^8 =
 * 0.41 %.
 *
 * A sketch depends only on the set of hashes, and sketches can be merged: one for each
 * thread gives the same result as one for all.
 *
 * Thread safety: one thread at a time on a sketch.
 */
#ifndef SLU_DEDUP_HLL_H
#define SLU_DEDUP_HLL_H

#include <stddef.h>
#include <stdint.h>

#define SLU_HLL_BITS  16
#define SLU_HLL_ERROR 0.0041 /* the relative standard error */

/* Zero before use; 64 KiB. */
struct slu_hll {
    uint8_t reg[1 << SLU_HLL_BITS];
};

void slu_hll_add(struct slu_hll *h, const uint64_t *hash, size_t n);
/* a becomes the sketch of the union. */
void slu_hll_merge(struct slu_hll *a, const struct slu_hll *b);
double slu_hll_estimate(const struct slu_hll *h);

#endif
