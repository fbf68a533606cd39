/* shard_dir.h - the folder of a shard set: its names, and what may be removed in it.
 *
 * Ours are report.json, manifest.jsonl, README.md, lengths.svg, the journal,
 * the mark of parts, segments/NAME.tks, in folders D_<i> and L_<n>, and a format's own,
 * what a format owns, and beside segments/ what one owns in the set; nothing else is
 * ever removed, and folders only when they are empty.
 */
#ifndef SLU_SHARD_DIR_H
#define SLU_SHARD_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"

/* "D_<i>" for 2^i, else "L_<n>". */
void slu_shard_bucket_name(uint64_t length, char out[32]);
/* SLU_E_MISMATCH where dir exists and holds anything but the leavings of a shuffle that
 * was stopped, SLU_E_IO where it is no folder. */
SLU_MUST_USE int slu_shard_dir_check(const char *dir, struct slu_err *err);
/* "D_" or "L_" and digits. */
bool slu_shard_dir_of_bucket(const char *name);
/* A name that something of a set's has in the set's folder. */
bool slu_shard_dir_has_name(const char *name);
/* A name that files have before they are whole, where they need one. */
bool slu_shard_dir_unfinished(const char *name);
/* There is a report.json, and no journal and no mark of parts any more. */
bool slu_shard_dir_complete(const char *dir);
/* Is file `name` of bucket folder `folder` to stay? */
typedef bool slu_shard_dir_keeps(const void *ctx, const char *folder, const char *name);
/* Makes dir and dir/segments; removes our files first if `replace`, or if they are such
 * leavings (but not those that `keeps` says, nor the journal), but not dir: it may be a
 * mount point, a link or the working folder, and its mode is its owner's. *made: there
 * was no dir before. *lock: a descriptor that says that somebody writes here, or -1;
 * the caller closes it, after an error too. Who finds it locked is refused: two that
 * write at once would take each other's files away. */
SLU_MUST_USE int slu_shard_dir_prepare(const char *dir, bool replace,
                                       slu_shard_dir_keeps *keeps, const void *ctx,
                                       bool *made, int *lock, struct slu_err *err);
/* The mark of parts too. */
SLU_MUST_USE int slu_shard_dir_remove_journal(const char *dir, struct slu_err *err);
/* Removes our files, report.json first, and what folders are then empty, dir included
 * if `itself`. Errors are returned but do not stop it. */
int slu_shard_dir_remove(const char *dir, bool itself, struct slu_err *err);
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
SLU_MUST_USE int slu_shard_dir_begin_part(const char *dir, const char *work,
                                          const struct slu_buf *head, bool replace,
                                          int *lock, struct slu_err *err);
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
