/* cli.h - options, messages, reports and progress of every program, from one table.
 *
 * A program is a folder tools/NAME. Its NAME.c defines `const struct slu_tool
 * NAME_tool`: the option table, which drives parsing, --help and the provenance chain,
 * and `run`. cli_main parses, opens the report, calls run, prints the one line of a
 * fault and chooses the exit status. The program's own part is parse -> open -> one
 * library call -> close. All programs are one executable (tools/sluice/sluice.c).
 */
#ifndef SLU_CLI_H
#define SLU_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/ids/tokens.h"
#include "lib/base/device.h"
#include "lib/base/err.h"
#include "lib/flow/made.h"
#include "lib/stream/account.h"
#include "lib/stream/steps.h"
#include "lib/stream/stream.h"
#include "tools/cli/cli_part.h"

enum cli_kind {
    CLI_FLAG,         /* bool: the option sets true */
    CLI_UNFLAG,       /* bool: the option sets false */
    CLI_STRING,       /* const char * */
    CLI_OUTPUT,       /* const char *: a file to write, which no other option reads
                         or writes */
    CLI_INPUT,        /* const char *: a file to read, which states nothing that
                         decides the output but names or bounds it */
    CLI_FILE,         /* struct cli_file: a file to read, whose contents decide */
    CLI_FILES,        /* struct cli_files: as CLI_FILE, and may be repeated */
    CLI_COUNT,        /* uint64_t as lib/base/number.h reads it: 20M is 20,000,000 */
    CLI_MAYBE_COUNT,  /* as CLI_COUNT, with an optional value: UINT64_MAX without a
                         value */
    CLI_LENGTH,       /* uint64_t tokens of a sequence or batch: 8192 or 8Ki, not 8K */
    CLI_SIZE,         /* uint64_t bytes: 64M is 64 * 2^20 */
    CLI_FRACTION,     /* double in [0, 1]; "0.1%" is 0.001 */
    CLI_LEVEL,        /* int with an optional value: -z, -z3, --zstd=3 */
    CLI_CHOICE,       /* int: index in the NULL-terminated `choice` list */
    CLI_MAYBE_CHOICE, /* as CLI_CHOICE, with an optional value: index 0 without a
                         value */
    CLI_CUSTOM,       /* parse() reads the value */
};

/* The lasting effect of an option. An option decides the results unless its row says
 * otherwise: one that is forgotten makes an output again too often, and never takes the
 * output of another command for its own. */
enum cli_effect {
    CLI_DECIDES, /* decides results: the provenance records the option */
    CLI_BYTES,   /* decides only the bytes of the output: the manifest and the files of
                    stages record the option */
    CLI_NOTHING, /* no lasting effect */
};

enum cli_trait {
    CLI_OF_TEXT = 1, /* needs what documents have, such as fields or masks; a rehearsal
                          with another text leaves it out */
    CLI_OF_RUNNER = 2, /* what runs the stages sets it */
    CLI_WHOLE = 4,     /* no stage has it */
};

/* A file whose contents decide. */
struct cli_file {
    const char *path; /* borrowed; NULL: the option is not given */
    char id[33];      /* for the provenance; known when the file was read */
};

/* Such files in the order of the command line. The program frees `item`. */
struct cli_files {
    struct cli_file *item;
    size_t n, cap;
};

struct cli_opt {
    const char *name; /* long name without dashes */
    char letter;      /* short name or 0 */
    enum cli_kind kind;
    size_t offset;             /* of the destination in the program's options struct */
    const char *arg;           /* name of the value in --help; NULL: none, or the names
                                  in `choice`, separated by "|" */
    const char *help;          /* one or more lines, separated by "\n"; NULL: --help
                                  does not show the option */
    const char *const *choice; /* for CLI_CHOICE and CLI_MAYBE_CHOICE */
    int (*parse)(void *opts, const char *value, struct slu_err *err);
    bool path; /* a CLI_STRING or CLI_CUSTOM names a file or folder, or several with
                  commas, as CLI_INPUT and CLI_OUTPUT do: no address is accepted */
    uint64_t least, most; /* range of a given CLI_COUNT or CLI_SIZE; most 0: no limit */
    int effect;           /* enum cli_effect */
    unsigned traits;      /* enum cli_trait, for sluice-batch */
    /* The first stage whose files it decides; a flow without it: none. NULL, or no flow:
     * all. */
    const char *from;
    /* The value that changes nothing in a run that succeeds without the option; "":
     * any. */
    const char *lenient;
    /* Of a CLI_CUSTOM: the file, named in its value, whose contents decide; NULL:
     * none. */
    const char *(*file)(const void *opts);
};

