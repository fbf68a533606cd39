/* packer_private.h - functions by which the solvers of packer.h build a plan.
 *
 * A solver goes through the histogram from the longest length to the shortest:
 * slu_pack_start, then for each length slu_pack_begin_length and as many slu_pack_take
 * as place all its items.
 */
#ifndef SLU_PACKER_PRIVATE_H
#define SLU_PACKER_PRIVATE_H

#include "lib/pack/packer.h"

/* Makes an empty plan for the histogram, with its sums filled in. SLU_E_USAGE if a row
 * or cfg is out of range, SLU_E_LIMIT if the tokens exceed 64 bits. */
SLU_MUST_USE int slu_pack_start(struct slu_pack_plan **plan,
                                const struct slu_length_count *hist, size_t n,
                                const struct slu_pack_cfg *cfg, struct slu_err *err);
/* Begins the next length, shorter than the last; call it once per row. */
void slu_pack_begin_length(struct slu_pack_plan *plan, uint64_t len_tok);
/* Adds a group, number plan->n_group - 1: `count` bins of `parent`, or new ones of
 * `capacity` ids, take `repeat` items each. Advances *rank. All items must fit. Of the
 * parent only `taken` changes. SLU_E_LIMIT beyond cfg->max_groups. */
SLU_MUST_USE int slu_pack_take(struct slu_pack_plan *plan,
                               const struct slu_pack_cfg *cfg, uint32_t parent,
                               uint64_t capacity, uint64_t len_tok, uint64_t repeat,
                               uint64_t count, uint64_t *rank, struct slu_err *err);

static inline uint64_t slu_pack_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bins of g that no child has taken. */
static inline uint64_t slu_pack_free_bins(const struct slu_pack_group *g)
{
    return g->count - g->taken;
}

/* Returns the most items that a bin may take. */
static inline uint64_t slu_pack_most(const struct slu_pack_cfg *cfg)
{
    return cfg->max_items ? cfg->max_items : UINT64_MAX;
}

/* The solvers, one for each method; parameters as for slu_pack_solve. */
typedef int slu_pack_solver(struct slu_pack_plan **plan,
                            const struct slu_length_count *hist, size_t n,
                            const struct slu_pack_cfg *cfg, struct slu_err *err);
slu_pack_solver slu_pack_by_bfd, slu_pack_by_spfhp, slu_pack_by_lpfhp; /* pack_hist.c */
slu_pack_solver slu_pack_by_ffd;                                       /* pack_ffd.c */
slu_pack_solver slu_pack_by_nnlshp; /* pack_nnlshp.c */
SLU_MUST_USE int slu_pack_nnlshp_check(uint64_t capacity, struct slu_err *err);
slu_pack_solver slu_pack_by_multi; /* pack_multi.c */

#endif
