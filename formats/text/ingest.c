#include "ingest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "formats/text/ingest_job.h"
#include "lib/base/pipe.h"

#define MIN_BLOCK_BYTE ((uint64_t)64 << 10)
/* Keeps text and ids in the second-level cache. */
#define MAX_BLOCK_BYTE ((uint64_t)256 << 10)
/* A block that grew for a long record keeps its memory up to this. */
#define MAX_KEPT_BYTE  ((uint64_t)2 << 20)
#define MAX_CACHE_BYTE ((uint64_t)320 << 20)
/* Bytes in flight per byte of a block: text, trees, ids, rejects. */
#define BLOCK_WEIGHT 10
/* Bytes in flight per byte of a record larger than a block, which has no tree. */
#define GROWN_WEIGHT 4

/* ---- memory ---- */

struct wanted {
    struct slu_ingest_run *g;
    uint64_t has, n;
};

static bool is_free(void *arg)
{
    const struct wanted *w = arg;
    struct slu_ingest_run *g = w->g;
    pthread_mutex_lock(&g->lock);
    bool yes = g->failed || g->grown_byte <= w->has ||
               (g->grown_byte + w->n) * GROWN_WEIGHT <= g->max_grown_byte;
    pthread_mutex_unlock(&g->lock);
    return yes;
}

static int claim(void *ctx, struct slu_block *b, uint64_t n, struct slu_err *err)
{
    struct slu_ingest_run *g = ctx;
    struct wanted w = {g, b->claimed_byte, n};
    int rc = SLU_OK;
    slu_pipe_wait(g->encoders.pipe, is_free, &w);
    pthread_mutex_lock(&g->lock);
    if (g->failed)
        rc = slu_fail(err, SLU_E_LIMIT,
                      "stopped"); /* not shown: an earlier job's error is */
    else
        g->grown_byte += n;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

static void give_back(struct slu_ingest_run *g, struct slu_ingest_job *j)
{
    if (!j->block.claimed_byte)
        return;
    uint64_t n = j->block.claimed_byte;
    j->block.claimed_byte = 0;
    if (j->block.raw.cap > g->kept_byte) {
        slu_block_release(&j->block);
        slu_ids_release(&j->ids);
        slu_buf_release(&j->rejects);
    }
    pthread_mutex_lock(&g->lock);
    g->grown_byte -= n;
    pthread_mutex_unlock(&g->lock);
}

void slu_ingest_failed(struct slu_ingest_run *g)
{
    pthread_mutex_lock(&g->lock);
    g->failed = true;
    pthread_mutex_unlock(&g->lock);
}

/* ---- the serial start ---- */

static int begin_source(void *ctx, uint64_t ordinal, struct slu_err *err)
{
    struct slu_ingest_run *g = ctx;
    return slu_names_set_source(g->cfg->names, ordinal,
                                slu_source_at(g->cfg->sources, ordinal)->name, err);
}

static void end_source(void *ctx, uint64_t ordinal, uint64_t n_byte, bool empty)
{
    struct slu_ingest_run *g = ctx;
    g->account.stat->sources++;
    g->account.stat->empty_sources += empty;
    g->account.stat->input_byte += n_byte;
    if (g->cfg->source_done)
        g->cfg->source_done(g->cfg->ctx, slu_source_at(g->cfg->sources, ordinal),
                            empty);
}

static void break_source(void *ctx, uint64_t document, enum slu_reject reason,
                         const char *why)
{
    struct slu_ingest_run *g = ctx;
    if (g->cfg->source_broken)
        g->cfg->source_broken(g->cfg->ctx, document, reason, why);
}

static size_t cut(void *ctx, const uint8_t *p, size_t n, size_t from)
{
    const struct slu_ingest_run *g = ctx;
    return slu_encode_cut(g->cfg->tokenizer, p, n, from);
}

/* Ends waits for a silent input when the run stops because of an error. */
static void stopped(void *ctx)
{
    const struct slu_ingest_run *g = ctx;
    if (g->quit_fd >= 0)
        (void)eventfd_write(g->quit_fd, 1);
}

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct slu_ingest_run *g = ctx;
    struct slu_ingest_job *j = job;
    slu_pipe_on_stop(g->encoders.pipe, stopped);
    return slu_input_fetch(g->input, &j->block, err);
}

/* ---- the serial end ---- */

/* Counts the job's records, and removes those after the end of the run. */
static int account(struct slu_ingest_run *g, struct slu_ingest_job *j,
                   struct slu_err *err)
{
    size_t n;
    int rc = slu_ingest_account_rows(&g->account, j->outcome, j->n_outcome, &j->batch,
                                     &j->holdout, &n, err);
    if (!rc && g->filters)
        slu_ingest_count_noted(g, j, n);
    if (!rc && j->n_repaired)
        slu_ingest_count_repaired(g, j, n);
    if (!rc && g->cfg->origins)
        rc = slu_ingest_count_origins(g, j, n, err);
    if (rc || n == j->n_outcome)
        return rc;
    j->first.ref = NULL;
    while (n < j->n_outcome && j->outcome[n].what < OUTCOME_REJECTED)
        n++;
    if (n < j->n_outcome)
        j->rejects.len = j->outcome[n].value;
    return SLU_OK;
}

