/* Mixes: the request, and the amount of each source. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "mix.h"

typedef unsigned __int128 u128; /* products of tokens and weights */

#define MOST_NUMBER (UINT64_C(1) << 53)

enum { MOST_TIMES = 1000 }; /* of a band */

/* ---- the request ---- */

void slu_mix_release(struct slu_mix *b)
{
    for (unsigned i = 0; i < b->n_source; i++) {
        free(b->source[i].name);
        slu_expr_free(b->source[i].where);
    }
    free(b->source);
    memset(b, 0, sizeof *b);
}

/* Parses p[0, n) as a number in units of 1 / SLU_MIX_ONE. */
static bool number(const char *p, size_t n, uint64_t *out)
{
    uint64_t v = 0, unit = SLU_MIX_ONE;
    bool point = false, any = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (p[i] < '0' || p[i] > '9' || (point && unit == 1))
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
        unit /= point ? 10 : 1;
        any = true;
        if (v > MOST_NUMBER / SLU_MIX_ONE * (SLU_MIX_ONE / unit))
            return false;
    }
    *out = v * unit;
    return any;
}

static int find(struct slu_mix *b, const char *name, size_t n, bool make, unsigned *at,
                struct slu_err *err)
{
    for (*at = 0; *at < b->n_source; ++*at)
        if (strlen(b->source[*at].name) == n && !memcmp(b->source[*at].name, name, n))
            return SLU_OK;
    if (!make)
        return slu_fail(err, SLU_E_USAGE,
                        "epoch limit: '%.*s' has no weight in the mix", (int)n, name);
    if (b->n_source == SLU_MIX_SOURCES)
        return slu_fail(err, SLU_E_USAGE, "a mix has at most %d sources",
                        SLU_MIX_SOURCES);
    if (!b->source)
        b->source = calloc(SLU_MIX_SOURCES, sizeof *b->source);
    char *copy = b->source ? strndup(name, n) : NULL;
    if (!copy)
        return slu_fail_nomem(err, sizeof *b->source * SLU_MIX_SOURCES);
    b->source[b->n_source++].name = copy;
    return SLU_OK;
}

/* Parses "NAME=NUMBER" in p[0, n), split at the last "=". */
static bool split(const char *p, size_t n, size_t *n_name, uint64_t *v)
{
    const char *eq = memrchr(p, '=', n);
    if (!eq)
        return false;
    *n_name = (size_t)(eq - p);
    return number(eq + 1, n - *n_name - 1, v);
}

static int parse_weights(struct slu_mix *b, unsigned period, const char *p, size_t n,
                         struct slu_err *err)
{
    uint64_t sum = 0;
    const char *end = p + n;
    for (const char *next; p <= end; p = next + 1) {
        size_t len, n_name;
        unsigned at;
        uint64_t w;
        next = memchr(p, ',', (size_t)(end - p));
        next = next ? next : end;
        len = (size_t)(next - p);
        if (!split(p, len, &n_name, &w))
            return slu_fail(err, SLU_E_USAGE,
                            "mix: '%.*s' is not NAME=WEIGHT with up to six decimals",
                            (int)len, p);
        int rc = find(b, p, n_name, true, &at, err);
        if (rc)
            return rc;
        if (b->source[at].weight[period])
            return slu_fail(err, SLU_E_USAGE, "mix: '%.*s' has two weights",
                            (int)n_name, p);
        b->source[at].weight[period] = w;
        sum += w;
    }
    if (!sum)
        return slu_fail(err, SLU_E_USAGE, "mix: every weight is 0");
    return SLU_OK;
}