/* Options that every program has. */
struct cli_common {
    const char *output; /* -o; NULL: standard output */
    uint64_t threads;   /* -T; never 0 after parsing */
    uint64_t memory;    /* -M in bytes; never 0 after parsing (DESIGN.md, Memory) */
    const char *tmpdir; /* --tmpdir, $TMPDIR, /var/tmp */
    uint64_t seed;
    int device; /* index in auto|cpu|cuda; only if slu_tool.uses_device */
    uint64_t device_ordinal;
    const char *stats;   /* --stats FILE */
    const char *compare; /* --compare LIST; NULL: not given */
    int progress;        /* auto|always|never */
    bool quiet, verbose, force, no_provenance, manifest, facts;
    int zstd_level;       /* -z; 0: none */
    struct cli_part part; /* --part, resolved; n 0: not given */
    /* For files of ids (formats/ids/tokens.h); only if slu_tool.reads_stream. */
    int input_format;            /* index in slu_tokens_format_names */
    uint64_t eos_id, vocab_size; /* SLU_NO_TOKEN, 0: not given */
    int token_bytes;             /* base-2 logarithm of the bytes; 0: not given */
    const char *column;          /* NULL: not given */
    const char *drop_metadata;   /* the same */
};

enum { EXIT_USAGE = 2 }; /* beside EXIT_SUCCESS and EXIT_FAILURE */

enum cli_outcome { CLI_RUN, CLI_HELP, CLI_VERSION };

/* What the programs of a line share to show one progress. Their contexts, in their order,
 * are of one array. */
struct cli_line {
    _Atomic double
        read; /* the share of its input that the first has read; -1: unknown */
    const struct cli_ctx *_Atomic drew; /* the last that is at work draws */
    _Atomic double when;
    _Atomic bool drawn; /* and it is still there */
};

struct cli_ctx {
    const struct slu_tool *tool;
    /* Standard input and standard output of a program that runs in a line
     * (tools/sluice/line.c); NULL: those of the process. */
    struct slu_joint *in, *out;
    /* Set, before its standard input ends, if the process that writes that has failed; or
     * NULL. */
    const _Atomic bool *before_failed;
    struct cli_line *line;        /* NULL: the program is a process */
    FILE *messages;               /* receives all that is said; NULL: standard error */
    struct slu_thread_time *time; /* of its threads; NULL: all of the process */
    enum cli_outcome outcome;     /* set by cli_begin: what is asked for */
    bool memory_given;            /* the same: -M is on the command line */
    struct cli_common common;
    void *opts;     /* the program's options struct */
    uint64_t given; /* bit i: row i of the program's table is on the command line */
    const char *const *input; /* positional arguments */
    size_t n_input;
    struct slu_account account; /* the program fills it; main checks and reports it */
    struct slu_step_list steps; /* which made the input; filled while it is read */
    struct slu_account earlier; /* of this program's earlier stages, for cli_steps */
    struct slu_source_rows sources; /* of the text, counted by cli_open_writer's */
    bool counts_sources;            /* writer, if this is set before */
    uint64_t rejected; /* records left out that would have ended a run without lenient
                          options */
    uint64_t spill_bytes;
    bool looks;         /* set before cli_open_reader by a run that writes no stream */
    const char *tokens; /* set by cli_open_reader: format of the files of ids; NULL:
                           streams */
    struct slu_tokens_seen seen;             /* filled while files of ids are read */
    struct slu_reader_duplicates duplicates; /* filled while streams are read */
    uint64_t n_meta_dropped;                 /* values that --drop-metadata left out */
    const struct slu_device *device;         /* borrowed; NULL: the CPU does all work */
    struct cli_report *report;               /* private */
    struct cli_manifest *manifest;           /* private */
    struct cli_record *record;               /* private */
    struct cli_targets *targets; /* private: the files that outputs would replace */
    struct cli_names expanded;   /* private: names with {part} replaced */
};

