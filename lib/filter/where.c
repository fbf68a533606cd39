#include "where.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stream/groups.h"

struct slu_where {
    const struct slu_expr *e;
    struct slu_expr_run *run;
    const struct slu_header *header;
    struct slu_names *names;
    /* Of each field of the expression: its number in the metadata, or below 0 one of
     * `own`. */
    int field[SLU_EXPR_FIELDS];
};

/* What a sequence has without metadata, as fields of an expression. */
enum { DOMAIN = -5, SOURCE, ID, LENGTH, SCORE };
static const char *const own[] = {"domain", "source", "id", "length", "score"};

/* Finds field i of the expression. */
static int find_field(struct slu_where *w, size_t i, struct slu_err *err)
{
    const char *name = slu_expr_field(w->e, i);

    for (int k = DOMAIN; k <= SCORE; k++)
        if (!strcmp(name, own[k - DOMAIN])) {
            w->field[i] = k;
            return SLU_OK;
        }
    w->field[i] = slu_meta_find(&w->header->meta, name, strlen(name));
    return w->field[i] >= 0
               ? SLU_OK
               : slu_fail(err, SLU_E_MISMATCH,
                          "no input has the metadata field '%s'; 'inspect' lists those "
                          "that it has, beside domain, source, id, length and score",
                          name);
}

int slu_where_new(struct slu_where **out, const struct slu_expr *e,
                  const struct slu_header *h, struct slu_names *names,
                  struct slu_err *err)
{
    struct slu_where *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    w->e = e;
    w->header = h;
    w->names = names;
    int rc = slu_expr_run_new(&w->run, e, err);
    for (size_t i = 0; i < slu_expr_n_field(e) && !rc; i++)
        rc = find_field(w, i, err);
    if (rc)
        slu_where_free(w);
    else
        *out = w;
    return rc;
}

void slu_where_free(struct slu_where *w)
{
    if (!w)
        return;
    slu_expr_run_free(w->run);
    free(w);
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

const struct slu_seg *slu_seq_first(const struct slu_batch *b, const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    for (uint64_t i = 0; i < q->n_seg; i++)
        if (s[i].source != SLU_PADDING)
            return &s[i];
    return NULL;
}

int slu_seq_one_document(const struct slu_batch *b, const struct slu_seq *q,
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

/* ---- the expression ---- */

struct asked {
    const struct slu_where *w;
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct slu_seg *s; /* of the document */
};

static const uint8_t *meta_of(const struct slu_batch *b, const struct slu_seg *s)
{
    return s->meta_len ? b->str.data + s->id_off + s->id_len : NULL;
}

/* SLU_E_MISMATCH if the documents of the sequence differ in field i. */
static int same_field(const struct asked *a, size_t i, struct slu_err *err)
{
    const struct slu_seg *s = &a->b->seg[a->q->seg_off];
    const int f = a->w->field[i];
    struct slu_meta_value v, w;
    uint32_t domain;

    if (f == LENGTH || f == SCORE)
        return SLU_OK;
    if (f == DOMAIN)
        return slu_seq_domain(a->b, a->q, &domain, err);
    if (f < 0)
        return slu_seq_one_document(a->b, a->q, a->s, f == ID, err);
    const uint64_t key = a->w->header->meta.field[f].key;
    const bool has = slu_meta_get(meta_of(a->b, a->s), a->s->meta_len, key, &v);
    for (uint64_t k = 0; k < a->q->n_seg; k++)
        if (s[k].source != SLU_PADDING &&
            (slu_meta_get(meta_of(a->b, &s[k]), s[k].meta_len, key, &w) != has ||
             (has && (v.n != w.n || memcmp(v.p, w.p, v.n)))))
            return differ(&s[k], slu_expr_field(a->w->e, i), err);
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
    const struct slu_where *w = a->w;
    const struct slu_seg *s = a->s;
    const int f = w->field[i];
    const char *name = NULL;
    struct slu_meta_value v;

    if (f == DOMAIN && s->domain != SLU_NO_DOMAIN)
        name = slu_names_domain(w->names, s->domain);
    if (f == SOURCE)
        name = slu_names_source(w->names, s->source);
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
        const struct slu_meta_field *m = &w->header->meta.field[f];
        *out = slu_meta_to_value(
            m->type,
            slu_meta_get(meta_of(a->b, s), s->meta_len, m->key, &v) ? &v : NULL);
    }
}

static bool has_null(struct asked *a)
{
    struct slu_value v = {.type = SLU_VALUE_STRING};

    for (size_t i = 0; i < slu_expr_n_field(a->w->e); i++) {
        get_field(a, i, &v);
        if (v.type == SLU_VALUE_NULL)
            return true;
    }
    return false;
}

int slu_where_ask_segment(struct slu_where *w, const struct slu_batch *b,
                          const struct slu_seq *q, const struct slu_seg *s, bool *holds,
                          struct slu_err *err)
{
    struct asked a = {w, b, q, s};
    struct slu_err why = SLU_ERR_INIT;
    int rc = slu_expr_eval(w->run, get_field, &a, holds, &why);

    if (rc == SLU_E_FORMAT && has_null(&a)) {
        *holds = false;
        return SLU_OK;
    }
    if (rc && err) {
        const char *name = slu_names_source(w->names, s->source);
        *err = why;
        slu_err_at(err, "%s: document %llu", name ? name : "?",
                   (unsigned long long)s->document);
    }
    return rc;
}

int slu_where_ask(struct slu_where *w, const struct slu_batch *b,
                  const struct slu_seq *q, bool *holds, struct slu_err *err)
{
    const struct asked a = {w, b, q, slu_seq_first(b, q)};
    int rc = SLU_OK;

    *holds = false;
    if (!a.s)
        return SLU_OK;
    for (size_t i = 0; i < slu_expr_n_field(w->e) && !rc; i++)
        rc = same_field(&a, i, err);
    return rc ? rc : slu_where_ask_segment(w, b, q, a.s, holds, err);
}
