/* Mixtures: the request, the amount of each bucket, and the cost. */
#include "mixture.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_WEIGHT (UINT64_C(1) << 50)

typedef unsigned __int128 u128; /* products of tokens and weights */

/* ---- the request ---- */

/* Parses a number as digits * 10^-decimals. Returns its end; NULL: no number. */
static const char *number(const char *p, uint64_t *digits, unsigned *decimals)
{
    bool point = false, any = false;
    *digits = 0;
    *decimals = 0;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        *digits = *digits * 10 + (uint64_t)(*p - '0');
        *decimals += point;
        if (*digits >= MOST_WEIGHT)
            return NULL;
    }
    return any ? p : NULL;
}

static int parse_weights(struct slu_mixture *m, const char *text, unsigned n_bucket,
                         struct slu_err *err)
{
    unsigned decimals[SLU_MAX_BUCKETS], n = 0, most = 0;
    uint64_t sum = 0;
    for (const char *p = text;; p++) {
        if (n == n_bucket)
            return slu_fail(err, SLU_E_USAGE,
                            "mixture %s: more weights than the %u buckets", text,
                            n_bucket);
        p = number(p, &m->weight[n], &decimals[n]);
        if (!p || (*p && *p != ','))
            return slu_fail(err, SLU_E_USAGE,
                            "mixture %s: expected natural, equal, or a weight for each "
                            "bucket, separated by commas",
                            text);
        most = decimals[n] > most ? decimals[n] : most;
        n++;
        if (!*p)
            break;
    }
    if (n < n_bucket)
        return slu_fail(err, SLU_E_USAGE,
                        "mixture %s: %u weight%s for %u buckets; give one for each, 0 "
                        "to leave a bucket out",
                        text, n, slu_plural(n), n_bucket);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = decimals[i]; k < most && m->weight[i] < MOST_WEIGHT; k++)
            m->weight[i] *= 10;
        if (m->weight[i] >= MOST_WEIGHT)
            return slu_fail(err, SLU_E_USAGE,
                            "mixture %s: a weight has too many digits", text);
        sum += m->weight[i];
    }
    if (!sum)
        return slu_fail(err, SLU_E_USAGE, "mixture %s: every weight is 0", text);
    return SLU_OK;
}

int slu_mixture_parse(struct slu_mixture *m, const char *text, unsigned n_bucket,
                      struct slu_err *err)
{
    m->kind = SLU_MIXTURE_WEIGHTS;
    if (strcmp(text, "natural") == 0)
        m->kind = SLU_MIXTURE_NATURAL;
    if (strcmp(text, "equal") == 0)
        m->kind = SLU_MIXTURE_EQUAL;
    return m->kind == SLU_MIXTURE_WEIGHTS ? parse_weights(m, text, n_bucket, err)
                                          : SLU_OK;
}

/* ---- the amounts ---- */

static int natural(const struct slu_mixture *m, const struct slu_decompose *d,
                   const uint64_t *n_seq, struct slu_mixture_quota *q)
{
    u128 all = 0;
    for (unsigned i = 0; i < d->n_bucket; i++)
        all += (u128)n_seq[i] * d->bucket[i];
    bool part = m->max_tok && all > m->max_tok;
    for (unsigned i = 0; i < d->n_bucket; i++) {
        q->seq[i] = part ? (uint64_t)((u128)m->max_tok * n_seq[i] / all) : n_seq[i];
        q->tok += q->seq[i] * d->bucket[i];
    }
    return SLU_OK;
}

static uint64_t weight_of(const struct slu_mixture *m, unsigned i)
{
    return m->kind == SLU_MIXTURE_EQUAL ? 1 : m->weight[i];
}

int slu_mixture_quota(const struct slu_mixture *m, const struct slu_decompose *d,
                      const uint64_t *n_seq, struct slu_mixture_quota *q,
                      struct slu_err *err)
{
    uint64_t sum = 0, any = 0;
    int worst = -1, empty = -1;
    *q = (struct slu_mixture_quota){.scarcest = -1};
    if (m->kind == SLU_MIXTURE_NATURAL)
        return natural(m, d, n_seq, q);
    /* The scale is (tokens of the worst bucket) / (its weight), kept as a fraction of
     * whole numbers. Tokens are below 2^64 and weights below 2^50. */
    u128 tok = 0;
    uint64_t by = 1;
    for (unsigned i = 0; i < d->n_bucket; i++) {
        uint64_t w = weight_of(m, i);
        u128 have = (u128)n_seq[i] * d->bucket[i];
        any |= n_seq[i];
        sum += w;
        if (!w)
            continue;
        if (!n_seq[i] && empty < 0)
            empty = (int)i;
        if (worst < 0 || have * by < tok * w) {
            worst = (int)i;
            tok = have;
            by = w;
        }
    }
    if (!any)
        return SLU_OK;
    if (empty >= 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "bucket %llu has no sequence, so this mixture would keep "
                        "nothing; leave the bucket "
                        "out, with weight 0 or by the least and largest length",
                        (unsigned long long)d->bucket[empty]);
    q->scarcest = worst;
    if (m->max_tok && (u128)m->max_tok * by < tok * sum) {
        q->scarcest = -1;
        tok = m->max_tok;
        by = sum;
    }
    for (unsigned i = 0; i < d->n_bucket; i++) {
        q->seq[i] = (uint64_t)(tok * weight_of(m, i) / ((u128)by * d->bucket[i]));
        q->tok += q->seq[i] * d->bucket[i];
    }
    return SLU_OK;
}

