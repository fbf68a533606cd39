/* substring.c - dedup --substring: cuts passages that occurred before. With --stage:
 * one stage of the work, with files between stages
 * (lib/dedup/substring/substring_flow.h). */
#include <string.h>

#include "lib/dedup/substring/substring_flow.h"
#include "lib/dedup/substring/substring_scan.h"
#include "tools/dedup/dedup.h"

static int put_passage(void *ctx, const struct slu_passage *x, struct slu_err *err)
{
    struct dedup_io *io = ctx;
    struct dedup_pairs *p = &io->pairs;
    int rc = dedup_pairs_begin(p, err);

    if (!rc)
        rc = slu_buf_append(&p->text, "{", 1, err);
    if (!rc)
        rc = dedup_put_origin(&p->text, p->names, &x->at, err);
    if (!rc)
        rc = dedup_pairs_id(p, &x->at, err);
    if (!rc)
        rc = slu_buf_printf(&p->text, err, ",\"length\":%llu,\"first\":{",
                            (unsigned long long)x->len_tok);
    if (!rc)
        rc = dedup_put_origin(&p->text, p->names, &x->first, err);
    if (!rc)
        rc = dedup_pairs_id(p, &x->first, err);
    if (!rc)
        rc = slu_buf_append(&p->text, "}}\n", 3, err);
    return rc ? rc : dedup_pairs_end(p, err);
}

static void timing(void *ctx, const char *name)
{
    struct dedup_io *io = ctx;

    cli_timing(io->ctx, name);
}

/* Fills the account and figures of a whole stream, or of a part in the stage filter. */
static void account(struct cli_ctx *ctx, const struct slu_substring_result *r,
                    const struct slu_sum *in)
{
    cli_stat_u64(ctx, "passages", r->passages);
    cli_stat_u64(ctx, "passage_tokens", r->passage_tok);
    cli_stat_u64(ctx, "documents_cut", r->documents_cut);
    cli_stat_u64(ctx, "documents_gone", r->documents_gone);
    cli_account_in(ctx, in);
    if (r->dropped.tokens)
        slu_account_drop(&ctx->account, "repeated-passage", r->dropped);
    if (r->short_tok)
        slu_account_drop(&ctx->account, "too-short",
                         (struct slu_count){0, 0, r->short_tok});
}

/* Checks the account before the end frame is written, and names the file of passages
 * before the stream. So when the end frame is written, both are complete. */
static int finish(struct dedup_io *io, const struct slu_substring_result *r,
                  const struct slu_sum *in, struct slu_err *err)
{
    account(io->ctx, r, in);
    if (io->pairs.out && io->pairs.n != r->passages)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: %llu passages were found and %llu reported; "
                        "please report it",
                        (unsigned long long)r->passages,
                        (unsigned long long)io->pairs.n);
    int rc = dedup_pairs_close(&io->pairs, err);
    io->ctx->spill_bytes += io->pairs.spilled_byte;
    if (rc)
        return rc;
    struct slu_writer *w = io->writer;
    io->writer = NULL;
    return cli_close_writer(io->ctx, w, err);
}

int dedup_substring_check(const struct dedup_opts *o, struct slu_err *err)
{
    if (o->substring < SLU_PASSAGE_MIN_TOK || o->substring > SLU_PASSAGE_MAX_TOK)
        return slu_fail(err, SLU_E_USAGE, "--substring: expected %d to %d tokens",
                        SLU_PASSAGE_MIN_TOK, SLU_PASSAGE_MAX_TOK);
    if (o->annotate && o->cut)
        return slu_fail(err, SLU_E_USAGE, "--cut and --annotate cannot be combined");
    if (o->annotate && !o->pairs)
        return slu_fail(err, SLU_E_USAGE,
                        "--annotate needs --pairs FILE, where the passages go");
    if (o->annotate && o->min_keep)
        return slu_fail(
            err, SLU_E_USAGE,
            "--min-keep counts what a cut leaves, and --annotate does not cut");
    return SLU_OK;
}

