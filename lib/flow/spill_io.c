#include "spill_io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/thread.h"

/* ---- the file ---- */

int slu_spill_file_open(struct slu_spill_file *f, const char *dir, struct slu_err *err)
{
    f->dir = dir;
    f->fd = f->direct_fd = -1;
    int rc = slu_tmpfile(&f->fd, dir, err);
#ifdef O_DIRECT
    char path[64];
    if (!rc) {
        /* The file is opened a second time, because the flag belongs to an open file,
         * not to a descriptor. */
        snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
        f->direct_fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    }
#endif
    return rc;
}

void slu_spill_file_release(struct slu_spill_file *f)
{
    if (f->direct_fd >= 0)
        close(f->direct_fd);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = f->direct_fd = -1;
}

/* ---- one request ---- */

static ssize_t transfer(const struct slu_spill_req *r, int fd, size_t done)
{
    uint8_t *p = (uint8_t *)r->p + done;
    size_t n = r->n_byte - done;
    off_t off = (off_t)(r->off_byte + done);

    return r->what == SLU_SPILL_READ ? pread(fd, p, n, off) : pwrite(fd, p, n, off);
}

static void do_request(struct slu_spill_req *r)
{
    bool direct = r->direct && r->file->direct_fd >= 0;

    for (size_t done = 0; done < r->n_byte;) {
        ssize_t n = transfer(r, direct ? r->file->direct_fd : r->file->fd, done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (direct && (n == 0 || errno == EINVAL || errno == EOPNOTSUPP)) {
            direct = false; /* unaligned, after a short transfer, or not supported */
        } else {
            r->ended_early = n == 0;
            r->sys_errno = n ? errno : 0;
            return;
        }
    }
}

/* Returns the request's error, and clears it. */
static int result(struct slu_spill_req *r, struct slu_err *err)
{
    const char *dir = r->file ? r->file->dir : NULL;
    int no = r->sys_errno;

    if (r->ended_early) {
        r->ended_early = false;
        return slu_fail(err, SLU_E_TRUNCATED, "temporary file in %s: ends early", dir);
    }
    r->sys_errno = 0;
    errno = no;
    if (no == 0)
        return SLU_OK;
    if (r->what == SLU_SPILL_READ)
        return slu_fail_errno(err, "temporary file in %s: cannot be read", dir);
    if (no == ENOSPC || no == EDQUOT)
        return slu_advise(
            err, SLU_ADVISE_TMPDIR,
            slu_fail_errno(err, "%s: no room left for temporary files", dir));
    return slu_fail_errno(err, "temporary file in %s: cannot be written", dir);
}

/* ---- the queue ---- */

#define MAX_THREADS 4

struct slu_spill_queue {
    pthread_mutex_t mu;
    pthread_cond_t come, done;
    struct slu_spill_req *first, **last;
    bool ended;
    unsigned n_threads;
    pthread_t thread[MAX_THREADS];
};

static void *serve(void *arg)
{
    struct slu_spill_queue *q = arg;

    pthread_mutex_lock(&q->mu);
    for (;;) {
        struct slu_spill_req *r = q->first;
        if (!r && q->ended)
            break;
        if (!r) {
            pthread_cond_wait(&q->come, &q->mu);
            continue;
        }
        q->first = r->next;
        if (!q->first)
            q->last = &q->first;
        pthread_mutex_unlock(&q->mu);
        do_request(r);
        pthread_mutex_lock(&q->mu);
        r->busy = false;
        pthread_cond_broadcast(&q->done);
    }
    pthread_mutex_unlock(&q->mu);
    return NULL;
}

struct slu_spill_queue *slu_spill_queue_new(unsigned n_threads)
{
    struct slu_spill_queue *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    q->last = &q->first;
    pthread_mutex_init(&q->mu, NULL);
    pthread_cond_init(&q->come, NULL);
    pthread_cond_init(&q->done, NULL);
    while (q->n_threads < n_threads && q->n_threads < MAX_THREADS &&
           !slu_thread_start(&q->thread[q->n_threads], serve, q))
        q->n_threads++;
    if (q->n_threads)
        return q;
    slu_spill_queue_free(q);
    return NULL;
}

void slu_spill_queue_free(struct slu_spill_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->mu);
    q->ended = true;
    pthread_cond_broadcast(&q->come);
    pthread_mutex_unlock(&q->mu);
    for (unsigned i = 0; i < q->n_threads; i++)
        pthread_join(q->thread[i], NULL);
    pthread_cond_destroy(&q->come);
    pthread_cond_destroy(&q->done);
    pthread_mutex_destroy(&q->mu);
    free(q);
}

void slu_spill_submit(struct slu_spill_queue *q, struct slu_spill_req *r)
{
    r->next = NULL;
    if (!q) {
        do_request(r);
        return;
    }
    pthread_mutex_lock(&q->mu);
    r->busy = true;
    *q->last = r;
    q->last = &r->next;
    pthread_cond_signal(&q->come);
    pthread_mutex_unlock(&q->mu);
}

int slu_spill_wait(struct slu_spill_queue *q, struct slu_spill_req *r,
                   struct slu_err *err)
{
    if (q) {
        pthread_mutex_lock(&q->mu);
        while (r->busy)
            pthread_cond_wait(&q->done, &q->mu);
        pthread_mutex_unlock(&q->mu);
    }
    return result(r, err);
}

/* ---- the writer ---- */

void slu_spill_writer_begin(struct slu_spill_writer *w,
                            const struct slu_spill_file *file, uint64_t off_byte,
                            bool direct)
{
    w->file = file;
    w->off_byte = off_byte;
    w->direct = direct;
    w->fill_byte = 0;
}

static int send(struct slu_spill_writer *w, struct slu_err *err)
{
    struct slu_spill_req *r = &w->req[w->at];

    if (w->fill_byte == 0)
        return SLU_OK;
    r->file = w->file;
    r->what = SLU_SPILL_WRITE;
    r->direct = w->direct;
    r->p = w->buf + w->at * w->cap_byte;
    r->n_byte = w->fill_byte;
    r->off_byte = w->off_byte;
    w->off_byte += w->fill_byte;
    w->fill_byte = 0;
    w->at = (w->at + 1) % w->n_buf;
    slu_spill_submit(w->queue, r);
    return slu_spill_wait(w->queue, &w->req[w->at], err);
}

int slu_spill_writer_put(struct slu_spill_writer *w, const void *p, size_t n,
                         struct slu_err *err)
{
    const uint8_t *from = p;

    while (n > 0) {
        size_t some = w->cap_byte - w->fill_byte;
        some = some < n ? some : n;
        memcpy(w->buf + w->at * w->cap_byte + w->fill_byte, from, some);
        w->fill_byte += some;
        from += some;
        n -= some;
        if (w->fill_byte == w->cap_byte) {
            int rc = send(w, err);
            if (rc)
                return rc;
        }
    }
    return SLU_OK;
}

int slu_spill_writer_end(struct slu_spill_writer *w, struct slu_err *err)
{
    size_t pad = (size_t)-w->fill_byte & (SLU_SPILL_ALIGN - 1);

    memset(w->buf + w->at * w->cap_byte + w->fill_byte, 0, pad);
    w->fill_byte += pad;
    return send(w, err);
}

int slu_spill_writer_settle(struct slu_spill_writer *w, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; i < w->n_buf; i++) {
        int r =
            slu_spill_wait(w->queue, &w->req[(w->at + i) % w->n_buf], rc ? NULL : err);
        rc = rc ? rc : r;
    }
    return rc;
}
