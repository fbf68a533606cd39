/* stream_meta.c - frames that are not data: what a reader learns from them. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "stream_reader.h"

int slu_meta_check(const struct slu_reader *r, const struct slu_header *h,
                   struct slu_err *err)
{
    if (h->masks && !r->masks)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "has masks, which tell the tokens that are trained on; this "
                        "step would lose them");
    if (h->inner_padding && !r->inner_padding)
        return slu_fail(
            err, SLU_E_UNSUPPORTED,
            "has padding between segments, which this step cannot keep; give "
            "it the stream that was padded");
    return SLU_OK;
}

/* Whether a name is in a list with commas; NULL has none. */
static bool is_listed(const char *list, const char *name, size_t n)
{
    for (const char *p = list, *end; p; p = *end ? end + 1 : NULL) {
        end = strchrnul(p, ',');
        if ((size_t)(end - p) == n && !memcmp(p, name, n))
            return true;
    }
    return false;
}

/* Adds the fields of a header to those of the reader. any: it need not have them. */
int slu_meta_join(struct slu_reader *r, const struct slu_header *h, bool any,
                  struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; i < h->meta.n && !rc; i++) {
        const struct slu_meta_field *f = &h->meta.field[i];
        const size_t n = strlen(f->name);
        if (slu_meta_find(&r->dropped, f->name, n) >= 0)
            continue;
        if (is_listed(r->drop, f->name, n)) {
            rc = slu_meta_add(&r->dropped, f->name, n, f->type, err);
            continue;
        }
        if (!any && slu_meta_find(&r->header.meta, f->name, n) < 0)
            return slu_fail(err, SLU_E_MISMATCH,
                            "has the metadata field '%s', and the streams before it do "
                            "not; give this one first",
                            f->name);
        rc = slu_meta_add(&r->header.meta, f->name, n, f->type, err);
    }
    return rc;
}

int slu_reader_drop(struct slu_reader *r, const char *names, uint64_t *n_value,
                    struct slu_err *err)
{
    r->n_dropped = n_value;
    for (const char *p = names, *end; p; p = *end ? end + 1 : NULL) {
        end = strchrnul(p, ',');
        const size_t n = (size_t)(end - p);
        if (slu_meta_find(&r->dropped, p, n) >= 0)
            continue;
        const int i = slu_meta_find(&r->header.meta, p, n);
        if (i < 0)
            return slu_fail(err, SLU_E_USAGE,
                            "no input has the metadata field '%.*s'; "
                            "'inspect' lists those that it has",
                            (int)n, p);
        int rc = slu_meta_add(&r->dropped, p, n, r->header.meta.field[i].type, err);
        if (rc)
            return rc;
        slu_meta_remove(&r->header.meta, (unsigned)i);
    }
    return SLU_OK;
}

void slu_drop_meta(const struct slu_reader *r, struct slu_batch *b)
{
    b->n_drop = 0;
    for (size_t i = 0; i < b->n_seg && r->dropped.n; i++) {
        struct slu_seg *s = &b->seg[i];
        uint8_t *to = b->str.data + s->id_off + s->id_len;
        const uint8_t *p = to, *end = to + s->meta_len;
        struct slu_meta_value v;
        for (size_t n; (n = slu_meta_next(p, (size_t)(end - p), &v)); p += n) {
            bool drop = false;
            for (unsigned k = 0; k < r->dropped.n; k++)
                drop |= r->dropped.field[k].key == v.key;
            b->n_drop += drop;
            if (drop)
                continue;
            memmove(to, p, n);
            to += n;
        }
        if (to == end)
            continue;
        s->meta_len = (s->meta_len - (uint64_t)(end - to)) & 0xffffff;
        b->sum_valid = false;
    }
}

static int begin_member(struct slu_reader *r, const uint8_t *p, size_t n,
                        struct slu_err *err)
{
    struct slu_header h, both = r->header;
    int rc = slu_header_decode(&h, p, n, err);
    if (rc)
        return rc;
    const bool masks = h.masks, inner_padding = h.inner_padding;
    const bool joins = r->have_header;
    struct slu_meta_fields *meta = NULL;
    if (h.meta.n && !(meta = malloc(sizeof *meta)))
        rc = slu_fail_nomem(err, sizeof *meta);
    if (meta)
        *meta = h.meta;
    if (!rc)
        rc = slu_meta_check(r, &h, err);
    if (!rc)
        rc = slu_meta_uncounted(r, &h, err);
    if (!r->have_header) {
        r->header = h;
        r->header.meta.n = 0;
        r->have_header = true;
        if (!rc)
            rc = slu_meta_join(r, &h, true, err);
    } else {
        if (!rc)
            rc = slu_header_compatible(&r->header, &h, err);
        if (!rc)
            rc = slu_meta_join(r, &h, false, err);
        slu_header_join(&both, &h);
        slu_header_release(&h);
    }
    if (!rc &&
        ((masks && !r->header.masks) || (inner_padding && !r->header.inner_padding)))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "has masks, or padding between segments, and the streams before "
                      "it do not; give this one first");
    if (!rc && joins && both.pad != r->header.pad)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "has padding of another id than the streams before it, which "
                      "should be known before they are read; name the files, instead "
                      "of a pipe");
    pthread_mutex_lock(&r->mu);
    if (!rc)
        rc = slu_grow(&r->member, &r->cap_member, r->n_member + 1, sizeof *r->member,
                      err);
    if (!rc)
        r->member[r->n_member++] = (struct slu_member){.name = r->name,
                                                       .masks = masks,
                                                       .inner_padding = inner_padding,
                                                       .meta = meta};
    pthread_mutex_unlock(&r->mu);
    if (rc)
        free(meta);
    r->members_in_path++;
    r->state = BODY;
    r->n_seq_begun = 0;
    XXH3_64bits_reset(&r->index_want);
    XXH3_64bits_reset(&r->index_got);
    return rc;
}

