/* shard_dir.h - the folder of a shard set: its names, and what may be removed in it.
 *
 * A set's are report.json, manifest.jsonl, README.md, lengths.svg, the journal, the
 * mark of parts, segments/NAME.tks, in folders D_<i> and L_<n> what its format owns,
 * and a format's own files beside these. A name proves nothing: ours, and removed or
 * replaced, is what one of our own files says is (shard_dir_ours.c),
 *
 *   a finished set: what manifest.jsonl lists, and that itself; report.json with its
 *     seal; in a format's folder what the list there does;
 *   one in the making: the names above of the format that the journal, or the mark of
 *     parts, says, as they were free when that was written; beside the buckets only
 *     once the journal says that the set came so far.
 *
 * What is not ours stays, and where it has a name that a set needs, the set is refused.
 * Folders are removed when they are empty, and no link is followed.
 */
#ifndef SLU_SHARD_DIR_H
#define SLU_SHARD_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_shard_format;

/* "D_<i>" for 2^i, else "L_<n>". */
void slu_shard_bucket_name(uint64_t length, char out[32]);
/* SLU_E_MISMATCH where dir exists and holds anything but the leavings of a shuffle that
 * was stopped, SLU_E_IO where it is no folder. */
SLU_MUST_USE int slu_shard_dir_check(const char *dir, struct slu_err *err);
/* "D_" or "L_" and digits. */
bool slu_shard_dir_of_bucket(const char *name);
/* A name that something of a set's has in the set's folder. */
bool slu_shard_dir_has_name(const char *name);
/* One of these beside the buckets, but a format's own. */
bool slu_shard_dir_at_top(const char *name);
/* A name that files have before they are whole, where they need one. */
bool slu_shard_dir_unfinished(const char *name);
/* There is a report.json, and no journal and no mark of parts any more. */
bool slu_shard_dir_complete(const char *dir);
/* Is file `name` of bucket folder `folder` to stay? */
typedef bool slu_shard_dir_keeps(const void *ctx, const char *folder, const char *name);
/* Makes dir and dir/segments for a set of format f; removes our files first if
 * `replace`, or if they are such leavings (but not those that `keeps` says, nor the
 * journal), but not dir: it may be a mount point, a link or the working folder, and its
 * mode is its owner's. SLU_E_MISMATCH where a name that the set needs is taken. *made:
 * there was no dir before. *lock: a descriptor that says that somebody writes here, or
 * -1; the caller closes it, after an error too. Who finds it locked is refused: two
 * that write at once would take each other's files away. */
SLU_MUST_USE int slu_shard_dir_prepare(const char *dir,
                                       const struct slu_shard_format *f, bool replace,
                                       slu_shard_dir_keeps *keeps, const void *ctx,
                                       bool *made, int *lock, struct slu_err *err);
/* The mark of parts too. */
SLU_MUST_USE int slu_shard_dir_remove_journal(const char *dir, struct slu_err *err);
/* Removes our files, report.json first and what says that they are ours last, and what
 * folders are then empty, dir included if `itself`; but not what `keeps` says (NULL:
 * nothing), nor the journal then. f: the format that the journal may name without being
 * built. Errors are returned but do not stop it. */
int slu_shard_dir_remove(const char *dir, const struct slu_shard_format *f, bool itself,
                         slu_shard_dir_keeps *keeps, const void *ctx,
                         struct slu_err *err);
/* SLU_E_MISMATCH where dir has something under a name that a set of format f needs;
 * what `keeps` says, the journal and the mark may be there. */
SLU_MUST_USE int slu_shard_dir_check_names(const char *dir,
                                           const struct slu_shard_format *f,
                                           slu_shard_dir_keeps *keeps, const void *ctx,
                                           struct slu_err *err);
/* slu_shard_dir_remove of all but dir, unless something that would stay has a name that
 * a set of format f needs: then SLU_E_MISMATCH, and nothing is removed. */
SLU_MUST_USE int slu_shard_dir_make_room(const char *dir,
                                         const struct slu_shard_format *f,
                                         slu_shard_dir_keeps *keeps, const void *ctx,
                                         struct slu_err *err);
/* slu_shard_dir_check_names for what comes last, beside the buckets; of a set that
 * parts have written, manifest.jsonl and report.json may be there if they are a set's.
 */
SLU_MUST_USE int slu_shard_dir_check_end(const char *dir,
                                         const struct slu_shard_format *f, bool parts,
                                         struct slu_err *err);
/* SLU_E_MISMATCH where DIR/name, which is there, is no journal and no mark of a set. */
SLU_MUST_USE int slu_shard_dir_check_head(const char *dir,
                                          const struct slu_shard_format *f,
                                          const char *name, struct slu_err *err);
/* SLU_E_MISMATCH: DIR/folder/name is somebody else's. */
int slu_shard_dir_in_the_way(const char *dir, const char *folder, const char *name,
                             struct slu_err *err);
/* Removes a bucket's folder, which is empty. */
SLU_MUST_USE int slu_shard_dir_drop_bucket(const char *dir, const char *name,
                                           struct slu_err *err);

/* ---- in parts (shard_dir_parts.c) ----
 *
 * .parts.jsonl has the head that all parts of a set agree upon, from before the first
 * file of it until it is finished. Who writes a part holds the folder's lock shared;
 * who makes it ready, WORK/shards.lock besides. */

/* Makes dir, removes a set that is there if `replace`, and marks it with head; nothing
 * of that where the mark is there already. *lock as above. SLU_E_MISMATCH where it
 * holds anything else or another shuffle writes. */
SLU_MUST_USE int slu_shard_dir_begin_part(const char *dir,
                                          const struct slu_shard_format *f,
                                          const char *work, const struct slu_buf *head,
                                          bool replace, int *lock, struct slu_err *err);
/* The mark is head's; SLU_EOF where there is none, but a finished set. */
SLU_MUST_USE int slu_shard_dir_check_part(const char *dir, const struct slu_buf *head,
                                          struct slu_err *err);
/* Locks dir for the one that joins, and checks the mark like slu_shard_dir_check_part.
 */
SLU_MUST_USE int slu_shard_dir_begin_join(const char *dir, const struct slu_buf *head,
                                          int *lock, struct slu_err *err);
/* A finished set is one in the making again. */
SLU_MUST_USE int slu_shard_dir_reopen(const char *dir, const struct slu_buf *head,
                                      struct slu_err *err);
/* Makes dir/segments, and removes what processes left that were killed: files that are
 * not whole, in the folders of buckets and beside them. */
SLU_MUST_USE int slu_shard_dir_tidy(const char *dir, struct slu_err *err);

#endif
