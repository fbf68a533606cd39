/* expr_parse.c - from the text of an expression to its tree, by recursive descent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/filter/expr_private.h"

enum token {
    T_END,
    T_NAME,   /* a field, or a word that the grammar knows */
    T_QUOTED, /* a field in backquotes */
    T_NUMBER,
    T_STRING,
    T_SIGN, /* any other: its bytes */
};

struct parser {
    struct slu_expr *e;
    const char *text;
    size_t n, at; /* of the token after the current one */
    /* the current token */
    enum token token;
    size_t from, len;
    struct slu_value number;
    size_t off; /* T_STRING: of its content in e->text, which is there last */
    size_t content_len;
    unsigned depth;
    struct slu_err *err;
};

uint32_t slu_expr_column(const char *text, size_t at)
{
    uint32_t c = 1;
    for (size_t i = 0; i < at; i++)
        c += ((uint8_t)text[i] & 0xc0) != 0x80;
    return c;
}

static uint32_t column(const struct parser *p, size_t at)
{
    return slu_expr_column(p->text, at);
}

static int fail(const struct parser *p, size_t at, const char *why)
{
    return slu_fail(p->err, SLU_E_USAGE, "column %u: %s", column(p, at), why);
}

/* Fails at the current token. */
static int expected(const struct parser *p, const char *what)
{
    if (p->token == T_END)
        return slu_fail(p->err, SLU_E_USAGE, "column %u: %s is missing at the end",
                        column(p, p->from), what);
    return slu_fail(p->err, SLU_E_USAGE, "column %u: expected %s, found %.*s",
                    column(p, p->from), what, (int)(p->len < 40 ? p->len : 40),
                    p->text + p->from);
}

/* ---- tokens ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_name(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || (uint8_t)c >= 0x80;
}

static bool in_name(char c)
{
    return begins_name(c) || is_digit(c) || c == '.' || c == '-';
}

/* Reads a number as JSON writes it. Integers of more than 64 bits are refused: so a
 * comparison with a number is exact, whatever the record has. */
static int take_number(struct parser *p)
{
    const char *s = p->text + p->from;
    size_t i = s[0] == '-';
    char buf[64];
    uint64_t magnitude;
    bool whole = true;

    while (is_digit(s[i]))
        i++;
    if (s[i] == '.') {
        whole = false;
        for (i++; is_digit(s[i]);)
            i++;
    }
    if ((s[i] | 32) == 'e') {
        whole = false;
        i += 1 + (s[i + 1] == '+' || s[i + 1] == '-');
        while (is_digit(s[i]))
            i++;
    }
    p->len = i;
    if (in_name(s[i]) || !is_digit(s[i - 1]) || !is_digit(s[s[0] == '-']))
        return fail(p, p->from, "not a number");
    if (i >= sizeof buf)
        return fail(p, p->from, "a number of more than 63 characters");
    memcpy(buf, s, i);
    buf[i] = 0;
    p->number = slu_value_of_number(buf);
    if (!isfinite(p->number.number))
        return fail(p, p->from, "a number beyond all doubles");
    if (whole && !slu_value_integer(&p->number, &magnitude))
        return fail(p, p->from,
                    "an integer of 2^64 or more; compare such ids as strings");
    p->token = T_NUMBER;
    return SLU_OK;
}

