/* json_scan.c - the scalar JSON parser of json_scan.h. */
#include "json_scan.h"

#include <string.h>

#include "le.h"

const uint8_t slu_json_escape[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

struct scanner {
    const uint8_t *p;
    size_t n, i;
    size_t depth;
    uint64_t is_object[SLU_JSON_MAX_DEPTH / 64]; /* a bit per level */
    bool surrogate;                              /* a lone surrogate was seen */
    size_t surrogate_off;                        /* offset of the first one */
    struct slu_scan_field *field;
    size_t n_field;
    /* Bit i is field[i]: the current member is its value; is an object that may have
     * it; such an object is open. */
    uint64_t wanted, leads, inside;
    enum slu_reject reject;
};

static bool fail(struct scanner *s, enum slu_reject reject)
{
    s->reject = reject;
    return false;
}

static void skip_space(struct scanner *s)
{
    while (s->i < s->n && (s->p[s->i] == ' ' || s->p[s->i] == '\n' ||
                           s->p[s->i] == '\r' || s->p[s->i] == '\t'))
        s->i++;
}

static int hex4(const uint8_t *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int c = p[i], d;
        if (c >= '0' && c <= '9')
            d = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            d = (c | 32) - 'a' + 10;
        else
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Returns the code point of the escape \uXXXX at p (n bytes to the end, at least 6).
 * *len: its bytes, 12 for a pair. A lone surrogate is returned as it is; -1: not
 * hexadecimal. */
static int32_t escape_u(const uint8_t *p, size_t n, size_t *len)
{
    int hi = hex4(p + 2), lo;
    *len = 6;
    if (hi < 0xd800 || hi > 0xdbff || n < 12 || p[6] != '\\' || p[7] != 'u')
        return hi;
    lo = hex4(p + 8);
    if (lo < 0xdc00 || lo > 0xdfff)
        return hi;
    *len = 12;
    return 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
}

/* Counts the bytes before the next quote, backslash or control character. */
static size_t plain_run(const uint8_t *p, size_t n)
{
    const uint64_t one = UINT64_C(0x0101010101010101), top = one << 7;
    size_t i = 0;
    while (n - i >= 8) {
        uint64_t w = slu_le64(p + i);
        uint64_t quote = w ^ (one * '"'), slash = w ^ (one * '\\');
        uint64_t hit = ((quote - one) & ~quote) | ((slash - one) & ~slash) |
                       ((w - one * 0x20) & ~w);
        hit &= top;
        if (hit != 0)
            return i + (size_t)__builtin_ctzll(hit) / 8; /* the lowest hit is exact */
        i += 8;
    }
    while (i < n && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20)
        i++;
    return i;
}

/* Scans a string from after its opening quote to after its closing one. */
static bool scan_string(struct scanner *s, bool *escaped)
{
    *escaped = false;
    for (;;) {
        s->i += plain_run(s->p + s->i, s->n - s->i);
        if (s->i >= s->n || s->p[s->i] < 0x20)
            return fail(s, SLU_REJECT_INVALID_JSON);
        if (s->p[s->i] == '"') {
            s->i++;
            return true;
        }
        *escaped = true;
        size_t left = s->n - s->i, len = 2;
        if (left < 2) {
            s->i = s->n;
            return fail(s, SLU_REJECT_INVALID_JSON);
        }
        if (s->p[s->i + 1] == 'u') {
            int32_t c = left < 6 ? -1 : escape_u(s->p + s->i, left, &len);
            if (c < 0)
                return fail(s, SLU_REJECT_INVALID_JSON);
            if (c >= 0xd800 && c <= 0xdfff && !s->surrogate) {
                s->surrogate = true;
                s->surrogate_off = s->i;
            }
        } else if (!slu_json_escape[s->p[s->i + 1]]) {
            return fail(s, SLU_REJECT_INVALID_JSON);
        }
        s->i += len;
    }
}

static size_t digits(struct scanner *s)
{
    size_t from = s->i;
    while (s->i < s->n && s->p[s->i] >= '0' && s->p[s->i] <= '9')
        s->i++;
    return s->i - from;
}

static bool scan_number(struct scanner *s, bool *integer)
{
    *integer = true;
    if (s->p[s->i] == '-')
        s->i++;
    if (s->i < s->n && s->p[s->i] == '0')
        s->i++;
    else if (digits(s) == 0)
        return fail(s, SLU_REJECT_INVALID_JSON);
    if (s->i < s->n && s->p[s->i] == '.') {
        *integer = false;
        s->i++;
        if (digits(s) == 0)
            return fail(s, SLU_REJECT_INVALID_JSON);
    }
    if (s->i < s->n && (s->p[s->i] | 32) == 'e') {
        *integer = false;
        s->i++;
        if (s->i < s->n && (s->p[s->i] == '+' || s->p[s->i] == '-'))
            s->i++;
        if (digits(s) == 0)
            return fail(s, SLU_REJECT_INVALID_JSON);
    }
    return true;
}

static bool scan_word(struct scanner *s, const char *word)
{
    for (; *word != 0; word++, s->i++)
        if (s->i >= s->n || s->p[s->i] != (uint8_t)*word)
            return fail(s, SLU_REJECT_INVALID_JSON);
    return true;
}

size_t slu_json_unescape_u(const uint8_t *p, size_t n, uint8_t out[4], size_t *out_len)
{
    size_t len = 0;
    const int32_t code = n < 6 ? -1 : escape_u(p, n, &len);
    const uint32_t c = (uint32_t)code;

    if (code < 0 || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        *out_len = 1;
    } else if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 63));
        *out_len = 2;
    } else if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (c & 63));
        *out_len = 3;
    } else {
        out[0] = (uint8_t)(0xf0 | c >> 18);
        out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
        out[2] = (uint8_t)(0x80 | (c >> 6 & 63));
        out[3] = (uint8_t)(0x80 | (c & 63));
        *out_len = 4;
    }
    return len;
}

