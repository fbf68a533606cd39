#include "packing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "sorter.h"
#include "spool.h"

/* One domain's items. */
struct slot {
    struct slu_lengths *lengths; /* not for SLU_PACK_CONCAT */
    struct slu_pack_plan *plan;
    uint64_t *rank;      /* by number of a length in the plan: items placed so far */
    uint64_t first_bin;  /* of this domain's bins among all */
    uint64_t items, tok; /* before cutting */
    uint64_t cut, cut_by_concat;
    struct slu_pack_sum sum;
};

/* An item as it waits and as it is sorted; its id and its tokens follow, each with
 * zeros up to a multiple of 8. */
struct item {
    uint64_t source, document, offset, len_tok;
    uint64_t position; /* in the domain's concatenation */
    uint32_t domain, slot, id_len, zero;
};

struct slu_packing {
    struct slu_packing_cfg cfg;
    struct slu_map slot_of; /* domain number + 1 -> slot */
    struct slot *slot;
    size_t n_slot, cap_slot;
    uint64_t lengths_byte; /* what the histograms may still take */
    struct slu_spool *spool;
    struct slu_sorter *sorter;
    uint64_t n_bin;
    uint64_t spilled; /* by handles that are gone */
    size_t longest;   /* run of bytes in the spool that belong together */

    /* The bin that is being filled. */
    uint64_t bin_key;
    struct slu_buf tok, seg, id;
    uint64_t n_tok;
    struct slu_u128 key; /* of the item that comes next, if any */
    const struct item *item;
    bool sorted, at_end;
    struct slu_packing_stat stat;
};

static size_t pad8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* A bin is a sixteenth of the budget at most, and so that lengths up to it can be
 * counted in an eighth: a table of 2^i rows of 8 bytes. */
static uint64_t least_budget(const struct slu_packing_cfg *cfg)
{
    uint64_t least = cfg->capacity * cfg->tok_bytes * 16, rows = 256;
    while (rows <= cfg->capacity && rows < (1 << 20))
        rows *= 2;
    return least > rows * 64 ? least : rows * 64;
}

int slu_packing_new(struct slu_packing **out, const struct slu_packing_cfg *cfg,
                    struct slu_err *err)
{
    *out = NULL;
    if (cfg->capacity == 0 || cfg->capacity > SLU_MAX_CAPACITY)
        return slu_fail(err, SLU_E_USAGE, "bins have between 1 and %llu tokens",
                        (unsigned long long)SLU_MAX_CAPACITY);
    if (least_budget(cfg) > cfg->budget_byte)
        return slu_fail(err, SLU_E_LIMIT, "bins of %llu tokens need -M %lluM",
                        (unsigned long long)cfg->capacity,
                        (unsigned long long)((least_budget(cfg) >> 20) + 1));
    struct slu_packing *p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->cfg = *cfg;
    p->lengths_byte = cfg->budget_byte / 8;
    int rc = SLU_OK;
    if (!cfg->plan_only)
        rc = slu_spool_new(&p->spool, cfg->budget_byte / 4, cfg->tmpdir, err);
    if (rc) {
        slu_packing_free(p);
        return rc;
    }
    *out = p;
    return SLU_OK;
}

static void free_slot(struct slot *s)
{
    slu_lengths_free(s->lengths);
    slu_pack_plan_free(s->plan);
    free(s->rank);
}

void slu_packing_free(struct slu_packing *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_slot; i++)
        free_slot(&p->slot[i]);
    free(p->slot);
    slu_map_release(&p->slot_of);
    slu_spool_free(p->spool);
    slu_sorter_free(p->sorter);
    slu_buf_release(&p->tok);
    slu_buf_release(&p->seg);
    slu_buf_release(&p->id);
    free(p);
}

/* ---- arrival ---- */

static int find_slot(struct slu_packing *p, uint32_t domain, uint32_t *slot,
                     struct slu_err *err)
{
    uint64_t key = p->cfg.mix_domains ? 0 : (uint64_t)domain + 1, i;
    if (slu_map_get(&p->slot_of, key, &i)) {
        *slot = (uint32_t)i;
        return SLU_OK;
    }
    int rc = slu_grow(&p->slot, &p->cap_slot, p->n_slot + 1, sizeof *p->slot, err);
    if (rc)
        return rc;
    struct slot *s = &p->slot[p->n_slot];
    memset(s, 0, sizeof *s);
    rc = slu_lengths_new(&s->lengths, p->cfg.device, &p->lengths_byte, err);
    if (!rc)
        rc = slu_map_set(&p->slot_of, key, p->n_slot, err);
    if (rc) {
        free_slot(s);
        return rc;
    }
    *slot = (uint32_t)p->n_slot++;
    return SLU_OK;
}

