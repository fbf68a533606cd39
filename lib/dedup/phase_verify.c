/* phase_verify.c - the pairs whose d is in one part, against the sets in the sign
 * files. What is read here and there is checked as it is read: entries by a hash of
 * their own, sets by the hash in their entry. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near_private.h"
#include "lib/dedup/phases_private.h"
#include "lib/order/sorter.h"

struct verify {
    const struct slu_phase_cfg *cfg;
    struct slu_phase_parts parts;
    struct slu_workfile *own, *other; /* part cfg->part, and the one last asked for */
    uint64_t other_part;
    struct slu_near_verify *verify;
    struct slu_sorter *edges; /* by (d, k) */
    unsigned shift;
};

/* ---- the store ---- */

static int file_of(struct verify *v, uint64_t part, struct slu_workfile **f,
                   struct slu_err *err)
{
    int rc = SLU_OK;

    if (part == v->cfg->part) {
        *f = v->own;
        return SLU_OK;
    }
    if (!v->other || v->other_part != part) {
        slu_workfile_free(v->other);
        v->other = NULL;
        rc = slu_phase_parts_open(&v->parts, v->cfg, part, &v->other, err);
        v->other_part = part;
    }
    *f = v->other;
    return rc;
}

static int damaged(const struct slu_workfile *f, struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM,
                    "%s: damaged; remove it and run its phase again",
                    slu_workfile_path(f));
}

static int read_entries(void *ctx, uint64_t from, size_t n, struct slu_near_entry *e,
                        struct slu_err *err)
{
    struct verify *v = ctx;
    uint64_t raw[64 * ENTRY];
    int rc = SLU_OK;

    while (rc == SLU_OK && n > 0) {
        uint64_t part = slu_phase_part_of(&v->parts, from);
        uint64_t left = v->parts.base[part + 1] - from;
        size_t some = n < 64 ? n : 64;
        struct slu_workfile *f;
        if (some > left)
            some = (size_t)left;
        rc = file_of(v, part, &f, err);
        if (rc == SLU_OK)
            rc = slu_workfile_read(f, ENTRIES, (from - v->parts.base[part]) * ENTRY,
                                   some * ENTRY, raw, err);
        for (size_t i = 0; rc == SLU_OK && i < some; i++) {
            const uint64_t *r = raw + i * ENTRY;
            e[i] = (struct slu_near_entry){
                slu_near_rank(false, r[0]), r[1], r[2], {r[3], r[4]}};
            if (slu_hash64(r, 40) != r[5])
                rc = damaged(f, err);
        }
        from += some;
        e += some;
        n -= some;
    }
    return rc;
}

/* A set that is read in windows is checked as a whole before. */
static int check_whole(struct slu_workfile *f, const struct slu_near_entry *e,
                       struct slu_err *err)
{
    uint64_t *set = malloc(e->n_set * 8);
    int rc = set ? slu_workfile_read(f, SETS, e->off, e->n_set, set, err)
                 : slu_fail_nomem(err, e->n_set * 8);

    if (rc == SLU_OK && slu_u128_cmp(slu_set_hash128(set, e->n_set), e->hash))
        rc = damaged(f, err);
    free(set);
    return rc;
}

static int read_hashes(void *ctx, uint64_t ordinal, const struct slu_near_entry *e,
                       uint64_t from, size_t n, uint64_t *set, struct slu_err *err)
{
    struct verify *v = ctx;
    struct slu_workfile *f;
    int rc = file_of(v, slu_phase_part_of(&v->parts, ordinal), &f, err);

    if (rc == SLU_OK && n < e->n_set && from == 0)
        rc = check_whole(f, e, err);
    if (rc == SLU_OK)
        rc = slu_workfile_read(f, SETS, e->off + from, n, set, err);
    if (rc == SLU_OK && n == e->n_set && slu_u128_cmp(slu_set_hash128(set, n), e->hash))
        rc = damaged(f, err);
    return rc;
}

/* ---- pairs in, edges out ---- */

static int on_edge(void *ctx, const struct slu_near_edge *e, struct slu_err *err)
{
    struct verify *v = ctx;
    const struct slu_u128 key = {e->k, e->d << v->shift};
    const uint64_t row[4] = {e->d_rank, e->k_rank, e->inter, e->uni};
    const struct slu_piece piece = {row, sizeof row};

    return slu_sorter_add(v->edges, key, &piece, 1, err);
}

