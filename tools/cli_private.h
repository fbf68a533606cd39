/* cli_private.h - what main.c, cli.c and report.c share. */
#ifndef SLU_CLI_PRIVATE_H
#define SLU_CLI_PRIVATE_H

#include <sys/stat.h>

#include "tools/cli.h"

enum cli_outcome { CLI_RUN, CLI_HELP, CLI_VERSION };

extern const struct cli_opt cli_common_opt[];
extern const char *const cli_device_names[];

/* Options that a program does not show: --device without kernels. */
bool cli_hidden(const struct slu_tool *t, const struct cli_opt *o);
/* Its value may be left out. */
bool cli_is_maybe(const struct cli_opt *o);

/* A pipe of a megabyte, where fd is one and the system allows it: fewer switches
 * between programs. */
void cli_widen_pipe(int fd);
/* Whether the file of that status is one that is read with `input`: beside it where it
 * is a file of ids. */
bool cli_lies_beside(const struct stat *st, const char *input);
/* Whether `input` is a file of the shard set in the folder of that status. */
bool cli_lies_in_set(const struct stat *folder, const char *input);
/* Says what the files of ids that were read gave reason to. */
void cli_report_input(struct cli_ctx *ctx);

/* Fills ctx from argv. SLU_E_USAGE with one line where it cannot. */
SLU_MUST_USE int cli_parse(struct cli_ctx *ctx, int argc, char **argv,
                           enum cli_outcome *outcome, struct slu_err *err);
/* The options that differ from their defaults and affect results, as "--name=value",
 * each with a NUL behind it; with `bytes` also those that affect bytes alone. */
SLU_MUST_USE int cli_arguments(const struct cli_ctx *ctx, struct slu_buf *out,
                               bool bytes, struct slu_err *err);
/* `"program": …, "version": …` and, where there are, `"phase": …, "part": […]`. */
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
