/* permute_private.h - shared by permute.c (keys, one pass), permute_wait.c (orders that
 * need all sequences first), shuffle_flow.c, shuffle_cut.c and shuffle_gather.c. Private
 * to these.
 */
#ifndef SLU_PERMUTE_PRIVATE_H
#define SLU_PERMUTE_PRIVATE_H

#include "lib/flow/sorter.h"
#include "lib/flow/bytelog.h"
#include "lib/stream/seqrec.h"
#include "permute.h"
#include "select.h"

struct slu_permute {
    struct slu_permute_cfg cfg;
    char *tmpdir;
    struct slu_sorter *sorter; /* NULL while all sequences wait */
    struct slu_seqrec rec;
    struct slu_permute_result result;
    struct slu_buf fetched; /* records for slu_permute_next */
    uint64_t out_tok;       /* fetched so far */
    uint64_t borrowed_byte; /* slu_permute_borrowed */
    bool stopped;           /* max_tokens was reached */
    double dense;           /* see note_dense in permute.c */

    /* SLU_ORDER_KEEP: */
    uint64_t ordinal; /* of the next sequence */
    uint64_t room;    /* tokens that still fit */
    bool full;        /* a sequence did not fit */

    /* by_bucket with max_tokens: finds which sequences are within. */
    struct slu_select *select;
    struct slu_cut cut;

    /* For orders that need all sequences before the first is placed: */
    struct slu_mixer *mixer;
    struct slu_cut *band_end; /* n_band ends; of other orders in parts one, `fits` */
    struct slu_cut fits;      /* the end by max_tokens */
    struct slu_bytelog *wait; /* sequences of an input that cannot be read again */
    /* of all waiting records; of the largest; of files */
    uint64_t wait_byte, max_rec, waited_byte;
    struct slu_count *period; /* max(n_bucket, 1) x periods */
    bool second;              /* in pass 2 */

    /* In parts (shuffle_flow.c): if planned, what is taken is known before, and there
     * is only pass 2; if row is set, there is only pass 1, and its rows go to row. */
    bool planned;
    int (*row)(void *ctx, unsigned source, struct slu_u128 line, struct slu_count n,
               struct slu_err *err);
    void *row_ctx;
    /* NULL, or called for each sequence of the sorter. hash: of its tokens. */
    void (*put)(void *ctx, unsigned bucket, struct slu_u128 key, struct slu_count n,
                struct slu_u128 hash);
    void *put_ctx;

    struct slu_reader *input; /* slu_permute_pass: NULL at its end */
    struct slu_sum *total;

    /* While reading: */
    const struct slu_header *header;
    uint64_t packed_byte; /* only smaller sequences are packed early */
    uint64_t packed_most; /* about the most bytes packed early per batch */
    void (*progress)(void *ctx, uint64_t n_tok);
    void *progress_ctx;
    uint64_t n_tok;
};

enum slu_verdict { TAKE, NOT_SAMPLED, NO_BUCKET, NO_SOURCE };

/* A worker's findings on a sequence. */
struct slu_judged {
    struct slu_u128 key; /* TAKE: place in the order; otherwise: the tokens' hash */
    uint32_t verdict;
    uint16_t bucket;
    bool packed; /* the worker made its record */
};
/* More findings, in an array after the first, for waiting sequences or with put. */
struct slu_mark {
    struct slu_u128 hash; /* of its tokens */
    struct slu_u128 line; /* place on the line of its source */
    int source;
};

/* Whether stages before this one find the ends of what is taken (shuffle_cut.c). */
static inline bool slu_permute_counted(const struct slu_permute_cfg *cfg)
{
    return cfg->flow && !cfg->mix &&
           (cfg->order > SLU_ORDER_KEEP || cfg->max_tokens != UINT64_MAX);
}
static inline bool slu_permute_waits(const struct slu_permute *p)
{
    return p->mixer || p->cfg.order == SLU_ORDER_BANDS || slu_permute_counted(&p->cfg);
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
/* Maps a key into group `i` of n: groups follow one another, spread over the whole
 * range as the sorter needs. Up to n neighbouring keys become equal. */
struct slu_u128 slu_permute_in_group(struct slu_u128 key, unsigned i, unsigned n);
/* Returns a key in the order of scores, ties by key. */
struct slu_u128 slu_permute_score_key(double score, struct slu_u128 key,
                                      bool descending);
/* Decides on a sequence. m: NULL, or its mark, to be set. */
void slu_permute_judge(struct slu_permute *p, const struct slu_batch *b,
                       const struct slu_seq *q, struct slu_judged *j,
                       struct slu_mark *m);
/* Where sequences are counted that are left out for this reason. */
struct slu_count *slu_permute_left(struct slu_permute_result *r, uint32_t verdict);
/* slu_permute_next of an order that passes. */
SLU_MUST_USE int slu_permute_passed(struct slu_permute *p, struct slu_pipe *pipe,
                                    struct slu_batch *b, struct slu_err *err);
/* Takes room for n_byte of sequences, and for what is made of them (a text of ids and
 * masks: three times as much), if that is more than every job has. pipe may be NULL. */
void slu_permute_take_room(struct slu_pipe *pipe, uint64_t n_byte);
/* The place in the order, in a repeat; of bands the place within one. */
struct slu_u128 slu_permute_order_key(const struct slu_permute *p,
                                      const struct slu_batch *b,
                                      const struct slu_seq *q, uint64_t repeat);
/* Puts sequence q of b into the sorter, as repeat `repeat`. m: its mark, or NULL. */
SLU_MUST_USE int slu_permute_put(struct slu_permute *p, const struct slu_batch *b,
                                 const struct slu_seq *q, const struct slu_judged *j,
                                 const struct slu_mark *m, uint64_t repeat,
                                 unsigned period, struct slu_err *err);
/* Do pass 1's and pass 2's work for one sequence. */
SLU_MUST_USE int slu_permute_await(struct slu_permute *p, const struct slu_batch *b,
                                   const struct slu_seq *q, const struct slu_mark *m,
                                   struct slu_err *err);
SLU_MUST_USE int slu_permute_place(struct slu_permute *p, const struct slu_batch *b,
                                   const struct slu_seq *q, const struct slu_judged *j,
                                   const struct slu_mark *m, struct slu_err *err);
/* After pass 1: plans, and reads all sequences again for pass 2. */
SLU_MUST_USE int slu_permute_again(struct slu_permute *p,
                                   const struct slu_side_ops *ops, unsigned n_slots,
                                   const struct slu_sum *total, struct slu_err *err);
/* Replaces pass 1 if p->planned is set. */
SLU_MUST_USE int slu_permute_begin_planned(struct slu_permute *p, struct slu_err *err);
void slu_permute_mark(struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q, struct slu_judged *j,
                      struct slu_mark *m);
SLU_MUST_USE int slu_permute_wait_new(struct slu_permute *p, struct slu_err *err);
void slu_permute_wait_release(struct slu_permute *p);

#endif
