/* shuffle_flow.h - the global shuffle as a flow (lib/flow/flow.h): in parts, each in a
 * process of its own, on any machine that sees the same work folder.
 *
 *   count    part I of N, with a mix: of each sequence its place on the line of its
 *            source, and its tokens
 *   mix      one job, with a mix: what each part takes
 *   scatter  part I reads its stream, again if there is a mix: what it takes, in the
 *            order of permute.h, R ranges of keys of each bucket
 *   gather   range J of R of that order, as a stream, or the shards that begin in it
 *   finish   one job, of shards: the set
 *
 * Ranges 0 … R-1 one behind another are what permute.h gives for the parts' streams as
 * one. What precedes a range is known, as scatter counts what is in each.
 *
 * Nothing is lost in silence: what scatter hands on must be what its part read, less
 * what was left out; what is read of a range must be what was counted; what a set of
 * shards holds must be what all parts read (slu_shuffle_check).
 *
 * Thread safety: one thread at a time on a handle, slu_shuffle_unpack apart.
 */
#ifndef SLU_SHUFFLE_FLOW_H
#define SLU_SHUFFLE_FLOW_H

#include "lib/flow/flow.h"
#include "lib/shuffle/permute.h"

/* The flow with a mix or without, of shards or of a stream. */
const struct slu_flow_spec *slu_shuffle_flow_spec(bool mix, bool set);

/* What parts read, what became of it, and what they hand on. Sums of sums are sums of
 * the union, but for the stream's identity. */
struct slu_shuffle_books {
    struct slu_sum in;
    struct slu_u128 stream;           /* slu_reader_identity; of many: all, in order */
    struct slu_permute_result result; /* out: of what is handed on */
    struct slu_u128 checksum;         /* of its sequences */
};
/* SLU_E_CONSERVATION unless that is what was read, less what was left out. */
SLU_MUST_USE int slu_shuffle_check(const struct slu_shuffle_books *b,
                                   struct slu_err *err);

/* The flow's ctx. */
struct slu_shuffle_flow {
    struct slu_permute_cfg
        cfg; /* from slu_flow_cfg.begin on; the budget is the flow's */
    struct slu_reader *reader; /* that of slu_flow_cfg */
    void *ctx;                 /* of the next four */
    /* " key=value …": what decides the result. */
    int (*words)(const void *ctx, struct slu_buf *t, struct slu_err *err);
    void (*progress)(void *ctx, uint64_t n_tok);
    /* Scatter: all was read, and r tells what was left out. */
    int (*judge)(void *ctx, const struct slu_permute_result *r, struct slu_err *err);
    /* Gather, finish: writes what there is. */
    int (*write)(void *ctx, struct slu_err *err);

    /* Of scatter, whether it was there already or not; later of all parts. */
    struct slu_shuffle_books books;
    uint64_t spilled_byte; /* beside what the flow reports */

    /* private: */
    struct slu_flow *flow;
    const struct slu_header *header;
    unsigned n_bucket;
    struct slu_shuffle_cell {
        struct slu_count n;
        struct slu_u128 checksum;
    } * cell; /* of each bucket those of all ranges */
    struct slu_shuffle_ranges {
        unsigned n_period;
        uint64_t before[SLU_MIX_PERIODS + 1]; /* of periods, below 2^40 */
    } ranges;
    uint64_t *took; /* by the mix, of all parts added up */
    unsigned bucket;
    struct slu_table
        *seq;           /* its cells that are needed, which have so many sequences; */
    uint64_t there, at; /* those that were read */
    uint64_t skip[SLU_MAX_BUCKETS], want[SLU_MAX_BUCKETS];
    struct slu_buf fetched;
};

/* In slu_flow_cfg.begin. h: borrowed for as long as the stage runs. */
void slu_shuffle_begin(struct slu_shuffle_flow *q, const struct slu_header *h);
void slu_shuffle_release(struct slu_shuffle_flow *q);

/* ---- gather's write ---- */

/* Of a bucket: sequences in ranges below `range`. */
uint64_t slu_shuffle_before(const struct slu_shuffle_flow *q, unsigned bucket,
                            uint64_t range);
/* What is in the range. */
void slu_shuffle_range(const struct slu_shuffle_flow *q, struct slu_count *n,
                       struct slu_u128 *checksum);
/* first NULL: the range is read; else of bucket i n_seq[i] sequences from place
 * first[i] of its order on, which is not before the range, but may be behind it. */
void slu_shuffle_read(struct slu_shuffle_flow *q, const uint64_t *first,
                      const uint64_t *n_seq);
/* As slu_permute_fetch, slu_permute_open and slu_permute_next. */
SLU_MUST_USE int slu_shuffle_fetch(struct slu_shuffle_flow *q, struct slu_buf *rec,
                                   uint64_t n_tok, struct slu_err *err);
SLU_MUST_USE int slu_shuffle_unpack(const struct slu_shuffle_flow *q,
                                    const struct slu_buf *rec, struct slu_batch *b,
                                    struct slu_err *err);
SLU_MUST_USE int slu_shuffle_next(struct slu_shuffle_flow *q, struct slu_batch *b,
                                  uint64_t n_tok, struct slu_err *err);

/* ---- finish's write ---- */

/* What the mix took of each source, *x, which the caller frees, and of each bucket in
 * each period (slu_permute_period): period, n_period a bucket, zero at first. */
SLU_MUST_USE int slu_shuffle_took(struct slu_shuffle_flow *q, struct slu_mixer **x,
                                  struct slu_count *period, struct slu_err *err);

#endif
