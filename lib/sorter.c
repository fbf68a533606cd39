/* sorter.c - memory, flushes and the walk over cells.
 *
 * One mapping, the arena, holds records from its start upwards and their entries
 * (prefix of the key, place of the record) from its end downwards. When they meet,
 * entries are partitioned by the key's top bits and the records go to a spill, cell by
 * cell.
 *
 * Levels form a stack. A group of neighbouring cells that fits the arena is loaded,
 * sorted and handed out. A single cell that does not fit becomes a level of its own: by
 * the key bits that its records do not share, or, if their keys are all equal, by the
 * first 15 bytes behind the bytes that they all share. So every level tells at least
 * two records apart, and records that are all the same are not sorted but counted.
 */
#include "sorter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "radix.h"
#include "spill.h"

#define MAX_LEVEL  48
#define MIN_BUDGET (64 << 10)
#define CELL_BYTE                                                                      \
    (64 << 10) /* what a flush writes to a cell, at least, if the arena allows */
#define ENTRY sizeof(struct slu_entry)

struct level {
    struct slu_spill spill;
    unsigned skip;       /* leading key bits that all records of the level share */
    bool by_content;     /* keys were made from the records' bytes; */
    struct slu_u128 key; /* this is the key of all of them */
    uint64_t n_byte;     /* what it was made of, where known */
    size_t next_cell;
};

struct slu_sorter {
    uint64_t budget_byte;
    char *tmpdir;
    uint8_t *map;
    size_t map_byte;
    uint8_t *arena;
    size_t arena_byte;
    size_t used_byte;        /* records, from the start */
    struct slu_entry *entry; /* n_entry of them, ending at the arena's end */
    size_t n_entry, next;
    uint8_t *write_buf, *read_buf;
    size_t io_byte;
    unsigned max_bits;
    uint64_t *start;          /* 2^max_bits + 1: a flush's groups */
    struct slu_u128 min, max; /* of the keys in the arena */
    bool sealed;
    uint64_t n_repeat; /* the record at the arena's start, so many times more */
    bool on_disk;      /* entries refer to the top level's file, not to the arena */
    uint64_t n_shared; /* while they are sorted: bytes that all records share */
    int sort_rc;       /* and what went wrong; */
    struct slu_err *sort_err;
    uint64_t spilled_byte;
    struct level level[MAX_LEVEL];
    unsigned n_level;
};

/* ---- 128-bit keys ---- */

static struct slu_u128 shift_left(struct slu_u128 k, unsigned n)
{
    unsigned __int128 v = (unsigned __int128)k.hi << 64 | k.lo;

    v = n < 128 ? v << n : 0;
    struct slu_u128 r = {(uint64_t)v, (uint64_t)(v >> 64)};
    return r;
}

/* How many leading bits a and b share. */
static unsigned shared_bits(struct slu_u128 a, struct slu_u128 b)
{
    if (a.hi != b.hi)
        return (unsigned)__builtin_clzll(a.hi ^ b.hi);
    return a.lo != b.lo ? 64 + (unsigned)__builtin_clzll(a.lo ^ b.lo) : 128;
}

/* The next 15 bytes of p[0, n) at `off`, and how many of them there are: keys that
 * order as the bytes do (memcmp, then length). */
static struct slu_u128 content_key(const uint8_t *p, uint64_t n, uint64_t off)
{
    uint8_t b[16] = {0};
    uint64_t left = n > off ? n - off : 0;
    struct slu_u128 k = {0, 0};

    if (left)
        memcpy(b, p + off, left < 15 ? left : 15);
    b[15] = left < 16 ? (uint8_t)left : 16;
    for (unsigned i = 0; i < 8; i++) {
        k.hi = k.hi << 8 | b[i];
        k.lo = k.lo << 8 | b[8 + i];
    }
    return k;
}

/* ---- the arena ---- */

static inline struct slu_rec *rec_at(const struct slu_sorter *s, uint64_t off)
{
    return (struct slu_rec *)(void *)(s->arena + off);
}

static void arena_clear(struct slu_sorter *s)
{
    s->used_byte = 0;
    s->entry = (struct slu_entry *)(void *)(s->arena + s->arena_byte);
    s->n_entry = s->next = 0;
    s->on_disk = false;
}

