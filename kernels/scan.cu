#include "scan.h"

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

/* One pass over the ids. They are cut into tiles; a block of threads turns a tile into
 * bits in shared memory, one an id, and counts the documents that lie between two bits
 * of the tile, the short ones in shared memory, too. Of each tile its first and last
 * EOS are kept (8 bytes for 32 KiB of ids); the documents over the borders of tiles
 * follow from a running maximum over those, so that no block of threads waits for
 * another.
 */
static const unsigned THREADS = 256;
static const unsigned VECTORS = 8; /* of 16 bytes, a thread and tile: reads under way */
static const unsigned PER_TILE = THREADS * VECTORS;
static const unsigned WORDS = PER_TILE / 4; /* bits of a tile, one byte a vector */
static const unsigned NEAR = 4096;

struct eos_max {
    __host__ __device__ unsigned operator()(unsigned a, unsigned b) const
    {
        return a > b ? a : b;
    }
};

struct eos_counts {
    unsigned long long *count; /* n_bin of them */
    size_t n_bin;
    unsigned long long *far;
    slu_eos_block *block;
};

__device__ static void add_far(const eos_counts &c, unsigned long long len)
{
    if (len < c.n_bin)
        atomicAdd(&c.count[len], 1ull);
    else
        c.far[atomicAdd((unsigned long long *)&c.block->n_far, 1ull)] = len;
}

/* One bit an id of the 16 bytes at x, the first id lowest: 8 of two bytes. */
__device__ static unsigned match(uint4 x, unsigned eos, unsigned short)
{
    const unsigned word[4] = {x.x, x.y, x.z, x.w};
    const unsigned both = eos | eos << 16;
    unsigned m = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        unsigned c = __vcmpeq2(word[k], both); /* 0xffff where the halves are equal */
        m |= ((c & 1) | (c >> 15 & 2)) << 2 * k;
    }
    return m;
}

/* 4 of four bytes. */
__device__ static unsigned match(uint4 x, unsigned eos, unsigned)
{
    return (x.x == eos) | (x.y == eos) << 1 | (x.z == eos) << 2 | (x.w == eos) << 3;
}

/* The bits of vector v: past the n ids there are none. */
template <class T>
__device__ static unsigned bits_of(const T *tok, size_t n, size_t v, unsigned eos)
{
    const unsigned per = 16 / sizeof(T);
    size_t at = v * per;
    if (at + per <= n)
        return match(__ldg((const uint4 *)tok + v), eos, (T)0);
    unsigned m = 0;
    for (unsigned k = 0; at + k < n; k++)
        m |= (unsigned)(tok[at + k] == (T)eos) << k;
    return m;
}

/* first[t], last[t]: 1 + the index of tile t's first and last EOS, 0: none. */
template <class T>
__global__ static void __launch_bounds__(THREADS)
    scan_tiles(const T *tok, size_t n, unsigned eos, unsigned n_tile, eos_counts c,
               unsigned *first, unsigned *last)
{
    const unsigned per = 16 / sizeof(T);
    __shared__ unsigned near[NEAR];
    __shared__ unsigned word[WORDS];
    __shared__ unsigned tile_first, tile_last, n_eos;
    unsigned my_eos = 0, ones = 0;

    for (unsigned v = threadIdx.x; v < NEAR; v += THREADS)
        near[v] = 0;
    if (threadIdx.x == 0) {
        n_eos = 0;
        tile_first = ~0u;
        tile_last = 0;
    }
    for (unsigned tile = blockIdx.x; tile < n_tile; tile += gridDim.x) {
        const size_t vector = (size_t)tile * PER_TILE;
        const unsigned begin = tile * (PER_TILE * per); /* < 2^31, as n is */
        unsigned char *byte = (unsigned char *)word;
        if ((vector + PER_TILE) * per <=
            n) { /* all reads first, then what they bring */
            uint4 x[VECTORS];
#pragma unroll
            for (unsigned j = 0; j < VECTORS; j++)
                x[j] = __ldg((const uint4 *)tok + vector + j * THREADS + threadIdx.x);
#pragma unroll
            for (unsigned j = 0; j < VECTORS; j++)
                byte[j * THREADS + threadIdx.x] = (unsigned char)match(x[j], eos, (T)0);
        } else {
            for (unsigned j = 0; j < VECTORS; j++)
                byte[j * THREADS + threadIdx.x] = (unsigned char)bits_of(
                    tok, n, vector + j * THREADS + threadIdx.x, eos);
        }
        __syncthreads();
        for (unsigned w = threadIdx.x; w < WORDS; w += THREADS) {
            unsigned left = word[w], before = w;
            if (!left)
                continue;
            /* The EOS before this word's first. Stretches without any are walked once
             * each: WORDS steps a tile at most. */
            while (before > 0 && word[before - 1] == 0)
                before--;
            unsigned prev = 0; /* 1 + its index in the tile */
            if (before > 0) {
                unsigned b = 31 - __clz(word[before - 1]);
                prev = ((before - 1) * 4 + b / 8) * per + b % 8 + 1;
            }
            my_eos += __popc(left);
            for (; left; left &= left - 1) {
                unsigned b = __ffs(left) - 1;
                unsigned at = (w * 4 + b / 8) * per + b % 8 + 1;
                unsigned len = at - prev;
                if (prev == 0)
                    tile_first = begin + at; /* one thread a tile comes here */
                else if (len >= c.n_bin || len >= NEAR)
                    add_far(c, len);
                else if (len == 1)
                    ones++; /* all at one counter would wait for one another */
                else
                    atomicAdd(&near[len], 1u);
                prev = at;
            }
            atomicMax(&tile_last, begin + prev);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            first[tile] = tile_last ? tile_first : 0;
            last[tile] = tile_last;
            tile_first = ~0u;
            tile_last = 0;
        }
    }
    if (ones)
        atomicAdd(&near[1], ones);
    if (my_eos)
        atomicAdd(&n_eos, my_eos);
    __syncthreads();
    for (unsigned v = threadIdx.x; v < NEAR && v < c.n_bin; v += THREADS)
        if (near[v])
            atomicAdd(&c.count[v], (unsigned long long)near[v]);
    if (threadIdx.x == 0 && n_eos)
        atomicAdd((unsigned long long *)&c.block->n_eos, (unsigned long long)n_eos);
}