struct cli_inputs;    /* tools/cli/cli_inputs.h */
struct slu_flow_spec; /* lib/flow/flow.h */

struct slu_tool {
    const char *name;
    const char *synopsis;      /* text after the name in --help; lines separated by
                                  "\n" */
    const char *summary;       /* one sentence */
    const struct cli_opt *opt; /* ends with a NULL name */
    size_t opts_size;
    void (*defaults)(void *opts); /* may be NULL: all zero */
    uint64_t memory_floor;        /* -M below this value is a usage error */
    bool uses_device;
    bool reads_stream; /* through cli_open_reader */
    /* Keeps masks, and padding between segments. Without these, streams that have them
     * are refused (slu_reader_cfg). */
    bool masks, inner_padding;
    bool spills;       /* may need --tmpdir; main checks the folder at the start */
    bool plain_output; /* -o is text, so a terminal is accepted */
    /* Bytes of memory for each token of a long sequence: for the token, and for the
     * data derived from the token while the sequence is in flight. NULL: 4. */
    uint64_t (*tok_byte)(const struct cli_ctx *ctx);
    /* Whether the run prints to standard output if -o is not given. NULL: yes. */
    bool (*prints)(const void *opts);
    /* Called if --part is given, after I is known. Returns SLU_E_USAGE, with one line,
     * if these options cannot be split into parts. NULL: each part is an independent
     * run. */
    int (*check_part)(struct cli_ctx *ctx, struct slu_err *err);
    /* The flow that the options select. flow_at: offset of the struct cli_flow_opts
     * (tools/cli/cli_flow.h) in the options. NULL: the program has no flows. */
    const struct slu_flow_spec *(*flow)(const struct cli_ctx *ctx);
    size_t flow_at;
    /* Adds to the record of a stage what follows from the options and is not in their
     * words, such as what an option with `from` decides before that stage. NULL: no
     * facts. */
    int (*facts)(const struct cli_ctx *ctx, struct slu_made *m, struct slu_err *err);
    /* The mode, a static string for reports, of a program that can run more than once
     * in a pipe. NULL: the program has one mode. */
    const char *(*mode)(const struct cli_ctx *ctx);
    /* Adds all files that the run reads, except those of CLI_INPUT, CLI_FILE,
     * CLI_FILES and cli_opt.file. The manifest lists these files, as does the report of
     * a program that reads no stream, and no output may replace one of them
     * (tools/cli/cli_inputs.h). With --compare it is called once for each part. NULL:
     * cli_inputs_add_streams. */
    int (*inputs)(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err);
    /* For the manifest: whether the files exist that the run writes in addition to -o
     * and the CLI_OUTPUT options. NULL: there are no more files. */
    bool (*beside)(const struct cli_ctx *ctx);
    /* Whether the run replaces the folder -o, whatever its manifest says. NULL: no. */
    bool (*replaces)(const void *opts);
    const char *examples; /* for --help */
    int (*run)(struct cli_ctx *ctx, struct slu_err *err);
    /* Called at the end of every run, also after a fault and if run was not called.
     * NULL: nothing to free. */
    void (*release)(void *opts);
};

extern const struct slu_tool tokenize_tool, dedup_tool, choose_tool, decompose_tool,
    pack_tool, shuffle_tool, forget_tool, schedule_tool, inspect_tool;

/* Runs the program; returns the exit status. It is these steps: */
int cli_main(const struct slu_tool *tool, int argc, char **argv);
/* Prepares the process, which has the name for messages, for n programs. */
void cli_process(const char *name, unsigned n_program);
/* Reads the command line. ctx->tool is set, and common may have other defaults. */
SLU_MUST_USE int cli_begin(struct cli_ctx *ctx, int argc, char **argv,
                           struct slu_err *err);
