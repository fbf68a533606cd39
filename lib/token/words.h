/* words.h - the word cache: pretokens that were encoded before, and their ids.
 *
 * Pretokens of at most 15 bytes are stored whole, so a hit is exact. All of them are in
 * the *wide* table: sets of three, one cache line each, with the keys and for each a
 * word, the id or the place of the ids. The short ones in use are also in the *hot*
 * table, which has one place per pretoken. Pretokens of 16 to 255 bytes are in the *far*
 * table: sets of four, found by a hash and compared. An arena has their bytes, and the
 * ids of pretokens with several. Ids never depend on the contents of the cache.
 *
 * Each encoder has a hot table; encoders that share a cache share all else. Entries of
 * a shared table never change, so they are read without a lock. New ones are added
 * under a lock, and published by the last word that is written. A full table grows in
 * place if there is one encoder; otherwise one twice as large replaces it. When the
 * arena is full, or a table at its limit, all starts anew (another generation). Large
 * tables take only pretokens that come again.
 * Replaced tables are kept until no encoder uses them: each says which *view* of the
 * cache it uses.
 *
 * Thread safety: a struct words belongs to one thread; the shared part has a lock.
 */
#ifndef SLU_TOK_WORDS_H
#define SLU_TOK_WORDS_H

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/token/tok.h"

#define WORD_SHORT 15  /* bytes of a short pretoken, at most */
#define WORD_LONG  255 /* bytes of a long pretoken, at most */
#define WORD_IDS   4   /* ids that a slot stores, at most */

/* The bytes of a pretoken, zeros, and in the last byte its length. Longer pretokens have a
 * key that is never stored. */
struct word_key {
    uint64_t a, b;
};

/* A pretoken and its ids. In the last byte of the key, above the length, is the number of
 * ids less 1, or WORD_MANY. For more than WORD_IDS ids, the enum below has the meaning
 * of id[]. */
struct word_slot {
    struct word_key key;
    uint32_t id[WORD_IDS];
};
/* MANY_N: the number of ids. MANY_APART 0: they are in the arena, from byte MANY_OFF
 * on; 1: among the caller's ids, from index MANY_OFF on. */
enum { MANY_OFF, MANY_N, MANY_APART };

/* Keys have numbers of ids, as in a word_slot. id: the id of a pretoken with one;
 * otherwise the byte of the arena where its ids are, after their number if more than
 * WORD_IDS. */
#define WORD_SET 3
struct word_set {
    struct word_key key[WORD_SET];
    uint32_t id[WORD_SET], none;
};

#define WORD_FAR_SET 4
struct word_far {
    uint64_t hash; /* published last; 0: empty */
    uint32_t off;  /* in the arena: of the bytes, which the ids follow */
    uint16_t n_byte, n_id;
};

/* One state of the shared part. Views of one generation share the arena, and the tables
 * that were not replaced. */
struct word_view {
    struct word_set *wide;
    struct word_far *far;
    const uint8_t *text;         /* of the arena */
    size_t wide_mask;            /* for the set of a hash, see word_set */
    size_t far_mask;             /* for the first place of a hash's set */
    uint64_t generation;         /* grows when all starts anew */
    struct word_block *block[3]; /* memory of the tables and the arena */
    struct word_view *retired;   /* the next view that waits for its last user */
};

struct words_shared;

/* The hot table has pretokens of at most 12 bytes. So three of the key's last four bytes
 * are free: they have the id of a pretoken with one. The last byte has the number of ids,
 * as in a word_slot. If there are several, they are at the same place of another array,
 * as in a word_slot. */
#define HOT_BYTES    12
#define HOT_KEY      UINT64_C(0x0F000000FFFFFFFF)
#define HOT_ID_SHIFT 32

