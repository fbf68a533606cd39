/* frame_tok.h - the tokens of the frame that a writer fills. Private to lib/stream.
 *
 * They are copied, unless all of them lie one behind another in the batch that is being
 * put: then they stay there, and the frame is written from the batch.
 */
#ifndef SLU_FRAME_TOK_H
#define SLU_FRAME_TOK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_frame_tok {
    struct slu_buf own;
    const uint8_t *near; /* in the batch; own is empty then */
    size_t near_byte;
};

/* Add n tokens of `width` bytes: a copy, or as they lie in a batch. */
SLU_MUST_USE int slu_frame_tok_copy(struct slu_frame_tok *t, const void *tok,
                                    uint64_t n, size_t width, struct slu_err *err);
SLU_MUST_USE int slu_frame_tok_add(struct slu_frame_tok *t, const void *tok, uint64_t n,
                                   size_t width, struct slu_err *err);
/* Copies those in the batch, which ends before the frame does. */
SLU_MUST_USE int slu_frame_tok_keep(struct slu_frame_tok *t, size_t width,
                                    struct slu_err *err);
static inline const void *slu_frame_tok_data(const struct slu_frame_tok *t)
{
    return t->near_byte ? t->near : t->own.data;
}
/* Removes the first n_byte, all of those in a batch. */
void slu_frame_tok_drop(struct slu_frame_tok *t, size_t n_byte);

#endif
