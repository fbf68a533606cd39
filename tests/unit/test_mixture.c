/* test_mixture.c - mixtures: the number of sequences kept of each bucket, and which. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/decompose/mixture.h"

static uint64_t state = 1;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static struct slu_decompose cutter(uint64_t min, uint64_t max, bool label)
{
    struct slu_decompose d = {.label_tokens = label};
    for (uint64_t l = min; l <= max; l *= 2)
        d.bucket[d.n_bucket++] = l;
    assert_int_equal(slu_decompose_init(&d, NULL), SLU_OK);
    return d;
}

static void what_is_asked_for(void **unused)
{
    (void)unused;
    struct slu_mixture m = {0};
    assert_int_equal(slu_mixture_parse(&m, "natural", 3, NULL), SLU_OK);
    assert_int_equal(m.kind, SLU_MIXTURE_NATURAL);
    assert_int_equal(slu_mixture_parse(&m, "equal", 3, NULL), SLU_OK);
    assert_int_equal(m.kind, SLU_MIXTURE_EQUAL);
    assert_int_equal(slu_mixture_parse(&m, "1,.25,3.5", 3, NULL), SLU_OK);
    assert_int_equal(m.kind, SLU_MIXTURE_WEIGHTS);
    assert_int_equal(m.weight[0], 100);
    assert_int_equal(m.weight[1], 25);
    assert_int_equal(m.weight[2], 350);
    assert_int_equal(slu_mixture_parse(&m, "0,1000000000000000,0", 3, NULL), SLU_OK);
    static const char *const bad[] = {
        "",       "1,2",    "1,2,3,4",   "1,2,",      "1,,3",
        "0,0,0",  "a,b,c",  "1,2,3 ",    "-1,2,3",    "1.2.3,1,1",
        ".,1,1",  "1;2;3",  "Equal",     "1e3,1,1",   "2000000000000000,1,1",
        "1,2,3,", ",1,2,3", "0.0,0,0.0", "natural,1", "999999999999999,0.1,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(slu_mixture_parse(&m, bad[i], 3, NULL), SLU_E_USAGE);
}

/* The quota's definition: short of the ratio by less than a sequence, never over it,
 * and no more would fit. */
static void quota_is_the_most_that_fits(void **unused)
{
    (void)unused;
    for (int trial = 0; trial < 2000; trial++) {
        struct slu_decompose d = cutter(16, 16 << rnd(8), rnd(2));
        struct slu_mixture m = {.kind = rnd(3)};
        struct slu_mixture_quota q;
        uint64_t n[SLU_MAX_BUCKETS] = {0}, tok = 0, top;
        long double scale = -1, sum = 0, all = 0;
        for (unsigned i = 0; i < d.n_bucket; i++) {
            n[i] = 1 + rnd(trial % 2 ? 50 : 1000000000);
            m.weight[i] = m.kind == SLU_MIXTURE_EQUAL ? 1 : rnd(4) * (1 + rnd(1000));
            if (m.kind == SLU_MIXTURE_NATURAL)
                m.weight[i] = n[i] * d.bucket[i];
            sum += m.weight[i];
            all += (long double)n[i] * d.bucket[i];
        }
        m.weight[0] += !sum;
        sum += !sum;
        if (rnd(2))
            m.max_tok = 1 + (uint64_t)(all * rnd(1000) / 500);
        assert_int_equal(slu_mixture_quota(&m, &d, n, &q, NULL), SLU_OK);
        for (unsigned i = 0; i < d.n_bucket; i++) {
            long double most = (long double)n[i] * d.bucket[i] / m.weight[i];
            if (m.weight[i] && (scale < 0 || most < scale))
                scale = most;
        }
        if (m.max_tok && m.max_tok / sum < scale)
            scale = m.max_tok / sum;
        for (unsigned i = 0; i < d.n_bucket; i++) {
            long double want = scale * m.weight[i], got = q.seq[i] * d.bucket[i];
            assert_true(q.seq[i] <= n[i]);
            assert_true(got <= want * (1 + 1e-15L) + 1e-9L);
            assert_true(got + d.bucket[i] > want * (1 - 1e-15L) - 1e-9L);
            tok += q.seq[i] * d.bucket[i];
        }
        assert_int_equal(q.tok, tok);
        assert_true(!m.max_tok || q.tok <= m.max_tok);
        if (q.scarcest >= 0) /* nothing of it is left */
            assert_int_equal(q.seq[q.scarcest], n[q.scarcest]);
        else if (m.kind != SLU_MIXTURE_NATURAL)
            assert_true(m.max_tok);
        top = (uint64_t)all;
        assert_true(q.tok <= top);
    }
}

