#include "copy.h"

#include <cuda_runtime.h>

#include "cuda_private.h"

/* A block writes one chunk of the output, so that the work is even for all runs. It
 * finds the chunk's runs, reads them to shared memory, and each thread makes vectors of
 * 16 bytes, aligned at the output. A vector within one run consists of two aligned
 * loads that are shifted into one; its neighbour needs one of these loads too, and
 * finds it in the cache.
 *
 * Positions are counted from the 16-byte boundary at or before `out`, `lead` ids early;
 * chunk c is positions [c * chunk, (c + 1) * chunk), of which those in [lead, lead +
 * n_tok) are written. */
static const unsigned THREADS = 128;
static const unsigned PER_THREAD = 4;                 /* vectors */
static const unsigned VECTORS = THREADS * PER_THREAD; /* of a chunk: 8 KiB */
static const unsigned MOST_RUNS = 1024;               /* of a chunk, in shared memory */

struct args {
    const void *pool;
    const unsigned long long *src;
    const uint32_t *len;
    const uint32_t *run_item;
    const unsigned long long *run_dst;
    uint32_t n_run;
    uint32_t pad;
    long long origin; /* id of position 0; negative if out is after the boundary */
    unsigned lead;
    unsigned long long end; /* lead + n_tok */
    char *out;              /* address of position 0 */
};

/* The runs of a chunk: their positions in the chunk, and the source address of position
 * 0. */
struct runs {
    unsigned short begin[MOST_RUNS], end[MOST_RUNS];
    unsigned long long from[MOST_RUNS]; /* modulo 2^64 */
};

/* The last run from `lo` on that begins at or before t; lo, if none does. */
__device__ static uint32_t run_at(const runs *r, uint32_t lo, uint32_t n, unsigned t)
{
    uint32_t hi = n - 1;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if (r->begin[mid] <= t)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

template <typename id> __device__ static uint4 splat(uint32_t pad)
{
    uint32_t w = sizeof(id) == 2 ? (pad & 0xffff) * 0x10001u : pad;
    return make_uint4(w, w, w, w);
}

/* The 16 bytes that begin `shift` bytes into lo:hi, shift 0 … 15. */
__device__ static uint4 shifted(uint4 lo, uint4 hi, unsigned shift)
{
    uint32_t a = lo.x, b = lo.y, c = lo.z, d = lo.w, e = hi.x, f = hi.y, g = hi.z,
             h = hi.w;
    if (shift & 8) {
        a = c, b = d, c = e, d = f, e = g, f = h;
    }
    if (shift & 4) {
        a = b, b = c, c = d, d = e, e = f;
    }
    unsigned bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits),
                      __funnelshift_r(c, d, bits), __funnelshift_r(d, e, bits));
}

/* Sets id number i of a vector. i is a constant in every call, so that v stays in
 * registers. */
template <typename id> __device__ static void put_id(uint4 *v, int i, uint32_t x)
{
    uint32_t *w = sizeof(id) == 4 ? (i == 0   ? &v->x
                                     : i == 1 ? &v->y
                                     : i == 2 ? &v->z
                                              : &v->w)
                                  : (i / 2 == 0   ? &v->x
                                     : i / 2 == 1 ? &v->y
                                     : i / 2 == 2 ? &v->z
                                                  : &v->w);
    if (sizeof(id) == 4)
        *w = x;
    else
        *w |= x << (i % 2 * 16);
}

template <typename id>
__device__ static uint32_t one_id(const args &a, const runs *r, uint32_t n,
                                  uint32_t *at, unsigned t)
{
    while (*at + 1 < n && r->begin[*at + 1] <= t)
        ++*at;
    if (t >= r->begin[*at] && t < r->end[*at])
        return ((const id *)a.pool)[r->from[*at] + t];
    return sizeof(id) == 2 ? a.pad & 0xffff : a.pad;
}

/* The same from global memory, for a chunk with too many runs. */
template <typename id>
__device__ static uint32_t id_by_search(const args &a, uint32_t lo, uint32_t hi,
                                        long long position)
{
    while (lo < hi) { /* the first run after it */
        uint32_t mid = lo + (hi - lo) / 2;
        if ((long long)a.run_dst[mid] <= position)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0) {
        uint32_t item = a.run_item[lo - 1];
        unsigned long long k = (unsigned long long)position - a.run_dst[lo - 1];
        if (k < a.len[item])
            return ((const id *)a.pool)[a.src[item] + k];
    }
    return sizeof(id) == 2 ? a.pad & 0xffff : a.pad;
}

template <typename id>
__device__ static void store(const args &a, unsigned long long u, uint4 v)
{
    const unsigned per = 16 / sizeof(id);
    id *out = (id *)a.out + u;
    if (u >= a.lead && u + per <= a.end) {
        __stcs((uint4 *)out, v);
        return;
    }
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (unsigned i = 0; i < per; i++) {
        uint32_t x = sizeof(id) == 4 ? w[i % 4] : w[i / 2 % 4] >> (i % 2 * 16);
        if (u + i >= a.lead && u + i < a.end)
            out[i] = (id)x;
    }
}

