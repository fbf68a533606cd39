#include "decompose.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"

bool slu_run_next(const struct slu_batch *b, const struct slu_seq *q, uint64_t *i,
                  uint64_t *tok_off, struct slu_run *run)
{
    if (*i >= q->n_seg)
        return false;
    const struct slu_seg *s = &b->seg[q->seg_off + *i],
                         *end = &b->seg[q->seg_off + q->n_seg];
    run->seg = *s;
    run->tok_off = *tok_off;
    uint64_t next = s->offset + s->len_tok;
    /* A segment with offset 0 begins a document, so it never continues a run. */
    for (s++;
         s < end && s->source == run->seg.source && s->offset == next &&
         s->offset != 0 && s->document == run->seg.document && s->source != SLU_PADDING;
         s++) {
        next += s->len_tok;
        run->seg.len_tok += s->len_tok;
    }
    *i = (uint64_t)(s - &b->seg[q->seg_off]);
    *tok_off += run->seg.len_tok;
    return true;
}

int slu_decompose_init(struct slu_decompose *d, struct slu_err *err)
{
    if (d->n_bucket == 0 || d->n_bucket > SLU_MAX_BUCKETS)
        return slu_fail(err, SLU_E_USAGE, "%u bucket lengths; 1 to %d are possible",
                        d->n_bucket, SLU_MAX_BUCKETS);
    d->weight_sum = 0;
    for (unsigned i = 0; i < d->n_bucket; i++) {
        if (d->bucket[i] == 0 || d->bucket[i] > SLU_MAX_BUCKET_TOK)
            return slu_fail(err, SLU_E_USAGE,
                            "bucket length %llu; 1 to 2^40 tokens are possible",
                            (unsigned long long)d->bucket[i]);
        if (i && d->bucket[i] <= d->bucket[i - 1])
            return slu_fail(err, SLU_E_USAGE, "bucket lengths must ascend");
        /* 1 / length as a whole number, so that draws are equal on every host; exact for
         * powers of two. */
        d->weight[i] = (UINT64_C(1) << 56) / d->bucket[i];
        d->weight_sum += d->weight[i];
    }
    return SLU_OK;
}

int slu_decompose_next(const struct slu_decompose *d, uint64_t source,
                       uint64_t document, uint64_t offset, uint64_t len_tok)
{
    if (d->label_tokens) {
        if (len_tok == 0)
            return -1;
        len_tok--;
    }
    int k = (int)d->n_bucket - 1;
    if (d->random && len_tok / 2 >= d->bucket[k]) {
        uint64_t bits = slu_draw(d->seed, source, document, offset, 0);
        uint64_t x = slu_draw_below(bits, d->weight_sum);
        int i = 0;
        for (; x >= d->weight[i]; i++)
            x -= d->weight[i];
        return i;
    }
    while (k >= 0 && d->bucket[k] > len_tok)
        k--;
    return k;
}

void slu_decompose_stat_add(struct slu_decompose_stat *a,
                            const struct slu_decompose_stat *b)
{
    a->runs += b->runs;
    a->run_tok += b->run_tok;
    for (unsigned i = 0; i < SLU_MAX_BUCKETS; i++)
        a->piece[i] += b->piece[i];
    a->tails += b->tails;
    a->tail_tok += b->tail_tok;
    a->created += b->created;
    a->padding_tok += b->padding_tok;
    a->padding_seq += b->padding_seq;
    slu_count_add(&a->tail_dropped, b->tail_dropped);
    slu_count_add(&a->too_short, b->too_short);
    slu_count_add(&a->too_long, b->too_long);
}

uint64_t slu_decompose_tokens(const struct slu_decompose *d,
                              const struct slu_decompose_stat *s, unsigned i)
{
    return s->piece[i] * (d->bucket[i] + (d->label_tokens ? 1 : 0));
}

double slu_decompose_mean_length(const struct slu_decompose *d,
                                 const struct slu_decompose_stat *s)
{
    double n = 0, sum = 0;
    for (unsigned i = 0; i < d->n_bucket; i++) {
        n += (double)s->piece[i];
        sum += (double)s->piece[i] * (double)d->bucket[i];
    }
    return n > 0 ? sum / n : 0;
}

double slu_decompose_mean_context(const struct slu_decompose *d,
                                  const struct slu_decompose_stat *s)
{
    double sum = 0, pairs = 0;
    for (unsigned i = 0; i < d->n_bucket; i++) {
        double l = (double)d->bucket[i], tok = (double)s->piece[i] * l;
        sum += tok;
        pairs += tok * (l - 1);
    }
    return sum > 0 ? pairs / (2 * sum) : 0;
}

void slu_decompose_account(const struct slu_decompose_stat *s, struct slu_account *l)
{
    l->created.sequences += s->created;
    if (s->tail_dropped.sequences)
        slu_account_drop(l, "tail", s->tail_dropped);
    if (s->too_short.sequences)
        slu_account_drop(l, "too-short", s->too_short);
    if (s->too_long.sequences)
        slu_account_drop(l, "too-long", s->too_long);
    if (s->padding_tok || s->padding_seq)
        slu_account_drop(l, "padding",
                         (struct slu_count){0, s->padding_seq, s->padding_tok});
}

void slu_decompose_scratch_release(struct slu_decompose_scratch *x)
{
    free(x->seq);
    free(x->seg);
    memset(x, 0, sizeof *x);
}

/* Returns the count for a run or document of len_tok tokens that a filter drops, or
 * NULL to keep it. */
