/* test_sorter.c - the sorter compared with an oracle that sorts in memory: random and
 * skewed keys, records of 0 to 100 KB, budgets with and without spilling. check-more: whole */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/flow/sorter.h"

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

/* A pin: records [from, to) of `want` are still at kept[from, to) when it is unpinned,
 * by a thread, some time after the sorter turned. */
struct pin {
    struct slu_sorter *s;
    struct slu_arena *held;
    const struct item *want;
    const void **kept;
    size_t from, to, n_bad, n_pin;
    pthread_t thread;
    bool begun;
};

static size_t n_unread; /* records that were not looked at when they were handed out */

static void *give_back(void *arg)
{
    struct pin *l = arg;

    usleep(200);
    for (size_t i = l->from; i < l->to; i++)
        l->n_bad += memcmp(l->kept[i], l->want[i].p, l->want[i].n) != 0;
    slu_sorter_unpin(l->s, l->held);
    return NULL;
}

static void end_pin(struct pin *l)
{
    if (l->begun)
        assert_int_equal(pthread_join(l->thread, NULL), 0);
    l->begun = false;
    assert_int_equal(l->n_bad, 0);
}

/* Sorts item[0, n) both ways and compares; the bytes spilled. */
/* Work files have the records as they are, so what follows one is no rest of another. */
static void padding_is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = n; i % 8; i++)
        assert_int_equal(p[i], 0);
}

static uint64_t run_with(const struct item *item, size_t n, uint64_t budget,
                         unsigned n_threads, uint64_t cached)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sorter_cfg cfg = {budget, "/var/tmp", n_threads, cached};
    struct slu_sorter *s;
    struct item *want = malloc((n + 1) * sizeof *want);
    struct slu_buf runs = SLU_BUF_INIT;

    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        size_t cut = item[i].n ? rnd() % (item[i].n + 1) : 0;
        struct slu_slice piece[3] = {
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
    struct pin l = {s, NULL, want, NULL, 0, 0, 0, 0, 0, false};
    l.kept = malloc((n + 1) * sizeof *l.kept);
    for (size_t i = 0;; i++) {
        struct slu_u128 key;
        const void *p;
        size_t len;
        const struct slu_rec *r = NULL;
        uint64_t size;
        if (l.held && !l.begun && rnd() % 4)
            r = slu_sorter_next_pinned(s, &size);
        if (r) {
            assert_true(i < n);
            assert_int_equal(size, slu_rec_size(want[i].n));
            assert_int_equal(r->n_byte, want[i].n);
            assert_memory_equal(slu_rec_bytes(r), want[i].p, want[i].n);
            padding_is_zero(slu_rec_bytes(r), want[i].n);
            l.kept[i] = slu_rec_bytes(r);
            n_unread++;
            continue;
        }
        if (l.held && !l.begun && slu_sorter_turns(s)) {
            l.to = i;
            l.begun = true;
            assert_int_equal(pthread_create(&l.thread, NULL, give_back, &l), 0);
        }
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
        padding_is_zero(p, len);
        l.kept[i] = p;
        if (l.begun || !l.held) {
            end_pin(&l);
            l.held = l.n_pin++ < 100 ? slu_sorter_pin(s) : NULL;
            l.from = i;
        }
    }
    end_pin(&l);
    free(l.kept);
    uint64_t spilled = slu_sorter_spilled(s);
    slu_sorter_free(s);
    free(want);
    return spilled;
}

/* With and without threads of its own, through the page cache, past it, and both. */
static uint64_t run(const struct item *item, size_t n, uint64_t budget)
{
    uint64_t one = run_with(item, n, budget, 1, UINT64_MAX),
             two = run_with(item, n, budget, 2, budget + budget / 2),
             three = run_with(item, n, budget, 2, 1);

    assert_int_equal(one == 0, two == 0);
    assert_int_equal(one == 0, three == 0);
    return one < two ? one : two;
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
        assert_true(run_with(item, N, 2 << 20, 2, 1) > total);
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
        assert_true(run(item, N, 1 << 20) > 0);
        assert_int_equal(run_with(item, N, 32 << 20, 2, 0), 0);
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
        assert_true(run(item, N, 2 << 20) > 0); /* with pins */
    }
    free(item);
    free(pool);
}

