/* stream_over.c - readers of files that are not streams. */
#include <stdlib.h>

#include "stream_reader.h"

int slu_reader_over(struct slu_reader **out, const struct slu_input_ops *ops,
                    void *input, const struct slu_header *h, struct slu_err *err)
{
    struct slu_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) {
        ops->free(input);
        return slu_fail_nomem(err, sizeof *r);
    }
    r->fd = -1;
    r->ops = ops;
    r->input = input;
    slu_header_init(&r->header);
    pthread_mutex_init(&r->mu, NULL);
    int rc = slu_names_new(&r->names, err);
    if (!rc)
        rc = slu_header_copy(&r->header, h, err);
    if (rc)
        slu_reader_free(r);
    else
        *out = r;
    return rc;
}

int slu_over_fetch(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    slu_batch_clear(b);
    b->tok_bytes = r->header.tok_bytes;
    int rc = r->ops->fetch(r->input, b, err);
    if (!rc)
        b->number = r->n_batch++;
    if (!rc && (b->n_tok > SLU_FRAME_TOKENS || b->n_seq <= SLU_LONG_SEQS))
        slu_reader_take(r, b->n_tok);
    return rc;
}

int slu_over_open(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    int rc = r->ops->open(r->input, b, err);
    if (rc)
        return rc;
    b->unsummed = !b->sum_valid && slu_reader_may_wait(r, b); /* of a set: summed */
    if (!b->unsummed)
        slu_batch_sum(b);
    b->sum_read = b->sum;
    slu_drop_meta(r, b);
    slu_identity_open(r, b);
    return SLU_OK;
}
