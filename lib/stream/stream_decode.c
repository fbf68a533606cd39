/* stream_decode.c - from data frames to batches: the parallel part of reading. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "stream_reader.h"

static int bad(const struct slu_frame *f, const char *what, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "frame %llu: %s", (unsigned long long)f->number,
                    what);
}

static const uint8_t *column(struct slu_cursor *c, uint64_t n, uint64_t width)
{
    while (c->at % SLU_FRAME_ALIGN) {
        const uint8_t *z = slu_cursor_take(c, 1);
        if (!z || *z)
            return NULL;
    }
    return n > c->n / width ? NULL : slu_cursor_take(c, n * width);
}

/* Finds the columns of metadata field i; false: they are cut off. */
static bool split_meta(struct slu_cursor *c, struct slu_columns *k, unsigned i)
{
    const enum slu_meta_type type = k->fields->field[i].type;
    const unsigned width = slu_meta_width(type);

    k->meta[i] = column(c, k->n_seg, width ? width : 4);
    if (!k->meta[i] || type != SLU_META_IS_TEXT)
        return k->meta[i];
    for (uint64_t s = 0; s < k->n_seg; s++) {
        const uint32_t n = slu_le32(k->meta[i] + 4 * s);
        k->n_text[i] += slu_meta_is_null(type, k->meta[i] + 4 * s) ? 0 : n;
        if (!slu_meta_is_null(type, k->meta[i] + 4 * s) && n > SLU_META_VALUE)
            return false;
    }
    k->text[i] = column(c, k->n_text[i], 1);
    return k->text[i];
}

int slu_columns_split(const struct slu_frame *f, const uint8_t *p, size_t n,
                      const struct slu_header *h, bool masks,
                      const struct slu_meta_fields *fields, struct slu_columns *k,
                      struct slu_err *err)
{
    struct slu_cursor c = {p, n, 0};
    const uint8_t *q = slu_cursor_take(&c, 64);
    static const uint8_t zero[32];
    if (!q || memcmp(q + 32, zero, 32))
        return bad(f, "its counts are cut short, or their reserved bytes are not 0",
                   err);
    k->n_seq = slu_le64(q);
    k->n_seg = slu_le64(q + 8);
    k->n_tok = slu_le64(q + 16);
    k->n_id = slu_le64(q + 24);
    if (k->n_tok > SLU_FRAME_TOKENS || k->n_seq > SLU_FRAME_SEQS ||
        k->n_seg > SLU_FRAME_SEGS || k->n_seq > k->n_seg || k->n_seg > k->n_tok ||
        !k->n_seq)
        return slu_fail(err, SLU_E_FORMAT,
                        "frame %llu: %llu sequences, %llu segments and %llu tokens; "
                        "expected 1 <= sequences <= segments <= tokens <= %llu",
                        (unsigned long long)f->number, (unsigned long long)k->n_seq,
                        (unsigned long long)k->n_seg, (unsigned long long)k->n_tok,
                        (unsigned long long)SLU_FRAME_TOKENS);
    k->seq_segs = column(&c, k->n_seq, 4);
    k->source = column(&c, k->n_seg, 8);
    k->document = column(&c, k->n_seg, 8);
    k->offset = column(&c, k->n_seg, 8);
    k->length = column(&c, k->n_seg, 8);
    k->domain = column(&c, k->n_seg, 4);
    k->id_bytes = column(&c, k->n_seg, 4);
    for (unsigned i = 0; i < SLU_N_EXTRA; i++)
        if (h->has[i] && !(k->extra[i] = column(&c, k->n_seg, 8)))
            return bad(f, "its columns take other bytes than its counts say", err);
    k->ids = column(&c, k->n_id, 1);
    k->fields = fields;
    for (unsigned i = 0; fields && i < fields->n; i++)
        if (!split_meta(&c, k, i))
            return bad(f, "its metadata takes other bytes than its counts say", err);
    if (masks && !(k->mask = column(&c, slu_mask_bytes(k->n_tok), 1)))
        return bad(f, "its columns take other bytes than its counts say", err);
    if (!f->passed)
        k->tok = column(&c, h->no_tokens ? 0 : k->n_tok, slu_header_stored(h));
    else if (column(&c, 0, 1)) /* what is behind the rows is 0 */
        k->tok = f->tok.data ? f->tok.data : p;
    if (!k->seq_segs || !k->source || !k->document || !k->offset || !k->length ||
        !k->domain || !k->id_bytes || !k->ids || !k->tok || c.at != n)
        return bad(f, "its columns take other bytes than its counts say", err);
    if (k->mask && k->n_tok % 8 && k->mask[k->n_tok / 8] >> k->n_tok % 8)
        return bad(f, "its mask has a bit after the last token", err);
    return SLU_OK;
}

