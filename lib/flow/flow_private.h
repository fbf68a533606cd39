/* flow_private.h - what flow.c (a job from its beginning to its end, and what stages
 * call), flow_files.c (the files of the work folder) and flow_shape.c (how they are
 * cut) share. Private to them. */
#ifndef SLU_FLOW_PRIVATE_H
#define SLU_FLOW_PRIVATE_H

#include "lib/flow/flow.h"
#include "lib/flow/table_private.h"
#include "lib/flow/tape.h"
#include "workfile_names.h"
#include "workfile_stage.h"

/* Sections, counts, and words of a part's row. */
enum { SEC_MADE, SEC_PARTS, SEC_STREAM, SEC_TABLES };
enum { N_SEQUENCE, N_TOKEN, N_RANGE, N_LONGEST, N_SPAN, N_IDS };
enum {
    PART_ID,
    PART_SEQUENCES = 2,
    PART_TOKENS,
    PART_STREAM,
    PART_SPAN = 6,
    PART_HASH,
    PART
};

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
    bool here, finished;           /* all stages; the rest need not run */
    const struct slu_stage *stage; /* the job's, or the one that runs */
    struct slu_flow_report *report;
    uint64_t n_part, n_range;
    char *path, *param; /* of its own file; NULL: it has none */
    struct slu_names *names;
    struct slu_header header;
    struct slu_u128 *made;           /* of each stage of the spec; 0: not known */
    struct slu_flow_from *from;      /* of each stage of the spec */
    uint64_t *part;                  /* rows of SEC_PARTS, where it knows them */
    uint64_t *base;                  /* n_part + 1 ordinals, where `part` is there */
    uint64_t span;                   /* ordinals of this part, 0: its sequences */
    uint64_t ids;                    /* what its stream's ids mean; 0: not known */
    struct slu_u128 stream;          /* that was read; */
    struct slu_u128 want;            /* the one that must be, if want_of is given: */
    const struct slu_stage *want_of; /* this part's file of that stage was of it */
    struct slu_tape *tape;           /* what later stages read; NULL: there is none */
    struct slu_table **table;        /* of each of the spec, that is open */
    struct slu_workfile_out *out;    /* its file, while it is made */
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
/* Whose files it sees all of, of those that read the stream; NULL: of none. */
static inline const struct slu_stage *slu_stage_sees(const struct slu_flow_spec *spec,
                                                     const struct slu_stage *s)
{
    for (unsigned k = 0; k < s->n_in; k++) {
        const struct slu_stage *of = slu_stage_of(spec, s->in[k].table);
        if (s->in[k].reach != SLU_OWN && of->flags & SLU_STAGE_READS)
            return of;
    }
    return NULL;
}
/* Its files have SEC_PARTS, of the files of that stage, which it sees, or as an input
 * of its own has them; NULL: they have none. */
static inline const struct slu_stage *slu_stage_parts(const struct slu_flow_spec *spec,
                                                      const struct slu_stage *s)
{
    if (!(s->flags & (SLU_STAGE_ONE | SLU_STAGE_RANGES)) || !s->n_out)
        return NULL;
    const struct slu_stage *of = slu_stage_sees(spec, s);
    for (unsigned k = 0; k < s->n_in && !of; k++)
        of = slu_stage_parts(spec, slu_stage_of(spec, s->in[k].table));
    return of;
}
/* The table is one of the job. */
static inline bool slu_flow_has(const struct slu_flow *f, unsigned table)
{
    return f->here || f->cfg->spec->table[table].cut != SLU_CUT_HERE;
}
static inline uint64_t slu_flow_buckets(const struct slu_flow *f)
{
    return f->header.n_bucket ? f->header.n_bucket : 1;
}
static inline size_t slu_stage_number(const struct slu_flow_spec *spec,
                                      const struct slu_stage *s)
{
    return (size_t)(s - spec->stage);
}

/* The name of file i of a stage; caller frees. */
SLU_MUST_USE int slu_flow_path(const struct slu_flow *f, const struct slu_stage *s,
                               uint64_t i, char **path, struct slu_err *err);
/* File i of a stage, whatever it was made with. */
SLU_MUST_USE int slu_flow_open(const struct slu_flow *f, const struct slu_stage *s,
                               uint64_t i, struct slu_workfile **file,
                               struct slu_err *err);
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
/* How many cells a table has. */
uint64_t slu_flow_cells(const struct slu_flow *f, unsigned table);
/* Where they are in the files of its stage: the first section, and how many. */
void slu_flow_sections(const struct slu_flow *f, unsigned table, uint64_t *first,
                       uint64_t *n);
/* How many there are in a file of the stage, and whether it has some of each range. */
uint64_t slu_flow_sections_of(const struct slu_flow *f, const struct slu_stage *s);
bool slu_flow_ranged(const struct slu_flow *f, const struct slu_stage *s);
/* The input of the job whose files say of which parts all was made; NULL: none. */
const struct slu_stage *slu_flow_parts_of(const struct slu_flow *f);
/* Reads a stream whose file is there: it must be the one that was read then. */
SLU_MUST_USE int slu_flow_compare(struct slu_flow *f, struct slu_u128 stream,
                                  struct slu_err *err);
/* begin: the file, and what is in it before the first table; or write does it. */
SLU_MUST_USE int slu_flow_begin(struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_flow_write(struct slu_flow *f, struct slu_err *err);

#endif
