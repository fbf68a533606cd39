/* parallel.h - a few threads for the CPU twins of kernels. Private to kernels/. */
#ifndef SLU_KERNELS_PARALLEL_H
#define SLU_KERNELS_PARALLEL_H

#include <stddef.h>

/* Calls part(arg, i) for each i in 0 … n-1, side by side, and returns when all have.
 * Where a thread cannot be had its part runs on the calling one. */
void slu_kernel_parallel(unsigned n, void (*part)(void *arg, unsigned i), void *arg);

/* The first of n things that is part i's, of parts as even as can be. */
static inline size_t slu_kernel_share(size_t n, unsigned i, unsigned parts)
{
    return n / parts * i + (n % parts < i ? n % parts : i);
}

#endif
