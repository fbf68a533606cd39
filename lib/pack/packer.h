/* packer.h - the bin of every item: methods that plan from the length histogram, and
 * concat-and-chunk as the baseline.
 *
 * Best-fit decreasing places items longest first, and items of one length in order of
 * their rank (their number among the items of that length, by arrival). Each item goes
 * into the bin with the smallest room that is enough; ties go to the bin opened first,
 * and if no bin has room a new one is opened. Bins with the same history lie side by
 * side, so the plan stores them as groups: solving costs O(groups), not O(items), and
 * gives exactly the result of the plain algorithm (DESIGN.md, Packing; the histogram
 * idea is from arXiv 2107.02027, best-fit decreasing for documents from arXiv
 * 2404.10830).
 *
 * A *group* is a step: `count` bins, taken from the front of the remaining bins of
 * group `parent` (or newly opened), take `repeat` items of len_tok each. A bin's
 * content is its last group, that group's parent, and so on. {count, parent, len_tok,
 * repeat, capacity} is the whole plan; the other fields follow from these.
 *
 * Invariants of every method's plan, so that users of a plan need not know the method:
 * - groups are ordered by length, descending; those of one length are contiguous, in
 *   the order of first_rank, and take each rank of the length once;
 * - a parent comes before its children, which have other lengths or follow it in the
 *   order of ranks; children take bins from the front, in their order;
 * - groups that open bins do so in their order; no bin is empty;
 * - all bins of a group hold the same items: capacity - room - repeat * len_tok ids
 *   before the group's own.
 *
 * Units: lengths, room and capacity in tokens; bins, items and ranks are counts from 0.
 * Thread safety: a plan is read-only once made.
 */
#ifndef SLU_PACKER_H
#define SLU_PACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/lengths.h"

SLU_BEGIN_DECLS

#define SLU_PACK_OPENED     UINT32_MAX          /* parent of a group of new bins */
#define SLU_MAX_CAPACITY    (UINT64_C(1) << 26) /* tokens per bin */
#define SLU_NNLSHP_CAPACITY 2048 /* tokens per bin, for SLU_PACK_NNLSHP */

enum slu_pack_method {
    SLU_PACK_BFD,    /* best-fit decreasing */
    SLU_PACK_FFD,    /* first-fit decreasing */
    SLU_PACK_SPFHP,  /* shortest pack first, arXiv 2107.02027 */
    SLU_PACK_LPFHP,  /* longest pack first, arXiv 2107.02027 */
    SLU_PACK_NNLSHP, /* least squares, arXiv 2107.02027 (pack_nnls.h) */
    SLU_PACK_MULTI,  /* bins of several lengths, arXiv 2407.07495 */
    SLU_PACK_CONCAT, /* concat-and-chunk: cuts items and has no plan */
    SLU_PACK_METHODS
};
/* Names as options spell them: SLU_PACK_METHODS names, then NULL. */
extern const char *const slu_pack_method_name[SLU_PACK_METHODS + 1];

struct slu_pack_cfg {
    uint64_t capacity;   /* ids per bin, 1 … SLU_MAX_CAPACITY */
    uint64_t max_items;  /* per bin; 0: unlimited */
    uint64_t max_groups; /* beyond: SLU_E_LIMIT; 0: 2^31 - 1 */
    /* For bins of several lengths: their lengths in ids, ascending, the last ==
     * capacity (borrowed); and the share of a bin that may be padding. */
    const uint64_t *bin_tok;
    size_t n_bin_tok;
    double padding_threshold;
};

struct slu_pack_plan;

/* The properties of a method. A new method needs a number above, and
 * in packer.c a name and a row. */
struct slu_pack_kind {
    /* As slu_pack_solve. NULL: the method cuts items at bins' ends, without a plan. */
    int (*solve)(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                 size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err);
    /* SLU_E_USAGE if bins of `capacity` ids are too long; NULL: no limit. */
    int (*check)(uint64_t capacity, struct slu_err *err);
    bool several; /* has bins of several lengths: uses bin_tok and padding_threshold */
    bool cubic;   /* takes time in capacity^3, which check limits */
};
extern const struct slu_pack_kind slu_pack_kind[SLU_PACK_METHODS];

/* Whether the method cuts items at the ends of bins, and makes no plan. */
static inline bool slu_pack_cuts(enum slu_pack_method method)
{
    return !slu_pack_kind[method].solve;
}

/* Returns the ids that a bin may lack: all that a plan uses of the threshold. */
uint64_t slu_pack_tolerance(double padding_threshold, uint64_t capacity);

