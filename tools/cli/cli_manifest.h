/* cli_manifest.h - FILE.manifest.json states how the output FILE of -o was made, and
 * from which inputs. A run that is started again reads the manifest and does nothing if
 * its work is done.
 *
 * With --part or --manifest the manifest is written after FILE has its final name. The
 * old manifest is removed before the work begins, so a manifest never describes another
 * FILE. A run does nothing if FILE is complete and its manifest agrees in everything
 * that is compared. If the manifest differs, the run fails and names the difference,
 * because the next reader of FILE could not know. A FILE that is incomplete or has no
 * manifest is made again.
 *
 * FILE may also be a folder of shards, which is compared by its report.json. Stages
 * that share a folder have no manifest for the folder.
 *
 * Compared are the record (lib/flow/made.h) and the contents of the inputs
 * (cli_inputs.h). Inputs that cannot be compared (standard input, a folder) are read
 * again each time.
 */
#ifndef SLU_CLI_MANIFEST_H
#define SLU_CLI_MANIFEST_H

#include "tools/cli/cli.h"

/* *path: name of the manifest, or NULL if the run writes none. Caller frees. */
SLU_MUST_USE int cli_manifest_name(const struct cli_ctx *ctx, char **path,
                                   struct slu_err *err);
/* Call before the work. *skip: the work is already done, and ctx->account has the
 * counts of the earlier run. */
SLU_MUST_USE int cli_manifest_begin(struct cli_ctx *ctx, bool *skip,
                                    struct slu_err *err);
/* Call after the work; writes the manifest. */
SLU_MUST_USE int cli_manifest_end(struct cli_ctx *ctx, struct slu_err *err);
void cli_manifest_free(struct cli_ctx *ctx);

/* The files that a run writes in addition to -o, by options: whether there are any; as
 * the member "outputs" of a manifest or report, appended after a comma; and whether they
 * are there, and are those of `root`. *what: NULL, or the difference, in `text`. set:
 * also report.json of the set -o, of the stage that publishes it. With --compare {part}
 * in their names is the part that is compared. */
bool cli_outputs_any(const struct cli_ctx *ctx);
SLU_MUST_USE int cli_outputs_put(const struct cli_ctx *ctx, bool set, struct slu_buf *b,
                                 struct slu_err *err);
SLU_MUST_USE int cli_outputs_compare(const struct cli_ctx *ctx, bool set,
                                     struct slu_json_value root, char *text, size_t cap,
                                     const char **what, struct slu_err *err);

/* The i-th input, with its contents' hash; NULL: there is no manifest. */
struct cli_input;
const struct cli_input *cli_manifest_input(const struct cli_ctx *ctx, size_t i);

#endif