int dedup_substring(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct slu_substring_result r = {.passages = 0};
    struct dedup_io io = {0};
    struct slu_sum in = {0};
    /* For batches in flight and their blocks. */
    uint64_t share = ctx->common.memory / 4;

    int rc = dedup_substring_check(o, err);
    if (!rc)
        rc = dedup_open(&io, ctx, err);
    const struct slu_substring_cfg cfg = {
        .budget_byte = ctx->common.memory - share - dedup_pairs_byte(ctx),
        .tmpdir = ctx->common.tmpdir,
        .n_threads = (unsigned)ctx->common.threads,
        .n_slots = cli_slots(ctx, share / 4 * 3),
        .n_tok = (unsigned)o->substring,
        .min_keep_tok = o->min_keep,
        .cut = !o->annotate,
        .emit = dedup_emit,
        .passage = io.pairs.out ? put_passage : NULL,
        .seen = io.pairs.out ? dedup_pairs_seen : NULL,
        .timing = timing,
        .ctx = &io};
    if (!rc)
        rc = slu_substring_run(&cfg, io.reader, &in, &r, err);
    if (!rc) {
        ctx->spill_bytes = r.spilled_byte;
        cli_stat_u64(ctx, "blocks", r.blocks);
        cli_stat_u64(ctx, "repeated_blocks", r.repeated_blocks);
        cli_stat_u64(ctx, "asked_blocks", r.asked_blocks);
        rc = finish(&io, &r, &in, err);
    }
    dedup_abort(&io);
    return rc;
}

/* ---- --stage ---- */

static void report(struct cli_ctx *ctx, const struct slu_substring_flow *q,
                   const struct slu_flow_report *r)
{
    if (cli_flow_is(ctx, "sign"))
        cli_stat_u64(ctx, "signed_sequences", r->in.n.sequences);
    if (r->skipped)
        return;
    if (cli_flow_is(ctx, "sign")) {
        cli_stat_u64(ctx, "blocks", q->result.blocks);
    } else if (cli_flow_is(ctx, "group")) {
        cli_stat_u64(ctx, "repeated_blocks", q->result.repeated_blocks);
        cli_stat_u64(ctx, "asked_blocks", q->result.asked_blocks);
    } else if (cli_flow_is(ctx, "ask")) {
        cli_stat_u64(ctx, "asked_windows", q->asked_windows);
    } else {
        cli_stat_u64(ctx, "repeated_windows", q->repeated_windows);
    }
}

/* Memory for tables. The rest is for batches in flight with their blocks and, in the
 * stage filter, for a batch that is cut and a row and its copy in the writer. */
static uint64_t budget(const struct cli_ctx *ctx)
{
    const uint64_t memory = ctx->common.memory;
    const unsigned flags = cli_flow_stage(ctx)->flags;

    return flags & SLU_STAGE_WRITES  ? memory / 2
           : flags & SLU_STAGE_READS ? memory / 4 * 3
                                     : memory / 8 * 7;
}

int dedup_substring_stage(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct dedup_io io = {.ctx = ctx};
    struct slu_substring_flow q = {.cfg = {.n_threads = (unsigned)ctx->common.threads,
                                           .n_tok = (unsigned)o->substring,
                                           .min_keep_tok = o->min_keep,
                                           .cut = true,
                                           .emit = dedup_emit,
                                           .ctx = &io},
                                   .open = dedup_open_output};
    struct slu_flow_report r;
    int rc = SLU_OK;

    if (cli_flow_stage(ctx)->flags & SLU_STAGE_READS)
        rc = dedup_open_reader(&io, err);
    const struct slu_flow_cfg cfg = {.reader = io.reader,
                                     .ctx = &q,
                                     .begin = slu_substring_begin,
                                     .budget_byte = budget(ctx),
                                     .n_slots =
                                         cli_slots(ctx, ctx->common.memory / 16 * 3)};
    if (!rc)
        rc = cli_flow_run(ctx, cfg, false, &r, err);
    if (!rc && io.writer)
        rc = finish(&io, &q.result, &r.in, err);
    else if (!rc)
        report(ctx, &q, &r);
    dedup_abort(&io);
    return rc;
}
