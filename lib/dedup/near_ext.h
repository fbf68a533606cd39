/* near_ext.h - near duplicates in external memory: the decisions of near.h for any
 * number of documents within a budget.
 *
 * A document is an ordinal (its place, ascending), a priority, the 128-bit hash of its
 * set, its band keys, and its set: ascending distinct 64-bit shingle hashes. Order is
 * (priority, ordinal); fixed documents come before all others and are kept. Then:
 *  1. Of documents with the same set hash (twins) the first in order stands for all; a
 *     later one is dropped: witness is the first if that is kept, else its witness.
 *  2. A group is what has one (band, key), first twins only, in order. (k, d), k before
 *     d, is a candidate if both are in a group and k among its first band_cap. A d that
 *     is not among them in some group is counted once, in capped_documents.
 *  3. A candidate with |k and d| * den >= |k or d| * num is an edge; without `verify`
 *     each candidate is.
 *  4. In order: d is dropped if a kept k has an edge to it; witness is the first such.
 * Documents with an empty set take part in nothing. Sets that differ count as one if
 * their 128-bit hashes agree, or, within one group, 64 bits of them.
 *
 * Cost: records of 24 to 56 bytes for each (document, band) and for each candidate, and
 * each set once, go to temporary files without names, are sorted (lib/sorter) and read
 * in ascending order. Sets of the candidates' k are read once for each block of d whose
 * sets fill a quarter of the budget. One bit a document stays in memory.
 *
 * Hand-over from an engine that has decided the first documents in memory: before the
 * first slu_near_ext_add, slu_near_ext_kept for each document that it kept and
 * slu_near_ext_group for each (band, key) that it knows. It goes on deciding twins of
 * what it has seen by itself: an added document's set hash must be none of theirs.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_EXT_H
#define SLU_DEDUP_NEAR_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/hash.h"

#define SLU_NEAR_MAX_BAND 16384
#define SLU_NEAR_MAX_CAP  (1 << 20)

struct slu_near_ext;

struct slu_near_ext_cfg {
    /* All memory while documents come, at least 1 MiB, and from slu_near_ext_finish on,
     * at least twice that; 16 bits of budget_byte for each document at least. */
    uint64_t collect_byte, budget_byte;
    const char *tmpdir; /* copied */
    unsigned n_threads;
    unsigned n_band;   /* 0: twins only; at most SLU_NEAR_MAX_BAND */
    uint64_t num, den; /* threshold num/den, 0 < num <= den <= 10^9 */
    uint64_t band_cap; /* 1 … SLU_NEAR_MAX_CAP */
    bool verify;       /* false: every candidate is an edge */
    bool by_prio;      /* false: all priorities are 0 */
};

struct slu_near_doc {
    uint64_t ordinal; /* larger than that of any document before */
    uint64_t prio;    /* below UINT64_MAX */
    bool fixed;       /* kept, and before all that are not fixed */
    struct slu_u128 set_hash;
    const uint64_t *key; /* n_band band keys; borrowed */
    const uint64_t *set; /* n_set hashes, ascending, distinct; borrowed */
    uint64_t n_set;      /* 0: takes part in nothing */
};

/* A document that is dropped. Similarity is inter / uni. */
struct slu_near_drop {
    uint64_t ordinal, witness; /* witness: ordinal of a kept document */
    uint64_t inter, uni;       /* sizes of both sets' intersection and union */
};

struct slu_near_ext_result {
    uint64_t candidates;       /* pairs, each once */
    uint64_t edges;            /* of them at or above the threshold */
    uint64_t twins;            /* documents dropped for an equal set */
    uint64_t capped_documents; /* see 2. above */
    uint64_t spilled_byte;     /* written to temporary files */
};

SLU_MUST_USE int slu_near_ext_new(struct slu_near_ext **x,
                                  const struct slu_near_ext_cfg *cfg,
                                  struct slu_err *err);
/* Hand-over: a document that was kept, in ascending order of ordinals; copies. */
SLU_MUST_USE int slu_near_ext_kept(struct slu_near_ext *x, uint64_t ordinal,
                                   const uint64_t *set, uint64_t n_set,
                                   struct slu_err *err);
/* Hand-over: a group of n_doc distinct documents so far (dropped ones too), of which
 * the n_kept <= band_cap that were kept and are among the first band_cap are named. In
 * any order of groups, each once; copies. */
SLU_MUST_USE int slu_near_ext_group(struct slu_near_ext *x, unsigned band, uint64_t key,
                                    uint64_t n_doc, const uint64_t *kept, size_t n_kept,
                                    struct slu_err *err);
/* The next document; copies. */
SLU_MUST_USE int slu_near_ext_add(struct slu_near_ext *x, const struct slu_near_doc *d,
                                  struct slu_err *err);
/* No more documents: decides. Whoever shares the budget gives its part back before. */
SLU_MUST_USE int slu_near_ext_finish(struct slu_near_ext *x, struct slu_err *err);
/* After finish: the next document that is dropped, in ascending order of ordinals;
 * SLU_EOF behind the last. What is not named is kept. */
SLU_MUST_USE int slu_near_ext_next(struct slu_near_ext *x, struct slu_near_drop *drop,
                                   struct slu_err *err);
const struct slu_near_ext_result *slu_near_ext_result(const struct slu_near_ext *x);
/* NULL is legal. */
void slu_near_ext_free(struct slu_near_ext *x);

#endif