static bool arena_has(const struct slu_sorter *s, uint64_t n_byte)
{
    return n_byte + ENTRY <= s->arena_byte - s->used_byte - s->n_entry * ENTRY;
}

/* Books the record that lies at used_byte. */
static void arena_take(struct slu_sorter *s, uint64_t prefix)
{
    struct slu_rec *r = rec_at(s, s->used_byte);

    s->entry--;
    s->n_entry++;
    s->entry->prefix = prefix;
    s->entry->ref = s->used_byte;
    s->used_byte += slu_rec_size(r->n_byte);
}

static void zero_pad(struct slu_rec *r)
{
    size_t pad = (size_t)-r->n_byte & 7;

    memset((uint8_t *)(r + 1) + r->n_byte, 0, pad);
}

static uint64_t first_word(const struct slu_rec *r)
{
    uint8_t b[8] = {0};
    uint64_t v = 0;

    memcpy(b, r + 1, r->n_byte < 8 ? r->n_byte : 8);
    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

static int cmp_bytes(void *ctx, uint64_t ref_a, uint64_t ref_b)
{
    const struct slu_rec *a = rec_at(ctx, ref_a), *b = rec_at(ctx, ref_b);
    uint64_t n = a->n_byte < b->n_byte ? a->n_byte : b->n_byte;
    int c = memcmp(a + 1, b + 1, n);

    return c ? c : (a->n_byte > b->n_byte) - (a->n_byte < b->n_byte);
}

enum sort_stage { BY_KEY_HI, BY_KEY_LO, BY_FIRST_WORD };

/* Sorts e[0, n), whose prefixes are those of `stage`; runs of equal prefixes by the
 * next. */
static void sort_run(struct slu_sorter *s, struct slu_entry *e, size_t n, unsigned skip,
                     enum sort_stage stage)
{
    slu_entry_sort(e, n);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && e[j].prefix == e[i].prefix; j++)
            ;
        if (j - i == 1)
            continue;
        if (stage == BY_FIRST_WORD) {
            slu_entry_sort_by(e + i, j - i, cmp_bytes, s);
            continue;
        }
        for (size_t k = i; k < j; k++) {
            const struct slu_rec *r = rec_at(s, e[k].ref);
            e[k].prefix =
                stage == BY_KEY_HI ? shift_left(r->key, skip).lo : first_word(r);
        }
        sort_run(s, e + i, j - i, skip, stage + 1);
    }
}

/* Sorts the arena; prefixes are those of `skip` bits. */
static void arena_sort(struct slu_sorter *s, unsigned skip)
{
    unsigned shared = s->n_entry ? shared_bits(s->min, s->max) : 0;

    if (shared > skip + 8) {
        skip = shared;
        for (size_t i = 0; i < s->n_entry; i++)
            s->entry[i].prefix = shift_left(rec_at(s, s->entry[i].ref)->key, skip).hi;
    }
    sort_run(s, s->entry, s->n_entry, skip, BY_KEY_HI);
    s->next = 0;
}

/* ---- making and feeding ---- */

int slu_sorter_new(struct slu_sorter **out, const struct slu_sorter_cfg *cfg,
                   struct slu_err *err)
{
    uint64_t budget = cfg->budget_byte & ~UINT64_C(4095);

    *out = NULL;
    if (budget < MIN_BUDGET)
        return slu_fail(err, SLU_E_LIMIT, "a sorter cannot work within %llu bytes",
                        (unsigned long long)cfg->budget_byte);
    struct slu_sorter *s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->budget_byte = budget;
    s->max_bits = 4;
    while (s->max_bits < SLU_PARTITION_MAX_BITS &&
           (budget >> (s->max_bits + 1)) >= CELL_BYTE)
        s->max_bits++;
    /* Three levels' tables and this struct come out of the budget too. */
    uint64_t tables = sizeof *s + 3 * (sizeof(struct slu_spill_cell) << s->max_bits);
    uint64_t starts = 8 * ((UINT64_C(1) << s->max_bits) + 1);
    s->io_byte = (budget / 16 & ~UINT64_C(4095));
    if (s->io_byte > 1 << 20)
        s->io_byte = 1 << 20;
    s->map_byte = (budget - tables) & ~UINT64_C(4095);
    s->arena_byte = (s->map_byte - 2 * s->io_byte - starts) & ~UINT64_C(15);
    s->tmpdir = strdup(cfg->tmpdir);
    s->map = mmap(NULL, s->map_byte, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->map == MAP_FAILED)
        s->map = NULL;
    if (!s->tmpdir || !s->map) {
        slu_sorter_free(s);
        return slu_fail_nomem(err, budget);
    }
    if (budget >= 64 << 20)
        (void)madvise(s->map, s->map_byte, MADV_HUGEPAGE);
    s->arena = s->map;
    s->write_buf = s->arena + s->arena_byte;
    s->read_buf = s->write_buf + s->io_byte;
    s->start = (uint64_t *)(void *)(s->read_buf + s->io_byte);
    arena_clear(s);
    *out = s;
    return SLU_OK;
}

