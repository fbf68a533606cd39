#include "lib/schedule/pcg64.h"

typedef unsigned __int128 u128;

/* ---- SeedSequence: makes four words of 64 bits from a seed of any quality ---- */

enum { POOL = 4 };

static uint32_t hashmix(uint32_t value, uint32_t *hash_const)
{
    value ^= *hash_const;
    *hash_const *= UINT32_C(0x931e8875);
    value *= *hash_const;
    return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y)
{
    uint32_t r = UINT32_C(0xca01f9dd) * x - UINT32_C(0x4973f715) * y;
    return r ^ r >> 16;
}

/* Mixes the seed's words, least significant first; missing ones are 0. */
static void spread(uint64_t seed, uint64_t out[4])
{
    uint32_t pool[POOL] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t c = UINT32_C(0x43b0d7e5), word[8];
    for (int i = 0; i < POOL; i++)
        pool[i] = hashmix(pool[i], &c);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] = mix(pool[to], hashmix(pool[from], &c));
    c = UINT32_C(0x8b51f9dd);
    for (int i = 0; i < 8; i++) {
        uint32_t v = pool[i % POOL] ^ c;
        c *= UINT32_C(0x58f38ded);
        v *= c;
        word[i] = v ^ v >> 16;
    }
    for (int i = 0; i < 4; i++)
        out[i] = (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
}

/* ---- PCG XSL-RR 128/64 ---- */

static void step(struct slu_pcg64 *g)
{
    const u128 mult =
        (u128)UINT64_C(2549297995355413924) << 64 | UINT64_C(4865540595714422341);
    g->state = g->state * mult + g->inc;
}

void slu_pcg64_seed(struct slu_pcg64 *g, uint64_t seed)
{
    uint64_t w[4];
    spread(seed, w);
    g->inc = ((u128)w[2] << 64 | w[3]) << 1 | 1;
    g->state = 0;
    g->has_high = false;
    g->high = 0;
    step(g);
    g->state += (u128)w[0] << 64 | w[1];
    step(g);
}

uint64_t slu_pcg64_next(struct slu_pcg64 *g)
{
    step(g);
    uint64_t x = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
    unsigned rot = (unsigned)(g->state >> 122);
    return x >> rot | x << (-rot & 63);
}

static uint32_t next32(struct slu_pcg64 *g)
{
    if (g->has_high) {
        g->has_high = false;
        return g->high;
    }
    uint64_t x = slu_pcg64_next(g);
    g->has_high = true;
    g->high = (uint32_t)(x >> 32);
    return (uint32_t)x;
}

uint32_t slu_pcg64_upto(struct slu_pcg64 *g, uint32_t last)
{
    if (last == 0)
        return 0;
    if (last == UINT32_MAX)
        return next32(g);
    uint32_t n = last + 1;
    uint64_t m = (uint64_t)next32(g) * n;
    if ((uint32_t)m < n) {
        uint32_t threshold = (UINT32_MAX - last) % n;
        while ((uint32_t)m < threshold)
            m = (uint64_t)next32(g) * n;
    }
    return (uint32_t)(m >> 32);
}

/* Returns a uniform number in [0, last] as numpy's shuffles do: draws until it fits. */
static uint32_t masked_upto(struct slu_pcg64 *g, uint32_t last)
{
    uint32_t mask = last ? UINT32_MAX >> __builtin_clz(last) : 0, x;
    do
        x = next32(g) & mask;
    while (x > last);
    return x;
}

void slu_pcg64_shuffle(struct slu_pcg64 *g, uint32_t *a, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        uint32_t j = masked_upto(g, (uint32_t)i), t = a[j];
        a[j] = a[i];
        a[i] = t;
    }
}
