/* The results of a decomposition, and of other choices of buckets, as text. */
#include <stdint.h>
#include <string.h>

#include "decompose.h"

static double percent(uint64_t a, uint64_t b)
{
    return b ? 100 * (double)a / (double)b : 0;
}

static int put_lost(struct slu_buf *text, const char *what, struct slu_count n,
                    uint64_t all, struct slu_err *err)
{
    if (!n.sequences)
        return SLU_OK;
    return slu_buf_printf(text, err, "%10s %15llu %18llu %7.2f %%  dropped\n", what,
                          (unsigned long long)n.sequences, (unsigned long long)n.tokens,
                          percent(n.tokens, all));
}

static int put_buckets(const struct slu_decompose *d,
                       const struct slu_decompose_stat *s, struct slu_buf *text,
                       struct slu_err *err)
{
    int rc = slu_buf_printf(text, err,
                            "%llu document%s, %llu token%s, cut %s%s\n\n"
                            "%10s %15s %18s %9s\n",
                            (unsigned long long)s->runs, slu_plural(s->runs),
                            (unsigned long long)s->run_tok, slu_plural(s->run_tok),
                            d->random ? "at random" : "greedily",
                            d->label_tokens ? " with a label token a sequence" : "",
                            "length", "sequences", "tokens", "share");
    for (unsigned i = 0; i < d->n_bucket && !rc; i++) {
        uint64_t tok = slu_decompose_tokens(d, s, i);
        rc = slu_buf_printf(text, err, "%10llu %15llu %18llu %7.2f %%\n",
                            (unsigned long long)d->bucket[i],
                            (unsigned long long)s->piece[i], (unsigned long long)tok,
                            percent(tok, s->run_tok));
    }
    if (!rc)
        rc = slu_buf_printf(
            text, err, "%10s %15llu %18llu %7.2f %%  %s\n", "tails",
            (unsigned long long)s->tails, (unsigned long long)s->tail_tok,
            percent(s->tail_tok, s->run_tok), d->drop_tails ? "dropped" : "kept");
    if (!rc)
        rc = put_lost(text, "too short", s->too_short, s->run_tok, err);
    if (!rc)
        rc = put_lost(text, "too long", s->too_long, s->run_tok, err);
    if (!rc)
        rc = slu_buf_printf(text, err, "\nmean length %.1f, mean context %.1f\n",
                            slu_decompose_mean_length(d, s),
                            slu_decompose_mean_context(d, s));
    return rc;
}

/* Makes *other with buckets min, 2 min, … max. False if these are not valid. */
static bool choose(const struct slu_decompose *d, uint64_t min, uint64_t max,
                   struct slu_decompose *other)
{
    struct slu_err err;
    *other = *d;
    other->random = false;
    other->n_bucket = 0;
    for (uint64_t l = min; l && l <= max && other->n_bucket < SLU_MAX_BUCKETS; l *= 2)
        other->bucket[other->n_bucket++] = l;
    return other->n_bucket && slu_decompose_init(other, &err) == SLU_OK;
}

static int put_choice(const struct slu_decompose *d, uint64_t min, uint64_t max,
                      const struct slu_length_count *hist, size_t n,
                      struct slu_buf *text, struct slu_err *err)
{
    struct slu_decompose other;
    struct slu_decompose_stat s = {0};
    if (!choose(d, min, max, &other))
        return SLU_OK;
    for (size_t i = 0; i < n; i++)
        slu_decompose_count(&other, hist[i].len_tok, hist[i].count, &s);
    uint64_t pieces = 0;
    for (unsigned i = 0; i < other.n_bucket; i++)
        pieces += s.piece[i];
    return slu_buf_printf(
        text, err, "%10llu %10llu %15llu %15llu %7.2f %% %12.1f %12.1f\n",
        (unsigned long long)min, (unsigned long long)max, (unsigned long long)pieces,
        (unsigned long long)s.tails, percent(s.tail_tok, s.run_tok),
        slu_decompose_mean_length(&other, &s), slu_decompose_mean_context(&other, &s));
}

int slu_decompose_table(const struct slu_decompose *d,
                        const struct slu_decompose_stat *s,
                        const struct slu_length_count *hist, size_t n,
                        struct slu_buf *text, struct slu_err *err)
{
    uint64_t min = d->bucket[0], max = d->bucket[d->n_bucket - 1];
    struct slu_decompose same;
    int rc = put_buckets(d, s, text, err);
    if (rc || !choose(d, min, max, &same) || same.n_bucket != d->n_bucket ||
        memcmp(same.bucket, d->bucket, d->n_bucket * sizeof *d->bucket) != 0)
        return rc;
    rc = slu_buf_printf(text, err,
                        "\nOther choices, cut greedily:\n%10s %10s %15s %15s %9s "
                        "%12s %12s\n",
                        "--min", "--max", "sequences", "tails", "in tails",
                        "mean length", "mean context");
    for (int i = -2; i <= 2 && !rc; i++)
        rc = put_choice(d, i < 0 ? min >> -i : min << i, max, hist, n, text, err);
    for (int i = -2; i <= 2 && !rc; i++)
        if (i)
            rc = put_choice(d, min, i < 0 ? max >> -i : max << i, hist, n, text, err);
    return rc;
}