static int names_frame(struct slu_reader *r, uint32_t type, const uint8_t *p, size_t n,
                       struct slu_err *err)
{
    struct slu_cursor c = {p, n, 0};
    const uint8_t *q = slu_cursor_take(&c, 8);
    uint64_t k = q ? slu_le64(q) : 1;
    char *name = malloc(SLU_MAX_NAME + 1);
    int rc = name ? SLU_OK : slu_fail_nomem(err, SLU_MAX_NAME + 1);
    for (uint64_t i = 0; !rc && i < k; i++) {
        q = slu_cursor_take(&c, 12);
        uint32_t len = q ? slu_le32(q + 8) : 0;
        const uint8_t *s = q && len <= SLU_MAX_NAME ? slu_cursor_take(&c, len) : NULL;
        if (!s || memchr(s, 0, len)) {
            rc = slu_fail(
                err, SLU_E_FORMAT,
                "frame %llu: a name is cut short, too long, or has a NUL in it",
                (unsigned long long)r->number - 1);
            break;
        }
        memcpy(name, s, len);
        name[len] = 0;
        rc = type == SLU_SRCS ? slu_reader_add_source(r, slu_le64(q), name, err)
                              : slu_reader_add_name(r, type == SLU_VALS, slu_le64(q),
                                                    name, len, err);
    }
    free(name);
    if (!rc && c.at != n)
        rc = slu_fail(err, SLU_E_FORMAT, "frame %llu: has bytes after its names",
                      (unsigned long long)r->number - 1);
    return rc;
}

static int end_member(struct slu_reader *r, const uint8_t *p, size_t n,
                      struct slu_err *err)
{
    static const uint8_t zero[SLU_ENDS_BYTES];
    const struct slu_member *is = &r->member[r->n_member - 1];
    if (n != SLU_ENDS_BYTES || (!is->masks && memcmp(p + 80, zero, 24)) ||
        (!is->meta && memcmp(p + 104, zero, 16)) || memcmp(p + 120, zero, 8))
        return slu_fail(
            err, SLU_E_FORMAT,
            "the end frame has another length, or reserved bytes that are not 0");
    pthread_mutex_lock(&r->mu);
    struct slu_member *m = &r->member[r->n_member - 1];
    m->declared.n = (struct slu_count){slu_le64(p + 32), slu_le64(p), slu_le64(p + 16),
                                       slu_le64(p + 96)};
    m->declared.segments = slu_le64(p + 8);
    m->declared.padding = slu_le64(p + 24);
    m->declared_frames = slu_le64(p + 40);
    m->declared.checksum = (struct slu_u128){slu_le64(p + 48), slu_le64(p + 56)};
    m->declared.trace_checksum = (struct slu_u128){slu_le64(p + 64), slu_le64(p + 72)};
    m->declared.mask_checksum = (struct slu_u128){slu_le64(p + 80), slu_le64(p + 88)};
    m->declared.meta_checksum = (struct slu_u128){slu_le64(p + 104), slu_le64(p + 112)};
    m->ended = true;
    pthread_mutex_unlock(&r->mu);
    r->state = ENDED;
    r->first_index = r->off_byte;
    return slu_meta_no_steps(r, err);
}

static int index_frame(struct slu_reader *r, const uint8_t *p, size_t n,
                       struct slu_err *err)
{
    if (n < 16 || slu_le64(p) > (UINT64_C(1) << 20) || n != 16 + 32 * slu_le64(p) ||
        slu_le64(p + 8))
        return slu_fail(err, SLU_E_FORMAT,
                        "an index frame has another length than its count says");
    for (size_t i = 16; i < n; i += 32)
        slu_xxh3_64_update(&r->index_got, p + i, 24);
    pthread_mutex_lock(&r->mu);
    struct slu_member *m = &r->member[r->n_member - 1];
    for (size_t i = 16; i < n; i += 32)
        m->declared_tok_rows = slu_add_row(m->declared_tok_rows, slu_le64(p + i + 24));
    pthread_mutex_unlock(&r->mu);
    r->state = INDEXED;
    return SLU_OK;
}

static int foot_frame(struct slu_reader *r, const struct slu_frame *f,
                      struct slu_err *err)
{
    if (f->raw_byte || f->aux != r->first_index)
        return slu_fail(err, SLU_E_FORMAT,
                        "the footer does not point to the first index frame");
    if (slu_xxh3_64_digest(&r->index_got) != slu_xxh3_64_digest(&r->index_want))
        return slu_fail(err, SLU_E_FORMAT, "the index does not match the frames");
    r->state = BETWEEN;
    r->number = 0;
    r->off_byte = 0;
    return SLU_OK;
}

int slu_meta_take(struct slu_reader *r, const struct slu_frame *f, const uint8_t *p,
                  size_t n, struct slu_err *err)
{
    switch (f->type) {
    case SLU_HEAD:
        return begin_member(r, p, n, err);
    case SLU_SRCS:
    case SLU_DOMS:
    case SLU_VALS:
        return names_frame(r, f->type, p, n, err);
    case SLU_ENDS:
        return end_member(r, p, n, err);
    case SLU_INDX:
        return index_frame(r, p, n, err);
    case SLU_FOOT:
        return foot_frame(r, f, err);
    default:
        return slu_fail(
            err, SLU_E_UNSUPPORTED,
            "frame %llu has a type that this version does not know; use a newer one",
            (unsigned long long)f->number);
    }
}
