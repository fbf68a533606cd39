/* flow.h - work in stages: a graph of stages with tables (table.h) between them, as
 * data, and a function for each stage. The engine alone knows names of files, what was
 * made from what, what is done, which stream it was, memory and damage.
 *
 * A job does one stage of one part (or range, or of all) and leaves one file in the
 * work folder, FOLDER/STAGE.I-of-N, or FOLDER/STAGE of a stage that is one job. It is
 * of workfile.h; what it says of itself: part, of how many; the tokenizer; as inputs
 * the identity of the stream that was read; as parameters "flow=NAME stage=STAGE" and
 * the words of all stages up to it; as counts sequences and tokens of the stream,
 * ranges, bytes of the longest row, ordinals of the part, and a hash of what ids mean.
 * Its sections:
 *
 *   0   made: of each stage of the flow the mix (slu_workfile_mix) of the ids of all
 *       its files, 0, 0 where this one was not made from them
 *   1   where one job of the stage reads from all files of a stage that reads streams:
 *       of each of these id (2), sequences, tokens, identity of the stream (2),
 *       ordinals, XXH3-64 of these seven
 *   2   the stream's header and names (workfile_names.h), of stages with
 *       SLU_STAGE_NAMES
 *   3…  each table that it writes, a section a cell: rows of n_word numbers, or key
 *       (low, high), number of bytes, bytes, zeros up to a multiple of 8
 *
 * What is there, whole and made of the same, is not made again; what was made otherwise
 * is an error that names the difference, and so is a stream that is another than the
 * one that was read before. A file appears whole, once its stage has ended well.
 *
 * One process can do all stages, one after another, for the one part and range there
 * is: no file has a name then, tables are as table.h has them in one process, each from
 * the stage that puts it to the last that reads it, and stages share the flow's ctx.
 *
 * Thread safety: one thread at a time on a flow and its tables, unless "any thread" is
 * said.
 */
#ifndef SLU_FLOW_H
#define SLU_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/flow/table.h"
#include "lib/stream/stream.h"

enum {
    SLU_STAGE_READS = 1,  /* the part's stream, all of it, by slu_flow_read */
    SLU_STAGE_WRITES = 2, /* a stream */
    SLU_STAGE_ONE = 4,    /* one job for all parts */
    SLU_STAGE_RANGES = 8, /* a job a range; neither of the two: a job a part */
    SLU_STAGE_SET = 32,   /* a folder of files that says itself what of it is done */
    SLU_STAGE_NAMES = 16, /* its file has the stream's header and names; the vocabulary
                             too if a stage that reads no stream writes one from it */
    SLU_STAGE_HERE = 64,  /* in one process alone */
};

/* Which files' cells a job reads: its own cell of every file; all cells of every file;
 * all cells of the file of its part. */
enum slu_reach { SLU_MINE, SLU_ALL, SLU_OWN };

struct slu_flow;

struct slu_stage_input {
    unsigned table;
    enum slu_reach reach;
    bool any_order; /* ROWS, which one process does not sort then */
};

struct slu_stage {
    const char *name;
    unsigned flags;
    const struct slu_stage_input *in;
    unsigned n_in;
    const unsigned *out; /* tables; its file has them in this order */
    unsigned n_out;
    uint8_t share; /* memory of its own, in 64ths of the flow's budget */
    /* Appends " key=value …": what decides its files and is new; NULL: nothing. */
    int (*words)(const void *ctx, struct slu_buf *t, struct slu_err *err);
    int (*run)(void *ctx, struct slu_flow *f, struct slu_err *err);
    /* Instead, where its file is there: what is to be said of it, by slu_flow_mine;
     * NULL: nothing. */
    int (*done)(void *ctx, struct slu_flow *f, struct slu_err *err);
};

/* A stage's in and out, as constants. */
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

/* Stages stand behind those that they read from; the first one reads the stream. */
struct slu_flow_spec {
    const char *name;
    const struct slu_table_spec *table;
    const struct slu_stage *stage;
    unsigned n_table, n_stage;
};

struct slu_flow_cfg { /* borrowed until the call returns */
    const struct slu_flow_spec *spec;
    struct slu_reader *reader; /* NULL: the stage reads none; */
    struct slu_names *names;   /* then names of what its files are of go here */
    void *ctx;                 /* of begin, words and run */
    /* h, of the stream that is read or of those that were, and its names are there:
     * before anything else is asked. Where no input has SLU_STAGE_NAMES, h has the
     * fingerprint alone. */
    int (*begin)(void *ctx, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err);
    /* One process: a note of the tape (slu_flow_note), in its place. */
    int (*note)(void *ctx, const void *p, size_t n, struct slu_err *err);
    uint64_t budget_byte; /* of tables and stages; batches in flight come on top */
    const char *tmpdir;
    unsigned n_threads, n_slots;
};

struct slu_flow_job {
    const char *work, *stage;
    uint64_t part, of; /* of parts or ranges; one job: 0, 0 */
    uint64_t ranges;   /* of stages before the ranges; 0: as many as parts */
    bool force;        /* whatever is there is made again */
    bool again;        /* what is there, made of the same, too */
};

struct slu_flow_report {
    bool skipped; /* its file was there */
    struct slu_sum in;
    uint64_t spilled_byte;
};

