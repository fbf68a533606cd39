#include "lib/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static _Thread_local struct slu_thread_time *counted_in;

struct begin {
    void *(*run)(void *);
    void *arg;
    struct slu_thread_time *in;
};

static uint64_t own_ns(void)
{
    struct timespec t = {0, 0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *run_counted(void *arg)
{
    const struct begin b = *(struct begin *)arg;

    free(arg);
    counted_in = b.in;
    void *result = b.run(b.arg);
    b.in->ended_ns += own_ns();
    return result;
}

int slu_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    if (!counted_in)
        return pthread_create(thread, NULL, run, arg);
    struct begin *b = malloc(sizeof *b);
    if (!b)
        return ENOMEM;
    *b = (struct begin){run, arg, counted_in};
    const int rc = pthread_create(thread, NULL, run_counted, b);
    if (rc)
        free(b);
    return rc;
}

void slu_thread_count(struct slu_thread_time *t)
{
    counted_in = t;
}

double slu_thread_seconds(const struct slu_thread_time *t)
{
    return 1e-9 * (double)(t->ended_ns + own_ns());
}
