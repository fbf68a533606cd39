/* in_parquet.c - the rows of Parquet files, through parquet.h.
 *
 * Threads decode row groups, each up to a limited number of bytes ahead. Rows are
 * handed out in order, so the result does not depend on the number of threads. Each
 * thread has a share of the memory. If the pages of a row group do not fit a share, the
 * caller decodes this row group when its turn comes, with more memory. With one thread,
 * the caller decodes everything.
 */
#include "formats/text/input_private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/thread.h"
#include "parquet.h"

#define CHUNK_BYTE ((size_t)256 << 10) /* bytes that are decoded at a time */
#define LEAST_SHARE                                                                    \
    ((uint64_t)8 << 20) /* with less memory, a thread is not worth starting */

/* A run of decoded rows. */
struct chunk {
    struct slu_block block;
    struct chunk *next;
};

/* A row group that is being decoded, or has been. */
struct slot {
    struct chunk *first, **last;
    uint64_t n_byte; /* size of the chunks */
    bool done;       /* no more chunks will come; rc and err state why */
    int rc;
    struct slu_err err;
};

struct pq {
    const struct slu_parquet *lib;
    struct slu_parquet_file *file;
    int fd;                  /* of a member's copy, see copy_member; or -1 */
    uint64_t first, n_group; /* the share's row groups: first … n_group - 1 */
    uint64_t head;           /* the row group whose rows are handed out */
    uint64_t row;            /* the next row, in the file */
    uint64_t memory_byte;    /* memory for the caller's decoding */
    bool begun;
    struct chunk *cur;             /* chunk of head that is being handed out */
    size_t at;                     /* its next row */
    struct slu_parquet_rows *rows; /* of head, if the caller decodes it */

    unsigned n_thread; /* threads that were started */
    pthread_t *thread;
    uint64_t share_byte; /* share of each thread: half for Arrow, half for chunks */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot *slot; /* n_thread slots, by the number of the row group */
    uint64_t next;     /* the next row group for a thread */
    bool stop;
};

static bool name_matches(const char *name)
{
    const char *dot = strrchr(name, '.');
    return slu_suffix_is(dot, ".parquet") || slu_suffix_is(dot, ".pq");
}

static bool head_matches(const uint8_t *p, size_t n)
{
    return n >= 4 && memcmp(p, "PAR1", 4) == 0;
}

static struct chunk *new_chunk(struct slu_err *err)
{
    struct chunk *c = calloc(1, sizeof *c);
    if (!c)
        slu_fail_nomem(err, sizeof *c);
    else
        slu_block_init(&c->block);
    return c;
}

static void free_chunk(struct chunk *c)
{
    if (c)
        slu_block_release(&c->block);
    free(c);
}

/* Texts may be empty or null, so each row counts more than its text. */
static uint64_t chunk_byte(const struct chunk *c)
{
    const struct slu_block *b = &c->block;
    return b->raw.len + b->n_rec * (sizeof *b->rec + sizeof *b->field);
}

static void clear_slot(struct slot *s)
{
    while (s->first) {
        struct chunk *c = s->first;
        s->first = c->next;
        free_chunk(c);
    }
    *s = (struct slot){.last = &s->first};
}

/* ---- the threads ---- */

/* false: the run has ended. */
static bool hand_over(struct pq *q, struct slot *s, struct chunk *c)
{
    pthread_mutex_lock(&q->lock);
    while (!q->stop && s->n_byte >= q->share_byte / 2)
        pthread_cond_wait(&q->changed, &q->lock);
    bool go_on = !q->stop;
    if (go_on) {
        s->n_byte += chunk_byte(c);
        *s->last = c;
        s->last = &c->next;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return go_on;
}

static int decode(struct pq *q, uint64_t g, struct slot *s, struct slu_err *err)
{
    struct slu_parquet_rows *rows;
    int rc = q->lib->rows_new(&rows, q->file, g, 0, q->share_byte / 2, err);
    while (!rc) {
        struct chunk *c = new_chunk(err);
        if (!c) {
            rc = SLU_E_NOMEM;
            break;
        }
        rc = q->lib->rows_read(rows, &c->block, CHUNK_BYTE, err);
        if (c->block.n_rec && hand_over(q, s, c))
            continue;
        if (c->block.n_rec)
            rc = SLU_EOF; /* stopped: no thread waits for the rows */
        free_chunk(c);
    }
    q->lib->rows_free(rows);
    return rc;
}

static void *thread_main(void *arg)
{
    struct pq *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->stop && (q->next == q->n_group || q->next >= q->head + q->n_thread))
            pthread_cond_wait(&q->changed, &q->lock);
        if (q->stop)
            break;
        uint64_t g = q->next++;
        struct slot *s = &q->slot[g % q->n_thread];
        pthread_mutex_unlock(&q->lock);
        struct slu_err err = SLU_ERR_INIT;
        int rc = decode(q, g, s, &err);
        pthread_mutex_lock(&q->lock);
        s->rc = rc;
        s->err = err;
        s->done = true;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static int start_threads(struct slu_input_source *src, struct pq *q,
                         struct slu_err *err)
{
    uint64_t memory = src->cfg->window_byte, n = src->cfg->n_threads;
    n = n > 0 ? n - 1 : 0;
    if (n > memory / 2 / LEAST_SHARE)
        n = memory / 2 / LEAST_SHARE;
    if (n > q->n_group - q->first)
        n = q->n_group - q->first;
    q->memory_byte = n ? memory / 2 : memory;
    if (n == 0 || q->n_group - q->first < 2)
        return SLU_OK;
    q->share_byte = memory / 2 / n;
    q->thread = calloc(n, sizeof *q->thread);
    q->slot = calloc(n, sizeof *q->slot);
    if (!q->thread || !q->slot)
        return slu_fail_nomem(err, n * sizeof *q->slot);
    for (uint64_t i = 0; i < n; i++)
        clear_slot(&q->slot[i]);
    pthread_mutex_lock(&q->lock); /* because the threads read n_thread */
    while (q->n_thread < n &&
           slu_thread_start(&q->thread[q->n_thread], thread_main, q) == 0)
        q->n_thread++;
    pthread_mutex_unlock(&q->lock);
    return SLU_OK; /* without threads, the caller decodes */
}

static void stop_threads(struct pq *q)
{
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->n_thread; i++) {
        pthread_join(q->thread[i], NULL);
        clear_slot(&q->slot[i]);
    }
    free(q->thread);
    free(q->slot);
}

