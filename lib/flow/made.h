/* made.h - the record: by which program and options a file was made. Manifests, work
 * files and sets have it, as members of a JSON object:
 *
 *   "program": "dedup", "bytes": 1, "stage": "verify", "part": [0, 4],
 *   "arguments": ["--near", "--threshold=7/10"], "contents": ["--against=HASH"],
 *   "lenient": ["--on-error=skip"], "facts": ["unit=word/2"], "seed": 0
 *
 * Members without a value are left out, but for program, bytes, arguments and seed. An
 * option that is repeated has a word each time, in order. What the options are, and which facts
 * follow from them, is known to tools/cli alone, so that the report and the work file of
 * a stage have the same words. A flow adds facts that only its stream says, which the
 * record of the stage before has decided.
 *
 * A lenient option changes nothing in a run that succeeds without it. So a file that was
 * made without it is also that of a run with it; one that was made with it is that of a
 * run without it if "rejected" beside the record is 0.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_MADE_H
#define SLU_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"

/* Raise it with each change of the bytes of any output; tests/golden/golden.py
 * fails until it is. Files of another number are not taken for this version's. */
#define SLU_BYTES 7

enum slu_made_kind {
    SLU_MADE_OPTION, /* "--name=value" */
    SLU_MADE_CONTENTS, /* "--name=HASH": of the file that the option names; "set N=HASH": of
                          input N */
    SLU_MADE_LENIENT,
    SLU_MADE_FACT, /* "name=value" */
    SLU_MADE_KINDS
};

struct slu_made {
    const char *program, *stage; /* borrowed; stage NULL: none */
    uint64_t part, of;           /* of 0: the whole */
    uint64_t seed;
    struct slu_buf text; /* of all words, each with a NUL */
    struct slu_made_word {
        size_t at; /* in text */
        uint8_t kind;
        uint8_t from; /* number of the first stage that it decides; 0: all */
    } * word;
    size_t n, cap;
};

SLU_MUST_USE int slu_made_add(struct slu_made *m, enum slu_made_kind kind,
                              unsigned from, const char *word, struct slu_err *err);
/* slu_made_add of a fact, of all stages, as printf. */
SLU_MUST_USE int slu_made_fact(struct slu_made *m, struct slu_err *err, const char *fmt,
                               ...) SLU_PRINTF(3, 4);
/* Makes *to of the words of m, and of its program and seed. */
SLU_MUST_USE int slu_made_copy(struct slu_made *to, const struct slu_made *m,
                               struct slu_err *err);
void slu_made_release(struct slu_made *m);
/* Appends the members, of the words up to stage `upto`, without braces. */
SLU_MUST_USE int slu_made_put(const struct slu_made *m, unsigned upto,
                              struct slu_buf *t, struct slu_err *err);
/* Whether two records differ; text: the first difference, as "was made with --min=256,
 * now --min=512". The caller appends what to do. */
bool slu_made_differs(struct slu_json_value was, struct slu_json_value now, char *text,
                      size_t cap);
/* Whether a text with braces, or of an earlier version, is a record of this version. */
bool slu_made_now(const char *text);
/* slu_made_differs for two texts with braces, the earlier one from a file. */
SLU_MUST_USE int slu_made_compare(const char *was, const char *now, char *text,
                                  size_t cap, bool *differs, struct slu_err *err);

#endif
