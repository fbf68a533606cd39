/* passages_phase_meet.c - the phases that take one range of keys from all parts' files:
 * blocks meet (merge), then windows (match). What follows goes to the parts it is of.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/passages_phase_private.h"

struct meet {
    const struct slu_phase_cfg *cfg;
    bool windows; /* match, else merge */
    struct slu_phase_parts parts;
    struct slu_u128 merged; /* what the ask files are made from */
    unsigned spread;        /* places << spread use all of 64 bits */
    struct slu_cells *cells;
    struct slu_sorter *asked, *repeats; /* key: place << spread, windows */
    uint64_t n_asked, n_repeat;
};

static int open_part(struct meet *m, uint64_t part, struct slu_workfile **f,
                     struct slu_err *err)
{
    return m->windows ? slu_phase_open(m->cfg, SLU_WORKFILE_PASSAGES_ASK, part,
                                       m->parts.of, m->parts.n_range,
                                       m->parts.fingerprint, &m->merged, f, err)
                      : slu_phase_parts_open(&m->parts, m->cfg, part, f, err);
}

/* One part's records of the range: places become those in all parts. */
static int take_part(struct meet *m, uint64_t part, struct slu_err *err)
{
    const uint64_t base = m->parts.base[part], n = m->parts.base[part + 1] - base, *v;
    unsigned group_bits = m->windows ? 64 : SLU_ANCHOR_BITS;
    struct slu_workfile *f;
    int rc = open_part(m, part, &f, err);

    if (rc == SLU_OK)
        rc = slu_workfile_begin(f, m->cfg->part, err);
    while (rc == SLU_OK) {
        rc = slu_workfile_next(f, KEYED, &v, err);
        if (rc)
            break;
        const struct slu_keyed r = {v[0], v[1], v[2] + (base << 16)};
        uint64_t place = v[2] >> 16, count = v[2] & 0xffff;
        if (place >= n || count == 0 || count > n - place ||
            slu_cells_range(r.hi, m->parts.n_range, group_bits) != m->cfg->part)
            rc = slu_fail(err, SLU_E_CHECKSUM,
                          "%s: damaged; remove it and run its phase again",
                          slu_workfile_path(f));
        else
            rc = slu_cells_put(m->cells, &r, 1, err);
    }
    slu_workfile_free(f);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int take_finds(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct meet *m = ctx;
    const struct slu_found *f = (const void *)out->data, *end;
    int rc = SLU_OK;

    for (end = f + out->len / sizeof *f; rc == SLU_OK && f < end; f++) {
        const struct slu_u128 key = {f->count, f->place << m->spread};
        if (f->kind == SLU_FOUND_REPEAT) {
            m->n_repeat++;
            rc = slu_sorter_add(m->repeats, key, NULL, 0, err);
        } else if (f->kind == SLU_FOUND_ASK) {
            m->n_asked++;
            rc = slu_sorter_add(m->asked, key, NULL, 0, err);
        }
    }
    return rc;
}

/* ---- the file ---- */

struct run_out {
    struct slu_workfile_out *out;
    uint64_t section, place, count; /* the run that may grow; count 0: none */
};

static int put_run(struct run_out *o, struct slu_err *err)
{
    const uint64_t v = o->place << 16 | o->count;
    int rc = o->count ? slu_workfile_section(o->out, o->section, err) : SLU_OK;

    return rc == SLU_OK && o->count ? slu_workfile_put(o->out, &v, 1, err) : rc;
}

/* What s has, by part, in sections from `section` on. join: runs whose ids touch or
 * overlap are one, as far as its count goes. */
static int write_runs(struct meet *m, struct slu_sorter *s,
                      struct slu_workfile_out *out, uint64_t section, bool join,
                      struct slu_err *err)
{
    struct run_out o = {.out = out};
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_seal(s, err);

    while (rc == SLU_OK) {
        rc = slu_sorter_next(s, &key, &p, &n, err);
        if (rc)
            break;
        uint64_t place = key.hi >> m->spread, end = 0;
        uint64_t part = slu_phase_part_of(&m->parts, place);
        place -= m->parts.base[part];
        if (join && o.count && o.section == section + part &&
            place <= o.place + o.count - 1 + m->cfg->n_passage_tok)
            end =
                place + key.lo > o.place + o.count ? place + key.lo : o.place + o.count;
        if (end && end - o.place <= UINT16_MAX) {
            o.count = end - o.place;
            continue;
        }
        rc = put_run(&o, err);
        o = (struct run_out){out, section + part, place, key.lo};
    }
    return rc == SLU_EOF ? put_run(&o, err) : rc;
}

static int make(struct meet *m, const struct slu_phase_own *own,
                struct slu_passages_phase_result *result, struct slu_err *err)
{
    const struct slu_phase_cfg *c = m->cfg;
    struct slu_cells_ops ops = {
        .n_tok = c->n_passage_tok, .take = take_finds, .ctx = m};
    const struct slu_cells_cfg cc = {c->budget_byte / 2, c->tmpdir, m->parts.n_range,
                                     m->windows ? 64 : SLU_ANCHOR_BITS, false};
    struct slu_sorter_cfg sc = {c->budget_byte / 8, c->tmpdir, c->n_threads};
    struct slu_workfile_out *out = NULL;
    struct slu_workfile_head head = own->want;
    uint64_t n_part = m->parts.of;
    int rc = slu_cells_new_of(&m->cells, &cc, err);

    if (m->windows)
        slu_match_windows(&ops);
    else
        slu_match_blocks(&ops);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&m->repeats, &sc, err);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&m->asked, &sc, err);
    for (uint64_t i = 0; rc == SLU_OK && i < n_part; i++)
        rc = take_part(m, i, err);
    if (rc == SLU_OK)
        rc = slu_cells_groups(m->cells, &ops, c->budget_byte / 4, c->n_threads, err);
    if (rc)
        return rc;
    result->spilled_byte = slu_cells_spilled(m->cells);
    slu_cells_free(m->cells);
    m->cells = NULL;
    rc = slu_workfile_create(&out, own->path, head.kind, err);
    if (rc == SLU_OK && !m->windows)
        rc = write_runs(m, m->asked, out, 0, false, err);
    if (rc == SLU_OK)
        rc = write_runs(m, m->repeats, out, m->windows ? 0 : n_part, true, err);
    if (rc) {
        slu_workfile_abort(out);
        return rc;
    }
    result->spilled_byte +=
        slu_sorter_spilled(m->asked) + slu_sorter_spilled(m->repeats);
    head.count[N_REPEAT] = m->n_repeat;
    if (!m->windows)
        head.count[N_ASKED] = m->n_asked;
    return slu_workfile_close(out, &head, m->windows ? n_part : 2 * n_part, err);
}

