/* ingest_filter.c - which good records the filters of ingest.h leave out; any thread. */
#include <string.h>

#include "formats/text/ingest_job.h"
#include "lib/filter/urlset.h"

/* Of a record's bits of fields: a filter looked at it. */
#define ASKED (UINT64_C(1) << 63)
_Static_assert(SLU_EXPR_FIELDS + 1 < 63, "a bit for each field, and one for ASKED");
_Static_assert(SLU_EXPR_FIELDS + 4 + SLU_META_FIELDS <= SLU_RECORD_ANY, "all fields");

void slu_ingest_find_filters(struct slu_ingest_run *g)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    g->n_any = f->where ? slu_expr_n_field(f->where) : 0;
    for (size_t i = 0; i < g->n_any; i++)
        g->any[i] = slu_expr_field(f->where, i);
    if (f->urls_drop)
        g->any[g->n_any++] = f->url_field;
    g->n_read = g->n_any;
    if (g->cfg->needs.read)
        g->any[g->n_read++] = SLU_NEEDS_FIELD;
    if (g->cfg->origins) {
        g->any[g->n_read++] = SLU_NEEDS_BY;
        g->any[g->n_read++] = SLU_NEEDS_FROM;
    }
    g->meta_at = g->n_read;
    for (unsigned i = 0; i < g->cfg->metadata.n; i++)
        g->any[g->n_read++] = g->cfg->metadata.field[i].name;
    g->field_filters =
        f->where || f->ids_keep || f->ids_drop || f->urls_drop || f->fasttext;
    g->filters = g->field_filters || f->rules || f->c4_lines;
}

int slu_ingest_open_filter(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                           struct slu_err *err)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    const uint64_t most_byte = f->rules_byte / g->n_worker;
    int rc = f->where ? slu_expr_run_new(&w->where, f->where, err) : SLU_OK;
    if (!rc && f->rules)
        rc = slu_rules_run_new(&w->rules, f->rules, most_byte, err);
    if (!rc && f->c4_lines)
        rc = slu_rules_run_new(&w->c4_lines, f->c4_lines, most_byte, err);
    return rc;
}

void slu_ingest_close_filter(struct slu_ingest_worker *w)
{
    slu_expr_run_free(w->where);
    slu_rules_run_free(w->rules);
    slu_rules_run_free(w->c4_lines);
    slu_buf_release(&w->url);
    slu_buf_release(&w->line);
}

/* Makes an array with n zeroed elements. */
static int zeroed(void *pp, size_t *cap, size_t n, size_t size, struct slu_err *err)
{
    int rc = slu_grow(pp, cap, n, size, err);
    if (!rc)
        memset(*(void **)pp, 0, n * size);
    return rc;
}

int slu_ingest_begin_filter(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                            struct slu_err *err)
{
    const size_t n = j->block.n_rec;
    int rc = SLU_OK;
    if (n && g->n_any)
        rc = zeroed(&j->seen, &j->cap_seen, n, sizeof *j->seen, err);
    if (n && g->cfg->filter.c4_lines && !rc)
        rc = zeroed(&j->edit, &j->cap_edit, n, sizeof *j->edit, err);
    return rc;
}

void slu_ingest_count_noted(struct slu_ingest_run *g, const struct slu_ingest_job *j,
                            size_t n)
{
    struct slu_ingest_stat *s = g->account.stat;
    for (size_t k = 0; k < n && g->cfg->filter.c4_lines; k++) {
        s->edited += j->edit[k].changed;
        s->cut_line += j->edit[k].n_line;
        s->cut_byte += j->edit[k].n_byte;
    }
    for (size_t k = 0; k < n && g->n_any; k++) {
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

static int ask_fasttext(const struct slu_ingest_filter *f, struct slu_ingest_worker *w,
                        struct slu_record *rec, struct slu_err *err)
{
    bool yes;
    int rc =
        slu_fasttext_ask(f->fasttext, rec->text, rec->text_len, &w->line, &yes, err);
    if (!rc && !yes)
        rec->reject = SLU_REJECT_FASTTEXT;
    return rc;
}

static void ask_ids(const struct slu_ingest_filter *f, struct slu_record *rec)
{
    if (f->ids_keep && !slu_idset_has(f->ids_keep, rec->id, rec->id_len))
        rec->reject = SLU_REJECT_IDS_KEEP;
    else if (f->ids_drop && slu_idset_has(f->ids_drop, rec->id, rec->id_len))
        rec->reject = SLU_REJECT_IDS_DROP;
}

static int ask_rules(struct slu_ingest_worker *w, struct slu_record *rec,
                     struct slu_err *err)
{
    int rc = slu_rules_ask(w->rules, rec->text, rec->text_len, &w->rule, err);
    if (!rc && w->rule != SLU_RULE_N)
        rec->reject = SLU_REJECT_RULES;
    return rc;
}

static int edit(struct slu_ingest_worker *w, struct slu_record *rec,
                struct slu_ingest_edit *e, struct slu_err *err)
{
    struct slu_c4_cut cut;
    int rc =
        slu_rules_c4_lines(w->c4_lines, rec->text, rec->text_len, &cut, &w->rule, err);
    if (rc)
        return rc;
    if (w->rule != SLU_RULE_N) {
        rec->reject = SLU_REJECT_RULES;
        return SLU_OK;
    }
    if (cut.changed)
        *e = (struct slu_ingest_edit){cut.n_line, rec->text_len - cut.n, true};
    rec->text = cut.text;
    rec->text_len = cut.n;
    return SLU_OK;
}

int slu_ingest_filter(struct slu_ingest_run *g, struct slu_ingest_job *j,
                      struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                      struct slu_record *rec, struct slu_err *err)
{
    const struct slu_ingest_filter *f = &g->cfg->filter;
    int rc = SLU_OK;
    if (g->field_filters && !j->block.json && !j->block.rows)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: is text, which has no fields that a filter could look at",
                        slu_source_at(g->cfg->sources, ref->source)->path);
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
    if (!rc && !rec->reject && f->fasttext)
        rc = ask_fasttext(f, w, rec, err);
    if (!rc && !rec->reject && w->rules)
        rc = ask_rules(w, rec, err);
    if (!rc && !rec->reject && w->c4_lines)
        rc = edit(w, rec, &j->edit[ref - j->block.rec], err);
    if (rc && (w->rules || w->c4_lines))
        return slu_err_at(err, "%s: document %llu",
                          slu_source_at(g->cfg->sources, ref->source)->path,
                          (unsigned long long)ref->document);
    return rc;
}
