/* tokens_npy.c - the format npy: batches of documents from files of ids, cut at EOS, or
 * by the rows beside the files (tokens_npy_rows.c). */
#include <stdlib.h>
#include <string.h>

#include "tokens_npy.h"

static int next_file(struct slu_npy *x, struct slu_err *err)
{
    const char *path = x->cfg.path[x->at_path];
    int rc = slu_npy_open(&x->file, &x->cfg, path, err);
    if (!rc && x->file.tok_bytes != x->width[x->at_path])
        rc = slu_advise(err, SLU_ADVISE_WIDTH_IN_HEADER,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: its header says ids of %u bytes",
                                 slu_tokens_name(path), x->file.tok_bytes));
    x->open = !rc;
    x->ended = x->any_eos = false;
    x->first = x->clean = 0;
    slu_buf_clear(&x->carry);
    return rc ? rc : slu_npy_open_rows(x, err);
}

int slu_npy_read_more(struct slu_npy *x, struct slu_buf *buf, size_t n,
                      struct slu_err *err)
{
    size_t got;
    int rc = slu_buf_reserve(buf, n * x->file.tok_bytes, err);
    if (!rc)
        rc = slu_npy_read(&x->file, buf->data + buf->len, n, &got, err);
    if (rc)
        return rc;
    buf->len += got * x->file.tok_bytes;
    x->n_byte += got * x->file.tok_bytes;
    x->ended = got < n || x->file.at_tok == x->file.n_tok;
    return SLU_OK;
}

int slu_npy_too_long(const struct slu_npy *x, uint64_t first, struct slu_err *err)
{
    return slu_advise(err, SLU_ADVISE_MEMORY,
                      slu_fail(err, SLU_E_LIMIT,
                               "%s: the document that begins at id %llu has more than "
                               "%llu tokens, too many for this memory%s",
                               slu_tokens_name(x->file.path), (unsigned long long)first,
                               (unsigned long long)x->cfg.max_seq_tok,
                               x->rows ? "" : ", or the EOS id is wrong"));
}

/* Adds the row of a document with ids [from, to) of the batch. */
static int add_row(struct slu_npy *x, struct slu_batch *b, size_t from, size_t to,
                   struct slu_err *err)
{
    if (x->cfg.max_seq_tok && to - from > x->cfg.max_seq_tok)
        return slu_npy_too_long(x, x->first + from, err);
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){from, to - from, b->n_seg, 1};
    b->seg[b->n_seg++] = (struct slu_seg){.source = x->at_path,
                                          .document = x->first + from,
                                          .len_tok = to - from,
                                          .domain = SLU_NO_DOMAIN};
    return SLU_OK;
}

/* Reads until the end of a document or of the file was found. *n_at positions, counted
 * from `base`; *seen: number of ids that were searched. */
static int find_ends(struct slu_npy *x, struct slu_buf *own, size_t *base, size_t *n_at,
                     size_t *seen, struct slu_err *err)
{
    const unsigned w = x->file.tok_bytes;
    size_t room = SLU_FRAME_TOKENS;
    *base = x->clean;
    for (;; room += SLU_FRAME_TOKENS) {
        size_t n = own->len / w;
        if (!x->ended && n < room) {
            int rc = slu_npy_read_more(x, own, room - n, err);
            if (rc)
                return rc;
            n = own->len / w;
        }
        *n_at = slu_eos_find(x->kernel, own->data + *base * w, n - *base, w,
                             (uint32_t)x->cfg.eos, x->at, SLU_FRAME_SEQS, seen);
        if (*n_at || x->ended)
            return SLU_OK;
        if (x->cfg.max_seq_tok && n > x->cfg.max_seq_tok)
            return slu_npy_too_long(x, x->first, err);
        *base = n;
    }
}

/* Reads the next documents of the open file; none at its end. */
static int fill(struct slu_npy *x, struct slu_batch *b, struct slu_err *err)
{
    const unsigned w = x->file.tok_bytes;
    struct slu_buf *own = &b->own;
    size_t base, n_at, seen, begin = 0;
    int rc = slu_buf_append(own, x->carry.data, x->carry.len, err);
    if (!rc)
        rc = find_ends(x, own, &base, &n_at, &seen, err);
    if (rc)
        return rc;
    size_t n = own->len / w;
    bool whole = base + seen == n; /* the ids after the last position have no EOS */
    x->any_eos |= n_at > 0;
    for (size_t i = 0; i < n_at; i++) {
        size_t end = base + x->at[i] + 1;
        rc = add_row(x, b, begin, end, err);
        if (rc)
            return rc;
        begin = end;
    }
    if (x->ended && whole) {
        slu_npy_account_end(&x->cfg, x->file.path, n - begin, x->any_eos);
        if (begin < n)
            rc = add_row(x, b, begin, n, err);
        begin = n;
        x->open = false;
        slu_npy_close(&x->file);
    }
    slu_buf_clear(&x->carry);
    if (!rc && begin < n)
        rc = slu_buf_append(&x->carry, own->data + begin * w, (n - begin) * w, err);
    x->clean = whole ? n - begin : 0;
    x->first += begin;
    own->len = begin * w;
    b->n_tok = begin;
    return rc;
}

