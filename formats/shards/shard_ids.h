/* shard_ids.h - writes ids as raw little-endian bytes, for several formats. Thread
 * safety: any. */
#ifndef SLU_SHARD_IDS_H
#define SLU_SHARD_IDS_H

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

/* Sequences of n_id ids that give a shard of 2^27 ids, at least 1: a quarter of a GiB
 * with two bytes each. */
static inline uint64_t slu_shard_ids_sequences(uint64_t n_id)
{
    uint64_t n = (UINT64_C(1) << 27) / n_id;

    return n < 1 ? 1 : n;
}

#endif
