/* regex.h - what the files of pre-tokenizing regular expressions share. */
#ifndef SLU_TOK_REGEX_H
#define SLU_TOK_REGEX_H

#include "lib/token/pre.h"

/* Appends what PCRE2 is to compile, with UTF and MULTILINE, newline LF. The pattern is
 * valid UTF-8. SLU_E_UNSUPPORTED, with the part's name and its offset, where Oniguruma
 * might read it otherwise. */
SLU_MUST_USE int regex_translate(const char *pattern, size_t len, struct slu_buf *out,
                                 struct slu_err *err);

#endif
