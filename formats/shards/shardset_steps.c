/* shardset_steps.c - the steps that made a set, from its report.json. */
#include "formats/shards/shardset_private.h"

int slu_shardset_steps(const struct slu_shardset *s, struct slu_step_list *steps,
                       struct slu_err *err)
{
    struct slu_step_list own = SLU_STEPS_INIT;
    struct slu_json_value v;
    int rc = SLU_OK;

    if (slu_json_get(slu_json_root(s->report), "provenance", &v))
        rc = slu_steps_get_json(&own, v, err);
    if (!rc && !own.n)
        rc = slu_steps_add_unknown(&own, err);
    if (!rc)
        rc = slu_steps_join(steps, &own, err);
    slu_steps_release(&own);
    return rc ? slu_err_at(err, "%s/report.json", s->dir) : SLU_OK;
}
