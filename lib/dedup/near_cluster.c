#include "lib/dedup/near_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "lib/order/sorter.h"
#include "lib/dedup/near_private.h"

#define NONE UINT64_MAX

struct slu_near_cluster {
    struct slu_near_cluster_cfg cfg;
    char *tmpdir;
    uint64_t sort_byte;       /* of each of three sorters */
    unsigned shift;           /* spreads ordinals over a key */
    uint64_t *dropped;        /* bits */
    struct slu_sorter *edges; /* in order of d, then of k */
    struct slu_sorter *twins; /* by first, then by twin */
    struct slu_sorter *drops; /* by ordinal, of edges alone; then the rest as well */
    uint64_t spilled_byte;
};

/* What is sorted beside the key. Fields that order are big-endian. */
struct edge_row {
    uint64_t k_rank, k, inter, uni; /* k_rank of by_prio only, else 0 */
};
struct twin_row {
    uint64_t twin, n_set;
};
struct drop_row {
    uint64_t witness, inter, uni;
};

static int new_sorter(struct slu_near_cluster *c, struct slu_sorter **s,
                      struct slu_err *err)
{
    struct slu_sorter_cfg sc = {c->sort_byte, c->tmpdir, c->cfg.n_threads};

    return *s ? SLU_OK : slu_sorter_new(s, &sc, err);
}

static void free_sorter(struct slu_near_cluster *c, struct slu_sorter **s)
{
    if (*s)
        c->spilled_byte += slu_sorter_spilled(*s);
    slu_sorter_free(*s);
    *s = NULL;
}

int slu_near_cluster_new(struct slu_near_cluster **out,
                         const struct slu_near_cluster_cfg *cfg, struct slu_err *err)
{
    uint64_t bits_byte = cfg->n_doc / 64 * 8 + 8;

    *out = NULL;
    if (bits_byte > cfg->budget_byte / 2)
        return slu_fail(err, SLU_E_LIMIT,
                        "%llu documents take one bit each, and there is memory for "
                        "half as many; give more with -M",
                        (unsigned long long)cfg->n_doc);
    struct slu_near_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return slu_fail_nomem(err, sizeof *c);
    c->cfg = *cfg;
    c->cfg.tmpdir = c->tmpdir = strdup(cfg->tmpdir);
    c->sort_byte = (cfg->budget_byte - bits_byte) / 3;
    c->shift = 64 - slu_near_bits(cfg->n_doc);
    c->dropped = calloc(bits_byte / 8, 8);
    int rc = c->tmpdir && c->dropped ? SLU_OK : slu_fail_nomem(err, bits_byte);
    if (rc)
        slu_near_cluster_free(c);
    else
        *out = c;
    return rc;
}

void slu_near_cluster_free(struct slu_near_cluster *c)
{
    if (!c)
        return;
    slu_sorter_free(c->edges);
    slu_sorter_free(c->twins);
    slu_sorter_free(c->drops);
    free(c->dropped);
    free(c->tmpdir);
    free(c);
}

uint64_t slu_near_cluster_spilled(const struct slu_near_cluster *c)
{
    const struct slu_sorter *s[3] = {c->edges, c->twins, c->drops};
    uint64_t n = c->spilled_byte;

    for (unsigned i = 0; i < 3; i++)
        n += s[i] ? slu_sorter_spilled(s[i]) : 0;
    return n;
}

static int check_ordinals(const struct slu_near_cluster *c, uint64_t a, uint64_t b,
                          struct slu_err *err)
{
    return a < c->cfg.n_doc && b < c->cfg.n_doc && a != b
               ? SLU_OK
               : slu_fail(err, SLU_E_FORMAT,
                          "an edge names a document that is not "
                          "there");
}

int slu_near_cluster_edge(struct slu_near_cluster *c, const struct slu_near_edge *e,
                          struct slu_err *err)
{
    const struct edge_row row = {c->cfg.by_prio ? slu_near_be(e->k_rank) : 0,
                                 slu_near_be(e->k), e->inter, e->uni};
    struct slu_u128 key = {0, e->d << c->shift};
    const struct slu_piece piece = {&row, sizeof row};

    if (c->cfg.by_prio)
        key = (struct slu_u128){e->d, e->d_rank};
    int rc = check_ordinals(c, e->d, e->k, err);
    if (rc == SLU_OK)
        rc = new_sorter(c, &c->edges, err);
    return rc ? rc : slu_sorter_add(c->edges, key, &piece, 1, err);
}

int slu_near_cluster_twin(struct slu_near_cluster *c, uint64_t first, uint64_t twin,
                          uint64_t n_set, struct slu_err *err)
{
    const struct slu_u128 key = {0, first << c->shift};
    const struct twin_row row = {slu_near_be(twin), n_set};
    const struct slu_piece piece = {&row, sizeof row};
    int rc = check_ordinals(c, first, twin, err);

    if (rc == SLU_OK)
        rc = new_sorter(c, &c->twins, err);
    return rc ? rc : slu_sorter_add(c->twins, key, &piece, 1, err);
}

