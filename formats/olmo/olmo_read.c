/* olmo_read.c - reads back the files of ids for OLMo-core that sluice writes: the ids,
 * rows that cover all ids but padding, and masks. Of whole documents, a row is a
 * sequence. */
#include <stdlib.h>

#include "formats/ids/raw_file.h"
#include "formats/ids/tokens_private.h"
#include "formats/shards/shardset.h"
#include "lib/stream/mask.h"
#include "olmo_rows.h"

struct olmo {
    struct slu_raw *ids, *marks; /* marks NULL: no masks */
    uint64_t n_id, n_seq, at;    /* ids of a sequence, 0 of whole documents; number of
                                 sequences; the next one */
    uint64_t n_tok, at_tok;      /* ids in the file; ids read */
    unsigned tok_bytes;
    struct slu_olmo_rows *rows;
    struct slu_olmo_row row; /* the next row, if have_row */
    bool have_row, gaps;     /* gaps: padding may stand between segments */
    struct slu_buf mask;
};

static void olmo_close(void *state)
{
    struct olmo *o = state;
    if (!o)
        return;
    slu_raw_free(o->ids);
    slu_raw_free(o->marks);
    slu_buf_release(&o->mask);
    slu_olmo_rows_close(o->rows);
    free(o);
}

static int next_row(struct olmo *o, struct slu_err *err)
{
    int rc = slu_olmo_rows_next(o->rows, &o->row, err);
    o->have_row = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Opens a file that has `width` bytes for each id; the first of whole documents says
 * how many. */
static int open_file(struct slu_raw **raw, const char *path, struct olmo *o,
                     unsigned width, struct slu_err *err)
{
    const bool marks = raw == &o->marks;
    int rc = slu_raw_open(raw, path, false, NULL, err);
    if (rc)
        return marks ? slu_err_at(err, "the label_mask beside it") : rc;
    const uint64_t n_byte = slu_raw_stored(*raw);
    if (!o->n_id && !o->n_tok)
        o->n_tok = n_byte / width;
    if (o->n_tok <= UINT64_MAX / width && n_byte == o->n_tok * width)
        return SLU_OK;
    return slu_fail(err, SLU_E_TRUNCATED,
                    "%shas %llu bytes; %llu ids of %u bytes were expected",
                    marks ? "the label_mask beside it " : "",
                    (unsigned long long)n_byte, (unsigned long long)o->n_tok, width);
}

static int olmo_open(void **state, const char *const *path,
                     const struct slu_shard_bucket *b, uint64_t n_seq,
                     struct slu_err *err)
{
    struct olmo *o = calloc(1, sizeof *o);
    *state = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    *o = (struct olmo){.n_id = b->n_id,
                       .n_seq = n_seq,
                       .tok_bytes = b->tok_bytes,
                       .gaps = b->inner_padding};
    int rc = SLU_OK;
    if (__builtin_mul_overflow(n_seq, b->n_id, &o->n_tok))
        rc = slu_fail(err, SLU_E_TRUNCATED, "%llu sequences of %llu ids are missing",
                      (unsigned long long)n_seq, (unsigned long long)b->n_id);
    if (!rc)
        rc = open_file(&o->ids, path[0], o, b->tok_bytes, err);
    if (!rc && b->masks)
        rc = open_file(&o->marks, path[2], o, 1, err);
    if (!rc)
        rc = slu_olmo_rows_open(&o->rows, path[1], o->n_tok, err);
    if (!rc)
        rc = next_row(o, err);
    if (rc)
        olmo_close(o);
    else
        *state = o;
    return rc;
}

/* Checks the rows of the current sequence: they begin with its first id, have no gaps,
 * and reach its end or its padding. Padding between segments is a gap, where the set may
 * have some. */
static int check_rows(struct olmo *o, struct slu_err *err)
{
    uint64_t begin = o->at * o->n_id, end = begin + o->n_id, at = begin;
    int rc = SLU_OK;
    while (!rc && o->have_row && o->row.start < end) {
        if (o->row.start < at || (o->row.start != at && !o->gaps) || o->row.end > end)
            return slu_fail(err, SLU_E_FORMAT,
                            "the rows beside it are wrong in sequence %llu: a row "
                            "has ids %llu to %llu, and the sequence ids %llu to %llu",
                            (unsigned long long)o->at, (unsigned long long)o->row.start,
                            (unsigned long long)o->row.end, (unsigned long long)begin,
                            (unsigned long long)end);
        at = o->row.end;
        rc = next_row(o, err);
    }
    if (!rc && at == begin && !o->gaps)
        rc = slu_fail(err, SLU_E_FORMAT, "sequence %llu has no row beside it",
                      (unsigned long long)o->at);
    return rc;
}

/* Marks the n_id ids of the current sequence that are trained on. */
static int read_mask(struct olmo *o, uint32_t *id, uint64_t n_id, struct slu_err *err)
{
    slu_buf_clear(&o->mask);
    int rc = slu_buf_reserve(&o->mask, n_id, err);
    if (!rc)
        rc = slu_raw_take(o->marks, o->mask.data, n_id, err);
    if (!rc)
        rc = slu_mask_check_plain(id, n_id, err);
    uint64_t i = rc ? n_id : slu_mask_mark_bytes(id, o->mask.data, n_id);
    if (i < n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "byte %llu of the label_mask beside it is %u; expected 0 or 1",
                        (unsigned long long)(o->at_tok + i), o->mask.data[i]);
    return rc;
}

/* Gives the length of the next document: its row follows that of the one before. */
static int document(struct olmo *o, uint64_t *n_id, struct slu_err *err)
{
    if (!o->have_row || o->row.start != o->at_tok || o->row.end == o->row.start)
        return slu_fail(err, SLU_E_FORMAT,
                        "the rows beside it are wrong: document %llu begins at id "
                        "%llu",
                        (unsigned long long)o->at, (unsigned long long)o->at_tok);
    *n_id = o->row.end - o->row.start;
    return next_row(o, err);
}

/* After the last document. */
static int end(const struct olmo *o, struct slu_err *err)
{
    if (o->n_id || (!o->have_row && o->at_tok == o->n_tok))
        return SLU_EOF;
    return slu_fail(err, SLU_E_FORMAT, "has %llu ids, and its %llu documents have %llu",
                    (unsigned long long)o->n_tok, (unsigned long long)o->n_seq,
                    (unsigned long long)o->at_tok);
}

static int olmo_next(void *state, uint64_t n_id, struct slu_buf *ids,
                     struct slu_err *err)
{
    struct olmo *o = state;
    /* A further row would exceed the ids, which slu_olmo_rows reports. */
    if (o->at == o->n_seq)
        return end(o, err);
    int rc = o->n_id ? check_rows(o, err) : document(o, &n_id, err);
    if (!rc && o->marks)
        rc = slu_buf_reserve(ids, n_id * 4, err);
    if (!rc)
        rc = slu_raw_append(o->ids, ids, n_id * o->tok_bytes, err);
    if (rc)
        return rc;
    if (o->marks) {
        slu_ids_convert(ids->data, n_id, o->tok_bytes, 4);
        ids->len = n_id * 4;
        rc = read_mask(o, (uint32_t *)(void *)ids->data, n_id, err);
    }
    o->at_tok += n_id;
    o->at++;
    return rc;
}

const struct slu_shard_layout slu_shard_layout_olmo = {
    .format = "olmo",
    .masks = true,
    .narrow = true,
    .open = olmo_open,
    .next = olmo_next,
    .close = olmo_close,
};
