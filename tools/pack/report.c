/* report.c - pack's reports: the table of --plan, --stats, and the account. */
#include "lib/pack/packing_table.h"
#include "tools/pack/pack.h"

int pack_write_table(struct pack_job *j, struct slu_err *err)
{
    struct slu_packing_row row[SLU_PACK_METHODS];
    struct slu_buf text = SLU_BUF_INIT, json = SLU_BUF_INIT;
    int rc = slu_packing_compare(j->packing, row, err);
    if (!rc)
        rc = slu_packing_table(j->packing, row, &j->passed, &text, err);
    if (!rc)
        rc = slu_packing_table_json(j->packing, row, &json, err);
    if (!rc)
        rc = slu_buf_append(&json, "", 1, err);
    if (!rc) {
        cli_stat_json(j->ctx, "methods", (const char *)json.data);
        cli_erase(j->ctx);
        rc = slu_out_whole(j->ctx->common.output, text.data, text.len, err);
    }
    slu_buf_release(&text);
    slu_buf_release(&json);
    return rc;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

void pack_report_plan(struct pack_job *j)
{
    const struct pack_opts *o = j->ctx->opts;
    struct slu_pack_sum s = slu_packing_sum(j->packing);
    uint64_t room = s.ids - s.tok;
    cli_stat_u64(j->ctx, "bin_tokens", j->capacity);
    cli_stat_u64(j->ctx, "packed", s.items);
    cli_stat_u64(j->ctx, "bins", s.bins);
    cli_stat_u64(j->ctx, "full_bins", s.full);
    cli_stat_u64(j->ctx, "groups", s.groups);
    cli_stat_u64(j->ctx, "certificate", s.bins - s.bound);
    cli_stat_double(j->ctx, "fill", slu_pack_fill(&s));
    cli_stat_double(j->ctx, "padding_ratio", o->fill == 0 ? ratio(room, s.tok) : 0);
    cli_stat_double(j->ctx, "truncation_ratio", ratio(s.cut, s.items));
    cli_stat_double(j->ctx, "concatenation_ratio", ratio(s.items, s.bins));
}

void pack_report(struct pack_job *j)
{
    cli_stat_u64(j->ctx, "passed", j->passed.sequences);
    pack_report_plan(j);
    if (j->relater) {
        struct slu_packing_related r = slu_packing_related(j->packing);
        cli_stat_u64(j->ctx, "related", r.items);
        cli_stat_u64(j->ctx, "chains", r.chains);
    }
    if (j->balance)
        pack_balance_report(j->ctx, j->balance);
}

void pack_account(struct pack_job *j)
{
    struct slu_account *l = &j->ctx->account;
    struct slu_packing_stat s = slu_packing_stat(j->packing);
    l->created.sequences += j->pieces - j->waiting;
    l->padding += s.padding;
    if (s.joined)
        slu_account_drop(l, "joined", (struct slu_count){0, s.joined, 0});
    if (s.not_full.sequences)
        slu_account_drop(l, "not-full", s.not_full);
    if (j->too_long.sequences)
        slu_account_drop(l, "too-long", j->too_long);
    if (j->padding.tokens || j->padding.sequences)
        slu_account_drop(l, "padding", j->padding);
}