/* ---- deciding ---- */

static bool is_dropped(const struct slu_near_cluster *c, uint64_t ordinal)
{
    return c->dropped[ordinal / 64] >> (ordinal % 64) & 1;
}

static int put_drop(struct slu_near_cluster *c, struct slu_sorter *to,
                    const struct slu_near_drop *drop, struct slu_err *err)
{
    const struct slu_u128 key = {0, drop->ordinal << c->shift};
    const struct drop_row row = {drop->witness, drop->inter, drop->uni};
    const struct slu_piece piece = {&row, sizeof row};

    return slu_sorter_add(to, key, &piece, 1, err);
}

static int next_drop(struct slu_near_cluster *c, struct slu_sorter *from,
                     struct slu_near_drop *drop, struct slu_err *err)
{
    struct slu_u128 key;
    struct drop_row row;
    const void *p;
    size_t n;
    int rc = from ? slu_sorter_next(from, &key, &p, &n, err) : SLU_EOF;

    if (rc)
        return rc;
    memcpy(&row, p, sizeof row);
    *drop = (struct slu_near_drop){key.hi >> c->shift, row.witness, row.inter, row.uni};
    return SLU_OK;
}

/* The pass over the edges. */
static int decide(struct slu_near_cluster *c, struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_seal(c->edges, err);

    while (rc == SLU_OK) {
        struct edge_row row;
        rc = slu_sorter_next(c->edges, &key, &p, &n, err);
        if (rc)
            break;
        memcpy(&row, p, sizeof row);
        struct slu_near_drop drop = {c->cfg.by_prio ? key.lo : key.hi >> c->shift,
                                     slu_near_be(row.k), row.inter, row.uni};
        if (is_dropped(c, drop.ordinal) || is_dropped(c, drop.witness))
            continue;
        c->dropped[drop.ordinal / 64] |= UINT64_C(1) << (drop.ordinal % 64);
        rc = put_drop(c, c->drops, &drop, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* The next drop goes to `all`; its ordinal is NONE behind the last. */
static int pass_drop(struct slu_near_cluster *c, struct slu_sorter *all,
                     struct slu_near_drop *drop, struct slu_err *err)
{
    int rc = next_drop(c, c->drops, drop, err);

    if (rc == SLU_EOF)
        drop->ordinal = NONE;
    return rc == SLU_EOF ? SLU_OK : rc ? rc : put_drop(c, all, drop, err);
}

/* Twins share their first's fate: both lists ascend by it. */
static int join_twins(struct slu_near_cluster *c, struct slu_sorter *all,
                      struct slu_err *err)
{
    struct slu_near_drop drop = {NONE, 0, 0, 0}, twin;
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_seal(c->twins, err);

    if (rc == SLU_OK)
        rc = slu_sorter_seal(c->drops, err);
    if (rc == SLU_OK)
        rc = pass_drop(c, all, &drop, err);
    while (rc == SLU_OK) {
        struct twin_row row;
        rc = slu_sorter_next(c->twins, &key, &p, &n, err);
        if (rc)
            break;
        memcpy(&row, p, sizeof row);
        uint64_t first = key.hi >> c->shift;
        while (rc == SLU_OK && drop.ordinal < first)
            rc = pass_drop(c, all, &drop, err);
        if (rc)
            break;
        twin =
            (struct slu_near_drop){slu_near_be(row.twin), first, row.n_set, row.n_set};
        if (drop.ordinal == first) {
            twin.witness = drop.witness;
            twin.inter = drop.inter;
            twin.uni = drop.uni;
        }
        rc = put_drop(c, all, &twin, err);
    }
    if (rc == SLU_EOF)
        rc = SLU_OK;
    while (rc == SLU_OK && drop.ordinal != NONE)
        rc = pass_drop(c, all, &drop, err);
    return rc;
}

int slu_near_cluster_run(struct slu_near_cluster *c, struct slu_err *err)
{
    struct slu_sorter *all = NULL;
    int rc = new_sorter(c, &c->drops, err);

    if (rc == SLU_OK && c->edges)
        rc = decide(c, err);
    free_sorter(c, &c->edges);
    if (rc || !c->twins)
        return rc ? rc : slu_sorter_seal(c->drops, err);
    rc = new_sorter(c, &all, err);
    if (rc == SLU_OK)
        rc = join_twins(c, all, err);
    free_sorter(c, &c->twins);
    free_sorter(c, &c->drops);
    c->drops = all;
    return rc ? rc : slu_sorter_seal(all, err);
}

int slu_near_cluster_next(struct slu_near_cluster *c, struct slu_near_drop *drop,
                          struct slu_err *err)
{
    return next_drop(c, c->drops, drop, err);
}
