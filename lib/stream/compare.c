#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    enum slu_compare_op op;
} operators[] = {
    {">=", SLU_AT_LEAST}, {"<=", SLU_AT_MOST}, {"==", SLU_EQUAL}, {"!=", SLU_NOT},
    {">", SLU_MORE},      {"<", SLU_LESS},     {"=", SLU_EQUAL},
};
enum { N_OPERATOR = sizeof operators / sizeof *operators };

static const char *skip_spaces(const char *p)
{
    return p + strspn(p, " \t");
}

const char *slu_compare_parse(const char *text, struct slu_compare *c)
{
    const char *p = skip_spaces(text);
    size_t i = 0, n;
    char *end;

    while (i < N_OPERATOR && strncmp(p, operators[i].text, strlen(operators[i].text)))
        i++;
    if (i == N_OPERATOR)
        return NULL;
    p = skip_spaces(p + strlen(operators[i].text));
    n = strspn(p, "0123456789.eE+-");
    c->op = operators[i].op;
    c->v = strtod(p, &end);
    return n && end == p + n && isfinite(c->v) ? skip_spaces(end) : NULL;
}

bool slu_compare_holds(const struct slu_compare *c, double v)
{
    switch (c->op) {
    case SLU_LESS:
        return v < c->v;
    case SLU_AT_MOST:
        return v <= c->v;
    case SLU_EQUAL:
        return v == c->v;
    case SLU_AT_LEAST:
        return v >= c->v;
    case SLU_MORE:
        return v > c->v;
    case SLU_NOT:
        return v < c->v || v > c->v; /* a NaN fails */
    }
    return false;
}
