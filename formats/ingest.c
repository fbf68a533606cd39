#include "ingest.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "formats/ingest_private.h"
#include "formats/rejects.h"
#include "lib/encode_parts.h"
#include "lib/pipe.h"

#define MAX_FIELD_BYTE 65535 /* of ids and names in a stream */
#define MIN_BLOCK_BYTE ((uint64_t)64 << 10)
#define MAX_BLOCK_BYTE ((uint64_t)1 << 20)
#define MAX_CACHE_BYTE ((uint64_t)320 << 20)
/* Bytes in flight for each byte of a block: text, trees, ids, rejects. */
#define BLOCK_WEIGHT 10
/* The same for records larger than a block, which have no tree. */
#define GROWN_WEIGHT 4
/* Texts of more than two parts of this size are encoded by all threads together. */
#define MAX_PART_BYTE ((uint64_t)256 << 10)

/* What became of a part of a long text. */
struct part {
    const struct slu_record_ref *ref; /* NULL: there is none */
    size_t from, n_tok;               /* in the job's ids */
    uint64_t
        bad_off; /* of its first byte that is no UTF-8, in the text; or UINT64_MAX */
};

struct job {
    struct slu_block block;
    struct slu_ids ids; /* of all documents; batch and holdout point into it */
    struct slu_batch batch, holdout;
    struct slu_buf rejects;  /* JSON lines */
    struct part last, first; /* of a text that began before, and of one that goes on */
    struct slu_fate_row *fate; /* of the records so far */
    size_t n_fate, cap_fate;
    int rc; /* of the record behind these, where the run may end before it */
    struct slu_err err;
};

struct worker {
    struct slu_record_parser *parser;
    char *domain; /* the last one, and its number */
    size_t domain_len, domain_cap;
    uint32_t domain_number;
};

struct ingest {
    const struct slu_ingest_cfg *cfg;
    struct slu_encode_crew crew;
    struct slu_ingest_books books;
    struct slu_input *input;
    struct worker *worker;
    unsigned n_worker;
    uint32_t domain; /* of all documents, or SLU_NO_DOMAIN */
    unsigned tok_bytes;
    uint64_t n_tok;
    struct slu_long_text *text; /* whose parts are being emitted */

    /* Memory of records larger than a block: taken by produce, given back by emit.
     * produce may wait for it: the jobs before it need no further produce to be
     * emitted. */
    pthread_mutex_t lock;
    uint64_t grown_byte, max_grown_byte;
    bool failed; /* a job has failed, so nothing more will be given back */
    int quit_fd; /* an eventfd: the run has stopped; or -1 */
};

/* ---- memory ---- */

struct wanted {
    struct ingest *g;
    uint64_t has, n;
};

static bool is_free(void *arg)
{
    const struct wanted *w = arg;
    struct ingest *g = w->g;
    pthread_mutex_lock(&g->lock);
    bool yes = g->failed || g->grown_byte <= w->has ||
               (g->grown_byte + w->n) * GROWN_WEIGHT <= g->max_grown_byte;
    pthread_mutex_unlock(&g->lock);
    return yes;
}

