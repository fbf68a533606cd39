#include "place.h"

#include <cuda_runtime.h>

#include "cuda_private.h"

/* Written in the order of runs, so that the writes, which are most of the traffic, are
 * contiguous. The reads of `order` are one stretch for each step of a bin; the bins of
 * a block are neighbours, so the block reads each stretch as a whole. */
static const unsigned THREADS = 256;
static const unsigned PER_THREAD = 4; /* so that few items are work for many blocks */
static const unsigned CHUNK = THREADS * PER_THREAD; /* runs of a block */

/* The last interval of lo … hi that begins at or before run `at`. */
__device__ static uint32_t find(const slu_place_interval *interval, uint32_t lo,
                                uint32_t hi, unsigned long long at)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        if (interval[mid].first_item <= at)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* The step that filled `slot`, from the last step of its bin on. */
__device__ static const slu_place_step *step_of(const slu_place_step *step,
                                                uint32_t last, unsigned long long slot)
{
    const slu_place_step *s = &step[last];
    while (slot < s->slot) {
        const slu_place_step *j = &step[s->jump];
        s = slot < j->slot ? j : &step[s->parent];
    }
    return s;
}

__global__ static void __launch_bounds__(THREADS)
    place(const uint32_t *order, size_t n, const slu_place_step *step,
          const slu_place_interval *interval, uint32_t n_interval, uint32_t *run_item,
          unsigned long long *run_dst)
{
    __shared__ uint32_t ends[2]; /* intervals of the block's first run and the next's */
    unsigned long long base = interval[0].first_item, end = base + n;
    if (threadIdx.x < 32) {
        const unsigned behind = threadIdx.x / 16;
        const unsigned long long at = base + (blockIdx.x + behind) * (size_t)CHUNK;
        const uint32_t i = slu_cuda_first(
            n_interval, [&](uint32_t k) { return interval[k].first_item <= at; });
        if (threadIdx.x % 16 == 0)
            ends[behind] = i - 1;
    }
    __syncthreads();
    uint32_t lo = ends[0], hi = ends[1];
    unsigned long long at = base + (unsigned long long)blockIdx.x * CHUNK + threadIdx.x;
    for (unsigned i = 0; i < PER_THREAD && at < end; i++, at += THREADS) {
        lo = find(interval, lo, hi, at); /* because it ascends with at */
        const slu_place_interval *v = &interval[lo];
        unsigned long long q = at - v->first_item, items = v->items, b;
        b = q >> 32 ? q / items : (uint32_t)q / (uint32_t)items;
        unsigned long long slot = q - b * items;
        const slu_place_step *s = step_of(step, v->last, slot);
        unsigned long long j = slot - s->slot;
        unsigned long long k = (v->first_bin + b - s->first_bin) * s->repeat + j;
        run_item[at] = order[s->first + k];
        run_dst[at] = v->first_tok + b * v->capacity + s->used + j * s->len_tok;
    }
}

static size_t chunks_of(size_t n)
{
    return n / CHUNK + (n % CHUNK != 0);
}

extern "C" int slu_place_cuda(const struct slu_place *p, uint32_t *run_item,
                              uint64_t *run_dst, void *stream)
{
    cudaStream_t s = (cudaStream_t)stream;
    size_t n_chunk = chunks_of(p->n);
    if (p->n == 0)
        return 0;
    if (p->n > UINT32_MAX || p->n_interval == 0 || p->n_interval > UINT32_MAX ||
        p->n_step == 0)
        return (int)cudaErrorInvalidValue;
    place<<<(unsigned)n_chunk, THREADS, 0, s>>>(p->order, p->n, p->step, p->interval,
                                                (uint32_t)p->n_interval, run_item,
                                                (unsigned long long *)run_dst);
    return slu_cuda_code(cudaGetLastError());
}
