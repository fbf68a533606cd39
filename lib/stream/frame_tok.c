#include "frame_tok.h"

#include <string.h>

#include "stream.h"

#define LARGE_FRAME ((size_t)256 << 10)
/* Shorter runs are copied, which costs less than a part. */
#define RUN_BYTE ((size_t)2 << 10)
/* Memory is taken for this many bytes at least, and only if it is that of a usual
 * frame. */
#define TAKE_BYTE ((size_t)1 << 20)

void slu_frame_tok_release(struct slu_frame_tok *t)
{
    slu_buf_release(&t->own);
    slu_buf_release(&t->kept);
}

static const uint8_t *part_data(const struct slu_frame_tok *t, unsigned i)
{
    return t->part[i].near ? t->part[i].near : t->own.data + t->part[i].own_at;
}

/* Whether p lies behind the last part. */
static bool follows(const struct slu_frame_tok *t, const struct slu_frame_part *p)
{
    const struct slu_frame_part *last = t->part + t->n_part - 1;

    if (!t->n_part || !p->near != !last->near)
        return false;
    return p->near ? t->n_part > t->first_near && last->near + last->n_byte == p->near
                   : last->own_at + last->n_byte == p->own_at;
}

static void put_part(struct slu_frame_tok *t, struct slu_frame_part p)
{
    if (follows(t, &p))
        t->part[t->n_part - 1].n_byte += p.n_byte;
    else if (p.n_byte)
        t->part[t->n_part++] = p;
}

/* Appends bytes to own. As soon as it is clear that the
 * frame will be large, it gets memory for all its tokens: memory that grows is touched,
 * and copied, again. */
static int append(struct slu_frame_tok *t, const void *tok, size_t n_byte, size_t width,
                  struct slu_err *err)
{
    const size_t all = SLU_FRAME_TOKENS * width, len = t->own.len;
    int rc = SLU_OK;

    if (t->own.cap < all && len && len + n_byte > LARGE_FRAME)
        rc = slu_buf_reserve(&t->own, all - len, err);
    return rc ? rc : slu_buf_append(&t->own, tok, n_byte, err);
}

/* Copies the parts from first_near on. */
static int copy_near(struct slu_frame_tok *t, size_t width, struct slu_err *err)
{
    const unsigned n = t->n_part;
    int rc = SLU_OK;

    t->n_part = t->first_near;
    for (unsigned i = t->first_near; i < n && !rc; i++) {
        struct slu_frame_part p = t->part[i];
        const size_t at = p.near ? t->own.len : p.own_at;
        if (p.near)
            rc = append(t, p.near, p.n_byte, width, err);
        if (!rc)
            put_part(t, (struct slu_frame_part){NULL, at, p.n_byte});
    }
    return rc;
}

/* Copies all parts into one. */
static int gather(struct slu_frame_tok *t, size_t width, struct slu_err *err)
{
    struct slu_frame_tok all = {.own = SLU_BUF_INIT};
    int rc = SLU_OK;

    for (unsigned i = 0; i < t->n_part && !rc; i++)
        rc = append(&all, part_data(t, i), t->part[i].n_byte, width, err);
    if (rc) {
        slu_buf_release(&all.own);
        return rc;
    }
    slu_buf_release(&t->own);
    t->own = all.own;
    t->part[0] = (struct slu_frame_part){NULL, 0, t->own.len};
    t->n_part = t->first_near = 1;
    t->keeps = false;
    return SLU_OK;
}

int slu_frame_tok_copy(struct slu_frame_tok *t, const void *tok, uint64_t n,
                       size_t width, struct slu_err *err)
{
    int rc = SLU_OK;

    if (t->n_part == SLU_FRAME_PARTS)
        rc = gather(t, width, err);
    else if (t->whole)
        rc = copy_near(t, width, err);
    const size_t at = t->own.len;
    if (!rc)
        rc = append(t, tok, n * width, width, err);
    if (!rc)
        put_part(t, (struct slu_frame_part){NULL, at, n * width});
    return rc;
}

