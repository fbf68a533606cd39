/* batch.h - whole sequences in memory, the unit of work of the programs.
 *
 * A sequence is a list of segments; a segment is (source, document, offset, length):
 * tokens offset … offset+length-1 of one document. A document is a sequence of one
 * segment from offset 0; a piece is a sequence of one segment; a packed sequence has
 * several, the last of which may be padding (source SLU_PADDING). A sequence's length
 * is the sum of its segments' lengths.
 *
 * Invariants: seq[i].tok_off + len_tok <= n_tok; segments of a sequence are contiguous
 * in seg[]. Sequences need not cover tok[] nor be in its order: a program that cuts or
 * drops edits seq[] and seg[] and leaves the tokens where they are.
 *
 * Tokens keep the stream's width (tok_bytes 2 or 4), native byte order in memory; with
 * masks they are marked ids of 4 bytes (mask.h).
 * Ownership: a batch owns its arrays; tok may point into the frame it was read from,
 * which the batch owns too. Thread safety: one thread at a time.
 */
#ifndef SLU_BATCH_H
#define SLU_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "account.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/stream/mask.h"

SLU_BEGIN_DECLS

#define SLU_PADDING   UINT64_MAX /* seg.source of padding; document and offset are 0 */
#define SLU_NO_DOMAIN UINT32_MAX
#define SLU_NO_SCORE  UINT64_C(0x7ff8000000000000) /* the NaN that means no score */

/* Optional fields of a segment that have a column of their own. The header of a stream
 * says which of them it has. Any other field is metadata (metadata.h). */
enum slu_extra { SLU_SCORE, SLU_N_EXTRA };

struct slu_extra_kind {
    const char *name, *plural; /* keys in the output of inspect */
    uint64_t none;             /* the value stored for a segment without it */
    bool is_double;            /* values are the bits of finite doubles; else u64 */
};
extern const struct slu_extra_kind slu_extra_kind[SLU_N_EXTRA];

struct slu_seg {
    uint64_t source;   /* ordinal in the input list (DESIGN.md, Identity and order) */
    uint64_t document; /* the record's position in its source */
    uint64_t offset;   /* first token, counted from the document's start */
    uint64_t len_tok;
    uint32_t domain;        /* number in the names table, SLU_NO_DOMAIN: none */
    uint32_t id_len;        /* bytes of the record's own id in str, 0: none */
    uint64_t id_off : 40;   /* byte offset in batch->str */
    uint64_t meta_len : 24; /* bytes of metadata (metadata.h) in str, behind the id */
    /* Each: the value stored in the stream ^ slu_extra_kind.none, so that 0 means
     * none. */
    uint64_t extra[SLU_N_EXTRA];
};

/* Returns the bytes that the segment has in str: its id and its metadata. */
static inline size_t slu_seg_str(const struct slu_seg *s)
{
    return s->id_len + (size_t)s->meta_len;
}

/* Convert a score to extra[SLU_SCORE] of a segment, and back; NaN: no score. */
static inline uint64_t slu_score_bits(double v)
{
    uint64_t bits;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return v != v ? 0 : bits ^ SLU_NO_SCORE;
}
static inline double slu_score_value(uint64_t score)
{
    double v;
    score ^= SLU_NO_SCORE;
    memcpy(&v, &score, sizeof v);
    return v;
}

struct slu_seq {
    uint64_t tok_off; /* index in batch->tok */
    uint64_t len_tok;
    uint64_t seg_off; /* index in batch->seg */
    uint64_t n_seg;
    struct slu_u128 hash; /* slu_seq_hash; 0: not known. Whoever changes the tokens
                             clears it */
};

/* Counts and checksums of a set of sequences. The sums of two sets can be added
 * (DESIGN.md, Conservation). */
struct slu_sum {
    struct slu_count n; /* its tokens include padding */
    uint64_t segments;
    uint64_t padding; /* tokens */
    struct slu_u128 checksum;
    struct slu_u128 trace_checksum;
    struct slu_u128 mask_checksum; /* 0 without masks */
    struct slu_u128 meta_checksum; /* 0 without metadata */
};

