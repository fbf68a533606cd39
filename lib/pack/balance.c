#include "lib/pack/balance.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

#define MAX_STEP_COST (UINT64_C(1) << 63)

/* The sequences of a bucket that wait for their window to become full. */
struct waiting {
    struct slu_batch b;
    uint64_t *cost; /* by sequence of b */
    size_t cap_cost;
    /* sequences per rank and step; per window, 0: bucket not met yet */
    size_t per_rank, n_full;
    uint64_t window; /* number of windows written */
    uint64_t byte;   /* counted in the balance's byte */
};

struct slu_balance {
    struct slu_balance_cfg cfg;
    struct slu_header header; /* bucket lengths and label tokens only */
    struct waiting w[SLU_MAX_BUCKETS];
    uint32_t *order;
    struct slu_seq *seq;
    size_t cap_order, cap_seq;
    uint64_t byte; /* held */
    struct slu_balance_stat stat;
};

int slu_balance_new(struct slu_balance **out, const struct slu_balance_cfg *cfg,
                    struct slu_err *err)
{
    *out = NULL;
    if (!cfg->ranks || (!cfg->sequences && !cfg->step_tok) ||
        (!cfg->cost_tok && !cfg->cost_square))
        return slu_fail(err, SLU_E_USAGE,
                        "balancing needs ranks, sequences and a cost");
    struct slu_balance *b = calloc(1, sizeof *b);
    if (!b)
        return slu_fail_nomem(err, sizeof *b);
    b->cfg = *cfg;
    b->cfg.header = NULL;
    slu_header_init(&b->header);
    memcpy(b->header.bucket, cfg->header->bucket, sizeof b->header.bucket);
    b->header.n_bucket = cfg->header->n_bucket;
    b->header.label_tokens = cfg->header->label_tokens;
    b->header.tok_bytes = cfg->header->tok_bytes;
    for (unsigned i = 0; i < b->header.n_bucket; i++) {
        slu_batch_init(&b->w[i].b, b->header.tok_bytes);
        b->w[i].b.masks = cfg->header->masks;
    }
    *out = b;
    return SLU_OK;
}

void slu_balance_free(struct slu_balance *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < b->header.n_bucket; i++) {
        slu_batch_release(&b->w[i].b);
        free(b->w[i].cost);
    }
    slu_header_release(&b->header);
    free(b->order);
    free(b->seq);
    free(b);
}

struct slu_balance_stat slu_balance_stat(const struct slu_balance *b)
{
    return b->stat;
}

/* ---- memory ---- */

static int too_much(const struct slu_balance *b, uint64_t byte, struct slu_err *err)
{
    return slu_advise(err, SLU_ADVISE_BALANCE,
                      slu_fail(err, SLU_E_LIMIT,
                               "the windows to balance hold more than %llu MiB; %llu "
                               "times as much memory is needed",
                               (unsigned long long)(b->cfg.budget_byte >> 20),
                               (unsigned long long)(byte / b->cfg.budget_byte + 1)));
}

/* Counts the memory of w. SLU_E_LIMIT beyond the budget. */
static int weigh(struct slu_balance *b, struct waiting *w, struct slu_err *err)
{
    uint64_t byte = w->b.own.cap + w->b.str.cap + w->b.cap_seg * sizeof *w->b.seg +
                    w->b.cap_seq * sizeof *w->b.seq + w->cap_cost * sizeof *w->cost;
    b->byte += byte - w->byte;
    w->byte = byte;
    return b->byte > b->cfg.budget_byte ? too_much(b, b->byte, err) : SLU_OK;
}

/* Computes the sequences of bucket i per rank and step, *per_rank, and per window, *n.
 * SLU_E_USAGE if a step has none for a rank, or a window's numbers are too large. */
static int size_window(const struct slu_balance *b, unsigned i, uint64_t *per_rank,
                       uint64_t *n, struct slu_err *err)
{
    const struct slu_balance_cfg *c = &b->cfg;
    uint64_t len = b->header.bucket[i], ids = slu_header_ids(&b->header, len), cost;
    *per_rank = c->sequences ? c->sequences : c->step_tok / len / c->ranks;
    if (!*per_rank)
        return slu_fail(err, SLU_E_USAGE,
                        "balancing steps of %llu tokens: one sequence of %llu for each "
                        "of %llu ranks does not fit",
                        (unsigned long long)c->step_tok, (unsigned long long)len,
                        (unsigned long long)c->ranks);
    uint64_t by_rule = SLU_BALANCE_WINDOW / *per_rank;
    uint64_t window = c->window                          ? c->window
                      : by_rule > SLU_BALANCE_MIN_WINDOW ? by_rule
                                                         : SLU_BALANCE_MIN_WINDOW;
    if (__builtin_mul_overflow(*per_rank, c->ranks, n) ||
        __builtin_mul_overflow(*n, window, n) || *n > UINT32_MAX)
        return slu_fail(
            err, SLU_E_USAGE,
            "balancing: a window has more than 2^32 sequences of %llu tokens",
            (unsigned long long)len);
    if (__builtin_mul_overflow(c->cost_square, ids, &cost) ||
        __builtin_add_overflow(cost, c->cost_tok, &cost) ||
        __builtin_mul_overflow(cost, ids, &cost) ||
        __builtin_mul_overflow(cost, *n, &cost) || cost >= MAX_STEP_COST)
        return slu_fail(err, SLU_E_USAGE,
                        "balancing: the costs of a window's sequences of %llu tokens "
                        "are too large to add; give smaller numbers in proportion",
                        (unsigned long long)len);
    return SLU_OK;
}

