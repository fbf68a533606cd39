#include "sources.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "sources_private.h"

int slu_sources_keep(struct resolver *r, const char *p, size_t n, size_t *at,
                     struct slu_err *err)
{
    struct slu_sources *s = r->s;
    int rc = slu_grow(&s->bytes, &s->bytes_cap, s->bytes_len + n + 1, 1, err);
    if (rc)
        return rc;
    memcpy(s->bytes + s->bytes_len, p, n);
    s->bytes[s->bytes_len + n] = 0;
    *at = s->bytes_len;
    s->bytes_len += n + 1;
    return SLU_OK;
}

static int add(struct resolver *r, const char *path, const struct stat *st,
               struct slu_err *err)
{
    size_t at;
    int rc = slu_sources_keep(r, path, strlen(path), &at, err);
    if (!rc)
        rc = slu_grow(&r->e, &r->cap, r->n + 1, sizeof *r->e, err);
    if (rc)
        return rc;
    r->e[r->n++] = (struct entry){
        .path = at,
        .domain = r->domain,
        .size_byte = st && S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .regular = st && S_ISREG(st->st_mode),
    };
    return SLU_OK;
}

static int by_path(const void *a, const void *b, void *bytes)
{
    const struct entry *x = a, *y = b;
    return strcmp((const char *)bytes + x->path, (const char *)bytes + y->path);
}

/* Counts a FIFO, socket or device. Keeps the first path by bytes, so that the order in
 * which the folder lists them does not matter. */
static int add_special(struct resolver *r, const char *path, struct slu_err *err)
{
    r->s->n_special++;
    if (r->special && strcmp(r->special, path) <= 0)
        return SLU_OK;
    free(r->special);
    r->special = strdup(path);
    return r->special ? SLU_OK : slu_fail_nomem(err, strlen(path));
}

static int visit(struct resolver *r, FTS *fts, FTSENT *f, struct slu_err *err)
{
    bool file = f->fts_info == FTS_F, special = f->fts_info == FTS_DEFAULT;

    if ((file || special || f->fts_info == FTS_D) && f->fts_level > 0 &&
        f->fts_name[0] == '.') {
        r->s->n_hidden++;
        (void)fts_set(fts, f, FTS_SKIP);
        return SLU_OK;
    }
    switch (f->fts_info) {
    case FTS_F:
        return add(r, f->fts_path, f->fts_statp, err);
    case FTS_DEFAULT:
        return add_special(r, f->fts_path, err);
    case FTS_DC:
        return slu_fail(err, SLU_E_IO, "%s: a link that leads to a folder it lies in",
                        f->fts_path);
    case FTS_SLNONE:
        return slu_fail(err, SLU_E_IO, "%s: a link to a file that does not exist",
                        f->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = f->fts_errno;
        return slu_fail_errno(err, "%s", f->fts_path);
    default: /* FTS_D, FTS_DP */
        return SLU_OK;
    }
}

bool slu_globs_match(const char *globs, const char *path, uint64_t *used)
{
    const char *name = strrchr(path, '/');
    char glob[PATH_MAX];
    bool any = false;
    uint64_t bit = 1;
    for (const char *g = globs, *end;; g = end + 1, bit <<= 1) {
        end = strchrnul(g, ',');
        size_t n = (size_t)(end - g);
        if (n && n < sizeof glob) {
            memcpy(glob, g, n);
            glob[n] = 0;
            if (!fnmatch(glob, name && !strchr(glob, '/') ? name + 1 : path, 0)) {
                *used |= bit;
                any = true;
            }
        }
        if (!*end)
            return any;
    }
}

const char *slu_globs_unused(const char *globs, uint64_t used, size_t *len)
{
    const char *end;
    for (unsigned i = 0; globs && i < 64; i++, globs = *end ? end + 1 : NULL) {
        end = strchrnul(globs, ',');
        *len = (size_t)(end - globs);
        if (*len && !(used >> i & 1))
            return globs;
    }
    return NULL;
}

static int rank_of(struct resolver *r, const struct entry *e, size_t below)
{
    const struct slu_sources_cfg *cfg = r->cfg;
    const char *path = r->s->bytes + e->path + below;
    if ((cfg->include && !slu_globs_match(cfg->include, path, &r->included)) ||
        (cfg->exclude && slu_globs_match(cfg->exclude, path, &r->excluded)))
        return -1;
    return cfg->rank && !cfg->include ? (int)cfg->rank(path) : 0;
}

/* Fails, as none of the n files of a folder is left. */
static int nothing_left(const struct resolver *r, const char *folder, size_t n,
                        struct slu_err *err)
{
    const bool none = r->cfg->include && !r->included;
    if (n == 0)
        return slu_fail(err, SLU_E_USAGE, "%s: no files in this folder", folder);
    return slu_advise(err, none ? SLU_ADVISE_INCLUDE : SLU_ADVISE_EXCLUDE,
                      slu_fail(err, SLU_E_USAGE, "%s: no file in this folder %s '%s'",
                               folder,
                               none ? "matches" : "is left without those that match",
                               none ? r->cfg->include : r->cfg->exclude));
}

/* Of a folder's files, from `before` on, keeps those of the highest rank. below: bytes
 * of the folder's path with its slash. */
static int keep_highest(struct resolver *r, size_t before, size_t below,
                        const char *folder, struct slu_err *err)
{
    size_t kept = before;
    int best = -1;
    const uint64_t included = r->included;
    r->included = 0;
    for (size_t i = before; i < r->n; i++) {
        r->e[i].rank = rank_of(r, &r->e[i], below);
        best = r->e[i].rank > best ? r->e[i].rank : best;
    }
    if (best < 0)
        return nothing_left(r, folder, r->n - before, err);
    r->included |= included;
    for (size_t i = before; i < r->n; i++) {
        if (r->e[i].rank == best)
            r->e[kept++] = r->e[i];
        else if (r->e[i].rank > 0 && !r->s->n_lower++)
            r->lower = r->e[i].path;
        else if (r->e[i].rank == 0 && !r->s->n_other++)
            r->other = r->e[i].path;
    }
    r->n = kept;
    return SLU_OK;
}

static int add_folder(struct resolver *r, const char *path, struct slu_err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return slu_fail_nomem(err, strlen(path));
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = 0;
    char *const roots[] = {copy, NULL};
    size_t before = r->n;
    int rc = SLU_OK;
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!fts) {
        rc = slu_fail_errno(err, "%s", path);
        goto out;
    }
    FTSENT *f = NULL;
    while (!rc && (errno = 0, f = fts_read(fts)) != NULL)
        rc = visit(r, fts, f, err);
    if (!rc && errno)
        rc = slu_fail_errno(err, "%s", path);
    if (!rc && r->n > before)
        qsort_r(r->e + before, r->n - before, sizeof *r->e, by_path, r->s->bytes);
    if (!rc)
        rc = keep_highest(r, before, strlen(copy) + (copy[strlen(copy) - 1] != '/'),
                          path, err);
out:
    if (fts)
        fts_close(fts);
    free(copy);
    return rc;
}

