/* set_out.c - begins and ends DIR/.partial (set_out.h). */
#include "formats/shards/set_out.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shard_dir.h"
#include "formats/shards/shard_private.h"
#include "lib/base/json_write.h"

enum { LOOKS = 500 };

int slu_set_path(char **out, const char *dir, const char *name, struct slu_err *err)
{
    if (asprintf(out, "%s/%s", dir, name) >= 0)
        return SLU_OK;
    *out = NULL;
    return slu_fail_nomem(err, strlen(dir));
}

/* Appends the first line of DIR/.partial/NAME; SLU_EOF: there is no such file. */
static int read_record(const char *dir, const char *name, struct slu_buf *record,
                       struct slu_err *err)
{
    char *path = NULL;
    int rc = slu_set_path(&path, dir, name, err);

    if (!rc)
        rc = access(path, F_OK)
                 ? SLU_EOF
                 : slu_read_regular(record, path, SLU_SHARDS_MAX_JOURNAL, err);
    const uint8_t *nl = rc ? NULL : memchr(record->data, '\n', record->len);
    if (nl)
        record->len = (size_t)(nl + 1 - record->data);
    free(path);
    return rc;
}

/* ---- the folder ---- */

static int open_paths(struct slu_set_out *o, const char *dir,
                      const struct slu_shard_format *f, struct slu_err *err)
{
    *o = (struct slu_set_out){.format = f, .dir = strdup(dir)};
    return o->dir ? slu_set_path(&o->at, dir, SLU_SET_PARTIAL, err)
                  : slu_fail_nomem(err, strlen(dir));
}

static void close_paths(struct slu_set_out *o)
{
    free(o->lock);
    free(o->at);
    free(o->dir);
    *o = (struct slu_set_out){0};
}

/* Makes DIR and .partial, and takes a lock in it. */
static int enter(struct slu_set_out *o, const char *lock, unsigned patience,
                 struct slu_err *err)
{
    int rc = slu_set_path(&o->lock, o->at, lock, err);

    for (int i = 0; i < LOOKS && !rc; i++) {
        o->made_dir = o->made_dir || (access(o->dir, F_OK) && errno == ENOENT);
        rc = slu_mkdirs(o->dir, err);
        if (!rc && mkdir(o->at, 0777) && errno != EEXIST)
            rc = slu_fail_errno(err, "%s: cannot be made", o->at);
        if (!rc)
            rc = slu_set_lock(o->lock, patience, false, err);
        if (rc != SLU_EOF)
            break;
        rc = SLU_OK; /* another process has just removed .partial */
    }
    if (rc) {
        free(o->lock);
        o->lock = NULL;
    }
    return rc;
}

static void leave(struct slu_set_out *o)
{
    if (o->lock)
        unlink(o->lock);
    free(o->lock);
    o->lock = NULL;
}

/* Whether .partial is not ours: something in it, and neither journal nor mark. */
static bool is_foreign(const char *at)
{
    DIR *d = opendir(at);
    const struct dirent *e;
    bool other = !d && errno != ENOENT, proof = false;

    while (d && (e = readdir(d))) {
        proof = proof || !strcmp(e->d_name, "journal") || !strcmp(e->d_name, "mark");
        other = other || (*e->d_name != '.' && strncmp(e->d_name, "lock", 4));
    }
    if (d)
        closedir(d);
    return other && !proof;
}

