/* near_ext.c - the parts put together: documents go to the group sorter at once, their
 * sets and entries to two temporary files; at the end groups -> verify -> cluster. */
#include "lib/dedup/near_ext.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io.h"
#include "lib/dedup/near_cluster.h"
#include "lib/dedup/near_groups.h"
#include "lib/dedup/near_private.h"
#include "lib/dedup/near_verify.h"

/* A temporary file that is appended to through a buffer, and read by offset. */
struct tail {
    int fd;
    uint8_t *buf;
    size_t n, cap;
    uint64_t n_byte; /* of the file, what is in buf included */
};

struct slu_near_ext {
    struct slu_near_ext_cfg cfg;
    char *tmpdir;
    struct slu_near_groups *groups;
    struct slu_near_verify *verify;
    struct slu_near_cluster *cluster;
    struct tail sets, entries; /* hashes; struct slu_near_entry of ordinals from 0 on */
    uint64_t n_doc;            /* ordinals so far: entries */
    bool added, finished;
    struct slu_near_ext_result result;
};

/* ---- temporary files ---- */

static int tail_flush(struct slu_near_ext *x, struct tail *t, struct slu_err *err)
{
    int rc = SLU_OK;

    if (t->n && t->fd < 0)
        rc = slu_tmpfile(&t->fd, x->tmpdir, err);
    if (rc == SLU_OK && t->n && slu_write_full(t->fd, t->buf, t->n, err))
        rc = slu_err_at(err, "%s: cannot hold what exceeds -M", x->tmpdir);
    t->n = 0;
    return rc;
}

static int tail_put(struct slu_near_ext *x, struct tail *t, const void *p, size_t n,
                    struct slu_err *err)
{
    const uint8_t *from = p;
    int rc = SLU_OK;

    if (!t->buf && !(t->buf = malloc(t->cap)))
        return slu_fail_nomem(err, t->cap);
    t->n_byte += n;
    while (rc == SLU_OK && n > 0) {
        size_t some = t->cap - t->n < n ? t->cap - t->n : n;
        memcpy(t->buf + t->n, from, some);
        t->n += some;
        from += some;
        n -= some;
        if (t->n == t->cap)
            rc = tail_flush(x, t, err);
    }
    return rc;
}

/* The buffer goes once everything is in the file. */
static int tail_end(struct slu_near_ext *x, struct tail *t, struct slu_err *err)
{
    int rc = tail_flush(x, t, err);

    free(t->buf);
    t->buf = NULL;
    return rc;
}

static int tail_read(struct slu_near_ext *x, const struct tail *t, void *p, size_t n,
                     uint64_t off_byte, struct slu_err *err)
{
    if (n == 0)
        return SLU_OK;
    if (off_byte > t->n_byte || n > t->n_byte - off_byte || t->fd < 0)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", x->tmpdir);
    int rc = slu_pread_full(t->fd, p, n, off_byte, err);
    return rc ? slu_err_at(err, "temporary file in %s", x->tmpdir) : SLU_OK;
}

static int read_entries(void *ctx, uint64_t from, size_t n, struct slu_near_entry *e,
                        struct slu_err *err)
{
    struct slu_near_ext *x = ctx;

    return tail_read(x, &x->entries, e, n * sizeof *e, from * sizeof *e, err);
}

static int read_hashes(void *ctx, uint64_t ordinal, const struct slu_near_entry *e,
                       uint64_t from, size_t n, uint64_t *set, struct slu_err *err)
{
    struct slu_near_ext *x = ctx;

    (void)ordinal;
    return tail_read(x, &x->sets, set, n * 8, (e->off + from) * 8, err);
}

/* ---- taking documents ---- */

static int new_groups(struct slu_near_ext *x, struct slu_err *err);