/* The stored byte order is the native one on all
 * supported hosts. Written for SSE2, which has the largest of signed words of 2 bytes
 * only; of 4 bytes, it is the sign of a difference that tells. */
bool slu_ids_in_range(const void *tok, uint64_t n, unsigned tok_bytes,
                      uint64_t vocab_size)
{
    if (n == 0)
        return true;
    if (tok_bytes == 2) {
        const uint16_t *t = tok;
        int16_t m = INT16_MIN;
        for (uint64_t i = 0; i < n; i++) {
            int16_t v = (int16_t)(t[i] ^ 0x8000);
            m = v > m ? v : m;
        }
        return (uint16_t)(m ^ INT16_MIN) < vocab_size;
    }
    const uint32_t *t = tok, most = (uint32_t)(vocab_size - 1);
    uint32_t sign = 0;
    if (vocab_size && vocab_size <= UINT32_C(1) << 31) {
        for (uint64_t i = 0; i < n; i++)
            sign |= t[i] | (most - t[i]);
        return !(sign >> 31);
    }
    for (uint64_t i = 0; i < n; i++)
        sign = t[i] > sign ? t[i] : sign;
    return sign < vocab_size;
}

/* Row i's extras into *s; false: one is not finite, or of padding. */
static bool get_extras(const struct slu_columns *c, uint64_t i, struct slu_seg *s)
{
    for (unsigned k = 0; k < SLU_N_EXTRA; k++) {
        const struct slu_extra_kind *kind = &slu_extra_kind[k];
        uint64_t v = c->extra[k] ? slu_le64(c->extra[k] + 8 * i) : kind->none;
        s->extra[k] = v ^ kind->none;
        if (s->extra[k] && (s->source == SLU_PADDING ||
                            (kind->is_double && (v >> 52 & 0x7ff) == 0x7ff)))
            return false;
    }
    return true;
}

/* What a frame's rows are added with. */
struct rows {
    struct slu_reader *r;
    uint32_t member;
    /* The last name of each metadata field: the same come one after another. */
    struct {
        uint32_t number;
        const char *name;
    } last[SLU_META_FIELDS];
    uint64_t text[SLU_META_FIELDS]; /* bytes used of the texts */
};

/* Returns a name of metadata by its number in the member; NULL: there is none. */
static const char *value_of(struct rows *x, unsigned field, uint32_t number)
{
    if (x->last[field].name && x->last[field].number == number)
        return x->last[field].name;
    pthread_mutex_lock(&x->r->mu);
    const struct slu_member *m = &x->r->member[x->member];
    const char *name = number < m->value.n
                           ? slu_names_domain(x->r->values, m->value.is[number])
                           : NULL;
    pthread_mutex_unlock(&x->r->mu);
    x->last[field].number = number;
    return x->last[field].name = name;
}

/* Appends the metadata of row i, in frame f, to b->str. */
static int add_meta(struct slu_batch *b, const struct slu_frame *f,
                    const struct slu_columns *k, uint64_t i, bool padding,
                    struct rows *x, struct slu_err *err)
{
    bool fits = true;
    int rc = SLU_OK;

