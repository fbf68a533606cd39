/* near_verify.h - compares the sets of candidate pairs (point 3 of near.h).
 *
 * Pairs are sorted by (block of d, k, d). A block is a run of ordinals whose sets fill
 * a share of the budget. The sets of a block are read at once; those of its k are read
 * once each, in ascending order, through a buffer. So memory is bounded, reads ascend,
 * and a pair that came several times is compared once.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_VERIFY_H
#define SLU_DEDUP_NEAR_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/flow/table.h"

struct slu_near_edge {
    uint64_t d, d_rank, k, k_rank;
    uint64_t inter, uni; /* sizes of the intersection and the union of both sets */
};

struct slu_near_verify_cfg {
    uint64_t budget_byte; /* at least 1 MiB; half for pairs, half for sets */
    const char *tmpdir;   /* copied */
    unsigned n_threads;
    uint64_t num, den;       /* as in near.h */
    bool verify;             /* false: every pair is an edge */
    struct slu_table *set;   /* for each document its set; words: hash (2), rank */
    uint64_t n_doc;          /* number of documents */
    uint64_t d_first, d_end; /* range of ordinals of d */
    int (*edge)(void *ctx, const struct slu_near_edge *e, struct slu_err *err);
    void *ctx;
};

struct slu_near_verify_result {
    uint64_t candidates, edges, capped, spilled_byte;
};

struct slu_near_verify;

SLU_MUST_USE int slu_near_verify_new(struct slu_near_verify **v,
                                     const struct slu_near_verify_cfg *cfg,
                                     struct slu_err *err);
/* Adds a candidate pair, any number of times; k == d: d is counted in `capped`. */
SLU_MUST_USE int slu_near_verify_pair(struct slu_near_verify *v, uint64_t k, uint64_t d,
                                      struct slu_err *err);
/* Ends the adding of pairs; calls edge by blocks of d, then by k, then by d. */
SLU_MUST_USE int slu_near_verify_run(struct slu_near_verify *v, struct slu_err *err);
const struct slu_near_verify_result *
slu_near_verify_result(const struct slu_near_verify *v);
/* NULL is legal. */
void slu_near_verify_free(struct slu_near_verify *v);

#endif
