/* phase_merge.c - a key range of all parts to candidate pairs and twins, cut by the
 * part of d. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near_groups.h"
#include "lib/dedup/near_private.h"
#include "lib/dedup/phases_private.h"
#include "lib/order/sorter.h"

struct merge {
    const struct slu_phase_cfg *cfg;
    struct slu_phase_parts parts;
    struct slu_near_groups *groups;
    struct slu_sorter *pairs, *twins; /* by (d, k) and (twin, first) */
    unsigned shift;                   /* spreads ordinals over a key */
    uint64_t n_pair, n_twin;
};

static int on_pair(void *ctx, uint64_t k, uint64_t d, struct slu_err *err)
{
    struct merge *m = ctx;
    const struct slu_u128 key = {k, d << m->shift};

    return slu_sorter_add(m->pairs, key, NULL, 0, err);
}

static int on_twin(void *ctx, uint64_t first, uint64_t twin, uint64_t n_set,
                   struct slu_err *err)
{
    struct merge *m = ctx;
    const struct slu_u128 key = {first, twin << m->shift};

    (void)n_set;
    return slu_sorter_add(m->twins, key, NULL, 0, err);
}

/* One part's records of the range. */
static int take(struct merge *m, uint64_t part, struct slu_err *err)
{
    const struct slu_phase_cfg *c = m->cfg;
    unsigned n_word = slu_phase_record(c), n_band = c->exact ? 0 : c->n_band;
    struct slu_workfile *f;
    const uint64_t *v;
    int rc = slu_phase_parts_open(&m->parts, c, part, &f, err);

    if (rc == SLU_OK)
        rc = slu_workfile_begin(f, RECORDS + c->part, err);
    while (rc == SLU_OK) {
        rc = slu_workfile_next(f, n_word, &v, err);
        if (rc)
            break;
        uint64_t last = v[n_word - 1], band = last >> BAND_SHIFT;
        uint64_t ordinal = m->parts.base[part] + (last & LOCAL_MASK);
        uint64_t rank = slu_near_rank(false, n_word == 4 ? v[2] : 0);
        const struct slu_u128 hash = {v[1], v[0]};
        if (band > n_band || ordinal >= m->parts.base[part + 1] || rank == 0)
            rc = slu_fail(err, SLU_E_CHECKSUM,
                          "%s: damaged; remove it and run its phase again",
                          slu_workfile_path(f));
        else if (band == n_band)
            rc = slu_near_groups_set(m->groups, hash, 1, rank, ordinal, err);
        else
            rc = slu_near_groups_band(m->groups, (unsigned)band, v[0], hash, rank,
                                      ordinal, err);
    }
    slu_workfile_free(f);
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* What s has, each once, in sections from `section` on. */
static int write_pairs(struct merge *m, struct slu_sorter *s,
                       struct slu_workfile_out *out, uint64_t section, uint64_t *n_pair,
                       struct slu_err *err)
{
    struct slu_u128 last = {0, 0}, key;
    const void *p;
    size_t n;
    int rc = slu_sorter_seal(s, err);

    while (rc == SLU_OK) {
        rc = slu_sorter_next(s, &key, &p, &n, err);
        if (rc || (*n_pair && slu_u128_cmp(key, last) == 0))
            continue;
        ++*n_pair;
        last = key;
        uint64_t d = key.hi >> m->shift, part = slu_phase_part_of(&m->parts, d);
        const uint64_t row[PAIR] = {d - m->parts.base[part], key.lo};
        rc = slu_workfile_section(out, section + part, err);
        if (rc == SLU_OK)
            rc = slu_workfile_put(out, row, PAIR, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int make(struct merge *m, const struct slu_workfile_head *head, const char *path,
                struct slu_phase_result *result, struct slu_err *err)
{
    const struct slu_phase_cfg *c = m->cfg;
    struct slu_near_groups_cfg gc = {.sort_byte = c->budget_byte / 2,
                                     .member_byte = c->budget_byte / 8,
                                     .tmpdir = c->tmpdir,
                                     .n_threads = c->n_threads,
                                     .n_band = c->exact ? 0 : c->n_band,
                                     .band_cap = c->exact ? 1 : c->band_cap,
                                     .pair = on_pair,
                                     .twin = on_twin,
                                     .ctx = m};
    struct slu_sorter_cfg pc = {c->budget_byte / 4, c->tmpdir, c->n_threads};
    struct slu_sorter_cfg tc = {c->budget_byte / 8, c->tmpdir, c->n_threads};
    struct slu_workfile_out *out = NULL;

    m->shift = 64 - slu_near_bits(m->parts.base[m->parts.of]);
    int rc = slu_near_groups_new(&m->groups, &gc, err);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&m->pairs, &pc, err);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&m->twins, &tc, err);
    for (uint64_t i = 0; rc == SLU_OK && i < m->parts.of; i++)
        rc = take(m, i, err);
    if (rc == SLU_OK)
        rc = slu_near_groups_run(m->groups, err);
    if (rc == SLU_OK)
        rc = slu_workfile_create(&out, path, SLU_WORKFILE_MERGE, err);
    if (rc == SLU_OK)
        rc = write_pairs(m, m->pairs, out, 0, &m->n_pair, err);
    if (rc == SLU_OK)
        rc = write_pairs(m, m->twins, out, m->parts.of, &m->n_twin, err);
    if (rc) {
        slu_workfile_abort(out);
        return rc;
    }
    result->twins = m->n_twin;
    result->candidates = m->n_pair;
    result->spilled_byte = slu_near_groups_spilled(m->groups) +
                           slu_sorter_spilled(m->pairs) + slu_sorter_spilled(m->twins);
    return slu_workfile_close(out, head, 2 * m->parts.of, err);
}

int slu_phase_merge(const struct slu_phase_cfg *c, struct slu_phase_result *result,
                    struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_MERGE,
                                     .part = c->part,
                                     .of = c->of},
                             is;
    struct slu_phase_cfg mine = *c;
    struct merge m = {.cfg = &mine};
    char *path = NULL, *param = NULL;

    *result = (struct slu_phase_result){0};
    mine.ranges = c->of; /* what sign must have made */
    int rc = slu_phase_parts_read(&m.parts, &mine, 0, err);
    if (rc == SLU_OK)
        rc = slu_phase_path(c, want.kind, c->part, c->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_phase_param(c, want.kind, c->of, &param, err);
    if (rc == SLU_OK) {
        want.param = param;
        want.inputs = m.parts.ids;
        want.count[N_DOC] = m.parts.base[m.parts.of];
        want.count[N_RANGE] = m.parts.n_range;
        memcpy(want.fingerprint, m.parts.fingerprint, 16);
        rc = slu_phase_done(c, &want, path, &result->skipped, &is, err);
    }
    if (rc == SLU_OK && !result->skipped)
        rc = make(&m, &want, path, result, err);
    slu_near_groups_free(m.groups);
    slu_sorter_free(m.pairs);
    slu_sorter_free(m.twins);
    slu_phase_parts_release(&m.parts);
    free(param);
    free(path);
    return rc;
}
