/* raw_file.h - a shard file, plain or in zstd, as a run of bytes that is read once from
 * its beginning to its end, with its size and its hashes checked on the way.
 *
 * "Stored" are the bytes of the file, "raw" those that it holds: the same where it is
 * not compressed. No more than a buffer of either is in memory, besides zstd's window
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

/* Whether slu_raw_expect knows it. */
bool slu_raw_knows_hash(const char *algorithm);

struct slu_raw;

/* A regular file. n_byte: counts stored bytes as they are read; NULL: nobody asks.
 * Caller frees with slu_raw_free. */
SLU_MUST_USE int slu_raw_open(struct slu_raw **r, const char *path, bool zstd,
                              _Atomic uint64_t *n_byte, struct slu_err *err);
/* Before anything is read: what the stored (or raw) bytes must hash to. */
SLU_MUST_USE int slu_raw_expect(struct slu_raw *r, bool stored, const char *algorithm,
                                const char *hex, struct slu_err *err);
/* Bytes of the file. */
uint64_t slu_raw_stored(const struct slu_raw *r);
/* Raw bytes taken so far. */
uint64_t slu_raw_tell(const struct slu_raw *r);
/* The next n raw bytes; SLU_E_TRUNCATED where there are not so many. */
SLU_MUST_USE int slu_raw_take(struct slu_raw *r, void *p, uint64_t n,
                              struct slu_err *err);
/* The same, appended; memory grows with what is there, not with n. */
SLU_MUST_USE int slu_raw_append(struct slu_raw *r, struct slu_buf *out, uint64_t n,
                                struct slu_err *err);
SLU_MUST_USE int slu_raw_skip(struct slu_raw *r, uint64_t n, struct slu_err *err);
/* There must be nothing left, and the hashes right. */
SLU_MUST_USE int slu_raw_end(struct slu_raw *r, struct slu_err *err);
/* NULL is legal. */
void slu_raw_free(struct slu_raw *r);

#endif
