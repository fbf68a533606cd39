#include "lib/pack/related.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/flow/radix.h"
#include "lib/pack/packer.h"

enum { FOLDER_WEIGHT = 4, ABOVE_WEIGHT = 2, LOOSE_ROUNDS = 4, LOOSE_BINS = 4 };

/* Lists of items that share a key, and for each item its lists. */
struct shared {
    uint32_t *member; /* items of all lists */
    size_t n_member, cap_member;
    uint64_t *list; /* n_list + 1: begin of each list in member */
    uint8_t *weight;
    size_t n_list, cap_list, cap_weight;
    uint64_t *first; /* by item, n + 1: begin of its lists in `of` */
    uint32_t *of;
    uint64_t capped;
};

static void shared_release(struct shared *s)
{
    free(s->member);
    free(s->list);
    free(s->weight);
    free(s->first);
    free(s->of);
}

/* Adds a list of items with the same key. */
static int add_list(struct shared *s, const struct slu_entry *e, size_t n,
                    unsigned weight, struct slu_err *err)
{
    int rc =
        slu_grow(&s->member, &s->cap_member, s->n_member + n, sizeof *s->member, err);
    if (!rc)
        rc = slu_grow(&s->list, &s->cap_list, s->n_list + 2, sizeof *s->list, err);
    if (!rc)
        rc =
            slu_grow(&s->weight, &s->cap_weight, s->n_list + 1, sizeof *s->weight, err);
    if (rc)
        return rc;
    if (s->n_list >= UINT32_MAX - 1)
        return slu_fail(err, SLU_E_LIMIT, "documents share too many keys");
    for (size_t i = 0; i < n; i++)
        s->member[s->n_member + i] = (uint32_t)e[i].prefix;
    s->list[s->n_list] = s->n_member;
    s->weight[s->n_list++] = (uint8_t)weight;
    s->n_member += n;
    s->list[s->n_list] = s->n_member;
    return SLU_OK;
}

/* Adds the lists for key number k of all items. */
static int share(struct shared *s, struct slu_entry *e, const uint32_t *key, size_t n,
                 unsigned k, struct slu_err *err)
{
    bool folder = k >= SLU_RELATED_BANDS;
    unsigned weight = k == SLU_RELATED_BANDS ? FOLDER_WEIGHT
                      : folder               ? ABOVE_WEIGHT
                                             : 1;
    size_t m = 0;
    int rc = SLU_OK;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = key[i * SLU_RELATED_KEYS + k];
        if (v)
            e[m++] = (struct slu_entry){(uint64_t)v << 32 | i, 0};
    }
    slu_entry_sort(e, m);
    for (size_t i = 0, end; i < m && !rc; i = end) {
        for (end = i + 1; end < m && e[end].prefix >> 32 == e[i].prefix >> 32; end++)
            ;
        if (end - i > SLU_RELATED_CAP && !folder) {
            s->capped++;
            continue;
        }
        for (size_t from = i; from + 1 < end && !rc; from += SLU_RELATED_CAP) {
            size_t left = end - from;
            rc = add_list(s, e + from, left < SLU_RELATED_CAP ? left : SLU_RELATED_CAP,
                          weight, err);
        }
    }
    return rc;
}

static int too_much(uint64_t budget, struct slu_err *err)
{
    return slu_advise(err, SLU_ADVISE_MEMORY,
                      slu_fail(err, SLU_E_LIMIT,
                               "the table of related documents takes more than its "
                               "share of memory, %llu MiB",
                               (unsigned long long)(budget >> 20)));
}

static int index_items(struct shared *s, size_t n, struct slu_err *err)
{
    s->first = calloc(n + 2, sizeof *s->first);
    s->of = malloc((s->n_member + 1) * sizeof *s->of);
    if (!s->first || !s->of)
        return slu_fail_nomem(err, (n + s->n_member) * 8);
    for (size_t i = 0; i < s->n_member; i++)
        s->first[s->member[i] + 2]++;
    for (size_t i = 0; i < n; i++)
        s->first[i + 1] += s->first[i];
    for (size_t l = 0; l < s->n_list; l++)
        for (uint64_t i = s->list[l]; i < s->list[l + 1]; i++)
            s->of[s->first[s->member[i] + 1]++] = (uint32_t)l;
    return SLU_OK;
}

