#include "tools/cli_lengths.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int cli_parse_buckets(const char *text, uint64_t most, uint64_t *length, unsigned *n,
                      struct slu_err *err)
{
    *n = 0;
    for (const char *p = text;; p++) {
        char *end;
        unsigned long long v = strtoull(p, &end, 10);
        unsigned shift = *end == 'K' || *end == 'k'   ? 10
                         : *end == 'M' || *end == 'm' ? 20
                                                      : 0;
        end += shift != 0;
        if (*p < '0' || *p > '9' || (*end && *end != ','))
            return slu_fail(err, SLU_E_USAGE,
                            "--buckets %s: lengths with commas between, as 256,1000,4K",
                            text);
        if (v == 0 || v > most >> shift)
            return slu_fail(err, SLU_E_USAGE,
                            "--buckets %s: lengths are from 1 to %llu", text,
                            (unsigned long long)most);
        if (*n == SLU_MAX_BUCKETS)
            return slu_fail(err, SLU_E_USAGE, "--buckets: more than %d",
                            SLU_MAX_BUCKETS);
        length[(*n)++] = (uint64_t)v << shift;
        p = end;
        if (!*p)
            break;
    }
    qsort(length, *n, sizeof *length, ascending);
    for (unsigned i = 1; i < *n; i++)
        if (length[i] == length[i - 1])
            return slu_fail(err, SLU_E_USAGE, "--buckets %s: %llu twice", text,
                            (unsigned long long)length[i]);
    return SLU_OK;
}
