#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "lib/base/le.h"
#include "lib/base/xxh3.h"
#include "stream_private.h"

const struct slu_extra_kind slu_extra_kind[SLU_N_EXTRA] = {
    [SLU_SCORE] = {.name = "score",
                   .plural = "scores",
                   .none = SLU_NO_SCORE,
                   .is_double = true},
};

void slu_batch_init(struct slu_batch *b, unsigned tok_bytes)
{
    memset(b, 0, sizeof *b);
    b->tok_bytes = tok_bytes;
}

void slu_batch_release(struct slu_batch *b)
{
    free(b->seq);
    free(b->seg);
    slu_buf_release(&b->own);
    slu_buf_release(&b->str);
    slu_frames_free(b->raw);
    memset(b, 0, sizeof *b);
}

void slu_batch_clear(struct slu_batch *b)
{
    b->n_seq = b->n_seg = 0;
    b->tok = NULL;
    b->n_tok = 0;
    b->marks_only = false;
    slu_buf_clear(&b->own);
    slu_buf_clear(&b->str);
    b->sum_valid = b->unsummed = false;
    b->n_late = 0;
}

void slu_batch_drop_ids(struct slu_batch *b)
{
    uint32_t *marked = (void *)b->own.data;
    for (size_t i = 0; b->masks && i < b->own.len / sizeof *marked; i++)
        marked[i] &= SLU_TRAINED;
    b->tok = b->masks ? b->tok : NULL;
    b->marks_only = b->masks;
    b->sum_valid = false;
}

int slu_batch_mark_all(struct slu_batch *b, struct slu_err *err)
{
    int rc = slu_buf_reserve(&b->own, b->n_tok * sizeof(uint32_t) - b->own.len, err);
    if (rc)
        return rc;
    uint32_t *id = (uint32_t *)(void *)b->own.data;
    const uint16_t *narrow = (const uint16_t *)(const void *)b->own.data;
    for (uint64_t i = b->n_tok; i-- > 0 && b->tok_bytes == 2;)
        id[i] = narrow[i];
    b->own.len = b->n_tok * sizeof(uint32_t);
    b->tok = id;
    b->tok_bytes = sizeof(uint32_t);
    b->masks = true;
    for (size_t k = 0; k < b->n_seq; k++) {
        const struct slu_seq *q = &b->seq[k];
        uint32_t *at = id + q->tok_off;
        for (uint64_t i = 0; i < q->n_seg; at += b->seg[q->seg_off + i++].len_tok)
            for (uint64_t t = 0; t < b->seg[q->seg_off + i].len_tok; t++)
                at[t] =
                    slu_mask_mark(at[t], b->seg[q->seg_off + i].source != SLU_PADDING);
    }
    b->sum_valid = false;
    return SLU_OK;
}

void slu_batch_trim(struct slu_batch *b)
{
    slu_batch_clear(b);
    slu_buf_trim(&b->own, SLU_KEEP_BATCH_BYTE / 2);
    slu_buf_trim(&b->str, SLU_KEEP_BATCH_BYTE / 2);
    for (size_t i = 1; b->raw && i < b->raw->cap; i++)
        slu_frame_release(&b->raw->f[i]);
}

int slu_batch_add(struct slu_batch *b, const void *tok, uint64_t len_tok,
                  const struct slu_seg *seg, uint64_t n_seg, const uint8_t *ids,
                  struct slu_err *err)
{
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + 1, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + n_seg, sizeof *b->seg, err);
    if (!rc && tok)
        rc = slu_buf_append(&b->own, tok, len_tok * b->tok_bytes, err);
    if (rc)
        return rc;
    b->seq[b->n_seq++] = (struct slu_seq){b->n_tok, len_tok, b->n_seg, n_seg};
    for (uint64_t i = 0; i < n_seg; i++) {
        struct slu_seg *s = &b->seg[b->n_seg + i];
        *s = seg[i];
        s->id_off = b->str.len;
        if (slu_seg_str(s))
            rc = slu_buf_append(&b->str, ids + seg[i].id_off, slu_seg_str(s), err);
        if (rc)
            return rc;
    }
    b->n_seg += n_seg;
    b->n_tok += len_tok;
    b->tok = tok ? b->own.data : NULL;
    b->sum_valid = false;
    return SLU_OK;
}