/* Decodes one escape or one plain byte of scanned string content to out. Returns the
 * bytes read; 0: a lone surrogate, for which the scan rejects the record at its end. */
static size_t unescape_one(const uint8_t *p, size_t n, uint8_t out[4], size_t *out_len)
{
    const bool is_escape = p[0] == '\\';

    if (is_escape && p[1] == 'u')
        return slu_json_unescape_u(p, n, out, out_len);
    out[0] = is_escape ? slu_json_escape[p[1]] : p[0];
    *out_len = 1;
    return 1 + is_escape;
}

/* Whether the n bytes of string content at p are the text `want`. */
static bool content_is(const uint8_t *p, size_t n, bool escaped, const char *want,
                       size_t want_len)
{
    if (!escaped)
        return n == want_len && memcmp(p, want, n) == 0;
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        uint8_t c[4];
        size_t len;
        const size_t used = unescape_one(p + i, n - i, c, &len);
        if (!used || want_len - at < len || memcmp(c, want + at, len) != 0)
            return false;
        i += used;
        at += len;
    }
    return at == want_len;
}

static void forget(struct slu_scan_field *f)
{
    f->type = SLU_SCAN_ABSENT;
    f->escaped = false;
    f->off = f->len = f->found = 0;
}

/* Compares a key, n bytes of string content at p, with the names. */
static void match_key(struct scanner *s, const uint8_t *p, size_t n, bool escaped)
{
    s->wanted = s->leads = 0;
    for (size_t k = 0; k < s->n_field; k++) {
        struct slu_scan_field *f = &s->field[k];
        if (f->name == NULL || f->level != s->depth)
            continue;
        const char *rest = f->name + f->from, *dot;
        const size_t len = f->name_len - f->from;
        if (content_is(p, n, escaped, rest, len)) {
            s->wanted |= UINT64_C(1) << k;
        } else if ((dot = memchr(rest, '.', len)) != NULL &&
                   content_is(p, n, escaped, rest, (size_t)(dot - rest))) {
            s->leads |= UINT64_C(1) << k;
            if (f->found > f->level) /* in an object of the same key */
                forget(f);
        }
    }
}

/* Goes into the object that has just been opened. */
static void enter(struct scanner *s)
{
    for (size_t k = 0; k < s->n_field && s->leads != 0; k++) {
        struct slu_scan_field *f = &s->field[k];
        if ((s->leads >> k & 1) == 0)
            continue;
        f->from = (size_t)(strchr(f->name + f->from, '.') - f->name) + 1;
        f->level = s->depth;
        s->inside |= UINT64_C(1) << k;
    }
}

/* Closes an object or array. */
static void leave(struct scanner *s)
{
    for (size_t k = 0; k < s->n_field && s->inside != 0; k++) {
        struct slu_scan_field *f = &s->field[k];
        if ((s->inside >> k & 1) == 0 || f->level != s->depth)
            continue;
        f->from--; /* the dot */
        while (f->from > 0 && f->name[f->from - 1] != '.')
            f->from--;
        if (--f->level == 1)
            s->inside &= ~(UINT64_C(1) << k);
    }
    s->depth--;
}

/* Scans a key and its colon; s->i is where the quote should be. */
static bool scan_key(struct scanner *s)
{
    bool escaped;
    size_t from;

    if (s->i >= s->n || s->p[s->i] != '"')
        return fail(s, SLU_REJECT_INVALID_JSON);
    from = ++s->i;
    if (!scan_string(s, &escaped))
        return false;
    if (s->depth == 1 || s->inside != 0)
        match_key(s, s->p + from, s->i - 1 - from, escaped);
    skip_space(s);
    if (s->i >= s->n || s->p[s->i] != ':')
        return fail(s, SLU_REJECT_INVALID_JSON);
    s->i++;
    return true;
}

static void note(struct scanner *s, enum slu_scan_type type, size_t off, size_t len,
                 bool escaped)
{
    for (size_t k = 0; k < s->n_field && s->wanted != 0; k++) {
        struct slu_scan_field *f = &s->field[k];
        if ((s->wanted >> k & 1) == 0 || (f->found != 0 && f->found < f->level))
            continue;
        f->type = type;
        f->off = off;
        f->len = len;
        f->escaped = escaped;
        f->found = f->level;
    }
    s->wanted = 0;
    if (type != SLU_SCAN_CONTAINER)
        s->leads = 0;
}

