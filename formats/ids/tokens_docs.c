/* Batches of documents from files of ids with an index. */
#include "tokens_docs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"

/* Facts of an input that stay after its table is closed. */
struct input {
    char *ids; /* the file; owned */
    enum slu_id_type type;
    uint64_t n_tok;
};

struct docs {
    struct slu_tokens_cfg cfg;
    const struct slu_docs_format *format;
    struct input *input; /* cfg.n_path elements */
    uint64_t vocab_size;
    unsigned want_bytes; /* of the reader's ids */

    size_t at_path;
    struct slu_docs_file file;
    bool open;
    uint64_t at_tok, at_doc; /* first id and number of the file's next document */
    uint64_t end;            /* the document's end, if have_end */
    bool have_end;

    struct slu_count given; /* documents that fetch put into batches */
    uint64_t empty;         /* documents without ids */
    _Atomic uint64_t n_byte;
    _Atomic uint64_t no_eos; /* documents whose last id is not EOS */
};

/* ---- options and files together ---- */

int slu_tokens_check_eos(const struct slu_tokens_cfg *cfg, uint64_t vocab_size,
                         struct slu_err *err)
{
    if (vocab_size > UINT64_C(1) << 32 ||
        (cfg->eos != SLU_NO_TOKEN && cfg->eos >= vocab_size))
        return slu_fail(err, SLU_E_USAGE,
                        "EOS id %lld, vocabulary size %llu: ids must be below the "
                        "vocabulary size, which is at most 4294967296",
                        cfg->eos == SLU_NO_TOKEN ? -1 : (long long)cfg->eos,
                        (unsigned long long)vocab_size);
    return SLU_OK;
}

static int find_vocab_size(const struct slu_tokens_cfg *cfg, const struct input *in,
                           uint64_t *vocab_size, struct slu_err *err)
{
    *vocab_size = cfg->vocab_size;
    for (size_t i = 0; i < cfg->n_path && !cfg->vocab_size; i++) {
        uint64_t below = slu_id_below(in[i].type);
        if (slu_id_bytes(in[i].type) > 2 && !cfg->any_id)
            return slu_advise(
                err, SLU_ADVISE_VOCAB_SIZE,
                slu_fail(err, SLU_E_USAGE,
                         "%s: ids of %u bytes; their vocabulary size is not known",
                         cfg->path[i], slu_id_bytes(in[i].type)));
        *vocab_size = below > *vocab_size ? below : *vocab_size;
    }
    return slu_tokens_check_eos(cfg, *vocab_size, err);
}

struct named {
    const char *ids, *path;
};

static int by_ids(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->ids, ((const struct named *)b)->ids);
}

/* SLU_E_USAGE if paths name an input twice, by ids and index, as "corpus.*" does. */
static int check_twice(const struct slu_tokens_cfg *cfg, const struct input *in,
                       struct slu_err *err)
{
    struct named *all = calloc(cfg->n_path, sizeof *all);
    int rc = all ? SLU_OK : slu_fail_nomem(err, cfg->n_path * sizeof *all);
    for (size_t i = 0; !rc && i < cfg->n_path; i++)
        all[i] = (struct named){in[i].ids, cfg->path[i]};
    if (!rc)
        qsort(all, cfg->n_path, sizeof *all, by_ids);
    for (size_t i = 1; !rc && i < cfg->n_path; i++)
        if (!strcmp(all[i].ids, all[i - 1].ids) &&
            strcmp(all[i].path, all[i - 1].path) != 0)
            rc =
                slu_fail(err, SLU_E_USAGE,
                         "%s and %s are one input (%s and its index); name one of them",
                         all[i - 1].path, all[i].path, all[i].ids);
    free(all);
    return rc;
}

/* Opens every input once, so that errors in any of them appear before any work. */
static int look_at_all(struct docs *x, struct slu_err *err)
{
    for (size_t i = 0; i < x->cfg.n_path; i++) {
        struct slu_docs_file f = {.path = x->cfg.path[i]};
        int rc = x->format->open(&f, &x->cfg, x->cfg.path[i], err);
        if (rc)
            return rc;
        x->input[i] = (struct input){f.ids, f.type, f.n_tok};
        f.ids = NULL;
        x->format->close(&f);
    }
    return check_twice(&x->cfg, x->input, err);
}

static void free_docs(void *input)
{
    struct docs *x = input;
    if (x->open)
        x->format->close(&x->file);
    for (size_t i = 0; x->input && i < x->cfg.n_path; i++)
        free(x->input[i].ids);
    free(x->input);
    free(x);
}

