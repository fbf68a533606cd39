/* cli_phase.c - see cli_phase.h. */
#include "tools/cli_phase.h"

#include "lib/io.h"

bool cli_phase_prints(const struct cli_phase_opts *o, const struct cli_phase_kind *all)
{
    return o->phase == CLI_PHASE_NONE || all[o->phase].output;
}

const char *cli_phase_name(const struct cli_phase_opts *o,
                           const struct cli_phase_kind *all)
{
    return o->phase == CLI_PHASE_NONE ? NULL : all[o->phase].name;
}

static int check_part(const struct cli_phase_kind *k, const struct cli_part *part,
                      struct slu_err *err)
{
    if (k->one && part->n)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase %s is one job for all parts; leave --part out",
                        k->name);
    if (!k->one && !part->n)
        return slu_fail(err, SLU_E_USAGE, "--phase %s needs --part I/N", k->name);
    return SLU_OK;
}

int cli_phase_check(const struct cli_ctx *ctx, const struct cli_phase_opts *o,
                    const struct cli_phase_kind *all, const struct cli_part *part,
                    struct slu_err *err)
{
    if (o->phase == CLI_PHASE_NONE) {
        if (o->work || o->ranges)
            return slu_fail(err, SLU_E_USAGE, "%s goes with --phase only",
                            o->work ? "--work" : "--ranges");
        return SLU_OK;
    }
    const struct cli_phase_kind *k = &all[o->phase];
    if (!o->work)
        return slu_fail(err, SLU_E_USAGE, "--phase %s needs --work DIR", k->name);
    int rc = check_part(k, part, err);
    if (rc)
        return rc;
    if (!k->stream && ctx->n_input)
        return slu_fail(err, SLU_E_USAGE, "--phase %s reads no stream", k->name);
    if (!k->output && ctx->common.output)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase %s writes to --work only; leave -o out", k->name);
    if (!k->ranges && o->ranges)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase %s takes no --ranges: they are in the files of "
                        "--work",
                        k->name);
    if (o->ranges > CLI_PHASE_MOST || part->n > CLI_PHASE_MOST)
        return slu_fail(err, SLU_E_USAGE, "at most %d parts and ranges",
                        CLI_PHASE_MOST);
    return k->stream ? slu_mkdirs(o->work, err) : SLU_OK;
}
