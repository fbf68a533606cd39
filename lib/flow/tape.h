/* tape.h - sequences that wait in one process, each with its ordinal, and notes between
 * them: read from the beginning, as often as wanted, in the order in which they came.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_TAPE_H
#define SLU_TAPE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/batch.h"

struct slu_tape;

/* tok_bytes: of the sequences. tmpdir holds what is beyond budget_byte (1 MiB at
 * least). */
SLU_MUST_USE int slu_tape_new(struct slu_tape **t, unsigned tok_bytes,
                              uint64_t budget_byte, const char *tmpdir,
                              struct slu_err *err);
/* Appends sequence q of b; copies. Ordinals ascend. */
SLU_MUST_USE int slu_tape_put(struct slu_tape *t, const struct slu_batch *b,
                              const struct slu_seq *q, uint64_t ordinal,
                              struct slu_err *err);
/* Appends n bytes of the caller's. */
SLU_MUST_USE int slu_tape_note(struct slu_tape *t, const void *p, size_t n,
                               struct slu_err *err);

struct slu_tape_ops {
    /* The next sequences, ordinal[i] is that of sequence i. May edit b. */
    int (*emit)(void *ctx, struct slu_batch *b, const uint64_t *ordinal,
                struct slu_err *err);
    /* A note, after what came before it; NULL: there are none. */
    int (*note)(void *ctx, const void *p, size_t n, struct slu_err *err);
};
/* No more puts: all of it, from the beginning. */
SLU_MUST_USE int slu_tape_read(struct slu_tape *t, const struct slu_tape_ops *ops,
                               void *ctx, struct slu_err *err);
/* Bytes written to a temporary file so far. */
uint64_t slu_tape_spilled(const struct slu_tape *t);
/* NULL is legal. */
void slu_tape_free(struct slu_tape *t);

#endif