static int new_docs(struct docs **out, const struct slu_tokens_cfg *cfg,
                    const struct slu_docs_format *format, struct slu_err *err)
{
    struct docs *x = calloc(1, sizeof *x);
    *out = NULL;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->format = format;
    x->input = calloc(cfg->n_path, sizeof *x->input);
    int rc = x->input ? look_at_all(x, err)
                      : slu_fail_nomem(err, cfg->n_path * sizeof *x->input);
    if (!rc)
        rc = find_vocab_size(cfg, x->input, &x->vocab_size, err);
    x->want_bytes = slu_tokens_width(x->vocab_size);
    if (rc)
        free_docs(x);
    else
        *out = x;
    return rc;
}

/* ---- the table, one document after another ---- */

static int open_next(struct docs *x, struct slu_err *err)
{
    const char *path = x->cfg.path[x->at_path];
    const struct input *in = &x->input[x->at_path];
    x->file = (struct slu_docs_file){.path = path};
    int rc = x->format->open(&x->file, &x->cfg, path, err);
    if (rc)
        return rc;
    x->open = true;
    x->at_tok = x->at_doc = 0;
    x->have_end = false;
    if (x->file.n_tok != in->n_tok || x->file.type != in->type)
        return slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read", path);
    return SLU_OK;
}

/* Finds the end of the next document of all inputs: x->end. SLU_EOF after the last.
 * *other: the document is the first of another input. */
static int next_end(struct docs *x, bool *other, struct slu_err *err)
{
    *other = false;
    for (;;) {
        if (x->have_end)
            return SLU_OK;
        if (!x->open && x->at_path == x->cfg.n_path)
            return SLU_EOF;
        int rc = x->open ? SLU_OK : open_next(x, err);
        if (rc)
            return rc;
        if (x->at_doc < x->file.n_doc) {
            rc = x->format->next(&x->file, &x->end, err);
            x->have_end = !rc;
            if (rc)
                return rc;
            continue;
        }
        x->format->close(&x->file);
        x->open = false;
        x->at_path++;
        *other = true;
    }
}

/* Moves on after the document that ends at x->end was taken. */
static void took(struct docs *x)
{
    x->at_tok = x->end;
    x->at_doc++;
    x->have_end = false;
}

static int add_row(struct docs *x, struct slu_batch *b, uint64_t len_tok,
                   struct slu_err *err)
{
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){b->n_tok, len_tok, b->n_seg, 1};
    b->seg[b->n_seg++] = (struct slu_seg){.source = x->at_path,
                                          .document = x->at_doc,
                                          .len_tok = len_tok,
                                          .domain = SLU_NO_DOMAIN};
    b->n_tok += len_tok;
    return SLU_OK;
}

static int fetch(void *input, struct slu_batch *b, struct slu_err *err)
{
    struct docs *x = input;
    uint64_t first = 0;
    int rc = SLU_OK;
    for (;;) {
        bool other;
        rc = next_end(x, &other, err);
        if (rc || (other && b->n_seq))
            break;
        uint64_t n = x->end - x->at_tok;
        if (n && b->n_seq &&
            (n > SLU_FRAME_TOKENS - b->n_tok || b->n_seq == SLU_FRAME_SEQS))
            break;
        if (x->cfg.max_seq_tok && n > x->cfg.max_seq_tok)
            return slu_advise(
                err, SLU_ADVISE_MEMORY,
                slu_fail(err, SLU_E_LIMIT,
                         "%s: document %llu has %llu tokens, too many for this memory",
                         x->cfg.path[x->at_path], (unsigned long long)x->at_doc,
                         (unsigned long long)n));
        if (!b->n_seq)
            first = x->at_tok;
        x->empty += !n;
        rc = n ? add_row(x, b, n, err) : SLU_OK;
        if (rc)
            return rc;
        took(x);
        if (b->n_tok >= SLU_FRAME_TOKENS)
            break;
    }
    if (rc < 0 || !b->n_seq)
        return rc;
    slu_count_add(&x->given, (struct slu_count){b->n_seq, b->n_seq, b->n_tok});
    x->n_byte += b->n_tok * slu_id_bytes(x->input[b->seg[0].source].type);
    return slu_buf_append(&b->own, &first, sizeof first, err);
}

/* ---- ids ---- */

/* Reads n ids from id `first` on. Opens the file for each batch, so that the number of
 * files is unlimited; a MiB of ids costs far more than an open. */