static int find_shared(struct shared *s, const uint32_t *key, size_t n, uint64_t budget,
                       struct slu_err *err)
{
    struct slu_entry *e = malloc((n + 1) * sizeof *e);
    int rc = SLU_OK;
    if (!e)
        return slu_fail_nomem(err, n * sizeof *e);
    for (unsigned k = 0; k < SLU_RELATED_KEYS && !rc; k++) {
        rc = share(s, e, key, n, k, err);
        if (!rc && s->cap_member * 8 + s->cap_list * 9 + n * 40 > budget)
            rc = too_much(budget, err);
    }
    free(e);
    return rc ? rc : index_items(s, n, err);
}

/* ---- chains ---- */

struct chaining {
    const struct shared *s;
    const uint32_t *len;
    uint32_t *score; /* by item: weight shared with the chain; 0 between chains */
    uint8_t *placed; /* by item */
    uint32_t *seen;  /* items with a score */
    size_t n_seen, cap_seen;
    /* A heap of score << 32 | ~item, the greatest first. Only the entry with an item's
     * current score is valid. */
    uint64_t *heap;
    size_t n_heap, cap_heap;
};

static int push(struct chaining *c, uint64_t v, struct slu_err *err)
{
    int rc = slu_grow(&c->heap, &c->cap_heap, c->n_heap + 1, sizeof *c->heap, err);
    if (rc)
        return rc;
    size_t i = c->n_heap++;
    for (; i && c->heap[(i - 1) / 2] < v; i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = v;
    return SLU_OK;
}

static uint64_t pop(struct chaining *c)
{
    uint64_t top = c->heap[0], v = c->heap[--c->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < c->n_heap; i = child) {
        if (child + 1 < c->n_heap && c->heap[child + 1] > c->heap[child])
            child++;
        if (c->heap[child] <= v)
            break;
        c->heap[i] = c->heap[child];
    }
    c->heap[i] = v;
    return top;
}

/* Adds the weights that x, which joined the chain, shares with items that still fit. */
static int look_around(struct chaining *c, uint32_t x, uint64_t room,
                       struct slu_err *err)
{
    const struct shared *s = c->s;
    for (uint64_t k = s->first[x]; k < s->first[x + 1]; k++) {
        uint32_t l = s->of[k];
        for (uint64_t i = s->list[l]; i < s->list[l + 1]; i++) {
            uint32_t y = s->member[i];
            if (c->placed[y] || c->len[y] > room)
                continue;
            if (!c->score[y]) {
                int rc = slu_grow(&c->seen, &c->cap_seen, c->n_seen + 1,
                                  sizeof *c->seen, err);
                if (rc)
                    return rc;
                c->seen[c->n_seen++] = y;
            }
            c->score[y] += s->weight[l];
            int rc = push(c, (uint64_t)c->score[y] << 32 | (UINT32_MAX - y), err);
            if (rc)
                return rc;
        }
    }
    return SLU_OK;
}

/* Returns the item that shares most and fits, or -1. */
static int64_t nearest(struct chaining *c, uint64_t room)
{
    while (c->n_heap) {
        uint64_t v = pop(c);
        uint32_t y = UINT32_MAX - (uint32_t)v;
        if (!c->placed[y] && c->score[y] == v >> 32 && c->len[y] <= room)
            return y;
    }
    return -1;
}

static int make_chains(struct chaining *c, struct slu_chains *out, size_t n,
                       uint64_t capacity, struct slu_err *err)
{
    size_t at = 0;
    int rc = SLU_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        if (c->placed[i])
            continue;
        uint64_t room = capacity;
        out->first[out->n] = (uint32_t)at;
        for (int64_t next = (int64_t)i; next >= 0 && !rc; next = nearest(c, room)) {
            room -= c->len[next];
            c->placed[next] = 1;
            out->item[at++] = (uint32_t)next;
            if (!room)
                break;
            rc = look_around(c, (uint32_t)next, room, err);
        }
        out->len[out->n++] = (uint32_t)(capacity - room);
        for (size_t k = 0; k < c->n_seen; k++)
            c->score[c->seen[k]] = 0;
        c->n_seen = c->n_heap = 0;
    }
    out->first[out->n] = (uint32_t)at;
    return rc;
}

/* ---- loosening ---- */

