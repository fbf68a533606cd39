/* sorter_walk.c - the way back: cells in order, loaded, split again, or sorted where
 * they are (see sorter.c). */
#include <string.h>

#include "sorter_private.h"

enum { AHEAD = 16 }; /* records asked for before they are handed out */

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

/* ---- handing out ---- */

/* Loads cells [c0, c1) of the top level, which fit, and sorts them. */
static int load(struct slu_sorter *s, size_t c0, size_t c1, struct slu_err *err)
{
    struct slu_level *lv = &s->level[s->n_level - 1];
    const struct slu_spill *sp = &lv->spill;

    slu_arena_clear(s);
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
            struct slu_rec *r = slu_rec_at(s, s->used_byte);
            if (left < sizeof *r || r->n_byte > left ||
                slu_rec_size(r->n_byte) > left ||
                !slu_arena_has(s, slu_rec_size(r->n_byte)))
                return slu_fail(err, SLU_E_FORMAT,
                                "temporary file in %s: damaged record", s->tmpdir);
            left -= slu_rec_size(r->n_byte);
            slu_arena_take(s, slu_key_shift(r->key, lv->skip).hi);
        }
    }
    while (sp->cell[c0].n_rec == 0)
        c0++;
    while (sp->cell[c1 - 1].n_rec == 0)
        c1--;
    s->min = sp->cell[c0].min;
    s->max = sp->cell[c1 - 1].max;
    slu_arena_sort(s, lv->skip);
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
    struct slu_rec *first = slu_rec_at(s, 0), h;

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
    struct slu_rec *r = slu_rec_at(s, 0);

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
    struct slu_rec *r = slu_rec_at(s, 0);
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
    struct slu_level *lv = &s->level[s->n_level - 1];
    const struct slu_spill_cell *cell = &lv->spill.cell[c];
    struct slu_level sub = {.skip = slu_key_shared(cell->min, cell->max),
                            .by_content = lv->by_content,
                            .key = lv->key};
    bool rekey = sub.skip == 128;
    uint64_t shared = 0;
    int rc = SLU_OK;

    slu_arena_clear(s);
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
    rc = slu_sorter_push(s, cell->n_byte, err);
    if (rc)
        return rc;
    struct slu_level *top = &s->level[s->n_level - 1];
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
            return slu_sorter_flush(s, err);
        if (rc == SLU_OK && h.n_byte > s->budget_byte / 2)
            rc = slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                          s->tmpdir);
        if (rc == SLU_OK && !slu_arena_has(s, slu_rec_size(h.n_byte)))
            rc = slu_sorter_flush(s, err);
        if (rc)
            return rc;
        struct slu_rec *r = slu_rec_at(s, s->used_byte);
        *r = h;
        uint64_t n = slu_rec_size(h.n_byte) - sizeof h;
        rc = n ? slu_spill_cursor_read(&cu, r + 1, n, err) : SLU_OK;
        if (rc)
            return rc;
        if (rekey)
            r->key = content_key(slu_rec_bytes(r), r->n_byte, shared);
        slu_arena_take(s, slu_key_shift(r->key, top->skip).hi);
    }
}

/* Fills the arena with what comes next; SLU_EOF where there is nothing. */
static int advance(struct slu_sorter *s, struct slu_err *err)
{
    while (s->n_level) {
        struct slu_level *lv = &s->level[s->n_level - 1];
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
            slu_sorter_pop(s);
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
        r = slu_rec_at(s, 0);
    } else if (s->on_disk) {
        int rc = read_on_disk(s, s->entry[s->next++].ref, err);
        if (rc)
            return rc;
        r = slu_rec_at(s, 0);
    } else {
        if (s->next + AHEAD < s->n_entry) {
            const uint8_t *at = s->arena + s->entry[s->next + AHEAD].ref;
            for (unsigned i = 0; i < 3; i++) /* may end behind the arena: harmless */
                __builtin_prefetch(at + 64 * i);
        }
        r = slu_rec_at(s, s->entry[s->next++].ref);
    }
    const struct slu_level *lv = s->n_level ? &s->level[s->n_level - 1] : NULL;
    *key = lv && lv->by_content ? lv->key : r->key;
    *p = slu_rec_bytes(r);
    *n = r->n_byte;
    return SLU_OK;
}
