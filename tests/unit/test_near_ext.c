/* The external near-duplicate engine against the definition, with budgets that hold
 * everything and almost nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "lib/dedup/near_ext.h"
#include "lib/dedup/near_groups.h"
#include "near_oracle.h"

static void ok(int rc, const struct slu_err *err)
{
    if (rc != SLU_OK)
        fail_msg("%d: %s", rc, err->msg);
}

static struct slu_near_ext_cfg config(const struct oracle_cfg *c, uint64_t budget,
                                      bool by_prio)
{
    return (struct slu_near_ext_cfg){.collect_byte = budget / 2,
                                     .budget_byte = budget,
                                     .tmpdir = "/var/tmp",
                                     .n_threads = 1,
                                     .n_band = c->n_band,
                                     .num = c->num,
                                     .den = c->den,
                                     .band_cap = c->band_cap,
                                     .verify = c->verify,
                                     .by_prio = by_prio};
}

static void add(struct slu_near_ext *x, const struct oracle_doc *d, uint64_t ordinal)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_doc doc = {.ordinal = ordinal,
                               .prio = d->prio,
                               .fixed = d->fixed,
                               .set_hash = slu_hash128(d->set, d->n_set * 8),
                               .key = d->key,
                               .set = d->set,
                               .n_set = d->n_set};

    ok(slu_near_ext_add(x, &doc, &err), &err);
}

/* What comes out is what the oracle says of documents from `from` on. */
static uint64_t compare(struct slu_near_ext *x, const struct oracle_doc *doc,
                        size_t from, size_t n, uint64_t stride)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_drop drop;
    uint64_t capped = 0, dropped = 0;

    ok(slu_near_ext_finish(x, &err), &err);
    for (size_t i = from; i < n; i++) {
        capped += doc[i].capped;
        if (!doc[i].dropped)
            continue;
        dropped++;
        ok(slu_near_ext_next(x, &drop, &err), &err);
        assert_int_equal(drop.ordinal, i * stride);
        assert_int_equal(drop.witness, doc[i].witness * stride);
        assert_int_equal(drop.inter, doc[i].inter);
        assert_int_equal(drop.uni, doc[i].uni);
    }
    assert_int_equal(slu_near_ext_next(x, &drop, &err), SLU_EOF);
    assert_int_equal(slu_near_ext_result(x)->capped_documents, capped);
    return dropped;
}

