/* test_permute.c - the permutation: the same order for any budget, every sequence with
 * all its segments and tokens, samples that are subsets of larger ones, limits. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/shuffle/permute.h"

enum { N = 6000 };
static char path[64];

static size_t length_of(uint64_t i)
{
    return i % 5 == 1 ? 500 : 1 + i * 7919 % 900;
}

/* Sequences of one or two segments and padding, with ids and domains here and there. */
static void make_stream(void)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_names *names;
    struct slu_out *out;
    struct slu_writer *w;
    struct slu_batch b;
    static uint32_t tok[1000];
    uint32_t domain[2];

    slu_header_init(&h);
    h.tok_bytes = 4;
    h.vocab_size = 100000;
    h.n_bucket = 3;
    h.bucket[0] = 100;
    h.bucket[1] = 500;
    h.bucket[2] = 900;
    assert_int_equal(slu_names_new(&names, &err), SLU_OK);
    assert_int_equal(slu_names_set_source(names, 5, "five", &err), SLU_OK);
    assert_int_equal(slu_names_domain_number(names, "web", 3, &domain[0], &err),
                     SLU_OK);
    assert_int_equal(slu_names_domain_number(names, "code", 4, &domain[1], &err),
                     SLU_OK);
    struct slu_writer_cfg cfg = {0, true, names};
    assert_int_equal(slu_out_open(&out, path, &err), SLU_OK);
    assert_int_equal(slu_writer_open(&w, out, &h, &cfg, &err), SLU_OK);
    slu_batch_init(&b, 4);
    for (uint64_t i = 0; i < N; i++) {
        size_t n = length_of(i), cut = n / 3;
        char id[16];
        struct slu_seg seg[3] = {{5, i, 0, n - 2 * cut, SLU_NO_DOMAIN, 0, 0},
                                 {5, N + i, i, cut, domain[i % 2], 0, 0},
                                 {SLU_PADDING, 0, 0, cut, SLU_NO_DOMAIN, 0, 0}};
        if (i % 3 == 0)
            seg[0].id_len = (uint32_t)sprintf(id, "id-%llu", (unsigned long long)i);
        for (size_t k = 0; k < n; k++)
            tok[k] = (uint32_t)(i * 3 + k);
        assert_int_equal(
            slu_batch_add(&b, tok, n, seg, cut ? 3 : 1, (const uint8_t *)id, &err),
            SLU_OK);
    }
    assert_int_equal(slu_writer_put(w, &b, &err), SLU_OK);
    assert_int_equal(slu_writer_close(w, &err), SLU_OK);
    slu_batch_release(&b);
    slu_names_free(names);
}

static void check_sequence(const struct slu_batch *b, const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    uint64_t i = s->document;
    char id[16];

    assert_int_equal(q->len_tok, length_of(i));
    for (uint64_t k = 0; k < q->len_tok; k++)
        assert_int_equal(slu_batch_id(b, q->tok_off + k), i * 3 + k);
    assert_int_equal(s->id_len,
                     i % 3 ? 0 : sprintf(id, "id-%llu", (unsigned long long)i));
    if (s->id_len)
        assert_memory_equal(b->str.data + s->id_off, id, s->id_len);
    assert_int_equal(s->domain, SLU_NO_DOMAIN);
    assert_int_equal(q->n_seg, length_of(i) / 3 ? 3 : 1);
    if (q->n_seg == 3) {
        assert_int_equal(s[1].domain, 1 - i % 2); /* numbered by first use: 1, then 0 */
        assert_int_equal(s[2].source, SLU_PADDING);
    }
}

/* Documents of the first segments in output order; how many there are. */
static size_t run(uint64_t *order, struct slu_permute_cfg cfg,
                  struct slu_permute_result *r)
{
    struct slu_err err = SLU_ERR_INIT;
    const char *paths[] = {path};
    struct slu_reader_cfg rc = {paths, 1, 0};
    struct slu_reader *reader;
    struct slu_permute *p;
    struct slu_batch b;
    struct slu_sum total;
    struct slu_u128 sum = {0, 0};
    size_t n = 0;
    int got;

