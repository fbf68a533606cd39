/* shard_stream.c - for formats that stream: takes sequences (serial), encodes them
 * (parallel), and writes them (serial). */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard_ids.h"
#include "formats/shards/shard_private.h"
#include "lib/base/pipe.h"
#include "lib/flow/bytelog.h"

enum {
    WRITE = 64 << 10, /* bytes of a file between two writes: they stay in the cache */
    ROWS = 4096,      /* sequences whose rows are put at once, */
    MARKS = 1 << 20,  /* or fewer, with so many bytes of marked ids */
    LONG = 48, /* bytes of memory for each id of a sequence that is encoded at once */
    KEPT = 4 << 20, /* bytes of kept_files in memory */
    PIECE = 8192,   /* ids that the engine writes at once */
};

typedef struct slu_shards_bucket bucket;

/* ---- one shard ---- */

static bool flushed(const struct slu_shard_format *f, unsigned file)
{
    return f->flush_files >> file & 1;
}

/* end: of the shard, whose file of flushed bytes is not left without any. */
static int drain_to(struct slu_shards *s, bucket *b, unsigned file, bool end,
                    struct slu_err *err)
{
    struct slu_buf *bytes = &b->unwritten[file];
    bool *has = &b->files->has[file];
    int rc = SLU_OK;

    if (flushed(s->cfg.format, file) && (bytes->len || (end && !*has))) {
        slu_buf_clear(&s->flushed);
        rc = s->cfg.format->flush(s->state, file, bytes, &s->flushed, err);
        slu_buf_clear(&b->unwritten[file]);
        bytes = &s->flushed;
    }
    if (!rc && bytes->len)
        rc = slu_out_write(b->files->out[file], bytes->data, bytes->len, err);
    *has = *has || bytes->len;
    slu_buf_clear(bytes);
    return rc;
}

static int drain(struct slu_shards *s, bucket *b, unsigned file, struct slu_err *err)
{
    return drain_to(s, b, file, false, err);
}

static int begin_shard(struct slu_shards *s, bucket *b, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_shard at = {.bucket = &b->pub, .number = b->first + b->n_ended};
    int rc = b->rows ? SLU_OK : slu_shards_begin_bucket(s, b, err);

    if (rc || slu_shards_done(b, at.number))
        return rc;
    rc = slu_shards_files_open(s, b, at.number, &b->files, err);
    if (!rc && s->cfg.documents && f->kept_files)
        rc = slu_bytelog_new(&b->kept, KEPT, s->cfg.tmpdir, err);
    return rc || !f->begin ? rc : f->begin(s->state, &at, b->unwritten, err);
}

/* Puts the rows that wait, and with masks the marks of their tokens. */
static int put_rows(struct slu_shards *s, bucket *b, struct slu_err *err)
{
    slu_batch_drop_ids(&b->batch);
    int rc = slu_shards_put_rows(s, b, &b->batch, err);
    slu_batch_trim(&b->batch);
    return rc;
}

/* Ends the current shard, which is complete. */
static int end_shard(struct slu_shards *s, bucket *b, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_shard at = {&b->pub, b->first + b->n_ended, b->n_here, b->n_tok_here,
                           b->kept};
    struct slu_shards_item it = {
        .bucket = b,
        .done = {.facts = {.number = at.number, .n_seq = at.n_seq, .n_tok = at.n_tok},
                 .content = b->content},
        .sum = b->here,
    };
    int rc = SLU_OK;

    if (b->kept)
        rc = slu_bytelog_rewind(b->kept, SLU_SHARD_KEPT, err);
    for (unsigned i = 0; b->files && i < slu_shards_n_file(s) && !rc; i++) {
        rc = drain_to(s, b, i, true, err);
        if (!rc && f->end)
            rc = f->end(s->state, &at, i, b->files->out[i], err);
    }
    if (rc)
        return rc;
    slu_bytelog_free(b->kept);
    b->kept = NULL;
    it.files = b->files;
    b->files = NULL;
    b->n_ended++;
    rc = slu_shards_close(s, &it, err);
    if (!rc)
        rc = put_rows(s, b, err);
    b->here = (struct slu_sum){0};
    b->content = (struct slu_u128){0, 0};
    b->n_here = b->n_tok_here = 0;
    return rc;
}