static int put_padded(struct slu_spool *s, const void *p, size_t n, struct slu_err *err)
{
    static const uint8_t zero[8];
    int rc = slu_spool_put(s, p, n, err);
    return rc || pad8(n) == n ? rc : slu_spool_put(s, zero, pad8(n) - n, err);
}

static int spool_item(struct slu_packing *p, const struct item *it, const void *id,
                      const void *tok, struct slu_err *err)
{
    size_t n_tok = it->len_tok * p->cfg.tok_bytes;
    if (!p->spool)
        return SLU_OK;
    p->longest = n_tok > p->longest ? n_tok : p->longest;
    p->longest = it->id_len > p->longest ? it->id_len : p->longest;
    int rc = slu_spool_put(p->spool, it, sizeof *it, err);
    if (!rc && it->id_len)
        rc = put_padded(p->spool, id, it->id_len, err);
    if (!rc)
        rc = put_padded(p->spool, tok, n_tok, err);
    return rc;
}

int slu_packing_add(struct slu_packing *p, const struct slu_batch *b,
                    const struct slu_run *run, uint64_t *pieces, struct slu_err *err)
{
    const struct slu_seg *g = &run->seg;
    uint64_t left = g->len_tok, capacity = p->cfg.capacity;
    struct item it = {g->source, g->document, g->offset, 0, 0,
                      g->domain, 0,           g->id_len, 0};
    if (!left)
        return SLU_OK;
    int rc = find_slot(p, g->domain, &it.slot, err);
    if (rc)
        return rc;
    struct slot *s = &p->slot[it.slot];
    s->items++;
    s->cut += left > capacity;
    s->cut_by_concat += s->tok % capacity + left > capacity;
    for (uint64_t at = 0; left && !rc; at += it.len_tok, left -= it.len_tok) {
        uint64_t bin, offset;
        it.len_tok = left < capacity ? left : capacity;
        if (p->cfg.method == SLU_PACK_CONCAT)
            it.len_tok = slu_pack_chunk(s->tok, left, capacity, &bin, &offset);
        it.offset = g->offset + at;
        it.position = s->tok;
        s->tok += it.len_tok;
        ++*pieces;
        if (p->cfg.method != SLU_PACK_CONCAT)
            rc = slu_lengths_add(s->lengths, &it.len_tok, 1, err);
        if (rc == SLU_E_LIMIT && p->n_slot > 1)
            rc = slu_fail(err, SLU_E_LIMIT,
                          "the length histograms of %zu domains outgrow their share of "
                          "memory; give -M more, or --mix-domains",
                          p->n_slot);
        if (!rc)
            rc = spool_item(p, &it, b->str.data + g->id_off,
                            slu_batch_at(b, run->tok_off + at), err);
    }
    return rc;
}

/* ---- the plan ---- */

static int solve(struct slu_packing *p, struct slot *s, struct slu_err *err)
{
    const struct slu_pack_cfg cfg = {.capacity = p->cfg.capacity,
                                     .max_items = p->cfg.max_items,
                                     .max_groups = p->cfg.budget_byte / 2 /
                                                   sizeof *s->plan->group};
    struct slu_length_count *row;
    size_t n;
    int rc = slu_lengths_rows(s->lengths, &row, &n, err);
    slu_lengths_free(s->lengths);
    s->lengths = NULL;
    if (!rc)
        rc = slu_pack_solve(&s->plan, p->cfg.method, row, n, &cfg, err);
    free(row);
    if (rc)
        return rc;
    s->rank = calloc(n ? n : 1, sizeof *s->rank);
    if (!s->rank)
        return slu_fail_nomem(err, n * sizeof *s->rank);
    s->sum = slu_pack_plan_sum(s->plan);
    s->sum.items = s->items;
    s->sum.cut = s->cut;
    return SLU_OK;
}

/* The key of an item: bins spread over all 64-bit numbers, then the place in the bin.
 */
static struct slu_u128 key_of(struct slu_packing *p, const struct item *it)
{
    struct slot *s = &p->slot[it->slot];
    uint64_t bin, place;
    if (p->cfg.method == SLU_PACK_CONCAT)
        (void)slu_pack_chunk(it->position, it->len_tok, p->cfg.capacity, &bin, &place);
    else {
        size_t i = slu_pack_find(s->plan, it->len_tok);
        slu_pack_place(s->plan, i, s->rank[i]++, &bin, &place);
    }
    unsigned __int128 spread = (unsigned __int128)(s->first_bin + bin) << 64;
    return (struct slu_u128){place, (uint64_t)(spread / p->n_bin)};
}

