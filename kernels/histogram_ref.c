#include "histogram.h"

void slu_histogram_ref(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin)
{
    for (size_t i = 0; i < n; i++)
        if (len[i] < n_bin)
            count[len[i]]++;
}

/* With runs of equal lengths, each increment waits for the one before it. So every
 * other short length is counted in a second table, and the two chains run side by
 * side. */
static void histogram_block(const uint32_t *len, size_t n, uint64_t *count,
                            size_t n_bin)
{
    enum { NEAR = 2048 };
    uint32_t near[NEAR] = {0};
    size_t n_near = n_bin < NEAR ? n_bin : NEAR;
    for (size_t i = 0; i + 1 < n; i += 2) {
        uint32_t a = len[i], b = len[i + 1];
        if (a < n_bin)
            count[a]++;
        if (b < n_near)
            near[b]++;
        else if (b < n_bin)
            count[b]++;
    }
    if (n % 2)
        slu_histogram_ref(len + n - 1, 1, count, n_bin);
    for (size_t v = 0; v < n_near; v++)
        count[v] += near[v];
}

void slu_histogram_cpu(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin)
{
    /* Below 2^32, because the second table counts in 32 bits. */
    const size_t block = 1 << 20;
    for (; n > block; n -= block, len += block)
        histogram_block(len, block, count, n_bin);
    if (n >= 4096)
        histogram_block(len, n, count, n_bin);
    else
        slu_histogram_ref(len, n, count, n_bin);
}