    cfg.tmpdir = "/tmp";
    assert_int_equal(slu_reader_open(&reader, &rc, &err), SLU_OK);
    assert_int_equal(slu_permute_new(&p, &cfg, &err), SLU_OK);
    if (slu_permute_read(p, reader, 2, &total, NULL, NULL, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    slu_batch_init(&b, 4);
    while ((got = slu_permute_next(p, NULL, &b, 10000, &err)) == SLU_OK) {
        for (size_t i = 0; i < b.n_seq; i++) {
            check_sequence(&b, &b.seq[i]);
            order[n++] = b.seg[b.seq[i].seg_off].document;
        }
        slu_batch_sum(&b);
        sum = slu_u128_add(sum, b.sum.checksum);
    }
    assert_int_equal(got, SLU_EOF);
    *r = *slu_permute_result(p);
    assert_int_equal(r->out.sequences, n);
    if (cfg.max_tokens == UINT64_MAX) {
        sum = slu_u128_add(sum, r->left_checksum);
        assert_int_equal(slu_u128_cmp(sum, total.checksum), 0);
        assert_int_equal(n + r->not_sampled.sequences + r->no_bucket.sequences, N);
    }
    slu_batch_release(&b);
    slu_permute_free(p);
    slu_reader_free(reader);
    return n;
}

static void test_order(void **state)
{
    (void)state;
    uint64_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    struct slu_permute_result r;
    struct slu_permute_cfg cfg = {.budget_byte = 64 << 20,
                                  .n_threads = 1,
                                  .seed = 7,
                                  .sample = 1,
                                  .max_tokens = UINT64_MAX};

    assert_int_equal(run(a, cfg, &r), N);
    assert_int_equal(r.spilled_byte, 0);
    cfg.budget_byte = 1 << 20;
    for (cfg.n_threads = 1; cfg.n_threads < 4; cfg.n_threads++) {
        assert_int_equal(run(b, cfg, &r), N);
        assert_true(r.spilled_byte > 0);
        assert_memory_equal(a, b, N * sizeof *a);
    }
    cfg.seed = 8;
    run(b, cfg, &r);
    assert_memory_not_equal(a, b, N * sizeof *a);
    uint64_t fixed = 0, in_order = 0;
    for (size_t i = 0; i < N; i++) {
        fixed += b[i] == i;
        in_order += i && b[i] == b[i - 1] + 1;
    }
    assert_true(fixed < 10 && in_order < 10); /* both are about 1 by chance */
    free(a);
    free(b);
}

static void test_left_out(void **state)
{
    (void)state;
    uint64_t *all = malloc(N * sizeof *all), *some = malloc(N * sizeof *some);
    char *in = calloc(N, 1);
    struct slu_permute_result r;
    struct slu_permute_cfg cfg = {.budget_byte = 16 << 20,
                                  .n_threads = 2,
                                  .sample = 0.5,
                                  .max_tokens = UINT64_MAX};

    size_t n = run(all, cfg, &r);
    assert_true(n > N * 0.45 && n < N * 0.55);
    for (size_t i = 0; i < n; i++)
        in[all[i]] = 1;
    cfg.sample = 0.1;
    size_t k = run(some, cfg, &r);
    assert_true(k > N * 0.08 && k < N * 0.12);
    for (size_t i = 0; i < k; i++)
        assert_true(in[some[i]]);
    cfg.sample = 0;
    assert_int_equal(run(some, cfg, &r), 0);

    cfg.sample = 1;
    run(all, cfg, &r);
    cfg.max_tokens = 100000;
    n = run(some, cfg, &r);
    assert_memory_equal(all, some,
                        n * sizeof *some); /* the beginning of the same order */
    assert_true(r.out.tokens <= 100000 && r.out.tokens + length_of(all[n]) > 100000);

    cfg.max_tokens = UINT64_MAX;
    cfg.buckets_only = true;
    n = run(some, cfg, &r);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(length_of(some[i]) % 400, 100);
    assert_true(n > 0);
    free(all);
    free(some);
    free(in);
}

/* all[0, n) put apart by length, the order within each as it was. */
static void part_by_length(uint64_t *all, size_t n)
{
    static const size_t length[] = {100, 500, 900};
    uint64_t *to = malloc((n + 1) * sizeof *to);
    size_t k = 0;
    for (unsigned l = 0; l < 3; l++)
        for (size_t i = 0; i < n; i++)
            if (length_of(all[i]) == length[l])
                to[k++] = all[i];
    assert_int_equal(k, n);
    memcpy(all, to, n * sizeof *to);
    free(to);
}

/* Bucket after bucket: the order within each, and with a limit the choice, are those of
 * the one order. */
static void test_by_bucket(void **state)
{
    (void)state;
    uint64_t *all = malloc(N * sizeof *all), *apart = malloc(N * sizeof *apart);
    struct slu_permute_result r;
    struct slu_permute_cfg cfg = {.n_threads = 2, .sample = 1, .buckets_only = true};
    static const uint64_t limits[] = {UINT64_MAX, 0,      99,     100,    5000,
                                      100001,     250000, 600000, 1 << 30};

    for (unsigned order = SLU_ORDER_RANDOM; order <= SLU_ORDER_KEEP; order++)
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
            for (unsigned budget = 1; budget <= 64; budget *= 64) {
                cfg.order = order;
                cfg.budget_byte = (uint64_t)budget << 20;
                cfg.max_tokens = limits[l];
                cfg.by_bucket = false;
                size_t n = run(all, cfg, &r);
                uint64_t n_tok = r.out.tokens;
                for (size_t i = 1; order == SLU_ORDER_KEEP && i < n; i++)
                    assert_true(all[i - 1] < all[i]);
                cfg.by_bucket = true;
                assert_int_equal(run(apart, cfg, &r), n);
                assert_int_equal(r.out.tokens, n_tok);
                part_by_length(all, n);
                assert_memory_equal(all, apart, n * sizeof *all);
                assert_true(n > 1000 || limits[l] <= 250000);
            }
    free(all);
    free(apart);
}

static int setup(void **state)
{
    (void)state;
    make_stream();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_by_bucket),
    };
    snprintf(path, sizeof path, "/tmp/sluice-permute-%d.tks", (int)getpid());
    return cmocka_run_group_tests(tests, setup, teardown);
}
