/* shard_build.c - for formats that build whole shards: collects a shard's sequences
 * (serial), builds and writes the shard (parallel), and updates the counts (serial). */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard_private.h"
#include "lib/base/pipe.h"

typedef struct slu_shards_bucket bucket;

/* ---- memory ---- */

/* Limit for --shard-sequences auto. Bytes must not depend on -M, so this is the memory
 * that shuffle has for shards at its least -M (tools/shuffle/shards.c: half of 32 MiB,
 * and 24). */
#define AUTO_BYTE (UINT64_C(40) << 20)

/* Bytes of the sequences of a full shard: tokens, and rows with a few segments and ids
 * each. */
static uint64_t batch_byte(const struct slu_shard_bucket *b)
{
    const unsigned width = b->masks ? sizeof(uint32_t) : b->tok_bytes;
    const struct slu_shard_most n = slu_shard_most(b);
    return n.n_tok * width +
           n.n_seq * (sizeof(struct slu_seq) + 4 * sizeof(struct slu_seg));
}

/* While one shard is built, the next one is collected. */
static uint64_t need(const struct slu_shard_format *f, const struct slu_shard_bucket *b)
{
    return 2 * batch_byte(b) + f->build_byte(b);
}

/* Size of a shard: its sequences, or bytes of whole documents. */
static uint64_t size_of(const struct slu_shard_bucket *b)
{
    return b->length ? b->shard_sequences : b->rule.size;
}

static bool fits(const struct slu_shards *s, const struct slu_shard_bucket *b,
                 uint64_t size)
{
    struct slu_shard_bucket k = *b;

    *(b->length ? &k.shard_sequences : &k.rule.size) = size;
    return size < UINT32_MAX && need(s->cfg.format, &k) <= s->cfg.memory_byte;
}

/* The largest size of a shard of b that fits; `high` does not fit. */
static uint64_t most(const struct slu_shards *s, const struct slu_shard_bucket *b,
                     uint64_t high)
{
    uint64_t low = 0;

    while (high - low > 1) {
        uint64_t k = low + (high - low) / 2;
        *(fits(s, b, k) ? &low : &high) = k;
    }
    return low;
}

uint64_t slu_shards_auto(const struct slu_shard_format *f,
                         const struct slu_shard_bucket *b)
{
    struct slu_shard_bucket k = *b;
    uint64_t n = f->shard_sequences(b);

    if (!f->build)
        return n;
    for (k.shard_sequences = n; k.shard_sequences > 1 && need(f, &k) > AUTO_BYTE;)
        k.shard_sequences = UINT64_C(1)
                            << (63 - __builtin_clzll(k.shard_sequences - 1));
    return k.shard_sequences;
}

int slu_shards_check_memory(const struct slu_shards *s, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    const struct slu_shard_bucket *large = NULL, *b;
    const char *unit = s->cfg.documents ? "bytes" : "sequences";
    uint64_t n = UINT64_MAX;

    for (unsigned i = s->n_bucket; i-- > 0 && s->cfg.memory_byte;)
        if (b = &s->bucket[i].pub, !fits(s, b, size_of(b)))
            large = b;
    if (!large)
        return SLU_OK;
    for (unsigned i = 0; i < s->n_bucket; i++) { /* n counts all shards */
        uint64_t k = most(s, &s->bucket[i].pub, UINT32_MAX);
        n = k < n ? k : n;
    }
    if (n == 0)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_USAGE,
                     "format %s: a shard of one sequence does not fit in memory",
                     f->name));
    return slu_advise(
        err,
        s->cfg.documents ? SLU_ADVISE_MEMORY_OR_SHARD_BYTES
                         : SLU_ADVISE_MEMORY_OR_SHARDS,
        slu_fail(err, SLU_E_USAGE,
                 "format %s builds shards in memory: a shard of %llu %s of %s takes "
                 "%llu MiB, and there are %llu MiB, enough for %llu %s",
                 f->name, (unsigned long long)size_of(large), unit, large->name,
                 (unsigned long long)(need(f, large) >> 20),
                 (unsigned long long)(s->cfg.memory_byte >> 20), (unsigned long long)n,
                 unit));
}

