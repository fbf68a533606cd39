/* near_groups.c - finds candidate pairs and equal sets in the groups of bands (points 1
 * and 2 of near.h).
 *
 * The rows of a group come sorted by tag. Equal sets share a tag in a band, and only
 * the first row of each tag counts. Two bands have the same key only by chance, and the
 * band number tells them apart. Workers sort a group's members; one thread lists the
 * pairs, so no group needs to fit in memory. Groups of equal set hashes are
 * the equal sets. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near/near_private.h"
#include "lib/flow/radix.h"
#include "lib/flow/sorter.h"

/* An entry sorts a member: prefix is its rank or, without ranks, its kind (a tag) in
 * the top two bits and its ordinal, or the number of documents that it stands for; ref
 * is the row's last word. An equal set is {first, n_band << 48 | ordinal}; the end of a
 * group is ENDS. */
#define KIND_SHIFT 62
#define ENDS       UINT64_MAX

enum { SLICE = 1 << 15 }; /* members of a large group that are passed on at once */

struct state { /* state of a worker */
    const struct slu_near *x;
    bool any, mixed;                /* any: rows have come; mixed: from several bands */
    uint64_t key, tag, band, first; /* of the last row; first: of its set */
    struct slu_entry *e;
    size_t n, cap;
    struct slu_sorter *large; /* takes the members in place of e, if they are many */
    bool sealed;
};

/* ---- a group's rows ---- */

static int to_large(struct state *s, struct slu_entry e, struct slu_err *err)
{
    const uint64_t band = e.ref >> NEAR_SHIFT, ordinal = e.ref & NEAR_MASK;
    const struct slu_u128 key = {e.prefix << NEAR_SHIFT | ordinal,
                                 band << NEAR_SHIFT | e.prefix >> (64 - NEAR_SHIFT)};

    return slu_sorter_add(s->large, key, NULL, 0, err);
}

static int new_large(struct state *s, struct slu_err *err)
{
    const struct slu_sorter_cfg cfg = {slu_flow_own_byte(s->x->flow) / 8,
                                       s->x->cfg.tmpdir, s->x->cfg.n_threads};
    int rc = slu_sorter_new(&s->large, &cfg, err);

    for (size_t i = 0; i < s->n && !rc; i++)
        rc = to_large(s, s->e[i], err);
    free(s->e);
    s->e = NULL;
    s->n = s->cap = 0;
    return rc;
}

static int add(struct state *s, struct slu_entry e, struct slu_err *err)
{
    int rc = !s->large && s->n == s->x->most_member ? new_large(s, err) : SLU_OK;

    if (!rc && s->large)
        return to_large(s, e, err);
    if (!rc)
        rc = slu_grow(&s->e, &s->cap, s->n + 1, sizeof *s->e, err);
    if (!rc)
        s->e[s->n++] = e;
    return rc;
}

static int by_ref(void *ctx, uint64_t a, uint64_t b)
{
    (void)ctx;
    return (a > b) - (a < b);
}

