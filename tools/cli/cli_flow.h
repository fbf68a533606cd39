/* cli_flow.h - --stage, --work, --ranges and --stages: programs whose work is a flow
 * (lib/flow/flow.h), done in one process, or a stage of a part in each of many.
 *
 * A program has a struct cli_flow_opts among its options, CLI_FLOW_ROWS in its table,
 * and says in slu_tool.flow which flow the options mean. Its `run` is: its own checks;
 * cli_flow_begin; then all of the work, or the one stage. None of these options affects
 * results: they are not recorded in the provenance.
 */
#ifndef SLU_CLI_FLOW_H
#define SLU_CLI_FLOW_H

#include "lib/flow/flow.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_part.h"

#define CLI_FLOW_MOST (1 << 16) /* parts, ranges */

struct cli_flow_opts {
    const char *stage; /* NULL: all, in this process */
    const char *work;  /* folder */
    uint64_t ranges;   /* 0: as many as parts */
    bool stages;       /* only say which there are */
};

/* Rows of an option table. at: of the struct cli_flow_opts; names: "count|plan|…".
 * --phase is what 0.1.0 called --stage. */
/* clang-format off */
#define CLI_FLOW_ROWS(at, names)                                                       \
    {"stage", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, stage), names,      \
     "do one stage of the work, in parts, with files between\nthem"},                  \
    {"phase", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, stage), "STAGE"},   \
    {"work", 0, CLI_STRING, (at) + offsetof(struct cli_flow_opts, work), "DIR",        \
     "stages: the folder of those files"},                                             \
    {"ranges", 0, CLI_COUNT, (at) + offsetof(struct cli_flow_opts, ranges), "R",       \
     "stages: parts of the later ones; default: as many as\nof the first"},            \
    {"stages", 0, CLI_FLAG, (at) + offsetof(struct cli_flow_opts, stages), NULL,       \
     "print which stages these options have, and do nothing"}
/* clang-format on */

/* Of what is asked for; NULL: no program of flows. */
const struct cli_flow_opts *cli_flow_opts_of(const struct cli_ctx *ctx);
/* The stage that is asked for; NULL: none, or none that there is. */
const struct slu_stage *cli_flow_stage(const struct cli_ctx *ctx);
bool cli_flow_is(const struct cli_ctx *ctx, const char *stage);
/* A stage, or which there are, not the work of one process. */
bool cli_flow_asked(const struct cli_ctx *ctx);

/* SLU_E_USAGE where options do not go together. SLU_EOF: stages were to be printed, and
 * nothing else is to be done. Makes the folder where a stage will write to it that is
 * given a stream. */
SLU_MUST_USE int cli_flow_begin(struct cli_ctx *ctx, struct slu_err *err);

/* Does the stage, or all of them; cfg without spec, threads and folder of temporary
 * files. again: also where the stage's file is there. Books spilled bytes, and says
 * what was there already. */
SLU_MUST_USE int cli_flow_run(struct cli_ctx *ctx, struct slu_flow_cfg cfg, bool again,
                              struct slu_flow_report *r, struct slu_err *err);
void cli_flow_skipped(struct cli_ctx *ctx, bool skipped);

/* For slu_tool.inputs: what the stage reads; and for slu_tool.beside: whether the file
 * of a stage that writes a stream too is there. */
struct cli_inputs;
SLU_MUST_USE int cli_flow_inputs(struct cli_ctx *ctx, struct cli_inputs *in,
                                 struct slu_err *err);
bool cli_flow_beside(const struct cli_ctx *ctx);

#endif
