#include "parquet.h"

#include <string.h>

#include "lib/base/module.h"

const struct slu_parquet *slu_parquet_load(void)
{
    const struct slu_parquet *p =
        slu_module_symbol("libsluice-parquet.so", "slu_parquet");

    return p && strncmp(p->abi, SLU_PARQUET_ABI, sizeof p->abi) == 0 ? p : NULL;
}
