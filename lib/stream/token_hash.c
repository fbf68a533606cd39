#include "lib/stream/token_hash.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/base/xxh3.h"
#include "lib/flow/bytelog.h"

/* Constants of XXH3. */
#define STRIPE   64
#define BLOCK    1024
#define N_STRIPE (BLOCK / STRIPE)
#define PRIME32  UINT64_C(0x9E3779B1)
#define PRIME_A  UINT64_C(0x9E3779B185EBCA87)
#define PRIME_B  UINT64_C(0xC2B2AE3D27D4EB4F)
static const uint64_t first_acc[8] = {
    0xC2B2AE3D,         PRIME_A,    0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
    0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, PRIME32};

#define N_BLOCK 16 /* blocks that are hashed at a time */
#define SECRET  XXH3_SECRET_DEFAULT_SIZE

struct slu_token_hash {
    uint64_t acc[8]; /* the first two: what this block adds */
    uint64_t sum[2 * N_BLOCK];
    struct slu_bytelog *sums; /* of the first two accumulators, two words per block */
    uint64_t n_tok, n_block;
    size_t n_byte; /* in buf, with its first stripe */
    uint8_t secret[SECRET];
    /* The last stripe that was hashed, then bytes that were not. They are hashed when
     * more come, because the end of all bytes is hashed in another way. */
    uint8_t buf[STRIPE + N_BLOCK * BLOCK];
};

int slu_token_hash_new(struct slu_token_hash **out, uint64_t budget_byte,
                       const char *tmpdir, struct slu_err *err)
{
    struct slu_token_hash *h = *out = calloc(1, sizeof *h);
    int rc = h ? slu_bytelog_new(&h->sums, budget_byte, tmpdir, err)
               : slu_fail_nomem(err, sizeof *h);
    if (rc) {
        free(h);
        *out = NULL;
        return rc;
    }
    memcpy(h->acc, first_acc, sizeof h->acc);
    h->acc[0] = h->acc[1] = 0;
    XXH3_generateSecret_fromSeed(h->secret, 0);
    h->n_byte = STRIPE + 8; /* the number of ids */
    return SLU_OK;
}

/* Adds n stripes of a block. acc[i ^ 1] gets the words; they are summed separately, so
 * that compilers use SIMD. */
static void add_stripes(uint64_t *acc, const uint8_t *p, size_t n, const uint8_t *key)
{
    uint64_t a[8] = {0}, b[8] = {0};

    for (; n; n--, p += STRIPE, key += 8) {
        for (unsigned i = 0; i < 8; i++) {
            uint64_t v = slu_le64(p + 8 * i), k = v ^ slu_le64(key + 8 * i);
            a[i] += (k & UINT32_MAX) * (k >> 32);
            b[i] += v;
        }
    }
    for (unsigned i = 0; i < 8; i++)
        acc[i] += a[i] + b[i ^ 1];
}

static uint64_t scramble(const struct slu_token_hash *h, uint64_t x, unsigned i)
{
    return (x ^ x >> 47 ^ slu_le64(h->secret + SECRET - STRIPE + 8 * i)) * PRIME32;
}

/* Adds n whole blocks. */
static int add_blocks(struct slu_token_hash *h, size_t n, struct slu_err *err)
{
    for (size_t k = 0; k < n; k++) {
        add_stripes(h->acc, h->buf + STRIPE + BLOCK * k, N_STRIPE, h->secret);
        memcpy(h->sum + 2 * k, h->acc, 2 * sizeof *h->sum);
        h->acc[0] = h->acc[1] = 0;
        for (unsigned i = 2; i < 8; i++)
            h->acc[i] = scramble(h, h->acc[i], i);
    }
    h->n_block += n;
    return slu_bytelog_put(h->sums, h->sum, 2 * n * sizeof *h->sum, err);
}

int slu_token_hash_add(struct slu_token_hash *h, const void *tok, size_t n_tok,
                       unsigned tok_bytes, struct slu_err *err)
{
    const uint8_t *p = tok;
    int rc = SLU_OK;

    h->n_tok += n_tok;
    while (n_tok && !rc) {
        if (h->n_byte == sizeof h->buf) {
            rc = add_blocks(h, N_BLOCK, err);
            memcpy(h->buf, h->buf + sizeof h->buf - STRIPE, STRIPE);
            h->n_byte = STRIPE;
        }
        size_t n = (sizeof h->buf - h->n_byte) / 4;
        n = n < n_tok ? n : n_tok;
        slu_hash_widen(h->buf + h->n_byte, p, n, tok_bytes);
        h->n_byte += 4 * n;
        p += tok_bytes * n;
        n_tok -= n;
    }
    return rc;
}

/* Computes the first two accumulators after the last whole block. The number of ids is
 * the first word of the first stripe; so far it was 0 there. */
static int replay(struct slu_token_hash *h, struct slu_err *err)
{
    const uint64_t none = slu_le64(h->secret), key = h->n_tok ^ none;
    uint64_t a = first_acc[0], b = first_acc[1];
    int rc = slu_bytelog_rewind(h->sums, sizeof h->sum, err);

    a += (key & UINT32_MAX) * (key >> 32) - (none & UINT32_MAX) * (none >> 32);
    b += h->n_tok;
    for (uint64_t left = h->n_block; left && !rc;) {
        const size_t n = left < N_BLOCK ? (size_t)left : N_BLOCK;
        const void *p;
        rc = slu_bytelog_get(h->sums, &p, 2 * n * sizeof *h->sum, err);
        for (size_t i = 0; i < n && !rc; i++) {
            a = scramble(h, a + ((const uint64_t *)p)[2 * i], 0);
            b = scramble(h, b + ((const uint64_t *)p)[2 * i + 1], 1);
        }
        left -= n;
    }
    h->acc[0] += a;
    h->acc[1] += b;
    return rc;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t merge(const uint64_t *acc, const uint8_t *key, uint64_t x)
{
    for (unsigned i = 0; i < 8; i += 2)
        x +=
            mix(acc[i] ^ slu_le64(key + 8 * i), acc[i + 1] ^ slu_le64(key + 8 * i + 8));
    x ^= x >> 37;
    x *= UINT64_C(0x165667919E3779F9);
    return x ^ x >> 32;
}

int slu_token_hash_end(struct slu_token_hash *h, struct slu_u128 *hash,
                       struct slu_err *err)
{
    const uint64_t len = 8 + 4 * h->n_tok;
    const size_t whole = (h->n_byte - STRIPE - 1) / BLOCK;
    const uint8_t *secret = h->secret;
    int rc;

    if (!h->n_block) {
        slu_put_le64(h->buf + STRIPE, h->n_tok);
        *hash = slu_hash128(h->buf + STRIPE, len);
        return SLU_OK;
    }
    if ((rc = add_blocks(h, whole, err)) || (rc = replay(h, err)))
        return rc;
    const uint8_t *p = h->buf + STRIPE + BLOCK * whole, *end = h->buf + h->n_byte;
    add_stripes(h->acc, p, (size_t)(end - p - 1) / STRIPE, secret);
    add_stripes(h->acc, end - STRIPE, 1, secret + SECRET - STRIPE - 7);
    hash->lo = merge(h->acc, secret + 11, len * PRIME_A);
    hash->hi = merge(h->acc, secret + SECRET - STRIPE - 11, ~(len * PRIME_B));
    return SLU_OK;
}

uint64_t slu_token_hash_spilled(const struct slu_token_hash *h)
{
    return slu_bytelog_spilled(h->sums);
}

void slu_token_hash_free(struct slu_token_hash *h)
{
    if (h)
        slu_bytelog_free(h->sums);
    free(h);
}
