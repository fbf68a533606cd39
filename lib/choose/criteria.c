#include "criteria.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *const slu_why_name[SLU_N_WHY] = {
    [SLU_WHY_DOMAIN] = "domain",     [SLU_WHY_SOURCE] = "source",
    [SLU_WHY_IDS_KEEP] = "ids-keep", [SLU_WHY_IDS_DROP] = "ids-drop",
    [SLU_WHY_LENGTH] = "length",     [SLU_WHY_SCORE] = "score",
    [SLU_WHY_WHERE] = "where",       [SLU_WHY_TOP] = "top",
};

enum { UNKNOWN, IN, OUT };

struct slu_criteria {
    const struct slu_criteria_cfg *cfg;
    struct slu_names *names;
    uint8_t *domain; /* by the domain's number: UNKNOWN, IN or OUT */
    size_t cap_domain;
    uint64_t source; /* the source that was asked for last, and the answer */
    bool source_in;
    const struct slu_header *header;
    struct slu_expr_run *where;
    int field
        [SLU_EXPR_FIELDS]; /* of the expression: its number in the metadata, or below 0 one of `own` */
};

/* What a document has without metadata, as fields of an expression. */
enum { DOMAIN = -5, SOURCE, ID, LENGTH, SCORE };
static const char *const own[] = {"domain", "source", "id", "length", "score"};

/* Finds field i of the expression. */
static int find_field(struct slu_criteria *c, size_t i, struct slu_err *err)
{
    const char *name = slu_expr_field(c->cfg->where, i);

    for (int k = DOMAIN; k <= SCORE; k++)
        if (!strcmp(name, own[k - DOMAIN])) {
            c->field[i] = k;
            return SLU_OK;
        }
    c->field[i] = slu_meta_find(&c->header->meta, name, strlen(name));
    return c->field[i] >= 0
               ? SLU_OK
               : slu_fail(err, SLU_E_MISMATCH,
                          "--where: no input has the metadata field '%s'; 'inspect' "
                          "lists those that it has, beside domain, source, id, length "
                          "and score",
                          name);
}

int slu_criteria_new(struct slu_criteria **out, const struct slu_criteria_cfg *cfg,
                     const struct slu_header *h, struct slu_names *names,
                     struct slu_err *err)
{
    struct slu_criteria *c = calloc(1, sizeof *c);

    *out = c;
    if (!c)
        return slu_fail_nomem(err, sizeof *c);
    c->cfg = cfg;
    c->names = names;
    c->source = SLU_PADDING;
    c->header = h;
    if (!cfg->where || !h->vocab_size) /* a stage that reads no stream */
        return SLU_OK;
    int rc = slu_expr_run_new(&c->where, cfg->where, err);
    for (size_t i = 0; i < slu_expr_n_field(cfg->where) && !rc; i++)
        rc = find_field(c, i, err);
    return rc;
}

void slu_criteria_free(struct slu_criteria *c)
{
    if (!c)
        return;
    slu_expr_run_free(c->where);
    free(c->domain);
    free(c);
}

/* ---- the documents of a sequence ---- */

static int differ(const struct slu_seg *a, const char *what, struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_MISMATCH,
        "source %llu, document %llu: stands in one sequence with a document "
        "of another %s; read documents or pieces, before they are "
        "packed",
        (unsigned long long)a->source, (unsigned long long)a->document, what);
}

/* The first segment that is not padding; NULL: all are. */
static const struct slu_seg *first_of(const struct slu_batch *b,
                                      const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    for (uint64_t i = 0; i < q->n_seg; i++)
        if (s[i].source != SLU_PADDING)
            return &s[i];
    return NULL;
}

/* SLU_E_MISMATCH if the sequence has several sources; by_document: or documents. */
static int one_document(const struct slu_batch *b, const struct slu_seq *q,
                        const struct slu_seg *first, bool by_document,
                        struct slu_err *err)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    for (uint64_t i = 0; i < q->n_seg; i++)
        if (s[i].source != SLU_PADDING &&
            (s[i].source != first->source ||
             (by_document && s[i].document != first->document)))
            return differ(&s[i], by_document ? "id" : "source", err);
    return SLU_OK;
}

/* ---- the criteria ---- */