/* Checks that no output of one of n programs is one of another, or would replace a file
 * that another reads; SLU_E_USAGE, with one line, if not. */
SLU_MUST_USE int cli_outputs_apart(struct cli_ctx *const *line, size_t n,
                                   struct slu_err *err);
/* Whether the options are of a run that writes a stream or set. */
bool cli_writes(const struct cli_ctx *ctx);
/* Does all that it asks for. */
SLU_MUST_USE int cli_carry_out(struct cli_ctx *ctx, struct slu_err *err);
/* Prints the error, or the counts, as the last line; returns the exit status. */
int cli_finish(struct cli_ctx *ctx, int rc, const struct slu_err *err);
void cli_release(struct cli_ctx *ctx);

/* The name of the stage to run, for reports; NULL: no stage. */
const char *cli_stage_of(const struct cli_ctx *ctx);

/* Whether the option of this long name, of the program's table, is on the command line.
 * */
bool cli_given(const struct cli_ctx *ctx, const char *name);

/* Whose options a record has. All have those that decide results and are not lenient. */
enum cli_scope {
    CLI_OF_STREAM, /* the provenance: with those about files of ids */
    CLI_OF_STAGES, /* work files and sets: with those that decide bytes, and contents of
                      files */
    CLI_OF_OUTPUT, /* the manifest: with all of these, lenient ones, and the contents of
                      sets that are read */
};
/* Makes the record of all options that are in scope and differ from their defaults.
 * Caller releases it, also after a failure. */
SLU_MUST_USE int cli_made(const struct cli_ctx *ctx, struct slu_made *m,
                          enum cli_scope scope, struct slu_err *err);
/* The text of these options for the provenance chain. Caller frees with free(). */
SLU_MUST_USE int cli_provenance(const struct cli_ctx *ctx, char **text,
                                struct slu_err *err);

/* For slu_tool.inputs: adds the streams, files of ids and folders on the command
 * line. */
SLU_MUST_USE int cli_inputs_add_streams(struct cli_ctx *ctx, struct cli_inputs *in,
                                        struct slu_err *err);

/* Call before reading a file whose name the run itself found in its input. Returns
 * SLU_E_USAGE if an output would replace this file. */
SLU_MUST_USE int cli_spare(struct cli_ctx *ctx, const char *path, struct slu_err *err);
/* SLU_E_USAGE if the folder of a set that will be written, which need not be there, lies
 * in a folder that is an input. */
SLU_MUST_USE int cli_not_below_inputs(const struct cli_ctx *ctx, const char *dir,
                                      struct slu_err *err);

/* Opens the input streams named on the command line (or stdin; a terminal is refused),
 * or files of ids (formats/ids/tokens.h). */
SLU_MUST_USE int cli_open_reader(struct cli_ctx *ctx, struct slu_reader **r,
                                 struct slu_err *err);
/* The largest number of tokens that a sequence may have. */
uint64_t cli_max_seq_tok(const struct cli_ctx *ctx);
/* Applies --drop-metadata to a reader; counts: the values count in the report. */
SLU_MUST_USE int cli_drop_metadata(struct cli_ctx *ctx, struct slu_reader *r,
                                   bool counts, struct slu_err *err);
/* For a reader that cli_open_reader did not open: sets the memory that long sequences
 * need. */
void cli_expect(const struct cli_ctx *ctx, struct slu_reader *r);
/* Whether the inputs can be read twice: all are regular files. */
bool cli_reads_twice(const struct cli_ctx *ctx);
/* Opens the same files again, for a second pass. */
SLU_MUST_USE int cli_reopen_reader(struct cli_ctx *ctx, struct slu_reader **r,
                                   struct slu_err *err);
/* Scans files of ids for the lengths of their documents, if the format allows a scan.
 * *scanned: the scan was done, and the caller frees *l. device NULL: the CPU scans. */
SLU_MUST_USE int cli_scan_lengths(struct cli_ctx *ctx, struct slu_device *device,
                                  bool *scanned, struct slu_tokens_lengths *l,
                                  struct slu_err *err);
