/* test_seqrec.c - records of sequences: numbers of every size, written and read; memcmp
 * gives the order of segment lists; every truncation is refused; logs of records. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/flow/seqlog.h"
#include "lib/stream/seqrec.h"

static const uint64_t some[] = {0,
                                1,
                                127,
                                128,
                                0x3fff,
                                0x4000,
                                0x1fffff,
                                0x200000,
                                0xfffffff,
                                0x10000000,
                                0x7ffffffffULL,
                                0x800000000ULL,
                                0x3ffffffffffULL,
                                0x40000000000ULL,
                                0x1ffffffffffffULL,
                                0x2000000000000ULL,
                                0xffffffffffffffULL,
                                0x100000000000000ULL,
                                UINT64_MAX - 1};
enum { N_SOME = sizeof some / sizeof *some };

static void pack(struct slu_buf *out, struct slu_batch *b, const struct slu_seg *seg,
                 uint64_t n_seg, const void *tok, uint64_t n_tok, const char *ids)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_seqrec r;

    slu_batch_clear(b);
    assert_int_equal(
        slu_batch_add(b, tok, n_tok, seg, n_seg, (const uint8_t *)ids, &err), SLU_OK);
    slu_buf_clear(out);
    assert_int_equal(slu_seqrec_append(out, b, &b->seq[0], &err), SLU_OK);
    /* In pieces it is the same. */
    slu_seqrec_init(&r);
    assert_int_equal(slu_seqrec_pack(&r, b, &b->seq[0], &err), SLU_OK);
    assert_int_equal(slu_seqrec_size(&r), out->len);
    const uint8_t *p = out->data;
    for (unsigned i = 0; i < SLU_SEQREC_PIECES; p += r.piece[i++].n)
        assert_memory_equal(p, r.piece[i].p ? r.piece[i].p : "", r.piece[i].n);
    slu_seqrec_release(&r);
}

/* Sets the origin and the length; the segment has no domain and no id, and keeps its
 * other fields. */
static void set(struct slu_seg *g, uint64_t source, uint64_t document, uint64_t offset,
                uint64_t len_tok)
{
    g->source = source;
    g->document = document;
    g->offset = offset;
    g->len_tok = len_tok;
    g->domain = SLU_NO_DOMAIN;
    g->id_len = 0;
    g->id_off = 0;
    g->meta_len = 0;
}

static void compare(const struct slu_batch *a, const struct slu_batch *b)
{
    assert_int_equal(b->n_seq, 1);
    assert_int_equal(b->n_seg, a->n_seg);
    assert_int_equal(b->n_tok, a->n_tok);
    assert_memory_equal(b->tok, a->tok, a->n_tok * a->tok_bytes);
    for (size_t i = 0; i < a->n_seg; i++)
        assert_memory_equal(&b->seg[i], &a->seg[i], sizeof a->seg[i]);
    assert_int_equal(b->str.len, a->str.len);
    if (a->str.len)
        assert_memory_equal(b->str.data, a->str.data, a->str.len);
}

static void test_there_and_back(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_batch b, c;
    struct slu_buf out = SLU_BUF_INIT;
    static const uint16_t tok[300];

    (void)state;
    slu_batch_init(&b, 2);
    slu_batch_init(&c, 2);
    for (unsigned i = 0; i < N_SOME; i++)
        for (unsigned k = 0; k < 8; k++) {
            struct slu_seg seg[3];
            memset(seg, k & 4 ? 0x5a : 0, sizeof seg); /* other fields */
            set(&seg[0], some[i], some[(i + 1) % N_SOME], some[(i + 2) % N_SOME], 7);
            set(&seg[1], some[N_SOME - 1 - i], 3, 128, 200);
            set(&seg[2], SLU_PADDING, 0, 0, 1 + i);
            seg[0].domain = k & 1 ? (uint32_t)some[i % 11] : SLU_NO_DOMAIN;
            seg[0].id_len = k & 2 ? 4 : 0;
            seg[1].id_len = k & 2 ? 1 : 0;
            seg[1].meta_len = k & 1 ? 2 : 0;
            seg[1].id_off = 4;
            seg[2].id_off = 4 + slu_seg_str(&seg[1]);
            uint64_t n_seg = 1 + i % 3, n_tok = 0, got_tok, got_seg;
            for (uint64_t j = 0; j < n_seg; j++)
                n_tok += seg[j].len_tok;
            pack(&out, &b, seg, n_seg, tok, n_tok, "abcdefg");
            assert_int_equal(
                slu_seqrec_peek(out.data, out.len, &got_tok, &got_seg, &err), SLU_OK);
            assert_int_equal(got_tok, n_tok);
            assert_int_equal(got_seg, n_seg);
            slu_batch_clear(&c);
            if (slu_seqrec_add(&c, out.data, out.len, &err) != SLU_OK)
                fail_msg("%s", err.msg);
            compare(&b, &c);
            for (size_t n = 0; n < out.len; n++) { /* in a block of its own */
                uint8_t *cut = malloc(n + 1);
                memcpy(cut, out.data, n);
                assert_int_equal(slu_seqrec_add(&c, cut, n, &err), SLU_E_FORMAT);
                free(cut);
            }
        }
    slu_batch_release(&b);
    slu_batch_release(&c);
    slu_buf_release(&out);
}

