/* pack --method multi: the lengths of its bins. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/packer.h"
#include "tools/pack_private.h"

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* "256,1000,4K" to ascending lengths. */
static int parse(const char *text, uint64_t *length, size_t *n, struct slu_err *err)
{
    *n = 0;
    for (const char *p = text;; p++) {
        char *end;
        unsigned long long v = strtoull(p, &end, 10);
        unsigned shift = *end == 'K' || *end == 'k'   ? 10
                         : *end == 'M' || *end == 'm' ? 20
                                                      : 0;
        end += shift != 0;
        if (*p < '1' || *p > '9' || (*end && *end != ',') ||
            v > SLU_MAX_CAPACITY >> shift)
            return slu_fail(err, SLU_E_USAGE,
                            "--buckets %s: lengths with commas between, as 256,1000,4K",
                            text);
        if (*n == SLU_MAX_BUCKETS)
            return slu_fail(err, SLU_E_USAGE, "--buckets: more than %d",
                            SLU_MAX_BUCKETS);
        length[(*n)++] = (uint64_t)v << shift;
        p = end;
        if (!*p)
            break;
    }
    qsort(length, *n, sizeof *length, ascending);
    for (size_t i = 1; i < *n; i++)
        if (length[i] == length[i - 1])
            return slu_fail(err, SLU_E_USAGE, "--buckets %s: %llu twice", text,
                            (unsigned long long)length[i]);
    return SLU_OK;
}

int pack_multi_lengths(const struct pack_multi_opts *o, const struct slu_header *h,
                       uint64_t *length, size_t *n, struct slu_err *err)
{
    if (o->buckets)
        return parse(o->buckets, length, n, err);
    if (!h->n_bucket)
        return slu_fail(err, SLU_E_USAGE,
                        "the stream has no bucket lengths (decompose has not run); "
                        "--method multi needs --buckets L,L,...");
    *n = h->n_bucket;
    memcpy(length, h->bucket, *n * sizeof *length);
    return SLU_OK;
}

int pack_multi_check(const struct pack_multi_opts *o, bool multi, uint64_t length,
                     struct slu_err *err)
{
    if (!multi && (o->buckets || o->threshold != PACK_MULTI_THRESHOLD))
        return slu_fail(err, SLU_E_USAGE, "%s goes with --method multi only",
                        o->buckets ? "--buckets" : "--padding-threshold");
    if (multi && length)
        return slu_fail(err, SLU_E_USAGE,
                        "--method multi has bins of several lengths: give --buckets "
                        "L,L,... instead of --length");
    return SLU_OK;
}
