/* compiled.h - a tokenizer as one block of bytes, which is read and not built, and the
 * folder of such blocks.
 *
 * Building the tables of 200,000 tokens takes 0.05 to 0.4 s, reading them back 5 ms.
 * A file is a cache of one build of sluice, not a format. Its key is the XXH3-128 of
 * all that its contents depend on: the tokenizer's bytes, the split's name, the sources
 * of lib/, the version of zstd, the byte order. So a file is what this program would
 * build, and other versions use other files. The key is in the file's name and in its
 * header. Ids never depend on the cache.
 *
 * Trust. Against accidents, the header, the XXH3-128 of all bytes after it, and the
 * sizes are checked when tables are attached; entries are not. Against other users, a
 * folder or file is used only if it belongs to the user (or to root) and nobody else
 * can write it.
 *
 * Races. A file appears whole, by rename, and is never changed. Any number of processes
 * can read, write and remove the same files without a lock; the last writer wins, with
 * the same bytes. On local file systems files are mapped: a mapping stays whole after
 * its file is removed, and processes share the memory. On others (NFS, Lustre) files
 * are read, as a mapped page that is fetched again after another host removed the file
 * is a SIGBUS.
 *
 * Thread safety: not needed, as all of it happens while loading.
 */
#ifndef SLU_TOK_COMPILED_H
#define SLU_TOK_COMPILED_H

#include "lib/base/hash.h"
#include "lib/token/tok.h"

#define COMPILED_HEAD 64                    /* bytes of the header */
#define COMPILED_MAX  (UINT64_C(1) << 30)   /* bytes of a file, at most */
#define COMPILED_KEEP 16                    /* files in a folder, at most */
#define COMPILED_AGE  (UINT64_C(24) * 3600) /* s after which a use is noted again */

/* Returns the key of a tokenizer made from n_byte bytes whose XXH3-128 is content.
 * kind: the loader, and the split if the bytes do not say it. */
struct slu_u128 compiled_key(const char *kind, struct slu_u128 content,
                             uint64_t n_byte);

/* Replaces the contents of *out by the whole of t as bytes, after tok_finish.
 * SLU_E_UNSUPPORTED if a part of t cannot be made again. */
SLU_MUST_USE int compiled_encode(const struct slu_tokenizer *t, struct slu_u128 key,
                                 struct slu_buf *out, struct slu_err *err);
/* Fills an empty t from such bytes, which are at a multiple of 64 and must outlive t.
 * After a failure t can be freed too. SLU_E_FORMAT, SLU_E_CHECKSUM, SLU_E_MISMATCH
 * (another key). */
SLU_MUST_USE int compiled_decode(struct slu_tokenizer *t, const void *image,
                                 size_t n_byte, struct slu_u128 key,
                                 struct slu_err *err);
/* Checks only the header of a file of n_byte bytes with this key. */
SLU_MUST_USE int compiled_check_head(const void *head, uint64_t n_byte,
                                     struct slu_u128 key, struct slu_err *err);

/* Maps or reads the folder's file with that key; caller frees with compiled_free.
 * SLU_EOF if there is none; errors say why the file is not used. */
SLU_MUST_USE int compiled_read(const char *dir, struct slu_u128 key,
                               struct tok_image *image, struct slu_err *err);
/* Gives the pages of a mapped image back; those in use return. For after
 * compiled_decode, which reads all of them, while encoding needs about a third. */
void compiled_unload(const struct tok_image *image);
void compiled_free(struct tok_image *image);
/* Whether the folder has a file with that key: then another process was faster. */
bool compiled_exists(const char *dir, struct slu_u128 key);
/* Writes the file with that key. Makes the folder (mode 0700), and at most one above
 * it, if missing. Removes all but the COMPILED_KEEP files used last. */
SLU_MUST_USE int compiled_write(const char *dir, struct slu_u128 key, const void *image,
                                size_t n_byte, struct slu_err *err);

#endif