static const struct oracle_cfg kinds[] = {
    {.n_band = 4, .num = 4, .den = 5, .band_cap = 256, .verify = true},
    {.n_band = 4, .num = 4, .den = 5, .band_cap = 256, .verify = false},
    {.n_band = 5, .num = 1, .den = 2, .band_cap = 3, .verify = true},
    {.n_band = 3, .num = 1, .den = 1, .band_cap = 1, .verify = true},
    {.n_band = 3, .num = 1, .den = 3, .band_cap = 20, .verify = false},
    {.n_band = 0, .num = 1, .den = 1, .band_cap = 1, .verify = true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every kind, order of ordinals and of priorities, some fixed, gaps in the ordinals. */
static void test_definition(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    uint64_t dropped = 0;

    (void)state;
    for (unsigned round = 0; round < 4 * KINDS; round++) {
        const struct oracle_cfg *c = &kinds[round % KINDS];
        bool by_prio = round / KINDS & 1;
        size_t n = 100 + oracle_mix(round) % 400, stride = 1 + round % 3;
        struct oracle_doc *doc =
            oracle_make(n, c->n_band, 10 + n / 8, 3 + round * 7 % 50, round);
        for (size_t i = 0; i < n; i++) {
            if (!by_prio)
                doc[i].prio = 0;
            doc[i].fixed = round / KINDS >= 2 && i < n / 3;
        }
        oracle_decide(c, doc, n);
        struct slu_near_ext *x;
        const struct slu_near_ext_cfg cfg = config(c, 2 << 20, by_prio);
        ok(slu_near_ext_new(&x, &cfg, &err), &err);
        for (size_t i = 0; i < n; i++)
            add(x, &doc[i], i * stride);
        dropped += compare(x, doc, 0, n, stride);
        slu_near_ext_free(x);
        oracle_free(doc, n);
    }
    assert_true(dropped > 500);
}

/* ---- hand-over ---- */

/* What an engine in memory knows of a group. */
static void hand_group(struct slu_near_ext *x, const struct oracle_cfg *c,
                       const struct oracle_doc *doc, size_t cut, unsigned band,
                       uint64_t key)
{
    struct slu_err err = SLU_ERR_INIT;
    uint64_t kept[512], n_doc = 0;
    size_t n_kept = 0;

    for (size_t i = 0; i < cut; i++) {
        if (!doc[i].n_set || doc[i].first != i || doc[i].key[band] != key)
            continue;
        if (n_doc++ < c->band_cap && !doc[i].dropped)
            kept[n_kept++] = i;
    }
    ok(slu_near_ext_group(x, band, key, n_doc, kept, n_kept, &err), &err);
}

static void test_handover(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    uint64_t dropped = 0;

    (void)state;
    for (unsigned round = 0; round < 2 * KINDS; round++) {
        const struct oracle_cfg *c = &kinds[round % KINDS];
        size_t n = 500, cut = 50 + 37 * round % 400;
        struct oracle_doc *doc =
            oracle_make(n, c->n_band, 60, 3 + round * 5 % 50, 100 + round);
        for (size_t i = 0; i < n; i++)
            doc[i].prio = 0;
        oracle_decide(c, doc, n);
        struct slu_near_ext *x;
        const struct slu_near_ext_cfg cfg = config(c, 2 << 20, false);
        ok(slu_near_ext_new(&x, &cfg, &err), &err);
        for (size_t i = 0; i < cut; i++) {
            if (!doc[i].dropped)
                ok(slu_near_ext_kept(x, i, doc[i].set, doc[i].n_set, &err), &err);
            for (unsigned b = 0; doc[i].n_set && b < c->n_band; b++) {
                size_t j = 0;
                while (!doc[j].n_set || doc[j].key[b] != doc[i].key[b])
                    j++;
                if (j == i) /* each group once */
                    hand_group(x, c, doc, cut, b, doc[i].key[b]);
            }
        }
        /* Twins of what came before are decided by whoever hands over. */
        for (size_t i = cut; i < n; i++) {
            if (doc[i].first < cut)
                doc[i].dropped = doc[i].capped = false;
            else
                add(x, &doc[i], i);
        }
        dropped += compare(x, doc, cut, n, 1);
        slu_near_ext_free(x);
        oracle_free(doc, n);
    }
    assert_true(dropped > 200);
}

/* ---- spilled ---- */

enum { MANY = 20000, BANDS = 6 };

/* One document of many: families of up to 4, the rest alone. */
static void make_one(uint64_t i, struct oracle_doc *d, uint64_t *set, uint64_t *key)
{
    uint64_t family = oracle_mix(i) % (MANY / 2), size = 20 + family % 60;

    for (uint64_t j = 0; j < size; j++)
        set[j] = oracle_mix(family << 20 ^ j ^ (j < oracle_mix(i) >> 60 ? i << 44 : 0));
    qsort(set, size, 8, oracle_cmp_u64);
    for (unsigned b = 0; b < BANDS; b++)
        key[b] = oracle_mix(oracle_mix(i) >> 32 & 1 << b ? family : i % 9 ? i : b);
    *d = (struct oracle_doc){.set = set, .n_set = size, .key = key};
}

static uint64_t run_many(uint64_t budget, uint64_t *spilled, uint64_t *result)
{
    const struct oracle_cfg c = {BANDS, 3, 5, 16, true};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_ext *x;
    struct slu_near_drop drop;
    struct oracle_doc d;
    uint64_t set[100], key[BANDS], sum = 0, n = 0;
    const struct slu_near_ext_cfg cfg = config(&c, budget, false);

    ok(slu_near_ext_new(&x, &cfg, &err), &err);
    for (uint64_t i = 0; i < MANY; i++) {
        make_one(i, &d, set, key);
        add(x, &d, i);
    }
    ok(slu_near_ext_finish(x, &err), &err);
    int rc;
    while ((rc = slu_near_ext_next(x, &drop, &err)) == SLU_OK) {
        const uint64_t row[5] = {drop.ordinal, drop.witness, drop.inter, drop.uni, n++};
        sum += slu_hash64(row, sizeof row);
    }
    assert_int_equal(rc, SLU_EOF);
    *spilled = slu_near_ext_result(x)->spilled_byte;
    result[0] = slu_near_ext_result(x)->candidates;
    result[1] = slu_near_ext_result(x)->edges;
    result[2] = slu_near_ext_result(x)->twins;
    result[3] = slu_near_ext_result(x)->capped_documents;
    result[4] = n;
    slu_near_ext_free(x);
    return sum;
}

static void test_budgets(void **state)
{
    uint64_t spilled[3], sum[3], result[3][5];
    const uint64_t budget[3] = {256 << 20, 2 << 20, 5 << 20};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        sum[i] = run_many(budget[i], &spilled[i], result[i]);
        assert_int_equal(sum[i], sum[0]);
        assert_memory_equal(result[i], result[0], sizeof result[0]);
    }
    assert_true(result[0][4] > 1000 && result[0][3] > 1000 && result[0][2] > 50);
    /* Sets and entries always; the sorters' records on top. */
    assert_true(spilled[1] > spilled[0] + (UINT64_C(1) << 20));
    assert_true(spilled[2] > spilled[0]);
}

/* ---- parts of it ---- */

/* A group larger than its memory, and a cap below it. */
struct seen {
    uint64_t n, sum;
};

static int on_pair(void *ctx, uint64_t k, uint64_t d, struct slu_err *err)
{
    struct seen *s = ctx;
    const uint64_t row[2] = {k, d};

    (void)err;
    s->n++;
    s->sum += slu_hash64(row, sizeof row);
    return SLU_OK;
}

static int no_twin(void *ctx, uint64_t first, uint64_t twin, uint64_t n_set,
                   struct slu_err *err)
{
    (void)ctx, (void)first, (void)twin, (void)n_set;
    return slu_fail(err, SLU_E_FORMAT, "no twin here");
}

static void test_large_group(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct seen seen[2] = {{0, 0}, {0, 0}};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct slu_near_groups *g;
        const struct slu_near_groups_cfg cfg = {.sort_byte = 1 << 20,
                                                .member_byte = i ? 1 << 18 : 4 << 20,
                                                .tmpdir = "/var/tmp",
                                                .n_threads = 1,
                                                .n_band = 1,
                                                .band_cap = 5,
                                                .pair = on_pair,
                                                .twin = no_twin,
                                                .ctx = &seen[i]};
        ok(slu_near_groups_new(&g, &cfg, &err), &err);
        for (uint64_t d = 0; d < 30000; d++) {
            const struct slu_u128 h = {oracle_mix(d), d};
            ok(slu_near_groups_band(g, 0, 7, h, 1 + d % 4, d, &err), &err);
        }
        ok(slu_near_groups_run(g, &err), &err);
        slu_near_groups_free(g);
    }
    assert_int_equal(seen[0].n, 0 + 1 + 2 + 3 + 4 + 29995 * 6);
    assert_int_equal(seen[1].n, seen[0].n);
    assert_int_equal(seen[1].sum, seen[0].sum);
}

