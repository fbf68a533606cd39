#include "tools/cli/cli_list.h"

int cli_list_parse(struct cli_list *l, const char *value)
{
    l->file = value;
    l->id = "";
    return SLU_OK;
}

int cli_list_input(const struct cli_list *l, struct cli_inputs *in, struct slu_err *err)
{
    return l->file ? cli_inputs_add(in, l->file, 0, UINT64_MAX, err) : SLU_OK;
}

int cli_list_read(struct cli_list *l, cli_list_reader *read, uint64_t *left_byte,
                  struct slu_err *err)
{
    int rc = l->file ? read(&l->set, l->file, *left_byte, err) : SLU_OK;

    if (rc || !l->file)
        return rc;
    *left_byte -= slu_idset_byte(l->set);
    slu_u128_hex(slu_idset_sum(l->set), l->hex);
    l->id = l->hex;
    return SLU_OK;
}

void cli_list_release(struct cli_list *l)
{
    slu_idset_free(l->set);
}
