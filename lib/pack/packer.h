/* packer.h - which bin every item goes to: methods that plan from the length histogram,
 * and concat-and-chunk as the baseline.
 *
 * Best-fit decreasing places items longest first, items of one length in order of their
 * rank (their number among the items of that length, as they arrive), each into the bin
 * with the smallest room that is enough; ties go to the bin that was opened first, and
 * where no bin has room a new one is opened. Bins that were treated alike lie side by
 * side, so the plan is kept as groups of them: solving costs O(groups), not O(items),
 * and gives exactly what the plain algorithm gives (DESIGN.md, Packing; the histogram
 * idea is that of arXiv 2107.02027, best-fit decreasing for documents that of arXiv
 * 2404.10830).
 *
 * A *group* is a step: `count` bins, taken from the front of what is left of group
 * `parent` (or opened), take `repeat` items of len_tok each. A bin's content is its
 * last group, that group's parent, and so on. {count, parent, len_tok, repeat,
 * capacity} is the whole plan; the other fields follow from it.
 *
 * What holds for the plan of every method, so that whatever uses one needs not know
 * which it is:
 * - groups are ordered by length, descending; those of a length are contiguous, in the
 *   order of first_rank, and take each rank of the length once;
 * - a parent comes before its children, which have other lengths or follow it in the
 *   order of ranks; children take bins from the front, in their order;
 * - groups that open bins do so in their order; no bin is empty;
 * - all bins of a group have had the same items: capacity - room - repeat * len_tok
 * ids.
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
#define SLU_MAX_CAPACITY    (UINT64_C(1) << 26) /* tokens a bin */
#define SLU_NNLSHP_CAPACITY 2048                /* the same for SLU_PACK_NNLSHP */

enum slu_pack_method {
    SLU_PACK_BFD,    /* best-fit decreasing */
    SLU_PACK_FFD,    /* first-fit decreasing */
    SLU_PACK_SPFHP,  /* shortest pack first, arXiv 2107.02027 */
    SLU_PACK_LPFHP,  /* longest pack first, same */
    SLU_PACK_NNLSHP, /* least squares over all bins of up to three lengths, same */
    SLU_PACK_MULTI,  /* bins of several lengths, arXiv 2407.07495 */
    SLU_PACK_CONCAT, /* concat-and-chunk: it cuts items, so that it has no plan */
    SLU_PACK_METHODS
};
/* As options spell them; SLU_PACK_METHODS of them, then NULL. */
extern const char *const slu_pack_method_name[SLU_PACK_METHODS + 1];

struct slu_pack_cfg {
    uint64_t capacity;   /* ids a bin, 1 … SLU_MAX_CAPACITY */
    uint64_t max_items;  /* a bin takes at most so many; 0: no limit */
    uint64_t max_groups; /* SLU_E_LIMIT past so many; 0: what 31 bits can number */
    /* Bins of several lengths: ids that one may have, ascending, the last == capacity
     * (borrowed); and the share of a bin that may be padding. */
    const uint64_t *bin_tok;
    size_t n_bin_tok;
    double padding_threshold;
};

struct slu_pack_plan;

/* What is of one method alone. Another one is a number above, a name, and a row here.
 */
struct slu_pack_kind {
    /* As slu_pack_solve. NULL: it cuts items where a bin ends, and has no plan. */
    int (*solve)(struct slu_pack_plan **plan, const struct slu_length_count *hist,
                 size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err);
    /* SLU_E_USAGE where it is none for bins of so many ids; NULL: it is for all. */
    int (*check)(uint64_t capacity, struct slu_err *err);
    bool several; /* bins of several lengths: bin_tok and padding_threshold are its */
    bool cubic;   /* takes the cube of a bin's length, which its check limits */
};
extern const struct slu_pack_kind slu_pack_kind[SLU_PACK_METHODS];

/* Ids that a bin of several lengths may lack: all that its plans take of the threshold.
 */
uint64_t slu_pack_tolerance(double padding_threshold, uint64_t capacity);

struct slu_pack_group {
    uint64_t count;
    uint64_t len_tok;
    uint64_t repeat;
    uint64_t first_bin;
    uint64_t
        first_rank; /* of the items of this length, the first that this group takes */
    uint64_t room;  /* left in each bin after it, in tokens */
    uint64_t slot;  /* items that each bin had before it */
    uint64_t taken; /* bins that went on to other groups, from the front */
    uint64_t capacity; /* ids of each of its bins */
    uint32_t parent;
    uint32_t left, right, rank; /* private to the solver */
};

