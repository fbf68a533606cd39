#include "hash.h"

#include <cuda_runtime.h>

#include "cuda_private.h"
#include "hash_short.h"

/* A block of one warp hashes a sequence: there are a few hundred bins in a window. XXH3
 * has eight accumulators, and what a block of 16 stripes adds to them depends on the
 * data alone; so four stripes are taken side by side, eight lanes each, their sums are
 * joined, and all lanes scramble. A short sequence is work for one lane. */
static const unsigned THREADS = 32;
/* Of a launch: far below its 2^31 blocks, so that tests pass the border. */
static const size_t MOST_SEQS = 1 << 16;
static const unsigned ALL = 0xffffffff;

__device__ static unsigned long long other(uint64_t v, unsigned by)
{
    return __shfl_xor_sync(ALL, (unsigned long long)v, (int)by);
}

/* What stripes [0, n_stripe) from byte `at` on add to accumulator `me`, with the secret
 * from its beginning; and `last`, if there is one: a stripe with its own key. */
__device__ static uint64_t block_sum(const hash_in *in, const uint64_t *secret,
                                     uint64_t at, unsigned n_stripe, bool last,
                                     uint64_t last_at)
{
    const unsigned me = threadIdx.x % 8, group = threadIdx.x / 8;
    uint64_t own = 0, words = 0;
#pragma unroll
    for (unsigned k = 0; k < HASH_STRIPES / 4; k++) {
        const unsigned s = group + 4 * k;
        if (s < n_stripe) {
            uint64_t word = hash_u64(in, at + HASH_STRIPE * s + 8 * me);
            own += hash_product(word, secret[s + me]);
            words += word;
        }
    }
    if (last && group == 0) {
        const unsigned key = HASH_SECRET_BYTE - HASH_STRIPE - 7 + 8 * me;
        uint64_t word = hash_u64(in, last_at + 8 * me);
        own += hash_product(word, hash_key(secret, key));
        words += word;
    }
    own += other(words, 1);
    own += other(own, 8);
    return own + other(own, 16);
}

__device__ static uint64_t first_acc(unsigned me)
{
    return me == 0   ? HASH_P32_3
           : me == 1 ? HASH_P64_1
           : me == 2 ? HASH_P64_2
           : me == 3 ? HASH_P64_3
           : me == 4 ? HASH_P64_4
           : me == 5 ? HASH_P32_2
           : me == 6 ? HASH_P64_5
                     : HASH_P32_1;
}

__device__ static void hash_long(const hash_in *in, const uint64_t *secret,
                                 uint64_t *hash)
{
    const unsigned lane = threadIdx.x, me = lane % 8;
    const uint64_t n = hash_bytes(in), n_block = (n - 1) / HASH_BLOCK;
    uint64_t acc = first_acc(me);
    for (uint64_t b = 0; b < n_block; b++) {
        acc += block_sum(in, secret, b * HASH_BLOCK, HASH_STRIPES, false, 0);
        acc = hash_scramble(acc, secret[16 + me]);
    }
    const unsigned rest = (unsigned)((n - 1) % HASH_BLOCK / HASH_STRIPE);
    acc += block_sum(in, secret, n_block * HASH_BLOCK, rest, true, n - HASH_STRIPE);

    /* Even lanes merge to the lower half, odd ones to the upper one. */
    const bool high = me % 2;
    const unsigned key =
        (high ? HASH_SECRET_BYTE - HASH_STRIPE - 11 : 11) + 16 * (me / 2);
    const uint64_t theirs = other(acc, 1);
    uint64_t sum = hash_fold((high ? theirs : acc) ^ hash_key(secret, key),
                             (high ? acc : theirs) ^ hash_key(secret, key + 8));
    sum += other(sum, 2);
    sum += other(sum, 4);
    if (lane < 2)
        hash[lane] = hash_avalanche(sum + (high ? ~(n * HASH_P64_2) : n * HASH_P64_1));
}

__global__ static void __launch_bounds__(THREADS)
    hash_seqs(slu_hash_seqs s, uint64_t *hash)
{
    __shared__ uint64_t secret[HASH_SECRET_WORDS];
    if (threadIdx.x == 0) {
#define WORD(i, word) secret[i] = word##ull;
        HASH_SECRET(WORD)
    }
    __syncthreads();
    const unsigned i = blockIdx.x;
    const char *tok = (const char *)s.tok + s.first[i] * s.tok_bytes;
    const hash_in in = {tok, s.tok_bytes, s.len[i],
                        ((uintptr_t)tok & (2 * s.tok_bytes - 1)) == 0};
    if (hash_bytes(&in) > HASH_SHORT)
        hash_long(&in, secret, hash + 2 * (size_t)i);
    else if (threadIdx.x == 0)
        hash_short(&in, secret, hash + 2 * (size_t)i);
}

extern "C" int slu_hash_cuda(const struct slu_hash_seqs *s, uint64_t *hash,
                             void *stream)
{
    if (s->tok_bytes != 2 && s->tok_bytes != 4)
        return (int)cudaErrorInvalidValue;
    cudaError_t e = cudaSuccess;
    for (size_t at = 0; at < s->n && e == cudaSuccess; at += MOST_SEQS) {
        const size_t n = s->n - at < MOST_SEQS ? s->n - at : MOST_SEQS;
        const slu_hash_seqs part = {s->tok, s->tok_bytes, s->first + at, s->len + at,
                                    n};
        hash_seqs<<<(unsigned)n, THREADS, 0, (cudaStream_t)stream>>>(part,
                                                                     hash + 2 * at);
        e = cudaGetLastError();
    }
    return slu_cuda_code(e);
}
