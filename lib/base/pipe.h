/* pipe.h - the pipeline of all programs: produce in order, work in parallel, emit in
 * order.
 *
 * There are n_threads threads; the caller is one of them, so with 1 no thread is
 * started. A free thread takes the first possible step of this list:
 *   1. emit the next finished job;
 *   2. help with a job that is worked on in parts;
 *   3. work on a waiting job;
 *   4. produce the next job.
 * With several threads, produce comes before work while no other job waits, so that no
 * thread has to wait for a slow produce.
 *
 * At most one thread runs produce, and at most one emit. emit gets jobs in the order in
 * which they were produced, so results do not depend on the number of threads. Memory
 * is bounded by the number of job slots, which the caller allocates and which are
 * recycled. A job that takes more than SLU_PIPE_SLOT_BYTE waits until there is room
 * (slu_pipe_take). (The shape of minimap2's kthread.c and of htslib's bounded pools.)
 *
 * An error ends the run. Jobs before the failed one are still emitted, and the reported
 * error is that of the earliest failed job, for any number of threads.
 */
#ifndef SLU_PIPE_H
#define SLU_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

SLU_BEGIN_DECLS

struct slu_pipe;

struct slu_pipe_ops {
    /* Fills *job; SLU_EOF after the last job. */
    int (*produce)(void *ctx, void *job, struct slu_err *err);
    /* May be NULL. `worker` is in [0, n_threads), for per-thread scratch. */
    int (*work)(void *ctx, unsigned worker, void *job, struct slu_err *err);
    int (*emit)(void *ctx, void *job, struct slu_err *err);
};

/* Runs the pipeline. jobs: n_jobs >= 1 slots, owned by the caller; n_threads >= 1.
 * Returns SLU_OK when all jobs that were produced have been emitted. */
SLU_MUST_USE int slu_pipe_run(const struct slu_pipe_ops *ops, void *ctx,
                              void *const *jobs, unsigned n_jobs, unsigned n_threads,
                              struct slu_err *err);

/* As slu_pipe_run. First sets *handle, for the functions below, until it returns. */
SLU_MUST_USE int slu_pipe_run_parts(const struct slu_pipe_ops *ops, void *ctx,
                                    void *const *jobs, unsigned n_jobs,
                                    unsigned n_threads, struct slu_pipe **handle,
                                    struct slu_err *err);

/* One job in parts. `part` runs once for each i < n; at most n_slot parts are begun and
 * not joined, and part i has slot i % n_slot to itself until it is joined. `join` runs
 * for each part in order, never two at once. Any worker may run both. After an error
 * the call ends when running parts have ended, with the error of the smallest i. */
struct slu_pipe_parts {
    size_t n;
    unsigned n_slot;
    void *arg;
    int (*part)(void *arg, unsigned worker, size_t i, struct slu_err *err);
    int (*join)(void *arg, size_t i, struct slu_err *err);
};

/* Called by `work`: returns when all parts are joined. Idle threads run parts too. */
SLU_MUST_USE int slu_pipe_share(struct slu_pipe *p, unsigned worker,
                                const struct slu_pipe_parts *parts,
                                struct slu_err *err);

/* Called by `produce` before it waits for input. When an error stops the run, or at
 * once if one has, any thread calls stopped(ctx) with the ctx of the run; produce
 * should then return, with any error. `stopped` must not wait, nor call the pipe. */
void slu_pipe_on_stop(struct slu_pipe *p, void (*stopped)(void *ctx));

#define SLU_PIPE_SLOT_BYTE (UINT64_C(8) << 20)

/* Called by `produce` before its job takes more than SLU_PIPE_SLOT_BYTE, and again as
 * it grows: reserves n_byte for the job until it has been emitted. Returns once all
 * jobs in flight together take no more than room_byte, or SLU_PIPE_SLOT_BYTE per slot
 * if that is more; or once no other job is in flight. */
void slu_pipe_take(struct slu_pipe *p, uint64_t n_byte, uint64_t room_byte);

/* Called by `produce`: returns once ready(arg) is true, and runs parts while it waits.
 * Only work, join and emit may change what ready depends on. ready must not call the
 * pipe. */
void slu_pipe_wait(struct slu_pipe *p, bool (*ready)(void *arg), void *arg);

SLU_END_DECLS

#endif