static void empty_buckets(void **unused)
{
    (void)unused;
    struct slu_decompose d = cutter(16, 64, false);
    struct slu_mixture_quota q;
    static const uint64_t none[3] = {0}, hole[3] = {5, 0, 7};
    struct slu_mixture equal = {.kind = SLU_MIXTURE_EQUAL};
    struct slu_mixture without = {.kind = SLU_MIXTURE_WEIGHTS, .weight = {1, 0, 1}};
    assert_int_equal(slu_mixture_quota(&equal, &d, none, &q, NULL), SLU_OK);
    assert_int_equal(q.tok, 0);
    assert_int_equal(slu_mixture_quota(&equal, &d, hole, &q, NULL), SLU_E_MISMATCH);
    assert_int_equal(slu_mixture_quota(&without, &d, hole, &q, NULL), SLU_OK);
    assert_int_equal(q.seq[0], 5);
    assert_int_equal(q.seq[1], 0);
    assert_int_equal(q.seq[2], 1);
    assert_int_equal(q.scarcest, 0);
}

/* Numbers near the limits of what is promised: no product may wrap. */
static void large_numbers(void **unused)
{
    (void)unused;
    struct slu_decompose d = {.bucket = {1, UINT64_C(1) << 40}, .n_bucket = 2};
    struct slu_mixture m = {.kind = SLU_MIXTURE_WEIGHTS,
                            .weight = {(UINT64_C(1) << 50) - 1, 1}};
    struct slu_mixture_quota q;
    const uint64_t n[2] = {UINT64_C(1) << 62, UINT64_C(1) << 22};
    assert_int_equal(slu_decompose_init(&d, NULL), SLU_OK);
    assert_int_equal(slu_mixture_quota(&m, &d, n, &q, NULL), SLU_OK);
    assert_int_equal(q.seq[0], UINT64_C(1) << 62);
    assert_int_equal(q.seq[1], 0); /* 2^62 / 2^50 tokens */
    m.weight[0] = 1;
    assert_int_equal(slu_mixture_quota(&m, &d, n, &q, NULL), SLU_OK);
    assert_int_equal(q.seq[0], UINT64_C(1) << 62);
    assert_int_equal(q.seq[1], UINT64_C(1) << 22);
}

/* ---- which ---- */

struct item {
    uint64_t hash, number;
    int bucket;
    bool kept;
};

static int by_hash(const void *a, const void *b)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Marks the k smallest of each bucket, by sorting. */
static void oracle(struct item *item, size_t n, const uint64_t *k, unsigned n_bucket)
{
    struct item **of = malloc(n * sizeof *of);
    for (unsigned b = 0; b < n_bucket; b++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if (item[i].bucket == (int)b)
                of[m++] = &item[i];
        qsort(of, m, sizeof *of, by_hash);
        for (size_t i = 0; i < m; i++)
            of[i]->kept = i < k[b];
    }
    free(of);
}

/* One sequence, of document `doc`, whose tokens say its number. */
static void put(struct slu_mixing *x, struct slu_batch *b, uint64_t number,
                uint64_t doc, uint64_t len, uint64_t seed, const struct slu_header *h,
                struct item *it)
{
    uint16_t tok[80];
    struct slu_seg s = {2, doc, 0, len, doc % 3 ? SLU_NO_DOMAIN : 1, doc % 5 == 0, 0};
    for (uint64_t i = 0; i < len; i++)
        tok[i] = (uint16_t)(number >> (i % 2 ? 0 : 16));
    slu_batch_clear(b);
    assert_int_equal(slu_batch_add(b, tok, len, &s, 1, (const uint8_t *)"i", NULL), 0);
    assert_int_equal(slu_mixing_add(x, b, NULL), SLU_OK);
    it->number = number;
    it->bucket = slu_header_bucket_of(h, len);
    it->hash = slu_draw(seed, 2, doc, 0, 1) >> 6;
    it->kept = it->bucket < 0;
}