int slu_set_remove_tree(const char *path, const char *but, struct slu_err *err)
{
    char *const top[] = {(char *)path, NULL};
    FTS *t = fts_open(top, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *e;
    int rc = t ? SLU_OK : slu_fail_errno(err, "%s: cannot be opened", path);

    while (t && !rc && (e = fts_read(t)))
        if (e->fts_info != FTS_D && (e->fts_level || !but) &&
            (e->fts_level != 1 || !but || strcmp(e->fts_name, but) != 0) &&
            remove(e->fts_path) && errno != ENOENT)
            rc = slu_fail_errno(err, "%s: cannot be removed", e->fts_path);
    if (t)
        fts_close(t);
    return rc;
}

int slu_set_being_replaced(const char *dir, struct slu_err *err)
{
    return !slu_exists_in(dir, "report.json") &&
                   slu_exists_in(dir, SLU_SET_PARTIAL "/ready")
               ? slu_fail(
                     err, SLU_E_TRUNCATED,
                     "%s: the set is being replaced; run the command again; if the "
                     "shuffle that replaces it was stopped, run that again",
                     dir)
               : SLU_OK;
}

/* Between slu_set_recover and our lock, another process may have been killed. */
static int not_ready(const struct slu_set_out *o, struct slu_err *err)
{
    return slu_exists_in(o->at, "ready")
               ? slu_fail(err, SLU_E_MISMATCH,
                          "%s: another shuffle was stopped while it published its set; "
                          "run the command again",
                          o->dir)
               : SLU_OK;
}

/* What a run that was killed behind its publishing has left: the old set. */
static void remove_old(const char *at)
{
    char *old = NULL;

    if (!slu_exists_in(at, "ready") && !slu_set_path(&old, at, "old", NULL))
        (void)!slu_set_remove_tree(old, NULL, NULL);
    free(old);
}

int slu_set_recover(const char *dir, struct slu_buf *record, struct slu_err *err)
{
    struct slu_set_out o;
    int rc = open_paths(&o, dir, NULL, err);

    if (!rc && slu_exists_in(o.at, "ready"))
        rc = enter(&o, "lock", LOOKS, err);
    if (!rc && o.lock && slu_exists_in(o.at, "ready")) {
        rc = read_record(o.at, "journal", record, err);
        if (rc == SLU_EOF)
            rc = read_record(o.at, "mark", record, err);
        if (rc == SLU_EOF)
            rc = slu_shard_dir_in_the_way(dir, "", SLU_SET_PARTIAL, err);
        if (!rc)
            rc = slu_set_publish(&o, err);
    }
    leave(&o);
    close_paths(&o);
    return rc;
}

int slu_set_check(const char *dir, const struct slu_shard_format *f, bool replace,
                  struct slu_err *err)
{
    char *at = NULL;
    int rc = slu_set_path(&at, dir, SLU_SET_PARTIAL, err);

    if (!rc && is_foreign(at))
        rc = slu_shard_dir_in_the_way(dir, "", SLU_SET_PARTIAL, err);
    if (!rc)
        rc = slu_shard_dir_check(dir, f, replace, err);
    if (!rc && !replace && slu_exists_in(at, "mark"))
        rc = slu_advise(err, SLU_ADVISE_REPLACE_SET,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: the shuffle in parts that writes here has not "
                                 "finished; finish it, name another folder",
                                 dir));
    free(at);
    return rc;
}

/* ---- beginning ---- */

/* Writes the file that has the record, the first one of .partial. */
static int put_record(const struct slu_set_out *o, const char *name,
                      const struct slu_buf *record, struct slu_err *err)
{
    char *path = NULL;
    int rc = slu_set_path(&path, o->at, name, err);

    if (!rc)
        rc = slu_out_whole(path, record->data, record->len, err);
    if (!rc)
        rc = slu_sync_dir(o->dir, err);
    free(path);
    return rc;
}

static bool same(const struct slu_buf *a, const struct slu_buf *b)
{
    return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

int slu_set_begin(struct slu_set_out *o, const char *dir,
                  const struct slu_shard_format *f, const struct slu_buf *record,
                  bool replace, struct slu_err *err)
{
    struct slu_buf was = SLU_BUF_INIT;
    int rc = open_paths(o, dir, f, err);

    o->keep = true; /* until it is ours */
    if (!rc)
        rc = enter(o, "lock", 0, err);
    if (!rc)
        rc = not_ready(o, err);
    if (!rc)
        rc = slu_set_check(dir, f, replace, err);
    if (!rc) /* of parts, for which slu_set_check has an own line */
        rc = slu_set_no_parts(o->at, true, err);
    if (!rc)
        rc = read_record(o->at, "journal", &was, err);
    if ((!rc && replace && !same(&was, record)) ||
        (rc == SLU_EOF && slu_exists_in(o->at, "mark")))
        rc = slu_set_remove_tree(o->at, "lock", err);
    if (rc == SLU_EOF || (!rc && !slu_exists_in(o->at, "journal"))) {
        o->keep = false;
        rc = put_record(o, "journal", record, err);
    } else if (!rc) {
        remove_old(o->at);
    }
    slu_buf_release(&was);
    return rc;
}

int slu_set_check_mark(const char *dir, const struct slu_buf *record,
                       struct slu_err *err)
{
    struct slu_buf mark = SLU_BUF_INIT;
    char what[512];
    int rc = read_record(dir, SLU_SET_PARTIAL "/mark", &mark, err);

    if (!rc && slu_shards_head_differs(&mark, record, true, what, sizeof what))
        rc = slu_advise(err, SLU_ADVISE_REPLACE_SET,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: the set that is written here in parts %s; name "
                                 "another folder",
                                 dir, what));
    else if (rc == SLU_EOF && slu_shard_dir_not_of_before(dir, err))
        rc = SLU_E_MISMATCH;
    else if (rc == SLU_EOF && !slu_exists_in(dir, "report.json"))
        rc = slu_fail(
            err, SLU_E_MISMATCH,
            "%s: holds no parts of this shuffle; write them first, to the same folder",
            dir);
    slu_buf_release(&mark);
    return rc;
}

