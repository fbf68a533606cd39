/* filelist.h - a folder's own manifest.jsonl: files, bytes and XXH3-64, with a seal.
 *
 * A line a file, {"file":"a/b.npy","bytes":12,"xxh3_64":"16 digits"}, in the order of
 * the names' bytes, whatever the order in which they were written; the last line,
 * {"xxh3_64":"…"}, is the seal: XXH3-64 of all bytes before it. Names are below the
 * folder. Written last and whole; those who add files to a folder write it again.
 *
 * A seal is also what ends a report.json (formats/shards/shard_report.c): a text that
 * says what its own bytes add up to, so that damage in it is found though no other file
 * names it.
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

/* Appends before, 16 digits of the XXH3-64 of what t held, and behind. */
SLU_MUST_USE int slu_seal_put(struct slu_buf *t, const char *before, const char *behind,
                              struct slu_err *err);
/* Does the text end in such a seal, and does it say the bytes? */
bool slu_seal_is(const void *text, size_t n, const char *before, const char *behind);

struct slu_file {
    char *name;
    struct slu_digest digest;
    size_t nth; /* of those added */
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
/* Of one name the last one counts. */
SLU_MUST_USE int slu_filelist_add(struct slu_filelist *l, const char *name,
                                  const struct slu_digest *d, struct slu_err *err);
/* Appends folder/manifest.jsonl's. SLU_EOF: there is none; SLU_E_CHECKSUM,
 * SLU_E_FORMAT: it is damaged; messages name it. */
SLU_MUST_USE int slu_filelist_load(struct slu_filelist *l, const char *folder,
                                   struct slu_err *err);
/* Writes folder/manifest.jsonl; sorts l, a file once. */
SLU_MUST_USE int slu_filelist_write(struct slu_filelist *l, const char *folder,
                                    struct slu_err *err);

#endif
