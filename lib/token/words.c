#include "lib/token/words.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/pages.h"

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

/* Sizes of hot tables, as hot_bits. The largest one is larger than the second-level
 * cache: look-ups in it overlap, so that a miss of that cache takes less time than a
 * look-up in the wide table does. */
#define HOT_SMALL      15
#define HOT_LARGE      17
#define HOT_BYTE(bits) (sizeof(struct word_key) << (bits))
#define HOT_ALL(bits)  (2 * HOT_BYTE(bits)) /* with the ids */
#define FIRST_BYTE     ((size_t)1 << 20)
#define READ_AHEAD     64 /* bytes that may be read after any ids */

/* Returns n_byte zeroed bytes, in huge pages if they pay; or NULL. */
static void *map(size_t n_byte)
{
    return slu_pages_new(n_byte,
                         n_byte >= SLU_HUGE_PAGE ? SLU_PAGES_ALIGNED : SLU_PAGES_SMALL);
}

/* ---- the shared part ---- */

/* Half of a long text's words occur once. From these sizes on, tables take only pretokens
 * that come again. */
#define WIDE_LARGE ((size_t)16 << 20)
#define FAR_LARGE  ((size_t)2 << 20)
#define SEEN_BITS  19

enum { WIDE, FAR, ARENA };

/* Memory of one or more views. */
struct word_block {
    uint8_t *p;
    size_t n_byte, n_mapped;
    size_t used; /* slots in use; in the arena, bytes */
    unsigned n_view;
};

struct words_shared {
    pthread_mutex_t lock;
    _Atomic bool growing; /* the holder of the lock copies tables, which takes long */
    struct word_view *newest;
    struct word_view *retired;
    struct words *member;
    uint64_t n_byte; /* what words_init was given */
    size_t most_byte[3];
    uint8_t seen[1 << SEEN_BITS]; /* see came_before */
};

/* Makes a block. n_mapped: bytes it can grow to; untouched memory costs nothing. */
static struct word_block *block_new(size_t n_byte, size_t n_mapped)
{
    struct word_block *b = calloc(1, sizeof *b);

    if (b && !(b->p = map(n_mapped))) {
        free(b);
        return NULL;
    }
    if (b) {
        b->n_byte = n_byte;
        b->n_mapped = n_mapped;
    }
    return b;
}

static void view_free(struct word_view *v)
{
    for (int i = 0; v && i < 3; i++) {
        struct word_block *b = v->block[i];
        if (b && --b->n_view == 0) {
            slu_pages_free(b->p, b->n_mapped);
            free(b);
        }
    }
    free(v);
}

/* Sets the masks from the sizes of the tables. */
static void set_masks(struct word_view *v)
{
    v->wide_mask = v->block[WIDE]->n_byte / sizeof *v->wide - 1;
    v->far_mask = v->block[FAR]->n_byte / sizeof *v->far - WORD_FAR_SET;
}

/* Makes a view of new blocks of n_byte[i] bytes, which can grow to most[i]; if
 * n_byte[i] is 0, of the block of `of`. NULL: out of memory. */
