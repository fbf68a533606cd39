/* stream_run.c - a whole stream through workers: slu_stream_run. */
#include <stdlib.h>

#include "stream.h"

struct run {
    struct slu_reader *r;
    const struct slu_side_ops *ops;
    void *ctx;
    struct slu_pipe *pipe;
};

/* A batch in flight, and the caller's data beside it. */
struct slot {
    struct slu_batch b;
    max_align_t side[];
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    slu_reader_use_pipe(t->r, t->pipe);
    return slu_reader_fetch(t->r, &((struct slot *)job)->b, err);
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct slot *s = job;
    int rc = slu_batch_open(t->r, &s->b, err);
    if (!rc && t->ops->work)
        rc = t->ops->work(t->ctx, worker, &s->b, s->side, err);
    if (!rc)
        slu_batch_sum(&s->b);
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct slot *s = job;
    slu_reader_account(t->r, &s->b);
    int rc = t->ops->emit(t->ctx, &s->b, s->side, err);
    slu_batch_trim(&s->b);
    return rc;
}

int slu_stream_run_side(struct slu_reader *r, const struct slu_side_ops *ops, void *ctx,
                        unsigned n_threads, unsigned n_slots, struct slu_sum *total,
                        struct slu_err *err)
{
    static const struct slu_pipe_ops pipe = {produce, work, emit};
    struct run t = {r, ops, ctx, NULL};
    slu_reader_alone(r, n_threads == 1);
    void **job = calloc(n_slots, sizeof *job);
    int rc = job ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *job);
    for (unsigned i = 0; !rc && i < n_slots; i++) {
        struct slot *s = job[i] = calloc(1, sizeof *s + ops->side_byte);
        if (s)
            slu_batch_init(&s->b, slu_reader_header(r)->tok_bytes);
        else
            rc = slu_fail_nomem(err, sizeof *s + ops->side_byte);
    }
    /* More threads than batches would only wait, each with memory of its own. */
    if (!rc)
        rc =
            slu_pipe_run_parts(&pipe, &t, job, n_slots,
                               n_threads < n_slots ? n_threads : n_slots, &t.pipe, err);
    slu_reader_use_pipe(r, NULL);
    if (!rc)
        rc = slu_reader_finish(r, total, err);
    for (unsigned i = 0; job && i < n_slots && job[i]; i++) {
        struct slot *s = job[i];
        slu_batch_release(&s->b);
        if (ops->release)
            ops->release(s->side);
        free(s);
    }
    free(job);
    return rc;
}

/* ---- without data beside the batches ---- */

struct plain {
    const struct slu_stream_ops *ops;
    void *ctx;
};

static int plain_work(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                      struct slu_err *err)
{
    const struct plain *t = ctx;
    (void)side;
    return t->ops->work ? t->ops->work(t->ctx, worker, b, err) : SLU_OK;
}

static int plain_emit(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    const struct plain *t = ctx;
    (void)side;
    return t->ops->emit(t->ctx, b, err);
}

int slu_stream_run(struct slu_reader *r, const struct slu_stream_ops *ops, void *ctx,
                   unsigned n_threads, unsigned n_slots, struct slu_sum *total,
                   struct slu_err *err)
{
    static const struct slu_side_ops side = {0, plain_work, plain_emit, NULL};
    struct plain t = {ops, ctx};
    return slu_stream_run_side(r, &side, &t, n_threads, n_slots, total, err);
}
