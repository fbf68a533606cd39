#include "ngrams_cut.h"

#include <stdlib.h>

void slu_gram_cut_init(struct slu_gram_cut *c, unsigned tok_bytes)
{
    *c = (struct slu_gram_cut){0};
    slu_batch_init(&c->out, tok_bytes);
}

void slu_gram_cut_release(struct slu_gram_cut *c)
{
    slu_batch_release(&c->out);
    slu_buf_release(&c->tok);
    free(c->seg);
    *c = (struct slu_gram_cut){0};
}

/* Keeps tokens [from, to) of q, which are in segment s; s begins at `begin`. */
static int keep_tokens(struct slu_gram_cut *c, size_t *n_seg, const struct slu_batch *b,
                       const struct slu_seq *q, const struct slu_seg *s, uint64_t begin,
                       uint64_t from, uint64_t to, struct slu_err *err)
{
    if (from >= to)
        return SLU_OK;
    int rc = slu_grow(&c->seg, &c->cap_seg, *n_seg + 1, sizeof *c->seg, err);
    if (!rc)
        rc = slu_buf_append(&c->tok, slu_batch_at(b, q->tok_off + from),
                            (to - from) * b->tok_bytes, err);
    if (rc)
        return rc;
    struct slu_seg *t = &c->seg[(*n_seg)++];
    *t = *s;
    t->offset += from - begin;
    t->len_tok = to - from;
    return SLU_OK;
}

/* Appends the rest of the sequence to c->out. */
static int add(struct slu_gram_cut *c, const struct slu_batch *b,
               const struct slu_seq *q, const struct slu_gram_run *drop, size_t n_drop,
               struct slu_count *gone, struct slu_err *err)
{
    struct slu_batch *out = &c->out;
    uint64_t begin = 0, end;
    size_t n_seg = 0, k = 0;
    int rc = SLU_OK;

    slu_buf_clear(&c->tok);
    for (uint64_t i = 0; !rc && i < q->n_seg; i++, begin = end) {
        const struct slu_seg *s = &b->seg[q->seg_off + i];
        uint64_t at = begin;
        end = begin + s->len_tok;
        /* A run may continue in the next segment, where it is handled again. */
        while (!rc && s->source != SLU_PADDING && k < n_drop && drop[k].tok < end) {
            uint64_t over = drop[k].tok + drop[k].n_tok;
            rc = keep_tokens(c, &n_seg, b, q, s, begin, at, drop[k].tok, err);
            at = over < end ? over : end;
            if (over > end)
                break;
            k++;
        }
        if (!rc)
            rc = keep_tokens(c, &n_seg, b, q, s, begin, at, end, err);
    }
    *gone = slu_seq_count(b, q);
    uint64_t left = c->tok.len / b->tok_bytes;
    if (!rc && left)
        rc = slu_batch_add(out, c->tok.data, left, c->seg, n_seg, b->str.data, err);
    if (!rc && left) {
        struct slu_count stays = slu_seq_count(out, &out->seq[out->n_seq - 1]);
        slu_count_sub(gone, stays);
    }
    return rc;
}

int slu_gram_cut_keep(struct slu_gram_cut *c, struct slu_batch *b,
                      const struct slu_seq *q, const struct slu_gram_run *drop,
                      size_t n_drop, struct slu_count *gone, struct slu_err *err)
{
    int rc = SLU_OK;

    *gone = (struct slu_count){0, 0, 0};
    if (!n_drop && !c->cutting) {
        b->seq[c->kept++] = *q;
        return SLU_OK;
    }
    if (!c->cutting)
        rc = slu_batch_copy(&c->out, b, c->kept, err);
    c->cutting = true;
    return rc ? rc : add(c, b, q, drop, n_drop, gone, err);
}

int slu_gram_cut_end(struct slu_gram_cut *c, struct slu_batch *b,
                     int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err),
                     void *ctx, struct slu_err *err)
{
    struct slu_batch *out = c->cutting ? &c->out : b;

    slu_batch_keep(b, c->kept);
    int rc = out->n_seq ? emit(ctx, out, err) : SLU_OK;
    slu_batch_trim(&c->out);
    c->kept = 0;
    c->cutting = false;
    return rc;
}
