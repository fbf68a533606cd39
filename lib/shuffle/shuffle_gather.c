/* shuffle_gather.c - the stages gather and finish: the parts' counts, and their
 * sequences in order. */
#include <stdlib.h>
#include <string.h>

#include "lib/shuffle/permute_private.h"
#include "lib/shuffle/shuffle_flow_private.h"
#include "lib/stream/seqrec.h"

/* ---- the parts' counts ---- */

/* Adds the counts of a part's cells, whose sums must equal the part's account. */
static int add_cells(struct slu_shuffle_flow *q, uint64_t part, struct slu_err *err)
{
    const uint64_t n = q->n_bucket * slu_flow_ranges(q->flow);
    struct slu_table *t;
    struct slu_row row;
    int rc = slu_flow_of_part(q->flow, CELL, part, &t, err);

    for (uint64_t i = 0; i < n && !rc; i++) {
        struct slu_shuffle_cell c;
        rc = slu_flow_next(q->flow, CELL, part, t, &row, err);
        if (rc)
            break;
        c = slu_shuffle_get_cell(row.p);
        slu_shuffle_add_cell(&q->cell[i], &c);
    }
    return rc ? rc : slu_flow_end(q->flow, CELL, part, t, err);
}

static bool cells_add_up(const struct slu_shuffle_flow *q)
{
    const uint64_t n = q->n_bucket * slu_flow_ranges(q->flow);
    struct slu_shuffle_cell all = {{0}, {0, 0}};

    for (uint64_t i = 0; i < n; i++)
        slu_shuffle_add_cell(&all, &q->cell[i]);
    all.n.loss_tokens = q->account.result.out.loss_tokens;
    return !memcmp(&all.n, &q->account.result.out, sizeof all.n) &&
           !slu_u128_cmp(all.checksum, q->account.checksum);
}

/* Reads all parts' accounts, and the counts of cells if q->cell is set. */
static int read_accounts(struct slu_shuffle_flow *q, struct slu_flow *f,
                         struct slu_err *err)
{
    struct slu_table *t;
    int rc = SLU_OK;

    q->flow = f;
    q->took = calloc(slu_shuffle_took_words(q) + 1, sizeof *q->took);
    if (!q->took)
        return slu_fail_nomem(err, slu_shuffle_took_words(q) * sizeof *q->took);
    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++) {
        rc = slu_flow_of_part(f, ACCOUNT, i, &t, err);
        if (!rc)
            rc = slu_shuffle_add_account(q, i, t, err);
        if (!rc && q->cell)
            rc = add_cells(q, i, err);
        if (!rc && q->cell && !cells_add_up(q))
            rc = slu_flow_damaged(f, CELL, i, err);
    }
    return rc;
}

int slu_shuffle_gather(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    int rc = slu_shuffle_new_cells(q, slu_flow_ranges(f), err);

    if (!rc)
        rc = read_accounts(q, f, err);
    return rc ? rc : q->write(q->ctx, err);
}

int slu_shuffle_finish(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    int rc = read_accounts(q, f, err);

    return rc ? rc : q->write(q->ctx, err);
}

struct slu_count slu_shuffle_counts(const struct slu_shuffle_flow *q, unsigned bucket,
                                    uint64_t range)
{
    const uint64_t n_range = slu_flow_ranges(q->flow);
    struct slu_count n = {0};

    for (uint64_t i = 0; i < range && i < n_range; i++)
        slu_count_add(&n, q->cell[bucket * n_range + i].n);
    return n;
}

uint64_t slu_shuffle_before(const struct slu_shuffle_flow *q, unsigned bucket,
                            uint64_t range)
{
    return slu_shuffle_counts(q, bucket, range).sequences;
}

void slu_shuffle_range(const struct slu_shuffle_flow *q, struct slu_count *n,
                       struct slu_u128 *checksum)
{
    struct slu_shuffle_cell all = {{0}, {0, 0}};

    for (unsigned b = 0; b < q->n_bucket; b++)
        slu_shuffle_add_cell(
            &all, &q->cell[b * slu_flow_ranges(q->flow) + slu_flow_part(q->flow)]);
    *n = all.n;
    *checksum = all.checksum;
}

int slu_shuffle_took(struct slu_shuffle_flow *q, struct slu_mixer **x,
                     struct slu_count *period, struct slu_err *err)
{
    const struct slu_mix *b = q->cfg.mix;
    const size_t n = (q->header->n_bucket ? q->header->n_bucket : 1) * b->n_period;
    const uint64_t *w = q->took;
    struct slu_table *t;
    int rc = slu_flow_of_cells(q->flow, STATE, 0, 1, &t, err);

