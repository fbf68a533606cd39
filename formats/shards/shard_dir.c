#include "formats/shards/shard_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "formats/shards/shard_private.h"
#include "lib/base/buf.h"
#include "lib/base/io.h"

void slu_shard_bucket_name(uint64_t length, char out[32])
{
    if (length == 0)
        snprintf(out, 32, "documents");
    else if (length & (length - 1))
        snprintf(out, 32, "L_%llu", (unsigned long long)length);
    else
        snprintf(out, 32, "D_%d", 63 - __builtin_clzll(length));
}

static bool dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A name that lib/base/io.h uses where files need a name from the start; kill -9 leaves
 * it. */
bool slu_shard_dir_unfinished(const char *name)
{
    size_t n = strlen(name);

    return n > 12 && !strncmp(name, ".sluice-", 8) && !strcmp(name + n - 4, ".tmp");
}

/* Digits only, after the first two characters. */
bool slu_shard_dir_of_bucket(const char *name)
{
    return !strcmp(name, "documents") ||
           ((!strncmp(name, "D_", 2) || !strncmp(name, "L_", 2)) && name[2] &&
            strspn(name + 2, "0123456789") == strlen(name + 2));
}

bool slu_shard_dir_at_top(const char *name)
{
    static const char *const top[] = {"report.json",     "manifest.jsonl",
                                      "README.md",       "lengths.svg",
                                      SLU_SHARD_JOURNAL, SLU_SHARD_PARTS};

    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (!strcmp(top[i], name))
            return true;
    return false;
}

/* A file beside the buckets that a format owns. */
static bool format_file(const char *name)
{
    const struct slu_shard_format *f;

    for (unsigned i = 0; (f = slu_shard_format_at(i)); i++)
        if (f->owns_in_set && !f->set_folder && f->owns_in_set(name))
            return true;
    return false;
}

/* A folder beside the buckets that a format owns. */
static bool set_folder(const char *name)
{
    const struct slu_shard_format *f;

    for (unsigned i = 0; (f = slu_shard_format_at(i)); i++)
        if (f->set_folder && !strcmp(f->set_folder, name))
            return true;
    return false;
}

bool slu_shard_dir_has_name(const char *name)
{
    return !strcmp(name, "segments") || slu_shard_dir_of_bucket(name) ||
           slu_shard_dir_at_top(name) || slu_shard_dir_unfinished(name) ||
           set_folder(name) || format_file(name);
}

/* Sets *empty; and *left_over if dir has only files that a shuffle makes, and either no
 * report but segments/, which is made first, or a journal, which is removed last: a
 * stopped shuffle has left them. Shards of others have no segments/, and a process that
 * is still writing holds the lock. *mixed: dir has a journal, and other names too. */
static int look(const char *dir, bool *empty, bool *left_over, bool *mixed,
                struct slu_err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool segments = false, other = false, report = false, journal = false;

    *empty = true;
    *left_over = *mixed = false;
    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    while ((e = readdir(d))) {
        if (dot(e->d_name))
            continue;
        *empty = false;
        if (!strcmp(e->d_name, "segments"))
            segments = true;
        else if (!slu_shard_dir_has_name(e->d_name))
            other = true;
        report = report || !strcmp(e->d_name, "report.json");
        journal = journal || !strcmp(e->d_name, SLU_SHARD_JOURNAL);
    }
    *mixed = journal && other;
    *left_over = segments && !other && (journal || !report) &&
                 !flock(dirfd(d), LOCK_EX | LOCK_NB); /* no process writes here */
    closedir(d);
    return SLU_OK;
}

static bool exists_in(const char *dir, const char *name)
{
    struct slu_buf path = SLU_BUF_INIT;
    bool is = !slu_buf_printf(&path, NULL, "%s/%s", dir, name) &&
              !access((const char *)path.data, F_OK);

    slu_buf_release(&path);
    return is;
}

