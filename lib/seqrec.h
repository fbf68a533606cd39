/* seqrec.h - a sequence as a run of bytes, for records that wait on disk, and back.
 *
 * Layout, in native byte order (records never leave the machine): u64 tokens, u32
 * segments, u32 flags; source, document, offset, length of each segment (u64 each); the
 * tokens, zeros up to a multiple of 8; where a segment has a domain or an id: u32
 * domain of each, u32 id length of each, the ids. Segments come first and tokens
 * second, so that comparing records byte by byte compares segment lists, then tokens.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SEQREC_H
#define SLU_SEQREC_H

#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "buf.h"
#include "sorter.h"

#define SLU_SEQREC_PIECES 4

struct slu_seqrec {
    struct slu_piece piece[SLU_SEQREC_PIECES]; /* the record, one after another */
    struct slu_buf head, tail;
    struct slu_seg *seg; /* scratch of slu_seqrec_add */
    size_t cap_seg;
};

static inline void slu_seqrec_init(struct slu_seqrec *r)
{
    *r = (struct slu_seqrec){0};
}
void slu_seqrec_release(struct slu_seqrec *r);

/* Makes r->piece of sequence q of b; valid until r or b change. */
SLU_MUST_USE int slu_seqrec_pack(struct slu_seqrec *r, const struct slu_batch *b,
                                 const struct slu_seq *q, struct slu_err *err);
/* Bytes of the record in r->piece. */
size_t slu_seqrec_size(const struct slu_seqrec *r);

/* Appends the sequence of the record p[0, n) to b; SLU_E_FORMAT if it is none. */
SLU_MUST_USE int slu_seqrec_add(struct slu_seqrec *r, struct slu_batch *b,
                                const void *p, size_t n, struct slu_err *err);
/* Tokens of a record's sequence. */
uint64_t slu_seqrec_tokens(const void *p);

#endif
