/* test_decompose.c - decomposition: runs in batches, draws, counts from the histogram,
 * and the histogram. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/histogram.h"
#include "lib/decompose/decompose.h"
#include "lib/stream/lengths.h"

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

static void bad_buckets(void **unused)
{
    (void)unused;
    struct slu_decompose none = {0}, zero = {.bucket = {0}, .n_bucket = 1},
                         twice = {.bucket = {4, 4}, .n_bucket = 2},
                         down = {.bucket = {8, 4}, .n_bucket = 2},
                         big = {.bucket = {SLU_MAX_BUCKET_TOK + 1}, .n_bucket = 1};
    assert_int_equal(slu_decompose_init(&none, NULL), SLU_E_USAGE);
    assert_int_equal(slu_decompose_init(&zero, NULL), SLU_E_USAGE);
    assert_int_equal(slu_decompose_init(&twice, NULL), SLU_E_USAGE);
    assert_int_equal(slu_decompose_init(&down, NULL), SLU_E_USAGE);
    assert_int_equal(slu_decompose_init(&big, NULL), SLU_E_USAGE);
}

/* The paper's appendix F on its own mixtures: bucket tokens in, means out. All ten
 * printed figures are ours rounded to the nearest, halves up (exactly halfway are the
 * contexts 1019.5, 511.5, 335.5 and 1343.5: l - 1 in place of l would not do). */
static void paper_means(void **unused)
{
    (void)unused;
    static const struct {
        double tok[8], length, context;
    } row[] = {{{3, 6, 10, 17, 21, 17, 13, 9}, 482, 1018},
               {{12, 12, 12, 12, 12, 12, 12, 12}, 257, 1020},
               {{0, 0, 0, 0, 96, 0, 0, 0}, 1024, 512},
               {{16, 16, 16, 16, 16, 16, 0, 0}, 195, 336},
               {{0, 0, 16, 16, 16, 16, 16, 16}, 780, 1344}};
    struct slu_decompose d = cutter(64, 8192, false);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct slu_decompose_stat s = {0};
        for (unsigned k = 0; k < 8; k++)
            s.piece[k] = (uint64_t)(row[i].tok[k] * (double)(1 << 30)) / d.bucket[k];
        assert_true(floor(slu_decompose_mean_length(&d, &s) + .5) == row[i].length);
        assert_true(floor(slu_decompose_mean_context(&d, &s) + .5) == row[i].context);
    }
}

static void add(struct slu_batch *b, const struct slu_seg *seg, uint64_t n_seg)
{
    uint16_t tok[4096];
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_seg; i++)
        for (uint64_t k = 0; k < seg[i].len_tok; k++)
            tok[n++] = (uint16_t)(seg[i].document * 1000 + seg[i].offset + k);
    assert_int_equal(slu_batch_add(b, tok, n, seg, n_seg, (const uint8_t *)"id", NULL),
                     SLU_OK);
}

static void check_batch(const struct slu_batch *b, const uint64_t (*want)[3], size_t n)
{
    assert_int_equal(b->n_seq, n);
    for (size_t i = 0; i < n; i++) {
        const struct slu_seg *s = &b->seg[b->seq[i].seg_off];
        assert_int_equal(b->seq[i].n_seg, 1);
        assert_int_equal(s->document, want[i][0]);
        assert_int_equal(s->offset, want[i][1]);
        assert_int_equal(s->len_tok, want[i][2]);
        assert_int_equal(b->seq[i].len_tok, want[i][2]);
        for (uint64_t k = 0; k < s->len_tok; k++)
            assert_int_equal(slu_batch_id(b, b->seq[i].tok_off + k),
                             (uint16_t)(s->document * 1000 + s->offset + k));
    }
}

