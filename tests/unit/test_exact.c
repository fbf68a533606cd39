/* Exact duplicates against an oracle, with budgets that hold everything and almost
 * nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/exact.h"

enum { N = 120000, KINDS = 70000 };

struct seen {
    uint64_t out[N];     /* documents that stayed */
    uint64_t pair[N][2]; /* dropped, kept */
    size_t n_out, n_pair, n_dom;
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* What document i says: one of KINDS texts of 1 to 4 tokens. */
static uint64_t kind_of(uint64_t i)
{
    return mix(i + 1) % KINDS;
}

static size_t text_of(uint64_t kind, uint16_t tok[4])
{
    uint64_t z = mix(kind + 7);

    memcpy(tok, &z, 8);
    tok[0] = (uint16_t)kind;
    tok[1] = (uint16_t)(kind >> 16);
    return 2 + kind % 3;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct seen *s = ctx;

    (void)err;
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seg *g = &b->seg[b->seq[i].seg_off];
        uint16_t tok[4];
        size_t n = text_of(kind_of(g->document), tok);
        assert_int_equal(b->seq[i].len_tok, n);
        assert_memory_equal(slu_batch_at(b, b->seq[i].tok_off), tok, 2 * n);
        assert_int_equal(g->domain, g->document % 3);
        assert_int_equal(g->id_len, g->document % 2 ? 2 : 0);
        if (g->id_len)
            assert_memory_equal(b->str.data + g->id_off, "id", 2);
        s->out[s->n_out++] = g->document;
    }
    return SLU_OK;
}

static int pair(void *ctx, const struct slu_exact_pair *p, struct slu_err *err)
{
    struct seen *s = ctx;

    (void)err;
    s->pair[s->n_pair][0] = p->dropped.document;
    s->pair[s->n_pair++][1] = p->kept.document;
    return SLU_OK;
}

static struct slu_exact_result run(struct seen *s, uint64_t budget, bool pairs)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_exact_cfg cfg = {budget, "/tmp", 1, 2, emit, pairs ? pair : NULL, s};
    struct slu_exact *x;
    struct slu_batch b;
    struct slu_u128 *hash = malloc(1000 * sizeof *hash);

    memset(s, 0, sizeof *s);
    slu_batch_init(&b, 2);
    assert_int_equal(slu_exact_new(&x, &cfg, &err), SLU_OK);
    for (uint64_t i = 0; i < N;) {
        slu_batch_clear(&b);
        for (size_t k = 0; k < 1000; k++, i++) {
            uint16_t tok[4];
            size_t n = text_of(kind_of(i), tok);
            struct slu_seg g = {3, i, 0, n, (uint32_t)(i % 3), i % 2 ? 2 : 0, 0};
            assert_int_equal(
                slu_batch_add(&b, tok, n, &g, 1, (const uint8_t *)"id", &err), SLU_OK);
            hash[k] = slu_hash_tokens(tok, n, 2);
        }
        assert_int_equal(slu_exact_put(x, &b, hash, &err), SLU_OK);
    }
    assert_int_equal(slu_exact_finish(x, &err), SLU_OK);
    struct slu_exact_result r = *slu_exact_result(x);
    slu_exact_free(x);
    slu_batch_release(&b);
    free(hash);
    return r;
}

static void test_budgets(void **state)
{
    (void)state;
    static const uint64_t budget[] = {256 << 20, 4 << 20, 1 << 20};
    uint64_t *first = malloc(KINDS * sizeof *first);
    struct seen *s = malloc(sizeof *s);

    for (size_t t = 0; t < 6; t++) {
        bool pairs = t % 2;
        struct slu_exact_result r = run(s, budget[t / 2], pairs);
        size_t n_out = 0, n_pair = 0;
        memset(first, 0xff, KINDS * sizeof *first);
        for (uint64_t i = 0; i < N; i++) {
            uint64_t *f = &first[kind_of(i)];
            if (*f == UINT64_MAX) {
                *f = i;
                assert_int_equal(s->out[n_out++], i);
            } else if (pairs) {
                assert_int_equal(s->pair[n_pair][0], i);
                assert_int_equal(s->pair[n_pair++][1], *f);
            }
        }
        assert_int_equal(s->n_out, n_out);
        assert_int_equal(s->n_pair, n_pair);
        assert_int_equal(r.dropped.sequences, N - n_out);
        assert_int_equal(r.dropped.documents, N - n_out);
        if (t < 2)
            assert_int_equal(r.spilled_byte, 0);
        if (t >= 4)
            assert_true(r.spilled_byte > 0 && r.waited > 0);
    }
    free(first);
    free(s);
}

static void test_refusals(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_exact_cfg cfg = {1000, "/tmp", 1, 2, emit, NULL, NULL};
    struct slu_exact *x;

    assert_int_equal(slu_exact_new(&x, &cfg, &err), SLU_E_LIMIT);
    slu_exact_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
