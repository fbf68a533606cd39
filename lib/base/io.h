/* io.h - files: complete reads and writes, outputs that appear only when complete, and
 * temporary files that vanish with the process.
 *
 * EINTR and short transfers are retried. SIGPIPE is left to the programs.
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_IO_H
#define SLU_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "buf.h"
#include "err.h"

SLU_BEGIN_DECLS

/* Whether the name is an address, as s3://bucket/key: a scheme of two or more letters,
 * digits, "+", "-" or "." in front of "://". It names no file: open() would look for a
 * folder "s3:". */
bool slu_is_address(const char *name);

/* Reads n bytes, or fewer at the end of the file; *got is their number. */
SLU_MUST_USE int slu_read_full(int fd, void *buf, size_t n, size_t *got,
                               struct slu_err *err);
/* As slu_read_full, but returns SLU_E_IO if quit_fd becomes readable while the call
 * waits for input. quit_fd < 0: never. */
SLU_MUST_USE int slu_read_or_quit(int fd, int quit_fd, void *buf, size_t n, size_t *got,
                                  struct slu_err *err);
/* Appends the whole of a file. A folder, or more than max_byte, is an error; messages
 * name the file. */
SLU_MUST_USE int slu_read_whole(struct slu_buf *buf, const char *path,
                                uint64_t max_byte, struct slu_err *err);
/* Opens a file of a set or a work folder for reading; caller closes *fd. SLU_E_IO, and
 * no waiting, for a FIFO, a device or a folder. *n_byte (or NULL): its size. Messages
 * do not name the file. */
SLU_MUST_USE int slu_open_regular(int *fd, const char *path, uint64_t *n_byte,
                                  struct slu_err *err);
/* SLU_E_IO if the file cannot be opened so. Messages name the file. */
SLU_MUST_USE int slu_check_regular(const char *path, struct slu_err *err);
/* As slu_read_whole, for such a file. */
SLU_MUST_USE int slu_read_regular(struct slu_buf *buf, const char *path,
                                  uint64_t max_byte, struct slu_err *err);
SLU_MUST_USE int slu_pread_full(int fd, void *buf, size_t n, uint64_t off_byte,
                                struct slu_err *err);
SLU_MUST_USE int slu_write_full(int fd, const void *buf, size_t n, struct slu_err *err);

/* An output file (DESIGN.md, Files, errors and signals). A regular or absent target is
 * written without its name (O_TMPFILE, or a temporary name in its folder if the file
 * system does not have that), synced and renamed by slu_out_close; FIFOs, terminals,
 * /dev/null and standard output are written directly. Links are followed; /dev/stdout
 * and /dev/fd/N are descriptors. If the process ends before slu_out_close, for any
 * reason, the target stays as it was. */
struct slu_out;

/* Opens an output; path NULL or "-" is standard output. Caller ends it with
 * slu_out_close or slu_out_abort. */
SLU_MUST_USE int slu_out_open(struct slu_out **out, const char *path,
                              struct slu_err *err);
SLU_MUST_USE int slu_out_write(struct slu_out *out, const void *p, size_t n,
                               struct slu_err *err);
/* Writes n pieces in one call, if the system takes all; changes them. */
#define SLU_OUT_PIECES 128
SLU_MUST_USE int slu_out_gather(struct slu_out *out, struct iovec *piece, unsigned n,
                                struct slu_err *err);
/* Size and hash of a file. */
struct slu_digest {
    uint64_t n_byte, xxh3; /* XXH3-64, seed 0 */
};
/* Makes slu_out_close fill *d from the written bytes. Call it before the first byte. d
 * is borrowed until slu_out_close. */
SLU_MUST_USE int slu_out_digest(struct slu_out *out, struct slu_digest *d,
                                struct slu_err *err);
/* Starts to write the bytes so far to the disk, without waiting, so that the sync of
 * slu_out_close is shorter. */
void slu_out_begin_sync(struct slu_out *out);
/* Leaves the sync of the folder out of slu_out_close; the caller does it, once for many
 * files. */
void slu_out_leave_folder(struct slu_out *out);
/* Returns the path, or "standard output", for messages. Borrowed. */
const char *slu_out_name(const struct slu_out *out);
bool slu_out_is_terminal(const struct slu_out *out);
/* Syncs and renames; frees the handle even when it fails. NULL is legal. */
SLU_MUST_USE int slu_out_close(struct slu_out *out, struct slu_err *err);
/* Removes the temporary names of all open outputs. For the handler of a signal, which
 * must end the process next. Async-signal-safe. */
void slu_out_unlink_temps(void);
/* Leaves the target as it was; frees the handle. NULL is legal. */
void slu_out_abort(struct slu_out *out);

/* Writes a file of n bytes at p, which appears only when complete. */
SLU_MUST_USE int slu_out_whole(const char *path, const void *p, size_t n,
                               struct slu_err *err);

/* Makes a folder and those above it; existing ones are fine. */
SLU_MUST_USE int slu_mkdirs(const char *path, struct slu_err *err);
/* Syncs a folder, so that renames in it survive a crash. */
SLU_MUST_USE int slu_sync_dir(const char *path, struct slu_err *err);
/* Opens a new nameless file in folder dir to read and write. Caller closes *fd. */
SLU_MUST_USE int slu_tmpfile(int *fd, const char *dir, struct slu_err *err);

SLU_END_DECLS

#endif
