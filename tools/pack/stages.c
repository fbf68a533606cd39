/* stages.c - pack --stage: one stage of the work, with files between stages
 * (lib/pack/pack_flow.h). Also the end of every run of pack. */
#include "tools/pack/pack.h"

int pack_check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    if (cli_flow_asked(ctx))
        return SLU_OK;
    return slu_fail(
        err, SLU_E_USAGE,
        "--part: bins are made of the short pieces of all parts; use --stage");
}

int pack_check_stage(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    const char *whole = o->order == 1      ? "order related"
                        : o->balance.ranks ? "balance"
                                           : NULL;
    if (whole || slu_pack_cuts(pack_method(o)))
        return slu_fail(err, SLU_E_USAGE,
                        "--%s%s needs all documents in one process, and has no stages",
                        whole ? whole : "method ",
                        whole ? "" : slu_pack_method_name[o->method]);
    if (o->plan)
        return slu_fail(err, SLU_E_USAGE,
                        "--plan compares methods for one stream; the report of --stage "
                        "plan (--stats) says what the plan comes to");
    if (o->flow.stage && (o->save_plan || o->apply_plan) && !cli_flow_is(ctx, "plan"))
        return slu_fail(err, SLU_E_USAGE, "%s needs --stage plan, not %s",
                        o->save_plan ? "--save-plan" : "--apply-plan", o->flow.stage);
    return pack_balance_check(&o->balance, false, err);
}

static void report_stage(struct pack_job *j, const struct slu_flow_report *r)
{
    struct cli_ctx *ctx = j->ctx;
    if (r->skipped)
        return;
    if (j->reader)
        cli_stat_u64(ctx, "passed", j->passed.sequences);
    if (cli_flow_is(ctx, "count")) {
        cli_stat_u64(ctx, "waiting", j->waiting);
        cli_stat_u64(ctx, "pieces", j->pieces);
    }
    if (cli_flow_is(ctx, "plan"))
        pack_report_plan(j);
    if (!j->writer)
        return;
    if (j->reader)
        cli_account_in(ctx, &r->in);
    *(j->reader ? &ctx->account.to_work : &ctx->account.from_work) = j->flow.work;
    pack_account(j);
}

int pack_end(struct pack_job *j, const struct slu_flow_report *r, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const struct pack_opts *o = ctx->opts;
    int rc = o->plan               ? pack_write_table(j, err)
             : cli_flow_asked(ctx) ? pack_write_planfile(j, err)
                                   : SLU_OK;
    if (rc)
        return rc;
    if (cli_flow_asked(ctx)) {
        report_stage(j, r);
    } else {
        pack_report(j);
        cli_account_in(ctx, &r->in);
        if (o->plan)
            slu_account_drop(&ctx->account, "plan-only", r->in.n);
        else
            pack_account(j);
    }
    if (j->writer)
        rc = cli_close_writer(ctx, j->writer, err);
    j->writer = NULL;
    return rc;
}
