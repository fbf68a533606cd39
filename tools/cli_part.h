/* cli_part.h - --part I/N|auto/N and --part-base, semantics.md 6. */
#ifndef SLU_CLI_PART_H
#define SLU_CLI_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"

struct cli_part {
    bool is_auto; /* i comes from the scheduler */
    uint64_t i, n, base;
};

/* Parses "I/N" or "auto/N". */
SLU_MUST_USE int cli_part_parse(struct cli_part *p, const char *value,
                                struct slu_err *err);
/* Takes i from $SLURM_ARRAY_TASK_ID less base where it is automatic; i < n then. */
SLU_MUST_USE int cli_part_resolve(struct cli_part *p, struct slu_err *err);

#endif