    for (unsigned j = 0; j < k->fields->n && fits && !rc; j++) {
        const struct slu_meta_field *of = &k->fields->field[j];
        const unsigned width = slu_meta_width(of->type);
        const uint8_t *element = k->meta[j] + (width ? width : 4) * i;
        if (slu_meta_is_null(of->type, element))
            continue;
        const uint32_t n = width ? 0 : slu_le32(element);
        const char *name = of->type == SLU_META_IS_NAME ? value_of(x, j, n) : NULL;
        fits = !padding && slu_meta_is_finite(of->type, element) &&
               (name || of->type != SLU_META_IS_NAME);
        if (fits && width)
            rc = slu_meta_put(&b->str, of->key, element, width, err);
        else if (fits && name)
            rc = slu_meta_put(&b->str, of->key, name, strlen(name), err);
        else if (fits)
            rc = slu_meta_put(&b->str, of->key, k->text[j] + x->text[j], n, err);
        x->text[j] += of->type == SLU_META_IS_TEXT ? n : 0;
    }
    return fits ? rc
                : slu_fail(err, SLU_E_FORMAT,
                           "frame %llu: segment %llu has metadata that is not finite, "
                           "a name that was not given, or belongs to padding",
                           (unsigned long long)f->number, (unsigned long long)i);
}

/* Whether the metadata of s, the last bytes of str, are those of the segment before. */
static bool same_meta(const struct slu_batch *b, const struct slu_seg *s,
                      const struct slu_seg *before)
{
    return s->meta_len == before->meta_len &&
           (!s->meta_len ||
            !memcmp(b->str.data + s->id_off,
                    b->str.data + before->id_off + before->id_len, s->meta_len));
}

/* Adds row i of the columns as a segment, or to the last one if it continues that. */
static int add_seg(struct slu_batch *b, const struct slu_frame *f,
                   const struct slu_columns *k, uint64_t i, bool continues,
                   uint64_t *id_at, struct rows *x, struct slu_err *err)
{
    struct slu_seg s = {
        .source = slu_le64(k->source + 8 * i),
        .document = slu_le64(k->document + 8 * i),
        .offset = slu_le64(k->offset + 8 * i),
        .len_tok = slu_le64(k->length + 8 * i),
        .domain = slu_le32(k->domain + 4 * i),
        .id_len = slu_le32(k->id_bytes + 4 * i),
        .id_off = b->str.len,
    };
    bool padding = s.source == SLU_PADDING;
    if (!get_extras(k, i, &s) || !s.len_tok || s.len_tok > k->n_tok ||
        s.id_len > k->n_id - *id_at || s.offset > UINT64_MAX - s.len_tok ||
        s.id_len > SLU_MAX_NAME ||
        (padding && (s.document || s.offset || s.domain != SLU_NO_DOMAIN || s.id_len)))
        return slu_fail(
            err, SLU_E_FORMAT,
            "frame %llu: segment %llu has an id of %u bytes and %llu tokens "
            "at offset %llu, which is not possible here",
            (unsigned long long)f->number, (unsigned long long)i, s.id_len,
            (unsigned long long)s.len_tok, (unsigned long long)s.offset);
    int rc =
        s.id_len ? slu_buf_append(&b->str, k->ids + *id_at, s.id_len, err) : SLU_OK;
    if (!rc && k->fields) {
        rc = add_meta(b, f, k, i, padding, x, err);
        s.meta_len = (b->str.len - s.id_off - s.id_len) & 0xffffff;
    }
    if (rc)
        return rc;
    if (continues) {
        struct slu_seg *last = &b->seg[b->n_seg - 1];
        if (s.source != last->source || s.document != last->document || s.id_len ||
            s.domain != last->domain || memcmp(s.extra, last->extra, sizeof s.extra) ||
            (!padding && s.offset != last->offset + last->len_tok) ||
            !same_meta(b, &s, last))
            return bad(
                f,
                "its first segment does not continue the last one of the frame before",
                err);
        last->len_tok += s.len_tok;
        b->str.len = s.id_off;
        return SLU_OK;
    }
    *id_at += s.id_len;
    b->seg[b->n_seg++] = s;
    return SLU_OK;
}

/* Adds the rows of one frame to the sequences of the batch. before: the frame before it
 * if its last sequence continues in this one, else NULL. inner_padding: padding may
 * stand before another segment. */
