#include "lib/pack/packer_private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

const char *const slu_pack_method_name[SLU_PACK_METHODS + 1] = {
    [SLU_PACK_BFD] = "bfd",       [SLU_PACK_FFD] = "ffd",
    [SLU_PACK_SPFHP] = "spfhp",   [SLU_PACK_LPFHP] = "lpfhp",
    [SLU_PACK_NNLSHP] = "nnlshp", [SLU_PACK_MULTI] = "multi",
    [SLU_PACK_CONCAT] = "concat",
};

const struct slu_pack_kind slu_pack_kind[SLU_PACK_METHODS] = {
    [SLU_PACK_BFD] = {.solve = slu_pack_by_bfd},
    [SLU_PACK_FFD] = {.solve = slu_pack_by_ffd},
    [SLU_PACK_SPFHP] = {.solve = slu_pack_by_spfhp},
    [SLU_PACK_LPFHP] = {.solve = slu_pack_by_lpfhp},
    [SLU_PACK_NNLSHP] = {.solve = slu_pack_by_nnlshp,
                         .check = slu_pack_nnlshp_check,
                         .cubic = true},
    [SLU_PACK_MULTI] = {.solve = slu_pack_by_multi, .several = true},
    [SLU_PACK_CONCAT] = {.solve = NULL},
};

/* ---- making a plan ---- */

static int start_sums(struct slu_pack_plan *plan, const struct slu_length_count *hist,
                      size_t n, struct slu_err *err)
{
    for (size_t i = n; i-- > 0;) {
        uint64_t len = hist[i].len_tok, count = hist[i].count, tok;
        if (len == 0 || len > plan->capacity || count == 0 ||
            (i + 1 < n && len >= hist[i + 1].len_tok))
            return slu_fail(err, SLU_E_USAGE,
                            "a piece of %llu tokens does not fit in a bin of %llu",
                            (unsigned long long)len,
                            (unsigned long long)plan->capacity);
        if (__builtin_add_overflow(plan->n_item, count, &plan->n_item) ||
            __builtin_mul_overflow(count, len, &tok) ||
            __builtin_add_overflow(plan->n_tok, tok, &plan->n_tok))
            return slu_fail(err, SLU_E_LIMIT, "more tokens than 64 bits can count");
    }
    return SLU_OK;
}

int slu_pack_start(struct slu_pack_plan **out, const struct slu_length_count *hist,
                   size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    *out = NULL;
    if (cfg->capacity == 0 || cfg->capacity > SLU_MAX_CAPACITY)
        return slu_fail(err, SLU_E_USAGE, "bins of %llu tokens; 1 to %llu are possible",
                        (unsigned long long)cfg->capacity,
                        (unsigned long long)SLU_MAX_CAPACITY);
    struct slu_pack_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return slu_fail_nomem(err, sizeof *plan);
    plan->capacity = cfg->capacity;
    plan->length = malloc((n ? n : 1) * sizeof *plan->length);
    int rc = plan->length ? start_sums(plan, hist, n, err)
                          : slu_fail_nomem(err, n * sizeof *plan->length);
    if (!rc) /* about three groups per length in practice */
        rc = slu_grow(&plan->group, &plan->cap_group, 4 * n + 16, sizeof *plan->group,
                      err);
    if (rc)
        slu_pack_plan_free(plan);
    else
        *out = plan;
    return rc;
}

void slu_pack_begin_length(struct slu_pack_plan *plan, uint64_t len_tok)
{
    plan->length[plan->n_length++] = (struct slu_pack_length){len_tok, plan->n_group};
}