/* Records of one length order as their sources do, then documents, then offsets. */
static void test_order(void **state)
{
    struct slu_batch b;
    struct slu_buf x = SLU_BUF_INIT, y = SLU_BUF_INIT;
    static const uint16_t tok[1];

    (void)state;
    slu_batch_init(&b, 2);
    for (unsigned i = 0; i < N_SOME; i++)
        for (unsigned k = 0; k < 3 && i; k++) {
            uint64_t lo[3] = {1, 1, 1}, hi[3] = {1, 1, 1};
            lo[k] = some[i - 1];
            hi[k] = some[i];
            struct slu_seg s = {lo[0], lo[1], lo[2], 1, SLU_NO_DOMAIN, 0, 0};
            struct slu_seg t = {hi[0], hi[1], hi[2], 1, SLU_NO_DOMAIN, 0, 0};
            pack(&x, &b, &s, 1, tok, 1, NULL);
            pack(&y, &b, &t, 1, tok, 1, NULL);
            assert_true(memcmp(x.data, y.data, x.len < y.len ? x.len : y.len) < 0);
        }
    slu_batch_release(&b);
    slu_buf_release(&x);
    slu_buf_release(&y);
}

/* ---- logs ---- */

enum { MOST_ITEM = 50000 };
struct item {
    bool note;
    uint64_t n; /* tokens, or bytes */
};
struct logged {
    struct item item[MOST_ITEM];
    size_t n, at;
};

/* Item i is of bytes i, i + 1, … */
static const uint8_t *bytes_of(uint64_t i)
{
    static uint8_t p[256 + 6000];

    for (size_t k = 0; !p[1] && k < sizeof p; k++)
        p[k] = (uint8_t)k;
    return p + i % 256;
}

static int on_emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct logged *t = ctx;

    (void)err;
    assert_true(b->n_seq > 0);
    for (size_t i = 0; i < b->n_seq; i++, t->at++) {
        const struct item *x = &t->item[t->at];
        const struct slu_seq *q = &b->seq[i];
        assert_true(t->at < t->n && !x->note);
        assert_int_equal(b->seg[q->seg_off].document, t->at);
        assert_int_equal(q->len_tok, x->n);
        assert_memory_equal(slu_batch_at(b, q->tok_off), bytes_of(t->at), 2 * x->n);
    }
    b->n_seq = 0; /* it may be edited */
    return SLU_OK;
}

static int on_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    struct logged *t = ctx;
    const struct item *x = &t->item[t->at];

    (void)err;
    assert_true(t->at < t->n && x->note);
    assert_int_equal(n, x->n);
    assert_memory_equal(p, bytes_of(t->at++), n);
    return SLU_OK;
}

static int refuse(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b;
    return slu_fail(err, SLU_E_LIMIT, "no more");
}

/* n items: every `often`th is a note. */
static void one_log(size_t n, size_t often, bool spills)
{
    static const struct slu_seqlog_ops ops = {on_emit, on_note},
                                       none = {refuse, on_note};
    static struct logged t;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_seqlog *log;
    struct slu_batch b;

    t.n = n;
    slu_batch_init(&b, 2);
    assert_int_equal(slu_seqlog_new(&log, 2, false, 1 << 20, ".", &err), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        struct item *x = &t.item[i];
        *x = (struct item){i % often == 1, i * i % 31};
        if (x->note) {
            assert_int_equal(slu_seqlog_note(log, bytes_of(i), x->n, &err), SLU_OK);
            continue;
        }
        x->n = i % 1000 == 7 ? 3000 : x->n + 1;
        const struct slu_seg seg = {
            .source = 1, .document = i, .len_tok = x->n, .domain = SLU_NO_DOMAIN};
        slu_batch_clear(&b);
        assert_int_equal(slu_batch_add(&b, bytes_of(i), x->n, &seg, 1, NULL, &err), 0);
        assert_int_equal(slu_seqlog_put(log, &b, b.seq, &err), SLU_OK);
    }
    for (unsigned k = 0; k < 2; k++) {
        t.at = 0;
        assert_int_equal(slu_seqlog_read(log, &ops, &t, &err), SLU_OK);
        assert_int_equal(t.at, n);
        assert_int_equal(slu_seqlog_read(log, &none, &t, &err), n ? SLU_E_LIMIT : 0);
    }
    assert_int_equal(slu_seqlog_spilled(log) > 0, spills);
    slu_seqlog_free(log);
    slu_batch_release(&b);
}

static void test_seqlog(void **state)
{
    (void)state;
    one_log(0, 3, false);
    one_log(1, 3, false);
    one_log(500, 3, false);
    one_log(MOST_ITEM, MOST_ITEM + 1, true);
    one_log(MOST_ITEM, 3, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_seqlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
