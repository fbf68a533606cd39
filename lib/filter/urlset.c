#include "urlset.h"

#include <string.h>

/* The parts of a URL that count. */
struct url {
    const char *host, *rest; /* rest: path and query */
    size_t host_len, rest_len;
    bool is_host; /* there is neither a scheme nor a path */
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the length of "http://" or "//" at p; 0: neither. */
static size_t scheme_len(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (((p[i] | 32) >= 'a' && (p[i] | 32) <= 'z') ||
                     (i && ((p[i] >= '0' && p[i] <= '9') || memchr("+-.", p[i], 3)))))
        i++;
    i += i && i < n && p[i] == ':';
    if (i && p[i - 1] != ':')
        i = 0;
    return n - i >= 2 && p[i] == '/' && p[i + 1] == '/' ? i + 2 : 0;
}

static struct url parse(const char *p, size_t n)
{
    struct url u = {0};
    while (n && is_space(p[n - 1]))
        n--;
    while (n && is_space(*p)) {
        p++;
        n--;
    }
    const size_t scheme = scheme_len(p, n);
    const char *end = p + n, *at;
    p += scheme;
    u.rest = p;
    while (u.rest < end && !memchr("/?#", *u.rest, 3))
        u.rest++;
    u.is_host = !scheme && (u.rest == end || *u.rest == '#');
    const char *fragment = memchr(u.rest, '#', (size_t)(end - u.rest));
    u.rest_len = (size_t)((fragment ? fragment : end) - u.rest);
    if ((at = memrchr(p, '@', (size_t)(u.rest - p))))
        p = at + 1;
    const size_t room = (size_t)(u.rest - p);
    const char *bracket = room && *p == '[' ? memchr(p, ']', room) : NULL;
    const char *colon = bracket ? NULL : memchr(p, ':', room);
    u.host = p;
    u.host_len = bracket ? (size_t)(bracket + 1 - p)
                 : colon ? (size_t)(colon - p)
                         : room;
    while (u.host_len && p[u.host_len - 1] == '.')
        u.host_len--;
    return u;
}

/* Appends the key of a URL, or that of its host. */
static int put_key(struct slu_buf *b, const struct url *u, bool host,
                   struct slu_err *err)
{
    const bool slash = !u->rest_len || *u->rest != '/';
    int rc = slu_buf_append(b, host ? "h" : "u", 1, err);
    if (!rc)
        rc = slu_buf_append(b, u->host, u->host_len, err);
    if (rc)
        return rc;
    for (size_t i = b->len - u->host_len; i < b->len; i++)
        if (b->data[i] >= 'A' && b->data[i] <= 'Z')
            b->data[i] |= 32;
    if (!host && slash)
        rc = slu_buf_append(b, "/", 1, err);
    if (!rc && !host && u->rest_len)
        rc = slu_buf_append(b, u->rest, u->rest_len, err);
    return rc;
}

static int key_of_line(const uint8_t *line, size_t n, struct slu_buf *key,
                       struct slu_err *err)
{
    size_t i = 0;
    while (i < n && is_space((char)line[i]))
        i++;
    if (i == n || line[i] == '#')
        return SLU_OK;
    struct url u = parse((const char *)line, n);
    if (u.is_host && u.host_len > 2 && !memcmp(u.host, "*.", 2)) {
        u.host += 2;
        u.host_len -= 2;
    } else if (u.is_host && u.host_len > 1 && *u.host == '.') {
        u.host++;
        u.host_len--;
    }
    if (!u.host_len)
        return slu_fail(err, SLU_E_FORMAT,
                        "'%.*s' has no host; expected a host or a URL a line",
                        (int)(n < 80 ? n : 80), (const char *)line);
    return put_key(key, &u, u.is_host, err);
}

int slu_urlset_read(struct slu_idset **s, const char *path, uint64_t most_byte,
                    struct slu_err *err)
{
    return slu_idset_read_as(s, path, most_byte, key_of_line, err);
}

int slu_urlset_has(const struct slu_idset *s, const char *url, size_t n,
                   struct slu_buf *scratch, bool *has, struct slu_err *err)
{
    const struct url u = parse(url, n);
    *has = false;
    if (!u.host_len)
        return SLU_OK;
    slu_buf_clear(scratch);
    int rc = put_key(scratch, &u, false, err);
    if (rc || (*has = slu_idset_has(s, scratch->data, scratch->len)))
        return rc;
    /* The hosts above: a label less each time. The byte before a name becomes the mark
     * of a host. */
    for (size_t at = 0; at < u.host_len && !*has;) {
        uint8_t *name = scratch->data + 1 + at;
        name[-1] = 'h';
        *has = slu_idset_has(s, name - 1, u.host_len - at + 1);
        const uint8_t *dot = memchr(name, '.', u.host_len - at);
        at = dot ? (size_t)(dot - scratch->data) : u.host_len;
    }
    return SLU_OK;
}