void slu_sum_add(struct slu_sum *a, const struct slu_sum *b)
{
    slu_count_add(&a->n, b->n);
    a->segments += b->segments;
    a->padding += b->padding;
    a->checksum = slu_u128_add(a->checksum, b->checksum);
    a->trace_checksum = slu_u128_add(a->trace_checksum, b->trace_checksum);
    a->mask_checksum = slu_u128_add(a->mask_checksum, b->mask_checksum);
    a->meta_checksum = slu_u128_add(a->meta_checksum, b->meta_checksum);
}

int slu_batch_ids(const struct slu_batch *b, uint64_t i, uint64_t n, bool trained,
                  struct slu_buf *scratch, const void **ids, uint64_t *n_ids,
                  struct slu_err *err)
{
    uint64_t m = trained ? 0 : n;

    *ids = slu_batch_at(b, i);
    if (n_ids)
        *n_ids = n;
    if (!b->masks)
        return SLU_OK;
    slu_buf_clear(scratch);
    int rc = slu_buf_reserve(scratch, n * sizeof(uint32_t), err);
    if (rc)
        return rc;
    const uint32_t *marked = slu_batch_at(b, i);
    uint32_t *plain = (void *)scratch->data;
    for (uint64_t k = 0; !trained && k < n; k++)
        plain[k] = marked[k] & ~SLU_TRAINED;
    for (uint64_t k = 0; trained && k < n; k++) {
        plain[m] = marked[k] & ~SLU_TRAINED;
        m += marked[k] >> 31;
    }
    *ids = plain;
    if (n_ids)
        *n_ids = m;
    return SLU_OK;
}

struct slu_u128 slu_batch_hash(const struct slu_batch *b, uint64_t i, uint64_t n)
{
    const void *tok = slu_batch_at(b, i);
    return b->masks ? slu_mask_hash_ids(tok, n) : slu_hash_tokens(tok, n, b->tok_bytes);
}

struct slu_u128 slu_batch_content(const struct slu_batch *b, uint64_t i, uint64_t n)
{
    const struct slu_u128 h = slu_batch_hash(b, i, n);
    return b->masks ? slu_u128_add(h, slu_mask_hash(slu_batch_at(b, i), n, h)) : h;
}

uint64_t slu_batch_loss(const struct slu_batch *b, uint64_t i, uint64_t n)
{
    return b->masks ? slu_mask_count(slu_batch_at(b, i), n) : 0;
}

struct slu_count slu_seq_count(const struct slu_batch *b, const struct slu_seq *q)
{
    struct slu_count n = {0, 1, q->len_tok, slu_batch_loss(b, q->tok_off, q->len_tok)};
    for (uint64_t i = 0; i < q->n_seg; i++) {
        const struct slu_seg *s = &b->seg[q->seg_off + i];
        n.documents += s->offset == 0 && s->source != SLU_PADDING;
    }
    return n;
}

double slu_seq_score(const struct slu_batch *b, const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    double sum = 0, n = 0;
    for (uint64_t i = 0; i < q->n_seg; i++)
        if (s[i].extra[SLU_SCORE] && s[i].source != SLU_PADDING) {
            if (q->n_seg == 1)
                return slu_score_value(s[i].extra[SLU_SCORE]);
            sum += slu_score_value(s[i].extra[SLU_SCORE]) * (double)s[i].len_tok;
            n += (double)s[i].len_tok;
        }
    return n > 0 ? sum / n : slu_score_value(0);
}

