/* test_packer.c - packing: the solver on histograms compared with a plain best-fit
 * decreasing, item by item. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/plan_check.h"

static uint64_t state = 1;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Best fit, ties to the bin opened first, no cleverness. Items are (length, rank). */
static size_t plain(const struct slu_length_count *hist, size_t n, uint64_t capacity,
                    uint64_t max_items, uint64_t *bin_of, uint64_t *slot_of,
                    uint64_t *room, uint64_t *held)
{
    size_t bins = 0, item = 0;
    for (size_t i = n; i-- > 0;)
        for (uint64_t k = 0; k < hist[i].count; k++, item++) {
            size_t best = bins;
            for (size_t b = 0; b < bins; b++)
                if (room[b] >= hist[i].len_tok && held[b] < max_items &&
                    (best == bins || room[b] < room[best]))
                    best = b;
            if (best == bins) {
                room[bins] = capacity;
                held[bins++] = 0;
            }
            room[best] -= hist[i].len_tok;
            bin_of[item] = best;
            slot_of[item] = held[best]++;
        }
    return bins;
}

static void trial(uint64_t capacity, size_t n, uint64_t most, uint64_t max_items)
{
    static uint64_t bin_of[20000], slot_of[20000], room[20000], held[20000];
    static struct slu_length_count hist[512];
    size_t k = 0;
    for (uint64_t l = 1; l <= capacity && k < n; l++)
        if (rnd(capacity) < n)
            hist[k++] = (struct slu_length_count){l, 1 + rnd(most)};
    size_t bins = plain(hist, k, capacity, max_items ? max_items : UINT64_MAX, bin_of,
                        slot_of, room, held);
    struct slu_pack_plan *plan;
    assert_int_equal(slu_pack_bfd(&plan, hist, k, capacity, max_items, NULL), SLU_OK);
    assert_int_equal(plan->n_bin, bins);
    check_plan(plan, hist, k, max_items);
    size_t item = 0;
    for (size_t i = k; i-- > 0;)
        for (uint64_t r = 0; r < hist[i].count; r++, item++) {
            uint64_t bin, slot;
            slu_pack_place(plan, slu_pack_find(plan, hist[i].len_tok), r, &bin, &slot);
            assert_int_equal(bin, bin_of[item]);
            assert_int_equal(slot, slot_of[item]);
        }
    uint64_t full = 0;
    for (size_t b = 0; b < bins; b++)
        full += room[b] == 0;
    struct slu_pack_sum s = slu_pack_plan_sum(plan);
    assert_int_equal(s.full, full);
    assert_int_equal(s.items, item);
    slu_pack_plan_free(plan);
}

static void same_as_plain(void **unused)
{
    (void)unused;
    for (int i = 0; i < 150; i++) {
        trial(1 + rnd(40), 20, 1 + rnd(30), 0);
        trial(64 + rnd(200), 40, 1 + rnd(12), 0);
        trial(64 + rnd(200), 40, 1 + rnd(12), 1 + rnd(5));
    }
    trial(8192, 400, 20, 0);
}

static void edges(void **unused)
{
    (void)unused;
    struct slu_pack_plan *plan;
    struct slu_err err = SLU_ERR_INIT;
    assert_int_equal(slu_pack_bfd(&plan, NULL, 0, 10, 0, &err), SLU_OK);
    assert_int_equal(plan->n_bin, 0);
    check_plan(plan, NULL, 0, 0);
    slu_pack_plan_free(plan);
    struct slu_length_count one = {10, 3}, none = {0, 3}, big = {11, 1};
    assert_int_equal(slu_pack_bfd(&plan, &one, 1, 10, 0, &err), SLU_OK);
    assert_int_equal(plan->n_bin, 3);
    assert_int_equal(slu_pack_plan_sum(plan).full, 3);
    slu_pack_plan_free(plan);
    assert_int_equal(slu_pack_bfd(&plan, &none, 1, 10, 0, &err), SLU_E_USAGE);
    assert_int_equal(slu_pack_bfd(&plan, &big, 1, 10, 0, &err), SLU_E_USAGE);
    assert_int_equal(slu_pack_bfd(&plan, &one, 1, 0, 0, &err), SLU_E_USAGE);
    /* 1e11 items in no time: the plan knows counts only. */
    struct slu_length_count many[2] = {{3, 100000000000}, {7, 100000000000}};
    assert_int_equal(slu_pack_bfd(&plan, many, 2, 10, 0, &err), SLU_OK);
    assert_int_equal(plan->n_bin, 100000000000);
    assert_int_equal(slu_pack_plan_sum(plan).full, 100000000000);
    check_plan(plan, many, 2, 0);
    slu_pack_plan_free(plan);
    many[1].count = UINT64_MAX / 2;
    assert_int_equal(slu_pack_bfd(&plan, many + 1, 1, 10, 0, &err), SLU_E_LIMIT);
}

static void solve(void **unused)
{
    (void)unused;
    struct slu_pack_plan *plan;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_length_count hist[] = {{2, 5}, {3, 1}, {7, 2}};
    struct slu_pack_cfg cfg = {.capacity = 10, .max_items = 2};
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_BFD, hist, 3, &cfg, &err), SLU_OK);
    assert_int_equal(plan->n_bin, 4);
    check_plan(plan, hist, 3, 2);
    slu_pack_plan_free(plan);
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_CONCAT, hist, 3, &cfg, &err),
                     SLU_E_USAGE);
    assert_null(plan);
    for (int i = 0; i < SLU_PACK_METHODS; i++)
        assert_non_null(slu_pack_method_name[i]);
    assert_null(slu_pack_method_name[SLU_PACK_METHODS]);
}

static void concat(void **unused)
{
    (void)unused;
    uint64_t bin, offset;
    assert_int_equal(slu_pack_chunk(0, 5, 10, &bin, &offset), 5);
    assert_int_equal(slu_pack_chunk(5, 9, 10, &bin, &offset), 5);
    assert_int_equal(bin, 0);
    assert_int_equal(offset, 5);
    assert_int_equal(slu_pack_chunk(10, 4, 10, &bin, &offset), 4);
    assert_int_equal(bin, 1);
    struct slu_pack_sum s = slu_pack_concat_sum(2, 14, 1, 10);
    assert_int_equal(s.bins, 2);
    assert_int_equal(s.full, 1);
    assert_int_equal(s.full_tok, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_plain),
        cmocka_unit_test(edges),
        cmocka_unit_test(solve),
        cmocka_unit_test(concat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
