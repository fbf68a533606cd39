/* pcre.h - regular expressions over UTF-8, by PCRE2.
 *
 * With jit, an expression is compiled to machine code where PCRE2 can do so, and has no
 * limit. Without, PCRE2's interpreter matches, and the number of its steps has a limit:
 * a JIT counts other steps, and is not everywhere, so only the interpreter gives up at
 * the same texts on all machines. The limit is for each place of the text at which a
 * match may begin, so a search can still take the square of the text's length.
 *
 * Thread safety: a compiled expression does not change; one thread at a time on a run.
 */
#ifndef SLU_PCRE_H
#define SLU_PCRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct slu_pcre;

struct slu_pcre_cfg {
    bool multiline; /* ^ and $ match at LF too */
    bool jit;
    enum slu_code refused; /* the code of the error if PCRE2 refuses the pattern */
};

/* Compiles n bytes of UTF-8; newline is LF. cfg->refused: "PCRE2 refuses the pattern:
 * REASON", and *at is the offset of the fault. Caller frees with slu_pcre_free. */
SLU_MUST_USE int slu_pcre_new(struct slu_pcre **r, const char *pattern, size_t n,
                              const struct slu_pcre_cfg *cfg, size_t *at,
                              struct slu_err *err);
/* NULL is legal. */
void slu_pcre_free(struct slu_pcre *r);
/* Whether the expression can match nothing. */
bool slu_pcre_matches_empty(const struct slu_pcre *r);

/* A thread's memory for matches of any expressions with this jit. Caller frees with
 * slu_pcre_run_free. */
struct slu_pcre_run;
SLU_MUST_USE int slu_pcre_run_new(struct slu_pcre_run **m, bool jit,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_pcre_run_free(struct slu_pcre_run *m);

/* Finds the first match in the n bytes of valid UTF-8 at p, from pos on: *start … *end
 * - 1. SLU_EOF: there is none. SLU_E_LIMIT with PCRE2's reason: without jit, from one
 * place on more than 10^6 steps and 16 for each byte of the text, or more than 64 MiB.
 * SLU_E_NOMEM. */
SLU_MUST_USE int slu_pcre_find(const struct slu_pcre *r, struct slu_pcre_run *m,
                               const void *p, size_t n, size_t pos, size_t *start,
                               size_t *end, struct slu_err *err);

#endif
