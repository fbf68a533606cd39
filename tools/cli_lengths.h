/* cli_lengths.h - the value of --buckets, for the programs that have it. */
#ifndef SLU_CLI_LENGTHS_H
#define SLU_CLI_LENGTHS_H

#include "tools/cli.h"

/* "256,1000,4K" to *n ascending lengths in tokens, SLU_MAX_BUCKETS at most, each
 * between 1 and `most`. SLU_E_USAGE otherwise, or where one comes twice. */
SLU_MUST_USE int cli_parse_buckets(const char *text, uint64_t most, uint64_t *length,
                                   unsigned *n, struct slu_err *err);

#endif
