#include "io.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool slu_is_address(const char *name)
{
    size_t n = 0;

    while (isalnum((unsigned char)name[n]) || (n && name[n] && strchr("+-.", name[n])))
        n++;
    return n > 1 && isalpha((unsigned char)*name) && !strncmp(name + n, "://", 3);
}

/* Waits for bytes at fd, its end or an error; SLU_E_IO if quit_fd becomes readable. */
static int await(int fd, int quit_fd, struct slu_err *err)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                          {.fd = quit_fd, .events = POLLIN}};
    int n;
    do
        n = poll(p, 2, -1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return slu_fail_errno(err, "cannot be waited for");
    return p[1].revents ? slu_fail(err, SLU_E_IO, "stopped") : SLU_OK;
}

int slu_read_full(int fd, void *buf, size_t n, size_t *got, struct slu_err *err)
{
    return slu_read_or_quit(fd, -1, buf, n, got, err);
}

int slu_read_or_quit(int fd, int quit_fd, void *buf, size_t n, size_t *got,
                     struct slu_err *err)
{
    size_t done = 0;
    while (done < n) {
        if (quit_fd >= 0) {
            int rc = await(fd, quit_fd, err);
            if (rc)
                return rc;
        }
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

int slu_open_regular(int *fd, const char *path, uint64_t *n_byte, struct slu_err *err)
{
    struct stat st;
    int rc = SLU_OK;
    /* O_NONBLOCK: a FIFO without a writer must not wait. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &st))
        rc = slu_fail_errno(err, "cannot be opened");
    else if (!S_ISREG(st.st_mode))
        rc = slu_fail(err, SLU_E_IO, "is not a regular file");
    if (!rc && n_byte)
        *n_byte = (uint64_t)st.st_size;
    if (rc && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

int slu_check_regular(const char *path, struct slu_err *err)
{
    int fd, rc = slu_open_regular(&fd, path, NULL, err);
    if (rc)
        return slu_err_at(err, "%s", path);
    close(fd);
    return SLU_OK;
}

/* Appends all bytes of fd, and closes it. */
static int read_rest(struct slu_buf *buf, int fd, const char *path, uint64_t max_byte,
                     struct slu_err *err)
{
    size_t begin = buf->len, got = 1;
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

int slu_read_whole(struct slu_buf *buf, const char *path, uint64_t max_byte,
                   struct slu_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? slu_fail_errno(err, "%s", path)
                  : read_rest(buf, fd, path, max_byte, err);
}

int slu_read_regular(struct slu_buf *buf, const char *path, uint64_t max_byte,
                     struct slu_err *err)
{
    int fd, rc = slu_open_regular(&fd, path, NULL, err);
    return rc ? slu_err_at(err, "%s", path) : read_rest(buf, fd, path, max_byte, err);
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
        return SLU_OK; /* writable but not readable: the rename itself has happened */
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
        return slu_fail_errno(err, "%s: a temporary file cannot be made in this folder",
                              dir);
#endif
    char p[PATH_MAX];
    snprintf(p, sizeof p, "%s/sluice-XXXXXX", dir);
    f = mkostemp(p, O_CLOEXEC);
    if (f < 0)
        return slu_fail_errno(err, "%s: a temporary file cannot be made in this folder",
                              dir);
    unlink(p);
    *fd = f;
    return SLU_OK;
}
