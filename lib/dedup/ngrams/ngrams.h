/* ngrams.h - what repeats by n-grams: paragraphs and documents whose n-grams have been
 * seen before, with a Bloom filter that is sized by counting first.
 *
 * A unit is a paragraph (ngrams_text.h says which tokens that is) or a document, that
 * is, a whole sequence. It has the n-grams of its words in a row; a unit of fewer words
 * than n has one, of all of them; one of fewer than min_words has none. With n 0 a
 * unit's only n-gram is all its words: what repeats then repeats as a whole.
 *
 * Units are looked at in stream order. An n-gram is seen if it is in the filter. A unit
 * that has n-grams goes if seen * den >= n-grams * num, its own n-grams not counted
 * before it has been decided on; a unit without n-grams stays.
 *   SLU_BY_PARAGRAPH  The n-grams of paragraphs that stay become seen at once, so a
 *                     document can repeat itself. A document of which nothing stays
 *                     that has a word goes as a whole.
 *   SLU_BY_DOCUMENT   n-grams cross the borders of paragraphs; a document goes or stays
 *                     as it is.
 *   SLU_BY_BOTH       Paragraphs, and then the document: it goes as a whole if of all
 *                     n-grams of its paragraphs so many were seen in documents before
 *                     it. Then none of its n-grams become seen.
 * Only what stays is seen: whoever drops a text has kept another, up to the filter's
 * false positives, each n-gram being taken for seen with the probability that was asked
 * for.
 *
 * This is what DCLM's BFF (arXiv:2406.11794) does with 13-grams, 0.8 and 0.01, by
 * paragraphs and then documents ("old-both"), and dolma (arXiv:2402.00159) with
 * paragraphs or documents, but for these: words are those of shingle.h and not Unicode
 * word boundaries with case; the threshold is reached by "at least" (dolma), not "more
 * than" (BFF); a document's repetitions of itself take away paragraphs, but do not
 * count against the document, which would be lost with no copy kept; and n-grams of
 * documents that are dropped are not seen.
 *
 * First slu_ngrams_count over the whole stream, which counts different n-grams with a
 * HyperLogLog, then slu_ngrams_size and slu_ngrams_filter over the same stream again.
 * The filter is made for the estimate and four standard errors (1.7 %), so that its
 * rate is what was asked for or less. Its size follows from that and the rate alone,
 * the output from the stream and the configuration alone: n-grams are made in parallel,
 * decisions are serial, in stream order.
 *
 * Thread safety: one thread at a time on a handle, its own threads apart.
 */
#ifndef SLU_DEDUP_NGRAMS_H
#define SLU_DEDUP_NGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/dedup/ngrams/bloom.h"
#include "lib/dedup/ngrams/ngrams_text.h"
#include "lib/dedup/origin.h"
#include "lib/stream/account.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

enum slu_ngrams_by { SLU_BY_BOTH, SLU_BY_PARAGRAPH, SLU_BY_DOCUMENT };

struct slu_ngrams_dropped {
    bool document;           /* all of it; else one of its paragraphs */
    struct slu_origin place; /* of the first token */
    uint64_t n_tok;
    /* Of the unit, as it was decided: n_seen * den >= n_gram * num. 0 and 0: a document
     * of whose paragraphs none stayed. */
    uint64_t n_gram, n_seen;
};

struct slu_ngrams_cfg {
    struct slu_shingler_cfg text; /* n is ignored */
    enum slu_ngrams_by by;
    uint64_t n, min_words;
    uint64_t num, den; /* 0 < num <= den < 2^32 */
    double fp_rate;
    unsigned n_threads;
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes what was dropped, in stream order; NULL: not wanted. */
    int (*dropped)(void *ctx, const struct slu_ngrams_dropped *d, struct slu_err *err);
    void *ctx;
};

struct slu_ngrams_result {
    uint64_t n_gram;                           /* all, repetitions included */
    double distinct;                           /* estimate */
    struct slu_count documents;                /* dropped whole */
    struct slu_count paragraphs;               /* dropped out of documents that stay */
    uint64_t n_paragraph, n_paragraph_dropped; /* the latter of documents that stay */
    uint64_t n_cut;                            /* documents that lost paragraphs */
    uint64_t n_block;                          /* of the filter */
};

struct slu_ngrams;

SLU_MUST_USE int slu_ngrams_new(struct slu_ngrams **g, const struct slu_ngrams_cfg *cfg,
                                struct slu_err *err);
/* NULL is legal. */
void slu_ngrams_free(struct slu_ngrams *g);

/* Pass 1: all of r. `copy` takes each batch in order, unchanged; NULL: nobody does. */
SLU_MUST_USE int
slu_ngrams_count(struct slu_ngrams *g, struct slu_reader *r, unsigned n_slots,
                 int (*copy)(void *ctx, struct slu_batch *b, struct slu_err *err),
                 void *copy_ctx, struct slu_sum *total, struct slu_err *err);
/* Bytes of the filter that what was counted needs. */
SLU_MUST_USE int slu_ngrams_size(struct slu_ngrams *g, uint64_t *n_byte,
                                 struct slu_err *err);
/* Pass 2, after slu_ngrams_size: all of r, the same stream. */
SLU_MUST_USE int slu_ngrams_filter(struct slu_ngrams *g, struct slu_reader *r,
                                   unsigned n_slots, struct slu_sum *total,
                                   struct slu_err *err);
const struct slu_ngrams_result *slu_ngrams_result(const struct slu_ngrams *g);
/* The filter as it is now; zeros before pass 2. */
struct slu_bloom_fill slu_ngrams_fill(const struct slu_ngrams *g);

SLU_END_DECLS

#endif