/* Ends a bucket at the end of the input. */
static int end_bucket(struct slu_shards *s, bucket *b, struct slu_err *err)
{
    if (b->n_here && !s->cfg.drop_last)
        return end_shard(s, b, err);
    slu_sum_add(&s->dropped, &b->here);
    slu_shards_files_abort(b->files);
    b->files = NULL;
    b->n_here = b->n_tok_here = 0;
    slu_batch_clear(&b->batch);
    return SLU_OK;
}

/* ---- the pipeline ---- */

struct row {
    unsigned bucket;
    bool done;  /* written by an earlier run: not encoded */
    bool given; /* without ids: not hashed */
    struct slu_shards_place place;
    size_t end[SLU_SHARD_FILES];         /* end of its bytes in enc */
    struct slu_u128 hash, mask, content; /* mask: 0 without masks */
};

struct job {
    struct slu_batch b;
    struct slu_buf row, enc[SLU_SHARD_FILES];
};

struct run {
    struct slu_shards *s;
    slu_shards_source *source;
    void *ctx;
    struct slu_pipe *pipe;
    bool alone; /* one thread: emit encodes, so that no bytes are copied */
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    int rc = t->source(t->ctx, t->pipe, &j->b, err);

    if (rc)
        return rc;
    slu_buf_clear(&j->row);
    rc = slu_buf_reserve(&j->row, j->b.n_seq * sizeof(struct row), err);
    if (rc)
        return rc;
    struct row *row = (void *)j->row.data;
    for (size_t i = 0; i < j->b.n_seq && !rc; i++) {
        int k = slu_shards_bucket_of(t->s, j->b.seq[i].len_tok);
        if (k < 0)
            return slu_fail(err, SLU_E_MISMATCH,
                            "a sequence of %llu tokens belongs to no bucket",
                            (unsigned long long)j->b.seq[i].len_tok);
        bucket *b = &t->s->bucket[k];
        row[i].bucket = (unsigned)k;
        rc = slu_shards_plan(t->s, b, j->b.seq[i].len_tok, &row[i].place, err);
        const struct slu_shards_done *done = slu_shards_done(b, row[i].place.number);
        row[i].done = done;
        row[i].given = done && done->given;
    }
    return rc;
}

/* Hashes sequence i. */
static void hash(const struct job *j, struct row *row, const struct slu_seq *q)
{
    row->hash = slu_batch_hash(&j->b, q->tok_off, q->len_tok);
    row->mask = j->b.masks ? slu_mask_hash(slu_batch_at(&j->b, q->tok_off), q->len_tok,
                                           row->hash)
                           : (struct slu_u128){0, 0};
    row->content =
        slu_shards_content(row->place.index, j->b.masks ? row->mask : row->hash,
                           &j->b.seg[q->seg_off], q->n_seg);
}

/* Whether a sequence is written in pieces. */
static bool is_long(const struct slu_shards *s, uint64_t n_id)
{
    return s->cfg.format->write && s->cfg.memory_byte &&
           n_id > s->cfg.memory_byte / LONG;
}

static struct slu_shard_seq seq_of(const struct job *j, size_t i)
{
    const struct row *row = (const struct row *)(const void *)j->row.data + i;
    const struct slu_seq *q = &j->b.seq[i];

    return (struct slu_shard_seq){
        slu_batch_at(&j->b, q->tok_off), q->len_tok, row->place.at,
        &j->b.seg[q->seg_off],           q->n_seg,   j->b.str.data};
}

/* Hashes sequence i, and appends its bytes to out, an array of files' buffers, unless it
 * is long. */
static int encode(struct slu_shards *s, struct job *j, size_t i, struct slu_buf *out,
                  struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct row *row = (struct row *)(void *)j->row.data + i;
    int rc = SLU_OK;

    if (row->given) {
        row->hash = row->mask = row->content = (struct slu_u128){0, 0};
        return SLU_OK;
    }
    const struct slu_shard_seq seq = seq_of(j, i);
    if (s->cfg.documents)
        rc = slu_shards_check_document(s, seq.seg, seq.n_seg, seq.n_id, err);
    hash(j, row, &j->b.seq[i]);
    if (!rc && !row->done && !is_long(s, seq.n_id))
        rc = f->encode(s->state, &s->bucket[row->bucket].pub, row->place.index, &seq,
                       out, err);
    return rc;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    struct row *row = (void *)j->row.data;
    int rc = SLU_OK;

    (void)worker;
    for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
        slu_buf_clear(&j->enc[f]);
    for (size_t i = 0; i < j->b.n_seq && !rc; i++) {
        rc = encode(t->s, j, i, j->enc, err);
        for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
            row[i].end[f] = j->enc[f].len;
    }
    return rc;
}

