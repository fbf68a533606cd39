/* ingest_encode.c - parses, checks and encodes the records of a block, and decides the
 * outcome of each; any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text/ingest_job.h"

#define MAX_FIELD_BYTE 65535 /* of ids and names in a stream */

/* About the most bytes of waiting texts: enough for some full batches of the encoder,
 * and few enough to stay in the second-level cache. */
#define MAX_WAIT_BYTE ((size_t)128 << 10)
#define MAX_WAIT_DOC  1024

static void clear_job(struct slu_ingest_job *j)
{
    j->ids.n = 0;
    slu_batch_clear(&j->batch);
    slu_batch_clear(&j->holdout);
    slu_buf_clear(&j->rejects);
    j->n_outcome = j->n_repaired = 0;
    j->rc = SLU_OK;
    j->first.ref = j->last.ref = NULL;
}

/* Appends the outcome of the next record. */
static int settle(struct slu_ingest_job *j, unsigned what, unsigned lacks,
                  uint64_t value, struct slu_err *err)
{
    int rc = slu_grow(&j->outcome, &j->cap_outcome, j->n_outcome + 1,
                      sizeof *j->outcome, err);
    if (!rc)
        j->outcome[j->n_outcome++] = (struct slu_outcome_row){
            .what = (uint8_t)what, .lacks = lacks, .value = value & SLU_OUTCOME_MAX};
    return rc;
}

/* `w` is of use to the filters' reasons. */
static int reject(struct slu_ingest_run *g, struct slu_ingest_job *j,
                  const struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                  const struct slu_record *rec, struct slu_err *err)
{
    const bool is_rule = rec->reject == SLU_REJECT_RULES;
    struct slu_rejected r = {
        .source = slu_source_at(g->cfg->sources, ref->source),
        .ref = ref,
        .member =
            ref->member ? (const char *)j->block.members.data + ref->member - 1 : NULL,
        .raw = j->block.raw.data + ref->off,
        .json = j->block.json,
        .row = j->block.rows,
        .at_byte = j->block.at_byte,
        .reason = rec->reject,
        .off_byte = rec->off_byte,
        .which = rec->which,
        .field = g->cfg->field[rec->which],
        .why = w->why.msg,
        .rule = is_rule ? slu_rule_name(w->rule) : NULL,
    };
    const bool no_text =
        rec->reject == SLU_REJECT_MISSING_FIELD && rec->which == SLU_FIELD_TEXT;
    if (!slu_reject_is_filter(rec->reject) &&
        !(no_text ? g->cfg->skip_missing : g->cfg->skip_bad))
        return slu_reject_fail(&r, err);
    const bool no_field =
        rec->reject >= SLU_REJECT_MISSING_FIELD && rec->reject <= SLU_REJECT_BAD_SPANS;
    int rc = settle(
        j, is_rule ? OUTCOME_RULE + (unsigned)w->rule : OUTCOME_REJECTED + rec->reject,
        no_field ? 1U << rec->which : 0, j->rejects.len, err);
    return rc || !g->cfg->rejects ? rc : slu_reject_write(&j->rejects, &r, err);
}

/* Makes the record of a text that is a whole document. */
static void text_record(const struct slu_ingest_cfg *cfg, const uint8_t *p, size_t n,
                        struct slu_record *out)
{
    size_t valid = slu_utf8_valid_prefix(p, n);
    *out = (struct slu_record){.off_byte = UINT64_MAX,
                               .lacks = slu_ingest_lacks(cfg),
                               .text = (const char *)p,
                               .text_len = n,
                               .score = NAN};
    if (valid < n) {
        out->reject = SLU_REJECT_INVALID_UTF8;
        out->off_byte = valid;
    }
}

/* Reads the values of a row for the filters. */
static void row_any(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                    const uint8_t *p, struct slu_record *out)
{
    out->any = w->any;
    for (size_t i = 0; i < g->n_read; i++) {
        struct slu_value *v = &w->any[i];
        p = slu_row_get_any(p, v);
        if (v->type != SLU_VALUE_STRING ||
            slu_utf8_valid_prefix((const uint8_t *)v->string, v->len) == v->len)
            continue;
        out->reject = SLU_REJECT_UNFIT_FIELD;
        slu_fail(&w->why, SLU_E_FORMAT, "\"%.80s\" is not valid UTF-8", g->any[i]);
        return;
    }
}

