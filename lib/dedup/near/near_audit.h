/* near_audit.h - how well bands find what is similar, measured on a sample.
 *
 * The sample is the documents with the n smallest keyed hashes of their identity. Each
 * document of the stream is joined with the sampled ones before it, exactly, by an
 * index of their n-grams: pairs with J >= threshold are counted, and those of them that
 * share a band. Pairs with equal sets are not: they share every band. A document is in
 * the sample from where it stands, and leaves it when n with smaller hashes have come;
 * so at the end each document of the sample has met all behind it, and each pair of
 * the stream was as likely as any other to be looked at.
 *
 * Also counts what is dropped by its similarity to what is kept for it.
 *
 * Memory: at most SLU_NEAR_AUDIT_BYTE bytes an n-gram of the sample, what its documents
 * take themselves counted as n-grams. Thread safety: one thread at a time.
 */
#ifndef SLU_DEDUP_NEAR_AUDIT_H
#define SLU_DEDUP_NEAR_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/near/near_mem.h"

SLU_BEGIN_DECLS

#define SLU_NEAR_AUDIT_BYTE 160 /* 3 to 6 slots of 17, nodes of 8, the set */
#define SLU_NEAR_BINS       20  /* of 0.05: [0, 0.05) … [0.95, 1], 1 in the last */

struct slu_near_audit;

struct slu_near_audit_cfg {
    uint64_t n_sample;
    uint64_t seed;
    unsigned n_band;
    uint64_t num, den;  /* threshold */
    uint64_t most_hash; /* n-grams that the sample may have; past it, it shrinks */
};

struct slu_near_audit_result {
    uint64_t sampled;            /* documents */
    uint64_t pairs, found;       /* at or above the threshold; of them: share a band */
    uint64_t dropped, below;     /* below: J(dropped, kept) < threshold */
    uint64_t bin[SLU_NEAR_BINS]; /* of the dropped by J(dropped, kept) */
    uint64_t pair_bin[SLU_NEAR_BINS], found_bin[SLU_NEAR_BINS]; /* of all pairs met */
};

SLU_MUST_USE int slu_near_audit_new(struct slu_near_audit **a,
                                    const struct slu_near_audit_cfg *cfg,
                                    struct slu_err *err);
void slu_near_audit_free(struct slu_near_audit *a);
/* The next document of the stream. */
SLU_MUST_USE int slu_near_audit_add(struct slu_near_audit *a,
                                    const struct slu_near_item *d, struct slu_err *err);
/* A document was dropped. */
void slu_near_audit_drop(struct slu_near_audit *a, uint64_t inter, uint64_t uni);
/* The figures, of the sample as it is now. */
void slu_near_audit_result(const struct slu_near_audit *a,
                           struct slu_near_audit_result *r);

SLU_END_DECLS

#endif
