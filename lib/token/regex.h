/* regex.h - translation of regular expressions of pre-tokenizers for PCRE2. */
#ifndef SLU_TOK_REGEX_H
#define SLU_TOK_REGEX_H

#include "lib/token/pre.h"

/* Appends the expression for PCRE2, to be compiled with UTF and MULTILINE, newline LF.
 * The pattern is valid UTF-8. SLU_E_UNSUPPORTED names a part, and its offset, that
 * Oniguruma might read differently. */
SLU_MUST_USE int regex_translate(const char *pattern, size_t len, struct slu_buf *out,
                                 struct slu_err *err);

#endif
