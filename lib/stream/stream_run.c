/* A whole stream through workers: slu_stream_run. */
#include <stdlib.h>

#include "stream.h"

struct run {
    struct slu_reader *r;
    const struct slu_stream_ops *ops;
    void *ctx;
    struct slu_pipe *pipe;
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    slu_reader_use_pipe(t->r, t->pipe);
    return slu_reader_fetch(t->r, job, err);
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    int rc = slu_batch_open(t->r, job, err);
    if (!rc && t->ops->work)
        rc = t->ops->work(t->ctx, worker, job, err);
    if (!rc)
        slu_batch_sum(job);
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    slu_reader_account(t->r, job);
    int rc = t->ops->emit(t->ctx, job, err);
    slu_batch_trim(job);
    return rc;
}

int slu_stream_run(struct slu_reader *r, const struct slu_stream_ops *ops, void *ctx,
                   unsigned n_threads, unsigned n_slots, struct slu_sum *total,
                   struct slu_err *err)
{
    static const struct slu_pipe_ops pipe = {produce, work, emit};
    struct run t = {r, ops, ctx, NULL};
    struct slu_batch *b = calloc(n_slots, sizeof *b);
    void **job = calloc(n_slots, sizeof *job);
    int rc = SLU_OK;
    if (!b || !job)
        rc = slu_fail_nomem(err, n_slots * (sizeof *b + sizeof *job));
    for (unsigned i = 0; !rc && i < n_slots; i++) {
        slu_batch_init(&b[i], slu_reader_header(r)->tok_bytes);
        job[i] = &b[i];
    }
    /* More threads than batches would wait, and each keep what it works with. */
    if (!rc)
        rc =
            slu_pipe_run_parts(&pipe, &t, job, n_slots,
                               n_threads < n_slots ? n_threads : n_slots, &t.pipe, err);
    slu_reader_use_pipe(r, NULL);
    if (!rc)
        rc = slu_reader_finish(r, total, err);
    for (unsigned i = 0; b && i < n_slots; i++)
        slu_batch_release(&b[i]);
    free(b);
    free(job);
    return rc;
}
