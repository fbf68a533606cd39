/* shard_close.c - writes complete shards to the disk while the next ones are made: a
 * thread waits for the disk, so that computing threads need not.
 *
 * Shards are closed in the order in which they are handed over, and noted afterwards: a
 * line of the journal means that the files exist. The writing of all waiting shards'
 * files begins at once, so that one commit of the file system's journal serves several.
 * With one thread, or if no thread can be started, each shard is closed at once.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard_private.h"

void slu_shards_files_abort(struct slu_shards_files *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < SLU_SHARD_FILES; i++)
        slu_out_abort(f->out[i]);
    free(f);
}

int slu_shards_files_open(struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, struct slu_shards_files **files,
                          struct slu_err *err)
{
    struct slu_shards_files *f = calloc(1, sizeof *f);
    int rc = f ? SLU_OK : slu_fail_nomem(err, sizeof *f);

    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++)
        rc = slu_shards_open_file(s, b, number, i, &f->digest[i], &f->out[i], err);
    if (rc) {
        slu_shards_files_abort(f);
        f = NULL;
    }
    *files = f;
    return rc;
}

/* Gives the item's files their names, and notes the shard. */
static int close_item(struct slu_shards *s, struct slu_shards_item *it,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; it->files && i < slu_shards_n_file(s); i++) {
        struct slu_out *out = it->files->out[i];
        it->files->out[i] = NULL;
        if (!rc)
            rc = slu_out_close(out, err);
        else
            slu_out_abort(out);
        it->done.facts.n_byte[i] = it->files->digest[i].n_byte;
        it->done.facts.xxh3[i] = it->files->digest[i].xxh3;
    }
    free(it->files);
    it->files = NULL;
    return rc ? rc : slu_shards_add_shard(s, it->bucket, &it->done, &it->sum, err);
}

static void *closer(void *arg)
{
    struct slu_shards *s = arg;
    struct slu_shards_queue *q = &s->queue;
    unsigned begun = 0; /* elements of the ring whose writing has begun */

    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->first == q->end && !q->over)
            pthread_cond_wait(&q->change, &q->lock);
        if (q->first == q->end)
            break;
        unsigned end = q->end;
        int rc = q->rc;
        pthread_mutex_unlock(&q->lock);
        struct slu_shards_item *it = &q->item[q->first % SLU_SHARDS_QUEUE];
        for (; begun != end; begun++) {
            struct slu_shards_files *f = q->item[begun % SLU_SHARDS_QUEUE].files;
            for (unsigned i = 0; f && i < slu_shards_n_file(s); i++)
                slu_out_begin_sync(f->out[i]);
        }
        struct slu_err err = SLU_ERR_INIT;
        if (!rc)
            rc = close_item(s, it, &err);
        else
            slu_shards_files_abort(it->files);
        pthread_mutex_lock(&q->lock);
        if (rc && !q->rc) {
            q->rc = rc;
            q->err = err;
        }
        q->first++;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

void slu_shards_queue_begin(struct slu_shards *s, unsigned n_threads)
{
    struct slu_shards_queue *q = &s->queue;

    if (n_threads < 2)
        return;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->change, NULL);
    q->on = !slu_thread_start(&q->thread, closer, s);
    if (!q->on) {
        pthread_cond_destroy(&q->change);
        pthread_mutex_destroy(&q->lock);
    }
}

int slu_shards_close(struct slu_shards *s, struct slu_shards_item *it,
                     struct slu_err *err)
{
    struct slu_shards_queue *q = &s->queue;

    if (!q->on)
        return close_item(s, it, err);
    pthread_mutex_lock(&q->lock);
    while (q->end - q->first == SLU_SHARDS_QUEUE && !q->rc)
        pthread_cond_wait(&q->change, &q->lock);
    int rc = q->rc;
    if (!rc) {
        q->item[q->end++ % SLU_SHARDS_QUEUE] = *it;
        pthread_cond_broadcast(&q->change);
    } else if (err) {
        *err = q->err;
    }
    pthread_mutex_unlock(&q->lock);
    if (rc)
        slu_shards_files_abort(it->files);
    it->files = NULL;
    return rc;
}

int slu_shards_queue_end(struct slu_shards *s, int rc, struct slu_err *err)
{
    struct slu_shards_queue *q = &s->queue;

    if (!q->on)
        return rc;
    pthread_mutex_lock(&q->lock);
    q->over = true;
    if (rc && !q->rc)
        q->rc = rc; /* waiting shards are not finished */
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    q->on = false;
    if (!rc && q->rc) {
        rc = q->rc;
        if (err)
            *err = q->err;
    }
    return rc;
}
