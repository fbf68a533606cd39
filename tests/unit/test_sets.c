/* test_sets.c - sets of hashes: made, intersected, and how many must be common. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/dedup/near/shingle.h"
#include "tests/unit/below.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sets(void **state)
{
    enum { MOST = 70000 };
    static const size_t SIZES[] = {0,   1,    2,    47,   48,    49,
                                   300, 1024, 1025, 5000, 65536, MOST};
    static uint64_t h[MOST], want[MOST], spare[MOST];
    (void)state;

    for (size_t z = 0; z < sizeof SIZES / sizeof *SIZES; z++) {
        for (int kind = 0; kind < 6; kind++) {
            const size_t n = SIZES[z];
            for (size_t i = 0; i < n; i++) {
                uint64_t x = slu_draw(kind, i, 0, 0, 0);
                h[i] = kind == 0   ? x
                       : kind == 1 ? x % 100 << 57
                       : kind == 2 ? x >> 40 /* high bits all alike */
                       : kind == 3 ? (uint64_t)n - i
                       : kind == 4 ? 42
                                   : slu_draw(0, x % (n / 2 + 1), 0, 0, 0);
                want[i] = h[i];
            }
            size_t n_want = 0;
            qsort(want, n, sizeof *want, by_value);
            for (size_t i = 0; i < n; i++) {
                if (!i || want[i] != want[n_want - 1])
                    want[n_want++] = want[i];
            }
            assert_int_equal(slu_set_make(h, n, spare), n_want);
            assert_memory_equal(h, want, n_want * sizeof *h);
        }
    }
}

static void intersections(void **state)
{
    static uint64_t a[600], b[600];
    (void)state;

    for (int round = 0; round < 30000; round++) {
        size_t n_a = 0, n_b = 0, common = 0;
        unsigned most = below(round % 50 ? 40 : 500), in_a = below(101),
                 in_b = below(101);
        bool apart = below(3) == 0;
        for (unsigned x = 0; x < most; x++) {
            bool both = apart && below(10);
            bool is_a = below(100) < in_a, is_b = both ? is_a : below(100) < in_b;
            if (is_a)
                a[n_a++] = x * UINT64_C(0x0011223344556677);
            if (is_b)
                b[n_b++] = x * UINT64_C(0x0011223344556677);
            common += is_a && is_b;
        }
        assert_int_equal(slu_sets_intersect(a, n_a, b, n_b, 0), common);
        for (size_t need = 0; need < most + 2; need += 1 + most / 10) {
            size_t got = slu_sets_intersect(a, n_a, b, n_b, need);
            assert_true(common >= need ? got == common : got < need);
        }
    }
}

static void needs(void **state)
{
    (void)state;
    for (size_t n_a = 0; n_a < 30; n_a++) {
        for (size_t n_b = 0; n_b < 30; n_b++) {
            for (unsigned num = 0; num <= 10; num++) {
                size_t need = slu_sets_need(n_a, n_b, num, 10);
                for (size_t c = 0; c <= n_a && c <= n_b; c++)
                    assert_int_equal(c >= need, c * 10 >= num * (n_a + n_b - c));
            }
        }
    }
    assert_true(slu_sets_need(UINT64_C(1) << 62, UINT64_C(1) << 62, 1, 1) == UINT64_C(1)
                                                                                 << 62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets),
        cmocka_unit_test(intersections),
        cmocka_unit_test(needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
