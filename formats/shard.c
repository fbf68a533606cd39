/* shard.c - the engine behind every shard format: buckets, shards, files and books. */
#include "formats/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shard_dir.h"
#include "lib/json_write.h"
#include "lib/pipe.h"

enum {
    GATHER = 256 << 10, /* bytes of a shard between two writes */
    ROWS = 4096,        /* sequences' segments between two puts */
};

/* ---- formats ---- */

static const struct slu_shard_format *const formats[] = {&slu_shard_wds};
const char *const slu_shard_format_names[] = {"wds", "olmo",    "ds",      "megatron",
                                              "mds", "litdata", "parquet", NULL};

int slu_shard_format_find(const struct slu_shard_format **f, const char *name,
                          struct slu_err *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i]->name, name)) {
            *f = formats[i];
            return SLU_OK;
        }
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "--format %s is not built into this version; wds is", name);
}

/* ---- state ---- */

struct bucket {
    struct slu_shard_bucket pub;
    uint64_t n_planned;    /* sequences that jobs have taken */
    struct slu_out *shard; /* the one being written, or NULL */
    struct slu_buf gather; /* its bytes that wait */
    struct slu_writer *rows;
    struct slu_batch
        batch;           /* rows that wait; with drop_last those of the whole shard */
    uint64_t n_here;     /* sequences in the shard at hand */
    struct slu_sum here; /* and what they add up to */
    struct slu_sum sum;  /* of the complete shards */
    uint64_t n_short;    /* of the last shard, if it is short */
};

struct slu_shards {
    struct slu_shards_cfg cfg;
    char *dir;
    void *state; /* the format's */
    struct slu_header header;
    struct bucket bucket[SLU_MAX_BUCKETS];
    unsigned n_bucket;
    struct slu_sum sum, dropped;
    bool made_dir, made, finished;
    int lock; /* of the folder, or -1 */
};

static int check(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    const struct slu_header *h = cfg->header;
    const struct slu_shard_format *f = cfg->format;

    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens for shards");
    if (h->n_bucket == 0)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "the stream has no bucket lengths, which shards need; put "
            "'decompose', and 'pack' for what it leaves over, before shuffle");
    if (f->labels == SLU_LABELS_WANTED && !h->label_tokens && !cfg->force)
        return slu_fail(err, SLU_E_MISMATCH,
                        "--format %s wants one token more in each sequence, the last "
                        "label; use 'decompose --label-token', or --force to write the "
                        "sequences as they are",
                        f->name);
    if (f->labels == SLU_LABELS_UNWANTED && h->label_tokens && !cfg->force)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "--format %s wants sequences without a label token; use "
            "'decompose' without --label-token, or --force to write them as "
            "they are",
            f->name);
    for (unsigned i = 0; i < h->n_bucket && f->powers_of_two; i++)
        if (h->bucket[i] & (h->bucket[i] - 1))
            return slu_fail(
                err, SLU_E_MISMATCH,
                "--format %s has names for powers of two only, and there is "
                "a bucket of %llu; choose others with 'decompose --buckets'",
                f->name, (unsigned long long)h->bucket[i]);
    return cfg->force ? SLU_OK : slu_shard_dir_check(cfg->dir, err);
}

int slu_shards_new(struct slu_shards **out, const struct slu_shards_cfg *cfg,
                   struct slu_err *err)
{
    *out = NULL;
    int rc = check(cfg, err);
    if (rc)
        return rc;
    struct slu_shards *s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->cfg = *cfg;
    s->lock = -1;
    s->cfg.header = &s->header;
    slu_header_init(&s->header);
    s->cfg.dir = s->dir = strdup(cfg->dir);
    rc =
        s->dir ? slu_header_copy(&s->header, cfg->header, err) : slu_fail_nomem(err, 1);
    if (rc == SLU_OK)
        rc = cfg->format->init(&s->state, err);
    s->header.no_tokens = true;
    s->n_bucket = s->header.n_bucket;
    for (unsigned i = 0; i < s->n_bucket; i++) {
        struct slu_shard_bucket *b = &s->bucket[i].pub;
        b->length = s->header.bucket[i];
        b->n_id = slu_header_ids(&s->header, b->length);
        b->tok_bytes = s->header.tok_bytes;
        b->shard_sequences = cfg->shard_sequences
                                 ? cfg->shard_sequences
                                 : cfg->format->shard_sequences(b->length);
        slu_shard_bucket_name(b->length, b->name);
        slu_batch_init(&s->bucket[i].batch, b->tok_bytes);
    }
    if (rc)
        slu_shards_free(s);
    else
        *out = s;
    return rc;
}