static void check_kept(struct slu_mixing *x, const struct item *item, size_t n,
                       const struct slu_header *h, const uint64_t *n_of,
                       const uint64_t *k)
{
    struct slu_batch out;
    size_t at = 0;
    int rc;
    slu_batch_init(&out, 2);
    while (!(rc = slu_mixing_next(x, &out, 500, NULL))) {
        assert_true(out.n_seq > 0);
        for (size_t i = 0; i < out.n_seq; i++, at++) {
            const struct slu_seq *q = &out.seq[i];
            while (at < n && !item[at].kept)
                at++;
            assert_true(at < n);
            assert_int_equal(slu_batch_id(&out, q->tok_off + 1),
                             (uint16_t)item[at].number);
            assert_int_equal(slu_header_bucket_of(h, q->len_tok), item[at].bucket);
        }
    }
    assert_int_equal(rc, SLU_EOF);
    while (at < n && !item[at].kept)
        at++;
    assert_int_equal(at, n);
    for (unsigned i = 0; i < h->n_bucket; i++)
        assert_int_equal(slu_mixing_dropped(x)[i].sequences, n_of[i] - k[i]);
    slu_batch_release(&out);
}

/* documents: how many different ones; few make ties. */
static void choose(size_t n, uint64_t documents, uint64_t budget, bool label)
{
    struct slu_header h;
    struct slu_batch b;
    struct slu_mixing *x;
    slu_header_init(&h);
    h.n_bucket = 3;
    h.label_tokens = label;
    for (unsigned i = 0; i < 3; i++)
        h.bucket[i] = 16 << i;
    struct slu_mixing_cfg cfg = {rnd(100), &h, budget, "/var/tmp"};
    struct item *item = calloc(n + 1, sizeof *item);
    uint64_t n_of[3] = {0}, k[3];
    assert_int_equal(slu_mixing_new(&x, &cfg, NULL), SLU_OK);
    slu_batch_init(&b, 2);
    for (size_t i = 0; i < n; i++) {
        uint64_t len = rnd(5) ? (UINT64_C(16) << rnd(3)) + label : 2 + rnd(14);
        put(x, &b, i, rnd(documents), len, cfg.seed, &h, &item[i]);
        if (item[i].bucket >= 0)
            n_of[item[i].bucket]++;
    }
    for (unsigned i = 0; i < 3; i++)
        k[i] = rnd(4) ? rnd(n_of[i] + 1) : rnd(2) * n_of[i];
    oracle(item, n, k, 3);
    assert_int_equal(slu_mixing_plan(x, k, NULL), SLU_OK);
    check_kept(x, item, n, &h, n_of, k);
    if (n > 40000)
        assert_true(slu_mixing_spilled(x) > 0);
    slu_mixing_free(x);
    slu_batch_release(&b);
    slu_header_release(&h);
    free(item);
}

static void smallest_hashes_are_kept(void **unused)
{
    (void)unused;
    choose(0, 1, 1 << 20, false);
    for (int i = 0; i < 60; i++)
        choose(1 + rnd(3000), UINT64_C(1) << 40, 1 << 20, i % 2);
    choose(300000, UINT64_C(1) << 40, 1 << 20, false);
}

static void ties_go_by_order(void **unused)
{
    (void)unused;
    for (int i = 0; i < 60; i++)
        choose(1 + rnd(3000), 1 + rnd(i % 3 ? 40 : 1), 1 << 20, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(quota_is_the_most_that_fits),
        cmocka_unit_test(empty_buckets),
        cmocka_unit_test(large_numbers),
        cmocka_unit_test(smallest_hashes_are_kept),
        cmocka_unit_test(ties_go_by_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
