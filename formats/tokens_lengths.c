/* The histogram of documents' lengths in files of ids, by scanning alone: blocks go
 * through the threads in any order and are joined in the files' order. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/scan.h"
#include "lib/pipe.h"
#include "tokens_private.h"

enum {
    N_BIN = 1 << 17,     /* longer documents go to a list: 8 a block at most */
    BLOCK_TOK = 1 << 18, /* half a MiB or one: still in the core's cache when read */
    FAR = BLOCK_TOK / N_BIN + 1,
};

struct block {
    size_t file;
    uint64_t at_tok;
    size_t n;
    bool last; /* of its file */
    struct slu_buf raw;
    struct slu_eos_block eos;
    uint64_t far[FAR];
};

struct scan {
    const struct slu_tokens_cfg *cfg;
    const struct slu_tokens_lengths_cfg *how;
    const struct slu_eos_kernel *kernel;
    uint64_t vocab_size; /* ids are compared with it; 0: they are not */
    /* produce's */
    struct slu_npy_file *file; /* of each path; closed once its blocks are joined */
    size_t at_path;
    bool open;
    /* the threads' */
    uint64_t *count; /* N_BIN each, and one more for emit */
    /* emit's */
    uint64_t open_tok, n_eos; /* of the file at hand */
    uint64_t *longer;         /* lengths from N_BIN on */
    size_t n_longer, cap_longer;
    uint64_t documents, tokens, n_byte;
};

/* ---- joining ---- */

static int add_length(struct scan *s, uint64_t len, struct slu_err *err)
{
    if (len < N_BIN) {
        s->count[len]++;
        return SLU_OK;
    }
    int rc =
        slu_grow(&s->longer, &s->cap_longer, s->n_longer + 1, sizeof *s->longer, err);
    if (!rc)
        s->longer[s->n_longer++] = len;
    return rc;
}

/* A block of n ids in its turn; far: its eos.n_far lengths. */
static int join(struct scan *s, size_t file, size_t n, bool last,
                const struct slu_eos_block *eos, const uint64_t *far,
                struct slu_err *err)
{
    int rc = SLU_OK;
    uint64_t len = slu_eos_join(&s->open_tok, eos);
    if (len)
        rc = add_length(s, len, err);
    for (uint64_t i = 0; !rc && i < eos->n_far; i++)
        rc = add_length(s, far[i], err);
    s->documents += eos->n_eos;
    s->n_eos += eos->n_eos;
    s->tokens += n;
    s->n_byte += n * s->file[file].tok_bytes;
    if (!rc && last) {
        slu_npy_book_end(s->cfg, s->cfg->path[file], s->open_tok, s->n_eos > 0);
        if (s->open_tok) {
            s->documents++;
            rc = add_length(s, s->open_tok, err);
        }
        s->open_tok = s->n_eos = 0;
        slu_npy_close(&s->file[file]);
    }
    if (s->how->progress)
        s->how->progress(s->how->progress_arg, s->n_byte, s->tokens);
    return rc;
}

/* The next block of at most `most` ids; *last: the file's last one. A pipe is read into
 * buf, which has room for them; of regular files the ids are left to others. */
static int next_block(struct scan *s, size_t most, void *buf, size_t *file,
                      uint64_t *at_tok, size_t *n, bool *last, struct slu_err *err)
{
    if (!s->open && s->at_path == s->cfg->n_path)
        return SLU_EOF;
    struct slu_npy_file *f = &s->file[s->at_path];
    if (!s->open) {
        int rc = slu_npy_open(f, s->cfg, s->cfg->path[s->at_path], err);
        if (rc)
            return rc;
        s->open = true;
    }
    *file = s->at_path;
    *at_tok = f->at_tok;
    if (f->regular) {
        *n = f->n_tok - f->at_tok < most ? (size_t)(f->n_tok - f->at_tok) : most;
        f->at_tok += *n;
        *last = f->at_tok == f->n_tok;
    } else {
        int rc = slu_npy_read(f, buf, most, n, err);
        if (rc)
            return rc;
        *last = *n < most;
    }
    if (*last) {
        s->open = false;
        s->at_path++;
    }
    return SLU_OK;
}

static int load(struct scan *s, size_t file, uint64_t at_tok, void *buf, size_t n,
                struct slu_err *err)
{
    const struct slu_npy_file *f = &s->file[file];
    int rc = f->regular ? slu_npy_pread(f, buf, n, at_tok, err) : SLU_OK;
    if (!rc && s->vocab_size)
        rc =
            slu_tokens_check(buf, n, f->tok_bytes, s->vocab_size, f->path, at_tok, err);
    return rc;
}

