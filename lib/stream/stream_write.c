#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/base/map.h"
#include "frame_tok.h"
#include "joint.h"
#include "steps.h"
#include "stream_private.h"

enum { COUNTS, SEQ_SEGS, SOURCE, DOCUMENT, OFFSET, LENGTH, DOMAIN, ID_BYTES, FIXED };
enum {
    EXTRA = FIXED, /* each empty, without padding, in streams without it */
    IDS = EXTRA + SLU_N_EXTRA,
    META, /* two for each field: elements, and bytes of texts */
    MASK =
        META + 2 * SLU_META_FIELDS, /* made by flush; empty in streams without masks */
    N_COLUMN
};

enum { INDEX_ROWS = 1 << 20, INDEX_ROW = 32, ENDS_BYTES = 128 };

struct slu_writer {
    struct slu_framer framer;
    struct slu_header header;
    struct slu_names *names;
    struct slu_source_rows *sources; /* or NULL */
    int zstd_level;
    struct slu_sum sum;   /* of the batches that were put */
    struct slu_count did; /* counted where tokens go into frames; no documents */

    /* The frame being filled. */
    struct slu_buf col[N_COLUMN];
    struct slu_frame_tok tok;
    uint64_t n_seq, n_seg, n_tok, n_begun;
    uint64_t cap_seg;    /* rows for which the columns from SOURCE to IDS have room */
    uint64_t meta_byte;  /* of its segments' metadata */
    struct slu_buf hash; /* for a joint: of its sequences, as far as they are known */

    /* The sequence that is being put in parts. `waiting` of its tokens are in tok after
     * the frame's own. They join the frame when the sequence has ended in it, or has
     * the frame to itself. */
    struct {
        bool is;
        struct slu_seg seg;
        struct slu_buf id;
        uint64_t len, waiting;
    } part;
    struct slu_buf plain; /* with masks: the frame's ids as they are stored */

    struct slu_buf index;         /* rows of the whole member */
    uint64_t n_frame, seqs_begun; /* DATA frames written, and sequences begun in them */
    struct slu_map said;          /* a bit per source that is named: 64 per word */
    struct slu_buf new_source;    /* ordinals (u64) to name before the current frame */
    uint64_t last_source;
    bool any_source;
    struct slu_map domain; /* number in names -> number in this member */
    struct slu_buf new_domain;
    struct slu_names *values; /* metadata of type name, by their numbers; or NULL */
    uint64_t values_byte;
    struct slu_buf new_value;
    struct slu_buf scratch;
};

/* Appends an integer, without a call if there is room. */
static inline int put_u32(struct slu_buf *b, uint32_t v, struct slu_err *err)
{
    int rc = b->cap - b->len < sizeof v ? slu_buf_reserve(b, sizeof v, err) : SLU_OK;
    if (rc)
        return rc;
    slu_put_le32(b->data + b->len, v);
    b->len += sizeof v;
    return SLU_OK;
}

static inline int put_u64(struct slu_buf *b, uint64_t v, struct slu_err *err)
{
    int rc = b->cap - b->len < sizeof v ? slu_buf_reserve(b, sizeof v, err) : SLU_OK;
    if (rc)
        return rc;
    slu_put_le64(b->data + b->len, v);
    b->len += sizeof v;
    return SLU_OK;
}

/* Append an integer to a column that has room (w->cap_seg). */
static inline void push_u32(struct slu_buf *b, uint32_t v)
{
    slu_put_le32(b->data + b->len, v);
    b->len += sizeof v;
}

static inline void push_u64(struct slu_buf *b, uint64_t v)
{
    slu_put_le64(b->data + b->len, v);
    b->len += sizeof v;
}

/* Writes a frame whose payload is w->scratch, and empties that. */
static int put_scratch(struct slu_writer *w, uint32_t type, uint64_t aux,
                       int zstd_level, struct slu_err *err)
{
    const struct slu_span p = {w->scratch.data, w->scratch.len};
    slu_buf_clear(&w->scratch);
    return slu_framer_put(&w->framer, type, 0, aux, &p, 1, zstd_level, false, err);
}

