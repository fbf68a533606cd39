#include "ingest_private.h"

#include <stdlib.h>
#include <string.h>

#include "formats/text/long_doc.h"

struct slu_long_text {
    const struct slu_ingest_cfg *cfg;
    struct slu_ingest_account *account;
    struct slu_long_doc *doc;
    struct slu_hasher *hash; /* of the text; NULL: no choice needs it */
    unsigned tok_bytes;

    /* The current text. */
    bool is_open;
    uint32_t domain;
    uint64_t n_tok, n_byte; /* so far; n_tok without BOS and EOS */
    uint64_t bad_off;       /* UINT64_MAX: none so far */
};

int slu_long_text_new(struct slu_long_text **text, const struct slu_ingest_cfg *cfg,
                      struct slu_ingest_account *account, uint64_t memory_byte,
                      struct slu_err *err)
{
    struct slu_long_text *t = *text = calloc(1, sizeof *t);
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->cfg = cfg;
    t->account = account;
    t->tok_bytes = slu_tokenizer_vocab_size(cfg->tokenizer) <= 65536 ? 2 : 4;
    struct slu_long_doc_cfg doc = {
        /* Known only at the end of a text: whether it is valid, to which stream it
         * goes, and whether there is room for it. */
        .hold = cfg->skip_bad || slu_ingest_chooses(cfg) || cfg->max_tok != UINT64_MAX,
        .rejects = cfg->rejects,
        .budget_byte = memory_byte,
        .tmpdir = cfg->tmpdir,
        .tok_bytes = t->tok_bytes,
    };
    int rc = slu_ingest_chooses(cfg) ? slu_hasher_new(&t->hash, err) : SLU_OK;
    return rc ? rc : slu_long_doc_new(&t->doc, &doc, err);
}

void slu_long_text_free(struct slu_long_text *t)
{
    if (!t)
        return;
    slu_long_doc_free(t->doc);
    slu_hasher_free(t->hash);
    free(t);
}

static int open_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                     struct slu_err *err)
{
    struct slu_seg seg = t->cfg->seg;
    seg.source = ref->source;
    seg.document = ref->document;
    const char *domain = slu_source_at(t->cfg->sources, ref->source)->domain;
    int rc = domain ? slu_names_domain_number(t->cfg->names, domain, strlen(domain),
                                              &seg.domain, err)
                    : SLU_OK;
    if (rc)
        return rc;
    t->domain = seg.domain;
    t->is_open = true;
    t->n_tok = t->n_byte = 0;
    t->bad_off = UINT64_MAX;
    if (t->hash)
        slu_hasher_clear(t->hash);
    return slu_long_doc_begin(t->doc, t->cfg->out, &seg, err);
}

static int put_special(struct slu_long_text *t, uint64_t id, struct slu_err *err)
{
    const uint16_t half = (uint16_t)id;
    const uint32_t whole = (uint32_t)id;
    return slu_long_doc_ids(t->doc, t->tok_bytes == 2 ? (const void *)&half : &whole, 1,
                            err);
}

/* Drops the text, with a line in the rejects. */
static int reject_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                       unsigned *outcome, struct slu_err *err)
{
    struct slu_rejected r = {
        .source = slu_source_at(t->cfg->sources, ref->source),
        .ref = ref,
        .reason = ref->reject ? ref->reject : SLU_REJECT_INVALID_UTF8,
        .off_byte = ref->reject ? t->n_byte : t->bad_off,
    };
    *outcome = OUTCOME_REJECTED + r.reason;
    return slu_long_doc_drop(t->doc, &r, err);
}

/* Ends the text and puts it into the stream that `outcome` selects. SLU_EOF, and the
 * text is dropped, if max_tok leaves no room. */
static int keep_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                     unsigned outcome, struct slu_err *err)
{
    uint64_t n_tok = t->n_tok + t->cfg->bos + t->cfg->eos;
    if (outcome == OUTCOME_KEPT &&
        !slu_ingest_fits(t->account, 0, n_tok, ref->source, ref->document)) {
        int rc = slu_long_doc_drop(t->doc, NULL, err);
        return rc ? rc : SLU_EOF;
    }
    if (t->cfg->eos) {
        int rc = put_special(t, slu_tokenizer_eos(t->cfg->tokenizer), err);
        if (rc)
            return rc;
    }
    slu_long_doc_choose(t->doc,
                        outcome == OUTCOME_HELD ? t->cfg->holdout_out : t->cfg->out);
    return slu_long_doc_end(t->doc, err);
}

static int close_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                      struct slu_err *err)
{
    struct slu_u128 none = {0, 0};
    unsigned outcome =
        slu_ingest_choose(t->cfg, t->hash ? slu_hasher_end(t->hash) : none);
    int rc;

    t->is_open = false;
    if (outcome != OUTCOME_NOT_SAMPLED && t->n_tok == 0)
        outcome = OUTCOME_EMPTY;
    if (ref->reject || t->bad_off != UINT64_MAX)
        rc = reject_text(t, ref, &outcome, err);
    else if (outcome == OUTCOME_KEPT || outcome == OUTCOME_HELD)
        rc = keep_text(t, ref, outcome, err);
    else
        rc = slu_long_doc_drop(t->doc, NULL, err);
    struct slu_outcome_row row = {
        .what = (uint8_t)outcome,
        .lacks = outcome < OUTCOME_REJECTED ? slu_ingest_lacks(t->cfg) : 0,
        .value = t->n_byte & SLU_OUTCOME_MAX};
    return rc ? rc
              : slu_ingest_account(t->account, row, t->domain,
                                   t->n_tok + t->cfg->bos + t->cfg->eos, 0, err);
}

int slu_long_text_put(struct slu_long_text *t, const struct slu_text_part *part,
                      struct slu_err *err)
{
    const struct slu_record_ref *ref = part->ref;
    int rc = t->is_open ? SLU_OK : open_text(t, ref, err);
    t->n_byte += ref->len;
    if (t->hash)
        slu_hasher_add(t->hash, part->raw, ref->len);
    if (!rc)
        rc = slu_long_doc_text(t->doc, part->raw, ref->len, err);
    if (t->bad_off == UINT64_MAX)
        t->bad_off = part->bad_off;
    if (!rc && part->n_tok && t->bad_off == UINT64_MAX) {
        if (t->cfg->bos && t->n_tok == 0)
            rc = put_special(t, slu_tokenizer_bos(t->cfg->tokenizer), err);
        if (!rc)
            rc = slu_long_doc_ids(t->doc, part->tok, part->n_tok, err);
        t->n_tok += part->n_tok;
    }
    if (!rc && !ref->goes_on)
        rc = close_text(t, ref, err);
    t->account->stat->spill_byte = slu_long_doc_spilled(t->doc);
    return rc;
}