/* Makes the record of a row of columns. Its reject is the first that applies, as for a
 * JSON record: invalid UTF-8, a missing field, a score that is not a number. *span: its
 * spans, which are not aligned. */
static void row_record(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                       const struct slu_block *b, const struct slu_record_ref *ref,
                       struct slu_record *out, const uint8_t **span)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    const struct slu_row_fields *f = &b->field[ref - b->rec];
    const uint8_t *p = b->raw.data + ref->off;
    const size_t len[SLU_FIELDS] = {ref->len, f->id_len, f->domain_len};
    *out = (struct slu_record){.off_byte = UINT64_MAX, .score = NAN};
    for (unsigned k = 0; k < SLU_FIELD_SCORE && !out->reject; p += len[k++]) {
        size_t valid = slu_utf8_valid_prefix(p, len[k]);
        if (valid == len[k])
            continue;
        out->reject = SLU_REJECT_INVALID_UTF8;
        out->which = k;
        if (k == SLU_FIELD_TEXT)
            out->off_byte = valid;
    }
    for (unsigned k = 0; k < SLU_FIELDS && !out->reject; k++)
        if (f->null >> k & 1 & ~(cfg->optional >> k)) {
            out->reject = SLU_REJECT_MISSING_FIELD;
            out->which = k;
            out->lacks = 1U << k;
        }
    if (!out->reject && !(f->null >> SLU_FIELD_SCORE & 1) && !isfinite(f->score)) {
        out->reject = SLU_REJECT_NOT_A_NUMBER;
        out->which = SLU_FIELD_SCORE;
    }
    if (!out->reject && f->bad_spans) {
        out->reject = SLU_REJECT_BAD_SPANS;
        out->which = SLU_FIELD_SPANS;
    }
    if (out->reject)
        return;
    if (cfg->field[SLU_FIELD_SCORE] && !(f->null >> SLU_FIELD_SCORE & 1))
        out->score = f->score;
    p = b->raw.data + ref->off;
    out->lacks = f->null;
    out->text = (const char *)p;
    out->text_len = len[SLU_FIELD_TEXT];
    out->id = (const char *)p + out->text_len;
    out->id_len = f->id_len;
    out->domain = out->id + f->id_len;
    out->domain_len = f->domain_len;
    p += len[SLU_FIELD_TEXT] + f->id_len + f->domain_len;
    *span = p;
    out->n_span = f->span_len / (2 * sizeof *out->span);
    row_any(g, w, p + f->span_len, out);
}

/* Makes the record of a row, whose spans come to aligned memory. */
static int take_row(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                    const struct slu_block *b, const struct slu_record_ref *ref,
                    struct slu_record *out, struct slu_err *err)
{
    const uint8_t *span = NULL;
    row_record(g, w, b, ref, out, &span);
    if (!out->n_span)
        return SLU_OK;
    slu_buf_clear(&w->row_spans);
    int rc =
        slu_buf_append(&w->row_spans, span, out->n_span * 2 * sizeof *out->span, err);
    out->span = (void *)w->row_spans.data;
    return rc;
}

/* Rejects fields that a stream cannot hold. Ids are any bytes, but domains are names
 * without NUL (formats/STREAM.md): two that differ only after a NUL would be one. */
static void check_fields(struct slu_record *rec)
{
    bool too_long = rec->id_len > MAX_FIELD_BYTE || rec->domain_len > MAX_FIELD_BYTE;

    if (rec->reject ||
        (!too_long && !(rec->domain_len && memchr(rec->domain, 0, rec->domain_len))))
        return;
    rec->reject = too_long ? SLU_REJECT_LONG_FIELD : SLU_REJECT_NUL_FIELD;
    rec->which = rec->id_len > MAX_FIELD_BYTE ? SLU_FIELD_ID : SLU_FIELD_DOMAIN;
}

/* Sets *number to the record's own domain, else to that of the source's path; it stays
 * where there is none. */
