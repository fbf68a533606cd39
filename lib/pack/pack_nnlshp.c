/* pack_nnlshp.c - non-negative least squares histogram packing, arXiv 2107.02027.
 *
 * As published: least squares over all full bins of up to three lengths (pack_nnls.h),
 * with weight 0.09 for lengths up to 8 and 1 for others, rounded to whole bins. Unlike
 * published: bins that lack items after rounding are not padded, and each item left
 * does not open a bin; these items go to best-fit decreasing, with the same limit of
 * items per bin.
 */
#include "lib/pack/packer_private.h"

#include <math.h>
#include <stdlib.h>

#include "lib/pack/pack_nnls.h"

#define DEPTH        3
#define SHORT        8
#define SHORT_WEIGHT 0.09

/* Equal bins: their lengths, descending; 0: none. */
struct pile {
    uint64_t count, len[DEPTH];
};

static int by_lengths(const void *a, const void *b)
{
    const struct pile *x = a, *y = b;
    for (int i = 0; i < DEPTH; i++)
        if (x->len[i] != y->len[i])
            return x->len[i] > y->len[i] ? -1 : 1;
    return 0;
}

/* Takes the items of as many bins of the strategy as there are items for; returns the
 * number of bins. */
static uint64_t take_items(uint64_t *left, const struct slu_pack_strategy *s)
{
    double rounded = rint(s->bins);
    uint64_t bins = rounded < 1 ? 0 : (uint64_t)rounded;
    for (int i = 0; i < DEPTH; i++) {
        uint64_t l = s->len[i], each = 0;
        for (int k = 0; k < DEPTH; k++)
            each += s->len[k] == l;
        if (l)
            bins = slu_pack_min(bins, left[l] / each);
    }
    for (int i = 0; i < DEPTH; i++)
        left[s->len[i]] -= bins;
    left[0] = 0;
    return bins;
}

/* Appends the bins of a plan with at most DEPTH items per bin. */
static int add_piles(const struct slu_pack_plan *plan, struct pile *pile, size_t *n,
                     struct slu_err *err)
{
    struct slu_pack_interval *v;
    size_t n_v;
    int rc = slu_pack_intervals(plan, &v, &n_v, err);
    for (size_t i = 0; i < n_v; i++) {
        struct pile *p = &pile[(*n)++];
        uint64_t at = v[i].items;
        *p = (struct pile){.count = v[i].count};
        for (uint32_t g = v[i].group; g != SLU_PACK_OPENED; g = plan->group[g].parent)
            for (uint64_t r = 0; r < plan->group[g].repeat; r++)
                p->len[--at] = plan->group[g].len_tok;
    }
    free(v);
    return rc;
}

/* Packs the items left by best fit, and appends the bins. */
static int pack_rest(const uint64_t *left, uint64_t capacity, uint64_t depth,
                     struct pile **pile, size_t *n, struct slu_err *err)
{
    const struct slu_pack_cfg cfg = {.capacity = capacity, .max_items = depth};
    struct slu_length_count *row = malloc((capacity + 1) * sizeof *row);
    struct slu_pack_plan *plan = NULL;
    size_t k = 0;
    int rc = row ? SLU_OK : slu_fail_nomem(err, (capacity + 1) * sizeof *row);
    for (uint64_t l = 1; l <= capacity && !rc; l++)
        if (left[l])
            row[k++] = (struct slu_length_count){l, left[l]};
    if (!rc)
        rc = slu_pack_by_bfd(&plan, row, k, &cfg, err);
    if (!rc) {
        struct pile *p = realloc(*pile, (*n + plan->n_group + 1) * sizeof *p);
        if (p) {
            *pile = p;
            rc = add_piles(plan, p, n, err);
        } else {
            rc = slu_fail_nomem(err, (*n + plan->n_group + 1) * sizeof *p);
        }
    }
    slu_pack_plan_free(plan);
    free(row);
    return rc;
}

