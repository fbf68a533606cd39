#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "hash_private.h"
#include "le.h"
#include "lib/base/simd.h"
#include "lib/base/xxh3.h"

uint64_t slu_hash64(const void *p, size_t n_bytes)
{
    return slu_xxh3_64(p, n_bytes);
}

struct slu_u128 slu_hash128(const void *p, size_t n_bytes)
{
    return slu_xxh3_128(p, n_bytes);
}

struct slu_hasher {
    XXH3_state_t st; /* aligned to 64 */
};

int slu_hasher_new(struct slu_hasher **h, struct slu_err *err)
{
    *h = aligned_alloc(64, sizeof **h);
    if (!*h)
        return slu_fail_nomem(err, sizeof **h);
    XXH3_INITSTATE(&(*h)->st);
    slu_hasher_clear(*h);
    return SLU_OK;
}

void slu_hasher_clear(struct slu_hasher *h)
{
    XXH3_128bits_reset(&h->st);
}

void slu_hasher_add(struct slu_hasher *h, const void *p, size_t n_bytes)
{
    slu_xxh3_128_update(&h->st, p, n_bytes);
}

struct slu_u128 slu_hasher_end(const struct slu_hasher *h)
{
    return slu_xxh3_128_digest(&h->st);
}

void slu_hasher_free(struct slu_hasher *h)
{
    free(h);
}

int slu_hash_file(struct slu_u128 *sum, int fd, uint64_t from, uint64_t to,
                  struct slu_err *err)
{
    enum { BLOCK = 1 << 18 };
    struct slu_hasher *h = NULL;
    uint8_t *block = malloc(BLOCK);
    int rc = block ? slu_hasher_new(&h, err) : slu_fail_nomem(err, BLOCK);
    while (!rc && from < to) {
        size_t n = to - from < BLOCK ? (size_t)(to - from) : BLOCK;
        rc = slu_pread_full(fd, block, n, from, err);
        if (!rc)
            slu_hasher_add(h, block, n);
        from += n;
    }
    if (!rc)
        *sum = slu_hasher_end(h);
    slu_hasher_free(h);
    free(block);
    return rc;
}

enum { WIDEN_MANY = 128 }; /* for fewer ids the question takes longer */

void slu_hash_widen(uint8_t *dst, const void *tok, size_t n, unsigned tok_bytes)
{
    if (tok_bytes == 4 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        memcpy(dst, tok, n * 4);
    } else if (tok_bytes == 4) {
        for (size_t i = 0; i < n; i++)
            slu_put_le32(dst + 4 * i, ((const uint32_t *)tok)[i]);
    } else {
        const uint16_t *t = tok;
#if defined(__x86_64__)
        if (n >= WIDEN_MANY && slu_has_simd("avx2")) {
            slu_hash_widen_avx2(dst, t, n);
            return;
        }
#endif
        for (size_t i = 0; i < n; i++)
            slu_put_le32(dst + 4 * i, t[i]);
    }
}

enum {
    ONE_SHOT_TOK = 4094, /* 16 KiB with the length: stays in the first-level cache */
    DIRECT_TOK = 2048,   /* so many are hashed where they lie; fewer, as a copy */
};

struct slu_u128 slu_hash_tokens(const void *tok, size_t len_tok, unsigned tok_bytes)
{
    uint8_t b[8 + 4 * ONE_SHOT_TOK] __attribute__((aligned(64)));
    const uint8_t *p = tok;
    XXH3_state_t st;
    slu_put_le64(b, len_tok);
    if (tok_bytes == 4 && len_tok >= DIRECT_TOK &&
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        XXH3_128bits_reset(&st);
        slu_xxh3_128_update(&st, b, 8);
        slu_xxh3_128_update(&st, tok, 4 * len_tok);
        return slu_xxh3_128_digest(&st);
    }
    if (len_tok <= ONE_SHOT_TOK) {
        slu_hash_widen(b + 8, tok, len_tok, tok_bytes);
        return slu_hash128(b, 8 + 4 * len_tok);
    }
    XXH3_128bits_reset(&st);
    for (size_t left = len_tok, fill = 8; left; fill = 0) {
        size_t n = (sizeof b - fill) / 4;
        n = n < left ? n : left;
        slu_hash_widen(b + fill, p, n, tok_bytes);
        slu_xxh3_128_update(&st, b, fill + 4 * n);
        p += n * tok_bytes;
        left -= n;
    }
    return slu_xxh3_128_digest(&st);
}

uint64_t slu_draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, uint64_t draw)
{
    uint8_t k[48];
    memcpy(k, "sludraw1", 8);
    slu_put_le64(k + 8, seed);
    slu_put_le64(k + 16, a);
    slu_put_le64(k + 24, b);
    slu_put_le64(k + 32, c);
    slu_put_le64(k + 40, draw);
    return slu_hash64(k, sizeof k);
}

void slu_u128_hex(struct slu_u128 v, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)v.hi,
             (unsigned long long)v.lo);
}