/* ---- the CPU ---- */

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct scan *s = ctx;
    struct block *b = job;
    return next_block(s, BLOCK_TOK, b->raw.data, &b->file, &b->at_tok, &b->n, &b->last,
                      err);
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct scan *s = ctx;
    struct block *b = job;
    int rc = load(s, b->file, b->at_tok, b->raw.data, b->n, err);
    if (!rc)
        slu_eos_lengths(s->kernel, b->raw.data, b->n, s->file[b->file].tok_bytes,
                        (uint32_t)s->cfg->eos, s->count + (worker + 1) * (size_t)N_BIN,
                        N_BIN, b->far, &b->eos);
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct block *b = job;
    return join(ctx, b->file, b->n, b->last, &b->eos, b->far, err);
}

static int on_cpu(struct scan *s, unsigned n_threads, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    unsigned n_job = n_threads + 2;
    struct block *b = calloc(n_job, sizeof *b);
    void **job = calloc(n_job, sizeof *job);
    int rc = b && job ? SLU_OK : slu_fail_nomem(err, n_job * sizeof *b);
    for (unsigned i = 0; !rc && i < n_job; i++) {
        job[i] = &b[i];
        rc = slu_buf_reserve(&b[i].raw, BLOCK_TOK * sizeof(uint32_t), err);
    }
    if (!rc)
        rc = slu_pipe_run(&ops, s, job, n_job, n_threads, err);
    for (unsigned i = 0; b && i < n_job; i++)
        slu_buf_release(&b[i].raw);
    free(b);
    free(job);
    return rc;
}

/* ---- results ---- */

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int make_rows(struct scan *s, unsigned n_table, struct slu_tokens_lengths *out,
                     struct slu_err *err)
{
    size_t n = s->n_longer;
    for (unsigned t = 1; t < n_table; t++)
        for (size_t v = 0; v < N_BIN; v++)
            s->count[v] += s->count[t * (size_t)N_BIN + v];
    for (size_t v = 0; v < N_BIN; v++)
        n += s->count[v] != 0;
    struct slu_length_count *row = malloc((n + 1) * sizeof *row);
    if (!row)
        return slu_fail_nomem(err, (n + 1) * sizeof *row);
    n = 0;
    for (size_t v = 0; v < N_BIN; v++)
        if (s->count[v])
            row[n++] = (struct slu_length_count){v, s->count[v]};
    if (s->n_longer)
        qsort(s->longer, s->n_longer, sizeof *s->longer, ascending);
    for (size_t i = 0; i < s->n_longer; i++)
        if (n && row[n - 1].len_tok == s->longer[i])
            row[n - 1].count++;
        else
            row[n++] = (struct slu_length_count){s->longer[i], 1};
    out->row = row;
    out->n_row = n;
    out->documents = s->documents;
    out->tokens = s->tokens;
    return SLU_OK;
}

/* So many threads as have room for their tables and blocks. */
static unsigned threads_for(const struct slu_tokens_lengths_cfg *how)
{
    uint64_t each = N_BIN * sizeof(uint64_t) + BLOCK_TOK * sizeof(uint32_t);
    uint64_t room = how->memory / each, n = room > 4 ? room - 3 : 1;
    return n < how->n_threads ? (unsigned)n : how->n_threads;
}

int slu_npy_lengths(const struct slu_tokens_cfg *cfg,
                    const struct slu_tokens_lengths_cfg *how,
                    struct slu_tokens_lengths *out, struct slu_err *err)
{
    struct slu_tokens_cfg any = *cfg;
    unsigned n_threads = threads_for(how), n_table = n_threads + 1;
    uint64_t vocab_size, n_tok;
    any.any_id = true;
    int rc = slu_npy_plan(&any, &vocab_size, NULL, &n_tok, err);
    if (rc)
        return rc;
    struct scan s = {.cfg = cfg,
                     .how = how,
                     .kernel = slu_eos_kernel(NULL),
                     .vocab_size = cfg->vocab_size};
    s.file = calloc(cfg->n_path, sizeof *s.file);
    s.count = calloc((size_t)n_table * N_BIN, sizeof *s.count);
    if (!s.file || !s.count)
        rc = slu_fail_nomem(err, (size_t)n_table * N_BIN * sizeof *s.count);
    for (size_t i = 0; !rc && i < cfg->n_path; i++)
        s.file[i].fd = -1;
    if (!rc)
        rc = on_cpu(&s, n_threads, err);
    if (!rc)
        rc = make_rows(&s, n_table, out, err);
    out->level = slu_eos_kernel_name(s.kernel);
    for (size_t i = 0; s.file && i < cfg->n_path; i++)
        slu_npy_close(&s.file[i]);
    free(s.file);
    free(s.count);
    free(s.longer);
    return rc;
}
