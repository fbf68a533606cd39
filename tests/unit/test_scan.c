/* test_scan.c - the ends of documents in raw ids: every SIMD level compared with the
 * oracle, over all block borders; joined blocks compared with the whole; the device's
 * results, if there is a device. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/scan.h"

enum { MOST = 140000, MAX_BIN = 70000 };

static const char *const LEVELS[] = {"portable", "avx2", "avx512", "neon"};

static uint64_t mix(uint64_t z)
{
    z = (z + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct bench {
    void *tok; /* MOST ids */
    uint64_t *want, *got, *far_want, *far_got;
    uint32_t *at_want, *at_got;
};

static void put(void *tok, unsigned tok_bytes, size_t i, uint32_t v)
{
    if (tok_bytes == 2)
        ((uint16_t *)tok)[i] = (uint16_t)v;
    else
        ((uint32_t *)tok)[i] = v;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void same_block(struct slu_eos_block a, struct slu_eos_block b)
{
    assert_int_equal(a.n_eos, b.n_eos);
    assert_int_equal(a.head_tok, b.head_tok);
    assert_int_equal(a.tail_tok, b.tail_tok);
    assert_int_equal(a.n_far, b.n_far);
}

/* One input, n_bin counters, at every level. */
static void compare(struct bench *t, const void *tok, size_t n, unsigned tok_bytes,
                    uint32_t eos, size_t n_bin)
{
    struct slu_eos_block want, got;
    size_t most = 1 + mix(n) % (n + 1), seen_want, seen_got;
    memset(t->want, 0, n_bin * sizeof *t->want);
    slu_eos_lengths_ref(tok, n, tok_bytes, eos, t->want, n_bin, t->far_want, &want);
    assert_true(want.n_far <= slu_eos_far_most(n, n_bin));
    qsort(t->far_want, want.n_far, sizeof *t->far_want, ascending);
    size_t n_at =
        slu_eos_find_ref(tok, n, tok_bytes, eos, t->at_want, most, &seen_want);
    for (size_t l = 0; l < sizeof LEVELS / sizeof *LEVELS; l++) {
        const struct slu_eos_kernel *k = slu_eos_kernel(LEVELS[l]);
        if (!k)
            continue;
        assert_string_equal(slu_eos_kernel_name(k), LEVELS[l]);
        memset(t->got, 0, n_bin * sizeof *t->got);
        slu_eos_lengths(k, tok, n, tok_bytes, eos, t->got, n_bin, t->far_got, &got);
        same_block(want, got);
        qsort(t->far_got, got.n_far, sizeof *t->far_got, ascending);
        assert_memory_equal(t->want, t->got, n_bin * sizeof *t->want);
        assert_memory_equal(t->far_want, t->far_got, want.n_far * sizeof *t->far_want);
        assert_int_equal(
            slu_eos_find(k, tok, n, tok_bytes, eos, t->at_got, most, &seen_got), n_at);
        assert_int_equal(seen_got, seen_want);
        assert_memory_equal(t->at_want, t->at_got, n_at * sizeof *t->at_want);
    }
}

static int set_up(void **state)
{
    struct bench *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->tok = malloc(4 * MOST);
    t->want = malloc(MAX_BIN * sizeof *t->want);
    t->got = malloc(MAX_BIN * sizeof *t->got);
    t->far_want = malloc(MOST * sizeof *t->far_want);
    t->far_got = malloc(MOST * sizeof *t->far_got);
    t->at_want = malloc(MOST * sizeof *t->at_want);
    t->at_got = malloc(MOST * sizeof *t->at_got);
    assert_true(t->tok && t->want && t->got && t->far_want && t->far_got &&
                t->at_want && t->at_got);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *t = *state;
    free(t->tok);
    free(t->want);
    free(t->got);
    free(t->far_want);
    free(t->far_got);
    free(t->at_want);
    free(t->at_got);
    free(t);
    return 0;
}

/* Every count up to a few vectors, and around chunks; nothing but EOS, none, one at
 * each place; neighbours of the id that differ in one half only. */
static void test_borders(void **state)
{
    static const size_t around[] = {32767, 32768, 32769, 65535, 65536, 65537, 131072};
    static const uint32_t ids[] = {0, 1, 0xffff, 0x8000, 0x10000, 0xffffffff};
    struct bench *t = *state;
    for (unsigned w = 2; w <= 4; w += 2)
        for (size_t e = 0; e < sizeof ids / sizeof *ids; e++) {
            uint32_t eos = ids[e];
            for (size_t n = 0; n <= 200; n++) {
                for (size_t i = 0; i < n; i++)
                    put(t->tok, w, i, eos ^ (i % 2 ? 1u << 31 | 1 : 0x8000));
                compare(t, t->tok, n, w, eos, 64);
                for (size_t i = 0; i < n && n % 7 == 3; i++) {
                    put(t->tok, w, i, eos);
                    compare(t, t->tok, n, w, eos, 1 + n % 64);
                    put(t->tok, w, i, eos + 1);
                }
                for (size_t i = 0; i < n; i++)
                    put(t->tok, w, i, eos);
                compare(t, t->tok, n, w, eos, 2);
            }
            for (size_t a = 0; a < sizeof around / sizeof *around; a++)
                for (unsigned what = 0; what < 3; what++) {
                    size_t n = around[a];
                    for (size_t i = 0; i < n; i++)
                        put(t->tok, w, i, what == 0 ? eos : eos ^ 0x100);
                    if (what == 2) { /* at the ends, and on both sides of a border */
                        put(t->tok, w, 0, eos);
                        put(t->tok, w, 32767 < n ? 32767 : 0, eos);
                        put(t->tok, w, 32768 < n ? 32768 : 0, eos);
                        put(t->tok, w, n - 1, eos);
                    }
                    compare(t, t->tok, n, w, eos, what == 1 ? 100 : 70000);
                }
        }
}

/* Documents of every kind of length, at odd addresses and sizes. */
static void fill(struct bench *t, uint64_t seed, unsigned w, uint32_t eos, size_t n)
{
    uint64_t mean = UINT64_C(1) << mix(seed) % 17, left = mix(seed + 1) % mean;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = (uint32_t)mix(seed * MOST + i) & (w == 2 ? 0xffff : UINT32_MAX);
        put(t->tok, w, i, left == 0 ? eos : v == eos ? eos ^ 1 : v);
        left = left ? left - 1 : mix(seed + 7 * i) % mean;
    }
}

