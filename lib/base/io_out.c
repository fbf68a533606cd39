/* io_out.c - output files: written under a temporary name, or none, and then renamed. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/xxh3.h"

struct slu_out {
    int fd;
    bool leave_folder;
    bool direct; /* written in place: standard output, FIFO, terminal, /dev/null */
    char *name;  /* as given, for messages; NULL for standard output */
    char *path;  /* the target of its links */
    char *temp;  /* temporary name; NULL: none yet (O_TMPFILE) */
    int slot;    /* of temp in temp_slot; -1: none */
    uint64_t n_byte;
    XXH3_state_t *hash; /* NULL: no digest is wanted */
    struct slu_digest *digest;
};

/* ---- temporary names ----
 *
 * A program that a signal stops removes them in its handler, which can only use global
 * variables. File systems without nameless files (NFS, some parallel ones) have a
 * temporary name as long as the file is written, others only while a file is replaced.
 * A name belongs to whoever takes it out of its slot: its output, or the handler; the
 * process then ends, and the output waits for that. */

enum { N_SLOT = 256 }; /* the names of further outputs are not removed */
static _Atomic(char *) temp_slot[N_SLOT];
static atomic_int temp_making;  /* threads that are making a name, signals blocked */
static atomic_bool temp_ending; /* a handler has begun: no more names are made */

/* Puts a name into a slot; returns the slot, or -1 if none is left. */
static int temp_remember(char *name)
{
    for (int i = 0; i < N_SLOT; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&temp_slot[i], &none, name))
            return i;
    }
    return -1;
}

/* Empties the slot of a name that was removed or renamed, before the name is freed. */
static void temp_forget(char *name, int slot)
{
    while (slot >= 0 && !atomic_compare_exchange_strong(&temp_slot[slot], &name, NULL))
        pause();
}

void slu_out_unlink_temps(void)
{
    const struct timespec ms = {0, 1000000};
    atomic_store(&temp_ending, true);
    for (int i = 0; i < 5000 && atomic_load(&temp_making); i++)
        nanosleep(&ms, NULL); /* but does not wait for a file system that hangs */
    for (int i = 0; i < N_SLOT; i++) {
        const char *name = atomic_exchange(&temp_slot[i], NULL);
        if (name)
            unlink(name);
    }
}

/* Writes the folder of path to out (PATH_MAX bytes). */
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

/* Makes a new name in the target's folder. Its length does not depend on the target's,
 * and processes of other hosts do not make the same one. NULL: out of memory. */
static char *temp_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    int n_dir = slash ? (int)(slash - path) + 1 : 0;
    uint64_t r;
    char *name;
    if (getrandom(&r, sizeof r, GRND_NONBLOCK) != sizeof r) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        r = ((uint64_t)t.tv_sec << 32 ^ (uint64_t)t.tv_nsec) * (uint64_t)getpid();
    }
    return asprintf(&name, "%.*s.sluice-%016llx.tmp", n_dir, path,
                    (unsigned long long)r) < 0
               ? NULL
               : name;
}

/* Gives the nameless file a name that no file has. False: errno says why. */
static bool name_file(const struct slu_out *o, const char *name)
{
    char proc[64];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", o->fd);
    return !linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Makes a file of that name, or gives the name to the nameless file. False: errno says
 * why. */
static bool make_temp(struct slu_out *o, char *name)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &was);
    atomic_fetch_add(&temp_making, 1);
    if (atomic_load(&temp_ending)) {
        atomic_fetch_sub(&temp_making, 1);
        for (;;)
            pause();
    }
    bool taken;
    if (o->fd < 0) {
        o->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        taken = o->fd >= 0;
    } else {
        taken = name_file(o, name);
    }
    int why = errno;
    if (taken)
        o->slot = temp_remember(name);
    atomic_fetch_sub(&temp_making, 1);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = why;
    return taken;
}

/* Gives the output its temporary name. -1: errno says why. */
static int take_temp(struct slu_out *o)
{
    for (int i = 0; i < 100; i++) {
        char *name = temp_name(o->path);
        if (!name) {
            errno = ENOMEM;
            return -1;
        }
        if (make_temp(o, name)) {
            o->temp = name;
            return 0;
        }
        int why = errno;
        free(name);
        errno = why;
        if (why != EEXIST)
            break;
    }
    return -1;
}

/* Returns N for /dev/fd/N and /proc/self/fd/N, else -1. */
static int descriptor(const char *path)
{
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
        size_t n = strlen(folder[i]), k;
        if (strncmp(path, folder[i], n))
            continue;
        k = strspn(path + n, "0123456789");
        if (k && k < 9 && !path[n + k])
            return (int)strtol(path + n, NULL, 10);
    }
    return -1;
}

/* Follows links in o->path, so that their target is replaced and not they; stops at a
 * name of a descriptor, to which /dev/stdout leads. */
static int follow_links(struct slu_out *o, struct slu_err *err)
{
    char to[PATH_MAX], dir[PATH_MAX];
    for (int i = 0; i < 40 && descriptor(o->path) < 0; i++) {
        ssize_t n = readlink(o->path, to, sizeof to - 1);
        if (n < 0)
            return SLU_OK; /* not a link, or absent */
        to[n] = 0;
        char *next = NULL;
        folder_of(o->path, dir);
        if ((*to == '/' ? asprintf(&next, "%s", to)
                        : asprintf(&next, "%s/%s", dir, to)) < 0)
            return slu_fail_nomem(err, (uint64_t)n);
        free(o->path);
        o->path = next;
    }
    return SLU_OK;
}

