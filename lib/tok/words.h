/* words.h - the word cache: pieces that were encoded before, and their ids.
 *
 * Pieces of at most 15 bytes are kept whole, so a hit is exact: those in use in the
 * *hot* table, which fits the second-level cache and has one place for a piece, and all
 * of them in the *wide* table, sets of two slots, a line each. Pieces of 16 to 255
 * bytes are in the *far* table, found by a hash and compared. An arena has their bytes,
 * and the ids of pieces that became more than 4; when it is full, what points into it
 * is forgotten. The tables grow while there is something new to keep, to the limit that
 * they were given. What is in the cache has no say in the ids.
 *
 * Thread safety: none; one cache an encoder.
 */
#ifndef SLU_TOK_WORDS_H
#define SLU_TOK_WORDS_H

#include "lib/err.h"
#include "lib/le.h"
#include "lib/tok/tok.h"

#define WORD_SHORT 15  /* bytes of a short piece */
#define WORD_LONG  255 /* and of a long one */
#define WORD_IDS   4   /* ids of a short one */

/* A piece, zeros, and in the last byte its length; longer pieces have a key that is
 * never stored. */
struct word_key {
    uint64_t a, b;
};

/* In memory the last byte of the key has the number of ids less 1 above the length; or
 * WORD_MANY, and id[] is as below. */
struct word_slot {
    struct word_key key;
    uint32_t id[WORD_IDS];
};
/* Where the ids of a slot with WORD_MANY are: byte offset, number, the arena's
 * generation; 0 for the arena, 1 for memory of the caller's. */
enum { MANY_OFF, MANY_N, MANY_GENERATION, MANY_APART };

struct word_far {
    uint64_t hash;
    uint32_t off; /* of the bytes, the ids behind them; in the arena */
    uint16_t n_byte, n_id;
};

/* A table of a power of two of things in zeroed memory. */
struct word_table {
    void *p;
    size_t n_byte, most_byte;
    size_t n_put; /* since it grew last */
};

struct words {
    struct word_slot *hot; /* NULL: no cache */
    struct word_slot *wide_slot;
    unsigned hot_shift, wide_shift;     /* hash >> shift is the place, or the set */
    struct word_table wide, far, arena; /* arena: n_put is bytes used */
    uint32_t generation; /* counts how often the arena was forgotten: what slots of
                            before say of it is void, and the hot table is empty */
};

/* Up to about n_byte bytes of everything; 0, or too little for anything: no cache. */
SLU_MUST_USE int words_init(struct words *w, uint64_t n_byte, struct slu_err *err);
void words_release(struct words *w);

#define WORD_LEN_SHIFT   56
#define WORD_COUNT_SHIFT 60
#define WORD_COUNT_MASK  (UINT64_C(15) << WORD_COUNT_SHIFT)
#define WORD_MANY        15

extern const struct word_key word_mask[17];

/* The key of n bytes at p, of which 16 can be read. */
static inline struct word_key word_key(const uint8_t *p, uint32_t n)
{
    uint32_t k = n < 16 ? n : 16;

    return (struct word_key){slu_le64(p) & word_mask[k].a,
                             (slu_le64(p + 8) & word_mask[k].b) |
                                 (uint64_t)k << WORD_LEN_SHIFT};
}

/* The same where only n bytes can be read. */
static inline struct word_key word_key_at_end(const uint8_t *p, uint32_t n)
{
    uint8_t copy[16] = {0};

    memcpy(copy, p, n < 16 ? n : 16);
    return word_key(copy, n);
}

static inline uint64_t word_hash(struct word_key k)
{
    return k.a * UINT64_C(0x9E3779B97F4A7C15) + k.b * UINT64_C(0xD1B54A32D192ED03);
}

static inline uint64_t word_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline struct word_slot *word_hot(const struct words *w, uint64_t hash)
{
    return w->hot + (hash >> w->hot_shift);
}

/* The set of a hash in the wide table: two slots. */
static inline struct word_slot *word_set(const struct words *w, uint64_t hash)
{
    return w->wide_slot + 2 * (hash >> w->wide_shift);
}

static inline bool word_is(const struct word_slot *s, struct word_key k)
{
    return ((s->key.a ^ k.a) | ((s->key.b & ~WORD_COUNT_MASK) ^ k.b)) == 0;
}

static inline unsigned word_count(const struct word_slot *s)
{
    return (unsigned)(s->key.b >> WORD_COUNT_SHIFT);
}

/* The slot of a short piece in the wide table, or NULL. */
static inline const struct word_slot *word_find(const struct words *w,
                                                struct word_key k, uint64_t hash)
{
    const struct word_slot *s = word_set(w, hash);

    if (!word_is(s, k) && !word_is(++s, k))
        return NULL;
    return word_count(s) != WORD_MANY || s->id[MANY_GENERATION] == w->generation ? s
                                                                                 : NULL;
}

/* Keeps the n ids of a short piece. Returns its slot, valid until the next call. */
const struct word_slot *word_put(struct words *w, struct word_key k, uint64_t hash,
                                 const uint32_t *id, size_t n);

/* Of 16 bytes or more. */
static inline uint64_t word_hash_long(const uint8_t *p, size_t n)
{
    uint64_t h = n * UINT64_C(0x9E3779B97F4A7C15);

    for (size_t i = 0; i + 16 < n; i += 16)
        h = word_mix(slu_le64(p + i) ^ h,
                     slu_le64(p + i + 8) ^ UINT64_C(0xD1B54A32D192ED03));
    return word_mix(slu_le64(p + n - 16) ^ h,
                    slu_le64(p + n - 8) ^ UINT64_C(0xA0761D6478BD642F));
}

static inline struct word_far *word_far_set(const struct words *w, uint64_t hash)
{
    size_t n = w->far.n_byte / sizeof(struct word_far);

    return (struct word_far *)w->far.p + (hash & (n - 2));
}

static inline uint8_t *word_arena(const struct words *w, uint32_t off)
{
    return (uint8_t *)w->arena.p + off;
}

/* Makes *s, with WORD_MANY and no key, the slot of a long piece of n bytes; false where
 * it is not known. */
bool word_find_long(const struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                    struct word_slot *s);
/* Keeps its ids. False, and no *s, where there is no room for them. */
bool word_put_long(struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                   const uint32_t *id, size_t n_id, struct word_slot *s);

#endif
