/* hash_short.h - XXH3-128 of short sequences, and the parts of long ones that the oracle
 * and the kernel share (hash_ref.c, hash.cu; xxHash specification 0.2.0). Names are those
 * of the specification where it has one.
 *
 * What is hashed is a row of u32: the length, 0, then the ids. The secret is in 64-bit
 * words, because a device has no table of constants that all processors share.
 */
#ifndef SLU_KERNELS_HASH_SHORT_H
#define SLU_KERNELS_HASH_SHORT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define HASH_FN __device__ static inline
#else
#define HASH_FN static inline
#endif

#define HASH_SECRET_WORDS 24
#define HASH_SECRET_BYTE  (8 * HASH_SECRET_WORDS)
#define HASH_SECRET(X)                                                                 \
    X(0, 0xbe4ba423396cfeb8)                                                           \
    X(1, 0x1cad21f72c81017c)                                                           \
    X(2, 0xdb979083e96dd4de)                                                           \
    X(3, 0x1f67b3b7a4a44072)                                                           \
    X(4, 0x78e5c0cc4ee679cb)                                                           \
    X(5, 0x2172ffcc7dd05a82)                                                           \
    X(6, 0x8e2443f7744608b8)                                                           \
    X(7, 0x4c263a81e69035e0)                                                           \
    X(8, 0xcb00c391bb52283c)                                                           \
    X(9, 0xa32e531b8b65d088)                                                           \
    X(10, 0x4ef90da297486471)                                                          \
    X(11, 0xd8acdea946ef1938)                                                          \
    X(12, 0x3f349ce33f76faa8)                                                          \
    X(13, 0x1d4f0bc7c7bbdcf9)                                                          \
    X(14, 0x3159b4cd4be0518a)                                                          \
    X(15, 0x647378d9c97e9fc8)                                                          \
    X(16, 0xc3ebd33483acc5ea)                                                          \
    X(17, 0xeb6313faffa081c5)                                                          \
    X(18, 0x49daf0b751dd0d17)                                                          \
    X(19, 0x9e68d429265516d3)                                                          \
    X(20, 0xfca1477d58be162b)                                                          \
    X(21, 0xce31d07ad1b8f88f)                                                          \
    X(22, 0x280416958f3acb45)                                                          \
    X(23, 0x7e404bbbcafbd7af)
#define HASH_P32_1 UINT64_C(0x9E3779B1)
#define HASH_P32_2 UINT64_C(0x85EBCA77)
#define HASH_P32_3 UINT64_C(0xC2B2AE3D)
#define HASH_P64_1 UINT64_C(0x9E3779B185EBCA87)
#define HASH_P64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define HASH_P64_3 UINT64_C(0x165667B19E3779F9)
#define HASH_P64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define HASH_P64_5 UINT64_C(0x27D4EB2F165667C5)

/* A long input: stripes of 64 bytes, blocks of 16 stripes; eight accumulators. */
enum { HASH_SHORT = 240, HASH_STRIPE = 64, HASH_STRIPES = 16, HASH_BLOCK = 1024 };

/* A sequence. */
struct hash_in {
    const void *tok; /* its first id */
    unsigned tok_bytes;
    uint32_t n_tok;
    bool paired; /* a device may load two ids at once */
};

HASH_FN uint64_t hash_bytes(const struct hash_in *in)
{
    return 8 + UINT64_C(4) * in->n_tok;
}

HASH_FN uint32_t hash_u32(const struct hash_in *in, uint64_t k)
{
    if (k < 2)
        return k ? 0 : in->n_tok;
    return in->tok_bytes == 2 ? ((const uint16_t *)in->tok)[k - 2]
                              : ((const uint32_t *)in->tok)[k - 2];
}

/* Eight bytes of what is hashed; `at` is a multiple of 4. On a device two aligned
 * ids are one load. */
HASH_FN uint64_t hash_u64(const struct hash_in *in, uint64_t at)
{
#ifdef __CUDACC__
    if (in->paired && at >= 8 && at % 8 == 0) {
        if (in->tok_bytes == 4)
            return ((const uint64_t *)in->tok)[at / 8 - 1];
        const uint32_t two = ((const uint32_t *)in->tok)[at / 8 - 1];
        return (two & 0xffff) | (uint64_t)(two >> 16) << 32;
    }
#endif
    return hash_u32(in, at / 4) | (uint64_t)hash_u32(in, at / 4 + 1) << 32;
}