static int sort_items(struct slu_packing *p, struct slu_err *err)
{
    int rc = slu_spool_rewind(p->spool, p->longest + sizeof(struct item), err);
    while (!rc) {
        const void *head;
        struct item it;
        rc = slu_spool_get(p->spool, &head, sizeof it, err);
        if (rc)
            break;
        memcpy(&it, head, sizeof it);
        slu_buf_clear(&p->id);
        const void *id = NULL;
        size_t n_id = pad8(it.id_len), n_tok = pad8(it.len_tok * p->cfg.tok_bytes);
        if (n_id) { /* kept aside: the next get may move what this one gave */
            rc = slu_spool_get(p->spool, &id, n_id, err);
            if (!rc)
                rc = slu_buf_append(&p->id, id, n_id, err);
        }
        const void *tok = NULL;
        if (!rc)
            rc = slu_spool_get(p->spool, &tok, n_tok, err);
        if (rc)
            return rc == SLU_EOF
                       ? slu_fail(err, SLU_E_TRUNCATED, "%s: ends early", p->cfg.tmpdir)
                       : rc;
        struct slu_piece piece[] = {{&it, sizeof it}, {p->id.data, n_id}, {tok, n_tok}};
        rc = slu_sorter_add(p->sorter, key_of(p, &it), piece, 3, err);
    }
    p->spilled += slu_spool_spilled(p->spool);
    slu_spool_free(p->spool);
    p->spool = NULL;
    slu_buf_clear(&p->id);
    return rc == SLU_EOF ? slu_sorter_seal(p->sorter, err) : rc;
}

int slu_packing_plan(struct slu_packing *p, struct slu_err *err)
{
    uint64_t plan_byte = 0;
    for (size_t i = 0; i < p->n_slot; i++) {
        struct slot *s = &p->slot[i];
        int rc = SLU_OK;
        if (p->cfg.method != SLU_PACK_CONCAT)
            rc = solve(p, s, err);
        else
            s->sum = slu_pack_concat_sum(s->items, s->tok, s->cut_by_concat,
                                         p->cfg.capacity);
        if (rc)
            return rc;
        plan_byte += s->sum.groups * sizeof *s->plan->group;
        if (plan_byte > p->cfg.budget_byte / 2)
            return slu_fail(
                err, SLU_E_LIMIT,
                "the plans of %zu domains outgrow their share of memory; give -M "
                "more, or --mix-domains",
                p->n_slot);
        s->first_bin = p->n_bin;
        p->n_bin += s->sum.bins;
    }
    return SLU_OK;
}

struct slu_pack_sum slu_packing_sum(const struct slu_packing *p)
{
    struct slu_pack_sum sum = {0};
    for (size_t i = 0; i < p->n_slot; i++)
        slu_pack_sum_add(&sum, &p->slot[i].sum);
    return sum;
}

struct slu_pack_sum slu_packing_baseline(const struct slu_packing *p)
{
    struct slu_pack_sum sum = {0};
    for (size_t i = 0; i < p->n_slot; i++) {
        const struct slot *s = &p->slot[i];
        struct slu_pack_sum one =
            slu_pack_concat_sum(s->items, s->tok, s->cut_by_concat, p->cfg.capacity);
        slu_pack_sum_add(&sum, &one);
    }
    return sum;
}

struct slu_packing_stat slu_packing_stat(const struct slu_packing *p)
{
    return p->stat;
}

uint64_t slu_packing_spilled(const struct slu_packing *p)
{
    return p->spilled + (p->spool ? slu_spool_spilled(p->spool) : 0) +
           (p->sorter ? slu_sorter_spilled(p->sorter) : 0);
}

/* ---- the bins ---- */

static int start(struct slu_packing *p, struct slu_err *err)
{
    struct slu_sorter_cfg cfg = {p->cfg.budget_byte * 3 / 8, p->cfg.tmpdir,
                                 p->cfg.n_threads};
    int rc = slu_sorter_new(&p->sorter, &cfg, err);
    if (!rc)
        rc = sort_items(p, err);
    p->sorted = true;
    return rc;
}

