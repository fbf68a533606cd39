/* cli_private.h - shared by the files of tools/cli. */
#ifndef SLU_CLI_PRIVATE_H
#define SLU_CLI_PRIVATE_H

#include "tools/cli/cli.h"

extern const struct cli_opt cli_common_opt[];
extern const char *const cli_device_names[];

/* Whether --help hides the option: for example --device in programs without kernels. */
bool cli_hidden(const struct slu_tool *t, const struct cli_opt *o);
/* Returns text, with the names in o->choice, separated by "|". */
#define CLI_CHOICES 96
const char *cli_choices(const struct cli_opt *o, char text[CLI_CHOICES]);
/* Whether the value may be omitted. */
bool cli_is_maybe(const struct cli_opt *o);

/* The path in a CLI_INPUT, CLI_FILE or CLI_OUTPUT option. */
static inline const char *cli_path(const struct cli_opt *o, const void *base)
{
    return *(const char *const *)(const void *)((const char *)base + o->offset);
}

/* If fd is a pipe and the system allows it, enlarges the pipe to a megabyte, so that
 * the programs switch less often. */
void cli_widen_pipe(int fd);
/* Prints the warnings that the files of ids gave reason for. */
void cli_report_input(struct cli_ctx *ctx);
void cli_input_free(struct cli_ctx *ctx);

/* The path of the i-th file that the option names and whose contents decide; NULL: there
 * are no more. */
const char *cli_file_of(const struct cli_opt *o, const void *opts, size_t i);
/* Fills ctx from argv. SLU_E_USAGE, with one line, for a bad command line. */
SLU_MUST_USE int cli_parse(struct cli_ctx *ctx, int argc, char **argv,
                           struct slu_err *err);
/* Checks that each output is a file of its own and that none replaces a file that the
 * run reads; SLU_E_USAGE, with one line, if not. Call before any output is opened. */
SLU_MUST_USE int cli_outputs_check(struct cli_ctx *ctx, struct slu_err *err);
void cli_outputs_free(struct cli_ctx *ctx);
/* Adds all files that the run reads. */
struct cli_inputs;
SLU_MUST_USE int cli_inputs_of_run(struct cli_ctx *ctx, struct cli_inputs *in,
                                   struct slu_err *err);
/* Adds those that options name; without targets, not those of options that have no
 * effect, such as a list of inputs. */
SLU_MUST_USE int cli_inputs_of_options(struct cli_ctx *ctx, struct cli_inputs *in,
                                       struct slu_err *err);
/* SLU_E_USAGE if the value of an option that names a file or folder is an address. o
 * NULL: the value is an input on the command line. */
SLU_MUST_USE int cli_check_address(const struct cli_ctx *ctx, const struct cli_opt *o,
                                   const char *value, struct slu_err *err);
/* --facts: prints the options, their files and the stages as JSON. */
SLU_MUST_USE int cli_print_facts(struct cli_ctx *ctx, struct slu_err *err);
/* --compare (cli_record.h). */
SLU_MUST_USE int cli_compare(struct cli_ctx *ctx, struct slu_err *err);
void cli_print_help(const struct slu_tool *tool, FILE *f);

SLU_MUST_USE int cli_report_open(struct cli_ctx *ctx, struct slu_err *err);
/* Writes --stats and the closing line. */
SLU_MUST_USE int cli_report_write(struct cli_ctx *ctx, struct slu_err *err);
/* Prints a line with the counts of a successful run, unless -q is given. Call it last. */
void cli_summary(struct cli_ctx *ctx);
/* Prints the error line at the end of a failed run. */
void cli_error(struct cli_ctx *ctx, const struct slu_err *err);
void cli_report_free(struct cli_ctx *ctx);

/* report.c: whether progress is shown. */
bool cli_draws(const struct cli_ctx *ctx);

#endif
