/* cli_part.h - --part I/N|auto/N and --part-base (DESIGN.md, Same bytes), and {part}
 * and {parts} in the names of files.
 *
 * Both are common options. With --part, I (without leading zeros) and N replace
 * "{part}" and "{parts}" in the values of all options that name an input or output
 * file. In programs that read streams, I and N also replace them in the names of the
 * streams, so that one command line serves a whole array. Such a program accepts only
 * names with {part}, or standard input, because all parts would read the same stream
 * under any other name. Stages accept any name; they compare the contents of their
 * files.
 */
#ifndef SLU_CLI_PART_H
#define SLU_CLI_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct cli_part {
    bool is_auto; /* the scheduler supplies i */
    uint64_t i, n, base;
};

struct cli_names {
    char **item;
    size_t n;
    const char **input;       /* replaces cli_ctx.input */
    const char *const *given; /* cli_ctx.input before the replacement; NULL: no
                                 replacement */
};

/* Parses "I/N" or "auto/N". */
SLU_MUST_USE int cli_part_parse(struct cli_part *p, const char *value,
                                struct slu_err *err);
/* If is_auto, sets i to $SLURM_ARRAY_TASK_ID minus base. Then i < n. */
SLU_MUST_USE int cli_part_resolve(struct cli_part *p, struct slu_err *err);

struct cli_ctx;
/* Call after all options are parsed: finds I, replaces {part} in names, and asks the
 * program whether it can be split. Does nothing without --part. */
SLU_MUST_USE int cli_part_apply(struct cli_ctx *ctx, struct slu_err *err);
/* Appends the name with the part's number in place of {part}, and a NUL. */
SLU_MUST_USE int cli_part_name(const struct cli_part *p, const char *name,
                               uint64_t part, struct slu_buf *b, struct slu_err *err);
void cli_names_release(struct cli_names *n);

#endif
