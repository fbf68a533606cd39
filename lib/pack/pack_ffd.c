/* pack_ffd.c - first-fit decreasing on the length histogram.
 *
 * Each item goes into the bin that was opened first among those with room. Neighbouring
 * bins with the same history form a stretch. The stretches are the nodes of a treap
 * (Seidel & Aragon 1996) in the order of their bins. Each node has the most room in its
 * subtree, so the first stretch with enough room is found on one way down. A stretch
 * that takes all it can of a length keeps its node and has less than half its room
 * afterwards; a stretch is split only where the items end. So there are O(lengths)
 * nodes and O(lengths x log capacity) groups.
 */
#include "lib/pack/packer_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"

#define NIL 0 /* node 0 is the empty tree */

struct node {
    uint32_t left, right;
    uint32_t priority;
    uint32_t group; /* the last group of its bins */
    uint32_t room;  /* per bin; 0 if no more items are allowed */
    uint32_t most;  /* most room in the subtree */
};

struct solver {
    struct slu_pack_plan *plan;
    const struct slu_pack_cfg *cfg;
    struct node *node;
    size_t n_node, cap_node;
    uint32_t root;
    uint64_t max_items;
};

/* ---- the treap ---- */

static void pull(struct solver *s, uint32_t v)
{
    struct node *x = &s->node[v];
    uint32_t l = s->node[x->left].most, r = s->node[x->right].most;
    x->most = l > r ? l : r;
    x->most = x->room > x->most ? x->room : x->most;
}

/* Returns the first bin of a stretch. */
static uint64_t first_bin(const struct solver *s, uint32_t group)
{
    const struct slu_pack_group *g = &s->plan->group[group];
    return g->first_bin + g->taken;
}

/* Inserts node v into the subtree of t; returns the new root. */
static uint32_t insert(struct solver *s, uint32_t t, uint32_t v)
{
    if (t == NIL)
        return v;
    struct node *x = &s->node[t];
    bool before = first_bin(s, s->node[v].group) < first_bin(s, x->group);
    uint32_t *side = before ? &x->left : &x->right;
    uint32_t c = *side = insert(s, *side, v);
    if (s->node[c].priority > x->priority) { /* rotate c up */
        uint32_t *other = before ? &s->node[c].right : &s->node[c].left;
        *side = *other;
        *other = t;
        pull(s, t);
        t = c;
    }
    pull(s, t);
    return t;
}

/* Returns the tokens that a bin of the group may still take. */
static uint32_t room_of(const struct solver *s, uint32_t group)
{
    const struct slu_pack_group *g = &s->plan->group[group];
    return g->slot + g->repeat < s->max_items ? (uint32_t)g->room : 0;
}

/* Adds a stretch of the last group's bins; it is not in the tree yet. */
static int add_stretch(struct solver *s, struct slu_err *err)
{
    uint32_t v = (uint32_t)s->n_node, group = (uint32_t)s->plan->n_group - 1;
    int rc = slu_grow(&s->node, &s->cap_node, s->n_node + 1, sizeof *s->node, err);
    if (rc)
        return rc;
    uint32_t room = room_of(s, group);
    s->node[v] = (struct node){.priority = (uint32_t)slu_draw(0, v, 0, 0, 0),
                               .group = group,
                               .room = room,
                               .most = room};
    s->n_node++;
    return SLU_OK;
}

/* ---- solving ---- */

static int take(struct solver *s, uint32_t parent, uint64_t len, uint64_t repeat,
                uint64_t count, uint64_t *n, uint64_t *rank, struct slu_err *err)
{
    *n -= repeat * count;
    return slu_pack_take(s->plan, s->cfg, parent, s->plan->capacity, len, repeat, count,
                         rank, err);
}

/* Fills bins of stretch v, or new ones, with the n items: as many per bin as fit; a
 * last bin takes the rest. Bins that leave v, and new ones, become stretches that are
 * not in the tree yet. */
static int fill(struct solver *s, uint32_t v, uint64_t len, uint64_t *n, uint64_t *rank,
                struct slu_err *err)
{
    uint32_t parent = v == NIL ? SLU_PACK_OPENED : s->node[v].group;
    uint64_t room = s->plan->capacity, bins = UINT64_MAX, held = 0;
    if (v != NIL) {
        const struct slu_pack_group *g = &s->plan->group[parent];
        room = g->room;
        bins = slu_pack_free_bins(g);
        held = g->slot + g->repeat;
    }
    uint64_t repeat = slu_pack_min(room / len, s->max_items - held);
    int rc = SLU_OK;
    while (*n && bins && !rc) {
        uint64_t each = slu_pack_min(repeat, *n);
        uint64_t count = slu_pack_min(bins, *n / each);
        rc = take(s, parent, len, each, count, n, rank, err);
        bins -= count;
        if (rc)
            break;
        /* v has no bins left: its node stands for the new group */
        if (v != NIL && !bins) {
            s->node[v].group = (uint32_t)s->plan->n_group - 1;
            s->node[v].room = room_of(s, s->node[v].group);
        } else {
            rc = add_stretch(s, err);
        }
    }
    return rc;
}

/* Fills all stretches of the subtree with room, in the order of their bins. */
static int walk(struct solver *s, uint32_t v, uint64_t len, uint64_t *n, uint64_t *rank,
                struct slu_err *err)
{
    if (s->node[v].most < len || !*n)
        return SLU_OK;
    int rc = walk(s, s->node[v].left, len, n, rank, err);
    if (!rc && *n && s->node[v].room >= len)
        rc = fill(s, v, len, n, rank, err);
    if (!rc)
        rc = walk(s, s->node[v].right, len, n, rank, err);
    pull(s, v);
    return rc;
}

int slu_pack_by_ffd(struct slu_pack_plan **out, const struct slu_length_count *hist,
                    size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    struct solver s = {.cfg = cfg, .max_items = slu_pack_most(cfg), .n_node = 1};
    *out = NULL;
    int rc = slu_pack_start(&s.plan, hist, n, cfg, err);
    if (!rc)
        rc = slu_grow(&s.node, &s.cap_node, 1, sizeof *s.node, err);
    if (!rc)
        memset(&s.node[NIL], 0, sizeof *s.node);
    for (size_t i = n; i-- > 0 && !rc;) {
        uint64_t len = hist[i].len_tok, left = hist[i].count, rank = 0;
        size_t fresh = s.n_node;
        slu_pack_begin_length(s.plan, len);
        rc = walk(&s, s.root, len, &left, &rank, err);
        if (!rc && left)
            rc = fill(&s, NIL, len, &left, &rank, err);
        for (; fresh < s.n_node && !rc; fresh++)
            s.root = insert(&s, s.root, (uint32_t)fresh);
    }
    free(s.node);
    if (rc)
        slu_pack_plan_free(s.plan);
    else
        *out = s.plan;
    return rc;
}