/* before[t]: the maximum of last over the tiles before t. */
__global__ static void scan_borders(size_t n, unsigned n_tile, const unsigned *first,
                                    const unsigned *last, const unsigned *before,
                                    eos_counts c)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n_tile)
        return;
    if (first[t] && before[t])
        add_far(c, first[t] - before[t]);
    else if (first[t])
        c.block->head_tok = first[t];
    if (t == n_tile - 1)
        c.block->tail_tok = n - (last[t] > before[t] ? last[t] : before[t]);
}

/* Tiles of u32, the more of the two, rounded up to what keeps all parts aligned. */
static size_t tiles_of(size_t n)
{
    size_t per = (size_t)PER_TILE * 4;
    return ((n + per - 1) / per + 63) / 64 * 64;
}

static cudaError_t running_max(void *temp, size_t *temp_byte, const unsigned *last,
                               unsigned *before, size_t n_tile, cudaStream_t s)
{
    return cub::DeviceScan::ExclusiveScan(temp, *temp_byte, last, before, eos_max(), 0u,
                                          (int)n_tile, s);
}

extern "C" size_t slu_eos_lengths_cuda_work(size_t n)
{
    size_t n_tile = tiles_of(n), temp_byte = 0;
    if (running_max(nullptr, &temp_byte, nullptr, nullptr, n_tile, nullptr) !=
        cudaSuccess)
        return 0;
    return 3 * n_tile * sizeof(unsigned) + temp_byte;
}

extern "C" int slu_eos_lengths_cuda(const void *tok, size_t n, unsigned tok_bytes,
                                    uint32_t eos, uint64_t *count, size_t n_bin,
                                    uint64_t *far, struct slu_eos_block *b, void *work,
                                    size_t work_byte, void *stream)
{
    cudaStream_t s = (cudaStream_t)stream;
    cudaError_t e = cudaMemsetAsync(b, 0, sizeof *b, s);
    if (e != cudaSuccess || n == 0)
        return (int)e;
    size_t room = tiles_of(n), per = (size_t)PER_TILE * (16 / tok_bytes);
    if (n > 0x7fffffff || work_byte < 3 * room * sizeof(unsigned) ||
        ((size_t)tok | (size_t)work) % 16)
        return (int)cudaErrorInvalidValue;
    unsigned n_tile = (unsigned)((n + per - 1) / per);
    unsigned *first = (unsigned *)work, *last = first + room, *before = last + room;
    void *temp = before + room;
    size_t temp_byte = work_byte - 3 * room * sizeof(unsigned);
    eos_counts c = {(unsigned long long *)count, n_bin, (unsigned long long *)far, b};

    int device, n_sm;
    e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return (int)e;
    unsigned blocks = (unsigned)n_sm * 8 < n_tile ? (unsigned)n_sm * 8 : n_tile;
    if (tok_bytes == 2 && eos > 0xffff) /* no id is that */
        e = cudaMemsetAsync(first, 0, 2 * room * sizeof(unsigned), s);
    else if (tok_bytes == 2)
        scan_tiles<<<blocks, THREADS, 0, s>>>((const unsigned short *)tok, n, eos,
                                              n_tile, c, first, last);
    else
        scan_tiles<<<blocks, THREADS, 0, s>>>((const unsigned *)tok, n, eos, n_tile, c,
                                              first, last);
    if (e == cudaSuccess)
        e = cudaGetLastError();
    if (e == cudaSuccess)
        e = running_max(temp, &temp_byte, last, before, n_tile, s);
    if (e != cudaSuccess)
        return (int)e;
    scan_borders<<<(n_tile + 255) / 256, 256, 0, s>>>(n, n_tile, first, last, before,
                                                      c);
    return (int)cudaGetLastError();
}