int slu_near_ext_new(struct slu_near_ext **out, const struct slu_near_ext_cfg *cfg,
                     struct slu_err *err)
{
    *out = NULL;
    if (cfg->collect_byte < 1 << 20 || cfg->budget_byte / 2 < cfg->collect_byte)
        return slu_fail(err, SLU_E_LIMIT,
                        "2 MiB is the least memory for near duplicates");
    if (cfg->n_band > SLU_NEAR_MAX_BAND || cfg->band_cap == 0 ||
        cfg->band_cap > SLU_NEAR_MAX_CAP || cfg->num == 0 || cfg->num > cfg->den ||
        cfg->den > 1000000000)
        return slu_fail(err, SLU_E_USAGE, "bands, cap or threshold out of range");
    struct slu_near_ext *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->cfg.tmpdir = x->tmpdir = strdup(cfg->tmpdir);
    x->sets.fd = x->entries.fd = -1;
    x->sets.cap = x->entries.cap = cfg->collect_byte / 16 < 1 << 20
                                       ? (size_t)cfg->collect_byte / 16 & ~(size_t)63
                                       : (size_t)1 << 20;
    int rc = x->tmpdir ? new_groups(x, err) : slu_fail_nomem(err, strlen(cfg->tmpdir));
    if (rc)
        slu_near_ext_free(x);
    else
        *out = x;
    return rc;
}

void slu_near_ext_free(struct slu_near_ext *x)
{
    if (!x)
        return;
    slu_near_groups_free(x->groups);
    slu_near_verify_free(x->verify);
    slu_near_cluster_free(x->cluster);
    struct tail *t[2] = {&x->sets, &x->entries};
    for (unsigned i = 0; i < 2; i++) {
        if (t[i]->fd >= 0)
            close(t[i]->fd);
        free(t[i]->buf);
    }
    free(x->tmpdir);
    free(x);
}

const struct slu_near_ext_result *slu_near_ext_result(const struct slu_near_ext *x)
{
    return &x->result;
}

/* A document's set and entry; those of ordinals that were left out are empty. */
static int store(struct slu_near_ext *x, uint64_t ordinal, uint64_t rank,
                 const uint64_t *set, uint64_t n_set, struct slu_err *err)
{
    const struct slu_near_entry none = {0};
    struct slu_near_entry e = {rank, x->sets.n_byte / 8, n_set, {0, 0}};
    int rc = SLU_OK;

    if (ordinal < x->n_doc || ordinal > UINT64_MAX >> 8 || x->finished)
        return slu_fail(err, SLU_E_USAGE, "documents must come in order");
    for (; rc == SLU_OK && x->n_doc < ordinal; x->n_doc++)
        rc = tail_put(x, &x->entries, &none, sizeof none, err);
    if (rc == SLU_OK)
        rc = tail_put(x, &x->entries, &e, sizeof e, err);
    if (rc == SLU_OK && n_set && x->cfg.n_band)
        rc = tail_put(x, &x->sets, set, n_set * 8, err);
    x->n_doc++;
    return rc;
}

int slu_near_ext_kept(struct slu_near_ext *x, uint64_t ordinal, const uint64_t *set,
                      uint64_t n_set, struct slu_err *err)
{
    if (x->added)
        return slu_fail(err, SLU_E_USAGE, "a hand-over comes before documents");
    return store(x, ordinal, slu_near_rank(true, 0), set, n_set, err);
}

int slu_near_ext_group(struct slu_near_ext *x, unsigned band, uint64_t key,
                       uint64_t n_doc, const uint64_t *kept, size_t n_kept,
                       struct slu_err *err)
{
    if (x->added || band >= x->cfg.n_band)
        return slu_fail(err, SLU_E_USAGE, "a hand-over comes before documents");
    return slu_near_groups_known(x->groups, band, key, n_doc, kept, n_kept, err);
}

int slu_near_ext_add(struct slu_near_ext *x, const struct slu_near_doc *d,
                     struct slu_err *err)
{
    uint64_t rank = slu_near_rank(d->fixed, x->cfg.by_prio ? d->prio : 0);
    int rc = store(x, d->ordinal, rank, d->set, d->n_set, err);

    x->added = true;
    if (rc || d->n_set == 0)
        return rc;
    rc = slu_near_groups_set(x->groups, d->set_hash, d->n_set, rank, d->ordinal, err);
    for (unsigned b = 0; rc == SLU_OK && b < x->cfg.n_band; b++)
        rc = slu_near_groups_band(x->groups, b, d->key[b], d->set_hash, rank,
                                  d->ordinal, err);
    return rc;
}