/* One merge file's pairs. */
static int take(struct verify *v, uint64_t range, struct slu_err *err)
{
    uint64_t part = v->cfg->part, n_doc = v->parts.base[v->parts.of];
    uint64_t own = v->parts.base[part], n_own = v->parts.base[part + 1] - own;
    struct slu_workfile *f;
    const uint64_t *p;
    int rc =
        slu_phase_open(v->cfg, SLU_WORKFILE_MERGE, range, v->parts.n_range,
                       v->parts.n_range, v->parts.fingerprint, &v->parts.ids, &f, err);

    if (rc == SLU_OK)
        rc = slu_workfile_begin(f, part, err);
    while (rc == SLU_OK) {
        rc = slu_workfile_next(f, PAIR, &p, err);
        if (rc)
            break;
        rc = p[0] < n_own && p[1] < n_doc
                 ? slu_near_verify_pair(v->verify, p[1], own + p[0], err)
                 : damaged(f, err);
    }
    slu_workfile_free(f);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int write_edges(struct verify *v, struct slu_workfile_out *out,
                       struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_seal(v->edges, err);

    while (rc == SLU_OK) {
        rc = slu_sorter_next(v->edges, &key, &p, &n, err);
        if (rc)
            break;
        const uint64_t *r = p;
        const uint64_t row[EDGE] = {(key.hi >> v->shift) - v->parts.base[v->cfg->part],
                                    r[0],
                                    key.lo,
                                    r[1],
                                    r[2],
                                    r[3]};
        rc = slu_workfile_put(out, row, EDGE, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int make(struct verify *v, struct slu_workfile_head *head, const char *path,
                struct slu_phase_result *result, struct slu_err *err)
{
    const struct slu_phase_cfg *c = v->cfg;
    const uint64_t *base = v->parts.base;
    const struct slu_near_store store = {read_entries, read_hashes, v,
                                         base[v->parts.of]};
    struct slu_near_verify_cfg vc = {.budget_byte = c->budget_byte / 4 * 3,
                                     .tmpdir = c->tmpdir,
                                     .n_threads = c->n_threads,
                                     .num = c->num,
                                     .den = c->den,
                                     .verify = c->verify,
                                     .store = &store,
                                     .d_first = base[c->part],
                                     .d_end = base[c->part + 1],
                                     .edge = on_edge,
                                     .ctx = v};
    struct slu_sorter_cfg ec = {c->budget_byte / 4, c->tmpdir, c->n_threads};
    struct slu_workfile_out *out = NULL;

    v->shift = 64 - slu_near_bits(store.n_doc);
    int rc = slu_phase_parts_open(&v->parts, c, c->part, &v->own, err);
    if (rc == SLU_OK)
        rc = slu_near_verify_new(&v->verify, &vc, err);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&v->edges, &ec, err);
    for (uint64_t j = 0; rc == SLU_OK && j < v->parts.n_range; j++)
        rc = take(v, j, err);
    if (rc == SLU_OK)
        rc = slu_near_verify_run(v->verify, err);
    if (rc == SLU_OK)
        rc = slu_workfile_create(&out, path, SLU_WORKFILE_VERIFY, err);
    if (rc == SLU_OK)
        rc = write_edges(v, out, err);
    if (rc) {
        slu_workfile_abort(out);
        return rc;
    }
    const struct slu_near_verify_result *r = slu_near_verify_result(v->verify);
    result->candidates = head->count[N_CANDIDATE] = r->candidates;
    result->edges = head->count[N_EDGE] = r->edges;
    result->capped_documents = head->count[N_CAPPED] = r->capped;
    result->spilled_byte = r->spilled_byte + slu_sorter_spilled(v->edges);
    return slu_workfile_close(out, head, 1, err);
}

int slu_phase_verify(const struct slu_phase_cfg *c, struct slu_phase_result *result,
                     struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_VERIFY,
                                     .part = c->part,
                                     .of = c->of},
                             is = {0};
    struct verify v = {.cfg = c};
    char *path = NULL, *param = NULL;

    *result = (struct slu_phase_result){0};
    int rc = slu_phase_parts_read(&v.parts, c, c->of, err);
    want.inputs = v.parts.ids;
    if (rc == SLU_OK)
        rc = slu_phase_mix(&v.parts, c, SLU_WORKFILE_MERGE, v.parts.n_range,
                           &v.parts.ids, &want.inputs, err);
    if (rc == SLU_OK)
        rc = slu_phase_path(c, want.kind, c->part, c->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_phase_param(c, want.kind, v.parts.n_range, &param, err);
    if (rc == SLU_OK) {
        want.param = param;
        want.count[N_RANGE] = v.parts.n_range;
        want.count[N_DOC] = v.parts.head[c->part].count[N_DOC];
        memcpy(want.fingerprint, v.parts.fingerprint, 16);
        rc = slu_phase_done(c, &want, path, &result->skipped, &is, err);
    }
    if (rc == SLU_OK && !result->skipped)
        rc = make(&v, &want, path, result, err);
    if (rc == SLU_OK && result->skipped) {
        result->candidates = is.count[N_CANDIDATE];
        result->edges = is.count[N_EDGE];
        result->capped_documents = is.count[N_CAPPED];
    }
    slu_near_verify_free(v.verify);
    slu_sorter_free(v.edges);
    slu_workfile_free(v.own);
    slu_workfile_free(v.other);
    slu_phase_parts_release(&v.parts);
    free(param);
    free(path);
    return rc;
}
