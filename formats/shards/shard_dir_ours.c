/* shard_dir_ours.c - finds the files in a folder that belong to a shard set; removes
 * them, and refuses other files with names of a set (shard_dir.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_dir.h"
#include "formats/shards/shardset_private.h"

/* The files that a removal would take, each as "device:inode of its folder/name". */
struct going {
    char **key;
    size_t n, cap;
};

/* Facts from the folder's own files. */
struct ours {
    const char *dir;
    int fd;
    const struct slu_shard_format
        *begun;                 /* format of an unfinished set; NULL: there is none */
    bool ending;                /* the set may have files beside the buckets */
    FILE *list;                 /* manifest.jsonl of a set; NULL: there is none */
    slu_shard_dir_keeps *keeps; /* NULL: no file is kept */
    const void *ctx;
    struct going *going; /* NULL: our files are removed; else they are only noted
                            here */
    int rc;              /* the first fault; the removal continues */
    struct slu_err *err;
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

static bool in_set_folder(const struct slu_shard_format *f, const char *name)
{
    return f->owns_in_set(name) || slu_shard_dir_unfinished(name);
}

static bool is_set_folder(const struct slu_shard_format *f, const char *name)
{
    return f->set_folder && !strcmp(f->set_folder, name);
}

/* Whether a set has this name beside the buckets; not for the journal and the mark. */
static bool beside_buckets(const struct slu_shard_format *f, const char *name)
{
    if (!strcmp(name, SLU_SHARD_JOURNAL) || !strcmp(name, SLU_SHARD_PARTS))
        return false;
    return slu_shard_dir_at_top(name) ||
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

/* *is: the format that a journal or a mark names: f, or one that is built; NULL: the
 * file is neither. */
static int format_of(const char *dir, const char *name,
                     const struct slu_shard_format *f,
                     const struct slu_shard_format **is, bool *ending,
                     struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    const char *said = "";
    int rc = get_text(dir, name, &text, err);
    const uint8_t *nl = rc ? NULL : memchr(text.data, '\n', text.len);

    int parsed =
        nl ? slu_json_parse(&j, text.data, (size_t)(nl - text.data), NULL) : SLU_EOF;
    if (parsed == SLU_E_NOMEM)
        rc = slu_fail_nomem(err, text.len);
    if (!parsed && slu_json_get_string(slu_json_root(j), "arguments", NULL))
        said = slu_json_get_string(slu_json_root(j), "format", "");
    *ending = *said &&
              memmem(text.data, text.len, SLU_SHARD_ENDING, strlen(SLU_SHARD_ENDING));
    *is = f;
    for (unsigned i = 0; *is && strcmp((*is)->name, said); i++)
        *is = slu_shard_format_at(i);
    slu_json_free(j);
    slu_buf_release(&text);
    return rc < 0 ? rc : SLU_OK;
}

/* The next file of a manifest.jsonl; SLU_EOF after the last. */
static int next_entry(FILE *f, struct slu_shardset_entry *e)
{
    static const char begin[] = "{\"file\":\"";
    struct slu_json *j = NULL;
    char line[1024];
    int rc = SLU_EOF;

    if (!fgets(line, sizeof line, f))
        return rc;
    /* else the line was cut */
    if (strchr(line, '\n') || strncmp(line, begin, sizeof begin - 1))
        rc = !slu_json_parse(&j, line, strlen(line), NULL) &&
                     slu_shardset_get_entry(e, slu_json_root(j))
                 ? SLU_OK
                 : SLU_E_FORMAT;
    slu_json_free(j);
    return rc;
}

/* Opens DIR/manifest.jsonl if all its lines are of a set; the last line may be cut. */
static FILE *open_list(int in)
{
    struct slu_shardset_entry e;
    int fd = openat(in, "manifest.jsonl", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    uint64_t n = 0;

    if (!f) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    while ((rc = next_entry(f, &e)) == SLU_OK)
        n++;
    if (rc == SLU_EOF && (n || ftell(f) > 0))
        return f;
    fclose(f);
    return NULL;
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

/* ---- removing ---- */

static void removed(struct ours *o, int failed, const char *name)
{
    if (failed && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST && !o->rc)
        o->rc = slu_fail_errno(o->err, "%s/%s: cannot be removed", o->dir, name);
}

/* Caller frees; NULL if memory runs out, or if the folder's status cannot be read. */
static char *key_of(int in, const char *name)
{
    struct stat st;
    char *key;

    if (fstat(in, &st) || asprintf(&key, "%llx:%llx/%s", (unsigned long long)st.st_dev,
                                   (unsigned long long)st.st_ino, name) < 0)
        return NULL;
    return key;
}

static void note(struct ours *o, int in, const char *name)
{
    struct going *g = o->going;
    int rc = slu_grow(&g->key, &g->cap, g->n + 1, sizeof *g->key, o->err);

    if (!rc && !(g->key[g->n] = key_of(in, name)))
        rc = slu_fail_nomem(o->err, strlen(name));
    g->n += !rc;
    o->rc = o->rc ? o->rc : rc;
}

/* Removes a file of ours or, with AT_REMOVEDIR, an empty folder; or notes the file. */
static void take(struct ours *o, int in, const char *name, int flags)
{
    struct stat st;

    if (!o->going)
        removed(o, unlinkat(in, name, flags), name);
    else if (!flags && !fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW) &&
             !S_ISDIR(st.st_mode))
        note(o, in, name);
}

static int open_folder(int in, const char *name)
{
    return openat(in, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Removes the file of this path below `in`, unless a folder on the way is a link. */
static void drop(struct ours *o, int in, const char *path)
{
    const char *slash = strchr(path, '/');
    char folder[NAME_MAX + 1];

    if (!slash) {
        take(o, in, path, 0);
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    int fd = open_folder(in, folder);
    if (fd < 0)
        return;
    drop(o, fd, slash + 1);
    close(fd);
}

/* A file that people may have edited is ours only if it is unchanged. */
static bool is_as_written(const struct ours *o, const struct slu_shardset_entry *e)
{
    struct slu_buf scratch = SLU_BUF_INIT, path = SLU_BUF_INIT;
    struct slu_digest d;
    struct stat st;
    bool is = !fstatat(o->fd, e->file, &st, AT_SYMLINK_NOFOLLOW) &&
              S_ISREG(st.st_mode) && (uint64_t)st.st_size == e->n_byte &&
              !slu_buf_printf(&path, NULL, "%s/%s", o->dir, e->file) &&
              !slu_file_digest((const char *)path.data, &scratch, &d, NULL) &&
              d.xxh3 == e->xxh3;

    slu_buf_release(&path);
    slu_buf_release(&scratch);
    return is;
}

static void drop_listed(struct ours *o)
{
    struct slu_shardset_entry e;

    rewind(o->list);
    while (next_entry(o->list, &e) == SLU_OK) {
        char *slash = strchr(e.file, '/');
        bool kept = !slash && !is_as_written(o, &e);
        if (slash && o->keeps) {
            *slash = 0;
            kept = o->keeps(o->ctx, e.file, slash + 1);
            *slash = '/';
        }
        if (!kept)
            drop(o, o->fd, e.file);
    }
}

/* Removes the files of folder `name` in `in` that `is` assigns to the unfinished set,
 * also in folders below as far as depth allows, and then empty folders. is NULL: only
 * empty folders. */
static void clear(struct ours *o, int in, const char *name,
                  bool (*is)(const struct slu_shard_format *, const char *),
                  unsigned depth)
{
    int fd = open_folder(in, name);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    struct stat st;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return; /* a link, or no longer there: not ours */
    }
    while ((e = readdir(d))) {
        if (dot(e->d_name))
            continue;
        if (depth && !fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
            S_ISDIR(st.st_mode))
            clear(o, fd, e->d_name, is, depth - 1);
        else if (is && is(o->begun, e->d_name) &&
                 !(o->keeps && o->keeps(o->ctx, name, e->d_name)))
            take(o, fd, e->d_name, 0);
    }
    closedir(d);
    if (strcmp(name, "segments"))
        take(o, in, name, AT_REMOVEDIR);
}

/* Removes a format's folder: the files in its own list, or all files if an unfinished
 * set was writing there. */
static void clear_set_folder(struct ours *o, const char *name)
{
    struct slu_filelist l = SLU_FILELIST_INIT;
    struct slu_buf path = SLU_BUF_INIT;
    int fd = open_folder(o->fd, name);

    if (fd >= 0 && !slu_buf_printf(&path, NULL, "%s/%s", o->dir, name) &&
        !slu_filelist_load(&l, (const char *)path.data, NULL)) {
        for (size_t i = 0; i < l.n; i++)
            drop(o, fd, l.file[i].name);
        drop(o, fd, "manifest.jsonl");
    }
    if (fd >= 0)
        close(fd);
    bool all = o->begun && o->ending && is_set_folder(o->begun, name);
    clear(o, o->fd, name, all ? in_set_folder : NULL, 2);
    slu_filelist_release(&l);
    slu_buf_release(&path);
}

static void clear_entry(struct ours *o, const char *name)
{
    const struct slu_shard_format *f;

    if (slu_shard_dir_unfinished(name) ||
        (o->begun && o->ending && beside_buckets(o->begun, name)))
        drop(o, o->fd, name);
    else if ((o->begun || o->list) && slu_shard_dir_of_bucket(name))
        clear(o, o->fd, name, o->begun ? in_bucket : NULL, 0);
    else if (o->begun && !strcmp(name, "segments"))
        clear(o, o->fd, name, in_segments, 0);
    for (unsigned i = 0; (o->begun || o->list) && (f = slu_shard_format_at(i)); i++)
        if (is_set_folder(f, name))
            clear_set_folder(o, name);
}

/* slu_shard_dir_remove; with `going`, files are only noted. */
static int remove_ours(const char *dir, const struct slu_shard_format *f, bool itself,
                       slu_shard_dir_keeps *keeps, const void *ctx, struct going *going,
                       struct slu_err *err)
{
    struct ours o = {
        .dir = dir, .keeps = keeps, .ctx = ctx, .going = going, .err = err};
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool ending;

    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    o.fd = dirfd(d);
    const struct slu_shard_format *journal, *parts;
    o.rc = format_of(dir, SLU_SHARD_JOURNAL, f, &journal, &o.ending, err);
    int rc = format_of(dir, SLU_SHARD_PARTS, f, &parts, &ending, err);
    o.rc = o.rc ? o.rc : rc;
    o.begun = journal ? journal : parts;
    o.ending = o.ending || parts; /* a join has no journal */
    o.list = open_list(o.fd);
    if (is_report(dir))
        drop(&o, o.fd, "report.json");
    if (o.list)
        drop_listed(&o);
    while ((e = readdir(d)))
        if (!dot(e->d_name))
            clear_entry(&o, e->d_name);
    if (o.list) {
        drop(&o, o.fd, "manifest.jsonl");
        fclose(o.list);
    }
    if (parts)
        drop(&o, o.fd, SLU_SHARD_PARTS);
    if (journal && !keeps)
        drop(&o, o.fd, SLU_SHARD_JOURNAL);
    /* Last, because they show that the other files are a set's. */
    if (!keeps && (o.list || o.begun))
        take(&o, o.fd, "segments", AT_REMOVEDIR);
    closedir(d);
    if (itself)
        removed(&o, rmdir(dir), "");
    return o.rc;
}

int slu_shard_dir_remove(const char *dir, const struct slu_shard_format *f, bool itself,
                         slu_shard_dir_keeps *keeps, const void *ctx,
                         struct slu_err *err)
{
    return remove_ours(dir, f, itself, keeps, ctx, NULL, err);
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

static int by_key(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whether a removal would take this file. */
static bool goes(const struct ours *o, int in, const char *name)
{
    char *key = o->going && o->going->n ? key_of(in, name) : NULL;
    bool does =
        key && bsearch(&key, o->going->key, o->going->n, sizeof(char *), by_key);

    free(key);
    return does;
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
            is(f, e->d_name) && !goes(o, fd, e->d_name) &&
            !(o->keeps && o->keeps(o->ctx, name, e->d_name)))
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

int slu_shard_dir_check_head(const char *dir, const struct slu_shard_format *f,
                             const char *name, struct slu_err *err)
{
    const struct slu_shard_format *is;
    bool ending;
    int rc = format_of(dir, name, f, &is, &ending, err);

    return rc || is ? rc : slu_shard_dir_in_the_way(dir, "", name, err);
}

/* slu_shard_dir_check_names; files in `going` may exist. */
static int check_names(const char *dir, const struct slu_shard_format *f,
                       slu_shard_dir_keeps *keeps, const void *ctx, struct going *going,
                       struct slu_err *err)
{
    struct ours o = {.dir = dir, .keeps = keeps, .ctx = ctx, .going = going};
    DIR *d = opendir(dir);
    const struct dirent *e;
    int rc = SLU_OK;

    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    o.fd = dirfd(d);
    while (!rc && (e = readdir(d))) {
        const char *name = e->d_name;
        if (slu_shard_dir_of_bucket(name))
            rc = check_folder(&o, f, name, in_bucket, err);
        else if (!strcmp(name, "segments"))
            rc = check_folder(&o, f, name, in_segments, err);
        else if (is_set_folder(f, name))
            rc = check_folder(&o, f, name, nothing, err);
        else if (!strcmp(name, SLU_SHARD_JOURNAL) || !strcmp(name, SLU_SHARD_PARTS))
            rc = slu_shard_dir_check_head(dir, f, name, err);
        else if (beside_buckets(f, name) && !goes(&o, o.fd, name))
            rc = slu_shard_dir_in_the_way(dir, "", name, err);
    }
    closedir(d);
    return rc;
}

int slu_shard_dir_check_names(const char *dir, const struct slu_shard_format *f,
                              slu_shard_dir_keeps *keeps, const void *ctx,
                              struct slu_err *err)
{
    return check_names(dir, f, keeps, ctx, NULL, err);
}

int slu_shard_dir_make_room(const char *dir, const struct slu_shard_format *f,
                            slu_shard_dir_keeps *keeps, const void *ctx,
                            struct slu_err *err)
{
    struct going going = {0};
    int rc = remove_ours(dir, f, false, keeps, ctx, &going, err);

    if (!rc && going.n)
        qsort(going.key, going.n, sizeof *going.key, by_key);
    if (!rc)
        rc = check_names(dir, f, keeps, ctx, &going, err);
    if (!rc)
        rc = remove_ours(dir, f, false, keeps, ctx, NULL, err);
    for (size_t i = 0; i < going.n; i++)
        free(going.key[i]);
    free(going.key);
    return rc;
}

static bool all(const void *ctx, const char *folder, const char *name)
{
    (void)ctx;
    (void)folder;
    (void)name;
    return true;
}

int slu_shard_dir_check_end(const char *dir, const struct slu_shard_format *f,
                            bool parts, struct slu_err *err)
{
    if (!parts)
        return slu_shard_dir_check_names(dir, f, all, NULL, err);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return slu_fail_errno(err, "%s: cannot be opened", dir);
    FILE *list = open_list(fd);
    const char *name = NULL;
    if (!list && !faccessat(fd, "manifest.jsonl", F_OK, AT_SYMLINK_NOFOLLOW))
        name = "manifest.jsonl";
    else if (!is_report(dir) &&
             !faccessat(fd, "report.json", F_OK, AT_SYMLINK_NOFOLLOW))
        name = "report.json";
    if (list)
        fclose(list);
    close(fd);
    return name ? slu_shard_dir_in_the_way(dir, "", name, err) : SLU_OK;
}
