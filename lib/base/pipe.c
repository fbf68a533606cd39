#include "pipe.h"
#include "thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum state { FREE, WAITING, WORKING, DONE };

struct slot {
    void *job;
    enum state state;
    uint64_t n_byte; /* memory of the job in flight, at least SLU_PIPE_SLOT_BYTE */
    int rc;          /* of produce or work */
    struct slu_err err;
};

/* A job that is being worked on in parts; on the stack of the thread that shares it. */
struct share {
    const struct slu_pipe_parts *parts;
    size_t next, joined; /* parts begun, and joined: joined <= next */
    bool *done;          /* by slot: its part has been made, but not joined */
    unsigned running;    /* threads in part or join */
    bool joining;
    size_t failed; /* the smallest i with an error, or SIZE_MAX */
    int rc;
    struct slu_err err;
    struct share *next_share;
};

struct slu_pipe {
    const struct slu_pipe_ops *ops;
    void *ctx;
    struct slot *slot; /* job n is in slot n % n_slot */
    unsigned n_slot;
    unsigned n_threads;   /* threads that run */
    unsigned producer;    /* the worker that produces */
    struct share *shares; /* the oldest first */
    pthread_mutex_t mu;
    pthread_cond_t changed;
    uint64_t next_made, next_worked, next_emitted;
    uint64_t n_byte, room_byte; /* memory that jobs in flight take, and may take */
    bool producing, emitting;
    bool ended; /* produce returned SLU_EOF or failed: no more jobs come */
    void (*on_stop)(void *ctx);
    bool stopped; /* an error was reached in order: all threads return */
    int rc;
    struct slu_err err;
};

static struct slot *at(struct slu_pipe *p, uint64_t n)
{
    return &p->slot[n % p->n_slot];
}

/* The three steps. They are called with the lock held; it is released meanwhile. */

static void stop(struct slu_pipe *p, int rc, const struct slu_err *err)
{
    p->rc = rc;
    p->err = *err;
    p->stopped = true;
    if (p->on_stop)
        p->on_stop(p->ctx);
}

static void emit(struct slu_pipe *p, struct slot *s)
{
    if (s->rc) {
        stop(p, s->rc, &s->err);
        return;
    }
    p->emitting = true;
    pthread_mutex_unlock(&p->mu);
    struct slu_err err = SLU_ERR_INIT;
    int rc = p->ops->emit(p->ctx, s->job, &err);
    pthread_mutex_lock(&p->mu);
    p->emitting = false;
    s->state = FREE;
    p->n_byte -= s->n_byte;
    p->next_emitted++;
    if (rc)
        stop(p, rc, &err);
}

static void work(struct slu_pipe *p, unsigned worker, struct slot *s)
{
    s->state = WORKING;
    p->next_worked++;
    if (p->ops->work && !s->rc) {
        pthread_mutex_unlock(&p->mu);
        s->rc = p->ops->work(p->ctx, worker, s->job, &s->err);
        pthread_mutex_lock(&p->mu);
    }
    s->state = DONE;
}

static void produce(struct slu_pipe *p, unsigned worker, struct slot *s)
{
    p->producing = true;
    p->producer = worker;
    s->n_byte = SLU_PIPE_SLOT_BYTE;
    p->n_byte += s->n_byte;
    pthread_mutex_unlock(&p->mu);
    struct slu_err err = SLU_ERR_INIT;
    int rc = p->ops->produce(p->ctx, s->job, &err);
    pthread_mutex_lock(&p->mu);
    p->producing = false;
    if (rc == SLU_EOF) {
        p->n_byte -= s->n_byte;
        p->ended = true;
        return;
    }
    s->rc = rc;
    s->err = err;
    s->state = WAITING; /* an error of produce waits for its turn like a job */
    p->next_made++;
    p->ended |= rc != 0;
}

/* ---- jobs in parts ---- */

static void part_failed(struct share *h, size_t i, int rc, const struct slu_err *err)
{
    if (i >= h->failed)
        return;
    h->failed = i;
    h->rc = rc;
    h->err = *err;
}

static bool can_join(const struct share *h)
{
    return !h->joining && h->joined < h->failed && h->joined < h->next &&
           h->done[h->joined % h->parts->n_slot];
}

static bool can_make(const struct share *h)
{
    return h->next < h->parts->n && h->failed == SIZE_MAX &&
           h->next - h->joined < h->parts->n_slot;
}

/* Makes or joins one part of h. Called with the lock held, which is released meanwhile.
 * False: neither is possible now. */
static bool step(struct slu_pipe *p, unsigned worker, struct share *h)
{
    const struct slu_pipe_parts *parts = h->parts;
    struct slu_err err = SLU_ERR_INIT;
    bool join = can_join(h);
    if (!join && !can_make(h))
        return false;
    size_t i = join ? h->joined : h->next++;
    h->joining |= join;
    h->running++;
    pthread_mutex_unlock(&p->mu);
    int rc = join ? parts->join(parts->arg, i, &err)
                  : parts->part(parts->arg, worker, i, &err);
    pthread_mutex_lock(&p->mu);
    h->running--;
    h->done[i % parts->n_slot] = !join;
    if (join) {
        h->joining = false;
        h->joined++;
    }
    if (rc)
        part_failed(h, i, rc, &err);
    pthread_cond_broadcast(&p->changed);
    return true;
}

static bool help(struct slu_pipe *p, unsigned worker)
{
    for (struct share *h = p->shares; h; h = h->next_share)
        if (step(p, worker, h))
            return true;
    return false;
}

static bool share_ended(const struct share *h)
{
    return !h->running && !can_join(h) && !can_make(h);
}

