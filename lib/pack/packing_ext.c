/* Packing past the budget: items wait in a spool, and a sorter brings them to their
 * bins. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/packing_private.h"
#include "lib/order/sorter.h"
#include "lib/order/spool.h"

int slu_pack_ext_new(struct slu_pack_ext **out, const struct slu_packing_cfg *cfg,
                     bool spool, struct slu_err *err)
{
    struct slu_pack_ext *x = calloc(1, sizeof *x);
    *out = x;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    return spool ? slu_spool_new(&x->spool, cfg->budget_byte / 16, cfg->tmpdir, err)
                 : SLU_OK;
}

void slu_pack_ext_free(struct slu_pack_ext *x)
{
    if (!x)
        return;
    slu_spool_free(x->spool);
    slu_sorter_free(x->sorter);
    for (size_t i = 0; i < x->n_site; i++) {
        free(x->site[i].rank);
        free(x->site[i].end);
    }
    free(x->site);
    free(x->interval);
    free(x->bin_byte);
    slu_buf_release(&x->id);
    free(x);
}

uint64_t slu_pack_ext_spilled(const struct slu_pack_ext *x)
{
    return x->spilled + (x->spool ? slu_spool_spilled(x->spool) : 0) +
           (x->sorter ? slu_sorter_spilled(x->sorter) : 0);
}

/* ---- arrival ---- */

static int put_padded(struct slu_spool *s, const void *p, size_t n, struct slu_err *err)
{
    static const uint8_t zero[8];
    int rc = slu_spool_put(s, p, n, err);
    return rc || slu_pack_pad8(n) == n
               ? rc
               : slu_spool_put(s, zero, slu_pack_pad8(n) - n, err);
}

int slu_pack_ext_put(struct slu_pack_ext *x, const struct slu_pack_item *from,
                     struct slu_err *err)
{
    const struct slu_seg *g = &from->seg;
    struct slu_pack_wait it = {
        g->source, g->document, g->offset, g->len_tok, from->position,
        g->domain, from->slot,  g->id_len, 0,          g->score};
    size_t n_tok = g->len_tok * x->cfg.tok_bytes;
    x->longest = n_tok > x->longest ? n_tok : x->longest;
    x->longest = g->id_len > x->longest ? g->id_len : x->longest;
    int rc = slu_spool_put(x->spool, &it, sizeof it, err);
    if (!rc && g->id_len)
        rc = put_padded(x->spool, from->id, g->id_len, err);
    return rc ? rc : put_padded(x->spool, from->tok, n_tok, err);
}

/* ---- to their bins ---- */

static struct slu_u128 key_of(struct slu_packing *p, const struct slu_pack_wait *it)
{
    struct slu_pack_site *at = &p->ext->site[it->slot];
    uint64_t bin, place;
    if (p->cfg.method == SLU_PACK_CONCAT)
        (void)slu_pack_chunk(it->position, it->len_tok, p->cfg.capacity, &bin, &place);
    else {
        const struct slu_pack_plan *plan = p->slot[it->slot].plan;
        size_t i = slu_pack_find(plan, it->len_tok);
        slu_pack_place(plan, i, at->rank[i]++, &bin, &place);
    }
    if (p->ext->bin_byte)
        p->ext->bin_byte[at->first_bin + bin] += sizeof(struct slu_seg) + it->id_len;
    return slu_pack_key(p->n_bin, at->first_bin + bin, place);
}

