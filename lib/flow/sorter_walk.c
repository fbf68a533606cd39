/* sorter_walk.c - reads the records back: cells in order, each loaded, divided again,
 * or sorted on disk (see sorter.c). */
#include <string.h>

#include "sorter_private.h"

enum { AHEAD = 16 }; /* number of records prefetched before they are handed out */

/* A key of the next 15 bytes of p[0, n) from `off` and of their number. Keys have the
 * order of the bytes (memcmp, then length). */
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

/* ---- cells that do not fit ---- */

/* Reads a whole record to `r`, which has room for it; SLU_EOF after the last. */
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

/* Number of leading bytes that all records of a cell share (a record's end counts as a
 * byte); *same if all records are equal. The first record stays at the arena's
 * start. */
static int shared_content(struct slu_sorter *s, const struct slu_spill *sp, size_t c,
                          uint64_t *shared, bool *same, struct slu_err *err)
{
    struct slu_spill_cursor cu;
    struct slu_rec *first = slu_rec_at(s, 0), h;

    slu_spill_cursor_init(&cu, sp, c, s->read_buf, s->io_byte);
    int rc = cursor_rec(s, &cu, first, err);
    *same = true;
    for (*shared = first->n_byte; !rc;) {
        rc = slu_spill_cursor_read(&cu, &h, sizeof h, err);
        if (rc)
            break;
        *same &= h.n_byte == first->n_byte;
        if (h.n_byte < *shared)
            *shared = h.n_byte;
        uint64_t left = slu_rec_size(h.n_byte) - sizeof h, at = 0;
        while (left > 0 && !rc) {
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

/* Compares two records of the top level's file by the bytes after those that all
 * records share. */
static int cmp_on_disk(void *ctx, uint64_t off_a, uint64_t off_b)
{
    struct slu_sorter *s = ctx;
    const struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    uint8_t *a = s->read_buf, *b = a + s->io_byte / 2;
    struct slu_rec ha, hb;

    if (!s->sort_rc)
        s->sort_rc = slu_spill_read(sp, &ha, sizeof ha, off_a, s->sort_err);
    if (!s->sort_rc)
        s->sort_rc = slu_spill_read(sp, &hb, sizeof hb, off_b, s->sort_err);
    if (s->sort_rc)
        return 0;
    uint64_t n = ha.n_byte < hb.n_byte ? ha.n_byte : hb.n_byte, step = 1024;
    for (uint64_t at = s->n_shared; at < n; at += step, step = s->io_byte / 2) {
        uint64_t some = n - at < step ? n - at : step;
        s->sort_rc = slu_spill_read(sp, a, some, off_a + sizeof ha + at, s->sort_err);
        if (!s->sort_rc)
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
    uint64_t room = slu_arena_size(&s->whole) - slu_rec_size(s->budget_byte / 2);

    return cell->n_rec <= room / ENTRY;
}

/* Sorts the records of cell c of the top level without moving them; their keys and
 * first n_shared bytes are equal. */
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
        *--s->a->entry =
            (struct slu_entry){content_key(slu_rec_bytes(r), r->n_byte, s->n_shared).hi,
                               slu_spill_cursor_tell(&cu) - slu_rec_size(r->n_byte)};
        s->a->n_entry++;
    }
    s->on_disk = true;
    s->sort_rc = SLU_OK;
    s->sort_err = err;
    slu_entry_sort_by(s->a->entry, s->a->n_entry, cmp_on_disk, s);
    s->a->n_sorted = s->a->n_entry;
    return s->sort_rc;
}

static int read_on_disk(struct slu_sorter *s, uint64_t off_byte, struct slu_err *err)
{
    const struct slu_spill *sp = &s->level[s->n_level - 1].spill;
    struct slu_rec *r = slu_rec_at(s, 0);
    int rc = slu_spill_read(sp, r, sizeof *r, off_byte, err);

    if (!rc && r->n_byte > s->budget_byte / 2)
        rc = slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                      s->tmpdir);
    if (!rc && r->n_byte)
        rc = slu_spill_read(sp, r + 1, r->n_byte, off_byte + sizeof *r, err);
    return rc;
}

/* Makes a level from cell c of the top level, which does not fit. */
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

    slu_arena_clear(s, s->a);
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
        if (!rc && h.n_byte > s->budget_byte / 2)
            rc = slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                          s->tmpdir);
        if (!rc && !slu_arena_has(s->a, slu_rec_size(h.n_byte)))
            rc = slu_sorter_flush(s, err);
        if (rc)
            return rc;
        struct slu_rec *r = slu_rec_at(s, s->a->used_byte);
        *r = h;
        uint64_t n = slu_rec_size(h.n_byte) - sizeof h;
        rc = n ? slu_spill_cursor_read(&cu, r + 1, n, err) : SLU_OK;
        if (rc)
            return rc;
        if (rekey)
            r->key = content_key(slu_rec_bytes(r), r->n_byte, shared);
        slu_arena_take(s->a, slu_key_shift(r->key, top->skip).hi, sizeof h + n);
    }
}