template <typename id>
__device__ static void many_runs(const args &a, uint32_t first, uint32_t last)
{
    const unsigned per = 16 / sizeof(id);
    unsigned long long u = (unsigned long long)blockIdx.x * VECTORS * per;
    for (unsigned t = threadIdx.x; t < VECTORS * per; t += THREADS)
        if (u + t >= a.lead && u + t < a.end)
            ((id *)a.out)[u + t] =
                (id)id_by_search<id>(a, first, last, a.origin + (long long)(u + t));
}

template <typename id>
__device__ static void load_runs(const args &a, uint32_t first, uint32_t n, runs *r)
{
    const long long chunk = VECTORS * (16 / sizeof(id));
    long long at = a.origin + (long long)blockIdx.x * chunk;
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        uint32_t item = a.run_item[first + i];
        long long begin = (long long)a.run_dst[first + i] - at;
        long long end = begin + a.len[item];
        r->from[i] = a.src[item] - (unsigned long long)begin;
        r->begin[i] = (unsigned short)(begin < 0 ? 0 : begin);
        r->end[i] = (unsigned short)(end < 0 ? 0 : end < chunk ? end : chunk);
    }
}

/* The first warp finds two runs: the first that begins in or after the chunk, and the
 * first behind it. */
__device__ static void find_ends(const args &a, unsigned chunk, uint32_t *ends)
{
    if (threadIdx.x < 32) {
        const unsigned behind = threadIdx.x / 16;
        const long long at = a.origin + ((long long)blockIdx.x + behind) * chunk;
        const uint32_t run = slu_cuda_first(
            a.n_run, [&](uint32_t i) { return (long long)a.run_dst[i] < at; });
        if (threadIdx.x % 16 == 0)
            ends[behind] = run;
    }
    __syncthreads();
}

template <typename id> __global__ static void __launch_bounds__(THREADS) copy(args a)
{
    __shared__ runs r;
    __shared__ uint32_t ends[2];
    const unsigned per = 16 / sizeof(id), chunk = VECTORS * per;
    find_ends(a, chunk, ends);
    uint32_t first = ends[0], last = ends[1];
    if (first > 0)
        first--; /* which may extend into the chunk */
    uint32_t n = last - first;
    if (n > MOST_RUNS) {
        many_runs<id>(a, first, last);
        return;
    }
    load_runs<id>(a, first, n, &r);
    __syncthreads();

    uint4 lo[PER_THREAD], hi[PER_THREAD];
    uint32_t at[PER_THREAD];
    unsigned shift[PER_THREAD]; /* 16: the vector is not within one run */
#pragma unroll
    for (unsigned i = 0; i < PER_THREAD;
         i++) { /* issues all loads before the first use */
        unsigned t = (i * THREADS + threadIdx.x) * per;
        shift[i] = 16;
        at[i] = n ? run_at(&r, i ? at[i - 1] : 0, n, t) : 0;
        if (!n || t < r.begin[at[i]] || t + per > r.end[at[i]])
            continue;
        const char *p = (const char *)a.pool + (r.from[at[i]] + t) * sizeof(id);
        shift[i] = (unsigned)((uintptr_t)p & 15);
        const uint4 *q = (const uint4 *)(p - shift[i]);
        lo[i] = __ldg(q);
        hi[i] = shift[i] ? __ldg(q + 1) : lo[i];
    }
#pragma unroll
    for (unsigned i = 0; i < PER_THREAD; i++) {
        unsigned t = (i * THREADS + threadIdx.x) * per;
        unsigned long long u = (unsigned long long)blockIdx.x * chunk + t;
        uint4 v;
        if (shift[i] < 16) {
            v = shifted(lo[i], hi[i], shift[i]);
        } else if (!n) {
            v = splat<id>(a.pad);
        } else {
            v = make_uint4(0, 0, 0, 0);
#pragma unroll
            for (unsigned k = 0; k < per; k++)
                put_id<id>(&v, k, one_id<id>(a, &r, n, &at[i], t + k));
        }
        store<id>(a, u, v);
    }
}

extern "C" int slu_copy_cuda(const struct slu_copy *c, uint64_t first_tok, size_t n_tok,
                             void *out, void *stream)
{
    cudaStream_t s = (cudaStream_t)stream;
    if (n_tok == 0)
        return 0;
    if ((c->tok_bytes != 2 && c->tok_bytes != 4) || c->n_run > UINT32_MAX ||
        (uintptr_t)out % c->tok_bytes || (uintptr_t)c->pool % c->tok_bytes)
        return (int)cudaErrorInvalidValue;
    unsigned behind = (unsigned)((uintptr_t)out % 16), lead = behind / c->tok_bytes;
    size_t chunk = (size_t)VECTORS * 16 / c->tok_bytes;
    size_t n_chunk = (lead + n_tok + chunk - 1) / chunk;
    if (n_chunk >= INT32_MAX)
        return (int)cudaErrorInvalidValue;
    args a = {c->pool,
              (const unsigned long long *)c->src,
              c->len,
              c->run_item,
              (const unsigned long long *)c->run_dst,
              (uint32_t)c->n_run,
              c->pad,
              (long long)first_tok - lead,
              lead,
              lead + n_tok,
              (char *)out - behind};
    if (c->tok_bytes == 2)
        copy<uint16_t><<<(unsigned)n_chunk, THREADS, 0, s>>>(a);
    else
        copy<uint32_t><<<(unsigned)n_chunk, THREADS, 0, s>>>(a);
    return slu_cuda_code(cudaGetLastError());
}
