/* pack --phase: one step of many, with files between (lib/pack/pack_flow.h). */
#include "lib/pack/pack_flow.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli_inputs.h"
#include "tools/pack_private.h"

enum phase { COUNT, PLAN, SCATTER, GATHER };

const char *const pack_phase_names[] = {"count", "plan", "scatter", "gather", NULL};

const struct cli_phase_kind pack_phase_kinds[] = {
    [COUNT] = {.name = "count", .stream = true},
    [PLAN] = {.name = "plan", .one = true},
    [SCATTER] = {.name = "scatter", .stream = true, .output = true, .ranges = true},
    [GATHER] = {.name = "gather", .output = true},
    {.name = NULL},
};

/* ---- what does not go together ---- */

int pack_check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    if (o->phase.phase != CLI_PHASE_NONE)
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE,
                    "--part: bins are made of what all parts left over; use --phase");
}

/* ---- the manifest ---- */

static struct slu_flow_job job_of(const struct cli_ctx *ctx)
{
    const struct pack_opts *o = ctx->opts;
    return (struct slu_flow_job){.work = o->phase.work,
                                 .stage = pack_phase_names[o->phase.phase],
                                 .part = ctx->common.part.i,
                                 .of = ctx->common.part.n,
                                 .ranges = o->phase.ranges,
                                 .force = ctx->common.force,
                                 .again = o->save_plan != NULL};
}

static int add_files(void *in, const char *folder, const char *prefix,
                     struct slu_err *err)
{
    return cli_inputs_add_work(in, folder, prefix, err);
}

int pack_inputs(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    int rc = cli_inputs_add_streams(ctx, in, err);
    if (rc || !o->phase.work || o->phase.phase == CLI_PHASE_NONE)
        return rc;
    /* What is not there yet is an error of the phase itself. */
    const struct slu_flow_job job = job_of(ctx);
    return slu_flow_inputs(&slu_pack_flow_spec, &job, add_files, in, err);
}

bool pack_beside(const struct cli_ctx *ctx)
{
    const struct pack_opts *o = ctx->opts;
    if (o->phase.phase != SCATTER)
        return true;
    const struct slu_flow_job job = job_of(ctx);
    return slu_flow_there(&slu_pack_flow_spec, &job);
}

static int check(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    const char *name = pack_phase_names[o->phase.phase];
    int rc = cli_phase_check(ctx, &o->phase, pack_phase_kinds, &ctx->common.part, err);
    if (rc)
        return rc;
    const char *whole = o->order == 1                  ? "--order related"
                        : o->balance.ranks             ? "--balance"
                        : o->method == SLU_PACK_CONCAT ? "--method concat"
                                                       : NULL;
    if (whole)
        return slu_fail(err, SLU_E_USAGE,
                        "%s needs all documents in one process, and has no phases",
                        whole);
    if (o->plan)
        return slu_fail(err, SLU_E_USAGE,
                        "--plan compares methods for one stream; the report of --phase "
                        "plan (--stats) says what the plan comes to");
    if ((o->save_plan || o->apply_plan) && o->phase.phase != PLAN)
        return slu_fail(err, SLU_E_USAGE, "%s goes with --phase plan, not %s",
                        o->save_plan ? "--save-plan" : "--apply-plan", name);
    return pack_balance_check(&o->balance, false, err);
}

/* ---- all of them ---- */

struct phase_job {
    struct pack_job j;
    struct slu_header h; /* of the stream that is written */
    struct slu_pack_flow flow;
};

/* The header is known, and all that follows from it. */
static int begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    struct phase_job *p = q->ctx;
    const struct pack_opts *o = p->j.ctx->opts;
    p->j.names = names;
    int rc = slu_header_copy(&p->j.in, h, err);
    if (!rc)
        rc = slu_header_copy(&p->h, h, err);
    if (!rc)
        rc = pack_set_length(&p->j, &p->h, err);
    if (!rc)
        rc = pack_config(&p->j, &p->h, &q->cfg, err);
    if (!rc && o->phase.phase == PLAN && !p->j.save) {
        const struct slu_plan_head head = slu_packing_head(&q->cfg);
        rc = slu_planfile_new(&p->j.save, &head, err);
        q->cfg.save = p->j.save;
    }
    return rc;
}