/* Prepares for the bucket's first sequence: takes memory for a window. */
static int meet(struct slu_balance *b, unsigned i, struct slu_err *err)
{
    struct waiting *w = &b->w[i];
    uint64_t ids = slu_header_ids(&b->header, b->header.bucket[i]), per_rank = 0, n = 0,
             byte;
    int rc = size_window(b, i, &per_rank, &n, err);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(n,
                               ids * b->header.tok_bytes + sizeof *w->b.seq +
                                   sizeof *w->b.seg + sizeof *w->cost,
                               &byte) ||
        b->byte + byte > b->cfg.budget_byte)
        return too_much(b, b->byte + byte, err);
    rc = slu_buf_reserve(&w->b.own, n * ids * b->header.tok_bytes, err);
    if (!rc)
        rc = slu_grow(&w->b.seq, &w->b.cap_seq, n, sizeof *w->b.seq, err);
    if (!rc)
        rc = slu_grow(&w->cost, &w->cap_cost, n, sizeof *w->cost, err);
    w->per_rank = per_rank;
    w->n_full = n;
    return rc ? rc : weigh(b, w, err);
}

int slu_balance_check(const struct slu_balance *b, struct slu_err *err)
{
    uint64_t per_rank = 0, n = 0;
    int rc = SLU_OK;
    for (unsigned i = 0; i < b->header.n_bucket && !rc; i++)
        rc = size_window(b, i, &per_rank, &n, err);
    return rc;
}

/* ---- windows ---- */

static uint64_t cost_of(const struct slu_balance *b, const struct slu_batch *in,
                        const struct slu_seq *q)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < q->n_seg; i++) {
        const struct slu_seg *s = &in->seg[q->seg_off + i];
        sum += s->len_tok * b->cfg.cost_tok;
        if (s->source != SLU_PADDING)
            sum += s->len_tok * s->len_tok * b->cfg.cost_square;
    }
    return sum;
}

/* Deals and writes the full steps of the waiting sequences; the remainder stays. */
static int write_steps(struct slu_balance *b, unsigned i, struct slu_writer *out,
                       struct slu_err *err)
{
    struct waiting *w = &b->w[i];
    size_t ranks = b->cfg.ranks, step = ranks * w->per_rank, n_all = w->b.n_seq,
           n_step = n_all / step, n = n_step * step;
    if (!n_step)
        return SLU_OK;
    int rc = slu_grow(&b->order, &b->cap_order, n, sizeof *b->order, err);
    if (!rc)
        rc = slu_grow(&b->seq, &b->cap_seq, n_all, sizeof *b->seq, err);
    if (!rc)
        rc = slu_balance_deal(w->cost, n_step, ranks, w->per_rank, b->order, err);
    if (!rc)
        rc = slu_balance_mix(b->order, n_step, ranks, w->per_rank, b->cfg.seed,
                             b->header.bucket[i], w->window, err);
    if (rc)
        return rc;
    slu_balance_measure(w->cost, NULL, n_step, ranks, w->per_rank, &b->stat.before);
    slu_balance_measure(w->cost, b->order, n_step, ranks, w->per_rank, &b->stat.after);
    w->window++;
    memcpy(b->seq, w->b.seq, n_all * sizeof *b->seq);
    for (size_t k = 0; k < n; k++)
        w->b.seq[k] = b->seq[b->order[k]];
    w->b.n_seq = n;
    w->b.sum_valid = false;
    rc = slu_writer_put(out, &w->b, err);
    memcpy(w->b.seq, b->seq + n, (n_all - n) * sizeof *b->seq);
    w->b.n_seq = n_all - n;
    w->b.sum_valid = false;
    if (!w->b.n_seq)
        slu_batch_clear(&w->b);
    return rc;
}

int slu_balance_put(struct slu_balance *b, const struct slu_batch *in,
                    struct slu_writer *out, struct slu_err *err)
{
    for (size_t k = 0; k < in->n_seq; k++) {
        const struct slu_seq *q = &in->seq[k];
        int i = slu_header_bucket_of(&b->header, q->len_tok), rc = SLU_OK;
        if (i < 0)
            return slu_fail(err, SLU_E_MISMATCH,
                            "balancing: a sequence of %llu tokens has no bucket",
                            (unsigned long long)q->len_tok);
        struct waiting *w = &b->w[i];
        if (!w->n_full)
            rc = meet(b, (unsigned)i, err);
        if (!rc) {
            w->cost[w->b.n_seq] = cost_of(b, in, q);
            rc = slu_batch_add(&w->b, slu_batch_at(in, q->tok_off), q->len_tok,
                               &in->seg[q->seg_off], q->n_seg, in->str.data, err);
        }
        if (!rc)
            rc = weigh(b, w, err);
        if (!rc && w->b.n_seq == w->n_full)
            rc = write_steps(b, (unsigned)i, out, err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

int slu_balance_end(struct slu_balance *b, struct slu_writer *out, struct slu_err *err)
{
    int rc = SLU_OK;
    for (unsigned i = 0; i < b->header.n_bucket && !rc; i++)
        if (b->w[i].n_full)
            rc = write_steps(b, i, out, err);
    for (unsigned i = 0; i < b->header.n_bucket && !rc; i++) {
        if (!b->w[i].b.n_seq)
            continue;
        b->stat.remainder += b->w[i].b.n_seq;
        rc = slu_writer_put(out, &b->w[i].b, err);
        slu_batch_clear(&b->w[i].b);
    }
    return rc;
}