struct slu_pack_plan {
    uint64_t capacity; /* ids of the longest bins */
    uint64_t n_bin, n_item, n_tok;
    struct slu_pack_group *group; /* in the order of solving */
    size_t n_group, cap_group;
    struct slu_pack_length { /* lengths, descending, and where their groups begin */
        uint64_t len_tok;
        size_t first_group;
    } * length;
    size_t n_length;
};

/* Best-fit decreasing. hist: n rows, ascending lengths in 1 … capacity. max_items: a
 * bin takes at most so many; 0: no limit. SLU_E_USAGE where a row is out of range,
 * SLU_E_LIMIT where the tokens outgrow 64 bits. Caller frees with slu_pack_plan_free.
 */
SLU_MUST_USE int slu_pack_bfd(struct slu_pack_plan **plan,
                              const struct slu_length_count *hist, size_t n,
                              uint64_t capacity, uint64_t max_items,
                              struct slu_err *err);
/* The plan of a method. hist as for slu_pack_bfd. SLU_E_USAGE where a row is out of
 * range, or the method has no plan, or none for such a cfg.
 * Caller frees with slu_pack_plan_free. */
SLU_MUST_USE int slu_pack_solve(struct slu_pack_plan **plan,
                                enum slu_pack_method method,
                                const struct slu_length_count *hist, size_t n,
                                const struct slu_pack_cfg *cfg, struct slu_err *err);
void slu_pack_plan_free(struct slu_pack_plan *plan);

/* Number of a length in plan->length; n_length where it is not there. */
size_t slu_pack_find(const struct slu_pack_plan *plan, uint64_t len_tok);
/* Bin and place in it of the item of length number i with this rank; both must be in
 * the plan. */
void slu_pack_place(const struct slu_pack_plan *plan, size_t i, uint64_t rank,
                    uint64_t *bin, uint64_t *slot);

/* Bins that hold the same lengths and lie side by side. */
struct slu_pack_interval {
    uint64_t first_bin, count;
    uint64_t first_item, items; /* items in the bins before; in each of these */
    uint64_t first_tok;         /* ids in the bins before, padding included */
    uint64_t capacity, room;    /* ids of each; of them unfilled */
    uint32_t group;             /* the last group that its bins went through */
};
/* All bins, in order: a malloc'd array that the caller frees with free(). O(groups).
 * SLU_E_LIMIT where positions in the packed tokens outgrow 64 bits. */
SLU_MUST_USE int slu_pack_intervals(const struct slu_pack_plan *plan,
                                    struct slu_pack_interval **row, size_t *n,
                                    struct slu_err *err);

/* Concat-and-chunk: the next stretch of an item that begins at `position` of the
 * concatenation and has len_tok tokens left. Returns its length, which ends with the
 * item or the bin. */
static inline uint64_t slu_pack_chunk(uint64_t position, uint64_t len_tok,
                                      uint64_t capacity, uint64_t *bin,
                                      uint64_t *offset)
{
    *bin = position / capacity;
    *offset = position % capacity;
    return len_tok < capacity - *offset ? len_tok : capacity - *offset;
}

/* What a plan comes to; sums over plans (one a domain) by slu_pack_sum_add. */
struct slu_pack_sum {
    uint64_t items, tok;
    uint64_t cut; /* items that were cut to fit */
    uint64_t bins;
    uint64_t ids;      /* of the bins, filled or not */
    uint64_t full;     /* bins without room */
    uint64_t full_tok; /* tokens in them */
    uint64_t bound;    /* bins that no packing can do without: ceil(tok / capacity) */
    uint64_t groups;
    uint64_t most; /* items of a bin; of plans only */
};

void slu_pack_sum_add(struct slu_pack_sum *a, const struct slu_pack_sum *b);
struct slu_pack_sum slu_pack_plan_sum(const struct slu_pack_plan *plan);
struct slu_pack_sum slu_pack_concat_sum(uint64_t items, uint64_t tok, uint64_t cut,
                                        uint64_t capacity);
/* tokens / ids of the bins; 1 where there are no bins. */
double slu_pack_fill(const struct slu_pack_sum *s);

/* Bins by the room left in them, ascending (len_tok is the room): a malloc'd array that
 * the caller frees with free(). */
SLU_MUST_USE int slu_pack_rooms(const struct slu_pack_plan *plan,
                                struct slu_length_count **row, size_t *n,
                                struct slu_err *err);

SLU_END_DECLS

#endif
