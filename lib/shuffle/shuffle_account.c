/* shuffle_account.c - the account of a part: what was read, written, left out and
 * repeated, with a mix the sequences that the mix took from each source, and the steps
 * that made the part's stream. */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/workfile.h"
#include "lib/shuffle/permute_private.h"
#include "lib/shuffle/shuffle_flow_private.h"

enum { ACCOUNT_COUNTS = 7, ACCOUNT_WORDS = ACCOUNT_COUNTS * (COUNT_WORDS + 1) + 18 };

static const struct slu_u128 none;

int slu_shuffle_check(const struct slu_shuffle_account *b, struct slu_err *err)
{
    const struct slu_permute_result *r = &b->result;
    struct slu_count in = b->in.n, out = r->out;

    slu_count_add(&in, r->repeated);
    slu_count_add(&out, r->no_bucket);
    slu_count_add(&out, r->not_sampled);
    slu_count_add(&out, r->not_mixed);
    if (!memcmp(&in, &out, sizeof in) &&
        !slu_u128_cmp(slu_u128_add(slu_sum_content(&b->in), r->repeated_checksum),
                      slu_u128_add(b->checksum, r->left_checksum)))
        return SLU_OK;
    return slu_fail(err, SLU_E_CONSERVATION,
                    "the sequences written differ from those read (%llu of %llu "
                    "sequences, %llu of %llu tokens, or their checksum)",
                    (unsigned long long)out.sequences, (unsigned long long)in.sequences,
                    (unsigned long long)out.tokens, (unsigned long long)in.tokens);
}

static void add_accounts(struct slu_shuffle_account *a,
                         const struct slu_shuffle_account *b)
{
    struct slu_permute_result *r = &a->result;
    const struct slu_permute_result *s = &b->result;

    slu_sum_add(&a->in, &b->in);
    a->stream = slu_workfile_mix(a->stream, b->stream);
    slu_count_add(&r->out, s->out);
    slu_count_add(&r->not_sampled, s->not_sampled);
    slu_count_add(&r->no_bucket, s->no_bucket);
    slu_count_add(&r->not_mixed, s->not_mixed);
    slu_count_add(&r->repeated, s->repeated);
    r->left_checksum = slu_u128_add(r->left_checksum, s->left_checksum);
    r->repeated_checksum = slu_u128_add(r->repeated_checksum, s->repeated_checksum);
    a->checksum = slu_u128_add(a->checksum, b->checksum);
}

void slu_shuffle_add_cell(struct slu_shuffle_cell *a, const struct slu_shuffle_cell *b)
{
    slu_count_add(&a->n, b->n);
    a->checksum = slu_u128_add(a->checksum, b->checksum);
}

uint64_t *slu_shuffle_put_count(uint64_t *w, struct slu_count n)
{
    const uint64_t v[COUNT_WORDS] = {n.documents, n.sequences, n.tokens};
    memcpy(w, v, sizeof v);
    return w + COUNT_WORDS;
}

struct slu_count slu_shuffle_get_count(const uint64_t *w)
{
    return (struct slu_count){w[0], w[1], w[2], 0};
}

struct slu_shuffle_cell slu_shuffle_get_cell(const uint64_t *w)
{
    return (struct slu_shuffle_cell){slu_shuffle_get_count(w),
                                     {w[COUNT_WORDS], w[COUNT_WORDS + 1]}};
}

/* Lists the fields of the account in the order in which they are stored: those of masks
 * last, and only with masks. Returns their number. */
static size_t account_fields(struct slu_shuffle_account *b, bool masks,
                             uint64_t *field[ACCOUNT_WORDS])
{
    struct slu_permute_result *r = &b->result;
    struct slu_count *count[ACCOUNT_COUNTS] = {
        &b->in.n,      &r->taken,     &r->out,     &r->not_sampled,
        &r->no_bucket, &r->not_mixed, &r->repeated};
    uint64_t *const in[] = {&b->in.segments,
                            &b->in.padding,
                            &b->in.checksum.lo,
                            &b->in.checksum.hi,
                            &b->in.trace_checksum.lo,
                            &b->in.trace_checksum.hi,
                            &b->stream.lo,
                            &b->stream.hi};
    uint64_t *const result[] = {&r->left_checksum.lo,     &r->left_checksum.hi,
                                &r->repeated_checksum.lo, &r->repeated_checksum.hi,
                                &r->spilled_byte,         &b->checksum.lo,
                                &b->checksum.hi};
    size_t n = 0;

    for (unsigned i = 0; i < ACCOUNT_COUNTS; i++) {
        field[n++] = &count[i]->documents;
        field[n++] = &count[i]->sequences;
        field[n++] = &count[i]->tokens;
        for (unsigned k = 0; i == 0 && k < sizeof in / sizeof *in; k++)
            field[n++] = in[k];
    }
    for (unsigned k = 0; k < sizeof result / sizeof *result; k++)
        field[n++] = result[k];
    if (!masks)
        return n;
    for (unsigned i = 0; i < ACCOUNT_COUNTS; i++)
        field[n++] = &count[i]->loss_tokens;
    field[n++] = &b->in.mask_checksum.lo;
    field[n++] = &b->in.mask_checksum.hi;
    return n;
}

