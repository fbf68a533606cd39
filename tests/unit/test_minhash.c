/* test_minhash.c - MinHash: the levels compared with a plain version, and recall with
 * its formula. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/dedup/near/minhash.h"

static const char *const LEVELS[] = {"portable", "avx2", "avx512", "neon"};
#define N_LEVEL (sizeof LEVELS / sizeof *LEVELS)

/* The signature as minhash.h defines it, word by word. */
static void plain_sign(uint64_t seed, unsigned n_fn, const uint64_t *hash, size_t n,
                       uint32_t *sig)
{
    for (unsigned k = 0; k < n_fn; k++) {
        uint64_t x = slu_draw(seed, k, 0, 0, 0);
        sig[k] = UINT32_MAX;
        for (size_t i = 0; i < n; i++) {
            uint32_t h =
                ((uint32_t)(hash[i] >> 32) ^ (uint32_t)x) * ((uint32_t)(x >> 32) | 1);
            sig[k] = h < sig[k] ? h : sig[k];
        }
    }
}

static void levels(void **state)
{
    static const unsigned SHAPE[][2] = {{1, 1},   {1, 5},   {4, 4},  {1, 17}, {14, 8},
                                        {5, 6},   {20, 13}, {3, 32}, {8, 16}, {26, 11},
                                        {93, 15}, {1, 112}, {2, 80}};
    static const size_t SIZES[] = {0, 1, 2, 3, 7, 20, 511, 512, 513, 1500};
    static uint64_t hash[1500];
    static uint32_t want[1500], sig[1500];
    struct slu_minhash *m;
    (void)state;

    for (size_t i = 0; i < 1500; i++)
        hash[i] = slu_draw(1, i, 0, 0, 0);
    for (size_t s = 0; s < sizeof SHAPE / sizeof *SHAPE; s++) {
        const unsigned n_fn = SHAPE[s][0] * SHAPE[s][1];
        assert_int_equal(slu_minhash_new(&m, SHAPE[s][0], SHAPE[s][1], s, NULL), 0);
        for (size_t z = 0; z < sizeof SIZES / sizeof *SIZES; z++) {
            plain_sign(s, n_fn, hash, SIZES[z], want);
            for (size_t l = 0; l < N_LEVEL; l++) {
                if (!slu_minhash_use(m, LEVELS[l]))
                    continue;
                assert_string_equal(slu_minhash_level(m), LEVELS[l]);
                memset(sig, 1, sizeof sig);
                slu_minhash_sign(m, hash, SIZES[z], sig);
                assert_memory_equal(sig, want, n_fn * sizeof *sig);
                assert_int_equal(sig[n_fn], 0x01010101);
            }
        }
        slu_minhash_free(m);
    }
}

static void limits(void **state)
{
    struct slu_minhash *m;
    struct slu_err err;
    (void)state;

    assert_int_equal(slu_minhash_new(&m, 0, 8, 0, &err), SLU_E_USAGE);
    assert_int_equal(slu_minhash_new(&m, 8, 0, 0, &err), SLU_E_USAGE);
    assert_int_equal(slu_minhash_new(&m, 16385, 1, 0, &err), SLU_E_USAGE);
    assert_int_equal(slu_minhash_new(&m, 65536, 65536, 0, &err), SLU_E_USAGE);
    assert_null(m);
    slu_minhash_free(NULL);
    assert_int_equal(slu_minhash_new(&m, 16384, 1, 0, &err), SLU_OK);
    assert_false(slu_minhash_use(m, "sse9"));
    assert_true(slu_minhash_use(m, "portable"));
    assert_true(slu_minhash_use(m, NULL));
    slu_minhash_free(m);
}

