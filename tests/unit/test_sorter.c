/* The sorter against an oracle that sorts in memory: random and skewed keys, records of
 * 0 to 100 KB, budgets with and without spilling. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/sorter.h"

struct item {
    struct slu_u128 key;
    const uint8_t *p;
    size_t n;
};

static uint64_t rnd_state = 1;

static uint64_t rnd(void)
{
    uint64_t z = (rnd_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int cmp_item(const void *va, const void *vb)
{
    const struct item *a = va, *b = vb;
    int c = slu_u128_cmp(a->key, b->key);

    if (c == 0)
        c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

/* Sorts item[0, n) both ways and compares; the bytes spilled. */
static uint64_t run(const struct item *item, size_t n, uint64_t budget)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sorter_cfg cfg = {budget, "/tmp", 1};
    struct slu_sorter *s;
    struct item *want = malloc((n + 1) * sizeof *want);
    struct slu_buf runs = SLU_BUF_INIT;

    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        size_t cut = item[i].n ? rnd() % (item[i].n + 1) : 0;
        struct slu_piece piece[3] = {
            {item[i].p, cut}, {NULL, 0}, {item[i].p + cut, item[i].n - cut}};
        want[i] = item[i];
        if (rnd() % 2) { /* as a run of its own, or of some with the next ones */
            struct slu_rec r = {item[i].key, item[i].n};
            assert_int_equal(slu_buf_append(&runs, &r, sizeof r, &err), SLU_OK);
            assert_int_equal(slu_buf_append(&runs, item[i].p, item[i].n, &err), SLU_OK);
            assert_int_equal(slu_buf_align(&runs, 8, &err), SLU_OK);
        } else if (slu_sorter_add(s, item[i].key, piece, 3, &err) != SLU_OK) {
            fail_msg("%s", err.msg);
        }
        if (runs.len && (i + 1 == n || rnd() % 8 == 0)) {
            if (slu_sorter_add_run(s, runs.data, runs.len, &err) != SLU_OK)
                fail_msg("%s", err.msg);
            slu_buf_clear(&runs);
        }
    }
    slu_buf_release(&runs);
    qsort(want, n, sizeof *want, cmp_item);
    assert_int_equal(slu_sorter_seal(s, &err), SLU_OK);
    for (size_t i = 0;; i++) {
        struct slu_u128 key;
        const void *p;
        size_t len;
        int rc = slu_sorter_next(s, &key, &p, &len, &err);
        if (rc == SLU_EOF) {
            assert_int_equal(i, n);
            break;
        }
        if (rc != SLU_OK)
            fail_msg("%s", err.msg);
        assert_true(i < n);
        assert_true(slu_u128_cmp(key, want[i].key) == 0);
        assert_int_equal(len, want[i].n);
        assert_int_equal((uintptr_t)p % 8, 0);
        assert_memory_equal(p, want[i].p, len);
    }
    uint64_t spilled = slu_sorter_spilled(s);
    slu_sorter_free(s);
    free(want);
    return spilled;
}

enum shape { UNIFORM, EQUAL, SMALL_INTS, TWO_VALUES, ORDERED, LOW_WORD, N_SHAPE };

static struct slu_u128 make_key(enum shape shape, size_t i)
{
    struct slu_u128 k = {rnd(), rnd()};

    switch (shape) {
    case EQUAL:
        k.hi = k.lo = 42;
        break;
    case SMALL_INTS:
        k.hi = 0;
        k.lo %= 1000;
        break;
    case TWO_VALUES:
        k.hi = k.hi % 16 ? UINT64_MAX : 0;
        k.lo = 0;
        break;
    case ORDERED:
        k.hi = (uint64_t)i << 32;
        break;
    case LOW_WORD:
        k.hi = 7;
        break;
    default:
        break;
    }
    return k;
}

static uint8_t *random_bytes(size_t n)
{
    uint8_t *p = malloc(n);

    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rnd();
    return p;
}