/* Segments are compared as bytes, and lie in work files. */
_Static_assert(sizeof(struct slu_seg) == (6 + SLU_N_EXTRA) * sizeof(uint64_t),
               "struct slu_seg has no padding");

enum { MAX_PREFIX = 32, HASHED_SEGS = 64 }; /* segments that are hashed at a time */

/* Copies by words, because callers have just stored words: a wider load would wait
 * until these stores, and all earlier ones, are in the cache. */
static void put_prefix(uint8_t *k, const uint8_t *prefix, size_t n)
{
    if (n >= 8)
        slu_put_le64(k, slu_le64(prefix));
    if (n >= 16)
        slu_put_le64(k + 8, slu_le64(prefix + 8));
    if (n >= 24)
        slu_put_le64(k + 16, slu_le64(prefix + 16));
    if (n >= 32)
        slu_put_le64(k + 24, slu_le64(prefix + 24));
    if (n % 8)
        memcpy(k + n / 8 * 8, prefix + n / 8 * 8, n % 8);
}

struct slu_u128 slu_hash_segments(const void *prefix, size_t n_prefix,
                                  const struct slu_seg *seg, uint64_t n_seg)
{
    uint8_t k[MAX_PREFIX + 32 * HASHED_SEGS], *p = k + n_prefix;
    XXH3_state_t st;
    bool many = n_seg > HASHED_SEGS;
    put_prefix(k, prefix, n_prefix);
    if (many)
        XXH3_128bits_reset(&st);
    for (uint64_t i = 0; i < n_seg; i++, p += 32) {
        if (p + 32 > k + sizeof k) {
            slu_xxh3_128_update(&st, k, (size_t)(p - k));
            p = k;
        }
        slu_put_le64(p, seg[i].source);
        slu_put_le64(p + 8, seg[i].document);
        slu_put_le64(p + 16, seg[i].offset);
        slu_put_le64(p + 24, seg[i].len_tok);
    }
    if (!many)
        return slu_hash128(k, (size_t)(p - k));
    slu_xxh3_128_update(&st, k, (size_t)(p - k));
    return slu_xxh3_128_digest(&st);
}

/* Returns the hash of a sequence's own hash, its mask's (NULL: it has none, or all but
 * padding is trained on) and its segments (STREAM.md section 7). */
static struct slu_u128 trace_hash(struct slu_u128 h, const struct slu_u128 *mask,
                                  const struct slu_seg *seg, uint64_t n_seg)
{
    uint8_t own[32];
    slu_put_le64(own, h.lo);
    slu_put_le64(own + 8, h.hi);
    if (mask) {
        slu_put_le64(own + 16, mask->lo);
        slu_put_le64(own + 24, mask->hi);
    }
    return slu_hash_segments(own, mask ? 32 : 16, seg, n_seg);
}

struct slu_u128 slu_meta_hash(struct slu_u128 h, const struct slu_seg *seg,
                              uint64_t n_seg, const uint8_t *str)
{
    XXH3_state_t st;
    bool any = false;
    uint8_t own[16];

    for (uint64_t i = 0; i < n_seg; i++) {
        if (!seg[i].meta_len)
            continue;
        if (!any) {
            XXH3_128bits_reset(&st);
            slu_put_le64(own, h.lo);
            slu_put_le64(own + 8, h.hi);
            slu_xxh3_128_update(&st, own, sizeof own);
        }
        any = true;
        slu_put_le64(own, i);
        slu_put_le64(own + 8, seg[i].meta_len);
        slu_xxh3_128_update(&st, own, sizeof own);
        slu_xxh3_128_update(&st, str + seg[i].id_off + seg[i].id_len, seg[i].meta_len);
    }
    return any ? slu_xxh3_128_digest(&st) : (struct slu_u128){0, 0};
}

int slu_batch_copy(struct slu_batch *out, const struct slu_batch *b, size_t n,
                   struct slu_err *err)
{
    int rc = SLU_OK;

