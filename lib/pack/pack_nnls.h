/* pack_nnls.h - non-negative least squares over all ways to fill a bin with up to three
 * lengths: the core of NNLSHP, arXiv 2107.02027.
 *
 * A strategy is a multiset of at most `depth` lengths whose sum is the capacity. With x
 * bins of each strategy, A x items of each length are used. The solver finds the x >= 0
 * that minimises |W (A x - h)|; h is the histogram and W has a weight for each length.
 * It uses the active sets of Lawson & Hanson (1974) on the normal equations, with a
 * Cholesky factor that grows and shrinks by one column at a time. Strategies are never
 * stored: the gradient of {a, b, c} is y[a] + y[b] + y[c].
 *
 * Results are the same on every host: plain IEEE arithmetic in a fixed order. Thread
 * safety: pure.
 */
#ifndef SLU_PACK_NNLS_H
#define SLU_PACK_NNLS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct slu_pack_strategy {
    uint32_t len[3]; /* ascending; 0: none */
    double bins;     /* > 0 */
};

/* Solves for the histogram `wanted`; wanted and weight have capacity + 1 elements, by
 * length, and wanted[0] is 0. Returns the strategies used, in the order of their
 * lengths: a malloc'd array that the caller frees with free(). Takes about 12 *
 * capacity^2 bytes, and time proportional to capacity^3. */
SLU_MUST_USE int slu_pack_nnls(struct slu_pack_strategy **strategy, size_t *n,
                               uint32_t capacity, unsigned depth, const double *wanted,
                               const double *weight, struct slu_err *err);

#endif
