/* shuffle_flow.h - the global shuffle as a flow (lib/flow/flow.h): in parts, each in a
 * process of its own, on any machine that sees the same work folder.
 *
 *   count    with a mix: part I of N writes, for each sequence, its place on the line
 *            of its source, and its tokens
 *   mix      with a mix: one job decides what each part takes
 *   count    with an order by score, or a number of tokens without a mix: part I of N
 *            writes, for each sequence, its place in the order, and its tokens; sorted
 *   cut      then: one job finds where bands, tokens and ranges end
 *   scatter  part I reads its stream (again, if it was counted) and writes what it
 *            takes, in the order of permute.h, in R ranges of keys for each bucket
 *   gather   range J of R of that order, as a stream, or as the shards that begin in it
 *   finish   for shards: one job completes the set
 *
 * Ranges 0 … R-1, one after another, equal the output of permute.h for the parts'
 * streams read as one. Scatter counts each range, so gather knows what comes before its
 * range.
 *
 * Nothing is lost silently: what scatter hands on must be what its part read, minus
 * what was left out; what gather reads of a range must be what was counted; what a set
 * of shards holds must be what all parts read (slu_shuffle_check).
 *
 * Thread safety: one thread at a time on a handle, except slu_shuffle_unpack.
 */
#ifndef SLU_SHUFFLE_FLOW_H
#define SLU_SHUFFLE_FLOW_H

#include "lib/flow/flow.h"
#include "lib/shuffle/permute.h"
#include "lib/stream/steps.h"

/* What is known before a sequence is placed: nothing; what a mix takes; or where an
 * order by score, or a number of tokens, ends. */
enum slu_shuffle_plan { SLU_SHUFFLE_PLAIN, SLU_SHUFFLE_MIX, SLU_SHUFFLE_CUT };
/* Returns the flow to shards (set) or to a stream. */
const struct slu_flow_spec *slu_shuffle_flow_spec(enum slu_shuffle_plan plan, bool set);

/* The counts of one part, or of several added up: what it read, left out and hands on.
 * The sums of parts are those of their union, except the stream's identity. */
struct slu_shuffle_account {
    struct slu_sum in;
    struct slu_u128 stream; /* slu_reader_identity; of several: all, in order */
    struct slu_permute_result result; /* result.out: sequences handed on */
    struct slu_u128 checksum;         /* of the sequences handed on */
};
/* SLU_E_CONSERVATION unless the sequences handed on are those read, less those left
 * out. */
SLU_MUST_USE int slu_shuffle_check(const struct slu_shuffle_account *b,
                                   struct slu_err *err);

/* The flow's ctx. */
struct slu_shuffle_flow {
    struct slu_permute_cfg cfg; /* set from slu_flow_cfg.begin on; budget: the flow's */
    struct slu_reader *reader;  /* slu_flow_cfg's */
    void *ctx;                  /* argument of the next three */
    void (*progress)(void *ctx, uint64_t n_tok);
    /* Scatter: called after reading; r tells what was left out. */
    int (*judge)(void *ctx, const struct slu_permute_result *r, struct slu_err *err);
    /* Gather, finish: writes the output. */
    int (*write)(void *ctx, struct slu_err *err);

    /* Scatter: the part's, also if its file existed; gather, finish: of all parts. */
    struct slu_shuffle_account account;
    struct slu_step_list steps; /* which made the streams of these parts */
    uint64_t spilled_byte;      /* in addition to the flow's own count */

    /* private: */
    struct slu_flow *flow;
    const struct slu_header *header;
    unsigned n_bucket;
    struct slu_shuffle_cell {
        struct slu_count n;
        struct slu_u128 checksum;
    } * cell; /* bucket by bucket: one per range */
    struct slu_shuffle_ranges {
        unsigned n_period;
        /* tokens before each period, scaled below 2^40 */
        uint64_t before[SLU_MIX_PERIODS + 1];
    } ranges;
    struct slu_u128 *quantile; /* of the order, after stage cut; not of bands */
    uint64_t *took;            /* by the mix, summed over all parts */
    unsigned bucket;
    struct slu_table *seq; /* the needed cells of `bucket` */
    uint64_t there, at;    /* sequences in these; sequences read */
    uint64_t skip[SLU_MAX_BUCKETS], want[SLU_MAX_BUCKETS];
    struct slu_shuffle_places {
        uint64_t per_tok, per_seq, begin, end;
        struct slu_count next; /* before the next sequence of the order */
        struct slu_count first;
        bool given; /* `first` is set */
    } places;       /* per_tok and per_seq 0: by numbers of sequences */
    struct slu_buf fetched;
};

/* Call in slu_flow_cfg.begin. h: borrowed as long as the stage runs. */
void slu_shuffle_begin(struct slu_shuffle_flow *q, const struct slu_header *h);
void slu_shuffle_release(struct slu_shuffle_flow *q);

/* ---- for gather's write ---- */

/* Returns the counts of a bucket's sequences in ranges below `range`. */
struct slu_count slu_shuffle_counts(const struct slu_shuffle_flow *q, unsigned bucket,
                                    uint64_t range);
/* Returns the number of these sequences. */
uint64_t slu_shuffle_before(const struct slu_shuffle_flow *q, unsigned bucket,
                            uint64_t range);
/* Gives the counts of the job's range. */
void slu_shuffle_range(const struct slu_shuffle_flow *q, struct slu_count *n,
                       struct slu_u128 *checksum);
/* Chooses what slu_shuffle_fetch reads. first NULL: the job's range. Otherwise n_seq[i]
 * sequences of bucket i from place first[i] of its order on, which is in the job's
 * range or after it. */
void slu_shuffle_read(struct slu_shuffle_flow *q, const uint64_t *first,
                      const uint64_t *n_seq);
/* The same for a flow without buckets: the sequences that begin at places begin … end -
 * 1, if each is per_seq + per_tok * its tokens long and they follow one another in the
 * order. `begin` is in the job's range or after it. */
void slu_shuffle_read_places(struct slu_shuffle_flow *q, uint64_t per_tok,
                             uint64_t per_seq, uint64_t begin, uint64_t end);
/* The counts of the order's sequences before the first that slu_shuffle_fetch gave. */
const struct slu_count *slu_shuffle_first(const struct slu_shuffle_flow *q);
/* slu_shuffle_next as slu_permute_next; the others are its halves: fetch (serial) puts
 * the records into `rec`, unpack (any thread) makes the batch. */
SLU_MUST_USE int slu_shuffle_fetch(struct slu_shuffle_flow *q, struct slu_pipe *pipe,
                                   struct slu_buf *rec, uint64_t n_tok,
                                   struct slu_err *err);
SLU_MUST_USE int slu_shuffle_unpack(const struct slu_shuffle_flow *q,
                                    const struct slu_buf *rec, struct slu_batch *b,
                                    struct slu_err *err);
SLU_MUST_USE int slu_shuffle_next(struct slu_shuffle_flow *q, struct slu_pipe *pipe,
                                  struct slu_batch *b, uint64_t n_tok,
                                  struct slu_err *err);

/* ---- for finish's write ---- */

/* Gives the mix's counts: *x, for each source, which the caller frees; and period,
 * n_period per bucket (slu_permute_period), zero at the call. */
SLU_MUST_USE int slu_shuffle_took(struct slu_shuffle_flow *q, struct slu_mixer **x,
                                  struct slu_count *period, struct slu_err *err);

#endif
