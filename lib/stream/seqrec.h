/* seqrec.h - a sequence encoded as bytes, for records that wait in memory or on disk.
 *
 * Layout:
 *   number of tokens; number of segments, and a bit for each part that
 *   the tail has: names, then each of enum slu_extra;
 *   for each segment: source + 1 (0: padding), document, offset, length (not of the
 *   last segment);
 *   tokens, in native byte order (records never leave the machine);
 *   extras: 8 bytes for each segment, for each one that the bits announce;
 *   names: domain + 1 (0: none) of each segment, lengths of id and metadata of each, ids
 *   and metadata.
 * Numbers take 1 to 9 bytes, as few as possible. The first byte begins with as many
 * one bits as bytes follow it; the value is big-endian, so memcmp orders numbers by
 * value. A short sequence has about ten bytes besides its tokens, and memcmp of records
 * compares lengths, segment lists, tokens.
 *
 * Thread safety: one thread at a time on a handle, a buffer or a batch.
 */
#ifndef SLU_SEQREC_H
#define SLU_SEQREC_H

#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "lib/base/buf.h"
#include "lib/flow/sorter.h"

#define SLU_SEQREC_PIECES 3

struct slu_seqrec {
    struct slu_slice piece[SLU_SEQREC_PIECES]; /* which make the record, in order */
    struct slu_buf head, tail;
};

static inline void slu_seqrec_init(struct slu_seqrec *r)
{
    *r = (struct slu_seqrec){0};
}
void slu_seqrec_release(struct slu_seqrec *r);

/* Fills r->piece with the pieces of the record of sequence q of b; valid until r or b
 * change. */
SLU_MUST_USE int slu_seqrec_pack(struct slu_seqrec *r, const struct slu_batch *b,
                                 const struct slu_seq *q, struct slu_err *err);
/* Returns the bytes of the record in r->piece. */
size_t slu_seqrec_size(const struct slu_seqrec *r);
/* Appends the record of sequence q of b to out. */
SLU_MUST_USE int slu_seqrec_append(struct slu_buf *out, const struct slu_batch *b,
                                   const struct slu_seq *q, struct slu_err *err);

/* Appends the sequence of the record p[0, n) to b; SLU_E_FORMAT if it is invalid. */
SLU_MUST_USE int slu_seqrec_add(struct slu_batch *b, const void *p, size_t n,
                                struct slu_err *err);
/* Reads the numbers of tokens and segments of the record p[0, n); SLU_E_FORMAT if it is
 * too short. */
SLU_MUST_USE int slu_seqrec_peek(const void *p, size_t n, uint64_t *n_tok,
                                 uint64_t *n_seg, struct slu_err *err);

#endif
