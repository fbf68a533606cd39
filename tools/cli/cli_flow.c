/* cli_flow.c - see cli_flow.h. */
#include "tools/cli/cli_flow.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/io.h"
#include "tools/cli/cli_inputs.h"

/* ---- options ---- */

const struct cli_flow_opts *cli_flow_opts_of(const struct cli_ctx *ctx)
{
    const char *opts = ctx->opts;

    return ctx->tool->flow ? (const void *)(opts + ctx->tool->flow_at) : NULL;
}

const struct slu_stage *cli_flow_stage(const struct cli_ctx *ctx)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);
    const struct slu_flow_spec *spec = o && o->stage ? ctx->tool->flow(ctx) : NULL;

    return spec ? slu_stage_named(spec, o->stage) : NULL;
}

bool cli_flow_is(const struct cli_ctx *ctx, const char *stage)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);

    return o->stage && !strcmp(o->stage, stage);
}

bool cli_flow_asked(const struct cli_ctx *ctx)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);

    return o && (o->stage || o->stages);
}

/* ---- checking options ---- */

static int no_such_stage(const struct slu_flow_spec *spec, const char *name,
                         struct slu_err *err)
{
    struct slu_buf list = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (unsigned i = 0; i < spec->n_stage && !rc; i++)
        if (!(spec->stage[i].flags & SLU_STAGE_HERE))
            rc = slu_buf_printf(&list, err, "%s%s", i ? ", " : "", spec->stage[i].name);
    if (!rc)
        rc = slu_fail(err, SLU_E_USAGE,
                      "--stage %s: with these options the stages are %s", name,
                      (const char *)list.data);
    slu_buf_release(&list);
    return rc;
}

static int check_part(const struct slu_stage *s, const struct cli_part *part,
                      struct slu_err *err)
{
    const bool one = s->flags & SLU_STAGE_ONE;

    if (one && part->n)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage %s is one job for all parts; leave --part out",
                        s->name);
    if (!one && !part->n)
        return slu_fail(err, SLU_E_USAGE, "--stage %s needs --part I/N", s->name);
    return SLU_OK;
}

/* Whether a table that stage s writes is divided into ranges, or into buckets that a
 * later stage divides into ranges. Stages that run once for each range do not count. */
static bool takes_ranges(const struct slu_flow_spec *spec, const struct slu_stage *s)
{
    for (unsigned k = 0; k < s->n_out; k++) {
        const enum slu_table_cut cut = spec->table[s->out[k]].cut;
        if (cut == SLU_CUT_RANGES || cut == SLU_CUT_BUCKETS)
            return !(s->flags & SLU_STAGE_RANGES);
    }
    return false;
}

uint64_t cli_flow_ranges(const struct cli_ctx *ctx)
{
    const struct slu_stage *s = cli_flow_stage(ctx);

    if (!s || !takes_ranges(ctx->tool->flow(ctx), s))
        return 0;
    const uint64_t n = cli_flow_opts_of(ctx)->ranges;
    return n ? n : ctx->common.part.n;
}

static int check(const struct cli_ctx *ctx, const struct cli_flow_opts *o,
                 const struct slu_flow_spec *spec, const struct slu_stage *s,
                 struct slu_err *err)
{
    if (!o->work)
        return slu_fail(err, SLU_E_USAGE, "--stage %s needs --work DIR", s->name);
    int rc = check_part(s, &ctx->common.part, err);
    if (rc)
        return rc;
    if (!(s->flags & SLU_STAGE_READS) && ctx->n_input)
        return slu_fail(err, SLU_E_USAGE, "--stage %s reads no stream", s->name);
    if (!(s->flags & (SLU_STAGE_WRITES | SLU_STAGE_SET)) && ctx->common.output)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage %s writes to --work only; leave -o out", s->name);
    if (o->ranges && !takes_ranges(spec, s))
        return slu_fail(err, SLU_E_USAGE,
                        "--stage %s takes no --ranges: they are in the files of "
                        "--work",
                        s->name);
    if (o->ranges > CLI_FLOW_MOST || ctx->common.part.n > CLI_FLOW_MOST)
        return slu_fail(err, SLU_E_USAGE, "expected at most %d parts and ranges",
                        CLI_FLOW_MOST);
    return s->flags & SLU_STAGE_READS ? slu_mkdirs(o->work, err) : SLU_OK;
}