/* Does a job. */
SLU_MUST_USE int slu_flow_stage(const struct slu_flow_cfg *cfg,
                                const struct slu_flow_job *job,
                                struct slu_flow_report *r, struct slu_err *err);
/* Does all stages, in one process. */
SLU_MUST_USE int slu_flow_run(const struct slu_flow_cfg *cfg, struct slu_flow_report *r,
                              struct slu_err *err);
/* The stage of that name; NULL: there is none. */
const struct slu_stage *slu_stage_named(const struct slu_flow_spec *spec,
                                        const char *name);
/* For tests: SLU_E_USAGE unless each table is written once, before it is read, and cut
 * as it is read, and what lives at once takes no more than all memory. */
SLU_MUST_USE int slu_flow_check(const struct slu_flow_spec *spec, struct slu_err *err);
/* Appends a line a stage: its name; its jobs: parts, ranges, one; "reads" a stream or
 * "-"; "writes" a stream, a "set", or "-"; whose files it reads, with commas, or "-".
 */
SLU_MUST_USE int slu_flow_print(const struct slu_flow_spec *spec, struct slu_buf *out,
                                struct slu_err *err);
/* Whether the job's own file is there, with those ranges. */
bool slu_flow_there(const struct slu_flow_spec *spec, const struct slu_flow_job *job);
/* Calls each with the beginnings of the names of all files in the work folder that the
 * job reads. */
SLU_MUST_USE int slu_flow_inputs(const struct slu_flow_spec *spec,
                                 const struct slu_flow_job *job,
                                 int (*each)(void *ctx, const char *folder,
                                             const char *prefix, struct slu_err *err),
                                 void *ctx, struct slu_err *err);

/* ---- for `run` ---- */

/* All stages are done in this process; and, where nothing is left to do for those that
 * follow, they are left out. */
bool slu_flow_here(const struct slu_flow *f);
void slu_flow_finished(struct slu_flow *f);
uint64_t slu_flow_part(const struct slu_flow *f);
uint64_t slu_flow_parts(const struct slu_flow *f);
uint64_t slu_flow_ranges(const struct slu_flow *f);
/* The stage's share of memory; in one process all that no table has now. */
uint64_t slu_flow_own_byte(const struct slu_flow *f);
/* The ordinal that a part begins with, and all there are: of jobs that see all files of
 * the first stage, or one that was made from them. */
uint64_t slu_flow_base(const struct slu_flow *f, uint64_t part);
uint64_t slu_flow_total(const struct slu_flow *f);
/* What the stage itself has written to temporary files. */
void slu_flow_spilled(struct slu_flow *f, uint64_t n_byte);
/* Tables, borrowed until run returns. in: by its reach, from the first row on; of a
 * list again too. Until the next call for that table, over files: of_part: all cells of
 * the file of a part; of_cells: cells from … to - 1 of the files of all; mine: all
 * cells of its own file. */
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
/* The next row of a list of that part, which must be there; and that there is none. */
SLU_MUST_USE int slu_flow_next(struct slu_flow *f, unsigned table, uint64_t part,
                               struct slu_table *t, struct slu_row *row,
                               struct slu_err *err);
SLU_MUST_USE int slu_flow_end(struct slu_flow *f, unsigned table, uint64_t part,
                              struct slu_table *t, struct slu_err *err);
/* How many ordinals its part has, of a stage that reads: not as many as sequences. */
void slu_flow_span(struct slu_flow *f, uint64_t n);
/* Which cell rows go to, where not the top bits of word 0 or key say it: of the flow's
 * ctx; never descends as rows ascend. */
void slu_flow_cut(struct slu_flow *f, unsigned table,
                  uint64_t (*cell)(const void *ctx, struct slu_u128 key, const void *p,
                                   size_t n_byte));
/* The number here of domain `number` of the writer of a table's part; SLU_E_CHECKSUM
 * where it has no such domain. Any thread. */
SLU_MUST_USE int slu_flow_domain(const struct slu_flow *f, unsigned table,
                                 uint64_t part, uint64_t number, uint32_t *here,
                                 struct slu_err *err);
/* SLU_E_CHECKSUM: what a row of that part of a table says cannot be. */
int slu_flow_damaged(const struct slu_flow *f, unsigned table, uint64_t part,
                     struct slu_err *err);
/* SLU_E_MISMATCH: the stream is not the one that the first stage read. */
int slu_flow_other_stream(const struct slu_flow *f, struct slu_err *err);
/* In one process: appends sequence q of b to a tape, which the stages behind the first
 * read in place of the stream. It takes 1 MiB beside the flow's budget. */
SLU_MUST_USE int slu_flow_tape(struct slu_flow *f, const struct slu_batch *b,
                               const struct slu_seq *q, uint64_t ordinal,
                               struct slu_err *err);
/* The same of n bytes, which cfg.note gets in their place. */
SLU_MUST_USE int slu_flow_note(struct slu_flow *f, const void *p, size_t n,
                               struct slu_err *err);
/* Reads all of the stream; and what was in it. */
SLU_MUST_USE int slu_flow_read(struct slu_flow *f, const struct slu_side_ops *ops,
                               void *ctx, struct slu_err *err);
const struct slu_sum *slu_flow_sum(const struct slu_flow *f);

#endif
