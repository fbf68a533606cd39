/* raw_file.h - a shard file, plain or in zstd, as a sequence of bytes that is read once
 * from start to end; checks its size and its hashes on the way.
 *
 * "Stored" bytes are those of the file. "Raw" bytes are those after decompression;
 * without compression both are the same. Memory: one buffer of each, and zstd's window
 * (128 MiB at most). Messages do not name the file; callers do.
 *
 * Hashes are given by name and hexadecimal digits, as python-xxhash names them:
 * xxh3_64, xxh3_128 or xxh128, xxh64, xxh32.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_RAW_FILE_H
#define SLU_RAW_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_raw;

/* Opens a regular file. n_byte: counts stored bytes as they are read; NULL: not
 * counted. Caller frees with slu_raw_free. */
SLU_MUST_USE int slu_raw_open(struct slu_raw **r, const char *path, bool zstd,
                              _Atomic uint64_t *n_byte, struct slu_err *err);
/* Sets the expected hash of the stored (or raw) bytes. Call before anything is read. */
SLU_MUST_USE int slu_raw_expect(struct slu_raw *r, bool stored, const char *algorithm,
                                const char *hex, struct slu_err *err);
/* Returns the size of the file. */
uint64_t slu_raw_stored(const struct slu_raw *r);
/* Returns the raw bytes taken so far. */
uint64_t slu_raw_tell(const struct slu_raw *r);
/* Copies the next n raw bytes to p. SLU_E_TRUNCATED if there are fewer. */
SLU_MUST_USE int slu_raw_take(struct slu_raw *r, void *p, uint64_t n,
                              struct slu_err *err);
/* Appends the next n raw bytes to out. Memory grows with the bytes read, not with n. */
SLU_MUST_USE int slu_raw_append(struct slu_raw *r, struct slu_buf *out, uint64_t n,
                                struct slu_err *err);
SLU_MUST_USE int slu_raw_skip(struct slu_raw *r, uint64_t n, struct slu_err *err);
/* Checks that no raw bytes are left and that the hashes match. */
SLU_MUST_USE int slu_raw_end(struct slu_raw *r, struct slu_err *err);
/* NULL is legal. */
void slu_raw_free(struct slu_raw *r);

#endif
