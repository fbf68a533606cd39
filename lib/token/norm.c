/* norm.c - a normalizer's steps, made and run; the normal forms are in norm_form.c. */
#include "lib/token/norm.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/token/align.h"
#include "lib/token/norm_data.h"
#include "lib/token/unicode.h"

int norm_new(struct tok_norm **norm, struct slu_err *err)
{
    *norm = calloc(1, sizeof **norm);
    return *norm ? SLU_OK : slu_fail_nomem(err, sizeof **norm);
}

void norm_free(struct tok_norm *norm)
{
    if (!norm)
        return;
    for (size_t i = 0; i < norm->n; i++)
        slu_pcre_free(norm->step[i].regex);
    free(norm->step);
    slu_buf_release(&norm->spec);
    free(norm);
}

static int put_str(struct slu_buf *b, const void *p, size_t n, size_t *off,
                   struct slu_err *err)
{
    uint8_t len[4];
    int rc;

    if (n > UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT, "a normalizer's text is longer than 4 GiB");
    slu_put_le32(len, (uint32_t)n);
    if ((rc = slu_buf_append(b, len, 4, err)))
        return rc;
    *off = b->len;
    return slu_buf_append(b, p, n, err);
}

int norm_add(struct tok_norm *norm, enum norm_kind kind, const void *a, size_t n_a,
             const void *b, size_t n_b, struct slu_err *err)
{
    struct norm_step step = {.kind = kind, .n_a = n_a, .n_b = n_b};
    uint8_t k = (uint8_t)kind;
    int rc;

    if (kind == NORM_REPLACE && !n_a)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the normalizer \"Replace\" of an empty text is not supported");
    if ((rc = slu_buf_append(&norm->spec, &k, 1, err)) ||
        (rc = put_str(&norm->spec, a, n_a, &step.a, err)) ||
        (rc = put_str(&norm->spec, b, n_b, &step.b, err)) ||
        (rc = slu_grow(&norm->step, &norm->cap, norm->n + 1, sizeof step, err)))
        return rc;
    if (kind == NORM_REPLACE_REGEX && (rc = pre_regex_new(&step.regex, a, n_a, err)))
        return rc;
    norm->step[norm->n++] = step;
    return SLU_OK;
}

int norm_from_spec(struct tok_norm **out, const void *spec, size_t n,
                   struct slu_err *err)
{
    const uint8_t *p = spec;
    size_t pos = 0;
    int rc = norm_new(out, err);

    while (!rc && pos < n) {
        uint8_t kind = p[pos++];
        size_t off[2], len[2];
        for (int k = 0; k < 2 && kind; k++) {
            len[k] = n - pos < 4 ? SIZE_MAX : slu_le32(p + pos);
            off[k] = pos += 4;
            if (len[k] > n || pos > n - len[k])
                kind = 0;
            else
                pos += len[k];
        }
        if (!kind || kind >= NORM_N_KIND)
            rc = slu_fail(err, SLU_E_FORMAT, "a normalizer is damaged");
        else
            rc = norm_add(*out, kind, p + off[0], len[0], p + off[1], len[1], err);
    }
    if (rc) {
        norm_free(*out);
        *out = NULL;
    }
    return rc;
}

int norm_scratch_init(struct norm_scratch *s, const struct tok_norm *norm,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    if (!norm)
        return SLU_OK;
    s->n_match = norm->n;
    s->match = calloc(norm->n + 1, sizeof *s->match);
    if (!s->match)
        return slu_fail_nomem(err, (norm->n + 1) * sizeof *s->match);
    for (size_t i = 0; i < norm->n && !rc; i++) {
        if (norm->step[i].regex)
            rc = slu_pcre_run_new(&s->match[i], true, err);
    }
    return rc;
}

void norm_scratch_release(struct norm_scratch *s)
{
    for (size_t i = 0; s->match && i < s->n_match; i++)
        slu_pcre_run_free(s->match[i]);
    free(s->match);
    free(s->cp);
    free(s->sorted);
    slu_buf_release(&s->buf[0]);
    slu_buf_release(&s->buf[1]);
    memset(s, 0, sizeof *s);
}

/* ---- the steps ---- */

/* The text of a step. */
struct run {
    const uint8_t *p;
    size_t n;
    struct slu_buf *buf;      /* for the changed text */
    struct norm_align *align; /* of the scratch */
    struct slu_err *err;
};

