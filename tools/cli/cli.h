/* cli.h - options, messages, reports and progress of every program, from one table.
 *
 * A program is a folder tools/NAME; its NAME.c defines `const struct slu_tool slu_tool`: the
 * option table (which drives parsing, --help and the provenance chain) and `run`.
 * tools/cli/main.c owns main(): it parses, opens the report, calls run, prints the one line
 * of a fault and chooses the exit status. A program's own part is parse -> open -> one
 * library call -> close.
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
#include "lib/stream/account.h"
#include "lib/stream/stream.h"
#include "tools/cli/cli_part.h"

enum cli_kind {
    CLI_FLAG,   /* bool: set to true */
    CLI_UNFLAG, /* bool: set to false */
    CLI_STRING, /* const char * */
    CLI_OUTPUT, /* const char *: a file that is written; no two may be the same, nor
                   one what is read */
    CLI_INPUT,  /* const char *: a file that is read */
    CLI_COUNT,  /* uint64_t as lib/base/number.h reads it: 20M is 20,000,000 */
    CLI_MAYBE_COUNT,  /* the same with an optional value: UINT64_MAX without */
    CLI_LENGTH,       /* uint64_t tokens of a sequence or batch: 8192 or 8Ki, not 8K */
    CLI_SIZE,         /* uint64_t bytes: 64M is 64 * 2^20 */
    CLI_FRACTION,     /* double in [0, 1]; "0.1%" is 0.001 */
    CLI_LEVEL,        /* int with an optional value: -z, -z3, --zstd=3 */
    CLI_CHOICE,       /* int: index in the NULL-terminated `choice` list */
    CLI_MAYBE_CHOICE, /* the same with an optional value: 0 without */
    CLI_CUSTOM,       /* parse() is called */
};

/* What an option has an effect on. */
enum cli_effect {
    CLI_NOTHING, /* that lasts */
    CLI_RESULT,  /* results: it is recorded in the provenance */
    CLI_BYTES,   /* the bytes of the output alone: its manifest has it */
};

struct cli_opt {
    const char *name; /* long name without dashes */
    char letter;      /* short name or 0 */
    enum cli_kind kind;
    size_t offset;             /* of the destination in the program's options struct */
    const char *arg;           /* the value's name in --help, NULL for flags */
    const char *help;          /* one or more lines; a line break is "\n". NULL: of an
                                  option that --help leaves out */
    const char *const *choice; /* for CLI_CHOICE and CLI_MAYBE_CHOICE */
    int result;                /* enum cli_effect */
    int (*parse)(void *opts, const char *value, struct slu_err *err);
    uint64_t least, most; /* of a CLI_COUNT or CLI_SIZE that is given; most 0: any */
};

/* Options that every program has. */
struct cli_common {
    const char *output; /* -o; NULL: standard output */
    uint64_t threads;   /* -T; never 0 after parsing */
    uint64_t memory;    /* -M in bytes; never 0 after parsing (DESIGN.md, Memory) */
    const char *tmpdir; /* --tmpdir, $TMPDIR, /var/tmp */
    uint64_t seed;
    int device; /* index in auto|cpu|cuda; only where uses_device */
    uint64_t device_ordinal;
    const char *stats; /* --stats FILE */
    int progress;      /* auto|always|never */
    bool quiet, verbose, force, no_provenance, manifest;
    int zstd_level;       /* -z; 0: none */
    struct cli_part part; /* --part, resolved; n 0: not given */
    /* Files of ids that are no stream (formats/ids/tokens.h); only where reads_stream.
     */
    int input_format;            /* index in slu_tokens_format_names */
    uint64_t eos_id, vocab_size; /* SLU_NO_TOKEN, 0: not given */
    int token_bytes;             /* log2 of them; 0: not given */
    const char *column;          /* NULL: not given */
};

struct cli_ctx {
    const struct slu_tool *tool;
    struct cli_common common;
    void *opts;     /* the program's options struct */
    uint64_t given; /* bit i: row i of the program's table is on the command line */
    const char *const *input; /* positional arguments */
    size_t n_input;
    struct slu_ledger ledger; /* the program fills it; main checks and reports it */
    uint64_t spill_bytes;
    bool looks;         /* set before cli_open_reader: no stream comes of it */
    const char *tokens; /* cli_open_reader: the format of files of ids, NULL: streams */
    struct slu_tokens_seen seen;     /* of them */
    const struct slu_device *device; /* borrowed; NULL: all is the CPU's work */
    struct cli_report *report;       /* private */
    struct cli_manifest *manifest;   /* private */
    struct cli_targets *targets;     /* private: what outputs would replace */
    struct cli_names expanded;       /* private: names with {part} replaced */
};

struct cli_inputs;    /* tools/cli/cli_inputs.h */
struct slu_flow_spec; /* lib/flow/flow.h */

