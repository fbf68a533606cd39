/* near_private.h - what the parts of the external near-duplicate engine share. Private
 * to lib/dedup/near_*.c.
 */
#ifndef SLU_DEDUP_NEAR_PRIVATE_H
#define SLU_DEDUP_NEAR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

/* Ranks: a priority as it is sorted by. Fixed documents come before all others. */
static inline uint64_t slu_near_rank(bool fixed, uint64_t prio)
{
    return fixed ? 0 : prio + 1;
}

/* v such that memcmp of its bytes orders as the value does, and back. */
static inline uint64_t slu_near_be(uint64_t v)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
}

/* How many bits v has; 0 has one. */
static inline unsigned slu_near_bits(uint64_t v)
{
    return 64 - (unsigned)__builtin_clzll(v | 1);
}

#endif
