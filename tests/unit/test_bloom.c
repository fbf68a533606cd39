/* test_bloom.c - the Bloom filter: the false positives that its size promises, the same
 * bits at every SIMD level, no added key is missed; the error of HyperLogLog. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/ngrams/bloom.h"
#include "lib/dedup/ngrams/hll.h"

static uint64_t mix(uint64_t z)
{
    z = (z + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum { CHUNK = 4096 };

static void fill(struct slu_bloom *b, uint64_t from, uint64_t n)
{
    uint64_t h[CHUNK];

    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? n - i : CHUNK;
        for (size_t k = 0; k < m; k++)
            h[k] = mix(from + i + k);
        slu_bloom_add(b, h, m);
    }
}

static uint64_t hits(const struct slu_bloom *b, uint64_t from, uint64_t n)
{
    uint64_t h[CHUNK], t = 0;
    uint8_t hit[CHUNK];

    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t m = n - i < CHUNK ? n - i : CHUNK, ones = 0;
        for (size_t k = 0; k < m; k++)
            h[k] = mix(from + i + k);
        uint64_t got = slu_bloom_test(b, h, m, m, hit);
        for (size_t k = 0; k < m; k++)
            ones += hit[k];
        assert_int_equal(got, ones);
        t += got;
    }
    return t;
}

/* At every size and rate: the figures of a filter that holds just what it was made for
 * are within 3 sigma of the rate it says it has, which is at most the rate asked for
 * plus what its blocks' filling varies. The textbook's formula for the same bits fails
 * this by hundreds of sigma. */
static void test_rate(void **state)
{
    static const uint64_t size[] = {1, 10, 200, 5000, 100000, 3000000};
    static const double rate[] = {0.5, 0.1, 0.01, 0.001, 0.0001};
    const uint64_t probes = 4000000;
    struct slu_err err = SLU_ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (size_t k = 0; k < sizeof rate / sizeof *rate; k++) {
            struct slu_bloom *b;
            uint64_t n_block;
            assert_int_equal(slu_bloom_blocks(size[i], rate[k], &n_block, &err), 0);
            assert_int_equal(slu_bloom_new(&b, n_block, &err), 0);
            fill(b, 0, size[i]);
            assert_int_equal(hits(b, 0, size[i]), size[i]);
            struct slu_bloom_fill f = slu_bloom_fill(b);
            double want = slu_bloom_expected_rate(size[i], n_block);
            /* Deviation of the rate over fillings of the filter: the rate of a block
             * varies by less than three times its mean at these rates. */
            double spread = 3 * want / sqrt((double)n_block);
            assert_true(want <= rate[k]);
            if (n_block > 20)
                assert_true(fabs(f.rate - want) <= 3 * spread);
            double got = (double)hits(b, UINT64_C(1) << 40, probes);
            double sigma = sqrt((double)probes * f.rate * (1 - f.rate));
            if (fabs(got - (double)probes * f.rate) > 3 * sigma + 1)
                fail_msg("%llu keys at %g: %g false positives, expected %g +- %g",
                         (unsigned long long)size[i], rate[k], got,
                         (double)probes * f.rate, sigma);
            assert_int_equal(f.bits, n_block * 512);
            slu_bloom_free(b);
        }
}

