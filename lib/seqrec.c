#include "seqrec.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 16, ROW = 32, HAS_NAMES = 1 };

void slu_seqrec_release(struct slu_seqrec *r)
{
    slu_buf_release(&r->head);
    slu_buf_release(&r->tail);
    free(r->seg);
    slu_seqrec_init(r);
}

static int pack_names(struct slu_buf *tail, const struct slu_batch *b,
                      const struct slu_seg *seg, uint64_t n_seg, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; rc == SLU_OK && i < n_seg; i++)
        rc = slu_buf_append(tail, &seg[i].domain, 4, err);
    for (uint64_t i = 0; rc == SLU_OK && i < n_seg; i++)
        rc = slu_buf_append(tail, &seg[i].id_len, 4, err);
    for (uint64_t i = 0; rc == SLU_OK && i < n_seg; i++)
        if (seg[i].id_len)
            rc = slu_buf_append(tail, b->str.data + seg[i].id_off, seg[i].id_len, err);
    return rc;
}

int slu_seqrec_pack(struct slu_seqrec *r, const struct slu_batch *b,
                    const struct slu_seq *q, struct slu_err *err)
{
    static const uint8_t zero[8];
    const struct slu_seg *seg = b->seg + q->seg_off;
    uint32_t word[2] = {(uint32_t)q->n_seg, 0};
    size_t n_tok_byte = b->tok ? q->len_tok * b->tok_bytes : 0;

    for (uint64_t i = 0; i < q->n_seg; i++)
        if (seg[i].domain != SLU_NO_DOMAIN || seg[i].id_len)
            word[1] = HAS_NAMES;
    slu_buf_clear(&r->head);
    slu_buf_clear(&r->tail);
    int rc = slu_buf_reserve(&r->head, HEAD + ROW * q->n_seg, err);
    if (rc)
        return rc;
    uint8_t *p = r->head.data;
    memcpy(p, &q->len_tok, 8);
    memcpy(p + 8, word, 8);
    for (uint64_t i = 0; i < q->n_seg; i++) {
        const uint64_t row[4] = {seg[i].source, seg[i].document, seg[i].offset,
                                 seg[i].len_tok};
        memcpy(p + HEAD + ROW * i, row, ROW);
    }
    r->head.len = HEAD + ROW * q->n_seg;
    if (word[1])
        rc = pack_names(&r->tail, b, seg, q->n_seg, err);
    r->piece[0] = (struct slu_piece){p, r->head.len};
    r->piece[1] =
        (struct slu_piece){n_tok_byte ? slu_batch_at(b, q->tok_off) : NULL, n_tok_byte};
    r->piece[2] = (struct slu_piece){zero, (size_t)-n_tok_byte & 7};
    r->piece[3] = (struct slu_piece){r->tail.data, r->tail.len};
    return rc;
}

size_t slu_seqrec_size(const struct slu_seqrec *r)
{
    size_t n = 0;

    for (unsigned i = 0; i < SLU_SEQREC_PIECES; i++)
        n += r->piece[i].n;
    return n;
}

uint64_t slu_seqrec_tokens(const void *p)
{
    uint64_t n;

    memcpy(&n, p, 8);
    return n;
}

int slu_seqrec_add(struct slu_seqrec *r, struct slu_batch *b, const void *rec, size_t n,
                   struct slu_err *err)
{
    const uint8_t *p = rec, *names = NULL;
    uint32_t word[2];
    uint64_t id_off = 0;

    if (n < HEAD)
        return slu_fail(err, SLU_E_FORMAT, "a spilled record is damaged");
    memcpy(word, p + 8, 8);
    uint64_t len_tok = slu_seqrec_tokens(p), n_seg = word[0];
    uint64_t tok_byte = len_tok * b->tok_bytes, need = HEAD + ROW * n_seg;
    if (len_tok > n || need + tok_byte > n)
        return slu_fail(err, SLU_E_FORMAT, "a spilled record is damaged");
    const uint8_t *tok = p + need;
    need += (tok_byte + 7) & ~UINT64_C(7);
    if (word[1] & HAS_NAMES) {
        names = p + need;
        need += 8 * n_seg;
    }
    if (need > n)
        return slu_fail(err, SLU_E_FORMAT, "a spilled record is damaged");
    int rc = slu_grow(&r->seg, &r->cap_seg, n_seg, sizeof *r->seg, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < n_seg; i++) {
        struct slu_seg *s = &r->seg[i];
        uint64_t row[4];
        memcpy(row, p + HEAD + ROW * i, ROW);
        *s = (struct slu_seg){row[0], row[1], row[2], row[3], SLU_NO_DOMAIN, 0, id_off};
        if (names) {
            memcpy(&s->domain, names + 4 * i, 4);
            memcpy(&s->id_len, names + 4 * (n_seg + i), 4);
            id_off += s->id_len;
        }
    }
    if (id_off != n - need)
        return slu_fail(err, SLU_E_FORMAT, "a spilled record is damaged");
    return slu_batch_add(b, tok, len_tok, r->seg, n_seg, p + need, err);
}