struct slu_pack_group {
    uint64_t count;
    uint64_t len_tok;
    uint64_t repeat;
    uint64_t first_bin;
    uint64_t first_rank; /* rank of the first item that this group takes */
    uint64_t room;       /* left in each bin after this group, in tokens */
    uint64_t slot;       /* items in each bin before this group */
    uint64_t taken;      /* bins, from the front, that children took */
    uint64_t capacity;   /* ids per bin */
    uint32_t parent;
    uint32_t left, right, rank; /* private to the solver */
};

struct slu_pack_plan {
    uint64_t capacity; /* ids of the longest bins */
    uint64_t n_bin, n_item, n_tok;
    struct slu_pack_group *group; /* in order of solving */
    size_t n_group, cap_group;
    struct slu_pack_length { /* lengths, descending, each with its first group */
        uint64_t len_tok;
        size_t first_group;
    } * length;
    size_t n_length;
};

/* Plans by best-fit decreasing. hist: n rows, ascending lengths in 1 … capacity.
 * max_items: limit per bin; 0: unlimited. SLU_E_USAGE if a row is out of range,
 * SLU_E_LIMIT if the tokens exceed 64 bits. Caller frees with slu_pack_plan_free. */
SLU_MUST_USE int slu_pack_bfd(struct slu_pack_plan **plan,
                              const struct slu_length_count *hist, size_t n,
                              uint64_t capacity, uint64_t max_items,
                              struct slu_err *err);
/* Plans by `method`. hist: as for slu_pack_bfd. SLU_E_USAGE if a row is out of range,
 * or if the method has no plan, or none for this cfg. Caller frees with
 * slu_pack_plan_free. */
SLU_MUST_USE int slu_pack_solve(struct slu_pack_plan **plan,
                                enum slu_pack_method method,
                                const struct slu_length_count *hist, size_t n,
                                const struct slu_pack_cfg *cfg, struct slu_err *err);
void slu_pack_plan_free(struct slu_pack_plan *plan);

/* Returns the index of a length in plan->length, or n_length if it is absent. */
size_t slu_pack_find(const struct slu_pack_plan *plan, uint64_t len_tok);
/* Gives the bin of an item, and its place there. i: index of its length; both i and
 * rank must be in the plan. */
void slu_pack_place(const struct slu_pack_plan *plan, size_t i, uint64_t rank,
                    uint64_t *bin, uint64_t *slot);

/* Bins that hold the same lengths and lie side by side. */
struct slu_pack_interval {
    uint64_t first_bin, count;
    uint64_t first_item, items; /* items in earlier bins; items per bin */
    uint64_t first_tok;         /* ids in earlier bins, padding included */
    uint64_t capacity, room;    /* ids per bin; unfilled ones among them */
    uint32_t group;             /* the last group of these bins */
};
/* Lists all bins, in order: a malloc'd array that the caller frees with free().
 * O(groups). SLU_E_LIMIT if positions in the packed tokens exceed 64 bits. */
SLU_MUST_USE int slu_pack_intervals(const struct slu_pack_plan *plan,
                                    struct slu_pack_interval **row, size_t *n,
                                    struct slu_err *err);

/* For concat-and-chunk: finds bin and offset of the next piece of an item. position: of
 * the piece in the concatenation; len_tok: tokens left of the item. Returns the piece's
 * length, which ends with the item or the bin. */
static inline uint64_t slu_pack_chunk(uint64_t position, uint64_t len_tok,
                                      uint64_t capacity, uint64_t *bin,
                                      uint64_t *offset)
{
    *bin = position / capacity;
    *offset = position % capacity;
    return len_tok < capacity - *offset ? len_tok : capacity - *offset;
}

/* Totals of a plan, or of several plans (one per domain) by slu_pack_sum_add. */
struct slu_pack_sum {
    uint64_t items, tok;
    uint64_t cut; /* items cut to fit */
    uint64_t bins;
    uint64_t ids;      /* in all bins, filled or not */
    uint64_t full;     /* bins without padding */
    uint64_t full_tok; /* tokens in them */
    uint64_t bound;    /* lower bound for bins: ceil(tok / capacity) */
    uint64_t groups;
    uint64_t most; /* items in the fullest bin; plans only */
};

void slu_pack_sum_add(struct slu_pack_sum *a, const struct slu_pack_sum *b);
struct slu_pack_sum slu_pack_plan_sum(const struct slu_pack_plan *plan);
struct slu_pack_sum slu_pack_concat_sum(uint64_t items, uint64_t tok, uint64_t cut,
                                        uint64_t capacity);
/* Returns tokens / ids of the bins; 1 without bins. */
double slu_pack_fill(const struct slu_pack_sum *s);

SLU_END_DECLS

#endif
