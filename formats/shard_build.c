/* shard_build.c - shards of formats that build them whole: gather a shard's sequences
 * (serial), build and write it (parallel), keep the books (serial). */
#include <stdlib.h>
#include <string.h>

#include "formats/shard_private.h"
#include "lib/pipe.h"

typedef struct slu_shards_bucket bucket;

struct job {
    struct slu_batch b;
    bucket *bucket;
    struct slu_shards_done shard;
    struct slu_sum sum; /* of its sequences with their tokens */
    uint64_t n_packed;
    bool drop; /* a short last shard that is not wanted */
    struct slu_buf out[SLU_SHARD_FILES];
};

struct run {
    struct slu_shards *s;
    slu_shards_source *source;
    void *ctx;
    struct slu_batch in; /* the source's, from sequence `at` on not yet taken */
    size_t at;
    bool ended;
    unsigned left; /* then: buckets before this one are done */
};

/* The bucket's sequences become the job's. */
static int take(struct run *t, bucket *b, struct job *j, struct slu_err *err)
{
    struct slu_batch empty = j->b;

    slu_batch_clear(&empty);
    j->b = b->batch;
    b->batch = empty;
    j->bucket = b;
    j->shard = (struct slu_shards_done){.facts = {.number = b->n_planned++,
                                                  .n_seq = j->b.n_seq,
                                                  .n_tok = j->b.n_seq * b->pub.n_id}};
    j->drop = t->s->cfg.drop_last && j->b.n_seq < b->pub.shard_sequences;
    return j->drop || b->rows ? SLU_OK : slu_shards_begin_bucket(t->s, b, err);
}

static int add(struct run *t, const struct slu_seq *q, bucket **of, struct slu_err *err)
{
    int k = slu_header_bucket_of(&t->s->header, q->len_tok);

    if (k < 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "a sequence of %llu tokens is in no bucket",
                        (unsigned long long)q->len_tok);
    *of = &t->s->bucket[k];
    return slu_batch_add(&(*of)->batch, slu_batch_at(&t->in, q->tok_off), q->len_tok,
                         &t->in.seg[q->seg_off], q->n_seg, t->in.str.data, err);
}

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;

    while (!t->ended) {
        while (t->at < t->in.n_seq) {
            bucket *b = NULL;
            int rc = add(t, &t->in.seq[t->at++], &b, err);
            if (rc)
                return rc;
            if (b->batch.n_seq == b->pub.shard_sequences)
                return take(t, b, job, err);
        }
        int rc = t->source(t->ctx, &t->in, err);
        if (rc < 0)
            return rc;
        t->at = 0;
        t->ended = rc == SLU_EOF;
    }
    for (; t->left < t->s->n_bucket; t->left++)
        if (t->s->bucket[t->left].batch.n_seq)
            return take(t, &t->s->bucket[t->left], job, err);
    return SLU_EOF;
}

/* Writes the shard's files under their names. */
static int write_files(struct slu_shards *s, struct job *j, struct slu_err *err)
{
    for (unsigned i = 0; i < s->cfg.format->n_file; i++) {
        struct slu_digest d = {0};
        struct slu_out *out;
        int rc =
            slu_shards_open_file(s, j->bucket, j->shard.facts.number, i, &d, &out, err);
        if (rc)
            return rc;
        rc = slu_out_write(out, j->out[i].data, j->out[i].len, err);
        if (rc) {
            slu_out_abort(out);
            return rc;
        }
        rc = slu_out_close(out, err);
        if (rc)
            return rc;
        j->shard.facts.n_byte[i] = d.n_byte;
        j->shard.facts.xxh3[i] = d.xxh3;
    }
    return SLU_OK;
}

/* What the shard's sequences add up to, and its content. */
static void add_up(struct job *j)
{
    struct slu_batch *b = &j->b;

    slu_batch_sum(b);
    j->sum = b->sum;
    j->n_packed = slu_shards_count_packed(b);
    for (size_t i = 0; i < b->n_seq && !j->drop; i++) {
        const struct slu_seq *q = &b->seq[i];
        struct slu_u128 h =
            slu_hash_tokens(slu_batch_at(b, q->tok_off), q->len_tok, b->tok_bytes);
        j->shard.content = slu_u128_add(
            j->shard.content, slu_shards_content(i, h, &b->seg[q->seg_off], q->n_seg));
    }
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    struct slu_shard at = {&j->bucket->pub, j->shard.facts.number,
                           j->shard.facts.n_seq};
    int rc = SLU_OK;

    (void)worker;
    add_up(j);
    if (j->drop)
        return SLU_OK;
    for (unsigned i = 0; i < SLU_SHARD_FILES; i++)
        slu_buf_clear(&j->out[i]);
    if (!slu_shards_done(j->bucket, at.number)) {
        rc = t->s->cfg.format->build(t->s->state, &at, &j->b, j->out, &j->shard.facts,
                                     err);
        if (rc == SLU_OK)
            rc = write_files(t->s, j, err);
    }
    j->b.tok = NULL; /* from here on its rows */
    j->b.sum_valid = false;
    slu_batch_sum(&j->b);
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;

    if (j->drop) {
        slu_sum_add(&t->s->dropped, &j->sum);
        return SLU_OK;
    }
    int rc = slu_shards_add_shard(t->s, j->bucket, &j->shard, &j->sum, err);
    t->s->n_packed += j->n_packed;
    return rc ? rc : slu_writer_put(j->bucket->rows, &j->b, err);
}

int slu_shards_build(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct run t = {.s = s, .source = source, .ctx = ctx};
    struct job *job = calloc(n_slots, sizeof *job);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = job && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *job);

    slu_batch_init(&t.in, s->header.tok_bytes);
    for (unsigned i = 0; i < n_slots && rc == SLU_OK; i++) {
        slu_batch_init(&job[i].b, s->header.tok_bytes);
        slot[i] = &job[i];
    }
    if (rc == SLU_OK)
        rc = slu_pipe_run(&ops, &t, slot, n_slots, n_threads, err);
    for (unsigned i = 0; job && i < n_slots; i++) {
        slu_batch_release(&job[i].b);
        for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
            slu_buf_release(&job[i].out[f]);
    }
    slu_batch_release(&t.in);
    free(job);
    free(slot);
    return rc;
}
