/* permute_parts.h - the global shuffle in parts, with plain files between: for job
 * arrays.
 *
 *   scatter I/N   part I of the input -> WORK/scatter.I-of-N
 *   gather J/R    all scatter files   -> key range J of the order of all
 *
 * A scatter file has the records of one part in the order of permute.h, each as struct
 * slu_rec: its key, and the sequence (seqrec.h). They are in cells: of each bucket R
 * ranges of keys, the same in every part; without by_bucket all is one bucket. So a
 * range's sequences are those of its cells in all files, merged; what precedes it is
 * known from the cells' counts. A range is read by merging, so it may be larger than
 * the memory; each file takes a buffer.
 *
 * Sections of a file (workfile.h): the cells, bucket by bucket; then what was read and
 * what became of it; the cells' counts and checksums; the stream's header; its
 * vocabulary; names; what the blend took.
 *
 * Nothing is lost in silence: a file's cells must add up to what its part read, less
 * what was left out; what is read of a cell must be what was counted; what a set of
 * shards holds must be what all parts read (slu_parts_books_check).
 *
 * Thread safety: one thread at a time on a handle, slu_gather_unpack apart.
 */
#ifndef SLU_PERMUTE_PARTS_H
#define SLU_PERMUTE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"
#include "lib/err.h"
#include "permute.h"
#include "lib/stream/stream.h"

#define SLU_PARTS_RANGES (1 << 16) /* most of them */

struct slu_parts_cfg {
    const char *work;  /* folder; scatter makes it where it is not there */
    uint64_t part, of; /* of the phase at hand: I of N, or J of R */
    uint64_t ranges;   /* scatter: R */
    bool force;        /* make it again, whatever is there */
    bool by_bucket;
    const char *param; /* what else decides the result: "key=value key=value" */
};

/* What parts read, what became of it, and what is in their cells. Sums of sums are sums
 * of the union, but for the stream's identity. */
struct slu_parts_books {
    struct slu_sum in;
    struct slu_u128 stream;           /* slu_reader_identity; of many: all, in order */
    struct slu_permute_result result; /* out: of the cells */
    struct slu_u128 checksum;         /* of the cells' sequences */
};
/* SLU_E_CONSERVATION unless the cells have what was read, less what was left out. */
SLU_MUST_USE int slu_parts_books_check(const struct slu_parts_books *b,
                                       struct slu_err *err);

/* ---- blends: count, blend ----
 *
 *   count I/N   part I of the input -> WORK/count.I-of-N, 24 bytes a sequence
 *   blend       all count files     -> WORK/blend: what each part takes
 *
 * cfg: of all, with the blend; by and sample as in scatter. */

/* As slu_scatter_done; of b what was read is filled in, and nothing else. */
SLU_MUST_USE int slu_count_done(const struct slu_parts_cfg *c,
                                const struct slu_header *h, bool *done,
                                struct slu_parts_books *b, struct slu_err *err);
/* Takes the whole of r, which is tracked, as slu_permute_read. */
SLU_MUST_USE int slu_count_write(const struct slu_parts_cfg *c,
                                 const struct slu_permute_cfg *cfg,
                                 struct slu_reader *r, unsigned n_slots,
                                 void (*progress)(void *ctx, uint64_t n_tok), void *ctx,
                                 struct slu_parts_books *b, struct slu_err *err);
/* *done: it was there already, and made from the same. */
SLU_MUST_USE int slu_blend_write(const struct slu_parts_cfg *c,
                                 const struct slu_permute_cfg *cfg, bool *done,
                                 uint64_t *spilled_byte, struct slu_err *err);

struct slu_parts_blend {
    struct slu_blending *blending; /* owned: slu_blending_free */
    struct slu_u128 id;            /* of the file */
    struct slu_parts_books counted;
};
/* What WORK/blend says for a part of `of`. */
SLU_MUST_USE int slu_blend_open(struct slu_parts_blend *pb,
                                const struct slu_parts_cfg *c,
                                const struct slu_blend *blend, uint64_t part,
                                uint64_t of, struct slu_err *err);
/* Before slu_permute_read, of a handle made with that blend: takes ownership of
 * pb->blending, and needs one pass. */
void slu_permute_set_blend(struct slu_permute *p, struct slu_parts_blend *pb);

/* ---- scatter ---- */

/* Whether the part's file is there, whole, and made by the same parameters, and the
 * blend of that id ({0, 0}: none), of a stream with header h: then *b is what it says.
 * What differs is SLU_E_MISMATCH. With force it is not there. */
SLU_MUST_USE int slu_scatter_done(const struct slu_parts_cfg *c,
                                  const struct slu_header *h, struct slu_u128 blend,
                                  bool *done, struct slu_parts_books *b,
                                  struct slu_err *err);
/* After slu_permute_read: writes all that p has to the part's file; frees nothing. */
SLU_MUST_USE int slu_scatter_write(const struct slu_parts_cfg *c, struct slu_permute *p,
                                   struct slu_names *names, const struct slu_sum *in,
                                   struct slu_u128 stream, struct slu_u128 blend,
                                   unsigned n_slots, struct slu_parts_books *b,
                                   struct slu_err *err);

/* ---- gather ---- */

struct slu_gather;

/* Reads what all scatter files say of themselves. c->of 0: no range is meant to be
 * read, and whatever R they have is right. budget_byte: of the buffers for reading. */
SLU_MUST_USE int slu_gather_open(struct slu_gather **g, const struct slu_parts_cfg *c,
                                 uint64_t budget_byte, struct slu_err *err);
/* Of the first part, as a reader of all parts' streams has it. */
const struct slu_header *slu_gather_header(const struct slu_gather *g);
struct slu_names *slu_gather_names(struct slu_gather *g);
/* Of all parts together. */
const struct slu_parts_books *slu_gather_books(const struct slu_gather *g);
uint64_t slu_gather_parts(const struct slu_gather *g);
uint64_t slu_gather_ranges(const struct slu_gather *g);
/* Of a bucket: sequences in ranges below `range`. */
uint64_t slu_gather_before(const struct slu_gather *g, unsigned bucket, uint64_t range);
/* Adds what all parts took to x, which has been loaded, and to phase, n_phase counts
 * for each bucket (slu_permute_phase). SLU_E_MISMATCH where they were scattered by
 * another blend than that of the id. */
SLU_MUST_USE int slu_gather_took(const struct slu_gather *g,
                                 const struct slu_blend *blend, struct slu_u128 id,
                                 struct slu_blending *x, struct slu_count *phase,
                                 struct slu_err *err);
/* What is in the range that is read. */
void slu_gather_range(const struct slu_gather *g, struct slu_count *n,
                      struct slu_u128 *checksum);

/* Begins to read. first NULL: the range; else of bucket i n_seq[i] sequences from place
 * first[i] of its order on, which is not before the range, but may be behind it. */
SLU_MUST_USE int slu_gather_begin(struct slu_gather *g, const uint64_t *first,
                                  const uint64_t *n_seq, struct slu_err *err);
/* As slu_permute_fetch and slu_permute_open. */
SLU_MUST_USE int slu_gather_fetch(struct slu_gather *g, struct slu_buf *rec,
                                  uint64_t n_tok, struct slu_err *err);
SLU_MUST_USE int slu_gather_unpack(const struct slu_gather *g,
                                   const struct slu_buf *rec, struct slu_batch *b,
                                   struct slu_err *err);
SLU_MUST_USE int slu_gather_next(struct slu_gather *g, struct slu_batch *b,
                                 uint64_t n_tok, struct slu_err *err);
/* NULL is legal. */
void slu_gather_free(struct slu_gather *g);

#endif
