/* pre.c - the steps of a pre-tokenizer, made and run. */
#include "lib/token/pre.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pre_new(struct tok_pre **pre, struct slu_err *err)
{
    *pre = calloc(1, sizeof **pre);
    return *pre ? SLU_OK : slu_fail_nomem(err, sizeof **pre);
}

static void step_release(struct pre_step *step)
{
    slu_pcre_free(step->regex);
    free(step->pattern);
}

void pre_free(struct tok_pre *pre)
{
    if (!pre)
        return;
    for (size_t i = 0; i < pre->n; i++)
        step_release(&pre->step[i]);
    free(pre->step);
    slu_buf_release(&pre->spec);
    free(pre);
}

#define PRE_SPEC_INVERT 64 /* added to the kind in a spec */

/* Adds a step. Takes ownership of step.pattern, also when it fails. */
static int add(struct tok_pre *pre, struct pre_step step, const char *what, size_t len,
               struct slu_err *err)
{
    int rc = slu_grow(&pre->step, &pre->cap, pre->n + 1, sizeof *pre->step, err);

    if (rc) {
        step_release(&step);
        return rc;
    }
    pre->step[pre->n++] = step;
    if ((rc =
             slu_buf_printf(&pre->spec, err, "%d %zu ",
                            (int)step.kind | (step.invert ? PRE_SPEC_INVERT : 0), len)))
        return rc;
    return slu_buf_append(&pre->spec, what, len, err);
}

int pre_add_prefix(struct tok_pre *pre, struct slu_err *err)
{
    return add(pre, (struct pre_step){.kind = PRE_PREFIX}, "", 0, err);
}

int pre_add_scan(struct tok_pre *pre, pre_scan_fn *scan, struct slu_err *err)
{
    const char *name = pre_scan_name(scan);

    return add(pre, (struct pre_step){.kind = PRE_SCAN, .scan = scan}, name,
               strlen(name), err);
}

int pre_add_regex(struct tok_pre *pre, const char *pattern, size_t len,
                  enum pre_kind kind, bool invert, struct slu_err *err)
{
    struct pre_step step = {.kind = kind, .invert = invert};

    /* The matches of a known expression cover every byte. */
    if ((kind == PRE_REGEX || (kind == PRE_KEEP && !invert)) &&
        (step.scan = pre_scan_by_regex(pattern, len)))
        return pre_add_scan(pre, step.scan, err);
    if (memchr(pattern, 0, len))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "pre-tokenizer: a NUL in a regular expression");
    if (!(step.pattern = strndup(pattern, len)))
        return slu_fail_nomem(err, len);
    return add(pre, step, pattern, len, err);
}

/* Returns a step as pre_scan_by_row expects it; NULL: it cannot be part of a row. */
static const char *row_name(const struct pre_step *step)
{
    if (step->kind == PRE_REGEX)
        return step->pattern;
    return step->kind == PRE_SCAN && step->scan == pre_scan_by_name("gpt2") ? "=gpt2"
                                                                            : NULL;
}

static void join_rows(struct tok_pre *pre)
{
    for (size_t i = 0; i < pre->n; i++) {
        const char *name[PRE_ROW_MAX];
        pre_scan_fn *scan = NULL;
        size_t n = 0;
        while (n < PRE_ROW_MAX && i + n < pre->n &&
               (name[n] = row_name(&pre->step[i + n])))
            n++;
        for (; n > 1 && !(scan = pre_scan_by_row(name, n)); n--)
            ;
        if (!scan)
            continue;
        for (size_t k = i; k < i + n; k++)
            step_release(&pre->step[k]);
        pre->step[i] = (struct pre_step){.kind = PRE_SCAN, .scan = scan};
        memmove(&pre->step[i + 1], &pre->step[i + n],
                (pre->n - i - n) * sizeof *pre->step);
        pre->n -= n - 1;
    }
}

int pre_finish(struct tok_pre *pre, struct slu_err *err)
{
    int rc = SLU_OK;

    join_rows(pre);
    for (size_t i = 0; i < pre->n && !rc; i++) {
        struct pre_step *step = &pre->step[i];
        if (step->pattern && !step->regex)
            rc = pre_regex_new(&step->regex, step->pattern, strlen(step->pattern), err);
    }
    return rc;
}

/* Reads the number at *at and the space after it. */
static bool spec_number(const uint8_t *p, size_t n, size_t *at, size_t *number)
{
    size_t from = *at;

    for (*number = 0; *at < n && p[*at] >= '0' && p[*at] <= '9' && *at - from < 9;)
        *number = *number * 10 + (p[(*at)++] - '0');
    return *at > from && *at < n && p[(*at)++] == ' ';
}