struct slu_batch {
    struct slu_seq *seq;
    size_t n_seq, cap_seq;
    struct slu_seg *seg;
    size_t n_seg, cap_seg;
    const void *tok; /* n_tok ids of tok_bytes each; NULL in a stream without tokens */
    uint64_t n_tok;
    unsigned tok_bytes;
    bool masks;         /* tok has marked ids; tok_bytes is 4 */
    bool marks_only;    /* with masks, in a stream without tokens: ids in tok are 0 */
    struct slu_buf own; /* memory of tok if the batch was built with slu_batch_add */
    struct slu_buf str; /* records' ids and metadata */

    struct slu_sum sum;    /* of the sequences as they now are, if sum_valid */
    struct slu_u128 order; /* slu_order_add of their trace hashes, if sum_valid */
    bool sum_valid; /* slu_batch_sum sets it; whoever edits seq or seg clears it */
    bool unsummed;  /* slu_batch_open left the sums to slu_batch_sum_parts */

    uint64_t number;         /* counted from 0 over all streams of the reader */
    uint32_t input;          /* index of the reader's path it comes from */
    struct slu_frames *raw;  /* private to lib/stream: frames as read */
    uint32_t member;         /* private to lib/stream: which concatenated stream */
    struct slu_sum sum_read; /* private to lib/stream: the sum as it was read */
    uint64_t n_late;         /* private to lib/stream: sequences for slu_reader_late */
    uint64_t n_drop;         /* private to lib/stream: values of metadata left out */
    struct slu_u128 order_read, names_read; /* private to stream_identity.c */
};

/* Makes an empty batch without masks; who makes one with masks sets the field. */
void slu_batch_init(struct slu_batch *b, unsigned tok_bytes);
void slu_batch_release(struct slu_batch *b);
/* Removes all sequences; keeps the memory. */
void slu_batch_clear(struct slu_batch *b);

/* Forgets the ids of all tokens, which b owns, and keeps marks: with masks the batch is
 * marks_only, else it has no tokens. */
void slu_batch_drop_ids(struct slu_batch *b);

/* Gives a batch without masks, which owns its tokens, masks: all tokens but padding are
 * trained on. */
SLU_MUST_USE int slu_batch_mark_all(struct slu_batch *b, struct slu_err *err);

/* As slu_batch_clear, but frees memory beyond that of a usual frame, which a long
 * sequence needed. */
void slu_batch_trim(struct slu_batch *b);

/* Keeps the first n sequences only. */
static inline void slu_batch_keep(struct slu_batch *b, size_t n)
{
    if (n < b->n_seq)
        b->sum_valid = false;
    b->n_seq = n;
}

/* Appends a copy of a sequence: its tokens (in the batch's width), its segments, and
 * their ids and metadata, at id_off in `ids`. Clears sum_valid. */
SLU_MUST_USE int slu_batch_add(struct slu_batch *b, const void *tok, uint64_t len_tok,
                               const struct slu_seg *seg, uint64_t n_seg,
                               const uint8_t *ids, struct slu_err *err);

/* Replaces the sequences of *out by copies of the first n sequences of b. */
SLU_MUST_USE int slu_batch_copy(struct slu_batch *out, const struct slu_batch *b,
                                size_t n, struct slu_err *err);

/* Computes sum and order, unless sum_valid. It is the costly part of a pass, so call it
 * where work is parallel. */
void slu_batch_sum(struct slu_batch *b);
/* As slu_batch_sum, where the slu_hash_tokens of each sequence are known. */
void slu_batch_sum_known(struct slu_batch *b, const struct slu_u128 *hash);

/* Sums an unsummed batch: its sequences, which are the batch's sum, and n others that
 * were taken out of it. late: the hashes of these follow (slu_reader_late); each has a
 * single segment, and no mask. */
void slu_batch_sum_parts(struct slu_batch *b, const struct slu_seq *out, size_t n,
                         bool late);

/* Returns the digest of a list from the digests of its beginning and of its last n
 * values. The digest of one value is the value. The digest is a polynomial mod 2^128,
 * so it does not depend on where the list is cut. */