/* ---- names ---- */

static int note_source(struct slu_writer *w, uint64_t ordinal, struct slu_err *err)
{
    if ((w->any_source && ordinal == w->last_source) || ordinal == SLU_PADDING)
        return SLU_OK;
    w->any_source = true;
    w->last_source = ordinal;
    uint64_t word = ordinal >> 6, bit = UINT64_C(1) << (ordinal & 63), bits = 0;
    slu_map_get(&w->said, word, &bits);
    if (bits & bit)
        return SLU_OK;
    int rc = slu_map_set(&w->said, word, bits | bit, err);
    return rc ? rc : put_u64(&w->new_source, ordinal, err);
}

/* Returns a domain's number in this stream. Domains are numbered by first use, so that
 * bytes do not depend on the order in which threads met them. */
static int note_domain(struct slu_writer *w, uint32_t number, uint32_t *out,
                       struct slu_err *err)
{
    uint64_t k = SLU_NO_DOMAIN;
    int rc = SLU_OK;
    if (number != SLU_NO_DOMAIN && !slu_map_get(&w->domain, number, &k)) {
        k = w->domain.n;
        rc = slu_map_set(&w->domain, number, k, err);
        if (!rc)
            rc = put_u64(&w->new_domain, number, err);
    }
    *out = (uint32_t)k;
    return rc;
}

static int put_name(struct slu_writer *w, uint64_t ordinal, const char *name,
                    struct slu_err *err)
{
    size_t n = name ? strlen(name) : 0;
    if (!name)
        return slu_fail(err, SLU_E_FORMAT,
                        "name number %llu is not in the table of names",
                        (unsigned long long)ordinal);
    int rc = put_u64(&w->scratch, ordinal, err);
    if (!rc)
        rc = put_u32(&w->scratch, (uint32_t)n, err);
    return rc ? rc : slu_buf_append(&w->scratch, name, n, err);
}

/* Writes frames of type SRCS, DOMS or VALS with the names of `list`, which the current
 * frame uses first. */
static int name_new(struct slu_writer *w, uint32_t type, struct slu_buf *list,
                    struct slu_err *err)
{
    size_t n = list->len / 8, i = 0;
    while (i < n) {
        uint64_t in_frame = 0;
        int rc = put_u64(&w->scratch, 0, err);
        for (; !rc && i < n && w->scratch.len < (1 << 20); i++, in_frame++) {
            uint64_t k = slu_le64(list->data + 8 * i), number = 0;
            if (type == SLU_SRCS) {
                rc = put_name(w, k, slu_names_source(w->names, k), err);
            } else if (type == SLU_VALS) {
                rc = put_name(w, k, slu_names_domain(w->values, (uint32_t)k), err);
            } else {
                slu_map_get(&w->domain, k, &number);
                rc = put_name(w, number, slu_names_domain(w->names, (uint32_t)k), err);
            }
        }
        if (rc)
            return rc;
        slu_put_le64(w->scratch.data, in_frame);
        rc = put_scratch(w, type, 0, w->zstd_level, err);
        if (rc)
            return rc;
    }
    slu_buf_clear(list);
    return SLU_OK;
}

/* ---- frames ---- */

/* Whether the writer takes the tokens of sequences, or with masks their marks alone. */
static bool has_tok(const struct slu_writer *w)
{
    return w->header.masks || !w->header.no_tokens;
}

