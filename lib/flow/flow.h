/* flow.h - work in stages. A flow is data: a graph of stages with tables (table.h)
 * between them, and a function for each stage. The engine alone knows the names of
 * files, their inputs, which of them are done, the identity of the stream, memory and
 * damage.
 *
 * A job does one stage of one part (or of one range, or of all parts) and leaves one
 * file in the work folder: FOLDER/STAGE.I-of-N, or FOLDER/STAGE if the stage has one
 * job. The file is a work file (workfile.h) and states: the part and the number of
 * parts; the tokenizer; as inputs, the identity of the stream that was read; as text,
 * the record (made.h) of the options that decide the stages up to this one; as
 * counts, the sequences and tokens of the stream, ranges, bytes of the longest row,
 * ordinals of the part, and a hash of the meaning of ids. Its sections:
 *
 *   0   made: for each stage of the flow the mix (slu_workfile_mix) of the ids of all
 *       files of the stage; 0, 0 if this file was not made from them
 *   1   if one job of the stage reads all files of a stage that reads streams: for each
 *       of these files the id (2), sequences, tokens, identity of the stream (2),
 *       ordinals, XXH3-64 of these seven
 *   2   for stages with SLU_STAGE_NAMES: the stream's header and names
 *       (workfile_names.h)
 *   3   for stages with SLU_STAGE_NAMES: the vocabulary (workfile_names.h), if a stage
 *       without an input stream writes a stream or a set from this file
 *   4…  each table that the stage writes, with a section for each cell: rows of n_word
 *       numbers; or key (low, high), number of bytes, bytes, zeros to a multiple of 8
 *
 * A file that is complete and was made from the same inputs is not made again. If the
 * file was made from other inputs or options, the error names the difference. A stream
 * that differs from the one read before is an error, too. A file gets its name when its
 * stage has succeeded.
 *
 * One process can do all stages, one after another, for one part and one range. Then no
 * file has a name, tables are those of one process (table.h) and live from the stage
 * that puts them to the last that reads them, and stages share the flow's ctx.
 *
 * Thread safety: one thread at a time on a flow and its tables, except for functions
 * marked "any thread".
 */
#ifndef SLU_FLOW_H
#define SLU_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/flow/made.h"
#include "lib/flow/table.h"
#include "lib/stream/stream.h"

enum {
    SLU_STAGE_READS = 1,  /* reads the whole stream of its part, by slu_flow_read */
    SLU_STAGE_WRITES = 2, /* writes a stream */
    SLU_STAGE_ONE = 4,    /* one job for all parts */
    SLU_STAGE_RANGES = 8, /* one job for each range; without ONE and RANGES: one job
                             for each part */
    SLU_STAGE_SET = 32,   /* writes a folder of files, which records what is done */
    SLU_STAGE_NAMES = 16, /* its file has the stream's header and names */
    SLU_STAGE_HERE = 64,  /* only runs in one process */
};

/* Which files' cells a job reads: its own cell of every file; all cells of every file;
 * all cells of the file of its part. */
enum slu_reach { SLU_READ_RANGE, SLU_READ_ALL, SLU_READ_PART };

struct slu_flow;

struct slu_stage_input {
    unsigned table;
    enum slu_reach reach;
    bool any_order; /* ROWS may come in any order; one process then does not sort
                       them */
};

struct slu_stage {
    const char *name;
    unsigned flags;
    const struct slu_stage_input *in;
    unsigned n_in;
    const unsigned *out; /* tables that it writes, in the order of its file */
    unsigned n_out;
    uint8_t share; /* its own memory, in 64ths of the flow's budget */
    int (*run)(void *ctx, struct slu_flow *f, struct slu_err *err);
    /* Called instead of run if the stage's file exists; reports its contents, which
     * slu_flow_mine gives. NULL: nothing is reported. */
    int (*done)(void *ctx, struct slu_flow *f, struct slu_err *err);
};

/* The tables of a stage's in and out, as constants. */
#define SLU_STAGE_IN(...)                                                              \
    (const struct slu_stage_input[])                                                   \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define SLU_STAGE_OUT(...)                                                             \
    (const unsigned[])                                                                 \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

/* Each stage comes after the stages that it reads from; the first stage reads the
 * stream. */
