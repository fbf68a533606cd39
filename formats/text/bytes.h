/* bytes.h - the decompressed bytes of an input file, whatever its compression.
 *
 * The codecs gzip (zlib, because libarchive does not verify its checksums), zstd and xz
 * (libzstd and liblzma, whose windows are bounded), bzip2 and lz4 (libarchive) are
 * recognised by a file's first bytes. A file whose name promises one of them but whose
 * bytes are not that is refused. Several members or frames one after another are one
 * file, as for gzip and zstd themselves. Other data after the last one, or an end in
 * the middle, is an error that names the file and the place. The bytes before an error
 * are handed out first, and are the same for every size of reads.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_BYTES_H
#define SLU_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_bytes;

/* path "-" is standard input. mem_byte (0: 128 MiB) limits a decompressor's window or
 * dictionary; 8 MiB are always allowed, and a file that needs more is SLU_E_LIMIT. If
 * quit_fd >= 0 becomes readable, waits for bytes of a pipe end with SLU_E_IO. Caller
 * frees with slu_bytes_close. */
SLU_MUST_USE int slu_bytes_open(struct slu_bytes **b, const char *path,
                                uint64_t mem_byte, int quit_fd, struct slu_err *err);
/* As slu_bytes_open, for what read() gives: any number of bytes up to n, 0 at the end;
 * an error is met again by later calls. The name is that of messages, and says what is
 * promised. *b NULL, or a handle of this function, which is opened anew; the caller
 * closes it, also after an error. */
SLU_MUST_USE int slu_bytes_open_over(struct slu_bytes **b, const char *name,
                                     int (*read)(void *ctx, void *p, size_t n,
                                                 size_t *got, struct slu_err *err),
                                     void *ctx, uint64_t mem_byte, struct slu_err *err);
/* Sets quit_fd, as slu_bytes_open does. */
void slu_bytes_quit(struct slu_bytes *b, int quit_fd);
/* Reads n decompressed bytes, fewer only at the end or with an error. *got 0 without an
 * error: the end, and all checksums match. With an error *got counts the bytes before
 * it; later calls report the error again. Errors: SLU_E_IO, SLU_E_TRUNCATED,
 * SLU_E_FORMAT, SLU_E_LIMIT; messages name the file. */
SLU_MUST_USE int slu_bytes_read(struct slu_bytes *b, void *p, size_t n, size_t *got,
                                struct slu_err *err);
/* Gives the next SLU_BYTES_PEEK bytes without taking them; fewer only at the end or
 * before an error, which is reported only if no byte comes before it. Borrowed until
 * the next call. */
#define SLU_BYTES_PEEK 4096
SLU_MUST_USE int slu_bytes_peek(struct slu_bytes *b, const uint8_t **p, size_t *n,
                                struct slu_err *err);
/* Returns the offset of the next byte in the decompressed file. */
uint64_t slu_bytes_tell(const struct slu_bytes *b);
/* Returns the stored bytes taken so far. */
uint64_t slu_bytes_stored(const struct slu_bytes *b);
/* Returns "plain", "gzip", …: static. */
const char *slu_bytes_codec(const struct slu_bytes *b);
/* Whether slu_bytes_seek works: a regular file without compression. */
bool slu_bytes_seekable(const struct slu_bytes *b);
SLU_MUST_USE int slu_bytes_seek(struct slu_bytes *b, uint64_t off_byte,
                                struct slu_err *err);
void slu_bytes_close(struct slu_bytes *b);

/* Returns the length of a file name's compression suffix (".gz": 3), or 0. "a.tgz"
 * promises gzip but has no suffix to remove. */
size_t slu_bytes_suffix(const char *name);
/* Whether the name promises compressed bytes. */
bool slu_bytes_promised(const char *name);

SLU_END_DECLS

#endif