/* Reads a string: its content is appended to e->text. */
static int take_string(struct parser *p)
{
    const char quote = p->text[p->from];
    size_t i = p->from + 1;
    while (i < p->n && p->text[i] != quote)
        i += quote == '"' && p->text[i] == '\\' && i + 1 < p->n ? 2 : 1;
    if (i >= p->n)
        return fail(p, p->from,
                    quote == '`' ? "the backquote has no other"
                                 : "the quote has no other");
    const size_t n = i - p->from - 1;
    p->len = n + 2;
    p->off = p->e->text.len;
    p->content_len = n;
    p->token = quote == '`' ? T_QUOTED : T_STRING;
    if (quote != '"' || !memchr(p->text + p->from + 1, '\\', n))
        return slu_buf_append(&p->e->text, p->text + p->from + 1, n, p->err);
    struct slu_json *j;
    const char *s;
    size_t len;
    int rc = slu_json_parse(&j, p->text + p->from, p->len, NULL);
    if (rc == SLU_E_NOMEM)
        return slu_fail_nomem(p->err, n);
    if (rc || !slu_json_string(slu_json_root(j), &s, &len)) {
        if (!rc)
            slu_json_free(j);
        return fail(p, p->from,
                    "not a string as JSON has it; a backslash is written \\\\, or the "
                    "string in 'single quotes'");
    }
    p->content_len = len;
    rc = slu_buf_append(&p->e->text, s, len, p->err);
    slu_json_free(j);
    return rc;
}

/* Goes to the next token. */
static int next(struct parser *p)
{
    while (p->at < p->n && is_space(p->text[p->at]))
        p->at++;
    p->from = p->at;
    p->len = 1;
    if (p->at == p->n) {
        p->token = T_END;
        return SLU_OK;
    }
    const char c = p->text[p->at], d = p->text[p->at + 1];
    int rc = SLU_OK;
    if (begins_name(c)) {
        p->token = T_NAME;
        while (in_name(p->text[p->at + p->len]))
            p->len++;
    } else if (is_digit(c) || (c == '-' && (is_digit(d) || d == '.'))) {
        rc = take_number(p);
    } else if (c == '"' || c == '\'' || c == '`') {
        rc = take_string(p);
    } else {
        p->token = T_SIGN;
        p->len = d == '=' && strchr("<>=!", c) ? 2 : 1;
    }
    p->at = p->from + p->len;
    return rc;
}

static bool is(const struct parser *p, enum token token, const char *s)
{
    return p->token == token && p->len == strlen(s) &&
           !memcmp(p->text + p->from, s, p->len);
}

/* Takes the token if it is this one. */
static int take(struct parser *p, enum token token, const char *s, bool *taken)
{
    *taken = is(p, token, s);
    return *taken ? next(p) : SLU_OK;
}

static int must_take(struct parser *p, const char *sign)
{
    return is(p, T_SIGN, sign) ? next(p) : expected(p, sign);
}

/* ---- the tree ---- */

static int add_node(struct parser *p, enum slu_expr_op op, size_t at, uint32_t first,
                    uint32_t *out)
{
    struct slu_expr *e = p->e;
    int rc = slu_grow(&e->node, &e->cap_node, e->n_node + 1, sizeof *e->node, p->err);
    if (rc)
        return rc;
    *out = (uint32_t)e->n_node++;
    e->node[*out] =
        (struct slu_expr_node){.op = op, .at = (uint32_t)at, .first = first};
    return SLU_OK;
}

static int add_field(struct parser *p, const char *name, size_t n, uint32_t *out)
{
    struct slu_expr *e = p->e;
    size_t i = 0;
    const char *have;
    int rc = add_node(p, SLU_EXPR_FIELD, p->from, 0, out);
    if (rc)
        return rc;
    for (; i < e->n_field; i++) {
        have = (const char *)e->text.data + e->field[i];
        if (strlen(have) == n && !memcmp(have, name, n))
            break;
    }
    e->node[*out].number = (uint32_t)i;
    if (i < e->n_field)
        return SLU_OK;
    if (i == SLU_EXPR_FIELDS)
        return fail(p, p->from, "more fields than an expression can have (48)");
    rc = slu_grow(&e->field, &e->cap_field, i + 1, sizeof *e->field, p->err);
    if (rc)
        return rc;
    e->field[e->n_field++] = e->text.len;
    rc = slu_buf_append(&e->text, name, n, p->err);
    return rc ? rc : slu_buf_append(&e->text, "", 1, p->err);
}

static int add_literal(struct parser *p, struct slu_value v, uint32_t *out)
{
    int rc = add_node(p, SLU_EXPR_LITERAL, p->from, 0, out);
    if (rc)
        return rc;
    p->e->node[*out].literal = v;
    p->e->node[*out].off = p->off;
    return next(p);
}