static struct slu_count *filtered(const struct slu_decompose *d, uint64_t len_tok,
                                  struct slu_decompose_stat *s)
{
    if (len_tok < d->min_len_tok)
        return &s->too_short;
    if (d->max_len_tok && len_tok > d->max_len_tok)
        return &s->too_long;
    return NULL;
}

/* The new rows of a batch while they are built. */
struct rows {
    struct slu_decompose_scratch *x;
    size_t n_seq, n_seg, max;
};

static int put(struct rows *o, const struct slu_run *run, uint64_t from,
               uint64_t len_tok, struct slu_err *err)
{
    struct slu_decompose_scratch *x = o->x;
    int rc = SLU_OK;
    if (o->n_seq == o->max) {
        x->too_many = true;
        x->source = run->seg.source;
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "document %llu becomes more sequences than memory "
                                   "allows; larger buckets make fewer",
                                   (unsigned long long)run->seg.document));
    }
    if (o->n_seq == x->cap_seq)
        rc = slu_grow(&x->seq, &x->cap_seq, o->n_seq + 1, sizeof *x->seq, err);
    if (!rc && o->n_seg == x->cap_seg)
        rc = slu_grow(&x->seg, &x->cap_seg, o->n_seg + 1, sizeof *x->seg, err);
    if (rc)
        return rc;
    x->seq[o->n_seq++] = (struct slu_seq){run->tok_off + from, len_tok, o->n_seg, 1};
    struct slu_seg *s = &x->seg[o->n_seg++];
    *s = run->seg;
    s->offset += from;
    s->len_tok = len_tok;
    return SLU_OK;
}

/* Cuts one run of b. Adds the number of pieces, dropped ones included, to *pieces. */
static int cut_run(const struct slu_decompose *d, const struct slu_batch *b,
                   const struct slu_run *run, struct rows *o,
                   struct slu_decompose_stat *s, uint64_t *pieces, struct slu_err *err)
{
    uint64_t left = run->seg.len_tok, at = 0;
    s->runs++;
    s->run_tok += left;
    struct slu_count *drop = filtered(d, left, s);
    if (drop) {
        slu_count_add(drop, (struct slu_count){run->seg.offset == 0, 1, left,
                                               slu_batch_loss(b, run->tok_off, left)});
        ++*pieces;
        return SLU_OK;
    }
    for (int k; (k = slu_decompose_next(d, run->seg.source, run->seg.document,
                                        run->seg.offset + at, left)) >= 0;) {
        uint64_t ids = d->bucket[k] + (d->label_tokens ? 1 : 0);
        int rc = put(o, run, at, ids, err);
        if (rc)
            return rc;
        s->piece[k]++;
        ++*pieces;
        at += ids;
        left -= ids;
    }
    if (left == 0 && at > 0)
        return SLU_OK;
    s->tails++;
    s->tail_tok += left;
    ++*pieces;
    if (!d->drop_tails)
        return put(o, run, at, left, err);
    slu_count_add(&s->tail_dropped,
                  (struct slu_count){run->seg.offset + at == 0, 1, left,
                                     slu_batch_loss(b, run->tok_off + at, left)});
    return SLU_OK;
}

int slu_decompose_batch(const struct slu_decompose *d, struct slu_batch *b,
                        struct slu_decompose_scratch *x, struct slu_decompose_stat *s,
                        struct slu_err *err)
{
    struct rows o = {x, 0, 0, d->max_rows ? d->max_rows : SIZE_MAX};
    for (size_t j = 0; j < b->n_seq; j++) {
        const struct slu_seq *q = &b->seq[j];
        uint64_t i = 0, tok_off = q->tok_off, pieces = 0;
        struct slu_run run;
        while (slu_run_next(b, q, &i, &tok_off, &run)) {
            if (run.seg.source == SLU_PADDING) {
                s->padding_tok += run.seg.len_tok;
                continue;
            }
            int rc = cut_run(d, b, &run, &o, s, &pieces, err);
            if (rc)
                return rc;
        }
        if (pieces)
            s->created += pieces - 1;
        else
            s->padding_seq++;
    }
    struct slu_decompose_scratch old = {
        .seq = b->seq, .cap_seq = b->cap_seq, .seg = b->seg, .cap_seg = b->cap_seg};
    b->seq = x->seq;
    b->cap_seq = x->cap_seq;
    b->n_seq = o.n_seq;
    b->seg = x->seg;
    b->cap_seg = x->cap_seg;
    b->n_seg = o.n_seg;
    b->sum_valid = false;
    *x = old;
    return SLU_OK;
}

void slu_decompose_count(const struct slu_decompose *d, uint64_t len_tok,
                         uint64_t count, struct slu_decompose_stat *s)
{
    s->runs += count;
    s->run_tok += len_tok * count;
    struct slu_count *drop = filtered(d, len_tok, s);
    if (drop) {
        slu_count_add(drop, (struct slu_count){count, count, len_tok * count});
        return;
    }
    uint64_t label = d->label_tokens ? 1 : 0, left = len_tok, pieces = 0;
    for (int k = (int)d->n_bucket - 1; k >= 0; k--) {
        uint64_t ids = d->bucket[k] + label, n = left / ids;
        pieces += n;
        s->piece[k] += n * count;
        left -= n * ids;
    }
    if (left || !pieces) {
        pieces++;
        s->tails += count;
        s->tail_tok += left * count;
        if (d->drop_tails)
            slu_count_add(&s->tail_dropped, (struct slu_count){pieces == 1 ? count : 0,
                                                               count, left * count});
    }
    s->created += (pieces - 1) * count;
}