/* Eight bytes of the secret. */
HASH_FN uint64_t hash_key(const uint64_t *secret, unsigned at)
{
    const unsigned bits = at % 8 * 8;
    const uint64_t lo = secret[at / 8] >> bits;
    return bits ? lo | secret[at / 8 + 1] << (64 - bits) : lo;
}

HASH_FN uint64_t hash_mul_high(uint64_t a, uint64_t b)
{
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
#endif
}

HASH_FN uint64_t hash_fold(uint64_t a, uint64_t b)
{
    return a * b ^ hash_mul_high(a, b);
}

HASH_FN uint64_t hash_avalanche(uint64_t h)
{
    h = (h ^ h >> 37) * UINT64_C(0x165667919E3779F9);
    return h ^ h >> 32;
}

/* What a word of a stripe adds to its own accumulator; its neighbour's gets the word. */
HASH_FN uint64_t hash_product(uint64_t word, uint64_t key)
{
    return ((word ^ key) & UINT32_MAX) * ((word ^ key) >> 32);
}

HASH_FN uint64_t hash_scramble(uint64_t acc, uint64_t key)
{
    return (acc ^ acc >> 47 ^ key) * HASH_P32_1;
}

/* mix32B: 16 bytes at a and 16 at b. */
HASH_FN void hash_mix(const struct hash_in *in, const uint64_t *secret, unsigned key,
                      uint64_t a, uint64_t b, uint64_t acc[2])
{
    const uint64_t a0 = hash_u64(in, a), a1 = hash_u64(in, a + 8), b0 = hash_u64(in, b),
                   b1 = hash_u64(in, b + 8);
    acc[0] += hash_fold(a0 ^ hash_key(secret, key), a1 ^ hash_key(secret, key + 8));
    acc[0] ^= b0 + b1;
    acc[1] +=
        hash_fold(b0 ^ hash_key(secret, key + 16), b1 ^ hash_key(secret, key + 24));
    acc[1] ^= a0 + a1;
}

/* 9 to 16 bytes. */
HASH_FN void hash_16(const struct hash_in *in, const uint64_t *secret, uint64_t *hash)
{
    const uint64_t n = hash_bytes(in), first = hash_u64(in, 0);
    uint64_t last = hash_u64(in, n - 8), a = first ^ last ^ secret[4] ^ secret[5];
    uint64_t lo = a * HASH_P64_1, hi = hash_mul_high(a, HASH_P64_1);
    lo += (n - 1) << 54;
    last ^= secret[6] ^ secret[7];
    hi += last + (last & UINT32_MAX) * (HASH_P32_2 - 1);
    for (unsigned i = 0; i < 8; i++) /* bytes the other way round */
        lo ^= (hi >> 8 * i & 0xff) << (56 - 8 * i);
    hash[0] = hash_avalanche(lo * HASH_P64_2);
    hash[1] = hash_avalanche(hash_mul_high(lo, HASH_P64_2) + hi * HASH_P64_2);
}

/* 9 to 240 bytes. */
HASH_FN void hash_short(const struct hash_in *in, const uint64_t *secret,
                        uint64_t *hash)
{
    const uint64_t n = hash_bytes(in);
    uint64_t acc[2] = {n * HASH_P64_1, 0};
    if (n <= 16) {
        hash_16(in, secret, hash);
        return;
    }
    if (n <= 128) { /* from the middle to both ends */
        for (unsigned i = (unsigned)(n - 1) / 32 + 1; i--;)
            hash_mix(in, secret, 32 * i, 16 * i, n - 16 * (i + 1), acc);
    } else {
        for (unsigned i = 0; i < n / 32; i++) {
            hash_mix(in, secret, i < 4 ? 32 * i : 32 * (i - 4) + 3, 32 * i, 32 * i + 16,
                     acc);
            if (i == 3) {
                acc[0] = hash_avalanche(acc[0]);
                acc[1] = hash_avalanche(acc[1]);
            }
        }
        hash_mix(in, secret, 103, n - 16, n - 32, acc);
    }
    hash[0] = hash_avalanche(acc[0] + acc[1]);
    hash[1] =
        0 - hash_avalanche(acc[0] * HASH_P64_1 + acc[1] * HASH_P64_4 + n * HASH_P64_2);
}

#endif
