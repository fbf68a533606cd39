/* shard_dir.h - the folder of a shard set: its names, and whose files they are.
 *
 * The names of a set are report.json, manifest.jsonl, README.md, lengths.svg,
 * segments/NAME.tks, the names that its format owns in folders D_<i>, L_<n> and
 * documents, and a format's own files beside these folders. A name alone proves nothing.
 * Ours are the files that manifest.jsonl lists, and it; report.json, which begins as
 * shuffle writes it; in a format's folder the files in the list there. README.md and
 * lengths.svg, which people edit, are ours only while their bytes are those of the list.
 * All below .partial is ours, too (set_out.h).
 *
 * All other files stay. If one of them has a name that a set needs, the set is refused.
 * No link is followed.
 */
#ifndef SLU_SHARD_DIR_H
#define SLU_SHARD_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/shards/filelist.h"
#include "lib/base/err.h"

struct slu_shard_format;

/* "D_<i>" for 2^i, "documents" for 0, else "L_<n>". */
void slu_shard_bucket_name(uint64_t length, char out[32]);
/* "D_" or "L_" and digits, or "documents". */
bool slu_shard_dir_of_bucket(const char *name);
/* Whether a set uses this name in its folder. */
bool slu_shard_dir_has_name(const char *name);
/* Whether a set uses this name beside the buckets; not for a format's own files. */
bool slu_shard_dir_at_top(const char *name);
/* Whether DIR/NAME is there; a link that leads nowhere is. */
bool slu_exists_in(const char *dir, const char *name);
/* Whether this is the name of a file that is not yet complete. */
bool slu_shard_dir_unfinished(const char *name);
/* SLU_E_FORMAT if dir is the folder of sluice-batch around a set. */
SLU_MUST_USE int slu_shard_dir_not_batch(const char *dir, struct slu_err *err);
/* SLU_E_MISMATCH if an earlier version, which wrote to dir itself, has begun a set there
 * and not finished it. */
SLU_MUST_USE int slu_shard_dir_not_of_before(const char *dir, struct slu_err *err);
/* Whether dir has any of the files that shuffle makes first in a set. */
bool slu_shard_dir_begun(const char *dir);
/* slu_set_check, but for .partial. */
SLU_MUST_USE int slu_shard_dir_check(const char *dir, const struct slu_shard_format *f,
                                     bool replace, struct slu_err *err);
/* Adds the entries of the old set in dir, report.json first: its files, or a folder where
 * it has no others. SLU_E_MISMATCH if a file that is not of it has a name that a set of
 * format f needs. again: NULL, or the folder of `files`, which are those of the same set:
 * then files in dir with their names are of the old set too, even if its list is
 * damaged. */
SLU_MUST_USE int slu_shard_dir_old(const char *dir, const struct slu_shard_format *f,
                                   const char *again, const struct slu_filelist *files,
                                   struct slu_filelist *old, struct slu_err *err);
/* Sets and returns SLU_E_MISMATCH: DIR/folder/name belongs to the user. */
int slu_shard_dir_in_the_way(const char *dir, const char *folder, const char *name,
                             struct slu_err *err);

#endif
