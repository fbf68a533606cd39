/* permute_pass.c - the input's order without a sorter: sequences pass from the reader to
 * the caller, who takes each as it comes. */
#include "permute_private.h"

void slu_permute_pass(struct slu_permute *p, struct slu_reader *r,
                      struct slu_sum *total,
                      void (*progress)(void *ctx, uint64_t n_tok), void *ctx)
{
    p->header = slu_reader_header(r);
    p->input = r;
    p->total = total;
    p->progress = progress;
    p->progress_ctx = ctx;
}

/* Whether a sequence is among those that are taken; counts it. */
static bool takes(struct slu_permute *p, const struct slu_batch *b,
                  const struct slu_seq *q)
{
    struct slu_permute_result *r = &p->result;
    const struct slu_count n = slu_seq_count(b, q);
    struct slu_judged j;

    slu_permute_judge(p, b, q, &j, NULL);
    if (j.verdict != TAKE) {
        slu_count_add(slu_permute_left(r, j.verdict), n);
        r->left_checksum = slu_u128_add(r->left_checksum, j.key);
        return false;
    }
    slu_count_add(&r->taken, n);
    p->full = p->full || q->len_tok > p->room;
    if (p->full)
        return false;
    p->room -= q->len_tok;
    slu_count_add(&r->out, n);
    return true;
}

int slu_permute_passed(struct slu_permute *p, struct slu_pipe *pipe,
                       struct slu_batch *b, struct slu_err *err)
{
    size_t n = 0;

    if (p->input)
        slu_reader_use_pipe(p->input, pipe);
    while (p->input && !n) {
        int rc = slu_reader_next(p->input, b, err);
        if (rc < 0)
            return rc;
        if (rc == SLU_EOF) {
            slu_reader_use_pipe(p->input, NULL);
            rc = slu_reader_finish(p->input, p->total, err);
            p->input = NULL;
            if (rc)
                return rc;
            break;
        }
        for (size_t i = 0; i < b->n_seq; i++)
            if (takes(p, b, &b->seq[i]))
                b->seq[n++] = b->seq[i];
        slu_batch_keep(b, n);
        p->n_tok += b->n_tok;
        if (p->progress)
            p->progress(p->progress_ctx, p->n_tok);
    }
    return n ? SLU_OK : SLU_EOF;
}
