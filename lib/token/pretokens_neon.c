/* pretokens_neon.c - blocks by NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include <stdint.h>
#include <string.h>

struct block {
    uint8x16_t v[4];
};

static inline struct block load(const uint8_t *p, unsigned n)
{
    uint8_t copy[64];
    struct block x;

    if (n < 64) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, p, n);
        p = copy;
    }
    for (int i = 0; i < 4; i++)
        x.v[i] = vld1q_u8(p + 16 * i);
    return x;
}

static inline uint64_t between(struct block x, uint8_t from, uint8_t to)
{
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t least = vdupq_n_u8(from), most = vdupq_n_u8((uint8_t)(to - from));

    for (int i = 0; i < 4; i++)
        x.v[i] = vandq_u8(vcleq_u8(vsubq_u8(x.v[i], least), most), bit);
    uint8x16_t a = vpaddq_u8(x.v[0], x.v[1]), b = vpaddq_u8(x.v[2], x.v[3]);
    a = vpaddq_u8(a, b);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(a, a)), 0);
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    for (; starts; starts &= starts - 1)
        *end++ = base + (uint32_t)__builtin_ctzll(starts);
}

#include "lib/token/pretokens_find.h"

PRETOKENS_TABLE(neon);
#endif