struct slu_flow_spec {
    const char *name;
    const struct slu_table_spec *table;
    const struct slu_stage *stage;
    unsigned n_table, n_stage;
    /* Adds what decides the files and only the stream says; called after begin. NULL:
     * nothing. */
    int (*facts)(const void *ctx, struct slu_made *m, struct slu_err *err);
};

struct slu_flow_cfg { /* Borrowed until the call returns. */
    const struct slu_flow_spec *spec;
    const struct slu_made *made; /* the options; NULL: none */
    struct slu_reader *reader;   /* NULL: the stage reads no stream */
    struct slu_names *names;     /* without a reader: receives the names in the input
                                  files */
    void *ctx;                   /* argument of begin, facts and run */
    /* Called first, when the header h and the names are known: those of the stream that
     * is read, or of the streams that the input files were made from. If no input has
     * SLU_STAGE_NAMES, h has only the fingerprint. */
    int (*begin)(void *ctx, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err);
    /* One process: receives a note of the log (slu_flow_note) at its position. */
    int (*note)(void *ctx, const void *p, size_t n, struct slu_err *err);
    /* One process: opens the stream once more, for the stages after the first if there
     * is no log. NULL: these then read nothing. */
    int (*again)(void *ctx, struct slu_reader **r, struct slu_err *err);
    void *again_ctx;
    /* A job: receives the bytes of work files that it has read, and how many are within
     * the stage's reach; it may read some twice, or none. NULL is legal. */
    void (*progress)(void *ctx, uint64_t n_byte, uint64_t of_byte);
    void *progress_ctx;
    uint64_t budget_byte; /* for tables and stages; batches in flight need more */
    const char *tmpdir;
    unsigned n_threads, n_slots;
};

struct slu_flow_job {
    const char *work, *stage;
    uint64_t part, of; /* number of the part or range, and how many there are; 0, 0
                          for a stage with one job */
    uint64_t ranges;   /* for stages before the ranges; 0: the number of parts */
    bool force;        /* make all files again */
    bool again;        /* make the file again even if it is complete and made from
                          the same input */
};

struct slu_flow_report {
    bool skipped; /* the file existed, and the stage did not run */
    struct slu_sum in;
    uint64_t spilled_byte;
};

/* Does one job. */
SLU_MUST_USE int slu_flow_stage(const struct slu_flow_cfg *cfg,
                                const struct slu_flow_job *job,
                                struct slu_flow_report *r, struct slu_err *err);
/* Does all stages, in one process. */
SLU_MUST_USE int slu_flow_run(const struct slu_flow_cfg *cfg, struct slu_flow_report *r,
                              struct slu_err *err);
/* The stage of this name; NULL: the flow has no such stage. */
const struct slu_stage *slu_stage_named(const struct slu_flow_spec *spec,
                                        const char *name);
/* Appends a line for each stage: its name; its jobs ("parts", "ranges" or "one");
 * "reads" if it reads a stream, else "-"; "writes" for a stream, "set" for a set, else
 * "-"; the stages whose files it reads, separated by commas, or "-". */
SLU_MUST_USE int slu_flow_print(const struct slu_flow_spec *spec, struct slu_buf *out,
                                struct slu_err *err);
/* Whether the job's own file exists, for this number of ranges. */
bool slu_flow_there(const struct slu_flow_spec *spec, const struct slu_flow_job *job);
/* Calls each with the beginning of the names of all files in the work folder that the
 * job reads. */
SLU_MUST_USE int slu_flow_inputs(const struct slu_flow_spec *spec,
                                 const struct slu_flow_job *job,
                                 int (*each)(void *ctx, const char *folder,
                                             const char *prefix, struct slu_err *err),
                                 void *ctx, struct slu_err *err);

/* ---- for `run` ---- */

/* slu_flow_here: whether this process does all stages. slu_flow_finished: skips the
 * stages after this one, because they would have nothing to do. */
bool slu_flow_here(const struct slu_flow *f);
void slu_flow_finished(struct slu_flow *f);
uint64_t slu_flow_part(const struct slu_flow *f);
uint64_t slu_flow_parts(const struct slu_flow *f);
uint64_t slu_flow_ranges(const struct slu_flow *f);
/* The stage's share of the memory; in one process, all memory that no table uses
 * now. */
