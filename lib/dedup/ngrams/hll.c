#include "hll.h"

#include <math.h>

enum { M = 1 << SLU_HLL_BITS, Q = 64 - SLU_HLL_BITS };

void slu_hll_add(struct slu_hll *h, const uint64_t *hash, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t rest = hash[i] << SLU_HLL_BITS | UINT64_C(1) << (SLU_HLL_BITS - 1);
        uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1); /* 1 … Q + 1 */
        uint8_t *r = &h->reg[hash[i] >> Q];
        if (*r < rank)
            *r = rank;
    }
}

void slu_hll_merge(struct slu_hll *a, const struct slu_hll *b)
{
    for (unsigned i = 0; i < M; i++)
        a->reg[i] = a->reg[i] > b->reg[i] ? a->reg[i] : b->reg[i];
}

/* The two series of Ertl's section 2.4: for registers that are still 0, and for those
 * that have the largest value. They end when a term no longer changes the sum. */
static double sigma(double x)
{
    double y = 1, z = x, last;

    if (x == 1)
        return INFINITY;
    do {
        x *= x;
        last = z;
        z += x * y;
        y += y;
    } while (z != last);
    return z;
}

static double tau(double x)
{
    double y = 1, z = 1 - x, last;

    if (x == 0 || x == 1)
        return 0;
    do {
        x = sqrt(x);
        last = z;
        y /= 2;
        z -= (1 - x) * (1 - x) * y;
    } while (z != last);
    return z / 3;
}

double slu_hll_estimate(const struct slu_hll *h)
{
    uint64_t count[Q + 2] = {0};
    const double alpha = 0.72134752044448170368; /* 1 / (2 ln 2) */

    for (unsigned i = 0; i < M; i++)
        count[h->reg[i]]++;
    double z = M * tau(1 - (double)count[Q + 1] / M);
    for (unsigned k = Q; k >= 1; k--)
        z = (z + (double)count[k]) / 2;
    z += M * sigma((double)count[0] / M);
    return alpha * M * (double)M / z;
}