/* Parses "80%", "20G" or "1000steps" in p[0, n). */
static int parse_length(struct slu_mix *b, unsigned period, const char *p, size_t n,
                        uint64_t batch_tok, struct slu_err *err)
{
    static const char steps[] = "steps";
    size_t k = sizeof steps - 1;
    bool share = n && p[n - 1] == '%';
    bool step = n > k && !memcmp(p + n - k, steps, k), good;
    uint64_t v = 0;
    if (share)
        good = number(p, n - 1, &v);
    else
        good = slu_number(p, step ? n - k : n, 1000, &v);
    if (step && good && !batch_tok)
        return slu_advise(err, SLU_ADVISE_BATCH_TOKENS,
                          slu_fail(err, SLU_E_USAGE,
                                   "mix schedule: '%.*s' counts steps, and the number "
                                   "of tokens in a step is not given",
                                   (int)n, p));
    if (step && good)
        good = !__builtin_mul_overflow(v, batch_tok, &v);
    if (!good || !v || v >= UINT64_C(1) << 60)
        return slu_fail(err, SLU_E_USAGE,
                        "mix schedule: '%.*s' is not the length of a period; a share "
                        "(80%%), tokens (20G) and steps (1000steps) are",
                        (int)n, p);
    enum slu_mix_length kind = share ? SLU_MIX_SHARES : SLU_MIX_TOKENS;
    if (b->kind != SLU_MIX_ALL && b->kind != kind)
        return slu_fail(err, SLU_E_USAGE,
                        "mix schedule: give all periods as shares (80%%), or none");
    b->kind = kind;
    b->length[period] = v;
    return SLU_OK;
}

static int check_lengths(const struct slu_mix *b, struct slu_err *err)
{
    uint64_t sum = 0;
    for (unsigned p = 0; p < b->n_period; p++) {
        sum += b->length[p];
        if (!b->length[p] && (p + 1 < b->n_period || b->kind == SLU_MIX_ALL))
            return slu_fail(err, SLU_E_USAGE,
                            "mix schedule: period %u has no length; write MIX:LENGTH;…",
                            p + 1);
    }
    if (b->kind != SLU_MIX_SHARES)
        return SLU_OK;
    const uint64_t all = UINT64_C(100) * SLU_MIX_ONE;
    /* "a:80%;b" means "a:80%;b:20%". */
    if (!b->length[b->n_period - 1] && sum < all)
        return SLU_OK;
    if (sum != all || !b->length[b->n_period - 1])
        return slu_fail(
            err, SLU_E_USAGE,
            "mix schedule: the shares of the periods add to %.6g%%, not 100%%",
            (double)sum / SLU_MIX_ONE);
    return SLU_OK;
}

int slu_mix_parse(struct slu_mix *b, const char *text, bool schedule,
                  uint64_t batch_tok, struct slu_err *err)
{
    memset(b, 0, sizeof *b);
    if (!schedule) {
        b->n_period = 1;
        return parse_weights(b, 0, text, strlen(text), err);
    }
    int rc = SLU_OK;
    for (const char *p = text, *next; !rc; p = next + 1) {
        next = strchrnul(p, ';');
        const char *colon = memrchr(p, ':', (size_t)(next - p));
        if (b->n_period == SLU_MIX_PERIODS)
            return slu_fail(err, SLU_E_USAGE, "mix schedule: more than %d periods",
                            SLU_MIX_PERIODS);
        if (colon)
            rc = parse_length(b, b->n_period, colon + 1, (size_t)(next - colon - 1),
                              batch_tok, err);
        if (!rc)
            rc = parse_weights(b, b->n_period, p, (size_t)((colon ? colon : next) - p),
                               err);
        b->n_period++;
        if (!*next)
            break;
    }
    if (!rc)
        rc = check_lengths(b, err);
    if (!rc && b->kind == SLU_MIX_SHARES && !b->length[b->n_period - 1]) {
        uint64_t rest = UINT64_C(100) * SLU_MIX_ONE;
        for (unsigned p = 0; p < b->n_period; p++)
            rest -= b->length[p];
        b->length[b->n_period - 1] = rest;
    }
    return rc;
}