static bool scan_scalar(struct scanner *s)
{
    size_t from = s->i;
    bool flag;

    if (s->p[from] == '"') {
        s->i++;
        if (!scan_string(s, &flag))
            return false;
        note(s, SLU_SCAN_STRING, from + 1, s->i - from - 2, flag);
        return true;
    }
    if (s->p[from] == '-' || (s->p[from] >= '0' && s->p[from] <= '9')) {
        if (!scan_number(s, &flag))
            return false;
        note(s, flag ? SLU_SCAN_INTEGER : SLU_SCAN_NUMBER, from, s->i - from, false);
        return true;
    }
    flag = s->p[from] == 't' || s->p[from] == 'f';
    if (!scan_word(s, s->p[from] == 't'   ? "true"
                      : s->p[from] == 'f' ? "false"
                                          : "null"))
        return false;
    note(s, flag ? SLU_SCAN_BOOL : SLU_SCAN_NULL, from, s->i - from, false);
    return true;
}

static bool push(struct scanner *s, bool object)
{
    if (s->depth == SLU_JSON_MAX_DEPTH)
        return fail(s, SLU_REJECT_TOO_DEEP);
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    if (object)
        s->is_object[s->depth / 64] |= bit;
    else
        s->is_object[s->depth / 64] &= ~bit;
    s->depth++;
    return true;
}

static bool in_object(const struct scanner *s)
{
    return (s->is_object[(s->depth - 1) / 64] >> ((s->depth - 1) % 64) & 1) != 0;
}

/* Opens an object or array and reads up to its first value. *closed: it was empty. */
static bool open_container(struct scanner *s, bool *closed)
{
    bool object = s->p[s->i] == '{';
    note(s, SLU_SCAN_CONTAINER, s->i, 0, false);
    if (!push(s, object))
        return false;
    if (object)
        enter(s);
    s->leads = 0; /* an array has no keys */
    s->i++;
    skip_space(s);
    *closed = s->i < s->n && s->p[s->i] == (object ? '}' : ']');
    if (*closed) {
        s->i++;
        leave(s);
        return true;
    }
    return !object || scan_key(s);
}

/* Closes the containers that end after a value. *more: there is a next value, and s->i
 * is before it. */
static bool after_value(struct scanner *s, bool *more)
{
    *more = false;
    while (s->depth > 0) {
        bool object = in_object(s);
        skip_space(s);
        if (s->i >= s->n)
            return fail(s, SLU_REJECT_INVALID_JSON);
        if (s->p[s->i] == (object ? '}' : ']')) {
            s->i++;
            leave(s);
            continue;
        }
        if (s->p[s->i] != ',')
            return fail(s, SLU_REJECT_INVALID_JSON);
        s->i++;
        skip_space(s);
        *more = true;
        return !object || scan_key(s);
    }
    return true;
}

static bool scan_document(struct scanner *s)
{
    bool more = true, closed;
    while (more) {
        skip_space(s);
        if (s->i >= s->n)
            return fail(s, SLU_REJECT_INVALID_JSON);
        if (s->p[s->i] == '{' || s->p[s->i] == '[') {
            if (!open_container(s, &closed))
                return false;
            if (!closed)
                continue;
        } else if (!scan_scalar(s)) {
            return false;
        }
        if (!after_value(s, &more))
            return false;
    }
    skip_space(s);
    return s->i == s->n || fail(s, SLU_REJECT_INVALID_JSON);
}

void slu_json_scan(const uint8_t *p, size_t n, struct slu_scan_field *field,
                   size_t n_field, struct slu_json_scanned *out)
{
    struct scanner s;
    s.p = p;
    s.n = n;
    s.i = 0;
    s.depth = 0;
    s.surrogate = false;
    s.surrogate_off = 0;
    s.field = field;
    s.n_field = n_field;
    s.wanted = s.leads = s.inside = 0;
    s.reject = SLU_REJECT_NONE;
    for (size_t k = 0; k < n_field; k++) {
        forget(&field[k]);
        field[k].level = 1;
        field[k].from = 0;
    }
    skip_space(&s);
    size_t first = s.i;
    out->object = s.i < n && p[s.i] == '{';
    out->reject = SLU_REJECT_NONE;
    out->off = first;
    if (!scan_document(&s)) {
        out->reject = s.reject;
        out->off = s.i;
    } else if (s.surrogate) {
        out->reject = SLU_REJECT_LONE_SURROGATE;
        out->off = s.surrogate_off;
    }
}

int slu_json_unescape(struct slu_buf *out, const uint8_t *p, size_t n,
                      struct slu_err *err)
{
    /* No escape is shorter than its character. */
    int rc = slu_buf_reserve(out, n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n;) {
        size_t run = plain_run(p + i, n - i), len;
        memcpy(out->data + out->len, p + i, run);
        out->len += run;
        i += run;
        if (i >= n)
            break;
        uint8_t c[4];
        i += unescape_one(p + i, n - i, c, &len);
        memcpy(out->data + out->len, c, len);
        out->len += len;
    }
    return SLU_OK;
}