int slu_shard_dir_check(const char *dir, struct slu_err *err)
{
    bool empty, left_over, mixed;
    int rc = look(dir, &empty, &left_over, &mixed, err);

    if (rc || empty)
        return rc;
    if (exists_in(dir, SLU_SHARD_PARTS))
        return slu_advise(err, SLU_ADVISE_REPLACE_SET,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "%s: the shuffle in parts that writes here has not "
                                   "finished; finish it, name another folder",
                                   dir));
    if (left_over)
        return SLU_OK;
    if (mixed)
        return slu_advise(err, SLU_ADVISE_REPLACE_SET,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "%s: a set was begun here, and there are files that "
                                   "are not its own; move them away to go on with it",
                                   dir));
    return slu_advise(err, SLU_ADVISE_REPLACE_SET,
                      slu_fail(err, SLU_E_MISMATCH,
                               "%s: the folder is not empty; name another folder",
                               dir));
}

int slu_shard_dir_not_batch(const char *dir, struct slu_err *err)
{
    const bool stream = exists_in(dir, "stream");
    const char *made = stream ? "stream is in the files" : "set is";
    const char *where = stream ? "stream/*.tks" : "shards";
    return exists_in(dir, "state/made-by")
               ? slu_fail(err, SLU_E_FORMAT,
                          "%s: is a folder of sluice-batch; its %s %s/%s, and "
                          "'sluice-batch status %s' tells how far it is",
                          dir, made, dir, where, dir)
               : SLU_OK;
}

bool slu_shard_dir_begun(const char *dir)
{
    return exists_in(dir, "segments") || exists_in(dir, "manifest.jsonl") ||
           exists_in(dir, SLU_SHARD_JOURNAL) || exists_in(dir, SLU_SHARD_PARTS);
}

bool slu_shard_dir_complete(const char *dir)
{
    return exists_in(dir, "report.json") && !exists_in(dir, SLU_SHARD_JOURNAL) &&
           !exists_in(dir, SLU_SHARD_PARTS);
}

/* Takes no memory: the set is complete. */
static int remove_top(const char *dir, const char *name, struct slu_err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return unlink(path) && errno != ENOENT
               ? slu_fail_errno(err, "%s: cannot be removed", path)
               : SLU_OK;
}

int slu_shard_dir_remove_journal(const char *dir, struct slu_err *err)
{
    int rc = remove_top(dir, SLU_SHARD_JOURNAL, err);

    return rc ? rc : remove_top(dir, SLU_SHARD_PARTS, err);
}

/* Opens dir as *lock and locks it, unless this is already done or dir does not exist.
 * An error if another shuffle has the lock. If the file system has no locks, continues
 * without. */
static int take_lock(const char *dir, int *lock, struct slu_err *err)
{
    if (*lock < 0)
        *lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || !flock(*lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        return SLU_OK;
    return slu_fail(
        err, SLU_E_MISMATCH,
        "%s: another shuffle is writing here; wait for it, or name another folder",
        dir);
}

int slu_shard_dir_prepare(const char *dir, const struct slu_shard_format *f,
                          bool replace, slu_shard_dir_keeps *keeps, const void *ctx,
                          bool *made, int *lock, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    bool empty = true, left_over = false, mixed;
    int rc = replace ? SLU_OK : slu_shard_dir_check(dir, err);

    if (!rc && !replace)
        rc = look(dir, &empty, &left_over, &mixed, err);
    *lock = -1;
    if (!rc)
        rc = take_lock(dir, lock, err);
    if (!rc)
        rc = replace || left_over ? slu_shard_dir_make_room(dir, f, keeps, ctx, err)
                                  : slu_shard_dir_check_names(dir, f, keeps, ctx, err);
    *made = access(dir, F_OK) && errno == ENOENT;
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/segments", dir);
    if (!rc)
        rc = slu_mkdirs((const char *)path.data, err);
    if (!rc)
        rc = take_lock(dir, lock, err);
    slu_buf_release(&path);
    return rc;
}

int slu_shard_dir_drop_bucket(const char *dir, const char *name, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s", dir, name);

    if (!rc && rmdir((const char *)path.data))
        rc = slu_fail_errno(err, "%s/%s: cannot be removed", dir, name);
    slu_buf_release(&path);
    return rc;
}