/* Reads "score OP NUMBER" at p. NULL: it is not there. */
static const char *band_at(const char *p, struct slu_compare *c)
{
    static const char word[] = "score";

    p += strspn(p, " \t");
    return strncmp(p, word, sizeof word - 1)
               ? NULL
               : slu_compare_parse(p + sizeof word - 1, c);
}

/* Returns the end of the band that p begins with: the comma that is in no string or
 * brackets, or the end of the text. *colon: the last colon of the band in no string;
 * NULL: there is none. */
static const char *band_end(const char *p, const char **colon)
{
    unsigned depth = 0;
    char quote = 0;

    for (*colon = NULL; *p && (quote || depth || *p != ','); p++)
        if (quote) {
            p += quote == '"' && *p == '\\' && p[1];
            quote = *p == quote ? 0 : quote;
        } else if (strchr("\"'`", *p)) {
            quote = *p;
        } else if (strchr("([", *p)) {
            depth++;
        } else if (strchr(")]", *p)) {
            depth -= depth > 0;
        } else if (*p == ':') {
            *colon = p;
        }
    return p;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Parses the times at colon[1], before end. */
static bool times_at(const char *colon, const char *end, uint64_t *times)
{
    const char *p = colon + 1 + strspn(colon + 1, " \t");

    while (end > p && is_blank(end[-1]))
        end--;
    return p < end && number(p, (size_t)(end - p), times);
}

bool slu_mix_has_bands(const char *text)
{
    struct slu_compare c;
    const char *end = band_at(text, &c), *colon;
    uint64_t times;

    /* score=4 is a domain with a weight. */
    if (end && (*end == ':' || c.op != SLU_EQUAL))
        return true;
    end = band_end(text, &colon);
    return colon && times_at(colon, end, &times);
}

/* Parses the band at p, which ends in end, with its last colon. */
static int parse_band(struct slu_mix *b, const char *p, const char *end,
                      const char *colon, struct slu_err *err)
{
    const unsigned had = b->n_source;
    struct slu_compare c;
    uint64_t times;
    unsigned at;

    p += strspn(p, " \t");
    if (!colon || !times_at(colon, end, &times) || times > MOST_TIMES * SLU_MIX_ONE) {
        while (end > p && is_blank(end[-1]))
            end--;
        return slu_fail(err, SLU_E_USAGE,
                        "mix: '%.*s' is not EXPRESSION:TIMES, as score>=4:2, of at "
                        "most %d times with up to six decimals",
                        end > p ? (int)(end - p) : 0, p, MOST_TIMES);
    }
    const bool score = band_at(p, &c) == colon;
    while (!score && colon > p && is_blank(colon[-1]))
        colon--;
    const int n_name = (int)(colon - p);
    if (had == SLU_MIX_SOURCES - 1)
        return slu_fail(err, SLU_E_USAGE, "mix: more than %d bands",
                        SLU_MIX_SOURCES - 1);
    int rc = find(b, p, (size_t)n_name, true, &at, err);
    if (!rc && b->n_source == had)
        rc = slu_fail(err, SLU_E_USAGE, "mix: '%.*s' is there twice", n_name, p);
    if (!rc && !score && slu_expr_new(&b->source[at].where, b->source[at].name, err))
        rc = slu_err_at(err, "mix: '%.200s'", b->source[at].name);
    if (rc)
        return rc;
    b->source[at].score = score ? c : (struct slu_compare){0};
    b->source[at].weight[0] = times;
    return SLU_OK;
}

int slu_mix_parse_bands(struct slu_mix *b, const char *text, struct slu_err *err)
{
    static const char rest[] = "others";
    unsigned at;
    int rc = SLU_OK;

    *b = (struct slu_mix){.n_period = 1, .bands = true};
    for (const char *p = text, *next, *colon; !rc; p = next + 1) {
        next = band_end(p, &colon);
        rc = parse_band(b, p, next, colon, err);
        if (!*next)
            break;
    }
    if (!rc)
        rc = find(b, rest, sizeof rest - 1, true, &at, err);
    if (!rc)
        b->source[at].weight[0] = SLU_MIX_ONE;
    return rc;
}

int slu_mix_parse_epochs(struct slu_mix *b, const char *text, struct slu_err *err)
{
    for (const char *p = text, *next;; p = next + 1) {
        size_t n_name = 0;
        unsigned at;
        uint64_t v;
        next = strchrnul(p, ',');
        size_t n = (size_t)(next - p);
        bool named = memchr(p, '=', n);
        if (!(named ? split(p, n, &n_name, &v) : number(p, n, &v)) || !v ||
            (!named && b->max_epochs))
            return slu_fail(
                err, SLU_E_USAGE,
                "epoch limit: '%.*s' is neither a number above 0 nor NAME=NUMBER",
                (int)n, p);
        int rc = named ? find(b, p, n_name, false, &at, err) : SLU_OK;
        if (rc)
            return rc;
        if (named)
            b->source[at].max_epochs = v;
        else
            b->max_epochs = v;
        if (!*next)
            return SLU_OK;
    }
}

/* ---- amounts ---- */

/* Computes the targets of an output of n tokens. */
static void share_out(const struct slu_mix *b, uint64_t n, struct slu_mix_plan *plan)
{
    uint64_t all = 0, sum = 0, before = 0;
    plan->tok = n;
    for (unsigned p = 0; p < b->n_period; p++)
        all += b->length[p];
    for (unsigned p = 0; p < b->n_period; p++) {
        uint64_t to = n, w = 0;
        sum += b->length[p];
        if (b->kind == SLU_MIX_SHARES)
            to = (uint64_t)((u128)n * sum / all);
        else if (b->kind == SLU_MIX_TOKENS && b->length[p])
            to = sum < n ? sum : n;
        for (unsigned s = 0; s < b->n_source; s++)
            w += b->source[s].weight[p];
        for (unsigned s = 0; s < b->n_source; s++)
            plan->target[s][p] =
                (uint64_t)((u128)(to - before) * b->source[s].weight[p] / w);
        before = to;
    }
}

static uint64_t target_of(const struct slu_mix *b, const struct slu_mix_plan *plan,
                          unsigned s)
{
    uint64_t sum = 0;
    for (unsigned p = 0; p < b->n_period; p++)
        sum += plan->target[s][p];
    return sum;
}

static bool fits(const struct slu_mix *b, const struct slu_mix_plan *plan, unsigned s,
                 uint64_t n_tok)
{
    return (u128)target_of(b, plan, s) * SLU_MIX_ONE <=
           (u128)n_tok * plan->max_epochs[s];
}

/* Returns the first source that needs more epochs than allowed, or -1. */
static int too_much(const struct slu_mix *b, const struct slu_mix_plan *plan,
                    const uint64_t *n_tok)
{
    for (unsigned s = 0; s < b->n_source; s++)
        if (!fits(b, plan, s, n_tok[s]))
            return (int)s;
    return -1;
}

/* Returns the most tokens that all sources can give, at most `most`. Targets grow with
 * n, except for a token where the ends of periods are rounded. */
static uint64_t largest(const struct slu_mix *b, const uint64_t *n_tok, uint64_t most,
                        struct slu_mix_plan *plan)
{
    uint64_t lo = 0, hi = most;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo + 1) / 2;
        share_out(b, mid, plan);
        if (too_much(b, plan, n_tok) < 0)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static int refuse(const struct slu_mix *b, const struct slu_mix_plan *plan,
                  const uint64_t *n_tok, unsigned s, struct slu_err *err)
{
    struct slu_mix_plan least = *plan;
    uint64_t want = target_of(b, plan, s), most = largest(b, n_tok, plan->tok, &least);
    u128 epochs = ((u128)want * 100 + n_tok[s] - 1) / n_tok[s]; /* rounded up */
    return slu_advise(
        err, SLU_ADVISE_MIX,
        slu_fail(err, SLU_E_MISMATCH,
                 "mix: '%s' has %llu tokens, and %llu are wanted of it, more than %.6g "
                 "epochs; allow %llu.%02u epochs of it, or want %llu tokens in all",
                 b->source[s].name, (unsigned long long)n_tok[s],
                 (unsigned long long)want, (double)plan->max_epochs[s] / SLU_MIX_ONE,
                 (unsigned long long)((uint64_t)(epochs / 100)),
                 (unsigned)(epochs % 100), (unsigned long long)most));
}

/* Finds the output's tokens, as far as the request or max_tok sets them; UINT64_MAX:
 * the sources decide. */
static int asked_for(const struct slu_mix *b, uint64_t max_tok, uint64_t *tok,
                     struct slu_err *err)
{
    uint64_t sum = 0;
    *tok = max_tok;
    if (b->kind != SLU_MIX_TOKENS)
        return SLU_OK;
    for (unsigned p = 0; p < b->n_period; p++)
        sum += b->length[p];
    bool rest = !b->length[b->n_period - 1];
    if (rest && max_tok == UINT64_MAX)
        return slu_advise(
            err, SLU_ADVISE_MAX_TOKENS,
            slu_fail(err, SLU_E_USAGE,
                     "mix schedule: the last period has no length, and takes what the "
                     "others leave of the tokens in all, which are not given"));
    if (max_tok != UINT64_MAX && (rest ? sum >= max_tok : sum != max_tok))
        return slu_fail(err, SLU_E_USAGE,
                        "mix schedule: the periods have %llu tokens together, and %llu "
                        "are wanted in all",
                        (unsigned long long)sum, (unsigned long long)max_tok);
    *tok = rest ? max_tok : sum;
    return SLU_OK;
}

/* Bands take what they have as often as they say. */
static int plan_bands(const struct slu_mix *b, const uint64_t *n_tok,
                      struct slu_mix_plan *plan, struct slu_err *err)
{
    u128 all = 0;

    for (unsigned s = 0; s < b->n_source; s++) {
        const u128 want = (u128)n_tok[s] * b->source[s].weight[0] / SLU_MIX_ONE;
        all += want;
        if (all >> 62)
            return slu_fail(err, SLU_E_LIMIT, "mix: more than 2^62 tokens");
        plan->target[s][0] = (uint64_t)want;
        plan->max_epochs[s] = b->source[s].weight[0];
    }
    plan->tok = (uint64_t)all;
    return SLU_OK;
}

int slu_mix_plan(const struct slu_mix *b, const uint64_t *n_tok, uint64_t max_tok,
                 struct slu_mix_plan *plan, struct slu_err *err)
{
    uint64_t tok;
    memset(plan, 0, sizeof *plan);
    if (b->bands)
        return plan_bands(b, n_tok, plan, err);
    int rc = asked_for(b, max_tok, &tok, err);
    if (rc)
        return rc;
    uint64_t epochs = b->max_epochs       ? b->max_epochs
                      : tok == UINT64_MAX ? SLU_MIX_ONE
                                          : 4 * SLU_MIX_ONE;
    for (unsigned s = 0; s < b->n_source; s++) {
        plan->max_epochs[s] =
            b->source[s].max_epochs ? b->source[s].max_epochs : epochs;
        if (!slu_mix_weighs(b, s))
            continue;
        if (!n_tok[s])
            return slu_fail(err, SLU_E_MISMATCH,
                            "mix: the input has no sequence of '%s'",
                            b->source[s].name);
    }
    if (tok == UINT64_MAX)
        tok = largest(b, n_tok, UINT64_C(1) << 62, plan);
    share_out(b, tok, plan);
    int s = too_much(b, plan, n_tok);
    return s < 0 ? SLU_OK : refuse(b, plan, n_tok, (unsigned)s, err);
}
