/* cuda_private.h - shared by the .cu files: errors of the CUDA runtime as codes of
 * device.h, and a search by half a warp.
 */
#ifndef SLU_KERNELS_CUDA_PRIVATE_H
#define SLU_KERNELS_CUDA_PRIVATE_H

#include <cuda_runtime.h>
#include <stdint.h>

/* The runtime keeps an error until it is fetched, and the next launch would return it
 * again. So errors are fetched where they are detected. */
static inline int slu_cuda_code(cudaError_t e)
{
    if (e != cudaSuccess)
        (void)cudaGetLastError();
    return (int)e;
}

/* Returns the first i < n for which before(i) is false; n if there is none. `before` is
 * true for all i below. Each half of a warp searches for its own: all 32 lanes call,
 * with the same n, and with the same `before` in a half. 16 probes at once take a
 * quarter of the waits of a search in halves. */
template <typename F> __device__ static uint32_t slu_cuda_first(uint32_t n, F before)
{
    const unsigned half = threadIdx.x & 16;
    uint32_t lo = 0; /* the answer is in lo … lo + left */
    for (uint32_t left = n; left;) {
        uint32_t step = left / 16 + 1;
        unsigned long long i =
            lo + (unsigned long long)step * (threadIdx.x % 16 + 1) - 1;
        unsigned yes = __ballot_sync(0xffffffff, i < n && before((uint32_t)i));
        lo += step * (uint32_t)__popc(yes >> half & 0xffff);
        left = step - 1;
    }
    return lo;
}

#endif
