/* test_packing.c - packing in memory and beyond the budget gives the same bins, byte by
 * byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/pack/pack_flow.h"
#include "lib/pack/packing_private.h"
#include "lib/pack/packing_table.h"

enum { BIG = 64 << 20, SMALL = 1 << 20 };

static uint64_t below(uint64_t *state, uint64_t n)
{
    return slu_draw_below(slu_draw(2404, ++*state, 0, 0, 0), n);
}

/* A batch of random sequences, some of several documents, some padded; ids count up. */
static void random_batch(struct slu_batch *b, uint64_t *state, uint64_t longest,
                         unsigned n_domain)
{
    static uint8_t ids[] = "abcdefghijklmnopqrstuvwx";
    uint32_t tok[4096];
    slu_batch_clear(b);
    for (uint64_t i = 0, n = 1 + below(state, 60); i < n; i++) {
        struct slu_seg seg[4];
        uint64_t n_seg = 1 + below(state, 3), n_tok = 0;
        for (uint64_t k = 0; k < n_seg; k++) {
            uint64_t len = 1 + (below(state, 4) ? below(state, longest)
                                                : below(state, longest * 3));
            uint32_t domain = (uint32_t)below(state, n_domain);
            memset(&seg[k], (int)below(state, 256), sizeof seg[k]); /* other fields */
            seg[k].source = below(state, 3);
            seg[k].document = below(state, 1000);
            seg[k].offset = below(state, 3) ? 0 : below(state, 50);
            seg[k].len_tok = len;
            seg[k].domain = domain ? domain : SLU_NO_DOMAIN;
            seg[k].id_len = (uint32_t)below(state, 9);
            seg[k].id_off = below(state, 8);
            seg[k].meta_len = below(state, 9) & 15;
            n_tok += len;
        }
        for (uint64_t k = 0; k < n_tok; k++) {
            uint64_t v = below(state, 60000);
            if (b->tok_bytes == 2)
                ((uint16_t *)tok)[k] = (uint16_t)v;
            else
                tok[k] = (uint32_t)v;
        }
        assert_int_equal(slu_batch_add(b, tok, n_tok, seg, n_seg, ids, NULL), SLU_OK);
    }
}

struct out {
    struct slu_batch all;
    struct slu_packing_stat stat;
    struct slu_pack_sum sum, baseline;
    uint64_t pieces;
    bool ext; /* went past the budget */
};

static void add_batch(struct slu_packing *p, const struct slu_batch *b, bool hold,
                      uint64_t *pieces)
{
    struct slu_run run[256];
    size_t n = 0;
    for (size_t i = 0; i < b->n_seq; i++) {
        uint64_t seg = 0, at = b->seq[i].tok_off;
        while (slu_run_next(b, &b->seq[i], &seg, &at, &run[n]))
            n++;
    }
    uint64_t held = hold ? slu_packing_hold(p, b, run, n) : SLU_NOT_HELD;
    assert_int_equal(slu_packing_add(p, b, run, n, held, false, pieces, NULL), SLU_OK);
}

/* `n` random batches of `seed`; window: tokens at a time. */
struct job {
    struct slu_pack_flow flow;
    uint64_t seed, longest, window;
    unsigned n, n_domain;
    struct out *out;
};

static int no_header(void *ctx, const struct slu_header *h, struct slu_names *names,
                     struct slu_err *err)
{
    (void)ctx, (void)h, (void)names, (void)err;
    return SLU_OK;
}

static int no_output(void *ctx, struct slu_err *err)
{
    (void)ctx, (void)err;
    return SLU_OK;
}

static int read_batches(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct job *j = ctx;
    struct slu_batch b;
    uint64_t state = j->seed << 32;
    slu_batch_init(&b, j->flow.cfg.tok_bytes);
    for (unsigned i = 0; i < j->n; i++) {
        random_batch(&b, &state, j->longest, j->n_domain);
        add_batch(j->flow.packing, &b, i % 3 != 0, &j->out->pieces);
    }
    slu_batch_release(&b);
    (void)f, (void)err;
    return SLU_OK;
}

