/* phase_cluster.c - all parts' edges and twins to the list of what each part drops; and
 * the filter that takes it out. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near_cluster.h"
#include "lib/dedup/phases_private.h"

struct cluster {
    const struct slu_phase_cfg *cfg;
    struct slu_phase_parts parts;
    struct slu_near_cluster *cluster;
    struct slu_u128 merged; /* inputs of verify files */
};

static int damaged(const struct slu_workfile *f, struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM,
                    "%s: damaged; remove it and run its phase again",
                    slu_workfile_path(f));
}

static int take_twins(struct cluster *c, uint64_t range,
                      struct slu_phase_result *result, struct slu_err *err)
{
    const uint64_t *base = c->parts.base, *p;
    struct slu_workfile *f;
    int rc =
        slu_phase_open(c->cfg, SLU_WORKFILE_MERGE, range, c->parts.n_range,
                       c->parts.n_range, c->parts.fingerprint, &c->parts.ids, &f, err);

    for (uint64_t i = 0; rc == SLU_OK && i < c->parts.of; i++) {
        rc = slu_workfile_begin(f, c->parts.of + i, err);
        while (rc == SLU_OK) {
            rc = slu_workfile_next(f, PAIR, &p, err);
            if (rc)
                break;
            result->twins++;
            rc = p[0] < base[i + 1] - base[i] && p[1] < base[c->parts.of]
                     ? slu_near_cluster_twin(c->cluster, p[1], base[i] + p[0], 1, err)
                     : damaged(f, err);
        }
        if (rc == SLU_EOF)
            rc = SLU_OK;
    }
    slu_workfile_free(f);
    return rc;
}

static int take_edges(struct cluster *c, uint64_t part, struct slu_phase_result *result,
                      struct slu_err *err)
{
    const uint64_t *base = c->parts.base, *p;
    struct slu_workfile *f;
    int rc =
        slu_phase_open(c->cfg, SLU_WORKFILE_VERIFY, part, c->parts.of, c->parts.n_range,
                       c->parts.fingerprint, &c->merged, &f, err);

    if (rc == SLU_OK)
        rc = slu_workfile_begin(f, 0, err);
    while (rc == SLU_OK) {
        rc = slu_workfile_next(f, EDGE, &p, err);
        if (rc)
            break;
        const struct slu_near_edge e = {
            base[part] + p[0], p[1], p[2], p[3], p[4], p[5]};
        result->edges++;
        rc = p[0] < base[part + 1] - base[part] && p[2] < base[c->parts.of]
                 ? slu_near_cluster_edge(c->cluster, &e, err)
                 : damaged(f, err);
    }
    if (rc == SLU_EOF) {
        result->candidates += slu_workfile_head(f)->count[N_CANDIDATE];
        result->capped_documents += slu_workfile_head(f)->count[N_CAPPED];
        rc = SLU_OK;
    }
    slu_workfile_free(f);
    return rc;
}

/* What a part's file says of itself. */
static void head_of(const struct cluster *c, uint64_t part, struct slu_u128 inputs,
                    const char *param, struct slu_workfile_head *h)
{
    *h = (struct slu_workfile_head){.kind = SLU_WORKFILE_CLUSTER,
                                    .part = part,
                                    .of = c->parts.of,
                                    .inputs = inputs,
                                    .param = param};
    memcpy(h->fingerprint, c->parts.fingerprint, 16);
    memcpy(h->count, c->parts.head[part].count, sizeof h->count);
    h->count[N_RANGE] = c->parts.n_range;
    h->count[N_DROPPED] = 0;
}

static int write_part(struct cluster *c, struct slu_workfile_head *head,
                      struct slu_near_drop *drop, bool *more, struct slu_err *err)
{
    uint64_t from = c->parts.base[head->part], to = c->parts.base[head->part + 1];
    struct slu_workfile_out *out = NULL;
    char *path;
    int rc = slu_phase_path(c->cfg, head->kind, head->part, head->of, &path, err);

    if (rc == SLU_OK)
        rc = slu_workfile_create(&out, path, SLU_WORKFILE_CLUSTER, err);
    while (rc == SLU_OK && *more && drop->ordinal < to) {
        const uint64_t row[DROP] = {drop->ordinal - from, drop->witness, drop->inter,
                                    drop->uni};
        rc = slu_workfile_put(out, row, DROP, err);
        head->count[N_DROPPED]++;
        if (rc == SLU_OK)
            rc = slu_near_cluster_next(c->cluster, drop, err);
        if (rc == SLU_EOF) {
            *more = false;
            rc = SLU_OK;
        }
    }
    if (rc == SLU_OK) {
        rc = slu_workfile_close(out, head, 1, err);
        out = NULL;
    }
    slu_workfile_abort(out);
    free(path);
    return rc;
}

static int make(struct cluster *c, struct slu_u128 inputs, const char *param,
                struct slu_phase_result *result, struct slu_err *err)
{
    struct slu_near_cluster_cfg cc = {.budget_byte = c->cfg->budget_byte,
                                      .tmpdir = c->cfg->tmpdir,
                                      .n_threads = c->cfg->n_threads,
                                      .n_doc = c->parts.base[c->parts.of],
                                      .by_prio = slu_phase_by_prio(c->cfg)};
    struct slu_near_drop drop;
    bool more = true;
    int rc = slu_near_cluster_new(&c->cluster, &cc, err);

