/* cuda_runtime.h - device code as C++ for the sanitizers (`make check-emu-san`): each
 * thread of a block is a thread of the processor. tests/emu/san/run turns <<<>>> into
 * calls of san_launch, and compiles kernels with this header in the place of CUDA's;
 * threads.cc has its functions.
 *
 * Blocks run one after another. Shared memory is static, so the sanitizers know its
 * bounds, and so is a block's; a read of what was never written is not seen, nor a race
 * of two blocks (the emulator sees both). Lanes of a warp meet only where the code says
 * so. Masks are full, but that of __activemask: the calling lane alone, which a device
 * may answer, too.
 */
#ifndef SLU_TESTS_EMU_SAN_H
#define SLU_TESTS_EMU_SAN_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)

struct san_place {
    unsigned x;
};
extern thread_local san_place threadIdx, blockIdx;
extern san_place blockDim, gridDim;
extern void *san_dynamic; /* shared memory of the size that the launch says */

typedef struct CUstream_st *cudaStream_t;
void san_launch(const std::function<void()> &kernel, unsigned grid, unsigned block,
                size_t dynamic_byte, cudaStream_t stream);

/* ---- what threads do together ---- */

void __syncthreads();
/* The value of each lane of the warp; all lanes call. */
struct san_values {
    uint64_t lane[32];
};
san_values san_exchange(unsigned mask, uint64_t mine);

static inline unsigned __ballot_sync(unsigned mask, bool yes)
{
    const san_values v = san_exchange(mask, yes);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; l++)
        bits |= (unsigned)v.lane[l] << l;
    return bits;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T mine, int from)
{
    return (T)san_exchange(mask, mine).lane[from % 32];
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T mine, int by)
{
    return (T)san_exchange(mask, mine).lane[(threadIdx.x % 32) ^ (unsigned)by];
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
    T *d_buffers[2] = {nullptr, nullptr};
    int selector = 0;
    DoubleBuffer() = default;
    DoubleBuffer(T *a, T *b) : d_buffers{a, b}
    {
    }
    T *Current()
    {
        return d_buffers[selector];
    }
};

struct DeviceRadixSort {
    /* The result is in the second buffers. */
    template <typename K, typename V>
    static cudaError_t SortPairsDescending(void *temp, size_t &temp_byte,
                                           DoubleBuffer<K> &key, DoubleBuffer<V> &value,
                                           unsigned long long n, int, int bits,
                                           cudaStream_t)
    {
        if (!temp) {
            temp_byte = 1;
            return cudaSuccess;
        }
        std::vector<size_t> order(n);
        for (size_t i = 0; i < n; i++)
            order[i] = i;
        const K *k = key.Current(), mask = (K) ~(K)0 >> (8 * sizeof(K) - bits);
        std::stable_sort(order.begin(), order.end(), [=](size_t a, size_t b) {
            return (k[a] & mask) > (k[b] & mask);
        });
        for (size_t i = 0; i < n; i++) {
            key.d_buffers[1][i] = k[order[i]];
            value.d_buffers[1][i] = value.Current()[order[i]];
        }
        key.selector = value.selector = 1;
        return cudaSuccess;
    }
};
} // namespace cub

#endif