static void test_shapes(void **state)
{
    (void)state;
    enum { POOL = 1 << 20, N = 3000 };
    uint8_t *pool = random_bytes(POOL);
    struct item *item = malloc(N * sizeof *item);

    for (int shape = 0; shape < N_SHAPE; shape++) {
        uint64_t total = 0;
        for (size_t i = 0; i < N; i++) {
            uint64_t kind = rnd() % 100;
            item[i].n = kind < 5    ? 0
                        : kind < 80 ? rnd() % 300
                        : kind < 98 ? rnd() % 9000
                                    : rnd() % 100001;
            item[i].p = pool + rnd() % (POOL - item[i].n);
            item[i].key = make_key(shape, i);
            total += item[i].n;
        }
        assert_int_equal(run(item, N, 64 << 20), 0);
        assert_true(run(item, N, 1 << 20) > total);
        assert_true(run(item, N, 256 << 10) > total);
    }
    free(item);
    free(pool);
}

/* Many small records: several levels of cells. */
static void test_levels(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct item *item = malloc(N * sizeof *item);
    uint64_t *body = malloc(N * sizeof *body);

    for (int shape = 0; shape < N_SHAPE; shape++) {
        for (size_t i = 0; i < N; i++) {
            body[i] = rnd();
            item[i].n = rnd() % 9;
            item[i].p = (const uint8_t *)&body[i];
            item[i].key = make_key(shape, i);
        }
        assert_true(run(item, N, 64 << 10) > 0);
    }
    free(item);
    free(body);
}

/* Records with equal keys that begin alike, differ late, or not at all. */
static void test_alike(void **state)
{
    (void)state;
    enum { N = 400, LEN = 20000 };
    uint8_t *pool = calloc(N, LEN);
    struct item *item = malloc(N * sizeof *item);

    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < N; i++) {
            uint8_t *p = pool + i * LEN;
            memset(p, 0, LEN);
            item[i] = (struct item){{1, 2}, p, LEN};
            if (kind == 1)
                p[LEN - 1] = (uint8_t)rnd();
            else if (kind == 2)
                item[i].n = LEN - rnd() % 40; /* zeros of various lengths */
            else if (kind == 3)
                p[rnd() % LEN] = (uint8_t)(rnd() % 3);
        }
        assert_true(run(item, N, 512 << 10) > 0);
    }
    free(item);
    free(pool);
}

static void test_edges(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sorter_cfg cfg = {1 << 20, "/tmp", 1};
    struct slu_sorter *s;
    struct slu_u128 key = {0, 0};
    uint8_t *big = calloc(1, 1 << 20);
    struct slu_piece piece = {big, (1 << 19) + 1};
    const void *p;
    size_t n;

    assert_int_equal(run(NULL, 0, 1 << 20), 0);
    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
    assert_int_equal(slu_sorter_add(s, key, &piece, 1, &err), SLU_E_LIMIT);
    piece.n--;
    for (int i = 0; i < 5; i++)
        assert_int_equal(slu_sorter_add(s, key, &piece, 1, &err), SLU_OK);
    assert_int_equal(slu_sorter_seal(s, &err), SLU_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(slu_sorter_next(s, &key, &p, &n, &err), SLU_OK);
    assert_int_equal(slu_sorter_next(s, &key, &p, &n, &err), SLU_EOF);
    assert_int_equal(slu_sorter_next(s, &key, &p, &n, &err), SLU_EOF);
    slu_sorter_free(s);

    cfg.budget_byte = 1000;
    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_E_LIMIT);
    cfg.budget_byte = 1 << 20;
    cfg.tmpdir = "/nonexistent";
    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
    for (int i = 0; i < 2; i++)
        if (slu_sorter_add(s, key, &piece, 1, &err) != SLU_OK)
            break;
    assert_int_equal(err.code, SLU_E_IO);
    assert_non_null(strstr(err.msg, "/nonexistent"));
    slu_sorter_free(s);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
