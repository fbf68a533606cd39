/* sources.h - which files are read, in which order, under which names, and whose share
 * of them a part of a job takes.
 *
 * Order (DESIGN.md, Identity and order): files and folders as named, then those of the
 * list; a folder stands for the regular files below it, symbolic links followed, sorted
 * by the bytes of their paths (as LC_ALL=C sort does). Left out of folders, and
 * counted, are names that begin with a dot, FIFOs, sockets and devices, and files whose
 * names have a lower rank than that of another file of the same folder: a README beside
 * the data. A source's ordinal is its place in that list, the same in every part.
 *
 * Name (recorded in the stream): the path below the deepest folder that all files of
 * the list have in common, so that a folder may be moved; of a single file its base
 * name; "-" is standard input.
 *
 * Thread safety: read-only once resolved.
 */
#ifndef SLU_SOURCES_H
#define SLU_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_source {
    const char *path;   /* to open; "-" is standard input */
    const char *name;   /* to record */
    uint64_t size_byte; /* as stored; 0 for what is no regular file */
    bool regular;
    /* The share: records that begin in stored bytes [from, to). 0 and UINT64_MAX: all
     * of them. */
    uint64_t from, to;
};

struct slu_sources {
    struct slu_source *item; /* n, in order: item[i] has ordinal i */
    size_t n;
    size_t first, end; /* the share: ordinals first … end-1; at first all of them */
    uint64_t n_hidden; /* files and folders left out because of a dot */
    /* FIFOs, sockets and devices found in folders, which are left out, never opened. */
    uint64_t n_special;
    char *special;     /* the first of them by bytes; NULL: none */
    uint64_t n_lower;  /* files of folders left out for their rank */
    const char *lower; /* the first of them; NULL: none */
    char *bytes;       /* private: backs path and name */
    size_t bytes_len, bytes_cap;
};

struct slu_sources_cfg {
    const char *const *path; /* files, folders, "-" (at most once) */
    size_t n_path;
    const char *list; /* NULL, or a file with a path a line, "-": standard input */
    /* Of a folder's files those that match a glob of `include` (NULL: all) and none of
     * `exclude` (NULL: none). Globs have commas between; one with a slash is for the
     * path below the folder, another for the file's name. */
    const char *include, *exclude;
    /* From 0; not asked where `include` is given. NULL: all are alike. */
    unsigned (*rank)(const char *name);
};

/* With nothing named: standard input. Every file is looked at once, so that one that is
 * missing is found before any work. SLU_E_IO; SLU_E_USAGE where a folder has no files,
 * or none that match, or standard input is named twice. Caller ends with
 * slu_sources_release, also after an error. */
SLU_MUST_USE int slu_sources_resolve(struct slu_sources *s,
                                     const struct slu_sources_cfg *cfg,
                                     struct slu_err *err);
void slu_sources_release(struct slu_sources *s);

/* Keeps part `part` of n_part (0-based): contiguous, so that the parts behind one
 * another are the whole. It depends on names and sizes alone: a file weighs its size, a
 * compressed one four times that; uncompressed JSONL files (splittable(name)) are cut
 * at any byte, the record belonging to the part in which it begins, others belong to
 * the part in which their middle lies. SLU_E_USAGE for standard input and other things
 * without a size, if n_part > 1. */
SLU_MUST_USE int slu_sources_share(struct slu_sources *s, uint64_t part,
                                   uint64_t n_part,
                                   bool (*splittable)(const char *name, void *ctx),
                                   void *ctx, struct slu_err *err);

SLU_END_DECLS

#endif