static void test_random(void **state)
{
    struct bench *t = *state;
    for (uint64_t r = 0; r < 300; r++) {
        unsigned w = r % 2 ? 4 : 2;
        uint32_t eos = (uint32_t)mix(r * 3) & (w == 2 ? 0xffff : UINT32_MAX);
        size_t n = mix(r + 9) % (r % 10 ? 3000 : MOST - 100), off = mix(r + 5) % 40;
        size_t n_bin = 1 + mix(r + 4) % (r % 3 ? 300 : MAX_BIN - 1);
        fill(t, r, w, eos, n + off);
        compare(t, (const uint8_t *)t->tok + off * w, n, w, eos, n_bin);
    }
}

/* Blocks of any size, joined, are the whole: documents over any number of borders. */
static void test_join(void **state)
{
    const struct slu_eos_kernel *k = slu_eos_kernel(NULL);
    struct bench *t = *state;
    assert_non_null(k);
    assert_null(slu_eos_kernel("none"));
    for (uint64_t r = 0; r < 200; r++) {
        const size_t n = 1 + mix(r) % 20000,
                     step = 1 + mix(r + 1) % (r % 2 ? 50 : 3000);
        uint64_t open = 0, n_eos = 0, open_want = 0, head;
        struct slu_eos_block b, all;
        fill(t, r, 2, 7, n);
        memset(t->want, 0, MAX_BIN * sizeof *t->want);
        memset(t->got, 0, MAX_BIN * sizeof *t->got);
        slu_eos_lengths_ref(t->tok, n, 2, 7, t->want, MAX_BIN, t->far_want, &all);
        head = slu_eos_join(&open_want, &all);
        if (head)
            t->want[head]++;
        for (size_t i = 0; i < n; i += step) {
            size_t m = n - i < step ? n - i : step;
            slu_eos_lengths(k, (uint16_t *)t->tok + i, m, 2, 7, t->got, MAX_BIN,
                            t->far_got, &b);
            head = slu_eos_join(&open, &b);
            if (head)
                t->got[head]++;
            n_eos += b.n_eos;
        }
        assert_int_equal(open, open_want);
        assert_int_equal(n_eos, all.n_eos);
        assert_memory_equal(t->want, t->got, MAX_BIN * sizeof *t->want);
    }
}

