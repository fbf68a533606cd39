/* test_near.c - near duplicates: the decisions compared with a plain O(n^2) version of
 * near.h, on sets and keys made by hand and at random, with caps from one up, decided
 * in memory, and handed over after a few documents to the stages beyond memory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near/near.h"
#include "over.h"

enum { MAX_DOC = 4000, MAX_SET = 40, MAX_BAND = 12 };

static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct doc {
    uint64_t set[MAX_SET];
    uint64_t n_set;
    uint64_t key[MAX_BAND];
};

/* ---- the oracle ---- */

struct answer {
    bool dropped;
    uint64_t witness, inter, uni;
};

struct world {
    struct doc doc[MAX_DOC];
    size_t n;
    unsigned n_band;
    uint64_t num, den, cap;
    bool verify;
    struct answer want[MAX_DOC], got[MAX_DOC];
    uint64_t n_equal, n_capped, n_waited;
    uint64_t next_pair; /* documents before it were reported, or stay */
};

static bool same_set(const struct doc *a, const struct doc *b)
{
    return a->n_set == b->n_set && !memcmp(a->set, b->set, a->n_set * sizeof *a->set);
}

static uint64_t common(const struct doc *a, const struct doc *b)
{
    uint64_t n = 0;

    for (size_t i = 0; i < a->n_set; i++)
        for (size_t k = 0; k < b->n_set; k++)
            n += a->set[i] == b->set[k];
    return n;
}

/* near.h, sentence by sentence, with no data structure at all. */
static void decide(struct world *w)
{
    size_t *first = malloc(w->n * sizeof *first);
    bool *edge = malloc(w->n);

    w->n_equal = w->n_capped = 0;
    for (size_t d = 0; d < w->n; d++) {
        const struct doc *x = &w->doc[d];
        w->want[d] = (struct answer){0};
        first[d] = d;
        for (size_t k = 0; x->n_set && k < d && first[d] == d; k++)
            if (w->doc[k].n_set && same_set(x, &w->doc[k]))
                first[d] = k;
        if (first[d] != d) {
            const struct answer *f = &w->want[first[d]];
            w->want[d] =
                f->dropped ? *f : (struct answer){true, first[d], x->n_set, x->n_set};
            w->n_equal++;
        }
        if (!x->n_set || first[d] != d)
            continue;
        bool capped = false;
        memset(edge, 0, w->n);
        for (unsigned b = 0; b < w->n_band; b++) {
            uint64_t place = 0;
            for (size_t k = 0; k < d; k++) {
                if (!w->doc[k].n_set || first[k] != k || w->doc[k].key[b] != x->key[b])
                    continue;
                if (place < w->cap)
                    edge[k] = true;
                place++;
            }
            capped |= place >= w->cap;
        }
        w->n_capped += capped;
        for (size_t k = 0; k < d && !w->want[d].dropped; k++) {
            if (!edge[k] || w->want[k].dropped)
                continue;
            uint64_t inter = common(x, &w->doc[k]);
            uint64_t uni = x->n_set + w->doc[k].n_set - inter;
            if (!w->verify || inter * w->den >= uni * w->num)
                w->want[d] = (struct answer){true, k, inter, uni};
        }
    }
    free(first);
    free(edge);
}

/* ---- random worlds ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* A few bases, changed a little; some are taken as they are (equal sets), some are
 * empty. Keys come from few values, so that groups are large; equal sets have equal
 * keys. */
static void make_world(struct world *w, size_t n, unsigned n_base, uint64_t seed)
{
    w->n = n;
    for (size_t i = 0; i < n; i++) {
        struct doc *d = &w->doc[i];
        uint64_t r = mix(seed * 1000003 + i), base = r % n_base;
        size_t len = 3 + mix(base + seed) % (MAX_SET - 8);
        unsigned change = (unsigned)(r >> 20) % 6;
        for (size_t k = 0; k < len; k++)
            d->set[k] = mix(base * 1000 + k);
        for (unsigned k = 0; k < change; k++)
            d->set[mix(r + k) % len] = mix(1 + (mix(r + 10 + k) % 50));
        qsort(d->set, len, sizeof *d->set, compare);
        d->n_set = 0;
        for (size_t k = 0; k < len; k++)
            if (!d->n_set || d->set[d->n_set - 1] != d->set[k])
                d->set[d->n_set++] = d->set[k];
        if (r >> 32 & 1 && r >> 33 & 1 && r >> 34 & 1 && r >> 35 & 1)
            d->n_set = 0;
        /* A minimum under a function of the band, coarse: near sets often agree. */
        for (unsigned b = 0; b < MAX_BAND; b++) {
            uint64_t least = UINT64_MAX;
            for (size_t k = 0; k < d->n_set; k++)
                if (mix(d->set[k] + b) < least)
                    least = mix(d->set[k] + b);
            d->key[b] = b % 4 == 3 ? mix(least % 3) : mix(least);
            if (b == 5 && least % 7 == 0)
                d->key[b] = 0; /* the value that a careless table takes for empty */
        }
    }
}