static int write_bins(void *ctx, struct slu_err *err)
{
    struct job *j = ctx;
    struct slu_packing *p = j->flow.packing;
    struct slu_packing_window w;
    struct slu_batch b;
    int rc;
    slu_batch_init(&b, j->flow.cfg.tok_bytes);
    while (!(rc = slu_packing_take(p, &w, &b, j->window, err))) {
        assert_int_equal(slu_packing_fill(p, &w, &b, NULL), SLU_OK);
        slu_packing_settle(p, &w);
        for (size_t i = 0; i < b.n_seq; i++)
            assert_int_equal(slu_batch_add(&j->out->all,
                                           slu_batch_at(&b, b.seq[i].tok_off),
                                           b.seq[i].len_tok, &b.seg[b.seq[i].seg_off],
                                           b.seq[i].n_seg, b.str.data, NULL),
                             SLU_OK);
    }
    slu_batch_release(&b);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static void pack(struct slu_packing_cfg cfg, uint64_t budget, uint64_t seed, unsigned n,
                 uint64_t longest, unsigned n_domain, uint64_t window, struct out *out)
{
    struct job j = {.seed = seed,
                    .n = n,
                    .longest = longest,
                    .n_domain = n_domain,
                    .window = window,
                    .out = out,
                    .flow = {.cfg = cfg,
                             .ctx = &j,
                             .open = no_output,
                             .read = read_batches,
                             .write = write_bins}};
    const struct slu_flow_cfg flow = {.spec = &slu_pack_flow_spec,
                                      .ctx = &j.flow,
                                      .begin = no_header,
                                      .budget_byte = budget,
                                      .tmpdir = cfg.tmpdir,
                                      .n_threads = cfg.n_threads};
    struct slu_flow_report report;
    memset(out, 0, sizeof *out);
    slu_batch_init(&out->all, cfg.tok_bytes);
    j.flow.cfg.budget_byte = budget;
    assert_int_equal(slu_flow_run(&flow, &report, NULL), SLU_OK);
    out->ext = j.flow.packing->ext;
    out->stat = slu_packing_stat(j.flow.packing);
    out->sum = slu_packing_sum(j.flow.packing);
    out->baseline = slu_packing_baseline(j.flow.packing);
    slu_packing_free(j.flow.packing);
}

static void same(const struct out *a, const struct out *b)
{
    const struct slu_batch *x = &a->all, *y = &b->all;
    assert_int_equal(x->n_seq, y->n_seq);
    assert_int_equal(x->n_seg, y->n_seg);
    assert_int_equal(x->n_tok, y->n_tok);
    assert_int_equal(x->str.len, y->str.len);
    if (x->n_seq) {
        assert_memory_equal(x->seq, y->seq, x->n_seq * sizeof *x->seq);
        assert_memory_equal(x->seg, y->seg, x->n_seg * sizeof *x->seg);
        assert_memory_equal(x->own.data, y->own.data, x->own.len);
    }
    if (x->str.len)
        assert_memory_equal(x->str.data, y->str.data, x->str.len);
    assert_memory_equal(&a->stat, &b->stat, sizeof a->stat);
    assert_memory_equal(&a->sum, &b->sum, sizeof a->sum);
    assert_memory_equal(&a->baseline, &b->baseline, sizeof a->baseline);
    assert_int_equal(a->pieces, b->pieces);
}

static void release(struct out *out)
{
    slu_batch_release(&out->all);
}

/* The output has the tokens of the input, and as much padding as was counted. */
static void check_whole(const struct slu_packing_cfg *cfg, const struct out *out)
{
    uint64_t items = 0, tok = 0, padding = 0;
    for (size_t i = 0; i < out->all.n_seq; i++) {
        const struct slu_seq *q = &out->all.seq[i];
        uint64_t n = 0;
        for (uint64_t k = 0; k < q->n_seg; k++) {
            const struct slu_seg *g = &out->all.seg[q->seg_off + k];
            n += g->len_tok;
            if (g->source != SLU_PADDING) {
                items++;
                tok += g->len_tok;
                continue;
            }
            padding += g->len_tok;
            for (uint64_t t = 0; t < g->len_tok; t++)
                assert_int_equal(
                    slu_batch_id(&out->all, q->tok_off + n - g->len_tok + t), cfg->pad);
        }
        assert_int_equal(n, q->len_tok);
    }
    assert_int_equal(out->stat.padding, padding);
    assert_int_equal(out->stat.not_full.tokens + tok, out->sum.tok);
    if (!cfg->drop)
        assert_int_equal(items, out->pieces);
}

static void test_both_ways(void **state)
{
    (void)state;
    unsigned n_ext = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t x = seed << 48;
        struct slu_packing_cfg cfg = {.method =
                                          seed % 3 ? SLU_PACK_BFD : SLU_PACK_CONCAT,
                                      .capacity = 1 + below(&x, 400),
                                      .max_items = seed % 5 ? 0 : 1 + below(&x, 4),
                                      .mix_domains = seed % 7 == 0,
                                      .drop = seed % 4 == 0,
                                      .pad = 60001,
                                      .tok_bytes = seed % 2 ? 2 : 4,
                                      .tmpdir = "/var/tmp",
                                      .n_threads = 1 + (unsigned)below(&x, 3)};
        unsigned n = (unsigned)below(&x, 12) + (seed % 10 ? 40 : 0),
                 n_domain = 1 + (unsigned)below(&x, seed % 6 ? 5 : 300);
        uint64_t longest = 1 + below(&x, 300);
        struct out mem, ext;
        pack(cfg, BIG, seed, n, longest, n_domain, 1 + below(&x, 5000), &mem);
        pack(cfg, SMALL, seed, n, longest, n_domain, 1 + below(&x, 5000), &ext);
        assert_false(mem.ext);
        n_ext += ext.ext;
        same(&mem, &ext);
        check_whole(&cfg, &mem);
        release(&mem);
        release(&ext);
    }
    assert_true(n_ext > 30 && n_ext < 60);
}

