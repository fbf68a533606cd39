#include "long_doc.h"

#include <stdlib.h>

#include "lib/flow/bytelog.h"
#include "lib/stream/token_hash.h"

#define STEP_TOK ((uint64_t)256 << 10) /* ids per read */
/* bytes of text per read: a multiple of 3, for base64 */
#define STEP_BYTE ((size_t)3 << 18)

struct slu_long_doc {
    struct slu_long_doc_cfg cfg;
    struct slu_writer *w;
    struct slu_seg seg;
    struct slu_bytelog *ids, *text; /* made at the first bytes to keep */
    struct slu_token_hash *hash;    /* made at the first ids */
    uint64_t n_tok, n_byte;
    uint64_t spilled_byte; /* of earlier documents */
    struct slu_buf scratch;
};

int slu_long_doc_new(struct slu_long_doc **d, const struct slu_long_doc_cfg *cfg,
                     struct slu_err *err)
{
    *d = calloc(1, sizeof **d);
    if (!*d)
        return slu_fail_nomem(err, sizeof **d);
    (*d)->cfg = *cfg;
    return SLU_OK;
}

static uint64_t spilled(const struct slu_long_doc *d)
{
    return (d->ids ? slu_bytelog_spilled(d->ids) : 0) +
           (d->text ? slu_bytelog_spilled(d->text) : 0) +
           (d->hash ? slu_token_hash_spilled(d->hash) : 0);
}

static void clear(struct slu_long_doc *d)
{
    d->spilled_byte += spilled(d);
    slu_bytelog_free(d->ids);
    slu_bytelog_free(d->text);
    slu_token_hash_free(d->hash);
    slu_buf_release(&d->scratch);
    d->ids = d->text = NULL;
    d->hash = NULL;
    d->n_tok = d->n_byte = 0;
}

int slu_long_doc_begin(struct slu_long_doc *d, struct slu_writer *w,
                       const struct slu_seg *seg, struct slu_err *err)
{
    (void)err;
    clear(d);
    d->w = w;
    d->seg = *seg;
    return SLU_OK;
}

static int put(struct slu_long_doc *d, struct slu_bytelog **s, const void *p, size_t n,
               struct slu_err *err)
{
    uint64_t budget = d->cfg.budget_byte / (d->cfg.rejects ? 2 : 1);
    int rc = *s ? SLU_OK : slu_bytelog_new(s, budget, d->cfg.tmpdir, err);
    return rc ? rc : slu_bytelog_put(*s, p, n, err);
}

int slu_long_doc_ids(struct slu_long_doc *d, const void *tok, uint64_t n_tok,
                     struct slu_err *err)
{
    int rc = SLU_OK;
    if (!d->hash)
        rc = slu_token_hash_new(&d->hash, d->cfg.budget_byte / 16, d->cfg.tmpdir, err);
    if (!rc && !d->cfg.hold && !d->n_tok)
        rc = slu_writer_begin(d->w, &d->seg, NULL, err);
    if (!rc)
        rc = slu_token_hash_add(d->hash, tok, n_tok, d->cfg.tok_bytes, err);
    if (rc)
        return rc;
    d->n_tok += n_tok;
    return d->cfg.hold ? put(d, &d->ids, tok, (size_t)n_tok * d->cfg.tok_bytes, err)
                       : slu_writer_part(d->w, tok, n_tok, err);
}

int slu_long_doc_text(struct slu_long_doc *d, const void *p, size_t n,
                      struct slu_err *err)
{
    d->n_byte += n;
    return d->cfg.rejects ? put(d, &d->text, p, n, err) : SLU_OK;
}

/* Writes the held ids. */
static int write_held(struct slu_long_doc *d, struct slu_err *err)
{
    size_t width = d->cfg.tok_bytes;
    int rc = slu_writer_begin(d->w, &d->seg, NULL, err);
    if (!rc)
        rc = slu_bytelog_rewind(d->ids, (size_t)STEP_TOK * width, err);
    for (uint64_t left = d->n_tok; !rc && left;) {
        uint64_t n = left < STEP_TOK ? left : STEP_TOK;
        const void *tok;
        rc = slu_bytelog_get(d->ids, &tok, (size_t)n * width, err);
        if (!rc)
            rc = slu_writer_part(d->w, tok, n, err);
        left -= n;
    }
    return rc;
}

void slu_long_doc_choose(struct slu_long_doc *d, struct slu_writer *w)
{
    d->w = w;
}

int slu_long_doc_end(struct slu_long_doc *d, struct slu_err *err)
{
    struct slu_u128 hash;
    int rc = d->cfg.hold ? write_held(d, err) : SLU_OK;
    if (!rc)
        rc = slu_token_hash_end(d->hash, &hash, err);
    if (!rc)
        rc = slu_writer_end(d->w, hash, err);
    clear(d);
    return rc;
}

static int write_reject(struct slu_long_doc *d, const struct slu_rejected *r,
                        struct slu_err *err)
{
    struct slu_buf *b = &d->scratch;
    int rc = slu_reject_begin(b, r, err);
    if (!rc && d->text)
        rc = slu_bytelog_rewind(d->text, STEP_BYTE, err);
    for (uint64_t left = d->n_byte; !rc && left;) {
        size_t n = left < STEP_BYTE ? (size_t)left : STEP_BYTE;
        const void *p;
        rc = slu_bytelog_get(d->text, &p, n, err);
        if (!rc)
            rc = slu_reject_raw(b, p, n, err);
        if (!rc)
            rc = slu_out_write(d->cfg.rejects, b->data, b->len, err);
        slu_buf_clear(b);
        left -= n;
    }
    if (!rc)
        rc = slu_reject_end(b, err);
    return rc ? rc : slu_out_write(d->cfg.rejects, b->data, b->len, err);
}

int slu_long_doc_drop(struct slu_long_doc *d, const struct slu_rejected *r,
                      struct slu_err *err)
{
    int rc = r && d->cfg.rejects ? write_reject(d, r, err) : SLU_OK;
    clear(d);
    return rc;
}

uint64_t slu_long_doc_spilled(const struct slu_long_doc *d)
{
    return d->spilled_byte + spilled(d);
}

void slu_long_doc_free(struct slu_long_doc *d)
{
    if (!d)
        return;
    clear(d);
    free(d);
}