/* Number of shards that may be in memory at a time. */
static unsigned slots(const struct slu_shards *s, unsigned n_threads)
{
    uint64_t n = n_threads + 1;

    for (unsigned i = 0; i < s->n_bucket && s->cfg.memory_byte; i++) {
        const struct slu_shard_bucket *b = &s->bucket[i].pub;
        uint64_t one = batch_byte(b) + s->cfg.format->build_byte(b),
                 fit = (s->cfg.memory_byte - batch_byte(b)) / one;
        if (fit < n)
            n = fit;
    }
    return n < 1 ? 1 : (unsigned)n;
}

/* ---- the pipeline ---- */

struct job {
    struct slu_batch b;
    bucket *bucket;
    struct slu_shards_done shard;
    struct slu_shards_files *files; /* the files that were written, or NULL */
    struct slu_sum sum;             /* sum of its sequences with their tokens */
    bool drop;                      /* a short last shard that is dropped */
    struct slu_buf out[SLU_SHARD_FILES];
};

struct run {
    struct slu_shards *s;
    slu_shards_source *source;
    void *ctx;
    struct slu_batch in; /* a batch of the source; sequences before `at` were taken */
    size_t at;
    bool ended;
    bucket *last;  /* the bucket of the last sequence */
    unsigned left; /* at the end of the input: buckets before this one are done */
};

/* Moves the bucket's sequences to the job. */
static int take(struct run *t, bucket *b, struct job *j, struct slu_err *err)
{
    struct slu_batch empty = j->b;

    slu_batch_clear(&empty);
    empty.masks = t->s->masks;
    j->b = b->batch;
    b->batch = empty;
    j->bucket = b;
    j->shard = (struct slu_shards_done){
        .facts = {.number = b->first + b->n_planned - 1, .n_seq = j->b.n_seq}};
    for (size_t i = 0; i < j->b.n_seq; i++)
        j->shard.facts.n_tok += j->b.seq[i].len_tok;
    j->drop = t->s->cfg.drop_last && j->b.n_seq < b->pub.shard_sequences;
    return j->drop || b->rows ? SLU_OK : slu_shards_begin_bucket(t->s, b, err);
}

static int bucket_of(struct run *t, const struct slu_seq *q, bucket **of,
                     struct slu_err *err)
{
    int k = slu_shards_bucket_of(t->s, q->len_tok);

    if (k < 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "a sequence of %llu tokens belongs to no bucket",
                        (unsigned long long)q->len_tok);
    *of = &t->s->bucket[k];
    return SLU_OK;
}

/* Adds a sequence to its shard; *last: which is then full. */
static int add(struct run *t, bucket *b, const struct slu_seq *q, bool *last,
               struct slu_err *err)
{
    const struct slu_shard_most most = slu_shard_most(&b->pub);
    struct slu_shards_place place = {0};
    int rc = slu_shards_plan(t->s, b, q->len_tok, &place, err);

