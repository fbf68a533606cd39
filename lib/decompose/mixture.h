/* mixture.h - the number of sequences kept of each bucket, and their selection.
 *
 * The mixtures of dataset decomposition (arXiv 2405.13226, section 3.4 and appendix F):
 * the buckets' tokens are kept in a given ratio, as many as the scarcest bucket allows.
 * Tokens are nominal, 2^i per sequence with or without a label token, so that the
 * selection does not depend on label tokens.
 *
 * Counts are exact. Of a bucket's n sequences the k with the smallest keyed hash of
 * (seed, source, document, offset) are kept (DESIGN.md, Identity and order), equal
 * hashes in input order. k comes from slu_mixture_quota, which needs the n of all
 * buckets, so all sequences wait in input order (bytelog.h), with their hashes. The
 * k-th smallest hash of each bucket is found digit by digit (a radix selection: one
 * pass over the hashes per digit, in 2 MiB for any number of hashes). A second pass
 * over the sequences emits those at or below it, in input order. The result depends
 * only on the input, the seed and the mixture.
 *
 * Thread safety: one thread at a time on a handle; the rest are pure functions.
 */
#ifndef SLU_MIXTURE_H
#define SLU_MIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "decompose.h"
#include "lib/base/err.h"
#include "lib/stream/batch.h"

SLU_BEGIN_DECLS

/* ---- amounts ---- */

enum slu_mixture_kind { SLU_MIXTURE_NATURAL, SLU_MIXTURE_EQUAL, SLU_MIXTURE_WEIGHTS };

struct slu_mixture {
    enum slu_mixture_kind kind;
    /* WEIGHTS: shares of tokens, below 2^50, not all 0 */
    uint64_t weight[SLU_MAX_BUCKETS];
    uint64_t max_tok; /* limit for all buckets together; 0: unlimited */
};

/* Parses "natural", "equal", or n_bucket numbers, the shortest bucket's first,
 * separated by commas, fractions allowed. Sets kind and weight. SLU_E_USAGE. */
SLU_MUST_USE int slu_mixture_parse(struct slu_mixture *m, const char *text,
                                   unsigned n_bucket, struct slu_err *err);

struct slu_mixture_quota {
    uint64_t seq[SLU_MAX_BUCKETS]; /* sequences to keep */
    uint64_t tok;                  /* nominal tokens of these sequences */
    int scarcest; /* the bucket that limits all others; -1: none does */
};

/* Computes the quota of n_seq[i] sequences in each bucket of d. It finds the largest s
 * for which s x weight fits in every bucket (and s x the sum of weights in max_tok),
 * and keeps of each bucket the sequences that fit in s x its weight: short of the ratio
 * by less than one sequence, and never more. NATURAL keeps all, or the same share of
 * each bucket. SLU_E_MISMATCH if a bucket with a weight is empty and others are not,
 * because nothing could be kept then. */
SLU_MUST_USE int slu_mixture_quota(const struct slu_mixture *m,
                                   const struct slu_decompose *d, const uint64_t *n_seq,
                                   struct slu_mixture_quota *q, struct slu_err *err);

/* Appends a table for people: the sequences that each mixture (natural, equal, and m if
 * different) keeps of n_seq[i] sequences in each bucket of d, with their mean length
 * and context. */
SLU_MUST_USE int slu_mixture_table(const struct slu_mixture *m,
                                   const struct slu_decompose *d, const uint64_t *n_seq,
                                   struct slu_buf *text, struct slu_err *err);

/* ---- the choice of sequences ---- */

struct slu_mixing;

struct slu_mixing_cfg {
    uint64_t seed;
    const struct slu_header *header; /* of the output, for its buckets; borrowed */
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
};

SLU_MUST_USE int slu_mixing_new(struct slu_mixing **x, const struct slu_mixing_cfg *cfg,
                                struct slu_err *err);
/* Adds all sequences of b, as copies. A sequence without a bucket's length is kept. */
SLU_MUST_USE int slu_mixing_add(struct slu_mixing *x, const struct slu_batch *b,
                                struct slu_err *err);
/* Ends the additions. keep: sequences to keep, by bucket; at most those added. */
SLU_MUST_USE int slu_mixing_plan(struct slu_mixing *x, const uint64_t *keep,
                                 struct slu_err *err);
/* Replaces out's contents by the next kept sequences, about `tok` tokens. SLU_EOF after
 * the last. */
SLU_MUST_USE int slu_mixing_next(struct slu_mixing *x, struct slu_batch *out,
                                 uint64_t tok, struct slu_err *err);
/* Returns the sequences left out so far, by bucket of the header. Borrowed. */
const struct slu_count *slu_mixing_dropped(const struct slu_mixing *x);
/* Bytes written to temporary files so far. */
uint64_t slu_mixing_spilled(const struct slu_mixing *x);
/* NULL is legal. */
void slu_mixing_free(struct slu_mixing *x);

SLU_END_DECLS

#endif