static bool is_regex(size_t kind)
{
    return kind == PRE_REGEX || kind == PRE_KEEP ||
           (kind >= PRE_DROP && kind <= PRE_RUNS);
}

int pre_add_spec(struct tok_pre *pre, const void *spec, size_t n, struct slu_err *err)
{
    const uint8_t *p = spec;
    size_t at = 0, kind, len;
    int rc = SLU_OK;

    while (at < n && !rc) {
        char name[32];
        if (!spec_number(p, n, &at, &kind) || !spec_number(p, n, &at, &len) ||
            len > n - at)
            return slu_fail(err, SLU_E_FORMAT, "its pre-tokenizer is damaged");
        const char *what = (const char *)p + at;
        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 0, what);
        pre_scan_fn *scan = kind == PRE_SCAN ? pre_scan_by_name(name) : NULL;
        at += len;
        if (scan)
            rc = pre_add_scan(pre, scan, err);
        else if (is_regex(kind & ~PRE_SPEC_INVERT))
            rc = pre_add_regex(pre, what, len, kind & ~PRE_SPEC_INVERT,
                               kind & PRE_SPEC_INVERT, err);
        else if (kind == PRE_PREFIX)
            rc = pre_add_prefix(pre, err);
        else
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "its pre-tokenizer has a step of unknown kind %zu", kind);
    }
    if (!rc && (pre->spec.len != n || (n && memcmp(pre->spec.data, spec, n) != 0)))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "its pre-tokenizer's steps differ when read back");
    return rc ? rc : pre_finish(pre, err);
}

/* ---- running ---- */

struct pre_work {
    struct slu_pcre_run *match;
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
        int rc = pre->step[i].regex ? slu_pcre_run_new(&s->step[i].match, true, err)
                                    : SLU_OK;
        if (rc)
            return rc;
    }
    return SLU_OK;
}

void pre_scratch_release(struct pre_scratch *s)
{
    for (size_t i = 0; s->step && i < s->n; i++) {
        slu_pcre_run_free(s->step[i].match);
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

    for (size_t pos = 0; pos < n && !rc;) {
        size_t end = scan(p, n, pos);
        rc = final ? w->emit(w->ctx, p + pos, end - pos, w->err)
                   : walk(w, k + 1, p + pos, end - pos);
        pos = end;
    }
    return rc;
}

/* A Split, which gets the parts of a text in order: matches, and the text between them.
 * A part that may still grow is held back. */
struct split {
    struct walk *w;
    size_t k; /* the step */
    const uint8_t *p;
    size_t from, to; /* held: nothing if from == to */
    bool last;       /* the previous part was a match */
};

static int flush(struct split *s)
{
    size_t from = s->from, n = s->to - from;

    s->from = s->to;
    return n ? walk(s->w, s->k + 1, s->p + from, n) : SLU_OK;
}

static int part(struct split *s, size_t from, size_t to, bool match)
{
    const struct pre_step *step = &s->w->pre->step[s->k];
    bool last = s->last, held = s->from != s->to, join = false;
    int rc;

    if (from == to)
        return SLU_OK;
    s->last = match ^= step->invert;
    switch (step->kind) {
    case PRE_KEEP:
        return match ? walk(s->w, s->k + 1, s->p + from, to - from) : SLU_OK;
    case PRE_DROP:
        return match ? SLU_OK : walk(s->w, s->k + 1, s->p + from, to - from);
    case PRE_LEFT:
        join = held && match && !last;
        break;
    case PRE_RIGHT: /* only matches are held */
        join = held && !match && last;
        break;
    case PRE_RUNS:
        join = held && match == last;
        break;
    default:
        return walk(s->w, s->k + 1, s->p + from, to - from);
    }
    if (!join) {
        if ((rc = flush(s)))
            return rc;
        s->from = from;
    }
    s->to = to;
    return SLU_OK;
}

static int walk_regex(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    const struct pre_step *step = &w->pre->step[k];
    struct split s = {.w = w, .k = k, .p = p};
    size_t pos = 0, start, end;
    int rc;

    while (pos < n) {
        rc = pre_regex_next(step->regex, w->s->step[k].match, p, n, pos, &start, &end,
                            w->err);
        if (rc < 0)
            return rc;
        if (rc == SLU_EOF)
            start = end = n;
        if ((rc = part(&s, pos, start, false)) || (rc = part(&s, start, end, true)))
            return rc;
        pos = end;
    }
    return flush(&s);
}

static int walk_prefix(struct walk *w, size_t k, const uint8_t *p, size_t n)
{
    struct slu_buf *text = &w->s->step[k].text;
    int rc;

    if (*p == ' ')
        return walk(w, k + 1, p, n);
    slu_buf_clear(text);
    if ((rc = slu_buf_append(text, " ", 1, w->err)) ||
        (rc = slu_buf_append(text, p, n, w->err)))
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
