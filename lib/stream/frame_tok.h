/* frame_tok.h - the tokens of the frame that a writer fills. Private to lib/stream.
 *
 * They lie in parts, in order. Long runs of a batch's tokens stay where they are while
 * the batch is being put, and behind it if the writer may take the batch's memory.
 * Others are copied. So a stream that passes through a program is hardly copied.
 */
#ifndef SLU_FRAME_TOK_H
#define SLU_FRAME_TOK_H

#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "frame.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SLU_FRAME_PARTS = 512 }; /* then tokens are copied */

struct slu_frame_tok {
    struct slu_buf own; /* copies */
    struct slu_frame_part {
        const uint8_t *near; /* NULL: in own, at own_at */
        size_t own_at, n_byte;
    } part[SLU_FRAME_PARTS];
    unsigned n_part, first_near; /* from first_near on, parts may lie in the batch */
    bool whole;                  /* keep all tokens in one part */
    struct slu_buf kept; /* the memory of one batch if `keeps`, else spare memory */
    bool keeps;
};

void slu_frame_tok_release(struct slu_frame_tok *t);
/* Add n tokens of `width` bytes: a copy, or as they lie in a batch. */
SLU_MUST_USE int slu_frame_tok_copy(struct slu_frame_tok *t, const void *tok,
                                    uint64_t n, size_t width, struct slu_err *err);
SLU_MUST_USE int slu_frame_tok_add(struct slu_frame_tok *t, const void *tok, uint64_t n,
                                   size_t width, struct slu_err *err);
/* Makes the tokens in the batch outlast it. from: the batch, if its memory may be
 * taken; it then has no tokens. NULL: they are copied. */
SLU_MUST_USE int slu_frame_tok_keep(struct slu_frame_tok *t, struct slu_batch *from,
                                    size_t width, struct slu_err *err);
/* Sets span[0, n), which has room for SLU_FRAME_PARTS, to the first n_byte; returns n.
 * The spans are borrowed until the next call. */
unsigned slu_frame_tok_spans(const struct slu_frame_tok *t, size_t n_byte,
                             struct slu_span *span);
/* Gives the first n_byte to *tok, in exchange for its memory: without a copy, if they
 * are all there is and lie in one piece. Behind it comes slu_frame_tok_drop. */
SLU_MUST_USE int slu_frame_tok_give(struct slu_frame_tok *t, size_t n_byte,
                                    struct slu_buf *tok, struct slu_err *err);
/* Removes the first n_byte. What is left is a copy. */
void slu_frame_tok_drop(struct slu_frame_tok *t, size_t n_byte);

#endif
