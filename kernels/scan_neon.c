/* scan_neon.c - positions of an id by NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "scan_private.h"

/* Converts 16 results of 16 bits to bits of a u64's low half, in order. */
static inline uint64_t bits(uint16x8_t a, uint16x8_t b)
{
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t x = vandq_u8(vcombine_u8(vmovn_u16(a), vmovn_u16(b)), bit);
    return vaddv_u8(vget_low_u8(x)) | (uint64_t)vaddv_u8(vget_high_u8(x)) << 8;
}

static inline uint16x8_t equal_32(const uint32_t *t, uint32x4_t v)
{
    return vcombine_u16(vmovn_u32(vceqq_u32(vld1q_u32(t), v)),
                        vmovn_u32(vceqq_u32(vld1q_u32(t + 4), v)));
}

static size_t find_16(const uint16_t *t, size_t n, uint16_t v, uint16_t *at)
{
    const uint16x8_t all = vdupq_n_u16(v);
    size_t n_at = 0, i = 0;

    for (; i + 16 <= n; i += 16)
        n_at = eos_put(bits(vceqq_u16(vld1q_u16(t + i), all),
                            vceqq_u16(vld1q_u16(t + i + 8), all)),
                       i, at, n_at);
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

static size_t find_32(const uint32_t *t, size_t n, uint32_t v, uint16_t *at)
{
    const uint32x4_t all = vdupq_n_u32(v);
    size_t n_at = 0, i = 0;

    for (; i + 16 <= n; i += 16)
        n_at =
            eos_put(bits(equal_32(t + i, all), equal_32(t + i + 8, all)), i, at, n_at);
    for (; i < n; i++) {
        at[n_at] = (uint16_t)i;
        n_at += t[i] == v;
    }
    return n_at;
}

const struct slu_eos_kernel eos_neon = {"neon", find_16, find_32};
#endif
