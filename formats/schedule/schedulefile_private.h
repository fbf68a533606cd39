/* schedulefile_private.h - the layout of a schedule's file, for its writer and its
 * reader. */
#ifndef SLU_SCHEDULEFILE_PRIVATE_H
#define SLU_SCHEDULEFILE_PRIVATE_H

#include "formats/schedule/schedulefile.h"

enum {
    SLU_SF_FIXED = 256,  /* bytes of the header before the buckets */
    SLU_SF_BUCKET = 128, /* of a bucket's row */
    SLU_SF_RECORD = 16,
    SLU_SF_FOOTER = 16,
    SLU_SF_BLOCK = 65536, /* steps covered by one hash */
    SLU_SF_HASH_AT = 248, /* position of header_hash */
    SLU_SF_HAS_CHECKSUM = 1 << 16,
};
#define SLU_SF_MAGIC "\xF5SLSCHD\n"
#define SLU_SF_END   "SLSCHEND"

static inline uint64_t slu_sf_blocks(uint64_t n_steps)
{
    return n_steps / SLU_SF_BLOCK + (n_steps % SLU_SF_BLOCK != 0);
}

/* Appends the header with its hash. */
SLU_MUST_USE int slu_sf_put_header(struct slu_buf *b, const struct slu_steps_info *info,
                                   uint64_t first_step, uint64_t n_steps,
                                   struct slu_err *err);
/* Reads a header of `bytes` bytes at p, whose magic was checked: checks hash, ranges
 * and sums. Fills info; the caller releases it, also after a fault. */
SLU_MUST_USE int slu_sf_get_header(struct slu_steps_info *info, uint64_t *first_step,
                                   uint64_t *n_steps, const uint8_t *p, size_t bytes,
                                   struct slu_err *err);

#endif