/* Reads who there is, says what the file is made from. */
static int look(struct meet *m, struct slu_phase_own *own, struct slu_err *err)
{
    const struct slu_phase_cfg *c = m->cfg;
    int rc = slu_phase_parts_read(&m->parts, c, 0, err);

    if (rc)
        return rc;
    own->want.inputs = m->merged = m->parts.ids;
    if (m->windows) {
        rc = slu_phase_mix(&m->parts, c, SLU_WORKFILE_MERGE, m->parts.n_range,
                           &m->parts.ids, &m->merged, err);
        own->want.inputs = m->merged;
        if (rc == SLU_OK)
            rc = slu_phase_mix(&m->parts, c, SLU_WORKFILE_PASSAGES_ASK, m->parts.of,
                               &m->merged, &own->want.inputs, err);
        own->want.count[CHAIN_LO] = m->merged.lo;
        own->want.count[CHAIN_HI] = m->merged.hi;
    }
    uint64_t n_place = m->parts.base[m->parts.of];
    if (rc == SLU_OK && n_place >> SLU_PLACE_BITS)
        rc = slu_fail(err, SLU_E_LIMIT, "passages of more than 2^%d tokens",
                      SLU_PLACE_BITS);
    m->spread = (unsigned)__builtin_clzll(n_place | 1);
    memcpy(own->want.fingerprint, m->parts.fingerprint, 16);
    return rc ? rc : slu_phase_own(own, c, m->parts.n_range, err);
}

static int meet(const struct slu_phase_cfg *c, bool windows,
                struct slu_passages_phase_result *result, struct slu_err *err)
{
    struct slu_phase_cfg mine = *c;
    struct meet m = {.cfg = &mine, .windows = windows};
    struct slu_phase_own own = {
        .want = {.kind = windows ? SLU_WORKFILE_PASSAGES_MATCH : SLU_WORKFILE_MERGE,
                 .part = c->part,
                 .of = c->of}};

    *result = (struct slu_passages_phase_result){0};
    mine.ranges = c->of; /* what sign must have made */
    int rc = look(&m, &own, err);
    if (rc == SLU_OK && !own.done)
        rc = make(&m, &own, result, err);
    else if (rc == SLU_OK) {
        m.n_repeat = own.is.count[N_REPEAT];
        m.n_asked = own.is.count[N_ASKED];
    }
    result->skipped = own.done;
    if (windows) {
        result->repeated_windows = m.n_repeat;
    } else {
        result->repeated_blocks = m.n_repeat;
        result->asked_blocks = m.n_asked;
    }
    slu_cells_free(m.cells);
    slu_sorter_free(m.asked);
    slu_sorter_free(m.repeats);
    slu_phase_parts_release(&m.parts);
    slu_phase_own_release(&own);
    return rc;
}

int slu_passages_phase_merge(const struct slu_phase_cfg *c,
                             struct slu_passages_phase_result *result,
                             struct slu_err *err)
{
    return meet(c, false, result, err);
}

int slu_passages_phase_match(const struct slu_phase_cfg *c,
                             struct slu_passages_phase_result *result,
                             struct slu_err *err)
{
    return meet(c, true, result, err);
}
