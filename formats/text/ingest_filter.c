/* ingest_filter.c - which good records the filters of ingest.h leave out; any thread. */
#include <string.h>

#include "formats/text/ingest_job.h"
#include "lib/filter/urlset.h"

/* Of a record's bits of fields: a filter looked at it. */
#define ASKED (UINT64_C(1) << 63)
_Static_assert(SLU_RECORD_ANY < 64, "a bit for each field, and one for ASKED");

void slu_ingest_find_filters(struct slu_ingest_run *g)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    g->n_any = f->where ? slu_expr_n_field(f->where) : 0;
    for (size_t i = 0; i < g->n_any; i++)
        g->any[i] = slu_expr_field(f->where, i);
    if (f->urls_drop)
        g->any[g->n_any++] = f->url_field;
    g->filters = f->where || f->ids_keep || f->ids_drop || f->urls_drop;
}

int slu_ingest_begin_filter(struct slu_ingest_job *j, struct slu_err *err)
{
    const size_t n = j->block.n_rec;
    int rc = n ? slu_grow(&j->seen, &j->cap_seen, n, sizeof *j->seen, err) : SLU_OK;
    if (!rc && n)
        memset(j->seen, 0, n * sizeof *j->seen);
    return rc;
}

void slu_ingest_count_seen(struct slu_ingest_run *g, const struct slu_ingest_job *j,
                           size_t n)
{
    struct slu_ingest_stat *s = g->books.stat;
    for (size_t k = 0; k < n; k++) {
        s->asked += j->seen[k] >> 63;
        for (size_t i = 0; i < g->n_any; i++)
            s->seen[i] += j->seen[k] >> i & 1;
    }
}

static void get_any(void *ctx, size_t i, struct slu_value *out)
{
    const struct slu_record *rec = ctx;
    *out = rec->any[i];
}

static int ask_where(struct slu_ingest_worker *w, struct slu_record *rec,
                     struct slu_err *err)
{
    bool yes;
    int rc = slu_expr_eval(w->where, get_any, rec, &yes, &w->why);
    if (rc && rc != SLU_E_FORMAT) {
        *err = w->why;
        return rc;
    }
    if (rc || !yes)
        rec->reject = rc ? SLU_REJECT_UNFIT_FIELD : SLU_REJECT_WHERE;
    return SLU_OK;
}

static int ask_url(struct slu_ingest_run *g, struct slu_ingest_worker *w,
                   struct slu_record *rec, struct slu_err *err)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    const struct slu_value *v = &rec->any[g->n_any - 1];
    bool has = false;
    int rc = SLU_OK;
    if (v->type == SLU_VALUE_STRING) {
        rc = slu_urlset_has(f->urls_drop, v->string, v->len, &w->url, &has, err);
    } else if (v->type != SLU_VALUE_NULL) {
        slu_fail(&w->why, SLU_E_FORMAT, "field \"%.80s\" is not a string, so not a URL",
                 f->url_field);
        rec->reject = SLU_REJECT_UNFIT_FIELD;
    }
    if (has)
        rec->reject = SLU_REJECT_URLS_DROP;
    return rc;
}

static void ask_ids(const struct slu_ingest_filter *f, struct slu_record *rec)
{
    if (f->ids_keep && !slu_idset_has(f->ids_keep, rec->id, rec->id_len))
        rec->reject = SLU_REJECT_IDS_KEEP;
    else if (f->ids_drop && slu_idset_has(f->ids_drop, rec->id, rec->id_len))
        rec->reject = SLU_REJECT_IDS_DROP;
}

int slu_ingest_filter(struct slu_ingest_run *g, struct slu_ingest_job *j,
                      struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                      struct slu_record *rec, struct slu_err *err)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    int rc = SLU_OK;
    if (!j->block.json && !j->block.rows)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: is text, which has no fields that a filter could look at",
                        g->cfg->sources->item[ref->source].path);
    if (g->n_any) {
        uint64_t *seen = &j->seen[ref - j->block.rec];
        *seen = ASKED;
        for (size_t i = 0; i < g->n_any; i++)
            *seen |= (uint64_t)(rec->any[i].type != SLU_VALUE_NULL) << i;
    }
    ask_ids(f, rec);
    if (!rec->reject && f->urls_drop)
        rc = ask_url(g, w, rec, err);
    if (!rc && !rec->reject && f->where)
        rc = ask_where(w, rec, err);
    return rc;
}
