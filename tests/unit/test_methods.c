/* test_methods.c - the packing methods: each compared with a plain version, and the
 * promises of all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pack/pack_nnls.h"
#include "tests/unit/plan_check.h"

static uint64_t state = 1;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

#define MOST_ROWS  64
#define MOST_ITEMS 4096

/* About n rows of lengths up to capacity, in one of several shapes. */
static size_t random_hist(struct slu_length_count *hist, uint64_t capacity, size_t n,
                          uint64_t most)
{
    static const uint64_t few[] = {3, 5, 8, 13, 21, 34};
    uint64_t len[MOST_ROWS];
    size_t k = 0, shape = rnd(4);
    for (size_t i = 0; i < n; i++) {
        uint64_t a = 1 + rnd(capacity), b = 1 + rnd(capacity);
        len[i] = shape == 0   ? a
                 : shape == 1 ? 1 + (a - 1) * b / capacity /* many short ones */
                 : shape == 2 ? 1 + (a > b ? a : b) / 2    /* pairs, nearly */
                              : few[rnd(6)];
        len[i] = len[i] > capacity ? capacity : len[i];
    }
    for (uint64_t last = 0;;) { /* in order, each once */
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < n; i++)
            if (len[i] > last && len[i] < next)
                next = len[i];
        if (next == UINT64_MAX)
            return k;
        hist[k++] = (struct slu_length_count){next, 1 + rnd(most)};
        last = next;
    }
}

/* ---- first fit, item by item ---- */

static void ffd_trial(uint64_t capacity, size_t n, uint64_t most, uint64_t max_items)
{
    static uint64_t bin_of[MOST_ITEMS], slot_of[MOST_ITEMS], room[MOST_ITEMS],
        held[MOST_ITEMS];
    struct slu_length_count hist[MOST_ROWS];
    size_t k = random_hist(hist, capacity, n, most), bins = 0, item = 0;
    uint64_t limit = max_items ? max_items : UINT64_MAX;
    for (size_t i = k; i-- > 0;)
        for (uint64_t r = 0; r < hist[i].count; r++, item++) {
            size_t b = 0;
            while (b < bins && (room[b] < hist[i].len_tok || held[b] == limit))
                b++;
            if (b == bins) {
                room[bins] = capacity;
                held[bins++] = 0;
            }
            room[b] -= hist[i].len_tok;
            bin_of[item] = b;
            slot_of[item] = held[b]++;
        }
    struct slu_pack_plan *plan;
    struct slu_pack_cfg cfg = {.capacity = capacity, .max_items = max_items};
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_FFD, hist, k, &cfg, NULL), SLU_OK);
    check_plan(plan, hist, k, max_items);
    assert_int_equal(plan->n_bin, bins);
    item = 0;
    for (size_t i = k; i-- > 0;)
        for (uint64_t r = 0; r < hist[i].count; r++, item++) {
            uint64_t bin, slot;
            slu_pack_place(plan, slu_pack_find(plan, hist[i].len_tok), r, &bin, &slot);
            assert_int_equal(bin, bin_of[item]);
            assert_int_equal(slot, slot_of[item]);
        }
    slu_pack_plan_free(plan);
}

static void first_fit(void **unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        ffd_trial(1 + rnd(40), 20, 1 + rnd(40), 0);
        ffd_trial(64 + rnd(200), 40, 1 + rnd(40), 0);
        ffd_trial(64 + rnd(200), 40, 1 + rnd(40), 1 + rnd(5));
        ffd_trial(2048 << rnd(7), MOST_ROWS, 1 + rnd(30), 0);
    }
}

/* ---- the histogram packings, pack by pack as they are published ---- */

struct pack {
    uint64_t count, room, n;
    uint64_t len[130]; /* descending */
};

static struct pack packs[100000];
static size_t n_pack;

/* `count` bins of packs[from], or new ones (from == n_pack), take `repeat` items. */
static void extend(size_t from, uint64_t capacity, uint64_t len, uint64_t repeat,
                   uint64_t count)
{
    assert_true(n_pack + 1 < sizeof packs / sizeof *packs);
    struct pack *p = &packs[n_pack];
    if (from == n_pack)
        p->room = capacity, p->n = 0;
    else {
        *p = packs[from];
        packs[from].count -= count;
    }
    assert_true(p->n + repeat <= 130);
    p->count = count;
    p->room -= repeat * len;
    for (uint64_t i = 0; i < repeat; i++)
        p->len[p->n++] = len;
    n_pack++;
}

/* The pack that is found first: of least (or most) room, of those the last one. */
static size_t find(uint64_t len, uint64_t limit, bool most_room)
{
    size_t best = n_pack;
    for (size_t i = 0; i < n_pack; i++) {
        const struct pack *p = &packs[i], *b = &packs[best];
        if (!p->count || p->room < len || p->n == limit)
            continue;
        if (best == n_pack || p->room == b->room || (p->room > b->room) == most_room)
            best = i;
    }
    return best;
}

