/* schedule_private.h - what schedule_steps.c takes from schedule_passes.c and, for
 * OLMo-core's order, from schedule_olmo.c. */
#ifndef SLU_SCHEDULE_PRIVATE_H
#define SLU_SCHEDULE_PRIVATE_H

#include "lib/schedule/schedule_steps.h"

/* Returns the runs of a bucket in so many passes. */
unsigned __int128 slu_passes_runs(const struct slu_steps_info *info,
                                  const struct slu_steps_bucket *b, uint64_t passes);
/* Returns the last pass that begins at or before step k. */
uint64_t slu_pass_of(const struct slu_steps_info *info, uint64_t k);

/* Reduces the buckets' runs to those of a pass; adds the sequences left out to
 * `dropped`. */
SLU_MUST_USE int slu_olmo_runs(struct slu_steps_info *info, struct slu_err *err);
/* Fills order[0 … pass_steps) with the batch numbers of epoch `epoch` (from 0): those
 * of bucket 0 first, then those of bucket 1, …. Adds to *faults the rows that the
 * original rounds to more runs than the bucket has. */
SLU_MUST_USE int slu_olmo_order(const struct slu_steps_info *info, uint64_t epoch,
                                uint32_t *order, uint64_t *faults, struct slu_err *err);

#endif