/* Returns the number of words for what a part took by a mix: for each source, sequences
 * used and the counts of each period; for each bucket, the counts of each period. */
size_t slu_shuffle_took_words(const struct slu_shuffle_flow *q)
{
    const struct slu_mix *b = q->cfg.mix;
    const size_t n_bucket = q->header->n_bucket ? q->header->n_bucket : 1;

    return b ? b->n_source * (1 + COUNT_WORDS * (size_t)b->n_period) +
                   n_bucket * b->n_period * COUNT_WORDS
             : 0;
}

static void save_took(const struct slu_shuffle_flow *q, const struct slu_permute *p,
                      uint64_t *w)
{
    const struct slu_mix *b = q->cfg.mix;
    const size_t n = (q->header->n_bucket ? q->header->n_bucket : 1) * b->n_period;

    for (unsigned s = 0; s < b->n_source; s++) {
        const struct slu_mix_gave *g = slu_mixer_gave(p->mixer, s);
        *w++ = g->sequences_used;
        for (unsigned k = 0; k < b->n_period; k++)
            w = slu_shuffle_put_count(w, g->taken[k]);
    }
    for (size_t i = 0; i < n; i++)
        w = slu_shuffle_put_count(w, p->period[i]);
}

static int put_steps(const struct slu_shuffle_flow *q, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    int rc = slu_steps_put_json(slu_reader_steps(q->reader), &t, err);
    const struct slu_slice piece = {t.data, t.len};

    if (!rc)
        rc = slu_table_put_bytes(slu_flow_out(q->flow, ACCOUNT), none, &piece, 1, err);
    slu_buf_release(&t);
    return rc;
}

static int add_steps(struct slu_shuffle_flow *q, uint64_t part, struct slu_table *t,
                     struct slu_err *err)
{
    struct slu_json *j = NULL;
    struct slu_row row;
    int rc = slu_table_next(t, &row, err);

    if (rc == SLU_EOF) /* files of 0.2.0 do not have them */
        return slu_steps_add_unknown(&q->steps, err);
    if (!rc)
        rc = slu_json_parse(&j, row.p, row.n_byte, err);
    if (!rc)
        rc = slu_steps_get_json(&q->steps, slu_json_root(j), err);
    slu_json_free(j);
    return rc ? slu_err_at(err, "scatter.%llu", (unsigned long long)part) : SLU_OK;
}

int slu_shuffle_put_account(const struct slu_shuffle_flow *q,
                            const struct slu_permute *p, struct slu_err *err)
{
    const size_t n = slu_shuffle_took_words(q);
    uint64_t *took = calloc(n + 1, sizeof *took);
    struct slu_shuffle_account account = q->account;
    uint64_t *field[ACCOUNT_WORDS], w[ACCOUNT_WORDS];
    const size_t n_field = account_fields(&account, q->header->masks, field);
    struct slu_slice piece = {w, n_field * sizeof *w};

    if (!took)
        return slu_fail_nomem(err, n * sizeof *took);
    account.result.spilled_byte = 0; /* depends on the memory */
    for (size_t i = 0; i < n_field; i++)
        w[i] = *field[i];
    int rc = slu_table_put_bytes(slu_flow_out(q->flow, ACCOUNT), none, &piece, 1, err);
    if (!rc && n) {
        piece = (struct slu_slice){took, n * sizeof *took};
        save_took(q, p, took);
        rc = slu_table_put_bytes(slu_flow_out(q->flow, ACCOUNT), none, &piece, 1, err);
    }
    free(took);
    return rc ? rc : put_steps(q, err);
}

int slu_shuffle_next_bytes(struct slu_shuffle_flow *q, unsigned table, uint64_t part,
                           struct slu_table *t, size_t n_byte, struct slu_row *row,
                           struct slu_err *err)
{
    int rc = slu_flow_next(q->flow, table, part, t, row, err);

    return rc || row->n_byte == n_byte ? rc
                                       : slu_flow_damaged(q->flow, table, part, err);
}

int slu_shuffle_add_account(struct slu_shuffle_flow *q, uint64_t part,
                            struct slu_table *t, struct slu_err *err)
{
    const size_t n = slu_shuffle_took_words(q);
    struct slu_shuffle_account account = {0};
    uint64_t *field[ACCOUNT_WORDS];
    const size_t n_field = account_fields(&account, q->header->masks, field);
    struct slu_row row;
    int rc = slu_shuffle_next_bytes(q, ACCOUNT, part, t, n_field * sizeof **field, &row,
                                    err);

    if (rc)
        return rc;
    for (size_t i = 0; i < n_field; i++)
        *field[i] = ((const uint64_t *)row.p)[i];
    add_accounts(&q->account, &account);
    rc = slu_shuffle_check(&account, err);
    if (rc)
        return slu_err_at(err, "scatter.%llu", (unsigned long long)part);
    if (n)
        rc =
            slu_shuffle_next_bytes(q, ACCOUNT, part, t, n * sizeof *q->took, &row, err);
    for (size_t i = 0; i < n && !rc; i++)
        q->took[i] += ((const uint64_t *)row.p)[i];
    if (!rc)
        rc = add_steps(q, part, t, err);
    return rc ? rc : slu_flow_end(q->flow, ACCOUNT, part, t, err);
}
