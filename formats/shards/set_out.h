/* set_out.h - the files of a shard set while it is written: none has its final name
 * before slu_set_publish.
 *
 * One interface: begin, create, have, ready, publish, abandon. Any number of writers,
 * perhaps on several machines, create files; one publishes. What is here is its form for
 * file systems, and only set_*.c know it:
 *
 *   DIR/.partial/journal   the first file of a set that one process writes, or
 *   DIR/.partial/mark      of one that is written in parts: its first line is the
 *                          record of what is made from what. One of them proves that
 *                          all below .partial is ours
 *   DIR/.partial/lock      host and process of the one that alone may change .partial;
 *                          lock.J-of-R: of the one that writes part J
 *   DIR/.partial/D_6/…     new files, in the layout of the set, each synced
 *   DIR/.partial/ready     all files are there: the record, the old set's entries, each
 *                          new file with its size and hash, a seal (filelist.h)
 *   DIR/.partial/leaving/  the old set, on its way out; old/ when all of it is there
 *
 * Publishing (set_publish.c) renames the old set's entries, report.json first, into
 * .partial/old, then the new ones to DIR, report.json last, and removes .partial. A
 * fault on the way renames back. After a kill, slu_set_recover goes on from `ready`.
 *
 * Files in DIR that no set has listed belong to the user, and stay; if the new set needs
 * the name of one, it is refused before the work begins, and again before it is
 * published (shard_dir.h).
 *
 * Thread safety: begin, ready, publish and abandon by one thread; create and have by any.
 */
#ifndef SLU_SET_OUT_H
#define SLU_SET_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/shards/filelist.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

#define SLU_SET_PARTIAL ".partial"

struct slu_shard_format;

struct slu_set_out {
    char *dir; /* DIR */
    char *at;  /* DIR/.partial; NULL: not begun */
    const struct slu_shard_format *format;
    bool made_dir; /* DIR did not exist */
    bool keep;     /* what is there may be another run's */
    bool again;    /* DIR has the same set already (slu_set_reopen) */
    char *lock;    /* the lock's file, or NULL */
};

/* Goes on with the publishing of a killed run, if there is one: appends its record, the
 * first line of its journal or mark, to `record`; else leaves it empty. Reads no input.
 * SLU_E_MISMATCH if another process is publishing. */
SLU_MUST_USE int slu_set_recover(const char *dir, struct slu_buf *record,
                                 struct slu_err *err);
/* Whether a set of format f may be written to dir. Without `replace`, dir must have no
 * files, but for those of a stopped run. With it, no file that is not of the old set may
 * have a name that the new one needs. SLU_E_MISMATCH names what is in the way. */
SLU_MUST_USE int slu_set_check(const char *dir, const struct slu_shard_format *f,
                               bool replace, struct slu_err *err);

/* SLU_E_TRUNCATED while the set is being replaced. */
SLU_MUST_USE int slu_set_being_replaced(const char *dir, struct slu_err *err);

/* Begins a set of one writer: makes DIR and .partial, and locks it. What a stopped run
 * left stays if `replace` is not given or its record is the same; the caller reads
 * .partial/journal, and compares. */
SLU_MUST_USE int slu_set_begin(struct slu_set_out *o, const char *dir,
                               const struct slu_shard_format *f,
                               const struct slu_buf *record, bool replace,
                               struct slu_err *err);
/* Begins one of several writers: makes the mark, or finds the same one. */
SLU_MUST_USE int slu_set_begin_part(struct slu_set_out *o, const char *dir,
                                    const struct slu_shard_format *f,
                                    const struct slu_buf *record, bool replace,
                                    struct slu_err *err);
/* For the one that publishes what these have written: locks, waiting for another one.
 * SLU_EOF if there is no mark, but a finished set. SLU_E_MISMATCH while parts are
 * written on this machine. */
SLU_MUST_USE int slu_set_begin_join(struct slu_set_out *o, const char *dir,
                                    const struct slu_shard_format *f,
                                    const struct slu_buf *record, struct slu_err *err);
/* After SLU_EOF: begins the finished set again, to be published again; the caller links
 * the files that stay. */
SLU_MUST_USE int slu_set_reopen(struct slu_set_out *o, const struct slu_buf *record,
                                struct slu_err *err);
/* Checks the mark: SLU_OK if it is `record`, SLU_EOF if there is none, but a finished
 * set. */
SLU_MUST_USE int slu_set_check_mark(const char *dir, const struct slu_buf *record,
                                    struct slu_err *err);
/* Locks part index of `of`. A process of another machine is taken for dead: if it is
 * not, both write the same bytes under the same names. */
SLU_MUST_USE int slu_set_lock_part(struct slu_set_out *o, uint64_t index, uint64_t of,
                                   struct slu_err *err);

/* Opens a new file, with its folders. */
SLU_MUST_USE int slu_set_create(const struct slu_set_out *o, const char *name,
                                struct slu_out **out, struct slu_err *err);
/* Takes the file of this name, size and hash of the set in dir as it is: links it, or
 * copies it. */
SLU_MUST_USE int slu_set_link(const struct slu_set_out *o, const char *dir,
                              const char *name, const struct slu_digest *d,
                              struct slu_err *err);
/* All files of the list are there: removes all others below .partial, checks DIR again,
 * and writes .partial/ready. */
SLU_MUST_USE int slu_set_ready(const struct slu_set_out *o, struct slu_filelist *files,
                               struct slu_err *err);
/* Gives all files their names. May be repeated until it succeeds. Ends o. */
SLU_MUST_USE int slu_set_publish(struct slu_set_out *o, struct slu_err *err);
/* Ends o: removes .partial, and DIR if it did not exist; with `keep` only the lock. */
void slu_set_abandon(struct slu_set_out *o, bool keep);

/* ---- between set_*.c ---- */

/* DIR/NAME; caller frees *out, which is NULL after a fault. */
SLU_MUST_USE int slu_set_path(char **out, const char *dir, const char *name,
                              struct slu_err *err);
/* Takes the lock PATH, whose folder exists, by link(2), which is atomic on NFS, too.
 * patience: how often it is tried while a living process has it; remote: take it from a
 * process of another machine. SLU_E_MISMATCH says who has it; SLU_EOF: the folder is
 * gone. */
SLU_MUST_USE int slu_set_lock(const char *path, unsigned patience, bool remote,
                              struct slu_err *err);
/* SLU_E_MISMATCH if a living process has a lock of a part below `at`; one of another
 * machine counts as living if `remote`. */
SLU_MUST_USE int slu_set_no_parts(const char *at, bool remote, struct slu_err *err);
/* Removes a tree below .partial, which is wholly ours; links are not followed. `but`: a
 * name at the top that stays, or NULL. */
SLU_MUST_USE int slu_set_remove_tree(const char *path, const char *but,
                                     struct slu_err *err);
/* Moves all by .partial/ready. */
SLU_MUST_USE int slu_set_move_all(const char *dir, const char *at, struct slu_err *err);

#endif
