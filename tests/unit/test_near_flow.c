/* test_near_flow.c - near duplicates beyond memory, in one process, compared with the
 * definition: with a hand-over after every document, with priorities, with documents of
 * an index, and with memory for all data and for almost none. check-more: whole */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "lib/dedup/near/near.h"
#include "near_oracle.h"
#include "over.h"

#define LEAST_BYTE SLU_NEAR_MIN_BYTE

static void ok(int rc, const struct slu_err *err)
{
    if (rc != SLU_OK)
        fail_msg("%d: %s", rc, err->msg);
}

struct job {
    struct oracle_cfg cfg;
    const struct oracle_doc *doc; /* NULL: make them */
    void (*make)(const struct job *j, uint64_t i, struct oracle_doc *d, uint64_t *set,
                 uint64_t *key);
    size_t n, n_known;
    bool by_prio;
    uint64_t budget, most;
    unsigned n_threads;
    /* The results. */
    uint64_t n_pair, n_out, sum;
    struct slu_near_pair *pair; /* as many as there are documents, or NULL */
};

enum { MOST_SET = 100, MOST_BAND = 8 };

static int add(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err)
{
    const struct job *j = ctx;
    const uint16_t tok = (uint16_t)i;
    const struct slu_seg g = {3, j->n_known + i, 0, 1, SLU_NO_DOMAIN, 0, 0};

    return slu_batch_add(b, &tok, 1, &g, 1, NULL, err);
}

static struct slu_near_item item_of(const struct oracle_doc *d)
{
    return (struct slu_near_item){.set_hash = slu_hash128(d->set, d->n_set * 8),
                                  .key = d->key,
                                  .set = d->set,
                                  .n_set = d->n_set};
}

/* Items, then what they point to, where it is made. */
static int items(void *ctx, const struct slu_batch *b, struct slu_buf *out,
                 struct slu_err *err)
{
    const struct job *j = ctx;
    const size_t each = sizeof(uint64_t) * (MOST_SET + MOST_BAND),
                 first = b->n_seq * sizeof(struct slu_near_item);
    int rc = slu_buf_reserve(out, first + (j->doc ? 0 : b->n_seq * each), err);

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        uint64_t number = b->seg[b->seq[i].seg_off].document;
        struct slu_near_item *to = (struct slu_near_item *)(void *)out->data + i;
        struct oracle_doc d;
        if (!j->doc) {
            uint64_t *set = (void *)(out->data + first + i * each);
            j->make(j, number, &d, set, set + MOST_SET);
        }
        *to = item_of(j->doc ? &j->doc[number] : &d);
    }
    return rc;
}

static int known(void *ctx, struct slu_near *x, struct slu_err *err)
{
    const struct job *j = ctx;
    int rc = SLU_OK;

    for (size_t i = 0; i < j->n_known && !rc; i++) {
        struct slu_near_item d = item_of(&j->doc[i]);
        rc = slu_near_known(x, &d, i, err);
    }
    return rc;
}

static uint64_t prio(void *ctx, const struct slu_batch *b, const struct slu_seq *q)
{
    const struct job *j = ctx;
    uint64_t i = b->seg[q->seg_off].document;

    return j->doc ? j->doc[i].prio : oracle_mix(i) % 4;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;

    (void)err;
    j->n_out += b->n_seq;
    return SLU_OK;
}

static int pair(void *ctx, const struct slu_near_pair *p, struct slu_err *err)
{
    struct job *j = ctx;
    const uint64_t row[] = {p->dropped.document, p->kept.document,
                            (p->inter << 32) / p->uni, j->n_pair};

    (void)err;
    assert_true(j->n_pair < j->n);
    if (j->pair)
        j->pair[j->n_pair] = *p;
    j->n_pair++;
    j->sum += slu_hash64(row, sizeof row);
    return SLU_OK;
}

static struct slu_near_result run(struct job *j)
{
    const struct oracle_cfg *c = &j->cfg;
    const struct slu_near_cfg cfg = {.n_band = c->n_band,
                                     .n_row = 1,
                                     .n_gram = 1,
                                     .num = c->num,
                                     .den = c->den,
                                     .band_cap = c->band_cap,
                                     .verify = c->verify,
                                     .budget_byte = j->budget ? j->budget : LEAST_BYTE,
                                     .most_in_memory = j->most,
                                     .tmpdir = "/var/tmp",
                                     .n_threads = j->n_threads ? j->n_threads : 1,
                                     .prio = j->by_prio ? prio : NULL,
                                     .emit = emit,
                                     .pair = pair,
                                     .known = known,
                                     .items = items,
                                     .ctx = j};
    struct over docs = {.n = j->n - j->n_known, .add = add, .ctx = j};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near *x;
    struct slu_reader *r;
    struct slu_sum in;

