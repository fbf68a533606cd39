/* packing.c - random packings, for place and copy. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sort.h"
#include "tests/kernels/kernels.h"

struct group {
    uint64_t first_bin, count, taken, slot, used, capacity;
    uint32_t step;
};

static int by_first_bin(const void *a, const void *b)
{
    const struct slu_place_interval *x = a, *y = b;
    return x->first_bin < y->first_bin ? -1 : x->first_bin > y->first_bin;
}

/* Lengths of the items in sorted order, steps and intervals. */
static void draw_plan(struct packing *p, size_t n_step, uint32_t longest,
                      uint64_t most_bins, uint32_t *sorted_len)
{
    struct group *g = need(n_step * sizeof *g);
    uint64_t bins = 0, pos = 0;
    uint32_t len = longest;
    p->step = need(n_step * sizeof *p->step);
    p->interval = need(n_step * sizeof *p->interval);
    p->n_step = n_step;
    for (size_t i = 0; i < n_step; i++) {
        struct group *parent = i && rnd(4) ? &g[rnd(i)] : NULL;
        if (i && rnd(5) == 0) /* a deep chain */
            parent = &g[i - 1];
        if (parent && parent->taken == parent->count)
            parent = NULL;
        uint64_t repeat = 1 + rnd(1 + rnd(5));
        if (len > 1 && rnd(3))
            len -= (uint32_t)rnd(1 + len / 8);
        g[i] =
            (struct group){.step = (uint32_t)i, .used = repeat * len, .slot = repeat};
        p->step[i] =
            (struct slu_place_step){.first = pos, .repeat = repeat, .len_tok = len};
        slu_place_link(p->step, (uint32_t)i, parent ? parent->step : SLU_PLACE_OPENED);
        if (parent) {
            uint64_t left = parent->count - parent->taken;
            g[i].count = rnd(2) ? left : 1 + rnd(left);
            g[i].first_bin = parent->first_bin + parent->taken;
            g[i].slot += parent->slot;
            g[i].used += parent->used;
            p->step[i].slot = parent->slot;
            p->step[i].used = parent->used;
            parent->taken += g[i].count;
        } else {
            g[i].count = 1 + rnd(most_bins);
            g[i].first_bin = bins;
            bins += g[i].count;
        }
        p->step[i].first_bin = g[i].first_bin;
        for (uint64_t k = 0; k < g[i].count * repeat; k++)
            sorted_len[pos++] = len;
    }
    p->n = pos;
    p->n_interval = 0;
    for (size_t i = 0; i < n_step; i++)
        if (g[i].taken < g[i].count)
            p->interval[p->n_interval++] =
                (struct slu_place_interval){.first_bin = g[i].first_bin + g[i].taken,
                                            .items = g[i].slot,
                                            .capacity = g[i].used + rnd(2) * rnd(40),
                                            .last = (uint32_t)i};
    qsort(p->interval, p->n_interval, sizeof *p->interval, by_first_bin);
    p->n_tok = 0;
    uint64_t item = 0;
    for (size_t i = 0; i < p->n_interval; i++) {
        struct slu_place_interval *v = &p->interval[i];
        uint64_t count = (i + 1 < p->n_interval ? v[1].first_bin : bins) - v->first_bin;
        v->first_item = item;
        v->first_tok = p->n_tok;
        item += count * v->items;
        p->n_tok += count * v->capacity;
    }
    free(g);
}

void draw_packing(struct packing *p, size_t n_step, uint32_t longest,
                  uint64_t most_bins)
{
    size_t most = n_step * most_bins * 5 + 1;
    uint32_t *sorted_len = need(most * sizeof *sorted_len);
    memset(p, 0, sizeof *p);
    draw_plan(p, n_step, longest, most_bins, sorted_len);
    p->len = need(p->n * sizeof *p->len);
    p->src = need(p->n * sizeof *p->src);
    memcpy(p->len, sorted_len, p->n * sizeof *p->len);
    for (size_t i = p->n; i > 1; i--) { /* items arrive in any order */
        size_t k = rnd(i);
        uint32_t t = p->len[k];
        p->len[k] = p->len[i - 1];
        p->len[i - 1] = t;
    }
    for (size_t i = 0; i < p->n; i++) {
        p->src[i] = p->n_pool += rnd(4) == 0 ? rnd(9) : 0;
        p->n_pool += p->len[i];
        p->longest = p->len[i] > p->longest ? p->len[i] : p->longest;
    }
    p->order = need(p->n * sizeof *p->order);
    p->run_item = need(p->n * sizeof *p->run_item);
    p->run_dst = need(p->n * sizeof *p->run_dst);
    void *work = need(slu_sort_lengths_ref_work(p->n, p->longest));
    slu_sort_lengths_ref(p->len, p->n, p->longest, p->order, work);
    free(work);
    free(sorted_len);
}

void free_packing(struct packing *p)
{
    free(p->len);
    free(p->src);
    free(p->step);
    free(p->interval);
    free(p->order);
    free(p->run_item);
    free(p->run_dst);
}

struct slu_place place_of(const struct packing *p)
{
    return (struct slu_place){p->order,  p->n,        p->step,
                              p->n_step, p->interval, p->n_interval};
}
