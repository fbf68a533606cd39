/* tokens_npy_rows.c - the format npy: documents by the rows of the .csv.gz beside a
 * file of ids. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tokens_npy.h"

/* *name: name of the rows beside path; NULL: there are none. Caller frees. */
static int rows_beside(char **name, const char *path, struct slu_err *err)
{
    struct stat st;
    *name = NULL;
    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return SLU_OK;
    int rc = slu_olmo_rows_name(name, path, err);
    if (!rc && *name && stat(*name, &st)) {
        free(*name);
        *name = NULL;
    }
    return rc;
}

bool slu_npy_has_rows(const char *path)
{
    char *name;
    bool has = !rows_beside(&name, path, NULL) && name;
    free(name);
    return has;
}

static int next_row(struct slu_npy *x, struct slu_err *err)
{
    int rc = slu_olmo_rows_next(x->rows, &x->row, err);
    x->have_row = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_npy_open_rows(struct slu_npy *x, struct slu_err *err)
{
    char *name;
    int rc = rows_beside(&name, x->cfg.path[x->at_path], err);
    slu_olmo_rows_close(x->rows);
    x->rows = NULL;
    x->gap_id = SLU_NO_TOKEN;
    if (!rc && name)
        rc = slu_olmo_rows_open(&x->rows, name, x->file.n_tok, err);
    if (!rc && name)
        rc = next_row(x, err);
    free(name);
    return rc;
}

/* Skips the ids up to `to`, which belong to no row. They must be padding, all the same
 * id; otherwise rows are missing. */
static int skip_gap(struct slu_npy *x, uint64_t to, struct slu_err *err)
{
    const unsigned w = x->file.tok_bytes;
    uint64_t from = x->file.at_tok;
    while (x->file.at_tok < to) {
        uint64_t left = to - x->file.at_tok;
        slu_buf_clear(&x->carry);
        int rc = slu_npy_read_more(
            x, &x->carry, left < SLU_FRAME_TOKENS ? (size_t)left : SLU_FRAME_TOKENS,
            err);
        if (rc)
            return rc;
        for (size_t i = 0; i < x->carry.len / w; i++) {
            uint64_t id = w == 2 ? ((const uint16_t *)(const void *)x->carry.data)[i]
                                 : ((const uint32_t *)(const void *)x->carry.data)[i];
            if (x->gap_id == SLU_NO_TOKEN)
                x->gap_id = id;
            if (id != x->gap_id)
                return slu_fail(
                    err, SLU_E_FORMAT,
                    "%s: ids %llu to %llu are in no row of the .csv.gz beside it, and "
                    "are not padding, which is one id repeated; its rows are "
                    "incomplete, or belong to another file",
                    x->file.path, (unsigned long long)from, (unsigned long long)to);
        }
    }
    slu_buf_clear(&x->carry);
    if (x->cfg.seen && to > from && !x->cfg.seen->gap_tok)
        x->cfg.seen->gap_name = x->file.path;
    if (x->cfg.seen)
        x->cfg.seen->gap_tok += to - from;
    return SLU_OK;
}

/* Adds the document of the current row, whose ids were read. */
static int add_document(struct slu_npy *x, struct slu_batch *b, struct slu_err *err)
{
    uint64_t len = x->row.end - x->row.start, id_off = b->str.len;
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + 1, sizeof *b->seg, err);
    if (!rc && x->row.n_id)
        rc = slu_buf_append(&b->str, x->row.id, x->row.n_id, err);
    if (!rc)
        rc = slu_npy_read_more(x, &b->own, len, err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){b->n_tok, len, b->n_seg, 1};
    b->seg[b->n_seg++] = (struct slu_seg){.source = x->at_path,
                                          .document = x->row.start,
                                          .len_tok = len,
                                          .domain = SLU_NO_DOMAIN,
                                          .id_len = (uint32_t)x->row.n_id,
                                          .id_off = id_off};
    b->n_tok += len;
    return SLU_OK;
}

int slu_npy_fill_rows(struct slu_npy *x, struct slu_batch *b, struct slu_err *err)
{
    int rc = SLU_OK;
    while (!rc && x->have_row && b->n_seq < SLU_FRAME_SEQS) {
        uint64_t len = x->row.end - x->row.start;
        if (len == 0) {
            if (x->cfg.seen)
                x->cfg.seen->empty++;
            rc = next_row(x, err);
            continue;
        }
        if (x->cfg.max_seq_tok && len > x->cfg.max_seq_tok)
            return slu_npy_too_long(x, x->row.start, err);
        if (b->n_seq && (b->n_tok + len > SLU_FRAME_TOKENS ||
                         b->str.len + x->row.n_id > SLU_FRAME_IDS))
            return SLU_OK;
        rc = skip_gap(x, x->row.start, err);
        if (!rc)
            rc = add_document(x, b, err);
        if (!rc)
            rc = next_row(x, err);
    }
    if (rc || x->have_row)
        return rc;
    rc = skip_gap(x, x->file.n_tok, err);
    x->open = false;
    slu_npy_close(&x->file);
    return rc;
}