static int add_path(struct resolver *r, const char *path, struct slu_err *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        if (r->has_stdin)
            return slu_fail(err, SLU_E_USAGE, "standard input can be read only once");
        r->has_stdin = true;
        return add(r, path, NULL, err);
    }
    if (slu_is_address(path))
        return slu_fail(err, SLU_E_FORMAT,
                        "\"%s\": is an address, and only local files can be read; copy "
                        "it to a folder, or pipe it in",
                        path);
    if (stat(path, &st) != 0)
        return slu_fail_errno(err, "%s", path);
    return S_ISDIR(st.st_mode) ? add_folder(r, path, err) : add(r, path, &st, err);
}

static int add_line(struct resolver *r, struct slu_buf *line, struct slu_err *err)
{
    int rc = slu_buf_append(line, "", 1, err);
    if (rc)
        return rc;
    const char *path = (const char *)line->data, *tab = strchr(path, '\t');
    if (strlen(path) != line->len - 1)
        return slu_fail(err, SLU_E_FORMAT,
                        "a path has a NUL in it; give one path a line");
    if (!*path || !r->cfg->list_domains)
        return *path ? add_path(r, path, err) : SLU_OK;
    if (!tab || !tab[1])
        return slu_fail(err, SLU_E_FORMAT,
                        "\"%s\": expected a domain, a tab and a path", path);
    r->domain = 0;
    if (tab != path)
        rc = slu_sources_keep(r, path, (size_t)(tab - path), &r->domain, err);
    if (!rc)
        rc = add_path(r, tab + 1, err);
    r->domain = 0;
    return rc;
}

