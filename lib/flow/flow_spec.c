/* flow_spec.c - checks that the data of a flow is consistent, and prints its stages. */
#include <string.h>

#include "lib/flow/flow_private.h"

/* ---- whether it fits together ---- */

static int wrong(const struct slu_flow_spec *spec, const char *name, const char *what,
                 struct slu_err *err)
{
    return slu_fail(err, SLU_E_USAGE, "flow %s: %s: %s", spec->name, name, what);
}

static unsigned writers(const struct slu_flow_spec *spec, unsigned table)
{
    unsigned n = 0;

    for (unsigned i = 0; i < spec->n_stage; i++)
        for (unsigned k = 0; k < spec->stage[i].n_out; k++)
            n += spec->stage[i].out[k] == table;
    return n;
}

/* Whether a job has one cell of its own in a table that is divided like this. */
static bool has_own(const struct slu_stage *s, enum slu_table_cut cut)
{
    return s->flags & SLU_STAGE_RANGES ? cut == SLU_CUT_RANGES || cut == SLU_CUT_BUCKETS
                                       : cut == SLU_CUT_PARTS || cut == SLU_CUT_HERE;
}

static int check_input(const struct slu_flow_spec *spec, const struct slu_stage *s,
                       const struct slu_stage_input *in, struct slu_err *err)
{
    const struct slu_stage *of = slu_stage_of(spec, in->table);
    const unsigned many = SLU_STAGE_ONE | SLU_STAGE_RANGES;

    if (!of || of >= s)
        return wrong(spec, s->name, "reads what no stage before it writes", err);
    if (in->reach == SLU_MINE &&
        (s->flags & SLU_STAGE_ONE || !has_own(s, spec->table[in->table].cut)))
        return wrong(spec, s->name, "reads its cell of a table that is cut otherwise",
                     err);
    if (in->reach == SLU_OWN && (s->flags & many || of->flags & many))
        return wrong(spec, s->name, "reads the file of its part, of no stage of parts",
                     err);
    return SLU_OK;
}

/* Shares of the budget in use at once: the stage's own, and those of the tables that it
 * and earlier stages have written and that this or a later stage reads. */
static unsigned share_at(const struct slu_flow_spec *spec, const struct slu_stage *s)
{
    unsigned all = s->share;

    for (unsigned t = 0; t < spec->n_table; t++) {
        const struct slu_stage *of = slu_stage_of(spec, t);
        bool lives = of == s;
        for (const struct slu_stage *r = s; r < spec->stage + spec->n_stage; r++)
            for (unsigned k = 0; k < r->n_in; k++)
                lives |= r->in[k].table == t && of && of < s;
        all += lives ? spec->table[t].share : 0;
    }
    return all;
}

int slu_flow_check(const struct slu_flow_spec *spec, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned t = 0; t < spec->n_table; t++)
        if (spec->table[t].name && writers(spec, t) > 1)
            return wrong(spec, spec->table[t].name, "more than one stage writes it",
                         err);
    for (const struct slu_stage *s = spec->stage; s < spec->stage + spec->n_stage;
         s++) {
        for (unsigned k = 0; k < s->n_in && !rc; k++)
            rc = check_input(spec, s, &s->in[k], err);
        for (unsigned k = 0; k < s->n_out && !rc; k++)
            if (spec->table[s->out[k]].cut == SLU_CUT_PARTS && s == spec->stage)
                rc = wrong(spec, s->name, "does not know the parts yet", err);
        if (!rc && slu_stage_named(spec, s->name) != s)
            rc = wrong(spec, s->name, "is there twice", err);
        if (!rc && share_at(spec, s) > 64)
            rc = wrong(spec, s->name, "shares of more than all memory", err);
    }
    return rc;
}

/* ---- in words ---- */

static int put_inputs(const struct slu_flow_spec *spec, const struct slu_stage *s,
                      struct slu_buf *out, struct slu_err *err)
{
    const char *before = "";
    int rc = SLU_OK;

    for (const struct slu_stage *p = spec->stage; p < s && !rc; p++) {
        bool reads = false;
        for (unsigned k = 0; k < s->n_in; k++)
            reads |= slu_stage_of(spec, s->in[k].table) == p &&
                     spec->table[s->in[k].table].cut != SLU_CUT_HERE;
        if (reads)
            rc = slu_buf_printf(out, err, "%s%s", before, p->name);
        before = reads ? "," : before;
    }
    return rc || *before ? rc : slu_buf_printf(out, err, "-");
}

int slu_flow_print(const struct slu_flow_spec *spec, struct slu_buf *out,
                   struct slu_err *err)
{
    int rc = SLU_OK;

    for (const struct slu_stage *s = spec->stage; s < spec->stage + spec->n_stage;
         s++) {
        if (s->flags & SLU_STAGE_HERE)
            continue;
        rc = slu_buf_printf(out, err, "%s %s %s %s ", s->name,
                            s->flags & SLU_STAGE_ONE      ? "one"
                            : s->flags & SLU_STAGE_RANGES ? "ranges"
                                                          : "parts",
                            s->flags & SLU_STAGE_READS ? "reads" : "-",
                            s->flags & SLU_STAGE_WRITES ? "writes"
                            : s->flags & SLU_STAGE_SET  ? "set"
                                                        : "-");
        if (!rc)
            rc = put_inputs(spec, s, out, err);
        if (!rc)
            rc = slu_buf_printf(out, err, "\n");
        if (rc)
            return rc;
    }
    return SLU_OK;
}