/* ---- in order ---- */

/* The caller decodes the rest of the row group. */
static int decode_here(struct pq *q, struct slu_err *err)
{
    int rc = SLU_OK;
    if (!q->rows)
        rc = q->lib->rows_new(&q->rows, q->file, q->head,
                              q->row - q->lib->row(q->file, q->head), q->memory_byte,
                              err);
    if (!rc && !(q->cur = new_chunk(err)))
        rc = SLU_E_NOMEM;
    return rc ? rc : q->lib->rows_read(q->rows, &q->cur->block, CHUNK_BYTE, err);
}

/* Gets the next chunk of the row group; SLU_EOF: there is none (cur is NULL), or this
 * is the last. */
static int next_chunk(struct pq *q, struct slu_err *err)
{
    if (q->n_thread == 0 || q->rows)
        return decode_here(q, err);
    struct slot *s = &q->slot[q->head % q->n_thread];
    int rc = SLU_OK;
    pthread_mutex_lock(&q->lock);
    while (!s->first && !(s->done && q->next > q->head))
        pthread_cond_wait(&q->changed, &q->lock);
    struct chunk *c = s->first;
    if (c) {
        s->first = c->next;
        if (!s->first)
            s->last = &s->first;
        s->n_byte -= chunk_byte(c);
        c->next = NULL;
        q->cur = c;
        pthread_cond_broadcast(&q->changed);
    } else {
        rc = s->rc;
        if (rc < 0 && err)
            *err = s->err;
    }
    pthread_mutex_unlock(&q->lock);
    return rc == SLU_E_LIMIT ? decode_here(q, err) : rc;
}

/* Ends the row group; its slot is free for the next one. */
static void next_group(struct slu_input_source *src, struct pq *q)
{
    q->lib->rows_free(q->rows);
    q->rows = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->n_thread)
        clear_slot(&q->slot[q->head % q->n_thread]);
    q->head++;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    q->row = q->lib->row(q->file, q->head);
    uint64_t size = q->lib->size(q->file),
             to = q->head == q->n_group ? size : q->lib->place(q->file, q->head);
    to = to < src->to ? to : src->to;
    src->own_stored_byte = to > src->from ? to - src->from : 0;
}

/* Finds the share's row groups. */
static void take_share(struct slu_input_source *src, struct pq *q)
{
    const uint64_t n = q->lib->n_group(q->file);
    while (q->first < n && q->lib->place(q->file, q->first) < src->from)
        q->first++;
    q->n_group = q->first;
    while (q->n_group < n && q->lib->place(q->file, q->n_group) < src->to)
        q->n_group++;
    q->head = q->next = q->first;
    q->row = q->lib->row(q->file, q->first);
    src->own_byte = src->from; /* end_source takes the bytes of other shares off */
}

