/* shard_dir_parts.c - the folder of a shard set that several processes write at once:
 * which set it is for, and which process may write. */
#include "formats/shards/shard_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "formats/shards/shard_private.h"
#include "lib/base/io.h"

enum { MAX_MARK = 1 << 16 };

static int open_folder(const char *dir, int *fd, struct slu_err *err)
{
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd >= 0 ? SLU_OK : slu_fail_errno(err, "%s: cannot be opened", dir);
}

/* Locks fd; if the file system has no locks, continues without. */
static int take(int fd, int how, const char *dir, struct slu_err *err)
{
    int rc;

    do
        rc = flock(fd, how);
    while (rc && errno == EINTR);
    if (!rc || errno != EWOULDBLOCK)
        return SLU_OK;
    return slu_fail(
        err, SLU_E_MISMATCH,
        how & LOCK_SH
            ? "%s: another shuffle is writing here; wait for it, or name another folder"
            : "%s: other processes are writing here; wait for them",
        dir);
}

/* Locks fd for this process alone. If another join holds the lock, waits for it. If the
 * lock is shared, parts are being written, or another join is inside this loop and
 * shares the lock for a moment; so the lock is tried LOOKS times before this fails. */
static int take_alone(int fd, const char *dir, struct slu_err *err)
{
    enum { LOOKS = 20, PAUSE_US = 10000 };

    for (int i = 1;; i++) {
        int rc = take(fd, LOCK_EX | LOCK_NB, dir, i < LOOKS ? NULL : err);
        if (!rc || i == LOOKS)
            return rc;
        if (take(fd, LOCK_SH | LOCK_NB, dir, NULL))
            return take(fd, LOCK_EX, dir, err);
        (void)flock(fd, LOCK_UN);
        usleep(PAUSE_US);
    }
}

/* Whether dir has only files without final names, which killed processes leave. */
static int is_empty(const char *dir, bool *empty, struct slu_err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    if (!d)
        return slu_fail_errno(err, "%s: cannot be opened", dir);
    for (*empty = true; *empty && (e = readdir(d));)
        *empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                 slu_shard_dir_unfinished(e->d_name);
    closedir(d);
    return SLU_OK;
}

/* Appends the folder's mark, if it has one. */
static int read_mark(const char *dir, struct slu_buf *mark, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/" SLU_SHARD_PARTS, dir);

    if (!rc && !access((const char *)path.data, F_OK))
        rc = slu_read_regular(mark, (const char *)path.data, MAX_MARK, err);
    slu_buf_release(&path);
    return rc;
}

static int write_mark(const char *dir, const struct slu_buf *head, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/" SLU_SHARD_PARTS, dir);

    if (!rc)
        rc = slu_out_whole((const char *)path.data, head->data, head->len, err);
    slu_buf_release(&path);
    return rc;
}

/* SLU_OK: the mark is head; SLU_EOF: there is no mark. */
static int compare(const char *dir, const struct slu_buf *head, struct slu_err *err)
{
    struct slu_buf mark = SLU_BUF_INIT;
    int rc = read_mark(dir, &mark, err);

    if (!rc && mark.len == 0)
        rc = SLU_EOF;
    else if (!rc && (mark.len != head->len || memcmp(mark.data, head->data, head->len)))
        rc = slu_advise(
            err, SLU_ADVISE_REPLACE_SET,
            slu_fail(
                err, SLU_E_MISMATCH,
                "%s: holds the parts of a shuffle of other %s; name another folder",
                dir, slu_shards_head_differs(head, &mark)));
    slu_buf_release(&mark);
    return rc;
}

/* With the work folder locked: prepares dir for the first part. */
static int make_ready(const char *dir, const struct slu_shard_format *f,
                      const struct slu_buf *head, bool replace, int lock,
                      struct slu_err *err)
{
    bool empty = false;
    int rc = compare(dir, head, replace ? NULL : err);