    if (!rc)
        rc = slu_shuffle_load_state(q, t, x, err);
    if (rc)
        return rc;
    for (unsigned s = 0; s < b->n_source; s++) {
        struct slu_mix_gave *g = slu_mixer_account(*x, s);
        g->sequences_used += *w++;
        for (unsigned k = 0; k < b->n_period; k++, w += 3)
            slu_count_add(&g->taken[k], slu_shuffle_get_count(w));
    }
    for (size_t i = 0; i < n; i++, w += 3)
        slu_count_add(&period[i], slu_shuffle_get_count(w));
    return SLU_OK;
}

/* ---- sequences ---- */

void slu_shuffle_read(struct slu_shuffle_flow *q, const uint64_t *first,
                      const uint64_t *n_seq)
{
    const uint64_t j = slu_flow_part(q->flow);

    for (unsigned b = 0; b < q->n_bucket; b++) {
        uint64_t from = slu_shuffle_before(q, b, j);
        q->skip[b] = first ? first[b] - from : 0;
        q->want[b] = n_seq ? n_seq[b] : slu_shuffle_before(q, b, j + 1) - from;
    }
    q->bucket = 0;
    q->seq = NULL;
}

void slu_shuffle_read_places(struct slu_shuffle_flow *q, uint64_t per_tok,
                             uint64_t per_seq, uint64_t begin, uint64_t end)
{
    q->places = (struct slu_shuffle_places){
        per_tok, per_seq, begin, end,
        .next = slu_shuffle_counts(q, 0, slu_flow_part(q->flow))};
    q->bucket = 0;
    q->seq = NULL;
}

const struct slu_count *slu_shuffle_first(const struct slu_shuffle_flow *q)
{
    return &q->places.first;
}

static uint64_t place_of(const struct slu_shuffle_places *p, struct slu_count n)
{
    return p->per_seq * n.sequences + p->per_tok * n.tokens;
}

static int miscounted(const struct slu_shuffle_flow *q, struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "the scatter files hold other sequences than the %llu that their "
        "tables say; remove them and run stage scatter again",
        (unsigned long long)(q->places.end ? q->there
                                           : q->skip[q->bucket] + q->want[q->bucket]));
}

/* Opens the bucket's cells of this range, and of later ranges that are needed. */
static int open_bucket(struct slu_shuffle_flow *q, struct slu_err *err)
{
    const uint64_t j = slu_flow_part(q->flow), n_range = slu_flow_ranges(q->flow),
                   first = q->bucket * n_range,
                   last = q->skip[q->bucket] + q->want[q->bucket];
    uint64_t end = j;

    q->at = q->there = 0;
    for (; end < n_range && q->there < last; end++)
        q->there += q->cell[first + end].n.sequences;
    return slu_flow_of_cells(q->flow, SEQ, first + j, first + end, &q->seq, err);
}

/* Ends a bucket whose needed sequences were all read. If all of its cells were read,
 * checks that they end there. */
static int close_bucket(struct slu_shuffle_flow *q, struct slu_err *err)
{
    struct slu_row row;
    int rc = q->seq && q->at == q->there ? slu_table_next(q->seq, &row, err) : SLU_EOF;

    q->seq = NULL;
    if (rc != SLU_EOF)
        return rc ? rc : miscounted(q, err);
    q->bucket++;
    return SLU_OK;
}

/* Opens the cells of this range, and of later ranges that begin before the last place
 * that is needed. */
static int open_places(struct slu_shuffle_flow *q, struct slu_err *err)
{
    const uint64_t j = slu_flow_part(q->flow), n_range = slu_flow_ranges(q->flow);
    uint64_t end = j;

    q->at = q->there = 0;
    for (; end < n_range &&
           place_of(&q->places, slu_shuffle_counts(q, 0, end)) < q->places.end;
         end++)
        q->there += q->cell[end].n.sequences;
    return slu_flow_of_cells(q->flow, SEQ, j, end, &q->seq, err);
}

/* next_row by places. It may be called again after the end. */
static int next_place(struct slu_shuffle_flow *q, struct slu_row *row,
                      struct slu_err *err)
{
    struct slu_shuffle_places *p = &q->places;
    const bool none = p->begin >= p->end;
    int rc = q->seq || none ? SLU_OK : open_places(q, err);

