/* hash.h - the hashes of sluice: XXH3 (xxHash specification 0.2.0 and the XXH3
 * reference), 128-bit sums that do not depend on order, and the keyed hash of every
 * random choice.
 *
 * All results are the same on every host and at every SIMD level. All functions are
 * pure and safe to call from any thread.
 */
#ifndef SLU_HASH_H
#define SLU_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

SLU_BEGIN_DECLS

struct slu_u128 {
    uint64_t lo, hi;
};

/* Return XXH3-64 and XXH3-128 with seed 0. */
uint64_t slu_hash64(const void *p, size_t n_bytes);
struct slu_u128 slu_hash128(const void *p, size_t n_bytes);

/* slu_hash128 of bytes that come in parts: new, add for each part, end; clear begins
 * the next. Caller frees with slu_hasher_free. */
struct slu_hasher;
SLU_MUST_USE int slu_hasher_new(struct slu_hasher **h, struct slu_err *err);
void slu_hasher_clear(struct slu_hasher *h);
void slu_hasher_add(struct slu_hasher *h, const void *p, size_t n_bytes);
struct slu_u128 slu_hasher_end(const struct slu_hasher *h);
void slu_hasher_free(struct slu_hasher *h);
/* Computes XXH3-128 of the bytes from .. to - 1 of a file. SLU_E_TRUNCATED or SLU_E_IO
 * if they cannot all be read. */
SLU_MUST_USE int slu_hash_file(struct slu_u128 *sum, int fd, uint64_t from, uint64_t to,
                               struct slu_err *err);

/* Returns a + b mod 2^128. */
static inline struct slu_u128 slu_u128_sub(struct slu_u128 a, struct slu_u128 b)
{
    struct slu_u128 r = {a.lo - b.lo, a.hi - b.hi - (a.lo < b.lo)};
    return r;
}
static inline struct slu_u128 slu_u128_add(struct slu_u128 a, struct slu_u128 b)
{
    struct slu_u128 r = {a.lo + b.lo, a.hi + b.hi};
    r.hi += r.lo < a.lo;
    return r;
}
/* Returns a * b mod 2^128. */
static inline struct slu_u128 slu_u128_mul(struct slu_u128 a, struct slu_u128 b)
{
    __extension__ typedef unsigned __int128 wide;
    wide r = (wide)a.lo * b.lo;
    uint64_t cross = a.lo * b.hi + a.hi * b.lo;
    struct slu_u128 out = {(uint64_t)r, (uint64_t)(r >> 64) + cross};
    return out;
}
static inline int slu_u128_cmp(struct slu_u128 a, struct slu_u128 b)
{
    if (a.hi != b.hi)
        return a.hi < b.hi ? -1 : 1;
    return a.lo < b.lo ? -1 : a.lo > b.lo;
}

/* Returns the identity of a sequence's tokens: XXH3-128 of the length (u64
 * little-endian) followed by the ids (u32 little-endian), for any stored width
 * (formats/STREAM.md). `tok` has len_tok ids of tok_bytes (2 or 4) bytes each. If the
 * ids come in parts, use lib/stream/token_hash.h. */
struct slu_u128 slu_hash_tokens(const void *tok, size_t len_tok, unsigned tok_bytes);

/* Copies n ids of tok_bytes bytes each, in the host's byte order, to dst as u32
 * little-endian. */
void slu_hash_widen(uint8_t *dst, const void *tok, size_t n, unsigned tok_bytes);

/* Returns draw number `draw` for (seed, a, b, c): 64 uniform bits from a keyed hash,
 * without any state (DESIGN.md, Identity and order). */
uint64_t slu_draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, uint64_t draw);

/* Returns a uniform number in [0, n) from 64 uniform bits, n > 0 (multiply-shift, bias
 * below n/2^64). */
static inline uint64_t slu_draw_below(uint64_t bits, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)bits * n) >> 64);
}

/* Writes v as 32 lower-case hexadecimal digits (hi first) and a NUL. */
void slu_u128_hex(struct slu_u128 v, char out[33]);

SLU_END_DECLS

#endif