/* The chains, and those to take apart. */
struct loosening {
    struct slu_chains *c;
    const uint32_t *len; /* by item */
    size_t n;
    uint64_t capacity;
    uint8_t *loose;  /* by chain */
    uint64_t *count; /* by length */
    uint32_t *bin;   /* by chain: its bin in best fit, if not loose */
    uint32_t *room;  /* by bin */
    size_t n_bin, cap_room;
};

/* Makes the best-fit plan of whole chains and of the items of loose ones. */
static int solve(const struct loosening *x, struct slu_pack_plan **plan,
                 struct slu_err *err)
{
    const struct slu_chains *c = x->c;
    size_t n = 0;
    memset(x->count, 0, (x->capacity + 1) * sizeof *x->count);
    for (size_t k = 0; k < c->n; k++) {
        if (!x->loose[k])
            n += !x->count[c->len[k]]++;
        for (size_t i = c->first[k]; x->loose[k] && i < c->first[k + 1]; i++)
            n += !x->count[x->len[c->item[i]]]++;
    }
    struct slu_length_count *row = malloc((n + 1) * sizeof *row);
    *plan = NULL;
    if (!row)
        return slu_fail_nomem(err, n * sizeof *row);
    n = 0;
    for (uint64_t l = 1; l <= x->capacity; l++)
        if (x->count[l])
            row[n++] = (struct slu_length_count){l, x->count[l]};
    int rc = slu_pack_bfd(plan, row, n, x->capacity, 0, err);
    free(row);
    return rc;
}

/* Puts a piece into its bin, which it returns. */
static uint32_t put(struct loosening *x, const struct slu_pack_plan *plan, uint32_t len)
{
    uint64_t bin, slot;
    slu_pack_place(plan, slu_pack_find(plan, len), x->count[len]++, &bin, &slot);
    x->room[bin] -= len;
    return (uint32_t)bin;
}

/* Puts all pieces into the bins of best fit. */
static int fill(struct loosening *x, struct slu_err *err)
{
    const struct slu_chains *c = x->c;
    struct slu_pack_plan *plan;
    int rc = solve(x, &plan, err);
    if (!rc)
        rc = slu_grow(&x->room, &x->cap_room, plan->n_bin, sizeof *x->room, err);
    if (rc) {
        slu_pack_plan_free(plan);
        return rc;
    }
    x->n_bin = plan->n_bin;
    for (size_t b = 0; b < x->n_bin; b++)
        x->room[b] = (uint32_t)x->capacity;
    memset(x->count, 0, (x->capacity + 1) * sizeof *x->count);
    for (size_t k = 0; k < c->n; k++) {
        if (!x->loose[k])
            x->bin[k] = put(x, plan, c->len[k]);
        for (size_t i = c->first[k]; x->loose[k] && i < c->first[k + 1]; i++)
            (void)put(x, plan, x->len[c->item[i]]);
    }
    slu_pack_plan_free(plan);
    return SLU_OK;
}

/* Marks the chains of the `most` emptiest bins as loose; *marked: their number. */
static int mark(struct loosening *x, size_t most, uint64_t *marked, struct slu_err *err)
{
    struct slu_entry *e = malloc((x->n_bin + 1) * sizeof *e);
    if (!e)
        return slu_fail_nomem(err, x->n_bin * sizeof *e);
    for (size_t b = 0; b < x->n_bin; b++)
        e[b] = (struct slu_entry){(x->capacity - x->room[b]) << 32 | b, b};
    slu_entry_sort(e, x->n_bin);
    for (size_t b = 0; b < most && b < x->n_bin; b++)
        x->room[e[b].ref] = UINT32_MAX; /* marks an emptiest bin */
    free(e);
    *marked = 0;
    for (size_t k = 0; k < x->c->n; k++) {
        uint32_t items = x->c->first[k + 1] - x->c->first[k];
        if (x->loose[k] || items < 2 || x->room[x->bin[k]] != UINT32_MAX)
            continue;
        x->loose[k] = 1;
        x->c->related -= items;
        ++*marked;
    }
    return SLU_OK;
}

