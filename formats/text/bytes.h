/* bytes.h - the bytes of an input file, whatever it is compressed with.
 *
 * gzip (zlib, so that its checksums are verified, which libarchive leaves out), zstd
 * and xz (libzstd, liblzma: their windows are bounded), bzip2 and lz4 (libarchive) are
 * known by their first bytes; a file whose name promises one of them and whose bytes do
 * not is refused. Several members or frames behind one another are one file, as for
 * gzip and zstd themselves; anything else behind the last one, or an end in the middle,
 * is an error that names the file and the place. What comes before it is handed out all
 * the same, and is the same however much is asked for at a time.
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

/* path "-" is standard input. mem_byte bounds a decompressor's window or dictionary, of
 * which 8 MiB always do (0: 128 MiB); what needs more is SLU_E_LIMIT. Where
 * quit_fd >= 0 becomes readable nothing waits for bytes of a pipe any more (SLU_E_IO).
 * Caller frees with slu_bytes_close. */
SLU_MUST_USE int slu_bytes_open(struct slu_bytes **b, const char *path,
                                uint64_t mem_byte, int quit_fd, struct slu_err *err);
/* Reads n decompressed bytes, fewer only at the end or with an error; *got 0 without
 * one: the end, and all checksums agree. With an error *got is set too: the bytes
 * before the fault, which every later call reports again. Errors: SLU_E_IO,
 * SLU_E_TRUNCATED, SLU_E_FORMAT, SLU_E_LIMIT; messages name the file. */
SLU_MUST_USE int slu_bytes_read(struct slu_bytes *b, void *p, size_t n, size_t *got,
                                struct slu_err *err);
/* The next up to SLU_BYTES_PEEK bytes without taking them; fewer only at the end or
 * before a fault, which is reported here only if there is no byte before it. Borrowed
 * until the next call. */
#define SLU_BYTES_PEEK 4096
SLU_MUST_USE int slu_bytes_peek(struct slu_bytes *b, const uint8_t **p, size_t *n,
                                struct slu_err *err);
/* Offset of the next byte in the decompressed file. */
uint64_t slu_bytes_tell(const struct slu_bytes *b);
/* Bytes of the file as stored that have been taken so far. */
uint64_t slu_bytes_stored(const struct slu_bytes *b);
/* "plain", "gzip", …: static. */
const char *slu_bytes_codec(const struct slu_bytes *b);
/* Stored as it is, in a regular file: slu_bytes_seek works. */
bool slu_bytes_seekable(const struct slu_bytes *b);
SLU_MUST_USE int slu_bytes_seek(struct slu_bytes *b, uint64_t off_byte,
                                struct slu_err *err);
void slu_bytes_close(struct slu_bytes *b);

/* Bytes of the compression suffix that a file name ends in (".gz": 3), 0: none. "a.tgz"
 * promises gzip but has none to take off. */
size_t slu_bytes_suffix(const char *name);
/* The name promises compressed bytes. */
bool slu_bytes_promised(const char *name);

SLU_END_DECLS

#endif