int slu_pack_take(struct slu_pack_plan *plan, const struct slu_pack_cfg *cfg,
                  uint32_t parent, uint64_t capacity, uint64_t len_tok, uint64_t repeat,
                  uint64_t count, uint64_t *rank, struct slu_err *err)
{
    if (plan->n_group == plan->cap_group) {
        int rc = slu_grow(&plan->group, &plan->cap_group, plan->n_group + 1,
                          sizeof *plan->group, err);
        if (rc)
            return rc;
    }
    if (plan->n_group >= SLU_PACK_OPENED / 2 ||
        (cfg->max_groups && plan->n_group >= cfg->max_groups))
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "the plan has more than %zu groups of bins, which outgrows memory",
                     plan->n_group));
    struct slu_pack_group *g = &plan->group[plan->n_group++];
    *g = (struct slu_pack_group){
        .count = count,
        .len_tok = len_tok,
        .repeat = repeat,
        .first_rank = *rank,
        .room = capacity - repeat * len_tok,
        .capacity = capacity,
        .parent = parent,
    };
    if (parent == SLU_PACK_OPENED) {
        g->first_bin = plan->n_bin;
        plan->n_bin += count;
    } else {
        struct slu_pack_group *p = &plan->group[parent];
        g->first_bin = p->first_bin + p->taken;
        g->capacity = p->capacity;
        g->room = p->room - repeat * len_tok;
        g->slot = p->slot + p->repeat;
        p->taken += count;
    }
    *rank += count * repeat;
    return SLU_OK;
}

int slu_pack_bfd(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                 size_t n, uint64_t capacity, uint64_t max_items, struct slu_err *err)
{
    const struct slu_pack_cfg cfg = {.capacity = capacity, .max_items = max_items};
    return slu_pack_by_bfd(plan, hist, n, &cfg, err);
}

int slu_pack_solve(struct slu_pack_plan **plan, enum slu_pack_method method,
                   const struct slu_length_count *hist, size_t n,
                   const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    const struct slu_pack_kind *k =
        method < SLU_PACK_METHODS ? &slu_pack_kind[method] : NULL;
    *plan = NULL;
    if (!k || !k->solve)
        return slu_fail(err, SLU_E_USAGE, "%s makes no plan",
                        k ? slu_pack_method_name[method] : "this method");
    int rc = k->check ? k->check(cfg->capacity, err) : SLU_OK;
    return rc ? rc : k->solve(plan, hist, n, cfg, err);
}

void slu_pack_plan_free(struct slu_pack_plan *plan)
{
    if (!plan)
        return;
    free(plan->group);
    free(plan->length);
    free(plan);
}

/* ---- using a plan ---- */

size_t slu_pack_find(const struct slu_pack_plan *plan, uint64_t len_tok)
{
    size_t lo = 0, hi = plan->n_length;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (plan->length[mid].len_tok > len_tok)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < plan->n_length && plan->length[lo].len_tok == len_tok ? lo
                                                                      : plan->n_length;
}

void slu_pack_place(const struct slu_pack_plan *plan, size_t i, uint64_t rank,
                    uint64_t *bin, uint64_t *slot)
{
    size_t lo = plan->length[i].first_group;
    size_t end =
        i + 1 < plan->n_length ? plan->length[i + 1].first_group : plan->n_group;
    size_t hi = end - 1;
    while (lo < hi) { /* the last group whose first rank is at most ours */
        size_t mid = (lo + hi + 1) / 2;
        if (plan->group[mid].first_rank > rank)
            hi = mid - 1;
        else
            lo = mid;
    }
    const struct slu_pack_group *g = &plan->group[lo];
    uint64_t k = rank - g->first_rank;
    *bin = g->first_bin + k / g->repeat;
    *slot = g->slot + k % g->repeat;
}

void slu_pack_sum_add(struct slu_pack_sum *a, const struct slu_pack_sum *b)
{
    a->items += b->items;
    a->tok += b->tok;
    a->cut += b->cut;
    a->bins += b->bins;
    a->ids += b->ids;
    a->full += b->full;
    a->full_tok += b->full_tok;
    a->bound += b->bound;
    a->groups += b->groups;
    a->most = a->most > b->most ? a->most : b->most;
}

static uint64_t bound(uint64_t tok, uint64_t capacity)
{
    return tok / capacity + (tok % capacity != 0);
}

