/* schedule.h - shared by the files of schedule. */
#ifndef SLU_TOOLS_SCHEDULE_H
#define SLU_TOOLS_SCHEDULE_H

#include "lib/schedule/schedule.h"
#include "tools/cli/cli.h"

enum schedule_trainer { TRAINER_OPENLM, TRAINER_OLMO, TRAINER_GENERIC };

struct schedule_opts {
    const char *curriculum, *json;
    const char *olmo_cache, *olmo_path, *olmo_tokenizer;
    uint64_t tokens, epochs, cycles, batch_tokens, world, workers, from_step;
    bool balanced, reorder, bricks;
    int trainer;
};

/* Warns if the set's mix changes and several buckets are in use, and of its periods that
 * fell short. */
void schedule_warn_periods(struct cli_ctx *ctx, const struct slu_bucket_counts *set);

/* --trainer generic and olmo: writes the steps, as a binary file and as JSON. */
SLU_MUST_USE int schedule_steps(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                                struct slu_err *err);

/* --olmo-cache: writes the files in which OLMo-core's loader looks for the index of its
 * data set and for the order of each pass, so that the loader follows this schedule. */
struct slu_steps_cfg;
SLU_MUST_USE int schedule_olmo_cache(struct cli_ctx *ctx,
                                     const struct slu_bucket_counts *s,
                                     const struct slu_steps_cfg *cfg,
                                     struct slu_err *err);

#endif