    slu_batch_clear(out);
    out->masks = b->masks;
    out->marks_only = b->marks_only;
    for (size_t i = 0; !rc && i < n; i++)
        rc = slu_batch_add(out, slu_batch_at(b, b->seq[i].tok_off), b->seq[i].len_tok,
                           &b->seg[b->seq[i].seg_off], b->seq[i].n_seg, b->str.data,
                           err);
    return rc;
}

struct slu_u128 slu_order_add(struct slu_u128 begin, uint64_t n, struct slu_u128 last)
{
    /* Odd, so that no bit of early values is lost. */
    struct slu_u128 m = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd1b54a32d192ed03)};
    for (; n; n >>= 1) {
        if (n & 1)
            begin = slu_u128_mul(begin, m);
        if (n > 1)
            m = slu_u128_mul(m, m);
    }
    return slu_u128_add(begin, last);
}

void slu_sum_late(struct slu_sum *a, const struct slu_seg *seg, struct slu_u128 hash)
{
    a->checksum = slu_u128_add(a->checksum, hash);
    a->trace_checksum = slu_u128_add(a->trace_checksum, trace_hash(hash, NULL, seg, 1));
}

struct slu_u128 slu_seq_hash(struct slu_batch *b, size_t i)
{
    struct slu_seq *q = &b->seq[i];
    if (!(q->hash.lo | q->hash.hi))
        q->hash = slu_batch_hash(b, q->tok_off, q->len_tok);
    return q->hash;
}

/* hash: of each sequence; NULL: as slu_seq_hash. late: no hashes at all. */
static void sum(struct slu_batch *b, const struct slu_u128 *hash, bool late)
{
    if (b->sum_valid)
        return;
    struct slu_sum t = {0};
    b->order = (struct slu_u128){0, 0};
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        const struct slu_seg *s = &b->seg[q->seg_off];
        const struct slu_count n = slu_seq_count(b, q);
        struct slu_u128 h = {0, 0}, mask = {0, 0}, trace;
        uint64_t padding = 0, meta_len = 0;
        for (uint64_t k = 0; k < q->n_seg; k++) {
            padding += s[k].source == SLU_PADDING ? s[k].len_tok : 0;
            meta_len |= s[k].meta_len;
        }
        slu_count_add(&t.n, n);
        t.segments += q->n_seg;
        t.padding += padding;
        if (late)
            continue;
        if (slu_batch_has_ids(b))
            h = hash ? hash[i] : slu_seq_hash(b, i);
        if (b->masks)
            mask = slu_mask_hash(slu_batch_at(b, q->tok_off), q->len_tok, h);
        const bool masked = b->masks && n.loss_tokens < q->len_tok - padding;
        trace = trace_hash(h, masked ? &mask : NULL, s, q->n_seg);
        b->order = slu_order_add(b->order, 1, trace);
        t.checksum = slu_u128_add(t.checksum, h);
        t.trace_checksum = slu_u128_add(t.trace_checksum, trace);
        t.mask_checksum = slu_u128_add(t.mask_checksum, mask);
        if (meta_len)
            t.meta_checksum = slu_u128_add(t.meta_checksum,
                                           slu_meta_hash(h, s, q->n_seg, b->str.data));
    }
    b->sum = t;
    b->sum_valid = true;
}

void slu_batch_sum(struct slu_batch *b)
{
    sum(b, NULL, false);
}

void slu_batch_sum_known(struct slu_batch *b, const struct slu_u128 *hash)
{
    sum(b, hash, false);
}

void slu_batch_sum_parts(struct slu_batch *b, const struct slu_seq *out, size_t n,
                         bool late)
{
    struct slu_batch rest = *b;
    rest.seq = (struct slu_seq *)(uintptr_t)out; /* sum does not change it */
    rest.n_seq = n;
    rest.sum_valid = false;
    sum(&rest, NULL, late);
    sum(b, NULL, false);
    b->sum_read = b->sum;
    slu_sum_add(&b->sum_read, &rest.sum);
    b->n_late = late ? n : 0;
}
