/* cli_inputs.h - what a run reads, by name and by contents, for its manifest; and by
 * device and inode, so that no output takes the place of any of it.
 *
 * With `targets` nothing is kept: every file that is added, those of folders and what
 * other parts read too, is held against what the outputs would replace, and a file that
 * is not there is nobody's fault yet.
 *
 * A token stream is known by its frames' headers (lib/stream/stream_tail.h), a file of
 * a work folder by its foot (lib/flow/workfile.h): both are read in no time. Any other file
 * is known by XXH3-128 of the bytes that are read of it. What is no regular file (a
 * pipe, a folder) cannot be compared with anything.
 */
#ifndef SLU_CLI_INPUTS_H
#define SLU_CLI_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/json.h"

enum cli_input_kind { CLI_IN_UNKNOWN, CLI_IN_STREAM, CLI_IN_WORK, CLI_IN_FILE };

struct cli_input {
    char *name;
    char *source;           /* the name that it has in the stream; NULL: not a source */
    uint64_t number;        /* the source's */
    uint64_t from, to;      /* the bytes that are read of it */
    bool regular;           /* else all below is 0 */
    uint64_t n_byte;        /* the file's */
    uint64_t mtime_ns;      /* when it was added to the list */
    int kind;               /* CLI_IN_UNKNOWN until it is signed */
    struct slu_u128 sum;    /* a stream's checksum, else of the contents */
    struct slu_u128 digest; /* of a stream: of its frames' headers */
};

struct stat;
struct cli_targets; /* tools/cli/cli_outputs.c */
struct cli_ctx;

struct cli_inputs {
    struct cli_input *item;
    size_t n, cap;
    const struct cli_targets *targets; /* borrowed; NULL: for a manifest */
};

/* SLU_E_USAGE where an output would take the place of `input`, which is `st`. */
SLU_MUST_USE int cli_targets_spare(const struct cli_targets *t, const char *input,
                                   const struct stat *st, struct slu_err *err);

/* Looks at the file and adds it. SLU_E_IO where it is not there. to UINT64_MAX: all of
 * it from `from` on. */
SLU_MUST_USE int cli_inputs_add(struct cli_inputs *in, const char *path, uint64_t from,
                                uint64_t to, struct slu_err *err);
/* A source of tokenize: its number, its name in the stream and its share matter too. */
struct slu_source;
SLU_MUST_USE int cli_inputs_add_source(struct cli_inputs *in,
                                       const struct slu_source *src, uint64_t number,
                                       struct slu_err *err);
/* The files of a work folder whose names begin with `prefix` (with targets: all that
 * stages leave in it), in the order of their names; none where there is no such folder,
 * which is for the run to say. */
SLU_MUST_USE int cli_inputs_add_work(struct cli_inputs *in, const char *dir,
                                     const char *prefix, struct slu_err *err);
void cli_inputs_release(struct cli_inputs *in);

/* Fills kind, sum and digest. */
SLU_MUST_USE int cli_input_sign(struct cli_input *i, struct slu_err *err);
/* SLU_E_MISMATCH where the file is another than when it was added. */
SLU_MUST_USE int cli_input_check(const struct cli_input *i, struct slu_err *err);
/* {"name": …, "bytes": …, …}; after cli_input_sign. with_place: name, range and time
 * too. */
SLU_MUST_USE int cli_input_put(struct slu_buf *b, const struct cli_input *i,
                               bool with_place, struct slu_err *err);
/* *out is the text as it comes back from JSON: what is not valid UTF-8 has been
 * replaced. Caller frees. */
SLU_MUST_USE int cli_as_written(char **out, const char *text, struct slu_err *err);
/* Signs i if need be and compares it with what cli_input_put has put. *what says what
 * differs, in `text`; NULL: nothing. */
SLU_MUST_USE int cli_input_compare(struct cli_input *i, struct slu_json_value was,
                                   char *text, size_t cap, const char **what,
                                   struct slu_err *err);

#endif