/* The next item in order of place, or NULL with at_end. */
static int advance(struct slu_packing *p, struct slu_err *err)
{
    const void *rec;
    size_t n;
    int rc = slu_sorter_next(p->sorter, &p->key, &rec, &n, err);
    p->at_end = rc == SLU_EOF;
    p->item = rc ? NULL : rec;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int take_item(struct slu_packing *p, struct slu_err *err)
{
    const struct item *it = p->item;
    const uint8_t *id = (const uint8_t *)(it + 1), *tok = id + pad8(it->id_len);
    struct slu_seg seg = {it->source, it->document, it->offset, it->len_tok,
                          it->domain, it->id_len,   p->id.len};
    int rc = slu_buf_append(&p->tok, tok, it->len_tok * p->cfg.tok_bytes, err);
    if (!rc)
        rc = slu_buf_append(&p->id, id, it->id_len, err);
    if (!rc)
        rc = slu_buf_append(&p->seg, &seg, sizeof seg, err);
    p->n_tok += it->len_tok;
    return rc ? rc : advance(p, err);
}

static int pad_bin(struct slu_packing *p, struct slu_err *err)
{
    uint64_t n = p->cfg.capacity - p->n_tok;
    struct slu_seg seg = {SLU_PADDING, 0, 0, n, SLU_NO_DOMAIN, 0, 0};
    int rc = slu_buf_reserve(&p->tok, n * p->cfg.tok_bytes, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < n; i++) {
        uint16_t narrow = (uint16_t)p->cfg.pad;
        uint32_t wide = (uint32_t)p->cfg.pad;
        memcpy(p->tok.data + p->tok.len,
               p->cfg.tok_bytes == 2 ? (void *)&narrow : (void *)&wide,
               p->cfg.tok_bytes);
        p->tok.len += p->cfg.tok_bytes;
    }
    p->n_tok += n;
    p->stat.padding += n;
    return slu_buf_append(&p->seg, &seg, sizeof seg, err);
}

/* Puts the bin into out, padded, or drops it. */
static int end_bin(struct slu_packing *p, struct slu_batch *out, struct slu_err *err)
{
    const struct slu_seg *seg = (const struct slu_seg *)(const void *)p->seg.data;
    uint64_t n_seg = p->seg.len / sizeof *seg;
    p->stat.joined += n_seg - 1;
    if (p->n_tok < p->cfg.capacity && p->cfg.drop) {
        struct slu_count n = {0, 1, p->n_tok};
        for (uint64_t i = 0; i < n_seg; i++)
            n.documents += seg[i].offset == 0;
        slu_count_add(&p->stat.not_full, n);
        return SLU_OK;
    }
    int rc = p->n_tok < p->cfg.capacity ? pad_bin(p, err) : SLU_OK;
    seg = (const struct slu_seg *)(const void *)p->seg.data;
    return rc ? rc
              : slu_batch_add(out, p->tok.data, p->n_tok, seg, p->seg.len / sizeof *seg,
                              p->id.data, err);
}

int slu_packing_next(struct slu_packing *p, struct slu_batch *out, uint64_t tok,
                     struct slu_err *err)
{
    int rc = SLU_OK;
    slu_batch_clear(out);
    if (!p->sorted) {
        rc = start(p, err);
        if (!rc)
            rc = advance(p, err);
    }
    while (!rc && p->item && slu_batch_weight(out) < tok) {
        p->bin_key = p->key.hi;
        p->n_tok = 0;
        slu_buf_clear(&p->tok);
        slu_buf_clear(&p->seg);
        slu_buf_clear(&p->id);
        while (!rc && p->item && p->key.hi == p->bin_key)
            rc = take_item(p, err);
        if (!rc)
            rc = end_bin(p, out, err);
    }
    return rc || out->n_seq ? rc : SLU_EOF;
}

/* ---- for people ---- */

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static int put_row(const struct slu_packing_cfg *cfg, const char *method,
                   const struct slu_pack_sum *s, struct slu_buf *text,
                   struct slu_err *err)
{
    uint64_t lost = cfg->drop ? s->tok - s->full_tok : s->ids - s->tok;
    return slu_buf_printf(text, err,
                          "%-8s %14" PRIu64 " %10" PRIu64 " %9.4f %% %15" PRIu64
                          " %12" PRIu64 " %7.2f %% %9.2f\n",
                          method, cfg->drop ? s->full : s->bins, s->bins - s->bound,
                          100 * slu_pack_fill(s), lost, s->cut,
                          100 * ratio(s->cut, s->items), ratio(s->items, s->bins));
}

int slu_packing_table(const struct slu_packing *p, const struct slu_count *passed,
                      struct slu_buf *text, struct slu_err *err)
{
    struct slu_pack_sum sum = slu_packing_sum(p), base = slu_packing_baseline(p);
    int rc = slu_buf_printf(
        text, err,
        "%" PRIu64 " sequences (%" PRIu64 " tokens) have a bucket's length and pass\n"
        "%" PRIu64 " sequences (%" PRIu64 " tokens) go into bins of %" PRIu64
        " tokens%s\n\n%-8s %14s %10s %11s %15s %12s %9s %9s\n",
        passed->sequences, passed->tokens, sum.items, sum.tok, p->cfg.capacity,
        p->n_slot > 1 ? ", each of one domain" : "", "method", "bins", "over bound",
        "fill", p->cfg.drop ? "tokens dropped" : "padding", "cut", "of all", "per bin");
    if (!rc && p->cfg.method != SLU_PACK_CONCAT)
        rc = put_row(&p->cfg, slu_pack_method_name[p->cfg.method], &sum, text, err);
    return rc ? rc : put_row(&p->cfg, "concat", &base, text, err);
}
