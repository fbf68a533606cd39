/* pack --phase: one step of many, with files between (lib/pack/phases.h). */
#include "lib/pack/phases.h"

#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "lib/workfile_phase.h"
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

int pack_inputs(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    const struct cli_part *part = &ctx->common.part;
    char name[64];
    int rc = cli_inputs_add_streams(ctx, in, err);
    if (rc || !o->phase.work)
        return rc;
    /* What is not there yet is an error of the phase itself. */
    rc = cli_inputs_add_work(in, o->phase.work, "plan", err);
    snprintf(name, sizeof name, "count.%llu-of-%llu", (unsigned long long)part->i,
             (unsigned long long)part->n);
    if (!rc && (o->phase.phase == SCATTER || o->phase.phase == GATHER))
        rc = cli_inputs_add_work(in, o->phase.work,
                                 o->phase.phase == SCATTER ? name : "scatter.", err);
    return rc;
}

bool pack_beside(const struct cli_ctx *ctx)
{
    const struct pack_opts *o = ctx->opts;
    const struct cli_part *part = &ctx->common.part;
    const struct slu_pack_phase ph = {.work = o->phase.work,
                                      .part = part->i,
                                      .of = part->n,
                                      .ranges = o->phase.ranges};
    bool there;
    if (o->phase.phase != SCATTER)
        return true;
    return !slu_pack_scatter_there(&ph, &there, NULL) && there;
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
    struct slu_packing_cfg cfg;
    struct slu_pack_phase ph;
    struct slu_names *names; /* owned; NULL: the reader's */
    char *param;
};

/* The header, from the stream or from files, and all that follows from it. */
static int begin(struct phase_job *p, enum phase phase, struct slu_err *err)
{
    struct cli_ctx *ctx = p->j.ctx;
    const struct pack_opts *o = ctx->opts;
    bool stream = pack_phase_kinds[phase].stream;
    int rc = SLU_OK;
    p->ph = (struct slu_pack_phase){.work = o->phase.work,
                                    .part = ctx->common.part.i,
                                    .of = ctx->common.part.n,
                                    .ranges = o->phase.ranges,
                                    .force = ctx->common.force};
    if (stream) {
        rc = cli_open_reader(ctx, &p->j.reader, err);
        if (!rc)
            slu_reader_track(p->j.reader);
        if (!rc)
            rc = slu_header_copy(&p->j.in, slu_reader_header(p->j.reader), err);
        p->j.names = rc ? NULL : slu_reader_names(p->j.reader);
    } else {
        rc = slu_pack_phase_header(
            &p->ph, phase == PLAN ? SLU_WORKFILE_PACK_COUNT : SLU_WORKFILE_PACK_SCATTER,
            &p->j.in, err);
        if (!rc)
            rc = slu_names_new(&p->names, err);
        p->j.names = p->names;
    }
    if (!rc)
        rc = slu_header_copy(&p->h, &p->j.in, err);
    if (!rc)
        rc = pack_set_length(&p->j, &p->h, err);
    if (!rc)
        rc = pack_config(&p->j, &p->h, &p->cfg, err);
    if (!rc)
        rc = slu_pack_phase_param(&p->cfg, pack_longs[o->too_long], &p->param, err);
    p->ph.param = p->param;
    memcpy(p->ph.fingerprint, p->j.in.fingerprint, sizeof p->ph.fingerprint);
    return rc;
}

static void end(struct phase_job *p)
{
    pack_release(&p->j);
    slu_header_release(&p->h);
    slu_names_free(p->names);
    free(p->param);
}

static void report(struct phase_job *p, bool skipped)
{
    cli_stat_json(p->j.ctx, "skipped", skipped ? "true" : "false");
    if (skipped)
        cli_note(p->j.ctx, "%s: was there already",
                 cli_phase_name(&((const struct pack_opts *)p->j.ctx->opts)->phase,
                                pack_phase_kinds));
    else if (p->j.packing)
        p->j.ctx->spill_bytes = slu_packing_spilled(p->j.packing);
}

/* ---- each of them ---- */

static int pass(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

/* The file is there: is it of this stream? */
static int compare(struct phase_job *p, struct slu_u128 stream, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, pass};
    struct cli_ctx *ctx = p->j.ctx;
    struct slu_u128 is = {0, 0};
    struct slu_sum in;
    int rc = slu_stream_run(p->j.reader, &ops, NULL, (unsigned)ctx->common.threads,
                            cli_slots(ctx, ctx->common.memory / 4), &in, err);
    if (!rc)
        rc = slu_reader_identity(p->j.reader, &is, err);
    return rc ? rc : slu_pack_count_compare(&p->ph, stream, is, err);
}

