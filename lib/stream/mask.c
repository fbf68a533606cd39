#include "lib/stream/mask.h"

#include <string.h>

#include "lib/base/le.h"
#include "lib/base/xxh3.h"

enum { CHUNK_TOK = 4096 }; /* a multiple of 8; stays in the first-level cache */

int slu_mask_check_plain(const uint32_t *id, size_t n, struct slu_err *err)
{
    size_t i = 0;
    while (i < n && !(id[i] & SLU_TRAINED))
        i++;
    return i == n ? SLU_OK
                  : slu_fail(err, SLU_E_FORMAT,
                             "id %u at %zu is damaged; beside a mask, ids below 2^31 "
                             "were expected",
                             id[i], i);
}

void slu_mask_join(uint32_t *marked, const void *tok, unsigned tok_bytes,
                   const uint8_t *bits, size_t n)
{
    const uint8_t *t = tok;
    for (size_t i = 0; i < n; i++) {
        uint32_t bit = bits ? bits[i / 8] >> i % 8 & 1 : 1;
        uint32_t id = !t               ? 0
                      : tok_bytes == 2 ? slu_le16(t + 2 * i)
                                       : slu_le32(t + 4 * i);
        marked[i] = slu_mask_mark(id, bit);
    }
}

size_t slu_mask_mark_bytes(uint32_t *id, const uint8_t *mask, size_t n)
{
    size_t i = 0;
    for (; i < n && mask[i] <= 1; i++)
        id[i] = slu_mask_mark(id[i], mask[i]);
    return i;
}

void slu_mask_split(const uint32_t *marked, size_t n, void *tok, unsigned tok_bytes,
                    uint8_t *bits)
{
    uint8_t *t = tok;
    for (size_t i = 0; tok && i < n; i++) {
        uint32_t id = marked[i] & ~SLU_TRAINED;
        if (tok_bytes == 2)
            slu_put_le16(t + 2 * i, (uint16_t)id);
        else
            slu_put_le32(t + 4 * i, id);
    }
    for (size_t i = 0; bits && i < n; i += 8) {
        unsigned byte = 0;
        for (size_t k = 0; k < 8 && i + k < n; k++)
            byte |= (unsigned)(marked[i + k] >> 31) << k;
        bits[i / 8] = (uint8_t)byte;
    }
}

uint64_t slu_mask_count(const uint32_t *marked, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += marked[i] >> 31;
    return count;
}

struct slu_u128 slu_mask_hash_ids(const uint32_t *marked, size_t n)
{
    uint8_t b[8 + 4 * CHUNK_TOK] __attribute__((aligned(64)));
    XXH3_state_t st;
    slu_put_le64(b, n);
    if (n <= CHUNK_TOK) {
        slu_mask_split(marked, n, b + 8, 4, NULL);
        return slu_hash128(b, 8 + 4 * n);
    }
    XXH3_128bits_reset(&st);
    slu_xxh3_128_update(&st, b, 8);
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < CHUNK_TOK ? n - i : CHUNK_TOK;
        slu_mask_split(marked + i, k, b, 4, NULL);
        slu_xxh3_128_update(&st, b, 4 * k);
    }
    return slu_xxh3_128_digest(&st);
}

struct slu_u128 slu_mask_hash(const uint32_t *marked, size_t n, struct slu_u128 ids)
{
    uint8_t bits[CHUNK_TOK / 8 + 16];
    XXH3_state_t st;
    size_t i = 0, k = n;
    if (n > CHUNK_TOK)
        XXH3_128bits_reset(&st);
    for (; n - i > CHUNK_TOK; i += CHUNK_TOK) {
        slu_mask_split(marked + i, CHUNK_TOK, NULL, 0, bits);
        slu_xxh3_128_update(&st, bits, CHUNK_TOK / 8);
    }
    k = n - i;
    slu_mask_split(marked + i, k, NULL, 0, bits);
    slu_put_le64(bits + slu_mask_bytes(k), ids.lo);
    slu_put_le64(bits + slu_mask_bytes(k) + 8, ids.hi);
    if (n <= CHUNK_TOK)
        return slu_hash128(bits, slu_mask_bytes(k) + 16);
    slu_xxh3_128_update(&st, bits, slu_mask_bytes(k) + 16);
    return slu_xxh3_128_digest(&st);
}
