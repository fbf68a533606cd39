/* test_substring.c - repeated passages compared with an oracle that compares every
 * window with all windows before it, on texts of two to five ids: runs, periods,
 * copies, packed and cut sequences. check-more: whole
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/dedup/substring/substring.h"
#include "lib/dedup/substring/substring_scan.h"
#include "lib/dedup/substring/substring_walk.h"
#include "over.h"

static struct slu_err err;

static uint64_t rng_state;
static uint64_t rnd(uint64_t n)
{
    return slu_draw_below(slu_draw(rng_state++, 1, 2, 3, 4), n);
}

/* ---- texts ---- */

enum { BIG_SEQ = 40, BIG_TOK = 6000 };
static uint32_t big[BIG_SEQ][BIG_TOK];

enum { MAX_SEQ = 24, MAX_TOK = 700, MAX_SEG = 12, MAX_OUT = 4096 };

struct text {
    unsigned n_seq;
    struct {
        unsigned n_tok, n_seg;
        uint32_t tok[MAX_TOK];
        struct slu_seg seg[MAX_SEG];
    } seq[MAX_SEQ];
    unsigned n_tok; /* of a window */
    uint64_t min_keep;
    struct slu_specials special;
    unsigned tok_bytes;
};

/* A stretch of ids: random, a run, periodic, or a copy of what is there. */
static unsigned some_ids(const struct text *t, uint32_t *to, unsigned max,
                         unsigned n_id)
{
    unsigned n = 1 + (unsigned)rnd(max), kind = (unsigned)rnd(5);
    uint32_t period[8];
    unsigned p = kind == 1 ? 1 : 1 + (unsigned)rnd(8);

    for (unsigned i = 0; i < 8; i++)
        period[i] = (uint32_t)rnd(n_id);
    if (kind >= 3 && t->n_seq) {
        unsigned from = (unsigned)rnd(t->n_seq), len = t->seq[from].n_tok;
        unsigned at = (unsigned)rnd(len);
        n = len - at < n ? len - at : n;
        memcpy(to, t->seq[from].tok + at, n * sizeof *to);
        return n;
    }
    for (unsigned i = 0; i < n; i++)
        to[i] = kind == 0 ? (uint32_t)rnd(n_id) : period[i % p];
    return n;
}

static void make_segments(struct text *t, unsigned s, uint64_t *document)
{
    unsigned len = t->seq[s].n_tok, at = 0, n = 0;
    bool packed = rnd(3) == 0;

    while (at < len) {
        struct slu_seg *g = &t->seq[s].seg[n];
        unsigned cut =
            packed && n < MAX_SEG - 1 ? 1 + (unsigned)rnd(len - at) : len - at;
        *g = (struct slu_seg){
            rnd(2), ++*document, rnd(3) ? 0 : 1 + rnd(9), cut, SLU_NO_DOMAIN, 0, 0};
        if (n && rnd(2)) { /* the document before goes on, at once or behind a gap */
            g->source = g[-1].source;
            g->document = g[-1].document;
            g->offset = g[-1].offset + g[-1].len_tok + (rnd(2) ? 0 : rnd(4));
        }
        if (n && at + cut == len && rnd(4) == 0)
            *g = (struct slu_seg){SLU_PADDING, 0, 0, cut, SLU_NO_DOMAIN, 0, 0};
        if (n && g[-1].source == SLU_PADDING)
            g->offset = 0;
        at += cut;
        n++;
    }
    t->seq[s].n_seg = n;
}

static void make_text(struct text *t, unsigned max_len)
{
    unsigned n_id = 2 + (unsigned)rnd(4), n_seq = 1 + (unsigned)rnd(8);
    uint64_t document = 0;

    memset(t, 0, sizeof *t);
    t->n_tok = 2 + (unsigned)rnd(rnd(3) ? 10 : 60);
    t->min_keep = rnd(2) ? 0 : rnd(2 * t->n_tok);
    t->tok_bytes = rnd(2) ? 2 : 4;
    for (unsigned i = (unsigned)rnd(3); i > 0; i--)
        slu_specials_add(&t->special, rnd(2) ? rnd(n_id) : n_id + rnd(3));
    for (unsigned s = 0; s < n_seq; s++) {
        unsigned len = 0, want = 1 + (unsigned)rnd(max_len);
        uint32_t *tok = t->seq[s].tok;
        while (len < want)
            len += some_ids(t, tok + len, want - len, n_id);
        if (rnd(3) == 0)
            tok[len - 1] = n_id; /* often special */
        t->seq[s].n_tok = len;
        make_segments(t, s, &document);
        t->n_seq++;
    }
}

