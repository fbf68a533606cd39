/* permute_private.h - what permute.c (keys, one pass) and permute_wait.c (orders that
 * need to know everything first) share. Private to them.
 */
#ifndef SLU_PERMUTE_PRIVATE_H
#define SLU_PERMUTE_PRIVATE_H

#include "lib/flow/sorter.h"
#include "lib/flow/spool.h"
#include "lib/stream/seqrec.h"
#include "lib/stream/sidecar.h"
#include "permute.h"
#include "select.h"

struct slu_permute {
    struct slu_permute_cfg cfg;
    char *tmpdir;
    struct slu_sorter *sorter; /* NULL while all wait */
    struct slu_seqrec rec;
    struct slu_permute_result result;
    struct slu_buf fetched; /* of slu_permute_next */
    uint64_t out_tok;       /* fetched so far */
    uint64_t borrowed_byte; /* slu_permute_borrowed */
    bool stopped;           /* max_tokens was reached */
    bool lends;             /* records are not copied where the sorter can hold them */
    double dense;           /* see note_dense */

    /* SLU_ORDER_KEEP: */
    uint64_t ordinal; /* of the next sequence */
    uint64_t room;    /* tokens that still fit; */
    bool full;        /* the one that did not was met */

    /* by_bucket and max_tokens: which of them are within, bucket or not. */
    struct slu_select *select;
    struct slu_cut cut;

    /* Where all sequences must be known before the first has its place: */
    struct slu_mixer *mixer;
    struct slu_cut *band_end; /* n_band - 1 of them, */
    struct slu_cut fits;      /* and what max_tokens lets in */
    struct slu_spool *wait;   /* of sequences that cannot be read again */
    uint64_t wait_byte, max_rec, waited_byte; /* in all, of one, of the file */
    struct slu_count *period;                 /* n_bucket (at least 1) x periods */
    bool second;                              /* pass */

    /* In parts (shuffle_flow.c): what is taken is known before, so there is one pass,
     * the second; or pass 1 alone, whose rows go elsewhere. */
    bool planned;
    int (*row)(void *ctx, unsigned source, struct slu_u128 line, struct slu_count n,
               struct slu_err *err);
    void *row_ctx;
    /* And who is told of what goes to the sorter, the hash of its tokens with it. */
    void (*put)(void *ctx, unsigned bucket, struct slu_u128 key, struct slu_count n,
                struct slu_u128 hash);
    void *put_ctx;

    /* While reading: */
    const struct slu_header *header;
    struct slu_sidecar verdicts;
    struct slu_sidecar records; /* of a batch, as the sorter takes them; */
    uint64_t packed_byte;       /* those that are no larger, */
    uint64_t packed_most;       /* and no more of them than about so many bytes */
    void (*progress)(void *ctx, uint64_t n_tok);
    void *progress_ctx;
    uint64_t n_tok;
};

enum slu_verdict { TAKE, NOT_SAMPLED, NO_BUCKET, NO_SOURCE };

/* What a worker finds out about a sequence. */
struct slu_judged {
    struct slu_u128 key; /* TAKE: its place in the order; else: the tokens' hash */
    uint32_t verdict;
    uint16_t bucket;
    bool packed; /* its record is among those that the worker made */
};
/* And where all wait, or somebody is told, in a second array behind the first. */
struct slu_mark {
    struct slu_u128 hash; /* of its tokens */
    struct slu_u128 line; /* its place on the line of its source */
    int source;
};

static inline bool slu_permute_waits(const struct slu_permute *p)
{
    return p->mixer || p->cfg.order == SLU_ORDER_BANDS;
}
static inline bool slu_permute_marked(const struct slu_permute *p)
{
    return slu_permute_waits(p) || p->put;
}
static inline unsigned slu_permute_n_period(const struct slu_permute *p)
{
    return p->mixer                          ? p->cfg.mix->n_period
           : p->cfg.order == SLU_ORDER_BANDS ? p->cfg.n_band
                                             : 1;
}
static inline struct slu_mark *slu_permute_marks(struct slu_judged *j, size_t n)
{
    return (struct slu_mark *)(void *)(j + n);
}

struct slu_u128 slu_permute_hash(const char what[8], uint64_t seed, uint64_t repeat,
                                 const struct slu_seg *seg, uint64_t n_seg);
/* Keys in the order of scores, ties by key. */
struct slu_u128 slu_permute_score_key(double score, struct slu_u128 key,
                                      bool descending);
/* Puts sequence q of b, for the time of number `repeat`, into the sorter. m: its mark,
 * where it has one. */
SLU_MUST_USE int slu_permute_put(struct slu_permute *p, const struct slu_batch *b,
                                 const struct slu_seq *q, const struct slu_judged *j,
                                 const struct slu_mark *m, uint64_t repeat,
                                 unsigned period, struct slu_err *err);
/* The marks of a batch, and pass 1's and pass 2's parts for one sequence. */
SLU_MUST_USE int slu_permute_await(struct slu_permute *p, const struct slu_batch *b,
                                   const struct slu_seq *q, const struct slu_mark *m,
                                   struct slu_err *err);
SLU_MUST_USE int slu_permute_place(struct slu_permute *p, const struct slu_batch *b,
                                   const struct slu_seq *q, const struct slu_judged *j,
                                   const struct slu_mark *m, struct slu_err *err);
/* After pass 1: plans, and goes through everything again with `emit`. */
SLU_MUST_USE int slu_permute_again(struct slu_permute *p,
                                   const struct slu_stream_ops *ops, unsigned n_slots,
                                   const struct slu_sum *total, struct slu_err *err);
/* Instead of pass 1, with p->planned. */
SLU_MUST_USE int slu_permute_begin_planned(struct slu_permute *p, struct slu_err *err);
void slu_permute_mark(struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q, struct slu_judged *j,
                      struct slu_mark *m);
SLU_MUST_USE int slu_permute_wait_new(struct slu_permute *p, struct slu_err *err);
void slu_permute_wait_release(struct slu_permute *p);

#endif
