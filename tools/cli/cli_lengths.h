/* cli_lengths.h - parses lengths of sequences and batches in options. */
#ifndef SLU_CLI_LENGTHS_H
#define SLU_CLI_LENGTHS_H

#include "tools/cli/cli.h"

/* Parses p[0, n), the value of this option, to tokens: 8192 or 8Ki. 8K is refused: it
 * would mean 8000, which few users intend. */
SLU_MUST_USE int cli_parse_length(const char *option, const char *p, size_t n,
                                  uint64_t *v, struct slu_err *err);

/* Parses "256,1000,4Ki" to *n ascending lengths in tokens, at most SLU_MAX_BUCKETS,
 * each from 1 to `most`. SLU_E_USAGE for any other text, or if a length occurs
 * twice. */
SLU_MUST_USE int cli_parse_buckets(const char *text, uint64_t most, uint64_t *length,
                                   unsigned *n, struct slu_err *err);

#endif
