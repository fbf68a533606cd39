/* copy.c - windows of packed ids are copied from a pool as the oracle copies them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "tests/kernels/kernels.h"

struct pool {
    void *ids; /* exactly so long: a byte too far is seen by the sanitizers */
    struct slu_copy c;
};

static void draw_pool(struct pool *pool, const struct packing *p, unsigned tok_bytes)
{
    size_t n_byte = p->n_pool * tok_bytes;
    uint8_t *ids = need(n_byte);
    for (size_t i = 0; i < n_byte; i++)
        ids[i] = (uint8_t)rnd(256);
    pool->ids = ids;
    pool->c = (struct slu_copy){.pool = ids,
                                .src = p->src,
                                .len = p->len,
                                .run_item = p->run_item,
                                .run_dst = p->run_dst,
                                .n_run = p->n,
                                .pad = tok_bytes == 2 ? 50256 : 0x12345678,
                                .tok_bytes = tok_bytes};
}

/* One window by all; out is `skew` ids behind a boundary. on: the same on a device. */
static bool window(const struct slu_copy *c, const struct slu_copy *on, uint64_t first,
                   size_t n, size_t skew)
{
    size_t size = c->tok_bytes, n_byte = (n + skew + 1) * size;
    uint8_t *a = need(n_byte), *b = need(n_byte);
    bool good = true;
    memset(a, 0x5a, n_byte);
    slu_copy_ref(c, first, n, a + skew * size);
    for (unsigned threads = 1; threads < 4 && good; threads++) {
        memset(b, 0x5a, n_byte);
        slu_copy_cpu(c, first, n, b + skew * size, threads);
        good = !memcmp(a, b, n_byte);
    }
    if (on && good) {
        memset(b, 0x5a, n_byte);
        char *out = to_device(b, n_byte);
        good =
            device_said(slu_copy_cuda(on, first, n, out + skew * size, NULL), "copy") &&
            from_device(b, out, n_byte) && !memcmp(a, b, n_byte);
        slu_device_free(out);
    }
    if (!good)
        fprintf(stderr, "copy: ids %llu + %zu, skew %zu, %u bytes\n",
                (unsigned long long)first, n, skew, c->tok_bytes);
    free(a);
    free(b);
    return good;
}

static bool windows(const struct packing *p, const struct slu_copy *c,
                    const struct slu_copy *on)
{
    bool good = window(c, on, 0, p->n_tok, 0) && window(c, on, 0, p->n_tok, 1);
    for (int i = 0; i < 12 && good && p->n_tok; i++) {
        uint64_t first = rnd(p->n_tok);
        good = window(c, on, first, rnd(p->n_tok - first + 1), rnd(9));
    }
    size_t chunk = 8192 / c->tok_bytes; /* of a block of the device */
    for (size_t skew = 0; skew < 8 && good && p->n_tok >= chunk; skew++)
        good = window(c, on, p->n_tok - chunk, chunk, skew);
    /* behind the last bin there is only padding */
    return good && window(c, on, p->n_tok, 100, 3);
}

static bool copy_case(const struct packing *p, unsigned tok_bytes)
{
    struct pool pool;
    draw_pool(&pool, p, tok_bytes);
    struct slu_copy on = pool.c;
    if (have_device) {
        size_t n_byte = (p->n_pool * tok_bytes + 15) / 16 * 16; /* copy.h */
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
    bool good = windows(p, &pool.c, have_device ? &on : NULL);
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

static bool packing_and_copy(size_t n_step, uint32_t longest, uint64_t most_bins,
                             int rounds)
{
    bool good = true;
    for (int i = 0; i < fewer(rounds) && good; i++) {
        struct packing p;
        draw_packing(&p, n_step, longest, most_bins);
        struct slu_place in = place_of(&p);
        slu_place_ref(&in, p.run_item, p.run_dst);
        good = copy_case(&p, 2) && copy_case(&p, 4);
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
    bool good = copy_case(&p, tok_bytes);
    free_packing(&p);
    return good;
}

/* A block of the device keeps 1024 runs of a chunk of 8 KiB: as many, and one more. It
 * searches among 16 runs at once, so numbers of runs around multiples of 16 are borders,
 * too. */
static bool copy_borders(void)
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
        for (size_t n = 15; n < 35; n += most_items < 1000 ? 9 : 1)
            good &= even_runs(width, n, 7, 0, 0);
    }
    return good;
}

/* With -s a third of the longest runs: they are of many chunks still. */
static int less(int n)
{
    return most_items <= 70000 ? (n + 2) / 3 : n;
}

void test_copy(void)
{
    result(packing_and_copy(30, 300, 20, 30), "copy: random packings and windows");
    result(packing_and_copy(3, 1, 6000, 3), "copy: runs of one id, close together");
    result(packing_and_copy(5, 40, 1000, 5), "copy: short runs");
    result(packing_and_copy(1, (uint32_t)fewer(less(300000)), 1, 3), "copy: one giant");
    result(packing_and_copy((size_t)less(60), (uint32_t)fewer(70000), 2, 2),
           "copy: long runs");
    result(copy_borders(), "copy: 1024 and 1025 runs a chunk, runs of no ids");
    struct packing none = {0};
    result(copy_case(&none, 2) && copy_case(&none, 4), "copy: no runs at all");
}
