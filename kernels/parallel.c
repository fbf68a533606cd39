#include "parallel.h"

#include <pthread.h>
#include <stdbool.h>

#define MOST 256

struct part {
    void (*run)(void *arg, unsigned i);
    void *arg;
    unsigned i;
    bool started;
    pthread_t thread;
};

static void *run(void *p)
{
    struct part *part = p;
    part->run(part->arg, part->i);
    return NULL;
}

void slu_kernel_parallel(unsigned n, void (*part)(void *arg, unsigned i), void *arg)
{
    struct part other[MOST];
    unsigned n_other = n == 0 ? 0 : n - 1 < MOST ? n - 1 : MOST;
    for (unsigned k = 0; k < n_other; k++) {
        other[k] = (struct part){.run = part, .arg = arg, .i = k + 1};
        other[k].started = pthread_create(&other[k].thread, NULL, run, &other[k]) == 0;
    }
    if (n)
        part(arg, 0);
    for (unsigned i = n_other + 1; i < n; i++)
        part(arg, i);
    for (unsigned k = 0; k < n_other; k++)
        if (other[k].started)
            pthread_join(other[k].thread, NULL);
        else
            part(arg, k + 1);
}