static int claim(void *ctx, struct slu_block *b, uint64_t n, struct slu_err *err)
{
    struct ingest *g = ctx;
    struct wanted w = {g, b->claimed_byte, n};
    int rc = SLU_OK;
    slu_pipe_wait(g->crew.pipe, is_free, &w);
    pthread_mutex_lock(&g->lock);
    if (g->failed)
        rc = slu_fail(err, SLU_E_LIMIT,
                      "stopped"); /* never seen: an earlier job failed */
    else
        g->grown_byte += n;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

static void give_back(struct ingest *g, struct job *j)
{
    if (!j->block.claimed_byte)
        return;
    uint64_t n = j->block.claimed_byte;
    slu_block_release(&j->block);
    slu_ids_release(&j->ids);
    slu_buf_release(&j->rejects);
    pthread_mutex_lock(&g->lock);
    g->grown_byte -= n;
    pthread_mutex_unlock(&g->lock);
}

static void set_failed(struct ingest *g)
{
    pthread_mutex_lock(&g->lock);
    g->failed = true;
    pthread_mutex_unlock(&g->lock);
}

/* ---- the serial half ---- */

static int begin_source(void *ctx, uint64_t ordinal, struct slu_err *err)
{
    struct ingest *g = ctx;
    return slu_names_set_source(g->cfg->names, ordinal,
                                g->cfg->sources->item[ordinal].name, err);
}

static void end_source(void *ctx, uint64_t ordinal, uint64_t n_byte)
{
    struct ingest *g = ctx;
    g->books.stat->sources++;
    g->books.stat->empty_sources += n_byte == 0;
    g->books.stat->input_byte += n_byte;
    if (g->cfg->source_done)
        g->cfg->source_done(g->cfg->ctx, &g->cfg->sources->item[ordinal], n_byte);
}

static void break_source(void *ctx, uint64_t document, enum slu_reject reason,
                         const char *why)
{
    struct ingest *g = ctx;
    if (g->cfg->source_broken)
        g->cfg->source_broken(g->cfg->ctx, document, reason, why);
}

static size_t cut(void *ctx, const uint8_t *p, size_t n, size_t from)
{
    const struct ingest *g = ctx;
    return slu_encode_cut(g->cfg->tokenizer, p, n, from);
}

/* A fault downstream is not to wait for an upstream that is silent. */
static void stopped(void *ctx)
{
    const struct ingest *g = ctx;
    if (g->quit_fd >= 0)
        (void)eventfd_write(g->quit_fd, 1);
}

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct ingest *g = ctx;
    struct job *j = job;
    slu_pipe_on_stop(g->crew.pipe, stopped);
    return slu_input_fetch(g->input, &j->block, err);
}

/* ---- the parallel half ---- */

static void clear_job(struct job *j)
{
    j->ids.n = 0;
    slu_batch_clear(&j->batch);
    slu_batch_clear(&j->holdout);
    slu_buf_clear(&j->rejects);
    j->n_fate = 0;
    j->rc = SLU_OK;
    j->first.ref = j->last.ref = NULL;
}

/* What became of the next record. */
static int settle(struct job *j, unsigned what, uint64_t value, struct slu_err *err)
{
    int rc = slu_grow(&j->fate, &j->cap_fate, j->n_fate + 1, sizeof *j->fate, err);
    if (!rc)
        j->fate[j->n_fate++] = (struct slu_fate_row){
            .what = (uint8_t)what, .value = value & ((UINT64_C(1) << 56) - 1)};
    return rc;
}

static int reject(struct ingest *g, struct job *j, const struct slu_record_ref *ref,
                  const struct slu_record *rec, struct slu_err *err)
{
    struct slu_rejected r = {
        .source = &g->cfg->sources->item[ref->source],
        .ref = ref,
        .raw = j->block.raw.data + ref->off,
        .json = j->block.json,
        .row = j->block.rows,
        .reason = rec->reject,
        .off_byte = rec->off_byte,
        .field = rec->field,
    };
    if (!g->cfg->skip_bad)
        return slu_reject_fail(&r, err);
    int rc = settle(j, FATE_REJECTED + rec->reject, j->rejects.len, err);
    return rc || !g->cfg->rejects ? rc : slu_reject_write(&j->rejects, &r, err);
}

/* A text that is a document itself. */
static void text_record(const uint8_t *p, size_t n, struct slu_record *out)
{
    size_t valid = slu_utf8_valid_prefix(p, n);
    *out = (struct slu_record){
        .off_byte = UINT64_MAX, .text = (const char *)p, .text_len = n, .score = NAN};
    if (valid < n) {
        out->reject = SLU_REJECT_INVALID_UTF8;
        out->off_byte = valid;
    }
}

/* A row of columns. The first that applies, as in a JSON record: no UTF-8, a field that
 * is missing, a score that is no number. */
static void row_record(const struct slu_ingest_cfg *cfg, const struct slu_block *b,
                       const struct slu_record_ref *ref, struct slu_record *out)
{
    const struct slu_row_fields *f = &b->field[ref - b->rec];
    const char *name[] = {cfg->text_field, cfg->id_field, cfg->domain_field};
    const uint8_t *p = b->raw.data + ref->off;
    const size_t len[] = {ref->len, f->id_len, f->domain_len};
    *out = (struct slu_record){.off_byte = UINT64_MAX, .score = NAN};
    for (size_t k = 0; k < 3 && !out->reject; p += len[k++]) {
        size_t valid = slu_utf8_valid_prefix(p, len[k]);
        if (valid == len[k])
            continue;
        out->reject = SLU_REJECT_INVALID_UTF8;
        out->field = name[k];
        if (k == 0)
            out->off_byte = valid;
    }
    for (size_t k = 0; k < 3 && !out->reject; k++)
        if (f->null >> k & 1) {
            out->reject = SLU_REJECT_MISSING_FIELD;
            out->field = name[k];
        }
    if (!out->reject && f->scored && !isfinite(f->score)) {
        out->reject = SLU_REJECT_NOT_A_NUMBER;
        out->field = cfg->score_field;
    }
    if (out->reject)
        return;
    if (f->scored)
        out->score = f->score;
    p = b->raw.data + ref->off;
    out->text = (const char *)p;
    out->text_len = len[0];
    out->id = cfg->id_field ? (const char *)p + len[0] : NULL;
    out->id_len = len[1];
    out->domain = cfg->domain_field ? (const char *)p + len[0] + len[1] : NULL;
    out->domain_len = len[2];
}