static void pop_level(struct slu_sorter *s)
{
    slu_spill_release(&s->level[--s->n_level].spill);
}

void slu_sorter_free(struct slu_sorter *s)
{
    if (!s)
        return;
    while (s->n_level)
        pop_level(s);
    if (s->map)
        munmap(s->map, s->map_byte);
    free(s->tmpdir);
    free(s);
}

/* A level for n_byte of records, unknown if 0. */
static int push_level(struct slu_sorter *s, uint64_t n_byte, struct slu_err *err)
{
    unsigned bits = s->max_bits;

    if (s->n_level == MAX_LEVEL)
        return slu_fail(
            err, SLU_E_LIMIT,
            "too many large records that begin alike to sort within %llu MiB; "
            "give more memory with -M",
            (unsigned long long)(s->budget_byte >> 20));
    if (n_byte)
        while (bits > 1 && (n_byte >> (bits - 1)) < s->arena_byte / 4)
            bits--;
    struct level *lv = &s->level[s->n_level];
    memset(lv, 0, sizeof *lv);
    int rc = slu_spill_open(&lv->spill, s->tmpdir, bits, s->write_buf, s->io_byte, err);
    if (rc == SLU_OK)
        s->n_level++;
    return rc;
}

/* Moves what is in the arena to the top level's spill. */
static int flush(struct slu_sorter *s, struct slu_err *err)
{
    struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    size_t n_cell = (size_t)1 << sp->bits;
    uint64_t before = sp->end_byte;

    if (s->n_entry == 0)
        return SLU_OK;
    slu_entry_partition(s->entry, s->n_entry, sp->bits, s->start);
    for (size_t c = 0, i = 0; c < n_cell; c++) {
        uint64_t end = s->start[c + 1];
        s->start[c] = sp->end_byte;
        for (; i < end; i++) {
            if (i + 8 < s->n_entry)
                __builtin_prefetch(s->arena + s->entry[i + 8].ref);
            int rc = slu_spill_put(sp, c, rec_at(s, s->entry[i].ref), err);
            if (rc)
                return rc;
        }
    }
    s->start[n_cell] = sp->end_byte;
    int rc = slu_spill_end_flush(sp, s->start, err);
    s->spilled_byte += sp->end_byte - before;
    arena_clear(s);
    return rc;
}

int slu_sorter_add(struct slu_sorter *s, struct slu_u128 key,
                   const struct slu_piece *piece, unsigned n_piece, struct slu_err *err)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < n_piece; i++)
        if (__builtin_add_overflow(n, piece[i].n, &n))
            n = UINT64_MAX;
    if (n > s->budget_byte / 2)
        return slu_fail(
            err, SLU_E_LIMIT,
            "a record of %llu bytes is larger than half of the %llu bytes of "
            "memory that sorting may use; give more with -M",
            (unsigned long long)n, (unsigned long long)s->budget_byte);
    if (!arena_has(s, slu_rec_size(n))) {
        int rc = s->n_level == 0 ? push_level(s, 0, err) : SLU_OK;
        if (rc == SLU_OK)
            rc = flush(s, err);
        if (rc)
            return rc;
    }
    if (s->n_entry == 0 || slu_u128_cmp(key, s->min) < 0)
        s->min = key;
    if (s->n_entry == 0 || slu_u128_cmp(key, s->max) > 0)
        s->max = key;
    struct slu_rec *r = rec_at(s, s->used_byte);
    uint8_t *dst = (uint8_t *)(r + 1);
    r->key = key;
    r->n_byte = n;
    for (unsigned i = 0; i < n_piece; i++) {
        if (piece[i].n)
            memcpy(dst, piece[i].p, piece[i].n);
        dst += piece[i].n;
    }
    zero_pad(r);
    arena_take(s, key.hi);
    return SLU_OK;
}

