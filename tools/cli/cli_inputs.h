/* cli_inputs.h - the files that a run reads. For the manifest they are known by name
 * and contents, those that options name by contents alone, which the record has; to
 * protect them from outputs, by device and inode.
 *
 * With `targets` the list stays empty: each file is compared with the files that
 * outputs would replace. All files are compared, including those in folders and those
 * that other parts read. A missing file is then no error.
 *
 * A token stream is compared by its frames' headers (lib/stream/stream_tail.h) and a
 * work file by its foot (lib/flow/workfile.h); reading both takes almost no time. Any
 * other file is compared by the XXH3-128 of the bytes that the run reads, a set of shards
 * by its report.json. A pipe or another folder cannot be compared.
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
    char *source;           /* name of the source in the stream; NULL: not a source */
    char *domain;           /* of the source; NULL: none */
    uint64_t number;        /* number of the source */
    uint64_t from, to;      /* range of bytes that the run reads */
    bool in_record;         /* the record (lib/flow/made.h) has its contents: it is
                               neither listed nor compared here */
    bool regular;           /* else all fields below are 0 */
    uint64_t n_byte;        /* size of the file */
    uint64_t mtime_ns;      /* when it was added to the list */
    int kind;               /* CLI_IN_UNKNOWN until it is signed */
    struct slu_u128 sum;    /* a stream's checksum, or the hash of the contents */
    struct slu_u128 digest; /* of a stream: hash of its frames' headers */
};

struct stat;
struct cli_targets; /* tools/cli/cli_outputs.c */
struct cli_ctx;

struct cli_inputs {
    struct cli_input *item;
    size_t n, cap;
    const struct cli_targets *targets; /* borrowed; NULL: for a manifest */
};

/* SLU_E_USAGE if an output would replace `input`, whose status is `st`. */
SLU_MUST_USE int cli_targets_spare(const struct cli_targets *t, const char *input,
                                   const struct stat *st, struct slu_err *err);

/* Adds the file with its size and time. SLU_E_IO if the file does not exist. to
 * UINT64_MAX: to the end of the file. */
SLU_MUST_USE int cli_inputs_add(struct cli_inputs *in, const char *path, uint64_t from,
                                uint64_t to, struct slu_err *err);
/* Adds a file whose contents the record has, by whatever name. */
SLU_MUST_USE int cli_inputs_add_known(struct cli_inputs *in, const char *path,
                                      struct slu_err *err);
/* Adds a source of tokenize; its number, its name in the stream, its domain and its
 * share are compared too. */
struct slu_source;
SLU_MUST_USE int cli_inputs_add_source(struct cli_inputs *in,
                                       const struct slu_source *src, uint64_t number,
                                       struct slu_err *err);
/* Adds the files in a work folder whose names begin with `prefix`, in the order of
 * their names; with targets, all work files. A missing folder adds no file; the run
 * reports it later. */
SLU_MUST_USE int cli_inputs_add_work(struct cli_inputs *in, const char *dir,
                                     const char *prefix, struct slu_err *err);
void cli_inputs_release(struct cli_inputs *in);

/* Fills kind, sum and digest. */
SLU_MUST_USE int cli_input_sign(struct cli_input *i, struct slu_err *err);
/* SLU_E_MISMATCH if the file has changed since it was added. */
SLU_MUST_USE int cli_input_check(const struct cli_input *i, struct slu_err *err);
/* Appends {"name": …, "bytes": …, …}; call after cli_input_sign. */
enum cli_put {
    CLI_PUT_CONTENTS,
    CLI_PUT_TIME,
    CLI_PUT_PLACE /* name, range and time */
};
SLU_MUST_USE int cli_input_put(struct slu_buf *b, const struct cli_input *i,
                               enum cli_put what, struct slu_err *err);
/* Signs i if necessary, and compares it with the output of an earlier cli_input_put.
 * *what describes the difference, in `text`; NULL: no difference. */
SLU_MUST_USE int cli_input_compare(struct cli_input *i, struct slu_json_value was,
                                   char *text, size_t cap, const char **what,
                                   struct slu_err *err);
/* The same for all of in and the member "inputs" of root. */
SLU_MUST_USE int cli_inputs_compare(struct cli_inputs *in, struct slu_json_value root,
                                    char *text, size_t cap, const char **what,
                                    struct slu_err *err);

#endif