/* Takes the loose chains apart. Chains stay in the order of their first items. */
static int take_apart(const struct loosening *x, struct slu_err *err)
{
    struct slu_chains *c = x->c, old = *c;
    size_t n = x->n, at = 0;
    uint32_t *chain = malloc((n + 1) * sizeof *chain); /* by item */
    c->item = malloc((n + 1) * sizeof *c->item);
    c->first = malloc((n + 1) * sizeof *c->first);
    c->len = malloc((n + 1) * sizeof *c->len);
    c->n = 0;
    int rc =
        chain && c->item && c->first && c->len ? SLU_OK : slu_fail_nomem(err, n * 16);
    for (size_t k = 0; k < old.n && !rc; k++)
        for (size_t i = old.first[k]; i < old.first[k + 1]; i++)
            chain[old.item[i]] = (uint32_t)k;
    for (size_t i = 0; i < n && !rc; i++) {
        size_t k = chain[i], m = x->loose[k] ? 1 : old.first[k + 1] - old.first[k];
        const uint32_t *from = &old.item[old.first[k]];
        uint32_t one = (uint32_t)i;
        if (!x->loose[k] && from[0] != i)
            continue;
        c->first[c->n] = (uint32_t)at;
        c->len[c->n++] = x->loose[k] ? x->len[i] : old.len[k];
        memcpy(c->item + at, x->loose[k] ? &one : from, m * sizeof *c->item);
        at += m;
    }
    if (!rc)
        c->first[c->n] = (uint32_t)at;
    free(chain);
    free(old.item);
    free(old.first);
    free(old.len);
    return rc;
}

/* As long as best fit needs too many bins, takes the chains of its emptiest bins apart,
 * LOOSE_BINS bins for each bin too many, in LOOSE_ROUNDS rounds at most. */
static int loosen(struct slu_chains *c, const uint32_t *len, size_t n,
                  uint64_t capacity, struct slu_err *err)
{
    struct loosening x = {.c = c, .len = len, .n = n, .capacity = capacity};
    uint64_t tok = 0, marked = 1;
    for (size_t k = 0; k < c->n; k++)
        tok += c->len[k];
    uint64_t bound = (tok + capacity - 1) / capacity, enough = bound / SLU_RELATED_LOSS;
    x.loose = calloc(c->n + 1, 1);
    x.count = malloc((capacity + 1) * sizeof *x.count);
    x.bin = malloc((c->n + 1) * sizeof *x.bin);
    int rc = x.loose && x.count && x.bin ? SLU_OK : slu_fail_nomem(err, c->n * 5);
    for (int round = 0; round < LOOSE_ROUNDS && marked && !rc; round++) {
        rc = fill(&x, err);
        if (rc || x.n_bin - bound <= enough)
            break;
        rc = mark(&x, LOOSE_BINS * (x.n_bin - bound - enough), &marked, err);
        c->loosened += marked;
    }
    if (!rc && c->loosened)
        rc = take_apart(&x, err);
    free(x.loose);
    free(x.count);
    free(x.bin);
    free(x.room);
    return rc;
}

int slu_related_chains(struct slu_chains *out, const uint32_t *key, const uint32_t *len,
                       size_t n, uint64_t capacity, uint64_t budget_byte,
                       struct slu_err *err)
{
    struct shared s = {0};
    struct chaining c = {.s = &s, .len = len};
    memset(out, 0, sizeof *out);
    int rc = find_shared(&s, key, n, budget_byte, err);
    if (rc)
        goto out;
    c.score = calloc(n + 1, sizeof *c.score);
    c.placed = calloc(n + 1, sizeof *c.placed);
    out->item = malloc((n + 1) * sizeof *out->item);
    out->first = malloc((n + 1) * sizeof *out->first);
    out->len = malloc((n + 1) * sizeof *out->len);
    if (!c.score || !c.placed || !out->item || !out->first || !out->len)
        rc = slu_fail_nomem(err, n * 17);
    else
        rc = make_chains(&c, out, n, capacity, err);
    out->capped = s.capped;
    for (size_t k = 0; k < out->n && !rc; k++) {
        uint32_t items = out->first[k + 1] - out->first[k];
        out->related += items > 1 ? items : 0;
    }
out:
    free(c.score);
    free(c.placed);
    free(c.seen);
    free(c.heap);
    shared_release(&s);
    return rc || !n ? rc : loosen(out, len, n, capacity, err);
}

void slu_chains_release(struct slu_chains *c)
{
    free(c->item);
    free(c->first);
    free(c->len);
    memset(c, 0, sizeof *c);
}
