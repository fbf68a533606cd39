/* schedule_private.h - between the files of schedule_steps: OLMo-core's order. */
#ifndef SLU_SCHEDULE_PRIVATE_H
#define SLU_SCHEDULE_PRIVATE_H

#include "lib/schedule/schedule_steps.h"

/* The runs of a pass, from those that the buckets have; what is left out goes to
 * `dropped`. */
SLU_MUST_USE int slu_olmo_runs(struct slu_steps_info *info, struct slu_err *err);
/* Fills order[0 … pass_steps) with the batch numbers of epoch `epoch` (from 0): those
 * of bucket 0 first, then those of bucket 1, …. Adds to *faults the rows that the
 * original rounds to more than there is. */
SLU_MUST_USE int slu_olmo_order(const struct slu_steps_info *info, uint64_t epoch,
                                uint32_t *order, uint64_t *faults, struct slu_err *err);

#endif
