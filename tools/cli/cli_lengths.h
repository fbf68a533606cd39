/* cli_lengths.h - lengths of sequences and batches as options have them. */
#ifndef SLU_CLI_LENGTHS_H
#define SLU_CLI_LENGTHS_H

#include "tools/cli/cli.h"

/* p[0, n), the value of that option, to tokens: 8192 or 8Ki. 8K is refused: it would be
 * 8000, which few who write it mean. */
SLU_MUST_USE int cli_parse_length(const char *option, const char *p, size_t n,
                                  uint64_t *v, struct slu_err *err);

/* "256,1000,4Ki" to *n ascending lengths in tokens, SLU_MAX_BUCKETS at most, each
 * between 1 and `most`. SLU_E_USAGE otherwise, or where one comes twice. */
SLU_MUST_USE int cli_parse_buckets(const char *text, uint64_t most, uint64_t *length,
                                   unsigned *n, struct slu_err *err);

#endif
