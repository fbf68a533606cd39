/* Keys by which items are found to be related; see related.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/dedup/near/minhash.h"
#include "lib/pack/related.h"

enum { NGRAM = 2, SEED = 5 };

struct slu_relater {
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
};

int slu_relater_new(struct slu_relater **out, const struct slu_header *h,
                    const struct slu_vocab_table *vocab, struct slu_err *err)
{
    struct slu_relater *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    struct slu_shingler_cfg cfg = {.unit = vocab ? SLU_UNIT_WORD : SLU_UNIT_TOKEN,
                                   .n = NGRAM,
                                   .vocab = vocab,
                                   .tok_bytes = h->tok_bytes,
                                   .eos = h->eos,
                                   .bos = h->bos,
                                   .pad = h->pad};
    int rc = slu_shingler_new(&r->shingler, &cfg, err);
    if (!rc)
        rc = slu_minhash_new(&r->minhash, SLU_RELATED_BANDS, 1, SEED, err);
    if (rc) {
        slu_relater_free(r);
        return rc;
    }
    *out = r;
    return SLU_OK;
}

void slu_relater_free(struct slu_relater *r)
{
    if (!r)
        return;
    slu_shingler_free(r->shingler);
    slu_minhash_free(r->minhash);
    free(r);
}

void slu_relater_scratch_release(struct slu_relater_scratch *x)
{
    slu_hashes_release(&x->hashes);
}

/* Returns the length of the folder of name[0, n): the bytes before the last slash. */
static size_t folder(const char *name, size_t n)
{
    while (n && name[n - 1] != '/')
        n--;
    return n ? n - 1 : 0;
}

static uint32_t not_zero(uint64_t hash)
{
    uint32_t v = (uint32_t)(hash >> 32);
    return v ? v : 1;
}

int slu_relater_keys(const struct slu_relater *r, struct slu_relater_scratch *x,
                     const void *tok, uint64_t n_tok, const char *name, size_t n_name,
                     uint32_t *key, struct slu_err *err)
{
    int rc = slu_shingle(r->shingler, tok, n_tok, &x->hashes, err);
    if (rc)
        return rc;
    memset(key, 0, SLU_RELATED_KEYS * sizeof *key);
    if (x->hashes.n) {
        slu_minhash_sign(r->minhash, x->hashes.hash, x->hashes.n, key);
        for (unsigned k = 0; k < SLU_RELATED_BANDS; k++)
            key[k] = key[k] ? key[k] : 1;
    }
    size_t own = folder(name, n_name), above = folder(name, own);
    if (own)
        key[SLU_RELATED_BANDS] = not_zero(slu_hash64(name, own));
    if (above)
        key[SLU_RELATED_BANDS + 1] = not_zero(slu_hash64(name, above));
    return SLU_OK;
}
