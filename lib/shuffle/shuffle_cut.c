/* shuffle_cut.c - the stages count and cut of an order that needs all sequences first:
 * by score, or up to a number of tokens.
 *
 * Count writes a row for each sequence, sorted by its place in the order. Cut merges
 * the rows of all parts, and finds where the tokens end, where bands end, and for
 * orders by key QUANTILES keys with about as many tokens between them, which divide the
 * order into ranges. Rows with a key at which something ends share what is left in the
 * order of the parts, so each part gets what the parts before it leave. */
#include <stdlib.h>
#include <string.h>

#include "lib/shuffle/permute_private.h"
#include "lib/shuffle/shuffle_flow_private.h"

enum { HI, LO, ORDINAL, TOKENS }; /* words of KEY */
/* ORDINAL has the part above the ordinal in the part. */
enum { PART_SHIFT = 48 };
enum { QUANTILES = 4096, END_WORDS = 4 }; /* END_WORDS: key, left, all */

static bool has_bands(const struct slu_shuffle_flow *q)
{
    return q->cfg.order == SLU_ORDER_BANDS;
}

/* Number of ends that are exact: of bands, or of the tokens. */
static unsigned n_end(const struct slu_shuffle_flow *q)
{
    return has_bands(q) ? q->cfg.n_band : 1;
}

static size_t n_quantile(const struct slu_shuffle_flow *q)
{
    return has_bands(q) ? 0 : QUANTILES - 1;
}

static size_t state_words(const struct slu_shuffle_flow *q)
{
    return (size_t)END_WORDS * n_end(q) + 2 * n_quantile(q);
}

/* ---- count ---- */

struct count {
    struct slu_table *key;
    uint64_t part, ordinal;
    struct slu_count all;
};

static int put_key(void *ctx, unsigned source, struct slu_u128 key, struct slu_count n,
                   struct slu_err *err)
{
    struct count *c = ctx;
    const uint64_t w[KEY_WORDS] = {[HI] = key.hi,
                                   [LO] = key.lo,
                                   [ORDINAL] = c->part << PART_SHIFT | c->ordinal++,
                                   [TOKENS] = n.tokens};

    (void)source;
    slu_count_add(&c->all, n);
    return slu_table_put(c->key, w, err);
}

int slu_shuffle_count_keys(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    struct count c = {.key = slu_flow_out(f, KEY), .part = slu_flow_part(f)};
    struct slu_permute *p = NULL;
    uint64_t w[COUNT_WORDS];

    q->cfg.flow = f;
    int rc = slu_permute_new(&p, &q->cfg, err);
    if (!rc) {
        p->row = put_key;
        p->row_ctx = &c;
        rc = slu_permute_read(p, q->reader, 0, NULL, q->progress, q->ctx, err);
    }
    (void)slu_shuffle_put_count(w, c.all);
    if (!rc)
        rc = slu_table_put(slu_flow_out(f, SOURCE), w, err);
    slu_permute_free(p);
    return rc;
}

/* ---- cut ---- */

/* The rows of the current key, by parts: the tokens before a part's first row. */
struct before {
    uint64_t part, tok;
};

struct cut {
    struct slu_shuffle_flow *q;
    uint64_t tok;        /* before the current row */
    struct slu_u128 key; /* of the current row */
    struct before *part;
    size_t n_part, cap_part;
    uint64_t *want;   /* of each end, then of each quantile: its tokens */
    uint64_t *ends;   /* of each part */
    uint64_t *common; /* quantiles, for all parts */
    unsigned end;
    size_t quantile;
};

static size_t end_words(const struct slu_shuffle_flow *q)
{
    return (size_t)END_WORDS * n_end(q);
}

static uint64_t *end_of(const struct cut *c, uint64_t part, unsigned end)
{
    return c->ends + part * end_words(c->q) + (size_t)END_WORDS * end;
}

/* Reads the tokens of all parts. */
static int add_up(struct slu_shuffle_flow *q, uint64_t *all, struct slu_err *err)
{
    struct slu_flow *f = q->flow;
    struct slu_table *t;
    struct slu_row row;
    int rc = SLU_OK;

    *all = 0;
    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++) {
        rc = slu_flow_of_part(f, SOURCE, i, &t, err);
        if (!rc)
            rc = slu_flow_next(f, SOURCE, i, t, &row, err);
        if (!rc)
            *all += slu_shuffle_get_count(row.p).tokens;
        if (!rc)
            rc = slu_flow_end(f, SOURCE, i, t, err);
    }
    return rc;
}

/* Finds how many tokens are before each end. */
static void want(struct cut *c, uint64_t all)
{
    const uint64_t most = c->q->cfg.max_tokens, tok = most < all ? most : all;
    const unsigned n = n_end(c->q);
    uint64_t *w = c->want;

    for (unsigned i = 0; i < n; i++)
        *w++ = (uint64_t)((unsigned __int128)tok * (i + 1) / n);
    for (uint64_t i = 1; i <= n_quantile(c->q); i++)
        *w++ = (uint64_t)((unsigned __int128)tok * i / QUANTILES);
}

/* The row is the first one beyond the end. */
static void put_end(const struct cut *c, uint64_t part)
{
    const uint64_t tok = c->want[c->end];
    size_t k = 0;

    for (uint64_t i = 0; i < slu_flow_parts(c->q->flow); i++) {
        uint64_t *w = end_of(c, i, c->end);
        while (k < c->n_part && c->part[k].part < i)
            k++;
        const uint64_t before = k < c->n_part ? c->part[k].tok : tok;
        w[0] = c->key.hi;
        w[1] = c->key.lo;
        w[2] = i <= part ? tok - before : 0;
        w[3] = false;
    }
}