static int add_rows(struct slu_batch *b, const struct slu_frame *f,
                    const struct slu_columns *k, const struct slu_frame *before,
                    bool inner_padding, struct rows *x, struct slu_err *err)
{
    uint64_t at_seg = 0, id_at = 0, tok_end = 0;
    int rc = slu_grow(&b->seq, &b->cap_seq, b->n_seq + k->n_seq, sizeof *b->seq, err);
    if (!rc)
        rc = slu_grow(&b->seg, &b->cap_seg, b->n_seg + k->n_seg, sizeof *b->seg, err);
    for (uint64_t i = 0; !rc && i < k->n_seq; i++) {
        uint32_t n = slu_le32(k->seq_segs + 4 * i);
        bool more = i == 0 && before;
        if (!n || n > k->n_seg - at_seg)
            return slu_fail(err, SLU_E_FORMAT,
                            "frame %llu: sequence %llu has %u segments; expected 1 to "
                            "%llu",
                            (unsigned long long)f->number, (unsigned long long)i, n,
                            (unsigned long long)(k->n_seg - at_seg));
        if (!more)
            b->seq[b->n_seq++] = (struct slu_seq){b->n_tok + tok_end, 0, b->n_seg, 0};
        struct slu_seq *q = &b->seq[b->n_seq - 1];
        for (uint32_t j = 0; !rc && j < n; j++, at_seg++) {
            bool seg_more = more && j == 0 && (before->flags & SLU_FLAG_SEG_CONTINUES);
            if (!seg_more && q->n_seg && b->seg[b->n_seg - 1].source == SLU_PADDING &&
                (!inner_padding || slu_le64(k->source + 8 * at_seg) == SLU_PADDING))
                return bad(f, "padding is not the end of its sequence", err);
            rc = add_seg(b, f, k, at_seg, seg_more, &id_at, x, err);
            q->n_seg += !rc && !seg_more;
            q->len_tok += slu_le64(k->length + 8 * at_seg);
            tok_end += slu_le64(k->length + 8 * at_seg);
        }
    }
    if (!rc && (at_seg != k->n_seg || id_at != k->n_id || tok_end != k->n_tok ||
                f->aux != k->n_seq - (before != NULL)))
        return slu_fail(err, SLU_E_FORMAT,
                        "frame %llu: its sequences have %llu segments of %llu tokens; "
                        "its counts say %llu of %llu",
                        (unsigned long long)f->number, (unsigned long long)at_seg,
                        (unsigned long long)tok_end, (unsigned long long)k->n_seg,
                        (unsigned long long)k->n_tok);
    return rc;
}

/* Changes domain numbers and moved ordinals to those of this process; checks that
 * sources have names. */
static int localise(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    uint64_t last = SLU_PADDING, last_is = SLU_PADDING, moved;
    int rc = SLU_OK;
    pthread_mutex_lock(&r->mu);
    const struct slu_member *m = &r->member[b->member];
    for (size_t i = 0; !rc && i < b->n_seg; i++) {
        struct slu_seg *s = &b->seg[i];
        if (s->source == SLU_PADDING)
            continue;
        if (s->source != last) {
            last = last_is = s->source;
            if (slu_map_get(&m->source, last, &moved)) {
                last_is = moved;
                b->sum_valid = false;
            }
            if (!slu_names_source(r->names, last_is))
                rc = slu_fail(err, SLU_E_FORMAT, "source %llu has no name",
                              (unsigned long long)last);
        }
        s->source = last_is;
        if (s->domain == SLU_NO_DOMAIN)
            continue;
        if (s->domain >= m->domain.n)
            rc = slu_fail(err, SLU_E_FORMAT, "domain %u has no name", s->domain);
        else
            s->domain = m->domain.is[s->domain];
    }
    pthread_mutex_unlock(&r->mu);
    return rc;
}

/* Reserves the memory for the tokens of several frames at once: it is the largest. */
static int reserve(const struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    uint64_t n_byte = 0;
    for (size_t i = 0; i < b->raw->n; i++)
        n_byte += b->raw->f[i].raw_byte;
    n_byte *= b->tok_bytes / slu_header_stored(&r->header);
    return b->raw->n == 1 || r->header.no_tokens
               ? SLU_OK
               : slu_buf_reserve(&b->own, n_byte, err);
}

