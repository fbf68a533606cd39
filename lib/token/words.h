/* words.h - the word cache: pieces that were encoded before, and their ids.
 *
 * Pieces of at most 15 bytes are kept whole, so a hit is exact: those in use in the
 * *hot* table, which fits the second-level cache and has one place for a piece, and all
 * of them in the *wide* table, sets of three, a line each: keys, and for each a word,
 * the id or where the ids are. Pieces of 16 to 255 bytes are in the
 * *far* table, sets of four, found by a hash and compared. An arena has their bytes,
 * and the ids of pieces that became more than one. What is in the cache has no say in
 * the ids.
 *
 * Each encoder has a hot table; encoders that share a cache share all else. What is in
 * a shared table never changes, so it is read without a lock; what is new is added
 * under one, and published by the last word that is written. A table that is full grows
 * where it is if there is one encoder, or is replaced by one twice as large; at the
 * limit, when the arena or the tables are full, all starts anew (another generation).
 * Tables that were replaced are kept until no encoder looks at them: each says which
 * *view* of the cache it uses.
 *
 * Thread safety: a struct words belongs to one thread; what they share looks after
 * itself.
 */
#ifndef SLU_TOK_WORDS_H
#define SLU_TOK_WORDS_H

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/token/tok.h"

#define WORD_SHORT 15  /* bytes of a short piece */
#define WORD_LONG  255 /* and of a long one */
#define WORD_IDS   4   /* ids of a short one */

/* A piece, zeros, and in the last byte its length; longer pieces have a key that is
 * never stored. */
struct word_key {
    uint64_t a, b;
};

/* What is known of a piece: the last byte of the key has the number of ids less 1, or
 * WORD_MANY, above the length. Where there are more than WORD_IDS, id[] is as below. */
struct word_slot {
    struct word_key key;
    uint32_t id[WORD_IDS];
};
/* Where more ids are: in the arena (0), at a byte, or among ids of the caller's (1), at
 * one of them; and how many. */
enum { MANY_OFF, MANY_N, MANY_APART };

/* Keys have numbers of ids, as in a word_slot. id: of each its id; or the byte in the
 * arena where the ids are, if they are more than WORD_IDS behind their number. */
#define WORD_SET 3
struct word_set {
    struct word_key key[WORD_SET];
    uint32_t id[WORD_SET], none;
};

#define WORD_FAR_SET 4
struct word_far {
    uint64_t hash; /* published last; 0: empty */
    uint32_t off;  /* of the bytes, the ids behind them; in the arena */
    uint16_t n_byte, n_id;
};

/* One state of what is shared. Views of one generation have the arena in common, and
 * tables that were not replaced. */
struct word_view {
    struct word_set *wide;
    struct word_far *far;
    const uint8_t *text;         /* of the arena */
    size_t wide_mask;            /* of the last byte of the hash first: the set */
    size_t far_mask;             /* of the first place of a set */
    uint64_t generation;         /* grows when all starts anew */
    struct word_block *block[3]; /* what the pointers point into */
    struct word_view *retired;   /* the next one that waits for its last user */
};

struct words_shared;

/* The hot table has pieces of at most 12 bytes. Of the key's last four bytes three are
 * free then: they have the id of a piece that is one, and the last byte has the number
 * of ids as in a word_slot. Where there are more, they are at the same place of another
 * array, as in a word_slot. */
#define HOT_BYTES    12
#define HOT_BITS     15
#define HOT_KEY      UINT64_C(0x0F000000FFFFFFFF)
#define HOT_ID_SHIFT 32

struct words {
    struct word_key *hot; /* NULL: no cache */
    uint32_t (*hot_ids)[WORD_IDS];
    uint64_t generation;    /* of the view that the hot table was filled from */
    struct word_view *view; /* in use */
    /* Of words_judge. By length: how many were looked for in the shared tables of late,
     * and how many of those were new. */
    uint32_t n_look, n_new, look_of[WORD_SHORT + 2], new_of[WORD_SHORT + 2];
    uint32_t hopeless;         /* a bit a length: hardly any of these is ever found */
    uint32_t n_piece;          /* before this batch: decides which are in a sample */
    struct word_view **newest; /* the view that others have made of what is shared */
    struct words_shared *shared;
    struct words *next; /* of those that share */
};

