#include "histogram.h"

#include <cuda_runtime.h>

/* Lengths are skewed towards the short ones, where additions would collide: those are
 * counted in shared memory, one table a block, and reach the global table once. */
static const unsigned NEAR = 4096;

__global__ static void histogram(const unsigned long long *len, size_t n,
                                 unsigned long long *count, size_t n_bin)
{
    __shared__ unsigned near[NEAR];
    for (unsigned v = threadIdx.x; v < NEAR; v += blockDim.x)
        near[v] = 0;
    __syncthreads();
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        unsigned long long v = len[i];
        if (v >= n_bin)
            continue;
        if (v < NEAR)
            atomicAdd(&near[v], 1u);
        else
            atomicAdd(&count[v], 1ull);
    }
    __syncthreads();
    for (unsigned v = threadIdx.x; v < NEAR && v < n_bin; v += blockDim.x)
        if (near[v])
            atomicAdd(&count[v], (unsigned long long)near[v]);
}

extern "C" size_t slu_histogram_cuda_work(size_t n, size_t n_bin)
{
    (void)n;
    (void)n_bin;
    return 0;
}

extern "C" int slu_histogram_cuda(const uint64_t *len, size_t n, uint64_t *count,
                                  size_t n_bin, void *work, size_t work_byte,
                                  void *stream)
{
    (void)work;
    (void)work_byte;
    const unsigned threads = 256;
    /* A block's table is 32 bits wide: no launch may give one block 2^32 lengths. */
    const size_t most = (size_t)1 << 31;
    for (size_t at = 0; at < n; at += most) {
        size_t m = n - at < most ? n - at : most;
        size_t blocks = (m + threads * 16 - 1) / (threads * 16);
        histogram<<<(unsigned)(blocks < 1056 ? blocks : 1056), threads, 0,
                    (cudaStream_t)stream>>>((const unsigned long long *)len + at, m,
                                            (unsigned long long *)count, n_bin);
        cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess)
            return (int)e;
    }
    return 0;
}
