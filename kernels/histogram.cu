#include "histogram.h"

#include <cuda_runtime.h>

#include "cuda_private.h"

/* Each block counts in its own table in shared memory, for as many short lengths as
 * fit, and adds this table to the global one once. For longer lengths, lanes with the
 * same length add once for all of them: documents that were cut make a peak at the
 * longest length. */
static const unsigned THREADS = 512;
static const unsigned PER_THREAD = 4;      /* loads in flight */
static const unsigned LEAST_LENGTHS = 512; /* of a block, so that few lengths are work
                                              for all multiprocessors */
static const unsigned ALIGNED = 32;        /* lengths of 128 bytes: shares begin so */
static const unsigned MOST_BINS = 24576;   /* of a block: 96 KiB, so that two fit */
static const size_t MOST_LENGTHS = (size_t)1
                                   << 31; /* for one launch, because blocks count in
                                             32 bits */

__device__ static void count_one(unsigned v, unsigned *near, unsigned n_near,
                                 unsigned long long *count, size_t n_bin)
{
    if (v < n_near) {
        atomicAdd(&near[v], 1u);
    } else if (v < n_bin) {
        unsigned same = __match_any_sync(__activemask(), v);
        unsigned lane = threadIdx.x % 32;
        if (lane == (unsigned)__ffs((int)same) - 1)
            atomicAdd(&count[v], (unsigned long long)__popc(same));
    }
}

__global__ static void __launch_bounds__(THREADS)
    histogram(const unsigned *len, size_t n, size_t share, unsigned long long *count,
              size_t n_bin, unsigned n_near)
{
    extern __shared__ unsigned near[];
    for (unsigned v = threadIdx.x; v < n_near; v += THREADS)
        near[v] = 0;
    __syncthreads();
    const size_t tile = (size_t)THREADS * PER_THREAD, begin = blockIdx.x * share;
    const size_t end = begin + share < n ? begin + share : n;
    for (size_t base = begin; base < end; base += tile) {
        size_t i = base + threadIdx.x;
        if (base + tile <= end) {
            unsigned v[PER_THREAD];
#pragma unroll
            for (unsigned k = 0; k < PER_THREAD; k++)
                v[k] = __ldg(&len[i + k * THREADS]);
#pragma unroll
            for (unsigned k = 0; k < PER_THREAD; k++)
                count_one(v[k], near, n_near, count, n_bin);
        } else {
            for (; i < end; i += THREADS)
                count_one(len[i], near, n_near, count, n_bin);
        }
    }
    __syncthreads();
    for (unsigned v = threadIdx.x; v < n_near; v += THREADS)
        if (near[v])
            atomicAdd(&count[v], (unsigned long long)near[v]);
}

/* Number of blocks that run at once with n_near bins each. */
static cudaError_t shape(unsigned n_near, size_t *most_blocks)
{
    size_t n_byte = n_near * sizeof(unsigned);
    int device, sm = 0, per_sm = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sm, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(histogram, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)(MOST_BINS * sizeof(unsigned)));
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, histogram,
                                                          (int)THREADS, n_byte);
    *most_blocks = (size_t)sm * (per_sm > 0 ? per_sm : 1);
    return e;
}

extern "C" int slu_histogram_cuda(const uint32_t *len, size_t n, uint64_t *count,
                                  size_t n_bin, void *stream)
{
    unsigned n_near = (unsigned)(n_bin < MOST_BINS ? n_bin : MOST_BINS);
    size_t most_blocks;
    if (n == 0 || n_bin == 0)
        return 0;
    cudaError_t e = shape(n_near, &most_blocks);
    for (size_t at = 0; at < n && e == cudaSuccess; at += MOST_LENGTHS) {
        size_t m = n - at < MOST_LENGTHS ? n - at : MOST_LENGTHS;
        size_t blocks = (m + LEAST_LENGTHS - 1) / LEAST_LENGTHS;
        blocks = blocks < most_blocks ? blocks : most_blocks;
        size_t share = ((m + blocks - 1) / blocks + ALIGNED - 1) / ALIGNED * ALIGNED;
        blocks = (m + share - 1) / share;
        histogram<<<(unsigned)blocks, THREADS, n_near * sizeof(unsigned),
                    (cudaStream_t)stream>>>((const unsigned *)len + at, m, share,
                                            (unsigned long long *)count, n_bin, n_near);
        e = cudaGetLastError();
    }
    return slu_cuda_code(e);
}
