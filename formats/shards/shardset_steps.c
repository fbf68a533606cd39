/* shardset_steps.c - the steps that made a set, from its report.json. */
#include "formats/shards/shardset_private.h"

int slu_shardset_steps(const struct slu_shardset *s, bool all,
                       struct slu_step_list *steps, struct slu_err *err)
{
    struct slu_json_value v;

    if (!slu_json_get(slu_json_root(s->report), "provenance", &v))
        return SLU_OK;
    int rc = slu_steps_get_json(steps, v, all, err);
    return rc ? slu_err_at(err, "%s/report.json", s->dir) : SLU_OK;
}
