/* flow_shape.c - the numbers of parts and ranges, the sections of files, the header that
 * files have, and the stages in words. */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/flow_private.h"

/* ---- sections ---- */

uint64_t slu_flow_cells(const struct slu_flow *f, unsigned table)
{
    const struct slu_table_spec *t = &f->cfg->spec->table[table];

    return t->kind == SLU_STORE        ? 2
           : t->cut == SLU_CUT_NO      ? 1
           : t->cut == SLU_CUT_PARTS   ? f->n_part
           : t->cut == SLU_CUT_RANGES  ? f->n_range
           : t->cut == SLU_CUT_BUCKETS ? slu_flow_buckets(f) * f->n_range
                                       : 0;
}

void slu_flow_sections(const struct slu_flow *f, unsigned table, uint64_t *first,
                       uint64_t *n)
{
    const struct slu_stage *s = slu_stage_of(f->cfg->spec, table);

    *first = SEC_TABLES;
    for (unsigned k = 0; s->out[k] != table; k++)
        *first += slu_flow_cells(f, s->out[k]);
    *n = slu_flow_cells(f, table);
}

uint64_t slu_flow_sections_of(const struct slu_flow *f, const struct slu_stage *s)
{
    uint64_t n = SEC_TABLES;

    for (unsigned k = 0; k < s->n_out; k++)
        n += slu_flow_cells(f, s->out[k]);
    return n;
}

bool slu_flow_ranged(const struct slu_flow *f, const struct slu_stage *s)
{
    for (unsigned k = 0; k < s->n_out; k++) {
        const enum slu_table_cut cut = f->cfg->spec->table[s->out[k]].cut;
        if (cut == SLU_CUT_RANGES || cut == SLU_CUT_BUCKETS)
            return true;
    }
    return false;
}

/* ---- number of parts, and the header ---- */

static const struct slu_stage *first_input(const struct slu_flow *f, unsigned flags)
{
    const struct slu_flow_spec *spec = f->cfg->spec;

    for (unsigned i = f->stage->n_in; i-- > 0;) {
        const struct slu_stage *s = slu_stage_of(spec, f->stage->in[i].table);
        if ((s->flags & flags) == flags)
            return s;
    }
    return NULL;
}

const struct slu_stage *slu_flow_parts_of(const struct slu_flow *f)
{
    const struct slu_flow_spec *spec = f->cfg->spec;

    for (unsigned i = f->stage->n_in; i-- > 0;) {
        const struct slu_stage *s = slu_stage_of(spec, f->stage->in[i].table);
        if (slu_stage_parts(spec, s))
            return s;
    }
    return NULL;
}

/* Finds the number of parts. */
static int parts_in(const struct slu_flow *f, const struct slu_stage *one, uint64_t *n,
                    struct slu_err *err)
{
    struct slu_workfile *file;
    int rc = slu_flow_open(f, one, 0, &file, err);

    if (rc)
        return rc;
    *n = slu_workfile_len(file, SEC_PARTS) / PART;
    if (!*n || *n > SLU_WORKFILE_MAX_PARTS)
        rc = slu_workfile_damaged(file, err);
    else if (!(f->stage->flags & (SLU_STAGE_ONE | SLU_STAGE_RANGES)) &&
             *n != f->job->of)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: is of %llu part%s, and this run is part %llu/%llu",
                      slu_workfile_path(file), (unsigned long long)*n, slu_plural(*n),
                      (unsigned long long)f->job->part, (unsigned long long)f->job->of);
    slu_workfile_free(file);
    return rc;
}

/* Number of ranges in the stage's files; 0: none. */
static int ranges_in(const struct slu_flow *f, const struct slu_stage *s, uint64_t *n,
                     struct slu_err *err)
{
    struct slu_workfile *file;
    int rc = slu_flow_open(f, s, 0, &file, err);

    if (rc)
        return rc;
    *n = slu_workfile_head(file)->count[N_RANGE];
    if (*n > SLU_WORKFILE_MAX_PARTS)
        rc = slu_workfile_damaged(file, err);
    slu_workfile_free(file);
    return rc;
}

int slu_flow_shape(struct slu_flow *f, struct slu_err *err)
{
    const struct slu_stage *of = slu_flow_parts_of(f), *any = first_input(f, 0);
    const struct slu_stage *ranged = first_input(f, SLU_STAGE_RANGES);
    int rc = SLU_OK;

    if (!(f->stage->flags & (SLU_STAGE_ONE | SLU_STAGE_RANGES)))
        f->n_part = f->job->of;
    f->n_range = f->stage->flags & SLU_STAGE_RANGES ? f->job->of : f->job->ranges;
    if (ranged && !f->n_range)
        rc = slu_work_parts(f->job->work, ranged->name, &f->n_range, err);
    if (of && !rc)
        rc = parts_in(f, of, &f->n_part, err);
    else if (any && !f->n_part && !rc)
        rc = slu_work_parts(f->job->work, any->name, &f->n_part, err);
    /* A stage with one job reads all ranges, however many. */
    if (!rc && !f->n_range && any && f->stage->flags & SLU_STAGE_ONE)
        rc = ranges_in(f, any, &f->n_range, err);
    f->n_range = f->n_range ? f->n_range : f->n_part;
    return rc;
}

int slu_flow_first_header(struct slu_flow *f, struct slu_err *err)
{
    const struct slu_stage *named = first_input(f, SLU_STAGE_NAMES),
                           *s = named ? named : first_input(f, 0);
    struct slu_workfile_stream stream = {.domain = NULL};
    struct slu_names *names = NULL;
    struct slu_workfile *file = NULL;
    int rc = slu_names_new(&names, err);

    if (!rc)
        rc = slu_flow_open(f, s, 0, &file, err);
    slu_header_init(&stream.header);
    if (!rc && !named)
        memcpy(stream.header.fingerprint, slu_workfile_head(file)->fingerprint,
               sizeof stream.header.fingerprint);
    else if (!rc && !slu_made_now(slu_workfile_head(file)->param))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was made by an earlier version of sluice; remove it and run "
                      "stage %s again",
                      slu_workfile_path(file), s->name);
    else if (!rc)
        rc = slu_workfile_get_stream(file, SEC_STREAM, names, &stream, err);
    if (!rc)
        rc = slu_header_copy(&f->header, &stream.header, err);
    slu_workfile_stream_release(&stream);
    slu_workfile_free(file);
    slu_names_free(names);
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