static bool is_listed(const struct slu_criteria *c, const char *name)
{
    for (size_t i = 0; i < c->cfg->n_domain; i++)
        if (!strcmp(c->cfg->domain[i], name))
            return true;
    return false;
}

static int ask_domain(struct slu_criteria *c, const struct slu_batch *b,
                      const struct slu_seq *q, bool *in, struct slu_err *err)
{
    const size_t had = c->cap_domain;
    uint32_t number;
    int rc = slu_seq_domain(b, q, &number, err);

    if (!rc && number == SLU_NO_DOMAIN)
        *in = is_listed(c, "");
    if (rc || number == SLU_NO_DOMAIN)
        return rc;
    if (number >= had) {
        rc = slu_grow(&c->domain, &c->cap_domain, (size_t)number + 1, 1, err);
        if (rc)
            return rc;
        memset(c->domain + had, UNKNOWN, c->cap_domain - had);
    }
    if (c->domain[number] == UNKNOWN)
        c->domain[number] = is_listed(c, slu_names_domain(c->names, number)) ? IN : OUT;
    *in = c->domain[number] == IN;
    return SLU_OK;
}

static bool matches(const struct slu_criteria *c, const char *name)
{
    for (size_t i = 0; i < c->cfg->n_source; i++)
        if (!fnmatch(c->cfg->source[i], name, 0))
            return true;
    return false;
}

static int ask_source(struct slu_criteria *c, const struct slu_batch *b,
                      const struct slu_seq *q, bool *in, struct slu_err *err)
{
    const struct slu_seg *s = first_of(b, q);
    int rc = s ? one_document(b, q, s, false, err) : SLU_OK;

    if (rc || !s)
        return rc;
    if (s->source != c->source) {
        const char *name = slu_names_source(c->names, s->source);
        c->source = s->source;
        c->source_in = matches(c, name ? name : "");
    }
    *in = c->source_in;
    return SLU_OK;
}

static int ask_ids(struct slu_criteria *c, const struct slu_batch *b,
                   const struct slu_seq *q, bool *kept, bool *dropped,
                   struct slu_err *err)
{
    const struct slu_seg *s = first_of(b, q);
    int rc = s ? one_document(b, q, s, true, err) : SLU_OK;

    if (rc)
        return rc;
    const void *id = s && s->id_len ? b->str.data + s->id_off : NULL;
    *kept = !c->cfg->keep || (id && slu_idset_has(c->cfg->keep, id, s->id_len));
    *dropped = c->cfg->drop && id && slu_idset_has(c->cfg->drop, id, s->id_len);
    return SLU_OK;
}

static bool score_is_in(const struct slu_criteria *c, const struct slu_batch *b,
                        const struct slu_seq *q)
{
    const double v = slu_seq_score(b, q);

    for (unsigned i = 0; i < c->cfg->n_score; i++)
        if (!slu_compare_holds(&c->cfg->score[i], v))
            return false;
    return true;
}

/* ---- the expression ---- */

struct asked {
    struct slu_criteria *c;
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct slu_seg *first;
    uint32_t domain;
};

static const uint8_t *meta_of(const struct slu_batch *b, const struct slu_seg *s)
{
    return s->meta_len ? b->str.data + s->id_off + s->id_len : NULL;
}

/* SLU_E_MISMATCH if the documents of the sequence differ in field i. */
static int same_field(struct asked *a, size_t i, struct slu_err *err)
{
    const struct slu_seg *s = &a->b->seg[a->q->seg_off];
    const int f = a->c->field[i];
    struct slu_meta_value v, w;

    if (f == LENGTH || f == SCORE)
        return SLU_OK;
    if (f == DOMAIN)
        return slu_seq_domain(a->b, a->q, &a->domain, err);
    if (f < 0)
        return one_document(a->b, a->q, a->first, f == ID, err);
    const uint64_t key = a->c->header->meta.field[f].key;
    const bool has = slu_meta_get(meta_of(a->b, a->first), a->first->meta_len, key, &v);
    for (uint64_t k = 0; k < a->q->n_seg; k++)
        if (s[k].source != SLU_PADDING &&
            (slu_meta_get(meta_of(a->b, &s[k]), s[k].meta_len, key, &w) != has ||
             (has && (v.n != w.n || memcmp(v.p, w.p, v.n)))))
            return differ(&s[k], slu_expr_field(a->c->cfg->where, i), err);
    return SLU_OK;
}

