/* pretokens_portable.c - blocks without SIMD: the portable version, against which every
 * level is tested. */
#include <stdint.h>
#include <string.h>

struct block {
    uint64_t word[8]; /* byte i is byte i % 8 of word i / 8, from the lowest on */
};

static inline struct block load(const uint8_t *p, unsigned n)
{
    struct block x = {{0}};

    memcpy(&x, p, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int i = 0; i < 8; i++)
        x.word[i] = __builtin_bswap64(x.word[i]);
#endif
    return x;
}

/* Works on eight bytes at a time: the highest bit of each says whether it is at least
 * `from` and at most `to`; a multiplication brings the eight bits together. */
static inline uint64_t between(struct block x, uint8_t from, uint8_t to)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t found = 0;

    for (int i = 0; i < 8; i++) {
        uint64_t w = x.word[i], low = w & ~high, least, more;
        least = (low | high) - ones * (from & 0x7F); /* bit 7: low >= from's */
        more = low + ones * (0x7F - (to & 0x7F));    /* bit 7: low > to's */
        least = from & 0x80 ? least & w : least | w;
        more = to & 0x80 ? more & w : more | w;
        uint64_t in = least & ~more & high;
        found |= (in >> 7) * UINT64_C(0x0102040810204080) >> 56 << 8 * i;
    }
    return found;
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    for (; starts; starts &= starts - 1)
        *end++ = base + (uint32_t)__builtin_ctzll(starts);
}

#include "lib/token/pretokens_find.h"

PRETOKENS_TABLE(portable);