/* Up to about n_byte bytes of everything; 0, or too little for anything: no cache. w
 * does not move while it is in use. */
SLU_MUST_USE int words_init(struct words *w, uint64_t n_byte, struct slu_err *err);
/* Shares with `other`, whatever is released first. */
SLU_MUST_USE int words_share(struct words *w, struct words *other, struct slu_err *err);
void words_release(struct words *w);

void words_renew(struct words *w);

/* Before a batch: the newest view, which stays until the next call. */
static inline void words_begin(struct words *w)
{
    if (__atomic_load_n(w->newest, __ATOMIC_ACQUIRE) != w->view)
        words_renew(w);
}

/* Of each WORD_PERIOD pieces so many are a sample. */
#define WORD_SAMPLE 256
#define WORD_PERIOD (8 * WORD_SAMPLE)

/* How many pieces are looked for in the same way from piece i of the batch on; *skip:
 * the lengths among them that are not. */
static inline size_t words_alike(const struct words *w, size_t i, uint32_t *skip)
{
    const uint32_t at = (w->n_piece + (uint32_t)i) % WORD_PERIOD;

    *skip = at < WORD_SAMPLE ? 0 : w->hopeless;
    return !w->hopeless       ? SIZE_MAX
           : at < WORD_SAMPLE ? WORD_SAMPLE - at
                              : WORD_PERIOD - at;
}

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

#define WORD_HASH_A UINT64_C(0x9E3779B97F4A7C15)
#define WORD_HASH_B UINT64_C(0xD1B54A32D192ED03)
static inline uint64_t word_hash(struct word_key k)
{
    return k.a * WORD_HASH_A + k.b * WORD_HASH_B;
}

static inline uint64_t word_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint32_t word_hot_place(uint64_t hash)
{
    return (uint32_t)(hash >> (64 - HOT_BITS));
}

/* k is any key. */
static inline bool hot_is(struct word_key slot, struct word_key k)
{
    return ((slot.a ^ k.a) | ((slot.b & HOT_KEY) ^ k.b)) == 0;
}

/* Keeps a piece of up to HOT_BYTES bytes; s is its slot, whose ids are in it or in the
 * arena. */
static inline void word_hot_put(struct words *w, uint64_t hash,
                                const struct word_slot *s)
{
    const uint32_t place = word_hot_place(hash);
    const uint64_t is_one = s->key.b >> WORD_COUNT_SHIFT ? 0 : UINT64_MAX;

    w->hot[place] = (struct word_key){
        s->key.a, s->key.b | ((uint64_t)s->id[0] << HOT_ID_SHIFT & is_one)};
    memcpy(w->hot_ids[place], s->id, sizeof s->id);
}

/* The set of a hash in the wide table. The last byte depends on most of the piece. */
static inline struct word_set *word_set(const struct word_view *v, uint64_t hash)
{
    return v->wide + (__builtin_bswap64(hash) & v->wide_mask);
}

static inline unsigned word_count(const struct word_slot *s)
{
    return (unsigned)(s->key.b >> WORD_COUNT_SHIFT);
}

/* The bits of n ids in a key. */
static inline uint64_t word_count_bits(size_t n)
{
    return (uint64_t)(n <= WORD_MANY ? n - 1 : WORD_MANY) << WORD_COUNT_SHIFT;
}

/* The other of two sets that are neighbours: it has what there is no room for in a set
 * that is full. */
static inline struct word_set *word_beside(const struct word_set *set)
{
    return (struct word_set *)((uintptr_t)set ^ sizeof *set);
}

static inline bool word_set_is_full(const struct word_set *set)
{
    return __atomic_load_n(&set->key[WORD_SET - 1].b, __ATOMIC_ACQUIRE) != 0;
}

/* A bit for the place that a short piece has in a set, or 0. Others may just be
 * writing there: the last word of a key is read first, and what is read behind one that
 * differs has no say. Which of the three it is cannot be predicted, so there is no
 * branch. */
