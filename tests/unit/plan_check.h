/* plan_check.h - asserts the promises of packer.h for a plan. */
#ifndef PLAN_CHECK_H
#define PLAN_CHECK_H

#include <stdlib.h>

#include "lib/pack/packer.h"

/* The groups; returns nothing: a broken promise fails the test. */
static void check_groups(const struct slu_pack_plan *plan)
{
    uint64_t opened = 0, items = 0, tok = 0, rank = 0;
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        uint64_t from = g->capacity, held = 0;
        assert_true(g->count && g->repeat && g->len_tok && g->capacity);
        assert_true(g->capacity <= plan->capacity && g->taken <= g->count);
        rank = i && g->len_tok == g[-1].len_tok ? rank : 0;
        assert_true(i == 0 || g->len_tok <= g[-1].len_tok);
        assert_int_equal(g->first_rank, rank);
        rank += g->count * g->repeat;
        if (g->parent == SLU_PACK_OPENED) {
            assert_int_equal(g->first_bin, opened);
            opened += g->count;
        } else {
            const struct slu_pack_group *p = &plan->group[g->parent];
            assert_true(g->parent < i && g->first_bin >= p->first_bin);
            assert_true(g->first_bin + g->count <= p->first_bin + p->taken);
            assert_int_equal(g->capacity, p->capacity);
            from = p->room;
            held = p->slot + p->repeat;
        }
        assert_int_equal(g->slot, held);
        assert_true(g->repeat <= from / g->len_tok);
        assert_int_equal(g->room, from - g->repeat * g->len_tok);
        items += g->count * g->repeat;
        tok += g->count * g->repeat * g->len_tok;
    }
    assert_int_equal(opened, plan->n_bin);
    assert_int_equal(items, plan->n_item);
    assert_int_equal(tok, plan->n_tok);
}

/* The intervals beside the groups. */
static void check_intervals(const struct slu_pack_plan *plan)
{
    struct slu_pack_interval *v;
    size_t n;
    assert_int_equal(slu_pack_intervals(plan, &v, &n, NULL), SLU_OK);
    uint64_t bin = 0, items = 0, tok = 0, ids = 0;
    for (size_t i = 0; i < n; i++) {
        const struct slu_pack_group *g = &plan->group[v[i].group];
        assert_int_equal(v[i].first_bin, bin);
        assert_int_equal(v[i].first_bin, g->first_bin + g->taken);
        assert_int_equal(v[i].count, g->count - g->taken);
        assert_int_equal(v[i].first_item, items);
        assert_int_equal(v[i].first_tok, ids);
        assert_int_equal(v[i].items, g->slot + g->repeat);
        assert_int_equal(v[i].capacity, g->capacity);
        assert_int_equal(v[i].room, g->room);
        bin += v[i].count;
        items += v[i].count * v[i].items;
        ids += v[i].count * v[i].capacity;
        tok += v[i].count * (v[i].capacity - v[i].room);
    }
    assert_int_equal(bin, plan->n_bin);
    assert_int_equal(items, plan->n_item);
    assert_int_equal(tok, plan->n_tok);
    assert_int_equal(ids, slu_pack_plan_sum(plan).ids);
    free(v);
}

/* Each row of the histogram is there, once; no bin has more than max_items (0: any). */
static void check_plan(const struct slu_pack_plan *plan,
                       const struct slu_length_count *hist, size_t n,
                       uint64_t max_items)
{
    assert_int_equal(plan->n_length, n);
    for (size_t i = 0; i < n; i++) {
        size_t end = i + 1 < n ? plan->length[i + 1].first_group : plan->n_group;
        const struct slu_length_count *row = &hist[n - 1 - i];
        const struct slu_pack_group *last = &plan->group[end - 1];
        assert_int_equal(plan->length[i].len_tok, row->len_tok);
        assert_true(end > plan->length[i].first_group);
        assert_int_equal(plan->group[plan->length[i].first_group].len_tok,
                         row->len_tok);
        assert_int_equal(last->len_tok, row->len_tok);
        assert_int_equal(last->first_rank + last->count * last->repeat, row->count);
    }
    check_groups(plan);
    for (size_t i = 0; i < plan->n_group && max_items; i++)
        assert_true(plan->group[i].slot + plan->group[i].repeat <= max_items);
    check_intervals(plan);
}

#endif
