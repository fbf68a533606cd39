/* expr.c - evaluates the tree of an expression for a record. */
#include "lib/filter/expr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/filter/expr_private.h"

struct slu_expr_run {
    const struct slu_expr *e;
    struct slu_pcre_run *match; /* NULL: the expression has no `matches` */
    /* of the record */
    slu_expr_get *get;
    void *ctx;
    struct slu_err *err;
};

uint64_t slu_expr_run_byte(const struct slu_expr *e)
{
    return e->n_regex ? SLU_PCRE_RUN_BYTE : 0;
}

int slu_expr_run_new(struct slu_expr_run **out, const struct slu_expr *e,
                     struct slu_err *err)
{
    struct slu_expr_run *r = calloc(1, sizeof *r);
    int rc = r ? SLU_OK : slu_fail_nomem(err, sizeof *r);
    if (!rc && e->n_regex)
        rc = slu_pcre_run_new(&r->match, false, err);
    if (rc) {
        free(r);
        r = NULL;
    } else {
        r->e = e;
    }
    *out = r;
    return rc;
}

void slu_expr_run_free(struct slu_expr_run *r)
{
    if (r)
        slu_pcre_run_free(r->match);
    free(r);
}

/* ---- errors ---- */

static const char *type_name(enum slu_value_type t)
{
    static const char *const name[] = {
        [SLU_VALUE_NULL] = "null",
        [SLU_VALUE_BOOL] = "a boolean",
        [SLU_VALUE_NUMBER] = "a number",
        [SLU_VALUE_STRING] = "a string",
        [SLU_VALUE_LIST] = "an array or an object",
    };
    return name[t];
}

/* Fails because the operand n has the type t, which does not do for `why`. */
static int misfit(const struct slu_expr_run *r, const struct slu_expr_node *n,
                  enum slu_value_type t, const char *why)
{
    const uint32_t column = slu_expr_column(r->e->source, n->at);
    if (n->op == SLU_EXPR_FIELD)
        return slu_fail(r->err, SLU_E_FORMAT, "column %u: \"%.80s\" is %s, and %s",
                        column, slu_expr_field(r->e, n->number),
                        t == SLU_VALUE_NULL ? "null or missing" : type_name(t), why);
    return slu_fail(r->err, SLU_E_FORMAT, "column %u: is %s, and %s", column,
                    type_name(t), why);
}

/* ---- operators ---- */

static int eval(struct slu_expr_run *r, uint32_t at, struct slu_value *v);

/* Evaluates an operand that must be of this type. */
static int eval_as(struct slu_expr_run *r, uint32_t at, enum slu_value_type type,
                   const char *why, struct slu_value *v)
{
    int rc = eval(r, at, v);
    return rc || v->type == type ? rc : misfit(r, &r->e->node[at], v->type, why);
}

static bool same(const struct slu_value *a, const struct slu_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case SLU_VALUE_NUMBER:
        return a->number == b->number && a->rest == b->rest;
    case SLU_VALUE_BOOL:
        return a->boolean == b->boolean;
    case SLU_VALUE_STRING:
        return a->len == b->len && (!a->len || !memcmp(a->string, b->string, a->len));
    default:
        return true;
    }
}

/* Whether two types can be compared by == */
static bool comparable(enum slu_value_type a, enum slu_value_type b)
{
    return a == SLU_VALUE_NULL || b == SLU_VALUE_NULL ||
           (a == b && a != SLU_VALUE_LIST);
}

