/* scan.c - the device finds the lengths of documents as the oracle does. The twins on the
 * processor have their own test, tests/unit/test_scan.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/scan.h"
#include "tests/kernels/kernels.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* One id in `rare` is EOS; 0: documents end at the borders of the device's table and of
 * n_bin. */
static bool scan_case(size_t n, unsigned tok_bytes, size_t n_bin, uint64_t rare)
{
    size_t n_byte = n * tok_bytes, most = slu_eos_far_most(n, n_bin);
    uint8_t *tok = need(n_byte);
    uint64_t *a = need(n_bin * 8), *b = need(n_bin * 8);
    uint64_t *far_a = need(most * 8), *far_b = need(most * 8);
    const size_t border[] = {4095, 1, 4096, 2, 4097, n_bin - 1, n_bin, n_bin + 1};
    struct slu_eos_block x, y;
    size_t next = 5, n_end = 0;
    for (size_t i = 0; i < n; i++) {
        bool ends = rare ? rnd(rare) == 0 : i == next;
        uint32_t id = ends ? 0 : (uint32_t)rnd(60000) + 1;
        if (i == next)
            next += border[n_end++ % 8];
        memcpy(tok + i * tok_bytes, &id, tok_bytes);
    }
    for (size_t v = 0; v < n_bin; v++)
        a[v] = b[v] = v;
    slu_eos_lengths_ref(tok, n, tok_bytes, 0, a, n_bin, far_a, &x);
    void *dt = to_device(tok, n_byte), *dc = to_device(b, n_bin * 8);
    void *df = to_device(NULL, most * 8), *db = to_device(NULL, sizeof y);
    size_t w = slu_eos_lengths_cuda_work(n);
    void *dw = to_device(NULL, w);
    bool good = device_said(slu_eos_lengths_cuda(dt, n, tok_bytes, 0, dc, n_bin, df, db,
                                                 dw, w, NULL),
                            "scan") &&
                from_device(b, dc, n_bin * 8) && from_device(&y, db, sizeof y) &&
                !memcmp(&x, &y, sizeof x) && !memcmp(a, b, n_bin * 8) &&
                from_device(far_b, df, x.n_far * 8);
    if (good) {
        qsort(far_a, x.n_far, 8, by_value);
        qsort(far_b, x.n_far, 8, by_value);
        good = !memcmp(far_a, far_b, x.n_far * 8);
    }
    if (!good)
        fprintf(stderr, "scan: n %zu, %u bytes, %zu bins, one in %llu\n", n, tok_bytes,
                n_bin, (unsigned long long)rare);
    slu_device_free(dt);
    slu_device_free(dc);
    slu_device_free(df);
    slu_device_free(db);
    slu_device_free(dw);
    free(tok);
    free(a);
    free(b);
    free(far_a);
    free(far_b);
    return good;
}

void test_scan(void)
{
    static const size_t size[] = {0,    1,    7,     8,      255,     256,
                                  4095, 4096, 65537, 100001, 1 << 20, 1500007};
    bool good = true;
    if (!have_device) {
        skipped("scan on a CUDA device", no_device);
        return;
    }
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (unsigned b = 2; b <= 4; b += 2)
            if (size[i] <= most_items) {
                good &= scan_case(size[i], b, 8193, 300);
                good &= scan_case(size[i], b, 100, 300);
                good &= scan_case(size[i], b, 1, 10);
                good &= scan_case(size[i], b, 64, 1);
                good &= scan_case(size[i], b, 1 << 16, UINT64_C(1) << 40);
            }
    for (unsigned b = 2; b <= 4; b += 2) {
        good &= scan_case(64 * 8192, b, 8193, 700); /* as many tiles as there is room */
        good &= scan_case(200000, b, 8193, 0);
        good &= scan_case(200000, b, 4096, 0);
        good &= scan_case(60000, b, 100, 0);
    }
    result(good, "scan on a CUDA device");
    /* More tiles than blocks start at once, so that each takes several, and than
     * threads look at borders. An emulated device has few multiprocessors, a real one
     * well below 200, of 8 blocks each. */
    size_t many = most_items == SIZE_MAX ? 200 * 8 * 16384
                  : most_items < 10000   ? 20 * 16384 + 5
                                         : 300 * 8192 + 5;
    good = true;
    for (unsigned b = 2; b <= 4; b += 2) {
        good &= scan_case(many, b, 8193, 300);
        good &= scan_case(many, b, 200, 20000);
    }
    result(good, "scan on a CUDA device: more tiles than blocks");
}