/* SLU_EOF: there is no mark, or one of another record that may be replaced. */
static int has_mark(const struct slu_set_out *o, const struct slu_buf *record,
                    bool replace, struct slu_err *err)
{
    struct slu_buf was = SLU_BUF_INIT;
    int rc = read_record(o->at, "mark", &was, err);

    if (!rc && !same(&was, record))
        rc = replace ? SLU_EOF : slu_set_check_mark(o->dir, record, err);
    slu_buf_release(&was);
    return rc;
}

/* Makes the mark under the lock. */
static int make_mark(const struct slu_set_out *o, const struct slu_buf *record,
                     bool replace, struct slu_err *err)
{
    int rc = not_ready(o, err);

    if (!rc)
        rc = slu_set_check(o->dir, o->format, replace, err);
    if (!rc && slu_exists_in(o->at, "journal") && !replace)
        rc = slu_advise(err, SLU_ADVISE_REPLACE_SET,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: holds the beginning of another shuffle's set; "
                                 "name another folder",
                                 o->dir));
    if (!rc)
        rc = slu_set_no_parts(o->at, true, err);
    if (!rc)
        rc = slu_set_remove_tree(o->at, "lock", err);
    return rc ? rc : put_record(o, "mark", record, err);
}

int slu_set_begin_part(struct slu_set_out *o, const char *dir,
                       const struct slu_shard_format *f, const struct slu_buf *record,
                       bool replace, struct slu_err *err)
{
    struct slu_buf was = SLU_BUF_INIT;
    int rc = open_paths(o, dir, f, err);

    if (!rc)
        rc = slu_set_recover(dir, &was, err);
    slu_buf_release(&was);
    if (!rc)
        rc = has_mark(o, record, replace, err);
    if (rc != SLU_EOF)
        return rc;
    rc = slu_set_check(dir, f, replace, err); /* before anything is made */
    if (!rc)
        rc = enter(o, "lock", LOOKS, err);
    if (!rc) /* another part may have made it */
        rc = has_mark(o, record, replace, err);
    if (rc == SLU_EOF)
        rc = make_mark(o, record, replace, err);
    leave(o);
    return rc;
}

int slu_set_lock_part(struct slu_set_out *o, uint64_t index, uint64_t of,
                      struct slu_err *err)
{
    char name[64];
    struct slu_err why = SLU_ERR_INIT;

    snprintf(name, sizeof name, "lock.%llu-of-%llu", (unsigned long long)index,
             (unsigned long long)of);
    int rc = slu_set_path(&o->lock, o->at, name, err);
    if (!rc)
        rc = slu_set_lock(o->lock, 0, true, &why);
    if (!rc)
        return SLU_OK;
    free(o->lock);
    o->lock = NULL;
    return rc == SLU_EOF
               ? slu_fail(err, SLU_E_MISMATCH,
                          "%s: another shuffle has written here in the "
                          "meantime",
                          o->dir)
               : slu_fail(err, rc,
                          "part %llu/%llu is being written by another "
                          "process: %s",
                          (unsigned long long)index, (unsigned long long)of, why.msg);
}

int slu_set_begin_join(struct slu_set_out *o, const char *dir,
                       const struct slu_shard_format *f, const struct slu_buf *record,
                       struct slu_err *err)
{
    struct slu_buf was = SLU_BUF_INIT;
    char what[512];
    int rc = open_paths(o, dir, f, err);

    if (!rc)
        rc = slu_set_recover(dir, &was, err);
    if (!rc && was.len &&
        slu_shards_head_differs(&was, record, false, what, sizeof what))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: the set that a stopped run had written here, which is "
                      "published now, %s; name another folder",
                      dir, what);
    slu_buf_release(&was);
    if (!rc)
        rc = slu_set_check_mark(dir, record, err);
    if (rc)
        return rc;
    rc = enter(o, "lock", UINT32_MAX - LOOKS * 4, err);
    if (!rc) /* another join may have published in the meantime */
        rc = slu_set_check_mark(dir, record, err);
    if (rc == SLU_EOF) {
        leave(o);
        (void)rmdir(o->at);
    }
    return rc ? rc : slu_set_no_parts(o->at, false, err);
}

int slu_set_reopen(struct slu_set_out *o, const struct slu_buf *record,
                   struct slu_err *err)
{
    int rc = enter(o, "lock", LOOKS, err);