static int domain_of(struct slu_ingest_run *g, struct slu_ingest_worker *w,
                     const struct slu_record_ref *ref, const struct slu_record *rec,
                     uint32_t *number, struct slu_err *err)
{
    const char *name = rec->domain;
    size_t n = rec->domain_len;
    if (!n) {
        name = slu_source_at(g->cfg->sources, ref->source)->domain;
        n = name ? strlen(name) : 0;
    }
    if (!n)
        return SLU_OK;
    if (w->domain_len != n || memcmp(w->domain, name, n) != 0) {
        w->domain_len = 0;
        int rc = slu_grow(&w->domain, &w->domain_cap, n, 1, err);
        if (!rc)
            rc =
                slu_names_domain_number(g->cfg->names, name, n, &w->domain_number, err);
        if (rc)
            return rc;
        memcpy(w->domain, name, n);
        w->domain_len = n;
    }
    *number = w->domain_number;
    return SLU_OK;
}

static int add_special(struct slu_ingest_job *j, uint64_t id, struct slu_err *err)
{
    int rc = slu_grow(&j->ids.id, &j->ids.cap, j->ids.n + 1, sizeof *j->ids.id, err);
    if (!rc)
        j->ids.id[j->ids.n++] = (uint32_t)id;
    return rc;
}

static int encode(struct slu_ingest_run *g, struct slu_ingest_job *j,
                  struct slu_ingest_worker *w, const struct slu_record *rec,
                  struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    int rc = cfg->bos ? add_special(j, slu_tokenizer_bos(cfg->tokenizer), err) : SLU_OK;
    size_t before = j->ids.n;
    if (!rc)
        rc = slu_encode_parts(&g->encoders, (unsigned)(w - g->worker), rec->text,
                              rec->text_len, &j->ids, err);
    if (rc)
        return rc;
    if (j->ids.n == before) { /* the normalizer removed everything */
        j->ids.n -= cfg->bos;
        return SLU_OK;
    }
    return cfg->eos ? add_special(j, slu_tokenizer_eos(cfg->tokenizer), err) : SLU_OK;
}

/* Puts the metadata of a record behind a copy of its id; a value that does not fit its
 * field rejects the record. */
static int take_metadata(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                         struct slu_record *rec, struct slu_err *err)
{
    const struct slu_meta_fields *t = &g->cfg->metadata;
    int rc = SLU_OK;

    slu_buf_clear(&w->meta);
    if (rec->id_len)
        rc = slu_buf_append(&w->meta, rec->id, rec->id_len, &w->why);
    for (unsigned i = 0; i < t->n && !rc && rec->any; i++) {
        const size_t before = w->meta.len;
        rc = slu_meta_put_value(&w->meta, &t->field[i], &rec->any[g->meta_at + i],
                                &w->why);
        rec->lacks |= (unsigned)(w->meta.len == before) << (SLU_FIELDS + i);
    }
    if (rc == SLU_E_FORMAT) {
        rec->reject = SLU_REJECT_UNFIT_FIELD;
        return SLU_OK;
    }
    if (rc) {
        *err = w->why;
        return rc;
    }
    rec->id = (const char *)w->meta.data;
    rec->meta_len = w->meta.len - rec->id_len;
    return SLU_OK;
}

/* Adds a sequence of one segment, with the ids from `from` on. */
static int add_document(struct slu_ingest_run *g, struct slu_ingest_job *j,
                        struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                        const struct slu_record *rec, size_t from,
                        enum slu_outcome outcome, struct slu_err *err)
{
    struct slu_batch *b = outcome == OUTCOME_HELD ? &j->holdout : &j->batch;
    uint64_t len = j->ids.n - from;
    struct slu_seg seg = g->cfg->seg;
    seg.source = ref->source;
    seg.document = ref->document;
    seg.len_tok = len;
    seg.id_len = (uint32_t)rec->id_len;
    seg.id_off = b->str.len;
    seg.meta_len = rec->meta_len & 0xffffff;
    seg.extra[SLU_SCORE] = slu_score_bits(rec->score);
    int rc = domain_of(g, w, ref, rec, &seg.domain, err);
    if (!rc)
        rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (!rc && slu_seg_str(&seg))
        rc = slu_buf_append(&b->str, rec->id, slu_seg_str(&seg), err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){from, len, b->n_seg, 1};
    b->seg[b->n_seg++] = seg;
    return settle(j, outcome, rec->lacks, rec->text_len, err);
}

/* Marks what is trained on in the ids of a document, the job's from `from` on; rec's
 * reject is set if that cannot be told. *any: a token is. */