/* Parts the marked ids of the current frame. */
static int split_masks(struct slu_writer *w, struct slu_err *err)
{
    const unsigned stored = slu_header_stored(&w->header);
    const uint64_t n_bit_byte = slu_mask_bytes(w->n_tok);
    const bool ids = !w->header.no_tokens;
    slu_buf_clear(&w->plain);
    int rc = ids ? slu_buf_reserve(&w->plain, w->n_tok * stored, err) : SLU_OK;
    if (!rc)
        rc = slu_buf_reserve(&w->col[MASK], n_bit_byte, err);
    if (rc)
        return rc;
    struct slu_span marked = {0};
    slu_frame_tok_spans(&w->tok, w->n_tok * sizeof(uint32_t), &marked);
    slu_mask_split(marked.p, w->n_tok, ids ? w->plain.data : NULL, stored,
                   w->col[MASK].data);
    w->plain.len = ids ? w->n_tok * stored : 0;
    w->col[MASK].len = n_bit_byte;
    return SLU_OK;
}

/* Gives the current frame to the joint, and takes the memory of earlier ones. */
static int pass_frame(struct slu_writer *w, uint32_t flags, size_t n_byte,
                      struct slu_err *err)
{
    struct slu_frame *f = &w->framer.pass;

    slu_buf_swap(&f->stored, &w->col[COUNTS]);
    slu_buf_clear(&f->early);
    if (w->hash.len == w->n_seq * sizeof(struct slu_u128))
        slu_buf_swap(&f->early, &w->hash);
    slu_buf_clear(&w->hash);
    if (w->header.masks)
        slu_buf_swap(&f->tok, &w->plain);
    int rc =
        w->header.masks ? SLU_OK : slu_frame_tok_give(&w->tok, n_byte, &f->tok, err);
    return rc ? rc : slu_framer_pass(&w->framer, SLU_DATA, flags, w->n_begun, err);
}

/* Writes the current frame to the output. */
static int put_frame(struct slu_writer *w, uint32_t flags, size_t n_byte,
                     struct slu_err *err)
{
    const struct slu_buf *meta = &w->col[COUNTS];
    struct slu_span p[1 + SLU_FRAME_PARTS] = {{meta->data, meta->len}};
    unsigned n = 1;

    if (w->header.masks)
        p[n++] = (struct slu_span){w->plain.data, w->plain.len};
    else
        n += slu_frame_tok_spans(&w->tok, n_byte, p + 1);
    return slu_framer_put(&w->framer, SLU_DATA, flags, w->n_begun, p, n, w->zstd_level,
                          false, err);
}

static int flush(struct slu_writer *w, uint32_t flags, struct slu_err *err)
{
    int rc = SLU_OK;
    if (!w->n_seq)
        return SLU_OK;
    if (w->header.masks)
        rc = split_masks(w, err);
    if (rc)
        return rc;
    if (w->new_source.len)
        rc = name_new(w, SLU_SRCS, &w->new_source, err);
    if (!rc && w->new_domain.len)
        rc = name_new(w, SLU_DOMS, &w->new_domain, err);
    if (!rc && w->new_value.len)
        rc = name_new(w, SLU_VALS, &w->new_value, err);

    uint8_t counts[64] = {0};
    slu_put_le64(counts, w->n_seq);
    slu_put_le64(counts + 8, w->n_seg);
    slu_put_le64(counts + 16, w->n_tok);
    slu_put_le64(counts + 24, w->col[IDS].len);
    struct slu_buf *meta = &w->col[COUNTS];
    slu_buf_clear(meta);
    if (!rc)
        rc = slu_buf_append(meta, counts, sizeof counts, err);
    for (int i = SEQ_SEGS; !rc && i < N_COLUMN; i++) {
        rc = slu_buf_append(meta, w->col[i].data, w->col[i].len, err);
        if (!rc)
            rc = slu_buf_align(meta, SLU_FRAME_ALIGN, err);
        slu_buf_clear(&w->col[i]);
    }
    uint8_t row[INDEX_ROW];
    slu_put_le64(row, w->framer.off_byte);
    slu_put_le64(row + 8, w->seqs_begun);
    slu_put_le64(row + 16, w->n_begun);
    slu_put_le64(row + 24, w->n_tok);
    if (!rc)
        rc = slu_buf_append(&w->index, row, sizeof row, err);
    size_t n_byte = has_tok(w) ? (size_t)w->n_tok * (size_t)w->header.tok_bytes : 0;
    if (!rc)
        rc = w->framer.joint ? pass_frame(w, flags, n_byte, err)
                             : put_frame(w, flags, n_byte, err);
    w->n_frame++;
    w->seqs_begun += w->n_begun;
    w->n_seq = w->n_seg = w->n_tok = w->n_begun = w->meta_byte = 0;
    slu_frame_tok_drop(&w->tok, n_byte); /* others wait */
    return rc;
}

