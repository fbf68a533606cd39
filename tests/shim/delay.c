/* delay.c - a library for LD_PRELOAD that shakes the order in which things happen:
 * results must not change by it.
 *
 *   SHIM_DELAY_US=N   after pthread_mutex_unlock, pthread_cond_wait and
 * pthread_create's start in the new thread, in one of four cases sleep up to N
 *                     microseconds. Workers leave a lock whenever they take a job or
 *                     hand one back, so jobs are taken late and finish out of order
 *   SHIM_SHORT=1      read(), write() and writev() move fewer bytes than asked, and now and then
 *                     fail with EINTR: what a signal or a slow pipe does
 *   SHIM_SEED=N       another sequence of delays
 *   SHIM_LOG=FILE     gets "delays shorts" at exit, to prove that it took part
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static unsigned long delay_us, seed;
static bool short_io;
static atomic_ulong delays, shorts, draws;

__attribute__((constructor)) static void begin(void)
{
    const char *s = getenv("SHIM_DELAY_US");
    delay_us = s ? strtoul(s, NULL, 10) : 0;
    s = getenv("SHIM_SEED");
    seed = s ? strtoul(s, NULL, 10) : 0;
    short_io = getenv("SHIM_SHORT") != NULL;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("SHIM_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) {
        fprintf(f, "%lu %lu\n", atomic_load(&delays), atomic_load(&shorts));
        fclose(f);
    }
}

static uint64_t draw(void)
{
    uint64_t x = (atomic_fetch_add(&draws, 1) + 1) * 0x9E3779B97F4A7C15u +
                 seed * 0xD1B54A32D192ED03u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static void maybe_sleep(void)
{
    if (!delay_us)
        return;
    uint64_t x = draw();
    if (x & 3)
        return;
    int e = errno;
    struct timespec t = {0, (long)((x >> 8) % delay_us) * 1000};
    atomic_fetch_add(&delays, 1);
    nanosleep(&t, NULL);
    errno = e;
}

#define REAL(name)                                                                     \
    static __typeof__(&name) real;                                                     \
    if (!real)                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int pthread_mutex_unlock(pthread_mutex_t *m)
{
    REAL(pthread_mutex_unlock);
    int r = real(m);
    maybe_sleep();
    return r;
}

struct start {
    void *(*f)(void *);
    void *arg;
};
static void *started(void *p)
{
    struct start s = *(struct start *)p;
    free(p);
    maybe_sleep();
    return s.f(s.arg);
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    REAL(pthread_create);
    struct start *s = malloc(sizeof(*s));
    if (!s)
        return EAGAIN;
    *s = (struct start){f, arg};
    int r = real(t, a, started, s);
    if (r)
        free(s);
    return r;
}

/* 0: as asked; a smaller count; or (size_t)-1 for EINTR. */
static size_t shorter(size_t n)
{
    if (!short_io || n < 2)
        return n;
    uint64_t x = draw();
    if ((x & 15) == 0) {
        atomic_fetch_add(&shorts, 1);
        errno = EINTR;
        return (size_t)-1;
    }
    if (x & 16)
        return n;
    atomic_fetch_add(&shorts, 1);
    return 1 + (size_t)((x >> 8) % (n - 1));
}

ssize_t read(int fd, void *p, size_t n)
{
    REAL(read);
    size_t m = shorter(n);
    return m == (size_t)-1 ? -1 : real(fd, p, m);
}
ssize_t pread(int fd, void *p, size_t n, off_t off)
{
    REAL(pread);
    size_t m = shorter(n);
    return m == (size_t)-1 ? -1 : real(fd, p, m, off);
}
ssize_t write(int fd, const void *p, size_t n)
{
    REAL(write);
    size_t m = shorter(n);
    return m == (size_t)-1 ? -1 : real(fd, p, m);
}
ssize_t writev(int fd, const struct iovec *v, int n)
{
    REAL(writev);
    struct iovec part[128];
    size_t all = 0;
    n = n < 128 ? n : 128;
    for (int i = 0; i < n; i++)
        all += v[i].iov_len;
    size_t left = shorter(all);
    if (left == (size_t)-1)
        return -1;
    for (int i = 0; i < n; i++) {
        part[i] = v[i];
        part[i].iov_len = left < v[i].iov_len ? left : v[i].iov_len;
        left -= part[i].iov_len;
    }
    return real(fd, part, n);
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
    REAL(pwrite);
    size_t m = shorter(n);
    return m == (size_t)-1 ? -1 : real(fd, p, m, off);
}