/* Takes a literal, if the token is one. */
static int take_literal(struct parser *p, uint32_t *out)
{
    static const struct {
        const char *name;
        struct slu_value value;
    } words[] = {{"null", {.type = SLU_VALUE_NULL}},
                 {"true", {.type = SLU_VALUE_BOOL, .boolean = true}},
                 {"false", {.type = SLU_VALUE_BOOL}}};

    *out = 0;
    if (p->token == T_NUMBER)
        return add_literal(p, p->number, out);
    if (p->token == T_STRING)
        return add_literal(
            p, (struct slu_value){.type = SLU_VALUE_STRING, .len = p->content_len},
            out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(p, T_NAME, words[i].name))
            return add_literal(p, words[i].value, out);
    return SLU_OK;
}

static int parse_or(struct parser *p, uint32_t *out);

/* Takes "(" argument {"," argument} ")" of a function with n arguments. */
static int take_call(struct parser *p, enum slu_expr_op op, unsigned n, uint32_t *out)
{
    const size_t at = p->from;
    uint32_t arg[2] = {0};
    int rc = next(p);
    if (!rc)
        rc = must_take(p, "(");
    for (unsigned i = 0; i < n && !rc; i++) {
        if (i)
            rc = must_take(p, ",");
        if (!rc)
            rc = parse_or(p, &arg[i]);
    }
    if (!rc)
        rc = must_take(p, ")");
    if (!rc)
        rc = add_node(p, op, at, arg[0], out);
    if (!rc && n == 2)
        p->e->node[arg[0]].next = arg[1];
    return rc;
}

static int parse_operand(struct parser *p, uint32_t *out)
{
    static const char *const words[] = {"and", "or", "not", "in", "matches"};
    bool open;
    int rc = take(p, T_SIGN, "(", &open);
    if (rc)
        return rc;
    if (open) {
        rc = parse_or(p, out);
        return rc ? rc : must_take(p, ")");
    }
    rc = take_literal(p, out);
    if (rc || *out)
        return rc;
    if (p->token == T_QUOTED) {
        /* The content is the end of e->text, and may become a name there. */
        char *name = malloc(p->content_len + 1);
        if (!name)
            return slu_fail_nomem(p->err, p->content_len + 1);
        memcpy(name, p->text + p->from + 1, p->content_len);
        rc = p->content_len ? add_field(p, name, p->content_len, out)
                            : fail(p, p->from, "a field without a name");
        free(name);
        return rc ? rc : next(p);
    }
    if (p->token != T_NAME)
        return expected(p, "a field or a value");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(p, T_NAME, words[i]))
            return expected(p, "a field or a value");
    size_t i = p->at;
    while (i < p->n && is_space(p->text[i]))
        i++;
    if (i < p->n && p->text[i] == '(') {
        if (is(p, T_NAME, "len"))
            return take_call(p, SLU_EXPR_LEN, 1, out);
        if (is(p, T_NAME, "startswith"))
            return take_call(p, SLU_EXPR_STARTSWITH, 2, out);
        return expected(p, "len or startswith before a parenthesis");
    }
    rc = add_field(p, p->text + p->from, p->len, out);
    return rc ? rc : next(p);
}

/* Takes "[" literal {"," literal} "]" behind `in`, whose left side is `left`. */
static int take_list(struct parser *p, size_t at, uint32_t left, uint32_t *out)
{
    uint32_t last = left, item;
    bool more = true;
    int rc = must_take(p, "[");
    while (!rc && more) {
        rc = take_literal(p, &item);
        if (!rc && !item)
            rc = expected(p, "a string, a number, true, false or null");
        if (rc)
            return rc;
        p->e->node[last].next = item;
        last = item;
        rc = take(p, T_SIGN, ",", &more);
    }
    if (!rc)
        rc = must_take(p, "]");
    return rc ? rc : add_node(p, SLU_EXPR_IN, at, left, out);
}

