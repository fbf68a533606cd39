/* shard_dir.h - the folder of a shard set: its names, and what may be removed in it.
 *
 * The names of a set are report.json, manifest.jsonl, README.md, lengths.svg, the
 * journal, the mark of parts, segments/NAME.tks, the names that its format owns in
 * folders D_<i>, L_<n> and documents, and a format's own files beside these folders. A name alone
 * proves nothing. Only the files that one of our own files lists are ours, and may be
 * removed or replaced (shard_dir_ours.c):
 *
 *   for a finished set: the files in manifest.jsonl, and manifest.jsonl; report.json
 *     with its seal; in a format's folder the files in the list there;
 *   for an unfinished set: all names above of the format that the journal, or the mark
 *     of parts, states, because these names were free when it was written; but beside
 *     the buckets only after the journal has the line SLU_SHARD_ENDING.
 *
 * All other files stay. If one of them has a name that a set needs, the set is refused.
 * Folders are removed when they are empty, and no link is followed.
 */
#ifndef SLU_SHARD_DIR_H
#define SLU_SHARD_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_shard_format;

/* "D_<i>" for 2^i, "documents" for 0, else "L_<n>". */
void slu_shard_bucket_name(uint64_t length, char out[32]);
/* SLU_E_MISMATCH if dir has any file but those of a stopped shuffle, SLU_E_IO if it is
 * not a folder. */
SLU_MUST_USE int slu_shard_dir_check(const char *dir, struct slu_err *err);
/* "D_" or "L_" and digits, or "documents". */
bool slu_shard_dir_of_bucket(const char *name);
/* Whether a set uses this name in its folder. */
bool slu_shard_dir_has_name(const char *name);
/* Whether a set uses this name beside the buckets; not for a format's own files. */
bool slu_shard_dir_at_top(const char *name);
/* Whether this is the name of a file that is not yet complete. */
bool slu_shard_dir_unfinished(const char *name);
/* SLU_E_FORMAT if dir is the folder of sluice-batch around a set. */
SLU_MUST_USE int slu_shard_dir_not_batch(const char *dir, struct slu_err *err);
/* Whether dir has any of the files that shuffle makes first in a set. */
bool slu_shard_dir_begun(const char *dir);
/* Whether the set has a report.json, and no journal or mark of parts. */
bool slu_shard_dir_complete(const char *dir);
/* Whether file `name` of bucket folder `folder` is to stay. */
typedef bool slu_shard_dir_keeps(const void *ctx, const char *folder, const char *name);
/* Makes dir and dir/segments for a set of format f. Before that, removes our files if
 * `replace`, or if a stopped shuffle has left them, except for the files that `keeps`
 * names and the journal. Never removes dir, which may be a mount point, a link or the
 * working folder, and keeps its mode. SLU_E_MISMATCH if a name that the set needs is
 * taken. *made: dir did not exist. *lock: a descriptor whose lock shows that a process
 * writes here, or -1; the caller closes it, also after an error. A second writer is
 * refused, because both would remove each other's files. */
SLU_MUST_USE int slu_shard_dir_prepare(const char *dir,
                                       const struct slu_shard_format *f, bool replace,
                                       slu_shard_dir_keeps *keeps, const void *ctx,
                                       bool *made, int *lock, struct slu_err *err);
/* Also removes the mark of parts. */
SLU_MUST_USE int slu_shard_dir_remove_journal(const char *dir, struct slu_err *err);
/* Removes our files, report.json first and the files that identify the rest last; then
 * empty folders, and dir if `itself`. Files that `keeps` names stay (NULL: none), and
 * then the journal stays too. f: the format that the journal may name even if it is not
 * built. Errors are returned, but do not stop the removal. */
int slu_shard_dir_remove(const char *dir, const struct slu_shard_format *f, bool itself,
                         slu_shard_dir_keeps *keeps, const void *ctx,
                         struct slu_err *err);
/* SLU_E_MISMATCH if dir has a file with a name that a set of format f needs. Files that
 * `keeps` names, the journal and the mark may exist. */
SLU_MUST_USE int slu_shard_dir_check_names(const char *dir,
                                           const struct slu_shard_format *f,
                                           slu_shard_dir_keeps *keeps, const void *ctx,
                                           struct slu_err *err);
/* slu_shard_dir_remove of all but dir. If a file that would stay has a name that a set
 * of format f needs, removes nothing and returns SLU_E_MISMATCH. */
SLU_MUST_USE int slu_shard_dir_make_room(const char *dir,
                                         const struct slu_shard_format *f,
                                         slu_shard_dir_keeps *keeps, const void *ctx,
                                         struct slu_err *err);
/* slu_shard_dir_check_names for the last files, beside the buckets. For a set that
 * parts have written, manifest.jsonl and report.json may exist if they belong to a
 * set. */
SLU_MUST_USE int slu_shard_dir_check_end(const char *dir,
                                         const struct slu_shard_format *f, bool parts,
                                         struct slu_err *err);
/* SLU_E_MISMATCH if DIR/name, which exists, is neither a journal nor a mark of a
 * set. */
SLU_MUST_USE int slu_shard_dir_check_head(const char *dir,
                                          const struct slu_shard_format *f,
                                          const char *name, struct slu_err *err);
/* Sets and returns SLU_E_MISMATCH: DIR/folder/name belongs to the user. */
int slu_shard_dir_in_the_way(const char *dir, const char *folder, const char *name,
                             struct slu_err *err);
/* Removes a bucket's empty folder. */
SLU_MUST_USE int slu_shard_dir_drop_bucket(const char *dir, const char *name,
                                           struct slu_err *err);

/* ---- in parts (shard_dir_parts.c) ----
 *
 * .parts.jsonl has the head that all parts of a set share. It exists from before the
 * set's first file until the set is finished. A process that writes a part holds the
 * folder's lock shared; a process that prepares the folder also holds
 * WORK/shards.lock. */

/* Makes dir, removes an existing set if `replace`, and marks dir with head; does none
 * of this if dir already has the mark. *lock as above. SLU_E_MISMATCH if dir has other
 * files, or if another shuffle writes there. */
SLU_MUST_USE int slu_shard_dir_begin_part(const char *dir,
                                          const struct slu_shard_format *f,
                                          const char *work, const struct slu_buf *head,
                                          bool replace, int *lock, struct slu_err *err);
/* Checks that the mark is head; SLU_EOF if there is no mark, but a finished set. */
SLU_MUST_USE int slu_shard_dir_check_part(const char *dir, const struct slu_buf *head,
                                          struct slu_err *err);
/* Locks dir for the join, and checks the mark like slu_shard_dir_check_part. Waits for
 * another join; SLU_E_MISMATCH while parts are written. */
SLU_MUST_USE int slu_shard_dir_begin_join(const char *dir, const struct slu_buf *head,
                                          int *lock, struct slu_err *err);
/* Marks a finished set as unfinished again. */
SLU_MUST_USE int slu_shard_dir_reopen(const char *dir, const struct slu_buf *head,
                                      struct slu_err *err);
/* Makes dir/segments, and removes incomplete files of killed processes, in the folders
 * of buckets and beside them. */
SLU_MUST_USE int slu_shard_dir_tidy(const char *dir, struct slu_err *err);

#endif
