/* fault.c - a library for LD_PRELOAD that makes one call fail, or kills the process
 * there: fault injection that stays out of the programs.
 *
 *   SHIM_AT=CALL:N    the N-th call (from 1) of that name after main() has begun.
 *                     CALL is read, write, open, sync, close, name (rename, link and
 *                     their like), unlink, truncate, mkdir, map, thread, memory, stdio,
 *                     or start (main itself), or end (a normal exit, before the
 *                     buffers of stdio are written), or io (any of read … mkdir, stdio)
 *   SHIM_DO=kill      SIGKILL (the default): a fail-point
 *   SHIM_DO=term, usr1  SIGTERM or SIGUSR1, and the call never returns
 *   SHIM_DO=NUMBER    the call fails with that errno and does nothing
 *   SHIM_ALWAYS=1     all calls from the N-th on fail, as on a full disk
 *   SHIM_NAMES=1      there are no files without names (O_TMPFILE), as on NFS
 *   SHIM_XDEV=1       folders cannot be renamed (EXDEV), as on Lustre or overlays; no call
 *                     is counted for that
 *   SHIM_LOG=FILE     gets one line when it happens: "pid program call n". Its presence
 *                     proves that the program was alive and came as far
 *
 * Calls on descriptor 2 are left alone, so that the message about the fault gets out;
 * counting is over all threads.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
    C_NONE,
    C_READ,
    C_WRITE,
    C_OPEN,
    C_SYNC,
    C_CLOSE,
    C_NAME,
    C_UNLINK,
    C_TRUNCATE,
    C_MKDIR,
    C_STDIO,
    C_MAP,
    C_THREAD,
    C_MEMORY,
    C_START,
    C_END,
    C_IO
};
static const char *const call_name[] = {"none",  "read", "write",  "open",     "sync",
                                        "close", "name", "unlink", "truncate", "mkdir",
                                        "stdio", "map",  "thread", "memory",   "start",
                                        "end",   "io"};

static enum call at_call;
static unsigned long at_n;
static int with_errno; /* 0: kill */
static int with_signal = SIGKILL;
static bool names, xdev;
static bool always;
static const char *log_path;
static atomic_ulong seen;
static atomic_bool active;

static void note(enum call c)
{
    char line[200];
    if (!log_path)
        return;
    int n = snprintf(line, sizeof(line), "%d %s %s %lu\n", (int)getpid(),
                     program_invocation_short_name, call_name[c], at_n);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND,
                          0600);
    if (fd >= 0) {
        if (syscall(SYS_write, fd, line, (size_t)n) < 0)
            _exit(97);
        syscall(SYS_close, fd);
    }
}

/* True if this call must fail (errno is set); does not return where it kills. */
static bool hit(enum call c)
{
    if (!atomic_load(&active))
        return false;
    if (c != at_call && !(at_call == C_IO && c <= C_STDIO))
        return false;
    unsigned long n = atomic_fetch_add(&seen, 1) + 1;
    if (n != at_n && !(always && n > at_n))
        return false;
    if (n == at_n)
        note(c);
    if (!with_errno)
        syscall(SYS_kill, getpid(), with_signal);
    while (!with_errno)
        pause();
    errno = with_errno;
    return true;
}

