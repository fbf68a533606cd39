/* shard_dir_ours.c - finds the files in a folder that belong to a shard set, and refuses
 * other files with names of a set (shard_dir.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_dir.h"
#include "formats/shards/shard_private.h"

/* Facts from the folder's own files. */
struct ours {
    const char *dir;
    int fd;
    struct slu_filelist *old; /* the old set's files, settled */
};

static bool dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Our numbers have leading zeros: shard-1.tar is not ours. */
static bool padded(const char *name)
{
    size_t width = !strncmp(name, "shard-", 6)   ? 7
                   : !strncmp(name, "shard.", 6) ? 5
                                                 : 0;

    return !width || strspn(name + 6, "0123456789") >= width;
}

static bool in_bucket(const struct slu_shard_format *f, const char *name)
{
    return (f->owns(name) && padded(name)) || slu_shard_dir_unfinished(name);
}

/* Whether the name is BUCKET.tks. */
static bool in_segments(const struct slu_shard_format *f, const char *name)
{
    size_t n = strlen(name);
    char bucket[32] = "";

    (void)f;
    if (n > 4 && n - 4 < sizeof bucket && !strcmp(name + n - 4, ".tks"))
        memcpy(bucket, name, n - 4);
    return slu_shard_dir_of_bucket(bucket) || slu_shard_dir_unfinished(name);
}

static bool is_set_folder(const struct slu_shard_format *f, const char *name)
{
    return f->set_folder && !strcmp(f->set_folder, name);
}

/* Whether a set has this name beside the buckets; not for .partial. */
static bool beside_buckets(const struct slu_shard_format *f, const char *name)
{
    return (slu_shard_dir_at_top(name) && *name != '.') ||
           (f->owns_in_set && !f->set_folder && f->owns_in_set(name));
}

/* ---- facts from the folder's files ---- */

/* Reads DIR/name; SLU_EOF where there is none. */
static int get_text(const char *dir, const char *name, struct slu_buf *text,
                    struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s", dir, name);

    if (!rc && access((const char *)path.data, F_OK))
        rc = SLU_EOF;
    if (!rc)
        rc = slu_read_regular(text, (const char *)path.data, SLU_SHARDS_MAX_JOURNAL,
                              err);
    slu_buf_release(&path);
    return rc;
}

/* Whether the file begins as the report of a set does (shard_report.c); the rest may be
 * damaged. */
static bool is_report(const char *dir)
{
    static const char first[] = "{\n  \"program\": \"",
                      second[] = "\",\n  \"format\": \"";
    struct slu_buf text = SLU_BUF_INIT;
    bool is = !get_text(dir, "report.json", &text, NULL) &&
              !slu_buf_append(&text, "", 1, NULL);
    const char *p = (const char *)text.data;

    is = is && !strncmp(p, first, sizeof first - 1) && strchr(p, ',') &&
         !strncmp(strchr(p, ',') - 1, second, sizeof second - 1);
    slu_buf_release(&text);
    return is;
}

/* ---- the old set ---- */

static int open_folder(int in, const char *name)
{
    return openat(in, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Whether there is a file, or a link, of this path, on which no folder is a link. */
static bool is_there(int in, const char *path)
{
    const char *slash = strchr(path, '/');
    char folder[NAME_MAX + 1];
    struct stat st;

    if (!slash)
        return !fstatat(in, path, &st, AT_SYMLINK_NOFOLLOW) && !S_ISDIR(st.st_mode);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    int fd = open_folder(in, folder);
    bool is = fd >= 0 && is_there(fd, slash + 1);
    if (fd >= 0)
        close(fd);
    return is;
}

static int take(struct ours *o, const char *name, struct slu_err *err)
{
    static const struct slu_digest none;

    return is_there(o->fd, name) ? slu_filelist_add(o->old, name, &none, err) : SLU_OK;
}

/* A file at the top, which people may have edited, is ours only if it is unchanged. */
static int take_listed(struct ours *o, const struct slu_filelist *list,
                       struct slu_err *err)
{
    struct slu_buf scratch = SLU_BUF_INIT;
    int rc = take(o, "manifest.jsonl", err);

    for (size_t i = 0; i < list->n && !rc; i++) {
        const struct slu_file *f = &list->file[i];
        if (strchr(f->name, '/') || slu_file_is(o->dir, f->name, &f->digest, &scratch))
            rc = take(o, f->name, err);
    }
    slu_buf_release(&scratch);
    return rc;
}

/* Takes the files of a format's folder: those in its own list. */
static int take_set_folder(struct ours *o, const char *folder, struct slu_err *err)
{
    struct slu_filelist l = SLU_FILELIST_INIT;
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s", o->dir, folder);
    bool is = !rc && !slu_filelist_load(&l, (const char *)path.data, NULL);

    for (size_t i = 0; i <= l.n && !rc && is; i++) {
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", folder,
                            i < l.n ? l.file[i].name : "manifest.jsonl");
        if (!rc)
            rc = take(o, (const char *)path.data, err);
    }
    slu_filelist_release(&l);
    slu_buf_release(&path);
    return rc;
}

/* Whether DIR/name has the first bytes of again/name, or all of them. */
static bool is_cut(const struct ours *o, const char *again, const char *name)
{
    struct slu_buf is = SLU_BUF_INIT, want = SLU_BUF_INIT;
    bool cut = !get_text(o->dir, name, &is, NULL) &&
               !get_text(again, name, &want, NULL) && is.len <= want.len &&
               !memcmp(is.data, want.data, is.len);

    slu_buf_release(&is);
    slu_buf_release(&want);
    return cut;
}

static int take_all(struct ours *o, const char *again, const struct slu_filelist *files,
                    struct slu_err *err)
{
    struct slu_filelist l = SLU_FILELIST_INIT;
    const bool list = !slu_filelist_load_set(&l, o->dir, NULL);
    const struct slu_shard_format *f;
    int rc = is_report(o->dir) ? take(o, "report.json", err) : SLU_OK;

    if (!rc && list)
        rc = take_listed(o, &l, err);
    for (unsigned i = 0; !rc && list && (f = slu_shard_format_at(i)); i++)
        if (f->set_folder)
            rc = take_set_folder(o, f->set_folder, err);
    for (size_t i = 0; !rc && again && i < files->n; i++)
        if (strchr(files->file[i].name, '/') || is_cut(o, again, files->file[i].name))
            rc = take(o, files->file[i].name, err);
    slu_filelist_release(&l);
    slu_filelist_settle(o->old);
    return rc;
}

/* ---- files of the user with names of a set ---- */

int slu_shard_dir_in_the_way(const char *dir, const char *folder, const char *name,
                             struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s/%s%s%s: this name belongs to the set, and the file was not "
                    "made with a set; move it away, or name another folder",
                    dir, folder, *folder ? "/" : "", name);
}

