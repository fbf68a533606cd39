/* set_publish.c - gives the files of a set their names: renames out of DIR/.partial, and
 * of the old set into it (set_out.h). */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/set_out.h"
#include "formats/shards/shard_private.h"
#include "lib/base/json.h"

struct moves {
    const char *dir, *at;
    struct slu_filelist old, files; /* of .partial/ready */
    char *leaving, *left;           /* .partial/leaving, .partial/old */
    struct slu_err *err;
};

static int move(struct moves *m, const char *from, const char *to);

/* Moves the files of a folder that cannot be renamed, or whose name is a folder already
 * that has files of others. */
static int merge(struct moves *m, const char *from, const char *to, mode_t mode)
{
    DIR *d;
    const struct dirent *e;
    int rc = SLU_OK;

    if (mkdir(to, mode) && errno != EEXIST)
        rc = slu_fail_errno(m->err, "%s: cannot be made", to);
    d = rc ? NULL : opendir(from);
    if (!rc && !d)
        rc = slu_fail_errno(m->err, "%s: cannot be opened", from);
    while (!rc && (e = readdir(d))) {
        char *a = NULL, *b = NULL;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        rc = slu_set_path(&a, from, e->d_name, m->err);
        if (!rc)
            rc = slu_set_path(&b, to, e->d_name, m->err);
        if (!rc)
            rc = move(m, a, b);
        free(a);
        free(b);
    }
    if (d)
        closedir(d);
    if (!rc)
        (void)rmdir(from);
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
    if (!rename(from, to))
        return SLU_OK;
    int why = errno;
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
    int rc = slu_set_path(&a, from, name, m->err);

    if (!rc)
        rc = slu_set_path(&b, to, name, m->err);
    for (char *slash = rc ? NULL : b + strlen(to) + 1;
         slash && !rc && (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(b, 0777) && errno != EEXIST)
            rc = slu_fail_errno(m->err, "%s: cannot be made", b);
        *slash = '/';
    }
    if (!rc)
        rc = move(m, a, b);
    /* The folders that have no other files. */
    for (char *slash; !rc && (slash = strrchr(a + strlen(from) + 1, '/'));) {
        *slash = 0;
        if (rmdir(a))
            break;
    }
    free(a);
    free(b);
    return rc;
}

/* ---- ready ---- */

static int check_file(const struct moves *m, const char *name, uint64_t n_byte)
{
    const char *in[] = {m->at, m->dir};
    struct stat st;

    for (int i = 0; i < 2; i++) {
        char *path = NULL;
        if (slu_set_path(&path, in[i], name, m->err))
            return SLU_E_NOMEM;
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

static int take_line(struct moves *m, const char *p, size_t n)
{
    struct slu_json *j = NULL;
    struct slu_json_value v;
    struct slu_digest d = {0, 0};
    const char *name = NULL;
    size_t k = 0;
    int rc = slu_json_parse(&j, p, n, m->err);

    if (rc)
        return rc;
    struct slu_json_value root = slu_json_root(j);
    const bool old = slu_json_get(root, "old", &v);
    if ((!old && (!slu_json_get(root, "file", &v) ||
                  !slu_shards_u64(root, "bytes", &d.n_byte))) ||
        !slu_json_string(v, &name, &k) || !slu_filelist_name_is_sound(name, k))
        rc = slu_fail(m->err, SLU_E_FORMAT, "%s/ready: has a line that is not ours",
                      m->at);
    if (!rc && !old)
        rc = check_file(m, name, d.n_byte);
    if (!rc)
        rc = slu_filelist_add(old ? &m->old : &m->files, name, &d, m->err);
    slu_json_free(j);
    return rc;
}

static int load(struct moves *m)
{
    struct slu_buf t = SLU_BUF_INIT;
    char *path = NULL;
    int rc = slu_set_path(&path, m->at, "ready", m->err);

    if (!rc)
        rc = slu_read_regular(&t, path, SLU_SHARDS_MAX_JOURNAL, m->err);
    if (!rc && !slu_seal_is(t.data, t.len, SLU_FILELIST_SEAL))
        rc = slu_fail(m->err, SLU_E_CHECKSUM,
                      "%s: was changed; remove %s to begin anew", path, m->at);
    const char *p = (const char *)t.data, *end = p + t.len;
    for (const char *nl;
         !rc && (nl = memchr(p, '\n', (size_t)(end - p))) && nl + 1 < end; p = nl + 1)
        rc = take_line(m, p, (size_t)(nl - p));
    slu_buf_release(&t);
    free(path);
    return rc;
}

/* ---- all of it ---- */

/* Moves the old set to .partial/old, which exists only when all of it is there: new
 * entries are moved afterwards, and may have the same names. */
static int move_old(struct moves *m)
{
    struct stat st;
    int rc = SLU_OK;

    if (!m->old.n || !lstat(m->left, &st))
        return SLU_OK;
    if (mkdir(m->leaving, 0777) && errno != EEXIST)
        rc = slu_fail_errno(m->err, "%s: cannot be made", m->leaving);
    for (size_t i = 0; i < m->old.n && !rc; i++)
        rc = move_name(m, m->dir, m->leaving, m->old.file[i].name);
    if (!rc)
        rc = move(m, m->leaving, m->left);
    if (!rc)
        rc = slu_sync_dir(m->at, m->err);
    return rc ? rc : slu_sync_dir(m->dir, m->err);
}

/* Moves the new entries, report.json last. */
static int move_new(struct moves *m)
{
    char top[NAME_MAX + 1], before[NAME_MAX + 1] = "report.json";
    int rc = SLU_OK;

    for (size_t i = 0; i < m->files.n && !rc; i++) {
        const char *name = m->files.file[i].name;
        snprintf(top, sizeof top, "%.*s", (int)strcspn(name, "/"), name);
        if (strcmp(top, before) && strcmp(top, "report.json"))
            rc = move_name(m, m->at, m->dir, top);
        memcpy(before, top, sizeof top);
    }
    if (!rc)
        rc = slu_sync_dir(m->dir, m->err);
    if (!rc)
        rc = move_name(m, m->at, m->dir, "report.json");
    return rc ? rc : slu_sync_dir(m->dir, m->err);
}

/* After a fault: moves back what can be moved. left: the old set has left wholly; before
 * that, a file in DIR of a new one's name is the old set's. */
static void move_back(struct moves *m, bool left)
{
    m->err = NULL;
    if (left)
        (void)!move_name(m, m->dir, m->at, "report.json");
    for (size_t i = left ? m->files.n : 0; i-- > 0;)
        (void)!move_name(m, m->dir, m->at, m->files.file[i].name);
    (void)!move(m, m->left, m->leaving);
    for (size_t i = m->old.n; i-- > 0;)
        (void)!move_name(m, m->leaving, m->dir, m->old.file[i].name);
    (void)rmdir(m->leaving);
}

int slu_set_move_all(const char *dir, const char *at, struct slu_err *err)
{
    struct moves m = {.dir = dir, .at = at, .err = err};
    bool left = false;
    int rc = load(&m);

    if (!rc)
        rc = slu_set_path(&m.leaving, at, "leaving", err);
    if (!rc)
        rc = slu_set_path(&m.left, at, "old", err);
    if (!rc) {
        rc = move_old(&m);
        left = !rc;
        if (!rc)
            rc = move_new(&m);
        if (rc)
            move_back(&m, left);
    }
    free(m.leaving);
    free(m.left);
    slu_filelist_release(&m.old);
    slu_filelist_release(&m.files);
    return rc;
}