/* ---- the oracle ---- */

struct window {
    unsigned seq, at;
    int first; /* index of the first window with its ids, -1: this one */
};

static bool is_special(const struct text *t, uint32_t id)
{
    for (unsigned i = 0; i < t->special.n; i++)
        if (t->special.id[i] == id)
            return true;
    return false;
}

/* The segment of id `at`, and whether it continues the one before. */
static unsigned seg_of(const struct text *t, unsigned s, unsigned at, unsigned *in)
{
    unsigned i = 0;

    while (at >= t->seq[s].seg[i].len_tok)
        at -= (unsigned)t->seq[s].seg[i++].len_tok;
    *in = at;
    return i;
}

/* Whether ids at and at + 1 of sequence s are neighbours in a document. */
static bool joined(const struct text *t, unsigned s, unsigned at)
{
    unsigned in_a, in_b, a = seg_of(t, s, at, &in_a), b = seg_of(t, s, at + 1, &in_b);
    const struct slu_seg *x = &t->seq[s].seg[a], *y = &t->seq[s].seg[b];

    if (a == b)
        return true;
    return x->source == y->source && x->document == y->document &&
           x->source != SLU_PADDING && y->offset == x->offset + x->len_tok &&
           y->offset != 0;
}

static bool is_text(const struct text *t, unsigned s, unsigned at)
{
    unsigned in;

    return !is_special(t, t->seq[s].tok[at]) &&
           t->seq[s].seg[seg_of(t, s, at, &in)].source != SLU_PADDING;
}

static struct slu_origin place_of(const struct text *t, unsigned s, unsigned at)
{
    unsigned in;
    const struct slu_seg *g = &t->seq[s].seg[seg_of(t, s, at, &in)];

    return (struct slu_origin){g->source, g->document, g->offset + in};
}

struct expected {
    unsigned n_seq, n_passage;
    uint64_t gone_tok, short_tok;
    struct slu_passage passage[MAX_OUT];
    struct {
        unsigned n_tok, n_seg;
        uint32_t tok[MAX_TOK];
        struct slu_seg seg[MAX_TOK];
    } seq[MAX_SEQ];
};

static struct window win[MAX_SEQ * MAX_TOK];
static unsigned char cover[MAX_SEQ][MAX_TOK]; /* 1: a passage, 2: goes too */

static unsigned windows(const struct text *t)
{
    unsigned n = 0;

    for (unsigned s = 0; s < t->n_seq; s++)
        for (unsigned at = 0; at + t->n_tok <= t->seq[s].n_tok; at++) {
            bool whole = true;
            for (unsigned i = 0; whole && i < t->n_tok; i++)
                whole = is_text(t, s, at + i) &&
                        (i + 1 == t->n_tok || joined(t, s, at + i));
            if (whole)
                win[n++] = (struct window){s, at, -1};
        }
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; win[i].first < 0 && j < i; j++)
            if (!memcmp(&t->seq[win[i].seq].tok[win[i].at],
                        &t->seq[win[j].seq].tok[win[j].at], 4 * t->n_tok))
                win[i].first = (int)j;
    return n;
}

/* Whether id `at` and the next one are of one document, be there a gap or not. */
static bool one_document(const struct text *t, unsigned s, unsigned at)
{
    unsigned in;
    const struct slu_seg *a = &t->seq[s].seg[seg_of(t, s, at, &in)],
                         *b = &t->seq[s].seg[seg_of(t, s, at + 1, &in)];

    return a->source == b->source && a->document == b->document;
}