static struct slu_value text(const void *p, size_t n)
{
    return (struct slu_value){
        .type = p ? SLU_VALUE_STRING : SLU_VALUE_NULL, .string = p, .len = n};
}

static void get_field(void *ctx, size_t i, struct slu_value *out)
{
    const struct asked *a = ctx;
    const struct slu_seg *s = a->first;
    const int f = a->c->field[i];
    const char *name = NULL;
    struct slu_meta_value v;

    if (f == DOMAIN && a->domain != SLU_NO_DOMAIN)
        name = slu_names_domain(a->c->names, a->domain);
    if (f == SOURCE)
        name = slu_names_source(a->c->names, s->source);
    if (f == DOMAIN || f == SOURCE) {
        *out = text(name, name ? strlen(name) : 0);
    } else if (f == ID) {
        *out = text(s->id_len ? a->b->str.data + s->id_off : NULL, s->id_len);
    } else if (f < 0) {
        const double x =
            f == LENGTH ? (double)a->q->len_tok : slu_seq_score(a->b, a->q);
        *out = (struct slu_value){.type = x == x ? SLU_VALUE_NUMBER : SLU_VALUE_NULL,
                                  .number = x};
    } else {
        const struct slu_meta_field *m = &a->c->header->meta.field[f];
        *out = slu_meta_to_value(
            m->type,
            slu_meta_get(meta_of(a->b, s), s->meta_len, m->key, &v) ? &v : NULL);
    }
}

static bool has_null(struct asked *a)
{
    struct slu_value v = {.type = SLU_VALUE_STRING};

    for (size_t i = 0; i < slu_expr_n_field(a->c->cfg->where); i++) {
        get_field(a, i, &v);
        if (v.type == SLU_VALUE_NULL)
            return true;
    }
    return false;
}

static int ask_where(struct slu_criteria *c, const struct slu_batch *b,
                     const struct slu_seq *q, bool *in, struct slu_err *err)
{
    struct asked a = {c, b, q, first_of(b, q), SLU_NO_DOMAIN};
    int rc = SLU_OK;

    *in = false;
    if (!a.first)
        return SLU_OK;
    for (size_t i = 0; i < slu_expr_n_field(c->cfg->where) && !rc; i++)
        rc = same_field(&a, i, err);
    if (rc)
        return rc;
    struct slu_err why = SLU_ERR_INIT;
    rc = slu_expr_eval(c->where, get_field, &a, in, &why);
    if (rc == SLU_E_FORMAT && has_null(&a)) {
        *in = false;
        return SLU_OK;
    }
    if (rc) {
        const char *name = slu_names_source(c->names, a.first->source);
        *err = why;
        slu_err_at(err, "--where: %s: document %llu", name ? name : "?",
                   (unsigned long long)a.first->document);
    }
    return rc;
}

int slu_criteria_ask(struct slu_criteria *c, const struct slu_batch *b,
                     const struct slu_seq *q, enum slu_why *why, struct slu_err *err)
{
    const struct slu_criteria_cfg *cfg = c->cfg;
    bool domain = true, source = true, kept = true, dropped = false, where = true;
    int rc = cfg->n_domain ? ask_domain(c, b, q, &domain, err) : SLU_OK;

    if (!rc && cfg->n_source)
        rc = ask_source(c, b, q, &source, err);
    if (!rc && (cfg->keep || cfg->drop))
        rc = ask_ids(c, b, q, &kept, &dropped, err);
    if (!rc && c->where)
        rc = ask_where(c, b, q, &where, err);
    *why = !domain   ? SLU_WHY_DOMAIN
           : !source ? SLU_WHY_SOURCE
           : !kept   ? SLU_WHY_IDS_KEEP
           : dropped ? SLU_WHY_IDS_DROP
           : q->len_tok < cfg->least_tok || q->len_tok > cfg->most_tok ? SLU_WHY_LENGTH
           : cfg->n_score && !score_is_in(c, b, q)                     ? SLU_WHY_SCORE
           : !where                                                    ? SLU_WHY_WHERE
                                                                       : SLU_WHY_NOT;
    return rc;
}
