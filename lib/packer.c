#include "packer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

const char *const slu_pack_method_name[SLU_PACK_METHODS + 1] = {
    [SLU_PACK_BFD] = "bfd",       [SLU_PACK_FFD] = "ffd",
    [SLU_PACK_SPFHP] = "spfhp",   [SLU_PACK_LPFHP] = "lpfhp",
    [SLU_PACK_NNLSHP] = "nnlshp", [SLU_PACK_MULTI] = "multi",
    [SLU_PACK_CONCAT] = "concat",
};

/* ---- open groups by room: a set of rooms in two levels of bits, a heap of groups for
 * each --- */

struct solver {
    struct slu_pack_plan *plan;
    uint64_t *word,
        *summary; /* bit r of word: some group has room r; of summary: word != 0 */
    size_t n_word, n_summary;
    uint32_t *top; /* by room: the group whose bins were opened first, SLU_PACK_OPENED:
                      none */
    uint64_t max_items;
};

static uint64_t first_free(const struct slu_pack_group *g)
{
    return g->first_bin + g->taken;
}

/* Leftist heaps (Crane 1972): the right spine of n groups has at most log2(n + 1)
 * links. */
static uint32_t merge(struct slu_pack_group *g, uint32_t a, uint32_t b)
{
    if (a == SLU_PACK_OPENED)
        return b;
    if (b == SLU_PACK_OPENED)
        return a;
    if (first_free(&g[b]) < first_free(&g[a])) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    g[a].right = merge(g, g[a].right, b);
    uint32_t l = g[a].left, r = g[a].right;
    if (l == SLU_PACK_OPENED || g[l].rank < g[r].rank) {
        g[a].left = r;
        g[a].right = l;
    }
    g[a].rank = g[a].right == SLU_PACK_OPENED ? 1 : g[g[a].right].rank + 1;
    return a;
}

static void push(struct solver *s, uint32_t i)
{
    struct slu_pack_group *g = &s->plan->group[i];
    uint64_t room = g->room;
    g->left = g->right = SLU_PACK_OPENED;
    g->rank = 1;
    s->top[room] = merge(s->plan->group, s->top[room], i);
    s->word[room / 64] |= UINT64_C(1) << room % 64;
    s->summary[room / 4096] |= UINT64_C(1) << room / 64 % 64;
}

static void pop(struct solver *s, uint64_t room)
{
    const struct slu_pack_group *g = &s->plan->group[s->top[room]];
    s->top[room] = merge(s->plan->group, g->left, g->right);
    if (s->top[room] != SLU_PACK_OPENED)
        return;
    s->word[room / 64] &= ~(UINT64_C(1) << room % 64);
    if (!s->word[room / 64])
        s->summary[room / 4096] &= ~(UINT64_C(1) << room / 64 % 64);
}

/* The smallest room >= len that some group has, or 0. */
static uint64_t smallest_room(const struct solver *s, uint64_t len)
{
    size_t w = len / 64;
    uint64_t bits = s->word[w] & ~UINT64_C(0) << len % 64;
    if (bits)
        return w * 64 + (unsigned)__builtin_ctzll(bits);
    if (++w >= s->n_word)
        return 0;
    size_t m = w / 64;
    bits = s->summary[m] & ~UINT64_C(0) << w % 64;
    while (!bits) {
        if (++m >= s->n_summary)
            return 0;
        bits = s->summary[m];
    }
    w = m * 64 + (unsigned)__builtin_ctzll(bits);
    return w * 64 + (unsigned)__builtin_ctzll(s->word[w]);
}

static void solver_release(struct solver *s)
{
    free(s->word);
    free(s->summary);
    free(s->top);
}

static int solver_init(struct solver *s, struct slu_pack_plan *plan, uint64_t max_items,
                       struct slu_err *err)
{
    memset(s, 0, sizeof *s);
    s->plan = plan;
    s->max_items = max_items ? max_items : UINT64_MAX;
    s->n_word = plan->capacity / 64 + 1;
    s->n_summary = s->n_word / 64 + 1;
    s->word = calloc(s->n_word, sizeof *s->word);
    s->summary = calloc(s->n_summary, sizeof *s->summary);
    s->top = malloc((plan->capacity + 1) * sizeof *s->top);
    if (!s->word || !s->summary || !s->top)
        return slu_fail_nomem(err, (plan->capacity + 1) * sizeof *s->top);
    memset(s->top, 0xff, (plan->capacity + 1) * sizeof *s->top);
    return SLU_OK;
}

/* ---- solving ---- */

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One step: places some of the n items of length len, of which `rank` are placed
 * already; *n and *rank move on. */
static int place_some(struct solver *s, uint64_t len, uint64_t *n, uint64_t *rank,
                      struct slu_err *err)
{
    struct slu_pack_plan *plan = s->plan;
    if (plan->n_group == plan->cap_group) {
        if (plan->n_group >= SLU_PACK_OPENED / 2)
            return slu_fail(err, SLU_E_LIMIT, "the plan has too many groups of bins");
        int rc = slu_grow(&plan->group, &plan->cap_group, plan->n_group + 1,
                          sizeof *plan->group, err);
        if (rc)
            return rc;
    }
    uint32_t i = (uint32_t)plan->n_group++;
    struct slu_pack_group *g = &plan->group[i], *p = NULL;
    *g = (struct slu_pack_group){
        .len_tok = len, .first_rank = *rank, .capacity = plan->capacity};
    uint64_t room = smallest_room(s, len), bins = UINT64_MAX, held = 0;
    g->parent = room ? s->top[room] : SLU_PACK_OPENED;
    if (room) {
        p = &plan->group[g->parent];
        bins = p->count - p->taken;
        held = p->slot + p->repeat;
    }
    uint64_t from = room ? room : plan->capacity;
    g->repeat = min64(min64(from / len, s->max_items - held), *n);
    g->count = min64(bins, *n / g->repeat);
    g->slot = held;
    g->room = from - g->repeat * len;
    if (p) {
        g->first_bin = first_free(p);
        p->taken += g->count;
        if (p->taken == p->count)
            pop(s, room);
    } else {
        g->first_bin = plan->n_bin;
        plan->n_bin += g->count;
    }
    if (g->room && held + g->repeat < s->max_items)
        push(s, i);
    *n -= g->count * g->repeat;
    *rank += g->count * g->repeat;
    return SLU_OK;
}