static int mark(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                const struct slu_ingest_worker *w, struct slu_record *rec, size_t from,
                bool *any, struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    const bool empty = j->ids.n == from;
    uint32_t *id = empty ? NULL : j->ids.id + from + cfg->bos;
    const size_t n = empty ? 0 : j->ids.n - from - cfg->bos - cfg->eos;
    int rc =
        slu_spans_mark(cfg->tokenizer, g->encoders.encoder[w - g->worker], rec->text,
                       rec->text_len, id, n, rec->span, rec->n_span, &rec->reject, err);
    rec->which = SLU_FIELD_SPANS;
    *any = !rc && !rec->reject && slu_mask_count(id, n);
    return rc;
}

/* Adds the outcome of a document whose ids are the job's from `from` on, and the
 * document if it is kept. */
static int settle_document(struct slu_ingest_run *g, struct slu_ingest_job *j,
                           struct slu_ingest_worker *w,
                           const struct slu_record_ref *ref, struct slu_record *rec,
                           size_t from, enum slu_outcome outcome, struct slu_err *err)
{
    bool trained = true;
    int rc = SLU_OK;
    if (outcome == OUTCOME_NOT_SAMPLED)
        return settle(j, outcome, rec->lacks, 0, err);
    if (g->cfg->field[SLU_FIELD_SPANS])
        rc = mark(g, j, w, rec, from, &trained, err);
    if (rc)
        return rc;
    if (rec->reject)
        return reject(g, j, w, ref, rec, err);
    if (j->ids.n == from)
        return settle(j, OUTCOME_EMPTY, rec->lacks, 0, err);
    if (!trained)
        return settle(j, OUTCOME_UNTRAINED, rec->lacks, 0, err);
    return add_document(g, j, w, ref, rec, from, outcome, err);
}

/* Encodes and adds a single document. */
static int take_document(struct slu_ingest_run *g, struct slu_ingest_job *j,
                         struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                         struct slu_record *rec, enum slu_outcome outcome,
                         struct slu_err *err)
{
    size_t from = j->ids.n;
    int rc = SLU_OK;
    if (rec->text_len > 0 && outcome != OUTCOME_NOT_SAMPLED)
        rc = encode(g, j, w, rec, err);
    if (rc)
        return slu_err_at(err, "%s: document %llu",
                          slu_source_at(g->cfg->sources, ref->source)->path,
                          (unsigned long long)ref->document);
    return settle_document(g, j, w, ref, rec, from, outcome, err);
}

/* ---- waiting texts ---- */

void slu_ingest_wait_release(struct slu_ingest_wait *w)
{
    free(w->doc);
    free(w->end);
    free(w->id_end);
    slu_buf_release(&w->text);
    slu_buf_release(&w->names);
    slu_buf_release(&w->spans);
    memset(w, 0, sizeof *w);
}

static void clear_waiting(struct slu_ingest_wait *w)
{
    w->n = 0;
    slu_buf_clear(&w->text);
    slu_buf_clear(&w->names);
    slu_buf_clear(&w->spans);
}

static int add_waiting(struct slu_ingest_wait *w, const struct slu_record_ref *ref,
                       const struct slu_record *rec, enum slu_outcome outcome,
                       struct slu_err *err)
{
    const size_t n = w->n + 1,
                 n_byte = outcome == OUTCOME_NOT_SAMPLED ? 0 : rec->text_len;
    int rc = slu_grow(&w->doc, &w->cap_doc, n, sizeof *w->doc, err);
    if (!rc)
        rc = slu_grow(&w->end, &w->cap_end, n, sizeof *w->end, err);
    if (!rc)
        rc = slu_grow(&w->id_end, &w->cap_id_end, n, sizeof *w->id_end, err);
    if (!rc && n_byte)
        rc = slu_buf_append(&w->text, rec->text, n_byte, err);
    if (!rc && rec->id_len + rec->meta_len)
        rc = slu_buf_append(&w->names, rec->id, rec->id_len + rec->meta_len, err);
    if (!rc && rec->domain_len)
        rc = slu_buf_append(&w->names, rec->domain, rec->domain_len, err);
    if (!rc && rec->n_span)
        rc = slu_buf_append(&w->spans, rec->span, rec->n_span * 2 * sizeof *rec->span,
                            err);
    if (rc)
        return rc;
    w->doc[w->n] = (struct slu_ingest_doc){ref, *rec, outcome};
    w->end[w->n++] = w->text.len;
    return SLU_OK;
}

