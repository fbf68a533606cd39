/* schedule.h - what the files of schedule share. */
#ifndef SLU_TOOLS_SCHEDULE_H
#define SLU_TOOLS_SCHEDULE_H

#include "lib/schedule/schedule.h"
#include "tools/cli.h"

enum schedule_trainer { TRAINER_OPENLM, TRAINER_OLMO, TRAINER_GENERIC };

struct schedule_opts {
    const char *curriculum, *json;
    uint64_t tokens, epochs, cycles, batch_tokens, world, workers, from_step;
    bool balanced, reorder, bricks;
    int trainer;
};

/* --trainer generic and olmo: steps, as a file and as JSON. */
SLU_MUST_USE int schedule_steps(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                                struct slu_err *err);

#endif