/* ---- handing out ---- */

/* Finds the next cells of the top level that fit a: [*c0, *c1), which is empty if the
 * first cell is too large; false: no cells are left. */
static bool plan(struct slu_sorter *s, const struct slu_arena *a, size_t *c0,
                 size_t *c1)
{
    struct slu_level *lv = &s->level[s->n_level - 1];
    const struct slu_spill_cell *cell = lv->spill.cell;
    size_t n_cell = (size_t)1 << lv->spill.bits, c;
    uint64_t room = slu_load_room(s, a), n_byte = 0;

    for (c = lv->next_cell; c < n_cell && cell[c].n_rec == 0; c++)
        ;
    *c0 = c;
    for (; c < n_cell; c++) {
        uint64_t n = cell[c].n_byte + cell[c].n_rec * ENTRY;
        if (n > room - n_byte)
            break;
        n_byte += n;
    }
    *c1 = c;
    return *c0 < n_cell;
}

/* Lets the mover load the next cells to a half that no thread reads. */
static void load_later(struct slu_sorter *s, unsigned half)
{
    struct slu_task *t = &s->task[half];

    if (!plan(s, &s->half[half], &t->c0, &t->c1) || t->c0 == t->c1)
        return;
    t->kind = SLU_TASK_LOAD;
    t->arena = &s->half[half];
    s->level[s->n_level - 1].next_cell = t->c1;
    slu_mover_submit(s, t);
    s->ahead = true;
}

/* Switches to the half that was loaded. */
static int turn(struct slu_sorter *s, unsigned half, struct slu_err *err)
{
    s->ahead = false;
    s->a = &s->half[half];
    load_later(s, !half);
    return slu_mover_wait(s, &s->task[half], err);
}

/* Fills the arena with the next records; SLU_EOF if none are left. */
static int advance(struct slu_sorter *s, struct slu_err *err)
{
    s->on_disk = false;
    if (s->ahead)
        return turn(s, s->a != &s->half[1], err);
    /* The mover may still go over empty groups behind the last entry. */
    int rc = slu_mover_wait(s, &s->task[0], err);
    if (!rc)
        rc = slu_mover_wait_pins(s, NULL, err);
    s->a = &s->whole;
    slu_arena_clear(s, s->a);
    while (s->n_level && !rc) {
        struct slu_level *lv = &s->level[s->n_level - 1];
        size_t c0, c1;
        if (s->mover)
            load_later(s, 0);
        if (s->ahead)
            return turn(s, 0, err);
        if (!plan(s, s->a, &c0, &c1)) {
            slu_sorter_pop(s);
        } else if (c1 == c0) {
            lv->next_cell = c0 + 1;
            rc = descend(s, c0, err);
            if (rc || s->n_repeat || s->on_disk)
                return rc;
        } else {
            lv->next_cell = c1;
            return slu_load(s, s->a, c0, c1, err);
        }
    }
    return rc ? rc : SLU_EOF;
}

bool slu_sorter_turns(const struct slu_sorter *s)
{
    return s->on_disk || (s->a->next == s->a->n_entry && s->n_repeat == 0);
}

const struct slu_rec *slu_sorter_next_pinned(struct slu_sorter *s, uint64_t *size_byte)
{
    struct slu_arena *a = s->a;

    /* Repeats of one record: no entries either. */
    if (s->on_disk || a->next == a->n_entry)
        return NULL;
    if (a->next == a->n_sorted)
        slu_sort_more(s);
    uint64_t ref = a->entry[a->next++].ref;
    *size_byte = slu_ref_size(s, ref);
    return slu_ref_rec(s, ref);
}

int slu_sorter_next(struct slu_sorter *s, struct slu_u128 *key, const void **p,
                    size_t *n, struct slu_err *err)
{
    const struct slu_rec *r;

    if (!s->sealed)
        return slu_fail(err, SLU_E_USAGE, "the sorter was not sealed");
    if (s->a->next == s->a->n_entry && s->n_repeat == 0) {
        int rc = advance(s, err);
        if (rc)
            return rc;
    }
    struct slu_arena *a = s->a;
    if (s->n_repeat) {
        s->n_repeat--;
        r = slu_rec_at(s, 0);
    } else if (s->on_disk) {
        int rc = slu_mover_wait_pins(s, NULL, err);
        if (!rc)
            rc = read_on_disk(s, a->entry[a->next++].ref, err);
        if (rc)
            return rc;
        r = slu_rec_at(s, 0);
    } else {
        if (a->next == a->n_sorted)
            slu_sort_more(s);
        if (a->next + AHEAD < a->n_sorted)
            slu_rec_prefetch(slu_ref_rec(s, a->entry[a->next + AHEAD].ref));
        r = slu_ref_rec(s, a->entry[a->next++].ref);
    }
    const struct slu_level *lv = s->n_level ? &s->level[s->n_level - 1] : NULL;
    *key = lv && lv->by_content ? lv->key : r->key;
    *p = slu_rec_bytes(r);
    *n = r->n_byte;
    return SLU_OK;
}
