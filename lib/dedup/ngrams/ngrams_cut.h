/* ngrams_cut.h - removes sequences from batches, and tokens from sequences.
 *
 * The parts of a segment on both sides of a cut become segments with their offsets in
 * the document: a cut document is a sequence of several segments.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NGRAMS_CUT_H
#define SLU_DEDUP_NGRAMS_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stream/batch.h"

struct slu_gram_run {
    uint64_t tok, n_tok; /* counted from the sequence's first token */
};

struct slu_gram_cut {
    size_t kept;          /* sequences of the batch that stay in it */
    bool cutting;         /* a sequence of the batch was cut: */
    struct slu_batch out; /* all that is kept of the batch */
    /* Scratch. */
    struct slu_buf tok;
    struct slu_seg *seg; /* owned */
    size_t cap_seg;
};
void slu_gram_cut_init(struct slu_gram_cut *c, unsigned tok_bytes);
void slu_gram_cut_release(struct slu_gram_cut *c);

/* Keeps a sequence of b, without drop[0 … n_drop); q: a copy of it. Sequences are kept
 * in their order. Runs are in order, do not overlap, and lie within the sequence.
 * Padding is not cut. A sequence without tokens is not kept. *gone counts the removed
 * tokens. */
SLU_MUST_USE int slu_gram_cut_keep(struct slu_gram_cut *c, struct slu_batch *b,
                                   const struct slu_seq *q,
                                   const struct slu_gram_run *drop, size_t n_drop,
                                   struct slu_count *gone, struct slu_err *err);
/* Ends the batch: calls emit with what is kept of it, if anything is. */
SLU_MUST_USE int slu_gram_cut_end(struct slu_gram_cut *c, struct slu_batch *b,
                                  int (*emit)(void *ctx, struct slu_batch *b,
                                              struct slu_err *err),
                                  void *ctx, struct slu_err *err);

#endif