int slu_sorter_seal(struct slu_sorter *s, struct slu_err *err)
{
    s->sealed = true;
    if (s->n_level)
        return flush(s, err);
    arena_sort(s, 0);
    return SLU_OK;
}

/* ---- handing out ---- */

/* Loads cells [c0, c1) of the top level, which fit, and sorts them. */
static int load(struct slu_sorter *s, size_t c0, size_t c1, struct slu_err *err)
{
    struct level *lv = &s->level[s->n_level - 1];
    const struct slu_spill *sp = &lv->spill;

    arena_clear(s);
    for (size_t f = 0; f < sp->n_flush; f++) {
        uint64_t from, to;
        int rc = slu_spill_extent(sp, f, c0, c1, &from, &to, err);
        if (rc == SLU_OK && to - from > s->arena_byte - s->used_byte)
            rc =
                slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", s->tmpdir);
        if (rc == SLU_OK && to > from)
            rc = slu_spill_read(sp, s->arena + s->used_byte, to - from, from, err);
        if (rc)
            return rc;
        slu_spill_discard(sp, from, to);
        for (uint64_t left = to - from; left > 0;) {
            struct slu_rec *r = rec_at(s, s->used_byte);
            if (left < sizeof *r || r->n_byte > left ||
                slu_rec_size(r->n_byte) > left ||
                !arena_has(s, slu_rec_size(r->n_byte)))
                return slu_fail(err, SLU_E_FORMAT,
                                "temporary file in %s: damaged record", s->tmpdir);
            left -= slu_rec_size(r->n_byte);
            arena_take(s, shift_left(r->key, lv->skip).hi);
        }
    }
    while (sp->cell[c0].n_rec == 0)
        c0++;
    while (sp->cell[c1 - 1].n_rec == 0)
        c1--;
    s->min = sp->cell[c0].min;
    s->max = sp->cell[c1 - 1].max;
    arena_sort(s, lv->skip);
    return SLU_OK;
}

/* Reads a whole record to `r`, which has room; SLU_EOF behind the last. */
static int cursor_rec(struct slu_sorter *s, struct slu_spill_cursor *cu,
                      struct slu_rec *r, struct slu_err *err)
{
    int rc = slu_spill_cursor_read(cu, r, sizeof *r, err);

    if (rc)
        return rc;
    if (r->n_byte > s->budget_byte / 2)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                        s->tmpdir);
    uint64_t n = slu_rec_size(r->n_byte) - sizeof *r;
    return n ? slu_spill_cursor_read(cu, r + 1, n, err) : SLU_OK;
}

/* How many leading bytes the records of a cell share (a record's end counts as a byte);
 * *same if they are all equal. The first record stays at the arena's start. */
static int shared_content(struct slu_sorter *s, const struct slu_spill *sp, size_t c,
                          uint64_t *shared, bool *same, struct slu_err *err)
{
    struct slu_spill_cursor cu;
    struct slu_rec *first = rec_at(s, 0), h;

    slu_spill_cursor_init(&cu, sp, c, s->read_buf, s->io_byte);
    int rc = cursor_rec(s, &cu, first, err);
    *same = true;
    for (*shared = first->n_byte; rc == SLU_OK;) {
        rc = slu_spill_cursor_read(&cu, &h, sizeof h, err);
        if (rc)
            break;
        *same &= h.n_byte == first->n_byte;
        if (h.n_byte < *shared)
            *shared = h.n_byte;
        uint64_t left = slu_rec_size(h.n_byte) - sizeof h, at = 0;
        while (left > 0 && rc == SLU_OK) {
            const uint8_t *p, *q = slu_rec_bytes(first);
            size_t n, i = 0;
            rc = slu_spill_cursor_some(&cu, left, &p, &n, err);
            if (rc)
                break;
            if (at < *shared &&
                memcmp(p, q + at, n < *shared - at ? n : *shared - at)) {
                while (p[i] == q[at + i])
                    i++;
                *shared = at + i;
                *same = false;
            }
            at += n;
            left -= n;
        }
    }
    if (rc == SLU_EOF)
        rc = SLU_OK;
    *same &= *shared == first->n_byte;
    return rc;
}

