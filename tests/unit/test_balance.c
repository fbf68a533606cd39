/* test_balance.c - dealing costs to ranks: each sequence once, and evenly, compared
 * with all possible deals; the mixing of steps; the figures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/pack/balance.h"

static uint64_t state = 7;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

enum { MOST = 4096 };

static void check_permutation(const uint32_t *order, size_t n)
{
    static uint8_t seen[MOST];
    memset(seen, 0, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_false(seen[order[i]]++);
    }
}

static uint64_t load(const uint64_t *cost, const uint32_t *order, size_t rank,
                     size_t per_rank)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < per_rank; i++)
        sum += cost[order[rank * per_rank + i]];
    return sum;
}

static void test_neighbours(void **arg)
{
    (void)arg;
    static uint64_t cost[60];
    static uint32_t order[60];
    for (size_t i = 0; i < 60; i++)
        cost[i] = rnd(1000);
    assert_int_equal(slu_balance_deal(cost, 12, 5, 1, order, NULL), SLU_OK);
    check_permutation(order, 60);
    for (size_t i = 1; i < 60; i++) /* one sequence a rank: sorted, ties as they came */
        assert_true(cost[order[i]] < cost[order[i - 1]] ||
                    (cost[order[i]] == cost[order[i - 1]] && order[i] > order[i - 1]));
    assert_int_equal(slu_balance_deal(cost, 0, 5, 1, order, NULL), SLU_OK);
}

static void test_whole_and_better(void **arg)
{
    (void)arg;
    static uint64_t cost[MOST];
    static uint32_t order[MOST];
    double was = 0, is = 0;
    int worse = 0;
    for (int t = 0; t < 300; t++) {
        size_t steps = 1 + rnd(6), ranks = 1 + rnd(9), per = 1 + rnd(8),
               n = steps * ranks * per;
        uint64_t top = t % 3 == 0 ? 2 : t % 3 == 1 ? 100 : UINT64_C(1) << 40;
        struct slu_balance_sum before = {0}, after = {0};
        for (size_t i = 0; i < n; i++)
            cost[i] = 1 + rnd(top) / (1 + rnd(20));
        assert_int_equal(slu_balance_deal(cost, steps, ranks, per, order, NULL),
                         SLU_OK);
        check_permutation(order, n);
        for (size_t r = 0; r < steps * ranks; r++)
            for (size_t i = 1; i < per; i++)
                assert_true(order[r * per + i] > order[r * per + i - 1]);
        slu_balance_measure(cost, NULL, steps, ranks, per, &before);
        slu_balance_measure(cost, order, steps, ranks, per, &after);
        assert_int_equal(after.steps, steps);
        worse += after.max > before.max * (1 + 1e-9);
        was += before.max / before.mean;
        is += after.max / after.mean;
    }
    assert_true(worse <= 3); /* a rule of thumb may lose, and seldom does */
    assert_true(is < was * 0.8);
}

/* The least that the costlier of two ranks can have: all deals of 2 x per. */
static uint64_t best_of_two(const uint64_t *cost, size_t per)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t set = 0; set < 1u << (2 * per); set++) {
        uint64_t sum[2] = {0, 0};
        if ((size_t)__builtin_popcount(set) != per)
            continue;
        for (size_t i = 0; i < 2 * per; i++)
            sum[set >> i & 1] += cost[i];
        uint64_t most = sum[0] > sum[1] ? sum[0] : sum[1];
        best = most < best ? most : best;
    }
    return best;
}

static void test_near_the_best(void **arg)
{
    (void)arg;
    uint64_t cost[12], off = 0, all = 0;
    uint32_t order[12];
    for (int t = 0; t < 400; t++) {
        size_t per = 2 + rnd(5);
        for (size_t i = 0; i < 2 * per; i++)
            cost[i] = 1 + rnd(1000) * rnd(1000);
        assert_int_equal(slu_balance_deal(cost, 1, 2, per, order, NULL), SLU_OK);
        uint64_t a = load(cost, order, 0, per), b = load(cost, order, 1, per);
        uint64_t best = best_of_two(cost, per), most = a > b ? a : b;
        assert_true(most >= best);
        assert_true(most <= best + best / 6); /* the rule's own bound */
        off += most - best;
        all += best;
    }
    assert_true(off * 50 < all); /* 2 % over the best there is */
}

static void test_swaps_level(void **arg)
{
    (void)arg;
    /* The rule alone deals 3 + 2 + 2 and 3 + 2, which is full at 3 + 2 + 0: 7 and 5. */
    static const uint64_t cost[] = {3, 3, 2, 2, 2, 0};
    uint32_t order[6];
    assert_int_equal(slu_balance_deal(cost, 1, 2, 3, order, NULL), SLU_OK);
    assert_int_equal(load(cost, order, 0, 3), 6);
    assert_int_equal(load(cost, order, 1, 3), 6);
}

static void test_mix(void **arg)
{
    (void)arg;
    enum { STEPS = 40, RANKS = 4, PER = 3, ALL = STEPS * RANKS * PER };
    static uint32_t order[ALL], again[ALL], other[ALL];
    int moved = 0, first[RANKS] = {0};
    for (uint32_t i = 0; i < ALL; i++)
        order[i] = again[i] = other[i] = i;
    assert_int_equal(slu_balance_mix(order, STEPS, RANKS, PER, 1, 512, 3, NULL),
                     SLU_OK);
    assert_int_equal(slu_balance_mix(again, STEPS, RANKS, PER, 1, 512, 3, NULL),
                     SLU_OK);
    assert_int_equal(slu_balance_mix(other, STEPS, RANKS, PER, 2, 512, 3, NULL),
                     SLU_OK);
    check_permutation(order, ALL);
    assert_memory_equal(order, again, sizeof order);
    assert_true(memcmp(order, other, sizeof order) != 0);
    for (size_t s = 0; s < STEPS; s++) {
        uint32_t step = order[s * RANKS * PER] / (RANKS * PER);
        moved += step != s;
        for (size_t r = 0; r < RANKS; r++) {
            const uint32_t *row = &order[(s * RANKS + r) * PER];
            assert_int_equal(row[0] % PER, 0); /* a rank stays whole, and in its step */
            assert_int_equal(row[0] / (RANKS * PER), step);
            for (size_t i = 1; i < PER; i++)
                assert_int_equal(row[i], row[0] + i);
            if (row[0] / PER % RANKS == 0)
                first[r]++;
        }
    }
    assert_true(moved > STEPS / 2);
    for (size_t r = 0; r < RANKS; r++) /* the costliest is nobody's lot */
        assert_true(first[r] > 2 && first[r] < 25);
}

static void test_measure(void **arg)
{
    (void)arg;
    static const uint64_t cost[] = {1, 2, 3, 4, 0, 0, 0, 0};
    static const uint32_t order[] = {0, 3, 1, 2, 4, 5, 6, 7};
    struct slu_balance_sum s = {0}, t = {0};
    slu_balance_measure(cost, NULL, 2, 2, 2, &s);
    assert_int_equal(s.steps, 2);
    assert_true(s.ratio == 1.4 + 1 && s.worst == 1.4 && s.max == 7 && s.mean == 5);
    slu_balance_measure(cost, order, 2, 2, 2, &t);
    assert_true(t.ratio == 2 && t.worst == 1 && t.max == 5 && t.mean == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours),    cmocka_unit_test(test_whole_and_better),
        cmocka_unit_test(test_near_the_best), cmocka_unit_test(test_swaps_level),
        cmocka_unit_test(test_mix),           cmocka_unit_test(test_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
