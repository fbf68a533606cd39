/* shingle_cut.h - words out of bytes, as shingle.h defines them; shingle.c's own.
 *
 * A word's hash is a polynomial over its bytes modulo 2^61-1. 0 stands for no
 * word.
 */
#ifndef SLU_DEDUP_SHINGLE_CUT_H
#define SLU_DEDUP_SHINGLE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
/* A constant without a pattern, of pi. */
#define WORD_BASE UINT64_C(0x043F6A8885A308D3)

/* a * (b8 / 8) + c mod PRIME, not quite reduced: a and the result are below 2^62, b8
 * is a multiple of 8 below 2^64, so that the product's upper word is its quotient by
 * 2^61, and c is below 2^61. */
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

/* A byte behind a word. Bytes count from 1, so that no word hashes as a longer one
 * that begins with zeros. */
static inline uint64_t add_byte(uint64_t word, uint8_t byte)
{
    return mul_add(word, WORD_BASE << 3, byte + UINT64_C(1));
}

/* Words as they are found: bytes in, hashes out. */
struct slu_words {
    uint64_t *hash;
    size_t n;
    uint64_t open;   /* hash of the word so far; 0: there is none */
    bool chars;      /* each character is a word */
    bool sign;       /* the open word is a grapheme */
    bool prepends;   /* its last character goes with the next one */
    size_t n_sign;   /* words that are a grapheme */
    size_t n_byte;   /* hashed */
    uint8_t wait[4]; /* bytes of a character that is not complete */
    unsigned n_wait, len_wait;
};

static inline void slu_words_end(struct slu_words *w)
{
    w->hash[w->n] = w->open;
    w->n += w->open != 0;
    w->open = 0;
    w->sign = w->prepends = false;
}

/* The next bytes of the text, which may end within a character: it waits. hash has room
 * for n words more. */
void slu_words_put(struct slu_words *w, const uint8_t *p, size_t n);
/* Bytes that wait are no UTF-8 after all. */
void slu_words_give_up(struct slu_words *w);

/* Whether the character that p begins with goes with a grapheme that is before it, or
 * is a word behind one. */
bool slu_words_follow(const uint8_t *p);

/* Whether p is whole characters that are white space, then a word, then white space,
 * each of which may be missing, and no word of one grapheme: *front and *back say
 * which, *text and *n_text is the word. What is beside p changes nothing in it. */
bool slu_words_plain(const uint8_t *p, size_t n, bool *front, bool *back,
                     const uint8_t **text, size_t *n_text);

#endif