/* With --last drop, the rows of the current shard wait, because the shard may be
 * dropped. */
static int check_rows(const struct slu_shards *s, const bucket *b, struct slu_err *err)
{
    uint64_t n_byte = b->batch.n_seq * sizeof(struct slu_seq) +
                      b->batch.n_seg * sizeof(struct slu_seg) + b->batch.str.len +
                      b->batch.own.len;

    if (!s->cfg.drop_last || !s->cfg.memory_byte || n_byte <= s->cfg.memory_byte)
        return SLU_OK;
    return slu_advise(err, SLU_ADVISE_MEMORY_OR_SHARDS,
                      slu_fail(err, SLU_E_LIMIT,
                               "last drop keeps the segments of a whole shard of %s in "
                               "memory, and they do not fit",
                               b->pub.name));
}

/* Appends encoded bytes to a file. A long text is not copied, but written from where it
 * is, in pieces. */
static int put_encoded(struct slu_shards *s, bucket *b, unsigned file, const uint8_t *p,
                       size_t n, struct slu_err *err)
{
    if (n < WRITE || flushed(s->cfg.format, file) ||
        s->cfg.format->kept_files >> file & 1)
        return slu_buf_append(&b->unwritten[file], p, n, err);
    int rc = drain(s, b, file, err);
    for (size_t k; n && !rc; p += k, n -= k) {
        k = n < WRITE ? n : WRITE;
        rc = slu_out_write(b->files->out[file], p, k, err);
    }
    return rc;
}

/* Appends the ids of a sequence, and with masks their bytes, to the files that have
 * nothing else (raw_ids). */
static int put_ids(struct slu_shards *s, bucket *b, const struct job *j,
                   const struct slu_seq *q, struct slu_err *err)
{
    const unsigned width = slu_header_stored(&s->header), mask = s->cfg.format->n_file;
    struct slu_buf *to = &b->unwritten[0], *marks = &b->unwritten[mask];
    uint32_t plain[PIECE];
    int rc = SLU_OK;

    for (uint64_t at = 0, n; at < q->len_tok && !rc; at += n) {
        const void *tok = slu_batch_at(&j->b, q->tok_off + at);
        n = q->len_tok - at < PIECE ? q->len_tok - at : PIECE;
        if (j->b.masks) {
            const uint32_t *marked = tok;
            rc = slu_buf_reserve(marks, n, err);
            for (uint64_t i = 0; i < n && !rc; i++)
                marks->data[marks->len++] = (uint8_t)(marked[i] >> 31);
            slu_mask_split(marked, n, plain, width, NULL);
            tok = plain;
        }
        if (!rc)
            rc = slu_shard_ids_widen(to, tok, n, width, b->pub.id_bytes, err);
        if (!rc && to->len >= WRITE)
            rc = drain(s, b, 0, err);
        if (!rc && j->b.masks && marks->len >= WRITE)
            rc = drain(s, b, mask, err);
    }
    return rc;
}

/* Appends the bytes of sequence i to its bucket's files. from: where its bytes begin in
 * enc; NULL: they are not made yet, and are made in their place. */