static int add_list(struct resolver *r, const char *list, struct slu_err *err)
{
    bool is_stdin = strcmp(list, "-") == 0;
    const char *name = is_stdin ? "standard input" : list;
    struct slu_buf line = SLU_BUF_INIT;
    char chunk[8192];
    size_t got = sizeof chunk;
    int rc = SLU_OK;
    int fd = is_stdin ? 0 : open(list, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return slu_fail_errno(err, "%s", list);
    if (is_stdin)
        r->has_stdin = true;
    while (!rc && got == sizeof chunk) {
        rc = slu_read_full(fd, chunk, sizeof chunk, &got, err);
        if (rc) {
            rc = slu_err_at(err, "%s", name);
            break;
        }
        for (const char *p = chunk, *end = chunk + got; !rc && p < end;) {
            const char *nl = memchr(p, '\n', (size_t)(end - p));
            rc = slu_buf_append(&line, p, (size_t)((nl ? nl : end) - p), err);
            if (!rc && nl)
                rc = add_line(r, &line, err);
            if (nl)
                slu_buf_clear(&line);
            p = nl ? nl + 1 : end;
        }
    }
    if (!rc && line.len)
        rc = add_line(r, &line, err);
    if (rc && err && err->code == SLU_E_FORMAT)
        rc = slu_err_at(err, "%s", name);
    slu_buf_release(&line);
    if (!is_stdin)
        close(fd);
    return rc;
}

int slu_sources_resolve(struct slu_sources *s, const struct slu_sources_cfg *cfg,
                        struct slu_err *err)
{
    static const char *const dash[] = {"-"};
    struct resolver r = {.s = s, .cfg = cfg};
    const char *const *path = cfg->path;
    size_t n_path = cfg->n_path;
    size_t none;

    memset(s, 0, sizeof *s);
    int rc = slu_sources_keep(&r, "", 0, &none, err); /* at 0, where no domain is */
    if (n_path == 0 && !cfg->list) {
        path = dash;
        n_path = 1;
    }
    for (size_t i = 0; i < n_path && !rc; i++)
        rc = add_path(&r, path[i], err);
    if (!rc && cfg->list)
        rc = add_list(&r, cfg->list, err);
    if (!rc && r.n == 0)
        rc = slu_fail(err, SLU_E_USAGE, "%s: names no files",
                      cfg->list ? cfg->list : "-");
    if (!rc)
        rc = slu_sources_name(&r, err);
    if (!rc) {
        s->item = calloc(r.n, sizeof *s->item);
        if (!s->item)
            rc = slu_fail_nomem(err, r.n * sizeof *s->item);
    }
    for (size_t i = 0; i < r.n && !rc; i++) {
        s->n_domain += r.e[i].domain != 0;
        s->item[i] = (struct slu_source){
            .path = s->bytes + r.e[i].path,
            .name = s->bytes + r.e[i].name,
            .domain = r.e[i].domain ? s->bytes + r.e[i].domain : NULL,
            .size_byte = r.e[i].size_byte,
            .regular = r.e[i].regular,
            .to = UINT64_MAX,
        };
    }
    if (!rc) {
        s->base = s->first = cfg->base;
        s->n = r.n;
        s->end = s->base + r.n;
    }
    s->included = r.included;
    s->excluded = r.excluded;
    s->special = r.special;
    s->lower = s->n_lower ? s->bytes + r.lower : NULL;
    s->other = s->n_other ? s->bytes + r.other : NULL;
    free(r.e);
    return rc;
}

void slu_sources_release(struct slu_sources *s)
{
    for (size_t i = 0; i < s->n; i++)
        slu_bytes_close(s->item[i].opened);
    free(s->item);
    free(s->bytes);
    free(s->special);
    memset(s, 0, sizeof *s);
}

/* ---- shares ---- */

/* Returns a file's weight; + 1, so that empty files have a place too. */
static unsigned __int128 weight(const struct slu_source *src)
{
    return (unsigned __int128)src->size_byte * (slu_bytes_promised(src->name) ? 4 : 1) +
           1;
}

/* Returns how many bytes of a source that begins at `begin` come before place `at`;
 * UINT64_MAX: all. */
static uint64_t bytes_before(const struct slu_source *src, unsigned __int128 begin,
                             unsigned __int128 at)
{
    if (at <= begin)
        return 0;
    return at - begin >= src->size_byte ? UINT64_MAX : (uint64_t)(at - begin);
}

int slu_sources_share(struct slu_sources *s, uint64_t part, uint64_t n_part,
                      bool (*splittable)(const char *name, void *ctx), void *ctx,
                      struct slu_err *err)
{
    unsigned __int128 total = 0, begin = 0;

    if (part >= n_part)
        return slu_fail(err, SLU_E_USAGE,
                        "part %llu of %llu does not exist; parts are counted from 0",
                        (unsigned long long)part, (unsigned long long)n_part);
    if (n_part == 1)
        return SLU_OK;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->item[i].regular)
            return slu_fail(err, SLU_E_USAGE,
                            "%s: has no size, so it cannot be shared between parts",
                            strcmp(s->item[i].path, "-") == 0 ? "standard input"
                                                              : s->item[i].path);
        total += weight(&s->item[i]);
    }
    /* total * n_part < 2^128 as long as total < 2^64 */
    unsigned __int128 lo = total * part / n_part, hi = total * (part + 1) / n_part;
    s->first = s->end = s->base;
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        struct slu_source *src = &s->item[i];
        unsigned __int128 end = begin + weight(src);
        bool split = src->size_byte > 0 && splittable(src->name, ctx);
        if (split) {
            src->from = bytes_before(src, begin, lo);
            src->to = bytes_before(src, begin, hi);
        }
        /* A file that is not cut belongs to the share with its middle. So files of
         * about equal size, as many as shares, are one per share. */
        unsigned __int128 mid = begin + weight(src) / 2;
        if (split ? src->from < src->to : mid >= lo && mid < hi) {
            s->first = any ? s->first : s->base + i;
            s->end = s->base + i + 1;
            any = true;
        }
        begin = end;
    }
    return SLU_OK;
}
