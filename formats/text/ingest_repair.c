/* ingest_repair.c - with cfg->replace: a record that is no text, with U+FFFD where it is
 * none; any thread. */
#include "formats/text/ingest_job.h"
#include "formats/text/input_private.h"

/* Copies the values of a row, repaired. */
static int repair_row(const struct slu_ingest_run *g, const struct slu_row_fields *f,
                      const uint8_t *p, size_t text_len, struct slu_block *to,
                      struct slu_repaired *r, struct slu_err *err)
{
    struct slu_row_fields *out = &to->field[0];
    const size_t len[] = {text_len, f->id_len, f->domain_len};
    size_t *const is[] = {&to->rec[0].len, &out->id_len, &out->domain_len};
    int rc = SLU_OK;
    for (unsigned i = 0; i < 3 && !rc; p += len[i++]) {
        const size_t begin = to->raw.len;
        rc = slu_repair(&to->raw, p, len[i], false, r, err);
        *is[i] = to->raw.len - begin;
    }
    if (!rc && f->span_len)
        rc = slu_buf_append(&to->raw, p, f->span_len, err);
    p += f->span_len;
    const size_t any = to->raw.len;
    struct slu_buf string = SLU_BUF_INIT;
    for (size_t i = 0; i < g->n_read && !rc; i++) {
        struct slu_value v;
        p = slu_row_get_any(p, &v);
        slu_buf_clear(&string);
        if (v.type == SLU_VALUE_STRING && v.len) {
            rc = slu_repair(&string, (const uint8_t *)v.string, v.len, false, r, err);
            v.string = (const char *)string.data;
            v.len = string.len;
        }
        if (!rc)
            rc = slu_row_put_any(&to->raw, &v, err);
    }
    slu_buf_release(&string);
    out->any_len = to->raw.len - any;
    return rc;
}

int slu_ingest_repair(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                      struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                      struct slu_err *err)
{
    const struct slu_block *b = &j->block;
    const uint8_t *raw = b->raw.data + ref->off;
    struct slu_ingest_repaired *r;
    struct slu_block *to = &w->repaired;
    struct slu_record_ref copy = *ref;
    slu_block_clear(to);
    to->json = b->json;
    to->rows = b->rows;
    copy.off = 0;
    int rc = slu_grow(&j->repaired, &j->cap_repaired, j->n_repaired + 1,
                      sizeof *j->repaired, err);
    if (rc)
        return rc;
    r = &j->repaired[j->n_repaired++];
    *r = (struct slu_ingest_repaired){.record = (size_t)(ref - b->rec)};
    if (b->rows) {
        const struct slu_row_fields *f = &b->field[ref - b->rec];
        rc = slu_block_add_row(to, copy, *f, err);
        if (!rc)
            rc = repair_row(g, f, raw, ref->len, to, &r->n, err);
    } else {
        rc = slu_repair(&to->raw, raw, ref->len, b->json, &r->n, err);
        copy.len = to->raw.len;
        if (!rc)
            rc = slu_block_add(to, copy, err);
    }
    return rc ? rc : slu_buf_reserve(&to->raw, SLU_JSON_PADDING, err);
}

void slu_ingest_count_repaired(struct slu_ingest_run *g, const struct slu_ingest_job *j,
                               size_t n)
{
    struct slu_ingest_stat *s = g->account.stat;
    for (size_t i = 0; i < j->n_repaired; i++) {
        const struct slu_ingest_repaired *r = &j->repaired[i];
        if (r->record >= n)
            continue;
        s->repaired++;
        s->repaired_by.utf8 += r->n.utf8;
        s->repaired_by.surrogates += r->n.surrogates;
    }
}