static int emit_part(struct slu_ingest_run *g, struct slu_ingest_job *j,
                     const struct slu_ingest_part *part, struct slu_err *err)
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

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct slu_ingest_run *g = ctx;
    struct slu_ingest_job *j = job;
    int rc = emit_part(g, j, &j->last, err);
    if (!rc)
        rc = account(g, j, err);
    if (!rc)
        rc = slu_writer_put(g->cfg->out, &j->batch, err);
    if (!rc && j->holdout.n_seq)
        rc = slu_writer_put(g->cfg->holdout_out, &j->holdout, err);
    if (!rc && j->rejects.len)
        rc = slu_out_write(g->cfg->rejects, j->rejects.data, j->rejects.len, err);
    if (!rc)
        rc = emit_part(g, j, &j->first, err);
    if (!rc && g->account.stat->cut)
        rc = SLU_EOF;
    if (!rc && j->rc) {
        rc = j->rc;
        *err = j->err;
    }
    if (rc) {
        slu_ingest_failed(g);
        return rc;
    }
    g->n_tok += j->ids.n;
    if (g->cfg->progress)
        g->cfg->progress(g->cfg->ctx, slu_input_stored(g->input), g->n_tok);
    give_back(g, j);
    return SLU_OK;
}

/* ---- the run ---- */

/* The shares of -M: a quarter for the blocks in flight, an eighth for word caches, half
 * for records larger than a block, an eighth for texts that come in parts. */
struct plan {
    unsigned n_threads, n_job;
    uint64_t block_byte, kept_byte, cache_byte, max_grown_byte, max_record_byte,
        long_byte;
};

static struct plan make_plan(const struct slu_ingest_cfg *cfg)
{
    struct plan p;
    /* At most as many threads as memory allows with the smallest blocks. */
    uint64_t most = cfg->memory_byte / 4 / BLOCK_WEIGHT / MIN_BLOCK_BYTE;
    p.n_threads = cfg->n_threads;
    if (cfg->filter.most_threads && p.n_threads > cfg->filter.most_threads)
        p.n_threads = cfg->filter.most_threads;
    if (p.n_threads + 2 > most)
        p.n_threads = most > 3 ? (unsigned)most - 2 : 1;
    p.n_job = p.n_threads + 2;
    p.kept_byte = cfg->memory_byte / 4 / p.n_job / BLOCK_WEIGHT;
    if (p.kept_byte < MIN_BLOCK_BYTE)
        p.kept_byte = MIN_BLOCK_BYTE;
    if (p.kept_byte > MAX_KEPT_BYTE)
        p.kept_byte = MAX_KEPT_BYTE;
    p.block_byte = p.kept_byte < MAX_BLOCK_BYTE ? p.kept_byte : MAX_BLOCK_BYTE;
    p.cache_byte = cfg->memory_byte / 8;
    if (p.cache_byte > MAX_CACHE_BYTE)
        p.cache_byte = MAX_CACHE_BYTE;
    p.max_grown_byte = cfg->memory_byte / 2;
    p.max_record_byte = p.max_grown_byte / GROWN_WEIGHT;
    p.long_byte = cfg->memory_byte / 8;
    return p;
}

static int open_input(struct slu_ingest_run *g, const struct plan *p,
                      struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    struct slu_input_cfg in = {
        .sources = cfg->sources,
        .format = cfg->format,
        .tmpdir = cfg->tmpdir,
        .members = cfg->members,
        .member = cfg->member,
        .optional = cfg->optional,
        .any = g->any,
        .n_any = g->n_read,
        .block_byte = (size_t)p->block_byte,
        .max_record_byte = p->max_record_byte,
        .window_byte = cfg->memory_byte / 4,
        .n_threads = p->n_threads,
        .quit_fd = g->quit_fd,
        .ctx = g,
        .claim = claim,
        /* Rules judge a text as a whole. */
        .cut = !cfg->filter.rules && !cfg->filter.c4_lines && !cfg->replace &&
                       slu_encode_cuts(cfg->tokenizer)
                   ? cut
                   : NULL,
        .begin = begin_source,
        .end = end_source,
        .broken = cfg->skip_bad ? break_source : NULL,
    };
    memcpy(in.field, cfg->field, sizeof in.field);
    return slu_input_new(&g->input, &in, err);
}

