/* pack_hist.c - packings that choose a bin only by its room: best-fit decreasing, and
 * the longest- and shortest-pack-first histogram packings of arXiv 2107.02027.
 *
 * Groups that may take more items are found by their room: a set of rooms as bits in
 * two levels, and for each room its groups, in a heap or a stack.
 */
#include "lib/pack/packer_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE SLU_PACK_OPENED

struct solver {
    struct slu_pack_plan *plan;
    const struct slu_pack_cfg *cfg;
    uint64_t *word,
        /* bit r of word: some group has room r; bit w of summary: word[w] is not 0 */
        *summary;
    size_t n_word, n_summary;
    uint32_t *top; /* by room: the first group, or NONE */
    uint64_t max_items;
    bool lifo; /* first is the group pushed last; false: the one opened first */
};

/* ---- open groups by room ---- */

static uint64_t first_free(const struct slu_pack_group *g)
{
    return g->first_bin + g->taken;
}

/* Merges leftist heaps (Crane 1972): right spines have at most log2(n + 1) links. */
static uint32_t merge(struct slu_pack_group *g, uint32_t a, uint32_t b)
{
    if (a == NONE)
        return b;
    if (b == NONE)
        return a;
    if (first_free(&g[b]) < first_free(&g[a])) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    g[a].right = merge(g, g[a].right, b);
    uint32_t l = g[a].left, r = g[a].right;
    if (l == NONE || g[l].rank < g[r].rank) {
        g[a].left = r;
        g[a].right = l;
    }
    g[a].rank = g[a].right == NONE ? 1 : g[g[a].right].rank + 1;
    return a;
}

static void push(struct solver *s, uint32_t i)
{
    struct slu_pack_group *g = &s->plan->group[i];
    uint64_t room = g->room;
    g->left = g->right = NONE;
    g->rank = 1;
    if (s->lifo) {
        g->left = s->top[room];
        s->top[room] = i;
    } else {
        s->top[room] = merge(s->plan->group, s->top[room], i);
    }
    s->word[room / 64] |= UINT64_C(1) << room % 64;
    s->summary[room / 4096] |= UINT64_C(1) << room / 64 % 64;
}

static void pop(struct solver *s, uint64_t room)
{
    const struct slu_pack_group *g = &s->plan->group[s->top[room]];
    s->top[room] = s->lifo ? g->left : merge(s->plan->group, g->left, g->right);
    if (s->top[room] != NONE)
        return;
    s->word[room / 64] &= ~(UINT64_C(1) << room % 64);
    if (!s->word[room / 64])
        s->summary[room / 4096] &= ~(UINT64_C(1) << room / 64 % 64);
}

/* Returns the smallest room >= len of a group, or 0. */
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

static unsigned top_bit(uint64_t bits)
{
    return 63 - (unsigned)__builtin_clzll(bits);
}

/* Returns the largest room < end of a group, or 0 (no group has room 0). */
static uint64_t largest_room(const struct solver *s, uint64_t end)
{
    size_t w = end / 64;
    uint64_t bits = w < s->n_word ? s->word[w] & ~(~UINT64_C(0) << end % 64) : 0;
    if (bits)
        return w * 64 + top_bit(bits);
    size_t m = w / 64;
    bits = m < s->n_summary ? s->summary[m] & ~(~UINT64_C(0) << w % 64) : 0;
    while (!bits) {
        if (m-- == 0)
            return 0;
        bits = s->summary[m];
    }
    w = m * 64 + top_bit(bits);
    return w * 64 + top_bit(s->word[w]);
}

static void solver_release(struct solver *s)
{
    free(s->word);
    free(s->summary);
    free(s->top);
}

