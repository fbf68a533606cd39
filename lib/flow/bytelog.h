/* bytelog.h - bytes that wait in the order of their arrival: in memory up to a budget,
 * beyond it in a file without a name. They are written once, and then read from the
 * beginning, any number of times.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_BYTELOG_H
#define SLU_BYTELOG_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/flow/sorter.h"

struct slu_bytelog;

/* budget_byte: all memory of the log; at least 1 MiB is used. tmpdir is copied. */
SLU_MUST_USE int slu_bytelog_new(struct slu_bytelog **s, uint64_t budget_byte,
                                 const char *tmpdir, struct slu_err *err);
/* Appends n bytes; copies. */
SLU_MUST_USE int slu_bytelog_put(struct slu_bytelog *s, const void *p, size_t n,
                                 struct slu_err *err);
/* Appends a record: n_head bytes, a multiple of 8; the bytes of all pieces; zeros to a
 * multiple of 8. */
SLU_MUST_USE int slu_bytelog_put_rec(struct slu_bytelog *s, const void *head,
                                     size_t n_head, const struct slu_slice *piece,
                                     unsigned n_piece, struct slu_err *err);
/* Ends the puts; slu_bytelog_get begins at the first byte. If the bytes went to a file,
 * frees the memory except for a buffer of 1 MiB or max_get bytes. A further call starts
 * again at the first byte, with the max_get of the first call. */
SLU_MUST_USE int slu_bytelog_rewind(struct slu_bytelog *s, size_t max_get,
                                    struct slu_err *err);
/* Returns the next n <= max_get bytes, borrowed until the next call, aligned to 8 if
 * all puts were multiples of 8. SLU_EOF if no byte is left, SLU_E_TRUNCATED if fewer
 * than n are left. */
SLU_MUST_USE int slu_bytelog_get(struct slu_bytelog *s, const void **p, size_t n,
                                 struct slu_err *err);
/* After the head of a record: returns the n bytes of its pieces. */
SLU_MUST_USE int slu_bytelog_get_rest(struct slu_bytelog *s, const void **p, size_t n,
                                      struct slu_err *err);
/* Bytes written to the temporary file so far. */
uint64_t slu_bytelog_spilled(const struct slu_bytelog *s);
/* NULL is legal. */
void slu_bytelog_free(struct slu_bytelog *s);

#endif
