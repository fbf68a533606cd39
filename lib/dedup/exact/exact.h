/* exact.h - exact duplicates: of sequences with the same tokens the first in stream
 * order stays.
 *
 * Two sequences are the same if their XXH3-128 over length and ids is (DESIGN.md,
 * Conservation); the chance that different ones are taken for the same is below n^2 /
 * 2^129.
 *
 * A table of the hashes seen decides while it fits its share of the budget, and
 * sequences pass at once. Once it is full, a sequence it knows is dropped at once; one
 * it does not know waits in a temporary file, and at the end of the input the first of
 * every hash is found (exact_flow.h). Sequences leave in stream order, and the output
 * is the same for any budget.
 *
 * Thread safety: one thread at a time on a handle, slu_exact_run's own threads apart.
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
    uint64_t budget_byte; /* for everything but the batches in flight; at least 1 MiB */
    const char *tmpdir;   /* borrowed */
    unsigned n_threads;
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes what was dropped and for what, in stream order; NULL: not wanted, and
     * places are not kept. */
    int (*pair)(void *ctx, const struct slu_exact_pair *p, struct slu_err *err);
    /* Before the stream: calls slu_exact_known for the hashes of an index; or NULL. */
    int (*known)(void *ctx, struct slu_exact *x, struct slu_err *err);
    /* In parts: opens the stream that is written, before the first emit. */
    int (*open)(void *ctx, struct slu_err *err);
    void *ctx;
};

struct slu_exact_result {
    struct slu_count dropped;
    uint64_t spilled_byte;
    uint64_t waited; /* sequences that the table could not decide */
};

SLU_MUST_USE int slu_exact_new(struct slu_exact **x, const struct slu_exact_cfg *cfg,
                               struct slu_err *err);
/* A hash of an index; what has it is dropped. `number` is what pairs name it by
 * (slu_origin_of_index). */
SLU_MUST_USE int slu_exact_known(struct slu_exact *x, struct slu_u128 hash,
                                 uint64_t number, struct slu_err *err);
/* The whole of r through x, with n_slots batches in flight; once. */
SLU_MUST_USE int slu_exact_run(struct slu_exact *x, struct slu_reader *r,
                               unsigned n_slots, struct slu_sum *total,
                               struct slu_err *err);
const struct slu_exact_result *slu_exact_result(struct slu_exact *x);
/* NULL is legal. */
void slu_exact_free(struct slu_exact *x);

SLU_END_DECLS

#endif