static int open_descriptor(struct slu_out *o, int fd, struct slu_err *err)
{
    o->direct = true;
    o->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return o->fd < 0 ? slu_fail_errno(err, "%s: cannot be opened for writing",
                                      slu_out_name(o))
                     : SLU_OK;
}

static int open_file(struct slu_out *o, struct slu_err *err)
{
    struct stat st;
    int rc = follow_links(o, err);
    if (rc)
        return rc;
    if (descriptor(o->path) >= 0)
        return open_descriptor(o, descriptor(o->path), err);
    bool exists = !stat(o->path, &st);
    if (!exists && errno != ENOENT)
        return slu_fail_errno(err, "%s: cannot be created", o->name);
    if (exists && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return slu_fail_errno(err, "%s: cannot be written", o->name);
    }
    if (exists && !S_ISREG(st.st_mode)) {
        o->direct = true;
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (o->fd < 0)
            return slu_fail_errno(err, "%s: cannot be opened for writing", o->name);
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
    if (o->fd < 0 &&
        (errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == EROFS))
        return slu_fail_errno(err, "%s: cannot be created", o->name);
#endif
    if (o->fd < 0 && take_temp(o))
        return slu_fail_errno(err, "%s: cannot be created", o->name);
    return SLU_OK;
}

int slu_out_open(struct slu_out **out, const char *path, struct slu_err *err)
{
    struct slu_out *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    o->fd = o->slot = -1;
    int rc = SLU_OK;
    if (!path || !strcmp(path, "-")) {
        rc = open_descriptor(o, STDOUT_FILENO, err);
    } else if (!*path) {
        rc = slu_fail(err, SLU_E_USAGE, "an output's name is empty");
    } else {
        o->name = strdup(path);
        o->path = strdup(path);
        rc = o->name && o->path ? open_file(o, err) : slu_fail_nomem(err, strlen(path));
    }
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
    if (out->hash)
        slu_xxh3_64_update(out->hash, p, n);
    out->n_byte += n;
    return SLU_OK;
}

int slu_out_gather(struct slu_out *out, struct iovec *piece, unsigned n,
                   struct slu_err *err)
{
    for (unsigned i = 0; i < n; i++) {
        if (out->hash)
            slu_xxh3_64_update(out->hash, piece[i].iov_base, piece[i].iov_len);
        out->n_byte += piece[i].iov_len;
    }
    for (unsigned i = 0; i < n;) {
        ssize_t r = piece[i].iov_len ? writev(out->fd, piece + i, (int)(n - i)) : 0;
        if (r < 0 && errno != EINTR)
            return slu_fail_errno(err, "%s: cannot be written", slu_out_name(out));
        size_t done = r < 0 ? 0 : (size_t)r;
        for (; i < n && done >= piece[i].iov_len; i++)
            done -= piece[i].iov_len;
        if (i < n && done) {
            piece[i].iov_base = (uint8_t *)piece[i].iov_base + done;
            piece[i].iov_len -= done;
        }
    }
    return SLU_OK;
}

int slu_out_digest(struct slu_out *out, struct slu_digest *d, struct slu_err *err)
{
    if (!out->hash && !(out->hash = XXH3_createState()))
        return slu_fail_nomem(err, 576);
    XXH3_64bits_reset(out->hash);
    out->digest = d;
    return SLU_OK;
}

void slu_out_begin_sync(struct slu_out *out)
{
#ifdef SYNC_FILE_RANGE_WRITE
    if (!out->direct)
        (void)!sync_file_range(out->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)out;
#endif
}

void slu_out_leave_folder(struct slu_out *out)
{
    out->leave_folder = true;
}

const char *slu_out_name(const struct slu_out *out)
{
    return out->name ? out->name : "standard output";
}

bool slu_out_is_terminal(const struct slu_out *out)
{
    return isatty(out->fd);
}

/* Renames the temporary file. -1: errno says why; slu_out_abort then removes it. */
static int rename_temp(struct slu_out *o)
{
    int failed = rename(o->temp, o->path) ? errno : 0;
    temp_forget(o->temp, o->slot);
    o->slot = -1;
    errno = failed;
    if (failed)
        return -1;
    free(o->temp);
    o->temp = NULL;
    return 0;
}

static int finish_file(struct slu_out *o, struct slu_err *err)
{
    char dir[PATH_MAX];
    if (fsync(o->fd) && errno != EINVAL && errno != EROFS)
        return slu_fail_errno(err, "%s: cannot be synced", o->name);
    /* A nameless file is given its final name directly, unless another file has it:
     * then a rename replaces that file. */
    bool named = !o->temp && name_file(o, o->path);
    if (!named && !o->temp && take_temp(o))
        return slu_fail_errno(err, "%s: the finished file cannot be given this name",
                              o->name);
    int fd = o->fd;
    o->fd = -1;
    if (close(fd)) {
        int why = errno;
        if (named)
            unlink(o->path);
        errno = why;
        return slu_fail_errno(err, "%s: cannot be closed", o->name);
    }
    if (!named && rename_temp(o))
        return slu_fail_errno(err, "%s: cannot be renamed", o->name);
    if (o->leave_folder)
        return SLU_OK;
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
    if (!rc && o->hash)
        *o->digest = (struct slu_digest){o->n_byte, slu_xxh3_64_digest(o->hash)};
    slu_out_abort(o);
    return rc;
}

void slu_out_abort(struct slu_out *o)
{
    if (!o)
        return;
    if (o->fd >= 0)
        close(o->fd);
    if (o->temp) {
        unlink(o->temp);
        temp_forget(o->temp, o->slot);
    }
    XXH3_freeState(o->hash);
    free(o->temp);
    free(o->path);
    free(o->name);
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
