/* flow_private.h - what flow.c (a job from its beginning to its end, and what stages
 * call) and flow_files.c (the files of the work folder) share. Private to them. */
#ifndef SLU_FLOW_PRIVATE_H
#define SLU_FLOW_PRIVATE_H

#include "lib/flow/flow.h"
#include "lib/flow/table_private.h"
#include "lib/workfile_names.h"
#include "lib/workfile_phase.h"

/* Sections, counts, and words of a part's row. */
enum { SEC_MADE, SEC_PARTS, SEC_STREAM, SEC_TABLES };
enum { N_SEQUENCE, N_TOKEN, N_RANGE, N_LONGEST };
enum { PART_ID, PART_SEQUENCES = 2, PART_TOKENS, PART_STREAM, PART_HASH = 7, PART };

/* The files of a stage that this job reads from. */
struct slu_flow_from {
    uint64_t first, n; /* file first + i is number i here */
    struct slu_flow_file {
        struct slu_u128 id;
        struct slu_workfile_stream names; /* where the stage has them */
    } * file;
};

struct slu_flow {
    const struct slu_flow_cfg *cfg;
    const struct slu_flow_job *job;
    const struct slu_stage *stage; /* the job's */
    struct slu_flow_report *report;
    uint64_t n_part, n_range;
    char *path, *param; /* of its own file; NULL: it has none */
    struct slu_names *names;
    struct slu_header header;
    struct slu_u128 *made;           /* of each stage of the spec; 0: not known */
    struct slu_flow_from *from;      /* of each stage of the spec */
    uint64_t *part;                  /* ONE: rows of SEC_PARTS */
    struct slu_u128 stream;          /* that was read; */
    struct slu_u128 want;            /* the one that must be, if want_of is given: */
    const struct slu_stage *want_of; /* this part's file of that stage was of it */
    struct slu_table **table;        /* of each of the spec, that is open */
    slu_table_cell **cell;           /* how each is cut; NULL: by its top bits */
    uint64_t share;                  /* 64ths that are in use, all together */
};

static inline const struct slu_stage *slu_stage_of(const struct slu_flow_spec *spec,
                                                   unsigned table)
{
    for (unsigned i = 0; i < spec->n_stage; i++)
        for (unsigned k = 0; k < spec->stage[i].n_out; k++)
            if (spec->stage[i].out[k] == table)
                return &spec->stage[i];
    return NULL;
}
const struct slu_stage *slu_stage_named(const struct slu_flow_spec *spec,
                                        const char *name);
static inline size_t slu_stage_number(const struct slu_flow_spec *spec,
                                      const struct slu_stage *s)
{
    return (size_t)(s - spec->stage);
}

/* The name of file i of a stage; caller frees. */
SLU_MUST_USE int slu_flow_path(const struct slu_flow *f, const struct slu_stage *s,
                               uint64_t i, char **path, struct slu_err *err);
/* How many parts and ranges there are, and the header, from the job or from files. */
SLU_MUST_USE int slu_flow_shape(struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_flow_first_header(struct slu_flow *f, struct slu_err *err);
/* Looks at all files that the job reads: they are there, of the same, and made of each
 * other. */
SLU_MUST_USE int slu_flow_look(struct slu_flow *f, struct slu_err *err);
/* Whether its own file is there, as it would be made; *stream is what it was made of.
 */
SLU_MUST_USE int slu_flow_done(struct slu_flow *f, bool *done, struct slu_u128 *stream,
                               struct slu_err *err);
/* Opens file i of a stage, which is the one that was looked at. */
SLU_MUST_USE int slu_flow_reopen(const struct slu_flow *f, const struct slu_stage *s,
                                 uint64_t i, struct slu_workfile **file,
                                 struct slu_err *err);
/* Where a table's cells are in its stage's files: the first section, and how many. */
void slu_flow_sections(const struct slu_flow *f, unsigned table, uint64_t *first,
                       uint64_t *n);
SLU_MUST_USE int slu_flow_write(struct slu_flow *f, struct slu_err *err);

#endif