/* Encodes the waiting texts together, and adds their documents. */
static int settle_waiting(struct slu_ingest_run *g, struct slu_ingest_job *j,
                          struct slu_ingest_worker *worker, struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    struct slu_ingest_wait *w = &worker->wait;
    const char *name = (const char *)w->names.data;
    uint64_t *span = (void *)w->spans.data;
    const struct slu_texts texts = {
        .utf8 = (const char *)w->text.data,
        .end = w->end,
        .n = w->n,
        .bos = cfg->bos ? slu_tokenizer_bos(cfg->tokenizer) : SLU_NO_TOKEN,
        .eos = cfg->eos ? slu_tokenizer_eos(cfg->tokenizer) : SLU_NO_TOKEN,
    };
    const size_t n_id = j->ids.n;
    size_t text = 0, from = n_id;
    int rc = slu_encode_texts(g->encoders.encoder[worker - g->worker], &texts, &j->ids,
                              w->id_end, err);
    /* If a text cannot be encoded, encode each alone to find it. */
    const bool alone = rc < 0;
    const size_t n_all = j->ids.n;
    rc = SLU_OK;
    for (size_t i = 0; i < w->n && !rc; i++) {
        struct slu_ingest_doc *d = &w->doc[i];
        d->rec.text = texts.utf8 + text;
        d->rec.id = name;
        d->rec.domain = name + d->rec.id_len + d->rec.meta_len;
        d->rec.span = span;
        span += 2 * d->rec.n_span;
        text = w->end[i];
        name += d->rec.id_len + d->rec.meta_len + d->rec.domain_len;
        if (alone) {
            rc = take_document(g, j, worker, d->ref, &d->rec, d->outcome, err);
            continue;
        }
        j->ids.n = w->id_end[i];
        rc = settle_document(g, j, worker, d->ref, &d->rec, from, d->outcome, err);
        from = j->ids.n;
    }
    if (!alone && !rc)
        j->ids.n = n_all;
    clear_waiting(w);
    return rc;
}

/* Encodes a part of a long text; emit joins the parts. */
static int take_part(struct slu_ingest_run *g, struct slu_ingest_job *j,
                     unsigned worker, const struct slu_record_ref *ref,
                     struct slu_err *err)
{
    struct slu_ingest_part *part = ref->part_off ? &j->last : &j->first;
    struct slu_record rec;
    int rc = SLU_OK;
    *part =
        (struct slu_ingest_part){.ref = ref, .from = j->ids.n, .bad_off = UINT64_MAX};
    rc = settle(j, OUTCOME_PART, 0, 0, err);
    if (rc || ref->reject)
        return rc;
    const char *spans = g->cfg->field[SLU_FIELD_SPANS];
    if (spans)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: is text, which has no field \"%s\"",
                        slu_source_at(g->cfg->sources, ref->source)->path, spans);
    text_record(g->cfg, j->block.raw.data + ref->off, ref->len, &rec);
    if (rec.reject) {
        part->bad_off = rec.off_byte += ref->part_off;
        return g->cfg->skip_bad ? SLU_OK
                                : reject(g, j, &g->worker[worker], ref, &rec, err);
    }
    if (rec.text_len > 0)
        rc = slu_encode_valid(g->encoders.encoder[worker], rec.text, rec.text_len,
                              &j->ids, err);
    part->n_tok = j->ids.n - part->from;
    return rc;
}

/* Makes the record of one in block b, which may be a copy. */
static int read_record(struct slu_ingest_run *g, struct slu_ingest_worker *w,
                       const struct slu_block *b, const struct slu_record_ref *ref,
                       struct slu_record *out, struct slu_err *err)
{
    const uint8_t *raw = b->raw.data + ref->off;
    if (b->json)
        return slu_record_parse(w->parser, raw, ref->len, out, err);
    if (b->rows)
        return take_row(g, w, b, ref, out, err);
    text_record(g->cfg, raw, ref->len, out);
    return SLU_OK;
}

/* Whether a record is rejected for what cfg->replace replaces. */
static bool is_no_text(const struct slu_block *b, enum slu_reject r)
{
    return r == SLU_REJECT_INVALID_UTF8 || r == SLU_REJECT_LONE_SURROGATE ||
           (b->rows && r == SLU_REJECT_UNFIT_FIELD);
}