static void plain_hist(const struct slu_length_count *hist, size_t k, uint64_t capacity,
                       uint64_t limit, bool shortest)
{
    n_pack = 0;
    for (size_t i = k; i-- > 0;) {
        uint64_t len = hist[i].len_tok, n = hist[i].count;
        while (n) {
            size_t from = find(len, limit, shortest);
            bool opened = from == n_pack;
            uint64_t room = opened ? capacity : packs[from].room;
            uint64_t held = opened ? 0 : packs[from].n;
            uint64_t bins = opened ? n : packs[from].count, repeat = 1;
            if (!shortest) {
                repeat = room / len < limit - held ? room / len : limit - held;
                while (n / repeat == 0)
                    repeat--;
            }
            uint64_t count = bins < n / repeat ? bins : n / repeat;
            extend(from, capacity, len, repeat, count);
            n -= count * repeat;
        }
    }
}

static int by_contents(const void *a, const void *b)
{
    const struct pack *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (uint64_t i = 0; i < x->n; i++)
        if (x->len[i] != y->len[i])
            return x->len[i] < y->len[i] ? -1 : 1;
    return 0;
}

/* Sorts p[0 … n) and joins equal ones; returns how many are left. */
static size_t canonical(struct pack *p, size_t n)
{
    size_t k = 0;
    qsort(p, n, sizeof *p, by_contents);
    for (size_t i = 0; i < n; i++)
        if (!p[i].count)
            continue;
        else if (k && by_contents(&p[k - 1], &p[i]) == 0)
            p[k - 1].count += p[i].count;
        else
            p[k++] = p[i];
    return k;
}

/* The plan's bins as packs. */
static size_t contents(const struct slu_pack_plan *plan, struct pack *out)
{
    struct slu_pack_interval *v;
    size_t n;
    assert_int_equal(slu_pack_intervals(plan, &v, &n, NULL), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        struct pack *p = &out[i];
        p->count = v[i].count;
        p->room = v[i].room;
        p->n = v[i].items;
        assert_true(p->n <= 130);
        uint64_t at = p->n;
        for (uint32_t g = v[i].group; g != SLU_PACK_OPENED; g = plan->group[g].parent)
            for (uint64_t r = 0; r < plan->group[g].repeat; r++)
                p->len[--at] = plan->group[g].len_tok;
        assert_int_equal(at, 0);
    }
    free(v);
    return n;
}

static void hist_trial(uint64_t capacity, size_t n, uint64_t most, uint64_t max_items,
                       bool shortest)
{
    static struct pack got[100000];
    struct slu_length_count hist[MOST_ROWS];
    size_t k = random_hist(hist, capacity, n, most);
    plain_hist(hist, k, capacity, max_items ? max_items : UINT64_MAX, shortest);
    struct slu_pack_plan *plan;
    struct slu_pack_cfg cfg = {.capacity = capacity, .max_items = max_items};
    assert_int_equal(slu_pack_solve(&plan, shortest ? SLU_PACK_SPFHP : SLU_PACK_LPFHP,
                                    hist, k, &cfg, NULL),
                     SLU_OK);
    check_plan(plan, hist, k, max_items);
    size_t n_got = canonical(got, contents(plan, got)),
           n_want = canonical(packs, n_pack);
    assert_int_equal(n_got, n_want);
    for (size_t i = 0; i < n_got; i++) {
        assert_int_equal(by_contents(&got[i], &packs[i]), 0);
        assert_int_equal(got[i].count, packs[i].count);
    }
    slu_pack_plan_free(plan);
}

static void pack_first(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++)
        for (int shortest = 0; shortest < 2; shortest++) {
            hist_trial(1 + rnd(40), 20, 1 + rnd(400), 0, shortest);
            hist_trial(64 + rnd(60), 30, 1 + rnd(4000), 0, shortest);
            hist_trial(512, 40, 1 + rnd(100000), 1 + rnd(12), shortest);
            hist_trial(2048 << rnd(7), MOST_ROWS, 1 + rnd(1000), 12, shortest);
        }
}

/* ---- large bins: what cannot be compared is at least valid ---- */