struct slu_tool {
    const char *name;
    const char *synopsis;      /* behind the name in --help; lines split by "\n" */
    const char *summary;       /* one sentence */
    const struct cli_opt *opt; /* ends with a NULL name */
    size_t opts_size;
    void (*defaults)(void *opts); /* may be NULL: all zero */
    uint64_t memory_floor;        /* -M below it is a usage error */
    bool uses_device;
    bool reads_stream; /* by cli_open_reader */
    bool spills;       /* may need --tmpdir, which is tried at the start */
    bool plain_output; /* -o is text: terminals are fine */
    /* Bytes of memory for a token of a long sequence: for itself, and for what is made
     * of it while it is in flight. NULL: 4. */
    uint64_t (*tok_byte)(const struct cli_ctx *ctx);
    /* Whether anything goes to standard output where -o is not given; NULL: it does. */
    bool (*prints)(const void *opts);
    /* --part was given, and is resolved: SLU_E_USAGE in one line where these options
     * cannot be split into parts. NULL: each part is a run of its own. */
    int (*check_part)(struct cli_ctx *ctx, struct slu_err *err);
    /* Which flow the options mean, and where they have their struct cli_flow_opts
     * (tools/cli/cli_flow.h); NULL: no program of flows. */
    const struct slu_flow_spec *(*flow)(const struct cli_ctx *ctx);
    size_t flow_at;
    /* Which of its jobs a program does that may stand in a line more than once, a
     * static string, for reports; NULL: it has but one. */
    const char *(*mode)(const struct cli_ctx *ctx);
    /* Adds all that is read, but the values of CLI_INPUT options: for the manifest,
     * and so that no output takes its place (tools/cli/cli_inputs.h). NULL:
     * cli_inputs_add_streams. */
    int (*inputs)(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err);
    /* For the manifest: whether what is written beside -o and the CLI_OUTPUT options is
     * there; NULL: nothing is. */
    bool (*beside)(const struct cli_ctx *ctx);
    /* What is there under -o, a folder, makes way, whatever its manifest says; NULL:
     * none does. */
    bool (*replaces)(const void *opts);
    const char *examples; /* for --help */
    int (*run)(struct cli_ctx *ctx, struct slu_err *err);
    /* Whatever has happened before, run or not; NULL: nothing to do. */
    void (*release)(void *opts);
};

extern const struct slu_tool slu_tool;

/* The stage that is asked for, for reports; NULL: none. */
const char *cli_stage_of(const struct cli_ctx *ctx);

/* The canonical text of the result-affecting options that differ from their defaults,
 * for the provenance chain. Caller frees with free(). */
SLU_MUST_USE int cli_provenance(const struct cli_ctx *ctx, char **text,
                                struct slu_err *err);

/* For slu_tool.inputs: the streams, files of ids or folders on the command line. */
SLU_MUST_USE int cli_inputs_add_streams(struct cli_ctx *ctx, struct cli_inputs *in,
                                        struct slu_err *err);

/* That file, whose name the run itself has read, is about to be read: SLU_E_USAGE where
 * an output would take its place. */
SLU_MUST_USE int cli_spare(struct cli_ctx *ctx, const char *path, struct slu_err *err);

/* Opens the input streams named on the command line (or stdin; a terminal is refused),
 * or files of ids (formats/ids/tokens.h). */
SLU_MUST_USE int cli_open_reader(struct cli_ctx *ctx, struct slu_reader **r,
                                 struct slu_err *err);
/* The most tokens that a sequence may have. */
uint64_t cli_max_seq_tok(const struct cli_ctx *ctx);
/* r, which was opened otherwise, knows what long sequences take too. */
void cli_expect(const struct cli_ctx *ctx, struct slu_reader *r);
/* The same files once more, for a second pass. */
SLU_MUST_USE int cli_reopen_reader(struct cli_ctx *ctx, struct slu_reader **r,
                                   struct slu_err *err);
/* Where the input are files of ids of a kind that can be scanned, the histogram of
 * their documents and nothing else: *scanned, and *l is the caller's. device NULL: the
 * CPU. */
SLU_MUST_USE int cli_scan_lengths(struct cli_ctx *ctx, struct slu_device *device,
                                  bool *scanned, struct slu_tokens_lengths *l,
                                  struct slu_err *err);
/* Opens -o and writes header h with this program's step added (unless --no-provenance).
 */
SLU_MUST_USE int cli_open_writer(struct cli_ctx *ctx, struct slu_writer **w,
                                 const struct slu_header *h, struct slu_names *names,
                                 bool no_vocab, struct slu_err *err);
/* Books the input of a program that reads a stream. */
void cli_book_in(struct cli_ctx *ctx, const struct slu_sum *in);
/* Books the writer's sum as out, checks the ledger, and only then closes the stream.
 * Frees w even when it fails. */
SLU_MUST_USE int cli_close_writer(struct cli_ctx *ctx, struct slu_writer *w,
                                  struct slu_err *err);
/* How many batches may be in flight within a share of -M. */
unsigned cli_slots(const struct cli_ctx *ctx, uint64_t share_byte);

/* A clock in --stats: "timings": {"read": seconds, …}. Static strings. */
void cli_timing(struct cli_ctx *ctx, const char *name);
/* The same, and the device it runs on, which is copied: "timing_devices": {"read":
 * device, …}. */
void cli_timing_on(struct cli_ctx *ctx, const char *name, const char *device);
/* The program's own figures in --stats; keys are static strings. */
void cli_stat_u64(struct cli_ctx *ctx, const char *key, uint64_t v);
void cli_stat_double(struct cli_ctx *ctx, const char *key, double v);
/* `json` must be valid JSON; copied. */
void cli_stat_json(struct cli_ctx *ctx, const char *key, const char *json);

/* Progress: what has passed so far (any thread may call; drawn at most five times a
 * second). */
void cli_progress(struct cli_ctx *ctx, uint64_t bytes, uint64_t tokens);
/* One line on stderr, "tool: …"; silent with -q. */
void cli_warn(struct cli_ctx *ctx, const char *fmt, ...) SLU_PRINTF(2, 3);
/* The same as a callback for struct slu_device. */
void cli_warn_text(void *ctx, const char *text);
void cli_note(struct cli_ctx *ctx, const char *fmt, ...)
    SLU_PRINTF(2, 3); /* with -v only */

#endif
