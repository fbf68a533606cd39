#include "scan.h"

#include <cuda_runtime.h>

#include "cuda_private.h"

/* One pass over the ids, which are divided into tiles. A block of threads converts a
 * tile to bits in shared memory, one for each id, and counts the documents between two
 * bits of the tile; short ones are counted in shared memory, too. For each tile its
 * first and last EOS are kept (8 bytes for 32 KiB of ids). A second pass of one block
 * counts the documents that cross the borders of tiles, so no block waits for another.
 */
static const unsigned THREADS = 256;
static const unsigned VECTORS = 8; /* of 16 bytes, for each thread and tile: reads in
                                      flight */
static const unsigned PER_TILE = THREADS * VECTORS;
static const unsigned WORDS = PER_TILE / 4;   /* the bits of a tile, one byte for
                                                 each vector */
static const unsigned MINE = WORDS / THREADS; /* words of each thread */
static const unsigned WARPS = THREADS / 32;
static const unsigned NEAR = 4096;
static const unsigned BORDER_THREADS = 256;

struct eos_counts {
    unsigned long long *count; /* n_bin counts */
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

/* One bit for each id of the 16 bytes at x, the first id lowest: 8 ids of two bytes. */
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

/* 4 ids of four bytes. */
__device__ static unsigned match(uint4 x, unsigned eos, unsigned)
{
    return (x.x == eos) | (x.y == eos) << 1 | (x.z == eos) << 2 | (x.w == eos) << 3;
}

/* The bits of vector v; zeros after the n ids. */
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

/* 1 + the index in the tile of bit b of word w. */
template <class T> __device__ static unsigned place_of(unsigned w, unsigned b)
{
    return (w * 4 + b / 8) * (16 / sizeof(T)) + b % 8 + 1;
}

/* Converts a tile to bits. */
template <class T>
__device__ static void mark(const T *tok, size_t n, size_t vector, unsigned eos,
                            unsigned char *byte)
{
    if ((vector + PER_TILE) * (16 / sizeof(T)) <= n) {
        uint4 x[VECTORS]; /* all reads are issued before the first use */
#pragma unroll
        for (unsigned j = 0; j < VECTORS; j++)
            x[j] = __ldg((const uint4 *)tok + vector + j * THREADS + threadIdx.x);
#pragma unroll
        for (unsigned j = 0; j < VECTORS; j++)
            byte[j * THREADS + threadIdx.x] = (unsigned char)match(x[j], eos, (T)0);
    } else {
        for (unsigned j = 0; j < VECTORS; j++)
            byte[j * THREADS + threadIdx.x] =
                (unsigned char)bits_of(tok, n, vector + j * THREADS + threadIdx.x, eos);
    }
}

/* The last EOS before this thread's words, as 1 + its index in the tile; 0: none.
 * `mine`: the thread's own last EOS; `warp` has room for one value of each warp. Takes
 * the same few steps wherever the EOS is. All threads must call this. */
__device__ static unsigned before_mine(unsigned mine, unsigned *warp)
{
    unsigned lane = threadIdx.x % 32, w = threadIdx.x / 32;
    unsigned has = __ballot_sync(~0u, mine != 0), below = has & ((1u << lane) - 1);
    unsigned prev = __shfl_sync(~0u, mine, below ? 31 - __clz(below) : 0);
    unsigned last = __shfl_sync(~0u, mine, has ? 31 - __clz(has) : 0);
    if (lane == 0)
        warp[w] = last;
    __syncthreads();
    if (below)
        return prev;
    for (prev = 0; prev == 0 && w > 0; w--)
        prev = warp[w - 1];
    return prev;
}

/* first[t], last[t]: 1 + the index of tile t's first and last EOS; 0: none. */
template <class T>
__global__ static void __launch_bounds__(THREADS)
    scan_tiles(const T *tok, size_t n, unsigned eos, unsigned n_tile, eos_counts c,
               unsigned *first, unsigned *last)
{
    __shared__ unsigned near[NEAR];
    __shared__ unsigned word[WORDS];
    __shared__ unsigned warp[WARPS];
    __shared__ unsigned n_eos;
    unsigned my_eos = 0, ones = 0;

    for (unsigned v = threadIdx.x; v < NEAR; v += THREADS)
        near[v] = 0;
    if (threadIdx.x == 0)
        n_eos = 0;
    for (unsigned tile = blockIdx.x; tile < n_tile; tile += gridDim.x) {
        const unsigned begin =
            tile * (PER_TILE * (16 / sizeof(T))); /* below 2^31, because n is */
        mark(tok, n, (size_t)tile * PER_TILE, eos, (unsigned char *)word);
        __syncthreads();
        unsigned left[MINE], mine = 0;
        for (unsigned k = 0; k < MINE; k++) {
            left[k] = word[threadIdx.x * MINE + k];
            my_eos += __popc(left[k]);
            if (left[k])
                mine = place_of<T>(threadIdx.x * MINE + k, 31 - __clz(left[k]));
        }
        /* Its barrier also protects the bits from the next tile's. */
        unsigned prev = before_mine(mine, warp);
        for (unsigned k = 0; k < MINE; k++)
            for (; left[k]; left[k] &= left[k] - 1) {
                unsigned at = place_of<T>(threadIdx.x * MINE + k, __ffs(left[k]) - 1);
                unsigned len = at - prev;
                if (prev == 0)
                    first[tile] = begin + at; /* one thread of each tile reaches this */
                else if (len >= c.n_bin || len >= NEAR)
                    add_far(c, len);
                else if (len == 1)
                    ones++; /* not counted at once, because all threads would wait
                               for one counter */
                else
                    atomicAdd(&near[len], 1u);
                prev = at;
            }
        if (threadIdx.x == THREADS - 1) { /* this thread has seen the last EOS */
            last[tile] = prev ? begin + prev : 0;
            if (!prev)
                first[tile] = 0;
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

/* Counts documents that cross tiles, in one block: each thread has adjacent tiles, and
 * finds the last EOS before them by a running maximum over all threads. There is one
 * tile for 32 KiB of ids, so this is a small part of the work. */
__global__ static void __launch_bounds__(BORDER_THREADS)
    scan_borders(size_t n, unsigned n_tile, const unsigned *first, const unsigned *last,
                 eos_counts c)
{
    __shared__ unsigned most[BORDER_THREADS];
    const unsigned me = threadIdx.x,
                   per = (n_tile + BORDER_THREADS - 1) / BORDER_THREADS;
    const unsigned begin = me * per < n_tile ? me * per : n_tile;
    const unsigned end = begin + per < n_tile ? begin + per : n_tile;
    unsigned prev = 0;
    for (unsigned t = begin; t < end; t++)
        prev = last[t] > prev ? last[t] : prev;
    most[me] = prev;
    for (unsigned by = 1; by < BORDER_THREADS; by *= 2) {
        __syncthreads();
        unsigned other = me >= by ? most[me - by] : 0;
        __syncthreads();
        most[me] = most[me] > other ? most[me] : other;
    }
    __syncthreads();
    prev = me ? most[me - 1] : 0;
    for (unsigned t = begin; t < end; t++) {
        if (!first[t])
            continue;
        if (prev)
            add_far(c, first[t] - prev);
        else
            c.block->head_tok = first[t];
        prev = last[t];
    }
    if (me == BORDER_THREADS - 1)
        c.block->tail_tok = n - most[me];
}

/* Number of tiles for u32, which need more than u16, rounded up so that all parts stay
 * aligned. */
static size_t tiles_of(size_t n)
{
    size_t per = (size_t)PER_TILE * 4;
    return ((n + per - 1) / per + 63) / 64 * 64;
}

extern "C" size_t slu_eos_lengths_cuda_work(size_t n)
{
    return 2 * tiles_of(n) * sizeof(unsigned);
}

extern "C" int slu_eos_lengths_cuda(const void *tok, size_t n, unsigned tok_bytes,
                                    uint32_t eos, uint64_t *count, size_t n_bin,
                                    uint64_t *far, struct slu_eos_block *b, void *work,
                                    size_t work_byte, void *stream)
{
    cudaStream_t s = (cudaStream_t)stream;
    if (n > 0x7fffffff || work_byte < slu_eos_lengths_cuda_work(n) ||
        ((size_t)tok | (size_t)work) % 16)
        return (int)cudaErrorInvalidValue;
    cudaError_t e = cudaMemsetAsync(b, 0, sizeof *b, s);
    if (e != cudaSuccess || n == 0)
        return slu_cuda_code(e);
    size_t room = tiles_of(n), per = (size_t)PER_TILE * (16 / tok_bytes);
    unsigned n_tile = (unsigned)((n + per - 1) / per);
    unsigned *first = (unsigned *)work, *last = first + room;
    eos_counts c = {(unsigned long long *)count, n_bin, (unsigned long long *)far, b};

    int device, n_sm;
    e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return slu_cuda_code(e);
    unsigned blocks = (unsigned)n_sm * 8 < n_tile ? (unsigned)n_sm * 8 : n_tile;
    if (tok_bytes == 2 && eos > 0xffff) /* no id of two bytes has this value */
        e = cudaMemsetAsync(first, 0, 2 * room * sizeof(unsigned), s);
    else if (tok_bytes == 2)
        scan_tiles<<<blocks, THREADS, 0, s>>>((const unsigned short *)tok, n, eos,
                                              n_tile, c, first, last);
    else
        scan_tiles<<<blocks, THREADS, 0, s>>>((const unsigned *)tok, n, eos, n_tile, c,
                                              first, last);
    if (e == cudaSuccess)
        e = cudaGetLastError();
    if (e != cudaSuccess)
        return slu_cuda_code(e);
    scan_borders<<<1, BORDER_THREADS, 0, s>>>(n, n_tile, first, last, c);
    return slu_cuda_code(cudaGetLastError());
}