    *last = place.last;
    if (!rc && t->s->cfg.documents)
        rc = slu_shards_check_document(t->s, &t->in.seg[q->seg_off], q->n_seg,
                                       q->len_tok, err);
    /* Allocated once, without spare memory; of documents, all but a long last one. */
    if (!rc && b->batch.n_seq == 0 && t->s->cfg.memory_byte &&
        slu_batch_has_ids(&t->in))
        rc = slu_buf_reserve(
            &b->batch.own,
            (b->pub.length ? most.n_tok : most.longest) * b->batch.tok_bytes, err);
    if (rc)
        return rc;
    b->batch.marks_only = t->in.marks_only;
    return slu_batch_add(&b->batch, t->in.tok ? slu_batch_at(&t->in, q->tok_off) : NULL,
                         q->len_tok, &t->in.seg[q->seg_off], q->n_seg, t->in.str.data,
                         err);
}

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;

    while (!t->ended) {
        while (t->at < t->in.n_seq) {
            const struct slu_seq *q = &t->in.seq[t->at];
            bucket *b = NULL, *last = t->last;
            int rc = bucket_of(t, q, &b, err);
            if (rc)
                return rc;
            t->last = b;
            if (t->s->cfg.by_bucket && last && last != b) {
                rc = last->batch.n_seq ? take(t, last, job, err) : SLU_EOF;
                slu_batch_release(&last->batch); /* the bucket gets no more sequences */
                slu_shards_batch(t->s, &last->batch);
                if (rc != SLU_EOF)
                    return rc;
            }
            t->at++;
            bool full = false;
            rc = add(t, b, q, &full, err);
            if (rc || full)
                return rc ? rc : take(t, b, job, err);
        }
        int rc = t->source(t->ctx, NULL, &t->in, err);
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

static int write_files(struct slu_shards *s, struct job *j, struct slu_err *err)
{
    int rc = slu_shards_files_open(s, j->bucket, j->shard.facts.number, &j->files, err);

    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++) {
        rc = slu_out_write(j->files->out[i], j->out[i].data, j->out[i].len, err);
        if (!rc)
            slu_out_begin_sync(j->files->out[i]);
    }
    return rc;
}

/* Computes the sum of the shard's sequences, and its content hash. given: neither ids nor
 * content are known. */
static void add_up(struct job *j, bool given)
{
    struct slu_batch *b = &j->b;

    slu_batch_sum(b);
    j->sum = b->sum;
    if (given) {
        j->sum.checksum = j->sum.mask_checksum = (struct slu_u128){0, 0};
        return;
    }
    for (size_t i = 0; i < b->n_seq && !j->drop; i++) {
        const struct slu_seq *q = &b->seq[i];
        struct slu_u128 h = slu_batch_hash(b, q->tok_off, q->len_tok);
        if (b->masks)
            h = slu_mask_hash(slu_batch_at(b, q->tok_off), q->len_tok, h);
        j->shard.content = slu_u128_add(
            j->shard.content, slu_shards_content(i, h, &b->seg[q->seg_off], q->n_seg));
    }
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    struct slu_shard at = {.bucket = &j->bucket->pub,
                           .number = j->shard.facts.number,
                           .n_seq = j->shard.facts.n_seq,
                           .n_tok = j->shard.facts.n_tok};
    int rc = SLU_OK;

    (void)worker;
    const struct slu_shards_done *done = slu_shards_done(j->bucket, at.number);
    add_up(j, done && done->given);
    if (j->drop)
        return SLU_OK;
    for (unsigned i = 0; i < SLU_SHARD_FILES; i++)
        slu_buf_clear(&j->out[i]);
    if (!done) {
        rc = t->s->cfg.format->build(t->s->state, &at, &j->b, j->out, &j->shard.facts,
                                     err);
        if (!rc)
            rc = write_files(t->s, j, err);
    }
    slu_batch_drop_ids(&j->b); /* from here on only the rows */
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
    struct slu_shards_item it = {j->bucket, j->files, j->shard, j->sum};
    j->files = NULL;
    int rc = slu_shards_close(t->s, &it, err);
    return rc ? rc : slu_shards_put_rows(t->s, j->bucket, &j->b, err);
}

int slu_shards_build(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct run t = {.s = s, .source = source, .ctx = ctx};
    unsigned most = slots(s, n_threads);

    n_slots = n_slots < most ? n_slots : most;
    struct job *job = calloc(n_slots, sizeof *job);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = job && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *job);

    slu_shards_batch(s, &t.in);
    for (unsigned i = 0; i < n_slots && !rc; i++) {
        slu_shards_batch(s, &job[i].b);
        slot[i] = &job[i];
    }
    if (!rc)
        rc = slu_pipe_run(&ops, &t, slot, n_slots, n_threads, err);
    for (unsigned i = 0; job && i < n_slots; i++) {
        slu_shards_files_abort(job[i].files);
        slu_batch_release(&job[i].b);
        for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
            slu_buf_release(&job[i].out[f]);
    }
    slu_batch_release(&t.in);
    free(job);
    free(slot);
    return rc;
}
