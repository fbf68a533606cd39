/* workfile.h - the files that programs leave on disk for the next stage of a job in
 * parts, and dedup its indexes.
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
 *   t+112   16       bytes of the parameters' text, number of sections
 *   t+128            the text "key=value key=value …", zeros up to a multiple of 8
 *   …                for each section its length in bytes and its XXH3-128 (low, high)
 *   f              the foot: t, XXH3-128 (low, high) of bytes 0…15 and of the tail,
 *   f+24    8      "SLUNEND1", where the file ends
 *
 * So a file that was cut has no foot, and every byte is covered by a checksum: the foot
 * has those of the sections. Streams of a section are compared at its end; who reads
 * here and there (slu_workfile_read) needs checksums of its own in what it reads.
 *
 * A file appears whole or not at all: it has no name until it is synced (lib/base/io.h).
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

/* These numbers are in files; others below FLOW are those of work files of 0.1.0. */
enum slu_workfile_kind {
    SLU_WORKFILE_INDEX = 5, /* of dedup */
    SLU_WORKFILE_FLOW = 14, /* of any flow (flow.h): its parameters say of which */
};

#define SLU_WORKFILE_COUNTS    8
#define SLU_WORKFILE_MAX_PARAM 4096
#define SLU_WORKFILE_MAX_PARTS (1 << 20)

/* What a file says of itself. */
struct slu_workfile_head {
    uint64_t kind, part, of;
    uint8_t fingerprint[16];
    struct slu_u128 inputs;
    uint64_t count[SLU_WORKFILE_COUNTS];
    const char *param; /* borrowed from whoever made it, of a file until it is closed */
};

/* ---- writing ---- */

struct slu_workfile_out;

/* The file's name; parameters and counts are given at the end. */
SLU_MUST_USE int slu_workfile_create(struct slu_workfile_out **o, const char *path,
                                     uint64_t kind, struct slu_err *err);
/* The sections that are written from now on: number n, all of them in order; those left
 * out are empty. */
SLU_MUST_USE int slu_workfile_section(struct slu_workfile_out *o, uint64_t n,
                                      struct slu_err *err);
/* Appends n numbers to the section; before the first it is section 0. */
SLU_MUST_USE int slu_workfile_put(struct slu_workfile_out *o, const uint64_t *v,
                                  size_t n, struct slu_err *err);
/* Appends n bytes, zeros behind them up to a multiple of 8. */
SLU_MUST_USE int slu_workfile_put_raw(struct slu_workfile_out *o, const void *p,
                                      size_t n, struct slu_err *err);
/* The same with their number before them: what slu_workfile_get_bytes takes. */
SLU_MUST_USE int slu_workfile_put_bytes(struct slu_workfile_out *o, const void *p,
                                        size_t n, struct slu_err *err);
/* Numbers in the section so far. */
uint64_t slu_workfile_tell(const struct slu_workfile_out *o);
/* Gives the file its name, with n_section sections. Frees o even when it fails. */
SLU_MUST_USE int slu_workfile_close(struct slu_workfile_out *o,
                                    const struct slu_workfile_head *head,
                                    uint64_t n_section, struct slu_err *err);
/* NULL is legal. */
void slu_workfile_abort(struct slu_workfile_out *o);

/* ---- reading ---- */

struct slu_workfile;

/* SLU_E_FORMAT, SLU_E_TRUNCATED or SLU_E_CHECKSUM where it is not such a file, whole
 * and of that kind; SLU_E_IO with ENOENT where it is not there. */
SLU_MUST_USE int slu_workfile_open(struct slu_workfile **f, const char *path,
                                   uint64_t kind, struct slu_err *err);
/* Whether it begins as one; what stands behind that is not looked at. */
bool slu_workfile_is(const char *path, uint64_t kind);
const struct slu_workfile_head *slu_workfile_head(const struct slu_workfile *f);
const char *slu_workfile_path(const struct slu_workfile *f);
/* What the foot's checksum is: equal for files with equal contents only. */
struct slu_u128 slu_workfile_id(const struct slu_workfile *f);
uint64_t slu_workfile_n_section(const struct slu_workfile *f);
/* Numbers in a section. */
uint64_t slu_workfile_len(const struct slu_workfile *f, uint64_t section);
/* Where a section lies in the file, in bytes, and XXH3-128 of it: for who reads many
 * files at once, each through a buffer of its own. */
void slu_workfile_extent(const struct slu_workfile *f, uint64_t section,
                         uint64_t *off_byte, uint64_t *n_byte, struct slu_u128 *hash);
/* SLU_E_MISMATCH, naming the difference, where the parameters, the tokenizer or the
 * number of parts are others. */
SLU_MUST_USE int slu_workfile_match(const struct slu_workfile *f,
                                    const struct slu_workfile_head *want,
                                    struct slu_err *err);
/* n numbers of a section from number `from` on, unchecked. */
SLU_MUST_USE int slu_workfile_read(struct slu_workfile *f, uint64_t section,
                                   uint64_t from, size_t n, uint64_t *v,
                                   struct slu_err *err);
/* Numbers of a section from its beginning, through a buffer that the handle keeps: the
 * next n, at most SLU_WORKFILE_NEXT, borrowed until the next call. SLU_EOF at the end,
 * once the section's checksum was found right. One stream at a time: begin starts it.
 */
#define SLU_WORKFILE_NEXT 4096
SLU_MUST_USE int slu_workfile_begin(struct slu_workfile *f, uint64_t section,
                                    struct slu_err *err);
SLU_MUST_USE int slu_workfile_next(struct slu_workfile *f, size_t n, const uint64_t **v,
                                   struct slu_err *err);
/* The same into v, and any n: fewer than that in the section is an error. */
SLU_MUST_USE int slu_workfile_get(struct slu_workfile *f, size_t n, uint64_t *v,
                                  struct slu_err *err);
/* Replaces what is in *out by bytes that slu_workfile_put_bytes has put. */
SLU_MUST_USE int slu_workfile_get_bytes(struct slu_workfile *f, struct slu_buf *out,
                                        struct slu_err *err);
/* Numbers that the stream has not given yet: no count in the section can be more. */
uint64_t slu_workfile_left(const struct slu_workfile *f);
/* The stream is at the section's end, and what it gave was right. */
SLU_MUST_USE int slu_workfile_end(struct slu_workfile *f, struct slu_err *err);
/* The file's descriptor, which is the caller's from now on: the handle reads no more,
 * but still tells what it knows. */
int slu_workfile_take(struct slu_workfile *f);
/* SLU_E_CHECKSUM: what the file says cannot be. */
int slu_workfile_damaged(const struct slu_workfile *f, struct slu_err *err);
/* NULL is legal. */
void slu_workfile_free(struct slu_workfile *f);

/* Combines ids, in order: start with {0, 0}. */
struct slu_u128 slu_workfile_mix(struct slu_u128 ids, struct slu_u128 id);

#endif
