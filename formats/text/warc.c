#include "warc.h"

#include <string.h>
#include <strings.h>

#include "lib/base/number.h"

/* A line of a header, without its end. */
struct line {
    const char *p;
    size_t n;
};

/* Takes the next line of p[*at, n). False: it does not end in these bytes. */
static bool next_line(const uint8_t *p, size_t n, size_t *at, struct line *l)
{
    const uint8_t *begin = p + *at, *nl = memchr(begin, '\n', n - *at);
    if (!nl)
        return false;
    l->p = (const char *)begin;
    l->n = (size_t)(nl - begin);
    *at += l->n + 1;
    l->n -= l->n && l->p[l->n - 1] == '\r';
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Sets *v if the line is the field `name`; whether it is. */
static bool take(struct line l, const char *name, struct slu_warc_value *v)
{
    size_t n = strlen(name), end = l.n;
    if (l.n <= n || l.p[n] != ':' || strncasecmp(l.p, name, n))
        return false;
    for (n++; n < end && is_blank(l.p[n]); n++)
        ;
    while (end > n && is_blank(l.p[end - 1]))
        end--;
    *v = (struct slu_warc_value){l.p + n, end - n};
    return true;
}

bool slu_warc_is(struct slu_warc_value v, const char *word)
{
    const size_t n = strlen(word);
    return v.p && v.n >= n && !strncasecmp(v.p, word, n) &&
           (v.n == n || memchr("; \t,", v.p[n], 4));
}

static enum slu_warc_type type_of(struct slu_warc_value v)
{
    return slu_warc_is(v, "conversion") ? SLU_WARC_CONVERSION
           : slu_warc_is(v, "resource") ? SLU_WARC_RESOURCE
           : slu_warc_is(v, "response") ? SLU_WARC_RESPONSE
                                        : SLU_WARC_OTHER;
}

/* Goes over the lines of a header: takes the next field. False: there is none, and *used
 * is set if the header has ended. */
static bool next_field(const uint8_t *p, size_t n, size_t *at, size_t *used,
                       struct line *l)
{
    do {
        if (!next_line(p, n, at, l))
            return false;
        if (l->n == 0) {
            *used = *at;
            return false;
        }
    } while (is_blank(*l->p)); /* goes on with a value */
    return true;
}

int slu_warc_parse(const uint8_t *p, size_t n, struct slu_warc *w, size_t *used,
                   struct slu_err *err)
{
    struct slu_warc_value length = {NULL, 0}, again;
    const size_t all = n;
    size_t at = 0;
    struct line l;
    *used = 0;
    *w = (struct slu_warc){.type = SLU_WARC_OTHER};
    if (n > SLU_WARC_HEAD)
        n = SLU_WARC_HEAD;
    if (memcmp(p, "WARC/", n < 5 ? n : 5))
        return slu_fail(err, SLU_E_FORMAT, "expected the header of a record, WARC/1.0");
    if (next_line(p, n, &at, &l)) {
        while (l.n && is_blank(l.p[l.n - 1]))
            l.n--;
        if (l.n != 8 || (memcmp(l.p + 5, "1.", 2) && memcmp(l.p + 5, "0.", 2)))
            return slu_fail(err, SLU_E_FORMAT,
                            "expected a header of WARC/1.0 or WARC/1.1, found \"%.*s\"",
                            (int)(l.n < 40 ? l.n : 40), l.p);
        while (next_field(p, n, &at, used, &l)) {
            if (take(l, "Content-Length", &again)) {
                if (length.p)
                    return slu_fail(err, SLU_E_FORMAT, "has two Content-Length");
                length = again;
            } else if (!take(l, "WARC-Type", &w->type_name) &&
                       !take(l, "WARC-Record-ID", &w->id) &&
                       !take(l, "WARC-Target-URI", &w->url) &&
                       !take(l, "WARC-Date", &w->date) &&
                       !take(l, "Content-Type", &w->content_type) &&
                       !take(l, "WARC-Identified-Content-Language", &w->language)) {
                (void)take(l, "WARC-Truncated", &w->truncated);
            }
        }
    }
    if (!*used)
        return all <= SLU_WARC_HEAD
                   ? SLU_OK
                   : slu_fail(err, SLU_E_FORMAT, "has a header of more than %zu bytes",
                              SLU_WARC_HEAD);
    if (!length.p)
        return slu_fail(err, SLU_E_FORMAT, "has no Content-Length");
    for (size_t i = 0; i < length.n; i++)
        if (length.p[i] < '0' || length.p[i] > '9')
            length.n = 0;
    if (!length.n || !slu_number(length.p, length.n, 1, &w->content_byte))
        return slu_fail(err, SLU_E_FORMAT, "has a Content-Length that is no number");
    /* URLs of 1.0 may be in brackets. */
    if (w->url.n >= 2 && *w->url.p == '<' && w->url.p[w->url.n - 1] == '>') {
        w->url.p++;
        w->url.n -= 2;
    }
    w->type = type_of(w->type_name);
    return SLU_OK;
}

bool slu_http_parse(const uint8_t *p, size_t n, struct slu_http *h, size_t *used)
{
    struct slu_warc_value encoding;
    size_t at = 0;
    struct line l;
    *used = 0;
    *h = (struct slu_http){.encoded = false};
    if (n < 5 || memcmp(p, "HTTP/", 5) || !next_line(p, n, &at, &l))
        return false;
    while (next_field(p, n, &at, used, &l))
        if (take(l, "Transfer-Encoding", &encoding) ||
            take(l, "Content-Encoding", &encoding))
            h->encoded |= encoding.n && !slu_warc_is(encoding, "identity");
        else
            (void)take(l, "Content-Type", &h->content_type);
    return *used != 0;
}

/* Whether the Content-Type names characters whose bytes are valid UTF-8 by chance. */
static bool has_other_charset(struct slu_warc_value v)
{
    static const char *const other[] = {"iso-2022", "utf-16", "utf-32", "utf-7",
                                        "hz-gb"};
    for (size_t i = 0; i + 8 < v.n; i++) {
        if (strncasecmp(v.p + i, "charset=", 8))
            continue;
        i += 8;
        i += i < v.n && v.p[i] == '"';
        for (size_t k = 0; k < sizeof other / sizeof *other; k++)
            if (v.n - i >= strlen(other[k]) &&
                !strncasecmp(v.p + i, other[k], strlen(other[k])))
                return true;
    }
    return false;
}

enum slu_warc_text slu_warc_text_of(struct slu_warc_value v)
{
    if (slu_warc_is(v, "text/html") || slu_warc_is(v, "application/xhtml+xml"))
        return SLU_WARC_HTML;
    if (!slu_warc_is(v, "text/plain"))
        return SLU_WARC_NO_TEXT;
    return has_other_charset(v) ? SLU_WARC_ENCODED : SLU_WARC_TEXT;
}