static void test_edges(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sorter_cfg cfg = {1 << 20, "/tmp", 1, 0};
    struct slu_sorter *s;
    struct slu_u128 key = {0, 0};
    uint8_t *big = calloc(1, 1 << 20);
    struct slu_slice piece = {big, (1 << 19) + 1};
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

/* Sizes of records that are pinned, also those that an entry has no room for. */
static void test_pinned(void **state)
{
    (void)state;
    enum { N = 20000, SMALL = 64, LIMIT = 8 << 20 };
    uint8_t *p = calloc(1, LIMIT + 64);
    struct item *item = malloc(N * sizeof *item);

    for (size_t i = 0; i < N; i++)
        item[i] = (struct item){{rnd(), rnd()}, p, rnd() % SMALL};
    for (size_t i = 0; i < 5; i++) /* a record is 24 bytes more */
        item[1000 * i].n = LIMIT - 40 + 8 * i;
    n_unread = 0;
    assert_int_equal(run_with(item, N, 128 << 20, 2, UINT64_MAX), 0);
    assert_true(n_unread > N / 2);
    n_unread = 0;
    assert_true(run_with(item, N, 32 << 20, 2, UINT64_MAX) > 0);
    assert_true(n_unread > N / 4);
    free(item);
    free(p);
}

/* Many different fillings of a half by what came through the page cache and, behind it,
 * past it: what alignment takes there is room for. */
static void test_alignment(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint8_t body[600];
    struct item *item = malloc(N * sizeof *item);

    for (int round = 0; round < 150; round++) {
        size_t n = N - rnd() % 1000;
        for (size_t i = 0; i < n; i++) {
            item[i].n = 8 * (rnd() % 60);
            item[i].p = body;
            item[i].key = make_key(UNIFORM, i);
        }
        assert_true(run_with(item, n, 1 << 20, 2, 600000) > 0);
    }
    free(item);
}

/* ---- what goes wrong ---- */

enum { FAULT_BUDGET = 1 << 20, FAULT_RECORDS = 6000 };

/* Adds about 6 MB and seals: the first thing that is not SLU_OK. */
static int fill(struct slu_sorter *s, struct slu_err *err)
{
    uint8_t body[1000] = {0};
    struct slu_slice piece = {body, sizeof body};
    int rc = SLU_OK;

    for (int i = 0; i < FAULT_RECORDS && !rc; i++)
        rc = slu_sorter_add(s, make_key(UNIFORM, 0), &piece, 1, err);
    return rc ? rc : slu_sorter_seal(s, err);
}

/* The files have no names, but numbers. */
static int cut_spills(off_t to_byte)
{
    int n_cut = 0;

    for (int fd = 3; fd < 64; fd++) {
        char path[64], at[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, at, sizeof at - 1);
        if (n > 9 && !memcmp(at, "/var/tmp/", 9) && !ftruncate(fd, to_byte))
            n_cut++;
    }
    return n_cut;
}

/* A file that cannot grow, and one that ends early: an error, whichever thread meets
 * it, once and with the folder's name. */
static void test_faults(void **state)
{
    (void)state;
    const rlim_t limit[] = {4096, 300 << 10, 3 << 20, 5 << 20};
    struct slu_sorter *s;
    struct rlimit was;
    const void *p;
    struct slu_u128 key;
    size_t n;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    for (unsigned i = 0; i < 16; i++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_sorter_cfg cfg = {FAULT_BUDGET, "/var/tmp", 1 + i % 2,
                                     i % 4 < 2 ? 1 : UINT64_MAX};
        struct rlimit r = {limit[i / 4], was.rlim_max};
        assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
        assert_int_equal(fill(s, &err), SLU_E_IO);
        assert_non_null(strstr(err.msg, "/var/tmp"));
        slu_sorter_free(s);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);

        assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
        assert_int_equal(fill(s, &err), SLU_OK);
        assert_true(cut_spills((off_t)limit[i / 4]) > 0);
        int rc = SLU_OK;
        for (unsigned k = 0; k <= FAULT_RECORDS && !rc; k++)
            rc = slu_sorter_next(s, &key, &p, &n, &err);
        assert_true(rc < 0);
        assert_non_null(strstr(err.msg, "/var/tmp"));
        slu_sorter_free(s);
    }
}

static void *stop(void *sorter)
{
    usleep(20000);
    slu_sorter_stop(sorter);
    return NULL;
}

/* If a pin is never released, the wait for it ends with an error. */
static void test_stop(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sorter_cfg cfg = {FAULT_BUDGET, "/var/tmp", 2, 0};
    struct slu_sorter *s;
    struct slu_u128 key;
    const void *p;
    size_t n, i = 0;
    pthread_t thread;
    int rc = SLU_OK;

    assert_int_equal(slu_sorter_new(&s, &cfg, &err), SLU_OK);
    assert_int_equal(fill(s, &err), SLU_OK);
    assert_int_equal(pthread_create(&thread, NULL, stop, s), 0);
    for (; !rc; i++) {
        rc = slu_sorter_next(s, &key, &p, &n, &err);
        if (i == 0)
            assert_non_null(slu_sorter_pin(s));
    }
    assert_int_equal(rc, SLU_E_IO);
    assert_true(i < FAULT_RECORDS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    slu_sorter_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_alike),  cmocka_unit_test(test_edges),
        cmocka_unit_test(test_pinned), cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
