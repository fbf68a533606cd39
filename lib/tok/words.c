#include "lib/tok/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ONES(n) ((n) >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * ((n)&7)) - 1)
#define MASK(n)                                                                        \
    {                                                                                  \
        ONES(n), ONES((n) < 8 ? 0 : (n)-8)                                             \
    }
const struct word_key word_mask[17] = {
    MASK(0),  MASK(1),  MASK(2),  MASK(3),  MASK(4),  MASK(5),
    MASK(6),  MASK(7),  MASK(8),  MASK(9),  MASK(10), MASK(11),
    MASK(12), MASK(13), MASK(14), MASK(15), {0, 0},
};

/* The hot table: half of the second-level cache of today's processors. */
#define HOT_BITS   14
#define HOT_BYTE   (sizeof(struct word_slot) << HOT_BITS)
#define SET_BYTE   (2 * sizeof(struct word_slot))
#define FIRST_BYTE ((size_t)1 << 19)
#define READ_AHEAD 64 /* bytes that may be read behind any ids */
#define HUGE_PAGE  ((size_t)2 << 20)

/* n_byte zeroed bytes, in huge pages where that is worth it; or NULL. */
static void *map(size_t n_byte)
{
    size_t more = n_byte >= HUGE_PAGE ? HUGE_PAGE : 0, skip = 0;
    uint8_t *p = mmap(NULL, n_byte + more, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (more) {
        skip = -(uintptr_t)p % HUGE_PAGE;
        if (skip)
            munmap(p, skip);
        if (more > skip)
            munmap(p + skip + n_byte, more - skip);
        madvise(p + skip, n_byte, MADV_HUGEPAGE);
    }
    return p + skip;
}

static void unmap(void *p, size_t n_byte)
{
    if (p)
        munmap(p, n_byte);
}

static bool table_init(struct word_table *t, size_t first_byte, size_t most_byte)
{
    t->most_byte = most_byte;
    t->n_byte = first_byte < most_byte ? first_byte : most_byte;
    t->p = map(t->n_byte);
    return t->p;
}

/* A table twice as large, of which the caller fills the new memory from the old and
 * then unmaps that. False where it is as large as it may be, or there is no memory. */
static bool table_grow(struct word_table *t, struct word_table *old)
{
    void *p = t->n_byte * 2 <= t->most_byte ? map(t->n_byte * 2) : NULL;

    *old = *t;
    if (p) {
        t->p = p;
        t->n_byte *= 2;
    }
    return p;
}

/* ---- all of it ---- */

static void set_wide(struct words *w)
{
    w->wide_slot = w->wide.p;
    w->wide_shift = 64 - (unsigned)__builtin_ctzll(w->wide.n_byte / SET_BYTE);
}

int words_init(struct words *w, uint64_t n_byte, struct slu_err *err)
{
    size_t unit = 4096; /* the tables have 7 at most, and 2 more while one grows */

    memset(w, 0, sizeof *w);
    if (n_byte < HOT_BYTE + 9 * unit)
        return SLU_OK;
    while (unit < (size_t)1 << 29 && HOT_BYTE + 18 * unit <= n_byte)
        unit *= 2;
    w->hot = map(HUGE_PAGE);
    w->hot_shift = 64 - HOT_BITS;
    if (!w->hot || !table_init(&w->wide, 4 * FIRST_BYTE, 4 * unit) ||
        !table_init(&w->far, FIRST_BYTE / 4, unit) ||
        !table_init(&w->arena, FIRST_BYTE, 2 * unit))
        return slu_fail_nomem(err, n_byte);
    set_wide(w);
    return SLU_OK;
}

void words_release(struct words *w)
{
    unmap(w->hot, HOT_BYTE);
    unmap(w->wide.p, w->wide.n_byte);
    unmap(w->far.p, w->far.n_byte);
    unmap(w->arena.p, w->arena.n_byte);
    memset(w, 0, sizeof *w);
}

/* ---- the arena ---- */

/* Room for n bytes in the arena, which may be forgotten for it. Returns its offset;
 * false where n is too large. */
static bool arena_take(struct words *w, size_t n, uint32_t *off)
{
    struct word_table *a = &w->arena, old;
    size_t used = a->n_put;

    if (n > a->n_byte / 4)
        return false;
    if (used + n + READ_AHEAD > a->n_byte) {
        if (table_grow(a, &old)) {
            memcpy(a->p, old.p, used);
            unmap(old.p, old.n_byte);
        } else { /* all is forgotten */
            memset(w->far.p, 0, w->far.n_byte);
            memset(w->hot, 0, HOT_BYTE);
            w->generation++;
            used = 0;
        }
    }
    *off = (uint32_t)used;
    a->n_put = used + n;
    return true;
}

static void set_many(struct word_slot *s, const struct words *w, uint32_t off,
                     size_t n_id)
{
    s->key.b |= (uint64_t)WORD_MANY << WORD_COUNT_SHIFT;
    s->id[MANY_OFF] = off;
    s->id[MANY_N] = (uint32_t)n_id;
    s->id[MANY_GENERATION] = w->generation;
    s->id[MANY_APART] = 0;
}

/* ---- short pieces ---- */

static void wide_grow(struct words *w)
{
    struct word_table old;
    const struct word_slot *s;

    if (!table_grow(&w->wide, &old))
        return;
    set_wide(w);
    s = old.p;
    for (size_t i = 0; i < old.n_byte / sizeof *s; i++) {
        struct word_key k = {s[i].key.a, s[i].key.b & ~WORD_COUNT_MASK};
        struct word_slot *set = word_set(w, word_hash(k));
        if (s[i].key.b)
            set[set->key.b != 0] = s[i]; /* at most two of an old set meet again */
    }
    unmap(old.p, old.n_byte);
}

const struct word_slot *word_put(struct words *w, struct word_key k, uint64_t hash,
                                 const uint32_t *id, size_t n)
{
    struct word_slot s = {k, {0}};
    uint32_t off = 0;

    if (n <= WORD_IDS) {
        s.key.b |= (uint64_t)(n - 1) << WORD_COUNT_SHIFT;
        memcpy(s.id, id, n * sizeof *id);
    } else {
        arena_take(w, n * sizeof *id, &off); /* it is at most 15 ids */
        memcpy(word_arena(w, off), id, n * sizeof *id);
        set_many(&s, w, off, n);
    }
    if (++w->wide.n_put > w->wide.n_byte / sizeof s / 4)
        wide_grow(w);
    struct word_slot *set = word_set(w, hash);
    if (!word_is(set, k)) /* else its ids were forgotten */
        set[1] = set[0];
    set[0] = s;
    return set;
}

/* ---- long pieces: two places next to each other ---- */

static void far_insert(struct words *w, struct word_far f)
{
    struct word_far *at = word_far_set(w, f.hash);

    at[1] = at[0];
    at[0] = f;
}

static void far_grow(struct words *w)
{
    struct word_table old;
    const struct word_far *f;

    if (!table_grow(&w->far, &old))
        return;
    f = old.p;
    for (size_t i = old.n_byte / sizeof *f; i-- > 0;) {
        if (f[i].n_byte)
            far_insert(w, f[i]);
    }
    unmap(old.p, old.n_byte);
}

/* The bytes of a piece fill whole ids in the arena. */
static size_t head(size_t n_byte)
{
    return (n_byte + 3) / 4 * 4;
}

bool word_find_long(const struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                    struct word_slot *s)
{
    const struct word_far *f = word_far_set(w, hash);

    f += f->hash != hash;
    if (f->hash != hash || f->n_byte != n || memcmp(word_arena(w, f->off), p, n) != 0)
        return false;
    s->key = (struct word_key){0, 0};
    set_many(s, w, f->off + (uint32_t)head(n), f->n_id);
    return true;
}

bool word_put_long(struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                   const uint32_t *id, size_t n_id, struct word_slot *s)
{
    struct word_far f = {hash, 0, (uint16_t)n, (uint16_t)n_id};

    if (!arena_take(w, head(n) + n_id * sizeof *id, &f.off))
        return false;
    memcpy(word_arena(w, f.off), p, n);
    memcpy(word_arena(w, f.off + (uint32_t)head(n)), id, n_id * sizeof *id);
    if (++w->far.n_put > w->far.n_byte / sizeof f / 4)
        far_grow(w);
    far_insert(w, f);
    s->key = (struct word_key){0, 0};
    set_many(s, w, f.off + (uint32_t)head(n), n_id);
    return true;
}