    j->n_pair = j->n_out = j->sum = 0;
    ok(slu_near_new(&x, &cfg, &err), &err);
    ok(over_new(&r, &docs, 2, &err), &err);
    ok(slu_near_run(x, r, 3, &in, &err), &err);
    struct slu_near_result result = *slu_near_result(x);
    assert_int_equal(result.dropped.sequences, j->n_pair);
    assert_int_equal(j->n_out + j->n_pair, j->n - j->n_known);
    slu_near_free(x);
    slu_reader_free(r);
    return result;
}

/* Compares the results with the oracle's. */
static uint64_t compare(struct job *j)
{
    uint64_t capped = 0, dropped = 0, equal = 0;

    j->pair = calloc(j->n, sizeof *j->pair);
    const struct slu_near_result r = run(j);
    for (size_t i = 0; i < j->n; i++) {
        const struct oracle_doc *d = &j->doc[i];
        capped += d->capped;
        equal += d->dropped && d->first != i;
        if (!d->dropped)
            continue;
        const struct slu_near_pair *p = &j->pair[dropped++];
        assert_int_equal(p->dropped.document, i);
        assert_int_equal(p->kept.document, d->witness);
        assert_int_equal(slu_origin_is_index(&p->kept), d->witness < j->n_known);
        assert_true(p->inter * d->uni == p->uni * d->inter);
    }
    assert_int_equal(j->n_pair, dropped);
    assert_int_equal(r.capped_documents, capped);
    assert_int_equal(r.equal_sets, equal);
    free(j->pair);
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

/* Every kind, order of ordinals and of priorities, some of an index. */
static void test_definition(void **state)
{
    uint64_t dropped = 0;

    (void)state;
    for (unsigned round = 0; round < 8 * KINDS; round++) {
        struct job j = {.cfg = kinds[round % KINDS],
                        .by_prio = round / KINDS & 1,
                        .n = 100 + oracle_mix(round) % 400,
                        .most = round % 5 * 60 + 1,
                        .n_threads = 1 + round % 3};
        struct oracle_doc *doc =
            oracle_make(j.n, j.cfg.n_band, 10 + j.n / 8, 3 + round * 7 % 50, round);
        j.n_known = round / KINDS % 4 >= 2 ? j.n / 3 : 0;
        j.doc = doc;
        for (size_t i = 0; i < j.n; i++) {
            if (!j.by_prio)
                doc[i].prio = 0;
            doc[i].fixed = i < j.n_known;
        }
        oracle_decide(&j.cfg, doc, j.n);
        dropped += compare(&j);
        oracle_free(doc, j.n);
    }
    assert_true(dropped > 1000);
}

/* A hand-over behind every document. */
static void test_every_place(void **state)
{
    uint64_t dropped = 0;

    (void)state;
    for (unsigned round = 0; round < KINDS; round++) {
        struct job j = {.cfg = kinds[round], .n = 120};
        struct oracle_doc *doc =
            oracle_make(j.n, j.cfg.n_band, 20, 3 + round * 5 % 50, 100 + round);
        for (size_t i = 0; i < j.n; i++)
            doc[i].prio = 0;
        j.doc = doc;
        oracle_decide(&j.cfg, doc, j.n);
        for (j.most = 1; j.most <= j.n; j.most++)
            dropped += compare(&j);
        oracle_free(doc, j.n);
    }
    assert_true(dropped > 20000);
}

/* ---- spilled ---- */

enum { MANY = 40000, BANDS = 6 };

/* Makes document i of many: some are in small families of similar ones, the rest are
 * alone. */
static void make_one(const struct job *j, uint64_t i, struct oracle_doc *d,
                     uint64_t *set, uint64_t *key)
{
    uint64_t family = oracle_mix(i) % (MANY / 2), size = 20 + family % 60,
             own = oracle_mix(i) >> 60 ? i : family << 32; /* equal sets, equal keys */

    (void)j;
    for (uint64_t k = 0; k < size; k++)
        set[k] = oracle_mix(family << 20 ^ k ^ (k < oracle_mix(i) >> 60 ? i << 44 : 0));
    qsort(set, size, 8, oracle_cmp_u64);
    for (unsigned b = 0; b < BANDS; b++)
        key[b] = oracle_mix(oracle_mix(own) >> 32 & 1 << b ? family
                            : own % 9                      ? own
                                                           : b);
    *d = (struct oracle_doc){.set = set, .n_set = size, .key = key};
}

static void test_budgets(void **state)
{
    (void)state;
    for (unsigned by_prio = 0; by_prio < 2; by_prio++) {
        struct slu_near_result want = {.edges = 0};
        uint64_t sum = 0, spilled = 0;
        for (unsigned i = 0; i < 4; i++) {
            struct job j = {.cfg = {BANDS, 3, 5, 16, true},
                            .make = make_one,
                            .n = MANY,
                            .by_prio = by_prio,
                            .budget = i == 0   ? 1 << 30
                                      : i == 1 ? 64 << 20
                                               : LEAST_BYTE,
                            .most = i == 3 ? MANY / 2 : 1,
                            .n_threads = 1 + i % 3};
            const struct slu_near_result r = run(&j);
            sum = i ? sum : j.sum;
            want = i ? want : r;
            assert_int_equal(j.sum, sum);
            assert_int_equal(r.equal_sets, want.equal_sets);
            assert_int_equal(r.capped_documents, want.capped_documents);
            assert_true(r.waited > 0);
            if (i == 0)
                spilled = r.spilled_byte;
            if (i == 2) /* sets always; the rest on top */
                assert_true(r.spilled_byte > spilled + (UINT64_C(1) << 20));
        }
        assert_true(want.dropped.sequences > 2000 && want.equal_sets > 100);
        assert_true(want.capped_documents > 2000);
    }
}

/* ---- a group larger than its memory, a set larger than its window ---- */

static void make_alike(const struct job *j, uint64_t i, struct oracle_doc *d,
                       uint64_t *set, uint64_t *key)
{
    (void)j;
    set[0] = i;
    key[0] = key[1] = 7; /* two bands, one key */
    *d = (struct oracle_doc){.set = set, .n_set = 1, .key = key};
}

static void test_large_group(void **state)
{
    enum { N = 230000, CAP = 5 };

    (void)state;
    for (unsigned by_prio = 0; by_prio < 2; by_prio++) {
        struct job j = {.cfg = {2, 1, 2, CAP, false},
                        .make = make_alike,
                        .n = N,
                        .by_prio = by_prio,
                        .most = 1};
        uint64_t first = 0;
        while (by_prio && oracle_mix(first) % 4)
            first++;
        j.pair = calloc(N, sizeof *j.pair);
        const struct slu_near_result r = run(&j);
        assert_int_equal(j.n_pair, N - 1);
        for (size_t i = 0; i < N - 1; i++)
            assert_int_equal(j.pair[i].kept.document, first);
        assert_int_equal(r.capped_documents, N - CAP);
        assert_int_equal(r.candidates,
                         0 + 1 + 2 + 3 + 4 + UINT64_C(1) * (N - CAP) * CAP);
        free(j.pair);
    }
}

static void test_large_set(void **state)
{
    enum { N = 200000, DOCS = 4 };
    struct oracle_doc doc[DOCS];
    struct job j = {.cfg = {1, 9, 10, 8, true}, .doc = doc, .n = DOCS, .most = 1};
    uint64_t *set = malloc(8 * N * DOCS), key = 5;
    struct slu_near_pair p[DOCS];

    (void)state;
    for (uint64_t i = 0; i < DOCS; i++) {
        for (uint64_t k = 0; k < N; k++)
            set[i * N + k] = 10 * k + (k % 100 < 3 * i ? i : 0);
        doc[i] = (struct oracle_doc){.key = &key, .set = set + i * N, .n_set = N};
    }
    j.pair = p;
    run(&j);
    assert_int_equal(j.n_pair, 1); /* 0.94 / 1.06 is below 0.9 */
    assert_int_equal(p[0].dropped.document, 1);
    assert_int_equal(p[0].kept.document, 0);
    assert_int_equal(p[0].inter, N - N / 100 * 3);
    assert_int_equal(p[0].uni, N + N / 100 * 3);
    free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_budgets),    cmocka_unit_test(test_large_group),
        cmocka_unit_test(test_large_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