static void check_lengths(const struct slu_ingest_cfg *cfg, struct slu_record *rec)
{
    if (rec->reject ||
        (rec->id_len <= MAX_FIELD_BYTE && rec->domain_len <= MAX_FIELD_BYTE))
        return;
    rec->reject = SLU_REJECT_LONG_FIELD;
    rec->field = rec->id_len > MAX_FIELD_BYTE ? cfg->id_field : cfg->domain_field;
}

static int domain_of(struct ingest *g, struct worker *w, const struct slu_record *rec,
                     uint32_t *number, struct slu_err *err)
{
    *number = g->domain;
    if (!rec->domain || rec->domain_len == 0)
        return SLU_OK;
    if (w->domain_len != rec->domain_len ||
        memcmp(w->domain, rec->domain, rec->domain_len) != 0) {
        w->domain_len = 0;
        int rc = slu_grow(&w->domain, &w->domain_cap, rec->domain_len, 1, err);
        if (!rc)
            rc = slu_names_domain_number(g->cfg->names, rec->domain, rec->domain_len,
                                         &w->domain_number, err);
        if (rc)
            return rc;
        memcpy(w->domain, rec->domain, rec->domain_len);
        w->domain_len = rec->domain_len;
    }
    *number = w->domain_number;
    return SLU_OK;
}

static int add_special(struct job *j, uint64_t id, struct slu_err *err)
{
    int rc = slu_grow(&j->ids.id, &j->ids.cap, j->ids.n + 1, sizeof *j->ids.id, err);
    if (!rc)
        j->ids.id[j->ids.n++] = (uint32_t)id;
    return rc;
}

static int encode(struct ingest *g, struct job *j, struct worker *w,
                  const struct slu_record *rec, struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    int rc = cfg->bos ? add_special(j, slu_tokenizer_bos(cfg->tokenizer), err) : SLU_OK;
    size_t before = j->ids.n;
    if (!rc)
        rc = slu_encode_parts(&g->crew, (unsigned)(w - g->worker), rec->text,
                              rec->text_len, &j->ids, err);
    if (rc)
        return rc;
    if (j->ids.n == before) { /* nothing but what the normaliser takes out */
        j->ids.n -= cfg->bos;
        return SLU_OK;
    }
    return cfg->eos ? add_special(j, slu_tokenizer_eos(cfg->tokenizer), err) : SLU_OK;
}

/* A sequence of one segment: ids from `from` on. */
static int add_document(struct ingest *g, struct job *j, struct worker *w,
                        const struct slu_record_ref *ref, const struct slu_record *rec,
                        size_t from, enum slu_fate fate, struct slu_err *err)
{
    struct slu_batch *b = fate == FATE_HELD ? &j->holdout : &j->batch;
    uint64_t len = j->ids.n - from;
    struct slu_seg seg = {
        .source = ref->source,
        .document = ref->document,
        .len_tok = len,
        .id_len = (uint32_t)rec->id_len,
        .id_off = b->str.len,
        .score = slu_score_bits(rec->score),
    };
    int rc = domain_of(g, w, rec, &seg.domain, err);
    if (!rc)
        rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (!rc && rec->id_len)
        rc = slu_buf_append(&b->str, rec->id, rec->id_len, err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){from, len, b->n_seg, 1};
    b->seg[b->n_seg++] = seg;
    return settle(j, fate, rec->text_len, err);
}