/* ---- one shard ---- */

static struct slu_shard shard_at(const struct bucket *b)
{
    return (struct slu_shard){&b->pub, b->pub.n_shard, b->n_here};
}

static int drain(struct bucket *b, struct slu_err *err)
{
    int rc = slu_out_write(b->shard, b->gather.data, b->gather.len, err);

    slu_buf_clear(&b->gather);
    return rc;
}

static int open_out(struct slu_shards *s, const char *folder, const char *name,
                    const char *suffix, struct slu_out **out, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s/%s%s", s->dir, folder, name, suffix);

    if (rc == SLU_OK)
        rc = slu_out_open(out, (const char *)path.data, err);
    slu_buf_release(&path);
    return rc;
}

static int begin_bucket(struct slu_shards *s, struct bucket *b, struct slu_err *err)
{
    struct slu_writer_cfg cfg = {s->cfg.zstd_level, false, s->cfg.names};
    struct slu_out *out;
    struct slu_buf path = SLU_BUF_INIT;
    int rc = slu_buf_printf(&path, err, "%s/%s", s->dir, b->pub.name);

    if (rc == SLU_OK)
        rc = slu_mkdirs((const char *)path.data, err);
    slu_buf_release(&path);
    if (rc == SLU_OK)
        rc = open_out(s, "segments", b->pub.name, ".tks", &out, err);
    return rc ? rc : slu_writer_open(&b->rows, out, &s->header, &cfg, err);
}

static int begin_shard(struct slu_shards *s, struct bucket *b, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_shard at = shard_at(b);
    char name[256];
    int rc = b->rows ? SLU_OK : begin_bucket(s, b, err);

    if (rc)
        return rc;
    f->file_name(b->pub.n_shard, name, sizeof name);
    rc = open_out(s, b->pub.name, name, "", &b->shard, err);
    return rc || !f->begin ? rc : f->begin(s->state, &at, &b->gather, err);
}

static int put_rows(struct bucket *b, struct slu_err *err)
{
    int rc = slu_writer_put(b->rows, &b->batch, err);

    slu_batch_clear(&b->batch);
    return rc;
}

/* The shard at hand is whole. */
static int end_shard(struct slu_shards *s, struct bucket *b, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_shard at = shard_at(b);
    struct slu_out *out = b->shard;
    int rc = f->end ? f->end(s->state, &at, &b->gather, err) : SLU_OK;

    if (rc == SLU_OK)
        rc = drain(b, err);
    if (rc)
        return rc;
    b->shard = NULL;
    rc = slu_out_close(out, err);
    if (rc)
        return rc;
    b->pub.n_shard++; /* from here on slu_shards_free takes it away */
    b->pub.n_seq += b->n_here;
    if (f->beside) {
        char name[256];
        f->file_name(at.number, name, sizeof name);
        rc = open_out(s, b->pub.name, name, f->beside_suffix, &out, err);
        if (rc)
            return rc;
        rc = f->beside(s->state, &at, out, err);
        if (rc)
            slu_out_abort(out);
        else
            rc = slu_out_close(out, err);
    }
    if (rc == SLU_OK)
        rc = put_rows(b, err);
    slu_sum_add(&b->sum, &b->here);
    b->here = (struct slu_sum){0};
    b->n_here = 0;
    return rc;
}