/* Orders two records of the top level's file by the bytes behind those that are shared.
 */
static int cmp_on_disk(void *ctx, uint64_t off_a, uint64_t off_b)
{
    struct slu_sorter *s = ctx;
    const struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    uint8_t *a = s->read_buf, *b = a + s->io_byte / 2;
    struct slu_rec ha, hb;

    if (s->sort_rc == SLU_OK)
        s->sort_rc = slu_spill_read(sp, &ha, sizeof ha, off_a, s->sort_err);
    if (s->sort_rc == SLU_OK)
        s->sort_rc = slu_spill_read(sp, &hb, sizeof hb, off_b, s->sort_err);
    if (s->sort_rc)
        return 0;
    uint64_t n = ha.n_byte < hb.n_byte ? ha.n_byte : hb.n_byte, step = 1024;
    for (uint64_t at = s->n_shared; at < n; at += step, step = s->io_byte / 2) {
        uint64_t some = n - at < step ? n - at : step;
        s->sort_rc = slu_spill_read(sp, a, some, off_a + sizeof ha + at, s->sort_err);
        if (s->sort_rc == SLU_OK)
            s->sort_rc =
                slu_spill_read(sp, b, some, off_b + sizeof hb + at, s->sort_err);
        int c = s->sort_rc ? 0 : memcmp(a, b, some);
        if (s->sort_rc || c)
            return c;
    }
    return (ha.n_byte > hb.n_byte) - (ha.n_byte < hb.n_byte);
}

/* Whether the entries of a cell fit beside one record. */
static bool entries_fit(const struct slu_sorter *s, const struct slu_spill_cell *cell)
{
    uint64_t room = s->arena_byte - slu_rec_size(s->budget_byte / 2);

    return cell->n_rec <= room / ENTRY;
}

/* Sorts the records of cell c of the top level, whose first n_shared bytes and keys are
 * equal, without moving them. */
static int sort_on_disk(struct slu_sorter *s, size_t c, struct slu_err *err)
{
    const struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    struct slu_spill_cursor cu;
    struct slu_rec *r = rec_at(s, 0);

    slu_spill_cursor_init(&cu, sp, c, s->read_buf, s->io_byte);
    for (;;) {
        int rc = cursor_rec(s, &cu, r, err);
        if (rc == SLU_EOF)
            break;
        if (rc)
            return rc;
        s->entry--;
        s->n_entry++;
        s->entry->prefix = content_key(slu_rec_bytes(r), r->n_byte, s->n_shared).hi;
        s->entry->ref = slu_spill_cursor_tell(&cu) - slu_rec_size(r->n_byte);
    }
    s->on_disk = true;
    s->sort_rc = SLU_OK;
    s->sort_err = err;
    slu_entry_sort_by(s->entry, s->n_entry, cmp_on_disk, s);
    return s->sort_rc;
}

static int read_on_disk(struct slu_sorter *s, uint64_t off_byte, struct slu_err *err)
{
    const struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    struct slu_rec *r = rec_at(s, 0);
    int rc = slu_spill_read(sp, r, sizeof *r, off_byte, err);

    if (rc == SLU_OK && r->n_byte > s->budget_byte / 2)
        rc = slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                      s->tmpdir);
    if (rc == SLU_OK && r->n_byte)
        rc = slu_spill_read(sp, r + 1, r->n_byte, off_byte + sizeof *r, err);
    return rc;
}

