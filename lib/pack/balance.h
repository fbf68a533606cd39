/* balance.h - orders sequences so that all ranks of a trainer have about equal work in
 * every step.
 *
 * A *step* is ranks x per_rank sequences of one bucket, so that its tensors are
 * rectangular. Sequences r x per_rank … (r + 1) x per_rank - 1 of a step belong to rank
 * r. All ranks wait for the slowest one, so a step takes as long as the rank with the
 * greatest cost. The cost of a segment of l tokens is a x l + b x l^2: a for work on
 * single tokens, b for attention inside the document. The cost of a sequence is the sum
 * over its segments. Padding counts as tokens without attention. (For a transformer of
 * width h with causal attention, a : b is about 12 h : 1.)
 *
 * Each bucket's sequences are cut, in order of arrival, into *windows* of a fixed
 * number of steps. Sequences move only inside their window, which bounds both the
 * reordering and the memory. In a window
 *   1. sequences are dealt into bundles of per_rank, the costliest first, each to the
 *      bundle with the least cost that is not full (the longest-processing-time rule
 *      with equal counts; ties: the earliest sequence, the first bundle),
 *   2. bundles are sorted by cost, and neighbours form a step: where sequences are few
 *      and unlike, like goes with like,
 *   3. in a step, the costliest and the cheapest rank swap the two sequences that level
 *      them most, until no swap makes the costliest one cheaper,
 *   4. steps, and the ranks of each step, are put in the order of a keyed hash of
 *      (seed, bucket, window, step), so that cost neither drifts nor favours a rank. A
 *      rank's sequences stay in order of arrival.
 *
 * A window is written when it is full. At the end the full steps of unfinished windows
 * are written, bucket by bucket, and then the sequences of all buckets that fill no
 * step.
 *
 * WLB-LLM (arXiv 2503.17924), Skrull and FlexSP also move whole sequences between ranks
 * and nearby steps, with costs linear and quadratic in the lengths of documents and a
 * bounded reordering; they do so during training and by other means.
 *
 * Shuffle sequences first that come in order of length, as pack's bins do: windows keep
 * a drift that is longer than a window.
 *
 * The result depends on the sequences, their order and the cfg without budget_byte.
 * Units: lengths in tokens. Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_BALANCE_H
#define SLU_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

/* The default window has SLU_BALANCE_WINDOW sequences per rank, but at least
 * SLU_BALANCE_MIN_WINDOW steps. */
#define SLU_BALANCE_WINDOW     64
#define SLU_BALANCE_MIN_WINDOW 8

struct slu_balance_cfg {
    const struct slu_header *header; /* of the output; copied in part */
    uint64_t ranks;                  /* >= 1 */
    uint64_t sequences; /* per rank and step, in every bucket; 0: by step_tok */
    uint64_t step_tok;  /* tokens per step: per_rank = step_tok / (ranks x bucket) */
    uint64_t cost_tok, cost_square; /* a and b, not both 0 */
    uint64_t window;                /* steps; 0: the default */
    uint64_t seed;
    uint64_t budget_byte; /* for waiting sequences */
};

/* Costs of a number of steps. */
struct slu_balance_sum {
    uint64_t steps;
    double ratio; /* sum over steps of (max / mean over ranks) */
    double worst; /* the greatest ratio */
    double max;   /* sum of the steps' greatest costs: their time */
    double mean;  /* sum of the steps' mean costs: the time of even steps */
};

struct slu_balance_stat {
    struct slu_balance_sum before, after; /* steps as they arrived; as written */
    uint64_t remainder;                   /* sequences that fill no step */
};

struct slu_balance;

/* SLU_E_USAGE if ranks, sequences and step_tok, or both costs are 0. */
SLU_MUST_USE int slu_balance_new(struct slu_balance **b,
                                 const struct slu_balance_cfg *cfg,
                                 struct slu_err *err);
/* Checks cfg against all of the header's buckets, before anything is read. SLU_E_USAGE
 * if a step has no sequence for a rank, or if the numbers of a window are too large. */
SLU_MUST_USE int slu_balance_check(const struct slu_balance *b, struct slu_err *err);
/* Adds copies of the sequences of in, and writes windows that become full to w.
 * SLU_E_LIMIT, naming the options, if windows exceed the budget; SLU_E_MISMATCH if a
 * sequence has no bucket. */
SLU_MUST_USE int slu_balance_put(struct slu_balance *b, const struct slu_batch *in,
                                 struct slu_writer *w, struct slu_err *err);
/* Writes the remaining sequences. */
SLU_MUST_USE int slu_balance_end(struct slu_balance *b, struct slu_writer *w,
                                 struct slu_err *err);
/* Complete after slu_balance_end. */
struct slu_balance_stat slu_balance_stat(const struct slu_balance *b);
/* NULL is legal. */
void slu_balance_free(struct slu_balance *b);

/* ---- arithmetic on costs alone (balance_deal.c) ---- */

/* Does steps 1 to 3: order[(s * ranks + r) * per_rank + i] becomes the number of
 * sequence i of rank r of step s; steps and ranks go from costly to cheap. cost: of
 * n_step x ranks x per_rank sequences, fewer than 2^32, with a sum below 2^63. */
SLU_MUST_USE int slu_balance_deal(const uint64_t *cost, size_t n_step, size_t ranks,
                                  size_t per_rank, uint32_t *order,
                                  struct slu_err *err);
/* Does step 4: rearranges order. */
SLU_MUST_USE int slu_balance_mix(uint32_t *order, size_t n_step, size_t ranks,
                                 size_t per_rank, uint64_t seed, uint64_t bucket,
                                 uint64_t window, struct slu_err *err);
/* Adds the steps to *sum. order NULL: sequences in the order of their numbers. */
void slu_balance_measure(const uint64_t *cost, const uint32_t *order, size_t n_step,
                         size_t ranks, size_t per_rank, struct slu_balance_sum *sum);

SLU_END_DECLS

#endif