static int open_workers(struct slu_ingest_run *g, const struct plan *p,
                        struct slu_err *err)
{
    const struct slu_ingest_cfg *cfg = g->cfg;
    struct slu_record_cfg rec = {.optional = cfg->optional,
                                 .null_is_missing = cfg->null_is_missing,
                                 .any = g->any,
                                 .n_any = g->n_read,
                                 .dom_byte = (size_t)p->kept_byte};
    int rc = SLU_OK;
    memcpy(rec.name, cfg->field, sizeof rec.name);
    g->n_worker = p->n_threads;
    g->worker = calloc(g->n_worker, sizeof *g->worker);
    g->encoders.encoder = calloc(g->n_worker, sizeof *g->encoders.encoder);
    if (!g->worker || !g->encoders.encoder)
        return slu_fail_nomem(err, g->n_worker * sizeof *g->worker);
    for (unsigned i = 0; i < g->n_worker && !rc; i++) {
        rc = slu_record_parser_new(&g->worker[i].parser, &rec, err);
        if (!rc)
            rc = slu_ingest_open_filter(g, &g->worker[i], err);
        if (!rc)
            rc = i ? slu_encoder_new_sharing(&g->encoders.encoder[i],
                                             g->encoders.encoder[0], err)
                   : slu_encoder_new(&g->encoders.encoder[0], cfg->tokenizer,
                                     p->cache_byte, err);
    }
    return rc;
}

static void count_ordinary(const struct slu_ingest_run *g, struct slu_ingest_stat *s)
{
    s->ordinary_id = SLU_NO_TOKEN;
    for (unsigned i = 0; i < g->n_worker; i++) {
        uint64_t id;
        s->ordinary += slu_encoder_ordinary(g->encoders.encoder[i], &id);
        s->ordinary_id = id < s->ordinary_id ? id : s->ordinary_id;
    }
}

static void close_workers(struct slu_ingest_run *g)
{
    for (unsigned i = 0; g->worker && i < g->n_worker; i++) {
        slu_record_parser_free(g->worker[i].parser);
        slu_ingest_close_filter(&g->worker[i]);
        free(g->worker[i].domain);
        slu_ingest_wait_release(&g->worker[i].wait);
        slu_buf_release(&g->worker[i].row_spans);
        slu_block_release(&g->worker[i].repaired);
        slu_buf_release(&g->worker[i].needs);
        slu_buf_release(&g->worker[i].lacks);
        slu_buf_release(&g->worker[i].meta);
    }
    for (unsigned i = 0; g->encoders.encoder && i < g->n_worker; i++)
        slu_encoder_free(g->encoders.encoder[i]);
    free(g->encoders.encoder);
    free(g->worker);
}

static void *new_job(unsigned tok_bytes, bool masks)
{
    struct slu_ingest_job *j = calloc(1, sizeof *j);
    if (j) {
        slu_block_init(&j->block);
        slu_batch_init(&j->batch, tok_bytes);
        slu_batch_init(&j->holdout, tok_bytes);
        j->batch.masks = j->holdout.masks = masks;
    }
    return j;
}

static void free_job(struct slu_ingest_job *j)
{
    if (!j)
        return;
    slu_block_release(&j->block);
    slu_ids_release(&j->ids);
    slu_batch_release(&j->batch);
    slu_batch_release(&j->holdout);
    slu_buf_release(&j->rejects);
    free(j->outcome);
    free(j->seen);
    free(j->edit);
    free(j->repaired);
    free(j->origin);
    slu_buf_release(&j->origins);
    free(j);
}

int slu_ingest(const struct slu_ingest_cfg *cfg, struct slu_account *account,
               struct slu_ingest_stat *stat, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, slu_ingest_encode, emit};
    const bool masks = cfg->field[SLU_FIELD_SPANS] != NULL;
    struct plan p = make_plan(cfg);
    struct slu_ingest_run g = {
        .cfg = cfg,
        .account = {cfg, account, stat},
        .tok_bytes =
            slu_tokenizer_vocab_size(cfg->tokenizer) <= 65536 && !masks ? 2 : 4,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .max_grown_byte = p.max_grown_byte,
        .kept_byte = p.kept_byte,
        .encoders = {.tokenizer = cfg->tokenizer,
                     .n_worker = p.n_threads,
                     /* All threads together encode longer texts. */
                     .part_byte = (size_t)p.block_byte},
    };
    int rc = SLU_OK;

    memset(stat, 0, sizeof *stat);
    void **job = calloc(p.n_job, sizeof *job);
    if (!job)
        return slu_fail_nomem(err, p.n_job * sizeof *job);
    g.quit_fd = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 0; i < p.n_job && !rc; i++)
        if (!(job[i] = new_job(g.tok_bytes, masks)))
            rc = slu_fail_nomem(err, sizeof(struct slu_ingest_job));
    if (!rc)
        rc = slu_long_text_new(&g.text, cfg, &g.account, p.long_byte, err);
    slu_ingest_find_filters(&g);
    if (!rc)
        rc = open_workers(&g, &p, err);
    if (!rc)
        rc = open_input(&g, &p, err);
    if (!rc)
        rc = slu_pipe_run_parts(&ops, &g, job, p.n_job, p.n_threads, &g.encoders.pipe,
                                err);
    if (rc == SLU_EOF && stat->cut)
        rc = SLU_OK;
    if (g.input)
        stat->truncated = slu_input_truncated(g.input);
    if (!rc)
        count_ordinary(&g, stat);
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