static int take_record(struct slu_ingest_run *g, struct slu_ingest_job *j,
                       struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                       struct slu_err *err)
{
    const bool is_part = ref->part_off || ref->goes_on;
    struct slu_record rec = {.reject = ref->reject, .off_byte = ref->len};
    int rc = SLU_OK;
    /* With ref->reject the source ended in the middle of the record. */
    if (!is_part && !ref->reject) {
        rc = read_record(g, w, &j->block, ref, &rec, err);
        if (!rc && g->cfg->replace && is_no_text(&j->block, rec.reject)) {
            rc = slu_ingest_repair(g, j, w, ref, err);
            if (!rc)
                rc = read_record(g, w, &w->repaired, w->repaired.rec, &rec, err);
        }
    }
    if (rc)
        return rc;
    if (rec.lacks >> SLU_FIELD_SPANS & 1 && !rec.reject) { /* of a text */
        rec.reject = SLU_REJECT_MISSING_FIELD;
        rec.which = SLU_FIELD_SPANS;
    }
    check_fields(&rec);
    rc = slu_ingest_check_needs(g, j, w, ref, &rec, err);
    if (rc)
        return rc;
    if (g->filters && (is_part || !rec.reject)) {
        rc = slu_ingest_filter(g, j, w, ref, &rec, err);
        if (rc)
            return rc;
    }
    if (g->cfg->metadata.n && !is_part && !rec.reject) {
        rc = take_metadata(g, w, &rec, err);
        if (rc)
            return rc;
    }
    const bool is_short = !is_part && !rec.reject && rec.text_len < MAX_WAIT_BYTE;
    if (w->wait.n && (!is_short || w->wait.n == MAX_WAIT_DOC ||
                      w->wait.text.len + rec.text_len > MAX_WAIT_BYTE))
        rc = settle_waiting(g, j, w, err);
    if (rc)
        return rc;
    if (is_part)
        return take_part(g, j, (unsigned)(w - g->worker), ref, err);
    if (rec.reject)
        return reject(g, j, w, ref, &rec, err);
    enum slu_outcome outcome = OUTCOME_KEPT;
    if (rec.text_len > 0 && slu_ingest_chooses(g->cfg))
        outcome = slu_ingest_choose(g->cfg, slu_hash128(rec.text, rec.text_len));
    return is_short ? add_waiting(&w->wait, ref, &rec, outcome, err)
                    : take_document(g, j, w, ref, &rec, outcome, err);
}

/* Converts the ids to the stream's width in place, sixteen at a time, for SIMD. */
static void narrow(struct slu_ids *ids)
{
    enum { RUN = 16 };
    uint8_t *p = (uint8_t *)ids->id;
    uint32_t wide[RUN] = {0};
    uint16_t half[RUN];
    for (size_t i = 0; i < ids->n; i += RUN) {
        size_t n = ids->n - i < RUN ? ids->n - i : RUN;
        if (n == RUN)
            memcpy(wide, p + 4 * i, sizeof wide);
        else
            memcpy(wide, p + 4 * i, 4 * n);
        for (size_t k = 0; k < RUN; k++)
            half[k] = (uint16_t)wide[k];
        memcpy(p + 2 * i, half, 2 * n);
    }
}

int slu_ingest_encode(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct slu_ingest_run *g = ctx;
    struct slu_ingest_job *j = job;
    struct slu_ingest_worker *w = &g->worker[worker];
    clear_job(j);
    clear_waiting(&w->wait); /* left by a failed job */
    int rc = slu_block_split(&j->block, err);
    if (!rc && g->filters)
        rc = slu_ingest_begin_filter(g, j, err);
    if (!rc && g->cfg->origins)
        rc = slu_ingest_begin_needs(j, err);
    for (size_t i = 0; i < j->block.n_rec && !rc; i++)
        rc = take_record(g, j, w, &j->block.rec[i], err);
    if (!rc && w->wait.n)
        rc = settle_waiting(g, j, w, err);
    if (rc < 0 && g->cfg->max_tok != UINT64_MAX) {
        /* The run may end before that record: emit decides. */
        j->rc = rc;
        j->err = *err;
        rc = SLU_OK;
    }
    if (rc) {
        slu_ingest_failed(g);
        return rc;
    }
    if (j->batch.tok_bytes == 2)
        narrow(&j->ids);
    j->batch.tok = j->holdout.tok = j->ids.id;
    j->batch.n_tok = j->holdout.n_tok = j->ids.n;
    slu_batch_sum(&j->batch);
    slu_batch_sum(&j->holdout);
    return SLU_OK;
}
