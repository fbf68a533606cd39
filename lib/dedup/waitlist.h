/* waitlist.h - sequences that cannot be decided yet, and notes between them, in stream
 * order: in memory up to a budget, past it in a file without a name.
 *
 * Who decides in order but has lost the means for it (memory is full) puts what it
 * cannot decide here, and notes of what it could still decide behind that, so that both
 * come back in the order of the stream.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_WAITLIST_H
#define SLU_DEDUP_WAITLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"
#include "lib/err.h"

struct slu_waitlist;

/* budget_byte: all memory, at least 1 MiB is taken. tmpdir is copied. */
SLU_MUST_USE int slu_waitlist_new(struct slu_waitlist **w, uint64_t budget_byte,
                                  const char *tmpdir, struct slu_err *err);
/* NULL is legal. */
void slu_waitlist_free(struct slu_waitlist *w);

/* Appends sequence q of b under a tag below 2^63; copies. */
SLU_MUST_USE int slu_waitlist_put(struct slu_waitlist *w, const struct slu_batch *b,
                                  const struct slu_seq *q, uint64_t tag,
                                  struct slu_err *err);
/* Appends a note of n bytes; copies. */
SLU_MUST_USE int slu_waitlist_note(struct slu_waitlist *w, const void *p, size_t n,
                                   struct slu_err *err);
/* Sequences put so far. */
uint64_t slu_waitlist_n(const struct slu_waitlist *w);

/* No more puts: slu_waitlist_next begins with the first. */
SLU_MUST_USE int slu_waitlist_rewind(struct slu_waitlist *w, struct slu_err *err);

struct slu_waiting {
    const void
        *note; /* n_byte, 8-byte aligned, borrowed until the next call; or NULL: */
    size_t n_byte;
    uint64_t tag; /* of a sequence, which was appended to the batch */
};
/* The next sequence or note; SLU_EOF behind the last. */
SLU_MUST_USE int slu_waitlist_next(struct slu_waitlist *w, struct slu_batch *b,
                                   struct slu_waiting *out, struct slu_err *err);
/* Bytes written to the temporary file. */
uint64_t slu_waitlist_spilled(const struct slu_waitlist *w);

#endif
