/* expr_match.c - the regular expressions of expr.h, by PCRE2. */
#include "lib/filter/expr_private.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* A pattern that is not hostile takes a few steps for each byte of a text. */
#define MATCH_LIMIT    10000000
#define HEAP_LIMIT_KIB (64 << 10)
#define STACK_START    (64 << 10)
#define STACK_MAX      (16 << 20)

struct slu_regex {
    pcre2_code *code;
};

struct slu_regex_run {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

int slu_regex_new(struct slu_regex **out, const char *p, size_t n, size_t *at,
                  struct slu_err *err)
{
    struct slu_regex *r = calloc(1, sizeof *r);
    PCRE2_SIZE off = 0;
    int code = 0;

    *out = NULL;
    *at = 0;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    r->code = pcre2_compile((PCRE2_SPTR)p, n, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C,
                            &code, &off, NULL);
    if (!r->code) {
        unsigned char why[256] = "";
        pcre2_get_error_message(code, why, sizeof why);
        free(r);
        *at = off;
        return slu_fail(err, SLU_E_USAGE, "PCRE2 refuses the pattern: %s", why);
    }
    /* Without a JIT the interpreter does the same, more slowly. */
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    *out = r;
    return SLU_OK;
}

void slu_regex_free(struct slu_regex *r)
{
    if (r)
        pcre2_code_free(r->code);
    free(r);
}

int slu_regex_run_new(struct slu_regex_run **out, struct slu_err *err)
{
    struct slu_regex_run *m = calloc(1, sizeof *m);

    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    if (!m->data || !m->context) {
        slu_regex_run_free(m);
        *out = NULL;
        return slu_fail_nomem(err, STACK_START);
    }
    if (m->stack)
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    return SLU_OK;
}

void slu_regex_run_free(struct slu_regex_run *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

int slu_regex_search(const struct slu_regex *r, struct slu_regex_run *m, const char *p,
                     size_t n, bool *yes, struct slu_err *err)
{
    const PCRE2_SPTR text = (PCRE2_SPTR)(n ? p : "");
    int rc = pcre2_match(r->code, text, n, 0, PCRE2_NO_UTF_CHECK, m->data, m->context);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, text, n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         m->data, m->context);
    *yes = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return SLU_OK;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return slu_fail_nomem(err, n);
    unsigned char why[256] = "";
    pcre2_get_error_message(rc, why, sizeof why);
    return slu_fail(err, SLU_E_FORMAT, "matches gave up: %s", why);
}
