/* filelist.h - the manifest.jsonl of a format's own folder: files, bytes and XXH3-64,
 * with a seal.
 *
 * The manifest has a line for each file, {"file":"a/b.npy","bytes":12,"xxh3_64":"16
 * digits"}, sorted by the bytes of the names, in whatever order the files were written.
 * Names are relative to the folder. The last line, {"xxh3_64":"…"}, is the seal:
 * XXH3-64 of all bytes before it. The manifest is written last and complete; a program
 * that adds files to a folder writes it again.
 *
 * A report.json ends in a seal, too (formats/shards/shard_report.c): the text states
 * the hash of its own bytes, so damage in it is found although no other file has its
 * hash.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_FILELIST_H
#define SLU_FILELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

/* Appends `before`, 16 digits of the XXH3-64 of t's earlier bytes, and `behind`. */
SLU_MUST_USE int slu_seal_put(struct slu_buf *t, const char *before, const char *behind,
                              struct slu_err *err);
/* Whether the text ends in a seal that agrees with its bytes. */
bool slu_seal_is(const void *text, size_t n, const char *before, const char *behind);

/* Of a list's last line. */
#define SLU_FILELIST_SEAL "{\"xxh3_64\":\"", "\"}\n"

struct slu_file {
    char *name;
    struct slu_digest digest;
    size_t nth; /* order of adding */
};
struct slu_filelist {
    struct slu_file *file;
    size_t n, cap;
};
#define SLU_FILELIST_INIT                                                              \
    {                                                                                  \
        0                                                                              \
    }
void slu_filelist_release(struct slu_filelist *l);
/* Whether name, of n bytes, is that of a file in the folder of its list: not empty, not
 * absolute, without ".." and without a NUL. */
bool slu_filelist_name_is_sound(const char *name, size_t n);
/* If a name is added twice, the last one counts. */
SLU_MUST_USE int slu_filelist_add(struct slu_filelist *l, const char *name,
                                  const struct slu_digest *d, struct slu_err *err);
/* Adds the files of folder/manifest.jsonl. SLU_EOF if it does not exist;
 * SLU_E_CHECKSUM, SLU_E_FORMAT if it is damaged; messages name the manifest. */
SLU_MUST_USE int slu_filelist_load(struct slu_filelist *l, const char *folder,
                                   struct slu_err *err);
/* The same of a set's manifest.jsonl, which has no seal; lines have further members, and
 * a last one that is cut is left out. After SLU_E_FORMAT the list has the lines before the
 * one that is none. Settles the list. */
SLU_MUST_USE int slu_filelist_load_set(struct slu_filelist *l, const char *dir,
                                       struct slu_err *err);
/* Sorts the list by name; of equal names the last one stays. */
void slu_filelist_settle(struct slu_filelist *l);
/* The file of this name in a settled list, or NULL. */
const struct slu_file *slu_filelist_find(const struct slu_filelist *l,
                                         const char *name);
/* Writes folder/manifest.jsonl; sorts l, and keeps each name once. */
SLU_MUST_USE int slu_filelist_write(struct slu_filelist *l, const char *folder,
                                    struct slu_err *err);

#endif