struct words {
    struct word_key *hot; /* NULL: no cache */
    uint32_t (*hot_ids)[WORD_IDS];
    unsigned hot_bits;      /* the table has 1 << hot_bits places */
    uint64_t generation;    /* of the view that the hot table was filled from */
    struct word_view *view; /* in use */
    /* For words_judge: recent look-ups in the shared tables, and the new pretokens among
     * them; in all, and by length. */
    uint32_t n_look, n_new, look_of[WORD_SHORT + 2], new_of[WORD_SHORT + 2];
    uint32_t hopeless;         /* a bit per length that is hardly ever found */
    uint32_t n_pretoken;       /* pretokens before this batch; decides about samples */
    struct word_view **newest; /* the newest view of the shared part */
    struct words_shared *shared;
    struct words *next; /* of those that share the cache */
};

/* Makes a cache of up to about n_byte bytes; none if that is too little. w must not
 * move while it is in use. */
SLU_MUST_USE int words_init(struct words *w, uint64_t n_byte, struct slu_err *err);
/* Makes w share the cache of `other`. They may be released in any order. */
SLU_MUST_USE int words_share(struct words *w, struct words *other, struct slu_err *err);
void words_release(struct words *w);

void words_renew(struct words *w);

/* Call before a batch: takes the newest view, which stays until the next call. */
static inline void words_begin(struct words *w)
{
    if (__atomic_load_n(w->newest, __ATOMIC_ACQUIRE) != w->view)
        words_renew(w);
}

/* Of every WORD_PERIOD pretokens the first WORD_SAMPLE are a sample. */
#define WORD_SAMPLE 256
#define WORD_PERIOD (8 * WORD_SAMPLE)

/* Returns how many pretokens from pretoken i of the batch on are looked up in the same way.
 * *skip: a bit for each length that is not looked up. */