static int order(const struct slu_value *a, const struct slu_value *b)
{
    if (a->type == SLU_VALUE_NUMBER && a->number == b->number)
        return a->rest - b->rest;
    if (a->type == SLU_VALUE_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    const size_t n = a->len < b->len ? a->len : b->len;
    const int c = n ? memcmp(a->string, b->string, n) : 0;
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int eval_comparison(struct slu_expr_run *r, const struct slu_expr_node *n,
                           bool *yes)
{
    const struct slu_expr_node *left = &r->e->node[n->first],
                               *right = &r->e->node[left->next];
    struct slu_value a, b;
    char why[96];
    int rc = eval(r, n->first, &a);
    if (!rc)
        rc = eval(r, left->next, &b);
    if (rc)
        return rc;
    const bool equality = n->op == SLU_EXPR_EQ || n->op == SLU_EXPR_NE;
    if (equality && comparable(a.type, b.type)) {
        *yes = same(&a, &b) == (n->op == SLU_EXPR_EQ);
        return SLU_OK;
    }
    if (!equality && a.type == b.type &&
        (a.type == SLU_VALUE_NUMBER || a.type == SLU_VALUE_STRING)) {
        const int c = order(&a, &b);
        *yes = n->op == SLU_EXPR_LT   ? c < 0
               : n->op == SLU_EXPR_LE ? c <= 0
               : n->op == SLU_EXPR_GT ? c > 0
                                      : c >= 0;
        if (a.type == SLU_VALUE_NUMBER && (isnan(a.number) || isnan(b.number)))
            *yes = false; /* a column of Parquet may have them */
        return SLU_OK;
    }
    /* Blames the side that the record gives. */
    const bool blame_right =
        left->op == SLU_EXPR_LITERAL ||
        (right->op != SLU_EXPR_LITERAL && !equality &&
         (a.type == SLU_VALUE_NUMBER || a.type == SLU_VALUE_STRING));
    snprintf(why, sizeof why,
             equality ? "== and != compare it with %s"
                      : "< <= > >= compare it with %s; they order two numbers or two "
                        "strings",
             type_name(blame_right ? a.type : b.type));
    return misfit(r, blame_right ? right : left, blame_right ? b.type : a.type, why);
}

static int eval_in(struct slu_expr_run *r, const struct slu_expr_node *n, bool *yes)
{
    const struct slu_expr_node *node = r->e->node, *left = &node[n->first];
    struct slu_value v;
    bool has_type;
    int rc = eval(r, n->first, &v);
    *yes = false;
    if (rc)
        return rc;
    has_type = v.type == SLU_VALUE_NULL;
    for (uint32_t i = left->next; i && !rc && !*yes; i = node[i].next) {
        *yes = same(&v, &node[i].literal);
        has_type |= v.type == node[i].literal.type;
    }
    return rc || has_type ? rc : misfit(r, left, v.type, "the list has none");
}

static int eval_joined(struct slu_expr_run *r, const struct slu_expr_node *n, bool *yes)
{
    const bool stops = n->op == SLU_EXPR_OR;
    for (uint32_t i = n->first; i; i = r->e->node[i].next) {
        struct slu_value v;
        int rc = eval_as(r, i, SLU_VALUE_BOOL, "and and or join booleans", &v);
        if (rc)
            return rc;
        *yes = v.boolean;
        if (*yes == stops)
            break;
    }
    return SLU_OK;
}

static size_t characters(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += ((uint8_t)s[i] & 0xc0) != 0x80;
    return k;
}

static int eval_startswith(struct slu_expr_run *r, const struct slu_expr_node *n,
                           bool *yes)
{
    static const char why[] = "startswith takes two strings";
    struct slu_value a = {0}, b = {0};
    int rc = eval_as(r, n->first, SLU_VALUE_STRING, why, &a);
    if (!rc)
        rc = eval_as(r, r->e->node[n->first].next, SLU_VALUE_STRING, why, &b);
    *yes = !rc && a.len >= b.len && (!b.len || !memcmp(a.string, b.string, b.len));
    return rc;
}

static int eval_matches(struct slu_expr_run *r, const struct slu_expr_node *n,
                        bool *yes)
{
    struct slu_err why = SLU_ERR_INIT;
    struct slu_value v;
    size_t start, end;
    int rc = eval_as(r, n->first, SLU_VALUE_STRING, "matches looks at strings", &v);
    if (rc)
        return rc;
    rc = slu_pcre_find(r->e->regex[n->number], r->match, v.string, v.len, 0, &start,
                       &end, &why);
    *yes = !rc;
    if (rc >= 0)
        return SLU_OK;
    return slu_fail(r->err, rc == SLU_E_LIMIT ? SLU_E_FORMAT : rc,
                    "column %u: matches gave up: %s",
                    slu_expr_column(r->e->source, n->at), why.msg);
}

static int eval(struct slu_expr_run *r, uint32_t at, struct slu_value *v)
{
    const struct slu_expr_node *n = &r->e->node[at];
    int rc;
    bool yes = false;

    switch (n->op) {
    case SLU_EXPR_LITERAL:
        *v = n->literal;
        return SLU_OK;
    case SLU_EXPR_FIELD:
        r->get(r->ctx, n->number, v);
        return SLU_OK;
    case SLU_EXPR_LEN:
        rc = eval_as(r, n->first, SLU_VALUE_STRING, "len takes a string", v);
        if (!rc)
            *v = (struct slu_value){.type = SLU_VALUE_NUMBER,
                                    .number = (double)characters(v->string, v->len)};
        return rc;
    case SLU_EXPR_OR:
    case SLU_EXPR_AND:
        rc = eval_joined(r, n, &yes);
        break;
    case SLU_EXPR_NOT:
        rc = eval_as(r, n->first, SLU_VALUE_BOOL, "not takes a boolean", v);
        yes = !v->boolean;
        break;
    case SLU_EXPR_IN:
        rc = eval_in(r, n, &yes);
        break;
    case SLU_EXPR_MATCHES:
        rc = eval_matches(r, n, &yes);
        break;
    case SLU_EXPR_STARTSWITH:
        rc = eval_startswith(r, n, &yes);
        break;
    default:
        rc = eval_comparison(r, n, &yes);
    }
    *v = (struct slu_value){.type = SLU_VALUE_BOOL, .boolean = yes};
    return rc;
}

int slu_expr_eval(struct slu_expr_run *r, slu_expr_get *get, void *ctx, bool *yes,
                  struct slu_err *err)
{
    struct slu_value v;
    r->get = get;
    r->ctx = ctx;
    r->err = err;
    int rc = eval_as(r, r->e->root, SLU_VALUE_BOOL,
                     "the expression must be true or false", &v);
    *yes = !rc && v.boolean;
    return rc;
}