static struct word_view *view_new(const struct word_view *of, const size_t n_byte[3],
                                  const size_t most[3])
{
    struct word_view *v = calloc(1, sizeof *v);

    for (int i = 0; v && i < 3; i++) {
        v->block[i] = of && !n_byte[i] ? of->block[i] : block_new(n_byte[i], most[i]);
        if (!v->block[i]) {
            view_free(v);
            return NULL;
        }
        v->block[i]->n_view++;
    }
    if (!v)
        return NULL;
    v->wide = (struct word_set *)v->block[WIDE]->p;
    v->far = (struct word_far *)v->block[FAR]->p;
    v->text = v->block[ARENA]->p;
    set_masks(v);
    v->generation = of ? of->generation : 0;
    return v;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- members ---- */

/* Returns the bytes that a hot table and its ids take: at least a huge page. */
static size_t hot_mapped(unsigned bits)
{
    return HOT_ALL(bits) > SLU_HUGE_PAGE ? HOT_ALL(bits) : SLU_HUGE_PAGE;
}

/* Returns the size of the next member's hot table, so that tables above the smallest
 * size take at most half as much memory as the shared part. */
static unsigned hot_bits(const struct words_shared *s)
{
    unsigned bits = HOT_LARGE;
    size_t n = 1;

    for (const struct words *m = s->member; m; m = m->next)
        n++;
    while (bits > HOT_SMALL && n * HOT_ALL(bits) > s->n_byte / 2)
        bits--;
    return bits;
}

static int join(struct words *w, struct words_shared *s, struct slu_err *err)
{
    pthread_mutex_lock(&s->lock);
    w->hot_bits = hot_bits(s);
    pthread_mutex_unlock(&s->lock);
    uint8_t *p = map(hot_mapped(w->hot_bits));
    if (!p)
        return slu_fail_nomem(err, hot_mapped(w->hot_bits));
    w->hot_ids = (uint32_t(*)[WORD_IDS])(void *)p;
    /* Behind the ids, after which some bytes may be read. */
    w->hot = (struct word_key *)(void *)(p + HOT_BYTE(w->hot_bits));
    pthread_mutex_lock(&s->lock);
    w->shared = s;
    w->newest = &s->newest;
    w->view = s->newest;
    w->generation = w->view->generation;
    w->next = s->member;
    s->member = w;
    pthread_mutex_unlock(&s->lock);
    return SLU_OK;
}

int words_init(struct words *w, uint64_t n_byte, struct slu_err *err)
{
    struct words_shared *s;
    /* 6 units are full tables, and there may be 1 more while one grows. A thread that
     * waits may keep an older view for a while. */
    size_t unit = 4096;
    int rc;

    memset(w, 0, sizeof *w);
    if (n_byte < HOT_ALL(HOT_SMALL) + 9 * unit)
        return SLU_OK;
    s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->n_byte = n_byte;
    const size_t hot = HOT_ALL(hot_bits(s));
    while (unit < (size_t)1 << 29 && hot + 18 * unit <= n_byte)
        unit *= 2;
    s->most_byte[WIDE] = 2 * unit;
    s->most_byte[FAR] = unit;
    s->most_byte[ARENA] = 3 * unit;
    const size_t first[3] = {least(FIRST_BYTE, 2 * unit), least(FIRST_BYTE / 8, unit),
                             3 * unit /* only its used part is touched */};
    s->newest = view_new(NULL, first, s->most_byte);
    if (!s->newest) {
        free(s);
        return slu_fail_nomem(err, n_byte);
    }
    pthread_mutex_init(&s->lock, NULL);
    if ((rc = join(w, s, err))) {
        view_free(s->newest);
        pthread_mutex_destroy(&s->lock);
        free(s);
    }
    return rc;
}

int words_share(struct words *w, struct words *other, struct slu_err *err)
{
    memset(w, 0, sizeof *w);
    return other->hot ? join(w, other->shared, err) : SLU_OK;
}

void words_release(struct words *w)
{
    struct words_shared *s = w->shared;

    slu_pages_free(w->hot_ids, hot_mapped(w->hot_bits));
    if (s) {
        pthread_mutex_lock(&s->lock);
        for (struct words **m = &s->member; *m; m = &(*m)->next) {
            if (*m == w) {
                *m = w->next;
                break;
            }
        }
        bool last = !s->member;
        pthread_mutex_unlock(&s->lock);
        while (last && s->retired) {
            struct word_view *v = s->retired;
            s->retired = v->retired;
            view_free(v);
        }
        if (last) {
            view_free(s->newest);
            pthread_mutex_destroy(&s->lock);
            free(s);
        }
    }
    memset(w, 0, sizeof *w);
}

void words_renew(struct words *w)
{
    struct word_view *v = __atomic_load_n(w->newest, __ATOMIC_ACQUIRE), *now;

    /* First says that v is in use, then tests whether it was replaced meanwhile. */
    for (;; v = now) {
        __atomic_store_n(&w->view, v, __ATOMIC_SEQ_CST);
        now = __atomic_load_n(w->newest, __ATOMIC_SEQ_CST);
        if (now == v)
            break;
    }
    if (v->generation != w->generation) { /* its slots point into another arena */
        memset(w->hot, 0, HOT_BYTE(w->hot_bits));
        w->generation = v->generation;
    }
}

/* Whether a table has enough entries for its misses to say something about the text: at
 * first all text is new. */
static bool knows_much(const struct words *w, int i, size_t enough_byte)
{
    const size_t n_byte = w->view->block[i]->n_byte;

    return n_byte >= enough_byte || n_byte * 2 > w->shared->most_byte[i];
}

bool words_judge(struct words *w, size_t k, size_t n_look, size_t n_new)
{
    enum { WINDOW = 16384, FEW = 16, WIDE_BYTE = 2 << 20, FAR_BYTE = 1 << 19 };
    const bool is_kept = w->n_pretoken / WORD_PERIOD % 16 == 0;

    w->n_pretoken += (uint32_t)k;
    w->n_look += (uint32_t)n_look;
    w->n_new += (uint32_t)n_new;
    if (w->n_look >= WINDOW) {
        const bool is_mostly_new = w->n_new > w->n_look / 8 * 5,
                   judges[2] = {knows_much(w, WIDE, WIDE_BYTE),
                                knows_much(w, FAR, FAR_BYTE)};
        w->n_look = w->n_new = 0;
        w->hopeless = 0;
        for (unsigned i = 0; i < WORD_SHORT + 2; i++) {
            bool is = is_mostly_new && judges[i > WORD_SHORT] && w->look_of[i] >= FEW &&
                      w->new_of[i] >= w->look_of[i] - w->look_of[i] / 128;
            w->hopeless |= (uint32_t)is << i;
            w->look_of[i] = w->new_of[i] = 0;
        }
    }
    return !w->hopeless || is_kept;
}

/* ---- under the lock ---- */

static bool is_used(const struct words_shared *s, const struct word_view *v)
{
    for (const struct words *m = s->member; m; m = m->next) {
        if (__atomic_load_n(&m->view, __ATOMIC_SEQ_CST) == v)
            return true;
    }
    return false;
}

/* Replaces the newest view by v; frees retired views that no encoder uses. */
static void publish(struct words_shared *s, struct word_view *v)
{
    struct word_view *old = s->newest;

    __atomic_store_n(&s->newest, v, __ATOMIC_SEQ_CST);
    old->retired = s->retired;
    s->retired = old;
    for (struct word_view **r = &s->retired; *r;) {
        old = *r;
        if (is_used(s, old)) {
            r = &old->retired;
        } else {
            *r = old->retired;
            view_free(old);
        }
    }
}

static struct word_key without_count(struct word_key k)
{
    return (struct word_key){k.a, k.b & ~WORD_COUNT_MASK};
}

/* Adds a short pretoken with its word, unless it is there or has no room. */
static bool wide_put(struct word_view *v, struct word_key k, uint32_t id)
{
    const struct word_key want = without_count(k);
    struct word_set *set = word_set(v, word_hash(want));

    for (unsigned turn = 0; turn < 2; turn++, set = word_beside(set)) {
        unsigned i = 0; /* the number of keys, which cannot be predicted */
        for (unsigned j = 0; j < WORD_SET; j++)
            i += set->key[j].b != 0;
        if (word_find(set, want))
            return false;
        if (i == WORD_SET)
            continue;
        __atomic_store_n(&set->key[i].a, k.a, __ATOMIC_RELAXED);
        __atomic_store_n(&set->id[i], id, __ATOMIC_RELAXED);
        __atomic_store_n(&set->key[i].b, k.b, __ATOMIC_RELEASE);
        v->block[WIDE]->used++;
        return true;
    }
    return false;
}

static struct word_far *far_place(const struct word_view *v, uint64_t hash)
{
    struct word_far *f = word_far_set(v, hash);

    for (unsigned i = 0; i < WORD_FAR_SET; i++) {
        if (!f[i].hash)
            return f + i;
        if (f[i].hash == hash)
            break;
    }
    return NULL;
}

static void far_write(struct word_view *v, struct word_far *at,
                      const struct word_far *f)
{
    at->off = f->off;
    at->n_byte = f->n_byte;
    at->n_id = f->n_id;
    __atomic_store_n(&at->hash, f->hash, __ATOMIC_RELEASE);
    v->block[FAR]->used++;
}

static void copy_wide(struct word_view *to, const struct word_view *v)
{
    for (size_t i = 0; i < v->block[WIDE]->n_byte / sizeof *v->wide; i++)
        for (unsigned k = 0; k < WORD_SET && v->wide[i].key[k].b; k++)
            (void)wide_put(to, v->wide[i].key[k], v->wide[i].id[k]);
}

static void copy_far(struct word_view *to, const struct word_view *v)
{
    for (size_t i = 0; i < v->block[FAR]->n_byte / sizeof *v->far; i++) {
        const struct word_far *x = &v->far[i];
        struct word_far *at;
        if (x->hash && (at = far_place(to, x->hash)))
            far_write(to, at, x);
    }
}

/* Distributes the entries of a table that has become twice as large: an entry stays in
 * its set, or goes to the same set of the upper half. */
static void spread_wide(struct word_view *v)
{
    const size_t n = v->block[WIDE]->n_byte / sizeof *v->wide / 2;
    struct word_set pair[2];

    v->block[WIDE]->used = 0;
    for (size_t i = 0; i < n; i += 2) {
        memcpy(pair, v->wide + i, sizeof pair);
        memset(v->wide + i, 0, sizeof pair);
        for (unsigned k = 0; k < 2 * WORD_SET; k++) {
            const struct word_set *s = &pair[k / WORD_SET];
            if (s->key[k % WORD_SET].b)
                (void)wide_put(v, s->key[k % WORD_SET], s->id[k % WORD_SET]);
        }
    }
}

static void spread_far(struct word_view *v)
{
    const size_t n = v->block[FAR]->n_byte / sizeof *v->far / 2;
    struct word_far set[WORD_FAR_SET];

    v->block[FAR]->used = 0;
    for (size_t i = 0; i < n; i += WORD_FAR_SET) {
        memcpy(set, v->far + i, sizeof set);
        memset(v->far + i, 0, sizeof set);
        for (unsigned k = 0; k < WORD_FAR_SET && set[k].hash; k++)
            far_write(v, far_place(v, set[k].hash), &set[k]);
    }
}

/* Doubles full tables in place, which touches half of the memory that new ones would.
 * No other encoder may use them, and none can join meanwhile. */
static void grow_alone(struct word_view *v, const size_t larger[3])
{
    for (int i = WIDE; i <= FAR; i++) {
        if (larger[i])
            v->block[i]->n_byte = larger[i];
    }
    set_masks(v);
    if (larger[WIDE])
        spread_wide(v);
    if (larger[FAR])
        spread_far(v);
}

/* Whether a table must grow: before pretokens often find all their places taken, at five
 * eighths with two sets of three, at a half with one set of four. At its largest size a
 * table is used to three quarters (*at_limit). */
static bool is_full(const struct words_shared *s, const struct word_view *v, int i,
                    bool *at_limit)
{
    const struct word_block *b = v->block[i];
    const size_t n =
        i == WIDE ? b->n_byte / sizeof *v->wide * WORD_SET : b->n_byte / sizeof *v->far;

    if (b->used <= (i == WIDE ? n / 8 * 5 : n / 2))
        return false;
    if (b->n_byte * 2 <= s->most_byte[i])
        return true;
    *at_limit = *at_limit || b->used > n / 4 * 3;
    return false;
}

/* Returns a view with room: the newest, one with a larger table, or one that starts
 * anew. NULL: out of memory. */
static struct word_view *make_room(struct words_shared *s, bool anew)
{
    struct word_view *v = s->newest, *more;
    bool wide_is_full = is_full(s, v, WIDE, &anew);
    bool far_is_full = is_full(s, v, FAR, &anew);
    const size_t *most = s->most_byte;
    const size_t larger[3] = {wide_is_full ? v->block[WIDE]->n_byte * 2 : 0,
                              far_is_full ? v->block[FAR]->n_byte * 2 : 0, 0};

    if (anew) {
        if (!(more = view_new(v, most, most)))
            return NULL;
        more->generation++;
    } else {
        if (!wide_is_full && !far_is_full)
            return v;
        if (s->member->view == v && !s->member->next) {
            grow_alone(v, larger);
            return v;
        }
        s->growing = true;
        if ((more = view_new(v, larger, most))) {
            if (wide_is_full)
                copy_wide(more, v);
            if (far_is_full)
                copy_far(more, v);
        }
        s->growing = false;
        if (!more)
            return v;
    }
    publish(s, more);
    return more;
}

static bool is_large(const struct words_shared *s, const struct word_view *v)
{
    return v->block[WIDE]->n_byte >= least(WIDE_LARGE, s->most_byte[WIDE]) ||
           v->block[FAR]->n_byte >= least(FAR_LARGE, s->most_byte[FAR]);
}

/* Whether a pretoken came not long ago; leaves a mark of it. */
static bool came_before(struct words_shared *s, uint64_t hash)
{
    const uint64_t h = hash * WORD_HASH_A;
    uint8_t *seen = &s->seen[h >> (64 - SEEN_BITS)], last = *seen;

    return last == (*seen = (uint8_t)(h >> 32 | 1));
}

/* Returns the bytes of a pretoken in the arena, where they are padded to whole ids. */
static size_t head(size_t n_byte)
{
    return (n_byte + 3) / 4 * 4;
}

static bool fits(const struct word_view *v, size_t n)
{
    return v->block[ARENA]->used + n + READ_AHEAD <= v->block[ARENA]->n_byte;
}

static void put_short(struct word_view *v, const struct word_new *x)
{
    struct word_block *arena = v->block[ARENA];
    const bool is_many = x->n_id > WORD_IDS;
    const struct word_key k = {x->key.a, x->key.b | word_count_bits(x->n_id)};
    const uint32_t n = (uint32_t)x->n_id;
    uint8_t *to = arena->p + arena->used;

    if (n == 1) {
        (void)wide_put(v, k, x->id[0]);
        return;
    }
    if (is_many)
        memcpy(to, &n, sizeof n);
    to += is_many * sizeof n;
    memcpy(to, x->id, n * sizeof *x->id);
    if (wide_put(v, k, (uint32_t)arena->used))
        arena->used += (n + is_many) * sizeof *x->id;
}

static void put_long(struct word_view *v, const struct word_new *x)
{
    struct word_block *arena = v->block[ARENA];
    struct word_far f = {x->hash, (uint32_t)arena->used, (uint16_t)x->n,
                         (uint16_t)x->n_id};
    struct word_far *at = far_place(v, x->hash);
    uint8_t *to = arena->p + arena->used;

    if (!at || !x->hash)
        return;
    memcpy(to, x->p, x->n);
    memcpy(to + head(x->n), x->id, x->n_id * sizeof *x->id);
    arena->used += head(x->n) + x->n_id * sizeof *x->id;
    far_write(v, at, &f);
}

void words_put(struct words *w, const struct word_new *x, size_t n)
{
    struct words_shared *s = w->shared;

    if (pthread_mutex_trylock(&s->lock)) {
        if (s->growing) /* to encode these pretokens again is faster than to wait */
            return;
        pthread_mutex_lock(&s->lock);
    }
    for (; n; n--, x++) {
        size_t need = head(x->n) + (x->n_id + 1) * sizeof *x->id;
        struct word_view *v = s->newest;
        if (x->n > WORD_LONG || need > s->most_byte[ARENA] / 4)
            continue;
        if (is_large(s, v) && !came_before(s, x->hash))
            continue;
        if (!(v = make_room(s, !fits(v, need))))
            break;
        if (x->n <= WORD_SHORT)
            put_short(v, x);
        else
            put_long(v, x);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- without the lock ---- */

bool word_find_long(const struct words *w, const uint8_t *p, size_t n, uint64_t hash,
                    struct word_slot *s)
{
    const struct word_far *f = word_far_find(w->view, hash);

    if (!f || f->n_byte != n || memcmp(w->view->text + f->off, p, n) != 0)
        return false;
    s->key = (struct word_key){0, (uint64_t)WORD_MANY << WORD_COUNT_SHIFT};
    s->id[MANY_OFF] = f->off + (uint32_t)head(n);
    s->id[MANY_N] = f->n_id;
    s->id[MANY_APART] = 0;
    return true;
}
