/* sorter.c - the sorter's memory and flushes; also explains how the whole sorter works.
 *
 * One mapping, the arena, holds records from its start upwards and their entries
 * (prefix of the key, position of the record) from its end downwards. When they meet,
 * entries are partitioned by the key's top bits and the records go to a spill, cell by
 * cell.
 *
 * Levels form a stack. A group of neighbouring cells that fits the arena is loaded,
 * sorted and handed out. A single cell that does not fit becomes a level of its own.
 * This level is divided by the key bits that its records do not share or, if their keys
 * are all equal, by the first 15 bytes after the bytes that all of them share. So every
 * level tells at least two records apart. Records that are all equal are counted, not
 * sorted. If a level of bytes tells only few records apart, entries are sorted while
 * the records stay on disk. sorter_walk.c has this half.
 *
 * With threads, the arena has two halves once it has been full: the mover
 * (sorter_mover.c) flushes one half while the other is filled; later, one half is
 * loaded and sorted while the other is handed out. Two more threads only read and write
 * (spill_io.c). Data that does not fit in a half gets the whole arena, and waits until
 * the arena is free. While all data fits the arena, the mover sorts the records that
 * are handed out next.
 */
#include "sorter.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/pages.h"

#include "sorter_private.h"

enum { IO_THREADS = 2 };

/* ---- making ---- */

static void set_arena(struct slu_sorter *s, struct slu_arena *a, size_t from, size_t to)
{
    a->begin_byte = from;
    a->end_byte = to;
    slu_arena_clear(s, a);
}

static size_t buffer_size(uint64_t n_byte, size_t most)
{
    n_byte = n_byte < most ? n_byte : most;
    return (n_byte < 4096 ? 4096 : n_byte) & ~UINT64_C(4095);
}

int slu_sorter_new(struct slu_sorter **out, const struct slu_sorter_cfg *cfg,
                   struct slu_err *err)
{
    const uint64_t most = UINT64_C(1) << REF_PLACE_BITS;
    uint64_t budget =
        (cfg->budget_byte < most ? cfg->budget_byte : most) & ~UINT64_C(4095);

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
    s->n_threads = cfg->n_threads;
    s->no_mover = cfg->n_threads < 2 || budget < MOVER_BUDGET;
    /* The tables of three levels, and this struct, are part of the budget. */
    uint64_t tables = sizeof *s + 3 * (sizeof(struct slu_spill_cell) << s->max_bits);
    size_t n_start = ((size_t)1 << s->max_bits) + 1;
    unsigned n_buf = s->no_mover ? 1 : SLU_SPILL_BUFFERS;
    size_t cap = buffer_size(budget / (s->no_mover ? 16 : 64), 2 << 20);
    s->io_byte = buffer_size(budget / 16, 1 << 20);
    s->map_byte = (budget - tables) & ~UINT64_C(4095);
    size_t arena_byte =
        (s->map_byte - n_buf * cap - s->io_byte - 16 * n_start) & ~UINT64_C(4095);
    s->tmpdir = strdup(cfg->tmpdir);
    s->map = slu_pages_new(s->map_byte, SLU_PAGES_SMALL);
    if (!s->tmpdir || !s->map) {
        slu_sorter_free(s);
        return slu_fail_nomem(err, budget);
    }
    if (budget >= 8 << 20) /* records are read in random order */
        slu_pages_huge(s->map, arena_byte);
    s->writer = (struct slu_spill_writer){
        .buf = s->map + arena_byte, .cap_byte = cap, .n_buf = 1};
    s->read_buf = s->writer.buf + n_buf * cap;
    s->start = (uint64_t *)(void *)(s->read_buf + s->io_byte);
    s->head = s->start + n_start;
    set_arena(s, &s->whole, 0, arena_byte);
    size_t middle = arena_byte / 2 & ~UINT64_C(4095);
    set_arena(s, &s->half[0], 0, middle);
    set_arena(s, &s->half[1], middle, arena_byte);
    s->a = &s->whole;
    s->direct_from = cfg->cached_byte;
    *out = s;
    return SLU_OK;
}

void slu_sorter_pop(struct slu_sorter *s)
{
    slu_spill_release(&s->level[--s->n_level].spill);
}

void slu_sorter_free(struct slu_sorter *s)
{
    if (!s)
        return;
    slu_mover_free(s);
    while (s->n_level)
        slu_sorter_pop(s);
    slu_pages_free(s->map, s->map_byte);
    free(s->tmpdir);
    free(s);
}

