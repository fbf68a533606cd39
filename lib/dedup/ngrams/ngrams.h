/* ngrams.h - drops paragraphs and documents whose n-grams occurred before, by a Bloom
 * filter whose size follows from a first pass that counts.
 *
 * A unit is a paragraph (ngrams_text.h defines its tokens) or a document, that is, a
 * whole sequence. A unit has the n-grams of n consecutive words. A unit of fewer than n
 * words has one n-gram, of all its words; a unit of fewer than min_words words has none.
 * With n 0, all words of a unit are its only n-gram, so units are compared as a whole.
 *
 * Units are decided in stream order. An n-gram is *seen* if it is in the filter. A unit
 * with n-grams is dropped if seen * den >= n-grams * num; its own n-grams enter the
 * filter only after the decision. A unit without n-grams stays.
 *   SLU_BY_PARAGRAPH  The n-grams of each kept paragraph are seen at once, so a document
 *                     can repeat itself. A document is dropped as a whole if no kept
 *                     paragraph has a word.
 *   SLU_BY_DOCUMENT   n-grams cross the borders of paragraphs; a document is kept or
 *                     dropped as a whole.
 *   SLU_BY_BOTH       First paragraphs, then the document: it is dropped as a whole if,
 *                     of all n-grams of its paragraphs, the same fraction was seen in
 *                     earlier documents. Then none of its n-grams become seen.
 * Only the n-grams of kept text are seen. So a text is dropped only if kept text has its
 * n-grams, except for false positives of the filter, which for each n-gram have the
 * given probability.
 *
 * DCLM's BFF (arXiv:2406.11794) does the same with 13-grams, 0.8 and 0.01, by paragraphs
 * and then documents ("old-both"), and dolma (arXiv:2402.00159) by paragraphs or
 * documents, with these differences: words are those of shingle.h, not Unicode words
 * with case; the threshold means "at least" (as in dolma), not "more than" (BFF); when a
 * document repeats itself, paragraphs are dropped, but these repeats do not count
 * against the document, of which no copy would be kept; and n-grams of dropped
 * documents are not seen.
 *
 * Call slu_ngrams_count on the whole stream, which counts different n-grams with a
 * HyperLogLog; then slu_ngrams_size, and slu_ngrams_filter on the same stream again.
 * The filter is made for the estimate plus four standard errors (1.7 %), so that its
 * rate is at most the given one. Its size depends only on the estimate and the rate, and
 * the output only on the stream and the configuration: n-grams are made in parallel,
 * but decisions are serial, in stream order.
 *
 * Thread safety: one thread at a time on a handle; a pass starts threads of its own.
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
    bool document;            /* true: the whole document; false: one of its
                                paragraphs */
    struct slu_origin origin; /* position of the first token */
    uint64_t n_tok;
    /* The counts on which the unit was decided: n_seen * den >= n_gram * num. 0 and 0:
     * a document of which no paragraph was kept. */
    uint64_t n_gram, n_seen;
};

struct slu_ngrams_cfg {
    struct slu_shingler_cfg text; /* n is ignored */
    enum slu_ngrams_by by;
    bool trained; /* only the tokens that are trained on have words */
    uint64_t n, min_words;
    uint64_t num, den; /* 0 < num <= den < 2^32 */
    double fp_rate;
    unsigned n_threads;
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes each dropped unit, in stream order; NULL: not wanted. */
    int (*dropped)(void *ctx, const struct slu_ngrams_dropped *d, struct slu_err *err);
    void *ctx;
};

struct slu_ngrams_result {
    uint64_t empty;                            /* documents without words */
    uint64_t n_gram;                           /* all n-grams, with repetitions */
    double distinct;                           /* estimated number of different
                                                  n-grams */
    struct slu_count documents;                /* dropped as a whole */
    struct slu_count paragraphs;               /* dropped from documents that stay */
    uint64_t n_paragraph, n_paragraph_dropped; /* n_paragraph_dropped: from documents
                                                  that stay */
    uint64_t n_cut;                            /* documents that lost paragraphs */
    uint64_t n_block;                          /* of the filter */
};

struct slu_ngrams;

SLU_MUST_USE int slu_ngrams_new(struct slu_ngrams **g, const struct slu_ngrams_cfg *cfg,
                                struct slu_err *err);
/* NULL is legal. */
void slu_ngrams_free(struct slu_ngrams *g);

/* Pass 1: reads all of r. `copy` takes each batch in order, unchanged; NULL: no
 * copy. */
SLU_MUST_USE int
slu_ngrams_count(struct slu_ngrams *g, struct slu_reader *r, unsigned n_slots,
                 int (*copy)(void *ctx, struct slu_batch *b, struct slu_err *err),
                 void *copy_ctx, struct slu_sum *total, struct slu_err *err);
/* Bytes that the filter needs for the counted n-grams. */
SLU_MUST_USE int slu_ngrams_size(struct slu_ngrams *g, uint64_t *n_byte,
                                 struct slu_err *err);
/* Pass 2, after slu_ngrams_size: reads all of r, the same stream. */
SLU_MUST_USE int slu_ngrams_filter(struct slu_ngrams *g, struct slu_reader *r,
                                   unsigned n_slots, struct slu_sum *total,
                                   struct slu_err *err);
const struct slu_ngrams_result *slu_ngrams_result(const struct slu_ngrams *g);
/* The current fill of the filter; zeros before pass 2. */
struct slu_bloom_fill slu_ngrams_fill(const struct slu_ngrams *g);

SLU_END_DECLS

#endif
