/* flow_stream.c - reads the stream of a stage; in one process also the log, which
 * later stages read in place of the stream. */
#include <stdlib.h>

#include "lib/flow/flow_private.h"

/* State of a stage that reads the log in place of the stream. */
struct replay {
    const struct slu_flow_cfg *cfg;
    const struct slu_side_ops *ops;
    void *ctx, *side;
};

static int replay_batch(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    const struct replay *r = ctx;
    int rc = r->ops->work ? r->ops->work(r->ctx, 0, b, r->side, err) : SLU_OK;

    return rc ? rc : r->ops->emit(r->ctx, b, r->side, err);
}

static int replay_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    const struct replay *r = ctx;

    return r->cfg->note(r->cfg->ctx, p, n, err);
}

static int read_log(const struct slu_flow *f, const struct slu_side_ops *ops, void *ctx,
                    struct slu_err *err)
{
    static const struct slu_seqlog_ops replay = {replay_batch, replay_note};
    struct replay r = {f->cfg, ops, ctx, calloc(1, ops->side_byte + 1)};
    int rc = r.side ? slu_seqlog_read(f->log, &replay, &r, err)
                    : slu_fail_nomem(err, ops->side_byte);

    if (r.side && ops->release)
        ops->release(r.side);
    free(r.side);
    return rc;
}

static int new_log(struct slu_flow *f, struct slu_err *err)
{
    return f->log ? SLU_OK
                  : slu_seqlog_new(&f->log, f->header.tok_bytes, f->header.masks, 0,
                                   f->cfg->tmpdir, err);
}

int slu_flow_log(struct slu_flow *f, const struct slu_batch *b, const struct slu_seq *q,
                 struct slu_err *err)
{
    int rc = new_log(f, err);

    return rc ? rc : slu_seqlog_put(f->log, b, q, err);
}

int slu_flow_note(struct slu_flow *f, const void *p, size_t n, struct slu_err *err)
{
    int rc = new_log(f, err);

    return rc ? rc : slu_seqlog_note(f->log, p, n, err);
}

/* Reads the stream once more, and checks that it is the same. */
static int read_again(const struct slu_flow *f, const struct slu_side_ops *ops,
                      void *ctx, struct slu_err *err)
{
    struct slu_reader *r = NULL;
    struct slu_sum sum;
    struct slu_u128 is;
    int rc = f->cfg->again(f->cfg->again_ctx, &r, err);

    if (!rc) {
        slu_reader_track(r);
        rc = slu_stream_run_side(r, ops, ctx, f->cfg->n_threads, f->cfg->n_slots, &sum,
                                 err);
    }
    if (!rc)
        rc = slu_reader_identity(r, &is, err);
    if (!rc && slu_u128_cmp(f->stream, is))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the input has changed between its first and its second reading");
    slu_reader_free(r);
    return rc;
}

int slu_flow_read(struct slu_flow *f, const struct slu_side_ops *ops, void *ctx,
                  struct slu_err *err)
{
    if (f->here && f->stage != f->cfg->spec->stage)
        return f->log          ? read_log(f, ops, ctx, err)
               : f->cfg->again ? read_again(f, ops, ctx, err)
                               : SLU_OK;
    int rc = slu_stream_run_side(f->cfg->reader, ops, ctx, f->cfg->n_threads,
                                 f->cfg->n_slots, &f->report->in, err);

    if (!rc && (!f->here || f->cfg->again))
        rc = slu_reader_identity(f->cfg->reader, &f->stream, err);
    if (!rc && f->want_of && slu_u128_cmp(f->stream, f->want))
        rc = slu_flow_other_stream(f, err);
    return rc;
}

int slu_flow_read_late(struct slu_flow *f, struct slu_err *err)
{
    return slu_reader_finish(f->cfg->reader, &f->report->in, err);
}

const struct slu_sum *slu_flow_sum(const struct slu_flow *f)
{
    return &f->report->in;
}

static int pass(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

/* Checks that the existing file was made from this stream; reads all of it. */
int slu_flow_compare(struct slu_flow *f, struct slu_u128 stream, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, pass};
    struct slu_u128 is;
    int rc = slu_stream_run(f->cfg->reader, &ops, NULL, f->cfg->n_threads,
                            f->cfg->n_slots, &f->report->in, err);

    if (!rc)
        rc = slu_reader_identity(f->cfg->reader, &is, err);
    if (!rc && slu_u128_cmp(stream, is))
        rc = slu_advise(err, SLU_ADVISE_FORCE,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: was made from another stream; remove it",
                                 f->path));
    return rc;
}
