/* cli_stream.c - the stream that a program writes, and the steps that made it. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/cli_private.h"

int cli_stream_header(struct cli_ctx *ctx, const struct slu_header *h,
                      struct slu_header *mine, struct slu_err *err)
{
    char *text = NULL;
    int rc = slu_header_copy(mine, h, err);

    if (rc || ctx->common.no_provenance)
        return rc;
    rc = cli_provenance(ctx, &text, err);
    if (!rc)
        rc = slu_header_add_step(mine, ctx->tool->name, SLU_VERSION, text,
                                 ctx->common.seed, err);
    free(text);
    return rc;
}

static int open_output(const struct cli_ctx *ctx, struct slu_out **out,
                       struct slu_err *err)
{
    int rc = slu_out_open(out, ctx->common.output, err);

    if (!rc && slu_out_is_terminal(*out) && !ctx->common.force) {
        slu_out_abort(*out);
        return slu_fail(err, SLU_E_USAGE,
                        "standard output is a terminal; use -o FILE, a pipe, or -f");
    }
    if (!rc && !ctx->common.output)
        cli_widen_pipe(STDOUT_FILENO);
    return rc;
}

int cli_open_writer(struct cli_ctx *ctx, struct slu_writer **w,
                    const struct slu_header *h, struct slu_names *names, bool no_vocab,
                    struct slu_err *err)
{
    struct slu_joint *joint = ctx->common.output ? NULL : ctx->out;
    struct slu_writer_cfg cfg = {.zstd_level = ctx->common.zstd_level,
                                 .no_vocab = no_vocab,
                                 .names = names,
                                 .steps = !ctx->common.no_provenance,
                                 .sources = ctx->counts_sources ? &ctx->sources : NULL,
                                 .joint = joint};
    struct slu_header mine;
    struct slu_out *out = NULL;
    *w = NULL;
    ctx->account.masks |= h->masks; /* a stage may read work files only */
    int rc = joint ? SLU_OK : open_output(ctx, &out, err);
    if (rc)
        return rc;
    slu_header_init(&mine);
    rc = cli_stream_header(ctx, h, &mine, err);
    if (rc)
        slu_out_abort(out);
    else
        rc = slu_writer_open(w, out, &mine, &cfg, err);
    slu_header_release(&mine);
    return rc;
}

void cli_account_in(struct cli_ctx *ctx, const struct slu_sum *in)
{
    slu_count_add(&ctx->account.in, in->n);
}

int cli_steps(const struct cli_ctx *ctx, const struct slu_account *account,
              struct slu_step_list *all, struct slu_err *err)
{
    char *text = NULL;

    *all = (struct slu_step_list)SLU_STEPS_INIT;
    if (ctx->common.no_provenance)
        return SLU_OK;
    int rc = cli_provenance(ctx, &text, err);
    const struct slu_step step = {(char *)ctx->tool->name, (char *)SLU_VERSION, text,
                                  ctx->common.seed};
    if (!rc)
        rc = slu_steps_join(all, &ctx->steps, err);
    if (!rc)
        rc = slu_steps_add(all, &step, account, err);
    if (!rc)
        rc = slu_steps_count(all, &ctx->earlier, err);
    if (!rc && account == &ctx->account) /* not of a holdout */
        rc = slu_steps_sources(all, &ctx->sources, err);
    free(text);
    return rc;
}

int cli_end_writer(struct cli_ctx *ctx, struct slu_writer *w,
                   const struct slu_account *account, struct slu_err *err)
{
    struct slu_step_list all;
    int rc = cli_steps(ctx, account, &all, err);

    if (!rc && !ctx->common.no_provenance)
        rc = slu_writer_steps(w, &all, err);
    slu_steps_release(&all);
    if (!rc)
        return slu_writer_close(w, err);
    slu_writer_abort(w);
    return rc;
}

int cli_close_writer(struct cli_ctx *ctx, struct slu_writer *w, struct slu_err *err)
{
    slu_count_add(&ctx->account.out, slu_writer_sum(w)->n);
    int rc = slu_account_check(&ctx->account, err);
    if (!rc && ctx->before_failed && *ctx->before_failed)
        rc = slu_fail(err, SLU_E_TRUNCATED, "the program before has failed");
    if (!rc)
        return cli_end_writer(ctx, w, &ctx->account, err);
    slu_writer_abort(w);
    return rc;
}