/* Returns the number of a value of a field of type name. */
static int note_value(struct slu_writer *w, const struct slu_meta_field *f,
                      const struct slu_meta_value *v, uint8_t number[4],
                      struct slu_err *err)
{
    int rc = w->values ? SLU_OK : slu_names_new(&w->values, err);
    uint32_t k = 0, n = rc ? 0 : slu_names_n_domain(w->values);

    if (!rc)
        rc = slu_names_domain_number(w->values, (const char *)v->p, v->n, &k, err);
    slu_put_le32(number, k);
    if (rc || k < n)
        return rc;
    w->values_byte += v->n;
    if (n == SLU_META_VALUES || w->values_byte > SLU_META_VALUES_BYTE)
        return slu_meta_too_many(f->name, err);
    return put_u64(&w->new_value, k, err);
}

static int meta_lost(struct slu_err *err)
{
    return slu_fail(err, SLU_E_CONSERVATION,
                    "internal error: the header lacks a metadata field of a segment, "
                    "which would be lost; please report it");
}

/* Adds a row of the metadata in the n bytes of entries at p. */
static int add_meta(struct slu_writer *w, const uint8_t *p, size_t n,
                    struct slu_err *err)
{
    struct slu_meta_value v = {0};
    size_t took = slu_meta_next(p, n, &v);
    int rc = SLU_OK;

    w->meta_byte += n;

    for (unsigned i = 0; i < w->header.meta.n && !rc; i++) {
        const struct slu_meta_field *f = &w->header.meta.field[i];
        struct slu_buf *col = &w->col[META + 2 * i];
        const bool has = took && v.key == f->key;
        uint8_t element[4] = {255, 255, 255, 255};
        if (slu_meta_width(f->type)) {
            rc = slu_meta_put_element(col, f->type, has ? &v : NULL, err);
        } else {
            if (has && f->type == SLU_META_IS_TEXT)
                slu_put_le32(element, v.n);
            else if (has)
                rc = note_value(w, f, &v, element, err);
            if (!rc)
                rc = slu_buf_append(col, element, sizeof element, err);
            if (!rc && has && v.n && f->type == SLU_META_IS_TEXT)
                rc = slu_buf_append(col + 1, v.p, v.n, err);
        }
        if (has) {
            p += took;
            n -= took;
            took = slu_meta_next(p, n, &v);
        }
    }
    return rc || !n ? rc : meta_lost(err);
}

/* Gives the columns of a segment's integers room for as many rows as they have. */
static int more_rows(struct slu_writer *w, struct slu_err *err)
{
    const uint64_t n = w->n_seg < 64 ? 64 : w->n_seg;
    int rc = SLU_OK;

    for (int i = SOURCE; i < IDS && !rc; i++)
        rc = slu_buf_reserve(&w->col[i], n * sizeof(uint64_t), err);
    w->cap_seg = rc ? 0 : w->n_seg + n;
    return rc;
}

/* Adds a row for n_tok tokens of segment s from `skip` on. The segment's id, in `str`,
 * is only in its first row. */