    o->again = true;
    return rc ? rc : put_record(o, "mark", record, err);
}

/* ---- ready ---- */

/* Whether it is the record of .partial, or a lock there. */
static bool is_own(const FTSENT *e)
{
    return e->fts_level == 1 &&
           (!strcmp(e->fts_name, "journal") || !strcmp(e->fts_name, "mark") ||
            !strncmp(e->fts_name, "lock", 4));
}

/* Removes what the list lacks, and syncs the folders that stay. */
static int tidy(const struct slu_set_out *o, const struct slu_filelist *files,
                struct slu_err *err)
{
    char *const top[] = {o->at, NULL};
    FTS *t = fts_open(top, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *e;
    int rc = t ? SLU_OK : slu_fail_errno(err, "%s: cannot be opened", o->at);

    while (t && !rc && (e = fts_read(t))) {
        const char *name = e->fts_path + strlen(o->at) + 1;
        if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR) {
            errno = e->fts_errno;
            rc = slu_fail_errno(err, "%s: cannot be opened", e->fts_path);
        } else if (e->fts_info == FTS_DP) {
            if (!e->fts_level || rmdir(e->fts_path)) /* where something is left */
                rc = slu_sync_dir(e->fts_path, err);
        } else if (e->fts_info != FTS_D && !is_own(e) &&
                   !slu_filelist_find(files, name) && unlink(e->fts_path)) {
            rc = slu_fail_errno(err, "%s: cannot be removed", e->fts_path);
        }
    }
    if (t)
        fts_close(t);
    return rc;
}

static int put_name(struct slu_buf *t, const char *key, const char *name,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(t, err, "{\"%s\":", key);

    return rc ? rc : slu_json_put_string(t, name, strlen(name), err);
}

int slu_set_ready(const struct slu_set_out *o, struct slu_filelist *files,
                  struct slu_err *err)
{
    struct slu_filelist old = SLU_FILELIST_INIT;
    struct slu_buf t = SLU_BUF_INIT;
    char *path = NULL;

    slu_filelist_settle(files);
    int rc = tidy(o, files, err);
    if (!rc)
        rc = slu_shard_dir_old(o->dir, o->format, o->again ? o->at : NULL, files, &old,
                               err);
    if (!rc)
        rc = slu_set_path(&path, o->at, "ready", err);
    for (size_t i = 0; i < old.n && !rc; i++) {
        rc = put_name(&t, "old", old.file[i].name, err);
        if (!rc)
            rc = slu_buf_printf(&t, err, "}\n");
    }
    for (size_t i = 0; i < files->n && !rc; i++) {
        rc = put_name(&t, "file", files->file[i].name, err);
        if (!rc)
            rc = slu_buf_printf(&t, err, ",\"bytes\":%llu,\"xxh3_64\":\"%016llx\"}\n",
                                (unsigned long long)files->file[i].digest.n_byte,
                                (unsigned long long)files->file[i].digest.xxh3);
    }
    if (!rc)
        rc = slu_seal_put(&t, SLU_FILELIST_SEAL, err);
    if (!rc)
        rc = slu_out_whole(path, t.data, t.len, err);
    free(path);
    slu_filelist_release(&old);
    slu_buf_release(&t);
    return rc;
}

/* ---- the end ---- */

int slu_set_publish(struct slu_set_out *o, struct slu_err *err)
{
    char *path = NULL, *lock = o->lock;
    int rc = slu_set_move_all(o->dir, o->at, err);

    if (rc)
        return rc;
    /* First: what is in old then needs no more to come back. The set is there, whatever
     * cannot be removed, such as .nfs files of readers. */
    rc = slu_set_path(&path, o->at, "ready", err);
    if (!rc && unlink(path) && errno != ENOENT)
        rc = slu_fail_errno(err, "%s: cannot be removed", path);
    free(path);
    remove_old(o->at);
    if (!rc && !slu_exists_in(o->at, "old"))
        (void)!slu_set_remove_tree(o->at, strrchr(lock, '/') + 1, NULL);
    leave(o);
    (void)rmdir(o->at);
    close_paths(o);
    return rc;
}

void slu_set_abandon(struct slu_set_out *o, bool keep)
{
    if (o->at && o->lock && !keep && !o->keep) {
        (void)!slu_set_remove_tree(o->at, strrchr(o->lock, '/') + 1, NULL);
    }
    leave(o);
    if (o->at)
        (void)rmdir(o->at); /* where nothing is left */
    if (o->made_dir)
        (void)rmdir(o->dir);
    close_paths(o);
}
