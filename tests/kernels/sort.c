/* sort.c - lengths are sorted as kernels/sort.h promises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/sort.h"
#include "tests/kernels/kernels.h"

enum dist { UNIFORM, SKEWED, ONE_LENGTH, ONE_GIANT, ASCENDING, DESCENDING, DISTS };

static void draw_lengths(uint32_t *len, size_t n, uint32_t longest, enum dist dist)
{
    for (size_t i = 0; i < n; i++)
        switch (dist) {
        case UNIFORM:
            len[i] = (uint32_t)rnd((uint64_t)longest + 1);
            break;
        case SKEWED:
            len[i] = (uint32_t)rnd(1 + rnd(1 + rnd((uint64_t)longest + 1)));
            break;
        case ONE_LENGTH:
            len[i] = longest;
            break;
        case ONE_GIANT:
            len[i] = i == n / 2 ? longest : longest != 0;
            break;
        case ASCENDING:
            len[i] = (uint32_t)((uint64_t)longest * i / n);
            break;
        default:
            len[i] = (uint32_t)((uint64_t)longest * (n - 1 - i) / n);
        }
}

/* Whether the order is as sort.h promises, without an oracle. Strict order implies that
 * every number occurs once. */
static bool sorted(const uint32_t *len, const uint32_t *order, size_t n, uint32_t first)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t b = order[i] - first;
        if (b >= n)
            return false;
        if (i == 0)
            continue;
        uint32_t a = order[i - 1] - first;
        if (len[a] < len[b] || (len[a] == len[b] && a >= b))
            return false;
    }
    return true;
}

static bool sort_cuda_case(const uint32_t *len, size_t n, uint32_t longest)
{
    uint32_t first = (uint32_t)rnd(1000), *order = need(n * sizeof *order);
    uint32_t *dl = to_device(len, n * sizeof *len);
    uint32_t *dorder = to_device(NULL, n * sizeof *order);
    size_t w = slu_sort_lengths_cuda_work(n, longest);
    void *dw = to_device(NULL, w);
    bool good =
        device_said(slu_sort_lengths_cuda(dl, n, longest, first, dorder, dw, w, NULL),
                    "sort") &&
        from_device(order, dorder, n * sizeof *order) && sorted(len, order, n, first);
    slu_device_free(dl);
    slu_device_free(dorder);
    slu_device_free(dw);
    free(order);
    return good;
}

static bool sort_case(size_t n, uint32_t longest, enum dist dist, unsigned n_threads)
{
    size_t skew = rnd(17); /* of pointers, in items */
    uint32_t *len = need(n * sizeof *len);
    uint32_t *buf = need((n + 34) * sizeof *buf), *order = buf + skew;
    bool good = true;
    draw_lengths(len, n, longest, dist);
    for (int which = 0; which < 2 && good; which++) {
        size_t w = which ? slu_sort_lengths_cpu_work(n, longest, n_threads)
                         : slu_sort_lengths_ref_work(n, longest);
        char *work = need(w + 1);
        work[w] = 77;
        memset(buf, 0xee, (n + 34) * sizeof *buf);
        if (which)
            slu_sort_lengths_cpu(len, n, longest, order, work, n_threads);
        else
            slu_sort_lengths_ref(len, n, longest, order, work);
        good = work[w] == 77 && sorted(len, order, n, 0);
        for (size_t i = 0; i < n + 34; i++)
            if (i < skew || i >= skew + n)
                good &= buf[i] == 0xeeeeeeee;
        free(work);
    }
    if (have_device && good)
        good = sort_cuda_case(len, n, longest);
    if (!good)
        fprintf(stderr, "sort: n %zu, longest %u, distribution %d, %u threads\n", n,
                longest, (int)dist, n_threads);
    free(len);
    free(buf);
    return good;
}

void test_sort(void)
{
    static const size_t size[] = {0,    1,    2,     17,    1023,   1024,
                                  1025, 4097, 65536, 65537, 200003, 300000};
    static const uint32_t top[] = {0,     1,     2,      255,    256,    8192,
                                   65535, 65536, 131072, 131073, 1 << 20};
    static const char *const name[] = {"uniform",       "skewed",    "equal",
                                       "equal but one", "ascending", "descending"};
    for (int d = 0; d < DISTS; d++) {
        bool good = true;
        char what[80];
        for (size_t i = 0; i < sizeof size / sizeof *size && size[i] <= most_items; i++)
            for (size_t k = 0; k < sizeof top / sizeof *top; k++)
                if (most_items > 70000 || size[i] < 65536 ||
                    (k + i + (size_t)d) % 3 == 0)
                    good &= sort_case(size[i], top[k], (enum dist)d, (unsigned)rnd(5));
        snprintf(what, sizeof what, "sort: %s lengths", name[d]);
        result(good, what);
    }
    result(sort_case((size_t)fewer(100000), (1 << 26) - 1, UNIFORM, 2) &&
               sort_case(3, (1 << 26) - 1, ONE_LENGTH, 2),
           "sort: lengths up to 2^26 - 1");
}