/* Whether the old set has this file. */
static bool has(const struct ours *o, const char *folder, const char *name)
{
    char path[2 * NAME_MAX + 2];

    snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
    return slu_filelist_find(o->old, path);
}

static int check_folder(const struct ours *o, const struct slu_shard_format *f,
                        const char *name,
                        bool (*is)(const struct slu_shard_format *, const char *),
                        struct slu_err *err)
{
    int fd = open_folder(o->fd, name), rc = SLU_OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        const bool other = fd < 0 && (errno == ELOOP || errno == ENOTDIR);
        rc = other ? slu_shard_dir_in_the_way(o->dir, "", name,
                                              err) /* a link, or not a folder */
                   : slu_fail_errno(err, "%s/%s: cannot be opened", o->dir, name);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (!rc && (e = readdir(d)))
        if (!dot(e->d_name) && !slu_shard_dir_unfinished(e->d_name) &&
            is(f, e->d_name) && !has(o, name, e->d_name))
            rc = slu_shard_dir_in_the_way(o->dir, name, e->d_name, err);
    closedir(d);
    return rc;
}

static bool nothing(const struct slu_shard_format *f, const char *name)
{
    (void)f;
    (void)name;
    return false;
}

static int check_names(const struct ours *o, DIR *d, const struct slu_shard_format *f,
                       struct slu_err *err)
{
    const struct dirent *e;
    int rc = SLU_OK;

    rewinddir(d);
    while (!rc && (e = readdir(d))) {
        const char *name = e->d_name;
        if (slu_shard_dir_of_bucket(name))
            rc = check_folder(o, f, name, in_bucket, err);
        else if (!strcmp(name, "segments"))
            rc = check_folder(o, f, name, in_segments, err);
        else if (is_set_folder(f, name))
            rc = check_folder(o, f, name, nothing, err);
        else if (beside_buckets(f, name) && !has(o, "", name))
            rc = slu_shard_dir_in_the_way(o->dir, "", name, err);
    }
    return rc;
}

/* ---- entries ---- */

/* Whether the old set has all files of this folder, and of those in it. */
static bool is_whole(const struct ours *o, const char *folder)
{
    char *path = NULL;
    bool whole = !slu_set_path(&path, o->dir, folder, NULL);
    char *const top[] = {path, NULL};
    FTS *t = whole ? fts_open(top, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    FTSENT *e = NULL;

    while (t && whole && (e = fts_read(t)))
        whole = e->fts_info == FTS_D || e->fts_info == FTS_DP ||
                slu_shard_dir_unfinished(e->fts_name) ||
                slu_filelist_find(o->old, e->fts_path + strlen(o->dir) + 1);
    if (t)
        fts_close(t);
    free(path);
    return t && whole;
}

/* Length of the first folder's name with its slash; 0: none. */
static size_t folder_of(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* Puts a whole folder in the place of its files, and report.json first. */
static void gather(const struct ours *o)
{
    struct slu_filelist *l = o->old;
    size_t n = 0;

    for (size_t i = 0, end; i < l->n; i = end) { /* nth: of a whole folder */
        const size_t len = folder_of(l->file[i].name);
        char folder[NAME_MAX + 1];
        for (end = i + 1;
             end < l->n && len && !strncmp(l->file[end].name, l->file[i].name, len);)
            end++;
        snprintf(folder, sizeof folder, "%.*s", (int)(len ? len - 1 : 0),
                 l->file[i].name);
        const bool whole = len && is_whole(o, folder);
        for (size_t k = i; k < end; k++)
            l->file[k].nth = whole ? k == i ? 1 : 2 : 0;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->file[i].nth == 2) {
            free(l->file[i].name);
        } else {
            if (l->file[i].nth)
                l->file[i].name[folder_of(l->file[i].name) - 1] = 0;
            l->file[n++] = l->file[i];
        }
    l->n = n;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(l->file[i].name, "report.json")) {
            struct slu_file first = l->file[i];
            memmove(l->file + 1, l->file, i * sizeof first);
            l->file[0] = first;
        }
}

int slu_shard_dir_old(const char *dir, const struct slu_shard_format *f,
                      const char *again, const struct slu_filelist *files,
                      struct slu_filelist *old, struct slu_err *err)
{
    struct ours o = {.dir = dir, .old = old};
    DIR *d = opendir(dir);

    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    o.fd = dirfd(d);
    int rc = take_all(&o, again, files, err);
    if (!rc)
        rc = check_names(&o, d, f, err);
    if (!rc)
        gather(&o);
    closedir(d);
    return rc;
}