int slu_sorter_push(struct slu_sorter *s, uint64_t n_byte, struct slu_err *err)
{
    unsigned bits = s->max_bits;

    if (s->n_level == MAX_LEVEL)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "too many large records with the same beginning to "
                                   "sort within %llu MiB",
                                   (unsigned long long)(s->budget_byte >> 20)));
    if (n_byte)
        while (bits > 1 && (n_byte >> (bits - 1)) < slu_arena_size(&s->whole) / 4)
            bits--;
    if (s->n_level == 0 && s->direct_from == 0)
        s->direct_from = slu_spill_cache_room();
    struct slu_level *lv = &s->level[s->n_level];
    memset(lv, 0, sizeof *lv);
    int rc = slu_spill_open(&lv->spill, s->tmpdir, bits, &s->writer, err);
    if (!rc)
        s->n_level++;
    return rc;
}

/* ---- flushes ---- */

int slu_flush_entries(struct slu_sorter *s, struct slu_entry *e, size_t n,
                      struct slu_err *err)
{
    struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    size_t n_cell = (size_t)1 << sp->bits;
    uint64_t before = sp->end_byte;

    if (n == 0)
        return SLU_OK;
    slu_entry_partition(e, n, sp->bits, s->start);
    /* If each write is waited for, the page cache is faster. */
    slu_spill_begin_flush(sp, s->queue && sp->end_byte >= s->direct_from);
    for (size_t c = 0, i = 0; c < n_cell; c++) {
        uint64_t end = s->start[c + 1];
        s->start[c] = sp->end_byte;
        for (; i < end; i++) {
            if (i + 16 < n)
                slu_rec_prefetch(slu_ref_rec(s, e[i + 16].ref));
            int rc = slu_spill_put(sp, c, slu_ref_rec(s, e[i].ref), err);
            if (rc)
                return rc;
        }
    }
    s->start[n_cell] = sp->end_byte;
    int rc = slu_spill_end_flush(sp, s->start, err);
    __atomic_fetch_add(&s->spilled_byte, sp->end_byte - before, __ATOMIC_RELAXED);
    return rc;
}

int slu_sorter_flush(struct slu_sorter *s, struct slu_err *err)
{
    int rc = slu_flush_entries(s, s->a->entry, s->a->n_entry, err);
    int settled = slu_spill_writer_settle(&s->writer, rc ? NULL : err);

    slu_arena_clear(s, s->a);
    return rc ? rc : settled;
}

static void flush_later(struct slu_sorter *s, unsigned half, struct slu_entry *e,
                        size_t n)
{
    s->task[half].kind = SLU_TASK_FLUSH;
    s->task[half].entry = e;
    s->task[half].n_entry = n;
    slu_mover_submit(s, &s->task[half]);
}

/* Waits until both halves are flushed. */
static int flushed(struct slu_sorter *s, struct slu_err *err)
{
    int rc = slu_mover_wait(s, &s->task[0], err);
    int r = slu_mover_wait(s, &s->task[1], rc ? NULL : err);

    return rc ? rc : r;
}

/* The whole arena is full. The records of its lower half are flushed first, so that
 * this half can be filled again while the others are flushed. */
static void split(struct slu_sorter *s)
{
    struct slu_arena *w = &s->whole;
    /* Entries descend: the last entries belong to the first records. */
    size_t k = 0, n = w->n_entry;

    while (k < n) {
        size_t mid = k + (n - k) / 2;
        if (slu_ref_place(w->entry[mid].ref) >= s->half[1].begin_byte)
            k = mid + 1;
        else
            n = mid;
    }
    flush_later(s, 0, w->entry + k, w->n_entry - k);
    flush_later(s, 1, w->entry, k);
    s->a = &s->half[0];
}

/* Creates the first level and the threads, before any thread has work. */
static int begin_flushes(struct slu_sorter *s, struct slu_err *err)
{
    int rc = slu_sorter_push(s, 0, err);

    if (rc || !slu_mover_start(s))
        return rc;
    s->queue = slu_spill_queue_new(IO_THREADS);
    if (s->queue) {
        s->writer.queue = s->queue;
        s->writer.n_buf = SLU_SPILL_BUFFERS;
    }
    return SLU_OK;
}