/* What is left of a bucket at the end of the input, and its manifest. */
static int end_bucket(struct slu_shards *s, struct bucket *b, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    struct slu_out *out;
    int rc = SLU_OK;

    if (b->n_here && s->cfg.drop_last) {
        slu_sum_add(&s->dropped, &b->here);
        slu_out_abort(b->shard);
        b->shard = NULL;
        b->n_here = 0;
        slu_batch_clear(&b->batch);
    } else if (b->n_here) {
        b->n_short = b->n_here;
        rc = end_shard(s, b, err);
    }
    if (rc || !b->rows)
        return rc;
    if (b->pub.n_seq == 0) { /* all of it was dropped */
        slu_writer_abort(b->rows);
        b->rows = NULL;
        return slu_shard_dir_drop_bucket(s->dir, b->pub.name, err);
    }
    const struct slu_sum *rows = slu_writer_sum(b->rows);
    if (memcmp(&rows->n, &b->sum.n, sizeof rows->n))
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %s has %llu sequences in its shards and %llu in "
            "its segments; please report it",
            b->pub.name, (unsigned long long)b->sum.n.sequences,
            (unsigned long long)rows->n.sequences);
    slu_sum_add(&s->sum, rows);
    s->sum.checksum = slu_u128_add(s->sum.checksum, b->sum.checksum);
    struct slu_writer *w = b->rows;
    b->rows = NULL;
    rc = slu_writer_close(w, err);
    if (rc || !f->bucket)
        return rc;
    rc = open_out(s, b->pub.name, f->bucket_file, "", &out, err);
    if (rc)
        return rc;
    rc = f->bucket(s->state, &b->pub, out, err);
    if (rc == SLU_OK)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

/* ---- the pipeline: take (serial), encode (parallel), write (serial) ---- */

struct row {
    unsigned bucket;
    uint64_t index; /* in its shard */
    size_t end;     /* of its bytes in enc */
    struct slu_u128 hash;
};

struct job {
    struct slu_batch b;
    struct slu_buf row, enc;
};

struct run {
    struct slu_shards *s;
    slu_shards_source *source;
    void *ctx;
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    int rc = t->source(t->ctx, &j->b, err);

    if (rc)
        return rc;
    slu_buf_clear(&j->row);
    rc = slu_buf_reserve(&j->row, j->b.n_seq * sizeof(struct row), err);
    if (rc)
        return rc;
    struct row *row = (void *)j->row.data;
    for (size_t i = 0; i < j->b.n_seq; i++) {
        int k = slu_header_bucket_of(&t->s->header, j->b.seq[i].len_tok);
        if (k < 0)
            return slu_fail(err, SLU_E_MISMATCH,
                            "a sequence of %llu tokens is in no bucket",
                            (unsigned long long)j->b.seq[i].len_tok);
        struct bucket *b = &t->s->bucket[k];
        row[i].bucket = (unsigned)k;
        row[i].index = b->n_planned++ % b->pub.shard_sequences;
    }
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    struct row *row = (void *)j->row.data;

    (void)worker;
    slu_buf_clear(&j->enc);
    for (size_t i = 0; i < j->b.n_seq; i++) {
        const struct slu_seq *q = &j->b.seq[i];
        const void *tok = slu_batch_at(&j->b, q->tok_off);
        int rc = t->s->cfg.format->encode(t->s->state, &t->s->bucket[row[i].bucket].pub,
                                          row[i].index, tok, &j->enc, err);
        if (rc)
            return rc;
        row[i].end = j->enc.len;
        row[i].hash = slu_hash_tokens(tok, q->len_tok, j->b.tok_bytes);
    }
    return SLU_OK;
}

static int put_sequence(struct slu_shards *s, struct bucket *b,
                        const struct slu_batch *from, const struct slu_seq *q,
                        const uint8_t *enc, size_t n, struct slu_u128 hash,
                        struct slu_err *err)
{
    int rc = b->shard ? SLU_OK : begin_shard(s, b, err);

    if (rc == SLU_OK)
        rc = slu_buf_append(&b->gather, enc, n, err);
    if (rc == SLU_OK && b->gather.len >= GATHER)
        rc = drain(b, err);
    if (rc == SLU_OK)
        rc = slu_batch_add(&b->batch, NULL, q->len_tok, &from->seg[q->seg_off],
                           q->n_seg, from->str.data, err);
    b->n_here++;
    b->here.checksum = slu_u128_add(b->here.checksum, hash);
    slu_count_add(&b->here.n, slu_seq_count(from, q));
    if (rc == SLU_OK && b->n_here == b->pub.shard_sequences)
        return end_shard(s, b, err);
    if (rc == SLU_OK && b->batch.n_seq >= ROWS && !s->cfg.drop_last)
        rc = put_rows(b, err);
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct run *t = ctx;
    struct job *j = job;
    const struct row *row = (const void *)j->row.data;
    int rc = SLU_OK;

