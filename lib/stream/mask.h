/* mask.h - the mask of a stream: a bit a token, 1 if the token is trained on.
 *
 * STREAM.md stores the bits in a column. In memory the bit of a token is the top bit of
 * its id, SLU_TRAINED: whatever moves ids moves their bits, and cannot lose them. So in
 * a batch with masks ids have 4 bytes, for any stored width, and are below 2^31.
 * "Marked ids" are ids with this bit; plain ids have it clear.
 *
 * All functions are pure and safe to call from any thread.
 */
#ifndef SLU_MASK_H
#define SLU_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

SLU_BEGIN_DECLS

#define SLU_TRAINED UINT32_C(0x80000000)

/* Returns the bytes of n bits. */
static inline uint64_t slu_mask_bytes(uint64_t n)
{
    return n / 8 + (n % 8 != 0);
}

/* SLU_E_FORMAT unless the n ids are below 2^31, as all are before they are marked. */
SLU_MUST_USE int slu_mask_check_plain(const uint32_t *id, size_t n,
                                      struct slu_err *err);

/* Makes marked ids of n ids of tok_bytes (2 or 4) bytes at `tok`, little-endian and at
 * any alignment, and of their bits (bit i % 8 of byte i / 8). tok NULL: ids are 0. bits
 * NULL: all 1. */
void slu_mask_join(uint32_t *marked, const void *tok, unsigned tok_bytes,
                   const uint8_t *bits, size_t n);

/* Returns the id, marked if `bit` is 1; it is 0 or 1. */
static inline uint32_t slu_mask_mark(uint32_t id, uint32_t bit)
{
    return id | bit << 31;
}

/* Marks the ids whose byte of `mask` is 1. Returns n, or the index of the first byte that
 * is neither 0 nor 1, from which on no id is marked. */
size_t slu_mask_mark_bytes(uint32_t *id, const uint8_t *mask, size_t n);

/* Parts n marked ids: stores ids of tok_bytes bytes (NULL: not wanted) and their bits
 * (NULL: not wanted; slu_mask_bytes(n) bytes, the last bits 0). */
void slu_mask_split(const uint32_t *marked, size_t n, void *tok, unsigned tok_bytes,
                    uint8_t *bits);

/* Returns how many of n marked ids are trained on. */
uint64_t slu_mask_count(const uint32_t *marked, size_t n);

/* Returns slu_hash_tokens of the ids. */
struct slu_u128 slu_mask_hash_ids(const uint32_t *marked, size_t n);

/* Returns the hash of a sequence's mask (STREAM.md section 7); ids: slu_mask_hash_ids.
 */
struct slu_u128 slu_mask_hash(const uint32_t *marked, size_t n, struct slu_u128 ids);

SLU_END_DECLS

#endif
