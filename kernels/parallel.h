/* parallel.h - a few threads for the CPU versions of kernels. Private to kernels/. */
#ifndef SLU_KERNELS_PARALLEL_H
#define SLU_KERNELS_PARALLEL_H

#include <stddef.h>

/* Calls part(arg, i) for each i in 0 … n-1, in parallel, and returns when all calls
 * have returned. If a thread cannot be started, the calling thread runs its part. */
void slu_kernel_parallel(unsigned n, void (*part)(void *arg, unsigned i), void *arg);

/* The first of n things in part i, for parts of equal size. */
static inline size_t slu_kernel_share(size_t n, unsigned i, unsigned parts)
{
    return n / parts * i + (n % parts < i ? n % parts : i);
}

#endif
