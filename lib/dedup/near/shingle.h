/* shingle.h - a sequence's n-grams as 64-bit hashes, and sets of them.
 *
 * Unit word. The ids are decoded with the stream's vocabulary frame, the text is cut
 * into words, and the words become lower case (each code point by itself, Unicode 17
 * full mapping without context). n consecutive words are an n-gram. White_Space
 * separates words. In scripts that are written without spaces each extended grapheme
 * cluster (UAX #29, Unicode 18) is a word; the text between these and white space is
 * a word too. In detail:
 *   - A grapheme is a word if its first character belongs to such a script: Han,
 *     Hiragana, Katakana, Bopomofo, Yi, Nushu, Tangut, Jurchen, Seal; Thai, Lao, Khmer,
 *     Myanmar, Tibetan, Ahom, Tai Le, New Tai Lue, Tai Tham, Tai Viet; Balinese, Batak,
 *     Brahmi, Cham, Dives Akuru, Grantha, Gurung Khema, Javanese, Kawi, Makasar,
 *     Tulu-Tigalari. A character belongs to them if its Script is one of them, or all of
 *     its Script_Extensions are, it is no emoji, and it joins neither side. They are the
 *     scripts whose letters have Line_Break SA, AK, AS, CJ or ID (UAX #14), and Tibetan,
 *     which marks syllables.
 *   - Any other grapheme ends before such a character. UAX #29 joins both if a linker is
 *     between them (rule GB9c), for example one of Devanagari before a Khmer consonant.
 *   - Punctuation (General_Category P, Unicode 16, no emoji) after such a grapheme is
 *     also such a grapheme.
 * Hangul is not one of these scripts: it is written with spaces.
 *
 * Special tokens, eos, bos and pad have no text: the text before and after them is
 * joined. Each byte that is not UTF-8 is a character of a word. A sequence of 1 … n-1
 * words has one n-gram, of all its words; a sequence without words has none. So the
 * n-grams depend on the bytes that the ids decode to, not on their division into tokens.
 * For byte-level vocabularies these are the bytes of the text; for a tokenizer that
 * changes the text, for example by a normalizer, the bytes of the changed text.
 *
 * Unit char. Each code point is a word, whatever its script, except for white space.
 *
 * Unit token. Ids take the place of words, again without the special ids.
 *
 * Hashes. Most tokens are hashed without reading their characters: a word's hash is a
 * polynomial over its bytes modulo 2^61-1 (Karp and Rabin 1987), and a table has each
 * token's term and factor. The hash of an n-gram is a polynomial modulo 2^64 over the
 * scrambled hashes of its words, scrambled again. Words, or n-grams, with equal hashes
 * count as equal. Two words of L bytes have equal hashes with probability at most 2^-61
 * L over the choice of the base; the base is a constant, so colliding texts can be
 * constructed. The constants are part of the format: hashes may be stored, and compared
 * on other hosts.
 *
 * Thread safety: a slu_shingler is read-only after slu_shingler_new and may be shared
 * by threads; a slu_hashes belongs to one thread.
 */
#ifndef SLU_DEDUP_SHINGLE_H
#define SLU_DEDUP_SHINGLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

enum slu_unit { SLU_UNIT_WORD, SLU_UNIT_TOKEN, SLU_UNIT_CHAR };

/* The unit in the parameters of work files: its name, and for words the version of the
 * rules above. 0.1.0 wrote "word", and cut at white space only. */
const char *slu_unit_param(enum slu_unit unit);
/* Reads " unit=…" of a file's parameters. SLU_E_MISMATCH, with the path, if the file
 * has words of another version. */
SLU_MUST_USE int slu_unit_of(const char *param, const char *path, enum slu_unit *unit,
                             struct slu_err *err);

#define SLU_SHINGLE_MAX_N 1024

struct slu_shingler_cfg {
    enum slu_unit unit;
    unsigned n; /* words or ids of an n-gram: 1 … SLU_SHINGLE_MAX_N */
    /* A sequence of more words than this and than it has ids is SLU_E_LIMIT; 0: no
     * limit. */
    uint64_t max_word;
    /* Borrowed until slu_shingler_new returns. NULL is legal for SLU_UNIT_TOKEN: then
     * eos, bos and pad are the only special ids. */
    const struct slu_vocab_table *vocab;
    unsigned tok_bytes;     /* 2 or 4 */
    uint64_t eos, bos, pad; /* SLU_NO_TOKEN: the stream has no such id */
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
    size_t n_sign;   /* unit word: words found that are one grapheme of such a script */
    uint64_t *spare; /* owned; for sorting */
    size_t cap_spare;
};
void slu_hashes_release(struct slu_hashes *h);

/* *out becomes the hashes of the n-grams of tok[0 … n_tok), in text order, with
 * repetitions. SLU_E_FORMAT for an id that is not in the vocabulary. */
SLU_MUST_USE int slu_shingle(const struct slu_shingler *s, const void *tok,
                             uint64_t n_tok, struct slu_hashes *out,
                             struct slu_err *err);

/* Appends the hashes of the words that are one character of punctuation, as an n of 1
 * gives them. */
SLU_MUST_USE int slu_shingle_marks(struct slu_hashes *out, struct slu_err *err);

/* For words (n is 1): appends their hashes to those of *out. */
SLU_MUST_USE int slu_shingle_add(const struct slu_shingler *s, const void *tok,
                                 uint64_t n_tok, struct slu_hashes *out,
                                 struct slu_err *err);
/* Frees the memory if it is more than ordinary documents need; the contents are
 * lost. */
void slu_hashes_trim(struct slu_hashes *h);

/* ---- sets: ascending hashes, each once; shingle_set.c ---- */

/* Sorts h's hashes and drops repetitions. */
SLU_MUST_USE int slu_hashes_to_set(struct slu_hashes *h, struct slu_err *err);

/* The same for an array; returns the number that is left. Fast for hashes whose high
 * bits are uniform, and n log n steps for any others. `spare` has room for n hashes;
 * its contents are overwritten. */
size_t slu_set_make(uint64_t *hash, size_t n, uint64_t *spare);

/* A signature of a set, equal for equal sets: XXH3-128 of the hashes in order,
 * little-endian. */
struct slu_u128 slu_set_hash128(const uint64_t *hash, size_t n);

/* The number of common hashes if it is at least `need`; else any number below `need`,
 * which is found early. need 0: always exact. */
size_t slu_sets_intersect(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b,
                          size_t need);

/* The smallest number of common hashes with which sets of n_a and n_b elements have J =
 * common / (n_a + n_b - common) >= num / den; den > 0, num <= den <= 10^9. Larger than
 * both sizes if no number suffices; 0 if num is 0. */
size_t slu_sets_need(size_t n_a, size_t n_b, uint64_t num, uint64_t den);

SLU_END_DECLS

#endif
