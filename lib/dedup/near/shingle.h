/* shingle.h - a sequence's n-grams as 64-bit hashes, and sets of them.
 *
 * Unit word. The ids are decoded by the stream's vocabulary frame, the bytes become
 * lower case (each code point by itself, Unicode 17 full mapping without context),
 * White_Space separates words, n words in a row are an n-gram. Special tokens and eos,
 * bos and pad stand for nothing: what is before and behind them is joined. Bytes that
 * are no UTF-8 are characters of a word, each by itself. A sequence of 1 … n-1 words
 * has one n-gram, of all its words; one without words has none. So the n-grams depend
 * on the bytes that the ids decode to, not on how they were cut into tokens. For
 * byte-level vocabularies those are the bytes of the text; where a tokenizer has a
 * normalizer, or changes the text otherwise, they are those of what it made of it.
 *
 * Unit token. Ids instead of words, again without the special ones.
 *
 * Hashes. The characters of a word are never looked at for most tokens: a word's hash
 * is a polynomial over its bytes modulo 2^61-1 (Karp and Rabin 1987), of which each
 * token's part and factor are in a table. An n-gram's is a polynomial modulo 2^64 over
 * its words' scrambled hashes, scrambled again. Words, or n-grams, that share a hash
 * are taken for equal; two of L bytes do by 2^-61 L at most over the choice of the
 * base, which is a constant, so texts can be made that collide. Constants are part of
 * the meaning: hashes may be stored and compared between hosts.
 *
 * Thread safety: a slu_shingler is read-only once made, shared by threads; a
 * slu_hashes belongs to one thread.
 */
#ifndef SLU_DEDUP_SHINGLE_H
#define SLU_DEDUP_SHINGLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

enum slu_unit { SLU_UNIT_WORD, SLU_UNIT_TOKEN };

#define SLU_SHINGLE_MAX_N 1024

struct slu_shingler_cfg {
    enum slu_unit unit;
    unsigned n; /* words or ids of an n-gram: 1 … SLU_SHINGLE_MAX_N */
    /* Borrowed until slu_shingler_new returns. NULL is legal for SLU_UNIT_TOKEN: then
     * eos, bos and pad are the only special ids. */
    const struct slu_vocab_table *vocab;
    unsigned tok_bytes;     /* 2 or 4 */
    uint64_t eos, bos, pad; /* SLU_NO_TOKEN where there is none */
};

struct slu_shingler;

/* SLU_E_USAGE for an n out of range; SLU_E_MISMATCH for words without a vocabulary. */
SLU_MUST_USE int slu_shingler_new(struct slu_shingler **s,
                                  const struct slu_shingler_cfg *cfg,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_shingler_free(struct slu_shingler *s);

/* A growable array of hashes; zero before use. */
struct slu_hashes {
    uint64_t *hash; /* owned */
    size_t n, cap;
    uint64_t *spare; /* owned; for sorting */
    size_t cap_spare;
};
void slu_hashes_release(struct slu_hashes *h);

/* *out becomes the hashes of the n-grams of tok[0 … n_tok), in text order, repetitions
 * included. SLU_E_FORMAT for an id that the vocabulary has not. */
SLU_MUST_USE int slu_shingle(const struct slu_shingler *s, const void *tok,
                             uint64_t n_tok, struct slu_hashes *out,
                             struct slu_err *err);

/* The same of words alone (n is 1), behind those that *out has. */
SLU_MUST_USE int slu_shingle_add(const struct slu_shingler *s, const void *tok,
                                 uint64_t n_tok, struct slu_hashes *out,
                                 struct slu_err *err);
/* Frees the memory where it is more than ordinary documents need, and forgets what was
 * in it. */
void slu_hashes_trim(struct slu_hashes *h);

/* ---- sets: ascending hashes, each once; shingle_set.c ---- */

/* Sorts h's hashes and drops repetitions. */
SLU_MUST_USE int slu_hashes_to_set(struct slu_hashes *h, struct slu_err *err);

/* The same of an array; the number that is left. Fast for hashes whose high bits are
 * uniform, and n log n steps whatever they are. `spare` has room for n hashes; what it
 * had is lost. */
size_t slu_set_make(uint64_t *hash, size_t n, uint64_t *spare);

/* What equal sets share: XXH3-128 of the hashes in order, little-endian. Equal sets
 * have equal signatures. */
struct slu_u128 slu_set_hash128(const uint64_t *hash, size_t n);

/* The number of common hashes if it is at least `need`; else any number below `need`,
 * found out early. need 0: always exact. */
size_t slu_sets_intersect(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b,
                          size_t need);

/* The least number of common hashes with which sets of n_a and n_b elements have
 * J = common / (n_a + n_b - common) >= num / den; den > 0, num <= den <= 10^9. More
 * than both sizes where no number suffices; 0 where num is 0. */
size_t slu_sets_need(size_t n_a, size_t n_b, uint64_t num, uint64_t den);

SLU_END_DECLS

#endif