static int open_output(void *ctx, struct slu_err *err)
{
    struct phase_job *p = ((struct slu_pack_flow *)ctx)->ctx;
    return cli_open_writer(p->j.ctx, &p->j.writer, &p->h, p->j.names, false, err);
}

static int read_stream(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct phase_job *p = ctx;
    p->j.packing = p->flow.packing;
    cli_phase_on(p->j.ctx, "read", "cpu");
    return slu_flow_read(f, &pack_reading, &p->j, err);
}

static int write_bins(void *ctx, struct slu_err *err)
{
    struct phase_job *p = ctx;
    p->j.packing = p->flow.packing;
    return pack_write(&p->j, err);
}

/* What the phase says of itself, once it is done. */
static int report(struct phase_job *p, const struct slu_flow_report *r,
                  struct slu_err *err)
{
    struct cli_ctx *ctx = p->j.ctx;
    const struct pack_opts *o = ctx->opts;
    cli_stat_json(ctx, "skipped", r->skipped ? "true" : "false");
    ctx->spill_bytes = r->spilled_byte;
    if (r->skipped)
        cli_note(ctx, "%s: was there already", pack_phase_names[o->phase.phase]);
    if (r->skipped)
        return SLU_OK;
    if (o->phase.phase == COUNT || o->phase.phase == SCATTER)
        cli_stat_u64(ctx, "passed", p->j.passed.sequences);
    if (o->phase.phase == COUNT) {
        cli_stat_u64(ctx, "waiting", p->j.waiting);
        cli_stat_u64(ctx, "pieces", p->j.pieces);
    }
    if (o->phase.phase == PLAN)
        pack_report_plan(&p->j);
    if (!p->j.writer)
        return SLU_OK;
    if (p->j.reader)
        cli_book_in(ctx, &r->in);
    *(p->j.reader ? &ctx->ledger.to_work : &ctx->ledger.from_work) = p->flow.work;
    pack_book(&p->j);
    int rc = cli_close_writer(ctx, p->j.writer, err);
    p->j.writer = NULL;
    return rc;
}

static int do_phase(struct phase_job *p, struct slu_names *names, struct slu_err *err)
{
    struct cli_ctx *ctx = p->j.ctx;
    const struct slu_flow_job job = job_of(ctx);
    const struct slu_flow_cfg cfg = {.spec = &slu_pack_flow_spec,
                                     .reader = p->j.reader,
                                     .names = names,
                                     .ctx = &p->flow,
                                     .begin = begin,
                                     .open = open_output,
                                     .budget_byte = ctx->common.memory / 4 * 3,
                                     .tmpdir = ctx->common.tmpdir,
                                     .n_threads = (unsigned)ctx->common.threads,
                                     .n_slots = cli_slots(ctx, ctx->common.memory / 4)};
    struct slu_flow_report r;
    int rc = slu_flow_stage(&cfg, &job, &r, err);
    p->j.packing = p->flow.packing;
    if (!rc)
        rc = pack_write_planfile(&p->j, err);
    return rc ? rc : report(p, &r, err);
}

int pack_phases(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    struct phase_job p = {.j = {.ctx = ctx},
                          .flow = {.too_long = pack_longs[o->too_long],
                                   .read = read_stream,
                                   .write = write_bins}};
    struct slu_names *names = NULL;
    p.flow.ctx = &p;
    slu_header_init(&p.h);
    slu_header_init(&p.j.in);
    int rc = check(ctx, err);
    if (!rc && pack_phase_kinds[o->phase.phase].stream)
        rc = cli_open_reader(ctx, &p.j.reader, err);
    else if (!rc)
        rc = slu_names_new(&names, err);
    if (!rc)
        rc = do_phase(&p, names, err);
    pack_release(&p.j);
    slu_header_release(&p.h);
    slu_names_free(names);
    return rc;
}