/* Marks the tokens of sequence s that are dropped together with its passages. */
static void cover_more(const struct text *t, unsigned s, struct expected *x)
{
    unsigned len = t->seq[s].n_tok;

    for (unsigned from = 0, to; from < len; from = to) {
        bool cut = false, left = false;
        for (to = from + 1; to < len && one_document(t, s, to - 1); to++)
            ;
        for (unsigned i = from, j; i < to; i = j) { /* stretches */
            bool touched = false;
            for (j = i; j < to && is_text(t, s, j) && (j == i || joined(t, s, j - 1));
                 j++)
                touched |= cover[s][j] == 1;
            cut |= touched;
            for (unsigned k = i, e; touched && k < j; k = e) { /* pieces */
                for (e = k; e < j && cover[s][e] == cover[s][k]; e++)
                    ;
                if (cover[s][k] == 0 && e - k < t->min_keep) {
                    memset(&cover[s][k], 2, e - k);
                    x->short_tok += e - k;
                }
            }
            for (unsigned k = i; k < j; k++)
                left |= cover[s][k] == 0;
            j += j == i;
        }
        for (unsigned i = from; cut && !left && i < to; i++)
            cover[s][i] |= cover[s][i] ? 0 : 4;
    }
}

static void expect(const struct text *t, struct expected *x)
{
    unsigned n = windows(t);

    x->n_seq = x->n_passage = 0;
    x->gone_tok = x->short_tok = 0;
    memset(cover, 0, sizeof cover);
    for (unsigned i = 0; i < n; i++) {
        const struct window *w = &win[i], *f = &win[w->first < 0 ? 0 : w->first];
        if (w->first < 0 || (f->seq == w->seq && w->at - f->at < t->n_tok))
            continue;
        struct slu_passage *p = &x->passage[x->n_passage - (x->n_passage > 0)];
        bool more =
            w->at > 0 && cover[w->seq][w->at - 1] && joined(t, w->seq, w->at - 1);
        bool inside = cover[w->seq][w->at] || more;
        memset(&cover[w->seq][w->at], 1, t->n_tok);
        if (inside) {
            struct slu_origin at = place_of(t, w->seq, w->at);
            p->len_tok = at.offset + t->n_tok - p->at.offset;
            continue;
        }
        x->passage[x->n_passage++] = (struct slu_passage){
            place_of(t, w->seq, w->at), place_of(t, f->seq, f->at), t->n_tok};
    }
    for (unsigned s = 0; s < t->n_seq; s++) {
        unsigned m = 0, n_seg = 0;
        uint64_t next = 0;
        cover_more(t, s, x);
        for (unsigned i = 0; i < t->seq[s].n_tok; i++) {
            unsigned in, g = seg_of(t, s, i, &in);
            x->gone_tok += cover[s][i] == 1 || cover[s][i] == 4;
            if (cover[s][i])
                continue;
            struct slu_seg *seg = x->seq[x->n_seq].seg;
            if (in == 0 || !m || next != i)
                seg[n_seg++] = t->seq[s].seg[g], seg[n_seg - 1].offset += in,
                seg[n_seg - 1].len_tok = 0;
            seg[n_seg - 1].len_tok++;
            x->seq[x->n_seq].tok[m++] = t->seq[s].tok[i];
            next = i + 1;
        }
        x->seq[x->n_seq].n_tok = m;
        x->seq[x->n_seq].n_seg = n_seg;
        x->n_seq += m > 0;
    }
}

/* ---- what came out ---- */

struct got {
    const struct expected *x;
    unsigned n_seq, n_passage;
};

static int emit(void *ctx, struct slu_batch *b, struct slu_err *e)
{
    struct got *g = ctx;

    (void)e;
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        assert_true(g->n_seq < g->x->n_seq);
        assert_int_equal(q->len_tok, g->x->seq[g->n_seq].n_tok);
        assert_int_equal(q->n_seg, g->x->seq[g->n_seq].n_seg);
        for (unsigned k = 0; k < q->n_seg; k++) {
            const struct slu_seg *a = &b->seg[q->seg_off + k];
            const struct slu_seg *w = &g->x->seq[g->n_seq].seg[k];
            assert_int_equal(a->source, w->source);
            assert_int_equal(a->document, w->document);
            assert_int_equal(a->offset, w->offset);
            assert_int_equal(a->len_tok, w->len_tok);
        }
        for (unsigned k = 0; k < q->len_tok; k++)
            assert_int_equal(slu_batch_id(b, q->tok_off + k),
                             g->x->seq[g->n_seq].tok[k]);
        g->n_seq++;
    }
    return SLU_OK;
}

