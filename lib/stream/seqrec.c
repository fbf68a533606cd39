#include "seqrec.h"

#include <string.h>

/* The number that a segment's names have: bytes of its id, and above these bits of its
 * metadata, which lie behind the id. */
enum { ID_BITS = 17 };
enum { NUMBER = 9, HAS_NAMES = 1, HAS_EXTRA = 2, SHIFT = 1 + SLU_N_EXTRA };

void slu_seqrec_release(struct slu_seqrec *r)
{
    slu_buf_release(&r->head);
    slu_buf_release(&r->tail);
    slu_seqrec_init(r);
}

/* ---- numbers ---- */

static uint8_t *put(uint8_t *p, uint64_t v)
{
    if (v < 0x80) {
        *p = (uint8_t)v;
        return p + 1;
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll(v);
    unsigned more = bits > 56 ? 8 : (bits - 1) / 7; /* bytes after the first */
    uint64_t be = __builtin_bswap64(more < 8 ? v << (64 - 8 * more) : v);
    *p = (uint8_t)(0xff00 >> more);
    if (more < 8)
        *p |= (uint8_t)(v >> (8 * more));
    memcpy(p + 1, &be, 8); /* there is always room for NUMBER bytes */
    return p + 1 + more;
}

/* Reads a number; returns the place after it. NULL: the number is cut off. */
static const uint8_t *get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    if (p >= end)
        return NULL;
    uint8_t first = *p++;
    if (first < 0x80) {
        *v = first;
        return p;
    }
    unsigned more = first == 255 ? 8 : (unsigned)__builtin_clz(~(uint32_t)first << 24);
    uint64_t x = more < 8 ? first & (0x7fu >> more) : 0;
    if ((size_t)(end - p) < more)
        return NULL;
    for (unsigned i = 0; i < more; i++)
        x = x << 8 | p[i];
    *v = x;
    return p + more;
}

/* ---- encoding ---- */

static unsigned n_extra(uint64_t parts)
{
    return (unsigned)__builtin_popcountll(parts / HAS_EXTRA % (1 << SLU_N_EXTRA));
}

/* Returns the bytes that head and tail take at most, and the parts of the tail. */
static size_t room(const struct slu_batch *b, const struct slu_seq *q, unsigned *parts)
{
    const struct slu_seg *seg = b->seg + q->seg_off;
    size_t n = NUMBER * (2 + 4 * q->n_seg), n_id = 0;

    *parts = 0;
    for (uint64_t i = 0; i < q->n_seg; i++) {
        *parts |=
            seg[i].domain != SLU_NO_DOMAIN || slu_seg_str(&seg[i]) ? HAS_NAMES : 0;
        for (unsigned k = 0; k < SLU_N_EXTRA; k++)
            *parts |= seg[i].extra[k] ? HAS_EXTRA << k : 0;
        n_id += slu_seg_str(&seg[i]);
    }
    n += *parts & HAS_NAMES ? 2 * NUMBER * q->n_seg + n_id : 0;
    return n + 8 * q->n_seg * n_extra(*parts);
}

static uint8_t *put_head(uint8_t *p, const struct slu_batch *b, const struct slu_seq *q,
                         unsigned parts)
{
    const struct slu_seg *seg = b->seg + q->seg_off;

    p = put(p, q->len_tok);
    p = put(p, q->n_seg << SHIFT | parts);
    for (uint64_t i = 0; i < q->n_seg; i++) {
        p = put(p, seg[i].source + 1);
        p = put(p, seg[i].document);
        p = put(p, seg[i].offset);
        if (i + 1 < q->n_seg)
            p = put(p, seg[i].len_tok);
    }
    return p;
}

static uint8_t *put_tail(uint8_t *p, const struct slu_batch *b, const struct slu_seq *q,
                         unsigned parts)
{
    const struct slu_seg *seg = b->seg + q->seg_off;

    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        for (uint64_t i = 0; i < q->n_seg && parts & HAS_EXTRA << k; i++, p += 8)
            memcpy(p, &seg[i].extra[k], 8);
    if (!(parts & HAS_NAMES))
        return p;
    for (uint64_t i = 0; i < q->n_seg; i++)
        p = put(p, (uint32_t)(seg[i].domain + 1)); /* none: 0 */
    for (uint64_t i = 0; i < q->n_seg; i++)
        p = put(p, seg[i].id_len | (uint64_t)seg[i].meta_len << ID_BITS);
    for (uint64_t i = 0; i < q->n_seg; i++)
        if (slu_seg_str(&seg[i])) {
            memcpy(p, b->str.data + seg[i].id_off, slu_seg_str(&seg[i]));
            p += slu_seg_str(&seg[i]);
        }
    return p;
}

int slu_seqrec_pack(struct slu_seqrec *r, const struct slu_batch *b,
                    const struct slu_seq *q, struct slu_err *err)
{
    size_t n_tok_byte = b->tok ? q->len_tok * b->tok_bytes : 0;
    unsigned parts;
    size_t n = room(b, q, &parts);

    slu_buf_clear(&r->head);
    slu_buf_clear(&r->tail);
    int rc = slu_buf_reserve(&r->head, n, err);
    if (!rc && parts)
        rc = slu_buf_reserve(&r->tail, n, err);
    if (rc)
        return rc;
    r->head.len = (size_t)(put_head(r->head.data, b, q, parts) - r->head.data);
    if (parts)
        r->tail.len = (size_t)(put_tail(r->tail.data, b, q, parts) - r->tail.data);
    r->piece[0] = (struct slu_slice){r->head.data, r->head.len};
    r->piece[1] =
        (struct slu_slice){n_tok_byte ? slu_batch_at(b, q->tok_off) : NULL, n_tok_byte};
    r->piece[2] = (struct slu_slice){r->tail.data, r->tail.len};
    return SLU_OK;
}