/* A part of a long text; emit joins them. */
static int take_part(struct ingest *g, struct job *j, unsigned worker,
                     const struct slu_record_ref *ref, struct slu_err *err)
{
    struct part *part = ref->part_off ? &j->last : &j->first;
    struct slu_record rec;
    int rc = SLU_OK;
    *part = (struct part){.ref = ref, .from = j->ids.n, .bad_off = UINT64_MAX};
    rc = settle(j, FATE_PART, 0, err);
    if (rc || ref->reject)
        return rc;
    text_record(j->block.raw.data + ref->off, ref->len, &rec);
    if (rec.reject) {
        part->bad_off = rec.off_byte += ref->part_off;
        return g->cfg->skip_bad ? SLU_OK : reject(g, j, ref, &rec, err);
    }
    if (rec.text_len > 0)
        rc = slu_encode(g->crew.encoder[worker], rec.text, rec.text_len, &j->ids, err);
    part->n_tok = j->ids.n - part->from;
    return rc;
}

static int take_record(struct ingest *g, struct job *j, struct worker *w,
                       const struct slu_record_ref *ref, struct slu_err *err)
{
    const uint8_t *raw = j->block.raw.data + ref->off;
    struct slu_record rec;
    int rc = SLU_OK;
    if (ref->part_off || ref->goes_on)
        return take_part(g, j, (unsigned)(w - g->worker), ref, err);
    if (ref->reject) { /* its source broke off at the end of what was read of it */
        rec = (struct slu_record){.reject = ref->reject, .off_byte = ref->len};
        return reject(g, j, ref, &rec, err);
    }
    if (j->block.json)
        rc = slu_record_parse(w->parser, raw, ref->len, &rec, err);
    else if (j->block.rows)
        row_record(g->cfg, &j->block, ref, &rec);
    else
        text_record(raw, ref->len, &rec);
    if (rc)
        return rc;
    check_lengths(g->cfg, &rec);
    if (rec.reject)
        return reject(g, j, ref, &rec, err);
    size_t from = j->ids.n;
    enum slu_fate fate = FATE_KEPT;
    if (rec.text_len > 0 && slu_ingest_chooses(g->cfg))
        fate = slu_ingest_choose(g->cfg, slu_hash128(rec.text, rec.text_len));
    if (fate == FATE_NOT_SAMPLED)
        return settle(j, fate, 0, err);
    if (rec.text_len > 0)
        rc = encode(g, j, w, &rec, err);
    if (rc)
        return slu_err_at(err, "%s: document %llu",
                          g->cfg->sources->item[ref->source].path,
                          (unsigned long long)ref->document);
    if (j->ids.n > from)
        return add_document(g, j, w, ref, &rec, from, fate, err);
    return settle(j, FATE_EMPTY, 0, err);
}

/* The ids in the stream's width, where they are; sixteen at a time, for SIMD. */
static void narrow(struct slu_ids *ids)
{
    enum { RUN = 16 };
    uint8_t *p = (uint8_t *)ids->id;
    uint32_t wide[RUN] = {0};
    uint16_t half[RUN];
    for (size_t i = 0; i < ids->n; i += RUN) {
        size_t n = ids->n - i < RUN ? ids->n - i : RUN;
        if (n == RUN)
            memcpy(wide, p + 4 * i, sizeof wide);
        else
            memcpy(wide, p + 4 * i, 4 * n);
        for (size_t k = 0; k < RUN; k++)
            half[k] = (uint16_t)wide[k];
        memcpy(p + 2 * i, half, 2 * n);
    }
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct ingest *g = ctx;
    struct job *j = job;
    clear_job(j);
    int rc = slu_block_split(&j->block, err);
    for (size_t i = 0; i < j->block.n_rec && !rc; i++)
        rc = take_record(g, j, &g->worker[worker], &j->block.rec[i], err);
    if (rc < 0 && g->cfg->max_tok != UINT64_MAX) {
        /* The run may end before that record: emit says. */
        j->rc = rc;
        j->err = *err;
        rc = SLU_OK;
    }
    if (rc) {
        set_failed(g);
        return rc;
    }
    if (j->batch.tok_bytes == 2)
        narrow(&j->ids);
    j->batch.tok = j->holdout.tok = j->ids.id;
    j->batch.n_tok = j->holdout.n_tok = j->ids.n;
    slu_batch_sum(&j->batch);
    slu_batch_sum(&j->holdout);
    return SLU_OK;
}

/* ---- in order again ---- */

