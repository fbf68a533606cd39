/* cli_part.h - --part I/N|auto/N and --part-base, DESIGN.md, Same bytes, and {part} and
 * {parts} in the names of files.
 *
 * Both are common options. Where --part is given, "{part}" and "{parts}" in what -o,
 * and every option that names an input or an output, say are replaced by I (without
 * leading zeros) and N, and in programs that read streams in the names of these too:
 * one command line serves a whole array. A program of streams takes such names, or
 * standard input; any other name would be the same stream for every part (stages check
 * that themselves, by what they put into their files).
 */
#ifndef SLU_CLI_PART_H
#define SLU_CLI_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct cli_part {
    bool is_auto; /* i comes from the scheduler */
    uint64_t i, n, base;
};

struct cli_names {
    char **item;
    size_t n;
    const char **input;       /* of cli_ctx.input */
    const char *const *given; /* what they were; NULL: the same */
};

/* Parses "I/N" or "auto/N". */
SLU_MUST_USE int cli_part_parse(struct cli_part *p, const char *value,
                                struct slu_err *err);
/* Takes i from $SLURM_ARRAY_TASK_ID less base where it is automatic; i < n then. */
SLU_MUST_USE int cli_part_resolve(struct cli_part *p, struct slu_err *err);

struct cli_ctx;
/* Once all options are parsed: resolves --part, replaces it in names, and asks the
 * program whether it can be split. Nothing where it is not given. */
SLU_MUST_USE int cli_part_apply(struct cli_ctx *ctx, struct slu_err *err);
/* Appends the name as that part has it, with a NUL behind it. */
SLU_MUST_USE int cli_part_name(const struct cli_part *p, const char *name,
                               uint64_t part, struct slu_buf *b, struct slu_err *err);
void cli_names_release(struct cli_names *n);

#endif
