/* shard_ids.h - writes ids as raw little-endian bytes, for several formats. Thread
 * safety: any. */
#ifndef SLU_SHARD_IDS_H
#define SLU_SHARD_IDS_H

#include "formats/shards/shard.h"
#include "lib/base/buf.h"
#include "lib/base/le.h"

/* Appends n ids of tok_bytes (2 or 4) each, in native order. */
SLU_MUST_USE static inline int slu_shard_ids_put(struct slu_buf *out, const void *tok,
                                                 uint64_t n, unsigned tok_bytes,
                                                 struct slu_err *err)
{
    size_t size;

    if (slu_mul_overflow(n, tok_bytes, &size))
        return slu_fail_nomem(err, UINT64_MAX);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return slu_buf_append(out, tok, size, err);
    int rc = slu_buf_reserve(out, size, err);
    for (uint64_t i = 0; !rc && i < n; i++, out->len += tok_bytes)
        if (tok_bytes == 2)
            slu_put_le16(out->data + out->len, ((const uint16_t *)tok)[i]);
        else
            slu_put_le32(out->data + out->len, ((const uint32_t *)tok)[i]);
    return rc;
}

/* The same from tok_bytes to id_bytes, which may be more. */
SLU_MUST_USE static inline int slu_shard_ids_widen(struct slu_buf *out, const void *tok,
                                                   uint64_t n, unsigned tok_bytes,
                                                   unsigned id_bytes,
                                                   struct slu_err *err)
{
    size_t size;

    if (tok_bytes == id_bytes)
        return slu_shard_ids_put(out, tok, n, tok_bytes, err);
    if (slu_mul_overflow(n, id_bytes, &size))
        return slu_fail_nomem(err, UINT64_MAX);
    int rc = slu_buf_reserve(out, size, err);
    for (uint64_t i = 0; !rc && i < n; i++, out->len += id_bytes)
        slu_put_le32(out->data + out->len, ((const uint16_t *)tok)[i]);
    return rc;
}

/* The default size of a shard: few files, for trainers that open all of them. */
#define SLU_SHARD_IDS_BYTE (UINT64_C(4) << 30)

/* Number of the bucket's sequences whose ids fit such a shard, at least 1. */
static inline uint64_t slu_shard_ids_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = SLU_SHARD_IDS_BYTE / b->id_bytes / b->n_id;

    return n < 1 ? 1 : n;
}

#endif
