/* near_cluster.c - decides which documents are dropped, from edges and equal sets
 * (points 1 and 4 of near.h).
 *
 * One pass over the edges in order decides: when a document d comes, it is known of
 * each of its k whether k is kept, by one bit for each document. So the kept documents
 * are the lexicographically first maximal independent set, as from a serial greedy
 * pass. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near/near_private.h"
#include "lib/flow/sorter.h"

struct cluster {
    struct slu_near *x;
    struct slu_flow *f;
    struct slu_table *edges;
    uint64_t n_doc;
    uint64_t *dropped; /* one bit for each document */
    /* With priorities: the documents that the pass over the edges dropped, sorted by
     * ordinal. */
    struct slu_sorter *by_ordinal;
    unsigned shift; /* shifts ordinals to spread them over a key */
};

struct drop {
    uint64_t d, witness, inter, uni;
};

static bool is_dropped(const struct cluster *c, uint64_t ordinal)
{
    return c->dropped[ordinal / 64] >> (ordinal % 64) & 1;
}

/* The next document that an edge drops; SLU_EOF after the last. */
static int decide(struct cluster *c, struct drop *to, struct slu_err *err)
{
    const unsigned d = c->x->cfg.prio ? 1 : 0, k = c->x->cfg.prio ? 3 : 1;
    struct slu_row r;
    int rc;

    while (!(rc = slu_table_next(c->edges, &r, err))) {
        const uint64_t *w = r.p;
        *to = (struct drop){w[d], w[k], w[k + 1], w[k + 2]};
        if (to->d >= c->n_doc || to->witness >= c->n_doc || to->d == to->witness)
            return slu_flow_damaged(c->f, NEAR_EDGE, r.part, err);
        if (is_dropped(c, to->d) || is_dropped(c, to->witness))
            continue;
        c->dropped[to->d / 64] |= UINT64_C(1) << (to->d % 64);
        return SLU_OK;
    }
    return rc;
}

static int decide_all(struct cluster *c, struct slu_err *err)
{
    struct drop drop;
    int rc;

    while (!(rc = decide(c, &drop, err))) {
        const struct slu_u128 key = {0, drop.d << c->shift};
        const struct slu_slice piece = {&drop, sizeof drop};
        rc = slu_sorter_add(c->by_ordinal, key, &piece, 1, err);
        if (rc)
            return rc;
    }
    return rc == SLU_EOF ? slu_sorter_seal(c->by_ordinal, err) : rc;
}

/* The next dropped document by ordinal; d is NEAR_NONE_LEFT after the last. */
static int next(struct cluster *c, struct drop *to, struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = c->by_ordinal ? slu_sorter_next(c->by_ordinal, &key, &p, &n, err)
                           : decide(c, to, err);

    if (!rc && c->by_ordinal)
        memcpy(to, p, sizeof *to);
    if (rc == SLU_EOF)
        to->d = NEAR_NONE_LEFT;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int put(struct cluster *c, const struct drop *p, struct slu_err *err)
{
    const bool named = slu_flow_here(c->f) && slu_near_details(c->x);
    const uint64_t row[] = {p->d, p->witness, p->inter, p->uni},
                   lost[] = {p->witness, p->d, p->inter, p->uni};

    c->x->result.to_drop++;
    return slu_table_put(slu_flow_out(c->f, named ? NEAR_LOST : NEAR_DROP),
                         named ? lost : row, err);
}

/* Documents are dropped if the first of their set is dropped; both lists ascend by the
 * first. */
static int join_equal(struct cluster *c, struct slu_err *err)
{
    struct slu_table *equal;
    struct slu_row r;
    struct drop drop = {0};
    int rc = slu_flow_in(c->f, NEAR_EQUAL, &equal, err);

    if (!rc)
        rc = next(c, &drop, err);
    while (!rc) {
        rc = slu_table_next(equal, &r, err);
        if (rc)
            break;
        const uint64_t *w = r.p, first = w[0];
        if (first >= c->n_doc || w[1] >= c->n_doc || first == w[1])
            return slu_flow_damaged(c->f, NEAR_EQUAL, r.part, err);
        while (drop.d < first && !rc) {
            rc = put(c, &drop, err);
            if (!rc)
                rc = next(c, &drop, err);
        }
        struct drop later = drop.d == first ? drop : (struct drop){0, first, 1, 1};
        later.d = w[1];
        if (!rc)
            rc = put(c, &later, err);
        if (!slu_flow_here(c->f))
            c->x->result.equal_sets++;
    }
    rc = rc == SLU_EOF ? SLU_OK : rc;
    while (!rc && drop.d != NEAR_NONE_LEFT) {
        rc = put(c, &drop, err);
        if (!rc)
            rc = next(c, &drop, err);
    }
    return rc;
}

/* Sums the counts that verify wrote in all parts. */
static int count(struct cluster *c, struct slu_err *err)
{
    struct slu_near_result *to = &c->x->result;
    struct slu_table *t;
    struct slu_row r;
    int rc = slu_flow_in(c->f, NEAR_COUNT, &t, err);

    while (!rc) {
        rc = slu_table_next(t, &r, err);
        const uint64_t *w = r.p;
        if (rc)
            break;
        to->candidates += w[0];
        to->edges += w[1];
        to->capped_documents += w[2];
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_near_cluster(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct cluster c = {.x = ctx, .f = f, .n_doc = slu_flow_total(f)};
    const uint64_t own = slu_flow_own_byte(f), bits_byte = c.n_doc / 64 * 8 + 8;
    const struct slu_sorter_cfg cfg = {own - bits_byte, c.x->cfg.tmpdir,
                                       c.x->cfg.n_threads};

    if (bits_byte > own / 2)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "%llu documents take %llu bytes, one bit each; "
                                   "memory has %llu for them",
                                   (unsigned long long)c.n_doc,
                                   (unsigned long long)bits_byte,
                                   (unsigned long long)own / 2));
    c.shift = 64 - slu_near_bits(c.n_doc);
    c.dropped = calloc(bits_byte / 8, 8);
    int rc = c.dropped ? count(&c, err) : slu_fail_nomem(err, bits_byte);
    if (!rc)
        rc = slu_flow_in(f, NEAR_EDGE, &c.edges, err);
    if (!rc && c.x->cfg.prio)
        rc = slu_sorter_new(&c.by_ordinal, &cfg, err);
    if (!rc && c.by_ordinal)
        rc = decide_all(&c, err);
    if (!rc)
        rc = join_equal(&c, err);
    if (c.by_ordinal)
        slu_flow_spilled(f, slu_sorter_spilled(c.by_ordinal));
    slu_sorter_free(c.by_ordinal);
    free(c.dropped);
    return rc;
}
