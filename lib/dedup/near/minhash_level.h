/* minhash_level.h - shared by minhash.c and the files of the SIMD levels. */
#ifndef SLU_DEDUP_MINHASH_LEVEL_H
#define SLU_DEDUP_MINHASH_LEVEL_H

#include <stddef.h>
#include <stdint.h>

/* Functions come in blocks of this many; arrays are padded to whole blocks and aligned
 * to 64 bytes. */
#define SLU_MINHASH_BLOCK 16

/* min[k] becomes the minimum of min[k] and ((hash[i] >> 32) ^ flip[k]) * factor[k] for
 * all i; for k < n_fn, a multiple of SLU_MINHASH_BLOCK. */
typedef void slu_minhash_fn(const uint32_t *flip, const uint32_t *factor, size_t n_fn,
                            const uint64_t *hash, size_t n, uint32_t *min);

slu_minhash_fn slu_minhash_portable, slu_minhash_avx2, slu_minhash_avx512,
    slu_minhash_neon;

#endif