static int take_regex(struct parser *p, size_t at, uint32_t left, uint32_t *out)
{
    static const struct slu_pcre_cfg cfg = {.refused = SLU_E_USAGE};
    struct slu_expr *e = p->e;
    size_t where;
    if (p->token != T_STRING)
        return expected(p, "a pattern in quotes");
    int rc =
        slu_grow(&e->regex, &e->cap_regex, e->n_regex + 1, sizeof *e->regex, p->err);
    if (rc)
        return rc;
    const char *text = p->content_len ? (const char *)e->text.data + p->off : "";
    rc =
        slu_pcre_new(&e->regex[e->n_regex], text, p->content_len, &cfg, &where, p->err);
    if (rc)
        return slu_err_at(p->err, "column %u: character %u of the pattern",
                          column(p, p->from), (unsigned)where + 1);
    e->n_regex++;
    rc = add_node(p, SLU_EXPR_MATCHES, at, left, out);
    if (rc)
        return rc;
    e->node[*out].number = (uint32_t)(e->n_regex - 1);
    return next(p);
}

/* Whether a tree can only be a boolean, or cannot be one. */
static bool is_no_boolean(const struct slu_expr_node *n)
{
    return n->op == SLU_EXPR_LEN ||
           (n->op == SLU_EXPR_LITERAL && n->literal.type != SLU_VALUE_BOOL);
}

static int must_be_boolean(const struct parser *p, uint32_t node)
{
    const struct slu_expr_node *n = &p->e->node[node];
    return is_no_boolean(n)
               ? slu_fail(p->err, SLU_E_USAGE,
                          "column %u: is neither true nor false; compare it with "
                          "something",
                          column(p, n->at))
               : SLU_OK;
}

static int parse_comparison(struct parser *p, uint32_t *out)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    uint32_t right = 0;
    int rc = parse_operand(p, out);
    size_t at = p->from;
    bool found = false, in, negated;
    if (rc)
        return rc;
    if (is(p, T_SIGN, "="))
        return fail(p, at, "= is written ==");
    for (unsigned i = 0; i < 6 && !found; i++) {
        rc = take(p, T_SIGN, signs[i], &found);
        if (!rc && found)
            rc = parse_operand(p, &right);
        if (!rc && found) {
            const uint32_t left = *out;
            rc = add_node(p, (enum slu_expr_op)(SLU_EXPR_EQ + i), at, left, out);
            if (!rc)
                p->e->node[left].next = right;
        }
        if (rc)
            return rc;
    }
    if (found && p->token == T_SIGN && strchr("<>=!", p->text[p->from]))
        return fail(p, p->from, "a comparison of a comparison; join two with and");
    if (found)
        return SLU_OK;
    rc = take(p, T_NAME, "matches", &found);
    if (rc || found)
        return rc ? rc : take_regex(p, at, *out, out);
    rc = take(p, T_NAME, "not", &negated);
    if (!rc)
        rc = take(p, T_NAME, "in", &in);
    if (!rc && negated && !in)
        rc = expected(p, "in");
    if (!rc && in)
        rc = take_list(p, at, *out, out);
    return rc || !negated ? rc : add_node(p, SLU_EXPR_NOT, at, *out, out);
}

static int parse_not(struct parser *p, uint32_t *out)
{
    const size_t at = p->from;
    unsigned n = 0;
    bool another = true;
    int rc = SLU_OK;
    while (!rc && another) {
        rc = take(p, T_NAME, "not", &another);
        n += another;
        if (!rc && p->depth + n > SLU_EXPR_DEPTH)
            rc = fail(p, p->from, "nested too deeply");
    }
    p->depth += n;
    if (!rc)
        rc = parse_comparison(p, out);
    p->depth -= n;
    if (!rc && n)
        rc = must_be_boolean(p, *out);
    while (!rc && n--)
        rc = add_node(p, SLU_EXPR_NOT, at, *out, out);
    return rc;
}

