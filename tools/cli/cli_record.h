/* cli_record.h - the record in a report (--stats), and --compare, which says of reports
 * whether this command would make the same. So sluice-batch knows what is done, and what
 * a changed option, list or input decides.
 *
 * A report begins with the members of lib/flow/made.h, on one line. Of a program that
 * reads no stream, "all_inputs" on this line is a hash of the names, sizes and times of all
 * inputs, which decide where parts are cut; and "inputs" lists those of the part, as the
 * manifest does. "outputs" are the files that options name, and the report.json of a
 * set, see cli_manifest.h; with --compare the first line begins with "outputs" if this
 * stage writes any, so that each report must be compared. Of the inputs that no manifest
 * lists the contents are not read again, so they are known by size and time alone.
 */
#ifndef SLU_CLI_RECORD_H
#define SLU_CLI_RECORD_H

#include "tools/cli/cli.h"

/* Makes the record, before the run. */
SLU_MUST_USE int cli_record_begin(struct cli_ctx *ctx, struct slu_err *err);
/* Appends the members, without a brace. SLU_E_MISMATCH if a file has changed since. */
SLU_MUST_USE int cli_record_put(struct cli_ctx *ctx, struct slu_buf *b,
                                struct slu_err *err);
void cli_record_free(struct cli_ctx *ctx);

#endif
