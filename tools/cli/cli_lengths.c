#include "tools/cli/cli_lengths.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int cli_parse_length(const char *option, const char *p, size_t n, uint64_t *v,
                     struct slu_err *err)
{
    if (!slu_number(p, n, 1000, v))
        return slu_fail(err, SLU_E_USAGE,
                        "--%s: '%.*s' is not a length; write 8192 or 8Ki", option,
                        (int)n, p);
    if (!strchr("kKmMgGtT", p[n - 1]))
        return SLU_OK;
    uint64_t binary;
    return slu_number(p, n, 1024, &binary)
               ? slu_fail(err, SLU_E_USAGE, "--%s: %.*s is %llu; write %llu or %.*si",
                          option, (int)n, p, (unsigned long long)*v,
                          (unsigned long long)binary, (int)n, p)
               : slu_fail(err, SLU_E_USAGE, "--%s: %.*s is too long", option, (int)n,
                          p);
}

int cli_parse_buckets(const char *text, uint64_t most, uint64_t *length, unsigned *n,
                      struct slu_err *err)
{
    *n = 0;
    for (const char *p = text, *end;; p = end + 1) {
        uint64_t v;
        end = strchrnul(p, ',');
        int rc = cli_parse_length("buckets", p, (size_t)(end - p), &v, err);
        if (rc)
            return rc;
        if (v == 0 || v > most)
            return slu_fail(err, SLU_E_USAGE,
                            "--buckets %s: a length must be from 1 to %llu", text,
                            (unsigned long long)most);
        if (*n == SLU_MAX_BUCKETS)
            return slu_fail(err, SLU_E_USAGE, "--buckets: more than %d lengths",
                            SLU_MAX_BUCKETS);
        length[(*n)++] = v;
        if (!*end)
            break;
    }
    qsort(length, *n, sizeof *length, ascending);
    for (unsigned i = 1; i < *n; i++)
        if (length[i] == length[i - 1])
            return slu_fail(err, SLU_E_USAGE, "--buckets %s: %llu twice", text,
                            (unsigned long long)length[i]);
    return SLU_OK;
}
