#include "pcre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define STACK_START  (64 << 10)
#define STACK_MAX    (256 << 20) /* reserved, not used, until a match needs it */
#define LEAST_STEPS  1000000
#define STEPS_A_BYTE 16 /* an expression that is not hostile takes a few */
/* PCRE2 copies its heap when that grows: half as much again is in use then. */
#define HEAP_LIMIT_KIB (SLU_PCRE_RUN_BYTE / 3 * 2 >> 10)
#define MOST_REPEATS   1000
/* With a JIT. A tokenizer's pattern takes a few a byte. */
#define JIT_LEAST  10000000
#define JIT_A_BYTE 64
#define REF_BYTES  16 /* bytes of a group that are compared in a step's time */

struct slu_pcre {
    pcre2_code *code;
    uint32_t most_ref; /* the highest group that the pattern refers to; 0: none */
};

struct slu_pcre_run {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool jit;
    /* Of the search, without jit: */
    size_t n_step, most_step;
    size_t at; /* byte of the text at the last step */
    uint32_t most_ref;
};

/* ---- counted repeats ---- */

/* Returns the end of what begins at p, as far as it can hold braces that are no repeat:
 * an escape, a quotation, a class. */
static const char *skip_item(const char *p, const char *end)
{
    if (end - p >= 2 && *p == '\\' && p[1] == 'Q') {
        const char *e = memmem(p, (size_t)(end - p), "\\E", 2);
        return e ? e + 2 : end;
    }
    if (*p == '\\') {
        p += end - p >= 2 ? 2 : 1;
        const char *e = p < end && *p == '{' && strchr("xopPNkg", p[-1])
                            ? memchr(p, '}', (size_t)(end - p))
                            : NULL;
        return e ? e + 1 : p;
    }
    if (*p++ != '[')
        return p;
    p += p < end && *p == '^';
    for (const char *first = p; p < end && (*p != ']' || p == first);)
        p = *p == '\\' ? skip_item(p, end) : p + 1;
    return p < end ? p + 1 : p;
}

/* Returns the first repeat {…} with a number above MOST_REPEATS; NULL: there is
 * none. */
static const char *long_repeat(const char *p, size_t n)
{
    for (const char *end = p + n; p < end; p = skip_item(p, end)) {
        unsigned long most = 0, k = 0;
        const char *q = p + 1;
        if (*p != '{')
            continue;
        for (; q < end && strchr("0123456789, ", *q); q++) {
            k = *q >= '0' && *q <= '9' ? 10 * (k % 100000) + (unsigned)(*q - '0') : 0;
            most = k > most ? k : most;
        }
        if (q < end && *q == '}' && most > MOST_REPEATS)
            return p;
    }
    return NULL;
}

/* ---- expressions ---- */

int slu_pcre_new(struct slu_pcre **out, const char *pattern, size_t n,
                 const struct slu_pcre_cfg *cfg, size_t *at, struct slu_err *err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C |
                             (cfg->multiline ? PCRE2_MULTILINE : 0) |
                             (cfg->jit ? 0 : PCRE2_AUTO_CALLOUT);
    const char *repeat = cfg->jit || !n ? NULL : long_repeat(pattern, n);
    struct slu_pcre *r = calloc(1, sizeof *r);
    pcre2_compile_context *context = r ? pcre2_compile_context_create(NULL) : NULL;
    PCRE2_SIZE off = 0;
    int code = 0;

    *out = NULL;
    *at = 0;
    if (repeat) {
        free(r);
        pcre2_compile_context_free(context);
        *at = (size_t)(repeat - pattern);
        return slu_fail(err, cfg->refused,
                        "a repeat of more than %d times; expected at most %d",
                        MOST_REPEATS, MOST_REPEATS);
    }
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
    pcre2_pattern_info(r->code, PCRE2_INFO_BACKREFMAX, &r->most_ref);
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

/* ---- searches ---- */

/* Counts a step, and the bytes that the step before has passed. A step that goes back
 * passes none. A reference to a group may compare all its text and then fail, unseen:
 * with references each step counts the longest group's text too. */
static int count_step(pcre2_callout_block *b, void *data)
{
    struct slu_pcre_run *m = data;
    size_t longest = 0;

    for (uint32_t k = 1; k <= m->most_ref && k < b->capture_top; k++) {
        const size_t *span = b->offset_vector + 2 * (size_t)k;
        if (span[0] != PCRE2_UNSET && span[1] > span[0] && span[1] - span[0] > longest)
            longest = span[1] - span[0];
    }
    m->n_step += longest / REF_BYTES;
    m->n_step += 1 + (b->current_position > m->at ? b->current_position - m->at : 0);
    m->at = b->current_position;
    return m->n_step > m->most_step ? PCRE2_ERROR_MATCHLIMIT : 0;
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
        pcre2_set_depth_limit(m->context, UINT32_MAX);
    } else {
        pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
        pcre2_set_callout(m->context, count_step, m);
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

int slu_pcre_find(const struct slu_pcre *r, struct slu_pcre_run *m, const void *p,
                  size_t n, size_t pos, size_t *start, size_t *end, struct slu_err *err)
{
    const PCRE2_SPTR text = n ? p : (const void *)"";
    uint32_t options = PCRE2_NO_UTF_CHECK | (m->jit ? 0 : PCRE2_NO_JIT);
    uint64_t most;

    m->n_step = 0;
    m->most_step = LEAST_STEPS + STEPS_A_BYTE * n;
    m->at = pos;
    m->most_ref = r->most_ref;
    /* PCRE2's own, for one place; count_step counts no fewer */
    most = m->jit ? JIT_LEAST + JIT_A_BYTE * (uint64_t)(n - pos) : m->most_step;
    pcre2_set_match_limit(m->context, most < UINT32_MAX ? (uint32_t)most : UINT32_MAX);
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
