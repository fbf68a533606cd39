/* ngrams_cut.h - removes tokens from sequences.
 *
 * The parts of a segment on both sides of a cut become segments with their offsets in
 * the document: a cut document is a sequence of several segments.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NGRAMS_CUT_H
#define SLU_DEDUP_NGRAMS_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/stream/batch.h"

struct slu_gram_run {
    uint64_t tok, n_tok; /* counted from the sequence's first token */
};

/* Scratch; zero before use. */
struct slu_gram_cut {
    struct slu_buf tok;
    struct slu_seg *seg; /* owned */
    size_t cap_seg;
};
void slu_gram_cut_release(struct slu_gram_cut *c);

/* Appends sequence q of b to `out` without drop[0 … n_drop). These runs are in order,
 * do not overlap, and lie within the sequence. Padding is not cut. A sequence without
 * tokens is not appended. *gone counts the removed tokens. */
SLU_MUST_USE int slu_gram_cut_add(struct slu_gram_cut *c, struct slu_batch *out,
                                  const struct slu_batch *b, const struct slu_seq *q,
                                  const struct slu_gram_run *drop, size_t n_drop,
                                  struct slu_count *gone, struct slu_err *err);

#endif
