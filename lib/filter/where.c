#include "where.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stream/property.h"

struct slu_where {
    const struct slu_expr *e;
    struct slu_expr_run *run;
    struct slu_names *names;
    struct slu_property field[SLU_EXPR_FIELDS]; /* of the expression */
};

int slu_where_new(struct slu_where **out, const struct slu_expr *e,
                  const struct slu_header *h, struct slu_names *names,
                  struct slu_err *err)
{
    struct slu_where *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    w->e = e;
    w->names = names;
    int rc = slu_expr_run_new(&w->run, e, err);
    for (size_t i = 0; i < slu_expr_n_field(e) && !rc; i++)
        rc = slu_property_find(&w->field[i], slu_expr_field(e, i), h, err);
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

/* ---- the expression ---- */

struct asked {
    const struct slu_where *w;
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct slu_seg *s; /* of the document */
};

static void get_field(void *ctx, size_t i, struct slu_value *out)
{
    const struct asked *a = ctx;
    const struct slu_property *p = &a->w->field[i];
    struct slu_meta_value v;
    uint8_t number[8];
    const bool has = slu_property_get(p, a->w->names, a->b, a->q, a->s, number, &v);

    *out = slu_meta_to_value(p->type, has ? &v : NULL);
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
        rc = slu_property_same(&w->field[i], b, q, err);
    return rc ? rc : slu_where_ask_segment(w, b, q, a.s, holds, err);
}
