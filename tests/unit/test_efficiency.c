/* test_efficiency.c - the fill of bins: published figures, and a committed table of
 * ours. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "lib/pack/pack_nnls.h"
#include "tests/bench/lognormal.h"
#include "tests/unit/plan_check.h"
#include "tests/unit/wikipedia512.h"

/* ---- the Wikipedia histogram of arXiv 2107.02027 ---- */

/* published: per cent of the bins' tokens that are filled, in that paper and in what
 * its code prints; bins: ours, exactly. */
static const struct {
    enum slu_pack_method method;
    uint64_t max_items;
    double published, precision;
    uint64_t bins;
} wikipedia[] = {
    {SLU_PACK_SPFHP, 3, 89.4, 0.1, 9094695},
    {SLU_PACK_SPFHP, 12, 99.60, 0.01, 8166708},
    {SLU_PACK_LPFHP, 3, 89.4, 0.1, 9090154},
    {SLU_PACK_LPFHP, 12, 99.81, 0.01, 8149619},
    {SLU_PACK_LPFHP, 0, 99.949, 0.001, 8138483},
    {SLU_PACK_BFD, 0, 99.949, 0.001, 8138483},
    {SLU_PACK_FFD, 0, 99.949, 0.001, 8138483},
    {SLU_PACK_BFD, 3, 0, 100, 9090154},
    {SLU_PACK_FFD, 3, 0, 100, 9090154},
};

static size_t wikipedia_hist(struct slu_length_count *hist)
{
    size_t n = 0;
    for (uint64_t l = 1; l <= 512; l++)
        if (wikipedia512[l - 1])
            hist[n++] = (struct slu_length_count){l, wikipedia512[l - 1]};
    return n;
}

static struct slu_pack_sum solve(enum slu_pack_method method,
                                 const struct slu_length_count *hist, size_t n,
                                 uint64_t capacity, uint64_t max_items)
{
    struct slu_pack_plan *plan;
    struct slu_pack_cfg cfg = {.capacity = capacity, .max_items = max_items};
    assert_int_equal(slu_pack_solve(&plan, method, hist, n, &cfg, NULL), SLU_OK);
    check_plan(plan, hist, n, cfg.max_items);
    struct slu_pack_sum s = slu_pack_plan_sum(plan);
    slu_pack_plan_free(plan);
    return s;
}

static void published(void **unused)
{
    (void)unused;
    struct slu_length_count hist[512];
    size_t n = wikipedia_hist(hist);
    for (size_t i = 0; i < sizeof wikipedia / sizeof *wikipedia; i++) {
        struct slu_pack_sum s =
            solve(wikipedia[i].method, hist, n, 512, wikipedia[i].max_items);
        double fill = 100 * slu_pack_fill(&s);
        printf("%-6s %2d: %.4f %%\n", slu_pack_method_name[wikipedia[i].method],
               (int)wikipedia[i].max_items, fill);
        assert_int_equal(s.items, 16279552);
        assert_int_equal(s.bins, wikipedia[i].bins);
        assert_true(fabs(fill - wikipedia[i].published) < wikipedia[i].precision);
    }
}

/* Published: 99.75 %, in 24.3 s. Rounded as published we get that; what packs the rest
 * better gets more. */
static void least_squares(void **unused)
{
    (void)unused;
    struct slu_length_count hist[512];
    size_t n = wikipedia_hist(hist), n_used;
    double wanted[513] = {0}, weight[513] = {0}, left[513], bins = 0;
    struct slu_pack_strategy *s;
    for (int l = 1; l <= 512; l++) {
        wanted[l] = left[l] = wikipedia512[l - 1];
        weight[l] = l <= 8 ? 0.09 : 1;
    }
    assert_int_equal(slu_pack_nnls(&s, &n_used, 512, 3, wanted, weight, NULL), SLU_OK);
    for (size_t i = 0; i < n_used; i++)
        for (int k = -1; k < 3; k++)
            if (k < 0)
                bins += rint(s[i].bins);
            else
                left[s[i].len[k]] -= rint(s[i].bins);
    for (int l = 1; l <= 512; l++) /* each sequence that is left opens a bin */
        bins += left[l] > 0 ? left[l] : 0;
    free(s);
    double fill = 100 * 4164796173 / (bins * 512);
    printf("nnlshp  3: %.4f %% rounded as published\n", fill);
    assert_true(fabs(fill - 99.75) < 0.01);
    struct slu_pack_sum sum = solve(SLU_PACK_NNLSHP, hist, n, 512, 3);
    fill = 100 * slu_pack_fill(&sum);
    printf("nnlshp  3: %.4f %%\n", fill);
    assert_int_equal(sum.bins, 8144375);
    for (uint64_t most = 1; most < 3; most++)
        assert_int_equal(solve(SLU_PACK_NNLSHP, hist, n, 512, most).bins,
                         solve(SLU_PACK_LPFHP, hist, n, 512, most).bins);
}

/* ---- lognormal lengths (tests/bench/lognormal.h) ---- */

/* The same of bfd, ffd and lpfhp. Bins over the bound, as committed; on other
 * lognormal lengths these methods left 0.0018 %, 0.00035 %, 0.00007 % and about 0. */
static const struct {
    uint64_t capacity;
    double n_doc;
    uint64_t bins, over;
} table[] = {
    {2048, 1e9, 226321695, 6145},
    {8192, 1e9, 90878443, 263},
    {32768, 1e9, 24901684, 12},
    {131072, 1e11, 626840578, 19},
};

static void certificates(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t n;
        struct slu_length_count *hist =
            lognormal(table[i].capacity, table[i].n_doc, &n);
        assert_non_null(hist);
        for (int m = SLU_PACK_BFD; m <= SLU_PACK_LPFHP; m++) {
            if (m == SLU_PACK_SPFHP)
                continue;
            struct slu_pack_sum s =
                solve((enum slu_pack_method)m, hist, n, table[i].capacity, 0);
            printf("%-6s L %6d: %11llu bins, %6llu over the bound, %.5f %%\n",
                   slu_pack_method_name[m], (int)table[i].capacity,
                   (unsigned long long)s.bins, (unsigned long long)(s.bins - s.bound),
                   100 * (double)(s.bins - s.bound) / (double)s.bound);
            assert_int_equal(s.bins, table[i].bins);
            assert_int_equal(s.bins - s.bound, table[i].over);
        }
        free(hist);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published),
        cmocka_unit_test(least_squares),
        cmocka_unit_test(certificates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