static int solver_init(struct solver *s, struct slu_pack_plan *plan,
                       const struct slu_pack_cfg *cfg, bool lifo, struct slu_err *err)
{
    memset(s, 0, sizeof *s);
    s->plan = plan;
    s->cfg = cfg;
    s->lifo = lifo;
    s->max_items = slu_pack_most(cfg);
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

/* Adds a group: `count` bins of the first group with this room (0: new bins) take
 * `repeat` items. */
static int take(struct solver *s, uint64_t room, uint64_t len, uint64_t repeat,
                uint64_t count, uint64_t *n, uint64_t *rank, struct slu_err *err)
{
    struct slu_pack_plan *plan = s->plan;
    uint32_t parent = room ? s->top[room] : NONE;
    int rc = slu_pack_take(plan, s->cfg, parent, plan->capacity, len, repeat, count,
                           rank, err);
    if (rc)
        return rc;
    uint32_t i = (uint32_t)plan->n_group - 1;
    const struct slu_pack_group *g = &plan->group[i];
    if (room && !slu_pack_free_bins(&plan->group[parent]))
        pop(s, room);
    if (g->room && g->slot + g->repeat < s->max_items)
        push(s, i);
    *n -= count * repeat;
    return SLU_OK;
}

/* Gives the number of bins of the first group with this room, and the items in each. */
static void look(const struct solver *s, uint64_t room, uint64_t *bins, uint64_t *held)
{
    const struct slu_pack_group *g = &s->plan->group[s->top[room]];
    *bins = slu_pack_free_bins(g);
    *held = g->slot + g->repeat;
}

typedef int step_fn(struct solver *s, uint64_t len, uint64_t *n, uint64_t *rank,
                    struct slu_err *err);

/* Does one step of best fit: places some of the n items of length len, of which `rank`
 * are already placed; updates *n and *rank. */
static int best_fit(struct solver *s, uint64_t len, uint64_t *n, uint64_t *rank,
                    struct slu_err *err)
{
    uint64_t room = smallest_room(s, len), bins = UINT64_MAX, held = 0;
    if (room)
        look(s, room, &bins, &held);
    uint64_t from = room ? room : s->plan->capacity;
    uint64_t fit =
        from < 2 * len ? 1 : from / len; /* saves a division, which costs much here */
    uint64_t repeat = slu_pack_min(slu_pack_min(fit, s->max_items - held), *n);
    uint64_t most = repeat == 1 ? *n : *n / repeat;
    return take(s, room, len, repeat, slu_pack_min(bins, most), n, rank, err);
}

/* Does one step of shortest pack first. The algorithm adds one item to each bin of the
 * group with most room and looks again. While it would find the same group again, that
 * group gets several items at once. */
static int worst_fit(struct solver *s, uint64_t len, uint64_t *n, uint64_t *rank,
                     struct slu_err *err)
{
    uint64_t room = largest_room(s, s->plan->capacity + 1), bins, held;
    if (room < len) /* each item opens a bin, even if two would fit, as published */
        return take(s, 0, len, 1, *n, n, rank, err);
    look(s, room, &bins, &held);
    if (*n < bins)
        return take(s, room, len, 1, *n, n, rank, err);
    uint64_t repeat = slu_pack_min(s->max_items - held, *n / bins);
    if (s->plan->group[s->top[room]].left != NONE) {
        repeat = 1;
    } else {
        uint64_t next = largest_room(s, room);
        next = next > len ? next : len;
        repeat = slu_pack_min(repeat, 1 + (room - next) / len);
    }
    return take(s, room, len, repeat, bins, n, rank, err);
}

static int solve(struct slu_pack_plan **out, const struct slu_length_count *hist,
                 size_t n, const struct slu_pack_cfg *cfg, bool lifo, step_fn *step,
                 struct slu_err *err)
{
    struct slu_pack_plan *plan;
    struct solver s = {0};
    *out = NULL;
    int rc = slu_pack_start(&plan, hist, n, cfg, err);
    if (rc)
        return rc;
    rc = solver_init(&s, plan, cfg, lifo, err);
    for (size_t i = n; i-- > 0 && !rc;) {
        uint64_t left = hist[i].count, rank = 0;
        slu_pack_begin_length(plan, hist[i].len_tok);
        while (left && !rc)
            rc = step(&s, hist[i].len_tok, &left, &rank, err);
    }
    solver_release(&s);
    if (rc)
        slu_pack_plan_free(plan);
    else
        *out = plan;
    return rc;
}

int slu_pack_by_bfd(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                    size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    return solve(plan, hist, n, cfg, false, best_fit, err);
}

int slu_pack_by_lpfhp(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                      size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    return solve(plan, hist, n, cfg, true, best_fit, err);
}

int slu_pack_by_spfhp(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                      size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    return solve(plan, hist, n, cfg, true, worst_fit, err);
}
