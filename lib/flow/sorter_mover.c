/* sorter_mover.c - the sorter's own thread: flushes, or loads and sorts, one half of
 * the arena while the other half is in use (see sorter.c). */
#include <stdlib.h>

#include "sorter_private.h"

static int do_task(struct slu_sorter *s, struct slu_task *t)
{
    int rc = SLU_OK;

    switch (t->kind) {
    case SLU_TASK_FLUSH:
        return slu_flush_entries(s, t->entry, t->n_entry, t->err);
    case SLU_TASK_LOAD:
        rc = slu_mover_wait_pins(s, t->arena, t->err);
        return rc ? rc : slu_load(s, t->arena, t->c0, t->c1, t->err);
    case SLU_TASK_SORT:
        slu_sort_groups(s, t->arena);
        return SLU_OK;
    }
    return rc;
}

static void *move(void *arg)
{
    struct slu_sorter *s = arg;
    struct slu_mover *m = s->mover;

    pthread_mutex_lock(&m->mu);
    for (;;) {
        if (m->n_todo == 0) {
            if (m->ended)
                break;
            pthread_cond_wait(&m->changed, &m->mu);
            continue;
        }
        struct slu_task *t = m->todo[0];
        bool skip = m->ended;
        pthread_mutex_unlock(&m->mu);
        int rc = skip ? SLU_OK : do_task(s, t);
        pthread_mutex_lock(&m->mu);
        t->rc = rc;
        t->busy = false;
        m->todo[0] = m->todo[1];
        m->n_todo--;
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->mu);
    return NULL;
}

bool slu_mover_start(struct slu_sorter *s)
{
    if (s->mover || s->no_mover)
        return s->mover;
    struct slu_mover *m = calloc(1, sizeof *m);
    s->no_mover = true;
    if (!m)
        return false;
    pthread_mutex_init(&m->mu, NULL);
    pthread_cond_init(&m->changed, NULL);
    s->mover = m;
    if (!slu_thread_start(&m->thread, move, s))
        return true;
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mu);
    free(m);
    s->mover = NULL;
    return false;
}

void slu_mover_submit(struct slu_sorter *s, struct slu_task *t)
{
    struct slu_mover *m = s->mover;

    t->rc = SLU_OK;
    t->err = &m->err[t == &s->task[1]];
    *t->err = (struct slu_err)SLU_ERR_INIT;
    pthread_mutex_lock(&m->mu);
    t->busy = true;
    m->todo[m->n_todo++] = t;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mu);
}

int slu_mover_wait(struct slu_sorter *s, struct slu_task *t, struct slu_err *err)
{
    if (!s->mover)
        return SLU_OK;
    pthread_mutex_lock(&s->mover->mu);
    while (t->busy)
        pthread_cond_wait(&s->mover->changed, &s->mover->mu);
    pthread_mutex_unlock(&s->mover->mu);
    int rc = t->rc;
    t->rc = SLU_OK;
    if (rc && err)
        *err = *t->err;
    return rc;
}

int slu_mover_wait_pins(struct slu_sorter *s, struct slu_arena *a, struct slu_err *err)
{
    struct slu_mover *m = s->mover;

    if (!m)
        return SLU_OK;
    pthread_mutex_lock(&m->mu);
    while (!m->stopped && !m->ended &&
           (a ? a->n_pin : s->whole.n_pin + s->half[0].n_pin + s->half[1].n_pin))
        pthread_cond_wait(&m->changed, &m->mu);
    bool stopped = m->stopped || m->ended;
    pthread_mutex_unlock(&m->mu);
    return stopped ? slu_fail(err, SLU_E_IO, "stopped") : SLU_OK;
}

struct slu_arena *slu_sorter_pin(struct slu_sorter *s)
{
    if (!s->mover)
        return NULL;
    pthread_mutex_lock(&s->mover->mu);
    s->a->n_pin++;
    pthread_mutex_unlock(&s->mover->mu);
    return s->a;
}

void slu_sorter_unpin(struct slu_sorter *s, struct slu_arena *pin)
{
    pthread_mutex_lock(&s->mover->mu);
    if (--pin->n_pin == 0)
        pthread_cond_broadcast(&s->mover->changed);
    pthread_mutex_unlock(&s->mover->mu);
}

void slu_sorter_stop(struct slu_sorter *s)
{
    if (!s->mover)
        return;
    pthread_mutex_lock(&s->mover->mu);
    s->mover->stopped = true;
    pthread_cond_broadcast(&s->mover->changed);
    pthread_mutex_unlock(&s->mover->mu);
}

void slu_mover_free(struct slu_sorter *s)
{
    struct slu_mover *m = s->mover;

    if (m) {
        pthread_mutex_lock(&m->mu);
        m->ended = true;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->mu);
        pthread_join(m->thread, NULL);
        pthread_cond_destroy(&m->changed);
        pthread_mutex_destroy(&m->mu);
        free(m);
        s->mover = NULL;
    }
    slu_spill_queue_free(s->queue);
    s->queue = NULL;
}