/* Appends the tokens of one frame to `own`, marked if the batch has masks. */
static int add_tokens(const struct slu_reader *r, struct slu_batch *b,
                      const struct slu_columns *k, struct slu_err *err)
{
    size_t n_byte = k->n_tok * b->tok_bytes;
    if (!b->masks)
        return slu_buf_append(&b->own, k->tok, n_byte, err);
    int rc = slu_buf_reserve(&b->own, n_byte, err);
    if (rc)
        return rc;
    slu_mask_join((uint32_t *)(void *)(b->own.data + b->own.len),
                  b->marks_only ? NULL : k->tok, slu_header_stored(&r->header), k->mask,
                  k->n_tok);
    b->own.len += n_byte;
    return SLU_OK;
}

/* Clears the marks of padding, which only streams without masks get (own_masks false);
 * a stream's own must be clear. */
static int check_padding(struct slu_batch *b, bool own_masks, struct slu_err *err)
{
    uint32_t *marked = (void *)b->own.data;
    for (size_t i = 0; i < b->n_seq; i++) {
        uint64_t at = b->seq[i].tok_off, seg = b->seq[i].seg_off;
        for (uint64_t k = 0; k < b->seq[i].n_seg; k++) {
            const struct slu_seg *s = &b->seg[seg + k];
            for (uint64_t t = 0; s->source == SLU_PADDING && t < s->len_tok; t++) {
                if (own_masks && marked[at + t] & SLU_TRAINED)
                    return bad(&b->raw->f[0], "padding is trained on", err);
                marked[at + t] &= ~SLU_TRAINED;
            }
            at += s->len_tok;
        }
    }
    return SLU_OK;
}

static int decode(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    const struct slu_frame *before = NULL;
    bool one = b->raw->n == 1 && !b->masks, ids = !r->header.no_tokens,
         tokens = ids || b->masks;
    pthread_mutex_lock(&r->mu);
    const bool masks = r->member[b->member].masks,
               inner_padding = r->member[b->member].inner_padding;
    const struct slu_meta_fields *meta = r->member[b->member].meta;
    pthread_mutex_unlock(&r->mu);
    int rc = reserve(r, b, err);
    for (size_t i = 0; !rc && i < b->raw->n; i++) {
        struct slu_frame *f = &b->raw->f[i];
        struct slu_columns k = {0};
        struct rows x = {.r = r, .member = b->member};
        const uint8_t *p;
        size_t n;
        rc = slu_frame_check(f, err);
        if (!rc)
            rc = slu_frame_payload(f, &p, &n, err);
        if (!rc)
            rc = slu_columns_split(f, p, n, &r->header, masks, meta, &k, err);
        if (!rc && ids && !f->early.len &&
            !slu_ids_in_range(k.tok, k.n_tok, slu_header_stored(&r->header),
                              r->header.vocab_size))
            rc = bad(f, "a token is not in the vocabulary", err);
        if (!rc)
            rc = add_rows(b, f, &k, before, inner_padding, &x, err);
        for (size_t q = 0; !rc && one && q < f->early.len / sizeof(struct slu_u128);
             q++)
            b->seq[q].hash = ((const struct slu_u128 *)(void *)f->early.data)[q];
        if (!rc && tokens && !one)
            rc = add_tokens(r, b, &k, err);
        if (rc)
            return rc;
        if (!one) /* its tokens are in `own` now */
            slu_frame_release(f);
        b->n_tok += k.n_tok;
        f->n_tok = k.n_tok;
        if (tokens)
            b->tok = one ? k.tok : b->own.data;
        before = f->flags & SLU_FLAG_SEQ_CONTINUES ? f : NULL;
    }
    return rc || !b->masks ? rc : check_padding(b, masks, err);
}

int slu_batch_open(struct slu_reader *r, struct slu_batch *b, struct slu_err *err)
{
    if (r->ops)
        return slu_over_open(r, b, err);
    int rc = decode(r, b, err);
    if (!rc) {
        b->unsummed = slu_reader_may_wait(r, b);
        if (!b->unsummed)
            slu_batch_sum(b);
        b->sum_read = b->sum;
        slu_drop_meta(r, b);
        rc = localise(r, b, err);
    }
    if (!rc) {
        slu_identity_open(r, b);
        return SLU_OK;
    }
    pthread_mutex_lock(&r->mu);
    const char *name = r->member[b->member].name;
    pthread_mutex_unlock(&r->mu);
    return slu_err_at(err, "%s", name);
}

