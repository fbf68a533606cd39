/* hash.h - the hashes of sequences of ids that lie in one array: of sequence i, which is
 * ids first[i] … first[i] + len[i] - 1 of tok, hash[2 * i] and hash[2 * i + 1] are the
 * lower and the upper half of slu_hash_tokens (lib/base/hash.h): XXH3-128 of the length
 * (u64 little-endian) and the ids (u32 little-endian).
 *
 *   slu_hash_ref   the oracle: XXH3 by its specification, with what hash_short.h has
 *   slu_hash_cuda  tok, first, len and hash are device memory; runs on `stream` without
 *                  waiting; returns 0 or a code for slu_device_error
 *
 * The version for the CPU is slu_hash_tokens itself.
 */
#ifndef SLU_KERNELS_HASH_H
#define SLU_KERNELS_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct slu_hash_seqs {
    const void *tok;
    unsigned tok_bytes; /* 2 or 4 */
    const uint64_t *first;
    const uint32_t *len; /* each > 0 */
    size_t n;            /* sequences */
};

void slu_hash_ref(const struct slu_hash_seqs *s, uint64_t *hash);
int slu_hash_cuda(const struct slu_hash_seqs *s, uint64_t *hash, void *stream);

#ifdef __cplusplus
}
#endif
#endif
