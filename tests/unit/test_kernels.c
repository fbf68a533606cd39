/* test_kernels.c - each kernel's fast versions compared with its oracle, and the oracle
 * with its definition, on random and hostile input. Needs only kernels/ and the C
 * library, so that it runs on a bare machine with a device (`make check-gpu`).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/gather.h"
#include "kernels/histogram.h"
#include "kernels/place.h"
#include "kernels/scan.h"
#include "kernels/sort.h"

static int n_result, n_failed;
static bool have_device;
static char no_device[200];
static size_t most_items = SIZE_MAX; /* larger cases are left out */

/* Of n, fewer for an instrument that takes seconds for what a device does in none. */
static int fewer(int n)
{
    return most_items < 10000 ? (n + 7) / 8 : n;
}

static void result(bool good, const char *what)
{
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_result, what);
    fflush(stdout);
    n_failed += !good;
}

static void skipped(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++n_result, what, why);
}

static uint64_t rng_state = 1;

static uint64_t rnd(uint64_t n) /* 0 … n-1 */
{
    uint64_t z = rng_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

static void *need(size_t n_byte)
{
    void *p = malloc(n_byte ? n_byte : 1);
    if (!p) {
        fprintf(stderr, "test_kernels: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- a device's memory ---- */

static bool device_said(int code, const char *what)
{
    if (code)
        fprintf(stderr, "test_kernels: %s: %s\n", what, slu_device_error(code));
    return code == 0;
}

static void *to_device(const void *p, size_t n_byte)
{
    void *d;
    if (!device_said(slu_device_alloc(&d, n_byte), "alloc"))
        exit(1);
    if (p && n_byte && !device_said(slu_device_put(d, p, n_byte, NULL), "put"))
        exit(1);
    return d;
}

/* Also what answers for faults of the kernels before it. */
static bool from_device(void *p, const void *d, size_t n_byte)
{
    return device_said(slu_device_get(p, d, n_byte, NULL), "get");
}

/* ---- histogram ---- */

static bool histogram_case(size_t n, uint64_t range, size_t n_bin, bool one_value)
{
    uint64_t *len = need(n * sizeof *len), *a = need(n_bin * sizeof *a),
             *b = need(n_bin * sizeof *b);
    for (size_t i = 0; i < n; i++)
        len[i] = one_value ? range - 1 : rnd(1 + rnd(range));
    for (size_t v = 0; v < n_bin; v++)
        a[v] = b[v] = v; /* counts are added to */
    slu_histogram_ref(len, n, a, n_bin);
    slu_histogram_cpu(len, n, b, n_bin);
    bool good = n_bin == 0 || !memcmp(a, b, n_bin * sizeof *a);
    if (have_device && good) {
        for (size_t v = 0; v < n_bin; v++)
            b[v] = v;
        uint64_t *dl = to_device(len, n * sizeof *len);
        uint64_t *dc = to_device(b, n_bin * sizeof *b);
        size_t w = slu_histogram_cuda_work(n, n_bin);
        void *dw = to_device(NULL, w);
        good = device_said(slu_histogram_cuda(dl, n, dc, n_bin, dw, w, NULL),
                           "histogram") &&
               from_device(b, dc, n_bin * sizeof *b) &&
               !memcmp(a, b, n_bin * sizeof *a);
        slu_device_free(dl);
        slu_device_free(dc);
        slu_device_free(dw);
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
        for (size_t n = 16383; n <= 16385; n++) {
            good &= histogram_case(n, bins[k] + 2, bins[k], false);
            good &= histogram_case(n, 24577, bins[k], true);
        }
    return good && histogram_case(40000, UINT64_MAX, 5000, true);
}

static void test_histogram(void)
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

/* ---- sort ---- */

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

/* What sort.h promises, without any oracle: every number once follows from strict
 * order. */
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

static void test_sort(void)
{
    static const size_t size[] = {0,    1,    2,     17,    1023,   1024,
                                  1025, 4097, 65536, 65537, 200003, 300000};
    static const uint32_t top[] = {0,     1,     2,      255,    256,    8192,
                                   65535, 65536, 131072, 131073, 1 << 20};
    static const char *const name[] = {"uniform",   "skewed",    "one length",
                                       "one giant", "ascending", "descending"};
    for (int d = 0; d < DISTS; d++) {
        bool good = true;
        char what[80];
        for (size_t i = 0; i < sizeof size / sizeof *size && size[i] <= most_items; i++)
            for (size_t k = 0; k < sizeof top / sizeof *top; k++)
                good &= sort_case(size[i], top[k], (enum dist)d, (unsigned)rnd(5));
        snprintf(what, sizeof what, "sort: %s lengths", name[d]);
        result(good, what);
    }
    result(sort_case((size_t)fewer(100000), (1 << 26) - 1, UNIFORM, 2) &&
               sort_case(3, (1 << 26) - 1, ONE_LENGTH, 2),
           "sort: lengths up to 2^26 - 1");
}

/* ---- packings, for place and gather ---- */

/* A packing made up at random, as a solver might leave it. */
struct packing {
    size_t n; /* items */
    uint32_t longest;
    uint32_t *len;
    uint64_t *src;
    uint64_t n_pool, n_tok;
    struct slu_place_step *step;
    struct slu_place_interval *interval;
    size_t n_step, n_interval;
    uint32_t *order, *run_item;
    uint64_t *run_dst;
};

struct group {
    uint64_t first_bin, count, taken, slot, used, capacity;
    uint32_t step;
};

static int by_first_bin(const void *a, const void *b)
{
    const struct slu_place_interval *x = a, *y = b;
    return x->first_bin < y->first_bin ? -1 : x->first_bin > y->first_bin;
}

/* Lengths of the items in sorted order, steps and intervals. */
static void draw_plan(struct packing *p, size_t n_step, uint32_t longest,
                      uint64_t most_bins, uint32_t *sorted_len)
{
    struct group *g = need(n_step * sizeof *g);
    uint64_t bins = 0, pos = 0;
    uint32_t len = longest;
    p->step = need(n_step * sizeof *p->step);
    p->interval = need(n_step * sizeof *p->interval);
    p->n_step = n_step;
    for (size_t i = 0; i < n_step; i++) {
        struct group *parent = i && rnd(4) ? &g[rnd(i)] : NULL;
        if (i && rnd(5) == 0) /* a deep chain */
            parent = &g[i - 1];
        if (parent && parent->taken == parent->count)
            parent = NULL;
        uint64_t repeat = 1 + rnd(1 + rnd(5));
        if (len > 1 && rnd(3))
            len -= (uint32_t)rnd(1 + len / 8);
        g[i] =
            (struct group){.step = (uint32_t)i, .used = repeat * len, .slot = repeat};
        p->step[i] = (struct slu_place_step){
            .first = pos, .repeat = repeat, .len_tok = len, .parent = SLU_PLACE_OPENED};
        if (parent) {
            uint64_t left = parent->count - parent->taken;
            g[i].count = rnd(2) ? left : 1 + rnd(left);
            g[i].first_bin = parent->first_bin + parent->taken;
            g[i].slot += parent->slot;
            g[i].used += parent->used;
            p->step[i].slot = parent->slot;
            p->step[i].used = parent->used;
            p->step[i].parent = parent->step;
            parent->taken += g[i].count;
        } else {
            g[i].count = 1 + rnd(most_bins);
            g[i].first_bin = bins;
            bins += g[i].count;
        }
        p->step[i].first_bin = g[i].first_bin;
        for (uint64_t k = 0; k < g[i].count * repeat; k++)
            sorted_len[pos++] = len;
    }
    p->n = pos;
    p->n_interval = 0;
    for (size_t i = 0; i < n_step; i++)
        if (g[i].taken < g[i].count)
            p->interval[p->n_interval++] =
                (struct slu_place_interval){.first_bin = g[i].first_bin + g[i].taken,
                                            .items = g[i].slot,
                                            .capacity = g[i].used + rnd(2) * rnd(40),
                                            .last = (uint32_t)i};
    qsort(p->interval, p->n_interval, sizeof *p->interval, by_first_bin);
    p->n_tok = 0;
    uint64_t item = 0;
    for (size_t i = 0; i < p->n_interval; i++) {
        struct slu_place_interval *v = &p->interval[i];
        uint64_t count = (i + 1 < p->n_interval ? v[1].first_bin : bins) - v->first_bin;
        v->first_item = item;
        v->first_tok = p->n_tok;
        item += count * v->items;
        p->n_tok += count * v->capacity;
    }
    free(g);
}

static void draw_packing(struct packing *p, size_t n_step, uint32_t longest,
                         uint64_t most_bins)
{
    size_t most = n_step * most_bins * 5 + 1;
    uint32_t *sorted_len = need(most * sizeof *sorted_len);
    memset(p, 0, sizeof *p);
    draw_plan(p, n_step, longest, most_bins, sorted_len);
    p->len = need(p->n * sizeof *p->len);
    p->src = need(p->n * sizeof *p->src);
    memcpy(p->len, sorted_len, p->n * sizeof *p->len);
    for (size_t i = p->n; i > 1; i--) { /* items arrive in any order */
        size_t k = rnd(i);
        uint32_t t = p->len[k];
        p->len[k] = p->len[i - 1];
        p->len[i - 1] = t;
    }
    for (size_t i = 0; i < p->n; i++) {
        p->src[i] = p->n_pool += rnd(4) == 0 ? rnd(9) : 0;
        p->n_pool += p->len[i];
        p->longest = p->len[i] > p->longest ? p->len[i] : p->longest;
    }
    p->order = need(p->n * sizeof *p->order);
    p->run_item = need(p->n * sizeof *p->run_item);
    p->run_dst = need(p->n * sizeof *p->run_dst);
    void *work = need(slu_sort_lengths_ref_work(p->n, p->longest));
    slu_sort_lengths_ref(p->len, p->n, p->longest, p->order, work);
    free(work);
    free(sorted_len);
}

static void free_packing(struct packing *p)
{
    free(p->len);
    free(p->src);
    free(p->step);
    free(p->interval);
    free(p->order);
    free(p->run_item);
    free(p->run_dst);
}

static struct slu_place place_of(const struct packing *p)
{
    return (struct slu_place){p->order,  p->n,        p->step,
                              p->n_step, p->interval, p->n_interval};
}

/* The oracle's answer is a packing: every item once, none over another or over the end
 * of its bin. */
static bool sound(const struct packing *p)
{
    bool *seen = need(p->n);
    bool good = true;
    memset(seen, 0, p->n);
    for (size_t r = 0; r < p->n && good; r++) {
        uint64_t end = r + 1 < p->n ? p->run_dst[r + 1] : p->n_tok;
        good = p->run_item[r] < p->n && !seen[p->run_item[r]] &&
               p->run_dst[r] + p->len[p->run_item[r]] <= end;
        if (good)
            seen[p->run_item[r]] = true;
    }
    free(seen);
    return good;
}

/* item and dst have `before` entries more, which belong to a part placed before. */
static bool place_cuda_case(const struct packing *p, uint32_t *item, uint64_t *dst,
                            size_t before)
{
    size_t n = before + p->n;
    size_t w = slu_place_cuda_work(p->n, p->n_step, p->n_interval);
    uint32_t *dorder = to_device(p->order, p->n * sizeof *p->order);
    struct slu_place_step *ds = to_device(p->step, p->n_step * sizeof *p->step);
    struct slu_place_interval *dv =
        to_device(p->interval, p->n_interval * sizeof *p->interval);
    uint32_t *di = to_device(item, n * sizeof *item);
    uint64_t *dd = to_device(dst, n * sizeof *dst);
    void *dw = to_device(NULL, w);
    struct slu_place on = {dorder, p->n, ds, p->n_step, dv, p->n_interval};
    bool good = device_said(slu_place_cuda(&on, di, dd, dw, w, NULL), "place") &&
                from_device(item, di, n * sizeof *item) &&
                from_device(dst, dd, n * sizeof *dst);
    slu_device_free(dorder);
    slu_device_free(ds);
    slu_device_free(dv);
    slu_device_free(di);
    slu_device_free(dd);
    slu_device_free(dw);
    return good;
}

static bool same_runs(const struct packing *p, const uint32_t *item,
                      const uint64_t *dst)
{
    return !memcmp(p->run_item, item, p->n * sizeof *item) &&
           !memcmp(p->run_dst, dst, p->n * sizeof *dst);
}

static bool place_case(struct packing *p)
{
    struct slu_place in = place_of(p);
    uint32_t *item = need(p->n * sizeof *item);
    uint64_t *dst = need(p->n * sizeof *dst);
    memset(p->run_item, 0xee, p->n * sizeof *p->run_item);
    slu_place_ref(&in, p->run_item, p->run_dst);
    bool good = sound(p);
    for (unsigned threads = 0; threads < 6 && good; threads++) {
        memset(item, 0xee, p->n * sizeof *item);
        memset(dst, 0xee, p->n * sizeof *dst);
        slu_place_cpu(&in, item, dst, threads);
        good = same_runs(p, item, dst);
    }
    memset(item, 0xee, p->n * sizeof *item);
    memset(dst, 0xee, p->n * sizeof *dst);
    if (have_device && good)
        good = place_cuda_case(p, item, dst, 0) && same_runs(p, item, dst);
    free(item);
    free(dst);
    return good;
}

/* The same plan behind others: its first bin, item and id are not 0. p has been placed;
 * its plan is moved. */
static bool moved_case(struct packing *p)
{
    const size_t before = 1 + rnd(40), n = before + p->n;
    const uint64_t tok = UINT64_C(1) << 33;
    uint32_t *item = need(n * sizeof *item);
    uint64_t *dst = need(n * sizeof *dst);
    bool good = true;
    for (size_t i = 0; i < p->n_step; i++)
        p->step[i].first_bin += 100;
    for (size_t i = 0; i < p->n_interval; i++) {
        p->interval[i].first_bin += 100;
        p->interval[i].first_item += before;
        p->interval[i].first_tok += tok;
    }
    struct slu_place in = place_of(p);
    for (int which = 0; which < 2 + have_device && good; which++) {
        memset(item, 0xee, n * sizeof *item);
        memset(dst, 0xee, n * sizeof *dst);
        if (which == 0)
            slu_place_ref(&in, item, dst);
        else if (which == 1)
            slu_place_cpu(&in, item, dst, 3);
        else
            good = place_cuda_case(p, item, dst, before);
        for (size_t i = 0; i < before; i++)
            good &= item[i] == 0xeeeeeeee && dst[i] == UINT64_C(0xeeeeeeeeeeeeeeee);
        for (size_t i = 0; i < p->n; i++)
            good &= item[before + i] == p->run_item[i] &&
                    dst[before + i] == p->run_dst[i] + tok;
    }
    free(item);
    free(dst);
    return good;
}

/* n bins of one item each: the device's blocks take 4096 items. */
static bool even_bins(size_t n)
{
    struct slu_place_step step = {
        .repeat = 1, .len_tok = 3, .parent = SLU_PLACE_OPENED};
    struct slu_place_interval interval = {.items = 1, .capacity = 5};
    struct packing p = {.n = n, .n_step = 1, .n_interval = 1, .n_tok = 5 * n};
    p.len = need(n * sizeof *p.len);
    p.order = need(n * sizeof *p.order);
    p.run_item = need(n * sizeof *p.run_item);
    p.run_dst = need(n * sizeof *p.run_dst);
    p.step = &step;
    p.interval = &interval;
    for (size_t i = 0; i < n; i++) {
        p.len[i] = 3;
        p.order[i] = (uint32_t)(n - 1 - i);
    }
    bool good = place_case(&p);
    p.step = NULL; /* not of the heap */
    p.interval = NULL;
    free_packing(&p);
    return good;
}

static void test_place(void)
{
    bool random = true, large = true, deep = true, none = true, moved = true;
    struct packing p;
    for (int i = 0; i < (most_items == SIZE_MAX ? 300 : 20); i++) {
        draw_packing(&p, 1 + rnd(60), 1 + (uint32_t)rnd(500), 1 + rnd(60));
        random &= place_case(&p);
        if (i % 4 == 0)
            moved &= moved_case(&p);
        free_packing(&p);
    }
    for (int i = 0; i < fewer(4); i++) {
        draw_packing(&p, 40, 5000, (uint64_t)fewer(6000));
        large &= place_case(&p);
        moved &= moved_case(&p);
        free_packing(&p);
    }
    for (int i = 0; i < fewer(4); i++) {
        draw_packing(&p, fewer(2000), 60000, 3);
        deep &= place_case(&p);
        free_packing(&p);
    }
    for (size_t n = 4095; n <= 4097; n++)
        random &= even_bins(n) && even_bins(n + 4096);
    struct slu_place empty = {0};
    slu_place_ref(&empty, NULL, NULL);
    slu_place_cpu(&empty, NULL, NULL, 2);
    if (have_device)
        none = slu_place_cuda(&empty, NULL, NULL, NULL, 0, NULL) == 0;
    result(random, "place: random plans");
    result(large, "place: more than 2^16 items, by several threads");
    result(deep, "place: thousands of steps, bins of many items");
    result(moved, "place: a plan behind others");
    result(none, "place: nothing");
}

/* ---- gather ---- */

struct pool {
    void *ids; /* exactly so long: a byte too far is seen by the sanitizers */
    struct slu_gather g;
};

static void draw_pool(struct pool *pool, const struct packing *p, unsigned tok_bytes)
{
    size_t n_byte = p->n_pool * tok_bytes;
    uint8_t *ids = need(n_byte);
    for (size_t i = 0; i < n_byte; i++)
        ids[i] = (uint8_t)rnd(256);
    pool->ids = ids;
    pool->g = (struct slu_gather){.pool = ids,
                                  .src = p->src,
                                  .len = p->len,
                                  .run_item = p->run_item,
                                  .run_dst = p->run_dst,
                                  .n_run = p->n,
                                  .pad = tok_bytes == 2 ? 50256 : 0x12345678,
                                  .tok_bytes = tok_bytes};
}

/* One window by all; out is `skew` ids behind a boundary. on: the same on a device. */
static bool window(const struct slu_gather *g, const struct slu_gather *on,
                   uint64_t first, size_t n, size_t skew)
{
    size_t size = g->tok_bytes, n_byte = (n + skew + 1) * size;
    uint8_t *a = need(n_byte), *b = need(n_byte);
    bool good = true;
    memset(a, 0x5a, n_byte);
    slu_gather_ref(g, first, n, a + skew * size);
    for (unsigned threads = 1; threads < 4 && good; threads++) {
        memset(b, 0x5a, n_byte);
        slu_gather_cpu(g, first, n, b + skew * size, threads);
        good = !memcmp(a, b, n_byte);
    }
    if (on && good) {
        size_t w = slu_gather_cuda_work(on, n);
        memset(b, 0x5a, n_byte);
        char *out = to_device(b, n_byte);
        void *dw = to_device(NULL, w);
        good =
            device_said(slu_gather_cuda(on, first, n, out + skew * size, dw, w, NULL),
                        "gather") &&
            from_device(b, out, n_byte) && !memcmp(a, b, n_byte);
        slu_device_free(out);
        slu_device_free(dw);
    }
    if (!good)
        fprintf(stderr, "gather: ids %llu + %zu, skew %zu, %u bytes\n",
                (unsigned long long)first, n, skew, g->tok_bytes);
    free(a);
    free(b);
    return good;
}

static bool windows(const struct packing *p, const struct slu_gather *g,
                    const struct slu_gather *on)
{
    bool good = window(g, on, 0, p->n_tok, 0) && window(g, on, 0, p->n_tok, 1);
    for (int i = 0; i < 12 && good && p->n_tok; i++) {
        uint64_t first = rnd(p->n_tok);
        good = window(g, on, first, rnd(p->n_tok - first + 1), rnd(9));
    }
    size_t chunk = 8192 / g->tok_bytes; /* of a block of the device */
    for (size_t skew = 0; skew < 8 && good && p->n_tok >= chunk; skew++)
        good = window(g, on, p->n_tok - chunk, chunk, skew);
    /* behind the last bin there is only padding */
    return good && window(g, on, p->n_tok, 100, 3);
}

static bool gather_case(const struct packing *p, unsigned tok_bytes)
{
    struct pool pool;
    draw_pool(&pool, p, tok_bytes);
    struct slu_gather on = pool.g;
    if (have_device) {
        size_t n_byte = (p->n_pool * tok_bytes + 15) / 16 * 16; /* gather.h */
        void *ids = to_device(NULL, n_byte);
        if (slu_device_zero(ids, n_byte, NULL) || /* the last few are read, not used */
            (p->n_pool && slu_device_put(ids, pool.ids, p->n_pool * tok_bytes, NULL)))
            exit(1);
        on.pool = ids;
        on.src = to_device(p->src, p->n * sizeof *p->src);
        on.len = to_device(p->len, p->n * sizeof *p->len);
        on.run_item = to_device(p->run_item, p->n * sizeof *p->run_item);
        on.run_dst = to_device(p->run_dst, p->n * sizeof *p->run_dst);
    }
    bool good = windows(p, &pool.g, have_device ? &on : NULL);
    if (have_device) {
        slu_device_free((void *)(uintptr_t)on.pool);
        slu_device_free((void *)(uintptr_t)on.src);
        slu_device_free((void *)(uintptr_t)on.len);
        slu_device_free((void *)(uintptr_t)on.run_item);
        slu_device_free((void *)(uintptr_t)on.run_dst);
    }
    free(pool.ids);
    return good;
}

static bool packing_and_gather(size_t n_step, uint32_t longest, uint64_t most_bins,
                               int rounds)
{
    bool good = true;
    for (int i = 0; i < fewer(rounds) && good; i++) {
        struct packing p;
        draw_packing(&p, n_step, longest, most_bins);
        struct slu_place in = place_of(&p);
        slu_place_ref(&in, p.run_item, p.run_dst);
        good = gather_case(&p, 2) && gather_case(&p, 4);
        free_packing(&p);
    }
    return good;
}

/* Runs of `len` ids, each `every`-th of none, and after each seventh `gap` of padding.
 */
static bool even_runs(unsigned tok_bytes, size_t n, uint32_t len, uint32_t every,
                      uint64_t gap)
{
    struct packing p = {.n = n};
    p.len = need(n * sizeof *p.len);
    p.src = need(n * sizeof *p.src);
    p.run_item = need(n * sizeof *p.run_item);
    p.run_dst = need(n * sizeof *p.run_dst);
    for (size_t i = 0; i < n; i++) {
        p.len[i] = every && i % every == 0 ? 0 : len;
        p.src[i] = p.n_pool;
        p.n_pool += p.len[i];
        p.run_item[i] = (uint32_t)i;
        p.run_dst[i] = p.n_tok;
        p.n_tok += p.len[i] + (i % 7 == 3 ? gap : 0);
    }
    bool good = gather_case(&p, tok_bytes);
    free_packing(&p);
    return good;
}

/* A block of the device keeps 1024 runs of a chunk of 8 KiB: as many, and one more. */
static bool gather_borders(void)
{
    bool good = true;
    for (unsigned width = 2; width <= 4; width += 2) {
        uint32_t len = 8 / width;
        good &= even_runs(width, 3000, len, 0, 0);
        good &= even_runs(width, 3000, len, 0, 1);
        good &= even_runs(width, 1025, len, 0, 0);
        good &= even_runs(width, 3000, 5, 3, 2);
        good &= even_runs(width, 4000, 1, 2, 0);
        good &= even_runs(width, 2500, 0, 0, 1);
    }
    return good;
}

static void test_gather(void)
{
    result(packing_and_gather(30, 300, 20, 30), "gather: random packings and windows");
    result(packing_and_gather(3, 1, 6000, 3), "gather: runs of one id, close together");
    result(packing_and_gather(5, 40, 1000, 5), "gather: short runs");
    result(packing_and_gather(1, (uint32_t)fewer(300000), 1, 3), "gather: one giant");
    result(packing_and_gather(60, (uint32_t)fewer(70000), 2, 2), "gather: long runs");
    result(gather_borders(), "gather: 1024 and 1025 runs a chunk, runs of no ids");
    struct packing none = {0};
    result(gather_case(&none, 2) && gather_case(&none, 4), "gather: no runs at all");
}

/* ---- scan: its twins have their own test; this is the device's ---- */

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

static void test_scan(void)
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

/* ---- all ---- */

static void wake(void)
{
    int n, code = slu_device_count(&n);
    if (code == 0 && n > 0)
        code = slu_device_select(0);
    have_device = code == 0 && n > 0;
    snprintf(no_device, sizeof no_device, "%s",
             code ? slu_device_error(code) : "no CUDA device");
}

static const struct {
    const char *name;
    void (*test)(void);
} KERNEL[] = {{"histogram", test_histogram},
              {"sort", test_sort},
              {"place", test_place},
              {"gather", test_gather},
              {"scan", test_scan}};

/* test_kernels [-s[ITEMS]] [-k KERNEL] [SEED] */
int main(int argc, char **argv)
{
    const char *only = NULL;
    char name[128] = "";
    if (argc > 1 && !strncmp(argv[1], "-s", 2)) { /* small: for slow instruments */
        most_items = argv[1][2] ? strtoull(argv[1] + 2, NULL, 10) : 70000;
        argv++;
        argc--;
    }
    if (argc > 2 && !strcmp(argv[1], "-k")) {
        only = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc > 1)
        rng_state = strtoull(argv[1], NULL, 10);
    wake();
    if (have_device) {
        (void)slu_device_name(0, name, sizeof name);
        fprintf(stderr, "test_kernels: on %s too\n", name);
    }
    for (size_t k = 0; k < sizeof KERNEL / sizeof *KERNEL; k++)
        if (!only || !strcmp(only, KERNEL[k].name))
            KERNEL[k].test();
    if (have_device)
        result(n_failed == 0, "the same on a CUDA device");
    else
        skipped("the same on a CUDA device", no_device);
    printf("1..%d\n", n_result);
    return n_failed != 0;
}