static int passage(void *ctx, const struct slu_passage *p, struct slu_err *e)
{
    struct got *g = ctx;
    const struct slu_passage *w = &g->x->passage[g->n_passage];

    (void)e;
    assert_true(g->n_passage < g->x->n_passage);
    assert_memory_equal(&p->at, &w->at, sizeof p->at);
    assert_int_equal(p->len_tok, w->len_tok);
    assert_memory_equal(&p->first, &w->first, sizeof p->first);
    g->n_passage++;
    return SLU_OK;
}

/* ---- a stream of the texts ---- */

/* ctx: the text; NULL: `big`. */
static int add(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *e)
{
    const struct text *t = ctx;
    const struct slu_seg all = {0, i, 0, BIG_TOK, SLU_NO_DOMAIN, 0, 0};
    uint16_t half[MAX_TOK];

    if (!t)
        return slu_batch_add(b, big[i], BIG_TOK, &all, 1, NULL, e);
    for (unsigned k = 0; k < t->seq[i].n_tok; k++)
        half[k] = (uint16_t)t->seq[i].tok[k];
    return slu_batch_add(b, t->tok_bytes == 2 ? (const void *)half : t->seq[i].tok,
                         t->seq[i].n_tok, t->seq[i].seg, t->seq[i].n_seg, NULL, e);
}

/* t NULL: of `big`. */
static void run(struct text *t, const struct slu_substring_cfg *cfg,
                struct slu_substring_result *result)
{
    struct over o = {.n = t ? t->n_seq : BIG_SEQ, .add = add, .ctx = t};
    struct slu_reader *r;
    struct slu_header h;
    struct slu_sum total;

    slu_header_init(&h);
    h.tok_bytes = t ? t->tok_bytes : 4;
    h.vocab_size = 1 << (h.tok_bytes == 2 ? 16 : 20);
    for (unsigned i = 0; t && i < t->special.n; i++)
        *(i ? &h.bos : &h.eos) = t->special.id[i];
    assert_int_equal(over_of(&r, &o, &h, &err), SLU_OK);
    int rc = slu_substring_run(cfg, r, &total, result, &err);
    if (rc)
        print_message("%s\n", err.msg);
    assert_int_equal(rc, SLU_OK);
    slu_reader_free(r);
    slu_header_release(&h);
}

static struct text text;
static struct expected want;

static uint64_t compare(struct text *t, const struct expected *e, bool pairs)
{
    struct got g = {e, 0, 0};
    struct slu_substring_cfg cfg = {.budget_byte = SLU_SUBSTRING_MIN_BUDGET,
                                    .tmpdir = "/tmp",
                                    .n_threads = 1 + (unsigned)rnd(3),
                                    .n_slots = 2,
                                    .n_tok = t->n_tok,
                                    .min_keep_tok = t->min_keep,
                                    .cut = true,
                                    .emit = emit,
                                    .passage = pairs ? passage : NULL,
                                    .ctx = &g};
    struct slu_substring_result r;

    run(t, &cfg, &r);
    assert_int_equal(g.n_seq, e->n_seq);
    assert_int_equal(r.passages, e->n_passage);
    assert_int_equal(r.short_tok, e->short_tok);
    assert_int_equal(r.dropped.tokens, e->gone_tok);
    assert_int_equal(r.dropped.sequences, t->n_seq - e->n_seq);
    if (pairs)
        assert_int_equal(g.n_passage, e->n_passage);
    return r.asked_blocks;
}

static void oracle(void **state)
{
    uint64_t passages = 0, asked = 0, gone = 0;

    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        rng_state = 1000000 + 1000 * i;
        make_text(&text, i % 10 ? 80 : MAX_TOK);
        expect(&text, &want);
        asked += compare(&text, &want, i % 4 != 0);
        passages += want.n_passage;
        gone += text.n_seq - want.n_seq;
    }
    assert_true(passages > 10000 && asked > 10000 && gone > 1000);
}

/* ---- memory, threads and SIMD levels ---- */

struct digest {
    struct slu_u128 sum;
    uint64_t n, passages;
};

static int digest_emit(void *ctx, struct slu_batch *b, struct slu_err *e)
{
    struct digest *d = ctx;

    (void)e;
    slu_batch_sum(b);
    d->sum = slu_u128_add(d->sum, b->sum.trace_checksum);
    d->n += b->sum.n.tokens;
    return SLU_OK;
}

