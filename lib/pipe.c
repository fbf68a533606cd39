#include "pipe.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum state { FREE, WAITING, WORKING, DONE };

struct slot {
    void *job;
    enum state state;
    uint64_t number;
    int rc; /* of produce or work */
    struct slu_err err;
};

struct pipe {
    const struct slu_pipe_ops *ops;
    void *ctx;
    struct slot *slot; /* job n is in slot n % n_slot */
    unsigned n_slot;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    uint64_t next_made, next_worked, next_emitted;
    bool producing, emitting;
    bool ended;   /* produce said SLU_EOF or failed: nothing more comes */
    bool stopped; /* a fault was reached in order: everybody goes home */
    int rc;
    struct slu_err err;
};

static struct slot *at(struct pipe *p, uint64_t n)
{
    return &p->slot[n % p->n_slot];
}

/* The three steps. Called with the lock held; they give it up while they run. */

static void stop(struct pipe *p, int rc, const struct slu_err *err)
{
    p->rc = rc;
    p->err = *err;
    p->stopped = true;
}

static void emit(struct pipe *p, struct slot *s)
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
    p->next_emitted++;
    if (rc)
        stop(p, rc, &err);
}

static void work(struct pipe *p, unsigned worker, struct slot *s)
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

static void produce(struct pipe *p, struct slot *s)
{
    p->producing = true;
    pthread_mutex_unlock(&p->mu);
    struct slu_err err = SLU_ERR_INIT;
    int rc = p->ops->produce(p->ctx, s->job, &err);
    pthread_mutex_lock(&p->mu);
    p->producing = false;
    if (rc == SLU_EOF) {
        p->ended = true;
        return;
    }
    s->rc = rc;
    s->err = err;
    s->state = WAITING; /* a fault of produce takes its turn like a job */
    p->next_made++;
    p->ended |= rc != 0;
}

static void run(struct pipe *p, unsigned worker)
{
    pthread_mutex_lock(&p->mu);
    while (!p->stopped) {
        struct slot *out = at(p, p->next_emitted), *in = at(p, p->next_made);
        if (!p->emitting && p->next_emitted < p->next_made && out->state == DONE) {
            emit(p, out);
        } else if (p->next_worked < p->next_made) {
            work(p, worker, at(p, p->next_worked));
        } else if (!p->producing && !p->ended && in->state == FREE &&
                   p->next_made - p->next_emitted < p->n_slot) {
            produce(p, in);
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
    struct pipe *p;
    unsigned worker;
    pthread_t thread;
};

static void *help(void *arg)
{
    struct helper *h = arg;
    run(h->p, h->worker);
    return NULL;
}

int slu_pipe_run(const struct slu_pipe_ops *ops, void *ctx, void *const *jobs,
                 unsigned n_jobs, unsigned n_threads, struct slu_err *err)
{
    struct pipe p = {.ops = ops, .ctx = ctx, .n_slot = n_jobs};
    unsigned started = 0;
    p.slot = calloc(n_jobs, sizeof *p.slot);
    struct helper *h = calloc(n_threads, sizeof *h);
    if (!p.slot || !h) {
        free(p.slot);
        free(h);
        return slu_fail_nomem(err, n_jobs * sizeof *p.slot + n_threads * sizeof *h);
    }
    for (unsigned i = 0; i < n_jobs; i++)
        p.slot[i].job = jobs[i];
    pthread_mutex_init(&p.mu, NULL);
    pthread_cond_init(&p.changed, NULL);
    for (unsigned i = 1; i < n_threads; i++) {
        h[i] = (struct helper){.p = &p, .worker = i};
        if (pthread_create(&h[i].thread, NULL, help, &h[i]))
            break; /* fewer threads, the same result */
        started = i;
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