    for (uint64_t j = 0; rc == SLU_OK && j < c->parts.n_range; j++)
        rc = take_twins(c, j, result, err);
    for (uint64_t i = 0; rc == SLU_OK && !c->cfg->exact && i < c->parts.of; i++)
        rc = take_edges(c, i, result, err);
    if (rc == SLU_OK)
        rc = slu_near_cluster_run(c->cluster, err);
    if (rc == SLU_OK)
        rc = slu_near_cluster_next(c->cluster, &drop, err);
    if (rc == SLU_EOF) {
        more = false;
        rc = SLU_OK;
    }
    for (uint64_t i = 0; rc == SLU_OK && i < c->parts.of; i++) {
        struct slu_workfile_head head;
        head_of(c, i, inputs, param, &head);
        rc = write_part(c, &head, &drop, &more, err);
        result->dropped += head.count[N_DROPPED];
    }
    result->spilled_byte = c->cluster ? slu_near_cluster_spilled(c->cluster) : 0;
    return rc;
}

/* Whether all parts' files are there. */
static int all_done(struct cluster *c, struct slu_u128 inputs, const char *param,
                    struct slu_phase_result *result, struct slu_err *err)
{
    int rc = SLU_OK;

    result->skipped = true;
    for (uint64_t i = 0; rc == SLU_OK && i < c->parts.of; i++) {
        struct slu_workfile_head head, is = {0};
        char *path;
        bool done = false;
        head_of(c, i, inputs, param, &head);
        rc = slu_phase_path(c->cfg, head.kind, i, head.of, &path, err);
        if (rc == SLU_OK)
            rc = slu_phase_done(c->cfg, &head, path, &done, &is, err);
        result->skipped &= done;
        result->dropped += done ? is.count[N_DROPPED] : 0;
        free(path);
    }
    if (!result->skipped)
        result->dropped = 0;
    return rc;
}

int slu_phase_cluster(const struct slu_phase_cfg *cfg, struct slu_phase_result *result,
                      struct slu_err *err)
{
    struct cluster c = {.cfg = cfg};
    struct slu_u128 inputs;
    char *param = NULL;

    *result = (struct slu_phase_result){0};
    int rc = slu_phase_parts_read(&c.parts, cfg, 0, err);
    c.merged = c.parts.ids;
    if (rc == SLU_OK)
        rc = slu_phase_mix(&c.parts, cfg, SLU_WORKFILE_MERGE, c.parts.n_range,
                           &c.parts.ids, &c.merged, err);
    inputs = c.merged;
    if (rc == SLU_OK && !cfg->exact)
        rc = slu_phase_mix(&c.parts, cfg, SLU_WORKFILE_VERIFY, c.parts.of, &c.merged,
                           &inputs, err);
    if (rc == SLU_OK)
        rc = slu_phase_param(cfg, SLU_WORKFILE_CLUSTER, c.parts.n_range, &param, err);
    if (rc == SLU_OK)
        rc = all_done(&c, inputs, param, result, err);
    if (rc == SLU_OK && !result->skipped)
        rc = make(&c, inputs, param, result, err);
    result->documents = rc == SLU_OK ? c.parts.base[c.parts.of] : 0;
    slu_near_cluster_free(c.cluster);
    slu_phase_parts_release(&c.parts);
    free(param);
    return rc;
}

/* ---- the filter ---- */

struct slu_phase_filter {
    struct slu_workfile *file;
    uint64_t ordinal, next; /* local; UINT64_MAX: no more to drop */
};

static int next_drop(struct slu_phase_filter *f, struct slu_err *err)
{
    const uint64_t *p;
    int rc = slu_workfile_next(f->file, DROP, &p, err);

    if (rc == SLU_EOF) {
        f->next = UINT64_MAX;
        return SLU_OK;
    }
    if (rc)
        return rc;
    if (p[0] < f->ordinal || p[0] >= slu_workfile_head(f->file)->count[N_DOC] ||
        (f->next != UINT64_MAX && p[0] <= f->next))
        return damaged(f->file, err);
    f->next = p[0];
    return SLU_OK;
}

int slu_phase_filter_open(struct slu_phase_filter **out,
                          const struct slu_phase_cfg *cfg, const struct slu_header *h,
                          struct slu_err *err)
{
    struct slu_phase_filter *f = calloc(1, sizeof *f);

    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    f->next = UINT64_MAX;
    int rc = slu_phase_open(cfg, SLU_WORKFILE_CLUSTER, cfg->part, cfg->of, cfg->ranges,
                            h->fingerprint, NULL, &f->file, err);
    if (rc == SLU_OK)
        rc = slu_workfile_begin(f->file, 0, err);
    if (rc == SLU_OK)
        rc = next_drop(f, err);
    if (rc)
        slu_phase_filter_free(f);
    else
        *out = f;
    return rc;
}

int slu_phase_filter_batch(struct slu_phase_filter *f, struct slu_batch *b,
                           struct slu_count *dropped, struct slu_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_seq; i++, f->ordinal++) {
        struct slu_seq q = b->seq[i];
        if (f->ordinal != f->next) {
            b->seq[n++] = q;
            continue;
        }
        slu_count_add(dropped, slu_seq_count(b, &q));
        int rc = next_drop(f, err);
        if (rc)
            return rc;
    }
    if (n < b->n_seq)
        b->sum_valid = false;
    b->n_seq = n;
    return SLU_OK;
}

int slu_phase_filter_end(struct slu_phase_filter *f, struct slu_reader *r,
                         const struct slu_sum *total, struct slu_err *err)
{
    bool same;
    int rc =
        slu_phase_same_stream(&same, slu_workfile_head(f->file)->count, r, total, err);

    if (rc)
        return rc;
    if (!same || f->next != UINT64_MAX)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream is not the one that part %llu/%llu was signed from",
                        (unsigned long long)slu_workfile_head(f->file)->part,
                        (unsigned long long)slu_workfile_head(f->file)->of);
    return SLU_OK;
}

void slu_phase_filter_free(struct slu_phase_filter *f)
{
    if (!f)
        return;
    slu_workfile_free(f->file);
    free(f);
}
