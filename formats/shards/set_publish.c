/* set_publish.c - gives the files of a set their names: renames out of DIR/.partial, and
 * of the old set into it (set_out.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/set_out.h"
#include "formats/shards/shard_private.h"
#include "lib/base/json.h"

/* What was done, to be undone in reverse order. */
struct step {
    char *from, *to; /* renamed; from NULL: `to` was made; to NULL: `from`, a folder of
                        this mode, was removed */
    mode_t mode;
};
struct moves {
    const char *dir, *at;
    struct step *step;
    size_t n, cap;
    struct slu_err *err;
};

static int note(struct moves *m, const char *from, const char *to, mode_t mode)
{
    struct step *s;
    int rc = slu_grow(&m->step, &m->cap, m->n + 1, sizeof *s, m->err);

    if (rc)
        return rc;
    s = &m->step[m->n];
    *s = (struct step){from ? strdup(from) : NULL, to ? strdup(to) : NULL, mode};
    if ((from && !s->from) || (to && !s->to)) {
        free(s->from);
        free(s->to);
        return slu_fail_nomem(m->err, 1);
    }
    m->n++;
    return SLU_OK;
}

static void undo(struct moves *m)
{
    while (m->n) {
        struct step *s = &m->step[--m->n];
        if (!s->from)
            (void)rmdir(s->to);
        else if (!s->to)
            (void)mkdir(s->from, s->mode);
        else
            (void)rename(s->to, s->from);
        free(s->from);
        free(s->to);
    }
}

static void forget(struct moves *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->step[i].from);
        free(m->step[i].to);
    }
    free(m->step);
}

static int move(struct moves *m, const char *from, const char *to);

/* Moves the files of a folder that cannot be renamed, or whose name is a folder already
 * that has files of others. */
static int merge(struct moves *m, const char *from, const char *to, mode_t mode)
{
    DIR *d;
    const struct dirent *e;
    int rc = SLU_OK;

    if (!mkdir(to, mode))
        rc = note(m, NULL, to, 0);
    else if (errno != EEXIST)
        rc = slu_fail_errno(m->err, "%s: cannot be made", to);
    d = rc ? NULL : opendir(from);
    if (!rc && !d)
        rc = slu_fail_errno(m->err, "%s: cannot be opened", from);
    while (!rc && (e = readdir(d))) {
        char *a = NULL, *b = NULL;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (asprintf(&a, "%s/%s", from, e->d_name) < 0 ||
            asprintf(&b, "%s/%s", to, e->d_name) < 0)
            rc = slu_fail_nomem(m->err, 1);
        if (!rc)
            rc = move(m, a, b);
        free(a);
        free(b);
    }
    if (d)
        closedir(d);
    if (!rc && !rmdir(from))
        rc = note(m, from, NULL, mode);
    return rc;
}

/* Renames, unless an earlier call has done it. */
static int move(struct moves *m, const char *from, const char *to)
{
    struct stat a, b;

    if (lstat(from, &a))
        return errno == ENOENT && !lstat(to, &b)
                   ? SLU_OK
                   : slu_fail_errno(m->err, "%s: is gone", from);
    const bool there = !lstat(to, &b), folders = S_ISDIR(a.st_mode);
    if (there && folders && S_ISDIR(b.st_mode))
        return merge(m, from, to, a.st_mode & 07777);
    if (there && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
        /* rename() of two names of one file does nothing, and succeeds. */
        if (unlink(from))
            return slu_fail_errno(m->err, "%s: cannot be removed", from);
        return SLU_OK;
    }
    if (there)
        return slu_fail(m->err, SLU_E_MISMATCH,
                        "%s: the set needs this name, and another program has taken it "
                        "meanwhile; move it away, and run the command again",
                        to);
    int rc = note(m, from, to, 0);
    if (rc || !rename(from, to))
        return rc;
    int why = errno;
    struct step *s = &m->step[--m->n];
    free(s->from);
    free(s->to);
    /* Over a network, the answer may be lost, and the call repeated. */
    if (why == ENOENT && lstat(from, &a) && !lstat(to, &b))
        return SLU_OK;
    if (why == EXDEV && folders) /* folders that no rename can move, as of Lustre */
        return merge(m, from, to, a.st_mode & 07777);
    errno = why;
    return slu_fail_errno(m->err, "%s: cannot be renamed to %s", from, to);
}