static int make_count(struct phase_job *p, struct slu_err *err)
{
    struct slu_u128 stream = {0, 0};
    struct slu_sum in = {0};
    p->cfg.plan_only = true;
    int rc = slu_packing_new(&p->j.packing, &p->cfg, err);
    if (!rc)
        rc = pack_read(&p->j, &in, err);
    if (!rc)
        rc = slu_reader_identity(p->j.reader, &stream, err);
    if (!rc)
        rc = slu_pack_count_write(p->j.packing, &p->ph, &p->j.in, stream, err);
    if (rc)
        return rc;
    cli_stat_u64(p->j.ctx, "passed", p->j.passed.sequences);
    cli_stat_u64(p->j.ctx, "waiting", p->j.waiting);
    cli_stat_u64(p->j.ctx, "pieces", p->j.pieces);
    return SLU_OK;
}

static int count(struct phase_job *p, struct slu_err *err)
{
    struct slu_u128 stream = {0, 0};
    bool done;
    int rc = slu_pack_count_done(&p->ph, &done, &stream, err);
    if (!rc)
        rc = done ? compare(p, stream, err) : make_count(p, err);
    if (!rc)
        report(p, done);
    return rc;
}

static int plan(struct phase_job *p, struct slu_err *err)
{
    const struct slu_plan_head head = slu_packing_head(&p->cfg);
    bool save = p->j.save != NULL, done = false;
    int rc = save ? SLU_OK : slu_planfile_new(&p->j.save, &head, err);
    p->cfg.save = p->j.save;
    p->cfg.plan_only = true;
    if (!rc)
        rc = slu_packing_new(&p->j.packing, &p->cfg, err);
    if (!rc)
        rc = slu_pack_plan_write(p->j.packing, &p->ph, save ? NULL : &done, err);
    if (!rc)
        rc = pack_write_planfile(&p->j, err);
    if (!rc && !done)
        pack_report_plan(&p->j);
    if (!rc)
        report(p, done);
    return rc;
}

static int scatter(struct phase_job *p, struct slu_err *err)
{
    struct cli_ctx *ctx = p->j.ctx;
    struct slu_count work = {0, 0, 0};
    struct slu_u128 stream = {0, 0};
    struct slu_sum in = {0};
    int rc = slu_pack_scatter_new(&p->j.packing, &p->cfg, &p->ph, err);
    if (!rc)
        rc = cli_open_writer(ctx, &p->j.writer, &p->h, p->j.names, false, err);
    if (!rc)
        rc = pack_read(&p->j, &in, err);
    if (!rc)
        rc = slu_reader_identity(p->j.reader, &stream, err);
    if (!rc)
        rc = slu_pack_scatter_end(p->j.packing, &p->j.in, stream, &work, err);
    if (rc)
        return rc;
    cli_book_in(ctx, &in);
    ctx->ledger.to_work = work;
    pack_book(&p->j);
    cli_stat_u64(ctx, "passed", p->j.passed.sequences);
    report(p, false);
    rc = cli_close_writer(ctx, p->j.writer, err);
    p->j.writer = NULL;
    return rc;
}

static int gather(struct phase_job *p, struct slu_err *err)
{
    struct cli_ctx *ctx = p->j.ctx;
    struct slu_count work = {0, 0, 0};
    int rc = slu_pack_gather_new(&p->j.packing, &p->cfg, &p->ph, &work, err);
    if (!rc)
        rc = cli_open_writer(ctx, &p->j.writer, &p->h, p->j.names, false, err);
    if (!rc)
        rc = pack_write(&p->j, err);
    if (!rc)
        rc = slu_pack_gather_end(p->j.packing, err);
    if (rc)
        return rc;
    ctx->ledger.from_work = work;
    pack_book(&p->j);
    report(p, false);
    rc = cli_close_writer(ctx, p->j.writer, err);
    p->j.writer = NULL;
    return rc;
}

int pack_phases(struct cli_ctx *ctx, struct slu_err *err)
{
    static int (*const of[])(struct phase_job * p, struct slu_err * err) = {
        [COUNT] = count, [PLAN] = plan, [SCATTER] = scatter, [GATHER] = gather};
    const struct pack_opts *o = ctx->opts;
    struct phase_job p = {.j = {.ctx = ctx}};
    slu_header_init(&p.h);
    slu_header_init(&p.j.in);
    int rc = check(ctx, err);
    if (!rc)
        rc = begin(&p, (enum phase)o->phase.phase, err);
    if (!rc)
        rc = of[o->phase.phase](&p, err);
    end(&p);
    return rc;
}