static inline unsigned word_find(const struct word_set *set, struct word_key k)
{
    unsigned is = 0;

    for (unsigned i = 0; i < WORD_SET; i++) {
        uint64_t b = __atomic_load_n(&set->key[i].b, __ATOMIC_ACQUIRE),
                 a = __atomic_load_n(&set->key[i].a, __ATOMIC_RELAXED);
        is |= (unsigned)((((b & ~WORD_COUNT_MASK) ^ k.b) | (a ^ k.a)) == 0) << i;
    }
    return is;
}

/* Where the ids of piece i of a set are in the arena; if it is one, 16 bytes of the
 * caller's own. What stands at i may be anything, and is then not to be read. */
static inline const uint8_t *word_ids(const struct words *w, const struct word_set *set,
                                      unsigned i)
{
    const uint64_t b = __atomic_load_n(&set->key[i].b, __ATOMIC_RELAXED);
    const uint32_t at = __atomic_load_n(&set->id[i], __ATOMIC_RELAXED);
    const uintptr_t one = -(uintptr_t)(b >> WORD_COUNT_SHIFT == 0),
                    there = (uintptr_t)w->view->text + at;

    return (const uint8_t *)(((uintptr_t)w->hot_ids & one) | (there & ~one));
}

/* For what copies a fixed number of ids, whatever their number: behind a piece's own it
 * reads what another thread may be writing, and leaves it unused. */
#define WORD_READS_PAST __attribute__((no_sanitize_thread))

/* The slot of piece i of a set, without a branch. */
WORD_READS_PAST static inline struct word_slot
word_at(const struct words *w, const struct word_set *set, unsigned i)
{
    struct word_slot s = {set->key[i], {0}};
    const uint32_t count = word_count(&s), one = -(uint32_t)(count == 0),
                   many = -(uint32_t)(count >= WORD_IDS);

    memcpy(s.id, word_ids(w, set, i), sizeof s.id);
    const uint32_t n = s.id[0], off = set->id[i] + (uint32_t)sizeof n;
    s.id[MANY_OFF] = (n & ~(one | many)) | (set->id[i] & one) | (off & many);
    s.id[MANY_N] = (s.id[MANY_N] & ~many) | (n & many);
    s.id[MANY_APART] &= ~many;
    return s;
}

/* A piece of n bytes was not in the hot table; or nowhere. */
static inline void word_looked(struct words *w, size_t n)
{
    w->look_of[n <= WORD_SHORT ? n : WORD_SHORT + 1]++;
}
static inline void word_was_new(struct words *w, size_t n)
{
    w->new_of[n <= WORD_SHORT ? n : WORD_SHORT + 1]++;
}

/* After a batch of k pieces: of n_look that were not in the hot table, n_new were
 * nowhere. Text that hardly repeats anything (base64, hashes) would fill the tables for
 * nothing, and each look at them is a miss of the processor's caches. So lengths of
 * which nearly nothing is found are not looked for; but in a sample of the pieces all
 * are, and of such text only what is new in few batches is kept. What does come again
 * is then kept a little later. While the tables are small all text is new and says
 * nothing. False: the new pieces need not be kept. */
bool words_judge(struct words *w, size_t k, size_t n_look, size_t n_new);

/* Ids of a piece that the cache does not know. */
struct word_new {
    const uint8_t *p;
    size_t n;            /* bytes */
    struct word_key key; /* of a short piece */
    uint64_t hash;
    const uint32_t *id;
    size_t n_id;
};
/* Keeps them if that can be done. */
void words_put(struct words *w, const struct word_new *x, size_t n);

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

static inline struct word_far *word_far_set(const struct word_view *v, uint64_t hash)
{
    return v->far + (hash & v->far_mask);
}

/* Where a long piece is, if it is known, or NULL. Another one can have its hash. */
static inline const struct word_far *word_far_find(const struct word_view *v,
                                                   uint64_t hash)
{
    const struct word_far *f = word_far_set(v, hash);
    unsigned is = 0;

    for (unsigned i = 0; i < WORD_FAR_SET; i++)
        is |= (unsigned)(__atomic_load_n(&f[i].hash, __ATOMIC_ACQUIRE) == hash) << i;
    return is ? f + __builtin_ctz(is) : NULL;
}

/* Makes *s, without a key, the slot of a long piece of n bytes; false where
 * it is not known. */
bool word_find_long(const struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                    struct word_slot *s);

#endif
