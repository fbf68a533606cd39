/* text.h - white space, words and sentences of a text that is valid UTF-8, for the rules
 * of rules.h.
 *
 * White space is what Python's str.isspace says: White_Space, and U+001C to U+001F.
 *
 * Words. White space separates them. Within a run without white space,
 *   - a mark, a character of the general categories P and S (Unicode 16), is a word
 *     together with the equal marks that follow: "...", "--", "(";
 *   - but a single mark between two characters of a word is part of the word, if it is of
 *     the categories Pc, Pd or Po and below U+3000, or U+2019: "don't", "3.14",
 *     "and/or", "well-known";
 *   - a character of a script that is written without spaces (Han, kana, Thai, ...;
 *     UNI_SIGN and UNI_CONSONANT in lib/token/unicode.h) is a word together with the
 *     characters that join it (UAX #29);
 *   - all other characters in a row are a word.
 *
 * Sentences. A sentence ends behind terminal marks (".", "?", "!" and those of
 * Sentence_Terminal) and the quotes and brackets that follow these, if white space comes
 * next, or nothing, or if the last of the marks is at or above U+3000. It does not end
 * behind a single "." if a lower-case letter comes next. White space belongs to the
 * sentence in front of it.
 *
 * All functions are pure.
 */
#ifndef SLU_FILTER_TEXT_H
#define SLU_FILTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/token/unicode.h"

SLU_BEGIN_DECLS

/* What a character is; none of the first three: part of a word. */
enum slu_char {
    SLU_CHAR_SPACE = 1,
    SLU_CHAR_MARK = 2,
    SLU_CHAR_SIGN = 4,   /* a word of its own */
    SLU_CHAR_INNER = 8,  /* a mark that words can have inside */
    SLU_CHAR_ALPHA = 16, /* a letter, as str.isalpha says */
    SLU_CHAR_SOLID = 32, /* not in datatrove's PUNCTUATION_SET */
};
#define SLU_CHAR_CUTS (SLU_CHAR_SPACE | SLU_CHAR_MARK | SLU_CHAR_SIGN)

extern const uint8_t slu_char_ascii[128];
/* The same of other characters. */
unsigned slu_char_wide(uint32_t c);
/* Of the character at p, which has *len bytes. */
static inline unsigned slu_char_at(const uint8_t *p, unsigned *len)
{
    *len = 1;
    return *p < 0x80 ? slu_char_ascii[*p] : slu_char_wide(uni_decode(p, len));
}
/* Whether c ends sentences: datatrove's TERMINAL_PUNCTUATION. */
bool slu_char_ends(uint32_t c);

/* Moves the two ends of p[0, *n) to the first and behind the last character that is not
 * white space; returns the new p. */
const uint8_t *slu_text_strip(const uint8_t *p, size_t *n);
/* The last character of p[0, n), n > 0. */
uint32_t slu_text_last(const uint8_t *p, size_t n);
/* Number of characters. */
size_t slu_text_chars(const uint8_t *p, size_t n);
/* Number of bytes before the next line break of str.splitlines, n if there is none;
 * *skip: bytes of the break. */
size_t slu_text_line(const uint8_t *p, size_t n, size_t *skip);

struct slu_word {
    const uint8_t *p;
    size_t n_byte, n_char;
    unsigned is; /* SLU_CHAR_ALPHA, _SOLID: one of its characters is */
};
/* Finds the next word of *p up to end, and moves *p behind it. False: there is none. */
bool slu_word_next(const uint8_t **p, const uint8_t *end, struct slu_word *w);

/* Length of the first sentence in bytes; n > 0. */
size_t slu_sentence(const uint8_t *p, size_t n);

SLU_END_DECLS

#endif
