/* Packs chains of related items (related.h) as if they were items: plans are made of
 * the lengths of chains, and each item's place is listed, not computed. Only in memory.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/radix.h"
#include "lib/pack/packing_private.h"
#include "lib/pack/related.h"

/* A lane's chains and their places; dst: a chain's first id in the packed data. */
struct placed {
    struct slu_chains chains;
    struct slu_entry *at; /* (dst, chain), sorted by dst */
};

struct slu_pack_related {
    uint32_t *key; /* SLU_RELATED_KEYS of each item, by arrival */
    size_t n_key, cap_key;
    const uint32_t *now; /* keys of the runs being added; borrowed */
    struct placed *lane;
    size_t n_lane;
    uint64_t related, chains; /* items in chains of several; such chains */
};

int slu_pack_related_new(struct slu_pack_related **out, struct slu_err *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? SLU_OK : slu_fail_nomem(err, sizeof **out);
}

void slu_pack_related_free(struct slu_pack_related *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_lane; i++) {
        slu_chains_release(&r->lane[i].chains);
        free(r->lane[i].at);
    }
    free(r->lane);
    free(r->key);
    free(r);
}

void slu_packing_relate(struct slu_packing *p, const uint32_t *key)
{
    p->related->now = key;
}

struct slu_packing_related slu_packing_related(const struct slu_packing *p)
{
    return (struct slu_packing_related){p->related->related, p->related->chains};
}

int slu_pack_related_add(struct slu_packing *p, size_t run, struct slu_err *err)
{
    struct slu_pack_related *r = p->related;
    int rc = slu_grow(&r->key, &r->cap_key, r->n_key + SLU_RELATED_KEYS, sizeof *r->key,
                      err);
    if (!rc && r->cap_key * sizeof *r->key > p->cfg.budget_byte / 4)
        rc = slu_advise(err, SLU_ADVISE_MEMORY_OR_ORDER,
                        slu_fail(err, SLU_E_LIMIT,
                                 "the sketches of related documents take more than a "
                                 "quarter of memory"));
    if (rc)
        return rc;
    memcpy(r->key + r->n_key, r->now + run * SLU_RELATED_KEYS,
           SLU_RELATED_KEYS * sizeof *r->key);
    r->n_key += SLU_RELATED_KEYS;
    return SLU_OK;
}

/* Makes the histogram of the chains' lengths. */
static int count_chains(const struct slu_chains *c, uint64_t capacity,
                        struct slu_length_count **row, size_t *n, struct slu_err *err)
{
    uint64_t *count = calloc(capacity + 1, sizeof *count);
    struct slu_length_count *r = malloc((c->n + 1) * sizeof *r);
    size_t k = 0;
    if (!count || !r) {
        free(count);
        free(r);
        return slu_fail_nomem(err, (capacity + 1) * sizeof *count);
    }
    for (size_t i = 0; i < c->n; i++)
        count[c->len[i]]++;
    for (uint64_t l = 1; l <= capacity; l++)
        if (count[l])
            r[k++] = (struct slu_length_count){l, count[l]};
    free(count);
    *row = r;
    *n = k;
    return SLU_OK;
}

int slu_pack_related_rows(struct slu_packing *p, size_t lane,
                          struct slu_length_count **row, size_t *n, struct slu_err *err)
{
    struct slu_pack_related *r = p->related;
    const struct slu_pack_mem *m = p->mem;
    const struct slu_pack_range *range = &m->range[lane];
    const size_t width = SLU_RELATED_KEYS;
    uint32_t *mine = NULL;
    if (!r->lane) {
        r->lane = calloc(p->n_lane, sizeof *r->lane);
        if (!r->lane)
            return slu_fail_nomem(err, p->n_lane * sizeof *r->lane);
        r->n_lane = p->n_lane;
    }
    struct slu_chains *c = &r->lane[lane].chains;
    if (m->arrival) {
        mine = malloc((range->n_item + 1) * width * sizeof *mine);
        if (!mine)
            return slu_fail_nomem(err, range->n_item * width * sizeof *mine);
        for (size_t i = 0; i < range->n_item; i++)
            memcpy(mine + i * width, r->key + m->arrival[range->first_item + i] * width,
                   width * sizeof *mine);
    }
    int rc =
        slu_related_chains(c, mine ? mine : r->key, m->a.len + range->first_item,
                           range->n_item, p->cfg.capacity, p->cfg.budget_byte / 4, err);
    free(mine);
    for (size_t k = 0; k < c->n && !rc; k++)
        r->chains += c->first[k + 1] - c->first[k] > 1;
    r->related += c->related;
    return rc ? rc : count_chains(c, p->cfg.capacity, row, n, err);
}