/* Books the job's records, and takes from it what is behind the end of the run. */
static int book(struct ingest *g, struct job *j, struct slu_err *err)
{
    size_t n;
    int rc = slu_ingest_book_rows(&g->books, j->fate, j->n_fate, &j->batch, &j->holdout,
                                  &n, err);
    if (rc || n == j->n_fate)
        return rc;
    j->first.ref = NULL;
    while (n < j->n_fate && j->fate[n].what < FATE_REJECTED)
        n++;
    if (n < j->n_fate)
        j->rejects.len = j->fate[n].value;
    return SLU_OK;
}

static int emit_part(struct ingest *g, struct job *j, const struct part *part,
                     struct slu_err *err)
{
    if (!part->ref)
        return SLU_OK;
    struct slu_text_part p = {
        .ref = part->ref,
        .raw = j->block.raw.data + part->ref->off,
        .tok = (uint8_t *)j->ids.id + part->from * g->tok_bytes,
        .n_tok = part->n_tok,
        .bad_off = part->bad_off,
    };
    return slu_long_text_put(g->text, &p, err);
}

static uint64_t scored(const struct slu_batch *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < b->n_seq; i++) /* a document each */
        n += b->seg[b->seq[i].seg_off].score != 0;
    return n;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct ingest *g = ctx;
    struct job *j = job;
    int rc = emit_part(g, j, &j->last, err);
    if (!rc)
        rc = book(g, j, err);
    if (!rc)
        rc = slu_writer_put(g->cfg->out, &j->batch, err);
    if (!rc && j->holdout.n_seq)
        rc = slu_writer_put(g->cfg->holdout_out, &j->holdout, err);
    g->books.stat->scored += scored(&j->batch) + scored(&j->holdout);
    if (!rc && j->rejects.len)
        rc = slu_out_write(g->cfg->rejects, j->rejects.data, j->rejects.len, err);
    if (!rc)
        rc = emit_part(g, j, &j->first, err);
    if (!rc && g->books.stat->cut)
        rc = SLU_EOF;
    if (!rc && j->rc) {
        rc = j->rc;
        *err = j->err;
    }
    if (rc) {
        set_failed(g);
        return rc;
    }
    g->n_tok += j->ids.n;
    if (g->cfg->progress)
        g->cfg->progress(g->cfg->ctx, slu_input_stored(g->input), g->n_tok);
    give_back(g, j);
    return SLU_OK;
}

/* ---- all of it ---- */

/* How -M is spent: a quarter on the blocks in flight, an eighth on word caches, half on
 * records that are larger than a block, an eighth on texts that come in parts. */
struct plan {
    unsigned n_threads, n_job;
    uint64_t block_byte, cache_byte, max_grown_byte, max_record_byte, long_byte;
};

static struct plan make_plan(const struct slu_ingest_cfg *cfg)
{
    struct plan p;
    /* No more threads than there is memory for the least blocks of theirs. */
    uint64_t most = cfg->memory_byte / 4 / BLOCK_WEIGHT / MIN_BLOCK_BYTE;
    p.n_threads = cfg->n_threads;
    if (p.n_threads + 2 > most)
        p.n_threads = most > 3 ? (unsigned)most - 2 : 1;
    p.n_job = p.n_threads + 2;
    p.block_byte = cfg->memory_byte / 4 / p.n_job / BLOCK_WEIGHT;
    if (p.block_byte < MIN_BLOCK_BYTE)
        p.block_byte = MIN_BLOCK_BYTE;
    if (p.block_byte > MAX_BLOCK_BYTE)
        p.block_byte = MAX_BLOCK_BYTE;
    p.cache_byte = cfg->memory_byte / 8;
    if (p.cache_byte > MAX_CACHE_BYTE)
        p.cache_byte = MAX_CACHE_BYTE;
    p.max_grown_byte = cfg->memory_byte / 2;
    p.max_record_byte = p.max_grown_byte / GROWN_WEIGHT;
    p.long_byte = cfg->memory_byte / 8;
    return p;
}

static int open_input(struct ingest *g, const struct plan *p, struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    struct slu_input_cfg in = {
        .sources = cfg->sources,
        .format = cfg->format,
        .block_byte = (size_t)p->block_byte,
        .max_record_byte = p->max_record_byte,
        .window_byte = cfg->memory_byte / 4,
        .field = {cfg->text_field, cfg->id_field, cfg->domain_field, cfg->score_field},
        .n_threads = p->n_threads,
        .quit_fd = g->quit_fd,
        .ctx = g,
        .claim = claim,
        .cut = slu_encode_cuts(cfg->tokenizer) ? cut : NULL,
        .begin = begin_source,
        .end = end_source,
        .broken = cfg->skip_bad ? break_source : NULL,
    };
    return slu_input_new(&g->input, &in, err);
}

