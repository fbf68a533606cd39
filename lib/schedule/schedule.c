#include "lib/schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"

void slu_bucket_counts_init(struct slu_bucket_counts *s)
{
    memset(s, 0, sizeof *s);
}

void slu_bucket_counts_release(struct slu_bucket_counts *s)
{
    for (size_t i = 0; i < s->n_bucket; i++)
        free(s->bucket[i].manifest);
    free(s->bucket);
    free(s->places);
    slu_bucket_counts_init(s);
}

uint64_t slu_bucket_counts_tokens(const struct slu_bucket_counts *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_bucket; i++)
        n += s->bucket[i].shards * s->bucket[i].seq_per_shard * s->bucket[i].length;
    return n;
}

uint64_t slu_bucket_sequences(const struct slu_bucket_count *b)
{
    return b->shards * b->seq_per_shard + b->short_seq;
}

struct slu_u128 slu_bucket_counts_digest(const struct slu_bucket_counts *s)
{
    struct slu_u128 sum = {0, 0};
    for (size_t i = 0; i < s->n_bucket; i++) {
        const struct slu_bucket_count *b = &s->bucket[i];
        uint8_t row[48]; /* the digest so far, then the bucket */
        slu_put_le64(row, sum.lo);
        slu_put_le64(row + 8, sum.hi);
        slu_put_le64(row + 16, b->length);
        slu_put_le64(row + 24, slu_bucket_sequences(b));
        slu_put_le64(row + 32, b->digest.lo);
        slu_put_le64(row + 40, b->digest.hi);
        sum = slu_hash128(row, sizeof row);
    }
    return sum;
}

#define MAX_STEPS 20000 /* the search ends after a few dozen */

typedef unsigned __int128 u128;

/* ---- odds ---- */

static int powers(uint64_t *odds, size_t n, uint64_t base, struct slu_err *err)
{
    uint64_t x = 1;
    for (size_t i = n; i-- > 0;) {
        odds[i] = x;
        if (i && x > UINT64_C(1000000000000000) / base)
            return slu_fail(err, SLU_E_USAGE,
                            "%zu buckets are too many for odds in powers of %llu", n,
                            (unsigned long long)base);
        x *= base;
    }
    return SLU_OK;
}

static const char curricula[] =
    "natural, uniform, or grow or shrink with -linear, -p2 or -p100";

static int odds_list(const char *text, uint64_t *odds, size_t n, struct slu_err *err)
{
    const char *p = text;
    for (size_t i = 0; i < n; i++) {
        char *end;
        errno = 0;
        unsigned long long v = strtoull(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || v > UINT64_C(1000000000000000))
            return slu_fail(err, SLU_E_USAGE,
                            "curriculum %s: expected %s, or whole numbers with commas "
                            "between, the odds of each bucket, shortest first",
                            text, curricula);
        odds[i] = v;
        if (*end != (i + 1 < n ? ',' : '\0'))
            return slu_fail(
                err, SLU_E_USAGE,
                "curriculum %s: give as many odds as there are buckets, %zu", text, n);
        p = end + 1;
    }
    return SLU_OK;
}

int slu_curriculum_odds(const char *curriculum, uint64_t *odds, size_t n,
                        struct slu_err *err)
{
    const char *shape = curriculum;
    bool shrink = strncmp(curriculum, "shrink-", 7) == 0;
    int rc = SLU_OK;
    if (shrink)
        shape += 7;
    else if (strncmp(curriculum, "grow-", 5) == 0)
        shape += 5;
    if (strcmp(curriculum, "natural") == 0 || strcmp(curriculum, "uniform") == 0)
        rc = powers(odds, n, 1, err);
    else if (shape == curriculum)
        return odds_list(curriculum, odds, n, err);
    else if (strcmp(shape, "p2") == 0)
        rc = powers(odds, n, 2, err);
    else if (strcmp(shape, "p100") == 0)
        rc = powers(odds, n, 100, err);
    else if (strcmp(shape, "linear") == 0)
        for (size_t i = 0; i < n; i++)
            odds[i] = n - i;
    else
        return slu_fail(err, SLU_E_USAGE, "there is no curriculum %s; expected %s",
                        curriculum, curricula);
    for (size_t i = 0; shrink && i < n / 2; i++) {
        uint64_t t = odds[i];
        odds[i] = odds[n - 1 - i];
        odds[n - 1 - i] = t;
    }
    return rc;
}

