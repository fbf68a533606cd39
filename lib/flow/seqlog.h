/* seqlog.h - sequences that wait in one process, and notes between them. They are read
 * from the beginning, in the order of their arrival, any number of times.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SEQLOG_H
#define SLU_SEQLOG_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/batch.h"

struct slu_seqlog;

/* tok_bytes: bytes of a token. tmpdir holds the data beyond budget_byte (at least 1
 * MiB). */
SLU_MUST_USE int slu_seqlog_new(struct slu_seqlog **t, unsigned tok_bytes, bool masks,
                                uint64_t budget_byte, const char *tmpdir,
                                struct slu_err *err);
/* Appends sequence q of b; copies. */
SLU_MUST_USE int slu_seqlog_put(struct slu_seqlog *t, const struct slu_batch *b,
                                const struct slu_seq *q, struct slu_err *err);
/* Appends n bytes as a note. */
SLU_MUST_USE int slu_seqlog_note(struct slu_seqlog *t, const void *p, size_t n,
                                 struct slu_err *err);

struct slu_seqlog_ops {
    /* Receives the next sequences. May edit b. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Receives a note, after the sequences before it; NULL: the log has no notes. */
    int (*note)(void *ctx, const void *p, size_t n, struct slu_err *err);
};
/* Ends the puts and reads the log from the beginning. */
SLU_MUST_USE int slu_seqlog_read(struct slu_seqlog *t, const struct slu_seqlog_ops *ops,
                                 void *ctx, struct slu_err *err);
/* Bytes written to a temporary file so far. */
uint64_t slu_seqlog_spilled(const struct slu_seqlog *t);
/* NULL is legal. */
void slu_seqlog_free(struct slu_seqlog *t);

#endif