/* Makes a level of cell c of the top level, which does not fit. */
static int descend(struct slu_sorter *s, size_t c, struct slu_err *err)
{
    struct level *lv = &s->level[s->n_level - 1];
    const struct slu_spill_cell *cell = &lv->spill.cell[c];
    struct level sub = {.skip = shared_bits(cell->min, cell->max),
                        .by_content = lv->by_content,
                        .key = lv->key};
    bool rekey = sub.skip == 128;
    uint64_t shared = 0;
    int rc = SLU_OK;

    arena_clear(s);
    if (rekey) {
        bool same;
        rc = shared_content(s, &lv->spill, c, &shared, &same, err);
        if (rc)
            return rc;
        if (same) {
            s->n_repeat = cell->n_rec;
            return SLU_OK;
        }
        if (lv->by_content && cell->n_byte > lv->n_byte / 2 && entries_fit(s, cell)) {
            s->n_shared = shared;
            return sort_on_disk(s, c, err);
        }
        sub.skip = 0;
        sub.by_content = true;
        sub.key = lv->by_content ? lv->key : cell->min;
    }
    rc = push_level(s, cell->n_byte, err);
    if (rc)
        return rc;
    struct level *top = &s->level[s->n_level - 1];
    top->skip = sub.skip;
    top->by_content = sub.by_content;
    top->key = sub.key;
    top->n_byte = cell->n_byte;

    struct slu_spill_cursor cu;
    slu_spill_cursor_init(&cu, &lv->spill, c, s->read_buf, s->io_byte);
    cu.discard = true;
    for (;;) {
        struct slu_rec h;
        rc = slu_spill_cursor_read(&cu, &h, sizeof h, err);
        if (rc == SLU_EOF)
            return flush(s, err);
        if (rc == SLU_OK && h.n_byte > s->budget_byte / 2)
            rc = slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                          s->tmpdir);
        if (rc == SLU_OK && !arena_has(s, slu_rec_size(h.n_byte)))
            rc = flush(s, err);
        if (rc)
            return rc;
        struct slu_rec *r = rec_at(s, s->used_byte);
        *r = h;
        uint64_t n = slu_rec_size(h.n_byte) - sizeof h;
        rc = n ? slu_spill_cursor_read(&cu, r + 1, n, err) : SLU_OK;
        if (rc)
            return rc;
        if (rekey)
            r->key = content_key(slu_rec_bytes(r), r->n_byte, shared);
        arena_take(s, shift_left(r->key, top->skip).hi);
    }
}

/* Fills the arena with what comes next; SLU_EOF where there is nothing. */
static int advance(struct slu_sorter *s, struct slu_err *err)
{
    while (s->n_level) {
        struct level *lv = &s->level[s->n_level - 1];
        const struct slu_spill_cell *cell = lv->spill.cell;
        size_t n_cell = (size_t)1 << lv->spill.bits, c0, c1;
        uint64_t n_byte = 0;

        for (c0 = lv->next_cell; c0 < n_cell && cell[c0].n_rec == 0; c0++)
            ;
        for (c1 = c0; c1 < n_cell; c1++) {
            uint64_t n = cell[c1].n_byte + cell[c1].n_rec * ENTRY;
            if (n > s->arena_byte - n_byte)
                break;
            n_byte += n;
        }
        if (c0 == n_cell) {
            pop_level(s);
        } else if (c1 == c0) {
            lv->next_cell = c0 + 1;
            int rc = descend(s, c0, err);
            if (rc || s->n_repeat || s->on_disk)
                return rc;
        } else {
            lv->next_cell = c1;
            return load(s, c0, c1, err);
        }
    }
    return SLU_EOF;
}

int slu_sorter_next(struct slu_sorter *s, struct slu_u128 *key, const void **p,
                    size_t *n, struct slu_err *err)
{
    const struct slu_rec *r;

    if (!s->sealed)
        return slu_fail(err, SLU_E_USAGE, "the sorter was not sealed");
    if (s->next == s->n_entry && s->n_repeat == 0) {
        int rc = advance(s, err);
        if (rc)
            return rc;
    }
    if (s->n_repeat) {
        s->n_repeat--;
        r = rec_at(s, 0);
    } else if (s->on_disk) {
        int rc = read_on_disk(s, s->entry[s->next++].ref, err);
        if (rc)
            return rc;
        r = rec_at(s, 0);
    } else {
        if (s->next + 8 < s->n_entry)
            __builtin_prefetch(s->arena + s->entry[s->next + 8].ref);
        r = rec_at(s, s->entry[s->next++].ref);
    }
    const struct level *lv = s->n_level ? &s->level[s->n_level - 1] : NULL;
    *key = lv && lv->by_content ? lv->key : r->key;
    *p = slu_rec_bytes(r);
    *n = r->n_byte;
    return SLU_OK;
}

uint64_t slu_sorter_spilled(const struct slu_sorter *s)
{
    return s->spilled_byte;
}