/* ---- deciding ---- */

static int on_pair(void *ctx, uint64_t k, uint64_t d, struct slu_err *err)
{
    struct slu_near_ext *x = ctx;

    return slu_near_verify_pair(x->verify, k, d, err);
}

static int on_twin(void *ctx, uint64_t first, uint64_t twin, uint64_t n_set,
                   struct slu_err *err)
{
    struct slu_near_ext *x = ctx;

    x->result.twins++;
    return slu_near_cluster_twin(x->cluster, first, twin, n_set, err);
}

static int on_edge(void *ctx, const struct slu_near_edge *e, struct slu_err *err)
{
    struct slu_near_ext *x = ctx;

    return slu_near_cluster_edge(x->cluster, e, err);
}

static int new_groups(struct slu_near_ext *x, struct slu_err *err)
{
    struct slu_near_groups_cfg cfg = {
        .sort_byte = x->cfg.collect_byte - 2 * x->sets.cap,
        .member_byte = x->cfg.budget_byte / 8,
        .tmpdir = x->tmpdir,
        .n_threads = x->cfg.n_threads,
        .n_band = x->cfg.n_band,
        .band_cap = x->cfg.band_cap,
        .pair = on_pair,
        .twin = on_twin,
        .ctx = x,
    };

    return slu_near_groups_new(&x->groups, &cfg, err);
}

/* The budget: half for pairs and sets, an eighth for a group's members, an eighth for
 * edges, twins and bits; the group sorter has collect_byte, at most half, and is gone
 * when the half for sets is used. */
static int new_rest(struct slu_near_ext *x, struct slu_err *err)
{
    const struct slu_near_store store = {read_entries, read_hashes, x, x->n_doc};
    struct slu_near_verify_cfg vc = {
        .budget_byte = x->cfg.budget_byte / 2,
        .tmpdir = x->tmpdir,
        .n_threads = x->cfg.n_threads,
        .num = x->cfg.num,
        .den = x->cfg.den,
        .verify = x->cfg.verify,
        .store = &store,
        .d_end = x->n_doc,
        .edge = on_edge,
        .ctx = x,
    };
    struct slu_near_cluster_cfg cc = {
        .budget_byte = x->cfg.budget_byte / 8,
        .tmpdir = x->tmpdir,
        .n_threads = x->cfg.n_threads,
        .n_doc = x->n_doc,
        .by_prio = x->cfg.by_prio,
    };
    int rc = slu_near_cluster_new(&x->cluster, &cc, err);

    return rc ? rc : slu_near_verify_new(&x->verify, &vc, err);
}

int slu_near_ext_finish(struct slu_near_ext *x, struct slu_err *err)
{
    int rc = tail_end(x, &x->sets, err);

    x->finished = true;
    if (rc == SLU_OK)
        rc = tail_end(x, &x->entries, err);
    if (rc == SLU_OK)
        rc = new_rest(x, err);
    if (rc == SLU_OK)
        rc = slu_near_groups_run(x->groups, err);
    if (rc)
        return rc;
    x->result.spilled_byte =
        x->sets.n_byte + x->entries.n_byte + slu_near_groups_spilled(x->groups);
    slu_near_groups_free(x->groups);
    x->groups = NULL;
    rc = slu_near_verify_run(x->verify, err);
    const struct slu_near_verify_result *v = slu_near_verify_result(x->verify);
    x->result.candidates = v->candidates;
    x->result.edges = v->edges;
    x->result.capped_documents = v->capped;
    x->result.spilled_byte += v->spilled_byte;
    slu_near_verify_free(x->verify);
    x->verify = NULL;
    if (rc == SLU_OK)
        rc = slu_near_cluster_run(x->cluster, err);
    x->result.spilled_byte += slu_near_cluster_spilled(x->cluster);
    return rc;
}

int slu_near_ext_next(struct slu_near_ext *x, struct slu_near_drop *drop,
                      struct slu_err *err)
{
    if (!x->cluster)
        return slu_fail(err, SLU_E_USAGE, "near duplicates were not decided");
    return slu_near_cluster_next(x->cluster, drop, err);
}