static int read_ids(const struct input *in, void *buf, uint64_t first, uint64_t n,
                    struct slu_err *err)
{
    unsigned bytes = slu_id_bytes(in->type);
    uint64_t n_byte;
    int fd, rc = slu_docs_open_file(&fd, &n_byte, in->ids, err);
    if (rc)
        return rc;
    if (n_byte != in->n_tok * bytes)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read", in->ids);
    if (!rc) {
        rc = slu_pread_full(fd, buf, n * bytes, first * bytes, err);
        if (rc)
            slu_err_at(err, "%s", in->ids);
    }
    close(fd);
    return rc;
}

static int open_batch(const void *input, struct slu_batch *b, struct slu_err *err)
{
    const struct docs *x = input;
    const struct input *in = &x->input[b->seg[0].source];
    unsigned bytes = slu_id_bytes(in->type), most = bytes;
    uint64_t first, no_eos = 0;
    size_t size;
    memcpy(&first, b->own.data, sizeof first);
    most = x->want_bytes > most ? x->want_bytes : most;
    slu_buf_clear(&b->own);
    if (slu_mul_overflow(b->n_tok, most, &size))
        return slu_fail_nomem(err, UINT64_MAX);
    int rc = slu_buf_reserve(&b->own, size, err);
    if (!rc)
        rc = read_ids(in, b->own.data, first, b->n_tok, err);
    if (!rc)
        rc = slu_ids_take(b->own.data, b->n_tok, in->type, x->want_bytes, x->vocab_size,
                          in->ids, first, err);
    if (rc)
        return rc;
    b->own.len = b->n_tok * x->want_bytes;
    b->tok = b->own.data;
    for (size_t i = 0; x->cfg.eos != SLU_NO_TOKEN && i < b->n_seq; i++)
        no_eos += slu_batch_id(b, b->seq[i].tok_off + b->seq[i].len_tok - 1) !=
                  (uint32_t)x->cfg.eos;
    ((struct docs *)(uintptr_t)x)->no_eos += no_eos; /* an atomic count */
    return SLU_OK;
}

static int finish(void *input, const struct slu_sum *seen, struct slu_err *err)
{
    const struct docs *x = input;
    int rc = slu_tokens_all_seen(&x->given, seen, err);
    if (!rc && x->cfg.seen) {
        x->cfg.seen->no_eos += x->no_eos;
        x->cfg.seen->empty += x->empty;
    }
    return rc;
}

static uint64_t bytes_read(const void *input)
{
    return ((const struct docs *)input)->n_byte;
}

int slu_docs_open(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                  const struct slu_docs_format *format, struct slu_err *err)
{
    static const struct slu_input_ops ops = {.fetch = fetch,
                                             .open = open_batch,
                                             .finish = finish,
                                             .bytes = bytes_read,
                                             .free = free_docs};
    struct docs *x;
    int rc = new_docs(&x, cfg, format, err);
    if (rc)
        return rc;
    return slu_tokens_reader(r, cfg, &ops, x, x->vocab_size, err);
}

/* ---- lengths: the tables alone ---- */

enum { LENGTHS = 8192 };

static int count_all(struct docs *x, struct slu_lengths *l,
                     const struct slu_tokens_lengths_cfg *how,
                     struct slu_tokens_lengths *out, struct slu_err *err)
{
    uint64_t len[LENGTHS];
    size_t n = 0;
    for (;;) {
        bool other;
        int rc = next_end(x, &other, err);
        if (rc < 0)
            return rc;
        if (rc || n == LENGTHS) {
            int bad = slu_lengths_add(l, len, n, err);
            if (bad || rc)
                return bad;
            if (how->progress)
                how->progress(how->progress_arg, 8 * out->documents, out->tokens);
            n = 0;
        }
        uint64_t len_tok = x->end - x->at_tok;
        if (len_tok) {
            len[n++] = len_tok;
            out->documents++;
            out->tokens += len_tok;
        }
        x->empty += !len_tok;
        took(x);
    }
}

int slu_docs_lengths(const struct slu_tokens_cfg *cfg,
                     const struct slu_docs_format *format,
                     const struct slu_tokens_lengths_cfg *how,
                     struct slu_tokens_lengths *out, struct slu_err *err)
{
    struct slu_tokens_cfg any = *cfg;
    struct slu_lengths *l = NULL;
    uint64_t left = how->memory;
    struct docs *x;
    any.any_id = true;
    int rc = new_docs(&x, &any, format, err);
    if (rc)
        return rc;
    rc = slu_lengths_new(&l, NULL, &left, err);
    if (!rc)
        rc = count_all(x, l, how, out, err);
    if (!rc)
        rc = slu_lengths_rows(l, &out->row, &out->n_row, err);
    if (!rc && cfg->seen)
        cfg->seen->empty += x->empty;
    out->level = "index";
    slu_lengths_free(l);
    free_docs(x);
    return rc;
}