/* ---- the engine on a world ---- */

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct world *w = ctx;

    (void)err;
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seg *g = &b->seg[b->seq[i].seg_off];
        assert_true(g->document < w->n);
        assert_int_equal(*(const uint16_t *)slu_batch_at(b, b->seq[i].tok_off),
                         (uint16_t)g->document);
        w->got[g->document].uni++; /* once: kept */
    }
    return SLU_OK;
}

static int pair(void *ctx, const struct slu_near_pair *p, struct slu_err *err)
{
    struct world *w = ctx;

    (void)err;
    assert_true(p->dropped.document >= w->next_pair);
    w->next_pair = p->dropped.document + 1;
    w->got[p->dropped.document] =
        (struct answer){true, p->kept.document, p->inter, p->uni};
    return SLU_OK;
}

static int add(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err)
{
    const uint16_t tok[3] = {(uint16_t)i, 1, 2};
    const struct slu_seg g = {3, i, 0, 3, SLU_NO_DOMAIN, 0, 0};

    (void)ctx;
    return slu_batch_add(b, tok, 3, &g, 1, NULL, err);
}

static int items(void *ctx, const struct slu_batch *b, struct slu_buf *out,
                 struct slu_err *err)
{
    const struct world *w = ctx;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct doc *d = &w->doc[b->seg[b->seq[i].seg_off].document];
        const struct slu_near_item item = {.set_hash =
                                               slu_set_hash128(d->set, d->n_set),
                                           .key = d->key,
                                           .set = d->set,
                                           .n_set = d->n_set};
        rc = slu_buf_append(out, &item, sizeof item, err);
    }
    return rc;
}

static struct slu_near_result run(struct world *w, uint64_t most, bool pairs)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_cfg cfg = {.n_band = w->n_band,
                               .n_row = 1,
                               .n_gram = 1,
                               .num = w->num,
                               .den = w->den,
                               .band_cap = w->cap,
                               .verify = w->verify,
                               .budget_byte = 64 << 20,
                               .most_in_memory = most,
                               .tmpdir = "/tmp",
                               .n_threads = 1,
                               .emit = emit,
                               .pair = pairs ? pair : NULL,
                               .items = items,
                               .ctx = w};
    struct over docs = {.n = w->n, .add = add};
    struct slu_near *x;
    struct slu_reader *r;
    struct slu_sum in;

    memset(w->got, 0, sizeof w->got);
    w->next_pair = 0;
    assert_int_equal(slu_near_new(&x, &cfg, &err), SLU_OK);
    assert_int_equal(over_new(&r, &docs, 2, &err), SLU_OK);
    assert_int_equal(slu_near_run(x, r, 2, &in, &err), SLU_OK);
    struct slu_near_result result = *slu_near_result(x);
    slu_near_free(x);
    slu_reader_free(r);
    return result;
}

/* All in memory, or a hand-over behind the first `most` documents. */
static void check(struct world *w, uint64_t most)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        uint64_t n_drop = 0;
        struct slu_near_result r = run(w, most, pairs);
        assert_true(most || !r.waited);
        w->n_waited += r.waited;
        for (size_t i = 0; i < w->n; i++) {
            n_drop += w->want[i].dropped;
            const struct answer *is = &w->got[i], *want = &w->want[i];
            if (pairs && want->dropped)
                assert_true(is->dropped && is->witness == want->witness &&
                            is->inter * want->uni == is->uni * want->inter);
            else
                assert_int_equal(w->got[i].uni, !w->want[i].dropped);
        }
        assert_int_equal(r.dropped.sequences, n_drop);
        assert_int_equal(r.dropped.tokens, 3 * n_drop);
        assert_int_equal(r.equal_sets, w->n_equal);
        assert_int_equal(r.capped_documents, w->n_capped);
        assert_int_equal(r.documents, w->n);
    }
}

static void check_all(struct world *w, unsigned t)
{
    static const uint64_t most[] = {1, 2, 5, 60, 149};

    check(w, 0);
    check(w, most[t % (sizeof most / sizeof *most)]);
}