static int by_band(const void *va, const void *vb)
{
    const struct slu_entry *a = va, *b = vb;
    uint64_t x = a->ref >> NEAR_SHIFT, y = b->ref >> NEAR_SHIFT;

    if (x == y && a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return (a->ref > b->ref) - (a->ref < b->ref);
}

/* Passes on the next members of a large group. SLU_EOF: more are left. */
static int tell_large(struct state *s, struct slu_buf *out, struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = s->sealed ? SLU_OK : slu_sorter_seal(s->large, err);

    s->sealed = true;
    for (size_t i = 0; i < SLICE && !rc; i++) {
        rc = slu_sorter_next(s->large, &key, &p, &n, err);
        const struct slu_entry e = {key.hi << (64 - NEAR_SHIFT) | key.lo >> NEAR_SHIFT,
                                    (key.hi & ~NEAR_MASK) | (key.lo & NEAR_MASK)};
        if (!rc)
            rc = slu_buf_append(out, &e, sizeof e, err);
    }
    if (rc != SLU_EOF)
        return rc ? rc : SLU_EOF;
    slu_flow_spilled(s->x->flow, slu_sorter_spilled(s->large));
    slu_sorter_free(s->large);
    s->large = NULL;
    s->sealed = false;
    return SLU_OK;
}

static int end(void *state, struct slu_buf *out, struct slu_err *err)
{
    static const struct slu_entry ends = {0, ENDS};
    struct state *s = state;
    const bool told = s->large || s->n > 1; /* a group of one member has no pairs */
    int rc = SLU_OK;

    if (s->large) {
        rc = tell_large(s, out, err);
    } else if (told) {
        if (s->mixed)
            qsort(s->e, s->n, sizeof *s->e, by_band);
        else
            slu_entry_sort_by(s->e, s->n, by_ref, NULL);
        rc = slu_buf_append(out, s->e, s->n * sizeof *s->e, err);
    }
    if (rc)
        return rc;
    s->n = 0;
    s->any = s->mixed = false;
    return told ? slu_buf_append(out, &ends, sizeof ends, err) : SLU_OK;
}

static uint64_t part_of(const struct slu_flow *f, uint64_t ordinal)
{
    uint64_t part = slu_flow_parts(f) - 1;

    while (part && slu_flow_base(f, part) > ordinal)
        part--;
    return part;
}

static int feed(void *state, const void *arg, const uint64_t *row, struct slu_buf *out,
                struct slu_err *err)
{
    struct state *s = state;
    const struct slu_near *x = s->x = arg;
    const bool by_prio = x->cfg.prio, handed = !by_prio && x->n_fixed;
    const uint64_t ref = row[by_prio ? 3 : 2], band = ref >> NEAR_SHIFT,
                   ordinal = ref & NEAR_MASK, rank = by_prio ? row[2] : 0;
    int rc = SLU_OK;

    if (s->any && row[0] != s->key)
        rc = end(s, out, err);
    if (rc)
        return rc;
    if (band > x->cfg.n_band)
        return slu_flow_damaged(x->flow, NEAR_BAND, part_of(x->flow, ordinal), err);
    const bool later = s->any && row[1] == s->tag && band == s->band;
    s->mixed |= s->any && band != s->band;
    if (band == x->cfg.n_band) {
        const struct slu_entry equal = {s->first, ref};
        if (later && (by_prio ? rank > 0 : ordinal >= x->n_fixed))
            rc = slu_buf_append(out, &equal, sizeof equal, err);
    } else if (!later || (handed && row[1] < NEAR_TAGS)) {
        const uint64_t kind = handed && row[1] < NEAR_TAGS ? row[1] : NEAR_TAGS;
        rc = add(s,
                 (struct slu_entry){by_prio ? rank : kind << KIND_SHIFT | ordinal, ref},
                 err);
    }
    s->any = true;
    s->key = row[0];
    s->tag = row[1];
    s->band = band;
    s->first = later ? s->first : ordinal;
    return rc;
}

static void release(void *state)
{
    struct state *s = state;

    slu_sorter_free(s->large);
    free(s->e);
}

/* ---- pairs ---- */

static int put_pair(struct slu_near *x, uint64_t k, uint64_t d, struct slu_err *err)
{
    const uint64_t row[] = {d, k};

    return slu_table_put(x->pair, row, err);
}

/* The members that can be a pair's k: those listed before, and others up to the cap;
 * the cap also counts documents that are not listed. */
static int member(struct slu_near *x, uint64_t ordinal, bool fixed, struct slu_err *err)
{
    const uint64_t cap = x->cfg.band_cap,
                   left = cap > x->n_unlisted ? cap - x->n_unlisted : 0,
                   n_k = left > x->n_listed ? left : x->n_listed, i = x->n_member++;
    int rc = i < n_k ? slu_grow(&x->k, &x->cap_k, i + 1, sizeof *x->k, err) : SLU_OK;

    if (!rc && i < n_k)
        x->k[i] = ordinal;
    if (!rc && !fixed && i >= n_k)
        rc = put_pair(x, ordinal, ordinal, err);
    for (uint64_t j = 0; j < i && j < n_k && !fixed && !rc; j++)
        rc = put_pair(x, x->k[j], ordinal, err);
    return rc;
}

static int take(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct slu_near *x = ctx;
    const struct slu_entry *e = (const void *)out->data, *to = e + out->len / sizeof *e;
    int rc = SLU_OK;

    for (; e < to && !rc; e++) {
        const uint64_t band = e->ref >> NEAR_SHIFT, ordinal = e->ref & NEAR_MASK,
                       kind = x->cfg.prio ? NEAR_TAGS : e->prefix >> KIND_SHIFT;
        const uint64_t equal[] = {e->prefix, ordinal};
        if (e->ref == ENDS || band != x->at_band)
            x->n_member = x->n_listed = x->n_unlisted = 0;
        x->at_band = band;
        if (e->ref == ENDS)
            continue;
        if (band == x->cfg.n_band) {
            x->result.equal_sets++;
            rc = slu_table_put(x->equal, equal, err);
        } else if (kind == NEAR_UNLISTED) {
            x->n_unlisted += ordinal;
        } else {
            x->n_listed += kind == NEAR_LISTED;
            rc = member(x, ordinal, x->cfg.prio ? e->prefix == 0 : ordinal < x->n_fixed,
                        err);
        }
    }
    return rc;
}

int slu_near_group(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_near *x = ctx;
    /* out_byte: a member, and an end for every two members. */
    const struct slu_group_ops ops = {.state_byte = sizeof(struct state),
                                      .arg = x,
                                      .feed = feed,
                                      .end = end,
                                      .release = release,
                                      .take = take,
                                      .out_byte = sizeof(struct slu_entry) / 2 * 3,
                                      .ctx = x,
                                      .work_byte = slu_flow_own_byte(f) / 2};
    struct slu_table *t;

    x->flow = f;
    x->most_member = slu_flow_own_byte(f) / 8 / sizeof(struct slu_entry);
    x->pair = slu_flow_out(f, NEAR_PAIR);
    x->equal = slu_flow_out(f, NEAR_EQUAL);
    if (x->cfg.band_cap > slu_flow_own_byte(f) / 8 / sizeof *x->k)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "a band's cap of %llu documents does not fit in memory",
                     (unsigned long long)x->cfg.band_cap));
    int rc = slu_flow_in(f, NEAR_BAND, &t, err);
    if (!rc)
        rc = slu_table_group(t, &ops, err);
    free(x->k);
    x->k = NULL;
    x->cap_k = 0;
    return rc;
}
