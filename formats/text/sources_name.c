#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "sources_private.h"

/* Appends the absolute path without ".", ".." and empty parts, as text only. */
static int absolute(struct resolver *r, size_t path, const char *cwd, size_t *at,
                    struct slu_err *err)
{
    struct slu_sources *s = r->s;
    size_t max = strlen(cwd) + strlen(s->bytes + path) + 3;
    int rc = slu_grow(&s->bytes, &s->bytes_cap, s->bytes_len + max, 1, err);
    if (rc)
        return rc;
    char *out = s->bytes + s->bytes_len, *end = out;
    const char *half[2] = {s->bytes[path] == '/' ? "" : cwd, s->bytes + path};
    for (int h = 0; h < 2; h++) {
        for (const char *p = half[h]; *p;) {
            size_t len = strcspn(p, "/");
            if (len == 2 && memcmp(p, "..", 2) == 0) {
                while (end > out && *--end != '/')
                    ;
            } else if (len > 1 || (len == 1 && *p != '.')) {
                *end++ = '/';
                memcpy(end, p, len);
                end += len;
            }
            p += len + (p[len] == '/');
        }
    }
    *end++ = 0;
    *at = s->bytes_len;
    s->bytes_len += (size_t)(end - out);
    return SLU_OK;
}

/* Returns the length of the deepest folder ("/a/b/") that has all files. */
static size_t common_folder(const struct resolver *r)
{
    const char *first = NULL;
    size_t len = 0;
    for (size_t i = 0; i < r->n; i++) {
        const char *p = r->s->bytes + r->e[i].name;
        if (*p != '/') /* standard input */
            continue;
        if (!first) {
            first = p;
            len = (size_t)(strrchr(p, '/') - p) + 1;
        }
        size_t k = 0;
        while (k < len && p[k] == first[k])
            k++;
        while (k > 0 && first[k - 1] != '/')
            k--;
        len = k;
    }
    return len;
}

/* Finds what "{}" stands for, as slu_sources_cfg.domain_from says: *len bytes of path,
 * which is changed and restored. left, right: the pattern before and after "{}". NULL:
 * no match. */
static const char *find_domain(const char *left, const char *right, char *path,
                               size_t *len)
{
    size_t n_left = 0, n_slash = 0;
    char *tail = path + strlen(path);
    for (const char *p = left; *p; p++)
        n_left += *p == '/';
    for (const char *p = right; *p; p++)
        n_slash += *p == '/';
    n_slash += n_left;
    while (tail > path && (tail[-1] != '/' || n_slash--))
        tail--;
    char *from = tail; /* of the name that has the domain */
    for (; n_left; from++) {
        if (!*from)
            return NULL;
        n_left -= *from == '/';
    }
    const size_t n = strcspn(from, "/");
    for (size_t i = 0; i < n; i++) {
        const char was = from[i];
        from[i] = 0;
        const bool fits = fnmatch(left, tail, FNM_PATHNAME) == 0;
        from[i] = was;
        for (*len = n - i; fits && *len; --*len)
            if (fnmatch(right, from + i + *len, FNM_PATHNAME) == 0)
                return from + i;
    }
    return NULL;
}

/* Sets the missing domains from the names, which are absolute paths yet. */
static int set_domains(struct resolver *r, struct slu_err *err)
{
    const char *pattern = r->cfg->domain_from, *hole = strstr(pattern, "{}");
    char *left = hole ? strndup(pattern, (size_t)(hole - pattern)) : NULL;
    int rc = SLU_OK;
    if (!hole)
        return slu_fail(err, SLU_E_USAGE, "%s: has no {} for the domain", pattern);
    if (!left)
        return slu_fail_nomem(err, strlen(pattern));
    for (size_t i = 0; i < r->n && !rc; i++) {
        struct entry *e = &r->e[i];
        if (e->domain)
            continue;
        char *path = strdup(r->s->bytes + e->name);
        size_t len;
        const char *found = path ? find_domain(left, hole + 2, path, &len) : NULL;
        if (!path)
            rc = slu_fail_nomem(err, 1);
        else if (found)
            rc = slu_sources_keep(r, found, len, &e->domain, err);
        free(path);
    }
    free(left);
    return rc;
}

static int add_prefix(struct resolver *r, struct entry *e, struct slu_err *err)
{
    const char *prefix = r->cfg->prefix, *own = r->s->bytes + e->name;
    char *name;
    size_t n_prefix = strlen(prefix);
    n_prefix -= n_prefix && prefix[n_prefix - 1] == '/';
    const int n = asprintf(&name, "%.*s/%s", (int)n_prefix, prefix, own);
    if (n < 0)
        return slu_fail_nomem(err, 1);
    int rc = slu_sources_keep(r, name, (size_t)n, &e->name, err);
    free(name);
    return rc;
}

int slu_sources_name(struct resolver *r, struct slu_err *err)
{
    const struct slu_sources_cfg *cfg = r->cfg;
    int rc = SLU_OK;
    char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return slu_fail_errno(err, "working folder");
    for (size_t i = 0; i < r->n && !rc; i++) {
        struct entry *e = &r->e[i];
        e->name = e->path;
        if (strcmp(r->s->bytes + e->path, "-") != 0)
            rc = absolute(r, e->path, cwd, &e->name, err);
        else if (cfg->stdin_name)
            rc = slu_sources_keep(r, cfg->stdin_name, strlen(cfg->stdin_name), &e->name,
                                  err);
    }
    free(cwd);
    if (!rc && cfg->domain_from)
        rc = set_domains(r, err);
    if (rc)
        return rc;
    size_t common = cfg->stdin_name ? 0 : common_folder(r);
    for (size_t i = 0; i < r->n && !rc; i++) {
        if (r->s->bytes[r->e[i].name] == '/')
            r->e[i].name += common;
        if (cfg->prefix)
            rc = add_prefix(r, &r->e[i], err);
    }
    return rc;
}