/* Makes a plan of these bins, in their order; each is opened and filled separately. */
static int plan_piles(struct slu_pack_plan *plan, const struct slu_length_count *hist,
                      size_t n_hist, const struct slu_pack_cfg *cfg,
                      const struct pile *pile, size_t n, struct slu_err *err)
{
    int rc = SLU_OK;
    /* by pile: its last group so far */
    uint32_t *last = malloc((n + 1) * sizeof *last);
    if (!last)
        return slu_fail_nomem(err, n * sizeof *last);
    for (size_t i = 0; i < n; i++)
        last[i] = SLU_PACK_OPENED;
    for (size_t h = n_hist; h-- > 0 && !rc;) {
        uint64_t len = hist[h].len_tok, rank = 0;
        slu_pack_begin_length(plan, len);
        for (size_t i = 0; i < n && pile[i].len[0] >= len && !rc; i++) {
            uint64_t repeat = 0;
            for (int k = 0; k < DEPTH; k++)
                repeat += pile[i].len[k] == len;
            if (!repeat)
                continue;
            rc = slu_pack_take(plan, cfg, last[i], plan->capacity, len, repeat,
                               pile[i].count, &rank, err);
            last[i] = (uint32_t)plan->n_group - 1;
        }
    }
    free(last);
    return rc;
}

/* Makes the bins of rounded least squares that have items; left: items without bin. */
static int solve(uint64_t *left, uint64_t capacity, unsigned depth, struct pile **pile,
                 size_t *n, struct slu_err *err)
{
    size_t size = capacity + 1, k = 0;
    double *wanted = malloc(size * sizeof *wanted);
    double *weight = malloc(size * sizeof *weight);
    struct slu_pack_strategy *s = NULL;
    int rc = wanted && weight ? SLU_OK : slu_fail_nomem(err, size * sizeof *wanted);
    for (size_t l = 0; l < size && !rc; l++) {
        wanted[l] = (double)left[l];
        weight[l] = l <= SHORT ? SHORT_WEIGHT : 1;
    }
    if (!rc)
        rc = slu_pack_nnls(&s, &k, (uint32_t)capacity, depth, wanted, weight, err);
    if (!rc) {
        *pile = malloc((k + 1) * sizeof **pile);
        rc = *pile ? SLU_OK : slu_fail_nomem(err, k * sizeof **pile);
    }
    for (size_t i = 0; i < k && !rc; i++) {
        uint64_t bins = take_items(left, &s[i]);
        if (bins)
            (*pile)[(*n)++] =
                (struct pile){bins, {s[i].len[2], s[i].len[1], s[i].len[0]}};
    }
    free(s);
    free(wanted);
    free(weight);
    return rc;
}

int slu_pack_nnlshp_check(uint64_t capacity, struct slu_err *err)
{
    if (capacity <= SLU_NNLSHP_CAPACITY)
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE,
                    "method nnlshp takes bins of at most %d tokens: these can be "
                    "filled in %.1e ways",
                    SLU_NNLSHP_CAPACITY, (double)capacity * (double)capacity / 12);
}

int slu_pack_by_nnlshp(struct slu_pack_plan **out, const struct slu_length_count *hist,
                       size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    struct slu_pack_plan *plan = NULL;
    struct pile *pile = NULL;
    size_t n_pile = 0;
    uint64_t depth = slu_pack_min(slu_pack_most(cfg), DEPTH), *left = NULL;
    *out = NULL;
    int rc = slu_pack_start(&plan, hist, n, cfg, err);
    if (rc)
        goto out;
    left = calloc(cfg->capacity + 1, sizeof *left);
    if (!left) {
        rc = slu_fail_nomem(err, (cfg->capacity + 1) * sizeof *left);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        left[hist[i].len_tok] = hist[i].count;
    rc = solve(left, cfg->capacity, (unsigned)depth, &pile, &n_pile, err);
    if (!rc)
        rc = pack_rest(left, cfg->capacity, depth, &pile, &n_pile, err);
    if (rc)
        goto out;
    qsort(pile, n_pile, sizeof *pile, by_lengths);
    rc = plan_piles(plan, hist, n, cfg, pile, n_pile, err);
    if (!rc) {
        *out = plan;
        plan = NULL;
    }
out:
    slu_pack_plan_free(plan);
    free(pile);
    free(left);
    return rc;
}