static int put_lower(struct run *r, uint32_t c)
{
    const struct norm_map *m = norm_find(norm_lower, norm_n_lower, c);
    int rc = SLU_OK;

    if (m->len == 1)
        return norm_put(r->buf, m->to, r->err);
    for (unsigned i = 0; i < m->len && !rc; i++)
        rc = norm_put(r->buf, norm_pool[m->to + i], r->err);
    return rc;
}

static int lowercase(struct run *r)
{
    int rc = slu_buf_reserve(r->buf, r->n, r->err);

    for (size_t pos = 0, end; pos < r->n && !rc; pos = end) {
        end = norm_skip_ascii(r->p, r->n, pos);
        if ((rc = slu_buf_reserve(r->buf, end - pos + 4, r->err)))
            break;
        uint8_t *q = r->buf->data + r->buf->len;
        for (size_t i = pos; i < end; i++) {
            uint8_t c = r->p[i];
            *q++ = (uint8_t)(c + ((unsigned)(c - 'A') < 26) * 32);
        }
        r->buf->len += end - pos;
        for (unsigned len; end < r->n && r->p[end] >= 0x80 && !rc; end += len) {
            uint32_t c = uni_decode(r->p + end, &len);
            rc = norm_bits(c) & NORM_BIT_LOWER
                     ? put_lower(r, c)
                     : slu_buf_append(r->buf, r->p + end, len, r->err);
        }
    }
    return rc;
}

static bool is_nmt_dropped(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
           c == 0x8F || c == 0x9F;
}

static bool is_nmt_space(uint32_t c)
{
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
}

/* Drops characters, or makes them a space: NORM_STRIP_ACCENTS and NORM_NMT. */
static int filter(struct run *r, bool nmt)
{
    size_t done = 0;
    int rc = SLU_OK;
    unsigned len;

    for (size_t pos = 0; pos < r->n && !rc; pos += len) {
        if (!nmt && r->p[pos] < 0x80) {
            len = (unsigned)(norm_skip_ascii(r->p, r->n, pos) - pos);
            continue;
        }
        uint32_t c = uni_decode(r->p + pos, &len);
        bool space = nmt && is_nmt_space(c);
        bool drop = nmt ? is_nmt_dropped(c) : norm_bits(c) & NORM_BIT_ACCENT;
        if (!space && !drop)
            continue;
        if (!(rc = slu_buf_append(r->buf, r->p + done, pos - done, r->err)) && space)
            rc = slu_buf_append(r->buf, " ", 1, r->err);
        done = pos + len;
    }
    return rc ? rc : slu_buf_append(r->buf, r->p + done, r->n - done, r->err);
}

static bool is_space(uint32_t c)
{
    enum uni_category k = uni_category(c);

    return k == UNI_ZS || k == UNI_ZL || k == UNI_ZP || k == UNI_CW;
}

static void strip(const struct tok_norm *norm, const struct norm_step *s,
                  const uint8_t **p, size_t *n)
{
    const char *sides = (const char *)norm->spec.data + s->a;
    unsigned len;

    if (memchr(sides, 'l', s->n_a)) {
        while (*n && is_space(uni_decode(*p, &len))) {
            *p += len;
            *n -= len;
        }
    }
    while (memchr(sides, 'r', s->n_a) && *n) {
        size_t last = *n - 1;
        while (((*p)[last] & 0xC0) == 0x80)
            last--;
        if (!is_space(uni_decode(*p + last, &len)))
            break;
        *n = last;
    }
}

/* Returns the next place of a in p from pos on, or n. A short text is found by its
 * first byte: memchr is several times as fast as memmem. */
static size_t find(const uint8_t *p, size_t n, size_t pos, const uint8_t *a, size_t n_a)
{
    if (n_a > 4) {
        const uint8_t *q = memmem(p + pos, n - pos, a, n_a);
        return q ? (size_t)(q - p) : n;
    }
    while (n - pos >= n_a) {
        const uint8_t *q = memchr(p + pos, a[0], n - pos - n_a + 1);
        if (!q)
            break;
        if (!memcmp(q, a, n_a))
            return (size_t)(q - p);
        pos = (size_t)(q - p) + 1;
    }
    return n;
}