static int add_seg(struct slu_writer *w, const struct slu_buf *str,
                   const struct slu_seg *s, uint64_t skip, uint64_t n_tok,
                   struct slu_err *err)
{
    uint32_t domain, id_len = skip ? 0 : s->id_len;
    const bool padding = s->source == SLU_PADDING;
    int rc = w->n_seg < w->cap_seg ? SLU_OK : more_rows(w, err);
    if (!rc)
        rc = note_source(w, s->source, err);
    if (!rc)
        rc = note_domain(w, s->domain, &domain, err);
    if (rc)
        return rc;
    push_u64(&w->col[SOURCE], s->source);
    push_u64(&w->col[DOCUMENT], s->document);
    push_u64(&w->col[OFFSET], padding ? 0 : s->offset + skip);
    push_u64(&w->col[LENGTH], n_tok);
    push_u32(&w->col[DOMAIN], domain);
    push_u32(&w->col[ID_BYTES], id_len);
    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        if (w->header.has[k])
            push_u64(&w->col[EXTRA + k],
                     (padding ? 0 : s->extra[k]) ^ slu_extra_kind[k].none);
    if (id_len)
        rc = slu_buf_append(&w->col[IDS], str->data + s->id_off, id_len, err);
    if (!rc && w->header.meta.n)
        rc = add_meta(w, str->data + s->id_off + s->id_len, s->meta_len, err);
    w->n_seg++;
    w->n_tok += n_tok;
    return rc;
}

/* Returns how many bytes of ids and metadata the current frame can still take. */
static uint64_t room_of(const struct slu_writer *w)
{
    return SLU_FRAME_IDS - w->col[IDS].len - w->meta_byte;
}

static int add_tokens(struct slu_writer *w, const struct slu_batch *b, uint64_t at,
                      uint64_t n, struct slu_err *err)
{
    w->did.tokens += n;
    if (!has_tok(w))
        return SLU_OK;
    return slu_frame_tok_add(&w->tok, slu_batch_at(b, at), n,
                             (size_t)w->header.tok_bytes, err);
}

/* Adds a sequence that fits in the current frame. */
static int add_whole(struct slu_writer *w, const struct slu_batch *b,
                     const struct slu_seq *q, struct slu_err *err)
{
    int rc = put_u32(&w->col[SEQ_SEGS], (uint32_t)q->n_seg, err);
    for (uint64_t i = 0; !rc && i < q->n_seg; i++) {
        const struct slu_seg *s = &b->seg[q->seg_off + i];
        rc = add_seg(w, &b->str, s, 0, s->len_tok, err);
    }
    if (!rc && w->framer.joint && (q->hash.lo | q->hash.hi))
        rc = slu_buf_append(&w->hash, &q->hash, sizeof q->hash, err);
    w->n_seq++;
    w->n_begun++;
    return rc ? rc : add_tokens(w, b, q->tok_off, q->len_tok, err);
}

/* Adds a sequence larger than a frame, in frames of its own; the current frame is
 * empty. */
static int add_long(struct slu_writer *w, const struct slu_batch *b,
                    const struct slu_seq *q, struct slu_err *err)
{
    uint64_t at = q->tok_off, in_frame = 0;
    w->n_begun = 1;
    for (uint64_t i = 0; i < q->n_seg; i++) {
        const struct slu_seg *s = &b->seg[q->seg_off + i];
        for (uint64_t skip = 0; skip < s->len_tok;) {
            if (w->n_tok == SLU_FRAME_TOKENS || w->n_seg == SLU_FRAME_SEGS ||
                room_of(w) < (skip ? s->meta_len : slu_seg_str(s))) {
                w->n_seq = 1;
                int rc = put_u32(&w->col[SEQ_SEGS], (uint32_t)in_frame, err);
                if (!rc)
                    rc = flush(
                        w, SLU_FLAG_SEQ_CONTINUES | (skip ? SLU_FLAG_SEG_CONTINUES : 0),
                        err);
                if (rc)
                    return rc;
                in_frame = 0;
            }
            uint64_t n = s->len_tok - skip, room = SLU_FRAME_TOKENS - w->n_tok;
            n = n < room ? n : room;
            int rc = add_seg(w, &b->str, s, skip, n, err);
            if (!rc)
                rc = add_tokens(w, b, at, n, err);
            if (rc)
                return rc;
            in_frame++;
            skip += n;
            at += n;
        }
    }
    w->n_seq = 1;
    return put_u32(&w->col[SEQ_SEGS], (uint32_t)in_frame, err);
}

