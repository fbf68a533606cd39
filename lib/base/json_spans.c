#include "lib/base/json_spans.h"

#include <string.h>

static const uint8_t *skip_space(const uint8_t *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* Passes over c and white space; NULL if another character is there. */
static const uint8_t *pass(const uint8_t *p, char c)
{
    return p && *p == (uint8_t)c ? skip_space(p + 1) : NULL;
}

/* Reads an integer without a sign; NULL: something else is there, or too large. */
static const uint8_t *number(const uint8_t *p, uint64_t *v)
{
    const uint8_t *from = p;
    *v = 0;
    for (; p && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*v, 10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*p - '0'), v))
            return NULL;
    if (!p || p == from || *p == '.' || *p == 'e' || *p == 'E')
        return NULL;
    return skip_space(p);
}

int slu_json_spans(struct slu_buf *out, const uint8_t *p, bool *good,
                   struct slu_err *err)
{
    int rc = SLU_OK;
    p = pass(p, '[');
    bool more = p && *p != ']';
    while (more && !rc) {
        uint64_t v[2];
        p = number(pass(p, '['), &v[0]);
        p = pass(number(pass(p, ','), &v[1]), ']');
        if (!p || v[0] > v[1])
            break;
        rc = slu_buf_append(out, v, sizeof v, err);
        more = *p == ',';
        p = more ? pass(p, ',') : p;
    }
    *good = p && !more;
    return rc;
}