static void runs_of_a_document(void **unused)
{
    (void)unused;
    struct slu_batch b;
    struct slu_decompose_scratch x = {0};
    struct slu_decompose_stat s = {0};
    struct slu_account l = {0};
    struct slu_decompose d = cutter(4, 8, false);
    slu_batch_init(&b, 2);
    /* Two halves of document 1 are one run; 3 and 4 stand alone, a gap parts 5, padding
     * goes. */
    static const struct slu_seg packed[] = {
        {0, 1, 0, 5, 7, 0, 0}, {0, 1, 5, 7, 7, 0, 0}, {0, 3, 0, 3, 7, 2, 0},
        {0, 4, 2, 4, 7, 0, 0}, {0, 5, 0, 4, 7, 0, 0}, {0, 5, 8, 4, 7, 0, 0},
        {0, 6, 0, 2, 7, 0, 0}, {0, 6, 0, 2, 7, 0, 0}, {SLU_PADDING, 0, 0, 9, 0, 0, 0},
    };
    static const struct slu_seg only_padding = {SLU_PADDING, 0, 0, 3, 0, 0, 0};
    static const uint64_t want[][3] = {{1, 0, 8}, {1, 8, 4}, {3, 0, 3}, {4, 2, 4},
                                       {5, 0, 4}, {5, 8, 4}, {6, 0, 2}, {6, 0, 2}};
    add(&b, packed, 9);
    add(&b, &only_padding, 1);
    assert_int_equal(slu_decompose_batch(&d, &b, &x, &s, NULL), SLU_OK);
    check_batch(&b, want, 8);
    assert_int_equal(b.seg[b.seq[2].seg_off].id_len, 2);
    slu_decompose_account(&s, &l);
    l.in = (struct slu_count){5, 2, 43};
    slu_batch_sum(&b);
    l.out = b.sum.n;
    assert_int_equal(slu_account_check(&l, NULL), SLU_OK);
    /* The same with tails dropped, and again on the result. */
    d.drop_tails = true;
    memset(&s, 0, sizeof s);
    assert_int_equal(slu_decompose_batch(&d, &b, &x, &s, NULL), SLU_OK);
    assert_int_equal(b.n_seq, 5);
    assert_int_equal(s.tail_dropped.sequences, 3);
    assert_int_equal(s.tail_dropped.documents, 3);
    assert_int_equal(s.tail_dropped.tokens, 7);
    assert_int_equal(s.created, 0);
    slu_batch_release(&b);
    slu_decompose_scratch_release(&x);
}

/* slu_decompose_count predicts from a histogram what cutting the documents gives. */
static void counted_as_cut(void **unused)
{
    (void)unused;
    for (int trial = 0; trial < 50; trial++) {
        struct slu_decompose d = cutter(1 + rnd(2), 1 << (3 + rnd(5)), rnd(2));
        struct slu_decompose_stat cut = {0}, counted = {0};
        struct slu_decompose_scratch x = {0};
        struct slu_batch b;
        d.drop_tails = rnd(2);
        d.min_len_tok = rnd(2) * rnd(40);
        d.max_len_tok = rnd(2) * (100 + rnd(900));
        slu_batch_init(&b, 2);
        for (uint64_t i = 0; i < 200; i++) {
            struct slu_seg seg = {0, i, 0, 1 + rnd(1 + rnd(1200)), 0, 0, 0};
            add(&b, &seg, 1);
            slu_decompose_count(&d, seg.len_tok, 1, &counted);
        }
        assert_int_equal(slu_decompose_batch(&d, &b, &x, &cut, NULL), SLU_OK);
        assert_memory_equal(&cut, &counted, sizeof cut);
        slu_batch_release(&b);
        slu_decompose_scratch_release(&x);
    }
}

/* A draw hangs on the place of the cut alone; the sum of all draws is as it always was.
 */
static void draws(void **unused)
{
    (void)unused;
    struct slu_decompose d = cutter(4, 16, false);
    d.random = true;
    unsigned count[3] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        int k = slu_decompose_next(&d, 1, i, 3 * i, 32 + i % 5);
        assert_int_equal(k, slu_decompose_next(&d, 1, i, 3 * i, 1000));
        count[k]++;
    }
    assert_in_range(count[0], 3800, 4200); /* 4/7, 2/7, 1/7 */
    assert_in_range(count[1], 1850, 2150);
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 31), 2);
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 3), -1);
    d.label_tokens = true;
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 32), 2);
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 4), -1);
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 5), 0);
    assert_int_equal(slu_decompose_next(&d, 1, 2, 3, 0), -1);
}