static int digest_passage(void *ctx, const struct slu_passage *p, struct slu_err *e)
{
    struct digest *d = ctx;
    const uint64_t v[8] = {++d->passages,     p->at.source,   p->at.document,
                           p->at.offset,      p->len_tok,     p->first.source,
                           p->first.document, p->first.offset};

    (void)e;
    d->sum = slu_u128_add(d->sum, slu_hash128(v, sizeof v));
    return SLU_OK;
}

static struct digest digest_of(uint64_t budget_byte, unsigned n_threads, unsigned n_tok,
                               uint64_t *spilled)
{
    struct digest d = {{0, 0}, 0, 0};
    struct slu_substring_cfg cfg = {.budget_byte = budget_byte,
                                    .tmpdir = "/tmp",
                                    .n_threads = n_threads,
                                    .n_slots = 2,
                                    .n_tok = n_tok,
                                    .cut = true,
                                    .emit = digest_emit,
                                    .passage = digest_passage,
                                    .ctx = &d};
    struct slu_substring_result r;

    run(NULL, &cfg, &r);
    *spilled = r.spilled_byte;
    return d;
}

/* Few ids and short windows: 16 different ones of 4 ids, so that single keys are larger
 * than what a thread may hold; 2^20 of 20 ids. */
static void same_for_any_budget(void **state)
{
    (void)state;
    rng_state = 1;
    for (unsigned s = 0; s < BIG_SEQ; s++)
        for (unsigned i = 0; i < BIG_TOK; i++)
            big[s][i] = (uint32_t)rnd(2);
    for (unsigned n_tok = 4; n_tok <= 24; n_tok += 4) {
        uint64_t small, large;
        struct digest expected = digest_of(UINT64_C(1) << 30, 1, n_tok, &large);
        assert_true(expected.passages > 0 && (n_tok > 16 || expected.n < 100000));
        for (unsigned t = 1; t <= 3; t++) {
            struct digest got = digest_of(SLU_SUBSTRING_MIN_BUDGET, t, n_tok, &small);
            assert_memory_equal(&got, &expected, sizeof got);
        }
        assert_true(small > large);
        static const char *const levels[] = {"portable", "avx2", "avx512"};
        for (unsigned l = 0; l < 3; l++)
            if (slu_scan_simd(levels[l])) {
                struct digest got = digest_of(UINT64_C(1) << 28, 2, n_tok, &large);
                assert_memory_equal(&got, &expected, sizeof got);
            }
        assert_true(slu_scan_simd(NULL));
    }
}

/* The blocks themselves are the same at every level. */
static void levels_agree(void **state)
{
    static const char *const levels[] = {"avx512", "avx2"};

    (void)state;
    rng_state = 77;
    for (unsigned n_tok = 2; n_tok < 300; n_tok += 1 + n_tok / 8) {
        uint32_t *tok = big[0];
        size_t len = BIG_SEQ * BIG_TOK / (1 + rnd(20));
        struct slu_buf expected = SLU_BUF_INIT, got = SLU_BUF_INIT;
        struct slu_scan scan;
        for (size_t i = 0; i < len; i++)
            tok[i] = (uint32_t)rnd(i % 1000 < 900 ? 1 << 17 : 2);
        assert_int_equal(slu_scan_init(&scan, n_tok, &err), SLU_OK);
        assert_true(slu_scan_simd("portable"));
        assert_int_equal(slu_scan_blocks(&scan, tok, len, 4, 5, &expected, &err),
                         SLU_OK);
        for (unsigned l = 0; l < 2; l++) {
            if (!slu_scan_simd(levels[l]))
                continue;
            slu_buf_clear(&got);
            assert_int_equal(slu_scan_blocks(&scan, tok, len, 4, 5, &got, &err),
                             SLU_OK);
            assert_int_equal(got.len, expected.len);
            assert_memory_equal(got.data, expected.data, got.len);
        }
        /* Windows: each in one block. */
        uint64_t at = 5;
        const struct slu_keyed *r = (const void *)expected.data;
        for (size_t i = 0; i < expected.len / sizeof *r; i++) {
            assert_int_equal(r[i].val >> 16, at);
            at += r[i].val & 0xffff;
        }
        assert_int_equal(at - 5, len - n_tok + 1);
        assert_true(slu_scan_simd(NULL));
        slu_scan_release(&scan);
        slu_buf_release(&expected);
        slu_buf_release(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle),
        cmocka_unit_test(same_for_any_budget),
        cmocka_unit_test(levels_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