static void test_border(void **state)
{
    (void)state;
    struct slu_packing_cfg cfg = {
        .capacity = 64, .tok_bytes = 2, .pad = 1, .tmpdir = "/var/tmp", .n_threads = 1};
    struct out whole, part;
    unsigned n = 0, n_ext = 0;
    pack(cfg, BIG, 7, 300, 100, 3, 1000, &whole);
    for (uint64_t budget = 1 << 20; budget < 16 << 20; budget += 623 << 10) {
        pack(cfg, budget, 7, 300, 100, 3, 1000, &part);
        same(&whole, &part);
        release(&part);
        n++;
        n_ext += part.ext;
    }
    assert_true(n_ext > 0 && n_ext < n);
    release(&whole);
}

static void test_none(void **state)
{
    (void)state;
    for (int method = 0; method < 2; method++) {
        struct slu_packing_cfg cfg = {.method = method ? SLU_PACK_CONCAT : SLU_PACK_BFD,
                                      .capacity = 64,
                                      .tok_bytes = 2,
                                      .tmpdir = "/var/tmp"};
        struct out out;
        pack(cfg, BIG, 1, 0, 1, 1, 1000, &out);
        assert_int_equal(out.all.n_seq, 0);
        assert_int_equal(out.sum.bins, 0);
        release(&out);
    }
}

/* Without a flow, what waits must fit half of the budget. */
static void test_no_flow(void **state)
{
    (void)state;
    const struct slu_packing_cfg cfg = {
        .capacity = 64, .tok_bytes = 2, .tmpdir = "/var/tmp", .budget_byte = SMALL};
    static uint16_t tok[64];
    const struct slu_seg seg = {.len_tok = 64, .domain = SLU_NO_DOMAIN};
    const struct slu_run run = {.seg = seg};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_packing *p;
    struct slu_batch b;
    uint64_t pieces = 0;
    int rc = SLU_OK;
    slu_batch_init(&b, 2);
    assert_int_equal(slu_batch_add(&b, tok, 64, &seg, 1, NULL, NULL), SLU_OK);
    assert_int_equal(slu_packing_new(&p, &cfg, NULL), SLU_OK);
    while (!rc && pieces < 100000)
        rc = slu_packing_add(p, &b, &run, 1, SLU_NOT_HELD, false, &pieces, &err);
    assert_int_equal(rc, SLU_E_LIMIT);
    assert_non_null(strstr(err.msg, "half of memory"));
    slu_packing_free(p);
    slu_batch_release(&b);
}

