/* dedup --exact: drops sequences whose tokens came before. */
#include "lib/dedup/exact.h"
#include "lib/dedup/index.h"
#include "tools/dedup_private.h"

static int put_pair(void *ctx, const struct slu_exact_pair *p, struct slu_err *err)
{
    struct dedup_io *io = ctx;

    return dedup_pairs_put(&io->pairs, &p->dropped, &p->kept, 1, 1, err);
}

static int known(void *ctx, const struct slu_index_doc *d, uint64_t number,
                 struct slu_err *err)
{
    return slu_exact_known(ctx, d->hash, number, err);
}

int dedup_exact(struct cli_ctx *ctx, struct slu_err *err)
{
    struct dedup_io io;
    struct slu_exact *x = NULL;
    struct slu_sum in = {0};
    uint64_t share =
        ctx->common.memory / 4; /* batches in flight; the rest: who was here */

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
    struct slu_exact_cfg cfg = {.budget_byte = ctx->common.memory - share,
                                .tmpdir = ctx->common.tmpdir,
                                .n_threads = (unsigned)ctx->common.threads,
                                .tok_bytes = slu_reader_header(io.reader)->tok_bytes,
                                .emit = dedup_emit,
                                .pair = io.pairs.out ? put_pair : NULL,
                                .ctx = &io};
    rc = slu_exact_new(&x, &cfg, err);
    if (!rc)
        rc = dedup_index_read(&io, DEDUP_EXACT, known, x, err);
    if (!rc)
        rc = slu_exact_run(x, io.reader, cli_slots(ctx, share), &in, err);
    if (!rc) {
        const struct slu_exact_result *r = slu_exact_result(x);
        ctx->spill_bytes = r->spilled_byte;
        cli_stat_u64(ctx, "waited_sequences", r->waited);
        rc = dedup_close(&io, &in, "exact-duplicate", r->dropped, err);
    }
    slu_exact_free(x);
    dedup_abort(&io);
    return rc;
}
