/* hash_private.h - shared by hash.c and hash_avx2.c. */
#ifndef SLU_HASH_PRIVATE_H
#define SLU_HASH_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

void slu_hash_widen_avx2(uint8_t *dst, const uint16_t *t, size_t n);

#endif
