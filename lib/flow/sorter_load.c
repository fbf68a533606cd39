/* sorter_load.c - reads cells from the disk into an arena and sorts them (see
 * sorter.c). */
#include <string.h>

#include "sorter_private.h"

/* Extents that bypass the page cache are read to memory with the same alignment. This
 * loses up to SLU_SPILL_ALIGN before and after each extent, and once more at the first
 * extent that follows those of the page cache. */
#define SLACK (2 * SLU_SPILL_ALIGN)

static uint64_t slack(const struct slu_spill *sp, const struct slu_arena *a)
{
    uint64_t n_direct = sp->n_flush - sp->n_cached;

    if (n_direct == 0 || n_direct >= slu_arena_size(a) / (8 * SLACK))
        return 0; /* none, or too many: read through the page cache */
    return (n_direct + 1) * SLACK;
}

uint64_t slu_load_room(const struct slu_sorter *s, const struct slu_arena *a)
{
    return slu_arena_size(a) - slack(&s->level[s->n_level - 1].spill, a);
}

static int damaged(const struct slu_sorter *s, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged record",
                    s->tmpdir);
}

struct loading {
    struct slu_sorter *s;
    const struct slu_level *lv;
    struct slu_arena *a;
    size_t c0, c1;
    bool direct;
    struct {                   /* flush f uses element f % READS */
        uint64_t from, to, at; /* offsets in the file; position in the map */
    } extent[READS];
};

/* Begins to read the extent that flush f has of the cells. */
static int begin_extent(struct loading *l, size_t f, struct slu_err *err)
{
    struct slu_sorter *s = l->s;
    const struct slu_spill *sp = &l->lv->spill;
    struct slu_spill_req *r = &s->read[f % READS];
    bool direct = l->direct && f >= sp->n_cached;
    uint64_t from, to, before = 0, at = l->a->used_byte;
    int rc = slu_spill_extent(sp, f, l->c0, l->c1, &from, &to, err);

    if (rc)
        return rc;
    r->n_byte = to - from;
    if (direct && to > from) {
        before = from % SLU_SPILL_ALIGN;
        at = ((at + SLU_SPILL_ALIGN - 1) & -(uint64_t)SLU_SPILL_ALIGN) + before;
        r->n_byte =
            (before + r->n_byte + SLU_SPILL_ALIGN - 1) & -(uint64_t)SLU_SPILL_ALIGN;
    }
    uint64_t room = (uint64_t)((uint8_t *)l->a->entry - s->map);
    if (at - before > room || r->n_byte > room - (at - before))
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", s->tmpdir);
    l->extent[f % READS].from = from;
    l->extent[f % READS].to = to;
    l->extent[f % READS].at = at;
    l->a->used_byte = at + (to - from);
    if (to == from)
        return SLU_OK;
    r->file = &sp->file;
    r->what = SLU_SPILL_READ;
    r->direct = direct;
    r->p = s->map + at - before;
    r->off_byte = from - before;
    slu_spill_submit(s->queue, r);
    return SLU_OK;
}

/* Adds the entries of an extent's records, each to its cell. */
static int end_extent(struct loading *l, size_t f, struct slu_err *err)
{
    struct slu_sorter *s = l->s;
    const struct slu_spill *sp = &l->lv->spill;
    uint64_t at = l->extent[f % READS].at, from = l->extent[f % READS].from,
             to = l->extent[f % READS].to;
    int rc = slu_spill_wait(s->queue, &s->read[f % READS], err);

    if (rc)
        return rc;
    for (uint64_t left = to - from; left > 0;) {
        const struct slu_rec *r = slu_rec_at(s, at);
        if (left < sizeof *r || r->n_byte > left || slu_rec_size(r->n_byte) > left)
            return damaged(s, err);
        struct slu_u128 key = slu_key_shift(r->key, l->lv->skip);
        size_t c = key.hi >> (64 - sp->bits);
        if (c < l->c0 || c >= l->c1 || s->head[c] >= s->start[c + 1])
            return damaged(s, err);
        const struct slu_spill_cell *cell = &sp->cell[c];
        uint64_t size = slu_rec_size(r->n_byte);
        l->a->entry[s->head[c]++] = (struct slu_entry){
            slu_key_shift(r->key, slu_key_shared(cell->min, cell->max)).hi,
            slu_ref(at, size)};
        left -= size;
        at += size;
    }
    return SLU_OK;
}

/* Whether the disk space of loaded cells may soon be needed. Releasing the space takes
 * a tenth of the time of a large shuffle, so it is kept while the disk has plenty. */
static bool is_tight(const struct slu_spill *sp)
{
    return slu_spill_disk_free(sp) / 4 < sp->end_byte;
}

/* Releases the disk space of loaded cells when much has been loaded, and only while no
 * read is in flight, because the file system blocks reads meanwhile. */
static int give_back(struct slu_level *lv, size_t c1, struct slu_err *err)
{
    const struct slu_spill *sp = &lv->spill;
    int rc = SLU_OK;

    if (lv->kept_byte < sp->end_byte / 16)
        return SLU_OK;
    lv->kept_byte = 0;
    if (!is_tight(sp))
        return SLU_OK;
    for (size_t f = 0; f < sp->n_flush && !rc; f++) {
        uint64_t from, to;
        rc = slu_spill_extent(sp, f, lv->kept_cell, c1, &from, &to, err);
        if (!rc)
            slu_spill_discard(sp, from, to);
    }
    lv->kept_cell = c1;
    return rc;
}

int slu_load(struct slu_sorter *s, struct slu_arena *a, size_t c0, size_t c1,
             struct slu_err *err)
{
    struct slu_level *lv = &s->level[s->n_level - 1];
    const struct slu_spill *sp = &lv->spill;
    struct loading l = {.s = s, .lv = lv, .a = a, .c0 = c0, .c1 = c1};
    size_t begun = 0, ended = 0, n = 0;
    int rc = SLU_OK;

    l.direct = slack(sp, a) > 0;
    slu_arena_clear(s, a);
    for (size_t c = c0; c < c1; c++) {
        s->start[c] = s->head[c] = n;
        n += sp->cell[c].n_rec;
        lv->kept_byte += sp->cell[c].n_byte;
    }
    s->start[c1] = n;
    a->entry -= n;
    a->n_entry = n;
    while (ended < sp->n_flush && !rc) {
        while (begun < sp->n_flush && begun - ended < READS && !rc)
            rc = begin_extent(&l, begun++, err);
        if (!rc)
            rc = end_extent(&l, ended++, err);
    }
    for (unsigned i = 0; i < READS; i++) { /* after an error */
        int r = slu_spill_wait(s->queue, &s->read[i], rc ? NULL : err);
        rc = rc ? rc : r;
    }
    if (!rc)
        rc = give_back(lv, c1, err);
    if (rc)
        return rc;
    for (size_t c = c0; c < c1; c++) {
        if (s->head[c] != s->start[c + 1])
            return damaged(s, err);
        if (sp->cell[c].n_rec > 1)
            slu_entries_sort(s, a->entry + s->start[c], sp->cell[c].n_rec,
                             slu_key_shared(sp->cell[c].min, sp->cell[c].max));
    }
    a->n_sorted = n;
    return SLU_OK;
}