#define REAL(name)                                                                     \
    static __typeof__(&name) real;                                                     \
    if (!real)                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *p, size_t n)
{
    REAL(read);
    return hit(C_READ) ? -1 : real(fd, p, n);
}
ssize_t pread(int fd, void *p, size_t n, off_t off)
{
    REAL(pread);
    return hit(C_READ) ? -1 : real(fd, p, n, off);
}
ssize_t readv(int fd, const struct iovec *v, int n)
{
    REAL(readv);
    return hit(C_READ) ? -1 : real(fd, v, n);
}
ssize_t write(int fd, const void *p, size_t n)
{
    REAL(write);
    return fd != 2 && hit(C_WRITE) ? -1 : real(fd, p, n);
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
    REAL(pwrite);
    return fd != 2 && hit(C_WRITE) ? -1 : real(fd, p, n, off);
}
ssize_t writev(int fd, const struct iovec *v, int n)
{
    REAL(writev);
    return fd != 2 && hit(C_WRITE) ? -1 : real(fd, v, n);
}
int open(const char *path, int flags, ...)
{
    REAL(open);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    if (names && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return hit(C_OPEN) ? -1 : real(path, flags, mode);
}
int openat(int dir, const char *path, int flags, ...)
{
    REAL(openat);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return hit(C_OPEN) ? -1 : real(dir, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    return hit(C_OPEN) ? NULL : real(path, mode);
}
int fsync(int fd)
{
    REAL(fsync);
    return hit(C_SYNC) ? -1 : real(fd);
}
int fdatasync(int fd)
{
    REAL(fdatasync);
    return hit(C_SYNC) ? -1 : real(fd);
}
int close(int fd)
{
    REAL(close);
    if (fd != 2 && hit(C_CLOSE)) {
        int e = errno;
        real(fd);
        errno = e;
        return -1;
    }
    return real(fd);
}
int rename(const char *a, const char *b)
{
    REAL(rename);
    struct stat st;
    if (xdev && !lstat(a, &st) && S_ISDIR(st.st_mode)) {
        errno = EXDEV;
        return -1;
    }
    return hit(C_NAME) ? -1 : real(a, b);
}
int renameat(int d, const char *a, int e, const char *b)
{
    REAL(renameat);
    return hit(C_NAME) ? -1 : real(d, a, e, b);
}
int renameat2(int d, const char *a, int e, const char *b, unsigned f)
{
    REAL(renameat2);
    return hit(C_NAME) ? -1 : real(d, a, e, b, f);
}
int link(const char *a, const char *b)
{
    REAL(link);
    return hit(C_NAME) ? -1 : real(a, b);
}
int linkat(int d, const char *a, int e, const char *b, int f)
{
    REAL(linkat);
    return hit(C_NAME) ? -1 : real(d, a, e, b, f);
}
int unlink(const char *a)
{
    REAL(unlink);
    return hit(C_UNLINK) ? -1 : real(a);
}
int ftruncate(int fd, off_t n)
{
    REAL(ftruncate);
    return hit(C_TRUNCATE) ? -1 : real(fd, n);
}
int mkdir(const char *p, mode_t m)
{
    REAL(mkdir);
    return hit(C_MKDIR) ? -1 : real(p, m);
}
int fflush(FILE *f)
{
    REAL(fflush);
    return f && fileno(f) != 2 && hit(C_STDIO) ? EOF : real(f);
}
int fclose(FILE *f)
{
    REAL(fclose);
    if (hit(C_STDIO)) {
        int e = errno;
        real(f);
        errno = e;
        return EOF;
    }
    return real(f);
}
void *mmap(void *a, size_t n, int prot, int flags, int fd, off_t off)
{
    REAL(mmap);
    return hit(C_MAP) ? MAP_FAILED : real(a, n, prot, flags, fd, off);
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *p)
{
    REAL(pthread_create);
    return hit(C_THREAD) ? (with_errno ? with_errno : EAGAIN) : real(t, a, f, p);
}

/* The allocator: glibc's own names, since dlsym() allocates. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t n)
{
    return hit(C_MEMORY) ? NULL : __libc_malloc(n);
}
void *calloc(size_t a, size_t b)
{
    return hit(C_MEMORY) ? NULL : __libc_calloc(a, b);
}
void *realloc(void *p, size_t n)
{
    return hit(C_MEMORY) ? NULL : __libc_realloc(p, n);
}
void *aligned_alloc(size_t a, size_t n)
{
    return hit(C_MEMORY) ? NULL : __libc_memalign(a, n);
}
int posix_memalign(void **p, size_t a, size_t n)
{
    if (hit(C_MEMORY))
        return ENOMEM;
    *p = __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}

static void at_end(void)
{
    hit(C_END);
}

static int (*real_main)(int, char **, char **);
static int wrapped_main(int argc, char **argv, char **envp)
{
    const char *at = getenv("SHIM_AT"), *what = getenv("SHIM_DO");
    log_path = getenv("SHIM_LOG");
    always = getenv("SHIM_ALWAYS") != NULL;
    names = getenv("SHIM_NAMES") != NULL;
    xdev = getenv("SHIM_XDEV") != NULL;
    if (what && !strcmp(what, "term"))
        with_signal = SIGTERM;
    else if (what && !strcmp(what, "usr1"))
        with_signal = SIGUSR1;
    else if (what && strcmp(what, "kill") != 0)
        with_errno = (int)strtol(what, NULL, 10);
    const char *colon = at ? strchr(at, ':') : NULL;
    if (at) {
        size_t len = colon ? (size_t)(colon - at) : strlen(at);
        at_n = colon ? strtoul(colon + 1, NULL, 10) : 1;
        for (unsigned c = 1; c <= C_IO; c++)
            if (strlen(call_name[c]) == len && !memcmp(call_name[c], at, len))
                at_call = (enum call)c;
        if (at_call == C_NONE) {
            fprintf(stderr, "fault.so: SHIM_AT=%s\n", at);
            _exit(98);
        }
        if (at_call == C_END)
            atexit(at_end);
    }
    atomic_store(&active, at_call != C_NONE);
    hit(C_START);
    return real_main(argc, argv, envp);
}

int __libc_start_main(int (*m)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld)(void),
                      void *stack);
int __libc_start_main(int (*m)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld)(void),
                      void *stack)
{
    REAL(__libc_start_main);
    real_main = m;
    return real(wrapped_main, argc, argv, init, fini, rtld, stack);
}
