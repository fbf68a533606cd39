/* pcre.h - regular expressions over UTF-8, by PCRE2.
 *
 * With jit, an expression is compiled to machine code where PCRE2 can do so; a match may
 * take 10^7 of PCRE2's counts, and 64 for each byte of the text behind it, at a place,
 * which is about a tenth of a second. Without, PCRE2's interpreter matches, and a search
 * has a limit of steps: 10^6, and 16 for each byte of the text. A step is an item of the
 * pattern that is tried at a place of the text, and each byte that an item passes, in a
 * look-ahead too. The limit is one for the whole search, whatever the number of places
 * at which a match may begin. Only the interpreter gives up at the same texts on all
 * machines: a JIT counts other steps. A repeat that counts above 1,000 would pass bytes
 * uncounted: it is refused.
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

#define SLU_PCRE_RUN_BYTE (12 << 20) /* memory of a run without jit, at most */

/* A thread's memory for matches of any expressions with this jit. Caller frees with
 * slu_pcre_run_free. */
struct slu_pcre_run;
SLU_MUST_USE int slu_pcre_run_new(struct slu_pcre_run **m, bool jit,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_pcre_run_free(struct slu_pcre_run *m);

/* Finds the first match in the n bytes of valid UTF-8 at p, from pos on: *start … *end
 * - 1. SLU_EOF: there is none. SLU_E_LIMIT with PCRE2's reason: more steps than a search
 * may take or, without jit, more memory than SLU_PCRE_RUN_BYTE. SLU_E_NOMEM. */
SLU_MUST_USE int slu_pcre_find(const struct slu_pcre *r, struct slu_pcre_run *m,
                               const void *p, size_t n, size_t pos, size_t *start,
                               size_t *end, struct slu_err *err);

#endif