static int replace(struct run *r, const uint8_t *a, size_t n_a, const uint8_t *b,
                   size_t n_b)
{
    int rc = SLU_OK;

    for (size_t pos = 0, at; !rc && pos < r->n; pos = at + n_a) {
        at = find(r->p, r->n, pos, a, n_a);
        rc = slu_buf_append(r->buf, r->p + pos, at - pos, r->err);
        if (at == r->n)
            break;
        if (!rc)
            rc = slu_buf_append(r->buf, b, n_b, r->err);
        if (!rc && r->align)
            rc = align_replace(r->align, r->p, at, n_a, n_b, r->err);
    }
    return rc;
}

static int replace_regex(struct run *r, const struct norm_step *s,
                         struct slu_pcre_run *m, const uint8_t *b)
{
    size_t pos = 0, start = 0, end = 0;
    int rc = SLU_OK;

    while (pos < r->n && (rc = pre_regex_next(s->regex, m, r->p, r->n, pos, &start,
                                              &end, r->err)) == SLU_OK) {
        if ((rc = slu_buf_append(r->buf, r->p + pos, start - pos, r->err)) ||
            (rc = slu_buf_append(r->buf, b, s->n_b, r->err)) ||
            (r->align &&
             (rc = align_replace(r->align, r->p, start, end - start, s->n_b, r->err))))
            return rc;
        pos = end;
    }
    return rc < 0 ? rc : slu_buf_append(r->buf, r->p + pos, r->n - pos, r->err);
}

static bool has_lower(const uint8_t *p, size_t n)
{
    unsigned len;

    for (size_t pos = 0; pos < n; pos += len) {
        if (norm_bits(uni_decode(p + pos, &len)) & NORM_BIT_LOWER)
            return true;
    }
    return false;
}

/* Whether a step may change this text. */
static bool changes(const struct norm_step *s, const struct run *r, const uint8_t *a)
{
    switch (s->kind) {
    case NORM_LOWERCASE:
        return has_lower(r->p, r->n);
    case NORM_STRIP_ACCENTS:
        return norm_skip_ascii(r->p, r->n, 0) < r->n;
    case NORM_REPLACE:
        return find(r->p, r->n, 0, a, s->n_a) < r->n;
    default:
        return r->n > 0;
    }
}

static int run_step(const struct tok_norm *norm, struct norm_scratch *sc, size_t k,
                    struct run *r)
{
    const struct norm_step *s = &norm->step[k];
    const uint8_t *a = norm->spec.data + s->a, *b = norm->spec.data + s->b;
    int rc = SLU_OK;

    if (s->kind <= NORM_NFKD)
        return norm_form(sc, s->kind, r->p, r->n, r->buf, &r->p, &r->n, r->err);
    if (s->kind == NORM_STRIP) {
        strip(norm, s, &r->p, &r->n);
        return SLU_OK;
    }
    if (!changes(s, r, a))
        return SLU_OK;
    slu_buf_clear(r->buf);
    if (s->kind == NORM_LOWERCASE)
        rc = lowercase(r);
    else if (s->kind == NORM_STRIP_ACCENTS || s->kind == NORM_NMT)
        rc = filter(r, s->kind == NORM_NMT);
    else if (s->kind == NORM_REPLACE)
        rc = replace(r, a, s->n_a, b, s->n_b);
    else if (s->kind == NORM_REPLACE_REGEX)
        rc = replace_regex(r, s, sc->match[k], b);
    else if (!(rc = slu_buf_append(r->buf, a, s->n_a, r->err)) && /* NORM_PREPEND */
             !(rc = slu_buf_append(r->buf, r->p, r->n, r->err)) && r->align)
        rc = align_prepend(r->align, r->p, s->n_a, r->err);
    r->p = r->buf->data;
    r->n = r->buf->len;
    return rc;
}

int norm_run(const struct tok_norm *norm, struct norm_scratch *s, const uint8_t *p,
             size_t n, const uint8_t **out, size_t *n_out, struct slu_err *err)
{
    struct run r = {.p = p, .n = n, .align = s->align, .err = err};
    unsigned in = 0; /* the buffer that r.p may be in; the other one is free */
    int rc = SLU_OK;

    for (size_t k = 0; norm && k < norm->n && !rc; k++) {
        const uint8_t *was = r.p;
        const size_t n_was = r.n;
        r.buf = &s->buf[!in];
        rc = run_step(norm, s, k, &r);
        if (!rc && r.align)
            rc = align_step(r.align, was, n_was, r.p, r.n, err);
        if (r.p != was && norm->step[k].kind != NORM_STRIP)
            in = !in;
    }
    *out = r.p;
    *n_out = r.n;
    return rc;
}
