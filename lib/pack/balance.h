/* balance.h - sequences in an order in which the ranks of a trainer have equally much
 * to do in every step.
 *
 * A *step* is ranks x per_rank sequences of one bucket, so that its tensors are
 * rectangular; the sequences at r x per_rank … (r + 1) x per_rank - 1 of a step are
 * those of rank r. All ranks wait for the slowest, so a step takes as long as the rank
 * with the greatest cost. The cost of a segment of l tokens is a x l + b x l^2: what
 * acts on tokens one by one, and attention inside the document; of a sequence, the sum
 * over its segments. Padding counts as tokens that attend to nothing. (For a
 * transformer of width h with causal attention, a : b is about 12 h : 1.)
 *
 * Each bucket's sequences, in the order of their arrival, are cut into *windows* of a
 * fixed number of steps, and only inside a window are they rearranged: the reordering
 * is bounded, and what is held in memory is too. In a window
 *   1. sequences are dealt into bundles of per_rank, the costliest first, each to the
 *      bundle with the least cost that is not full (the longest-processing-time rule
 * with equal counts; ties: the earliest sequence, the first bundle),
 *   2. bundles are sorted by cost, and neighbours form a step: where sequences are few
 *      and unlike, like goes with like,
 *   3. in a step, the costliest and the cheapest rank swap the two sequences that level
 *      them most, until no swap makes the costliest cheaper,
 *   4. steps, and in each the ranks, come in the order of a keyed hash of (seed,
 * bucket, window, step), so that cost neither drifts nor favours a rank; a rank's
 * sequences are in order of arrival. A window is written when it is full; at the end,
 * by bucket, what is left of windows: the full steps first, then of all buckets what
 * makes no step.
 *
 * That whole sequences are moved among ranks and nearby steps, costs are linear and
 * quadratic in the lengths of documents, and the reordering is bounded is as in WLB-LLM
 * (arXiv 2503.17924), Skrull and FlexSP, which do it while training and with other
 * means.
 *
 * Sequences that come in order of length (pack's bins do) are to be shuffled first:
 * windows keep a drift that is longer than they are.
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

/* Unless said otherwise a window has so many sequences of each rank, and so many steps
 * at least. */
#define SLU_BALANCE_WINDOW     64
#define SLU_BALANCE_MIN_WINDOW 8

struct slu_balance_cfg {
    const struct slu_header *header; /* of what is written; copied in part */
    uint64_t ranks;                  /* >= 1 */
    uint64_t sequences;              /* per_rank of every bucket; 0: by step_tok */
    uint64_t step_tok;               /* per_rank = step_tok / (ranks x bucket) */
    uint64_t cost_tok, cost_square;  /* a and b, not both 0 */
    uint64_t window;                 /* steps; 0: by the rule above */
    uint64_t seed;
    uint64_t budget_byte; /* what is held */
};

/* Costs of some steps. */
struct slu_balance_sum {
    uint64_t steps;
    double ratio; /* max / mean over ranks, added up over steps */
    double worst; /* the greatest ratio */
    double max;   /* max, added up: what the steps take */
    double mean;  /* mean, added up: what they would take if all were even */
};

struct slu_balance_stat {
    struct slu_balance_sum before, after; /* in order of arrival; as written */
    uint64_t remainder;                   /* sequences that make no step */
};

struct slu_balance;

/* SLU_E_USAGE where cfg makes no sense. */
SLU_MUST_USE int slu_balance_new(struct slu_balance **b,
                                 const struct slu_balance_cfg *cfg,
                                 struct slu_err *err);
/* SLU_E_USAGE where cfg makes no sense for one of the header's buckets, whether or not
 * it has sequences: known before anything is read. */
SLU_MUST_USE int slu_balance_check(const struct slu_balance *b, struct slu_err *err);
/* Takes the sequences of in, copied, and writes the windows that become full to w.
 * SLU_E_LIMIT, naming the options, where windows do not fit the budget. */
SLU_MUST_USE int slu_balance_put(struct slu_balance *b, const struct slu_batch *in,
                                 struct slu_writer *w, struct slu_err *err);
/* Writes the rest. */
SLU_MUST_USE int slu_balance_end(struct slu_balance *b, struct slu_writer *w,
                                 struct slu_err *err);
/* Whole after slu_balance_end. */
struct slu_balance_stat slu_balance_stat(const struct slu_balance *b);
/* NULL is legal. */
void slu_balance_free(struct slu_balance *b);

/* ---- the parts that know numbers only (balance_deal.c) ---- */

/* 1 to 3: order[(s * ranks + r) * per_rank + i] is the sequence number i of rank r of
 * step s, steps and ranks from costly to cheap. cost: n_step x ranks x per_rank, less
 * than 2^32 of them, whose sum is below 2^63. */
SLU_MUST_USE int slu_balance_deal(const uint64_t *cost, size_t n_step, size_t ranks,
                                  size_t per_rank, uint32_t *order,
                                  struct slu_err *err);
/* 4: rearranges order. */
SLU_MUST_USE int slu_balance_mix(uint32_t *order, size_t n_step, size_t ranks,
                                 size_t per_rank, uint64_t seed, uint64_t bucket,
                                 uint64_t window, struct slu_err *err);
/* Adds the steps to *sum; order NULL: sequences as they are numbered. */
void slu_balance_measure(const uint64_t *cost, const uint32_t *order, size_t n_step,
                         size_t ranks, size_t per_rank, struct slu_balance_sum *sum);

SLU_END_DECLS

#endif
