/* compiled.h - a tokenizer as one block of bytes that is read, not built; and the
 * folder in which such blocks are kept.
 *
 * Building the tables of 200,000 tokens takes 0.05 to 0.4 s, reading them back 5 ms.
 * A file is a cache of one build of sluice, not a format: its key is the XXH3-128 of
 * the tokenizer's bytes, of the split's name, and of everything else that has a say
 * (the sources of lib/, the version of zstd, the byte order), so that
 * what is found under it is what would be built, and other versions never meet. The key
 * is in the file's name and in its header. What a tokenizer does never depends on the
 * cache.
 *
 * Trust. The tables are not checked entry by entry when they are attached: the header,
 * XXH3-128 of all that follows it, and the sizes are, against accidents. Against
 * others, a folder or file is only used where it belongs to the user (or to root) and
 * nobody else can write it.
 *
 * Races. A file appears whole, by rename, and is never changed: any number of processes
 * can read, write and remove the same ones without a lock; the last writer wins, with
 * the same bytes. On file systems of this machine they are mapped: what is mapped stays
 * whole when its name goes, and processes share the memory. On others (NFS, Lustre)
 * they are read, as a page that is fetched again after another host removed the file
 * is a SIGBUS.
 *
 * Thread safety: none needed, all of it happens while loading.
 */
#ifndef SLU_TOK_COMPILED_H
#define SLU_TOK_COMPILED_H

#include "lib/base/hash.h"
#include "lib/token/tok.h"

#define COMPILED_HEAD 64                    /* bytes of the header */
#define COMPILED_MAX  (UINT64_C(1) << 30)   /* of a file */
#define COMPILED_KEEP 16                    /* files in a folder */
#define COMPILED_AGE  (UINT64_C(24) * 3600) /* s after which use is noted again */

/* The key of a tokenizer made from n_byte bytes with that XXH3-128. kind: the loader,
 * and the split where it is not in the bytes. */
struct slu_u128 compiled_key(const char *kind, struct slu_u128 content,
                             uint64_t n_byte);

/* The whole of t, which tok_finish has been called for, as bytes; replaces what is in
 * *out. SLU_E_UNSUPPORTED where a part of it cannot be made again. */
SLU_MUST_USE int compiled_encode(const struct slu_tokenizer *t, struct slu_u128 key,
                                 struct slu_buf *out, struct slu_err *err);
/* Makes an empty t from such bytes, at a multiple of 64; they must outlive t, which
 * may be freed after a failure too. SLU_E_FORMAT, SLU_E_CHECKSUM, SLU_E_MISMATCH (of
 * another key). */
SLU_MUST_USE int compiled_decode(struct slu_tokenizer *t, const void *image,
                                 size_t n_byte, struct slu_u128 key,
                                 struct slu_err *err);
/* Checks a header alone: SLU_OK if n_byte bytes under this key may follow. */
SLU_MUST_USE int compiled_check_head(const void *head, uint64_t n_byte,
                                     struct slu_u128 key, struct slu_err *err);

/* Maps or reads what the folder has under that key; caller frees with compiled_free.
 * SLU_EOF where there is nothing; errors say why what is there is not used. */
SLU_MUST_USE int compiled_read(const char *dir, struct slu_u128 key,
                               struct tok_image *image, struct slu_err *err);
void compiled_free(struct tok_image *image);
/* Whether there is anything under that key: then another process was faster. */
bool compiled_exists(const char *dir, struct slu_u128 key);
/* Puts it there, makes the folder (mode 0700) where it and at most one above it are
 * missing, and removes all but the COMPILED_KEEP files used last. */
SLU_MUST_USE int compiled_write(const char *dir, struct slu_u128 key, const void *image,
                                size_t n_byte, struct slu_err *err);

#endif
