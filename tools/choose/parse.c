/* parse.c - choose: the values of its options. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "tools/choose/choose.h"

/* ---- lists ---- */

static int split(struct choose_names *l, const char *value, struct slu_err *err)
{
    char *p = l->text = strdup(value), *end;
    int rc = p ? SLU_OK : slu_fail_nomem(err, strlen(value) + 1);

    while (!rc) {
        rc = slu_grow(&l->name, &l->cap, l->n + 1, sizeof *l->name, err);
        if (rc)
            break;
        l->name[l->n++] = p;
        end = strchr(p, ',');
        if (!end)
            break;
        *end = 0;
        p = end + 1;
    }
    return rc;
}

static void release_names(struct choose_names *l)
{
    free(l->text);
    free(l->name);
}

int choose_parse_domain(void *opts, const char *value, struct slu_err *err)
{
    (void)err;
    ((struct choose_opts *)opts)->domain = value;
    return SLU_OK;
}

int choose_parse_source(void *opts, const char *value, struct slu_err *err)
{
    ((struct choose_opts *)opts)->source = value;
    return *value ? SLU_OK
                  : slu_fail(err, SLU_E_USAGE, "--source: expected NAME[,NAME...]");
}

/* ---- lengths ---- */

static bool length_range(const char *value, uint64_t *least, uint64_t *most)
{
    const char *dots = strstr(value, "..");

    *least = 0;
    *most = UINT64_MAX;
    if (!dots || !(dots > value || dots[2]))
        return false;
    return (dots == value || slu_number(value, (size_t)(dots - value), 1000, least)) &&
           (!dots[2] || slu_number(dots + 2, strlen(dots + 2), 1000, most)) &&
           *least <= *most;
}

int choose_parse_length(void *opts, const char *value, struct slu_err *err)
{
    uint64_t least, most;

    ((struct choose_opts *)opts)->length = value;
    return length_range(value, &least, &most)
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE,
                          "--length: '%s' is not MIN..MAX in tokens, as 100..8192, "
                          "100.. or ..8192",
                          value);
}

/* ---- scores ---- */

static bool comparisons(const char *value, struct slu_compare *c, unsigned *n)
{
    const char *p = value;

    for (*n = 0; *n < SLU_MOST_COMPARES;) {
        p = slu_compare_parse(p, &c[(*n)++]);
        if (!p || !*p)
            return p;
        if (*p++ != ',')
            return false;
    }
    return false;
}

int choose_parse_score(void *opts, const char *value, struct slu_err *err)
{
    struct slu_compare c[SLU_MOST_COMPARES];
    unsigned n;

    ((struct choose_opts *)opts)->score = value;
    return comparisons(value, c, &n)
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE,
                          "--score: '%s' is not a comparison, as '>=3' or '>=3,<4.5' "
                          "with <, <=, =, !=, >= or >; at most %d",
                          value, SLU_MOST_COMPARES);
}

/* ---- the best ---- */

/* Reads P%, with at most nine digits after the point, as a fraction. */
static bool percent(const char *value, size_t n, struct slu_top *t)
{
    const size_t most = 9;
    const char *dot = memchr(value, '.', n);
    const size_t whole = dot ? (size_t)(dot - value) : n,
                 after = dot ? n - whole - 1 : 0;

    t->num = 0;
    t->den = 100;
    if (whole > 3 || after > most || whole + after == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (value + i == dot)
            continue;
        if (value[i] < '0' || value[i] > '9')
            return false;
        t->num = 10 * t->num + (uint64_t)(value[i] - '0');
        t->den *= i > whole ? 10 : 1;
    }
    return t->num <= t->den;
}

static bool top_of(const char *value, struct slu_top *t)
{
    const size_t n = strlen(value);

    if (n && value[n - 1] == '%')
        return percent(value, n - 1, t);
    t->den = 0;
    return slu_number(value, n, 1000, &t->num);
}

/* Writes it as 50%, 0.5% or 20000000, however it was spelled. */
static void put_top(const struct slu_top *t, char text[32])
{
    uint64_t num = t->num, den = t->den ? t->den / 100 : 1;

    for (; den > 1 && num % 10 == 0; den /= 10)
        num /= 10;
    char *at = text + snprintf(text, 24, "%llu", (unsigned long long)(num / den));
    if (den > 1)
        *at++ = '.';
    while ((den /= 10) > 0) /* at most nine digits */
        *at++ = (char)('0' + num / den % 10);
    if (t->den)
        *at++ = '%';
    *at = 0;
}

int choose_parse_top(void *opts, const char *value, struct slu_err *err)
{
    struct choose_opts *o = opts;
    struct slu_top t;

    if (!top_of(value, &t))
        return slu_fail(err, SLU_E_USAGE,
                        "--top: '%s' is neither a percentage up to 100%%, as 10%% or "
                        "0.5%%, nor a number, as 1000 or 20M",
                        value);
    put_top(&t, o->top_text);
    o->top = o->top_text;
    return SLU_OK;
}

/* ---- all ---- */

int choose_want(struct choose_wanted *w, struct cli_ctx *ctx, struct slu_err *err)
{
    struct choose_opts *o = ctx->opts;
    uint64_t lists = ctx->common.memory / 4;
    struct slu_criteria_cfg *c = &w->criteria;

    *w = (struct choose_wanted){.criteria = {.most_tok = UINT64_MAX}};
    int rc = o->domain ? split(&w->domain, o->domain, err) : SLU_OK;
    if (!rc && o->source)
        rc = split(&w->source, o->source, err);
    if (!rc)
        rc = cli_list_read(&o->ids_keep, slu_idset_read, &lists, err);
    if (!rc)
        rc = cli_list_read(&o->ids_drop, slu_idset_read, &lists, err);
    if (!rc && o->where) {
        rc = slu_expr_new(&w->where, o->where, err);
        if (rc)
            slu_err_at(err, "--where");
    }
    c->where = w->where;
    c->domain = (const char *const *)w->domain.name;
    c->n_domain = w->domain.n;
    c->source = (const char *const *)w->source.name;
    c->n_source = w->source.n;
    c->keep = o->ids_keep.set;
    c->drop = o->ids_drop.set;
    if (o->length)
        (void)length_range(o->length, &c->least_tok, &c->most_tok);
    if (o->score)
        (void)comparisons(o->score, c->score, &c->n_score);
    if (o->top)
        (void)top_of(o->top, &w->top);
    w->top.documents = o->unit;
    w->top.by = strcmp(o->by, "hash") ? o->by : NULL;
    w->top.per = o->per;
    w->top.seed = ctx->common.seed;
    return rc;
}

void choose_wanted_release(struct choose_wanted *w, struct cli_ctx *ctx)
{
    struct choose_opts *o = ctx->opts;

    slu_expr_free(w->where);
    release_names(&w->domain);
    release_names(&w->source);
    cli_list_release(&o->ids_keep);
    cli_list_release(&o->ids_drop);
}
