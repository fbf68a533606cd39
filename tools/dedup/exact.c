/* exact.c - dedup --exact: drops sequences whose tokens occurred before. With --stage:
 * one stage of the work, with files between stages (lib/dedup/exact/exact_flow.h). */
#include "lib/base/io.h"
#include "lib/dedup/against/index.h"
#include "lib/dedup/exact/exact_flow.h"
#include "tools/dedup/dedup.h"

static int put_pair(void *ctx, const struct slu_exact_pair *p, struct slu_err *err)
{
    struct dedup_io *io = ctx;

    return dedup_pairs_put(&io->pairs, &p->dropped, &p->kept, 1, 1, err);
}

static int known_doc(void *ctx, const struct slu_index_doc *d, uint64_t number,
                     struct slu_err *err)
{
    return slu_exact_known(ctx, d->hash, number, err);
}

static int known(void *ctx, struct slu_exact *x, struct slu_err *err)
{
    return dedup_index_read(ctx, DEDUP_EXACT, known_doc, x, err);
}

static int count_known(void *ctx, const struct slu_header *h, uint64_t *n,
                       struct slu_err *err)
{
    return dedup_index_count(((struct dedup_io *)ctx)->ctx, DEDUP_EXACT, h, n, err);
}

int dedup_exact(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct dedup_io io;
    struct slu_exact *x = NULL;
    struct slu_sum in = {0};
    uint64_t share =
        ctx->common.memory / 4; /* for batches in flight; the set of hashes has the
                                   rest */

    io = (struct dedup_io){0};
    int rc = dedup_index_name(ctx->opts, err);
    if (!rc)
        rc = dedup_open(&io, ctx, err);
    if (!rc)
        rc = dedup_index_create(&io, DEDUP_EXACT, err);
    if (rc) {
        dedup_abort(&io);
        return rc;
    }
    struct slu_exact_cfg cfg = {.budget_byte =
                                    ctx->common.memory - share - dedup_pairs_byte(ctx),
                                .tmpdir = ctx->common.tmpdir,
                                .n_threads = (unsigned)ctx->common.threads,
                                .trained = o->trained,
                                .emit = dedup_emit,
                                .pair = io.pairs.out ? put_pair : NULL,
                                .seen = io.pairs.out ? dedup_pairs_seen : NULL,
                                .known = known,
                                .ctx = &io};
    rc = slu_exact_new(&x, &cfg, err);
    if (!rc)
        rc = slu_exact_run(x, io.reader, cli_slots(ctx, share), &in, err);
    if (!rc) {
        const struct slu_exact_result *r = slu_exact_result(x);
        ctx->spill_bytes = r->spilled_byte;
        cli_stat_u64(ctx, "waited_sequences", r->waited);
        if (o->trained)
            cli_stat_u64(ctx, "without_trained", r->untrained);
        rc = dedup_close(&io, &in, "exact-duplicate", r->dropped, err);
    }
    slu_exact_free(x);
    dedup_abort(&io);
    return rc;
}

/* ---- --stage ---- */

static int report(struct dedup_io *io, const struct slu_exact *x,
                  const struct slu_flow_report *r, struct slu_err *err)
{
    if (io->writer)
        return dedup_close(io, &r->in, "exact-duplicate", x->result.dropped, err);
    if (cli_flow_is(io->ctx, "sign")) {
        cli_stat_u64(io->ctx, "signed_sequences", r->in.n.sequences);
        if (x->cfg.trained && !r->skipped)
            cli_stat_u64(io->ctx, "without_trained", x->result.untrained);
    } else if (cli_flow_is(io->ctx, "index"))
        cli_stat_u64(io->ctx, "index_documents", x->result.indexed);
    else
        cli_stat_u64(io->ctx, "twins", x->n_duplicate);
    return SLU_OK;
}

int dedup_exact_stage(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct dedup_io io = {.ctx = ctx};
    const uint64_t in_flight = ctx->common.memory / 4;
    const struct slu_exact_cfg exact = {.budget_byte = ctx->common.memory - in_flight,
                                        .tmpdir = ctx->common.tmpdir,
                                        .n_threads = (unsigned)ctx->common.threads,
                                        .trained = o->trained,
                                        .emit = dedup_emit,
                                        .known = known,
                                        .count_known = count_known,
                                        .indexed = cli_given(ctx, "save-index"),
                                        .save_index = o->save_index,
                                        .open = dedup_open_output,
                                        .ctx = &io};
    struct slu_exact *x = NULL;
    struct slu_flow_report r;
    int rc = dedup_index_name(ctx->opts, err);

    if (!rc && cli_flow_stage(ctx)->flags & SLU_STAGE_READS)
        rc = dedup_open_reader(&io, err);
    if (!rc)
        rc = slu_exact_new(&x, &exact, err);
    if (!rc) {
        const struct slu_flow_cfg cfg = {.reader = io.reader,
                                         .ctx = x,
                                         .begin = slu_exact_begin,
                                         .budget_byte = exact.budget_byte,
                                         .n_slots = cli_slots(ctx, in_flight / 2)};
        rc = cli_flow_run(ctx, cfg, false, &r, err);
    }
    if (!rc)
        rc = report(&io, x, &r, err);
    slu_exact_free(x);
    dedup_abort(&io);
    return rc;
}