static int add_seq(struct slu_writer *w, const struct slu_batch *b,
                   const struct slu_seq *q, struct slu_err *err)
{
    uint64_t n_str = 0;
    for (uint64_t i = 0; i < q->n_seg; i++)
        n_str += slu_seg_str(&b->seg[q->seg_off + i]);
    bool fits = q->len_tok <= SLU_FRAME_TOKENS && q->n_seg <= SLU_FRAME_SEGS &&
                n_str <= SLU_FRAME_IDS;
    w->did.sequences++;
    if (!q->n_seg || !q->len_tok)
        return slu_fail(err, SLU_E_FORMAT,
                        "a sequence without tokens cannot be written");
    if (!fits || w->n_tok + q->len_tok > SLU_FRAME_TOKENS ||
        w->n_seq == SLU_FRAME_SEQS || w->n_seg + q->n_seg > SLU_FRAME_SEGS ||
        room_of(w) < n_str) {
        int rc = flush(w, 0, err);
        if (rc)
            return rc;
    }
    return fits ? add_whole(w, b, q, err) : add_long(w, b, q, err);
}

/* ---- a sequence in parts ---- */

/* Adds the waiting tokens to the current frame. */
static int add_waiting(struct slu_writer *w, struct slu_err *err)
{
    uint64_t n = w->part.waiting, skip = w->part.len - n;
    w->n_seq++;
    w->n_begun += skip == 0;
    w->part.waiting = 0;
    int rc = put_u32(&w->col[SEQ_SEGS], 1, err);
    return rc ? rc : add_seg(w, &w->part.id, &w->part.seg, skip, n, err);
}

/* Writes the current frame, which has no room for another token. If it has other
 * sequences, the waiting tokens stay for the next frame: theirs does not fit beside
 * those. */
static int make_room(struct slu_writer *w, struct slu_err *err)
{
    if (w->n_seq)
        return flush(w, 0, err);
    int rc = add_waiting(w, err);
    return rc ? rc : flush(w, SLU_FLAG_SEQ_CONTINUES | SLU_FLAG_SEG_CONTINUES, err);
}

int slu_writer_begin(struct slu_writer *w, const struct slu_seg *seg, const void *id,
                     struct slu_err *err)
{
    w->part.seg = *seg;
    w->part.seg.id_off = 0;
    w->part.len = w->part.waiting = 0;
    slu_buf_clear(&w->part.id);
    if (w->part.is || seg->offset || seg->source == SLU_PADDING || w->header.masks)
        return slu_fail(err, SLU_E_USAGE,
                        "only a document without a mask can be written in parts");
    w->part.is = true;
    w->did.sequences++;
    const size_t n_str = slu_seg_str(seg);
    int rc = n_str ? slu_buf_append(&w->part.id, id, n_str, err) : SLU_OK;
    if (!rc && (w->n_tok == SLU_FRAME_TOKENS || w->n_seq == SLU_FRAME_SEQS ||
                w->n_seg == SLU_FRAME_SEGS || room_of(w) < n_str))
        rc = flush(w, 0, err);
    return rc;
}

int slu_writer_part(struct slu_writer *w, const void *tok, uint64_t n_tok,
                    struct slu_err *err)
{
    const uint8_t *p = tok;
    unsigned width = (unsigned)w->header.tok_bytes;
    while (n_tok > 0) {
        uint64_t room = SLU_FRAME_TOKENS - w->n_tok - w->part.waiting;
        uint64_t n = n_tok < room ? n_tok : room;
        int rc = n ? slu_frame_tok_copy(&w->tok, p, n, width, err) : make_room(w, err);
        if (rc)
            return rc;
        p += n * width;
        n_tok -= n;
        w->part.len += n;
        w->part.waiting += n;
        w->did.tokens += n;
    }
    return SLU_OK;
}

