/* stream_private.h - functions that the reader, the writer and the batches share.
 * Private to lib/. */
#ifndef SLU_STREAM_PRIVATE_H
#define SLU_STREAM_PRIVATE_H

#include "frame.h"
#include "stream.h"

/* Encode and decode the payload of HEAD (STREAM.md section 3). */
SLU_MUST_USE int slu_header_encode(const struct slu_header *h, struct slu_buf *out,
                                   struct slu_err *err);
SLU_MUST_USE int slu_header_decode(struct slu_header *h, const uint8_t *p, size_t n,
                                   struct slu_err *err);
/* Checks that streams with these headers can be joined. SLU_E_MISMATCH names the
 * difference. */
SLU_MUST_USE int slu_header_compatible(const struct slu_header *a,
                                       const struct slu_header *b, struct slu_err *err);
/* Makes of *a, with which b is compatible, the header of both: masks, padding between
 * segments, and the padding's id. */
void slu_header_join(struct slu_header *a, const struct slu_header *b);

/* Makes *out the payload of vocb (section 4). */
SLU_MUST_USE int slu_vocab_encode(const struct slu_vocab_table *v, struct slu_buf *out,
                                  struct slu_err *err);
/* Makes *out that payload compressed, as the frame stores it. */
#define SLU_VOCAB_LEVEL 3
SLU_MUST_USE int slu_vocab_pack(const struct slu_vocab_table *v, struct slu_buf *out,
                                struct slu_err *err);
/* Copies the vocabulary of the payload p to names. */
SLU_MUST_USE int slu_vocab_decode(struct slu_names *names, uint64_t vocab_size,
                                  const uint8_t *p, size_t n, struct slu_err *err);
/* Takes the buffers of a checked frame, unless n has a vocabulary already (false). The
 * frame is decoded when the vocabulary is first asked for, because most programs only
 * write it again, and decoding takes longer than starting a program. */
SLU_MUST_USE bool slu_names_keep_vocab(struct slu_names *n, struct slu_frame *f,
                                       uint64_t vocab_size);
/* Writes the vocabulary's frame, if there is a vocabulary. */
SLU_MUST_USE int slu_names_put_vocab(struct slu_names *n, struct slu_framer *w,
                                     struct slu_err *err);
/* Returns the error of an earlier decoding. */
SLU_MUST_USE int slu_names_check_vocab(const struct slu_names *n, struct slu_err *err);

/* Adds the hash of a sequence of one segment, which was counted without it. */
void slu_sum_late(struct slu_sum *a, const struct slu_seg *seg, struct slu_u128 hash);

/* A cursor over a payload that cannot run past its end. */
struct slu_cursor {
    const uint8_t *p;
    size_t n, at;
};
static inline const uint8_t *slu_cursor_take(struct slu_cursor *c, uint64_t n)
{
    if (n > c->n - c->at)
        return NULL;
    const uint8_t *p = c->p + c->at;
    c->at += n;
    return p;
}

#endif
