#include "lib/dedup/against/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/minhash.h"
#include "lib/dedup/origin.h"
#include "lib/flow/workfile.h"

enum { HEAD = 3 }; /* numbers before the keys */

static void param_of(const struct slu_index_cfg *c, char *text, size_t n)
{
    const char *on = slu_on_param(c->trained);

    if (c->exact)
        snprintf(text, n, "dedup=exact%s", on);
    else
        snprintf(text, n, "dedup=near bands=%u rows=%u ngram=%u unit=%s seed=%llu%s",
                 c->n_band, c->n_row, c->n_gram, slu_unit_param(c->unit),
                 (unsigned long long)c->seed, on);
}

/* ---- writing ---- */

struct slu_index_out {
    struct slu_index_cfg cfg;
    struct slu_workfile_out *out;
    struct slu_workfile_head head;
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
    struct slu_buf plain; /* slu_batch_ids */
    struct slu_hashes hashes;
    uint32_t *sig;
    uint64_t *key;
    char param[256];
};

int slu_index_create(struct slu_index_out **out, const char *path,
                     const struct slu_index_cfg *cfg, const struct slu_header *h,
                     struct slu_names *names, struct slu_err *err)
{
    struct slu_index_out *x = calloc(1, sizeof *x);
    int rc;

    *out = NULL;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->head = (struct slu_workfile_head){.of = 1, .param = x->param};
    param_of(cfg, x->param, sizeof x->param);
    memcpy(x->head.fingerprint, h->fingerprint, 16);
    rc = slu_workfile_create(&x->out, path, SLU_WORKFILE_INDEX, err);
    if (!rc && !cfg->exact && names) {
        const struct slu_shingler_cfg sh = {.unit = cfg->unit,
                                            .n = cfg->n_gram,
                                            .vocab = slu_names_vocab(names),
                                            .tok_bytes = h->tok_bytes,
                                            .eos = h->eos,
                                            .bos = h->bos,
                                            .pad = h->pad};
        rc = slu_shingler_new(&x->shingler, &sh, err);
    }
    if (!rc && !cfg->exact) {
        rc = slu_minhash_new(&x->minhash, cfg->n_band, cfg->n_row, cfg->seed, err);
        x->sig = malloc((size_t)cfg->n_band * cfg->n_row * sizeof *x->sig);
        x->key = malloc(cfg->n_band * sizeof *x->key);
        if (!rc && (!x->sig || !x->key))
            rc = slu_fail_nomem(err, (uint64_t)cfg->n_band * cfg->n_row * 4);
    }
    if (rc)
        slu_index_abort(x);
    else
        *out = x;
    return rc;
}

static void release(struct slu_index_out *x)
{
    slu_shingler_free(x->shingler);
    slu_minhash_free(x->minhash);
    slu_buf_release(&x->plain);
    slu_hashes_release(&x->hashes);
    free(x->sig);
    free(x->key);
    free(x);
}

void slu_index_abort(struct slu_index_out *x)
{
    if (!x)
        return;
    slu_workfile_abort(x->out);
    release(x);
}

static int put_head(struct slu_index_out *x, uint64_t n_set, struct slu_u128 hash,
                    struct slu_err *err)
{
    const uint64_t head[HEAD] = {n_set, hash.lo, hash.hi};

    x->head.count[0]++;
    return slu_workfile_put(x->out, head, HEAD, err);
}

int slu_index_put_set(struct slu_index_out *x, struct slu_u128 hash,
                      const uint64_t *set, uint64_t n_set, struct slu_err *err)
{
    int rc = put_head(x, n_set, hash, err);

    x->head.count[1] += n_set;
    if (rc || n_set == 0)
        return rc;
    slu_minhash_sign(x->minhash, set, n_set, x->sig);
    slu_minhash_band_keys(x->minhash, x->sig, x->key);
    rc = slu_workfile_put(x->out, x->key, x->cfg.n_band, err);
    return rc ? rc : slu_workfile_put(x->out, set, n_set, err);
}

int slu_index_put_hash(struct slu_index_out *x, struct slu_u128 hash,
                       struct slu_err *err)
{
    return put_head(x, 1, hash, err);
}

static int put_near(struct slu_index_out *x, const void *tok, uint64_t n_tok,
                    struct slu_err *err)
{
    struct slu_hashes *s = &x->hashes;
    int rc = slu_shingle(x->shingler, tok, n_tok, s, err);

    if (!rc)
        rc = slu_hashes_to_set(s, err);
    return rc ? rc
              : slu_index_put_set(x, slu_set_hash128(s->hash, s->n), s->hash, s->n,
                                  err);
}

int slu_index_put(struct slu_index_out *x, const struct slu_batch *b,
                  struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        uint64_t n_ids;
        const void *ids;
        rc = slu_batch_ids(b, b->seq[i].tok_off, b->seq[i].len_tok, x->cfg.trained,
                           &x->plain, &ids, &n_ids, err);
        if (!rc && x->cfg.exact)
            rc = slu_index_put_hash(x, slu_hash_tokens(ids, n_ids, b->tok_bytes), err);
        else if (!rc)
            rc = put_near(x, ids, n_ids, err);
    }
    return rc;
}

