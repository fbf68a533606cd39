/* cuda_runtime.h - device code as C++ for the sanitizers (`make check-emu-san`): each
 * thread of a block is a fiber, all of them on one thread of the processor.
 * tests/emu/san/run turns <<<>>> into calls of san_launch and __shared__ into
 * references to a block's memory, and compiles kernels with this header in the place of
 * CUDA's; fibers.cc has its functions.
 *
 * A fiber runs until it waits for others; which goes on then is drawn (SLU_EMU_SEED),
 * and so is the order of blocks. Since a race is two accesses without an order, TSan
 * sees one of two threads, or of two blocks, though nothing runs at once. __syncthreads
 * orders; atomics and what lanes tell one another do not. A read of what was never
 * written is not seen (the emulator sees it). Masks are full, but that of __activemask:
 * the calling lane alone, which a device may answer, too.
 */
#ifndef SLU_TESTS_EMU_SAN_H
#define SLU_TESTS_EMU_SAN_H

#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __launch_bounds__(n)

struct san_place {
    unsigned x;
};
extern san_place threadIdx, blockIdx, blockDim, gridDim;
extern void *san_dynamic; /* shared memory of the size that the launch says */

/* Shared memory of the block for the variable declared at `site` of the source. */
void *san_shared_at(unsigned site, size_t n_byte);
template <typename T> static inline T &san_shared(unsigned site)
{
    return *(T *)san_shared_at(site, sizeof(T));
}

typedef struct CUstream_st *cudaStream_t;
void san_run(void (*call)(const void *), const void *kernel, unsigned grid,
             unsigned block, size_t dynamic_byte);
template <typename F>
static inline void san_launch(F kernel, unsigned grid, unsigned block,
                              size_t dynamic_byte, cudaStream_t)
{
    san_run([](const void *k) { (*(const F *)k)(); }, &kernel, grid, block,
            dynamic_byte);
}

/* ---- what threads do together ---- */

void __syncthreads();
/* The values of the warp's lanes, until its next but one exchange; all lanes call. */
const uint64_t *san_exchange(unsigned mask, uint64_t mine);

static inline unsigned __ballot_sync(unsigned mask, bool yes)
{
    const uint64_t *lane = san_exchange(mask, yes);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; l++)
        bits |= (unsigned)lane[l] << l;
    return bits;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T mine, int from)
{
    return (T)san_exchange(mask, mine)[from % 32];
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T mine, int by)
{
    return (T)san_exchange(mask, mine)[(threadIdx.x % 32) ^ (unsigned)by];
}
static inline unsigned __activemask()
{
    return 1u << threadIdx.x % 32;
}
static inline unsigned __match_any_sync(unsigned mask, unsigned)
{
    return mask; /* that of __activemask */
}
template <typename T> static inline T atomicAdd(T *p, T n)
{
    return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

/* ---- what a thread does alone ---- */

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}
template <typename T> static inline void __stcs(T *p, T v)
{
    *p = v;
}
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __clz(unsigned v)
{
    return v ? __builtin_clz(v) : 32;
}
static inline int __ffs(unsigned v)
{
    return __builtin_ffs((int)v);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned bits)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) >> bits % 32);
}
static inline unsigned __vcmpeq2(unsigned a, unsigned b)
{
    const unsigned x = a ^ b;
    return (x & 0xffff ? 0 : 0xffffu) | (x >> 16 ? 0 : 0xffff0000u);
}
static inline uint64_t __umul64hi(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
}

/* ---- the runtime, as far as kernels ask it ---- */

enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorUnknown };
enum { cudaDevAttrMultiProcessorCount, cudaFuncAttributeMaxDynamicSharedMemorySize };
enum { cudaMemcpyDeviceToDevice };

static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *v, int, int)
{
    *v = 2; /* few, so that blocks loop */
    return cudaSuccess;
}
template <typename K> static inline cudaError_t cudaFuncSetAttribute(K, int, int)
{
    return cudaSuccess;
}
template <typename K>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, K, int,
                                                                        size_t)
{
    *n = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t)
{
    memset(p, v, n);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, int,
                                          cudaStream_t)
{
    memmove(to, from, n);
    return cudaSuccess;
}

/* ---- CUB's sort, which is not ours to check ---- */

namespace cub
{
template <typename T> struct DoubleBuffer {
    T *buffer[2] = {nullptr, nullptr};
    int selector = 0;
    DoubleBuffer() = default;
    DoubleBuffer(T *a, T *b) : buffer{a, b}
    {
    }
    T *Current()
    {
        return buffer[selector];
    }
};

struct DeviceRadixSort {
    /* By one bit at a time, the lowest first. */
    template <typename K, typename V>
    static cudaError_t SortPairsDescending(void *temp, size_t &temp_byte,
                                           DoubleBuffer<K> &key, DoubleBuffer<V> &value,
                                           unsigned long long n, int begin, int end,
                                           cudaStream_t)
    {
        temp_byte = temp ? temp_byte : 1;
        for (int bit = begin; temp && bit < end; bit++) {
            const K *k = key.Current();
            const V *v = value.Current();
            key.selector = value.selector = !key.selector;
            size_t at = 0;
            for (K one = 2; one--;)
                for (size_t i = 0; i < n; i++)
                    if ((k[i] >> bit & 1) == one) {
                        key.Current()[at] = k[i];
                        value.Current()[at++] = v[i];
                    }
        }
        return cudaSuccess;
    }
};
} // namespace cub

#endif
