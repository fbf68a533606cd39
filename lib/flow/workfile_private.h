/* workfile_private.h - the layout of a work file (workfile.h), for the code that writes
 * and reads it. */
#ifndef SLU_WORKFILE_PRIVATE_H
#define SLU_WORKFILE_PRIVATE_H

#include "lib/flow/workfile.h"

#define MAGIC     "SLUNEAR1"
#define MAGIC_END "SLUNEND1"

/* Bytes of the head, of the foot, of the fixed part of the tail and of a section's row
 * in the tail; and bytes that are read or written at once. */
enum { HEAD = 16, FOOT = 32, TAIL = 128, ROW = 24, STEP = 1 << 18 };

/* The hash in the foot; covers all bytes before it. */
static inline struct slu_u128 slu_workfile_foot_hash(const uint8_t head[HEAD],
                                                     const void *tail, size_t n)
{
    return slu_workfile_mix(slu_hash128(head, HEAD), slu_hash128(tail, n));
}

#endif
