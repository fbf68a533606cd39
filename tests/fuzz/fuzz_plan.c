/* Fuzzes plans in files: any bytes give a plan that keeps packer.h's promises or one
 * clear error. Size and checksum are mended first (unless the first byte is odd), or
 * the fuzzer would never get behind them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/pack/planfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct slu_planfile *f, size_t i)
{
    struct slu_pack_plan *plan;
    struct slu_pack_interval *v;
    struct slu_err err = SLU_ERR_INIT;
    size_t n;
    if (slu_planfile_plan(f, i, &plan, &err))
        abort(); /* it was accepted before */
    uint64_t bins = 0;
    int rc = slu_pack_intervals(plan, &v, &n, &err);
    for (size_t k = 0; !rc && k < n; k++) {
        if (v[k].first_bin != bins || v[k].room >= v[k].capacity)
            abort();
        bins += v[k].count;
    }
    if (!rc && bins != plan->n_bin)
        abort();
    free(v);
    slu_pack_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_planfile *f;
    uint8_t *p = malloc(n + 1);
    if (!p)
        return 0;
    memcpy(p, data, n);
    if (n >= 72 && data[0] % 2 == 0) {
        memcpy(p, "SLUPLAN\n", 8);
        slu_put_le64(p + 56, n);
        slu_put_le64(p + n - 8, slu_hash64(p, n - 8));
    }
    int rc = slu_planfile_parse(&f, p, n, &err);
    for (size_t i = 0; !rc && i < slu_planfile_domains(f); i++)
        use(f, i);
    if (rc && (!*err.msg || strchr(err.msg, '\n')))
        abort();
    if (!rc)
        slu_planfile_free(f);
    free(p);
    return 0;
}
