/* ngrams_text.h - finds the paragraphs of a sequence as runs of its tokens, the words
 * in them, and n-grams of words.
 *
 * Tokens of a paragraph. A token whose bytes contain a line feed (0x0A) ends a
 * paragraph and belongs to it, whatever else it contains: "\n\n", ".\n" and "\n    "
 * end the paragraph in which they begin, and their text after the line feed belongs to
 * this paragraph too. So a paragraph begins at the start of the sequence or after such
 * a token, and ends with the next such token; its text is the decoded text of its own
 * tokens. Special tokens, eos, bos and pad belong to no paragraph and end the one
 * before them. A sequence can be cut only between tokens; with this definition no two
 * paragraphs share a token.
 *
 * Words are those of shingle.h. They are found in each paragraph separately, so no word
 * begins in one paragraph and ends in the next. The same holds for ids as words
 * (SLU_UNIT_TOKEN).
 *
 * An n-gram's hash is a polynomial modulo 2^64 over its words' hashes, mixed with their
 * number. It depends only on the words, and its constants are part of the format of
 * n-gram indexes.
 *
 * Thread safety: a finder is read-only once made; a slu_paras belongs to one thread.
 */
#ifndef SLU_DEDUP_NGRAMS_TEXT_H
#define SLU_DEDUP_NGRAMS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/dedup/near/shingle.h"
#include "lib/stream/batch.h"

SLU_BEGIN_DECLS

struct slu_para {
    uint64_t tok, n_tok;   /* counted from the sequence's first token */
    uint64_t word, n_word; /* in slu_paras.words */
};

/* Zero before use. */
struct slu_paras {
    struct slu_para *para; /* owned, in order, none empty of tokens */
    size_t n, cap;
    struct slu_hashes words; /* of all paragraphs, in order */
    struct slu_buf plain;    /* private, as the next */
    struct slu_buf trained;
};
void slu_paras_release(struct slu_paras *p);
/* As slu_hashes_trim. */
void slu_paras_trim(struct slu_paras *p);

struct slu_paras_finder;

/* As slu_shingler_cfg; n is ignored. `whole`: a sequence is one paragraph, and special
 * tokens within have no text. Without `whole` a vocabulary is required for every unit:
 * SLU_E_MISMATCH if it is missing. `trained`: words are those of a paragraph's tokens
 * that are trained on; the other tokens have no text, but end paragraphs as ever. */
SLU_MUST_USE int slu_paras_finder_new(struct slu_paras_finder **f,
                                      const struct slu_shingler_cfg *cfg, bool whole,
                                      bool trained, struct slu_err *err);
/* NULL is legal. */
void slu_paras_finder_free(struct slu_paras_finder *f);

/* *out becomes the paragraphs of sequence q of b. SLU_E_FORMAT for an id that is not in
 * the vocabulary. */
SLU_MUST_USE int slu_paras_find(const struct slu_paras_finder *f,
                                const struct slu_batch *b, const struct slu_seq *q,
                                struct slu_paras *out, struct slu_err *err);

/* Makes n-grams of n words each; n 0: one n-gram of all words. */
struct slu_ngram_maker {
    uint64_t n, top; /* top: the factor of the first of n words */
};
struct slu_ngram_maker slu_ngram_maker(uint64_t n);

/* gram[0 … *) becomes the n-grams of word[0 … n_word) in order. Returns their number:
 * n_word - n + 1; 1 if there are fewer than n words; 0 if there are none. gram has room
 * for n_word. */
size_t slu_ngrams_of(const struct slu_ngram_maker *m, const uint64_t *word,
                     size_t n_word, uint64_t *gram);

SLU_END_DECLS

#endif