static void test_random(void **state)
{
    static const uint64_t threshold[][2] = {{1, 10}, {1, 2},  {3, 4},
                                            {4, 5},  {9, 10}, {1, 1}};
    static const uint64_t cap[] = {1, 2, 5, 256};
    struct world *w = calloc(1, sizeof *w);
    uint64_t dropped = 0, capped = 0;

    (void)state;
    for (unsigned t = 0; t < 64; t++) {
        w->n_band = t % 9 == 0 ? 0 : t % 9 == 1 ? 1 : MAX_BAND;
        w->num = threshold[t % 6][0];
        w->den = threshold[t % 6][1];
        w->cap = cap[t / 6 % 4];
        w->verify = t % 5 != 0;
        /* Large ones for tables that grow. */
        bool large = t % 16 == 5;
        make_world(w, large ? 3500 : 150, large ? 1500 : t % 3 ? 12 : 60, t);
        decide(w);
        check_all(w, t);
        for (size_t i = 0; i < w->n; i++)
            dropped += w->want[i].dropped;
        capped += w->n_capped;
    }
    assert_true(dropped > 3000 && capped > 1000 && w->n_waited > 8000);
    free(w);
}

/* Sets by hand: {1..n} without and with what is said. */
static void put(struct world *w, const uint64_t *set, size_t n, uint64_t key)
{
    struct doc *d = &w->doc[w->n++];

    memcpy(d->set, set, n * sizeof *set);
    d->n_set = n;
    for (unsigned b = 0; b < MAX_BAND; b++)
        d->key[b] = key;
}

static void test_by_hand(void **state)
{
    static const uint64_t a[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                          b[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11},
                          c[10] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12};
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    w->n_band = 2;
    w->num = 9;
    w->den = 11; /* b is exactly as near to a as it must be, and c to b */
    w->cap = 256;
    w->verify = true;
    put(w, a, 10, 7);
    put(w, b, 10, 7); /* goes for a */
    put(w, c, 10, 7); /* near to b alone, which is not kept: stays */
    put(w, b, 10, 7); /* goes for a as its equal did */
    put(w, c, 10, 7); /* equal to what stays */
    put(w, a, 0, 7);  /* nothing is like nothing */
    put(w, a, 0, 7);
    decide(w);
    check_all(w, 2);
    assert_true(w->want[1].dropped && w->want[1].witness == 0 &&
                w->want[1].inter == 9 && w->want[1].uni == 11);
    assert_false(w->want[2].dropped);
    assert_true(w->want[3].dropped && w->want[3].witness == 0 && w->want[3].inter == 9);
    assert_true(w->want[4].dropped && w->want[4].witness == 2 &&
                w->want[4].inter == 10);
    assert_false(w->want[5].dropped || w->want[6].dropped);

    assert_int_equal(run(w, 0, false).candidates, 2); /* (a, b) and (a, c), each once */

    w->num = 91, w->den = 111; /* a little more than 9/11 */
    decide(w);
    check_all(w, 2);
    assert_false(w->want[1].dropped);

    w->verify = false; /* every candidate */
    decide(w);
    check_all(w, 2);
    assert_true(w->want[2].dropped && w->want[2].witness == 0);

    w->n = 0; /* keys that lie side by side, one of them what an empty slot has */
    put(w, a, 10, 0);
    put(w, c, 10, 1);
    put(w, b, 10, 0);
    decide(w);
    check_all(w, 2);
    assert_false(w->want[1].dropped);
    assert_true(w->want[2].dropped && w->want[2].witness == 0);
    free(w);
}

static void test_refusals(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_near_cfg cfg = {.n_band = 1, .budget_byte = 1000},
                        ok = {.n_band = 1,
                              .budget_byte = 16 << 20,
                              .num = 1,
                              .den = 2,
                              .band_cap = 1};
    struct slu_near *x;

    (void)state;
    assert_int_equal(slu_near_new(&x, &cfg, &err), SLU_E_LIMIT);
    for (int i = 0; i < 5; i++) {
        cfg = ok;
        cfg.n_band = i == 0 ? SLU_NEAR_MAX_BAND + 1 : 1;
        cfg.num = i == 1 ? 3 : i == 2 ? 0 : 1;
        cfg.band_cap = i == 3 ? 0 : i == 4 ? SLU_NEAR_MAX_CAP + 1 : 1;
        assert_int_equal(slu_near_new(&x, &cfg, &err), SLU_E_USAGE);
    }
    slu_near_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
