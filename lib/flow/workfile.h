/* workfile.h - work files: the files that a stage of a job in parts writes for the next
 * stage, and the indexes of dedup.
 *
 * Version 1. All numbers are u64 little-endian unless said otherwise.
 *
 *   offset  bytes
 *   0       8      "SLUNEAR1"
 *   8       8      kind (enum slu_workfile_kind)
 *   16             sections, one after another, each a run of u64
 *   t              the tail:
 *   t       16       part, of how many
 *   t+16    16       the tokenizer's fingerprint
 *   t+32    16       inputs: what the file was made from; see slu_workfile_id
 *   t+48    64       eight counts, the kind's own
 *   t+112   16       bytes of the text, number of sections
 *   t+128            the text: of a flow's file a record (made.h), of an index "key=value
 *                    key=value …"; zeros up to a multiple of 8
 *   …                for each section its length in bytes and its XXH3-128 (low, high)
 *   f              the foot: t, XXH3-128 (low, high) of bytes 0…15 and of the tail,
 *   f+24    8      "SLUNEND1", where the file ends
 *
 * A file that was cut has no foot, and every byte is covered by a checksum: the foot
 * covers the tail, which has the checksums of the sections. Reading a section from
 * beginning to end checks its checksum. slu_workfile_read reads any part of a section
 * unchecked, so such data needs checksums of its own.
 *
 * A file appears complete or not at all: it has no name until it is synced
 * (lib/base/io.h).
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_WORKFILE_H
#define SLU_WORKFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

/* These numbers are stored in files. Numbers below FLOW that are missing here are those
 * of work files of 0.1.0. */
enum slu_workfile_kind {
    SLU_WORKFILE_INDEX = 5, /* an index of dedup */
    SLU_WORKFILE_FLOW = 14, /* a file of any flow (flow.h) */
};

#define SLU_WORKFILE_COUNTS    8
#define SLU_WORKFILE_MAX_PARAM (1 << 16)
#define SLU_WORKFILE_MAX_PARTS (1 << 20)

/* What a file states about itself. */
struct slu_workfile_head {
    uint64_t kind, part, of;
    uint8_t fingerprint[16];
    struct slu_u128 inputs;
    uint64_t count[SLU_WORKFILE_COUNTS];
    const char *param; /* borrowed from the caller; for an open file, until it is
                          closed */
};

/* ---- writing ---- */

struct slu_workfile_out;

/* Creates a file of this name; the parameters and counts are given to
 * slu_workfile_close. */
SLU_MUST_USE int slu_workfile_create(struct slu_workfile_out **o, const char *path,
                                     uint64_t kind, struct slu_err *err);
/* The following puts write section number n. Sections ascend; those left out are
 * empty. */
SLU_MUST_USE int slu_workfile_section(struct slu_workfile_out *o, uint64_t n,
                                      struct slu_err *err);
/* Appends n numbers to the section; before the first slu_workfile_section, to section
 * 0. */
SLU_MUST_USE int slu_workfile_put(struct slu_workfile_out *o, const uint64_t *v,
                                  size_t n, struct slu_err *err);
/* Appends n bytes, and zeros to a multiple of 8. */
SLU_MUST_USE int slu_workfile_put_raw(struct slu_workfile_out *o, const void *p,
                                      size_t n, struct slu_err *err);
/* Appends the number of bytes, then the bytes as above; slu_workfile_get_bytes reads
 * them. */
SLU_MUST_USE int slu_workfile_put_bytes(struct slu_workfile_out *o, const void *p,
                                        size_t n, struct slu_err *err);
/* Numbers in the section so far. */
uint64_t slu_workfile_tell(const struct slu_workfile_out *o);
/* Finishes the file, with n_section sections, and gives it its name. Frees o even on
 * failure. */
SLU_MUST_USE int slu_workfile_close(struct slu_workfile_out *o,
                                    const struct slu_workfile_head *head,
                                    uint64_t n_section, struct slu_err *err);
/* NULL is legal. */
void slu_workfile_abort(struct slu_workfile_out *o);

/* ---- reading ---- */

struct slu_workfile;

/* SLU_E_FORMAT, SLU_E_TRUNCATED or SLU_E_CHECKSUM if the file is not a complete work
 * file of this kind; SLU_E_IO with ENOENT if it does not exist. */
SLU_MUST_USE int slu_workfile_open(struct slu_workfile **f, const char *path,
                                   uint64_t kind, struct slu_err *err);
/* Whether the file begins like a work file of this kind; the rest is not read. */
bool slu_workfile_is(const char *path, uint64_t kind);
const struct slu_workfile_head *slu_workfile_head(const struct slu_workfile *f);
const char *slu_workfile_path(const struct slu_workfile *f);
/* The checksum in the foot: equal only for files with equal contents. */
struct slu_u128 slu_workfile_id(const struct slu_workfile *f);
uint64_t slu_workfile_n_section(const struct slu_workfile *f);
/* Numbers in a section. */
uint64_t slu_workfile_len(const struct slu_workfile *f, uint64_t section);
/* Position of a section in the file, in bytes, and its XXH3-128: for callers that read
 * many files at once, each through its own buffer. */
void slu_workfile_extent(const struct slu_workfile *f, uint64_t section,
                         uint64_t *off_byte, uint64_t *n_byte, struct slu_u128 *hash);
/* SLU_E_MISMATCH, naming the difference, if the part or the number of parts differ. */
SLU_MUST_USE int slu_workfile_match(const struct slu_workfile *f,
                                    const struct slu_workfile_head *want,
                                    struct slu_err *err);
/* Reads n numbers of a section from number `from` on, unchecked. */
SLU_MUST_USE int slu_workfile_read(struct slu_workfile *f, uint64_t section,
                                   uint64_t from, size_t n, uint64_t *v,
                                   struct slu_err *err);
/* Starts to read a section from its beginning, through a buffer of the handle. */
SLU_MUST_USE int slu_workfile_begin(struct slu_workfile *f, uint64_t section,
                                    struct slu_err *err);
/* Copies the next n numbers to v, for any n; fewer in the section is an error. */
SLU_MUST_USE int slu_workfile_get(struct slu_workfile *f, size_t n, uint64_t *v,
                                  struct slu_err *err);
/* Replaces the contents of *out by bytes that slu_workfile_put_bytes wrote. */
SLU_MUST_USE int slu_workfile_get_bytes(struct slu_workfile *f, struct slu_buf *out,
                                        struct slu_err *err);
/* Numbers of the section that were not yet read: an upper bound for any count in the
 * section. */
uint64_t slu_workfile_left(const struct slu_workfile *f);
/* Checks that the section has no more numbers and that its checksum is right. */
SLU_MUST_USE int slu_workfile_end(struct slu_workfile *f, struct slu_err *err);
/* Returns the file's descriptor, which then belongs to the caller: the handle reads no
 * more, but its facts stay available. */
int slu_workfile_take(struct slu_workfile *f);
/* Sets and returns SLU_E_CHECKSUM: the file has impossible contents. */
int slu_workfile_damaged(const struct slu_workfile *f, struct slu_err *err);
/* NULL is legal. */
void slu_workfile_free(struct slu_workfile *f);

/* Combines ids, in order: start with {0, 0}. */
struct slu_u128 slu_workfile_mix(struct slu_u128 ids, struct slu_u128 id);

#endif