static inline size_t words_alike(const struct words *w, size_t i, uint32_t *skip)
{
    const uint32_t at = (w->n_pretoken + (uint32_t)i) % WORD_PERIOD;

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

/* Returns the key of n bytes at p, where 16 can be read. */
static inline struct word_key word_key(const uint8_t *p, uint32_t n)
{
    uint32_t k = n < 16 ? n : 16;

    return (struct word_key){slu_le64(p) & word_mask[k].a,
                             (slu_le64(p + 8) & word_mask[k].b) |
                                 (uint64_t)k << WORD_LEN_SHIFT};
}

/* As word_key, if only n bytes can be read. */
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

/* Returns the place of a hash in the hot table, as a byte of it, and of its ids. */
static inline uint32_t word_hot_place(const struct words *w, uint64_t hash)
{
    return (uint32_t)(hash >> (64 - w->hot_bits)) * (uint32_t)sizeof(struct word_key);
}

static inline struct word_key *word_hot_slot(const struct words *w, uint32_t place)
{
    return (struct word_key *)(void *)((uint8_t *)w->hot + place);
}

static inline uint32_t *word_hot_ids(const struct words *w, uint32_t place)
{
    return (uint32_t *)(void *)((uint8_t *)w->hot_ids + place);
}

/* Whether a slot of the hot table has the key k, which may be any key. */
static inline bool hot_is(struct word_key slot, struct word_key k)
{
    return ((slot.a ^ k.a) | ((slot.b & HOT_KEY) ^ k.b)) == 0;
}

/* Puts a pretoken of up to HOT_BYTES bytes into the hot table. s: its slot; the ids are in
 * it or in the arena. */
static inline void word_hot_put(struct words *w, uint64_t hash,
                                const struct word_slot *s)
{
    const uint32_t place = word_hot_place(w, hash);
    const uint64_t is_one = s->key.b >> WORD_COUNT_SHIFT ? 0 : UINT64_MAX;

    *word_hot_slot(w, place) = (struct word_key){
        s->key.a, s->key.b | ((uint64_t)s->id[0] << HOT_ID_SHIFT & is_one)};
    memcpy(word_hot_ids(w, place), s->id, sizeof s->id);
}

/* Returns the set of a hash in the wide table. The hash's last byte decides first, as
 * it depends on most of the pretoken. */
static inline struct word_set *word_set(const struct word_view *v, uint64_t hash)
{
    return v->wide + (__builtin_bswap64(hash) & v->wide_mask);
}

static inline unsigned word_count(const struct word_slot *s)
{
    return (unsigned)(s->key.b >> WORD_COUNT_SHIFT);
}

/* Returns the bits of a key that say that there are n ids. */
static inline uint64_t word_count_bits(size_t n)
{
    return (uint64_t)(n <= WORD_MANY ? n - 1 : WORD_MANY) << WORD_COUNT_SHIFT;
}

/* Returns the neighbour of a set, which has the pretokens that do not fit when the set is
 * full. */
static inline struct word_set *word_beside(const struct word_set *set)
{
    return (struct word_set *)((uintptr_t)set ^ sizeof *set);
}

static inline bool word_set_is_full(const struct word_set *set)
{
    return __atomic_load_n(&set->key[WORD_SET - 1].b, __ATOMIC_ACQUIRE) != 0;
}

/* Returns a bit for the place of a short pretoken in a set, or 0. Other threads may be
 * writing there: the last word of a key is read first, and if it differs, the rest does
 * not count. The place cannot be predicted, so there is no branch. */
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

/* Returns where the ids of pretoken i of a set are in the arena; for one id, 16 bytes of
 * the caller's own. Place i may be empty or being written: do not read the result then.
 */
static inline const uint8_t *word_ids(const struct words *w, const struct word_set *set,
                                      unsigned i)
{
    const uint64_t b = __atomic_load_n(&set->key[i].b, __ATOMIC_RELAXED);
    const uint32_t at = __atomic_load_n(&set->id[i], __ATOMIC_RELAXED);
    const uintptr_t one = -(uintptr_t)(b >> WORD_COUNT_SHIFT == 0),
                    there = (uintptr_t)w->view->text + at;

    return (const uint8_t *)(((uintptr_t)w->hot_ids & one) | (there & ~one));
}

/* For functions that always copy a fixed number of ids: after a pretoken's own they read
 * bytes that another thread may be writing, and do not use them. */
#define WORD_READS_PAST __attribute__((no_sanitize_thread))

/* Returns the slot of pretoken i of a set, without a branch. */
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

/* Count a pretoken of n bytes that was not in the hot table; that was in no table. */
static inline void word_looked(struct words *w, size_t n)
{
    w->look_of[n <= WORD_SHORT ? n : WORD_SHORT + 1]++;
}
static inline void word_was_new(struct words *w, size_t n)
{
    w->new_of[n <= WORD_SHORT ? n : WORD_SHORT + 1]++;
}

/* Call after a batch of k pretokens: n_look of them were not in the hot table, and n_new
 * of these in no table. Returns false if the new pretokens need not be kept.
 *
 * Text that hardly repeats (base64, hashes) would fill the tables in vain, and each
 * look-up in them is a miss of the processor's caches. So lengths of which hardly a
 * pretoken is found are looked up only in samples, and new pretokens of such text are kept
 * from few batches only; pretokens that do repeat are then kept a little later. While the
 * tables are small, all text is new, and nothing is skipped. */
bool words_judge(struct words *w, size_t k, size_t n_look, size_t n_new);

/* A pretoken that the cache does not know, and its ids. */
struct word_new {
    const uint8_t *p;
    size_t n;            /* bytes */
    struct word_key key; /* of a short pretoken */
    uint64_t hash;
    const uint32_t *id;
    size_t n_id;
};
/* Adds n pretokens to the cache, if possible. */
void words_put(struct words *w, const struct word_new *x, size_t n);

/* Returns the hash of a pretoken of 16 bytes or more. */
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

/* Returns the entry of a hash of a long pretoken, or NULL. Another pretoken can have the same
 * hash. */
static inline const struct word_far *word_far_find(const struct word_view *v,
                                                   uint64_t hash)
{
    const struct word_far *f = word_far_set(v, hash);
    unsigned is = 0;

    for (unsigned i = 0; i < WORD_FAR_SET; i++)
        is |= (unsigned)(__atomic_load_n(&f[i].hash, __ATOMIC_ACQUIRE) == hash) << i;
    return is ? f + __builtin_ctz(is) : NULL;
}

/* Makes *s the slot of a long pretoken of n bytes, with only the count in its key. False:
 * the pretoken is not known. */
bool word_find_long(const struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                    struct word_slot *s);

#endif
