/* cli_list.h - options that name a file with a list, as --ids-keep FILE. The provenance
 * has the hash of the list's set, not the name of the file: cli_list.id is the value at
 * the option's offset, which is known when the list was read. */
#ifndef SLU_CLI_LIST_H
#define SLU_CLI_LIST_H

#include "lib/filter/idset.h"
#include "tools/cli/cli_inputs.h"

struct cli_list {
    const char *file; /* borrowed; NULL: the option is not given */
    const char *id;
    char hex[33];
    struct slu_idset *set; /* NULL: not read */
};

/* Takes the option's value; always SLU_OK, as cli_opt.parse needs. */
int cli_list_parse(struct cli_list *l, const char *value);
/* Adds the file, if there is one. */
SLU_MUST_USE int cli_list_input(const struct cli_list *l, struct cli_inputs *in,
                                struct slu_err *err);
typedef int cli_list_reader(struct slu_idset **s, const char *path, uint64_t most_byte,
                            struct slu_err *err);
/* Reads the list, if there is one, into at most *left_byte, and takes what it needs off.
 * Caller releases it, also after a failure. */
SLU_MUST_USE int cli_list_read(struct cli_list *l, cli_list_reader *read,
                               uint64_t *left_byte, struct slu_err *err);
void cli_list_release(struct cli_list *l);

#endif
