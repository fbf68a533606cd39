/* histogram.c - lengths are counted by the kernel and by its twin as by the oracle. */
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/histogram.h"
#include "tests/kernels/kernels.h"

static bool histogram_case(size_t n, uint64_t range, size_t n_bin, bool one_value)
{
    uint32_t *len = need(n * sizeof *len);
    uint64_t *a = need(n_bin * sizeof *a), *b = need(n_bin * sizeof *b);
    for (size_t i = 0; i < n; i++)
        len[i] = (uint32_t)(one_value ? range - 1 : rnd(1 + rnd(range)));
    for (size_t v = 0; v < n_bin; v++)
        a[v] = b[v] = v; /* counts are added to */
    slu_histogram_ref(len, n, a, n_bin);
    slu_histogram_cpu(len, n, b, n_bin);
    bool good = n_bin == 0 || !memcmp(a, b, n_bin * sizeof *a);
    if (have_device && good) {
        for (size_t v = 0; v < n_bin; v++)
            b[v] = v;
        uint32_t *dl = to_device(len, n * sizeof *len);
        uint64_t *dc = to_device(b, n_bin * sizeof *b);
        good = device_said(slu_histogram_cuda(dl, n, dc, n_bin, NULL), "histogram") &&
               from_device(b, dc, n_bin * sizeof *b) &&
               !memcmp(a, b, n_bin * sizeof *a);
        slu_device_free(dl);
        slu_device_free(dc);
    }
    free(len);
    free(a);
    free(b);
    return good;
}

/* At the borders of a block's share and of its table; a length that no table has. */
static bool histogram_borders(void)
{
    static const size_t bins[] = {24575, 24576, 24577};
    bool good = true;
    for (size_t k = 0; k < 3; k++)
        for (size_t n = 511; n <= 513; n++) {
            good &= histogram_case(n, bins[k] + 2, bins[k], false);
            good &= histogram_case(n, 24577, bins[k], true);
            good &= histogram_case(16384 + n, bins[k] + 2, bins[k], false);
        }
    return good && histogram_case(40000, UINT64_C(1) << 32, 5000, true);
}

void test_histogram(void)
{
    static const size_t size[] = {0,    1,    2,       255,          4095,
                                  4096, 4097, 1 << 17, (1 << 20) + 1};
    bool good = true;
    for (size_t i = 0; i < sizeof size / sizeof *size && size[i] <= most_items; i++) {
        good &= histogram_case(size[i], 100, 128, false);
        good &= histogram_case(size[i], 9000, 8193, false);
        good &= histogram_case(size[i], 1 << 21, 1 << 20, false);
        good &= histogram_case(size[i], 8193, 8193, true);
        good &= histogram_case(size[i], 70000, 65536, true);
        good &= histogram_case(size[i], 3, 1, false);
    }
    result(good, "histogram: lengths of all kinds, in the table and past it");
    result(histogram_borders(), "histogram: borders of a block's share and table");
}