    while (!rc && !none) {
        const struct slu_count is = p->next;
        struct slu_count n = {0, 1, 0, 0};
        uint64_t n_seg;
        if (place_of(p, is) >= p->end && q->at < q->there)
            return SLU_EOF; /* the rows that are left belong to other parts */
        rc = slu_table_next(q->seq, row, err);
        if (!rc && q->at++ == q->there)
            return miscounted(q, err);
        if (!rc)
            rc = slu_seqrec_peek(row->p, row->n_byte, &n.tokens, &n_seg, err);
        if (rc)
            break;
        slu_count_add(&p->next, n);
        if (place_of(p, is) < p->begin)
            continue;
        p->first = p->given ? p->first : is;
        p->given = true;
        return SLU_OK;
    }
    if (rc == SLU_EOF && q->at != q->there)
        return miscounted(q, err);
    return rc ? rc : SLU_EOF;
}

/* Gives the next needed sequence; SLU_EOF at the end. */
static int next_row(struct slu_shuffle_flow *q, struct slu_row *row,
                    struct slu_err *err)
{
    int rc = SLU_OK;

    if (q->places.end)
        return next_place(q, row, err);
    while (!rc && q->bucket < q->n_bucket) {
        const uint64_t skip = q->skip[q->bucket], want = q->want[q->bucket];
        if (!want || (q->seq && q->at == skip + want)) {
            rc = close_bucket(q, err);
        } else if (!q->seq) {
            rc = open_bucket(q, err);
        } else {
            rc = slu_table_next(q->seq, row, err);
            if (rc)
                return rc == SLU_EOF ? miscounted(q, err) : rc;
            if (++q->at > skip)
                return SLU_OK;
        }
    }
    return rc ? rc : SLU_EOF;
}

/* A fetched row: its number of bytes, its part, and the bytes. */
enum { ROW_HEAD = 16 };

static int put_row(struct slu_buf *rec, const struct slu_row *row, struct slu_err *err)
{
    const uint64_t head[] = {row->n_byte, row->part};
    const size_t size = ROW_HEAD + ((row->n_byte + 7) & ~UINT64_C(7));
    int rc = slu_buf_reserve(rec, size, err);

    if (rc)
        return rc;
    memcpy(rec->data + rec->len, head, ROW_HEAD);
    memcpy(rec->data + rec->len + ROW_HEAD, row->p, row->n_byte);
    rec->len += size;
    return SLU_OK;
}

int slu_shuffle_fetch(struct slu_shuffle_flow *q, struct slu_pipe *pipe,
                      struct slu_buf *rec, uint64_t n_tok, struct slu_err *err)
{
    uint64_t weight = 0, len_tok, n_seg; /* as slu_batch_weight */
    struct slu_row row;
    int rc = SLU_OK;

    slu_buf_clear(rec);
    while (!rc && weight < n_tok) {
        rc = next_row(q, &row, err);
        if (!rc)
            rc = slu_seqrec_peek(row.p, row.n_byte, &len_tok, &n_seg, err);
        if (!rc)
            slu_permute_take_room(pipe, rec->len + row.n_byte);
        if (!rc)
            rc = put_row(rec, &row, err);
        if (rc)
            break;
        const uint64_t n_tok_byte = len_tok * q->header->tok_bytes;
        weight += len_tok + 64 + 16 * n_seg +
                  (row.n_byte > n_tok_byte ? row.n_byte - n_tok_byte : 0) / 4;
    }
    return rc == SLU_EOF && rec->len ? SLU_OK : rc;
}

int slu_shuffle_unpack(const struct slu_shuffle_flow *q, const struct slu_buf *rec,
                       struct slu_batch *b, struct slu_err *err)
{
    int rc = SLU_OK;

    slu_batch_clear(b);
    for (size_t at = 0; at < rec->len && !rc;) {
        const size_t seg = b->n_seg;
        uint64_t head[2];
        memcpy(head, rec->data + at, ROW_HEAD);
        rc = slu_seqrec_add(b, rec->data + at + ROW_HEAD, head[0], err);
        for (size_t i = seg; i < b->n_seg && !rc; i++)
            rc = slu_flow_domain(q->flow, SEQ, head[1], b->seg[i].domain,
                                 &b->seg[i].domain, err);
        at += ROW_HEAD + ((head[0] + 7) & ~UINT64_C(7));
    }
    return rc;
}

int slu_shuffle_next(struct slu_shuffle_flow *q, struct slu_pipe *pipe,
                     struct slu_batch *b, uint64_t n_tok, struct slu_err *err)
{
    int rc = slu_shuffle_fetch(q, pipe, &q->fetched, n_tok, err);

    slu_batch_clear(b);
    if (!rc)
        rc = slu_shuffle_unpack(q, &q->fetched, b, err);
    slu_buf_trim(&q->fetched, SLU_KEEP_BATCH_BYTE);
    return rc;
}