uint64_t slu_flow_own_byte(const struct slu_flow *f);
/* The first ordinal of a part, and the number of all ordinals. Only for jobs that read
 * all files of the first stage, or a file that was made from all of them. */
uint64_t slu_flow_base(const struct slu_flow *f, uint64_t part);
uint64_t slu_flow_total(const struct slu_flow *f);
/* Counts n_byte that the stage itself has written to temporary files. */
void slu_flow_spilled(struct slu_flow *f, uint64_t n_byte);
/* Tables, borrowed until run returns. in: the rows within the reach of the input, from
 * the first; for a LIST, a second call starts again. With files, borrowed until the
 * next call for the same table: of_part: all cells of the file of a part; of_cells:
 * cells from … to - 1 of all files; mine: all cells of the job's own file. */
struct slu_table *slu_flow_out(struct slu_flow *f, unsigned table);
SLU_MUST_USE int slu_flow_in(struct slu_flow *f, unsigned table, struct slu_table **t,
                             struct slu_err *err);
SLU_MUST_USE int slu_flow_of_part(struct slu_flow *f, unsigned table, uint64_t part,
                                  struct slu_table **t, struct slu_err *err);
SLU_MUST_USE int slu_flow_of_cells(struct slu_flow *f, unsigned table, uint64_t from,
                                   uint64_t to, struct slu_table **t,
                                   struct slu_err *err);
SLU_MUST_USE int slu_flow_mine(struct slu_flow *f, unsigned table, struct slu_table **t,
                               struct slu_err *err);
/* slu_flow_next reads the next row of a part's list, which must exist; slu_flow_end
 * checks that no row is left. */
SLU_MUST_USE int slu_flow_next(struct slu_flow *f, unsigned table, uint64_t part,
                               struct slu_table *t, struct slu_row *row,
                               struct slu_err *err);
SLU_MUST_USE int slu_flow_end(struct slu_flow *f, unsigned table, uint64_t part,
                              struct slu_table *t, struct slu_err *err);
/* For a stage that reads a stream: sets the number of ordinals of its part, if this is
 * not the number of sequences. */
void slu_flow_span(struct slu_flow *f, uint64_t n);
/* Sets the function that chooses the cell of a row, in place of the top bits of word 0
 * or the key. Its argument is the flow's ctx, and its result must not descend as rows
 * ascend. */
void slu_flow_cut(struct slu_flow *f, unsigned table,
                  uint64_t (*cell)(const void *ctx, struct slu_u128 key, const void *p,
                                   size_t n_byte));
/* Converts domain `number` of the job that wrote a part of a table to the number in
 * this process; SLU_E_CHECKSUM if that job had no such domain. Any thread. */
SLU_MUST_USE int slu_flow_domain(const struct slu_flow *f, unsigned table,
                                 uint64_t part, uint64_t number, uint32_t *here,
                                 struct slu_err *err);
/* Sets and returns SLU_E_CHECKSUM: a row of this part of the table has impossible
 * contents. */
int slu_flow_damaged(const struct slu_flow *f, unsigned table, uint64_t part,
                     struct slu_err *err);
/* Sets and returns SLU_E_MISMATCH: the stream is not the one that the first stage
 * read. */
int slu_flow_other_stream(const struct slu_flow *f, struct slu_err *err);
/* In one process: appends sequence q of b to a log, which the stages after the first
 * read in place of the stream. The log takes 1 MiB in addition to the flow's
 * budget. */
SLU_MUST_USE int slu_flow_log(struct slu_flow *f, const struct slu_batch *b,
                              const struct slu_seq *q, struct slu_err *err);
/* As slu_flow_log, for n bytes that cfg.note receives instead of a sequence. */
SLU_MUST_USE int slu_flow_note(struct slu_flow *f, const void *p, size_t n,
                               struct slu_err *err);
/* Reads the whole stream of the part; in one process, a stage after the first reads the
 * log, or the stream again. */
SLU_MUST_USE int slu_flow_read(struct slu_flow *f, const struct slu_side_ops *ops,
                               void *ctx, struct slu_err *err);
/* In one process: finishes the reading once more, after hashes that came late
 * (slu_reader_late). */
SLU_MUST_USE int slu_flow_read_late(struct slu_flow *f, struct slu_err *err);
const struct slu_sum *slu_flow_sum(const struct slu_flow *f);

#endif