/* Takes operands that `word` joins; one alone is itself. */
static int parse_joined(struct parser *p, const char *word, enum slu_expr_op op,
                        int (*operand)(struct parser *, uint32_t *), uint32_t *out)
{
    const size_t at = p->from;
    uint32_t first, last, item;
    bool more;
    int rc = operand(p, &first);
    last = *out = first;
    for (unsigned n = 0; !rc; n++) {
        rc = take(p, T_NAME, word, &more);
        if (rc || !more) {
            if (!rc && n)
                rc = add_node(p, op, at, first, out);
            return rc;
        }
        rc = must_be_boolean(p, last);
        if (!rc)
            rc = operand(p, &item);
        if (!rc)
            rc = must_be_boolean(p, item);
        if (!rc)
            p->e->node[last].next = item;
        last = item;
    }
    return rc;
}

static int parse_and(struct parser *p, uint32_t *out)
{
    return parse_joined(p, "and", SLU_EXPR_AND, parse_not, out);
}

static int parse_or(struct parser *p, uint32_t *out)
{
    if (++p->depth > SLU_EXPR_DEPTH)
        return fail(p, p->from, "nested too deeply");
    int rc = parse_joined(p, "or", SLU_EXPR_OR, parse_and, out);
    p->depth--;
    return rc;
}

int slu_expr_new(struct slu_expr **out, const char *text, struct slu_err *err)
{
    const size_t n = strlen(text);
    struct slu_expr *e = calloc(1, sizeof *e);
    struct parser p = {.e = e, .text = text, .n = n, .err = err};
    int rc = e ? SLU_OK : slu_fail_nomem(err, sizeof *e);

    *out = NULL;
    if (!rc && n > SLU_EXPR_BYTE)
        rc = slu_fail(err, SLU_E_USAGE, "column %u: longer than 64 KiB",
                      SLU_EXPR_BYTE + 1);
    const size_t valid = slu_utf8_valid_prefix((const uint8_t *)text, n);
    if (!rc && valid < n)
        rc = fail(&p, valid, "not valid UTF-8");
    if (!rc)
        rc = slu_grow(&e->node, &e->cap_node, 1, sizeof *e->node, err);
    if (!rc && !(e->source = strdup(text)))
        rc = slu_fail_nomem(err, n);
    if (!rc) {
        e->n_node = 1;
        rc = next(&p);
    }
    if (!rc)
        rc = parse_or(&p, &e->root);
    if (!rc && p.token != T_END)
        rc = expected(&p, "and, or (in small letters), or the end");
    if (!rc)
        rc = must_be_boolean(&p, e->root);
    if (rc) {
        slu_expr_free(e);
        return rc;
    }
    /* text does not move any more; without strings it is NULL */
    for (size_t i = 1; i < e->n_node && e->text.data; i++)
        e->node[i].literal.string = (const char *)e->text.data + e->node[i].off;
    *out = e;
    return SLU_OK;
}

void slu_expr_free(struct slu_expr *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->n_regex; i++)
        slu_pcre_free(e->regex[i]);
    free(e->regex);
    free(e->field);
    free(e->node);
    free(e->source);
    slu_buf_release(&e->text);
    free(e);
}

size_t slu_expr_n_field(const struct slu_expr *e)
{
    return e->n_field;
}

const char *slu_expr_field(const struct slu_expr *e, size_t i)
{
    return (const char *)e->text.data + e->field[i];
}

bool slu_expr_expects_null(const struct slu_expr *e, size_t field)
{
    for (size_t i = 1; i < e->n_node; i++) {
        const struct slu_expr_node *n = &e->node[i];
        bool is_field = false, is_null = false;
        if (n->op != SLU_EXPR_EQ && n->op != SLU_EXPR_NE && n->op != SLU_EXPR_IN)
            continue;
        for (uint32_t k = n->first; k; k = e->node[k].next) {
            const struct slu_expr_node *o = &e->node[k];
            is_field |= o->op == SLU_EXPR_FIELD && o->number == field;
            is_null |= o->op == SLU_EXPR_LITERAL && o->literal.type == SLU_VALUE_NULL;
        }
        if (is_field && is_null)
            return true;
    }
    return false;
}
