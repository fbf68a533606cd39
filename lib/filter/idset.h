/* idset.h - a set of records' ids from a file, one a line.
 *
 * The set keeps XXH3-128 of each id, 16 bytes, in a table at most two thirds full; the
 * probability that any two of n different ids have the same hash is below n^2 / 2^129.
 *
 * Thread safety: one thread reads the file; then any thread may ask.
 */
#ifndef SLU_FILTER_IDSET_H
#define SLU_FILTER_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

SLU_BEGIN_DECLS

struct slu_idset;

/* Reads all lines of a file; empty lines are left out, "\r" before a line's end,
 * and a byte order mark at the beginning.
 * SLU_E_LIMIT: the set takes more than most_byte. */
SLU_MUST_USE int slu_idset_read(struct slu_idset **s, const char *path,
                                uint64_t most_byte, struct slu_err *err);
/* The same, of what `form` makes of each line: it appends the id to an empty buffer, or
 * nothing to leave the line out. An error gets file and line in front. */
typedef int slu_idset_form(const uint8_t *line, size_t n, struct slu_buf *id,
                           struct slu_err *err);
SLU_MUST_USE int slu_idset_read_as(struct slu_idset **s, const char *path,
                                   uint64_t most_byte, slu_idset_form *form,
                                   struct slu_err *err);
bool slu_idset_has(const struct slu_idset *s, const void *id, size_t n_byte);
/* Number of different ids, and the sum of their hashes: the set's identity. */
uint64_t slu_idset_count(const struct slu_idset *s);
struct slu_u128 slu_idset_sum(const struct slu_idset *s);
/* Bytes of memory. */
uint64_t slu_idset_byte(const struct slu_idset *s);
/* NULL is legal. */
void slu_idset_free(struct slu_idset *s);

SLU_END_DECLS

#endif
