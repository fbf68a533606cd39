/* decompose.h - dataset decomposition: documents cut into bucket lengths (Pouransari et
 * al., NeurIPS 2024, arXiv 2405.13226; DESIGN.md, Decomposition).
 *
 * Cutting acts on *runs*: neighbouring segments of a sequence that continue one another
 * in the same document. A document is one run; a packed sequence has several. Let n be
 * the length of the rest of the run, minus 1 with label tokens. While n >= the smallest
 * bucket, the largest bucket that fits is cut off the front. If n is at least twice the
 * largest bucket, the random split draws the bucket instead, P(L) proportional to 1/L
 * (equal expected tokens per bucket). Pieces do not overlap: with label tokens a piece
 * of bucket L has L + 1 ids. The last rest, too short for any bucket, is the tail.
 *
 * A draw depends only on (seed, source, document, offset of the cut in its document),
 * so threads, parts and batches cannot change it (DESIGN.md, Identity and order).
 *
 * Thread safety: a slu_decompose is read-only after slu_decompose_init; scratch and
 * statistics belong to one thread each.
 */
#ifndef SLU_DECOMPOSE_H
#define SLU_DECOMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/stream/account.h"
#include "lib/stream/batch.h"
#include "lib/stream/lengths.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

#define SLU_MAX_BUCKET_TOK (UINT64_C(1) << 40) /* longest bucket, in tokens */

/* A maximal stretch of one document in a sequence: contiguous in tokens and in the
 * document. */
struct slu_run {
    struct slu_seg seg; /* source, document, first offset, whole length, domain, id */
    uint64_t tok_off;   /* in tokens, in the batch's tok */
};

/* Gives the next run of sequence q; false at the end. *i: the next segment (start with
 * 0); *tok_off: its place (start with q->tok_off). Padding has source SLU_PADDING. */
bool slu_run_next(const struct slu_batch *b, const struct slu_seq *q, uint64_t *i,
                  uint64_t *tok_off, struct slu_run *run);

struct slu_decompose {
    uint64_t bucket[SLU_MAX_BUCKETS]; /* nominal, in tokens, strictly ascending */
    unsigned n_bucket;
    bool random; /* draw if n >= 2 * largest; false: greedy */
    bool label_tokens;
    bool drop_tails;      /* drop tails as "tail" instead of keeping them */
    uint64_t min_len_tok; /* shorter runs are dropped as "too-short"; 0: none */
    uint64_t max_len_tok; /* longer runs are dropped as "too-long"; 0: none */
    uint64_t seed;
    size_t max_rows; /* pieces of a batch; beyond: SLU_E_LIMIT; 0: unlimited */
    /* set by init: P(bucket i) = weight[i] / weight_sum */
    uint64_t weight[SLU_MAX_BUCKETS];
    uint64_t weight_sum;
};

/* Checks the buckets and computes the weights of the draws. SLU_E_USAGE if a bucket is
 * not greater than the one before, zero, or longer than SLU_MAX_BUCKET_TOK. */
SLU_MUST_USE int slu_decompose_init(struct slu_decompose *d, struct slu_err *err);

/* Returns the bucket's index for the next cut of a run with len_tok tokens left, or -1
 * if these are a tail. `offset`: position of the cut in the document, in tokens. */
int slu_decompose_next(const struct slu_decompose *d, uint64_t source,
                       uint64_t document, uint64_t offset, uint64_t len_tok);

/* Counts of cutting; those of two inputs can be summed. */
struct slu_decompose_stat {
    uint64_t runs, run_tok;          /* all runs, filtered ones included */
    uint64_t piece[SLU_MAX_BUCKETS]; /* sequences per bucket */
    uint64_t tails, tail_tok;        /* kept or dropped */
    uint64_t created;                /* pieces minus input sequences */
    uint64_t padding_tok;            /* padding of packed input, dropped */
    uint64_t padding_seq;            /* sequences of padding alone, dropped */
    struct slu_count tail_dropped, too_short, too_long;
};

void slu_decompose_stat_add(struct slu_decompose_stat *a,
                            const struct slu_decompose_stat *b);
/* Returns the tokens in bucket i, label tokens included. */
uint64_t slu_decompose_tokens(const struct slu_decompose *d,
                              const struct slu_decompose_stat *s, unsigned i);
/* Return the paper's appendix F figures of the bucket pieces: mean length sum(l)/N and
 * mean context sum(l(l-1))/(2 sum(l)), with l the bucket's nominal length. 0: no
 * pieces. */
double slu_decompose_mean_length(const struct slu_decompose *d,
                                 const struct slu_decompose_stat *s);
double slu_decompose_mean_context(const struct slu_decompose *d,
                                  const struct slu_decompose_stat *s);
/* Adds created and dropped sequences to the account; reader and writer add the rest. */
void slu_decompose_account(const struct slu_decompose_stat *s, struct slu_account *l);

/* Arrays for a batch's new rows; swapped with the batch's. */
struct slu_decompose_scratch {
    struct slu_seq *seq;
    size_t cap_seq;
    struct slu_seg *seg;
    size_t cap_seg;
    bool too_many;   /* SLU_E_LIMIT was due to max_rows */
    uint64_t source; /* source of the document where too_many was set */
};
void slu_decompose_scratch_release(struct slu_decompose_scratch *x);

/* Cuts every sequence of b in place: seq and seg are new rows, tok stays. Adds to *s.
 */
SLU_MUST_USE int slu_decompose_batch(const struct slu_decompose *d, struct slu_batch *b,
                                     struct slu_decompose_scratch *x,
                                     struct slu_decompose_stat *s, struct slu_err *err);

/* Adds to *s the greedy cut of `count` documents of len_tok tokens each, computed from
 * these numbers alone, so that a plan can compare buckets without reading again.
 * Filtered documents count as a whole. Ignores d->random. */
void slu_decompose_count(const struct slu_decompose *d, uint64_t len_tok,
                         uint64_t count, struct slu_decompose_stat *s);

/* Appends a table for people: the pieces of each bucket, tails and losses of s. If the
 * buckets are powers of two without gaps, also the results of other smallest and
 * largest buckets for the documents of hist (n rows), cut greedily. */
SLU_MUST_USE int slu_decompose_table(const struct slu_decompose *d,
                                     const struct slu_decompose_stat *s,
                                     const struct slu_length_count *hist, size_t n,
                                     struct slu_buf *text, struct slu_err *err);

SLU_END_DECLS

#endif