/* Makes room for a record of n bytes, header included. */
static int make_room(struct slu_sorter *s, uint64_t n, struct slu_err *err)
{
    int rc = s->n_level == 0 ? begin_flushes(s, err) : SLU_OK;

    if (rc)
        return rc;
    if (!s->mover)
        return slu_sorter_flush(s, err);
    if (s->a == &s->whole) {
        split(s);
    } else {
        unsigned h = s->a == &s->half[1];
        flush_later(s, h, s->a->entry, s->a->n_entry);
        s->a = &s->half[!h];
    }
    rc = slu_mover_wait(s, &s->task[s->a == &s->half[1]], err);
    slu_arena_clear(s, s->a);
    if (!rc && !slu_arena_has(s->a, n)) {
        rc = flushed(s, err);
        s->a = &s->whole;
        slu_arena_clear(s, s->a);
    }
    return rc;
}

/* ---- feeding ---- */

static int too_large(const struct slu_sorter *s, uint64_t n, struct slu_err *err)
{
    return slu_advise(err, SLU_ADVISE_MEMORY,
                      slu_fail(err, SLU_E_LIMIT,
                               "a record of %llu bytes is larger than half of the %llu "
                               "bytes of memory that sorting may use",
                               (unsigned long long)n,
                               (unsigned long long)s->budget_byte));
}

static void zero_pad(struct slu_rec *r)
{
    size_t pad = (size_t)-r->n_byte & 7;

    memset((uint8_t *)(r + 1) + r->n_byte, 0, pad);
}

static inline void note_key(struct slu_arena *a, struct slu_u128 key)
{
    if (a->n_entry == 0 || slu_u128_cmp(key, a->min) < 0)
        a->min = key;
    if (a->n_entry == 0 || slu_u128_cmp(key, a->max) > 0)
        a->max = key;
}

int slu_sorter_add(struct slu_sorter *s, struct slu_u128 key,
                   const struct slu_slice *piece, unsigned n_piece, struct slu_err *err)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < n_piece; i++)
        if (__builtin_add_overflow(n, piece[i].n, &n))
            n = UINT64_MAX;
    if (n > s->budget_byte / 2)
        return too_large(s, n, err);
    if (!slu_arena_has(s->a, slu_rec_size(n))) {
        int rc = make_room(s, slu_rec_size(n), err);
        if (rc)
            return rc;
    }
    note_key(s->a, key);
    struct slu_rec *r = slu_rec_at(s, s->a->used_byte);
    uint8_t *dst = (uint8_t *)(r + 1);
    r->key = key;
    r->n_byte = n;
    for (unsigned i = 0; i < n_piece; i++) {
        if (piece[i].n)
            memcpy(dst, piece[i].p, piece[i].n);
        dst += piece[i].n;
    }
    zero_pad(r);
    slu_arena_take(s->a, key.hi, slu_rec_size(n));
    return SLU_OK;
}

int slu_sorter_add_run(struct slu_sorter *s, const void *run, size_t n_byte,
                       struct slu_err *err)
{
    const uint8_t *p = run, *end = p + n_byte;

    while (p < end) {
        const uint8_t *from = p;
        struct slu_arena *a = s->a;
        size_t at = a->used_byte;
        uint64_t size = 0;
        while (p < end) {
            const struct slu_rec *r = (const void *)p;
            size = slu_rec_size(r->n_byte);
            if (r->n_byte > s->budget_byte / 2)
                return too_large(s, r->n_byte, err);
            if (!slu_arena_has(a, size))
                break;
            note_key(a, r->key);
            slu_arena_take(a, r->key.hi, size);
            p += size;
        }
        memcpy(s->map + at, from, (size_t)(p - from));
        if (p < end) {
            int rc = make_room(s, size, err);
            if (rc)
                return rc;
        }
    }
    return SLU_OK;
}

int slu_sorter_seal(struct slu_sorter *s, struct slu_err *err)
{
    s->sealed = true;
    if (!s->n_level) {
        slu_sort_begin(s);
        return SLU_OK;
    }
    if (s->a == &s->whole) /* no mover, or a record that fits no half */
        return slu_sorter_flush(s, err);
    unsigned h = s->a == &s->half[1];
    flush_later(s, h, s->a->entry, s->a->n_entry);
    int rc = flushed(s, err);
    int settled = slu_spill_writer_settle(&s->writer, rc ? NULL : err);
    slu_arena_clear(s, s->a);
    s->a = &s->whole;
    slu_arena_clear(s, s->a);
    return rc ? rc : settled;
}

uint64_t slu_sorter_spilled(const struct slu_sorter *s)
{
    return __atomic_load_n(&s->spilled_byte, __ATOMIC_RELAXED);
}