static void test_size(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    uint64_t n, m;

    (void)state;
    /* 10.1 bits a key at 0.01, linear in the keys. */
    assert_int_equal(slu_bloom_blocks(1000000000, 0.01, &n, &err), 0);
    assert_true(n * 512 > UINT64_C(10050000000) && n * 512 < UINT64_C(10200000000));
    assert_int_equal(slu_bloom_blocks(2000000000, 0.01, &m, &err), 0);
    assert_in_range(m, 2 * n - 1, 2 * n);
    assert_true(slu_bloom_expected_rate(1000000000, n) <= 0.01);
    assert_true(slu_bloom_expected_rate(1000000000, n) > 0.0097);
    assert_true(slu_bloom_expected_rate(1000000000, 1) == 1);
    assert_int_equal(slu_bloom_blocks(0, 0.01, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(slu_bloom_blocks(10, 1e-7, &n, &err), SLU_E_LIMIT);
    assert_int_equal(slu_bloom_blocks(10, 0.6, &n, &err), SLU_E_LIMIT);
    assert_int_equal(slu_bloom_blocks(10, NAN, &n, &err), SLU_E_LIMIT);
    assert_int_equal(slu_bloom_blocks(UINT64_MAX, 0.01, &n, &err), SLU_E_LIMIT);
    assert_int_equal(slu_bloom_new(&(struct slu_bloom *){0}, UINT64_MAX, &err),
                     SLU_E_NOMEM);
}

/* Each level adds and tests as the portable one, at any count and alignment. */
static void test_levels(void **state)
{
    static const char *const level[] = {"avx2", "avx512"};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_bloom *a, *b;
    uint64_t h[300];
    uint8_t x[300], y[300];

    (void)state;
    for (size_t l = 0; l < 2; l++) {
        assert_int_equal(slu_bloom_new(&a, 97, &err), 0);
        assert_int_equal(slu_bloom_new(&b, 97, &err), 0);
        assert_true(slu_bloom_simd(a, "portable"));
        assert_false(slu_bloom_simd(a, "none"));
        if (!slu_bloom_simd(b, level[l])) {
            slu_bloom_free(a);
            slu_bloom_free(b);
            continue;
        }
        for (uint64_t i = 0; i < 3000; i++) {
            size_t n = mix(i) % 7, m = mix(i + 5) % 300;
            for (size_t k = 0; k < 300; k++)
                h[k] = k == 0 ? UINT64_MAX : mix(i * 300 + k);
            slu_bloom_add(a, h, n);
            slu_bloom_add(b, h, n);
            assert_int_equal(slu_bloom_test(a, h, m, 300, x),
                             slu_bloom_test(b, h, m, m, y));
            assert_memory_equal(x, y, m);
        }
        struct slu_bloom_fill p = slu_bloom_fill(a), q = slu_bloom_fill(b);
        assert_int_equal(p.bits_set, q.bits_set);
        assert_true(p.rate == q.rate);
        slu_bloom_free(a);
        slu_bloom_free(b);
    }
}

/* Mean and spread of the estimate over independent sets, 5 orders of magnitude; merged
 * sketches and repeated hashes. */
static void test_hll(void **state)
{
    static const uint64_t size[] = {0, 1, 100, 5000, 60000, 200000, 1000000};
    struct slu_hll *h = calloc(2, sizeof *h);
    enum { TRIES = 12 };

    (void)state;
    assert_non_null(h);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        double bias = 0;
        for (uint64_t t = 0; t < TRIES; t++) {
            uint64_t x[CHUNK];
            memset(h, 0, 2 * sizeof *h);
            for (uint64_t k = 0; k < size[i]; k += CHUNK) {
                size_t n = size[i] - k < CHUNK ? size[i] - k : CHUNK;
                for (size_t j = 0; j < n; j++)
                    x[j] = mix((t << 40) + k + j);
                slu_hll_add(&h[k / CHUNK % 2], x, n);
                slu_hll_add(&h[0], x, n / 2);
            }
            slu_hll_merge(&h[0], &h[1]);
            double e = slu_hll_estimate(&h[0]) - (double)size[i];
            assert_true(fabs(e) <= 4 * SLU_HLL_ERROR * (double)size[i]);
            bias += e / TRIES;
        }
        assert_true(fabs(bias) <= 3 * SLU_HLL_ERROR * (double)size[i] / sqrt(TRIES));
    }
    free(h);
}

/* Beyond what can be counted here: registers as 10^12 hashes would leave them. */
static void test_hll_large(void **state)
{
    struct slu_hll *h = calloc(1, sizeof *h);
    const double n = 1e12, m = 1 << SLU_HLL_BITS;

    (void)state;
    assert_non_null(h);
    for (unsigned i = 0; i < 1 << SLU_HLL_BITS; i++) {
        /* P(register <= k) = exp(-n / m * 2^-k) */
        double u = ((double)(mix(i) >> 11) + 0.5) / 9007199254740992.0;
        double k = ceil(log2(n / m / -log(u)));
        h->reg[i] = (uint8_t)(k < 0 ? 0 : k > 49 ? 49 : k);
    }
    assert_true(fabs(slu_hll_estimate(h) - n) <= 3 * SLU_HLL_ERROR * n);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),      cmocka_unit_test(test_size),
        cmocka_unit_test(test_levels),    cmocka_unit_test(test_hll),
        cmocka_unit_test(test_hll_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