    if (!rc || (rc < 0 && !replace))
        return rc;
    rc = is_empty(dir, &empty, err);
    if (!rc && !empty && !replace)
        rc = slu_advise(err, SLU_ADVISE_REPLACE_SET,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: the folder is not empty; name another folder",
                                 dir));
    if (!rc && !empty) {
        rc = take(lock, LOCK_EX | LOCK_NB, dir, err);
        if (!rc)
            rc = slu_shard_dir_make_room(dir, f, NULL, NULL, err);
        if (!rc)
            rc = take(lock, LOCK_SH | LOCK_NB, dir, err);
    }
    return rc ? rc : write_mark(dir, head, err);
}

/* Locks WORK/shards.lock, because network file systems only lock files that are open
 * for writing, not folders. Waits: the lock is held only briefly. */
static int lock_work(const char *work, int *fd, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/shards.lock", work);

    if (!rc) {
        *fd = open((const char *)path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*fd < 0)
            rc = slu_fail_errno(err, "%s: cannot be opened", (const char *)path.data);
    }
    if (!rc)
        rc = take(*fd, LOCK_EX, work, err);
    slu_buf_release(&path);
    return rc;
}

int slu_shard_dir_begin_part(const char *dir, const struct slu_shard_format *f,
                             const char *work, const struct slu_buf *head, bool replace,
                             int *lock, struct slu_err *err)
{
    int here = -1;
    int rc = slu_mkdirs(dir, err);

    *lock = -1;
    if (!rc)
        rc = lock_work(work, &here, err);
    if (!rc)
        rc = open_folder(dir, lock, err);
    if (!rc)
        rc = take(*lock, LOCK_SH | LOCK_NB, dir, err);
    if (!rc)
        rc = make_ready(dir, f, head, replace, *lock, err);
    if (here >= 0)
        close(here);
    return rc;
}

int slu_shard_dir_check_part(const char *dir, const struct slu_buf *head,
                             struct slu_err *err)
{
    int rc = compare(dir, head, err);

    if (rc != SLU_EOF || slu_shard_dir_complete(dir))
        return rc;
    return slu_fail(
        err, SLU_E_MISMATCH,
        "%s: holds no parts of this shuffle; write them first, to the same folder",
        dir);
}

int slu_shard_dir_begin_join(const char *dir, const struct slu_buf *head, int *lock,
                             struct slu_err *err)
{
    int rc = open_folder(dir, lock, err);

    if (!rc)
        rc = take_alone(*lock, dir, err);
    return rc ? rc : slu_shard_dir_check_part(dir, head, err);
}

int slu_shard_dir_reopen(const char *dir, const struct slu_buf *head,
                         struct slu_err *err)
{
    return write_mark(dir, head, err);
}

/* Removes the incomplete files of this folder. */
static int clean(const char *path, struct slu_err *err)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    int rc = SLU_OK;

    if (!d)
        return slu_fail_errno(err, "%s: cannot be opened", path);
    while (!rc && (e = readdir(d)))
        if (slu_shard_dir_unfinished(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) &&
            errno != ENOENT)
            rc = slu_fail_errno(err, "%s/%s: cannot be removed", path, e->d_name);
    closedir(d);
    return rc;
}

int slu_shard_dir_tidy(const char *dir, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    const struct dirent *e;
    int rc = slu_buf_printf(&path, err, "%s/segments", dir);

    if (!rc)
        rc = slu_mkdirs((const char *)path.data, err);
    if (!rc)
        rc = clean(dir, err);
    DIR *d = rc ? NULL : opendir(dir);
    if (!rc && !d)
        rc = slu_fail_errno(err, "%s: cannot be opened", dir);
    while (!rc && (e = readdir(d))) {
        if (!slu_shard_dir_of_bucket(e->d_name) && strcmp(e->d_name, "segments"))
            continue;
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", dir, e->d_name);
        if (!rc)
            rc = clean((const char *)path.data, err);
    }
    if (d)
        closedir(d);
    slu_buf_release(&path);
    return rc;
}