static int fetch(void *input, struct slu_batch *b, struct slu_err *err)
{
    struct slu_npy *x = input;
    while (b->n_seq == 0) {
        int rc = SLU_OK;
        if (!x->open && x->at_path == x->cfg.n_path)
            return SLU_EOF;
        if (!x->open)
            rc = next_file(x, err);
        if (!rc)
            rc = x->rows ? slu_npy_fill_rows(x, b, err) : fill(x, b, err);
        if (rc)
            return rc;
        x->at_path += !x->open;
    }
    slu_count_add(&x->given, (struct slu_count){b->n_seq, b->n_seq, b->n_tok});
    return SLU_OK;
}

static int open_batch(const void *input, struct slu_batch *b, struct slu_err *err)
{
    const struct slu_npy *x = input;
    size_t source = b->seg[0].source, n = b->n_tok;
    unsigned w = x->width[source];
    int rc = slu_tokens_check(b->own.data, n, w, x->vocab_size, x->cfg.path[source],
                              b->seg[0].document, NULL);
    for (size_t i = 0, at = 0; rc && i < b->n_seq; at += b->seq[i++].len_tok) {
        /* Padding may lie between documents, so the message gives the position of the
         * id. */
        int here =
            slu_tokens_check(b->own.data + at * w, b->seq[i].len_tok, w, x->vocab_size,
                             x->cfg.path[source], b->seg[i].document, err);
        if (here)
            return here;
    }
    if (!rc && w < x->want_width)
        rc = slu_buf_reserve(&b->own, n * 2, err);
    if (rc)
        return rc;
    uint16_t *narrow = (void *)b->own.data;
    uint32_t *wide = (void *)b->own.data;
    if (w > x->want_width)
        for (size_t i = 0; i < n; i++) {
            uint32_t v;
            memcpy(&v, wide + i, sizeof v);
            memcpy(narrow + i, &(uint16_t){(uint16_t)v}, 2);
        }
    if (w < x->want_width)
        for (size_t i = n; i-- > 0;) {
            uint16_t v;
            memcpy(&v, narrow + i, sizeof v);
            memcpy(wide + i, &(uint32_t){v}, 4);
        }
    b->own.len = n * x->want_width;
    b->tok = b->own.data;
    return SLU_OK;
}

static int finish(void *input, const struct slu_sum *seen, struct slu_err *err)
{
    const struct slu_npy *x = input;
    return slu_tokens_all_seen(&x->given, seen, err);
}

static uint64_t bytes(const void *input)
{
    return ((const struct slu_npy *)input)->n_byte;
}

static void free_input(void *input)
{
    struct slu_npy *x = input;
    if (x->open)
        slu_npy_close(&x->file);
    slu_olmo_rows_close(x->rows);
    slu_buf_release(&x->carry);
    free(x->width);
    free(x->at);
    free(x);
}

static int open_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                       struct slu_err *err)
{
    static const struct slu_input_ops ops = {.fetch = fetch,
                                             .open = open_batch,
                                             .finish = finish,
                                             .bytes = bytes,
                                             .free = free_input};
    struct slu_npy *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->kernel = slu_eos_kernel(NULL);
    x->width = calloc(cfg->n_path, 1);
    x->at = malloc(SLU_FRAME_SEQS * sizeof *x->at);
    int rc = x->width && x->at ? slu_npy_plan(cfg, &x->vocab_size, x->width, NULL, err)
                               : slu_fail_nomem(err, SLU_FRAME_SEQS * sizeof *x->at);
    if (rc) {
        free_input(x);
        return rc;
    }
    x->want_width = slu_tokens_width(x->vocab_size);
    return slu_tokens_reader(r, cfg, &ops, x, x->vocab_size, err);
}

/* A file with rows need not be scanned. */
static bool scans(const struct slu_tokens_cfg *cfg)
{
    for (size_t i = 0; i < cfg->n_path; i++)
        if (slu_npy_has_rows(cfg->path[i]))
            return false;
    return true;
}

const struct slu_tokens_format slu_tokens_npy = {.name = "npy",
                                                 .probe = slu_npy_probe,
                                                 .open = open_reader,
                                                 .lengths = slu_npy_lengths,
                                                 .scans = scans};