/* ---- the cost ---- */

static double percent(uint64_t a, uint64_t b)
{
    return b ? 100 * (double)a / (double)b : 0;
}

static int put_row(const char *name, const struct slu_mixture *m,
                   const struct slu_decompose *d, const uint64_t *n_seq, uint64_t all,
                   struct slu_buf *text, struct slu_err *err)
{
    struct slu_mixture_quota q;
    struct slu_decompose_stat s = {0};
    struct slu_err why = SLU_ERR_INIT;
    char scarcest[24] = "";
    int rc = slu_mixture_quota(m, d, n_seq, &q, &why);
    if (rc == SLU_E_MISMATCH)
        return slu_buf_printf(text, err, "%10s  %.*s\n", name,
                              (int)strcspn(why.msg, ";"), why.msg);
    if (rc)
        return slu_fail(err, rc, "%s", why.msg);
    memcpy(s.piece, q.seq, sizeof s.piece);
    if (q.scarcest >= 0)
        snprintf(scarcest, sizeof scarcest, "%llu",
                 (unsigned long long)d->bucket[q.scarcest]);
    return slu_buf_printf(text, err, "%10s %18llu %7.2f %% %10s %12.1f %12.1f\n", name,
                          (unsigned long long)q.tok, percent(all - q.tok, all),
                          scarcest, slu_decompose_mean_length(d, &s),
                          slu_decompose_mean_context(d, &s));
}

static int put_kept(const struct slu_mixture *m, const struct slu_decompose *d,
                    const uint64_t *n_seq, struct slu_buf *text, struct slu_err *err)
{
    struct slu_mixture_quota q;
    if (slu_mixture_quota(m, d, n_seq, &q, NULL))
        return SLU_OK; /* its row says why */
    int rc = slu_buf_printf(text, err, "\n%10s %15s %18s %9s %15s %18s\n", "length",
                            "kept", "tokens", "share", "dropped", "tokens");
    for (unsigned i = 0; i < d->n_bucket && !rc; i++) {
        uint64_t l = d->bucket[i], left = n_seq[i] - q.seq[i];
        rc = slu_buf_printf(text, err, "%10llu %15llu %18llu %7.2f %% %15llu %18llu\n",
                            (unsigned long long)l, (unsigned long long)q.seq[i],
                            (unsigned long long)(q.seq[i] * l),
                            percent(q.seq[i] * l, q.tok), (unsigned long long)left,
                            (unsigned long long)(left * l));
    }
    return rc;
}

int slu_mixture_table(const struct slu_mixture *m, const struct slu_decompose *d,
                      const uint64_t *n_seq, struct slu_buf *text, struct slu_err *err)
{
    static const struct slu_mixture as_is = {.kind = SLU_MIXTURE_NATURAL},
                                    equal = {.kind = SLU_MIXTURE_EQUAL};
    uint64_t all = 0;
    for (unsigned i = 0; i < d->n_bucket; i++)
        all += n_seq[i] * d->bucket[i];
    int rc = slu_buf_printf(text, err, "\nMixtures%s:\n%10s %18s %9s %10s %12s %12s\n",
                            d->label_tokens ? ", label tokens not counted" : "",
                            "--mixture", "tokens kept", "dropped", "scarcest",
                            "mean length", "mean context");
    if (!rc)
        rc = put_row("natural", &as_is, d, n_seq, all, text, err);
    if (!rc)
        rc = put_row("equal", &equal, d, n_seq, all, text, err);
    if (rc || (m->kind != SLU_MIXTURE_WEIGHTS && !m->max_tok))
        return rc || m->kind == SLU_MIXTURE_NATURAL ? rc
                                                    : put_kept(m, d, n_seq, text, err);
    rc = put_row("this one", m, d, n_seq, all, text, err);
    return rc ? rc : put_kept(m, d, n_seq, text, err);
}