static int print(const struct slu_flow_spec *spec, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_flow_print(spec, &text, err);

    if (!rc)
        fputs((const char *)text.data, stdout); /* main checks the flush of stdout */
    slu_buf_release(&text);
    return rc ? rc : SLU_EOF;
}

int cli_flow_begin(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);
    const struct slu_flow_spec *spec = ctx->tool->flow(ctx);

    if (!o->stage && !o->stages && (o->work || o->ranges))
        return slu_fail(err, SLU_E_USAGE, "%s needs --stage",
                        o->work ? "--work" : "--ranges");
    if (!o->stage && !o->stages)
        return SLU_OK;
    if (o->stages)
        return print(spec, err);
    const struct slu_stage *s = cli_flow_stage(ctx);
    return s ? check(ctx, o, spec, s, err) : no_such_stage(spec, o->stage, err);
}

/* ---- doing it ---- */

static struct slu_flow_job job_of(const struct cli_ctx *ctx)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);

    return (struct slu_flow_job){.work = o->work,
                                 .stage = o->stage,
                                 .part = ctx->common.part.i,
                                 .of = ctx->common.part.n,
                                 .ranges = o->ranges,
                                 .force = ctx->common.force};
}

void cli_flow_skipped(struct cli_ctx *ctx, bool skipped)
{
    cli_stat_json(ctx, "skipped", skipped ? "true" : "false");
    if (skipped)
        cli_note(ctx, "%s: was there already", cli_flow_opts_of(ctx)->stage);
}

int cli_flow_run(struct cli_ctx *ctx, struct slu_flow_cfg cfg, bool again,
                 struct slu_flow_report *r, struct slu_err *err)
{
    const struct slu_stage *s = cli_flow_stage(ctx);
    struct slu_flow_job job = job_of(ctx);

    job.again = again;
    cfg.spec = ctx->tool->flow(ctx);
    cfg.tmpdir = ctx->common.tmpdir;
    cfg.n_threads = (unsigned)ctx->common.threads;
    if (s && !(s->flags & (SLU_STAGE_READS | SLU_STAGE_WRITES | SLU_STAGE_SET))) {
        cfg.progress = cli_progress_of; /* those show the stream's own */
        cfg.progress_ctx = ctx;
    }
    struct slu_made made = {.n = 0};
    int rc = s ? cli_made(ctx, &made, CLI_OF_STAGES, err) : SLU_OK;
    cfg.made = &made;
    if (!rc)
        rc = s ? slu_flow_stage(&cfg, &job, r, err) : slu_flow_run(&cfg, r, err);
    slu_made_release(&made);
    if (rc)
        return rc;
    ctx->spill_bytes = r->spilled_byte;
    /* A stage that writes a set of shards reports this itself. */
    if (s && !(s->flags & SLU_STAGE_SET))
        cli_flow_skipped(ctx, r->skipped);
    return SLU_OK;
}

/* ---- for the manifest ---- */

static int add_files(void *in, const char *folder, const char *prefix,
                     struct slu_err *err)
{
    return cli_inputs_add_work(in, folder, prefix, err);
}

int cli_flow_inputs(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    const struct cli_flow_opts *o = cli_flow_opts_of(ctx);
    int rc = cli_inputs_add_streams(ctx, in, err);

    /* A missing folder is an error of the stage itself. */
    if (rc || !o->work || !cli_flow_stage(ctx))
        return rc;
    const struct slu_flow_job job = job_of(ctx);
    return slu_flow_inputs(ctx->tool->flow(ctx), &job, add_files, in, err);
}

bool cli_flow_beside(const struct cli_ctx *ctx)
{
    const struct slu_stage *s = cli_flow_stage(ctx);
    const struct slu_flow_job job = job_of(ctx);

    return !s || !s->n_out || !(s->flags & SLU_STAGE_WRITES) || !job.work ||
           slu_flow_there(ctx->tool->flow(ctx), &job);
}