int slu_pack_bfd(struct slu_pack_plan **out, const struct slu_length_count *hist,
                 size_t n, uint64_t capacity, uint64_t max_items, struct slu_err *err)
{
    *out = NULL;
    if (capacity == 0 || capacity > SLU_MAX_CAPACITY)
        return slu_fail(
            err, SLU_E_USAGE, "bins of %llu tokens: between 1 and %llu are possible",
            (unsigned long long)capacity, (unsigned long long)SLU_MAX_CAPACITY);
    struct solver s = {0};
    struct slu_pack_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return slu_fail_nomem(err, sizeof *plan);
    plan->capacity = capacity;
    int rc = solver_init(&s, plan, max_items, err);
    if (rc)
        goto out;
    plan->length = malloc((n ? n : 1) * sizeof *plan->length);
    if (!plan->length) {
        rc = slu_fail_nomem(err, n * sizeof *plan->length);
        goto out;
    }
    for (size_t i = n; i-- > 0;) {
        uint64_t len = hist[i].len_tok, left = hist[i].count, rank = 0;
        if (len == 0 || len > capacity || (i + 1 < n && len >= hist[i + 1].len_tok)) {
            rc = slu_fail(err, SLU_E_USAGE,
                          "an item of %llu tokens does not go into %llu",
                          (unsigned long long)len, (unsigned long long)capacity);
            goto out;
        }
        plan->length[plan->n_length++] = (struct slu_pack_length){len, plan->n_group};
        uint64_t tok;
        if (__builtin_add_overflow(plan->n_item, left, &plan->n_item) ||
            __builtin_mul_overflow(left, len, &tok) ||
            __builtin_add_overflow(plan->n_tok, tok, &plan->n_tok)) {
            rc = slu_fail(err, SLU_E_LIMIT, "more tokens than 64 bits can count");
            goto out;
        }
        while (left && !rc)
            rc = place_some(&s, len, &left, &rank, err);
        if (rc)
            goto out;
    }
    *out = plan;
    plan = NULL;
out:
    solver_release(&s);
    slu_pack_plan_free(plan);
    return rc;
}

int slu_pack_solve(struct slu_pack_plan **plan, enum slu_pack_method method,
                   const struct slu_length_count *hist, size_t n,
                   const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    *plan = NULL;
    switch (method) {
    case SLU_PACK_BFD:
        return slu_pack_bfd(plan, hist, n, cfg->capacity, cfg->max_items, err);
    case SLU_PACK_FFD:
    case SLU_PACK_SPFHP:
    case SLU_PACK_LPFHP:
    case SLU_PACK_NNLSHP:
    case SLU_PACK_MULTI:
    case SLU_PACK_CONCAT:
    case SLU_PACK_METHODS:
        break;
    }
    return slu_fail(err, SLU_E_USAGE, "%s makes no plan",
                    method < SLU_PACK_METHODS ? slu_pack_method_name[method]
                                              : "this method");
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
    size_t lo = 0, hi = plan->n_length - 1;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (plan->length[mid].len_tok > len_tok)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void slu_pack_place(const struct slu_pack_plan *plan, size_t i, uint64_t rank,
                    uint64_t *bin, uint64_t *slot)
{
    size_t lo = plan->length[i].first_group;
    size_t end =
        i + 1 < plan->n_length ? plan->length[i + 1].first_group : plan->n_group;
    size_t hi = end - 1;
    while (lo < hi) { /* the last group whose first rank is not past ours */
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

static int by_room(const void *a, const void *b)
{
    const struct slu_length_count *x = a, *y = b;
    return x->len_tok < y->len_tok ? -1 : x->len_tok > y->len_tok;
}

int slu_pack_rooms(const struct slu_pack_plan *plan, struct slu_length_count **row,
                   size_t *n, struct slu_err *err)
{
    struct slu_length_count *r =
        malloc((plan->n_group ? plan->n_group : 1) * sizeof *r);
    *row = NULL;
    *n = 0;
    if (!r)
        return slu_fail_nomem(err, plan->n_group * sizeof *r);
    size_t k = 0;
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        if (g->count > g->taken)
            r[k++] = (struct slu_length_count){g->room, g->count - g->taken};
    }
    qsort(r, k, sizeof *r, by_room);
    size_t m = 0;
    for (size_t i = 0; i < k; i++)
        if (m && r[m - 1].len_tok == r[i].len_tok)
            r[m - 1].count += r[i].count;
        else
            r[m++] = r[i];
    *row = r;
    *n = m;
    return SLU_OK;
}

/* ---- bins in order ---- */

/* Appends the bins that stay with group i. */
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
    /* The groups are a forest; in its order, children first, bins ascend. The last
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