int slu_curriculum_check(const char *curriculum, struct slu_err *err)
{
    uint64_t odds;
    if (*curriculum >= '0' && *curriculum <= '9')
        return SLU_OK;
    return slu_curriculum_odds(curriculum, &odds, 1, err);
}

/* ---- the search for factors ---- */

struct search {
    size_t n;
    int64_t *factor;
    const uint64_t *unit_tok; /* by bucket: tokens per unit */
    int64_t *seen;            /* n_seen vectors of n factors */
    size_t n_seen, cap_seen;
};

/* Returns the sign of (tokens / epochs - tokens of an epoch with these factors). */
static int towards(const struct search *s, uint64_t tokens, uint64_t epochs)
{
    __int128 have = 0;
    for (size_t i = 0; i < s->n; i++)
        have += (__int128)s->factor[i] * s->unit_tok[i];
    have *= epochs;
    return have < tokens ? 1 : have > tokens ? -1 : 0;
}

static bool seen_before(const struct search *s)
{
    for (size_t i = s->n_seen; i-- > 0;)
        if (memcmp(s->seen + i * s->n, s->factor, s->n * sizeof *s->factor) == 0)
            return true;
    return false;
}

static int settle(struct search *s, uint64_t tokens, uint64_t epochs,
                  struct slu_err *err)
{
    size_t last = s->n - 1;
    ptrdiff_t at = (ptrdiff_t)last;
    for (int step; at >= 0 && (step = towards(s, tokens, epochs)) != 0;) {
        if (seen_before(s))
            at--;
        int rc = slu_grow(&s->seen, &s->cap_seen, (s->n_seen + 1) * s->n,
                          sizeof *s->seen, err);
        if (rc)
            return rc;
        memcpy(s->seen + s->n_seen++ * s->n, s->factor, s->n * sizeof *s->factor);
        s->factor[at < 0 ? last : (size_t)at] += step;
        if (s->n_seen > MAX_STEPS)
            return slu_fail(err, SLU_E_MISMATCH,
                            "no whole number of shards for each bucket comes near "
                            "%llu tokens in %llu epoch%s",
                            (unsigned long long)tokens, (unsigned long long)epochs,
                            slu_plural(epochs));
    }
    return SLU_OK;
}

static int64_t round_half_even(u128 num, u128 den)
{
    u128 q = num / den, r = num % den;
    if (r > den - r || (r == den - r && q % 2))
        q++;
    return (int64_t)q;
}

/* ---- the plan ---- */

static int check_cfg(const struct slu_bucket_counts *s,
                     const struct slu_openlm_cfg *cfg, struct slu_openlm *o,
                     struct slu_err *err)
{
    if (s->n_bucket == 0)
        return slu_fail(err, SLU_E_MISMATCH, "no manifest names any shard");
    for (size_t i = 0; i < s->n_bucket; i++)
        if (s->bucket[i].length & (s->bucket[i].length - 1))
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s: OpenLM reads buckets whose lengths are powers of two (D_<i>)",
                s->bucket[i].manifest);
    if (s->from_report)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: OpenLM reads sets with manifests, as format wds has; "
                        "write the set in that format",
                        s->bucket[0].manifest);
    if (!cfg->epochs || !cfg->world || !cfg->workers)
        return slu_fail(err, SLU_E_USAGE,
                        "epochs, world and workers must be at least 1");
    if (cfg->epochs > UINT32_MAX || cfg->world > UINT32_MAX ||
        cfg->workers > UINT16_MAX)
        return slu_fail(err, SLU_E_USAGE, "epochs, world or workers are too many");
    if (cfg->tokens > UINT64_C(1) << 62) /* so that factors x units fit */
        return slu_fail(err, SLU_E_USAGE, "%llu tokens to train on; at most 2^62",
                        (unsigned long long)cfg->tokens);
    uint64_t last = s->bucket[s->n_bucket - 1].length;
    if (!cfg->batch_tokens)
        return SLU_OK;
    o->global_batch = cfg->batch_tokens / last;
    if (cfg->batch_tokens % ((u128)last * cfg->world))
        return slu_fail(err, SLU_E_USAGE,
                        "a step of %llu tokens is not a multiple of the longest bucket "
                        "times the world, %llu x %llu",
                        (unsigned long long)cfg->batch_tokens, (unsigned long long)last,
                        (unsigned long long)cfg->world);
    for (size_t i = 0; i < s->n_bucket; i++) {
        const struct slu_bucket_count *b = &s->bucket[i];
        uint64_t step = last / b->length * o->global_batch;
        if ((u128)b->seq_per_shard * cfg->world <= step)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s: a step takes %llu sequences, but one shard for each GPU "
                "has %llu; make larger shards or smaller steps",
                b->manifest, (unsigned long long)step,
                (unsigned long long)(b->seq_per_shard * cfg->world));
    }
    return SLU_OK;
}