static void keys(void **state)
{
    struct slu_minhash *m;
    uint32_t sig[6] = {1, 2, 1, 2, 0xFFFFFFFF, 3};
    uint64_t key[3];
    uint8_t b[12];
    (void)state;

    assert_int_equal(slu_minhash_new(&m, 3, 2, 0, NULL), 0);
    slu_minhash_band_keys(m, sig, key);
    for (unsigned k = 0; k < 3; k++) {
        slu_put_le32(b, sig[2 * k]);
        slu_put_le32(b + 4, sig[2 * k + 1]);
        slu_put_le32(b + 8, k);
        assert_true(key[k] == slu_hash64(b, 12));
    }
    assert_true(key[0] != key[1]); /* the same rows in another band */
    slu_minhash_free(m);
}

/* ---- recall ---- */

/* Two sets of 64-bit hashes with `both` in common and `one` of their own each. */
static void make_pair(uint64_t id, size_t both, size_t one, uint64_t *a, uint64_t *b)
{
    for (size_t i = 0; i < both; i++)
        a[i] = b[i] = slu_draw(7, id, 0, i, 0);
    for (size_t i = 0; i < one; i++) {
        a[both + i] = slu_draw(7, id, 1, i, 0);
        b[both + i] = slu_draw(7, id, 2, i, 0);
    }
}

/* Pairs of sets of about `size` in bins of 0.05 from 0.6 to 1: the pairs that share a
 * band, against the sum of what the formula says of each; the distance in standard
 * deviations is less than 3 in every bin. */
static void check_recall(unsigned bands, unsigned rows, size_t size, unsigned n_pair,
                         uint64_t seed)
{
    uint64_t *a = malloc(2 * size * sizeof *a), *b = malloc(2 * size * sizeof *b);
    uint32_t *sig = malloc(2 * bands * rows * sizeof *sig);
    uint64_t *key = malloc(2 * bands * sizeof *key);
    struct slu_minhash *m;

    assert_int_equal(slu_minhash_new(&m, bands, rows, seed, NULL), 0);
    for (unsigned bin = 0; bin < 8; bin++) {
        double want = 0, variance = 0;
        unsigned found = 0;
        for (unsigned p = 0; p < n_pair; p++) {
            /* both / (both + 2 one) in [0.6 + bin / 20, 0.6 + (bin + 1) / 20) */
            uint64_t id = ((uint64_t)size << 32 | bin << 24) + p;
            double s =
                0.6 + (bin + slu_draw_below(slu_draw(9, id, 0, 0, 0), 1000) / 1e3) / 20;
            size_t one = (size_t)lround((1 - s) * (double)size / (1 + s));
            size_t both = size - one;
            double j = (double)both / (double)(both + 2 * one);
            double hit = 1 - pow(1 - pow(j, rows), bands);
            make_pair(id, both, one, a, b);
            slu_minhash_sign(m, a, size, sig);
            slu_minhash_sign(m, b, size, sig + bands * rows);
            slu_minhash_band_keys(m, sig, key);
            slu_minhash_band_keys(m, sig + bands * rows, key + bands);
            bool same = false;
            for (unsigned k = 0; k < bands && !same; k++)
                same = key[k] == key[bands + k];
            found += same;
            want += hit;
            variance += hit * (1 - hit);
        }
        double sigma = (found - want) / sqrt(variance + 1e-9);
        if (fabs(sigma) >= 3 && fabs(found - want) >= 3)
            fail_msg("%ux%u, sets of %zu, bin %u: %u of %u share a band, %.1f by the "
                     "formula, %.1f sigma",
                     bands, rows, size, bin, found, n_pair, want, sigma);
    }
    slu_minhash_free(m);
    free(a);
    free(b);
    free(sig);
    free(key);
}

static void recall(void **state)
{
    static const unsigned SHAPE[][2] = {{14, 8}, {20, 13}, {26, 11}, {93, 15}};
    (void)state;

    for (size_t s = 0; s < 4; s++) {
        check_recall(SHAPE[s][0], SHAPE[s][1], 20, 2000, 0);
        check_recall(SHAPE[s][0], SHAPE[s][1], 300, 1000, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(limits),
        cmocka_unit_test(keys),
        cmocka_unit_test(recall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
