/* pipe.h - the one pipeline: produce in order, work in parallel, emit in order.
 *
 * n_threads threads (the caller is one of them; with 1 no thread is started) take the
 * most downstream step that can be done: emit the next finished job, else work on a job
 * that waits, else produce the next one. produce and emit are never run twice at once,
 * and emit sees jobs in the order in which they were produced, so results cannot depend
 * on the number of threads. Memory is bounded by the number of job slots, which the
 * caller allocates and which are recycled. (The shape of minimap2's kthread.c and of
 * htslib's bounded pools.)
 *
 * A fault ends the run: jobs before the faulty one are still emitted, and the fault
 * that is reported is that of the earliest job, whatever the threads did.
 */
#ifndef SLU_PIPE_H
#define SLU_PIPE_H

#include "err.h"

struct slu_pipe_ops {
    /* Fills *job; SLU_EOF where there is nothing more. */
    int (*produce)(void *ctx, void *job, struct slu_err *err);
    /* May be NULL. `worker` is in [0, n_threads), for per-thread scratch. */
    int (*work)(void *ctx, unsigned worker, void *job, struct slu_err *err);
    int (*emit)(void *ctx, void *job, struct slu_err *err);
};

/* jobs: n_jobs >= 1 slots, owned by the caller; n_threads >= 1. Returns SLU_OK when
 * everything that was produced has been emitted. */
SLU_MUST_USE int slu_pipe_run(const struct slu_pipe_ops *ops, void *ctx,
                              void *const *jobs, unsigned n_jobs, unsigned n_threads,
                              struct slu_err *err);

#endif
