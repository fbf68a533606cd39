/* multi.c - the lengths of pack's bins: adds them to the buckets, and parses those of
 * --method multi. */
#include <string.h>

#include "lib/pack/packer.h"
#include "tools/cli/cli_lengths.h"
#include "tools/pack/pack.h"

int pack_add_bucket(struct slu_header *h, uint64_t length, struct slu_err *err)
{
    unsigned i = 0;
    if (length > SLU_MAX_CAPACITY - 1)
        return slu_fail(err, SLU_E_USAGE, "--length: at most %llu",
                        (unsigned long long)SLU_MAX_CAPACITY - 1);
    while (i < h->n_bucket && h->bucket[i] < length)
        i++;
    if (i < h->n_bucket && h->bucket[i] == length)
        return SLU_OK;
    if (h->n_bucket == SLU_MAX_BUCKETS)
        return slu_fail(err, SLU_E_USAGE, "--length: the stream has %d buckets already",
                        SLU_MAX_BUCKETS);
    memmove(&h->bucket[i + 1], &h->bucket[i], (h->n_bucket - i) * sizeof *h->bucket);
    h->bucket[i] = length;
    h->n_bucket++;
    return SLU_OK;
}

int pack_multi_lengths(const struct pack_multi_opts *o, const struct slu_header *h,
                       uint64_t *length, size_t *n, struct slu_err *err)
{
    if (o->buckets) {
        unsigned n_length = 0;
        int rc =
            cli_parse_buckets(o->buckets, SLU_MAX_CAPACITY, length, &n_length, err);
        *n = n_length;
        return rc;
    }
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
        return slu_fail(err, SLU_E_USAGE, "%s needs --method multi",
                        o->buckets ? "--buckets" : "--padding-threshold");
    if (multi && length)
        return slu_fail(err, SLU_E_USAGE,
                        "--method multi has bins of several lengths; give --buckets "
                        "L,L,... instead of --length");
    return SLU_OK;
}
