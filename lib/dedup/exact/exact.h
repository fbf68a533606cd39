/* exact.h - exact duplicates: of sequences with the same tokens, the first in stream
 * order stays.
 *
 * Two sequences are equal if the XXH3-128 over length and ids is equal (DESIGN.md,
 * Conservation); the probability that any two of n different sequences have the same
 * hash is below n^2 / 2^129.
 *
 * While the table of hashes fits its share of the budget, it decides each sequence,
 * which is written or dropped at once. When the table is full, a sequence whose hash it
 * has is still dropped at once; any other sequence waits in a temporary file, and at
 * the end of the input the first of each hash is found (exact_flow.h). Sequences leave
 * in stream order, and the output is the same for any budget.
 *
 * Thread safety: one thread at a time on a handle; slu_exact_run starts threads of its
 * own.
 */
#ifndef SLU_DEDUP_EXACT_H
#define SLU_DEDUP_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/dedup/origin.h"
#include "lib/stream/account.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_exact_pair {
    struct slu_origin dropped, kept;
};

struct slu_exact;

struct slu_exact_cfg {
    uint64_t budget_byte; /* for all data but the batches in flight; at least 1 MiB */
    const char *tmpdir;   /* borrowed */
    unsigned n_threads;
    /* Only the tokens that are trained on count; a sequence without any stays. */
    bool trained;
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Called with each batch before anything is dropped of it; may be NULL. In one
     * process only. */
    int (*seen)(void *ctx, const struct slu_batch *b, struct slu_err *err);
    /* Takes each dropped sequence with the kept one, in stream order; NULL: not wanted,
     * and positions are not stored. */
    int (*pair)(void *ctx, const struct slu_exact_pair *p, struct slu_err *err);
    /* Called before the stream is read; calls slu_exact_known for the hashes of an
     * index. May be NULL. */
    int (*known)(void *ctx, struct slu_exact *x, struct slu_err *err);
    /* In parts, instead of `known` but in the stage sign: counts the documents of the
     * indexes, of which each stage has to know. May be NULL. */
    int (*count_known)(void *ctx, const struct slu_header *h, uint64_t *n,
                       struct slu_err *err);
    /* In parts: whether the flow has the stage index, and the index that this stage
     * writes, or NULL; borrowed. open: opens the output stream, before the first
     * emit. */
    bool indexed;
    const char *save_index;
    int (*open)(void *ctx, struct slu_err *err);
    void *ctx;
};

struct slu_exact_result {
    struct slu_count dropped;
    uint64_t spilled_byte;
    uint64_t waited;    /* sequences that the table could not decide */
    uint64_t untrained; /* that stayed because no token of them counts */
    uint64_t indexed;   /* documents that the stage index wrote */
};

SLU_MUST_USE int slu_exact_new(struct slu_exact **x, const struct slu_exact_cfg *cfg,
                               struct slu_err *err);
/* Adds a hash of an index; sequences with this hash are dropped. Pairs name it by
 * `number` (slu_origin_of_index). */
SLU_MUST_USE int slu_exact_known(struct slu_exact *x, struct slu_u128 hash,
                                 uint64_t number, struct slu_err *err);
/* Passes the whole of r through x, with n_slots batches in flight; call once. */
SLU_MUST_USE int slu_exact_run(struct slu_exact *x, struct slu_reader *r,
                               unsigned n_slots, struct slu_sum *total,
                               struct slu_err *err);
const struct slu_exact_result *slu_exact_result(struct slu_exact *x);
/* NULL is legal. */
void slu_exact_free(struct slu_exact *x);

SLU_END_DECLS

#endif
