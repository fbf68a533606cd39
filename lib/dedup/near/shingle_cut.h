/* shingle_cut.h - makes words of bytes, as shingle.h defines them; for shingle.c only.
 *
 * A word's hash is a polynomial over its bytes modulo 2^61-1; 0 means no word.
 */
#ifndef SLU_DEDUP_SHINGLE_CUT_H
#define SLU_DEDUP_SHINGLE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
/* A constant without a pattern, of pi. */
#define WORD_BASE UINT64_C(0x043F6A8885A308D3)

/* a * (b8 / 8) + c mod PRIME, not fully reduced. a and the result are below 2^62, b8 is
 * a multiple of 8 below 2^64, so the upper word of the product is its quotient by 2^61,
 * and c is below 2^61. */
static inline uint64_t mul_add(uint64_t a, uint64_t b8, uint64_t c)
{
    unsigned __int128 x = (unsigned __int128)a * b8;
    uint64_t s = (uint64_t)(x >> 64) + ((uint64_t)x >> 3) + c;

    return (s & PRIME) + (s >> 61);
}

static inline uint64_t reduce(uint64_t a)
{
    return a >= PRIME ? a - PRIME : a;
}

/* Appends a byte to a word. Bytes count from 1, so that a word never has the hash of a
 * longer one that begins with zeros. */
static inline uint64_t add_byte(uint64_t word, uint8_t byte)
{
    return mul_add(word, WORD_BASE << 3, byte + UINT64_C(1));
}

/* Finds words: takes bytes, gives hashes. */
struct slu_words {
    uint64_t *hash;
    size_t n;
    uint64_t open;   /* hash of the word so far; 0: no open word */
    bool chars;      /* each character is a word */
    bool sign;       /* the open word is a grapheme */
    bool prepends;   /* its last character joins the next one */
    bool links;      /* a consonant that follows joins the open grapheme */
    size_t n_sign;   /* number of words that are a grapheme */
    size_t n_byte;   /* bytes hashed */
    uint8_t wait[4]; /* bytes of an incomplete character */
    unsigned n_wait, len_wait;
};

static inline void slu_words_end(struct slu_words *w)
{
    w->hash[w->n] = w->open;
    w->n += w->open != 0;
    w->open = 0;
    w->sign = w->prepends = w->links = false;
}

/* Takes the next bytes of the text. They may end within a character, which then waits.
 * hash must have room for n more words. */
void slu_words_put(struct slu_words *w, const uint8_t *p, size_t n);
/* Takes a character; none waits. */
void slu_words_put_char(struct slu_words *w, uint32_t c);
/* Takes each of the waiting bytes as a character, since they are not UTF-8. */
void slu_words_give_up(struct slu_words *w);

/* Whether the open word is a grapheme, and the first character of p can join it, or is
 * punctuation. */
bool slu_words_follow(const struct slu_words *w, const uint8_t *p);

/* Whether p has only whole characters: white space, then a word, then white space, each
 * of which may be missing, and no word of one grapheme. *front and *back: which white
 * space there is; *text and *n_text: the word. Text beside p never cuts it. */
bool slu_words_plain(const uint8_t *p, size_t n, bool *front, bool *back,
                     const uint8_t **text, size_t *n_text);

#endif
