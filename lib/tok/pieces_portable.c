/* pieces_portable.c - blocks without SIMD: the twin that every level is checked
 * against. */
#include "lib/tok/pieces_find.h"

enum {
    A_UPPER = 1,
    A_LOWER = 2,
    A_NUMBER = 4,
    A_BLANK = 8,
    A_LINE = 16,
    A_SPACE = 32,
    A_QUOTE = 64,
    A_CONTROL = 128
};

static const uint8_t ascii[256] = {
    [0 ... 8] = A_CONTROL,     [14 ... 31] = A_CONTROL,  [127] = A_CONTROL,
    ['\t'] = A_BLANK,          ['\v'] = A_BLANK,         ['\f'] = A_BLANK,
    [' '] = A_BLANK | A_SPACE, ['\n'] = A_LINE,          ['\r'] = A_LINE,
    ['\''] = A_QUOTE,          ['0' ... '9'] = A_NUMBER, ['A' ... 'Z'] = A_UPPER,
    ['a' ... 'z'] = A_LOWER,
};

static inline void classify(const uint8_t *p, unsigned n, struct masks *m)
{
    *m = (struct masks){0};
    for (unsigned i = 0; i < n; i++) {
        uint64_t c = ascii[p[i]], h = p[i] >> 7, l = p[i] >= 0xC0;
        m->upper |= (c & 1) << i;
        m->lower |= (c >> 1 & 1) << i;
        m->number |= (c >> 2 & 1) << i;
        m->blank |= (c >> 3 & 1) << i;
        m->line |= (c >> 4 & 1) << i;
        m->space |= (c >> 5 & 1) << i;
        m->quote |= (c >> 6 & 1) << i;
        m->control |= (c >> 7 & 1) << i;
        m->high |= h << i;
        m->lead |= l << i;
    }
    m->cont = m->high & ~m->lead;
}

static inline void put_ends(uint64_t starts, uint32_t base, uint32_t *end)
{
    for (; starts; starts &= starts - 1)
        *end++ = base + (uint32_t)__builtin_ctzll(starts);
}

PIECES_TABLE(portable);