int slu_writer_end(struct slu_writer *w, struct slu_u128 hash, struct slu_err *err)
{
    struct slu_seg *seg = &w->part.seg;
    uint8_t own[16];
    if (!w->part.len)
        return slu_fail(err, SLU_E_FORMAT,
                        "a sequence without tokens cannot be written");
    int rc = add_waiting(w, err);
    seg->len_tok = w->part.len;
    if (!rc && w->sources)
        rc = slu_source_rows_count(w->sources, seg->source, NULL, seg->len_tok, hash,
                                   err);
    slu_put_le64(own, hash.lo);
    slu_put_le64(own + 8, hash.hi);
    struct slu_sum sum = {.n = {1, 1, seg->len_tok, 0},
                          .segments = 1,
                          .checksum = hash,
                          .trace_checksum = slu_hash_segments(own, sizeof own, seg, 1),
                          .meta_checksum =
                              slu_meta_hash(hash, seg, 1, w->part.id.data)};
    slu_sum_add(&w->sum, &sum);
    w->part.is = false;
    return rc;
}

int slu_writer_open(struct slu_writer **writer, struct slu_out *out,
                    const struct slu_header *h, const struct slu_writer_cfg *cfg,
                    struct slu_err *err)
{
    struct slu_writer *w = *writer = calloc(1, sizeof *w);
    if (!w) {
        slu_out_abort(out);
        return slu_fail_nomem(err, sizeof *w);
    }
    w->framer.out = out;
    w->framer.joint = cfg->joint;
    w->names = cfg->names;
    w->sources = cfg->sources;
    w->zstd_level = cfg->joint ? 0 : cfg->zstd_level;
    int rc = slu_header_copy(&w->header, h, err);
    if (!rc)
        rc = slu_header_encode(h, &w->scratch, err);
    if (!rc && cfg->steps)
        slu_put_le32(w->scratch.data + 4, h->meta.n ? 2 : 1); /* acct is of 1 */
    w->tok.whole = h->masks || w->zstd_level; /* libzstd's bytes depend on parts */
    if (!rc)
        rc = put_scratch(w, SLU_HEAD, 0, 0, err);
    if (!rc && !cfg->no_vocab)
        rc = slu_names_put_vocab(cfg->names, &w->framer, err);
    *writer = rc ? NULL : w;
    if (rc)
        slu_writer_abort(w);
    return rc;
}

static int put(struct slu_writer *w, struct slu_batch *b, struct slu_batch *from,
               struct slu_err *err)
{
    if (b->masks != w->header.masks ||
        (b->masks && b->marks_only != w->header.no_tokens))
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: the masks of the sequences would be lost, or "
                        "they have none; please report it");
    int rc = SLU_OK;
    slu_batch_sum(b);
    if (!w->header.meta.n && (b->sum.meta_checksum.lo | b->sum.meta_checksum.hi))
        return meta_lost(err);
    slu_sum_add(&w->sum, &b->sum);
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        rc = add_seq(w, b, &b->seq[i], err);
        if (!rc && w->sources)
            rc =
                slu_source_rows_count(w->sources, b->seg[b->seq[i].seg_off].source,
                                      NULL, b->seq[i].len_tok, slu_seq_hash(b, i), err);
    }
    return rc ? rc
              : slu_frame_tok_keep(&w->tok, from, (size_t)w->header.tok_bytes, err);
}

int slu_writer_put(struct slu_writer *w, struct slu_batch *b, struct slu_err *err)
{
    return put(w, b, NULL, err);
}

int slu_writer_pass(struct slu_writer *w, struct slu_batch *b, struct slu_err *err)
{
    return put(w, b, b, err);
}

const struct slu_sum *slu_writer_sum(const struct slu_writer *w)
{
    return &w->sum;
}