int slu_frame_tok_add(struct slu_frame_tok *t, const void *tok, uint64_t n,
                      size_t width, struct slu_err *err)
{
    const struct slu_frame_part p = {tok, 0, n * width};

    if (follows(t, &p) ||
        (t->whole ? !t->n_part : p.n_byte >= RUN_BYTE && t->n_part < SLU_FRAME_PARTS)) {
        put_part(t, p);
        return SLU_OK;
    }
    return slu_frame_tok_copy(t, tok, n, width, err);
}

/* Returns the memory of the batch's tokens; NULL: it has none of its own, or more than
 * a frame needs. */
static struct slu_buf *memory_of(struct slu_batch *b, size_t width)
{
    struct slu_frame *f = b->raw && b->raw->n == 1 ? &b->raw->f[0] : NULL;
    struct slu_buf *own = &b->own;
    const uint8_t *tok = b->tok;

    if (!own->len && f)
        own = f->passed ? &f->tok : f->flags & SLU_FLAG_ZSTD ? &f->raw : &f->stored;
    return own->len && tok >= own->data && tok < own->data + own->len &&
                   own->cap <= 2 * SLU_FRAME_TOKENS * width
               ? own
               : NULL;
}

int slu_frame_tok_keep(struct slu_frame_tok *t, struct slu_batch *from, size_t width,
                       struct slu_err *err)
{
    const bool take = from && !t->whole && !t->keeps;
    struct slu_buf *b = take ? memory_of(from, width) : NULL;
    size_t n_byte = 0;
    int rc = SLU_OK;

    for (unsigned i = t->first_near; i < t->n_part; i++)
        n_byte += t->part[i].near ? t->part[i].n_byte : 0;
    if (b && n_byte >= TAKE_BYTE) {
        struct slu_buf spare = t->kept;
        t->kept = *b;
        t->keeps = true;
        *b = spare;
        slu_buf_clear(b);
        from->tok = NULL;
    } else if (n_byte) {
        rc = copy_near(t, width, err);
    }
    t->first_near = t->n_part;
    return rc;
}

unsigned slu_frame_tok_spans(const struct slu_frame_tok *t, size_t n_byte,
                             struct slu_span *span)
{
    unsigned n = 0;

    for (; n_byte; n++) {
        const size_t k = t->part[n].n_byte;
        span[n] = (struct slu_span){part_data(t, n), k < n_byte ? k : n_byte};
        n_byte -= span[n].n_byte;
    }
    return n;
}

int slu_frame_tok_give(struct slu_frame_tok *t, size_t n_byte, struct slu_buf *tok,
                       struct slu_err *err)
{
    const struct slu_frame_part *p = t->part;
    const bool all = t->n_part == 1 && p->n_byte == n_byte;
    struct slu_span span[SLU_FRAME_PARTS];
    int rc = SLU_OK;

    slu_buf_clear(tok);
    if (all && !p->near && !p->own_at && t->own.len == n_byte) {
        slu_buf_swap(&t->own, tok);
        return SLU_OK;
    }
    if (all && t->keeps && p->near == t->kept.data) {
        slu_buf_swap(&t->kept, tok);
        tok->len = n_byte;
        return SLU_OK;
    }
    const unsigned n = slu_frame_tok_spans(t, n_byte, span);
    rc = slu_buf_reserve(tok, n_byte, err);
    for (unsigned i = 0; i < n && !rc; i++)
        rc = slu_buf_append(tok, span[i].p, span[i].n_byte, err);
    return rc;
}

void slu_frame_tok_drop(struct slu_frame_tok *t, size_t n_byte)
{
    size_t left = 0;

    for (unsigned i = 0; i < t->n_part; i++)
        left += t->part[i].n_byte;
    left -= n_byte;
    if (left)
        memmove(t->own.data, t->own.data + t->own.len - left, left);
    t->own.len = left;
    t->part[0] = (struct slu_frame_part){NULL, 0, left};
    t->n_part = left != 0;
    t->first_near = t->n_part;
    t->keeps = false;
}
