/* regex.c - splits by regular expressions without a scanner, by PCRE2 and its JIT;
 * regex_translate.c says why they are exact. */
#include "lib/token/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define STACK_START (64 << 10)
#define STACK_MAX   (256 << 20) /* reserved, not used, until a match needs it */

struct pre_regex {
    pcre2_code *code;
};

struct pre_match {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

int pre_regex_new(struct pre_regex **out, const char *pattern, size_t len,
                  struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct pre_regex *r = calloc(1, sizeof *r);
    int rc = r ? regex_translate(pattern, len, &text, err)
               : slu_fail_nomem(err, sizeof *r),
        code;
    PCRE2_SIZE at;

    *out = NULL;
    if (rc)
        goto out;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context)
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile(text.data, text.len,
                            PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        unsigned char why[256] = "";
        pcre2_get_error_message(code, why, sizeof why);
        rc = slu_fail(err, SLU_E_UNSUPPORTED,
                      "pre-tokenizer: the regular expression is refused by PCRE2: %s",
                      why);
        goto out;
    }
    uint32_t empty = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty) {
        rc = slu_fail(err, SLU_E_UNSUPPORTED,
                      "pre-tokenizer: the regular expression matches the empty text");
        goto out;
    }
    /* Without a JIT the interpreter does the same, more slowly. */
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    *out = r;
    r = NULL;
out:
    slu_buf_release(&text);
    pre_regex_free(r);
    return rc;
}

void pre_regex_free(struct pre_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r);
}

int pre_match_new(struct pre_match **out, const struct pre_regex *r,
                  struct slu_err *err)
{
    struct pre_match *m = calloc(1, sizeof *m);

    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    size_t jit = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_JITSIZE, &jit);
    if (jit)
        m->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    if (!m->data || !m->context || (jit && !m->stack)) {
        pre_match_free(m);
        *out = NULL;
        return slu_fail_nomem(err, STACK_START);
    }
    if (m->stack)
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    pcre2_set_match_limit(m->context, UINT32_MAX);
    pcre2_set_depth_limit(m->context, UINT32_MAX);
    return SLU_OK;
}

void pre_match_free(struct pre_match *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

int pre_match_next(const struct pre_regex *r, struct pre_match *m, const uint8_t *p,
                   size_t n, size_t pos, size_t *start, size_t *end,
                   struct slu_err *err)
{
    int rc = pcre2_match(r->code, p, n, pos, PCRE2_NO_UTF_CHECK, m->data, m->context);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, p, n, pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data,
                         m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return SLU_EOF;
    if (rc < 0) {
        unsigned char why[256] = "";
        pcre2_get_error_message(rc, why, sizeof why);
        return slu_fail_at(err, SLU_E_LIMIT, pos, "pre-tokenizer: %s", why);
    }
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
    *start = span[0];
    *end = span[1];
    return SLU_OK;
}
