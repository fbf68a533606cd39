/* place.c - items get their bins and offsets from a plan as the oracle places them, and
 * the oracle leaves no item out and none over another. */
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "tests/kernels/kernels.h"

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
    uint32_t *dorder = to_device(p->order, p->n * sizeof *p->order);
    struct slu_place_step *ds = to_device(p->step, p->n_step * sizeof *p->step);
    struct slu_place_interval *dv =
        to_device(p->interval, p->n_interval * sizeof *p->interval);
    uint32_t *di = to_device(item, n * sizeof *item);
    uint64_t *dd = to_device(dst, n * sizeof *dst);
    struct slu_place on = {dorder, p->n, ds, p->n_step, dv, p->n_interval};
    bool good = device_said(slu_place_cuda(&on, di, dd, NULL), "place") &&
                from_device(item, di, n * sizeof *item) &&
                from_device(dst, dd, n * sizeof *dst);
    slu_device_free(dorder);
    slu_device_free(ds);
    slu_device_free(dv);
    slu_device_free(di);
    slu_device_free(dd);
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

/* n bins of one item each: the device's blocks take 1024 items. */
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

void test_place(void)
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
        none = slu_place_cuda(&empty, NULL, NULL, NULL) == 0;
    result(random, "place: random plans");
    result(large, "place: more than 2^16 items, by several threads");
    result(deep, "place: thousands of steps, bins of many items");
    result(moved, "place: a plan behind others");
    result(none, "place: nothing");
}
