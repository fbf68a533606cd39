#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int slu_read_full(int fd, void *buf, size_t n, size_t *got, struct slu_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = read(fd, (char *)buf + done, n - done);
        if (r == 0)
            break;
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return slu_fail_errno(err, "cannot be read");
        }
        done += (size_t)r;
    }
    *got = done;
    return SLU_OK;
}

int slu_read_whole(struct slu_buf *buf, const char *path, uint64_t max_byte,
                   struct slu_err *err)
{
    size_t begin = buf->len, got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return slu_fail_errno(err, "%s", path);
    int rc = SLU_OK;
    while (!rc && got) {
        rc = slu_buf_reserve(buf, 1 << 18, err);
        if (!rc)
            rc = slu_read_full(fd, buf->data + buf->len, 1 << 18, &got, err);
        if (!rc)
            buf->len += got;
        if (rc)
            slu_err_at(err, "%s", path);
        else if (buf->len - begin > max_byte)
            rc = slu_fail(err, SLU_E_LIMIT, "%s: larger than %llu bytes", path,
                          (unsigned long long)max_byte);
    }
    close(fd);
    return rc;
}

int slu_pread_full(int fd, void *buf, size_t n, uint64_t off_byte, struct slu_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = pread(fd, (char *)buf + done, n - done, (off_t)(off_byte + done));
        if (r == 0)
            return slu_fail_at(err, SLU_E_TRUNCATED, off_byte + done, "ends early");
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return slu_fail_errno(err, "cannot be read");
        }
        done += (size_t)r;
    }
    return SLU_OK;
}

int slu_write_full(int fd, const void *buf, size_t n, struct slu_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = write(fd, (const char *)buf + done, n - done);
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return slu_fail_errno(err, "cannot be written");
        }
        done += (size_t)r;
    }
    return SLU_OK;
}

struct slu_out {
    int fd;
    bool direct; /* written where it is: standard output, FIFO, terminal, /dev/null */
    char *path;  /* final name; NULL for standard output */
    char *temp;  /* temporary name; NULL where the file has none yet (O_TMPFILE) */
    uint64_t n_byte;
};

/* The folder of path, in out (PATH_MAX bytes). */
static void folder_of(const char *path, char *out)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(out, PATH_MAX, ".");
    else if (slash == path)
        snprintf(out, PATH_MAX, "/");
    else
        snprintf(out, PATH_MAX, "%.*s", (int)(slash - path), path);
}

static int temp_name(struct slu_out *o, struct slu_err *err)
{
    const char *slash = strrchr(o->path, '/');
    int n_dir = slash ? (int)(slash - o->path) + 1 : 0;
    if (asprintf(&o->temp, "%.*s.%s.%ld.tmp", n_dir, o->path, o->path + n_dir,
                 (long)getpid()) < 0) {
        o->temp = NULL;
        return slu_fail_nomem(err, strlen(o->path));
    }
    return SLU_OK;
}

static int open_file(struct slu_out *o, struct slu_err *err)
{
    struct stat st;
    if (stat(o->path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return slu_fail_errno(err, "%s: cannot be written", o->path);
    }
    if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        o->direct = true;
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (o->fd < 0)
            return slu_fail_errno(err, "%s: cannot be opened for writing", o->path);
        return SLU_OK;
    }
    char dir[PATH_MAX];
    folder_of(o->path, dir);
#ifdef O_TMPFILE
    /* Without /proc (a bare chroot) such a file could not be given its name. */
    if (!access("/proc/self/fd", X_OK))
        o->fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    else
        errno = EOPNOTSUPP;
#endif
    if (o->fd < 0) {
        if (errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == EROFS)
            return slu_fail_errno(err, "%s: cannot be created", o->path);
        int rc = temp_name(o, err);
        if (rc)
            return rc;
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (o->fd < 0)
            return slu_fail_errno(err, "%s: cannot be created", o->path);
    }
    return SLU_OK;
}

int slu_out_open(struct slu_out **out, const char *path, struct slu_err *err)
{
    struct slu_out *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    o->fd = -1;
    if (!path || !strcmp(path, "-")) {
        o->direct = true;
        o->fd = STDOUT_FILENO;
        *out = o;
        return SLU_OK;
    }
    int rc = SLU_OK;
    o->path = strdup(path);
    if (!o->path)
        rc = slu_fail_nomem(err, strlen(path));
    if (!rc)
        rc = open_file(o, err);
    if (rc)
        slu_out_abort(o);
    else
        *out = o;
    return rc;
}

int slu_out_write(struct slu_out *out, const void *p, size_t n, struct slu_err *err)
{
    int rc = slu_write_full(out->fd, p, n, err);
    if (rc)
        return slu_err_at(err, "%s", slu_out_name(out));
    out->n_byte += n;
    return SLU_OK;
}