static int fill(struct slu_openlm *o, const struct slu_bucket_counts *s,
                const struct slu_openlm_cfg *cfg, const struct search *f,
                const uint64_t *odds, struct slu_err *err)
{
    uint64_t last = s->bucket[s->n_bucket - 1].length;
    for (size_t i = 0; i < o->n_bucket; i++) {
        struct slu_openlm_bucket *b = &o->bucket[i];
        if (f->factor[i] < 0)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s: too few tokens for a whole shard for each worker in each "
                "epoch; take more tokens, fewer epochs or fewer workers",
                s->bucket[i].manifest);
        b->factor = (uint64_t)f->factor[i];
        b->seq_per_epoch =
            b->factor * s->bucket[i].seq_per_shard * cfg->world * cfg->workers;
        b->mult = last / s->bucket[i].length;
        b->odds = odds[i];
        u128 w = (u128)b->factor * odds[i] * f->unit_tok[i] / f->unit_tok[0];
        if (w > INT64_MAX)
            return slu_fail(err, SLU_E_USAGE,
                            "%s: its weight exceeds 2^63 - 1; take smaller odds",
                            s->bucket[i].manifest);
        b->weight = (uint64_t)w;
        o->tokens_per_epoch += b->factor * f->unit_tok[i];
    }
    if (o->tokens_per_epoch == 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%llu token%s in %llu epoch%s, and %llu worker%s: less than a "
                        "shard for each; "
                        "take more tokens, fewer epochs or smaller shards",
                        (unsigned long long)o->tokens, slu_plural(o->tokens),
                        (unsigned long long)o->epochs, slu_plural(o->epochs),
                        (unsigned long long)(cfg->world * cfg->workers),
                        slu_plural(cfg->world * cfg->workers));
    o->exact = (u128)o->tokens_per_epoch * o->epochs == o->tokens;
    return SLU_OK;
}

/* Computes the odds, and refuses 0: an epoch ends when it has enough of every bucket,
 * so the trainer would wait forever for a bucket that is never drawn. */
static int drawn_odds(const char *curriculum, const struct slu_bucket_counts *s,
                      uint64_t *odds, struct slu_err *err)
{
    int rc = slu_curriculum_odds(curriculum, odds, s->n_bucket, err);
    for (size_t i = 0; i < s->n_bucket && !rc; i++)
        if (!odds[i])
            rc = slu_fail(err, SLU_E_USAGE,
                          "curriculum %s: OpenLM would wait for the bucket of %llu, "
                          "whose odds are 0; leave its manifest out instead",
                          curriculum, (unsigned long long)s->bucket[i].length);
    return rc;
}

/* Computes, for each bucket, the tokens of a shard for every worker. The limit keeps
 * products with epochs and shards below 2^127. */
static int count_units(const struct slu_bucket_counts *s,
                       const struct slu_openlm_cfg *cfg, uint64_t *unit_tok,
                       struct slu_err *err)
{
    for (size_t i = 0; i < s->n_bucket; i++) {
        const struct slu_bucket_count *b = &s->bucket[i];
        u128 unit = (u128)b->seq_per_shard * b->length * cfg->world * cfg->workers;
        if (unit > (UINT64_C(1) << 56))
            return slu_fail(err, SLU_E_USAGE,
                            "%s: one shard for each worker would be more than 2^56 "
                            "tokens; give fewer ranks or workers",
                            b->manifest);
        unit_tok[i] = (uint64_t)unit;
    }
    return SLU_OK;
}

