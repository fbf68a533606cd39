/* The histogram of documents' lengths in files of ids, by scanning alone: threads scan
 * blocks in any order, and the results are joined in the files' order. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/scan.h"
#include "lib/base/pipe.h"
#include "tokens_private.h"

enum {
    N_BIN = 1 << 17,     /* longer documents go to a list: FAR per block at most */
    BLOCK_TOK = 1 << 18, /* half a MiB or one: stays in the core's cache */
    FAR = BLOCK_TOK / N_BIN + 1,
};

struct block {
    size_t file;
    uint64_t at_tok;
    size_t n;
    bool last; /* the last block of its file */
    struct slu_buf raw;
    struct slu_eos_block eos;
    uint64_t far[FAR];
};

struct scan {
    const struct slu_tokens_cfg *cfg;
    const struct slu_tokens_lengths_cfg *how;
    const struct slu_eos_kernel *kernel;
    uint64_t vocab_size; /* limit of ids; 0: not checked */
    /* Of produce: */
    struct slu_npy_file *file; /* by path; closed once its blocks are joined */
    size_t at_path;
    bool open;
    /* Of the threads: */
    uint64_t *count; /* tables of N_BIN: one for emit, then one per thread */
    /* Of emit: */
    uint64_t open_tok, n_eos; /* of the current file */
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

/* Joins a block of n ids, in the files' order. far: its eos->n_far long lengths. */
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
        slu_npy_account_end(s->cfg, s->cfg->path[file], s->open_tok, s->n_eos > 0);
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

/* Chooses the next block of at most `most` ids; *last: the file's last block. Reads a
 * pipe into buf, which has room for the block; `load` reads regular files. */
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

/* ---- a device ---- */

/* One of two: while one is copied and scanned, the other is read. */
struct slot {
    void *host;                /* page-locked: the ids */
    struct slu_eos_block *eos; /* page-locked: their result */
    void *tok, *far, *eos_dev, *work, *stream;
    bool busy;
    size_t file, n;
    bool last;
};

struct bus {
    size_t most; /* ids per slot */
    size_t work_byte;
    uint64_t *count; /* on the device, N_BIN */
    uint64_t *far;   /* a block's, on the host */
    struct slot slot[2];
};

static int open_bus(struct bus *b, uint64_t memory)
{
    /* Two slots, four bytes per id, half of the memory. */
    const size_t least = 1 << 16, most = 1 << 25;
    b->most = memory / 16 < least ? least : memory / 16 > most ? most : memory / 16;
    b->work_byte = slu_eos_lengths_cuda_work(b->most);
    size_t far_byte = (slu_eos_far_most(b->most, N_BIN) + 1) * sizeof(uint64_t);
    int code = slu_device_alloc((void **)&b->count, N_BIN * sizeof *b->count);
    for (unsigned i = 0; i < 2; i++) {
        struct slot *s = &b->slot[i];
        if (!code)
            code = slu_device_host_alloc(&s->host, b->most * sizeof(uint32_t));
        if (!code)
            code = slu_device_host_alloc((void **)&s->eos, sizeof *s->eos);
        if (!code)
            code = slu_device_alloc(&s->tok, b->most * sizeof(uint32_t));
        if (!code)
            code = slu_device_alloc(&s->far, far_byte);
        if (!code)
            code = slu_device_alloc(&s->eos_dev, sizeof *s->eos);
        if (!code)
            code = slu_device_alloc(&s->work, b->work_byte ? b->work_byte : 16);
        if (!code)
            code = slu_device_stream_new(&s->stream);
    }
    if (!code)
        code = slu_device_zero(b->count, N_BIN * sizeof *b->count, NULL);
    if (!code) /* the slots' streams do not wait for the default stream */
        code = slu_device_sync(NULL);
    return code;
}

static void close_bus(struct bus *b)
{
    for (unsigned i = 0; i < 2; i++) {
        struct slot *s = &b->slot[i];
        /* Copies must have ended before memory is freed; errors were reported. */
        if (s->stream)
            (void)slu_device_sync(s->stream);
        slu_device_stream_free(s->stream);
        slu_device_free(s->work);
        slu_device_free(s->eos_dev);
        slu_device_free(s->far);
        slu_device_free(s->tok);
        slu_device_host_free(s->eos);
        slu_device_host_free(s->host);
    }
    slu_device_free(b->count);
    free(b->far);
}

/* Copies the slot's ids to the device and scans them. */
static int start(struct scan *s, struct bus *b, struct slot *t)
{
    unsigned w = s->file[t->file].tok_bytes;
    int code = slu_device_put(t->tok, t->host, t->n * w, t->stream);
    if (!code)
        code = slu_eos_lengths_cuda(t->tok, t->n, w, (uint32_t)s->cfg->eos, b->count,
                                    N_BIN, t->far, t->eos_dev, t->work, b->work_byte,
                                    t->stream);
    if (!code)
        code = slu_device_get_async(t->eos, t->eos_dev, sizeof *t->eos, t->stream);
    t->busy = true;
    return code;
}

/* Waits for the slot, and joins its result. *code: the device's error, or 0. */
static int end(struct scan *s, struct bus *b, struct slot *t, int *code,
               struct slu_err *err)
{
    if (!t->busy)
        return SLU_OK;
    t->busy = false;
    *code = slu_device_sync(t->stream);
    if (*code)
        return SLU_OK;
    size_t n_byte = t->eos->n_far * sizeof *b->far;
    if (n_byte)
        *code = slu_device_get(b->far, t->far, n_byte, t->stream);
    return *code ? SLU_OK : join(s, t->file, t->n, t->last, t->eos, b->far, err);
}

/* Scans the whole input. If *code, the device's error, is not 0, there is no result. */
static int through(struct scan *s, struct bus *b, int *code, struct slu_err *err)
{
    int rc = SLU_OK;
    uint64_t at_tok;
    unsigned i = 0;
    for (;; i ^= 1) {
        struct slot *t = &b->slot[i];
        rc = end(s, b, t, code, err);
        if (!rc && !*code)
            rc = next_block(s, b->most, t->host, &t->file, &at_tok, &t->n, &t->last,
                            err);
        if (!rc && !*code)
            rc = load(s, t->file, at_tok, t->host, t->n, err);
        if (!rc && !*code)
            *code = start(s, b, t);
        if (rc || *code)
            break;
    }
    if (rc == SLU_EOF) /* slot i was the older one and has ended */
        rc = end(s, b, &b->slot[i ^ 1], code, err);
    if (rc || *code)
        return rc;
    uint64_t *mine = s->count + N_BIN;
    *code = slu_device_get(mine, b->count, N_BIN * sizeof *mine, NULL);
    return SLU_OK;
}

static int on_device(struct scan *s, int ordinal, int *code, struct slu_err *err)
{
    struct bus b = {0};
    int rc = SLU_OK;
    *code = slu_device_select(ordinal);
    if (!*code)
        *code = open_bus(&b, s->how->memory);
    if (!*code) {
        b.far = malloc((slu_eos_far_most(b.most, N_BIN) + 1) * sizeof *b.far);
        rc = b.far ? through(s, &b, code, err) : slu_fail_nomem(err, b.most / N_BIN);
    }
    close_bus(&b);
    return rc;
}

/* Resets the scan to its start. */
static void begin_again(struct scan *s, unsigned n_table)
{
    for (size_t i = 0; i < s->cfg->n_path; i++)
        slu_npy_close(&s->file[i]);
    memset(s->count, 0, (size_t)n_table * N_BIN * sizeof *s->count);
    s->at_path = s->n_longer = 0;
    s->open = false;
    s->open_tok = s->n_eos = s->documents = s->tokens = s->n_byte = 0;
}

/* Scans on the device or on the CPU. Under auto a device is used only for inputs that
 * can be read twice: if it fails, the CPU scans all again. */
static int scan_all(struct scan *s, unsigned n_threads, uint64_t n_tok,
                    const char **level, struct slu_err *err)
{
    struct slu_device *d = s->how->device;
    struct slu_tokens_seen seen = {0};
    *level = slu_eos_kernel_name(s->kernel);
    if (!slu_device_take(d, SLU_WORK_SCAN, n_tok == UINT64_MAX ? 0 : n_tok))
        return on_cpu(s, n_threads, err);
    if (s->cfg->seen)
        seen = *s->cfg->seen;
    *level = d->name;
    int code, rc = on_device(s, d->ordinal, &code, err);
    if (rc || !code)
        return rc;
    rc = slu_device_fault(d, code, err);
    if (rc)
        return rc;
    begin_again(s, n_threads + 1);
    if (s->cfg->seen)
        *s->cfg->seen = seen;
    *level = slu_eos_kernel_name(s->kernel);
    return on_cpu(s, n_threads, err);
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
    struct slu_length_count *row;
    size_t n;
    for (unsigned t = 1; t < n_table; t++)
        for (size_t v = 0; v < N_BIN; v++)
            s->count[v] += s->count[t * (size_t)N_BIN + v];
    int rc = slu_lengths_make_rows(s->count, N_BIN, s->n_longer, &row, &n, err);
    if (rc)
        return rc;
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

/* Returns the number of threads whose tables and blocks fit the memory. */
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
        rc = scan_all(&s, n_threads, n_tok, &out->level, err);
    if (!rc)
        rc = make_rows(&s, n_table, out, err);
    for (size_t i = 0; s.file && i < cfg->n_path; i++)
        slu_npy_close(&s.file[i]);
    free(s.file);
    free(s.count);
    free(s.longer);
    return rc;
}
