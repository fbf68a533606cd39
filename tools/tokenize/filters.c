/* filters.c - the filters of `tokenize`: its options, reports and warnings about which
 * documents are used. */
#include "lib/filter/expr.h"

#include "tools/tokenize/tokenize.h"

int tokenize_check_filters(struct tokenize_opts *o, struct slu_err *err)
{
    if (!o->where || o->where_expr)
        return SLU_OK;
    int rc = slu_expr_new(&o->where_expr, o->where, err);
    return rc ? slu_err_at(err, "--where") : SLU_OK;
}

void tokenize_release_filters(struct tokenize_opts *o)
{
    slu_expr_free(o->where_expr);
    o->where_expr = NULL;
}

void tokenize_report_filters(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    if (!o->where_expr)
        return;
    cli_stat_u64(ctx, "filtered", s->filtered);
    for (size_t i = 0; i < slu_expr_n_field(o->where_expr) && s->accepted; i++)
        if (!(s->seen_any >> i & 1))
            cli_warn(ctx, "--where: no record has a field \"%s\"",
                     slu_expr_field(o->where_expr, i));
    if (s->accepted && s->filtered == s->accepted)
        cli_warn(ctx, "the filters left all %llu documents out",
                 (unsigned long long)s->accepted);
}