/* The row is the first one behind the quantile. */
static void put_quantile(const struct cut *c)
{
    c->common[2 * c->quantile] = c->key.hi;
    c->common[2 * c->quantile + 1] = c->key.lo;
}

static int cut_row(struct cut *c, const struct slu_row *row, struct slu_err *err)
{
    const uint64_t *w = row->p, part = w[ORDINAL] >> PART_SHIFT;
    const struct slu_u128 key = {w[LO], w[HI]};
    const unsigned n = n_end(c->q);

    if (part != row->part)
        return slu_flow_damaged(c->q->flow, KEY, row->part, err);
    if (slu_u128_cmp(key, c->key))
        c->n_part = 0;
    c->key = key;
    if (!c->n_part || c->part[c->n_part - 1].part != part) {
        int rc = slu_grow(&c->part, &c->cap_part, c->n_part + 1, sizeof *c->part, err);
        if (rc)
            return rc;
        c->part[c->n_part++] = (struct before){part, c->tok};
    }
    for (; c->end < n && w[TOKENS] > c->want[c->end] - c->tok; c->end++)
        put_end(c, part);
    for (; c->quantile < n_quantile(c->q) && c->tok >= c->want[n + c->quantile];
         c->quantile++)
        put_quantile(c);
    c->tok += w[TOKENS];
    return SLU_OK;
}

static int cut_rows(struct cut *c, struct slu_err *err)
{
    const uint64_t n_part = slu_flow_parts(c->q->flow);
    struct slu_table *rows;
    struct slu_row row;
    int rc = slu_flow_in(c->q->flow, KEY, &rows, err);

    /* Ends that no row is beyond. */
    for (uint64_t i = 0; i < n_part; i++)
        for (unsigned k = 0; k < n_end(c->q); k++)
            end_of(c, i, k)[3] = true;
    while (!rc) {
        rc = slu_table_next(rows, &row, err);
        if (!rc)
            rc = cut_row(c, &row, err);
    }
    c->key = (struct slu_u128){UINT64_MAX, UINT64_MAX};
    for (; c->quantile < n_quantile(c->q); c->quantile++)
        put_quantile(c);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int put_states(const struct cut *c, struct slu_err *err)
{
    const struct slu_u128 none = {0, 0};
    struct slu_table *t = slu_flow_out(c->q->flow, STATE);
    int rc = SLU_OK;

    for (uint64_t i = 0; i < slu_flow_parts(c->q->flow) && !rc; i++) {
        const struct slu_slice piece[] = {
            {end_of(c, i, 0), end_words(c->q) * sizeof *c->ends},
            {c->common, 2 * n_quantile(c->q) * sizeof *c->common}};
        rc = slu_table_section(t, i, err);
        if (!rc)
            rc = slu_table_put_bytes(t, none, piece, 2, err);
    }
    return rc;
}

int slu_shuffle_cut(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    struct cut c = {.q = q};
    uint64_t all = 0;

    q->flow = f;
    int rc = add_up(q, &all, err);
    if (!rc) {
        c.want = calloc(n_end(q) + n_quantile(q), sizeof *c.want);
        c.ends = calloc(slu_flow_parts(f) * end_words(q), sizeof *c.ends);
        c.common = calloc(2 * n_quantile(q) + 1, sizeof *c.common);
        rc = c.want && c.ends && c.common
                 ? SLU_OK
                 : slu_fail_nomem(err,
                                  slu_flow_parts(f) * end_words(q) * sizeof *c.ends);
    }
    if (!rc) {
        want(&c, all);
        rc = cut_rows(&c, err);
    }
    if (!rc)
        rc = put_states(&c, err);
    free(c.part);
    free(c.want);
    free(c.ends);
    free(c.common);
    return rc;
}

/* ---- scatter ---- */

int slu_shuffle_load_ends(struct slu_shuffle_flow *q, struct slu_permute *p,
                          struct slu_err *err)
{
    const unsigned n = n_end(q);
    struct slu_table *t;
    struct slu_row row;
    int rc = slu_flow_in(q->flow, STATE, &t, err);

    if (!rc)
        rc = slu_shuffle_next_bytes(q, STATE, 0, t, state_words(q) * 8, &row, err);
    if (rc)
        return rc;
    p->band_end = calloc(n, sizeof *p->band_end);
    if (n_quantile(q))
        q->quantile = calloc(n_quantile(q), sizeof *q->quantile);
    if (!p->band_end || (n_quantile(q) && !q->quantile))
        return slu_fail_nomem(err, state_words(q) * 8);
    const uint64_t *w = row.p;
    for (unsigned i = 0; i < n; i++, w += END_WORDS)
        p->band_end[i] =
            (struct slu_cut){.key = {w[1], w[0]}, .left = w[2], .all = w[3] != 0};
    for (size_t i = 0; i < n_quantile(q); i++, w += 2)
        q->quantile[i] = (struct slu_u128){w[1], w[0]};
    p->fits = p->band_end[n - 1];
    return slu_flow_end(q->flow, STATE, 0, t, err);
}

uint64_t slu_shuffle_range_of(const struct slu_shuffle_flow *q, unsigned bucket,
                              struct slu_u128 key)
{
    const unsigned n_bucket = q->cfg.by_bucket ? q->n_bucket : 1;
    size_t low = 0, high = QUANTILES - 1; /* the answer is low ... high */

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const struct slu_u128 end =
            slu_permute_in_group(q->quantile[mid], bucket, n_bucket);
        if (slu_u128_cmp(key, end) < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return low * slu_flow_ranges(q->flow) / QUANTILES;
}