/* Hands out rows of cur, until b is full. */
static int take_rows(struct slu_input_source *src, struct pq *q, struct slu_block *b,
                     struct slu_err *err)
{
    const struct slu_block *c = &q->cur->block;
    int rc = SLU_OK;
    while (!rc && q->at < c->n_rec && slu_rows_weight(b) < src->cfg->block_byte) {
        struct slu_record_ref rec = c->rec[q->at];
        const struct slu_row_fields *f = &c->field[q->at];
        size_t n = rec.len + f->id_len + f->domain_len + f->span_len + f->any_len,
               begin = b->raw.len;
        src->document = rec.document;
        rc = slu_block_room(src, b, n, begin, rec.document, err);
        if (rc)
            break;
        if (n)
            memcpy(b->raw.data + begin, c->raw.data + rec.off, n);
        b->raw.len += n;
        rec.source = src->ordinal;
        rec.document += src->base;
        rec.off = begin;
        rc = slu_block_add_row(b, rec, *f, err);
        src->own_byte += n;
        q->row = rec.document - src->base + 1;
        src->n_row = q->row;
        q->at++;
    }
    src->begin = b->raw.len;
    return rc;
}

/* Copies a member of an archive to a file without a name, at whose path Arrow opens
 * it. */
static int copy_member(struct slu_input_source *src, struct pq *q, char *path,
                       size_t size, struct slu_err *err)
{
    const size_t step = CHUNK_BYTE;
    uint8_t *p = malloc(step);
    size_t got = step;
    const char *dir = src->cfg->tmpdir;
    int rc = p ? slu_tmpfile(&q->fd, dir ? dir : "/var/tmp", err)
               : slu_fail_nomem(err, step);
    while (!rc && got == step) {
        rc = slu_bytes_read(src->bytes, p, step, &got, err);
        if (!rc)
            rc = slu_write_full(q->fd, p, got, err);
    }
    free(p);
    snprintf(path, size, "/proc/self/fd/%d", q->fd);
    return rc;
}

static int parquet_open(struct slu_input_source *src, struct slu_err *err)
{
    const struct slu_input_cfg *cfg = src->cfg;
    const uint8_t *head;
    size_t n;
    const struct slu_parquet *lib = slu_parquet_load();
    if (!lib)
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s: " SLU_PARQUET_NONE,
                        slu_input_name(src));
    int rc = slu_bytes_peek(src->bytes, &head, &n, err);
    if (rc)
        return rc;
    if (n == 0)
        return slu_input_empty(src, err);
    if (!src->member && strcmp(slu_bytes_codec(src->bytes), "plain") != 0)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s: a Parquet file within %s, which can only be read from the "
                        "front; decompress it",
                        slu_input_name(src), slu_bytes_codec(src->bytes));
    struct pq *q = calloc(1, sizeof *q);
    if (!q)
        return slu_fail_nomem(err, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->lib = lib;
    q->fd = -1;
    src->state = q;
    char copy[64] = "";
    if (src->member)
        rc = copy_member(src, q, copy, sizeof copy, err);
    if (rc)
        return rc;
    /* A file without scores is an error: its column is mistyped. */
    rc = q->lib->open(
        &q->file, src->member ? copy : src->src->path, slu_input_name(src),
        &(struct slu_parquet_columns){
            cfg->field, cfg->optional & ~(1U << SLU_FIELD_SCORE), cfg->any, cfg->n_any},
        cfg->window_byte / 2, err);
    if (rc)
        return rc;
    take_share(src, q);
    return start_threads(src, q, err);
}

static int parquet_fetch(struct slu_input_source *src, struct slu_block *b,
                         struct slu_err *err)
{
    struct pq *q = src->state;
    while (slu_rows_weight(b) < src->cfg->block_byte) {
        int rc = SLU_OK;
        if (!q->cur) {
            if (q->head == q->n_group)
                return SLU_EOF;
            q->at = 0;
            src->document = src->base + q->row;
            rc = next_chunk(q, err);
            if (rc < 0 && !(q->cur && q->cur->block.n_rec))
                return rc;
        }
        /* Rows before a fault are handed out first; the fault is met again when none
         * are left. */
        int taken = q->cur ? take_rows(src, q, b, err) : SLU_OK;
        if (taken)
            return taken;
        if (q->cur && q->at == q->cur->block.n_rec) {
            free_chunk(q->cur);
            q->cur = NULL;
        }
        if (!q->cur && rc == SLU_EOF)
            next_group(src, q);
    }
    return SLU_OK;
}

/* A row group stands alone. */
static bool parquet_resume(struct slu_input_source *src)
{
    struct pq *q = src->state;
    if (!q || !q->file)
        return false;
    free_chunk(q->cur);
    q->cur = NULL;
    next_group(src, q);
    return true;
}

static void parquet_close(struct slu_input_source *src)
{
    struct pq *q = src->state;
    if (!q)
        return;
    stop_threads(q);
    q->lib->rows_free(q->rows);
    free_chunk(q->cur);
    q->lib->close(q->file);
    if (q->fd >= 0)
        close(q->fd);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

const struct slu_input_format slu_in_parquet = {
    .name = "parquet",
    .rows = true,
    .name_matches = name_matches,
    .head_matches = head_matches,
    .open = parquet_open,
    .fetch = parquet_fetch,
    .resume = parquet_resume,
    .close = parquet_close,
};