/* Finds where each chain of a lane begins, in order of place. */
static int place_chains(struct slu_packing *p, size_t lane,
                        const struct slu_pack_interval *v, size_t n_v,
                        struct slu_err *err)
{
    struct placed *x = &p->related->lane[lane];
    const struct slu_chains *c = &x->chains;
    const struct slu_pack_plan *plan = p->lane[lane].plan;
    uint64_t *rank = calloc(plan->n_length + 1, sizeof *rank);
    x->at = malloc((c->n + 1) * sizeof *x->at);
    if (!rank || !x->at) {
        free(rank);
        return slu_fail_nomem(err, c->n * sizeof *x->at);
    }
    for (size_t k = 0; k < c->n; k++) {
        size_t l = slu_pack_find(plan, c->len[k]);
        uint64_t bin, place;
        slu_pack_place(plan, l, rank[l]++, &bin, &place);
        /* fewer than 2^32 chains, hence bins; fewer than 2^27 chains per bin */
        x->at[k] = (struct slu_entry){bin << 27 | place, k};
    }
    free(rank);
    slu_entry_sort(x->at, c->n);
    uint64_t last = UINT64_MAX, to = 0;
    for (size_t k = 0, i = 0; k < c->n; k++) {
        uint64_t bin = x->at[k].prefix >> 27;
        while (i + 1 < n_v && v[i + 1].first_bin <= bin)
            i++;
        if (bin != last)
            to = v[i].first_tok + (bin - v[i].first_bin) * v[i].capacity;
        last = bin;
        x->at[k].prefix = to;
        to += c->len[x->at[k].ref];
    }
    return SLU_OK;
}

int slu_pack_related_append(struct slu_packing *p, size_t lane, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    const struct slu_pack_plan *plan = p->lane[lane].plan;
    struct slu_pack_interval *v;
    size_t n;
    int rc = slu_pack_intervals(plan, &v, &n, err);
    if (!rc)
        rc = place_chains(p, lane, v, n, err);
    if (!rc)
        rc = slu_grow(&m->interval, &m->cap_interval, m->n_interval + n,
                      sizeof *m->interval, err);
    if (!rc)
        rc = slu_grow(&m->room, &m->cap_room, m->n_interval + n, sizeof *m->room, err);
    struct slu_pack_related *r = p->related;
    for (size_t k = 0; k < r->lane[lane].chains.n && !rc; k++)
        r->lane[lane].at[k].prefix += m->n_packed;
    for (size_t i = 0; i < n && !rc; i++) {
        m->room[m->n_interval] = (uint32_t)v[i].room;
        m->interval[m->n_interval++] =
            (struct slu_place_interval){.first_bin = m->n_bin + v[i].first_bin,
                                        .first_item = m->range[lane].first_item,
                                        .first_tok = m->n_packed + v[i].first_tok,
                                        .capacity = v[i].capacity,
                                        .last = SLU_PLACE_OPENED};
    }
    if (!rc && n)
        m->n_packed += v[n - 1].first_tok + v[n - 1].count * v[n - 1].capacity;
    m->n_bin += plan->n_bin;
    free(v);
    return rc;
}

void slu_pack_related_place(const struct slu_packing *p)
{
    const struct slu_pack_arrays *a = &p->mem->a;
    size_t run = 0;
    for (size_t s = 0; s < p->related->n_lane; s++) {
        const struct placed *x = &p->related->lane[s];
        uint64_t first_item = p->mem->range[s].first_item;
        for (size_t k = 0; k < x->chains.n; k++) {
            uint64_t chain = x->at[k].ref, to = x->at[k].prefix;
            for (size_t i = x->chains.first[chain]; i < x->chains.first[chain + 1];
                 i++) {
                uint64_t item = first_item + x->chains.item[i];
                a->run_item[run] = (uint32_t)item;
                a->run_dst[run++] = to;
                to += a->len[item];
            }
        }
    }
}