static void on_device(struct bench *t, size_t n, unsigned w, uint32_t eos, size_t n_bin)
{
    struct slu_eos_block want, got;
    size_t work_byte = slu_eos_lengths_cuda_work(n);
    void *tok, *count, *far, *b, *work;
    memset(t->want, 0, n_bin * sizeof *t->want);
    slu_eos_lengths_ref(t->tok, n, w, eos, t->want, n_bin, t->far_want, &want);
    qsort(t->far_want, want.n_far, sizeof *t->far_want, ascending);
    assert_int_equal(slu_device_alloc(&tok, n * w + 16), 0);
    assert_int_equal(slu_device_alloc(&count, n_bin * 8), 0);
    assert_int_equal(slu_device_alloc(&far, 8 * slu_eos_far_most(n, n_bin) + 8), 0);
    assert_int_equal(slu_device_alloc(&b, sizeof got), 0);
    assert_int_equal(slu_device_alloc(&work, work_byte), 0);
    assert_int_equal(slu_device_put(tok, t->tok, n * w, NULL), 0);
    assert_int_equal(slu_device_zero(count, n_bin * 8, NULL), 0);
    assert_int_equal(slu_eos_lengths_cuda(tok, n, w, eos, count, n_bin, far, b, work,
                                          work_byte, NULL),
                     0);
    assert_int_equal(slu_device_get(&got, b, sizeof got, NULL), 0);
    assert_int_equal(slu_device_get(t->got, count, n_bin * 8, NULL), 0);
    same_block(want, got);
    assert_memory_equal(t->want, t->got, n_bin * sizeof *t->want);
    if (got.n_far)
        assert_int_equal(slu_device_get(t->far_got, far, got.n_far * 8, NULL), 0);
    qsort(t->far_got, got.n_far, sizeof *t->far_got, ascending);
    assert_memory_equal(t->far_want, t->far_got, want.n_far * sizeof *t->far_want);
    slu_device_free(tok);
    slu_device_free(count);
    slu_device_free(far);
    slu_device_free(b);
    slu_device_free(work);
}

static void test_device(void **state)
{
    static const size_t around[] = {0,     1,     7,     8,     9,     2047,
                                    8191,  8192,  8193,  16383, 16384, 16385,
                                    32768, 65536, 98304, 98305, 139999};
    struct bench *t = *state;
    int n;
    if (slu_device_count(&n) || n == 0)
        skip();
    assert_int_equal(slu_device_select(0), 0);
    for (unsigned w = 2; w <= 4; w += 2)
        for (size_t a = 0; a < sizeof around / sizeof *around; a++)
            for (uint64_t r = 0; r < 12; r++) {
                uint32_t eos = r % 3 ? 0xffff : 3;
                fill(t, mix(r), w, eos, around[a]);
                for (size_t i = 0; i < around[a] && r > 9; i++)
                    put(t->tok, w, i, r == 10 ? eos : eos + 1); /* all, none */
                on_device(t, around[a], w, eos, 1 + mix(r) % (MAX_BIN - 1));
            }
    fill(t, 1, 2, 3, 5000);
    on_device(t, 5000, 2, 0x10003, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_borders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_join, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_device, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