/* Moves NAME below `from` to `to`, with its folders. */
static int move_name(struct moves *m, const char *from, const char *to,
                     const char *name)
{
    char *a = NULL, *b = NULL;
    int rc = SLU_OK;

    if (asprintf(&a, "%s/%s", from, name) < 0 || asprintf(&b, "%s/%s", to, name) < 0)
        rc = slu_fail_nomem(m->err, 1);
    for (char *slash = rc ? NULL : b + strlen(to) + 1;
         slash && !rc && (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (!mkdir(b, 0777))
            rc = note(m, NULL, b, 0);
        else if (errno != EEXIST)
            rc = slu_fail_errno(m->err, "%s: cannot be made", b);
        *slash = '/';
    }
    if (!rc)
        rc = move(m, a, b);
    /* The folders of the old set that have no other files. */
    for (char *slash; !rc && (slash = strrchr(a + strlen(from) + 1, '/'));) {
        struct stat st;
        *slash = 0;
        if (stat(a, &st) || rmdir(a))
            break;
        rc = note(m, a, NULL, st.st_mode & 07777);
    }
    free(a);
    free(b);
    return rc;
}

/* ---- ready ---- */

struct ready {
    struct slu_filelist old, top; /* top: the new entries of DIR but report.json */
};
static const struct slu_digest none;

static int check_file(const struct moves *m, const char *name, uint64_t n_byte)
{
    const char *in[] = {m->at, m->dir};
    struct stat st;

    for (int i = 0; i < 2; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", in[i], name) < 0)
            return slu_fail_nomem(m->err, 1);
        int failed = stat(path, &st);
        free(path);
        if (!failed && (uint64_t)st.st_size == n_byte)
            return SLU_OK;
        if (!failed)
            break;
    }
    return slu_fail(
        m->err, SLU_E_MISMATCH,
        "%s/%s: is gone, or has not the %llu bytes that .partial/ready says; "
        "remove %s to begin anew",
        m->at, name, (unsigned long long)n_byte, m->at);
}

static int take_line(const struct moves *m, struct ready *r, const char *p, size_t n)
{
    struct slu_json *j = NULL;
    struct slu_json_value v, bytes;
    const char *name = NULL;
    char top[256];
    uint64_t n_byte = 0;
    size_t k = 0;
    int rc = slu_json_parse(&j, p, n, m->err);

    if (rc)
        return rc;
    struct slu_json_value root = slu_json_root(j);
    if (slu_json_get(root, "old", &v) && slu_json_string(v, &name, &k) &&
        slu_filelist_name_is_sound(name, k)) {
        rc = slu_filelist_add(&r->old, name, &none, m->err);
    } else if (slu_json_get(root, "file", &v) && slu_json_string(v, &name, &k) &&
               slu_filelist_name_is_sound(name, k) &&
               slu_json_get(root, "bytes", &bytes) && slu_json_u64(bytes, &n_byte)) {
        rc = check_file(m, name, n_byte);
        size_t len = strcspn(name, "/");
        snprintf(top, sizeof top, "%.*s", (int)(len < 255 ? len : 255), name);
        if (!rc && (!r->top.n || strcmp(r->top.file[r->top.n - 1].name, top)) &&
            strcmp(top, "report.json"))
            rc = slu_filelist_add(&r->top, top, &none, m->err);
    } else {
        rc = slu_fail(m->err, SLU_E_FORMAT, "%s/ready: has a line that is not ours",
                      m->at);
    }
    slu_json_free(j);
    return rc;
}

static int load(const struct moves *m, struct ready *r)
{
    struct slu_buf t = SLU_BUF_INIT;
    char *path = NULL;
    int rc = asprintf(&path, "%s/ready", m->at) < 0
                 ? slu_fail_nomem(m->err, 1)
                 : slu_read_regular(&t, path, SLU_SHARDS_MAX_JOURNAL, m->err);

    if (!rc && !slu_seal_is(t.data, t.len, SLU_FILELIST_SEAL))
        rc = slu_fail(m->err, SLU_E_CHECKSUM,
                      "%s: was changed; remove %s to begin anew", path, m->at);
    const char *p = (const char *)t.data, *end = p + t.len;
    for (const char *nl;
         !rc && (nl = memchr(p, '\n', (size_t)(end - p))) && nl + 1 < end; p = nl + 1)
        rc = take_line(m, r, p, (size_t)(nl - p));
    slu_buf_release(&t);
    free(path);
    return rc;
}

/* Moves the old set to .partial/old, which exists only when all of it is there: new
 * entries are moved afterwards, and may have the same names. */
static int move_old(struct moves *m, const struct ready *r, const char *leaving,
                    const char *old)
{
    struct stat st;
    int rc = SLU_OK;

    if (!r->old.n || !lstat(old, &st))
        return SLU_OK;
    if (!mkdir(leaving, 0777))
        rc = note(m, NULL, leaving, 0);
    else if (errno != EEXIST)
        rc = slu_fail_errno(m->err, "%s: cannot be made", leaving);
    for (size_t i = 0; i < r->old.n && !rc; i++)
        rc = move_name(m, m->dir, leaving, r->old.file[i].name);
    if (!rc)
        rc = move(m, leaving, old);
    return rc ? rc : slu_sync_dir(m->at, m->err);
}

int slu_set_move_all(const char *dir, const char *at, struct slu_err *err)
{
    struct moves m = {.dir = dir, .at = at, .err = err};
    struct ready r = {0};
    struct slu_buf leaving = SLU_BUF_INIT, old = SLU_BUF_INIT;
    int rc = load(&m, &r);

    if (!rc)
        rc = slu_buf_printf(&leaving, err, "%s/leaving", at);
    if (!rc)
        rc = slu_buf_printf(&old, err, "%s/old", at);
    if (!rc)
        rc = move_old(&m, &r, (const char *)leaving.data, (const char *)old.data);
    if (!rc)
        rc = slu_sync_dir(dir, err);
    for (size_t i = 0; i < r.top.n && !rc; i++)
        rc = move_name(&m, at, dir, r.top.file[i].name);
    if (!rc)
        rc = slu_sync_dir(dir, err);
    if (!rc)
        rc = move_name(&m, at, dir, "report.json");
    if (!rc)
        rc = slu_sync_dir(dir, err);
    if (rc)
        undo(&m);
    forget(&m);
    slu_buf_release(&leaving);
    slu_buf_release(&old);
    slu_filelist_release(&r.old);
    slu_filelist_release(&r.top);
    return rc;
}
