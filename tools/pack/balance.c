/* balance.c - pack --balance: parses and checks its options, and reports its result. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/pack/pack.h"

/* Reads a whole number at *s and advances *s. */
static bool take_number(const char **s, uint64_t *v)
{
    char *end;
    if (!isdigit((unsigned char)**s))
        return false;
    errno = 0;
    *v = strtoull(*s, &end, 10);
    *s = end;
    return errno == 0;
}

int pack_balance_parse_cost(struct pack_balance_opts *o, const char *value,
                            struct slu_err *err)
{
    const char *s = value;
    if (!take_number(&s, &o->cost_tok) || *s++ != ',' ||
        !take_number(&s, &o->cost_square) || *s || (!o->cost_tok && !o->cost_square))
        return slu_fail(
            err, SLU_E_USAGE,
            "--balance-cost: '%s' is not two whole numbers A,B that are not "
            "both 0",
            value);
    snprintf(o->cost_text, sizeof o->cost_text, "%llu,%llu",
             (unsigned long long)o->cost_tok, (unsigned long long)o->cost_square);
    o->cost = o->cost_tok == 0 && o->cost_square == 1 ? NULL : o->cost_text;
    return SLU_OK;
}

int pack_balance_check(const struct pack_balance_opts *o, bool plan_only,
                       struct slu_err *err)
{
    const char *alone = o->sequences ? "--balance-sequences"
                        : o->tokens  ? "--balance-tokens"
                        : o->window  ? "--balance-window"
                        : o->cost    ? "--balance-cost"
                                     : NULL;
    if (!o->ranks && alone)
        return slu_fail(err, SLU_E_USAGE, "%s needs --balance N", alone);
    if (o->sequences && o->tokens)
        return slu_fail(err, SLU_E_USAGE,
                        "--balance-sequences and --balance-tokens both say how many "
                        "sequences a step has; give one");
    if (o->ranks && plan_only)
        return slu_fail(err, SLU_E_USAGE,
                        "--balance orders what is written, and --plan writes nothing");
    return SLU_OK;
}

uint64_t pack_balance_share(const struct cli_ctx *ctx,
                            const struct pack_balance_opts *o)
{
    return o->ranks ? ctx->common.memory / 4 : 0;
}

int pack_balance_open(const struct cli_ctx *ctx, const struct pack_balance_opts *o,
                      const struct slu_header *h, struct slu_balance **b,
                      struct slu_err *err)
{
    *b = NULL;
    if (!o->ranks)
        return SLU_OK;
    struct slu_balance_cfg cfg = {
        .header = h,
        .ranks = o->ranks,
        .sequences = o->tokens      ? 0
                     : o->sequences ? o->sequences
                                    : 1,
        .step_tok = o->tokens,
        .cost_tok = o->cost_tok,
        .cost_square = o->cost_tok || o->cost_square ? o->cost_square : 1,
        .window = o->window,
        .seed = ctx->common.seed,
        .budget_byte = pack_balance_share(ctx, o),
    };
    int rc = slu_balance_new(b, &cfg, err);
    return rc ? rc : slu_balance_check(*b, err);
}

static double per(double a, double b)
{
    return b > 0 ? a / b : 1;
}

static double worst(const struct slu_balance_sum *s)
{
    return s->steps ? s->worst : 1;
}

void pack_balance_report(struct cli_ctx *ctx, const struct slu_balance *b)
{
    struct slu_balance_stat s = slu_balance_stat(b);
    const struct slu_balance_sum *x = &s.before, *y = &s.after;
    char text[400];
    snprintf(text, sizeof text,
             "{\"steps\": %llu, \"remainder\": %llu, "
             "\"before\": {\"mean\": %.6f, \"worst\": %.6f, \"overall\": %.6f}, "
             "\"after\": {\"mean\": %.6f, \"worst\": %.6f, \"overall\": %.6f}}",
             (unsigned long long)y->steps, (unsigned long long)s.remainder,
             per(x->ratio, (double)x->steps), worst(x), per(x->max, x->mean),
             per(y->ratio, (double)y->steps), worst(y), per(y->max, y->mean));
    cli_stat_json(ctx, "balance", text);
}