uint64_t slu_out_tell(const struct slu_out *out)
{
    return out->n_byte;
}

const char *slu_out_name(const struct slu_out *out)
{
    return out->path ? out->path : "standard output";
}

bool slu_out_is_terminal(const struct slu_out *out)
{
    return isatty(out->fd);
}

/* Gives the nameless file its temporary name, so that it can be renamed onto the
 * target. */
static int link_temp(struct slu_out *o, struct slu_err *err)
{
    char proc[64];
    int rc = temp_name(o, err);
    if (rc)
        return rc;
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", o->fd);
    unlink(o->temp); /* a leftover of a killed process that had our number */
    if (linkat(AT_FDCWD, proc, AT_FDCWD, o->temp, AT_SYMLINK_FOLLOW)) {
        rc = slu_fail_errno(err, "%s: cannot be given its name", o->path);
        free(o->temp);
        o->temp = NULL;
    }
    return rc;
}

static int finish_file(struct slu_out *o, struct slu_err *err)
{
    char dir[PATH_MAX];
    if (fsync(o->fd) && errno != EINVAL && errno != EROFS)
        return slu_fail_errno(err, "%s: cannot be synced", o->path);
    int rc = o->temp ? SLU_OK : link_temp(o, err);
    if (rc)
        return rc;
    int fd = o->fd;
    o->fd = -1;
    if (close(fd))
        return slu_fail_errno(err, "%s: cannot be closed", o->path);
    if (rename(o->temp, o->path))
        return slu_fail_errno(err, "%s: cannot be renamed", o->path);
    free(o->temp);
    o->temp = NULL;
    folder_of(o->path, dir);
    return slu_sync_dir(dir, err);
}

int slu_out_close(struct slu_out *o, struct slu_err *err)
{
    int rc = SLU_OK;
    if (!o)
        return SLU_OK;
    if (!o->direct) {
        rc = finish_file(o, err);
    } else {
        int fd = o->fd;
        o->fd = -1;
        if (close(fd))
            rc = slu_fail_errno(err, "%s: cannot be closed", slu_out_name(o));
    }
    slu_out_abort(o);
    return rc;
}

void slu_out_abort(struct slu_out *o)
{
    if (!o)
        return;
    if (o->fd > STDERR_FILENO)
        close(o->fd);
    if (o->temp)
        unlink(o->temp);
    free(o->temp);
    free(o->path);
    free(o);
}

int slu_out_whole(const char *path, const void *p, size_t n, struct slu_err *err)
{
    struct slu_out *out;
    int rc = slu_out_open(&out, path, err);
    if (rc)
        return rc;
    rc = slu_out_write(out, p, n, err);
    if (!rc)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

int slu_mkdirs(const char *path, struct slu_err *err)
{
    char p[PATH_MAX];
    int n = snprintf(p, sizeof p, "%s", path);
    if (n < 0 || (size_t)n >= sizeof p)
        return slu_fail(err, SLU_E_IO, "%s: name too long", path);
    if (!n)
        return slu_fail(err, SLU_E_IO, "a folder's name is empty");
    for (char *s = p + 1;; s++) {
        if (*s != '/' && *s)
            continue;
        char c = *s;
        *s = 0;
        if (mkdir(p, 0777) && errno != EEXIST)
            return slu_fail_errno(err, "%s: folder cannot be made", p);
        *s = c;
        if (!c)
            break;
    }
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return slu_fail_errno(err, "%s", path);
    }
    return SLU_OK;
}

int slu_sync_dir(const char *path, struct slu_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return SLU_OK; /* may be written but not read: the rename itself has happened */
    if (fd < 0)
        return slu_fail_errno(err, "%s: folder cannot be opened", path);
    int rc = SLU_OK;
    if (fsync(fd) && errno != EINVAL && errno != EROFS && errno != EBADF)
        rc = slu_fail_errno(err, "%s: folder cannot be synced", path);
    close(fd);
    return rc;
}

int slu_tmpfile(int *fd, const char *dir, struct slu_err *err)
{
    int f = -1;
#ifdef O_TMPFILE
    f = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (f >= 0) {
        *fd = f;
        return SLU_OK;
    }
    if (errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == EROFS)
        return slu_fail_errno(
            err, "%s: no temporary file can be made there; use --tmpdir", dir);
#endif
    char p[PATH_MAX];
    snprintf(p, sizeof p, "%s/sluice-XXXXXX", dir);
    f = mkostemp(p, O_CLOEXEC);
    if (f < 0)
        return slu_fail_errno(
            err, "%s: no temporary file can be made there; use --tmpdir", dir);
    unlink(p);
    *fd = f;
    return SLU_OK;
}