static void histogram(void **unused)
{
    (void)unused;
    enum { N = 100001, BINS = 5000 };
    uint64_t *a = calloc(BINS, 8), *b = calloc(BINS, 8);
    uint32_t *len = malloc(N * sizeof *len);
    assert_true(len && a && b);
    for (size_t i = 0; i < N; i++)
        len[i] = (uint32_t)rnd(1 + rnd(2 * BINS)); /* some are past the last bin */
    static const size_t part[] = {0, 1, 4095, 4097, N};
    for (size_t p = 0; p < sizeof part / sizeof *part; p++) {
        slu_histogram_ref(len, part[p], a, BINS);
        slu_histogram_cpu(len, part[p], b, BINS);
        assert_memory_equal(a, b, BINS * sizeof *a);
        slu_histogram_ref(len, part[p], a, 7);
        slu_histogram_cpu(len, part[p], b, 7);
        assert_memory_equal(a, b, BINS * sizeof *a);
    }
    free(len);
    free(a);
    free(b);
}

static void lengths(void **unused)
{
    (void)unused;
    struct slu_lengths *l;
    struct slu_length_count *row;
    struct slu_err err = SLU_ERR_INIT;
    size_t n;
    uint64_t left = 4096, huge = UINT64_C(1) << 40;
    uint64_t some[] = {3, huge, 3, 70, huge, huge + 1, 0};
    assert_int_equal(slu_lengths_new(&l, NULL, NULL, &err), SLU_OK);
    assert_int_equal(slu_lengths_rows(l, &row, &n, &err), SLU_OK);
    assert_int_equal(n, 0);
    free(row);
    for (int i = 0; i < 100; i++)
        assert_int_equal(slu_lengths_add(l, some, 7, &err), SLU_OK);
    assert_int_equal(slu_lengths_rows(l, &row, &n, &err), SLU_OK);
    static const uint64_t want[][2] = {{0, 100}, {3, 200}, {70, 100}};
    assert_int_equal(n, 5);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(row[i].len_tok, want[i][0]);
        assert_int_equal(row[i].count, want[i][1]);
    }
    assert_int_equal(row[3].len_tok, huge);
    assert_int_equal(row[3].count, 200);
    assert_int_equal(row[4].count, 100);
    free(row);
    slu_lengths_free(l);
    assert_int_equal(slu_lengths_new(&l, NULL, &left, &err), SLU_OK);
    uint64_t long_one = 100000;
    assert_int_equal(slu_lengths_add(l, &long_one, 1, &err), SLU_E_LIMIT);
    slu_lengths_free(l);
    slu_lengths_free(NULL);
}

/* Whatever there is here, the answers are the same on the device and off it. */
static void device(void **unused)
{
    (void)unused;
    struct slu_device d;
    struct slu_err err = SLU_ERR_INIT;
    int n, code = slu_device_count(&n);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CPU, 0, &err), SLU_OK);
    assert_int_equal(d.ordinal, -1);
    assert_string_equal(d.name, "cpu");
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_AUTO, 1000, &err), SLU_OK);
    assert_int_equal(d.ordinal, -1);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CUDA, 1000, &err), SLU_E_DEVICE);
    assert_true(strlen(slu_device_error(code)) > 0);
    if (code != 0 || n == 0) {
        assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CUDA, 0, &err), SLU_E_DEVICE);
        skip();
    }
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CUDA, 0, &err), SLU_OK);
    struct slu_lengths *on, *off;
    struct slu_length_count *a, *b;
    size_t n_a, n_b;
    assert_int_equal(slu_lengths_new(&on, &d, NULL, &err), SLU_OK);
    assert_int_equal(slu_lengths_new(&off, NULL, NULL, &err), SLU_OK);
    for (int i = 0; i < 200000; i++) {
        uint64_t len = rnd(1 + rnd(1 << (i / 10000)));
        assert_int_equal(slu_lengths_add(on, &len, 1, &err), SLU_OK);
        assert_int_equal(slu_lengths_add(off, &len, 1, &err), SLU_OK);
    }
    assert_int_equal(slu_lengths_rows(on, &a, &n_a, &err), SLU_OK);
    assert_int_equal(slu_lengths_rows(off, &b, &n_b, &err), SLU_OK);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a * sizeof *a);
    free(a);
    free(b);
    slu_lengths_free(on);
    slu_lengths_free(off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_buckets),
        cmocka_unit_test(paper_means),
        cmocka_unit_test(runs_of_a_document),
        cmocka_unit_test(counted_as_cut),
        cmocka_unit_test(draws),
        cmocka_unit_test(histogram),
        cmocka_unit_test(lengths),
        cmocka_unit_test(device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