/* Finds the index in r->moved of the source that another stream called `ordinal`; adds
 * it if it is new. Sources are found by a hash of number and name; others with the same
 * hash are at hash + 1, … */
static int moved_index(struct slu_reader *r, uint64_t ordinal, const char *name,
                       size_t *index, struct slu_err *err)
{
    uint64_t h = slu_hash64(name, strlen(name)) ^
                 (ordinal * UINT64_C(0x9e3779b97f4a7c15)),
             i;
    for (; slu_map_get(&r->moved_at, h, &i); h++)
        if (r->moved[i].was == ordinal && !strcmp(r->moved[i].name, name)) {
            *index = i;
            return SLU_OK;
        }
    *index = r->n_moved;
    if (r->max_source >= SLU_PADDING - 1)
        return slu_fail(
            err, SLU_E_LIMIT,
            "all source numbers are taken; source %llu (%s) cannot have one",
            (unsigned long long)ordinal, name);
    int rc = slu_grow(&r->moved, &r->cap_moved, r->n_moved + 1, sizeof *r->moved, err);
    if (!rc)
        rc = slu_map_set(&r->moved_at, h, r->n_moved, err);
    char *copy = rc ? NULL : strdup(name);
    if (!rc && !copy)
        rc = slu_fail_nomem(err, strlen(name));
    if (!rc)
        r->moved[r->n_moved++] = (struct slu_moved){ordinal, ++r->max_source, copy};
    return rc;
}

/* Adds a source, which is known by ordinal and name. If a concatenated stream uses an
 * ordinal that another source has already, the source moves to the next free ordinal,
 * which is the same for the same input. */
int slu_reader_add_source(struct slu_reader *r, uint64_t ordinal, const char *name,
                          struct slu_err *err)
{
    if (ordinal == SLU_PADDING)
        return slu_fail(err, SLU_E_FORMAT,
                        "a source has the number that means padding");
    const char *had = slu_names_source(r->names, ordinal);
    uint64_t is = ordinal;
    int rc = SLU_OK;
    if (had && strcmp(had, name)) {
        size_t i;
        rc = moved_index(r, ordinal, name, &i, err);
        if (rc)
            return rc;
        is = r->moved[i].is;
        pthread_mutex_lock(&r->mu);
        rc = slu_map_set(&r->member[r->n_member - 1].source, ordinal, is, err);
        pthread_mutex_unlock(&r->mu);
    }
    r->max_source = is > r->max_source ? is : r->max_source;
    return rc ? rc : slu_names_set_source(r->names, is, name, err);
}

int slu_reader_add_name(struct slu_reader *r, bool value, uint64_t number,
                        const char *name, size_t len, struct slu_err *err)
{
    uint32_t local = 0;
    int rc = value && !r->values ? slu_names_new(&r->values, err) : SLU_OK;
    struct slu_names *names = value ? r->values : r->names;
    const uint32_t n = !rc && value ? slu_names_n_domain(names) : 0;

    if (!rc)
        rc = slu_names_domain_number(names, name, len, &local, err);
    r->values_byte += value && local >= n ? len : 0;
    if (!rc && (n >= SLU_META_VALUES || r->values_byte > SLU_META_VALUES_BYTE))
        rc = local < n ? SLU_OK : slu_meta_too_many(NULL, err);
    pthread_mutex_lock(&r->mu);
    struct slu_member *m = &r->member[r->n_member - 1];
    struct slu_numbers *to = value ? &m->value : &m->domain;
    if (!rc && number != to->n)
        rc = slu_fail(err, SLU_E_FORMAT, "%s %llu is not the next number",
                      value ? "value" : "domain", (unsigned long long)number);
    if (!rc)
        rc = slu_grow(&to->is, &to->cap, to->n + 1, sizeof *to->is, err);
    if (!rc)
        to->is[to->n++] = local;
    pthread_mutex_unlock(&r->mu);
    return rc;
}
