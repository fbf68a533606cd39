/* cli_list.h - options that name a file with a list, as --ids-keep FILE. The provenance
 * has the hash of the list's set, not the name of the file. */
#ifndef SLU_CLI_LIST_H
#define SLU_CLI_LIST_H

#include "lib/filter/idset.h"
#include "tools/cli/cli.h"

struct cli_list {
    struct cli_file file;  /* at the option's offset */
    struct slu_idset *set; /* NULL: not read */
};

typedef int cli_list_reader(struct slu_idset **s, const char *path, uint64_t most_byte,
                            struct slu_err *err);
/* Reads the list, if there is one, into at most *left_byte, and takes what it needs off.
 * Caller releases it, also after a failure. */
SLU_MUST_USE int cli_list_read(struct cli_list *l, cli_list_reader *read,
                               uint64_t *left_byte, struct slu_err *err);
void cli_list_release(struct cli_list *l);

#endif