int slu_writer_steps(struct slu_writer *w, const struct slu_step_list *s,
                     struct slu_err *err)
{
    int rc = flush(w, 0, err);
    if (!rc)
        rc = slu_steps_put_json(s, &w->scratch, err);
    return rc ? rc : put_scratch(w, SLU_ACCT, 0, w->zstd_level, err);
}

static int put_end(struct slu_writer *w, struct slu_err *err)
{
    uint8_t e[ENDS_BYTES] = {0};
    const uint64_t v[] = {
        w->sum.n.sequences,       w->sum.segments,         w->sum.n.tokens,
        w->sum.padding,           w->sum.n.documents,      w->n_frame,
        w->sum.checksum.lo,       w->sum.checksum.hi,      w->sum.trace_checksum.lo,
        w->sum.trace_checksum.hi, w->sum.mask_checksum.lo, w->sum.mask_checksum.hi,
        w->sum.n.loss_tokens,     w->sum.meta_checksum.lo, w->sum.meta_checksum.hi};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        slu_put_le64(e + 8 * i, v[i]);
    if (w->did.tokens != w->sum.n.tokens || w->did.sequences != w->sum.n.sequences)
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %llu tokens put, %llu written; please report it",
            (unsigned long long)w->sum.n.tokens, (unsigned long long)w->did.tokens);
    int rc = slu_buf_append(&w->scratch, e, sizeof e, err);
    return rc ? rc : put_scratch(w, SLU_ENDS, 0, 0, err);
}

static int put_index(struct slu_writer *w, struct slu_err *err)
{
    uint64_t n = w->index.len / INDEX_ROW, at = 0, first = w->framer.off_byte;
    int rc = SLU_OK;
    do {
        uint64_t k = n - at < INDEX_ROWS ? n - at : INDEX_ROWS;
        rc = put_u64(&w->scratch, k, err);
        if (!rc)
            rc = put_u64(&w->scratch, 0, err);
        const struct slu_span p[] = {
            {w->scratch.data, w->scratch.len},
            {n ? w->index.data + at * INDEX_ROW : NULL, k * INDEX_ROW}};
        if (!rc)
            rc = slu_framer_put(&w->framer, SLU_INDX, 0, 0, p, n ? 2 : 1, w->zstd_level,
                                false, err);
        slu_buf_clear(&w->scratch);
        at += k;
    } while (!rc && at < n);
    return rc ? rc : put_scratch(w, SLU_FOOT, first, 0, err);
}

int slu_writer_close(struct slu_writer *w, struct slu_err *err)
{
    int rc = w->part.is ? slu_fail(err, SLU_E_USAGE, "a sequence was not ended")
                        : flush(w, 0, err);
    if (!rc)
        rc = put_end(w, err);
    if (!rc)
        rc = put_index(w, err);
    if (!rc && !w->framer.joint) {
        rc = slu_out_close(w->framer.out, err);
        w->framer.out = NULL;
    }
    slu_writer_abort(w);
    return rc;
}

void slu_writer_abort(struct slu_writer *w)
{
    if (!w)
        return;
    slu_out_abort(w->framer.out);
    if (w->framer.joint)
        slu_joint_end(w->framer.joint); /* the reader misses an end frame, if need be */
    slu_framer_release(&w->framer);
    slu_header_release(&w->header);
    for (int i = 0; i < N_COLUMN; i++)
        slu_buf_release(&w->col[i]);
    slu_frame_tok_release(&w->tok);
    slu_buf_release(&w->plain);
    slu_buf_release(&w->hash);
    slu_buf_release(&w->part.id);
    slu_buf_release(&w->index);
    slu_buf_release(&w->new_source);
    slu_buf_release(&w->new_domain);
    slu_buf_release(&w->new_value);
    slu_names_free(w->values);
    slu_buf_release(&w->scratch);
    slu_map_release(&w->said);
    slu_map_release(&w->domain);
    free(w);
}
