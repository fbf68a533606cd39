/* flow_private.h - shared by flow.c (jobs, and the functions that stages call),
 * flow_files.c (the files of the work folder) and flow_shape.c (their sections).
 * Private to them. */
#ifndef SLU_FLOW_PRIVATE_H
#define SLU_FLOW_PRIVATE_H

#include "lib/flow/flow.h"
#include "lib/flow/table_private.h"
#include "lib/flow/seqlog.h"
#include "workfile_names.h"
#include "workfile_stage.h"

/* Numbers of sections, of counts, and of words in a part's row. */
enum { SEC_MADE, SEC_PARTS, SEC_STREAM, SEC_VOCAB, SEC_TABLES };
enum { N_SEQUENCE, N_TOKEN, N_RANGE, N_LONGEST, N_SPAN, N_IDS, N_WAY };
enum {
    PART_ID,
    PART_SEQUENCES = 2,
    PART_TOKENS,
    PART_STREAM,
    PART_SPAN = 6,
    PART_HASH,
    PART
};

/* The files of one stage that this job reads. */
struct slu_flow_from {
    uint64_t first, n; /* file first + i has number i in this job */
    struct slu_flow_file {
        struct slu_u128 id;
        struct slu_workfile_stream names; /* if the stage's files have names */
    } * file;
};

struct slu_flow {
    const struct slu_flow_cfg *cfg;
    const struct slu_flow_job *job;
    bool here, finished;           /* here: this process does all stages; finished:
                                      the remaining stages are skipped */
    const struct slu_stage *stage; /* the job's stage, or the stage that runs now */
    struct slu_flow_report *report;
    uint64_t n_part, n_range;
    char *path;             /* of the job's file; NULL: the job has no file */
    struct slu_made record; /* of the options and facts */
    struct slu_names *names;
    struct slu_header header;
    struct slu_u128 *made;           /* mix of the files of each stage; 0: not known */
    struct slu_flow_from *from;      /* one for each stage */
    uint64_t *part;                  /* rows of SEC_PARTS, if known */
    uint64_t *base;                  /* n_part + 1 ordinals, if `part` is set */
    uint64_t span;                   /* number of ordinals of this part; 0: one for
                                        each sequence */
    uint64_t ids;                    /* hash of the meaning of the stream's ids, and of
                                        whether it has masks; 0: not known */
    uint64_t way;                    /* hash of the programs and options that made the
                                        stream; 0: not known */
    struct slu_u128 stream;          /* identity of the stream that was read */
    struct slu_u128 want;            /* identity that the stream must have, if
                                        want_of is set */
    const struct slu_stage *want_of; /* the stage whose file for this part states
                                        `want` */
    struct slu_seqlog *log;          /* sequences for later stages; NULL: none */
    struct slu_table **table;        /* the open tables, by number */
    struct slu_workfile_out *out;    /* the job's file while it is written */
    slu_table_cell **cell;           /* functions of slu_flow_cut, by table; NULL:
                                        the top bits choose the cell */
    uint64_t share;                  /* 64ths of the budget that are in use */
    uint64_t read_byte, reach_byte;  /* of work files: read, and within reach */
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
/* The stage that reads the stream and whose files s reads all; NULL: none. */
static inline const struct slu_stage *slu_stage_sees(const struct slu_flow_spec *spec,
                                                     const struct slu_stage *s)
{
    for (unsigned k = 0; k < s->n_in; k++) {
        const struct slu_stage *of = slu_stage_of(spec, s->in[k].table);
        if (s->in[k].reach != SLU_READ_PART && of->flags & SLU_STAGE_READS)
            return of;
    }
    return NULL;
}
/* The stage whose files are listed in SEC_PARTS of s's files: s reads all of them
 * itself, or one of its inputs lists them. NULL: the files of s have no SEC_PARTS. */
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
/* Whether the job has the table open. */
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

/* *path: name of file i of a stage; caller frees. */
SLU_MUST_USE int slu_flow_path(const struct slu_flow *f, const struct slu_stage *s,
                               uint64_t i, char **path, struct slu_err *err);
/* Opens file i of a stage, without checking how the file was made. */
SLU_MUST_USE int slu_flow_open(const struct slu_flow *f, const struct slu_stage *s,
                               uint64_t i, struct slu_workfile **file,
                               struct slu_err *err);
/* Finds the numbers of parts and ranges, and the header, from the job or from files. */
SLU_MUST_USE int slu_flow_shape(struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_flow_first_header(struct slu_flow *f, struct slu_err *err);
/* Makes the record of the options and facts. */
SLU_MUST_USE int slu_flow_record(struct slu_flow *f, struct slu_err *err);
/* Checks all files that the job reads: they exist, have the same record, and were made
 * from each other. */
SLU_MUST_USE int slu_flow_look(struct slu_flow *f, struct slu_err *err);
/* Whether the job's own file exists as it would be made; *stream: identity of the
 * stream that it was made from. */
SLU_MUST_USE int slu_flow_done(struct slu_flow *f, bool *done, struct slu_u128 *stream,
                               struct slu_err *err);
/* Opens file i of a stage again, and checks that it is the file that slu_flow_look
 * saw. */
SLU_MUST_USE int slu_flow_reopen(const struct slu_flow *f, const struct slu_stage *s,
                                 uint64_t i, struct slu_workfile **file,
                                 struct slu_err *err);
/* Number of cells of a table. */
uint64_t slu_flow_cells(const struct slu_flow *f, unsigned table);
/* Position of the table's cells in the files of its stage: the first section, and how
 * many. */
void slu_flow_sections(const struct slu_flow *f, unsigned table, uint64_t *first,
                       uint64_t *n);
/* Returns the number of sections in a file of the stage. */
uint64_t slu_flow_sections_of(const struct slu_flow *f, const struct slu_stage *s);
/* Whether a file of the stage has sections for each range. */
bool slu_flow_ranged(const struct slu_flow *f, const struct slu_stage *s);
/* Returns the last stage among the job's inputs that has one file for each part; NULL:
 * no input has. */
const struct slu_stage *slu_flow_parts_of(const struct slu_flow *f);
/* Reads the stream of a job whose file exists, and checks that it is the stream that
 * the file was made from. */
SLU_MUST_USE int slu_flow_compare(struct slu_flow *f, struct slu_u128 stream,
                                  struct slu_err *err);
/* slu_flow_begin creates the file and writes all that precedes the first table;
 * slu_flow_write calls it if this was not yet done. */
SLU_MUST_USE int slu_flow_begin(struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_flow_write(struct slu_flow *f, struct slu_err *err);

#endif
