#include "formats/shard_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "formats/shard.h"
#include "lib/buf.h"
#include "lib/io.h"

void slu_shard_bucket_name(uint64_t length, char out[32])
{
    if (length == 0 || (length & (length - 1)))
        snprintf(out, 32, "L_%llu", (unsigned long long)length);
    else
        snprintf(out, 32, "D_%d", 63 - __builtin_clzll(length));
}

static bool dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Only digits behind the first two characters. */
static bool bucket_folder(const char *name)
{
    return (!strncmp(name, "D_", 2) || !strncmp(name, "L_", 2)) && name[2] &&
           strspn(name + 2, "0123456789") == strlen(name + 2);
}

/* Sets *empty, and *left_over where dir has only what a shuffle makes, segments/ first,
 * and no report: one that was stopped. Shards of others have no segments/, and who
 * still writes holds the lock. */
static int look(const char *dir, bool *empty, bool *left_over, struct slu_err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool segments = false, other = false;

    *empty = true;
    *left_over = false;
    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    while ((e = readdir(d))) {
        if (dot(e->d_name))
            continue;
        *empty = false;
        if (!strcmp(e->d_name, "segments"))
            segments = true;
        else if (!bucket_folder(e->d_name) && strcmp(e->d_name, "manifest.jsonl"))
            other = true;
    }
    *left_over =
        segments && !other && !flock(dirfd(d), LOCK_EX | LOCK_NB); /* nobody is at it */
    closedir(d);
    return SLU_OK;
}

int slu_shard_dir_check(const char *dir, struct slu_err *err)
{
    bool empty, left_over;
    int rc = look(dir, &empty, &left_over, err);

    if (rc || empty || left_over)
        return rc;
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s: is not empty; use --force to replace the shard set in it",
                    dir);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);

    return n >= k && !strcmp(name + n - k, suffix);
}

/* What lib/io.h leaves where files need a name from the start and kill -9 came. */
static bool unfinished(const char *name)
{
    return !strncmp(name, ".sluice-", 8) && ends_with(name, ".tmp");
}

static bool ours_in_bucket(const char *name)
{
    const struct slu_shard_format *f;

    for (unsigned i = 0; (f = slu_shard_format_at(i)); i++)
        if (f->owns(name))
            return true;
    return unfinished(name);
}

static bool ours_in_segments(const char *name)
{
    return ends_with(name, ".tks") || unfinished(name);
}

static int note(int rc, struct slu_err *err, const char *dir, const char *name)
{
    if (errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST)
        return rc;
    return rc ? rc : slu_fail_errno(err, "%s/%s: cannot be removed", dir, name);
}

/* Removes files of folder `name` in dir that `ours` accepts, then the folder if it is
 * empty. */
static int clear_folder(int dir_fd, const char *dir, const char *name,
                        bool (*ours)(const char *), int rc, struct slu_err *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        rc = note(rc, err, dir, name);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while ((e = readdir(d)))
        if (!dot(e->d_name) && ours(e->d_name) && unlinkat(fd, e->d_name, 0))
            rc = note(rc, err, dir, e->d_name);
    closedir(d);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR))
        rc = note(rc, err, dir, name);
    return rc;
}

int slu_shard_dir_remove(const char *dir, bool itself, struct slu_err *err)
{
    static const char *const top[] = {"report.json", "manifest.jsonl"};
    DIR *d = opendir(dir);
    const struct dirent *e;
    int rc = SLU_OK;

    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    int fd = dirfd(d);
    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (unlinkat(fd, top[i], 0))
            rc = note(rc, err, dir, top[i]);
    while ((e = readdir(d)))
        if (bucket_folder(e->d_name))
            rc = clear_folder(fd, dir, e->d_name, ours_in_bucket, rc, err);
    rc = clear_folder(fd, dir, "segments", ours_in_segments, rc, err);
    closedir(d);
    if (itself && rmdir(dir))
        rc = note(rc, err, dir, "");
    return rc;
}

int slu_shard_dir_prepare(const char *dir, bool replace, bool *made, int *lock,
                          struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    bool empty = true, left_over = false;
    int rc = replace ? SLU_OK : slu_shard_dir_check(dir, err);

    if (rc == SLU_OK && !replace)
        rc = look(dir, &empty, &left_over, err);
    if (rc == SLU_OK && (replace || left_over))
        rc = slu_shard_dir_remove(dir, false, err);
    *made = access(dir, F_OK) && errno == ENOENT;
    if (rc == SLU_OK)
        rc = slu_buf_printf(&path, err, "%s/segments", dir);
    if (rc == SLU_OK)
        rc = slu_mkdirs((const char *)path.data, err);
    if (rc == SLU_OK) {
        *lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (*lock >= 0) /* where there are no locks, leavings are never taken over */
            (void)!flock(*lock, LOCK_EX | LOCK_NB);
    }
    slu_buf_release(&path);
    return rc;
}

int slu_shard_dir_drop_bucket(const char *dir, const char *name, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s", dir, name);

    if (rc == SLU_OK && rmdir((const char *)path.data))
        rc = slu_fail_errno(err, "%s/%s: cannot be removed", dir, name);
    slu_buf_release(&path);
    return rc;
}
