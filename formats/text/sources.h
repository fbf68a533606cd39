/* sources.h - which files are read, in which order, under which names, and which of
 * them belong to a part of a job.
 *
 * Order (DESIGN.md, Identity and order): files and folders as named, then those of the
 * list. A folder stands for the regular files below it, symbolic links followed, sorted
 * by the bytes of their paths (as LC_ALL=C sort does). Left out of folders, and
 * counted, are names that begin with a dot, FIFOs, sockets and devices, and files with
 * a lower rank than another file of the same folder, such as a README beside the data.
 * A source's ordinal is its place in that list, the same in every part.
 *
 * Name (recorded in the stream): the path below the deepest common folder of all files
 * of the list, so that a folder may be moved; for a single file its base name; "-" is
 * standard input. A prefix tells two lists with equal names apart.
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

struct slu_bytes;

struct slu_source {
    const char *path;   /* to open; "-": standard input */
    const char *name;   /* to record */
    const char *domain; /* that its line of the list or its path gives; NULL: none */
    uint64_t size_byte; /* as stored; 0 if not a regular file */
    bool regular;
    /* The share: records that begin in stored bytes [from, to). 0, UINT64_MAX: all. */
    uint64_t from, to;
    /* A pipe that was opened to look at its first bytes; the reader takes it, and it is
     * closed with the sources if none does. NULL: it is still to be opened. */
    struct slu_bytes *opened;
};

struct slu_sources {
    struct slu_source *item; /* n, in order: item[i] has ordinal base + i */
    size_t n, base;
    /* the share: ordinals first … end-1; all until slu_sources_share */
    size_t first, end;
    size_t n_domain;   /* those with a domain */
    uint64_t n_hidden; /* left out: files and folders whose names begin with a dot */
    /* FIFOs, sockets and devices in folders: left out, and never opened. */
    uint64_t n_special;
    char *special;     /* the first of these by bytes; NULL: none */
    uint64_t n_lower;  /* left out: files of folders with a lower rank than others */
    const char *lower; /* the first of these; NULL: none */
    uint64_t n_other;  /* of these, those of rank 0, which are not in n_lower */
    const char *other; /* the first; NULL: none */
    /* bit i: the i-th glob of `include`, of `exclude`, matches a file of a folder. Globs
     * of `exclude` are compared only with what is included. */
    uint64_t included, excluded;
    char *bytes; /* private: memory of path and name */
    size_t bytes_len, bytes_cap;
};

struct slu_sources_cfg {
    const char *const *path; /* files, folders, "-" (at most once) */
    size_t n_path;
    const char *list;  /* a file with one path per line, "-": standard input; or NULL */
    bool list_domains; /* its lines are DOMAIN, a tab, PATH; an empty DOMAIN is none */
    /* Select a folder's files: those that match a glob of `include` (NULL: all) and
     * none of `exclude` (NULL: none). Globs are separated by commas. A glob with a
     * slash is matched with the path below the folder, others with the file's name. */
    const char *include, *exclude;
    /* Returns a file's rank, from 0, which files have that cannot be read; unused if
     * `include` is set. NULL: all are 0. */
    unsigned (*rank)(const char *name);
    const char *prefix; /* "PREFIX/" begins each name, with one slash; NULL: none */
    /* Finds the domain of each file without one in its path: the bytes that "{}" stands
     * for if the pattern, which has one "{}", matches the end of the absolute path, from
     * a slash on. Matches as a glob whose wildcards and "{}" match no slash; "{}" takes
     * as many bytes as possible, at least one. NULL: paths give no domain. */
    const char *domain_from;
    /* If stdin_name is set, standard input is the only source, with this name and the
     * ordinal base, as in a complete list of which others read the rest. */
    const char *stdin_name;
    size_t base; /* ordinal of the first source */
};

/* Lists the sources; without any name: standard input. Looks at every file once, so
 * that a missing file is found before any work. SLU_E_IO; SLU_E_USAGE if a folder has
 * no files, or no match, or standard input is named twice. Caller ends with
 * slu_sources_release, also after an error. */
SLU_MUST_USE int slu_sources_resolve(struct slu_sources *s,
                                     const struct slu_sources_cfg *cfg,
                                     struct slu_err *err);
void slu_sources_release(struct slu_sources *s);
/* Returns a source by its ordinal. */
static inline const struct slu_source *slu_source_at(const struct slu_sources *s,
                                                     uint64_t ordinal)
{
    return &s->item[ordinal - s->base];
}

/* Keeps part `part` of n_part (0-based). Parts are contiguous; one after another they
 * are the whole. A share depends only on names and sizes: a file weighs its size, a
 * compressed file four times that. Files that can be cut (splittable(name)) are cut
 * at any byte: a record of JSONL belongs to the part in which it begins, a row group of
 * Parquet to the one with its middle, as other files do as a whole. SLU_E_USAGE for standard input and other
 * inputs without a size, if n_part > 1. */
SLU_MUST_USE int slu_sources_share(struct slu_sources *s, uint64_t part,
                                   uint64_t n_part,
                                   bool (*splittable)(const char *name, void *ctx),
                                   void *ctx, struct slu_err *err);

/* Returns the first of at most 64 globs that matched nothing; *len: its bytes. NULL:
 * there is none. */
const char *slu_globs_unused(const char *globs, uint64_t used, size_t *len);
/* Whether a path matches one of the globs, which are as in slu_sources_cfg. Sets bit i
 * of *used for the i-th, of at most 64, if it matches. */
bool slu_globs_match(const char *globs, const char *path, uint64_t *used);

SLU_END_DECLS

#endif