/* Sets *mine to header h with the provenance step of this program (unless
 * --no-provenance is given). Caller releases it, also after a failure. */
SLU_MUST_USE int cli_stream_header(struct cli_ctx *ctx, const struct slu_header *h,
                                   struct slu_header *mine, struct slu_err *err);
/* Opens -o and writes header h with the provenance step of this program (unless
 * --no-provenance is given). */
SLU_MUST_USE int cli_open_writer(struct cli_ctx *ctx, struct slu_writer **w,
                                 const struct slu_header *h, struct slu_names *names,
                                 bool no_vocab, struct slu_err *err);
/* Counts the input of a program that reads a stream as `in`. */
void cli_account_in(struct cli_ctx *ctx, const struct slu_sum *in);
/* Makes *all of ctx->steps and this program's own step, whose account is `account` and
 * ctx->earlier; empty with --no-provenance. Caller releases it, also after a failure. */
SLU_MUST_USE int cli_steps(const struct cli_ctx *ctx, const struct slu_account *account,
                           struct slu_step_list *all, struct slu_err *err);
/* Closes a stream, with the steps that made it: those of cli_steps. Frees w even on
 * failure. */
SLU_MUST_USE int cli_end_writer(struct cli_ctx *ctx, struct slu_writer *w,
                                const struct slu_account *account, struct slu_err *err);
/* Counts the writer's sum as `out`, checks the account, and only then closes the
 * stream. Frees w even on failure. */
SLU_MUST_USE int cli_close_writer(struct cli_ctx *ctx, struct slu_writer *w,
                                  struct slu_err *err);
/* Number of batches that may be in flight within share_byte of -M. */
unsigned cli_slots(const struct cli_ctx *ctx, uint64_t share_byte);

/* Starts a clock and stops the one before, for --stats: "timings": {"read": seconds,
 * …}. name: a static string. */
void cli_timing(struct cli_ctx *ctx, const char *name);
/* As cli_timing, for work on a device, whose name is copied: "timing_devices": {"read":
 * device, …}. */
void cli_timing_on(struct cli_ctx *ctx, const char *name, const char *device);
/* Adds a figure of the program to --stats; key: a static string. */
void cli_stat_u64(struct cli_ctx *ctx, const char *key, uint64_t v);
void cli_stat_double(struct cli_ctx *ctx, const char *key, double v);
/* `json` must be valid JSON; it is copied. */
void cli_stat_json(struct cli_ctx *ctx, const char *key, const char *json);

/* Begins a pass over n_byte stored bytes, or n_tok tokens: the line of progress then
 * has its share and the time that is left. 0: the size is not known. what: a static
 * string, "writing"; NULL: the only pass. */
void cli_pass(struct cli_ctx *ctx, const char *what, uint64_t n_byte, uint64_t n_tok);
/* Shows progress: bytes and tokens of this pass so far. Any thread may call; the line
 * is drawn at most five times a second. */
void cli_progress(struct cli_ctx *ctx, uint64_t bytes, uint64_t tokens);
/* Shows progress of a pass of of_byte, as a callback for modules; ctx: a struct cli_ctx.
 * One thread at a time. */
void cli_progress_of(void *ctx, uint64_t n_byte, uint64_t of_byte);
/* Appends what went in and out, and what was dropped, as the last line of a run has it;
 * ends it with a NUL. */
SLU_MUST_USE int cli_put_account(struct slu_buf *b, const struct slu_account *l);
/* Removes the line of progress, for a program that prints its result on a terminal. */
void cli_erase(struct cli_ctx *ctx);
/* Prints one line on stderr, "tool: …"; silent with -q. */
void cli_warn(struct cli_ctx *ctx, const char *fmt, ...) SLU_PRINTF(2, 3);
/* cli_warn as a callback for struct slu_device. */
void cli_warn_text(void *ctx, const char *text);
void cli_note(struct cli_ctx *ctx, const char *fmt, ...)
    SLU_PRINTF(2, 3); /* only with -v */

#endif
