#include "pcre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#define STACK_START    (64 << 10)
#define STACK_MAX      (256 << 20) /* reserved, not used, until a match needs it */
#define LEAST_STEPS    1000000
#define STEPS_A_BYTE   16 /* an expression that is not hostile takes a few */
#define HEAP_LIMIT_KIB (64 << 10)

struct slu_pcre {
    pcre2_code *code;
};

struct slu_pcre_run {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool jit;
};

int slu_pcre_new(struct slu_pcre **out, const char *pattern, size_t n,
                 const struct slu_pcre_cfg *cfg, size_t *at, struct slu_err *err)
{
    const uint32_t options =
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (cfg->multiline ? PCRE2_MULTILINE : 0);
    struct slu_pcre *r = calloc(1, sizeof *r);
    pcre2_compile_context *context = r ? pcre2_compile_context_create(NULL) : NULL;
    PCRE2_SIZE off = 0;
    int code = 0;

    *out = NULL;
    *at = 0;
    if (!context) {
        free(r);
        return slu_fail_nomem(err, sizeof *r);
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile((PCRE2_SPTR)pattern, n, options, &code, &off, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        unsigned char why[256] = "";
        pcre2_get_error_message(code, why, sizeof why);
        free(r);
        *at = off;
        return slu_fail(err, cfg->refused, "PCRE2 refuses the pattern: %s", why);
    }
    /* Without a JIT the interpreter finds the same, more slowly. */
    if (cfg->jit)
        (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    *out = r;
    return SLU_OK;
}

void slu_pcre_free(struct slu_pcre *r)
{
    if (r)
        pcre2_code_free(r->code);
    free(r);
}

bool slu_pcre_matches_empty(const struct slu_pcre *r)
{
    uint32_t empty = 0;

    pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &empty);
    return empty;
}

int slu_pcre_run_new(struct slu_pcre_run **out, bool jit, struct slu_err *err)
{
    struct slu_pcre_run *m = calloc(1, sizeof *m);
    uint32_t able = 0;

    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->jit = jit;
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    pcre2_config(PCRE2_CONFIG_JIT, &able);
    if (jit && able)
        m->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    if (!m->data || !m->context || (jit && able && !m->stack)) {
        slu_pcre_run_free(m);
        *out = NULL;
        return slu_fail_nomem(err, STACK_START);
    }
    if (m->stack)
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    if (jit) {
        pcre2_set_match_limit(m->context, UINT32_MAX);
        pcre2_set_depth_limit(m->context, UINT32_MAX);
    } else {
        pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    }
    return SLU_OK;
}

void slu_pcre_run_free(struct slu_pcre_run *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

static uint32_t steps_for(size_t n)
{
    return n > (UINT32_MAX - LEAST_STEPS) / STEPS_A_BYTE
               ? UINT32_MAX
               : (uint32_t)(LEAST_STEPS + n * STEPS_A_BYTE);
}

int slu_pcre_find(const struct slu_pcre *r, struct slu_pcre_run *m, const void *p,
                  size_t n, size_t pos, size_t *start, size_t *end, struct slu_err *err)
{
    const PCRE2_SPTR text = n ? p : (const void *)"";
    uint32_t options = PCRE2_NO_UTF_CHECK | (m->jit ? 0 : PCRE2_NO_JIT);

    if (!m->jit)
        pcre2_set_match_limit(m->context, steps_for(n));
    int rc = pcre2_match(r->code, text, n, pos, options, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, text, n, pos, options | PCRE2_NO_JIT, m->data,
                         m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return SLU_EOF;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return slu_fail_nomem(err, n);
    if (rc < 0) {
        unsigned char why[256] = "";
        pcre2_get_error_message(rc, why, sizeof why);
        return slu_fail_at(err, SLU_E_LIMIT, pos, "%s", why);
    }
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
    *start = span[0];
    *end = span[1];
    return SLU_OK;
}