int slu_openlm_plan(struct slu_openlm *o, const struct slu_bucket_counts *s,
                    const struct slu_openlm_cfg *cfg, struct slu_err *err)
{
    memset(o, 0, sizeof *o);
    int rc = check_cfg(s, cfg, o, err);
    if (rc)
        return rc;
    size_t n = s->n_bucket;
    uint64_t available = slu_bucket_counts_tokens(s);
    o->n_bucket = n;
    o->epochs = cfg->epochs;
    o->tokens = cfg->tokens ? cfg->tokens : available;
    o->bucket = calloc(n, sizeof *o->bucket);
    uint64_t *unit_tok = calloc(n, sizeof *unit_tok), *odds = calloc(n, sizeof *odds);
    struct search f = {.n = n, .unit_tok = unit_tok};
    f.factor = calloc(n, sizeof *f.factor);
    if (!o->bucket || !unit_tok || !odds || !f.factor) {
        rc = slu_fail_nomem(err, n * sizeof *o->bucket);
        goto out;
    }
    rc = drawn_odds(cfg->curriculum, s, odds, err);
    if (!rc)
        rc = count_units(s, cfg, unit_tok, err);
    if (rc)
        goto out;
    u128 rounds = (u128)cfg->epochs * cfg->world * cfg->workers;
    for (size_t i = 0; i < n; i++) {
        u128 shards = s->bucket[i].shards;
        f.factor[i] = cfg->tokens
                          ? round_half_even(shards * o->tokens, rounds * available)
                          : (int64_t)(shards / rounds);
    }
    if (cfg->tokens)
        rc = settle(&f, o->tokens, o->epochs, err);
    if (!rc)
        rc = fill(o, s, cfg, &f, odds, err);
    if (!cfg->tokens)
        o->exact = true;
out:
    free(unit_tok);
    free(odds);
    free(f.factor);
    free(f.seen);
    return rc;
}

void slu_openlm_release(struct slu_openlm *o)
{
    free(o->bucket);
    memset(o, 0, sizeof *o);
}

/* Appends a word for the shell: as it is, or in single quotes. */
static int put_word(struct slu_buf *text, const char *w, struct slu_err *err)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:+@%=-";
    if (*w && w[strspn(w, plain)] == '\0')
        return slu_buf_printf(text, err, " %s", w);
    int rc = slu_buf_printf(text, err, " '");
    for (; *w && !rc; w++)
        rc = *w == '\'' ? slu_buf_printf(text, err, "'\\''")
                        : slu_buf_append(text, w, 1, err);
    return rc ? rc : slu_buf_printf(text, err, "'");
}

static int put_row(struct slu_buf *text, const char *option, const struct slu_openlm *o,
                   size_t field, struct slu_err *err)
{
    int rc = slu_buf_printf(text, err, "%s", option);
    for (size_t i = 0; i < o->n_bucket && !rc; i++) {
        uint64_t v;
        memcpy(&v, (const char *)&o->bucket[i] + field, sizeof v);
        rc = slu_buf_printf(text, err, " %llu", (unsigned long long)v);
    }
    return rc ? rc : slu_buf_printf(text, err, "\n");
}

int slu_openlm_text(const struct slu_openlm *o, const struct slu_bucket_counts *s,
                    struct slu_buf *text, struct slu_err *err)
{
    int rc = slu_buf_printf(text, err, "--dataset-manifest");
    for (size_t i = 0; i < s->n_bucket && !rc; i++)
        rc = put_word(text, s->bucket[i].manifest, err);
    if (!rc)
        rc = slu_buf_printf(text, err, "\n--epochs %llu\n--train-num-samples %llu\n",
                            (unsigned long long)o->epochs,
                            (unsigned long long)o->tokens_per_epoch);
    if (!rc)
        rc = put_row(text, "--dataset-batch-mult", o,
                     offsetof(struct slu_openlm_bucket, mult), err);
    if (!rc)
        rc = put_row(text, "--source-num-seq-per-epoch", o,
                     offsetof(struct slu_openlm_bucket, seq_per_epoch), err);
    if (!rc)
        rc = put_row(text, "--train-data-mix-weights", o,
                     offsetof(struct slu_openlm_bucket, weight), err);
    if (!rc && o->global_batch)
        rc = slu_buf_printf(text, err, "--global-batch-size %llu\n",
                            (unsigned long long)o->global_batch);
    return rc;
}
