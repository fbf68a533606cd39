#include "ingest_private.h"

#include <math.h>
#include <stdlib.h>

#include "formats/long_doc.h"

/* Which random variable a document's draw is: "holdout". */
#define HOLDOUT_DRAW UINT64_C(0x686f6c646f757400)

struct slu_long_text {
    const struct slu_ingest_cfg *cfg;
    struct slu_ledger *ledger;
    struct slu_ingest_stat *stat;
    struct slu_long_doc *doc;
    uint32_t domain;
    unsigned tok_bytes;

    /* Of the text whose parts come. */
    bool is_open;
    bool held; /* it goes to holdout_out */
    uint64_t n_tok, created_tok, n_byte;
    uint64_t bad_off; /* UINT64_MAX: none so far */
};

int slu_long_text_new(struct slu_long_text **text, const struct slu_ingest_cfg *cfg,
                      uint32_t domain, uint64_t memory_byte, struct slu_ledger *ledger,
                      struct slu_ingest_stat *stat, struct slu_err *err)
{
    struct slu_long_text *t = *text = calloc(1, sizeof *t);
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->cfg = cfg;
    t->ledger = ledger;
    t->stat = stat;
    t->domain = domain;
    t->tok_bytes = slu_tokenizer_vocab_size(cfg->tokenizer) <= 65536 ? 2 : 4;
    struct slu_long_doc_cfg doc = {
        .hold = cfg->skip_bad, /* until it is known to be good as a whole */
        .rejects = cfg->rejects,
        .budget_byte = memory_byte,
        .tmpdir = cfg->tmpdir,
        .tok_bytes = t->tok_bytes,
    };
    return slu_long_doc_new(&t->doc, &doc, err);
}

void slu_long_text_free(struct slu_long_text *t)
{
    if (!t)
        return;
    slu_long_doc_free(t->doc);
    free(t);
}

bool slu_ingest_is_held(const struct slu_ingest_cfg *cfg,
                        const struct slu_record_ref *ref)
{
    if (!(cfg->holdout > 0))
        return false;
    uint64_t draw =
        slu_draw(cfg->seed, ref->source, ref->document, HOLDOUT_DRAW, 0) >> 11;
    return (double)draw < ldexp(cfg->holdout, 53);
}

static int open_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                     struct slu_err *err)
{
    struct slu_seg seg = {
        .source = ref->source, .document = ref->document, .domain = t->domain};
    t->is_open = true;
    t->held = slu_ingest_is_held(t->cfg, ref);
    t->n_tok = t->created_tok = t->n_byte = 0;
    t->bad_off = UINT64_MAX;
    return slu_long_doc_begin(t->doc, t->held ? t->cfg->holdout_out : t->cfg->out, &seg,
                              err);
}

static int put_special(struct slu_long_text *t, uint64_t id, struct slu_err *err)
{
    const uint16_t half = (uint16_t)id;
    const uint32_t whole = (uint32_t)id;
    t->created_tok++;
    return slu_long_doc_ids(t->doc, t->tok_bytes == 2 ? (const void *)&half : &whole, 1,
                            err);
}

/* The text is not taken, or there is nothing in it. */
static int drop_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                     struct slu_err *err)
{
    struct slu_rejected r = {
        .source = &t->cfg->sources->item[ref->source],
        .ref = ref,
        .reason = ref->reject ? ref->reject : SLU_REJECT_INVALID_UTF8,
        .off_byte = ref->reject ? t->n_byte : t->bad_off,
    };
    struct slu_count one = {1, 1, 0};
    if (!ref->reject && t->bad_off == UINT64_MAX) {
        slu_ledger_drop(t->ledger, "empty", one);
        return slu_long_doc_drop(t->doc, NULL, err);
    }
    slu_ledger_drop(t->ledger, slu_reject_name(r.reason), one);
    t->stat->rejected_by[r.reason]++;
    t->stat->rejected++;
    return slu_long_doc_drop(t->doc, &r, err);
}

static int close_text(struct slu_long_text *t, const struct slu_record_ref *ref,
                      struct slu_err *err)
{
    t->is_open = false;
    slu_count_add(&t->ledger->in, (struct slu_count){1, 1, 0});
    if (ref->reject || t->bad_off != UINT64_MAX || t->n_tok == 0)
        return drop_text(t, ref, err);
    if (t->cfg->eos) {
        int rc = put_special(t, slu_tokenizer_eos(t->cfg->tokenizer), err);
        if (rc)
            return rc;
    }
    t->ledger->in.tokens += t->n_tok;
    t->ledger->created.tokens += t->created_tok;
    t->stat->text_byte += t->n_byte;
    if (t->held)
        slu_ledger_drop(t->ledger, "holdout",
                        (struct slu_count){1, 1, t->n_tok + t->created_tok});
    return slu_long_doc_end(t->doc, err);
}

int slu_long_text_put(struct slu_long_text *t, const struct slu_text_part *part,
                      struct slu_err *err)
{
    const struct slu_record_ref *ref = part->ref;
    int rc = t->is_open ? SLU_OK : open_text(t, ref, err);
    t->n_byte += ref->len;
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
    t->stat->spill_byte = slu_long_doc_spilled(t->doc);
    return rc;
}
