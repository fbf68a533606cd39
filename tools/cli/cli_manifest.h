/* cli_manifest.h - FILE.manifest.json: what FILE, an -o, was made from and how, so that
 * a run which is started again sees that it has nothing to do.
 *
 * It is written with --part, or --manifest, once FILE has its name; the one before is
 * removed before the work begins, so there is none beside a FILE that it does not
 * describe. A run that finds FILE whole and its manifest the same in everything that
 * matters does nothing; where something else was asked for, it is an error that names
 * the difference, as whatever reads FILE next would not know. A FILE that is not whole,
 * or has no manifest, is made again.
 *
 * FILE may be a folder of shards too, which is known by its report; not of stages,
 * which share one.
 *
 * What matters: program, version, stage, part, seed, the arguments that affect results
 * or bytes, and the inputs' contents (cli_inputs.h). Inputs that cannot be compared
 * (standard input, a folder) are read again each time.
 */
#ifndef SLU_CLI_MANIFEST_H
#define SLU_CLI_MANIFEST_H

#include "tools/cli/cli.h"

/* Its name where the run writes one, else NULL. Caller frees. */
SLU_MUST_USE int cli_manifest_name(const struct cli_ctx *ctx, char **path,
                                   struct slu_err *err);
/* Before the work. *skip: it has been done; ctx->ledger is that of then. */
SLU_MUST_USE int cli_manifest_begin(struct cli_ctx *ctx, bool *skip,
                                    struct slu_err *err);
/* After it. */
SLU_MUST_USE int cli_manifest_end(struct cli_ctx *ctx, struct slu_err *err);
void cli_manifest_free(struct cli_ctx *ctx);

#endif