static int sort_items(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    int rc = slu_spool_rewind(x->spool, x->longest + sizeof(struct slu_pack_wait), err);
    while (!rc) {
        const void *head;
        struct slu_pack_wait it;
        rc = slu_spool_get(x->spool, &head, sizeof it, err);
        if (rc)
            break;
        memcpy(&it, head, sizeof it);
        slu_buf_clear(&x->id);
        const void *id = NULL;
        size_t n_id = slu_pack_pad8(it.id_len),
               n_tok = slu_pack_pad8(it.len_tok * p->cfg.tok_bytes);
        if (n_id) { /* kept aside: the next get may move what this one gave */
            rc = slu_spool_get(x->spool, &id, n_id, err);
            if (!rc)
                rc = slu_buf_append(&x->id, id, n_id, err);
        }
        const void *tok = NULL;
        if (!rc)
            rc = slu_spool_get(x->spool, &tok, n_tok, err);
        if (rc)
            return rc == SLU_EOF
                       ? slu_fail(err, SLU_E_TRUNCATED, "%s: ends early", p->cfg.tmpdir)
                       : rc;
        struct slu_piece piece[] = {{&it, sizeof it}, {x->id.data, n_id}, {tok, n_tok}};
        rc = slu_sorter_add(x->sorter, key_of(p, &it), piece, 3, err);
    }
    x->spilled += slu_spool_spilled(x->spool);
    slu_spool_free(x->spool);
    x->spool = NULL;
    slu_buf_clear(&x->id);
    for (uint64_t i = 0; rc == SLU_EOF && x->bin_byte && i < p->n_bin; i++)
        if (x->bin_byte[i] > slu_pack_bin_limit(p))
            rc = slu_pack_refuse_bin(p, x->bin_byte[i], err);
    free(x->bin_byte);
    x->bin_byte = NULL;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int advance(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    const void *rec;
    size_t n;
    if (x->items)
        return slu_pack_flow_next(p, err);
    int rc = slu_sorter_next(x->sorter, &x->key, &rec, &n, err);
    x->item = rc ? NULL : rec;
    x->domain = rc ? 0 : x->item->domain;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int start(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    struct slu_sorter_cfg cfg = {p->cfg.budget_byte * 3 / 8, p->cfg.tmpdir,
                                 p->cfg.n_threads};
    slu_pack_phase(p, "sort", NULL);
    int rc = slu_sorter_new(&x->sorter, &cfg, err);
    if (!rc && slu_packing_bin_byte(p) > slu_pack_bin_limit(p) &&
        p->n_bin <= p->cfg.budget_byte / 16 / sizeof *x->bin_byte) {
        x->bin_byte = calloc(p->n_bin, sizeof *x->bin_byte);
        if (!x->bin_byte)
            rc = slu_fail_nomem(err, p->n_bin * sizeof *x->bin_byte);
    }
    if (!rc)
        rc = sort_items(p, err);
    if (!rc)
        rc = slu_sorter_seal(x->sorter, err);
    return rc ? rc : advance(p, err);
}

/* The most pieces that a bin of the plan has. */
static int heaviest_of(struct slu_packing *p, const struct slu_pack_plan *plan,
                       struct slu_err *err)
{
    struct slu_pack_interval *v;
    size_t n;
    int rc = slu_pack_intervals(plan, &v, &n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (v[i].items > p->most_items)
            p->most_items = v[i].items;
    free(v);
    return SLU_OK;
}

int slu_pack_ext_sites(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    uint64_t bin = 0;
    x->site = calloc(p->n_slot ? p->n_slot : 1, sizeof *x->site);
    if (!x->site)
        return slu_fail_nomem(err, p->n_slot * sizeof *x->site);
    x->n_site = p->n_slot;
    int rc = SLU_OK;
    for (size_t i = 0; i < p->n_slot && !rc && p->slot[i].plan; i++)
        rc = heaviest_of(p, p->slot[i].plan, err);
    if (!rc && p->most_items * sizeof(struct slu_seg) > slu_pack_bin_limit(p))
        rc = slu_pack_refuse_bin(p, p->most_items * sizeof(struct slu_seg), err);
    if (rc)
        return rc;
    for (size_t i = 0; i < p->n_slot; i++) {
        const struct slu_pack_plan *plan = p->slot[i].plan;
        x->site[i].first_bin = bin;
        bin += p->slot[i].sum.bins;
        if (!plan)
            continue;
        size_t n = plan->n_length ? plan->n_length : 1;
        x->site[i].rank = calloc(n, sizeof *x->site[i].rank);
        x->site[i].end = x->flow ? calloc(n, sizeof *x->site[i].end) : NULL;
        if (!x->site[i].rank || (x->flow && !x->site[i].end))
            return slu_fail_nomem(err, n * sizeof *x->site[i].rank);
    }
    return SLU_OK;
}

int slu_pack_ext_plan(struct slu_packing *p, struct slu_err *err)
{
    int rc = slu_pack_ext_sites(p, err);
    if (!rc)
        rc = start(p, err);
    slu_pack_phase(p, "write", NULL);
    return rc;
}

/* ---- the bins ---- */

/* Ids of the bin at hand. */
static int capacity_here(struct slu_packing *p, uint64_t *capacity, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    *capacity = p->cfg.capacity;
    if (p->cfg.method == SLU_PACK_CONCAT)
        return SLU_OK;
    if (!x->interval || x->item->slot != x->slot) {
        free(x->interval);
        x->interval = NULL;
        x->slot = x->item->slot;
        x->at_interval = 0;
        int rc = slu_pack_intervals(p->slot[x->slot].plan, &x->interval, &x->n_interval,
                                    err);
        if (rc)
            return rc;
    }
    uint64_t bin = slu_pack_bin_of(p->n_bin, x->key) - x->site[x->slot].first_bin;
    const struct slu_pack_interval *v = &x->interval[x->at_interval];
    while (bin >= v->first_bin + v->count)
        v = &x->interval[++x->at_interval];
    *capacity = v->capacity;
    return SLU_OK;
}

/* The item goes to the end of out, whose last bin is open. */
static int take_item(struct slu_packing *p, struct slu_batch *out, struct slu_err *err)
{
    const struct slu_pack_ext *x = p->ext;
    const struct slu_pack_wait *it = x->item;
    const uint8_t *id = (const uint8_t *)(it + 1),
                  *tok = id + slu_pack_pad8(it->id_len);
    struct slu_seg seg = {it->source, it->document, it->offset,   it->len_tok,
                          x->domain,  it->id_len,   out->str.len, it->score};
    int rc = slu_grow(&out->seg, &out->cap_seg, out->n_seg + 1, sizeof seg, err);
    if (!rc)
        rc = slu_buf_append(&out->own, tok, it->len_tok * x->cfg.tok_bytes, err);
    if (!rc && it->id_len)
        rc = slu_buf_append(&out->str, id, it->id_len, err);
    if (rc)
        return rc;
    out->seg[out->n_seg++] = seg;
    out->n_tok += it->len_tok;
    return advance(p, err);
}

static int pad_bin(struct slu_pack_ext *x, uint64_t n, struct slu_batch *out,
                   struct slu_err *err)
{
    int rc = slu_buf_reserve(&out->own, n * x->cfg.tok_bytes, err);
    if (!rc)
        rc = slu_grow(&out->seg, &out->cap_seg, out->n_seg + 1, sizeof *out->seg, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < n; i++) {
        uint16_t narrow = (uint16_t)x->cfg.pad;
        uint32_t wide = (uint32_t)x->cfg.pad;
        memcpy(out->own.data + out->own.len,
               x->cfg.tok_bytes == 2 ? (void *)&narrow : (void *)&wide,
               x->cfg.tok_bytes);
        out->own.len += x->cfg.tok_bytes;
    }
    out->n_tok += n;
    out->seg[out->n_seg++] =
        (struct slu_seg){.source = SLU_PADDING, .len_tok = n, .domain = SLU_NO_DOMAIN};
    return SLU_OK;
}

/* Ends the bin that is open in out from q on, whose ids are from n_str on: padded, or
 * dropped. */
static int end_bin(struct slu_pack_ext *x, uint64_t capacity, struct slu_seq q,
                   size_t n_str, struct slu_packing_stat *stat, struct slu_batch *out,
                   struct slu_err *err)
{
    const struct slu_seg *seg = &out->seg[q.seg_off];
    uint64_t n_seg = out->n_seg - q.seg_off, n_tok = out->n_tok - q.tok_off,
             room = capacity - n_tok;
    stat->joined += n_seg - 1;
    if (room && x->cfg.drop) {
        struct slu_count n = {0, 1, n_tok};
        for (uint64_t i = 0; i < n_seg; i++)
            n.documents += seg[i].offset == 0;
        slu_count_add(&stat->not_full, n);
        out->n_seg = q.seg_off;
        out->n_tok = q.tok_off;
        out->own.len = q.tok_off * x->cfg.tok_bytes;
        out->str.len = n_str;
        return SLU_OK;
    }
    int rc = room ? pad_bin(x, room, out, err) : SLU_OK;
    stat->padding += room;
    if (!rc)
        rc = slu_grow(&out->seq, &out->cap_seq, out->n_seq + 1, sizeof *out->seq, err);
    if (rc)
        return rc;
    q.len_tok = capacity;
    q.n_seg = out->n_seg - q.seg_off;
    out->seq[out->n_seq++] = q;
    return SLU_OK;
}

/* The bin that is open from seg_off and n_str on is not too heavy so far. */
static int check_bin(const struct slu_packing *p, const struct slu_batch *out,
                     uint64_t seg_off, size_t n_str, struct slu_err *err)
{
    uint64_t byte = (out->n_seg - seg_off) * sizeof *out->seg + out->str.len - n_str;
    return byte > slu_pack_bin_limit(p) ? slu_pack_refuse_bin(p, byte, err) : SLU_OK;
}

int slu_pack_ext_next(struct slu_packing *p, struct slu_packing_window *w,
                      struct slu_batch *out, uint64_t tok, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    int rc = SLU_OK;
    slu_batch_clear(out);
    while (!rc && x->item && slu_batch_weight(out) < tok) {
        const struct slu_seq q = {.tok_off = out->n_tok, .seg_off = out->n_seg};
        const struct slu_u128 bin_key = x->key;
        uint64_t capacity;
        size_t n_str = out->str.len;
        rc = capacity_here(p, &capacity, err);
        while (!rc && x->item && x->key.hi == bin_key.hi) {
            rc = take_item(p, out, err);
            if (!rc)
                rc = check_bin(p, out, q.seg_off, n_str, err);
        }
        if (!rc && x->items)
            rc = slu_pack_flow_check(p, bin_key, out->n_seg - q.seg_off, err);
        if (!rc)
            rc = end_bin(x, capacity, q, n_str, &w->stat, out, err);
        w->n_bin++;
    }
    out->tok = out->own.data;
    return rc || w->n_bin ? rc : SLU_EOF;
}