static void large(void **unused)
{
    (void)unused;
    static const enum slu_pack_method method[] = {SLU_PACK_BFD, SLU_PACK_FFD,
                                                  SLU_PACK_SPFHP, SLU_PACK_LPFHP};
    for (int i = 0; i < 200; i++) {
        uint64_t L = UINT64_C(1) << (9 + rnd(9));
        L -= rnd(2) * rnd(L / 2);
        size_t n = 0, cap = L < 3000 ? L : 3000;
        struct slu_length_count *hist = malloc(cap * sizeof *hist);
        for (uint64_t l = 1; l <= L && n < cap; l += 1 + rnd(L / 512 + 1))
            hist[n++] = (struct slu_length_count){l, 1 + rnd(1 << rnd(20))};
        struct slu_pack_cfg cfg = {.capacity = L, .max_items = i % 3 ? 0 : 1 + rnd(20)};
        for (int m = 0; m < 4; m++) {
            struct slu_pack_plan *plan, *again;
            if (method[m] == SLU_PACK_SPFHP && !cfg.max_items)
                continue; /* a group for each item in the worst case */
            assert_int_equal(slu_pack_solve(&plan, method[m], hist, n, &cfg, NULL),
                             SLU_OK);
            check_plan(plan, hist, n, cfg.max_items);
            assert_int_equal(slu_pack_solve(&again, method[m], hist, n, &cfg, NULL),
                             SLU_OK);
            assert_int_equal(plan->n_group, again->n_group);
            for (size_t g = 0; g < plan->n_group; g++)
                assert_true(plan->group[g].count == again->group[g].count &&
                            plan->group[g].parent == again->group[g].parent &&
                            plan->group[g].repeat == again->group[g].repeat);
            slu_pack_plan_free(plan);
            slu_pack_plan_free(again);
        }
        free(hist);
    }
}

/* ---- least squares ---- */

/* The conditions of Karush, Kuhn and Tucker: nothing is negative, no strategy would
 * lower the sum of squares, and those in use are where it does not change. They prove
 * that this is the minimum. */
static void kkt_trial(uint32_t L, unsigned depth)
{
    double wanted[130] = {0}, weight[130] = {0}, y[130] = {0}, scale = 0;
    struct slu_pack_strategy *s;
    size_t n;
    for (uint32_t l = 1; l <= L; l++) {
        wanted[l] = rnd(3) ? (double)rnd(UINT64_C(1) << rnd(31)) : 0;
        weight[l] = l <= 8 ? 0.09 : 1;
        y[l] = wanted[l];
        scale = wanted[l] > scale ? wanted[l] : scale;
    }
    assert_int_equal(slu_pack_nnls(&s, &n, L, depth, wanted, weight, NULL), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(s[i].len[0] + s[i].len[1] + s[i].len[2], L);
        assert_true(s[i].len[0] <= s[i].len[1] && s[i].len[1] <= s[i].len[2]);
        assert_true(s[i].bins > 0 && (depth == 3 || s[i].len[0] == 0));
        for (int k = 0; k < 3; k++)
            y[s[i].len[k]] -= s[i].bins;
    }
    y[0] = 0;
    for (uint32_t l = 1; l <= L; l++)
        y[l] *= weight[l] * weight[l];
    for (uint32_t a = 0; a <= (depth == 3 ? L / 3 : 0); a++)
        for (uint32_t b = a; b <= (depth >= 2 ? (L - a) / 2 : 0); b++)
            assert_true(y[a] + y[b] + y[L - a - b] <= 1e-7 * scale);
    for (size_t i = 0; i < n; i++)
        assert_true(y[s[i].len[0]] + y[s[i].len[1]] + y[s[i].len[2]] >= -1e-7 * scale);
    free(s);
}

static void least_squares(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++) {
        kkt_trial(1 + (uint32_t)rnd(12), 1 + (unsigned)rnd(3));
        kkt_trial(1 + (uint32_t)rnd(128), 3);
        uint64_t L = 1 + rnd(200), max_items = rnd(5);
        struct slu_length_count hist[MOST_ROWS];
        size_t n = random_hist(hist, L, 1 + rnd(MOST_ROWS), 1 + rnd(1000000));
        struct slu_pack_cfg cfg = {.capacity = L, .max_items = max_items};
        struct slu_pack_plan *plan;
        assert_int_equal(slu_pack_solve(&plan, SLU_PACK_NNLSHP, hist, n, &cfg, NULL),
                         SLU_OK);
        check_plan(plan, hist, n, max_items && max_items < 3 ? max_items : 3);
        slu_pack_plan_free(plan);
    }
}

static void limits(void **unused)
{
    (void)unused;
    struct slu_length_count hist[20];
    struct slu_err err = SLU_ERR_INIT;
    struct slu_pack_plan *plan;
    for (int i = 0; i < 20; i++)
        hist[i] = (struct slu_length_count){(uint64_t)i + 1, 100};
    for (int m = SLU_PACK_BFD; m <= SLU_PACK_NNLSHP; m++) {
        struct slu_pack_cfg cfg = {.capacity = 20, .max_groups = 5};
        assert_int_equal(
            slu_pack_solve(&plan, (enum slu_pack_method)m, hist, 20, &cfg, &err),
            SLU_E_LIMIT);
        assert_null(plan);
        cfg.capacity = 19;
        assert_int_equal(
            slu_pack_solve(&plan, (enum slu_pack_method)m, hist, 20, &cfg, &err),
            SLU_E_USAGE);
    }
    struct slu_pack_cfg cfg = {.capacity = SLU_NNLSHP_CAPACITY + 1};
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_NNLSHP, hist, 20, &cfg, &err),
                     SLU_E_USAGE);
    assert_non_null(strstr(err.msg, "2048"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_fit), cmocka_unit_test(pack_first),
        cmocka_unit_test(large),     cmocka_unit_test(least_squares),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