static int put_bytes(struct slu_shards *s, bucket *b, struct job *j, size_t i,
                     const size_t *from, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    const struct row *row = (const struct row *)(const void *)j->row.data + i;
    const unsigned n_file = slu_shards_n_file(s);
    bool run = b->n_here && b->n_here % SLU_SHARD_RUN == 0;
    size_t had[SLU_SHARD_FILES];
    int rc = SLU_OK;

    for (unsigned k = 0; k < n_file && !rc; k++) {
        struct slu_buf *to = &b->unwritten[k];
        if (flushed(f, k) ? run : to->len >= WRITE)
            rc = drain(s, b, k, err);
        had[k] = to->len;
        if (!rc && from && row->end[k] > from[k])
            rc = put_encoded(s, b, k, j->enc[k].data + from[k], row->end[k] - from[k],
                             err);
    }
    if (!rc && !from)
        rc = encode(s, j, i, b->unwritten, err);
    if (!rc && f->raw_ids)
        rc = put_ids(s, b, j, &j->b.seq[i], err);
    const struct slu_shard_seq seq = seq_of(j, i);
    if (!rc && is_long(s, seq.n_id)) {
        rc = drain(s, b, 0, err);
        if (!rc)
            rc = f->write(s->state, &b->pub, row->place.index, &seq, b->files->out[0],
                          err);
    }
    for (unsigned k = 0; k < n_file && !rc && b->kept; k++)
        if (f->kept_files >> k & 1) {
            struct slu_buf *to = &b->unwritten[k];
            rc = slu_bytelog_put(b->kept, to->data + had[k], to->len - had[k], err);
            to->len = had[k];
        }
    return rc;
}

static int put_sequence(struct slu_shards *s, struct job *j, size_t i,
                        const size_t *from, struct slu_err *err)
{
    const struct row *row = (const struct row *)(const void *)j->row.data + i;
    const struct slu_seq *q = &j->b.seq[i];
    bucket *b = &s->bucket[row->bucket];
    int rc = b->n_here ? SLU_OK : begin_shard(s, b, err);

    if (!rc && !row->done)
        rc = put_bytes(s, b, j, i, from, err);
    else if (!rc && !from)
        rc = encode(s, j, i, NULL, err);
    if (!rc)
        rc = slu_batch_add(&b->batch, s->masks ? slu_batch_at(&j->b, q->tok_off) : NULL,
                           q->len_tok, &j->b.seg[q->seg_off], q->n_seg, j->b.str.data,
                           err);
    if (rc)
        return rc;
    b->n_here++;
    b->n_tok_here += q->len_tok;
    b->content = slu_u128_add(b->content, row->content);
    b->here.checksum = slu_u128_add(b->here.checksum, row->hash);
    b->here.mask_checksum = slu_u128_add(b->here.mask_checksum, row->mask);
    slu_count_add(&b->here.n, slu_seq_count(&j->b, q));
    if (row->place.last)
        return end_shard(s, b, err);
    if ((b->batch.n_seq >= ROWS || b->batch.own.len >= MARKS) && !s->cfg.drop_last)
        return put_rows(s, b, err);
    return b->n_here % ROWS ? SLU_OK : check_rows(s, b, err);
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    static const size_t zero[SLU_SHARD_FILES];
    struct run *t = ctx;
    struct job *j = job;
    const struct row *row = (const void *)j->row.data;
    int rc = SLU_OK;

    for (size_t i = 0; i < j->b.n_seq && !rc; i++)
        rc = put_sequence(t->s, j, i, t->alone ? NULL : i ? row[i - 1].end : zero, err);
    slu_batch_trim(&j->b);
    for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
        slu_buf_trim(&j->enc[f], SLU_KEEP_BYTE);
    return rc;
}

int slu_shards_stream(struct slu_shards *s, slu_shards_source *source, void *ctx,
                      unsigned n_threads, unsigned n_slots, struct slu_err *err)
{
    struct run t = {s, source, ctx, NULL, n_threads == 1};
    const struct slu_pipe_ops ops = {produce, t.alone ? NULL : work, emit};
    struct job *job = calloc(n_slots, sizeof *job);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = job && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *job);

    for (unsigned i = 0; i < n_slots && !rc; i++) {
        slu_shards_batch(s, &job[i].b);
        slot[i] = &job[i];
    }
    if (!rc)
        rc = slu_pipe_run_parts(&ops, &t, slot, n_slots, n_threads, &t.pipe, err);
    for (unsigned i = 0; job && i < n_slots; i++) {
        slu_batch_release(&job[i].b);
        slu_buf_release(&job[i].row);
        for (unsigned f = 0; f < SLU_SHARD_FILES; f++)
            slu_buf_release(&job[i].enc[f]);
    }
    free(job);
    free(slot);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = end_bucket(s, &s->bucket[i], err);
    return rc;
}
