/* sorter.c - how the sorter works, and its first half: memory and flushes.
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
 * Where a level of the last kind tells few apart, entries are sorted with the records
 * left on disk. That half is in sorter_walk.c.
 */
#include "sorter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sorter_private.h"

/* ---- the arena ---- */

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
    const struct slu_rec *a = slu_rec_at(ctx, ref_a), *b = slu_rec_at(ctx, ref_b);
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
            const struct slu_rec *r = slu_rec_at(s, e[k].ref);
            e[k].prefix =
                stage == BY_KEY_HI ? slu_key_shift(r->key, skip).lo : first_word(r);
        }
        sort_run(s, e + i, j - i, skip, stage + 1);
    }
}

void slu_arena_sort(struct slu_sorter *s, unsigned skip)
{
    unsigned shared = s->n_entry ? slu_key_shared(s->min, s->max) : 0;

    if (shared > skip + 8) {
        skip = shared;
        for (size_t i = 0; i < s->n_entry; i++)
            s->entry[i].prefix =
                slu_key_shift(slu_rec_at(s, s->entry[i].ref)->key, skip).hi;
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
    if (budget >= 8 << 20) /* records are read in random order */
        (void)madvise(s->map, s->map_byte, MADV_HUGEPAGE);
    s->arena = s->map;
    s->write_buf = s->arena + s->arena_byte;
    s->read_buf = s->write_buf + s->io_byte;
    s->start = (uint64_t *)(void *)(s->read_buf + s->io_byte);
    slu_arena_clear(s);
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
    while (s->n_level)
        slu_sorter_pop(s);
    if (s->map)
        munmap(s->map, s->map_byte);
    free(s->tmpdir);
    free(s);
}

int slu_sorter_push(struct slu_sorter *s, uint64_t n_byte, struct slu_err *err)
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
    struct slu_level *lv = &s->level[s->n_level];
    memset(lv, 0, sizeof *lv);
    int rc = slu_spill_open(&lv->spill, s->tmpdir, bits, s->write_buf, s->io_byte, err);
    if (rc == SLU_OK)
        s->n_level++;
    return rc;
}

int slu_sorter_flush(struct slu_sorter *s, struct slu_err *err)
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
            if (i + 16 < s->n_entry) {
                const uint8_t *at = s->arena + s->entry[i + 16].ref;
                for (unsigned k = 0; k < 3; k++)
                    __builtin_prefetch(at + 64 * k);
            }
            int rc = slu_spill_put(sp, c, slu_rec_at(s, s->entry[i].ref), err);
            if (rc)
                return rc;
        }
    }
    s->start[n_cell] = sp->end_byte;
    int rc = slu_spill_end_flush(sp, s->start, err);
    s->spilled_byte += sp->end_byte - before;
    slu_arena_clear(s);
    return rc;
}

static int too_large(const struct slu_sorter *s, uint64_t n, struct slu_err *err)
{
    return slu_fail(err, SLU_E_LIMIT,
                    "a record of %llu bytes is larger than half of the %llu bytes of "
                    "memory that sorting may use; give more with -M",
                    (unsigned long long)n, (unsigned long long)s->budget_byte);
}

static int make_room(struct slu_sorter *s, struct slu_err *err)
{
    int rc = s->n_level == 0 ? slu_sorter_push(s, 0, err) : SLU_OK;

    return rc ? rc : slu_sorter_flush(s, err);
}

static inline void note_key(struct slu_sorter *s, struct slu_u128 key)
{
    if (s->n_entry == 0 || slu_u128_cmp(key, s->min) < 0)
        s->min = key;
    if (s->n_entry == 0 || slu_u128_cmp(key, s->max) > 0)
        s->max = key;
}

int slu_sorter_add(struct slu_sorter *s, struct slu_u128 key,
                   const struct slu_piece *piece, unsigned n_piece, struct slu_err *err)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < n_piece; i++)
        if (__builtin_add_overflow(n, piece[i].n, &n))
            n = UINT64_MAX;
    if (n > s->budget_byte / 2)
        return too_large(s, n, err);
    if (!slu_arena_has(s, slu_rec_size(n))) {
        int rc = make_room(s, err);
        if (rc)
            return rc;
    }
    note_key(s, key);
    struct slu_rec *r = slu_rec_at(s, s->used_byte);
    uint8_t *dst = (uint8_t *)(r + 1);
    r->key = key;
    r->n_byte = n;
    for (unsigned i = 0; i < n_piece; i++) {
        if (piece[i].n)
            memcpy(dst, piece[i].p, piece[i].n);
        dst += piece[i].n;
    }
    zero_pad(r);
    slu_arena_take(s, key.hi);
    return SLU_OK;
}

int slu_sorter_add_run(struct slu_sorter *s, const void *run, size_t n_byte,
                       struct slu_err *err)
{
    const uint8_t *p = run, *end = p + n_byte;

    while (p < end) {
        const uint8_t *from = p;
        size_t at = s->used_byte;
        while (p < end) {
            const struct slu_rec *r = (const void *)p;
            uint64_t size = slu_rec_size(r->n_byte);
            if (r->n_byte > s->budget_byte / 2)
                return too_large(s, r->n_byte, err);
            if (!slu_arena_has(s, size))
                break;
            note_key(s, r->key);
            *--s->entry = (struct slu_entry){r->key.hi, s->used_byte};
            s->n_entry++;
            s->used_byte += size;
            p += size;
        }
        memcpy(s->arena + at, from, (size_t)(p - from));
        if (p < end) {
            int rc = make_room(s, err);
            if (rc)
                return rc;
        }
    }
    return SLU_OK;
}

int slu_sorter_seal(struct slu_sorter *s, struct slu_err *err)
{
    s->sealed = true;
    if (s->n_level)
        return slu_sorter_flush(s, err);
    slu_arena_sort(s, 0);
    return SLU_OK;
}

uint64_t slu_sorter_spilled(const struct slu_sorter *s)
{
    return s->spilled_byte;
}
