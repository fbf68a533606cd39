/* sluice.h - shared by the files of tools/sluice. */
#ifndef SLU_SLUICE_H
#define SLU_SLUICE_H

#include <limits.h>

#include "tools/cli/cli.h"

struct program {
    const char *name;
    const struct slu_tool *tool; /* NULL: a script beside the executable */
    const char *summary;         /* of a script */
};

/* The program of that name; of a script also without "sluice-". NULL: there is none. */
const struct program *program_find(const char *name);
/* Sets path to that of a script beside the executable, whose name may have a prefix.
 * False: there is none, or the path is too long. */
bool script_path(const char *name, char path[PATH_MAX]);
/* Prints one line about the command line; returns the exit status 2. */
int usage_error(const char *fmt, ...) SLU_PRINTF(1, 2);
/* The same, about a name that is no program's. */
int usage_unknown(const char *name);

/* `sluice run`: argv[0] is "run". Returns the exit status. */
int line_main(int argc, char **argv);

/* The words of a line that is one text (words.c). */
struct line_words {
    char **word; /* ends with NULL, as argv */
    size_t n, cap;
};
/* Appends the words of the text, which blanks and newlines separate. '…', "…" and \
 * quote; | and ! alone are words, "!"; with `comments`, # at the beginning of a word
 * begins a comment. What a shell would expand or carry out is SLU_E_USAGE if it is not
 * quoted. */
SLU_MUST_USE int line_split(struct line_words *w, const char *text, bool comments,
                            struct slu_err *err);
SLU_MUST_USE int line_add(struct line_words *w, const char *p, size_t n,
                          struct slu_err *err);
void line_release(struct line_words *w);

#endif
