/* exact.h - exact duplicates: of sequences with the same tokens the first in stream
 * order stays.
 *
 * Two sequences are the same if their XXH3-128 over length and ids is (semantics.md 8);
 * the chance that different ones are taken for the same is below n^2 / 2^129.
 *
 * A table of the hashes seen decides while it fits its share of the budget, and
 * sequences pass at once. Once it is full, a sequence it knows is dropped at once; one
 * it does not know waits in a temporary file, and its (hash, ordinal) goes to a sorter:
 * at the end of the input the first of every hash is kept, the ordinals of the others,
 * sorted, are taken out of the file as it is read back. So sequences leave in stream
 * order, and the output is the same for any budget.
 *
 * Thread safety: one thread at a time on a handle, slu_exact_run's own threads apart.
 */
#ifndef SLU_DEDUP_EXACT_H
#define SLU_DEDUP_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/account.h"
#include "lib/stream/batch.h"
#include "lib/dedup/place.h"
#include "lib/err.h"
#include "lib/stream/stream.h"

struct slu_exact_pair {
    struct slu_place dropped, kept;
};

struct slu_exact_cfg {
    uint64_t budget_byte; /* for everything but the batches in flight; at least 1 MiB */
    const char *tmpdir;   /* borrowed */
    unsigned n_threads;
    unsigned tok_bytes;
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes what was dropped and for what, in stream order; NULL: not wanted, and
     * places are not kept. */
    int (*pair)(void *ctx, const struct slu_exact_pair *p, struct slu_err *err);
    void *ctx;
};

struct slu_exact_result {
    struct slu_count dropped;
    uint64_t spilled_byte;
    uint64_t waited; /* sequences that the table could not decide */
};

struct slu_exact;

SLU_MUST_USE int slu_exact_new(struct slu_exact **x, const struct slu_exact_cfg *cfg,
                               struct slu_err *err);
/* Before all sequences: a hash of an index; what has it is dropped. `number` is what
 * pairs name it by (slu_place_of_index). */
SLU_MUST_USE int slu_exact_known(struct slu_exact *x, struct slu_u128 hash,
                                 uint64_t number, struct slu_err *err);
/* The next sequences of the stream with their hashes; edits b. */
SLU_MUST_USE int slu_exact_put(struct slu_exact *x, struct slu_batch *b,
                               const struct slu_u128 *hash, struct slu_err *err);
/* No more sequences: emits those that waited. */
SLU_MUST_USE int slu_exact_finish(struct slu_exact *x, struct slu_err *err);
const struct slu_exact_result *slu_exact_result(struct slu_exact *x);
void slu_exact_free(struct slu_exact *x);

/* The whole of r through x, with n_slots batches in flight, slu_exact_finish included.
 */
SLU_MUST_USE int slu_exact_run(struct slu_exact *x, struct slu_reader *r,
                               unsigned n_slots, struct slu_sum *total,
                               struct slu_err *err);

#endif
