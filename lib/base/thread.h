/* thread.h - threads whose processor time is known for each program of a process: `sluice
 * run` has several programs in one.
 *
 * Thread safety: all functions may be called from any thread.
 */
#ifndef SLU_THREAD_H
#define SLU_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "err.h"

SLU_BEGIN_DECLS

/* Nanoseconds of processor time of threads that have ended. Starts as {0}. */
struct slu_thread_time {
    _Atomic uint64_t ended_ns;
};

/* As pthread_create, with default attributes: returns 0 or an errno. The thread is counted
 * where the caller is. */
SLU_MUST_USE int slu_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
/* Counts this thread, and those that it starts from now on, in *t. NULL: nowhere. */
void slu_thread_count(struct slu_thread_time *t);
/* The time of this thread, and of those that have ended and were counted in *t. */
double slu_thread_seconds(const struct slu_thread_time *t);

SLU_END_DECLS

#endif
