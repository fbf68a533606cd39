/* near_audit.h - measures on a sample how many similar pairs the bands find.
 *
 * The sample is the documents with the n smallest keyed hashes of their identity. Each
 * document of the stream is joined exactly with all documents that are in the sample at
 * that moment, by an index of their n-grams. Pairs with J >= threshold are counted, and
 * so are those among them that share a band. Pairs with equal sets are not counted,
 * because they share every band. A document enters the sample when it is read, and
 * leaves when n documents with smaller hashes have come. So at the end each document of
 * the sample was compared with all later documents, and each pair of the stream had the
 * same probability of being counted.
 *
 * The audit also counts dropped documents by their similarity to the kept ones.
 *
 * Memory: at most SLU_NEAR_AUDIT_BYTE bytes for each n-gram of the sample; the
 * documents' own memory is counted as n-grams. Thread safety: one thread at a time.
 */
#ifndef SLU_DEDUP_NEAR_AUDIT_H
#define SLU_DEDUP_NEAR_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/near/near_mem.h"

SLU_BEGIN_DECLS

#define SLU_NEAR_AUDIT_BYTE 160 /* 3 to 6 slots of 17 bytes, nodes of 8, the set */
/* bins of 0.05: [0, 0.05) … [0.95, 1]; the last includes 1 */
#define SLU_NEAR_BINS 20

struct slu_near_audit;

struct slu_near_audit_cfg {
    uint64_t n_sample;
    uint64_t seed;
    unsigned n_band;
    uint64_t num, den;  /* threshold */
    uint64_t most_hash; /* n-grams that the sample may have; beyond, the sample
                           shrinks */
};

struct slu_near_audit_result {
    uint64_t sampled;            /* number of documents */
    uint64_t pairs, found;       /* pairs at or above the threshold; found: those
                                    that share a band */
    uint64_t dropped, below;     /* below: those with J(dropped, kept) < threshold */
    uint64_t bin[SLU_NEAR_BINS]; /* dropped documents by J(dropped, kept) */
    /* all pairs that were compared */
    uint64_t pair_bin[SLU_NEAR_BINS], found_bin[SLU_NEAR_BINS];
};

SLU_MUST_USE int slu_near_audit_new(struct slu_near_audit **a,
                                    const struct slu_near_audit_cfg *cfg,
                                    struct slu_err *err);
void slu_near_audit_free(struct slu_near_audit *a);
/* Adds the next document of the stream. */
SLU_MUST_USE int slu_near_audit_add(struct slu_near_audit *a,
                                    const struct slu_near_item *d, struct slu_err *err);
/* Counts a dropped document. */
void slu_near_audit_drop(struct slu_near_audit *a, uint64_t inter, uint64_t uni);
/* Returns the figures of the current sample. */
void slu_near_audit_result(const struct slu_near_audit *a,
                           struct slu_near_audit_result *r);

SLU_END_DECLS

#endif
