/* cli_flow.h - --stage, --work, --ranges and --stages: the options of programs whose
 * work is a flow (lib/flow/flow.h). One process does the whole flow, or many jobs each
 * do one stage of one part.
 *
 * Such a program has a struct cli_flow_opts among its options and CLI_FLOW_ROWS in its
 * table, and slu_tool.flow returns the flow that the options select. Its `run` makes
 * the program's own checks, calls cli_flow_begin, and then does the whole work or the
 * one stage. None of these options affects results, so the provenance does not record
 * them.
 */
#ifndef SLU_CLI_FLOW_H
#define SLU_CLI_FLOW_H

#include "lib/flow/flow.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_part.h"

#define CLI_FLOW_MOST (1 << 16) /* of parts and of ranges */

struct cli_flow_opts {
    const char *stage; /* NULL: do all stages in this process */
    const char *work;  /* folder of work files */
    uint64_t ranges;   /* 0: the number of parts */
    bool stages;       /* only print the stages */
};

/* Rows of an option table. at: offset of the struct cli_flow_opts; names:
 * "count|plan|…".
 * --phase is the name of --stage in version 0.1.0. */
/* clang-format off */
#define CLI_FLOW_ROWS(at, names)                                                       \
    {"stage", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, stage), names,      \
     "run one stage of the work; stages exchange files in --work",                     \
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},                    \
    {"phase", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, stage), "STAGE",    \
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},                                                           \
    {"work", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, work), "DIR",        \
     "with --stage: folder of the stages' files", .path = true,                        \
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},                       \
    {"ranges", 0, CLI_COUNT, (at) + offsetof(struct cli_flow_opts, ranges), "R",       \
     "with --stage: number of ranges, the parts of later stages;\n"                    \
     "default: the number of parts of the first stage", .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},                               \
    {"stages", 0, CLI_FLAG, (at) + offsetof(struct cli_flow_opts, stages), NULL,       \
     "print the stages for these options, and do nothing else",                        \
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER}
/* clang-format on */

/* The flow options of ctx; NULL: the program has no flows. */
const struct cli_flow_opts *cli_flow_opts_of(const struct cli_ctx *ctx);
/* The stage of --stage; NULL: no --stage, or no stage of this name. */
const struct slu_stage *cli_flow_stage(const struct cli_ctx *ctx);
/* How many ranges the stage of --stage makes for later ones; 0: none. */
uint64_t cli_flow_ranges(const struct cli_ctx *ctx);
bool cli_flow_is(const struct cli_ctx *ctx, const char *stage);
/* Whether --stage or --stages is given. */
bool cli_flow_asked(const struct cli_ctx *ctx);

/* SLU_E_USAGE if options contradict each other. SLU_EOF if --stages printed the stages;
 * the run must then end. Creates the work folder if the stage reads a stream and writes
 * to the folder. */
SLU_MUST_USE int cli_flow_begin(struct cli_ctx *ctx, struct slu_err *err);

/* Does the stage of --stage, or all stages. cfg: all fields but spec, threads and the
 * folder of temporary files. again: do the stage even if its file exists. Counts
 * spilled bytes, and reports a stage that was already done. */
SLU_MUST_USE int cli_flow_run(struct cli_ctx *ctx, struct slu_flow_cfg cfg, bool again,
                              struct slu_flow_report *r, struct slu_err *err);
void cli_flow_skipped(struct cli_ctx *ctx, bool skipped);

/* For slu_tool.inputs: adds the files that the stage reads. For slu_tool.beside:
 * whether the work file exists of a stage that also writes a stream. */
struct cli_inputs;
SLU_MUST_USE int cli_flow_inputs(struct cli_ctx *ctx, struct cli_inputs *in,
                                 struct slu_err *err);
bool cli_flow_beside(const struct cli_ctx *ctx);

#endif