    for (size_t i = 0, at = 0; i < j->b.n_seq && rc == SLU_OK; i++) {
        rc = put_sequence(t->s, &t->s->bucket[row[i].bucket], &j->b, &j->b.seq[i],
                          j->enc.data + at, row[i].end - at, row[i].hash, err);
        at = row[i].end;
    }
    return rc;
}

int slu_shards_write(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct run t = {s, source, ctx};
    struct job *job = calloc(n_slots, sizeof *job);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = job && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *job);

    for (unsigned i = 0; i < n_slots && rc == SLU_OK; i++) {
        slu_batch_init(&job[i].b, s->header.tok_bytes);
        slot[i] = &job[i];
    }
    if (rc == SLU_OK)
        rc = slu_shard_dir_prepare(s->dir, s->cfg.force, &s->made_dir, &s->lock, err);
    s->made = rc == SLU_OK;
    if (rc == SLU_OK)
        rc = slu_pipe_run(&ops, &t, slot, n_slots, n_threads, err);
    for (unsigned i = 0; job && i < n_slots; i++) {
        slu_batch_release(&job[i].b);
        slu_buf_release(&job[i].row);
        slu_buf_release(&job[i].enc);
    }
    free(job);
    free(slot);
    for (unsigned i = 0; i < s->n_bucket && rc == SLU_OK; i++)
        rc = end_bucket(s, &s->bucket[i], err);
    return rc;
}

/* ---- afterwards ---- */

unsigned slu_shards_n_bucket(const struct slu_shards *s)
{
    return s->n_bucket;
}

const struct slu_shard_bucket *slu_shards_bucket(const struct slu_shards *s, unsigned i)
{
    return &s->bucket[i].pub;
}

uint64_t slu_shards_short(const struct slu_shards *s, unsigned i)
{
    return s->bucket[i].n_short;
}

const struct slu_sum *slu_shards_sum(const struct slu_shards *s)
{
    return &s->sum;
}

const struct slu_sum *slu_shards_dropped(const struct slu_shards *s)
{
    return &s->dropped;
}

static int report_bucket(const struct slu_shards *s, const struct bucket *b, bool first,
                         struct slu_buf *t, struct slu_err *err)
{
    const struct slu_shard_bucket *p = &b->pub;
    int rc = slu_buf_printf(
        t, err,
        "%s\n    {\"name\": \"%s\", \"length\": %llu, \"ids\": %llu, \"sequences\": "
        "%llu, "
        "\"tokens\": %llu, \"documents\": %llu, \"shards\": %llu, "
        "\"shard_sequences\": %llu",
        first ? "" : ",", p->name, (unsigned long long)p->length,
        (unsigned long long)p->n_id, (unsigned long long)p->n_seq,
        (unsigned long long)b->sum.n.tokens, (unsigned long long)b->sum.n.documents,
        (unsigned long long)p->n_shard, (unsigned long long)p->shard_sequences);

    if (rc == SLU_OK && b->n_short)
        rc = slu_buf_printf(t, err, ", \"short_shard\": {\"sequences\": %llu",
                            (unsigned long long)b->n_short);
    if (rc == SLU_OK && b->n_short && p->n_shard > 1 &&
        s->cfg.format->short_shard_note) {
        rc = slu_buf_printf(t, err, ", \"note\": ");
        if (rc == SLU_OK)
            rc = slu_json_put_string(t, s->cfg.format->short_shard_note,
                                     strlen(s->cfg.format->short_shard_note), err);
    }
    if (rc == SLU_OK)
        rc = slu_buf_printf(t, err, b->n_short ? "}}" : "}");
    return rc;
}

static int report_provenance(const struct slu_shards *s, struct slu_buf *t,
                             struct slu_err *err)
{
    int rc = slu_buf_printf(t, err, "  \"provenance\": [");

