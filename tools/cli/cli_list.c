#include "tools/cli/cli_list.h"

int cli_list_read(struct cli_list *l, cli_list_reader *read, uint64_t *left_byte,
                  struct slu_err *err)
{
    int rc = l->file.path ? read(&l->set, l->file.path, *left_byte, err) : SLU_OK;

    if (rc || !l->file.path)
        return rc;
    *left_byte -= slu_idset_byte(l->set);
    slu_u128_hex(slu_idset_sum(l->set), l->file.id);
    return SLU_OK;
}

void cli_list_release(struct cli_list *l)
{
    slu_idset_free(l->set);
}
