/* substring_cut.h - cuts ranges of ids out of a sequence, and the ids that go with them
 * (substring.h). Private to lib/dedup/substring.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SUBSTRING_CUT_H
#define SLU_SUBSTRING_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/substring/substring_ranges.h"
#include "lib/dedup/substring/substring_walk.h"
#include "lib/stream/batch.h"

struct slu_gap {
    uint64_t from, to; /* ids of the sequence, [from, to) */
};

struct slu_gaps {
    struct slu_specials special;
    uint64_t min_keep_tok;
    struct slu_gap *gap; /* scratch */
    size_t n_gap, cap_gap;
    struct slu_seg *seg;
    size_t cap_seg;
};

/* The result of a cut. */
struct slu_gaps_did {
    uint64_t passage_tok;    /* ids of the ranges */
    uint64_t special_tok;    /* special ids that were dropped */
    uint64_t short_tok;      /* ids of short stretches that were dropped */
    uint64_t documents_cut;  /* parts of documents in sequences that have a range */
    uint64_t documents_gone; /* of these, the parts of which nothing is left */
};

void slu_gaps_release(struct slu_gaps *c);

/* Cuts the ranges out of the last sequence of b, which slu_batch_add appended and whose
 * place is `place`. Ranges must lie within its stretches and ascend, else
 * SLU_E_CONSERVATION. A sequence without ids is removed from b. Adds to *r. */
SLU_MUST_USE int slu_gaps_cut(struct slu_gaps *c, struct slu_batch *b, uint64_t place,
                              const struct slu_range *range, size_t n_range,
                              struct slu_gaps_did *r, struct slu_err *err);

#endif