struct slu_u128 slu_order_add(struct slu_u128 begin, uint64_t n, struct slu_u128 last);

/* Returns the identity of a segment list under a key: XXH3-128 of n_prefix (at most 32)
 * bytes, then source, document, offset and length of each segment (u64 little-endian).
 */
struct slu_u128 slu_hash_segments(const void *prefix, size_t n_prefix,
                                  const struct slu_seg *seg, uint64_t n_seg);

/* Returns the hash of the metadata of a sequence, whose segments' id_off are of `str`; h
 * is the hash of its ids. 0: it has none (STREAM.md section 7). */
struct slu_u128 slu_meta_hash(struct slu_u128 h, const struct slu_seg *seg,
                              uint64_t n_seg, const uint8_t *str);

/* Adds b to *a. */
void slu_sum_add(struct slu_sum *a, const struct slu_sum *b);
/* The checksum of ids and masks: see slu_batch_content. */
static inline struct slu_u128 slu_sum_content(const struct slu_sum *s)
{
    return slu_u128_add(s->checksum, s->mask_checksum);
}

/* Whether the batch has ids. */
static inline bool slu_batch_has_ids(const struct slu_batch *b)
{
    return b->tok && !b->marks_only;
}

/* Return the address of token i of the batch, to move it or its like; its id; and
 * whether it is trained on, which all tokens are without masks. */
static inline const void *slu_batch_at(const struct slu_batch *b, uint64_t i)
{
    return (const uint8_t *)b->tok + i * b->tok_bytes;
}
static inline uint32_t slu_batch_id(const struct slu_batch *b, uint64_t i)
{
    return b->tok_bytes == 2
               ? ((const uint16_t *)b->tok)[i]
               : ((const uint32_t *)b->tok)[i] & ~((uint32_t)b->masks << 31);
}
static inline bool slu_batch_trained(const struct slu_batch *b, uint64_t i)
{
    return !b->masks || ((const uint32_t *)b->tok)[i] & SLU_TRAINED;
}

/* Sets *ids to the plain ids, of tok_bytes bytes each, of the n tokens from token i on;
 * trained: of those that are trained on, which are all without masks. They are the batch's
 * own, or with masks a copy in `scratch`. *n_ids: their number; may be NULL for all. */
SLU_MUST_USE int slu_batch_ids(const struct slu_batch *b, uint64_t i, uint64_t n,
                               bool trained, struct slu_buf *scratch, const void **ids,
                               uint64_t *n_ids, struct slu_err *err);
/* Returns slu_hash_tokens of the n plain ids from token i on. */
struct slu_u128 slu_batch_hash(const struct slu_batch *b, uint64_t i, uint64_t n);
/* Returns that of sequence i, which keeps it. */
struct slu_u128 slu_seq_hash(struct slu_batch *b, size_t i);
/* Returns the hash by which what was read and what was written are compared:
 * slu_batch_hash, and with masks the hash of the mask added. The sum over all sequences
 * is slu_sum_content. */
struct slu_u128 slu_batch_content(const struct slu_batch *b, uint64_t i, uint64_t n);
/* Returns how many of the n tokens from token i on are trained on; 0 without masks. */
uint64_t slu_batch_loss(const struct slu_batch *b, uint64_t i, uint64_t n);

/* Returns an estimate of the batch's memory and output, in tokens. With short
 * sequences, rows, ids and output (a WebDataset member takes at least 1 KiB) outweigh
 * the tokens. */
static inline uint64_t slu_batch_weight(const struct slu_batch *b)
{
    return b->n_tok + 64 * b->n_seq + 16 * b->n_seg + b->str.len / 4;
}

/* Returns the mean score, weighted by tokens, of the segments with one; NaN: none. */
double slu_seq_score(const struct slu_batch *b, const struct slu_seq *q);

/* Returns the counts of a sequence: 1 sequence, its tokens and those trained on, its
 * documents (segments with offset 0). */
struct slu_count slu_seq_count(const struct slu_batch *b, const struct slu_seq *q);

SLU_END_DECLS

#endif
