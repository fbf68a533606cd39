/* pieces_neon.c - blocks by NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "lib/tok/pieces_find.h"

struct wide {
    uint8x16_t v[4];
};

/* A bit for each byte of which all bits are set, none for one that is 0. */
static inline uint64_t bits(struct wide x)
{
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t a = vpaddq_u8(vandq_u8(x.v[0], bit), vandq_u8(x.v[1], bit));
    uint8x16_t b = vpaddq_u8(vandq_u8(x.v[2], bit), vandq_u8(x.v[3], bit));

    a = vpaddq_u8(a, b);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(a, a)), 0);
}

static inline uint64_t between(struct wide x, uint8_t from, uint8_t to)
{
    for (int i = 0; i < 4; i++)
        x.v[i] = vcleq_u8(vsubq_u8(x.v[i], vdupq_n_u8(from)),
                          vdupq_n_u8((uint8_t)(to - from)));
    return bits(x);
}

static inline uint64_t equal(struct wide x, uint8_t c)
{
    for (int i = 0; i < 4; i++)
        x.v[i] = vceqq_u8(x.v[i], vdupq_n_u8(c));
    return bits(x);
}

static inline void classify(const uint8_t *p, unsigned n, struct masks *m)
{
    uint8_t copy[64];
    struct wide x;

    if (n < 64) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, p, n);
        p = copy;
    }
    for (int i = 0; i < 4; i++)
        x.v[i] = vld1q_u8(p + 16 * i);
    m->upper = between(x, 'A', 'Z');
    m->lower = between(x, 'a', 'z');
    m->number = between(x, '0', '9');
    m->space = equal(x, ' ');
    m->line = equal(x, '\n') | equal(x, '\r');
    m->blank = (between(x, '\t', '\r') & ~m->line) | m->space;
    m->quote = equal(x, '\'');
    m->high = between(x, 0x80, 0xFF);
    m->control = (between(x, 0, 31) & ~(m->blank | m->line)) | equal(x, 127);
    m->lead = m->cont = m->caseless = m->mark = m->han = 0;
    if (m->high) {
        m->lead = between(x, 0xC0, 0xFF);
        m->cont = m->high & ~m->lead;
    }
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    for (; starts; starts &= starts - 1)
        *end++ = base + (uint32_t)__builtin_ctzll(starts);
}

PIECES_TABLE(neon);
#endif
