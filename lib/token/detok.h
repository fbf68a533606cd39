/* detok.h - token ids back to bytes, by the stream's vocabulary frame. */
#ifndef SLU_DETOK_H
#define SLU_DETOK_H

#include "lib/stream/stream.h"

/* Appends the bytes of ids tok[0 … n) (tok_bytes wide). Special tokens (eos among them)
 * stand for no text and are left out, unless `special`. SLU_E_FORMAT for an id that is
 * not in the vocabulary. Exact for vocabularies whose tokens are bytes (byte-level
 * BPE). */
SLU_MUST_USE int slu_detok(const struct slu_vocab_table *v, const void *tok, uint64_t n,
                           unsigned tok_bytes, bool special, struct slu_buf *out,
                           struct slu_err *err);

#endif