int slu_index_close(struct slu_index_out *x, struct slu_err *err)
{
    if (!x)
        return SLU_OK;
    int rc = slu_workfile_close(x->out, &x->head, 1, err);

    release(x);
    return rc;
}

/* ---- reading ---- */

struct slu_index {
    struct slu_index_cfg cfg;
    struct slu_workfile *file;
    uint64_t *doc; /* keys and set of the current document */
    size_t cap;
    uint64_t n_doc;
};

/* Reports the first key=value in which two texts differ. */
static int param_differs(const char *path, const char *is, const char *want,
                         struct slu_err *err)
{
    for (size_t n, m;; is += n + 1, want += m + 1) {
        n = strcspn(is, " ");
        m = strcspn(want, " ");
        if (n != m || memcmp(is, want, n))
            return slu_fail(err, SLU_E_MISMATCH,
                            "%s: was made with %.*s, and this run has %.*s", path,
                            (int)n, is, (int)m, want);
        if (!is[n] || !want[m])
            return SLU_OK;
    }
}

int slu_index_open(struct slu_index **out, const char *path,
                   const struct slu_index_cfg *cfg, const struct slu_header *h,
                   struct slu_err *err)
{
    struct slu_workfile_head want = {.of = 1};
    struct slu_index *x = calloc(1, sizeof *x);
    char param[256];

    *out = NULL;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    param_of(cfg, param, sizeof param);
    int rc = slu_workfile_open(&x->file, path, SLU_WORKFILE_INDEX, err);
    if (!rc) {
        const struct slu_workfile_head *has = slu_workfile_head(x->file);
        bool any = !cfg->exact && cfg->unit != SLU_UNIT_TOKEN;
        enum slu_unit unit;
        memcpy(want.fingerprint, any ? has->fingerprint : h->fingerprint, 16);
        if (!cfg->exact && strstr(has->param, " unit="))
            rc = slu_unit_of(has->param, path, &unit, err);
        bool trained = strstr(has->param, slu_on_param(true));
        if (!rc && trained != cfg->trained)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: was made of %s, and this run compares %s", path,
                          trained ? "the tokens that are trained on" : "all tokens",
                          trained ? "all" : "those that are trained on");
    }
    if (!rc)
        rc = slu_workfile_match(x->file, &want, err);
    if (!rc)
        rc = param_differs(path, slu_workfile_head(x->file)->param, param, err);
    if (!rc && memcmp(slu_workfile_head(x->file)->fingerprint, want.fingerprint,
                      sizeof want.fingerprint))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was made with another tokenizer, so its ids mean something "
                      "else",
                      path);
    if (!rc)
        rc = slu_workfile_begin(x->file, 0, err);
    if (!rc)
        *out = x;
    else
        slu_index_free(x);
    return rc;
}

uint64_t slu_index_documents(const struct slu_index *x)
{
    return slu_workfile_head(x->file)->count[0];
}

struct slu_u128 slu_index_id(const struct slu_index *x)
{
    return slu_workfile_id(x->file);
}

void slu_index_free(struct slu_index *x)
{
    if (!x)
        return;
    slu_workfile_free(x->file);
    free(x->doc);
    free(x);
}

int slu_index_next(struct slu_index *x, struct slu_index_doc *d, struct slu_err *err)
{
    const uint64_t n_band = x->cfg.exact ? 0 : x->cfg.n_band;
    uint64_t v[HEAD], left = slu_workfile_left(x->file), need;

    if (!left) {
        int rc = slu_workfile_end(x->file, err);
        return rc ? rc
               : x->n_doc == slu_index_documents(x)
                   ? SLU_EOF
                   : slu_workfile_damaged(x->file, err);
    }
    int rc = slu_workfile_get(x->file, HEAD, v, err);
    if (rc)
        return rc;
    x->n_doc++;
    *d = (struct slu_index_doc){.hash = {v[1], v[2]}, .n_set = v[0]};
    left -= HEAD;
    need = x->cfg.exact || d->n_set == 0 ? 0 : n_band + d->n_set;
    if (x->cfg.exact ? d->n_set != 1 : d->n_set > left || need > left)
        return slu_workfile_damaged(x->file, err);
    rc = slu_grow(&x->doc, &x->cap, need, sizeof *x->doc, err);
    if (!rc)
        rc = slu_workfile_get(x->file, need, x->doc, err);
    d->key = x->doc;
    d->set = need ? x->doc + n_band : NULL;
    if (!rc && need && slu_u128_cmp(slu_set_hash128(d->set, d->n_set), d->hash))
        rc = slu_workfile_damaged(x->file, err);
    return rc;
}
