/* nearfile.h - the files that the phases of dedup, and its indexes, leave on disk.
 *
 * Version 1. All numbers are u64 little-endian unless said otherwise.
 *
 *   offset  bytes
 *   0       8      "SLUNEAR1"
 *   8       8      kind (enum slu_nearfile_kind)
 *   16             sections, one after another, each a run of u64
 *   t              the tail:
 *   t       16       part, of how many
 *   t+16    16       the tokenizer's fingerprint
 *   t+32    16       inputs: what the file was made from; see slu_nearfile_id
 *   t+48    64       eight counts, the kind's own
 *   t+112   16       bytes of the parameters' text, number of sections
 *   t+128            the text "key=value key=value …", zeros up to a multiple of 8
 *   …                for each section its length in bytes and its XXH3-128 (low, high)
 *   f              the foot: t, XXH3-128 (low, high) of bytes 0…15 and of the tail,
 *   f+24    8      "SLUNEND1", where the file ends
 *
 * So a file that was cut has no foot, and every byte is covered by a checksum: the foot
 * has those of the sections. Streams of a section are compared at its end; who reads
 * here and there (slu_nearfile_read) needs checksums of its own in what it reads.
 *
 * A file appears whole or not at all: it has no name until it is synced (lib/io.h).
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEARFILE_H
#define SLU_DEDUP_NEARFILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/hash.h"

enum slu_nearfile_kind {
    SLU_NEARFILE_SIGN = 1,
    SLU_NEARFILE_MERGE,
    SLU_NEARFILE_VERIFY,
    SLU_NEARFILE_CLUSTER,
    SLU_NEARFILE_INDEX
};

#define SLU_NEARFILE_COUNTS    8
#define SLU_NEARFILE_MAX_PARAM 4096
#define SLU_NEARFILE_MAX_PARTS (1 << 20)

/* What a file says of itself. */
struct slu_nearfile_head {
    uint64_t kind, part, of;
    uint8_t fingerprint[16];
    struct slu_u128 inputs;
    uint64_t count[SLU_NEARFILE_COUNTS];
    const char *param; /* borrowed from whoever made it, of a file until it is closed */
};

/* ---- writing ---- */

struct slu_nearfile_out;

/* The file's name; parameters and counts are given at the end. */
SLU_MUST_USE int slu_nearfile_create(struct slu_nearfile_out **o, const char *path,
                                     uint64_t kind, struct slu_err *err);
/* The sections that are written from now on: number n, all of them in order; those left
 * out are empty. */
SLU_MUST_USE int slu_nearfile_section(struct slu_nearfile_out *o, uint64_t n,
                                      struct slu_err *err);
/* Appends n numbers to the section; before the first it is section 0. */
SLU_MUST_USE int slu_nearfile_put(struct slu_nearfile_out *o, const uint64_t *v,
                                  size_t n, struct slu_err *err);
/* Numbers in the section so far. */
uint64_t slu_nearfile_tell(const struct slu_nearfile_out *o);
/* Gives the file its name, with n_section sections. Frees o even when it fails. */
SLU_MUST_USE int slu_nearfile_close(struct slu_nearfile_out *o,
                                    const struct slu_nearfile_head *head,
                                    uint64_t n_section, struct slu_err *err);
/* NULL is legal. */
void slu_nearfile_abort(struct slu_nearfile_out *o);

/* ---- reading ---- */

struct slu_nearfile;

/* SLU_E_FORMAT, SLU_E_TRUNCATED or SLU_E_CHECKSUM where it is not such a file, whole
 * and of that kind; SLU_E_IO with ENOENT where it is not there. */
SLU_MUST_USE int slu_nearfile_open(struct slu_nearfile **f, const char *path,
                                   uint64_t kind, struct slu_err *err);
const struct slu_nearfile_head *slu_nearfile_head(const struct slu_nearfile *f);
const char *slu_nearfile_path(const struct slu_nearfile *f);
/* What the foot's checksum is: equal for files with equal contents only. */
struct slu_u128 slu_nearfile_id(const struct slu_nearfile *f);
uint64_t slu_nearfile_n_section(const struct slu_nearfile *f);
/* Numbers in a section. */
uint64_t slu_nearfile_len(const struct slu_nearfile *f, uint64_t section);
/* SLU_E_MISMATCH, naming the difference, where the parameters, the tokenizer, the
 * number of parts or, unless inputs is NULL, what it was made from are others. */
SLU_MUST_USE int slu_nearfile_match(const struct slu_nearfile *f,
                                    const struct slu_nearfile_head *want,
                                    const struct slu_u128 *inputs, struct slu_err *err);
/* n numbers of a section from number `from` on, unchecked. */
SLU_MUST_USE int slu_nearfile_read(struct slu_nearfile *f, uint64_t section,
                                   uint64_t from, size_t n, uint64_t *v,
                                   struct slu_err *err);
/* Numbers of a section from its beginning, through a buffer that the handle keeps: the
 * next n, at most SLU_NEARFILE_NEXT, borrowed until the next call. SLU_EOF at the end,
 * once the section's checksum was found right. One stream at a time: begin starts it.
 */
#define SLU_NEARFILE_NEXT 4096
SLU_MUST_USE int slu_nearfile_begin(struct slu_nearfile *f, uint64_t section,
                                    struct slu_err *err);
SLU_MUST_USE int slu_nearfile_next(struct slu_nearfile *f, size_t n, const uint64_t **v,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_nearfile_free(struct slu_nearfile *f);

/* Combines ids, in order: start with {0, 0}. */
struct slu_u128 slu_nearfile_mix(struct slu_u128 ids, struct slu_u128 id);

#endif
