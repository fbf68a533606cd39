/* cli_private.h - what main.c, cli.c and report.c share. */
#ifndef SLU_CLI_PRIVATE_H
#define SLU_CLI_PRIVATE_H

#include "tools/cli/cli.h"

enum cli_outcome { CLI_RUN, CLI_HELP, CLI_VERSION };

extern const struct cli_opt cli_common_opt[];
extern const char *const cli_device_names[];

/* Options that a program does not show: --device without kernels. */
bool cli_hidden(const struct slu_tool *t, const struct cli_opt *o);
/* Its value may be left out. */
bool cli_is_maybe(const struct cli_opt *o);

/* The value of a CLI_INPUT or CLI_OUTPUT. */
static inline const char *cli_path(const struct cli_opt *o, const void *base)
{
    return *(const char *const *)(const void *)((const char *)base + o->offset);
}

/* A pipe of a megabyte, where fd is one and the system allows it: fewer switches
 * between programs. */
void cli_widen_pipe(int fd);
/* Says what the files of ids that were read gave reason to. */
void cli_report_input(struct cli_ctx *ctx);

/* Fills ctx from argv. SLU_E_USAGE with one line where it cannot. */
SLU_MUST_USE int cli_parse(struct cli_ctx *ctx, int argc, char **argv,
                           enum cli_outcome *outcome, struct slu_err *err);
/* Every output is a file of its own, and none takes the place of what is read: else
 * SLU_E_USAGE in one line. Before any output is opened. */
SLU_MUST_USE int cli_outputs_check(struct cli_ctx *ctx, struct slu_err *err);
void cli_outputs_free(struct cli_ctx *ctx);
/* Adds all that the run reads. */
struct cli_inputs;
SLU_MUST_USE int cli_inputs_of_run(struct cli_ctx *ctx, struct cli_inputs *in,
                                   struct slu_err *err);
/* The options that differ from their defaults and affect results, as "--name=value",
 * each with a NUL behind it; with `bytes` also those that affect bytes alone. */
SLU_MUST_USE int cli_arguments(const struct cli_ctx *ctx, struct slu_buf *out,
                               bool bytes, struct slu_err *err);
/* `"program": …, "version": …` and, where there are, `"stage": …, "part": […]`. */
SLU_MUST_USE int cli_put_run(const struct cli_ctx *ctx, struct slu_buf *b,
                             struct slu_err *err);
void cli_print_help(const struct slu_tool *tool, FILE *f);

SLU_MUST_USE int cli_report_open(struct cli_ctx *ctx, struct slu_err *err);
/* Writes --stats and the closing line. */
SLU_MUST_USE int cli_report_write(struct cli_ctx *ctx, struct slu_err *err);
/* The line that a run ends with. */
void cli_error(struct cli_ctx *ctx, const struct slu_err *err);
void cli_report_free(struct cli_ctx *ctx);

#endif
