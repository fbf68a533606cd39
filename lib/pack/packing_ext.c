/* Packing beyond memory and in parts: the place of each item by the plan, and the bins,
 * once a table has sorted the items (pack_flow.c). */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/packing_private.h"

int slu_pack_ext_new(struct slu_packing *p, struct slu_err *err)
{
    p->ext = calloc(1, sizeof *p->ext);
    return p->ext ? SLU_OK : slu_fail_nomem(err, sizeof *p->ext);
}

void slu_pack_ext_free(struct slu_pack_ext *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n_site; i++) {
        free(x->site[i].rank);
        free(x->site[i].end);
    }
    free(x->site);
    free(x->interval);
    free(x);
}

/* ---- where items go ---- */

int slu_pack_ext_sites(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    const uint64_t most = slu_packing_sum(p).most;
    uint64_t bin = 0;
    int rc = SLU_OK;
    x->site = calloc(p->n_lane ? p->n_lane : 1, sizeof *x->site);
    if (!x->site)
        return slu_fail_nomem(err, p->n_lane * sizeof *x->site);
    x->n_site = p->n_lane;
    p->most_items = most > p->most_items ? most : p->most_items;
    if (p->most_items * sizeof(struct slu_seg) > slu_pack_bin_limit(p))
        rc = slu_pack_refuse_bin(p, p->most_items * sizeof(struct slu_seg), err);
    for (size_t i = 0; i < p->n_lane && !rc; i++) {
        const struct slu_pack_plan *plan = p->lane[i].plan;
        size_t n = plan ? plan->n_length : 0;
        x->site[i].first_bin = bin;
        bin += p->lane[i].sum.bins;
        x->site[i].rank = calloc(n + 1, sizeof *x->site[i].rank);
        x->site[i].end = calloc(n + 1, sizeof *x->site[i].end);
        if (!x->site[i].rank || !x->site[i].end)
            rc = slu_fail_nomem(err, n * sizeof *x->site[i].rank);
    }
    return rc;
}

/* ---- the bins ---- */

/* Gives the capacity of the bin of the next item. */
static int capacity_here(struct slu_packing *p, uint64_t *capacity, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    *capacity = p->cfg.capacity;
    if (p->cuts)
        return SLU_OK;
    if (!x->interval || x->item->lane != x->lane) {
        free(x->interval);
        x->interval = NULL;
        x->lane = x->item->lane;
        x->at_interval = 0;
        int rc = slu_pack_intervals(p->lane[x->lane].plan, &x->interval, &x->n_interval,
                                    err);
        if (rc)
            return rc;
    }
    uint64_t bin = slu_pack_bin_of(p->n_bin, x->key) - x->site[x->lane].first_bin;
    const struct slu_pack_interval *v = &x->interval[x->at_interval];
    while (bin >= v->first_bin + v->count)
        v = &x->interval[++x->at_interval];
    *capacity = v->capacity;
    return SLU_OK;
}

/* Appends the next item to the open bin at the end of out. */
static int take_item(struct slu_packing *p, struct slu_batch *out, struct slu_err *err)
{
    const struct slu_pack_ext *x = p->ext;
    const struct slu_pack_wait *it = x->item;
    const uint8_t *id = (const uint8_t *)(it + 1), *tok = slu_pack_wait_tok(it);
    struct slu_seg seg = it->seg;
    seg.domain = x->domain;
    seg.id_off = out->str.len;
    int rc = slu_grow(&out->seg, &out->cap_seg, out->n_seg + 1, sizeof seg, err);
    if (!rc)
        rc = slu_buf_append(&out->own, tok, seg.len_tok * p->cfg.tok_bytes, err);
    if (!rc && slu_seg_str(&seg))
        rc = slu_buf_append(&out->str, id, slu_seg_str(&seg), err);
    if (rc)
        return rc;
    out->seg[out->n_seg++] = seg;
    out->n_tok += seg.len_tok;
    return slu_pack_flow_next(p, err);
}

static int pad_bin(const struct slu_packing *p, uint64_t n, struct slu_batch *out,
                   struct slu_err *err)
{
    const struct slu_copy all_padding = {.pad = (uint32_t)p->cfg.pad,
                                         .tok_bytes = p->cfg.tok_bytes};
    int rc = slu_buf_reserve(&out->own, n * p->cfg.tok_bytes, err);
    if (!rc)
        rc = slu_grow(&out->seg, &out->cap_seg, out->n_seg + 1, sizeof *out->seg, err);
    if (rc)
        return rc;
    slu_copy_cpu(&all_padding, 0, n, out->own.data + out->own.len, 1);
    out->own.len += n * p->cfg.tok_bytes;
    out->n_tok += n;
    out->seg[out->n_seg++] =
        (struct slu_seg){.source = SLU_PADDING, .len_tok = n, .domain = SLU_NO_DOMAIN};
    return SLU_OK;
}

/* Pads or drops the open bin, which begins at q, its id strings at n_str. */
static int end_bin(const struct slu_packing *p, uint64_t capacity, struct slu_seq q,
                   size_t n_str, struct slu_packing_stat *stat, struct slu_batch *out,
                   struct slu_err *err)
{
    const struct slu_seg *seg = &out->seg[q.seg_off];
    uint64_t n_seg = out->n_seg - q.seg_off, n_tok = out->n_tok - q.tok_off,
             room = capacity - n_tok;
    stat->joined += n_seg - 1;
    if (room && p->cfg.drop) {
        const uint8_t *tok = out->own.data + q.tok_off * p->cfg.tok_bytes;
        struct slu_count n = {
            0, 1, n_tok, p->cfg.masks ? slu_mask_count((const void *)tok, n_tok) : 0};
        for (uint64_t i = 0; i < n_seg; i++)
            n.documents += seg[i].offset == 0;
        slu_count_add(&stat->not_full, n);
        out->n_seg = q.seg_off;
        out->n_tok = q.tok_off;
        out->own.len = q.tok_off * p->cfg.tok_bytes;
        out->str.len = n_str;
        return SLU_OK;
    }
    int rc = room ? pad_bin(p, room, out, err) : SLU_OK;
    stat->padding += room;
    if (!rc)
        rc = slu_grow(&out->seq, &out->cap_seq, out->n_seq + 1, sizeof *out->seq, err);
    if (rc)
        return rc;
    q.len_tok = capacity;
    q.hash = (struct slu_u128){0, 0};
    q.n_seg = out->n_seg - q.seg_off;
    out->seq[out->n_seq++] = q;
    return SLU_OK;
}

/* SLU_E_LIMIT if the open bin, from seg_off and n_str on, is already too heavy. */
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
        if (!rc)
            rc = slu_pack_flow_check(p, bin_key, out->n_seg - q.seg_off, err);
        if (!rc)
            rc = end_bin(p, capacity, q, n_str, &w->stat, out, err);
        w->n_bin++;
    }
    out->tok = out->own.data;
    return rc || w->n_bin ? rc : SLU_EOF;
}