struct slu_pack_sum slu_pack_plan_sum(const struct slu_pack_plan *plan)
{
    struct slu_pack_sum s = {.items = plan->n_item,
                             .tok = plan->n_tok,
                             .bins = plan->n_bin,
                             .bound = bound(plan->n_tok, plan->capacity),
                             .groups = plan->n_group};
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        uint64_t bins = g->count - g->taken;
        s.ids += bins * g->capacity;
        if (bins && g->slot + g->repeat > s.most)
            s.most = g->slot + g->repeat;
        if (g->room == 0) {
            s.full += bins;
            s.full_tok += bins * g->capacity;
        }
    }
    return s;
}

struct slu_pack_sum slu_pack_concat_sum(uint64_t items, uint64_t tok, uint64_t cut,
                                        uint64_t capacity)
{
    uint64_t full = tok / capacity, bins = bound(tok, capacity);
    return (struct slu_pack_sum){.items = items,
                                 .tok = tok,
                                 .cut = cut,
                                 .bins = bins,
                                 .ids = bins * capacity,
                                 .full = full,
                                 .full_tok = full * capacity,
                                 .bound = bins};
}

double slu_pack_fill(const struct slu_pack_sum *s)
{
    return s->bins ? (double)s->tok / (double)s->ids : 1;
}

/* ---- bins in order ---- */

/* Appends the bins of group i that no child took. */
static int add_interval(const struct slu_pack_plan *plan, uint32_t i,
                        struct slu_pack_interval *row, size_t *n, struct slu_err *err)
{
    const struct slu_pack_group *g = &plan->group[i];
    struct slu_pack_interval v = {
        .count = g->count - g->taken,
        .items = g->slot + g->repeat,
        .capacity = g->capacity,
        .room = g->room,
        .group = i,
    };
    if (!v.count)
        return SLU_OK;
    uint64_t ids, items;
    if (*n) {
        const struct slu_pack_interval *b = &row[*n - 1];
        v.first_bin = b->first_bin + b->count;
        v.first_item = b->first_item + b->count * b->items;
        v.first_tok = b->first_tok + b->count * b->capacity;
    }
    if (__builtin_mul_overflow(v.count, v.capacity, &ids) ||
        __builtin_add_overflow(v.first_tok, ids, &ids) ||
        __builtin_mul_overflow(v.count, v.items, &items) ||
        __builtin_add_overflow(v.first_item, items, &items))
        return slu_fail(err, SLU_E_LIMIT, "more packed tokens than 64 bits can count");
    row[(*n)++] = v;
    return SLU_OK;
}

int slu_pack_intervals(const struct slu_pack_plan *plan, struct slu_pack_interval **row,
                       size_t *n, struct slu_err *err)
{
    *row = NULL;
    *n = 0;
    size_t size = plan->n_group + 1;
    struct slu_pack_interval *r = malloc(size * sizeof *r);
    uint32_t *next = malloc(size * sizeof *next), *child = malloc(size * sizeof *child);
    int rc = SLU_OK;
    if (!r || !next || !child) {
        rc = slu_fail_nomem(err, size * sizeof *r);
        goto out;
    }
    /* The groups are a forest; in post-order (children first) bins ascend. The last
     * element stands for the root. */
    uint32_t root = (uint32_t)plan->n_group;
    memset(child, 0xff, size * sizeof *child);
    for (uint32_t i = root; i-- > 0;) {
        uint32_t p = plan->group[i].parent;
        p = p == SLU_PACK_OPENED ? root : p;
        next[i] = child[p];
        child[p] = i;
    }
    for (uint32_t i = child[root]; i != SLU_PACK_OPENED && !rc;) {
        while (child[i] != SLU_PACK_OPENED)
            i = child[i];
        rc = add_interval(plan, i, r, n, err);
        while (!rc && next[i] == SLU_PACK_OPENED &&
               plan->group[i].parent != SLU_PACK_OPENED) {
            i = plan->group[i].parent;
            rc = add_interval(plan, i, r, n, err);
        }
        i = next[i];
    }
    if (!rc) {
        *row = r;
        r = NULL;
    }
out:
    free(r);
    free(next);
    free(child);
    return rc;
}