/* A set too large for its window. */
static void test_large_set(void **state)
{
    const struct oracle_cfg c = {1, 9, 10, 8, true};
    struct slu_err err = SLU_ERR_INIT;
    enum { N = 200000 };
    uint64_t *set = malloc(N * 8), key = 5;
    struct slu_near_drop drop;
    struct slu_near_ext *x;
    const struct slu_near_ext_cfg cfg = config(&c, 2 << 20, false);

    (void)state;
    ok(slu_near_ext_new(&x, &cfg, &err), &err);
    for (uint64_t i = 0; i < 4; i++) {
        for (uint64_t j = 0; j < N; j++)
            set[j] = 10 * j + (j % 100 < 3 * i ? i : 0);
        struct oracle_doc d = {.key = &key, .set = set, .n_set = N};
        add(x, &d, i);
    }
    ok(slu_near_ext_finish(x, &err), &err);
    for (uint64_t i = 1; i < 3; i++) {
        ok(slu_near_ext_next(x, &drop, &err), &err);
        assert_int_equal(drop.ordinal, i);
        assert_int_equal(drop.witness, 0);
        assert_int_equal(drop.inter, N - N / 100 * 3 * i);
        assert_int_equal(drop.uni, N + N / 100 * 3 * i);
        if (i == 1)
            break; /* 0.94 / 1.06 is below 0.9; so is the third */
    }
    assert_int_equal(slu_near_ext_next(x, &drop, &err), SLU_EOF);
    slu_near_ext_free(x);
    free(set);
}

static void test_refused(void **state)
{
    const struct oracle_cfg c = {2, 4, 5, 256, true};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_ext *x;
    uint64_t key[2] = {1, 2}, set = 3;
    struct oracle_doc d = {.key = key, .set = &set, .n_set = 1};
    struct slu_near_ext_cfg cfg = config(&c, 2 << 20, false);
    struct slu_near_doc doc = {.ordinal = 4, .key = key, .set = &set, .n_set = 1};

    (void)state;
    ok(slu_near_ext_new(&x, &cfg, &err), &err);
    add(x, &d, 5);
    assert_int_equal(slu_near_ext_add(x, &doc, &err), SLU_E_USAGE);
    assert_int_equal(slu_near_ext_kept(x, 9, &set, 1, &err), SLU_E_USAGE);
    assert_int_equal(slu_near_ext_group(x, 0, 1, 0, NULL, 0, &err), SLU_E_USAGE);
    slu_near_ext_free(x);
    cfg.tmpdir = "/no/such/folder";
    ok(slu_near_ext_new(&x, &cfg, &err), &err);
    add(x, &d, 5);
    assert_int_equal(slu_near_ext_finish(x, &err), SLU_E_IO);
    slu_near_ext_free(x);
    cfg.budget_byte = 1 << 20;
    assert_int_equal(slu_near_ext_new(&x, &cfg, &err), SLU_E_LIMIT);
    slu_near_ext_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_handover),
        cmocka_unit_test(test_budgets),    cmocka_unit_test(test_large_group),
        cmocka_unit_test(test_large_set),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