size_t slu_seqrec_size(const struct slu_seqrec *r)
{
    size_t n = 0;

    for (unsigned i = 0; i < SLU_SEQREC_PIECES; i++)
        n += r->piece[i].n;
    return n;
}

int slu_seqrec_append(struct slu_buf *out, const struct slu_batch *b,
                      const struct slu_seq *q, struct slu_err *err)
{
    size_t n_tok_byte = b->tok ? q->len_tok * b->tok_bytes : 0;
    unsigned parts;
    int rc = slu_buf_reserve(out, room(b, q, &parts) + n_tok_byte, err);

    if (rc)
        return rc;
    uint8_t *p = put_head(out->data + out->len, b, q, parts);
    if (n_tok_byte)
        memcpy(p, slu_batch_at(b, q->tok_off), n_tok_byte);
    p += n_tok_byte;
    if (parts)
        p = put_tail(p, b, q, parts);
    out->len = (size_t)(p - out->data);
    return SLU_OK;
}

/* ---- decoding ---- */

static int damaged(struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "a record in a temporary file is damaged");
}

int slu_seqrec_peek(const void *rec, size_t n, uint64_t *n_tok, uint64_t *n_seg,
                    struct slu_err *err)
{
    const uint8_t *p = rec, *end = p + n;

    p = get(p, end, n_tok);
    p = p ? get(p, end, n_seg) : NULL;
    if (!p)
        return damaged(err);
    *n_seg >>= SHIFT;
    return SLU_OK;
}

/* Reads the segments; returns the place after them. NULL: damaged. */
static const uint8_t *get_rows(const uint8_t *p, const uint8_t *end,
                               struct slu_seg *seg, uint64_t n_seg, uint64_t len_tok)
{
    for (uint64_t i = 0; i < n_seg && p; i++) {
        struct slu_seg *s = &seg[i];
        *s = (struct slu_seg){.domain = SLU_NO_DOMAIN};
        p = get(p, end, &s->source);
        p = p ? get(p, end, &s->document) : NULL;
        p = p ? get(p, end, &s->offset) : NULL;
        s->len_tok = len_tok;
        if (p && i + 1 < n_seg)
            p = get(p, end, &s->len_tok);
        if (s->len_tok > len_tok)
            return NULL;
        len_tok -= s->len_tok;
        s->source--;
    }
    return len_tok ? NULL : p;
}

/* Reads the names; returns the place of the ids, from which id_off counts. NULL:
 * damaged. */
static const uint8_t *get_names(const uint8_t *p, const uint8_t *end,
                                struct slu_seg *seg, uint64_t n_seg)
{
    uint64_t v = 0, off = 0;

    for (uint64_t i = 0; i < n_seg && p; i++) {
        p = get(p, end, &v);
        seg[i].domain = (uint32_t)v - 1;
    }
    for (uint64_t i = 0; i < n_seg && p; i++) {
        p = get(p, end, &v);
        seg[i].id_len = (uint32_t)(v & ((1 << ID_BITS) - 1));
        seg[i].meta_len = v >> ID_BITS & 0xffffff;
        seg[i].id_off = off;
        if (!p || slu_seg_str(&seg[i]) > (size_t)(end - p))
            return NULL;
        off += slu_seg_str(&seg[i]);
    }
    return p && (size_t)(end - p) == off ? p : NULL;
}

int slu_seqrec_add(struct slu_batch *b, const void *rec, size_t n, struct slu_err *err)
{
    const uint8_t *p = rec, *end = p + n;
    uint64_t len_tok = 0, n_seg = 0;

    p = get(p, end, &len_tok);
    p = p ? get(p, end, &n_seg) : NULL;
    if (!p)
        return damaged(err);
    const uint64_t parts = n_seg;
    n_seg >>= SHIFT;
    if (n_seg > n || len_tok > n)
        return damaged(err);
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + n_seg, sizeof *b->seg, err);
    if (rc)
        return rc;
    struct slu_seg *seg = b->seg + b->n_seg;
    p = get_rows(p, end, seg, n_seg, len_tok);
    size_t tok_byte = len_tok * b->tok_bytes;
    if (!p || tok_byte > (size_t)(end - p))
        return damaged(err);
    const uint8_t *tok = p, *ids = p + tok_byte;
    if (8 * n_seg * n_extra(parts) > (size_t)(end - ids))
        return damaged(err);
    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        for (uint64_t i = 0; i < n_seg && parts & HAS_EXTRA << k; i++, ids += 8)
            memcpy(&seg[i].extra[k], ids, 8);
    if (parts & HAS_NAMES)
        ids = get_names(ids, end, seg, n_seg);
    if (!ids || (!(parts & HAS_NAMES) && ids != end))
        return damaged(err);
    rc = slu_buf_append(&b->own, tok, tok_byte, err);
    if (!rc && ids != end) {
        for (uint64_t i = 0; i < n_seg; i++)
            seg[i].id_off += b->str.len;
        rc = slu_buf_append(&b->str, ids, (size_t)(end - ids), err);
    }
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){b->n_tok, len_tok, b->n_seg, n_seg};
    b->n_seg += n_seg;
    b->n_tok += len_tok;
    b->tok = b->own.data;
    b->sum_valid = false;
    return SLU_OK;
}
