/* test_exact.c - exact duplicates compared with an oracle, with budgets that hold all
 * hashes and almost none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/exact/exact.h"
#include "lib/stream/mask.h"
#include "over.h"

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

/* The text of document i: one of KINDS texts of 1 to 4 tokens. */
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

static int add(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err)
{
    uint16_t tok[4];
    size_t n = text_of(kind_of(i), tok);
    struct slu_seg g = {3, i, 0, n, (uint32_t)(i % 3), i % 2 ? 2 : 0, 0};

    (void)ctx;
    return slu_batch_add(b, tok, n, &g, 1, (const uint8_t *)"id", err);
}

static struct slu_exact_result run_over(const struct slu_exact_cfg *cfg,
                                        struct over *docs)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_exact *x;
    struct slu_reader *r;
    struct slu_sum in;

    assert_int_equal(slu_exact_new(&x, cfg, &err), SLU_OK);
    assert_int_equal(over_new(&r, docs, 2, &err), SLU_OK);
    assert_int_equal(slu_exact_run(x, r, 2, &in, &err), SLU_OK);
    struct slu_exact_result result = *slu_exact_result(x);
    slu_exact_free(x);
    slu_reader_free(r);
    return result;
}

static struct slu_exact_result run(struct seen *s, uint64_t budget, bool pairs)
{
    const struct slu_exact_cfg cfg = {.budget_byte = budget,
                                      .tmpdir = "/tmp",
                                      .n_threads = 1,
                                      .emit = emit,
                                      .pair = pairs ? pair : NULL,
                                      .ctx = s};
    struct over docs = {.n = N, .add = add};

    memset(s, 0, sizeof *s);
    return run_over(&cfg, &docs);
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

/* Any source may have two equal documents: an item of an index is told from all of
 * them, whether memory knows it or not. */
struct places {
    uint64_t source;
    unsigned n;
};

static int place_pair(void *ctx, const struct slu_exact_pair *p, struct slu_err *err)
{
    struct places *s = ctx;

    (void)err;
    assert_false(slu_origin_is_index(&p->dropped));
    assert_int_equal(slu_origin_is_index(&p->kept), p->dropped.document >= 4);
    if (p->dropped.document >= 4)
        assert_int_equal(p->kept.document, 77);
    ++s->n;
    return SLU_OK;
}

static int drop_out(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

static int add_place(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err)
{
    const struct places *s = ctx;
    const uint16_t tok[2] = {i < 4 ? 1 : 2, 9};
    struct slu_seg g = {
        s->source, s->source == SLU_PADDING ? 0 : i, 0, 2, SLU_NO_DOMAIN, 0, 0};

    if (s->source == SLU_PADDING && i == 4)
        g.document = 4; /* told apart in place_pair only */
    return slu_batch_add(b, tok, 2, &g, 1, NULL, err);
}

/* The last is document 4's; all others are more than the least memory holds. */
static int known(void *ctx, struct slu_exact *x, struct slu_err *err)
{
    static const uint16_t tok[2] = {2, 9};
    int rc = SLU_OK;

    (void)ctx;
    for (uint64_t i = 0; i < 60000 && !rc; i++)
        rc = slu_exact_known(x, (struct slu_u128){mix(i), mix(~i)}, i, err);
    for (unsigned i = 0; i < 2 && !rc; i++) /* twice, as an index may have it */
        rc = slu_exact_known(x, slu_hash_tokens(tok, 2, 2), 77 + i, err);
    return rc;
}

static void test_places(void **state)
{
    static const uint64_t source[] = {0, SLU_PADDING - 1, SLU_PADDING};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct places s = {.source = source[i / 2]};
        const struct slu_exact_cfg cfg = {.budget_byte = i % 2 ? 1 << 20 : 64 << 20,
                                          .tmpdir = "/tmp",
                                          .n_threads = 1,
                                          .emit = drop_out,
                                          .pair = place_pair,
                                          .known = known,
                                          .ctx = &s};
        struct over docs = {.n = 5, .add = add_place, .ctx = &s};
        struct slu_exact_result r = run_over(&cfg, &docs);
        assert_int_equal(s.n, 4);
        assert_int_equal(r.waited, i % 2 ? 5 : 0);
    }
}

/* Three tokens: a prompt that no other document has, and an answer; every 16th document
 * has nothing that is trained on. */
static int add_dialogue(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err)
{
    const uint32_t kind = (uint32_t)kind_of(i), bit = i % 16 != 0;
    const uint32_t tok[] = {slu_mask_mark(kind >> 16, bit), (uint32_t)i,
                            slu_mask_mark(kind & 0xffff, bit)};
    struct slu_seg g = {3, i, 0, 3, SLU_NO_DOMAIN, 0, 0};

    (void)ctx;
    b->masks = true;
    return slu_batch_add(b, tok, 3, &g, 1, NULL, err);
}

static int emit_dialogue(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct seen *s = ctx;

    (void)err;
    for (size_t i = 0; i < b->n_seq; i++)
        s->out[s->n_out++] = b->seg[b->seq[i].seg_off].document;
    return SLU_OK;
}

static void test_trained(void **state)
{
    static const uint64_t budget[] = {256 << 20, 1 << 20};
    bool *has = malloc(KINDS);
    struct seen *s = malloc(sizeof *s);

    (void)state;
    for (size_t t = 0; t < 4; t++) {
        const struct slu_exact_cfg cfg = {.budget_byte = budget[t / 2],
                                          .tmpdir = "/tmp",
                                          .n_threads = 1,
                                          .trained = true,
                                          .emit = emit_dialogue,
                                          .pair = t % 2 ? pair : NULL,
                                          .ctx = s};
        struct over docs = {.n = N, .add = add_dialogue};
        struct slu_err err = SLU_ERR_INIT;
        struct slu_header h;
        struct slu_exact *x;
        struct slu_reader *r;
        struct slu_sum in;
        size_t n = 0;
        slu_header_init(&h);
        h.tok_bytes = 4;
        h.vocab_size = N;
        h.eos = h.bos = h.pad = SLU_NO_TOKEN;
        h.masks = true;
        memset(s, 0, sizeof *s);
        assert_int_equal(slu_exact_new(&x, &cfg, &err), SLU_OK);
        assert_int_equal(over_of(&r, &docs, &h, &err), SLU_OK);
        assert_int_equal(slu_exact_run(x, r, 2, &in, &err), SLU_OK);
        memset(has, 0, KINDS);
        for (uint64_t i = 0; i < N; i++) {
            bool *seen = &has[kind_of(i)];
            if (i % 16 == 0 || !*seen)
                assert_int_equal(s->out[n++], i);
            *seen |= i % 16 != 0;
        }
        assert_int_equal(s->n_out, n);
        assert_int_equal(s->n_pair, t % 2 ? N - n : 0);
        assert_int_equal(slu_exact_result(x)->untrained, N / 16);
        assert_int_equal(slu_exact_result(x)->waited > 0, t >= 2);
        slu_exact_free(x);
        slu_reader_free(r);
    }
    free(has);
    free(s);
}

static void test_refusals(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_exact_cfg cfg = {.budget_byte = 1000, .emit = emit};
    struct slu_exact *x;

    assert_int_equal(slu_exact_new(&x, &cfg, &err), SLU_E_LIMIT);
    slu_exact_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
