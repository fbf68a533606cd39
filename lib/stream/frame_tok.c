#include "frame_tok.h"

#include <string.h>

#include "stream.h"

#define LARGE_FRAME ((size_t)256 << 10)

/* As soon as it is clear that the frame will be large, it gets memory for all its
 * tokens: memory that grows is touched, and copied, again. */
int slu_frame_tok_copy(struct slu_frame_tok *t, const void *tok, uint64_t n,
                       size_t width, struct slu_err *err)
{
    const size_t all = SLU_FRAME_TOKENS * width, len = t->own.len;
    int rc = SLU_OK;
    if (t->own.cap < all && len && len + n * width > LARGE_FRAME)
        rc = slu_buf_reserve(&t->own, all - len, err);
    return rc ? rc : slu_buf_append(&t->own, tok, n * width, err);
}

int slu_frame_tok_add(struct slu_frame_tok *t, const void *tok, uint64_t n,
                      size_t width, struct slu_err *err)
{
    if (!t->own.len && (!t->near_byte || tok == t->near + t->near_byte)) {
        t->near = t->near_byte ? t->near : tok;
        t->near_byte += n * width;
        return SLU_OK;
    }
    int rc = slu_frame_tok_keep(t, width, err);
    return rc ? rc : slu_frame_tok_copy(t, tok, n, width, err);
}

int slu_frame_tok_keep(struct slu_frame_tok *t, size_t width, struct slu_err *err)
{
    const size_t n = t->near_byte / width;
    t->near_byte = 0;
    return n ? slu_frame_tok_copy(t, t->near, n, width, err) : SLU_OK;
}

void slu_frame_tok_drop(struct slu_frame_tok *t, size_t n_byte)
{
    if (!t->near_byte) {
        t->own.len -= n_byte;
        if (t->own.len)
            memmove(t->own.data, t->own.data + n_byte, t->own.len);
    }
    t->near_byte = 0;
}