static int open_workers(struct ingest *g, const struct plan *p, struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    struct slu_record_cfg rec = {cfg->text_field, cfg->id_field, cfg->domain_field,
                                 cfg->score_field, (size_t)p->block_byte};
    int rc = SLU_OK;
    g->n_worker = p->n_threads;
    g->worker = calloc(g->n_worker, sizeof *g->worker);
    g->crew.encoder = calloc(g->n_worker, sizeof *g->crew.encoder);
    if (!g->worker || !g->crew.encoder)
        return slu_fail_nomem(err, g->n_worker * sizeof *g->worker);
    for (unsigned i = 0; i < g->n_worker && !rc; i++) {
        rc = slu_record_parser_new(&g->worker[i].parser, &rec, err);
        if (!rc)
            rc = i ? slu_encoder_new_sharing(&g->crew.encoder[i], g->crew.encoder[0],
                                             err)
                   : slu_encoder_new(&g->crew.encoder[0], cfg->tokenizer, p->cache_byte,
                                     err);
    }
    return rc;
}

static void close_workers(struct ingest *g)
{
    for (unsigned i = 0; g->worker && i < g->n_worker; i++) {
        slu_record_parser_free(g->worker[i].parser);
        free(g->worker[i].domain);
    }
    for (unsigned i = 0; g->crew.encoder && i < g->n_worker; i++)
        slu_encoder_free(g->crew.encoder[i]);
    free(g->crew.encoder);
    free(g->worker);
}

static void *new_job(unsigned tok_bytes)
{
    struct job *j = calloc(1, sizeof *j);
    if (j) {
        slu_block_init(&j->block);
        slu_batch_init(&j->batch, tok_bytes);
        slu_batch_init(&j->holdout, tok_bytes);
    }
    return j;
}

static void free_job(struct job *j)
{
    if (!j)
        return;
    slu_block_release(&j->block);
    slu_ids_release(&j->ids);
    slu_batch_release(&j->batch);
    slu_batch_release(&j->holdout);
    slu_buf_release(&j->rejects);
    free(j->fate);
    free(j);
}

int slu_ingest(const struct slu_ingest_cfg *cfg, struct slu_ledger *ledger,
               struct slu_ingest_stat *stat, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct plan p = make_plan(cfg);
    struct ingest g = {
        .cfg = cfg,
        .books = {cfg, ledger, stat},
        .domain = SLU_NO_DOMAIN,
        .tok_bytes = slu_tokenizer_vocab_size(cfg->tokenizer) <= 65536 ? 2 : 4,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .max_grown_byte = p.max_grown_byte,
        .crew = {.tokenizer = cfg->tokenizer,
                 .n_worker = p.n_threads,
                 .part_byte = (size_t)(p.block_byte < MAX_PART_BYTE ? p.block_byte
                                                                    : MAX_PART_BYTE)},
    };
    int rc = SLU_OK;

    memset(stat, 0, sizeof *stat);
    void **job = calloc(p.n_job, sizeof *job);
    if (!job)
        return slu_fail_nomem(err, p.n_job * sizeof *job);
    g.quit_fd = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 0; i < p.n_job && !rc; i++)
        if (!(job[i] = new_job(g.tok_bytes)))
            rc = slu_fail_nomem(err, sizeof(struct job));
    if (!rc && cfg->domain)
        rc = slu_names_domain_number(cfg->names, cfg->domain, strlen(cfg->domain),
                                     &g.domain, err);
    if (!rc)
        rc = slu_long_text_new(&g.text, cfg, &g.books, g.domain, p.long_byte, err);
    if (!rc)
        rc = open_workers(&g, &p, err);
    if (!rc)
        rc = open_input(&g, &p, err);
    if (!rc)
        rc = slu_pipe_run_parts(&ops, &g, job, p.n_job, p.n_threads, &g.crew.pipe, err);
    if (rc == SLU_EOF && stat->cut)
        rc = SLU_OK;
    slu_input_free(g.input);
    if (g.quit_fd >= 0)
        close(g.quit_fd);
    slu_long_text_free(g.text);
    close_workers(&g);
    for (unsigned i = 0; i < p.n_job; i++)
        free_job(job[i]);
    free(job);
    return rc;
}
