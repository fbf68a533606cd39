/* Records of sequences: numbers of every size there and back, memcmp in the order of
 * segment lists, and every cut of a record refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

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
        for (unsigned k = 0; k < 4; k++) {
            struct slu_seg seg[3] = {
                {some[i], some[(i + 1) % N_SOME], some[(i + 2) % N_SOME], 7,
                 k & 1 ? (uint32_t)some[i % 11] : SLU_NO_DOMAIN, k & 2 ? 4 : 0, 0},
                {some[N_SOME - 1 - i], 3, 128, 200, SLU_NO_DOMAIN, k & 2 ? 1 : 0, 4},
                {SLU_PADDING, 0, 0, 1 + i, SLU_NO_DOMAIN, 0, 5}};
            uint64_t n_seg = 1 + i % 3, n_tok = 0, got_tok, got_seg;
            for (uint64_t j = 0; j < n_seg; j++)
                n_tok += seg[j].len_tok;
            pack(&out, &b, seg, n_seg, tok, n_tok, "abcde");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