    for (size_t i = 0; i < s->header.n_step && rc == SLU_OK; i++) {
        rc = slu_buf_printf(t, err, "%s\n    ", i ? "," : "");
        if (rc == SLU_OK)
            rc = slu_step_put_json(&s->header.step[i], t, err);
    }
    return rc ? rc : slu_buf_printf(t, err, "]\n}\n");
}

static int report(const struct slu_shards *s, const char *program,
                  const struct slu_ledger *ledger, struct slu_buf *t,
                  struct slu_err *err)
{
    char hex[33];
    unsigned n = 0;
    int rc = slu_buf_printf(t, err,
                            "{\n  \"program\": \"%s\",\n  \"format\": \"%s\",\n"
                            "  \"label_tokens\": %s,\n  \"buckets\": [",
                            program, s->cfg.format->name,
                            s->header.label_tokens ? "true" : "false");

    for (unsigned i = 0; i < s->n_bucket && rc == SLU_OK; i++)
        if (s->bucket[i].pub.n_seq)
            rc = report_bucket(s, &s->bucket[i], n++ == 0, t, err);
    slu_u128_hex(s->sum.checksum, hex);
    if (rc == SLU_OK)
        rc = slu_buf_printf(t, err,
                            "],\n  \"documents\": %llu,\n  \"sequences\": %llu,\n"
                            "  \"segments\": %llu,\n  \"tokens\": %llu,\n"
                            "  \"padding\": %llu,\n  \"checksum\": \"%s\",\n"
                            "  \"dropped\": {",
                            (unsigned long long)s->sum.n.documents,
                            (unsigned long long)s->sum.n.sequences,
                            (unsigned long long)s->sum.segments,
                            (unsigned long long)s->sum.n.tokens,
                            (unsigned long long)s->sum.padding, hex);
    for (unsigned i = 0; i < ledger->n_dropped && rc == SLU_OK; i++)
        rc = slu_buf_printf(t, err,
                            "%s\n    \"%s\": {\"documents\": %llu, \"sequences\": "
                            "%llu, \"tokens\": %llu}",
                            i ? "," : "", ledger->dropped[i].reason,
                            (unsigned long long)ledger->dropped[i].n.documents,
                            (unsigned long long)ledger->dropped[i].n.sequences,
                            (unsigned long long)ledger->dropped[i].n.tokens);
    if (rc == SLU_OK)
        rc = slu_buf_printf(t, err, "},\n");
    return rc ? rc : report_provenance(s, t, err);
}

/* fsync of every folder, so that the renames in them last. */
static int sync_folders(const struct slu_shards *s, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (unsigned i = 0; i <= s->n_bucket && rc == SLU_OK; i++) {
        const char *name = i < s->n_bucket ? s->bucket[i].pub.name : "segments";
        if (i < s->n_bucket && s->bucket[i].pub.n_seq == 0)
            continue;
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", s->dir, name);
        if (rc == SLU_OK)
            rc = slu_sync_dir((const char *)path.data, err);
    }
    slu_buf_release(&path);
    return rc;
}

int slu_shards_finish(struct slu_shards *s, const char *program,
                      const struct slu_ledger *ledger, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_out *out;
    int rc = sync_folders(s, err);

    if (rc == SLU_OK)
        rc = report(s, program, ledger, &text, err);
    if (rc == SLU_OK)
        rc = open_out(s, ".", "report.json", "", &out, err);
    if (rc)
        goto end;
    rc = slu_out_write(out, text.data, text.len, err);
    if (rc) {
        slu_out_abort(out);
        goto end;
    }
    rc = slu_out_close(out, err);
    if (rc)
        goto end;
    s->finished = true;
    rc = slu_sync_dir(s->dir, err);
end:
    slu_buf_release(&text);
    return rc;
}

void slu_shards_free(struct slu_shards *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->n_bucket; i++) {
        struct bucket *b = &s->bucket[i];
        slu_out_abort(b->shard);
        slu_writer_abort(b->rows);
        slu_buf_release(&b->gather);
        slu_batch_release(&b->batch);
    }
    if (s->made && !s->finished)
        slu_shard_dir_remove(s->dir, s->made_dir, NULL);
    if (s->lock >= 0)
        close(s->lock);
    if (s->cfg.format->release)
        s->cfg.format->release(s->state);
    slu_header_release(&s->header);
    free(s->dir);
    free(s);
}
