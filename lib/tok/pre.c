/* pre.c - the steps of a pre-tokenizer, made and run. */
#include "lib/tok/pre.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pre_new(struct tok_pre **pre, struct slu_err *err)
{
    *pre = calloc(1, sizeof **pre);
    return *pre ? SLU_OK : slu_fail_nomem(err, sizeof **pre);
}

void pre_free(struct tok_pre *pre)
{
    if (!pre)
        return;
    for (size_t i = 0; i < pre->n; i++)
        pre_regex_free(pre->step[i].regex);
    free(pre->step);
    slu_buf_release(&pre->spec);
    free(pre);
}

/* Takes ownership of step.regex, also when it fails. */
static int add(struct tok_pre *pre, struct pre_step step, const char *what, size_t len,
               struct slu_err *err)
{
    int rc = slu_grow(&pre->step, &pre->cap, pre->n + 1, sizeof *pre->step, err);

    if (rc < 0) {
        pre_regex_free(step.regex);
        return rc;
    }
    pre->step[pre->n++] = step;
    if ((rc = slu_buf_printf(&pre->spec, err, "%d %zu ", (int)step.kind, len)) < 0)
        return rc;
    return slu_buf_append(&pre->spec, what, len, err);
}

int pre_add_prefix(struct tok_pre *pre, struct slu_err *err)
{
    return add(pre, (struct pre_step){PRE_PREFIX, NULL, NULL}, "", 0, err);
}

int pre_add_scan(struct tok_pre *pre, pre_scan_fn *scan, struct slu_err *err)
{
    const char *name = pre_scan_name(scan);

    return add(pre, (struct pre_step){PRE_SCAN, scan, NULL}, name, strlen(name), err);
}

int pre_add_regex(struct tok_pre *pre, const char *pattern, size_t len, bool keep,
                  struct slu_err *err)
{
    struct pre_step step = {keep ? PRE_KEEP : PRE_REGEX, NULL, NULL};
    int rc;

    if ((step.scan = pre_scan_by_regex(pattern, len)))
        return pre_add_scan(pre, step.scan, err);
    if ((rc = pre_regex_new(&step.regex, pattern, len, err)) < 0)
        return rc;
    return add(pre, step, pattern, len, err);
}

/* The number at *at and the space behind it. */
static bool spec_number(const uint8_t *p, size_t n, size_t *at, size_t *number)
{
    size_t from = *at;

    for (*number = 0; *at < n && p[*at] >= '0' && p[*at] <= '9' && *at - from < 9;)
        *number = *number * 10 + (p[(*at)++] - '0');
    return *at > from && *at < n && p[(*at)++] == ' ';
}

int pre_add_spec(struct tok_pre *pre, const void *spec, size_t n, struct slu_err *err)
{
    const uint8_t *p = spec;
    size_t at = 0, kind, len;
    int rc = SLU_OK;

    while (at < n && rc >= 0) {
        char name[32];
        if (!spec_number(p, n, &at, &kind) || !spec_number(p, n, &at, &len) ||
            len > n - at)
            return slu_fail(err, SLU_E_FORMAT, "not steps of a pre-tokenizer");
        const char *what = (const char *)p + at;
        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 0, what);
        pre_scan_fn *scan = kind == PRE_SCAN ? pre_scan_by_name(name) : NULL;
        at += len;
        if (scan)
            rc = pre_add_scan(pre, scan, err);
        else if (kind == PRE_REGEX || kind == PRE_KEEP)
            rc = pre_add_regex(pre, what, len, kind == PRE_KEEP, err);
        else if (kind == PRE_PREFIX)
            rc = pre_add_prefix(pre, err);
        else
            return slu_fail(err, SLU_E_UNSUPPORTED, "a step of kind %zu", kind);
    }
    if (rc >= 0 && (pre->spec.len != n || memcmp(pre->spec.data, spec, n)))
        return slu_fail(err, SLU_E_UNSUPPORTED, "steps that come out otherwise");
    return rc;
}

/* ---- running ---- */

struct pre_work {
    struct pre_match *match;
    struct slu_buf text; /* of PRE_PREFIX */
};

int pre_scratch_init(struct pre_scratch *s, const struct tok_pre *pre,
                     struct slu_err *err)
{
    s->n = pre->n;
    s->step = calloc(pre->n + 1, sizeof *s->step);
    if (!s->step)
        return slu_fail_nomem(err, (pre->n + 1) * sizeof *s->step);
    for (size_t i = 0; i < pre->n; i++) {
        int rc = pre->step[i].regex
                     ? pre_match_new(&s->step[i].match, pre->step[i].regex, err)
                     : SLU_OK;
        if (rc < 0)
            return rc;
    }
    return SLU_OK;
}

void pre_scratch_release(struct pre_scratch *s)
{
    for (size_t i = 0; s->step && i < s->n; i++) {
        pre_match_free(s->step[i].match);
        slu_buf_release(&s->step[i].text);
    }
    free(s->step);
    memset(s, 0, sizeof *s);
}

struct walk {
    const struct tok_pre *pre;
    struct pre_scratch *s;
    pre_emit_fn *emit;
    void *ctx;
    struct slu_err *err;
};

static int walk(struct walk *w, size_t k, const uint8_t *p, size_t n);

static int walk_scan(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    pre_scan_fn *scan = w->pre->step[k].scan;
    bool final = k + 1 == w->pre->n;
    int rc = SLU_OK;

    for (size_t pos = 0; pos < n && rc >= 0;) {
        size_t end = scan(p, n, pos);
        rc = final ? w->emit(w->ctx, p + pos, end - pos, w->err)
                   : walk(w, k + 1, p + pos, end - pos);
        pos = end;
    }
    return rc;
}

static int walk_regex(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    const struct pre_step *step = &w->pre->step[k];
    size_t pos = 0, start, end;
    int rc;

    while (pos < n) {
        rc = pre_match_next(step->regex, w->s->step[k].match, p, n, pos, &start, &end,
                            w->err);
        if (rc < 0)
            return rc;
        if (rc == SLU_EOF)
            start = end = n;
        if (start > pos && step->kind == PRE_REGEX &&
            (rc = walk(w, k + 1, p + pos, start - pos)) < 0)
            return rc;
        if (end > start && (rc = walk(w, k + 1, p + start, end - start)) < 0)
            return rc;
        pos = end;
    }
    return SLU_OK;
}

static int walk_prefix(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    struct slu_buf *text = &w->s->step[k].text;
    int rc;

    if (*p == ' ')
        return walk(w, k + 1, p, n);
    slu_buf_clear(text);
    if ((rc = slu_buf_append(text, " ", 1, w->err)) < 0 ||
        (rc = slu_buf_append(text, p, n, w->err)) < 0)
        return rc;
    return walk(w, k + 1, text->data, text->len);
}

static int walk(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    if (k == w->pre->n)
        return w->emit(w->ctx, p, n, w->err);
    switch (w->pre->step[k].kind) {
    case PRE_SCAN:
        return walk_scan(w, k, p, n);
    case PRE_PREFIX:
        return walk_prefix(w, k, p, n);
    default:
        return walk_regex(w, k, p, n);
    }
}

int pre_run(const struct tok_pre *pre, struct pre_scratch *s, const uint8_t *p,
            size_t n, pre_emit_fn *emit, void *ctx, struct slu_err *err)
{
    struct walk w = {pre, s, emit, ctx, err};

    return walk(&w, 0, p, n);
}