int slu_pipe_share(struct slu_pipe *p, unsigned worker,
                   const struct slu_pipe_parts *parts, struct slu_err *err)
{
    struct share h = {.parts = parts, .failed = SIZE_MAX}, **at_end;
    h.done = calloc(parts->n_slot, sizeof *h.done);
    if (!h.done)
        return slu_fail_nomem(err, parts->n_slot);
    pthread_mutex_lock(&p->mu);
    for (at_end = &p->shares; *at_end;)
        at_end = &(*at_end)->next_share;
    *at_end = &h;
    pthread_cond_broadcast(&p->changed);
    while (!share_ended(&h))
        if (!step(p, worker, &h))
            pthread_cond_wait(&p->changed, &p->mu);
    for (at_end = &p->shares; *at_end != &h;)
        at_end = &(*at_end)->next_share;
    *at_end = h.next_share;
    pthread_mutex_unlock(&p->mu);
    free(h.done);
    if (h.rc && err)
        *err = h.err;
    return h.rc;
}

void slu_pipe_on_stop(struct slu_pipe *p, void (*stopped)(void *ctx))
{
    pthread_mutex_lock(&p->mu);
    p->on_stop = stopped;
    if (p->stopped)
        stopped(p->ctx);
    pthread_mutex_unlock(&p->mu);
}

void slu_pipe_take(struct slu_pipe *p, uint64_t n_byte, uint64_t room_byte)
{
    pthread_mutex_lock(&p->mu);
    struct slot *s = at(p, p->next_made);
    uint64_t more = n_byte > s->n_byte ? n_byte - s->n_byte : 0;
    if (room_byte > p->room_byte)
        p->room_byte = room_byte;
    while (more && p->n_byte > s->n_byte && p->n_byte + more > p->room_byte &&
           !p->stopped)
        if (!help(p, p->producer))
            pthread_cond_wait(&p->changed, &p->mu);
    s->n_byte += more;
    p->n_byte += more;
    pthread_mutex_unlock(&p->mu);
}

void slu_pipe_wait(struct slu_pipe *p, bool (*ready)(void *arg), void *arg)
{
    pthread_mutex_lock(&p->mu);
    while (!ready(arg))
        if (!help(p, p->producer))
            pthread_cond_wait(&p->changed, &p->mu);
    pthread_mutex_unlock(&p->mu);
}

/* ---- the threads ---- */

static void run(struct slu_pipe *p, unsigned worker)
{
    pthread_mutex_lock(&p->mu);
    while (!p->stopped) {
        struct slot *out = at(p, p->next_emitted), *in = at(p, p->next_made);
        uint64_t waiting = p->next_made - p->next_worked;
        bool can_produce = !p->producing && !p->ended && in->state == FREE &&
                           p->next_made - p->next_emitted < p->n_slot &&
                           p->n_byte + SLU_PIPE_SLOT_BYTE <= p->room_byte;
        if (!p->emitting && p->next_emitted < p->next_made && out->state == DONE) {
            emit(p, out);
        } else if (help(p, worker)) {
            continue;
        } else if (can_produce &&
                   (waiting == 0 || (waiting == 1 && p->n_threads > 1))) {
            produce(p, worker, in);
        } else if (waiting > 0) {
            work(p, worker, at(p, p->next_worked));
        } else if (p->ended && !p->producing && p->next_emitted == p->next_made) {
            break;
        } else {
            pthread_cond_wait(&p->changed, &p->mu);
            continue;
        }
        pthread_cond_broadcast(&p->changed);
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mu);
}

struct helper {
    struct slu_pipe *p;
    unsigned worker;
    pthread_t thread;
};

static void *run_helper(void *arg)
{
    struct helper *h = arg;
    run(h->p, h->worker);
    return NULL;
}

int slu_pipe_run(const struct slu_pipe_ops *ops, void *ctx, void *const *jobs,
                 unsigned n_jobs, unsigned n_threads, struct slu_err *err)
{
    struct slu_pipe *handle;
    return slu_pipe_run_parts(ops, ctx, jobs, n_jobs, n_threads, &handle, err);
}

int slu_pipe_run_parts(const struct slu_pipe_ops *ops, void *ctx, void *const *jobs,
                       unsigned n_jobs, unsigned n_threads, struct slu_pipe **handle,
                       struct slu_err *err)
{
    struct slu_pipe p = {.ops = ops, .ctx = ctx, .n_threads = 1};
    /* A single thread has one job in flight: others would only take memory, and their
     * turns the processor's cache. */
    p.n_slot = n_threads > 1 ? n_jobs : 1;
    p.room_byte = p.n_slot * SLU_PIPE_SLOT_BYTE;
    unsigned started = 0;
    p.slot = calloc(p.n_slot, sizeof *p.slot);
    struct helper *h = calloc(n_threads, sizeof *h);
    if (!p.slot || !h) {
        free(p.slot);
        free(h);
        return slu_fail_nomem(err, n_jobs * sizeof *p.slot + n_threads * sizeof *h);
    }
    for (unsigned i = 0; i < p.n_slot; i++)
        p.slot[i].job = jobs[i];
    pthread_mutex_init(&p.mu, NULL);
    pthread_cond_init(&p.changed, NULL);
    *handle = &p;
    for (unsigned i = 1; i < n_threads; i++) {
        h[i] = (struct helper){.p = &p, .worker = i};
        if (slu_thread_start(&h[i].thread, run_helper, &h[i]))
            break; /* fewer threads, the same result */
        started = i;
        pthread_mutex_lock(&p.mu);
        p.n_threads++;
        pthread_mutex_unlock(&p.mu);
    }
    run(&p, 0);
    for (unsigned i = 1; i <= started; i++)
        pthread_join(h[i].thread, NULL);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.mu);
    free(h);
    free(p.slot);
    if (p.rc && err)
        *err = p.err;
    return p.rc;
}
