/* cli_phase.h - --phase, --work and --ranges: programs that do their work in phases,
 * each of many parts, with files between them (lib/workfile.h).
 *
 * A program has a struct cli_phase_opts among its options, CLI_PHASE_ROWS in its table,
 * and a list of its phases; cli_phase_check says what does not go together. None of it
 * affects results: it is not recorded in the provenance.
 */
#ifndef SLU_CLI_PHASE_H
#define SLU_CLI_PHASE_H

#include "tools/cli.h"
#include "tools/cli_part.h"

#define CLI_PHASE_NONE (-1)
#define CLI_PHASE_MOST (1 << 16) /* parts, ranges */

struct cli_phase_opts {
    int phase;        /* index in the program's phases; CLI_PHASE_NONE by default */
    const char *work; /* folder */
    uint64_t ranges;  /* 0: as many as parts */
};

/* What a phase is like. */
struct cli_phase_kind {
    const char *name; /* NULL ends a list */
    bool one;         /* a single job for all parts, which takes no --part */
    bool stream;      /* reads streams; others read --work alone */
    bool output;      /* writes -o; others write to --work alone */
    bool ranges;      /* takes --ranges */
};

/* Rows of an option table. at: of the struct cli_phase_opts; spelled: "count|plan|…";
 * names: those of the list, in order, and NULL. */
#define CLI_PHASE_ROWS(at, spelled, names)                                             \
    {"phase",    0,                                                                    \
     CLI_CHOICE, (at) + offsetof(struct cli_phase_opts, phase),                        \
     spelled,    "do one step of the work, in parts, with files between\nthem",        \
     names,      false,                                                                \
     NULL},                                                                            \
        {"work",     0,                                                                \
         CLI_STRING, (at) + offsetof(struct cli_phase_opts, work),                     \
         "DIR",      "phases: the folder of those files",                              \
         NULL,       false,                                                            \
         NULL},                                                                        \
    {                                                                                  \
        "ranges", 0, CLI_COUNT, (at) + offsetof(struct cli_phase_opts, ranges), "R",   \
            "phases: parts of the later ones; default: as many as\nof the first",      \
            NULL, false, NULL                                                          \
    }

/* SLU_E_USAGE where options do not go together; nothing but --work and --ranges is
 * looked at where no phase is asked for. Makes the folder where a phase that is given a
 * stream will write to it. part: resolved (n 0: not given). */
SLU_MUST_USE int cli_phase_check(const struct cli_ctx *ctx,
                                 const struct cli_phase_opts *o,
                                 const struct cli_phase_kind *all,
                                 const struct cli_part *part, struct slu_err *err);
/* For slu_tool.prints and slu_tool.phase. */
bool cli_phase_prints(const struct cli_phase_opts *o, const struct cli_phase_kind *all);
const char *cli_phase_name(const struct cli_phase_opts *o,
                           const struct cli_phase_kind *all);

#endif
