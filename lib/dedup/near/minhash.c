#include "lib/dedup/near/minhash.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/base/simd.h"
#include "lib/dedup/near/minhash_level.h"

enum {
    HASHES = 512 /* hashes of a block, 4 KiB, which all functions see before the next
                    block */
};

struct slu_minhash {
    unsigned n_band, n_row;
    size_t n, n_fn; /* number of functions, without and with padding */
    const struct level *level;
    uint32_t *flip, *factor; /* n_fn each, one allocation */
};

static const struct level {
    const char *name;
    slu_minhash_fn *sign;
} levels[] = {
/* The best level comes first. */
#if defined(__x86_64__)
    {"avx512", slu_minhash_avx512},
    {"avx2", slu_minhash_avx2},
#elif defined(__aarch64__)
    {"neon", slu_minhash_neon},
#endif
    {"portable", slu_minhash_portable},
};
#define N_LEVEL (sizeof levels / sizeof *levels)

bool slu_minhash_use(struct slu_minhash *m, const char *level)
{
    for (size_t i = 0; i < N_LEVEL; i++) {
        if (slu_has_simd(levels[i].name) &&
            (!level || !strcmp(levels[i].name, level))) {
            m->level = &levels[i];
            return true;
        }
    }
    return false;
}

const char *slu_minhash_level(const struct slu_minhash *m)
{
    return m->level->name;
}

int slu_minhash_new(struct slu_minhash **out, unsigned n_band, unsigned n_row,
                    uint64_t seed, struct slu_err *err)
{
    *out = NULL;
    if (!n_band || !n_row || n_band > SLU_MINHASH_MAX_K / n_row)
        return slu_fail(err, SLU_E_USAGE,
                        "bands times rows must be 1 to %d; %u times %u is not",
                        SLU_MINHASH_MAX_K, n_band, n_row);
    struct slu_minhash *m = calloc(1, sizeof *m);
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->n_band = n_band;
    m->n_row = n_row;
    m->n = (size_t)n_band * n_row;
    m->n_fn = (m->n + SLU_MINHASH_BLOCK - 1) / SLU_MINHASH_BLOCK * SLU_MINHASH_BLOCK;
    m->flip = aligned_alloc(64, 2 * m->n_fn * sizeof *m->flip);
    if (!m->flip) {
        int rc = slu_fail_nomem(err, 2 * m->n_fn * sizeof *m->flip);
        free(m);
        return rc;
    }
    m->factor = m->flip + m->n_fn;
    for (size_t k = 0; k < m->n_fn; k++) {
        uint64_t x = slu_draw(seed, k, 0, 0, 0);
        m->flip[k] = (uint32_t)x;
        m->factor[k] = (uint32_t)(x >> 32) | 1;
    }
    slu_minhash_use(m, NULL);
    *out = m;
    return SLU_OK;
}

void slu_minhash_free(struct slu_minhash *m)
{
    if (!m)
        return;
    free(m->flip);
    free(m);
}

void slu_minhash_sign(const struct slu_minhash *m, const uint64_t *hash, size_t n,
                      uint32_t *sig)
{
    uint32_t min[SLU_MINHASH_MAX_K] __attribute__((aligned(64)));

    memset(min, 0xFF, m->n_fn * sizeof *min);
    for (size_t i = 0; i < n; i += HASHES)
        m->level->sign(m->flip, m->factor, m->n_fn, hash + i,
                       n - i < HASHES ? n - i : HASHES, min);
    memcpy(sig, min, m->n * sizeof *sig);
}

void slu_minhash_band_keys(const struct slu_minhash *m, const uint32_t *sig,
                           uint64_t *key)
{
    uint8_t b[4 * (SLU_MINHASH_MAX_K + 1)];

    for (unsigned band = 0; band < m->n_band; band++) {
        for (unsigned r = 0; r < m->n_row; r++)
            slu_put_le32(b + 4 * r, *sig++);
        slu_put_le32(b + 4 * m->n_row, band);
        key[band] = slu_hash64(b, 4 * ((size_t)m->n_row + 1));
    }
}
