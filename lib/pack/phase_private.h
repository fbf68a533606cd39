/* phase_private.h - what phase_*.c share. Private to them.
 */
#ifndef SLU_PACK_PHASE_PRIVATE_H
#define SLU_PACK_PHASE_PRIVATE_H

#include "lib/pack/packing_private.h"
#include "lib/pack/phases.h"
#include "lib/workfile_names.h"
#include "lib/workfile_phase.h"

/* Sections and counts of the files. */
enum { COUNT_STREAM, COUNT_SLOTS, COUNT_ROWS, COUNT_SECTIONS };
enum { SLOT_DOMAIN, SLOT_ROWS, SLOT_ITEMS, SLOT_TOK, SLOT_CUT, SLOT };
enum { N_PIECE, N_SLOT };       /* of a count file */
enum { PLAN_PARTS, PLAN_BINS }; /* of a plan */
enum { SCATTER_STREAM, SCATTER_RANGES };
enum { N_RANGE, N_RECORD, N_ID_BYTE, LONGEST_ID }; /* of a scatter file */

struct slu_pack_parts {
    struct slu_pack_phase ph;
    char *param;          /* backs ph.param */
    uint64_t n_part;      /* of count and scatter */
    struct slu_u128 plan; /* its id */
    size_t n_planned;     /* slots that the plan has */
    struct slu_count work;
    /* scatter: what the count file says. */
    struct slu_u128 counted;
    uint64_t n_counted;
    /* gather: bins of its range; those that come next. */
    uint64_t first_bin, end_bin, next_bin;
};

/* Names of the files of a kind. */
const char *slu_pack_phase_name(uint64_t kind);
/* Opens what an earlier phase has left; inputs NULL: made from whatever. */
SLU_MUST_USE int slu_pack_phase_open(const struct slu_pack_phase *ph, uint64_t kind,
                                     uint64_t part, uint64_t of,
                                     const struct slu_u128 *inputs,
                                     struct slu_workfile **f, struct slu_err *err);
/* Its own file, once nothing made otherwise is there. *done: it is there as it would be
 * made, and *o is NULL; done NULL: it is made again. */
SLU_MUST_USE int slu_pack_phase_create(const struct slu_pack_phase *ph, uint64_t kind,
                                       const struct slu_u128 *inputs, bool *done,
                                       struct slu_workfile_out **o,
                                       struct slu_err *err);
/* A packing without items that has the plan's slots, their plans and sites; scatter and
 * gather begin with it. */
SLU_MUST_USE int slu_pack_phase_begin(struct slu_packing **p,
                                      const struct slu_packing_cfg *cfg,
                                      const struct slu_pack_phase *ph,
                                      struct slu_workfile **plan, struct slu_err *err);
static inline uint64_t slu_pack_range_bin(uint64_t n_bin, uint64_t j, uint64_t of)
{
    return (uint64_t)((unsigned __int128)n_bin * j / of);
}

#endif
