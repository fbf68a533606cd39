#include "bloom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_private.h"
#include "lib/base/pages.h"
#include "lib/base/simd.h"

enum { BLOCK_BITS = 8 * SLU_BLOOM_BLOCK_BYTE, STEPS = 16 /* bits for each key */ };

struct slu_bloom {
    uint64_t *block; /* n_block blocks of BLOOM_WORDS */
    uint64_t n_block;
    size_t n_byte; /* mapped */
    const struct bloom_kernel *kernel;
};

/* The best level comes first. */
static const struct bloom_kernel *const kernels[] = {
#if defined(__x86_64__)
    &bloom_avx512,
    &bloom_avx2,
#endif
    &bloom_portable,
};

static const struct bloom_kernel *kernel_named(const char *level)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (slu_has_simd(kernels[i]->level) &&
            (!level || !strcmp(level, kernels[i]->level)))
            return kernels[i];
    }
    return NULL;
}

bool slu_bloom_simd(struct slu_bloom *b, const char *level)
{
    const struct bloom_kernel *k = kernel_named(level);

    if (k)
        b->kernel = k;
    return k != NULL;
}

/* ---- size ---- */

/* The mean over blocks that have on average `load` keys each. */
static double rate_of(double load)
{
    /* p: probability of i keys; rest: (63/64)^i. */
    double p = exp(-load), rest = 1, t = 0;
    double end = load + 12 * sqrt(load) + 40;

    for (unsigned i = 0; i < end; i++) {
        double f = 1 - rest;
        f *= f;
        f *= f;
        t += p * f * f;
        p *= load / (i + 1);
        rest *= 63.0 / 64;
    }
    return t;
}

double slu_bloom_expected_rate(uint64_t n_key, uint64_t n_block)
{
    double load = (double)n_key / (double)n_block;

    /* Beyond that exp() underflows, and the filter is full. */
    return load < 700 ? rate_of(load) : 1;
}

int slu_bloom_blocks(uint64_t n_key, double fp_rate, uint64_t *n_block,
                     struct slu_err *err)
{
    unsigned step = STEPS;

    if (!(fp_rate >= SLU_BLOOM_MIN_RATE && fp_rate <= SLU_BLOOM_MAX_RATE))
        return slu_fail(
            err, SLU_E_LIMIT,
            "%g is not a false-positive rate for a Bloom filter; choose one "
            "from %g to %g",
            fp_rate, SLU_BLOOM_MIN_RATE, SLU_BLOOM_MAX_RATE);
    if (n_key >> 56)
        return slu_fail(err, SLU_E_LIMIT, "more than 2^56 keys for a Bloom filter");
    while (rate_of((double)BLOCK_BITS * STEPS / step) > fp_rate)
        step++;
    unsigned __int128 bits = (unsigned __int128)n_key * step;
    *n_block = (uint64_t)((bits + BLOCK_BITS * STEPS - 1) / (BLOCK_BITS * STEPS));
    *n_block += *n_block == 0;
    return SLU_OK;
}

/* ---- the filter ---- */

int slu_bloom_new(struct slu_bloom **out, uint64_t n_block, struct slu_err *err)
{
    *out = NULL;
    if (n_block >> 57)
        return slu_fail_nomem(err, UINT64_MAX);
    struct slu_bloom *b = calloc(1, sizeof *b);
    if (!b)
        return slu_fail_nomem(err, sizeof *b);
    b->n_block = n_block;
    b->n_byte = (size_t)n_block * SLU_BLOOM_BLOCK_BYTE;
    b->kernel = kernel_named(NULL);
    /* Every probe hits another page: with small pages most probes would miss the TLB as
     * well. */
    b->block = slu_pages_new(b->n_byte, SLU_PAGES_HUGE);
    if (!b->block) {
        int rc = slu_fail_nomem(err, b->n_byte);
        free(b);
        return rc;
    }
    *out = b;
    return SLU_OK;
}

void slu_bloom_free(struct slu_bloom *b)
{
    if (!b)
        return;
    slu_pages_free(b->block, b->n_byte);
    free(b);
}

uint64_t slu_bloom_test(const struct slu_bloom *b, const uint64_t *hash, size_t n,
                        size_t n_ahead, uint8_t *hit)
{
    return b->kernel->test(b->block, b->n_block, hash, n, n_ahead, hit);
}

void slu_bloom_add(struct slu_bloom *b, const uint64_t *hash, size_t n)
{
    b->kernel->add(b->block, b->n_block, hash, n);
}

struct slu_bloom_fill slu_bloom_fill(const struct slu_bloom *b)
{
    struct slu_bloom_fill f = {.bits = b->n_block * BLOCK_BITS};

    for (uint64_t i = 0; i < b->n_block; i++) {
        const uint64_t *w = b->block + BLOOM_WORDS * i;
        double p = 1;
        for (unsigned k = 0; k < BLOOM_WORDS; k++) {
            unsigned n = (unsigned)__builtin_popcountll(w[k]);
            f.bits_set += n;
            p *= n / 64.0;
        }
        f.rate += p;
    }
    f.rate /= (double)b->n_block;
    return f;
}