/* Counts random batches, and plans. */
static struct slu_packing *plan_only(const struct slu_packing_cfg *cfg)
{
    struct slu_packing *p;
    struct slu_batch b;
    uint64_t state = 0, pieces = 0;
    slu_batch_init(&b, cfg->tok_bytes);
    assert_int_equal(slu_packing_new(&p, cfg, NULL), SLU_OK);
    for (unsigned i = 0; i < 20; i++) {
        random_batch(&b, &state, 40, 1);
        add_batch(p, &b, false, &pieces);
    }
    assert_int_equal(slu_packing_plan(p, NULL), SLU_OK);
    slu_batch_release(&b);
    return p;
}

/* The table's row of the method chosen is the plan that is applied, even where the
 * method would have made a better one: here each piece has a bin of its own. */
static void test_applied_row(void **state)
{
    (void)state;
    struct slu_packing_cfg cfg = {.method = SLU_PACK_BFD,
                                  .capacity = 64,
                                  .mix_domains = true,
                                  .tok_bytes = 2,
                                  .plan_only = true,
                                  .budget_byte = BIG};
    const struct slu_pack_cfg alone = {.capacity = 64, .max_items = 1};
    const struct slu_plan_head head = slu_packing_head(&cfg);
    struct slu_packing_row own[SLU_PACK_METHODS], row[SLU_PACK_METHODS];
    struct slu_packing *p = plan_only(&cfg);
    struct slu_pack_plan *plan;
    struct slu_planfile *f;
    assert_int_equal(slu_packing_compare(p, own, NULL), SLU_OK);
    assert_int_equal(p->n_lane, 1);
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_FFD, p->lane[0].row,
                                    p->lane[0].n_row, &alone, NULL),
                     SLU_OK);
    assert_true(own[SLU_PACK_BFD].sum.bins < plan->n_bin);
    slu_packing_free(p);
    assert_int_equal(slu_planfile_new(&f, &head, NULL), SLU_OK);
    assert_int_equal(slu_planfile_add(f, NULL, plan, NULL), SLU_OK);
    cfg.apply = f;
    p = plan_only(&cfg);
    assert_int_equal(slu_packing_compare(p, row, NULL), SLU_OK);
    assert_int_equal(row[SLU_PACK_BFD].sum.bins, plan->n_bin);
    assert_int_equal(row[SLU_PACK_BFD].sum.items, own[SLU_PACK_BFD].sum.items);
    assert_int_equal(row[SLU_PACK_BFD].sum.tok, own[SLU_PACK_BFD].sum.tok);
    assert_int_equal(row[SLU_PACK_FFD].sum.bins, own[SLU_PACK_FFD].sum.bins);
    slu_packing_free(p);
    slu_planfile_free(f);
    slu_pack_plan_free(plan);
}

/* slu_pack_mem_fits says as many items of three tokens as can be put. */
static void test_fits(void **state)
{
    (void)state;
    const struct slu_packing_cfg cfg = {
        .capacity = 64, .tok_bytes = 2, .tmpdir = "/var/tmp", .budget_byte = SMALL};
    const struct slu_pack_item it = {.seg = {.len_tok = 3}};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_pack_mem *m;
    uint64_t n = 0;
    assert_int_equal(slu_pack_mem_new(&m, &cfg, &err), SLU_OK);
    while (atomic_fetch_add(&m->n_tok, 3), slu_pack_mem_put(m, &it, 3 * n, 0)) {
        slu_pack_late_add(m, 3 * n, 3, n);
        n++;
    }
    assert_true(n > 100);
    assert_true(slu_pack_mem_fits(m, 3 * n, n));
    assert_false(slu_pack_mem_fits(m, 3 * (n + 1), n + 1));
    assert_true(slu_pack_mem_fits(m, 3 * (n + 1), n / 2));
    slu_pack_mem_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),   cmocka_unit_test(test_border),
        cmocka_unit_test(test_none),        cmocka_unit_test(test_no_flow),
        cmocka_unit_test(test_applied_row), cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
